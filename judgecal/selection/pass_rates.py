"""What verdicts on production answers come to by system: the share that passes, and what another judge changes."""

from __future__ import annotations

import dataclasses
import hashlib
import heapq
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judgecal.records import Estimate, Item, Judgement
from judgecal.scale import Label, Scale, common_scale, onto
from judgecal.selection.lock import LockedGold
from judgecal.stats.intervals import described, mean_estimate
from judgecal.stats.sample import Floats, Ints

__all__ = ["Churn", "Overview", "PassRule", "group_number"]


@dataclass(frozen=True, slots=True)
class PassRule:
    """The people's pass mark for one judge's verdicts.

    Attributes:
        people, judge: their scales, the people's with its pass mark.
        common: the scale that both are taken onto.
        mark: verdicts from here on pass, on the common scale; None where the people have no mark.
    """

    people: Scale
    judge: Scale
    common: Scale
    mark: float | None

    @classmethod
    def of(cls, gold: LockedGold, judge: Scale) -> PassRule:
        """The rule of a lock: as metrics at the mark cut verdicts.

        Raises:
            InputError: one side's labels have an order and the other's have none.
        """
        people = Scale.parse(gold.scale, pass_at=gold.pass_at)
        common = common_scale(people, judge)
        if common.kind == "binary":
            return cls(people, judge, common, common.low + common.span / 2.0)
        return cls(people, judge, common, common.pass_at)

    @property
    def metrics(self) -> tuple[str, str]:
        """The names of sensitivity and specificity at this mark."""
        at = "" if self.people.kind == "binary" else f"@{self.people.pass_at:g}"
        return f"tpr{at}", f"tnr{at}"

    @property
    def reason(self) -> str | None:
        """Why nothing passes or fails; None where verdicts do."""
        if self.mark is not None:
            return None
        if not self.people.numeric:
            return "nominal verdicts have no pass mark"
        return f"the {self.people} labels have no pass mark (pass_at in card.toml)"

    def passes(self, verdict: Label | None, *, mark: float | None = None) -> bool | None:
        """Whether a verdict passes, at another mark where one is given; None where that cannot be said."""
        at = self.mark if mark is None else mark
        if verdict is None or at is None:
            return None
        return onto(self.common, self.judge, float(verdict)) >= at


_ALL = "all"
_NEITHER = 2  # of 0 fails, 1 passes


class _System:
    """The rows of one system.

    Verdicts are NaN where unscored, and the number of the word on a nominal scale; a group is 64 bits of its hash.
    """

    def __init__(self) -> None:
        self.verdicts = array("d")
        self.groups = array("q")
        self.passed = bytearray()
        self.passed_own = bytearray()
        self.unscored: Counter[str] = Counter()


class Overview:
    """What the verdicts of a table come to.

    Args:
        rule: which verdicts pass.
        own_cut: the judge's own best pass mark on the common scale, shown beside the people's; or None.
        level: nominal coverage of the intervals.
    """

    def __init__(self, rule: PassRule, *, own_cut: float | None = None, level: float = 0.95) -> None:
        self._rule, self._own_cut, self._level = rule, own_cut, level
        self._systems: dict[str | None, _System] = {}
        self._words: dict[str, int] = {}

    def add(self, system: str | None, group: str, verdict: Label | None, *, error: str = "") -> None:
        """Count a row; `error` is the kind of the failure where there is no verdict."""
        rows = self._systems.setdefault(system, _System())
        rows.groups.append(group_number(group))
        rows.verdicts.append(np.nan if verdict is None else self._number(verdict))
        rows.passed.append(_flag(self._rule.passes(verdict)))
        own = None if self._own_cut is None else self._rule.passes(verdict, mark=self._own_cut)
        rows.passed_own.append(_flag(own))
        if verdict is None:
            rows.unscored[error] += 1

    def _number(self, verdict: Label) -> float:
        if isinstance(verdict, str):
            return self._words.setdefault(verdict, len(self._words))
        return float(verdict)

    def entries(self) -> list[dict[str, Any]]:
        """An entry for each system, in the order of their first rows; none where no row names one."""
        if set(self._systems) == {None}:
            return []
        return [self._entry(system or "", [rows]) for system, rows in self._systems.items()]

    def overall(self) -> dict[str, Any]:
        """The entry of all rows."""
        return self._entry(_ALL, list(self._systems.values()))

    def _entry(self, system: str, parts: Sequence[_System]) -> dict[str, Any]:
        verdicts = np.concatenate([np.frombuffer(part.verdicts, dtype=np.float64) for part in parts])
        groups = np.concatenate([np.frombuffer(part.groups, dtype=np.int64) for part in parts])
        groups = np.unique(groups, return_inverse=True)[1]
        scored = verdicts[~np.isnan(verdicts)]
        blank = Estimate(
            None,
            level=self._level,
            n=len(scored),
            n_expected=len(verdicts),
            n_unscored=len(verdicts) - len(scored),
        )
        passing, own = (
            self._share(_flags(parts, name), groups, dataclasses.replace(blank, reason=reason))
            for name, reason in (
                ("passed", self._rule.reason),
                ("passed_own", "the lock holds no cut of the judge's own"),
            )
        )
        return {
            "system": system,
            "n": len(scored),
            "n_expected": len(verdicts),
            "n_unscored": len(verdicts) - len(scored),
            **described(scored if self._rule.people.numeric else []),
            "count": len(scored),
            "share_passing": passing.value,
            "intervals": {
                "average": self._average(verdicts, groups, blank),
                "share_passing": passing,
                "share_passing_own_cut": own,
            },
            "words": {word: int(np.sum(scored == code)) for word, code in self._words.items()},
            "unscored": dict(sum((part.unscored for part in parts), Counter())),
        }

    def _average(self, verdicts: Floats, groups: Ints, blank: Estimate) -> Estimate:
        scale = self._rule.judge
        if not scale.numeric:
            return dataclasses.replace(blank, reason="nominal verdicts have no average")
        return self._mean(verdicts, groups, blank, low=scale.low, high=scale.high)

    def _share(self, passed: Floats, groups: Ints, blank: Estimate) -> Estimate:
        """The share that passes; `blank`, with its reason, where there is no mark to pass."""
        if blank.n and np.isnan(passed).all():
            return blank
        return self._mean(passed, groups, blank, low=0.0, high=1.0)

    def _mean(self, values: Floats, groups: Ints, blank: Estimate, *, low: float, high: float) -> Estimate:
        found = mean_estimate(values, groups.tolist(), low=low, high=high, level=self._level)
        return dataclasses.replace(found, n_unscored=blank.n_unscored)


