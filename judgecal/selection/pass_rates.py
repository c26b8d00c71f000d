"""What verdicts on production answers come to, by system: how they are spread, and the share that passes."""

from __future__ import annotations

import dataclasses
import hashlib
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgecal.records import Estimate
from judgecal.scale import Label, Scale, common_scale, onto
from judgecal.selection.lock import Lock, LockedGold
from judgecal.stats import Calibration
from judgecal.stats.intervals import described, mean_estimate
from judgecal.stats.sample import Floats, Ints


def class_rates(people: Scale, agreement: Mapping[str, Estimate]) -> tuple[Estimate | None, Estimate | None]:
    """Sensitivity and specificity at the people's pass mark among estimates; None where there are none."""
    if people.kind != "binary" and people.pass_at is None:
        return None, None
    at = "" if people.kind == "binary" else f"@{people.pass_at:g}"
    return agreement.get(f"tpr{at}"), agreement.get(f"tnr{at}")


def chance(people: Scale, agreement: Mapping[str, Estimate]) -> str | None:
    """Why a judge with these estimates does no better than a coin: it was seen with tpr + tnr <= 1.

    None where it was seen to do better, or where either rate is not known.
    """
    both = class_rates(people, agreement)
    rates = [rate.value for rate in both if rate is not None and rate.value is not None]
    if len(rates) < 2 or sum(rates) > 1.0 + _EPS:
        return None
    seen = f"sensitivity {rates[0]:.3f} and specificity {rates[1]:.3f}"
    return f"it tells right from wrong no better than a coin: {seen} add up to {sum(rates):.3f}, not above 1"


@dataclass(frozen=True, slots=True)
class PassRule:
    """The people's pass mark for one judge's verdicts, which reach it through its map where it has one."""

    people: Scale  # their scales, the people's with its pass mark
    judge: Scale
    common: Scale
    mark: float | None  # verdicts from here on pass, on the common scale; None where the people have no mark
    calibration: Calibration | None = None

    @classmethod
    def of_lock(cls, lock: Lock, judge: Scale) -> PassRule:
        """The rule of a lock as production applies it."""
        return cls.of(lock.gold, judge, lock.calibration)

    @classmethod
    def of(cls, gold: LockedGold, judge: Scale, calibration: Calibration | None = None) -> PassRule:
        """The rule for verdicts of a scale, as metrics at the mark cut them."""
        people = Scale.parse(gold.scale, pass_at=gold.pass_at)
        common = common_scale(people, judge)
        middle = common.low + common.span / 2.0
        return cls(people, judge, common, middle if common.kind == "binary" else common.pass_at, calibration)

    def class_rates(self, agreement: Mapping[str, Estimate]) -> tuple[Estimate | None, Estimate | None]:
        """Sensitivity and specificity at this mark among a lock's estimates; None where there are none."""
        return class_rates(self.people, agreement)

    @property
    def reason(self) -> str | None:
        """Why nothing passes or fails; None where verdicts do."""
        if self.mark is not None:
            return None
        if not self.people.numeric:
            return "nominal verdicts have no pass mark"
        return f"the {self.people} labels have no pass mark (pass_at in card.toml)"

    def passes(self, verdict: Label | None) -> bool | None:
        """Whether a verdict passes; None where that cannot be said."""
        if self.calibration is None:
            return self.raw_passes(verdict)
        return self.label_passes(self.calibrated(verdict))

    def raw_passes(self, verdict: Label | None) -> bool | None:
        """The same of the verdict as the judge gave it."""
        if verdict is None or self.mark is None:
            return None
        return onto(self.common, self.judge, float(verdict)) >= self.mark

    def calibrated(self, verdict: Label | None) -> float | None:
        """A verdict on the people's scale; None of none, and where a map is needed and there is none."""
        if self.calibration is not None:
            return self.calibration.apply(verdict)
        if verdict is None or not self.judge.kind == self.people.kind == "binary":
            return None
        return float(verdict)

    def on_common(self, verdict: Floats) -> Floats:
        """Verdicts as they are on the common scale; NaN without one."""
        moved: Any = onto(self.common, self.judge, verdict)  # type: ignore[arg-type]
        return np.asarray(moved, dtype=np.float64)

    def mapped(self, verdict: Floats) -> Floats:
        """Verdicts through the judge's map, or on the common scale where it has none; NaN without one."""
        return self.on_common(verdict) if self.calibration is None else self.calibration.mapped(verdict)

    def passed(self, verdict: Floats) -> Floats:
        """1 where a verdict passes and 0 where it fails, NaN without a verdict or a mark."""
        if self.mark is None:
            return np.full(len(verdict), np.nan)
        mark = self.mark if self.calibration is None else self._people_mark
        return np.where(np.isnan(verdict), np.nan, (self.mapped(verdict) >= mark).astype(np.float64))

    @property
    def cut(self) -> float:
        """The verdict on the judge's own scale from which on verdicts pass; an end where all or none do."""
        if self.calibration is not None:
            failing = sum(value < self._people_mark for value in self.calibration.values)
            return (self.judge.low, *self.calibration.cuts, self.judge.high)[failing]
        share = 0.0 if self.mark is None else (self.mark - self.common.low) / self.common.span
        return self.judge.low + share * self.judge.span

    @property
    def _people_mark(self) -> float:
        return 0.5 if self.people.kind == "binary" else self.people.pass_at or 0.0

    def label_passes(self, label: float | None) -> bool | None:
        """Whether a label of the people's scale passes; None where that cannot be said."""
        if label is None or self.mark is None:
            return None
        return label >= self._people_mark


