"""What changes on production answers when one judge takes the place of another: flips both ways, by
system."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judgecal.engine import Budget, Journal
from judgecal.experiment import (
    Due,
    JudgedItems,
    ReadRow,
    RunOptions,
    TableRows,
    item_scale,
    judge_to_journal,
    judgement_of,
)
from judgecal.judges import Judge
from judgecal.records import Estimate, Item, Judgement, Result
from judgecal.scale import Label, Scale, onto
from judgecal.selection.lock import LockedGold
from judgecal.selection.pass_rates import PassRule, group_number, joined
from judgecal.stats import Calibration
from judgecal.stats.intervals import mean_estimate
from judgecal.stats.sample import Floats

_ALL = "all"
_EXAMPLES = 3  # of each direction
_CLIPPED = 200  # characters of a text in an example
_POINTS = Scale.parse("percentage")
_NAN = float("nan")


class _Rows:
    """The rows of one system: what changed in each, NaN where a judge left it unscored, and its group."""

    def __init__(self) -> None:
        self.rate = array("d")  # new passes less old passes: -1, 0 or 1
        self.points = array("d")  # new less old, of 100
        self.differs = array("d")  # 1 where pass and fail, or the words, differ
        self.groups = array("q")
        self.n_unscored = {"old": 0, "new": 0}


@dataclass(frozen=True, slots=True)
class Said:
    """What a judge said of a row."""

    verdict: Label | None
    reasoning: str


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row whose verdict changed sides: where it stands in the table, its texts clipped, what either judge
    said."""

    row: int
    system: str | None
    question: str
    answer: str
    old: Said
    new: Said


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The rows that moved farthest, in either direction."""

    pass_to_fail: tuple[ChangedRow, ...]
    fail_to_pass: tuple[ChangedRow, ...]


@dataclass(frozen=True, slots=True)
class BothUnscored:
    """Rows without a verdict of either judge."""

    old: int
    new: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemChurn(Result):
    """What another judge changes on one system's rows."""

    system: str  # its name; empty where its rows name none, `all` for all rows
    n: int  # rows that both judged, all rows, and those that either left unscored
    n_expected: int
    n_unscored: BothUnscored
    flip_rate: Estimate  # share of rows that change sides (whose word changes, on nominal scales), 0..1
    pass_to_fail: int
    fail_to_pass: int
    rate_change: Estimate  # new less old share that passes, -1..1
    mean_change: Estimate  # new less old average, in points of 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnResult(SystemChurn):
    """The same of all rows of a file, and of each system; `n_lacking` rows lack what the judges ask for."""

    file: str
    n_lacking: int
    systems: tuple[SystemChurn, ...]
    examples: ChangedRows


