"""When a judge passes against its lock or another judge, apart from every call: the statistics of the
decision."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from judgecal.errors import InputError
from judgecal.records import Estimate
from judgecal.scale import Label, Scale
from judgecal.selection.odd_one_out import (
    CHANGED_LEVEL,
    Calls,
    OddOneOut,
    Verdict,
    odd_one_out,
    rise_of_unscored,
)
from judgecal.stats import Comparison, compare, compare_paired, metric_named
from judgecal.stats.agreement import jackknifed, prepare, terms_of
from judgecal.stats.intervals import MIN_GROUPS, jackknife_error, linear_error, mean_estimate, t_quantile
from judgecal.stats.means import Linear, Means, linearise
from judgecal.stats.metrics import Metric, amount_of, metric_facts
from judgecal.stats.resampling import Statistic
from judgecal.stats.sample import Floats, Sample
from judgecal.stats.strata import too_thin

GateDecision = Literal["pass", "fail", "inconclusive", "changed"]

UNSCORED_TOLERANCE = 0.05
"""A rise of the share of unscored items that is shown to exceed this fails."""


@dataclass(frozen=True, slots=True)
class TwoTimes:
    """The same items as a judge judged them when it was locked, and now."""

    labels: Sequence[Label]  # n labels of people
    then: Calls  # n x the calls at lock time; None = unscored
    now: Calls  # n x passes, the same of each further pass
    groups: Sequence[str]  # the question of each item
    people: Scale
    judge: Scale
    calibrate: Callable[[Verdict], Verdict] | None = (
        None  # the lock's map; None to decide on verdicts as they are
    )

    @property
    def passes(self) -> int:
        """How often every item was judged anew."""
        return len(self.now[0])

    @property
    def settled(self) -> bool:
        """Whether there are several passes, and all gave the same verdicts: a further one would tell nothing
        new."""
        return self.passes > 1 and all(len(set(row)) == 1 for row in self.now)

    def calibrated(self) -> TwoTimes:
        """Both times through the lock's map, on the people's scale; as they are where there is none."""
        if self.calibrate is None:
            return self
        then, now = ([[*map(self.calibrate, row)] for row in rows] for rows in (self.then, self.now))
        return replace(self, then=then, now=now, judge=self.people, calibrate=None)


@dataclass(frozen=True, slots=True)
class UnscoredRise:
    """The share of items without a verdict: `difference` is now - then, paired by item, with its interval.

    `p_at_most`: the chance, if nothing had changed, of such a rise is this or less.
    """

    difference: Estimate
    p_at_most: float

    @property
    def too_high(self) -> bool:
        """Whether a rise is shown, and shown to exceed the tolerance."""
        low = self.difference.low
        return self.p_at_most < CHANGED_LEVEL and low is not None and low > UNSCORED_TOLERANCE


@dataclass(frozen=True, slots=True)
class Standing:
    """What the items say of a locked judge."""

    decision: GateDecision
    why: str
    # now against then, an unscored verdict counted as wrong; the calls' single-call values averaged
    comparison: Comparison
    loss_below: (
        float | None
    )  # the loss stays below this, one-sided at the level; None where nothing can be decided
    # the same difference with the verdicts that changed in every pass alike; None with one pass
    lasting: Estimate | None
    raw: Estimate | None  # the difference of the verdicts as they are, where calibrated ones decide
    odd: OddOneOut | None  # None where there are fewer than three calls of an item
    unscored: UnscoredRise


@dataclass(frozen=True)
class GateRule:
    """How much a locked judge may lose.

    Passes where the loss is shown to stay under the margin, with a one-sided bound at the level. Fails over
    two passes where the whole interval of the difference lies beyond the margin; or where it lies on the
    losing side of 0, the loss seen exceeds the margin, and the verdicts that changed alike in every pass have
    their interval there too. Where no second pass can be had, the whole interval has to lie beyond the
    margin. As the lock's calls are the same every night, ill luck in them would make a noisy judge fail night
    after night; so a fail takes calls of now that lie further from the lock's than chance does, too. Fails as
    well where the share of unscored items is shown to have risen by more than `UNSCORED_TOLERANCE`.

    By a macro metric with fewer than ten items in a class or stratum no loss is decided on.

    Where the loss does not fail but the odd one out shows that another judge answers, that is "changed". It
    needs three calls of an item, so that where the lock holds one, a night makes two.

    Raises InputError: margin or level is out of range, or the metric ranks nobody.
    """

    metric: str
    margin: float  # the loss that is allowed, in units of the metric
    level: float = 0.95  # of the two-sided interval and of the one-sided bound

    def __post_init__(self) -> None:
        problems = []
        if not 0.0 <= self.margin < float("inf"):
            problems.append(f"--margin is {self.margin:g}: a loss that is allowed is 0 or more")
        if not 0.5 < self.level < 1.0:
            problems.append(f"--level is {self.level:g}: give one above 0.5 and below 1")
        if metric_facts(self.metric).direction == "neither":
            problems.append(f"{self.metric} ranks nobody: more of it is neither better nor worse")
        if problems:
            raise InputError(problems)

    @cached_property
    def sign(self) -> float:
        """1 where more of the metric is better, -1 where less is."""
        return -1.0 if metric_facts(self.metric).direction == "less" else 1.0

    def standing(self, two: TwoTimes, *, last: bool) -> Standing:
        """What can be said by now; `last` where no further pass can be had."""
        decided = two.calibrated()
        found = self._compared(decided)
        thin = too_thin(found.strata, self.metric)
        bound = self._bound(decided) if found.difference.low is not None and thin is None else None
        lasted = self._lasting(decided) if two.passes > 1 else None
        odd, unscored = odd_one_out(two.then, two.now, two.groups), self._unscored(two)
        decision, why = self._decide(found.difference, bound, lasted, last=last)
        if thin is not None:  # without a bound nothing is decided
            why = f"{thin}. So this lock can never pass: label more of them and lock again"
        if unscored.too_high:
            decision, why = "fail", _risen(unscored)
        else:
            decision, why = _watched(decision, why, odd, last=last or bound is None)
        if decision == "pass" and not any(verdict is not None for row in two.now for verdict in row):
            decision, why = "inconclusive", "no call has a verdict, now or when it was locked"
        raw = None if decided is two else self._compared(two).difference
        return Standing(decision, why, found, bound, lasted, raw, odd, unscored)

    def _compared(self, two: TwoTimes) -> Comparison:
        return compare(
            two.labels,
            two.now,
            two.then,
            scale=two.people,
            metric=self.metric,
            groups=two.groups,
            a_scale=two.judge,
            b_scale=two.judge,
            level=self.level,
            n_perm=1,  # the rule is one of intervals
            calibrate=False,
        )

    def _decide(
        self, difference: Estimate, bound: float | None, lasted: Estimate | None, *, last: bool
    ) -> tuple[GateDecision, str]:
        if bound is None or difference.value is None:
            return "inconclusive", difference.reason or "there is no error to tell the loss by"
        if difference.low == difference.high == 0.0:
            return "pass", "no item agrees with its label better or worse than when it was locked"
        margin, loss = f"the margin of {self._amount(self.margin)}", -self.sign * difference.value
        lost = f"the loss of {self._amount(loss)} exceeds {margin}"
        if bound < self.margin:
            return (
                "pass",
                f"the loss is shown to stay below {self._amount(max(bound, 0.0))}, which is under {margin}",
            )
        if not (self._lost(difference) and loss > self.margin):
            return "inconclusive", self._unclear(difference, bound, loss, margin)
        beyond = self._lost(difference, by=self.margin)
        if lasted is None and not (last and beyond):
            wanted = "none can be had" if last else "none was made yet"
            return "inconclusive", (f"{lost}, but only a further pass tells it from noise, and {wanted}")
        if beyond:
            return "fail", f"{lost}, and so does the whole of its interval"
        if lasted is not None and not self._lost(lasted):
            return "inconclusive", (
                f"{lost}, but its interval holds the margin, and the verdicts that "
                f"changed in every pass alike make {self._amount(max(0.0, -self.sign * (lasted.value or 0.0)))} of it"
            )
        side = "below" if self.sign > 0.0 else "above"
        return "fail", f"the interval of the difference lies {side} 0 and {lost}"

    def _unclear(self, difference: Estimate, bound: float, loss: float, margin: str) -> str:
        if loss > self.margin:
            return f"the loss of {self._amount(loss)} exceeds {margin}, but the interval of the difference holds 0"
        seen = f"a loss of {self._amount(loss)}" if loss > 0.0 else "no loss"
        return f"{seen} is seen, but it is not shown to stay under {margin}: it may be as large as {self._amount(bound)}"

    def _amount(self, loss: float) -> str:
        return amount_of(loss, self.metric)

    def _lost(self, difference: Estimate, *, by: float = 0.0) -> bool:
        """Whether an interval lies on the losing side of 0, or of a loss."""
        end = difference.high if self.sign > 0.0 else difference.low
        return end is not None and self.sign * end < -by

    def _unscored(self, two: TwoTimes) -> UnscoredRise:
        shares = [
            [sum(verdict is None for verdict in row) / len(row) for row in rows]
            for rows in (two.now, two.then)
        ]
        rise = np.array(shares[0]) - np.array(shares[1])
        chance = rise_of_unscored(two.then, two.now, two.groups) if rise.any() else 1.0
        return UnscoredRise(mean_estimate(rise, two.groups, low=-1.0, high=1.0, level=self.level), chance)

    def _bound(self, two: TwoTimes) -> float | None:
        metric, at_mark = metric_named(self.metric, two.people)
        now, then = (
            prepare(
                two.labels,
                rows,
                people=two.people,
                judge_scale=two.judge,
                groups=two.groups,
                unscored="wrong",
            )
            for rows in (two.now, two.then)
        )
        return upper_bound(metric, now, then, at_mark=at_mark, sign=self.sign, level=self.level)

    def _lasting(self, two: TwoTimes) -> Estimate:
        return compare_paired(
            two.labels,
            [[lasting(row, each) for each in then] for row, then in zip(two.now, two.then, strict=True)],
            two.then,
            scale=two.people,
            a_scale=two.judge,
            b_scale=two.judge,
            metric=self.metric,
            groups=two.groups,
            level=self.level,
            n_perm=1,
        ).difference


def _risen(unscored: UnscoredRise) -> str:
    difference = unscored.difference
    assert difference.value is not None and difference.low is not None
    return (
        f"{100.0 * difference.value:.1f}% more of the verdicts are missing than when it was locked, at least "
        f"{100.0 * difference.low:.1f}%, where {100.0 * UNSCORED_TOLERANCE:g}% are allowed"
    )


def _watched(
    decision: GateDecision, why: str, odd: OddOneOut | None, *, last: bool
) -> tuple[GateDecision, str]:
    """The decision on the loss, beside what the odd one out says of who answers."""
    if odd is None:
        if decision == "pass" and not last:
            return "inconclusive", f"{why}; a second call of each item tells whether the same judge answers"
        return decision, why
    if decision == "fail":
        apart = "but calls of now and of the lock are not shown to differ"
        return (decision, why) if odd.doubtful else ("inconclusive", f"{why}, {apart}: {odd.in_words}")
    if odd.changed and (decision == "pass" or last):
        return "changed", f"{odd.in_words}; of its agreement with the labels: {why}"
    if odd.doubtful and decision == "pass" and not last:
        return "inconclusive", f"{why}; {odd.in_words}, which a further pass tells from chance"
    return decision, why


def lasting(passes: Sequence[Verdict], then: Verdict) -> Verdict:
    """What is left of a change once every pass has had its say: the verdict nearest to the locked one.

    Where the passes lie on both sides of it, where one kept it, or where they do not agree on having a
    verdict at all, that is the locked verdict itself. Words, and verdicts where there was none, have to be
    equal.
    """
    if len(set(passes)) == 1:
        return passes[0]
    numbers = [verdict for verdict in passes if isinstance(verdict, float | int)]
    if len(numbers) < len(passes) or not isinstance(then, float | int):
        return then
    if min(numbers) > then:
        return min(numbers)
    return max(numbers) if max(numbers) < then else then


_EPS = 1e-12


def upper_bound(
    metric: Metric, now: Sample, then: Sample, *, at_mark: bool, sign: float, level: float
) -> float | None:
    """The loss, sign * (then - now) in the metric, stays below this with chance `level`.

    With l the loss seen, s its error by group, t the one-sided quantile of Student's t and a a third of the
    skewness of the loss over G^(1/2), the bound is l - s ((1 + 3 a (-t - a / 2))^(1/3) - 1) / a. Source: Hall
    (1992), the cubic transformation of a studentised mean. Groups enter by their influences (of a
    coefficient, by the jackknife), and s is at least |l| / (G + 1), as in a paired difference.

    Returns:
        In units of the metric; 0 where no group differs; None where there are fewer than ten groups or no
        error.
    """
    spread = _spread(terms_of(metric, now, at_mark), terms_of(metric, then, at_mark), (now, then))
    if spread is None:
        return None
    change, influence, error, df = spread
    n_groups, loss = len(influence), -sign * change
    if n_groups < MIN_GROUPS or math.isnan(error):
        return None
    if abs(change) <= _EPS and np.all(np.abs(influence) <= _EPS):
        return 0.0
    error = max(error, abs(loss) / (n_groups + 1.0))
    return loss - error * _untransformed(
        -t_quantile(2.0 * level - 1.0, df), _third_of_skewness(-sign * influence)
    )


def _spread(
    ours: Means | Statistic | str, theirs: Means | Statistic | str, sides: tuple[Sample, Sample]
) -> tuple[float, Floats, float, float] | None:
    """Change, what each group adds to its error, that error, and its degrees of freedom."""
    if isinstance(ours, Means) and isinstance(theirs, Means):
        first, second = linearise(ours, sides[0]), linearise(theirs, sides[1])
        return None if first is None or second is None else _of_means(first, second)
    if isinstance(ours, str | Means) or isinstance(theirs, str | Means):
        return None
    found, before = jackknifed(ours, sides[0]), jackknifed(theirs, sides[1])
    if found is None or before is None:
        return None
    without = found[1] - before[1]
    if not np.all(np.isfinite(without)):
        return None
    n_groups = len(without)
    influence: Floats = (n_groups - 1.0) / n_groups * (without.mean() - without)
    return found[0] - before[0], influence, jackknife_error(without), n_groups - 1.0


def _of_means(first: Linear, second: Linear) -> tuple[float, Floats, float, float]:
    difference = replace(
        first, ratios=first.ratios - second.ratios, influence=first.influence - second.influence
    )
    error, df = linear_error(difference)
    return first.value - second.value, difference.influence @ difference.weights, error, df


def _third_of_skewness(influence: Floats) -> float:
    """Skewness of the groups over 3 G^(1/2): sum u^3 / (3 (sum u^2)^(3/2)); 0 where they do not vary."""
    squares = float((influence**2).sum())
    return 0.0 if squares <= _EPS**2 else float((influence**3).sum()) / (3.0 * squares**1.5)


def _untransformed(quantile: float, a: float) -> float:
    """The studentised value T that Hall's transformation, T + a T^2 + a^2 T^3 / 3 + a / 2, takes to a
    quantile."""
    if abs(a) <= _EPS:
        return quantile
    return float(np.cbrt(1.0 + 3.0 * a * (quantile - a / 2.0)) - 1.0) / a
