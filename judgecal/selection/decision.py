"""Whom to use, decided once: agreement, score, report, the index and `select` all say what stands here."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from judgecal.experiment.agreement import Column, StoredExperiment, Table
from judgecal.experiment.losses import FloorLoss, JudgeLoss, floor_loss, judge_losses, table_losses
from judgecal.scale import Label
from judgecal.selection.choice import Caps, Choice, MeasuredJudge, choose
from judgecal.stats import leading_metric
from judgecal.stats.metrics import metric_facts
from judgecal.stats.simultaneous import Losses
from judgecal.stats.strata import stratum_that_drives

MIN_QUESTIONS = 20
"""On fewer questions nobody is recommended: one of them is worth five points or more."""
_MANY_ANSWERS = 2  # to a question on average: from here on it is said that questions are few, and not answers

PickKind = Literal["use", "tied", "too few", "none"]


@dataclass(frozen=True, slots=True)
class Pick:
    """Whom to use, on the items that choose, and the kind of headline that this makes."""

    kind: PickKind
    judge: (
        str | None
    )  # None where nobody is shown to beat the best constant, or nobody may be chosen on these items
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
    # what the strongest free judge loses against that judge; None where there is no other, or that judge is
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
    floors: Mapping[str, FloorLoss] = dataclasses.field(
        default_factory=dict
    )  # what the best constant loses against it
    choice: Choice | None = None
    pick: Pick | None = None

    @property
    def chosen(self) -> MeasuredJudge:
        """The chosen judge; only where there is one."""
        assert self.choice is not None  # the caller has looked
        return self.measured_judge(self.choice.judge)

    def measured_judge(self, judge: str) -> MeasuredJudge:
        return next(one for one in self.measured if one.column.judge == judge)

    def not_above(self, judge: str) -> str | None:
        """Why a judge is not shown to beat the best constant; None where it is, or where that was not
        asked."""
        floor = self.floors.get(judge)
        if floor is not None and not self.measured_judge(judge).entry.n:
            return "it gave no verdict on any item"
        if floor is None or floor.shown:
            return None
        constant, lead = floor.judge.removeprefix("constant "), floor.loss
        if lead.low is None or lead.high is None:
            return f"it is not shown to agree better with the labels than always saying {constant} ({lead.reason})"
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
    within = [one for one in measured if caps.over(one.candidate) is None]
    if all(one.entry.decided_by(metric).value is None for one in within):
        return OpenChoice(table, measured)
    pairs = [(one.column, one.repeats) for one in within]
    losses = table_losses(table, pairs, metric=metric, margin=margin, seed=table.seed)
    floors = {pair[0].judge: _floor(table, pair, metric, of=len(pairs)) for pair in pairs}
    few = _too_few(stored, table, floors[losses.best])
    able = [
        one.candidate
        for one in within
        if one.entry.n
        and (
            caps.allow_below_floor
            or (floors[one.column.judge].shown and len(set(table.groups)) >= MIN_QUESTIONS)
        )
    ]
    decided = OpenChoice(
        table,
        measured,
        losses,
        judge_losses(table, pairs, losses, metric=metric, seed=table.seed),
        floors,
        choose(able, losses, margin=margin, metric=metric) if able else None,
    )
    return dataclasses.replace(decided, pick=_pick(stored, decided, metric, few))


def _pick(stored: StoredExperiment, decided: OpenChoice, metric: str, few: str | None) -> Pick:
    losses, choice = decided.losses, decided.choice
    assert losses is not None  # as `decide` makes it
    judge = choice.judge if choice else None
    subject = judge or losses.best
    columns = [one.column for one in decided.measured if one.column.judge in decided.floors]
    alike = same_verdicts(_deciding(decided.table, columns, metric))
    shown = (
        judge is not None and decided.floors[judge].shown and len(set(decided.table.groups)) >= MIN_QUESTIONS
    )
    free = _strongest_free(stored, decided, subject, metric)
    best_and_alike = next(names for names in alike if losses.best in names)
    tied = tuple(
        one.judge
        for one in decided.judges
        if one.judge not in best_and_alike
        and (
            one.low is None
            or one.low <= 0.0
            or (free is not None and free.judge == one.judge and not free.shown)
        )
    )
    twins, raw = (
        tuple(one for one in next(names for names in groups if subject in names) if one != subject)
        for groups in (alike, same_verdicts(columns))
    )
    kind: PickKind = "tied" if tied or twins else "use"
    if not shown:
        kind = "too few" if few else "none"
    return Pick(
        kind,
        judge,
        losses.best,
        choice.within if choice else (),
        losses.level,
        decided.floors[losses.best],
        choice.more_questions if choice else None,
        choice.nearest if choice else None,
        tied,
        twins,
        tuple(one for one in twins if one not in raw),
        free,
        few if not shown else None,
    )


def _deciding(table: Table, columns: Sequence[Column], metric: str) -> list[Column]:
    """The judges with the verdicts on the items of a table that the metric is of."""
    if metric_facts(metric).calibrated:
        return [table.of(column).described(column) for column in columns]
    items = {item.item_id for item in table.items}
    return [
        dataclasses.replace(column, rows=[row for row in column.rows if row.item_id in items])
        for column in columns
    ]


def same_verdicts(columns: Sequence[Column]) -> tuple[tuple[str, ...], ...]:
    """Judges by their verdicts and the scale of these, in the order asked for; what is unscored counts as
    one."""
    groups: dict[tuple[str, frozenset[object]], list[str]] = {}
    for column in columns:
        verdicts = frozenset(
            (row.item_id, row.unit, row.repeat, _rounded(row.verdict)) for row in column.rows
        )
        groups.setdefault((str(column.scale), verdicts), []).append(column.judge)
    return tuple(map(tuple, groups.values()))


def _rounded(verdict: Label | None) -> Label | None:
    """Without what two maps of the same knowledge differ by in the last digits."""
    return round(verdict, 9) if isinstance(verdict, float) else verdict


def _floor(table: Table, judge: tuple[Column, int], metric: str, *, of: int) -> FloorLoss:
    """By the leading metric where a constant has none of the other, as of a correlation."""
    floor = floor_loss(table, judge, metric=metric, seed=table.seed, of=of)
    leading = leading_metric(table.gold.scale)
    if floor.loss.value is not None or metric == leading:
        return floor
    return floor_loss(table, judge, metric=leading, seed=table.seed, of=of)


def _strongest_free(
    stored: StoredExperiment, decided: OpenChoice, judge: str, metric: str
) -> FloorLoss | None:
    """What the free judge that comes nearest to a judge loses against it, among those asked for and the
    floor."""
    subject = decided.measured_judge(judge)
    if subject.candidate.free:
        return None
    asked = [one.column for one in decided.measured if one.candidate.free]
    table, pair, k = decided.table, (subject.column, subject.repeats), len(decided.floors)
    lost = [
        floor_loss(table, pair, metric=metric, seed=table.seed, of=k, floor=column)
        for column in (*asked, *stored.columns[stored.asked :])
    ]
    return min(
        (one for one in lost if one.loss.value is not None),
        key=lambda one: one.loss.value or 0.0,
        default=None,
    )


def sealed_beside(stored: StoredExperiment, table: Table) -> bool:
    """Whether an experiment holds test items that take no part in a table's choice."""
    here = {item.item_id for item in table.items}
    return any(
        item.item_id not in here and stored.gold.split_of(item.group) == "test" for item in stored.items
    )


