"""Whom to use, decided once: agreement, score, report, the index and `select` all say what stands here."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from judgecal.experiment.agreement import Column, StoredExperiment, Table
from judgecal.experiment.losses import (
    FloorLoss,
    JudgeLoss,
    LossPicture,
    PromptModelGrid,
    floor_loss,
    judge_losses,
    people_losses,
    prompt_model_grid,
    table_losses,
)
from judgecal.experiment.result import AgreementResult
from judgecal.experiment.score import stored_result
from judgecal.experiment.stored import Unread, stored_prompts, unread_of
from judgecal.experiment.verdicts import JudgeShape, PartedItem, judge_shape, parted_items
from judgecal.goldset import JUDGEMENTS
from judgecal.scale import Label
from judgecal.selection.choice import Caps, Choice, MeasuredJudge, choose, measure, open_items
from judgecal.stats import leading_metric
from judgecal.stats.metrics import metric_facts
from judgecal.stats.simultaneous import Losses
from judgecal.stats.strata import stratum_that_drives
from judgecal.workspace import Workspace

MIN_QUESTIONS = 20
"""On fewer questions nobody is recommended: one of them is worth five points or more."""
_MANY_ANSWERS = 2  # to a question on average: from here on it is said that questions are few, and not answers


@dataclass(frozen=True, slots=True)
class ChosenJudge:
    """Whom to use, on the items that choose, and the kind of headline that this makes."""

    kind: Literal["use", "tied", "too few", "none"]
    judge: str | None  # None where nobody is shown to beat the best constant, or nobody may be chosen here
    best: str  # who has the best value
    within: tuple[str, ...]  # all that may be chosen and are shown to stay within the margin
    level: float
    floor: FloorLoss  # what the best constant loses against the best judge
    # about how many would show that `cheaper` is good enough; None where that is settled
    more_questions: int | None = None
    cheaper: str | None = None
    tied: tuple[str, ...] = ()  # those that are not shown to be worse than the best, but for its twins
    # those with the same verdicts as the judge, or as the best where there is none, as they decide; and those
    # of them that only a map makes the same
    twins: tuple[str, ...] = ()
    rescaled: tuple[str, ...] = ()
    # what the strongest free judge loses against that judge; None without another, or where that judge is
    # free itself
    free: FloorLoss | None = None
    too_few: str | None = None  # what there is too little of, and what to label


@dataclass(frozen=True, slots=True)
class OpenChoice:
    """The choice with what it rests on; without losses where nobody is within the caps or has a value,
    without choice where nobody is shown to beat the best constant."""

    table: Table
    measured: Sequence[MeasuredJudge]  # every judge that was asked for
    losses: Losses | None = None  # of those within the caps
    judges: tuple[JudgeLoss, ...] = ()  # likewise
    floors: Mapping[str, FloorLoss] = field(
        default_factory=dict
    )  # judge -> what the best constant loses to it
    choice: Choice | None = None
    pick: ChosenJudge | None = None

    @property
    def chosen(self) -> MeasuredJudge:
        """The chosen judge; only where there is one."""
        assert self.choice is not None  # the caller has looked
        return self.measured_judge(self.choice.judge)

    def measured_judge(self, judge: str) -> MeasuredJudge:
        """A judge by its name."""
        return next(measured for measured in self.measured if measured.judge == judge)

    def not_above(self, judge: str) -> str | None:
        """Why a judge is not shown to beat the best constant; None where it is, or where nobody asked."""
        floor = self.floors.get(judge)
        if floor is not None and not self.measured_judge(judge).entry.n:
            return "it gave no verdict on any item"
        if floor is None or floor.shown:
            return None
        constant, lead = floor.judge.removeprefix("constant "), floor.loss
        if lead.low is None or lead.high is None:
            unknown = f"than always saying {constant} ({lead.reason})"
            return f"it is not shown to agree better with the labels {unknown}"
        shown = "is shown to agree less with" if floor.below else "is not shown to agree better with"
        share = metric_facts(floor.metric).unit == "share"
        ends = (f"{100.0 * end:+.1f}" if share else f"{end:+.3f}" for end in (lead.low, lead.high))
        return f"it {shown} the labels than always saying {constant} ({' to '.join(ends)}{' points' * share})"


def decide(
    stored: StoredExperiment,
    table: Table,
    measured: Sequence[MeasuredJudge],
    *,
    metric: str,
    margin: float,
    caps: Caps,
) -> OpenChoice:
    """Whom the items of a table speak for: the cheapest judge within the caps that is shown to beat the best
    constant and to stay within the margin of the best.

    A price that is not known ranks as the dearest; a free judge is known to cost nothing by its kind.
    """
    within = [judge for judge in measured if caps.over(judge) is None]
    if all(judge.entry.decided_by(metric).value is None for judge in within):
        return OpenChoice(table, measured)
    pairs, k, seed = [(judge.column, judge.repeats) for judge in within], len(within), table.seed
    losses = table_losses(table, pairs, metric=metric, margin=margin, seed=seed)
    each = judge_losses(table, pairs, losses, metric=metric, seed=seed)
    floors, leading = {}, leading_metric(table.gold.scale)
    for pair in pairs:
        floor = floor_loss(table, pair, metric=metric, seed=seed, of=k)
        if floor.loss.value is None and metric != leading:  # a constant has no correlation, say
            floor = floor_loss(table, pair, metric=leading, seed=seed, of=k)
        floors[pair[0].judge] = floor
    n_groups = len(set(table.groups))
    able = [
        judge
        for judge in within
        if judge.entry.n
        and (caps.allow_below_floor or (floors[judge.judge].shown and n_groups >= MIN_QUESTIONS))
    ]
    choice = choose(able, losses, margin=margin, metric=metric) if able else None
    decided = OpenChoice(table, measured, losses, each, floors, choice)
    return dataclasses.replace(decided, pick=_named(stored, decided, losses, metric))


def _named(stored: StoredExperiment, decided: OpenChoice, losses: Losses, metric: str) -> ChosenJudge:
    """Whom the headline names."""
    table, floors, choice = decided.table, decided.floors, decided.choice
    judge = choice.judge if choice else None
    subject = decided.measured_judge(judge or losses.best)
    columns = [judge.column for judge in decided.measured if judge.judge in floors]
    if metric_facts(metric).calibrated:
        deciding = [table.of(column).described(column) for column in columns]
    else:
        items = {item.item_id for item in table.items}
        rows = ([row for row in column.rows if row.item_id in items] for column in columns)
        deciding = [dataclasses.replace(column, rows=own) for column, own in zip(columns, rows, strict=True)]
    alike = same_verdicts(deciding)
    free = _strongest_free(stored, decided, subject, metric)
    best_and_alike = next(names for names in alike if losses.best in names)
    tied = tuple(
        loss.judge
        for loss in decided.judges
        if loss.judge not in best_and_alike
        and (loss.low is None or loss.low <= 0.0 or (free and free.judge == loss.judge and not free.shown))
    )
    twins, of_raw = (
        tuple(
            name
            for name in next(names for names in groups if subject.judge in names)
            if name != subject.judge
        )
        for groups in (alike, same_verdicts(columns))
    )
    few = None
    kind: Literal["use", "tied", "too few", "none"] = "tied" if tied or twins else "use"
    if judge is None or not floors[judge].shown or len(set(table.groups)) < MIN_QUESTIONS:
        few = _too_few(stored, table, floors[losses.best])
        kind = "too few" if few else "none"
    return ChosenJudge(
        kind=kind,
        judge=judge,
        best=losses.best,
        within=choice.within if choice else (),
        level=losses.level,
        floor=floors[losses.best],
        more_questions=choice.more_questions if choice else None,
        cheaper=choice.nearest if choice else None,
        tied=tied,
        twins=twins,
        rescaled=tuple(name for name in twins if name not in of_raw),
        free=free,
        too_few=few,
    )


def same_verdicts(columns: Sequence[Column]) -> tuple[tuple[str, ...], ...]:
    """Judges by their verdicts and the scale of these, in the order asked for; unscored counts as one."""

    def rounded(verdict: Label | None) -> Label | None:
        """Without what two maps of the same knowledge differ by in the last digits."""
        return round(verdict, 9) if isinstance(verdict, float) else verdict

    groups: dict[tuple[str, frozenset[object]], list[str]] = {}
    for column in columns:
        verdicts = frozenset((row.item_id, row.unit, row.repeat, rounded(row.verdict)) for row in column.rows)
        groups.setdefault((str(column.scale), verdicts), []).append(column.judge)
    return tuple(map(tuple, groups.values()))


def _strongest_free(
    stored: StoredExperiment, decided: OpenChoice, subject: MeasuredJudge, metric: str
) -> FloorLoss | None:
    """What the free judge that comes nearest to a judge loses to it, among those asked for and the floor."""
    if subject.free:
        return None
    free = [judge.column for judge in decided.measured if judge.free]
    table, pair, k = decided.table, (subject.column, subject.repeats), len(decided.floors)
    lost = [
        floor_loss(table, pair, metric=metric, seed=table.seed, of=k, floor=column)
        for column in (*free, *stored.columns[stored.asked :])
    ]
    known = (loss for loss in lost if loss.loss.value is not None)
    return min(known, key=lambda loss: loss.loss.value or 0.0, default=None)


def _too_few(stored: StoredExperiment, table: Table, floor: FloorLoss) -> str | None:
    """How many more questions to label, and of which kind; None where there are enough to decide by.

    A lead on fewer than MIN_QUESTIONS is not carried on to how many would show it: its error is hardly known
    there.
    """
    n_groups, n_items = len(set(table.groups)), len(table.items)
    if n_groups >= MIN_QUESTIONS and floor.loss.low is not None:
        return None
    thin = [stratum for stratum in floor.strata if stratum.thin and stratum.more]
    needed = (math.ceil((stratum.more or 0) * n_groups / stratum.n) for stratum in thin)
    more = max([MIN_QUESTIONS - n_groups, *needed])
    if more < 1:
        return f"Too little to tell whom to use: {floor.loss.reason}."
    here = {item.item_id for item in table.items}
    sealed = any(
        item.item_id not in here and stored.gold.split_of(item.group) == "test" for item in stored.items
    )
    where = f"{n_groups:,} question{'s' * (n_groups != 1)}{' of train and dev' * sealed}"
    if n_items >= _MANY_ANSWERS * n_groups:
        where = f"{n_items:,} answers to {where}"
    kinds = [f'at least {stratum.more} more "{stratum.name}" labels' for stratum in thin]
    driver = stratum_that_drives(floor.strata)
    if driver is not None and not thin:
        kinds = [f'above all with "{driver.name}" labels']
    which = f", {'with ' * bool(thin)}{' and '.join(kinds)}" if kinds else ""
    say = f"Label about {more:,} more question{'s' * (more != 1)}{which}"
    return f"Too few questions to tell whom to use: {where}. {say}."


@dataclass(frozen=True, slots=True)
class DecisionItems:
    """What judges are held against each other on."""

    split: str
    n_items: int
    n_groups: int
    may_choose: bool  # false where that is test items alone


@dataclass(frozen=True)
class JudgesDecision:
    """What is known of the judges of an experiment: everything that its report shows."""

    result: AgreementResult  # what the command printed, over all items
    sampling: str
    n_raters: int
    basis: DecisionItems  # what the losses and the choice rest on
    metric: str
    margin: float
    losses: LossPicture | None  # against the best judge; None where no judge has a value of the metric
    measured: tuple[MeasuredJudge, ...]  # each judge as production would see it
    pick: ChosenJudge | None  # whom to use; None without losses
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
        """The judge to use; None where nobody is shown above the floor, or questions are too few."""
        return self.pick.judge if self.pick else None


def decide_on_judges(
    workspace: Workspace, stored: StoredExperiment, *, margin: float, result: AgreementResult | None = None
) -> JudgesDecision:
    """Gather what is known of the judges of an experiment; no model is called.

    Judges are held against each other on the items that may choose (train and dev), as `select` does; where
    the experiment holds test items alone, on those, and then nobody is chosen. Counts and tables are over all
    items. `result` is what the command came to, where it is at hand; made again from the journal where not.
    """
    gold, whole = stored.gold, stored.table
    metric, chosen_on = leading_metric(gold.scale), open_items(stored)
    tied = tuple(item for item in stored.tied if not chosen_on or gold.split_of(item.group) != "test")
    table = dataclasses.replace(whole, items=chosen_on or stored.items, tied=tied)
    same_items = result is not None and table.items == stored.items
    known = {judge.judge: judge for judge in result.judges} if result is not None and same_items else None
    measured = tuple(measure(stored, table, known))
    columns = [judge.column for judge in measured]
    decided = decide(stored, table, measured, metric=metric, margin=margin, caps=Caps())
    pick, losses = decided.pick, None
    if pick is not None and not chosen_on:
        pick = dataclasses.replace(
            pick, kind="none", judge=None, within=(), more_questions=None, cheaper=None
        )
    if decided.losses is not None:  # the floor and the people beside the best of the judges
        best = decided.measured_judge(decided.losses.best)
        pair, k = (best.column, best.repeats), len(decided.floors)
        floor = (
            floor_loss(table, pair, metric=metric, seed=table.seed, of=k, floor=column)
            for column in stored.columns[stored.asked :]
        )
        people = people_losses(table, pair, metric=metric, seed=table.seed)
        losses = LossPicture(decided.losses, decided.judges, (decided.floors[best.judge], *floor), people)
    # as the tables have them: each judge with its own repeats, on all items
    tables = [(whole.of(column), column) for column in columns]
    described = [(column, own.described(column)) for own, column in tables]
    split = "test" if not chosen_on else "open" if stored.split == "all" else stored.split
    return JudgesDecision(
        result=result or stored_result(stored, columns, workspace),
        sampling=gold.card.sampling,
        n_raters=len(gold.raters),
        basis=DecisionItems(split, len(table.items), len(set(table.groups)), bool(chosen_on)),
        metric=metric,
        margin=margin,
        losses=losses,
        measured=measured,
        pick=pick,
        grid=prompt_model_grid(
            table, [(judge.column, judge.repeats) for judge in measured], metric, test=pick is not None
        ),
        shapes=tuple(judge_shape(own, *both) for (own, _), both in zip(tables, described, strict=True)),
        parted=parted_items(gold, described, chosen_on),
        alike=same_verdicts(columns),
        prompts=stored_prompts(stored),
        unread=unread_of(stored),
        kept=stored.experiment.config.get("recorded", {}).get("file") == JUDGEMENTS
        and (gold.path / JUDGEMENTS).is_file(),
    )
