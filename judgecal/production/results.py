"""What a judged table comes to; a lock is a suite of one."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judgecal.experiment.judgements import StoredVerdicts
from judgecal.production.suite import LeftOut, LoadedJudge, RowReply, SuiteColumn
from judgecal.records import ITEM_UNIT, Estimate, Item, Result
from judgecal.selection.lock import LockedGold
from judgecal.selection.pass_rates import at_chance, word_shares
from judgecal.stats.intervals import mean_estimate
from judgecal.stats.sample import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteMember:
    """A judge that ran. Without a lock nobody knows whether it agrees with people, and the rest is None."""

    name: str
    judge: str
    kind: str
    lock: str | None  # the path of its lock
    gold: LockedGold | None = None
    warning: str | None = None  # why its rate says nothing: it tells right from wrong no better than a coin

    @classmethod
    def of(cls, judge: LoadedJudge) -> SuiteMember:
        """Return the SuiteMember of a LoadedJudge, with what its lock says of it."""
        lock = judge.lock
        return cls(
            name=judge.name,
            judge=judge.judge.name,
            kind=judge.judge.kind,
            lock=judge.lock_path,
            gold=None if lock is None else lock.gold,
            warning=None if lock is None else at_chance(judge.rule.people, lock.applied),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeResult(Result):
    """What a table comes to that a lock or a suite judged; the other of these two is None."""

    experiment: str
    lock: str | None
    suite: str | None
    input: str  # the tables
    output: str
    columns: Mapping[str, Any]  # of a lock part of a judgement -> column; of a suite judge -> part -> column
    named: Mapping[str, str]  # question, answer, item and group -> columns of the table, where named
    n: int  # rows, and those in which something is unscored
    n_unscored: int
    rates: Mapping[str, ColumnRate]
    judges: tuple[SuiteMember, ...]
    left_out: tuple[LeftOut, ...]
    usd: float | None  # what the rows' calls cost; None where some cost is not known
    model_ids: tuple[str, ...]  # the ids that the provider answered as
    notes: tuple[str, ...]
    run_line: str

    @property
    def columns_of(self) -> Mapping[str, Mapping[str, str]]:
        """Judge -> part of a judgement -> column of the output."""
        return self.columns if self.lock is None else {next(iter(self.rates)): self.columns}

    @property
    def unlocked(self) -> tuple[SuiteMember, ...]:
        """The judges that were never held against people; a rule that calls nobody is what it says."""
        return tuple(judge for judge in self.judges if judge.lock is None and judge.kind != "local")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRate:
    """What the verdicts of one column come to, of all rows or of one system's."""

    column: str
    aggregate: str
    scale: str
    raw: Estimate  # by the judge's own verdicts, 0..1: the share that passes, the mean precision or share
    calibrated: Estimate  # the same through the maps of locks; without a value where a judge has none
    # the mean verdict on the judge's own scale, or as `raw` where that is no share of verdicts
    average: Estimate
    n: int  # rows with a verdict (of a judge of chunks: on one chunk at least), all, and others
    n_expected: int
    n_unscored: int
    n_chunks_unscored: int  # of a judge of chunks; else 0
    shares: Mapping[str, Estimate]  # word -> share of the rows with a verdict, the most frequent first
    unscored: Mapping[str, int]  # kind of failure -> verdicts that could not be had

    @property
    def shown(self) -> Estimate:
        """The rate of a headline: the calibrated one where there is one."""
        return self.raw if self.calibrated.value is None else self.calibrated