_EPS = 1e-12
_ALL = "all"
_NEITHER = 2  # of 0 fails, 1 passes
_MOST_WORDS = 50  # that shares are given of; a judge with more of them gives texts and not labels


def word_shares(
    codes: Floats, groups: Ints | array[int], words: Mapping[str, int], *, level: float = 0.95
) -> dict[str, Estimate]:
    """The share of each word among the rows that have one, the most frequent word first.

    Each is a proportion with Wilson's interval on its effective n, as rows of one question are not
    independent.

    Args:
        codes: of each row's word, NaN without one.
        words: word -> code, those that no row has among them.
    """
    scored = ~np.isnan(codes)
    counts = {word: int(np.sum(codes == code)) for word, code in words.items()}
    shares = {}
    for word in sorted(counts, key=lambda word: -counts[word])[:_MOST_WORDS]:
        share = mean_estimate(np.where(scored, codes == words[word], np.nan), groups, level=level)
        shares[word] = dataclasses.replace(share, n_unscored=int(np.sum(~scored)))
    return shares


class _System:
    """The rows of one system."""

    def __init__(self) -> None:
        self.verdicts = array("d")  # NaN where unscored, the number of the word on a nominal scale
        self.groups = array("q")  # 64 bits of their hash
        self.passed = bytearray()
        self.passed_raw = bytearray()
        self.unscored: Counter[str] = Counter()


@dataclass(frozen=True, slots=True)
class RateIntervals:
    """What verdicts come to, with intervals by question."""

    average: Estimate  # of the verdicts as the judge gave them
    share_passing: Estimate
    share_passing_raw: Estimate  # before the judge's map
    # of nominal verdicts the share of each word among the scored rows, the most frequent first; each interval
    # is for its own word, and not for all words together
    words: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class SystemRates:
    """What the verdicts on one system's rows come to."""

    system: str  # its name; empty where its rows name none, `all` for all rows
    n: int  # rows with a verdict, all rows, and those without
    n_expected: int
    n_unscored: int
    count: int  # of verdicts that are numbers, on the judge's own scale
    min: float | None
    max: float | None
    average: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    share_passing: float | None  # the share that passes, 0..1; None where nothing can
    intervals: RateIntervals  # the same with how sure they are
    words: Mapping[str, int]  # word -> rows, of nominal verdicts
    unscored: Mapping[str, int]  # kind of failure -> rows


