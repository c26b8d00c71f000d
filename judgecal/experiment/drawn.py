"""Items that are drawn to be labelled where judges differ, and how they weigh once they are."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from judgecal.errors import InputError, refuse
from judgecal.goldset import Card, GoldSet, write_gold
from judgecal.goldset.draw import by_disagreement, draw
from judgecal.goldset.write import name_problems
from judgecal.records import Item
from judgecal.scale import Label
from judgecal.stats.sample import Floats
from judgecal.workspace import Workspace

LEAST_DRAWN = 10
"""Fewer labels than this decide nothing."""


def drawing_weights(gold: GoldSet, items: Sequence[Item]) -> Floats | None:
    """1 / the chance with which each item was drawn, with a mean of 1; None where it is the same for all or
    not known.
    """
    chances = [item.inclusion_probability for item in items]
    known = [chance for chance in chances if chance is not None]
    if not known:
        return None
    if len(known) < len(chances):
        lacking = next(item.item_id for item in items if item.inclusion_probability is None)
        raise InputError(
            f"gold set {gold.name}: {len(chances) - len(known)} of {len(chances)} items have no "
            f"inclusion_probability, {lacking!r} for one, and the others have: give it in items.jsonl, or "
            "keep them in a set of their own"
        )
    weights = 1.0 / np.array(known)
    return None if np.ptp(weights) <= 1e-9 * weights.max() else weights / weights.mean()


def refuse_unequal(gold: GoldSet, items: Sequence[Item], command: str) -> None:
    """Refuse (InputError) a command that cannot weigh items which were drawn with unequal probabilities."""
    if drawing_weights(gold, items) is not None:
        raise InputError(
            f"{command} would count all items of gold set {gold.name} alike, and they were drawn with "
            "unequal probabilities (inclusion_probability in items.jsonl): use score, agreement, compare or "
            "report, which weigh"
        )


@dataclass(frozen=True, slots=True)
class Drawing:
    """Items to be labelled, with their chances, and the set `card` that their labels will make.

    Where they join a set that is there, `before`, `earlier` are its items with the chances that they have
    now.
    """

    card: Card
    items: tuple[Item, ...]
    notes: tuple[str, ...]
    before: GoldSet | None = None
    earlier: tuple[Item, ...] = ()
    rubric: Path | None = None  # the file that goes with the set, under the name that the card has for it

    def write(self, workspace: Workspace) -> GoldSet:
        """The set into the workspace: without a label, or with those that it had before."""
        ratings, joins = (self.before.ratings, True) if self.before else ((), False)
        made = write_gold(
            self.card, (*self.earlier, *self.items), ratings, workspace=workspace, replace=joins
        )
        place = made.path / (self.card.rubric or "")
        if (
            self.rubric is not None
            and self.rubric.is_file()
            and place.resolve().is_relative_to(made.path.resolve())
        ):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.rubric, place)
        return made


def draw_where_judges_differ(
    gold: GoldSet,
    items: Sequence[Item],
    verdicts: Mapping[str, Mapping[str, Label | None]],
    *,
    name: str,
    n: int,
    seed: int,
    workspace: Workspace,
) -> Drawing:
    """Draw n of the items that have no label yet, mostly where the judges differ (`goldset.draw`); nothing is
    written.

    Args:
        gold: the set that the items are of; the new one has its scale and its splits.
        verdicts: judge -> item id -> verdict; items that no judge has judged are left out.
        name: of the new set.
    """
    workspace.require_writable("gold sheet --strata")
    judged = set().union(*(own.keys() for own in verdicts.values()))
    pool = [item for item in items if item.item_id in judged and item.item_id not in gold.labels]
    problems = name_problems(name, workspace=workspace, replace=False)
    if len(verdicts) < 2:
        problems.append(
            f"a draw where judges differ takes two judges or more, found {', '.join(verdicts) or 'none'}"
        )
    if n < LEAST_DRAWN:
        problems.append(f"-n must be at least {LEAST_DRAWN}, found {n}")
    if not pool:
        problems.append(
            f"every judged item of gold set {gold.name} has a label: add items without one to it, and have "
            "them judged (judgecal agreement keeps recorded verdicts of items without a label too)"
        )
    refuse(problems)
    drawn = draw(by_disagreement(pool, verdicts), n, seed=seed)
    counts = ", ".join(f"{stratum}: {size} of {there}" for stratum, (size, there) in drawn.counts.items())
    card = Card(
        name=name,
        scale=gold.scale,
        version="1",
        licence=gold.card.licence,
        source=f"drawn from gold set {gold.name} where {', '.join(verdicts)} differ ({counts}), seed {seed}",
        made_by="people",
        sampling="stratified",
        labels_by="people",
        rubric=gold.card.rubric,
        anchors=gold.card.anchors,
        splits=gold.card.splits,
    )
    notes = (
        f"drawn: {counts}",
        f"the items and their inclusion_probability are gold set {name}, which waits for the labels",
    )
    return Drawing(card, drawn.items, notes, rubric=gold.path / card.rubric if card.rubric else None)
