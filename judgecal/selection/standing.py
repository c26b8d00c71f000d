"""How the judges of an experiment stand: everything that its report shows, gathered from the layers that know
it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from judgecal.experiment.agreement import StoredExperiment
from judgecal.experiment.losses import (
    LossPicture,
    PromptModelGrid,
    floor_loss,
    people_losses,
    prompt_model_grid,
)
from judgecal.experiment.result import AgreementResult
from judgecal.experiment.score import stored_result
from judgecal.experiment.stored import stored_prompts
from judgecal.experiment.unread import Unread, unread_of
from judgecal.experiment.verdicts import JudgeShape, PartedItem, judge_shape, parted_items
from judgecal.goldset import JUDGEMENTS
from judgecal.records import Estimate
from judgecal.selection.choice import Candidate, Caps, measure, open_items
from judgecal.selection.decision import OpenChoice, Pick, decide, same_verdicts
from judgecal.stats import leading_metric
from judgecal.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Basis:
    """What judges are held against each other on; `may_choose` is false where that is test items alone."""

    split: str
    n_items: int
    n_groups: int
    may_choose: bool


@dataclass(frozen=True)
class Standing:
    """What is known of the judges of an experiment."""

    result: AgreementResult  # what the command printed, over all items
    sampling: str
    n_raters: int
    basis: Basis  # what the losses and the choice rest on
    metric: str
    margin: float
    losses: LossPicture | None  # against the best judge; None where no judge has a value of the metric
    # candidates, values: each judge as production would see it, and its metric with unscored items as wrong
    candidates: tuple[Candidate, ...]
    values: Mapping[str, Estimate]
    pick: Pick | None  # whom to use; None without losses
    grid: PromptModelGrid  # prompts against models
    shapes: tuple[JudgeShape, ...]  # verdicts beside labels, over all items
    parted: tuple[PartedItem, ...]  # the open items on which a judge and people part; never a test item
    alike: tuple[tuple[str, ...], ...]  # every judge, those that gave the same verdicts on all items together
    prompts: Mapping[str, str] = field(
        default_factory=dict
    )  # what a prompt judge is sent, where that is known
    unread: Unread | None = None  # who has no verdict at all
    kept: bool = False  # whether the recorded judgements came with the set, so that no file need be named

    @property
    def chosen(self) -> str | None:
        """The judge to use; None where nobody is shown to beat the best constant, or questions are too
        few."""
        return self.pick.judge if self.pick else None


def standing(
    workspace: Workspace, stored: StoredExperiment, *, margin: float, result: AgreementResult | None = None
) -> Standing:
    """Gather it; no model is called.

    Judges are held against each other on the items that may choose (train and dev), as `select` does; where
    the experiment holds test items alone, on those, and then nobody is chosen. Counts and tables are over all
    items. `result` is what the command came to, where it is at hand; made again from the journal where not.
    """
    gold = stored.gold
    whole, metric = stored.table, leading_metric(gold.scale)
    chosen_on = open_items(stored)
    tied = tuple(item for item in stored.tied if not chosen_on or gold.split_of(item.group) != "test")
    table = dataclasses.replace(whole, items=chosen_on or stored.items, tied=tied)
    measured = measure(stored, table)
    columns = [one.column for one in measured]
    pairs = [(one.column, one.repeats) for one in measured]
    decided = decide(stored, table, measured, metric=metric, margin=margin, caps=Caps())
    pick = decided.pick
    if pick is not None and not chosen_on:
        pick = dataclasses.replace(
            pick, kind="none", judge=None, within=(), more_questions=None, cheaper=None
        )
    split = "test" if not chosen_on else "open" if stored.split == "all" else stored.split
    # as the tables have them: each judge with its own repeats, on all items
    tables = [(whole.of(column), column) for column in columns]
    described = [(column, own.described(column)) for own, column in tables]
    return Standing(
        result=result or stored_result(stored, columns, workspace),
        sampling=gold.card.sampling,
        n_raters=len(gold.raters),
        basis=Basis(split, len(table.items), len(set(table.groups)), bool(chosen_on)),
        metric=metric,
        margin=margin,
        losses=_picture(stored, decided, metric),
        candidates=tuple(one.candidate for one in measured),
        values={one.column.judge: one.entry.decided_by(metric) for one in measured},
        pick=pick,
        grid=prompt_model_grid(table, pairs, metric, test=pick is not None),
        shapes=tuple(judge_shape(own, *both) for (own, _), both in zip(tables, described, strict=True)),
        parted=parted_items(gold, described, chosen_on),
        alike=same_verdicts(columns),
        unread=unread_of(stored),
        prompts=stored_prompts(stored),
        kept=_kept(stored),
    )


def _kept(stored: StoredExperiment) -> bool:
    """Whether the judgements are those that an import put into the set's folder."""
    recorded = stored.experiment.config.get("recorded", {})
    return recorded.get("file") == JUDGEMENTS and (stored.gold.path / JUDGEMENTS).is_file()


def _picture(stored: StoredExperiment, decided: OpenChoice, metric: str) -> LossPicture | None:
    """The losses of the judges, with the floor and the people beside the best of them."""
    losses, table = decided.losses, decided.table
    if losses is None:
        return None
    best = decided.measured_judge(losses.best)
    pair, k = (best.column, best.repeats), len(decided.floors)
    floor = [
        floor_loss(table, pair, metric=metric, seed=table.seed, of=k, floor=column)
        for column in stored.columns[stored.asked :]
    ]
    people = people_losses(table, pair, metric=metric, seed=table.seed)
    return LossPicture(losses, decided.judges, (decided.floors[losses.best], *floor), people)