class Overview:
    """What the verdicts of a table come to: those that pass by the rule, and before the judge's map."""

    def __init__(self, rule: PassRule, *, level: float = 0.95) -> None:
        self._rule, self._level = rule, level
        self._systems: dict[str | None, _System] = {}
        self._words = {word: code for code, word in enumerate(rule.judge.categories)}

    def add(self, system: str | None, group: str, verdict: Label | None, *, error: str = "") -> None:
        """Count a row; `error` is the kind of the failure where there is no verdict."""
        rows = self._systems.setdefault(system, _System())
        rows.groups.append(group_number(group))
        rows.verdicts.append(np.nan if verdict is None else self._number(verdict))
        rows.passed.append(_flag(self._rule.passes(verdict)))
        rows.passed_raw.append(_flag(self._rule.raw_passes(verdict)))
        if verdict is None:
            rows.unscored[error] += 1

    def extend(self, other: Overview) -> None:
        """Count all rows of another part of the table, behind those that are here."""
        codes = {
            float(code): self._words.setdefault(word, len(self._words)) for word, code in other._words.items()
        }
        for system, rows in other._systems.items():
            mine = self._systems.setdefault(system, _System())
            mine.groups.extend(rows.groups)
            mine.verdicts.extend(codes.get(value, value) for value in rows.verdicts)
            mine.passed += rows.passed
            mine.passed_raw += rows.passed_raw
            mine.unscored.update(rows.unscored)

    def _number(self, verdict: Label) -> float:
        if isinstance(verdict, str):
            return self._words.setdefault(verdict, len(self._words))
        return float(verdict)

    def entries(self) -> list[SystemRates]:
        """An entry for each system, in the order of their first rows; none where no row names one."""
        if set(self._systems) == {None}:
            return []
        return [self._entry(system or "", [rows]) for system, rows in self._systems.items()]

    def overall(self) -> SystemRates:
        """The entry of all rows."""
        return self._entry(_ALL, list(self._systems.values()))

    def _entry(self, system: str, parts: Sequence[_System]) -> SystemRates:
        rule, scale, level = self._rule, self._rule.judge, self._level
        verdicts: Floats = joined([part.verdicts for part in parts])
        groups = np.unique(joined([part.groups for part in parts]), return_inverse=True)[1]
        scored = verdicts[~np.isnan(verdicts)]
        n, n_expected = len(scored), len(verdicts)
        counts: dict[str, Any] = {"n": n, "n_expected": n_expected, "n_unscored": n_expected - n}
        blank = Estimate(None, level=level, **counts)

        def mean(values: Floats, *, low: float, high: float) -> Estimate:
            estimate = mean_estimate(values, groups.tolist(), low=low, high=high, level=level)
            return dataclasses.replace(estimate, n_unscored=blank.n_unscored)

        def share(flags: Sequence[bytearray]) -> Estimate:
            """The share that passes; no value, with the reason, where there is no mark to pass."""
            coded = np.concatenate([np.frombuffer(flag, dtype=np.uint8) for flag in flags])
            passed = np.where(coded == _NEITHER, np.nan, coded.astype(np.float64))
            if blank.n and np.isnan(passed).all():
                return dataclasses.replace(blank, reason=rule.reason)
            return mean(passed, low=0.0, high=1.0)

        average = dataclasses.replace(blank, reason="nominal verdicts have no average")
        if scale.numeric:
            average = mean(verdicts, low=scale.low, high=scale.high)
        passing, raw = share([part.passed for part in parts]), share([part.passed_raw for part in parts])
        shares = word_shares(verdicts, groups, self._words, level=level)
        numbers: dict[str, Any] = {**described(scored if rule.people.numeric else []), "count": len(scored)}
        return SystemRates(
            system=system,
            **counts,
            **numbers,
            share_passing=passing.value,
            intervals=RateIntervals(average, passing, raw, shares),
            words={word: int(np.sum(scored == code)) for word, code in self._words.items()},
            unscored=dict(sum((part.unscored for part in parts), Counter())),
        )


def joined(arrays: Sequence[array[Any]]) -> Any:
    """One numpy array of several others."""
    parts = [np.frombuffer(part, dtype=part.typecode) for part in arrays]
    return np.concatenate(parts) if parts else np.empty(0)


def group_number(group: str) -> int:
    """64 bits that stand for a group, the same in every run."""
    hashed = hashlib.blake2b(group.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(hashed, "big", signed=True)


def _flag(passed: bool | None) -> int:
    return _NEITHER if passed is None else int(passed)
