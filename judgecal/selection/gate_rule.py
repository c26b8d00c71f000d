"""When a locked judge passes the gate, apart from every call: the statistics of the decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from judgecal.errors import refuse
from judgecal.records import Estimate
from judgecal.scale import Label, Scale
from judgecal.stats import Comparison, compare, compare_paired, metric_named
from judgecal.stats.agreement import prepare
from judgecal.stats.drift import (
    CHANGED_LEVEL,
    Calls,
    SameJudgeTest,
    Verdict,
    loss_bound,
    rise_of_unscored,
    same_judge_test,
)
from judgecal.stats.intervals import mean_estimate
from judgecal.stats.metrics import amount_of, metric_facts
from judgecal.stats.strata import too_thin

GateDecision = Literal["pass", "fail", "inconclusive", "changed"]

UNSCORED_TOLERANCE = 0.05
"""A rise of the share of unscored items that is shown to exceed this fails."""


@dataclass(frozen=True, slots=True)
class LockedAndCurrent:
    """The same items as a judge judged them when it was locked, and now."""

    labels: Sequence[Label]  # n labels of people
    then: Calls  # n x the calls at lock time; None = unscored
    now: Calls  # n x passes, the same of each further pass
    groups: Sequence[str]  # the question of each item
    people: Scale
    judge: Scale
    calibrate: Callable[[Verdict], Verdict] | None = None  # the lock's map; None: verdicts as they are decide

    @property
    def passes(self) -> int:
        """How often every item was judged anew."""
        return len(self.now[0])

    @property
    def settled(self) -> bool:
        """Whether several passes all gave the same verdicts: a further one would tell nothing new."""
        return self.passes > 1 and all(len(set(row)) == 1 for row in self.now)

    def calibrated(self) -> LockedAndCurrent:
        """Both times through the lock's map, on the people's scale; as they are where there is none."""
        if self.calibrate is None:
            return self
        then, now = ([[*map(self.calibrate, row)] for row in rows] for rows in (self.then, self.now))
        return replace(self, then=then, now=now, judge=self.people, calibrate=None)


@dataclass(frozen=True, slots=True)
class UnscoredRise:
    """How far the share of items without a verdict went up."""

    difference: Estimate  # now - then, paired by item
    p_at_most: float  # the chance, if nothing had changed, of such a rise is this or less

    @property
    def too_high(self) -> bool:
        """Whether a rise is shown, and shown to exceed the tolerance."""
        low = self.difference.low
        return self.p_at_most < CHANGED_LEVEL and low is not None and low > UNSCORED_TOLERANCE


@dataclass(frozen=True, slots=True)
class GateState:
    """What the items say of a locked judge."""

    decision: GateDecision
    why: str
    # now against then, an unscored verdict counted as wrong; the calls' single-call values averaged
    comparison: Comparison
    loss_below: (
        float | None
    )  # the loss stays below, one-sided at the level; None where nothing can be decided
    persistent: Estimate | None  # the same difference with the verdicts that changed in every pass alike
    raw: Estimate | None  # the difference of the verdicts as they are, where calibrated ones decide
    same_judge: SameJudgeTest | None  # None where there are fewer than three calls of an item
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
    well where the share of unscored items is shown to have risen by more than `UNSCORED_TOLERANCE`. By a
    macro metric with fewer than ten items in a class or stratum no loss is decided on.

    Where the loss does not fail but the test shows that another judge answers, that is "changed". It needs
    three calls of an item, so that where the lock holds one, a night makes two.
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
        refuse(problems)

    @property
    def sign(self) -> float:
        """1 where more of the metric is better, -1 where less is."""
        return -1.0 if metric_facts(self.metric).direction == "less" else 1.0

    def state(self, two: LockedAndCurrent, *, last: bool) -> GateState:
        """What can be said by now; `last` where no further pass can be had."""
        decided = two.calibrated()
        shared: dict[str, Any] = {
            "metric": self.metric,
            "groups": two.groups,
            "level": self.level,
            "n_perm": 1,
        }

        def compared(times: LockedAndCurrent) -> Comparison:
            scales: dict[str, Any] = {"scale": two.people, "a_scale": times.judge, "b_scale": times.judge}
            return compare(two.labels, times.now, times.then, calibrate=False, **scales, **shared)

        comparison, persistent, scales = compared(decided), None, dict[str, Any]()
        thin, bound = too_thin(comparison.strata, self.metric), None
        if comparison.difference.low is not None and thin is None:
            metric, at_mark = metric_named(self.metric, two.people)
            scales = {"people": two.people, "judge_scale": decided.judge}
            now, then = (
                prepare(two.labels, rows, groups=two.groups, unscored="wrong", **scales)
                for rows in (decided.now, decided.then)
            )
            bound = loss_bound(metric, now, then, at_mark=at_mark, sign=self.sign, level=self.level)
        if two.passes > 1:
            rows = zip(decided.now, decided.then, strict=True)
            changed = [[persistent_change(row, each) for each in then] for row, then in rows]
            scales = {"scale": two.people, "a_scale": decided.judge, "b_scale": decided.judge}
            persistent = compare_paired(two.labels, changed, decided.then, **scales, **shared).difference
        same_judge = same_judge_test(two.then, two.now, two.groups)
        shares = (
            np.array([sum(verdict is None for verdict in row) / len(row) for row in rows])
            for rows in (two.now, two.then)
        )
        rise = next(shares) - next(shares)
        unscored = UnscoredRise(
            mean_estimate(rise, two.groups, low=-1.0, high=1.0, level=self.level),
            rise_of_unscored(two.then, two.now, two.groups) if rise.any() else 1.0,
        )
        decision, why = self._of_loss(comparison.difference, bound, persistent, last=last)
        if thin is not None:  # without a bound nothing is decided
            why = f"{thin}. So this lock can never pass: label more of them and lock again"
        if unscored.too_high:
            decision, why = "fail", _risen(unscored.difference)
        else:
            decision, why = _watched(decision, why, same_judge, last=last or bound is None)
        if decision == "pass" and not any(verdict is not None for row in two.now for verdict in row):
            decision, why = "inconclusive", "no call has a verdict, now or when it was locked"
        raw = None if decided is two else compared(two).difference
        return GateState(decision, why, comparison, bound, persistent, raw, same_judge, unscored)

    def _of_loss(
        self, difference: Estimate, bound: float | None, persistent: Estimate | None, *, last: bool
    ) -> tuple[GateDecision, str]:
        """What the loss alone says, and why."""
        if bound is None or difference.value is None:
            return "inconclusive", difference.reason or "there is no error to tell the loss by"
        if difference.low == difference.high == 0.0:
            return "pass", "no item agrees with its label better or worse than when it was locked"

        def amount(loss: float) -> str:
            return amount_of(loss, self.metric)

        def lost(change: Estimate, *, by: float = 0.0) -> bool:
            """Whether an interval lies on the losing side of 0, or of a loss."""
            end = change.high if self.sign > 0.0 else change.low
            return end is not None and self.sign * end < -by

        margin, loss = f"the margin of {amount(self.margin)}", -self.sign * difference.value
        if bound < self.margin:
            return (
                "pass",
                f"the loss is shown to stay below {amount(max(bound, 0.0))}, which is under {margin}",
            )
        exceeds = f"the loss of {amount(loss)} exceeds {margin}"
        if loss <= self.margin:
            seen = f"a loss of {amount(loss)}" if loss > 0.0 else "no loss"
            unclear = f"it is not shown to stay under {margin}: it may be as large as {amount(bound)}"
            return "inconclusive", f"{seen} is seen, but {unclear}"
        if not lost(difference):
            return "inconclusive", f"{exceeds}, but the interval of the difference holds 0"
        beyond = lost(difference, by=self.margin)
        if persistent is None and not (last and beyond):
            wanted = "none can be had" if last else "none was made yet"
            return "inconclusive", f"{exceeds}, but only a further pass tells it from noise, and {wanted}"
        if beyond:
            return "fail", f"{exceeds}, and so does the whole of its interval"
        if persistent is not None and not lost(persistent):
            alike = amount(max(0.0, -self.sign * (persistent.value or 0.0)))
            return "inconclusive", (
                f"{exceeds}, but its interval holds the margin, and the verdicts that changed in every pass "
                f"alike make {alike} of it"
            )
        side = "below" if self.sign > 0.0 else "above"
        return "fail", f"the interval of the difference lies {side} 0 and {exceeds}"


def _risen(rise: Estimate) -> str:
    assert rise.value is not None and rise.low is not None  # as it is shown to be too high
    return (
        f"{100.0 * rise.value:.1f}% more of the verdicts are missing than when it was locked, at least "
        f"{100.0 * rise.low:.1f}%, where {100.0 * UNSCORED_TOLERANCE:g}% are allowed"
    )


def _watched(
    decision: GateDecision, why: str, same_judge: SameJudgeTest | None, *, last: bool
) -> tuple[GateDecision, str]:
    """The decision on the loss, beside what the test says of who answers."""
    if same_judge is None:
        if decision == "pass" and not last:
            return "inconclusive", f"{why}; a second call of each item tells whether the same judge answers"
        return decision, why
    if decision == "fail":
        apart = "but calls of now and of the lock are not shown to differ"
        doubtful = same_judge.doubtful
        return (decision, why) if doubtful else ("inconclusive", f"{why}, {apart}: {same_judge.in_words}")
    if same_judge.changed and (decision == "pass" or last):
        return "changed", f"{same_judge.in_words}; of its agreement with the labels: {why}"
    if same_judge.doubtful and decision == "pass" and not last:
        return "inconclusive", f"{why}; {same_judge.in_words}, which a further pass tells from chance"
    return decision, why


def persistent_change(passes: Sequence[Verdict], then: Verdict) -> Verdict:
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