class Churn:
    """Two judges on the same rows, filled a row at a time; `old` and `new` say which verdicts of either
    pass."""

    def __init__(self, old: PassRule, new: PassRule, *, level: float = 0.95) -> None:
        self._old, self._new, self._level = old, new, level
        self._systems: dict[str | None, _Rows] = {}
        self._examples: dict[str, list[tuple[float, int, ChangedRow]]] = {
            "pass_to_fail": [],
            "fail_to_pass": [],
        }
        self.n_lacking = 0

    def add(self, item: Item, old: Judgement, new: Judgement, *, line: int) -> None:
        """Count a row that both judges were called for; `line` is where it stands in the table."""
        rows = self._systems.setdefault(item.system, _Rows())
        before, after = self._old.passes(old.verdict), self._new.passes(new.verdict)
        both = old.verdict is not None and new.verdict is not None
        rate = _NAN if before is None or after is None else float(after) - float(before)
        points = self._points(old.verdict, new.verdict)
        rows.rate.append(rate)
        rows.points.append(points)
        differs = abs(rate) if self._old.judge.numeric else float(old.verdict != new.verdict)
        rows.differs.append(differs if both else _NAN)
        rows.groups.append(group_number(item.group))
        rows.n_unscored["old"] += old.verdict is None
        rows.n_unscored["new"] += new.verdict is None
        if rate in (-1.0, 1.0):
            said = (Said(one.verdict, one.reasoning[:_CLIPPED]) for one in (old, new))
            texts = item.asked[:_CLIPPED], item.answer[:_CLIPPED]
            farthest = self._examples["fail_to_pass" if rate > 0.0 else "pass_to_fail"]
            heapq.heappush(farthest, (abs(points), -line, ChangedRow(line, item.system, *texts, *said)))
            if len(farthest) > _EXAMPLES:  # of equals the first rows stay
                heapq.heappop(farthest)

    def _points(self, old: Label | None, new: Label | None) -> float:
        if old is None or new is None or not self._old.judge.numeric:
            return _NAN
        before, after = (
            onto(_POINTS, rule.judge, float(verdict))
            if mapped is None
            else onto(_POINTS, rule.people, mapped)
            for rule, verdict in ((self._old, old), (self._new, new))
            for mapped in (rule.calibrated(verdict),)
        )
        return after - before

    def result(self, file: str) -> ChurnResult:
        """All rows of the file, each system, and the rows that moved farthest in either direction."""
        systems = [] if set(self._systems) <= {None} else list(self._systems.items())
        examples = {
            way: tuple(row for _, _, row in sorted(heap, key=lambda one: (-one[0], -one[1])))
            for way, heap in self._examples.items()
        }
        return ChurnResult(
            **self._entry(_ALL, list(self._systems.values())),
            file=file,
            n_lacking=self.n_lacking,
            systems=tuple(SystemChurn(**self._entry(name or "", [rows])) for name, rows in systems),
            examples=ChangedRows(**examples),
        )

    def _entry(self, system: str, parts: Sequence[_Rows]) -> dict[str, Any]:
        """The fields of a `SystemChurn`."""
        codes = np.unique(joined([part.groups for part in parts]), return_inverse=True)[1].tolist()
        why = self._old.reason or self._new.reason
        ends = {"rate": (-1.0, 1.0), "points": (-_POINTS.span, _POINTS.span), "differs": (0.0, 1.0)}
        changed = {name: joined([getattr(part, name) for part in parts]) for name in ends}
        means = {
            name: self._mean(values, codes, ends=ends[name], reason=why) for name, values in changed.items()
        }
        lost = (sum(part.n_unscored[side] for part in parts) for side in ("old", "new"))
        return {
            "system": system,
            "n": means["differs"].n,
            "n_expected": len(codes),
            "n_unscored": BothUnscored(*lost),
            "flip_rate": means["differs"],
            "pass_to_fail": int(np.sum(changed["rate"] == -1.0)),
            "fail_to_pass": int(np.sum(changed["rate"] == 1.0)),
            "rate_change": means["rate"],
            "mean_change": means["points"],
        }

    def _mean(
        self, values: Floats, codes: list[int], *, ends: tuple[float, float], reason: str | None
    ) -> Estimate:
        n_unscored = int(np.isnan(values).sum())
        if reason is not None and n_unscored == len(values):
            return Estimate(
                None, level=self._level, n_expected=len(values), n_unscored=n_unscored, reason=reason
            )
        found = mean_estimate(values, codes, low=ends[0], high=ends[1], level=self._level)
        return replace(found, n_unscored=n_unscored)


def rows_of_both(rows: TableRows, old: Judge, new: Judge) -> tuple[JudgedItems, JudgedItems]:
    """The rows that hold what both judges ask for, as each is shown them."""

    def takes(row: ReadRow) -> bool:
        return row.lacking(old) is None and row.lacking(new) is None

    return JudgedItems(old, rows, takes), JudgedItems(new, rows, takes)


def churn_between(
    old: Judge,
    new: Judge,
    recent: TableRows,
    *,
    gold: LockedGold,
    maps: tuple[Calibration | None, Calibration | None],
    journal: Journal,
    options: RunOptions,
    budget: Budget,
) -> ChurnResult:
    """Have both judges judge recent answers, and say what would change, each by its own map."""
    for judged in rows_of_both(recent, old, new):
        trial = Due(judged.judge, judged, journal, options)
        judge_to_journal([trial], budget=budget, label=judged.judge.name)
    churn = Churn(
        *(PassRule.of(gold, item_scale(one), own) for one, own in zip((old, new), maps, strict=True))
    )
    for line, row in recent.numbered():
        if row.lacking(old) is not None or row.lacking(new) is not None:
            churn.n_lacking += 1
            continue
        before, after = (judgement_of(journal, judge, row.shown(judge)) for judge in (old, new))
        churn.add(row.item, before, after, line=line)
    return churn.result(str(recent.source.path))