def _sum(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


class RowCounts:
    """What the rows of a table come to; parts of a table may be added up."""

    def __init__(self, columns: Sequence[SuiteColumn]) -> None:
        self.tallies = [ColumnTally(column) for column in columns]
        # of each judge the models that answered
        self.model_ids = {judge.name: set[str]() for column in columns for judge in column.judges}
        self.stored = StoredVerdicts()
        self.usd: float | None = 0.0  # what the calls cost; None where some cost is not known
        self.n = self.n_unscored = 0  # rows, and those with something unscored

    def add(self, item: Item, judged: Sequence[tuple[SuiteColumn, LoadedJudge, Sequence[RowReply]]]) -> None:
        """Count an Item and its judgements: a sequence of (SuiteColumn, LoadedJudge, RowReplies)."""
        for tally, (column, judge, replies) in zip(self.tallies, judged, strict=True):
            for reply in replies:
                if reply.row is not None:
                    self.stored.add(reply.row)
                    self.model_ids[judge.name].update([reply.row.model_id] if reply.row.model_id else [])
                    self.usd = _sum(self.usd, reply.row.cost_usd)
            tally.add(column, judge, item.group, replies)
        given = [reply for _, _, replies in judged for reply in replies]
        self.n += 1
        self.n_unscored += any(reply.verdict is None for reply in given)

    def extend(self, other: RowCounts) -> None:
        """Add other RowCounts, of another part of the table, behind these."""
        for tally, more in zip(self.tallies, other.tallies, strict=True):
            tally.extend(more)
        for name, model_ids in other.model_ids.items():
            self.model_ids[name] |= model_ids
        self.stored.extend(other.stored)
        self.usd = _sum(self.usd, other.usd)
        self.n += other.n
        self.n_unscored += other.n_unscored


class ColumnTally:
    """The rows of one column; without its judges, so that it goes from one process to another."""

    def __init__(self, column: SuiteColumn) -> None:
        judge, rule = column.judges[0].judge, column.judges[0].rule
        self._scale, self._aggregate, self._column = judge.scale, column.aggregate, column.column
        self._calibrates = column.calibrates
        self._of_items = column.alone or judge.unit == ITEM_UNIT
        self._no_share = rule.reason or ""
        if column.judges[0].lock is None:
            self._no_share = "nobody has said which of its verdicts pass: a lock does"
        self._groups: list[str] = []
        # three of each row, NaN where there is none: the share that passes through maps and without, the
        # verdict
        self._numbers = array("d")
        self._words: list[str | None] = []
        self._n = self._chunks_unscored = 0
        self._unscored = Counter[str]()

    def add(self, column: SuiteColumn, judge: LoadedJudge, group: str, replies: Sequence[RowReply]) -> None:
        """Count for a SuiteColumn, a LoadedJudge and the group (text) of a question its RowReplies."""
        verdicts = [reply.verdict for reply in replies if reply.verdict is not None]
        alone = verdicts[0] if len(verdicts) == 1 else None
        word = alone if isinstance(alone, str) else None
        shares = (column.share(judge, replies, raw=raw) for raw in (False, True))
        for value in (*shares, None if word is not None else alone):
            self._numbers.append(math.nan if value is None else float(value))
        self._words.append(word)
        self._groups.append(group)
        self._n += bool(verdicts)
        self._unscored.update(reply.error_kind for reply in replies if reply.verdict is None)
        if self._aggregate == "precision":
            self._chunks_unscored += len(replies) - len(verdicts)

    def extend(self, other: ColumnTally) -> None:
        """Add another ColumnTally, of another part of the table."""
        self._numbers += other._numbers
        self._words += other._words
        self._groups += other._groups
        self._n += other._n
        self._chunks_unscored += other._chunks_unscored
        self._unscored += other._unscored

    @property
    def _columns(self) -> Any:
        return np.frombuffer(self._numbers, dtype=np.float64).reshape(-1, 3).T

    def rate(self) -> ColumnRate:
        """Return the ColumnRate of what was counted."""
        scale = self._scale
        shares, raw_shares, verdicts = self._columns
        raw, calibrated = (self._mean(values, 0.0, 1.0, self._no_share) for values in (raw_shares, shares))
        if not self._calibrates:
            calibrated = calibrated.without_value("no lock has a map for these verdicts")
        average = raw
        if self._aggregate == "rating":
            no_mean = "its verdicts are words, which have no mean"
            average = self._mean(verdicts, scale.low, scale.high, no_mean)
        return ColumnRate(
            column=self._column,
            aggregate=self._aggregate,
            scale=str(scale),
            raw=raw,
            calibrated=calibrated,
            average=average,
            n=self._n,
            n_expected=len(self._groups),
            n_unscored=len(self._groups) - self._n,
            n_chunks_unscored=self._chunks_unscored,
            shares=word_shares(self._words, self._groups, scale.categories) if self._of_items else {},
            unscored=dict(self._unscored),
        )

    def _mean(self, values: Floats, low: float, high: float, undefined: str) -> Estimate:
        """The mean of the rows that have a value, by question; `undefined`: why scored ones have none."""
        mean = mean_estimate(values, self._groups, low=low, high=high)
        reason = undefined if mean.value is None and self._n else mean.reason
        return replace(mean, n_unscored=len(self._groups) - self._n, reason=reason)