def _too_few(stored: StoredExperiment, table: Table, floor: FloorLoss) -> str | None:
    """How many more questions to label, and of which kind; None where there are enough to decide by.

    A lead on fewer than MIN_QUESTIONS is not carried on to how many would show it: its own error is hardly
    known there.
    """
    n_groups, n_items = len(set(table.groups)), len(table.items)
    if n_groups >= MIN_QUESTIONS and floor.loss.low is not None:
        return None
    thin = [one for one in floor.strata if one.thin and one.more]
    more = max([MIN_QUESTIONS - n_groups, *(math.ceil((one.more or 0) * n_groups / one.n) for one in thin)])
    if more < 1:
        return f"Too little to tell whom to use: {floor.loss.reason}."
    here = f"{n_groups:,} question{'s' * (n_groups != 1)}{' of train and dev' * sealed_beside(stored, table)}"
    if n_items >= _MANY_ANSWERS * n_groups:
        here = f"{n_items:,} answers to {here}"
    kinds = list(_kinds(floor))
    which = f", {'with ' * bool(thin)}{' and '.join(kinds)}" if kinds else ""
    say = f"Label about {more:,} more question{'s' * (more != 1)}{which}"
    return f"Too few questions to tell whom to use: {here}. {say}."


def _kinds(floor: FloorLoss) -> Iterator[str]:
    """Which labels the further questions should have."""
    thin = [one for one in floor.strata if one.thin and one.more]
    yield from (f'at least {one.more} more "{one.name}" labels' for one in thin)
    driver = stratum_that_drives(floor.strata)
    if driver is not None and not thin:
        yield f'above all with "{driver.name}" labels'
