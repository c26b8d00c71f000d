"""Which verdicts pass, and what changes where another judge gives them."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judgecal.records import Estimate
from judgecal.scale import Label, Scale, common_scale, onto
from judgecal.selection.lock import LockedGold
from judgecal.stats import Calibration
from judgecal.stats.intervals import mean_estimate
from judgecal.stats.sample import Floats

_EPS = 1e-12
_MOST_WORDS = 50  # that shares are given of; a judge with more of them gives texts and not labels


def class_rates(people: Scale, agreement: Mapping[str, Estimate]) -> tuple[Estimate | None, Estimate | None]:
    """Return (sensitivity, specificity), Estimates or None, from people's Scale and metric -> Estimate."""
    if people.kind != "binary" and people.pass_at is None:
        return None, None
    at = "" if people.kind == "binary" else f"@{people.pass_at:g}"
    return agreement.get(f"tpr{at}"), agreement.get(f"tnr{at}")


def at_chance(people: Scale, agreement: Mapping[str, Estimate]) -> str | None:
    """Say why a judge is no better than a coin, from people's Scale and metric -> Estimate; else None.

    None where it was seen to do better, or where either rate is not known.
    """
    rates = [rate.value for rate in class_rates(people, agreement) if rate and rate.value is not None]
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
    def for_scale(cls, gold: LockedGold, judge: Scale, calibration: Calibration | None = None) -> PassRule:
        """Make a PassRule from a LockedGold, with people's pass mark, and the Scale of a judge's verdicts."""
        common = common_scale(gold.people, judge)
        mark = common.low + common.span / 2.0 if common.kind == "binary" else common.pass_at
        return cls(gold.people, judge, common, mark, calibration)

    @property
    def of_preferences(self) -> PassRule:
        """The rule of the mean of words that say which of two answers is better: 1, a tie 1/2, or 0."""
        mean = Scale("points", 0.0, 1.0)
        return PassRule(mean, mean, mean, None)

    @property
    def reason(self) -> str | None:
        """Why nothing passes or fails; None where verdicts do."""
        if self.mark is not None:
            return None
        if not self.people.numeric:
            return "nominal verdicts have no pass mark"
        return f"the {self.people} labels have no pass mark (pass_at in card.toml)"

    # --- one verdict

    def passes(self, verdict: Label | None, *, raw: bool = False) -> bool | None:
        """Return whether a verdict (Label or None) passes, a bool; None where unknown; `raw`: unmapped."""
        if verdict is None or self.mark is None:
            return None
        if raw or self.calibration is None:
            return onto(self.common, self.judge, float(verdict)) >= self.mark
        label = self.calibration.apply(verdict)
        return None if label is None else label >= self.people_mark

    def calibrated(self, verdict: Label | None) -> float | None:
        """Return a verdict (Label or None) as a float on people's scale; None without it or a needed map."""
        if self.calibration is not None:
            return self.calibration.apply(verdict)
        if verdict is None or not self.judge.kind == self.people.kind == "binary":
            return None
        return float(verdict)

    # --- many verdicts, NaN where there is none

    def mapped(self, verdicts: Floats) -> Floats:
        """Return an array of verdicts through the own map; without one on the common scale."""
        if self.calibration is not None:
            return self.calibration.mapped(verdicts)
        moved: Any = onto(self.common, self.judge, verdicts)  # type: ignore[arg-type]
        return np.asarray(moved, dtype=np.float64)

    def passed(self, verdicts: Floats) -> Floats:
        """Return an array for an array of verdicts: 1 passes, 0 fails, NaN without a verdict or a mark."""
        if self.mark is None:
            return np.full(len(verdicts), np.nan)
        mark = self.mark if self.calibration is None else self.people_mark
        return np.where(np.isnan(verdicts), np.nan, self.mapped(verdicts) >= mark)

    @property
    def cut(self) -> float:
        """The verdict on the judge's own scale from which on verdicts pass; an end where all or none do."""
        if self.calibration is not None:
            failing = sum(value < self.people_mark for value in self.calibration.values)
            return (self.judge.low, *self.calibration.cuts, self.judge.high)[failing]
        share = 0.0 if self.mark is None else (self.mark - self.common.low) / self.common.span
        return self.judge.low + share * self.judge.span

    @property
    def people_mark(self) -> float:
        """The label on the people's scale from which on labels pass."""
        return 0.5 if self.people.kind == "binary" else self.people.pass_at or 0.0


def word_shares(
    words: Sequence[str | None], groups: Sequence[str], categories: Sequence[str]
) -> dict[str, Estimate]:
    """Return word -> Estimate of its share, from each row's word or None, each row's group, categories.

    A category that no row has is counted too.
    """
    counts, given = Counter(dict.fromkeys(categories, 0)), np.array(words, dtype=object)
    counts.update(word for word in words if word is not None)
    missing, shares = np.array([word is None for word in words]), {}
    for word, _ in counts.most_common(_MOST_WORDS):
        share = mean_estimate(np.where(missing, np.nan, given == word), groups)
        shares[word] = replace(share, n_unscored=int(missing.sum()))
    return shares


def flip_rate(
    rules: Sequence[PassRule],
    calls: Iterable[Sequence[Sequence[Label | None]]],
    groups: Sequence[str],
    *,
    level: float = 0.95,
) -> Estimate:
    """Estimate the share that flips: two PassRules, calls (Labels of each item, twice), items' groups.

    First before, then after; a pair of calls without one of its verdicts says nothing.
    """
    shares = []
    for before_and_after in calls:
        sides = [
            [rule.passes(verdict) if rule.judge.numeric else verdict for verdict in verdicts]
            for rule, verdicts in zip(rules, before_and_after, strict=True)
        ]
        flips = [a != b for a, b in itertools.product(*sides) if a is not None and b is not None]
        shares.append(sum(flips) / len(flips) if flips else math.nan)
    rate, reason = mean_estimate(shares, groups, level=level), rules[0].reason or rules[1].reason
    if reason is not None and rules[0].judge.numeric:
        rate = Estimate(None, level=level, n_expected=len(shares), reason=reason)
    return replace(rate, n_unscored=sum(map(math.isnan, shares)))