def group_number(group: str) -> int:
    """64 bits that stand for a group, the same in every run."""
    found = hashlib.blake2b(group.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(found, "big", signed=True)


def _flag(passed: bool | None) -> int:
    return _NEITHER if passed is None else int(passed)


def _flags(parts: Sequence[_System], name: str) -> Floats:
    """1 passes, 0 fails, NaN where neither can be said."""
    flags = np.concatenate([np.frombuffer(getattr(part, name), dtype=np.uint8) for part in parts])
    return np.where(flags == _NEITHER, np.nan, flags.astype(np.float64))


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
class _Example:
    """A row whose verdict changed sides."""

    line: int
    item: Item
    old: Judgement
    new: Judgement

    def as_json(self) -> dict[str, Any]:
        return {
            "row": self.line,
            "system": self.item.system,
            "question": self.item.question[:_CLIPPED],
            "answer": self.item.answer[:_CLIPPED],
            "old": {"verdict": self.old.verdict, "reasoning": self.old.reasoning[:_CLIPPED]},
            "new": {"verdict": self.new.verdict, "reasoning": self.new.reasoning[:_CLIPPED]},
        }


class Churn:
    """Two judges on the same rows, filled a row at a time.

    Args:
        old, new: which verdicts of either judge pass.
        level: nominal coverage of the intervals.
    """

    def __init__(self, old: PassRule, new: PassRule, *, level: float = 0.95) -> None:
        self._old, self._new, self._level = old, new, level
        self._systems: dict[str | None, _Rows] = {}
        self._examples: dict[str, list[tuple[float, int, _Example]]] = {
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
        rows.differs.append(self._differs(old.verdict, new.verdict, rate) if both else _NAN)
        rows.groups.append(group_number(item.group))
        rows.n_unscored["old"] += old.verdict is None
        rows.n_unscored["new"] += new.verdict is None
        if rate in (-1.0, 1.0):
            self._keep(_Example(line, item, old, new), rate, abs(points))

    def _points(self, old: Label | None, new: Label | None) -> float:
        if old is None or new is None or not self._old.judge.numeric:
            return _NAN
        before, after = onto(_POINTS, self._old.judge, float(old)), onto(_POINTS, self._new.judge, float(new))
        return after - before

    def _differs(self, old: Label | None, new: Label | None, rate: float) -> float:
        return abs(rate) if self._old.judge.numeric else float(old != new)

    def _keep(self, example: _Example, rate: float, size: float) -> None:
        """The rows that moved farthest, of equals the first ones."""
        heap = self._examples["fail_to_pass" if rate > 0.0 else "pass_to_fail"]
        heapq.heappush(heap, (size, -example.line, example))
        if len(heap) > _EXAMPLES:
            heapq.heappop(heap)

    def result(self) -> dict[str, Any]:
        """All rows, each system, and the rows that moved farthest in either direction."""
        systems = [] if set(self._systems) <= {None} else list(self._systems.items())
        examples = {
            way: [example.as_json() for _, _, example in sorted(heap, key=lambda one: (-one[0], -one[1]))]
            for way, heap in self._examples.items()
        }
        return {
            **self._entry(_ALL, list(self._systems.values())),
            "n_lacking": self.n_lacking,
            "systems": [self._entry(name or "", [rows]) for name, rows in systems],
            "examples": examples,
        }

    def _entry(self, system: str, parts: Sequence[_Rows]) -> dict[str, Any]:
        groups = _joined((part.groups for part in parts), np.dtype(np.int64))
        codes = np.unique(groups, return_inverse=True)[1].tolist()
        changed = {
            name: _joined((getattr(part, name) for part in parts), np.dtype(np.float64))
            for name in ("rate", "points", "differs")
        }
        why = self._old.reason or self._new.reason
        ends = {"rate": (-1.0, 1.0), "points": (-_POINTS.span, _POINTS.span), "differs": (0.0, 1.0)}
        found = {
            name: self._mean(values, codes, ends=ends[name], reason=why) for name, values in changed.items()
        }
        return {
            "system": system,
            "n": found["differs"].n,
            "n_expected": len(codes),
            "n_unscored": _totals(parts),
            "flip_rate": found["differs"],
            "pass_to_fail": int(np.sum(changed["rate"] == -1.0)),
            "fail_to_pass": int(np.sum(changed["rate"] == 1.0)),
            "rate_change": found["rate"],
            "mean_change": found["points"],
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


def _totals(parts: Iterable[_Rows]) -> Mapping[str, int]:
    listed = list(parts)
    return {side: sum(part.n_unscored[side] for part in listed) for side in ("old", "new")}


def _joined(arrays: Iterable[Any], dtype: Any) -> Any:
    found = [np.frombuffer(one, dtype=dtype) for one in arrays]
    return np.concatenate(found) if found else np.empty(0, dtype=dtype)
