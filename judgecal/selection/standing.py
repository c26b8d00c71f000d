"""How the judges of an experiment stand: everything that its report shows, gathered from the layers that know it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from judgecal.experiment.agreement import Column, StoredExperiment
from judgecal.experiment.losses import LossPicture, PromptModelGrid, loss_picture, prompt_model_grid
from judgecal.experiment.result import AgreementResult
from judgecal.experiment.score import stored_result
from judgecal.experiment.stored import stored_prompts
from judgecal.experiment.verdicts import JudgeShape, PartedItem, judge_shape, parted_items
from judgecal.goldset import JUDGEMENTS
from judgecal.records import Estimate
from judgecal.selection.choice import Candidate, MeasuredJudge, choose, measure, open_items
from judgecal.stats import leading_metric
from judgecal.stats.simultaneous import Losses
from judgecal.workspace import Workspace

MIN_QUESTIONS = 20
"""On fewer questions nobody is recommended: one of them is worth five points or more."""


def too_few(n_questions: int) -> str | None:
    """Why so many questions choose nobody; None where they are enough."""
    if n_questions >= MIN_QUESTIONS:
        return None
    return f"{n_questions} question{'s' * (n_questions != 1)} are too few to choose by, {MIN_QUESTIONS} are needed"


@dataclass(frozen=True, slots=True)
class Basis:
    """What judges are held against each other on; `may_choose` is false where that is test items alone."""

    split: str
    n_items: int
    n_groups: int
    may_choose: bool


@dataclass(frozen=True, slots=True)
class Pick:
    """Whom `select` would take without caps; where no price is known, the best."""

    judge: str | None  # None where nobody may be chosen on these items
    best: str
    within: tuple[str, ...]  # all that are shown to stay within the margin
    level: float
    # about how many would show that `cheaper` is good enough; None where that is settled
    more_questions: int | None = None
    cheaper: str | None = None


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
    prompts: Mapping[str, str] = field(default_factory=dict)  # what a prompt judge is sent, where that is known
    kept: bool = False  # whether the recorded judgements came with the set, so that no file need be named

    @property
    def chosen(self) -> str | None:
        """The judge to use; None where nobody is shown to beat the best constant, or questions are too few."""
        if not self.pick or not self.losses or self.basis.n_groups < MIN_QUESTIONS:
            return None
        return self.pick.judge if self.losses.floor[0].shown else None


def standing(
    workspace: Workspace, stored: StoredExperiment, *, margin: float, result: AgreementResult | None = None
) -> Standing:
    """Gather it; no model is called.

    Judges are held against each other on the items that may choose (train and dev), as `select` does; where the
    experiment holds test items alone, on those, and then nobody is chosen. Counts and tables are over all items.
    `result` is what the command came to, where it is at hand; made again from the journal where not.
    """
    gold = stored.gold
    whole, metric = stored.table, leading_metric(gold.scale)
    chosen_on = open_items(stored)
    tied = tuple(item for item in stored.tied if not chosen_on or gold.split_of(item.group) != "test")
    table = dataclasses.replace(whole, items=chosen_on or stored.items, tied=tied)
    measured = measure(stored, table)
    columns = [one.column for one in measured]
    pairs = [(one.column, one.repeats) for one in measured]
    known = any(one.entry.decided_by(metric).value is not None for one in measured)
    picture = loss_picture(stored, table, pairs, margin=margin) if known else None
    split = "test" if not chosen_on else "open" if stored.split == "all" else stored.split
    return Standing(
        result=result or stored_result(stored, columns, workspace),
        sampling=gold.card.sampling,
        n_raters=len(gold.raters),
        basis=Basis(split, len(table.items), len(set(table.groups)), bool(chosen_on)),
        metric=metric,
        margin=margin,
        losses=picture,
        candidates=tuple(one.candidate for one in measured),
        values={one.column.judge: one.entry.decided_by(metric) for one in measured},
        pick=_pick(measured, picture.losses, margin=margin, metric=metric, may_choose=bool(chosen_on))
        if picture
        else None,
        grid=prompt_model_grid(table, pairs, metric, test=known),
        shapes=tuple(judge_shape(stored, whole, column, repeats=repeats) for column, repeats in pairs),
        parted=parted_items(stored, columns, chosen_on),
        alike=_alike(columns),
        prompts=stored_prompts(workspace, stored),
        kept=_kept(stored),
    )


def _kept(stored: StoredExperiment) -> bool:
    """Whether the judgements are those that an import put into the set's folder."""
    recorded = stored.experiment.config.get("recorded", {})
    return recorded.get("file") == JUDGEMENTS and (stored.gold.path / JUDGEMENTS).is_file()


def _alike(columns: Sequence[Column]) -> tuple[tuple[str, ...], ...]:
    """Judges by their verdicts, in the order asked for; what is unscored counts as one."""
    groups: dict[frozenset[object], list[str]] = {}
    for column in columns:
        verdicts = frozenset((row.item_id, row.unit, row.repeat, row.verdict) for row in column.rows)
        groups.setdefault(verdicts, []).append(column.judge)
    return tuple(map(tuple, groups.values()))


def _pick(measured: Sequence[MeasuredJudge], losses: Losses, *, margin: float, metric: str, may_choose: bool) -> Pick:
    candidates = [one.candidate for one in measured]
    if not may_choose:
        return Pick(None, losses.best, (), losses.level)
    made = choose(candidates, losses, margin=margin, metric=metric)
    if any(one.usd_per_1k is None for one in candidates if one.judge in made.within):
        return Pick(losses.best, losses.best, made.within, losses.level)
    return Pick(made.judge, losses.best, made.within, losses.level, made.more_questions, made.nearest)
