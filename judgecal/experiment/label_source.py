"""What people label: the items of a set or of an experiment, a judge's verdicts on them, and draws."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgecal.commands import wing
from judgecal.errors import InputError, refuse, unknown_name
from judgecal.experiment.folder import read_config
from judgecal.experiment.rows import LEAST_DRAWN, ROWS, kept_rows
from judgecal.experiment.stored import find_experiment
from judgecal.experiment.trials import stored_rows
from judgecal.goldset import Card, GoldSet, load_gold, write_gold
from judgecal.goldset.card import UNKNOWN_LICENCE
from judgecal.goldset.draw import draw
from judgecal.goldset.load import read_items
from judgecal.goldset.write import name_problems
from judgecal.records import Item
from judgecal.scale import Scale
from judgecal.workspace import Workspace


@dataclass(frozen=True, slots=True)
class LabelSource:
    """Items with the set that their questions are of."""

    gold: GoldSet
    items: tuple[Item, ...]
    to: str  # the set that the labels go into: `gold`, or a new one where the answers are an answerer's


def find_source(
    name: str, workspace: Workspace, *, labelling: bool = False, rows: bool = False
) -> LabelSource:
    """Find the gold set or the experiment of a name in a workspace, a set first.

    Of an experiment the items are those that its judges judged, as they are in the set today; with `rows` the
    rows without labels that it kept, where it kept some.
    """
    folders = [workspace.experiments / name, Path(name)]
    folder = next((folder for folder in folders if (folder / "experiment.toml").is_file()), None)
    sets = workspace.gold_sets
    if name in sets or folder is None:
        if name not in sets and not Path(name).is_dir():
            made = sorted(path.parent.name for path in workspace.experiments.glob("*/experiment.toml"))
            raise unknown_name("gold set or experiment", name, [*sets, *made])
        gold = load_gold(name, workspace=workspace, labelling=labelling)
        return LabelSource(gold, gold.items, gold.name)
    config = read_config(folder)
    set_name = config.get("gold", {}).get("set")
    if not isinstance(set_name, str):
        raise InputError(f"{folder}: its experiment.toml names no gold set, so it has no items for a sheet")
    if "table" in config:
        keep = f"judgecal report {name} ends with the command that imports it"
        raise InputError(f"{name} is of a table that is no gold set yet: {keep}")
    gold = load_gold(set_name, workspace=workspace)
    if rows and (folder / ROWS).is_file():
        return LabelSource(gold, read_items(folder / ROWS), gold.name)
    if config.get("command") in ("answer", "evaluate"):  # new items, which labels make a gold set of
        return LabelSource(gold, wing("answered items")(folder), folder.name)
    judged = {(row.item_id, row.item_sha) for row in stored_rows(folder / "judgements.jsonl").latest.values()}
    items = tuple(item for item in gold.items if (item.item_id, item.sha) in judged)
    if not items:
        raise InputError(
            f"{folder}: it holds no judgement of an item of gold set {set_name!r} as it is today"
        )
    return LabelSource(gold, items, gold.name)


@dataclass(frozen=True, slots=True)
class LabelSample:
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
        inside = place.resolve().is_relative_to(made.path.resolve())
        if self.rubric is not None and self.rubric.is_file() and inside:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.rubric, place)
        return made


def answers_sample(source: LabelSource) -> LabelSample:
    """All answers of an answerer's experiment, as the set that waits for their labels."""
    about = f"answers of experiment {source.to}"
    card = Card(source.to, source.gold.scale, version="1", source=about, anchors=source.gold.card.anchors)
    return LabelSample(card, source.items, ())


def drawn_card(name: str, scale: Scale, source: str, sampling: str) -> Card:
    """The card of a set of drawn items, which waits for people's labels."""
    made: dict[str, Any] = {"made_by": "people", "labels_by": "people", "sampling": sampling}
    return Card(name, scale, version="1", licence=UNKNOWN_LICENCE, source=source, **made)


def draw_of(
    source: str,
    gold: GoldSet,
    items: Sequence[Item],
    workspace: Workspace,
    *,
    n: int | None,
    name: str,
    seed: int,
    labels: str | None = None,
) -> LabelSample:
    """Draw `n` of an experiment's items that have no label yet, mostly where its judges differ
    (`goldset.draw`), as the set `name`; nothing is written.

    They are of the rows that a migration kept (`experiment.rows`).

    Args:
        gold: the set that the items are of; the new one has its scale and its splits.
        labels: the set of what was drawn before, which the new ones join.
    """
    if n is None:
        raise InputError("--strata draws: say how many items by -n")
    if source in workspace.gold_sets:
        raise InputError(
            f"--strata draws where the judges of an experiment differ, and {source!r} is a gold set"
        )
    workspace.require_writable("gold sheet --strata")
    before = None if labels is None else load_gold(labels, workspace=workspace)
    problems = [] if before else name_problems(name, workspace=workspace, replace=False)
    if n < LEAST_DRAWN:
        problems.append(f"-n must be at least {LEAST_DRAWN}, found {n}")
    strata, where = kept_rows(find_experiment(workspace, source).folder)
    left = {item.item_id for item in items}
    strata = [
        replace(stratum, items=tuple(item for item in stratum.items if item.item_id in left))
        for stratum in strata
    ]
    done = {item.item_id: item.inclusion_probability for item in before.items} if before else {}
    drawable = {item.item_id for stratum in strata for item in stratum.items}
    if not done.keys() <= drawable:
        problems.append(f"--labels {labels}: it was drawn from other rows: leave it out for a new draw")
    for stratum in strata:
        if len({done[item.item_id] for item in stratum.items if item.item_id in done}) > 1:
            problems.append(f"--labels {labels}: rows or judges have changed: leave it out for a new draw")
    refuse(problems)
    drawn = draw(strata, n, seed=seed, before=done, at_large=0.0)
    counts = ", ".join(f"{stratum}: {size} of {there}" for stratum, (size, there) in drawn.counts.items())
    if before is not None:
        joined = f"they join gold set {before.name}, whose {len(done)} items have new inclusion_probabilities"
        notes = (f"drawn: {counts}", joined)
        return LabelSample(before.card, drawn.items, notes, before=before, earlier=drawn.earlier)
    card = drawn_card(name, gold.scale, f"drawn from {where} ({counts}), seed {seed}", "stratified")
    like_gold = {key: getattr(gold.card, key) for key in ("licence", "rubric", "anchors", "splits")}
    card = replace(card, **like_gold)
    waits = f"the items and their inclusion_probability are gold set {name}, which waits for the labels"
    waits += f"; once it has them, the command that made {source} takes --labels {name}"
    rubric = gold.path / card.rubric if card.rubric else None
    return LabelSample(card, drawn.items, (f"drawn: {counts}", waits), rubric=rubric)
