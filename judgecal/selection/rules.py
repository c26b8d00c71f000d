"""When a locked judge passes the gate, and when another may take its place: the decisions, apart from every
call.

A migration's "pass" rests on all labelled items but those that trained or chose the new judge: that the old
one was chosen by them only makes passing harder. What nobody recorded, such as a prompt that was written with
these labels in sight, shows as a fall: on test the new judge may not do worse, beside the old one, than on
the others by more than chance explains. "Fail" rests on test alone. If both hold, it fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from judgecal.errors import refuse
from judgecal.records import Estimate
from judgecal.scale import Label, Scale
from judgecal.stats import PairComparison, compare
from judgecal.stats.confirmation import STANDARD_ERRORS
from judgecal.stats.drift import CHANGED_LEVEL, Calls, DriftTest, Verdict, same_judge_test, unscored_rise_p
from judgecal.stats.intervals import mean_estimate, t_quantile
from judgecal.stats.means import too_thin
from judgecal.stats.metrics import amount_of, metric_facts
from judgecal.stats.paired import PairedDifference
from judgecal.stats.significance import OUT_OF_REACH
from judgecal.stats.simultaneous import Losses, losses_against_best

GateDecision = Literal["pass", "fail", "inconclusive", "changed"]

UNSCORED_TOLERANCE = 0.05
"""A rise of the share of unscored items that is shown to exceed this fails."""


_EPS = 1e-12


# --- gate


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
        return len(self.now[0])

    @property
    def settled(self) -> bool:
        """Whether several passes all gave the same verdicts: a further one would tell nothing new."""
        return self.passes > 1 and all(len(set(row)) == 1 for row in self.now)

    def calibrated(self) -> LockedAndCurrent:
        """Return LockedAndCurrent with own judgings through the lock's map; as they are without a map."""
        if self.calibrate is None:
            return self
        then, now = ([[*map(self.calibrate, row)] for row in rows] for rows in (self.then, self.now))
        return replace(self, then=then, now=now, judge=self.people, calibrate=None)


@dataclass(frozen=True, slots=True)
class GateState:
    """What the items say of a locked judge."""

    decision: GateDecision
    why: str
    comparison: PairComparison  # now against then, an unscored verdict as wrong; single-call values averaged
    loss_below: float | None  # the loss stays below, one-sided at the level; None: nothing can be decided
    same_judge: DriftTest | None  # None where there are fewer than three calls of an item


@dataclass(frozen=True)
class GateRule:
    """How much a locked judge may lose.

    Passes where the loss is shown to stay under the margin, with a one-sided bound at the level. Fails where
    the whole interval of the difference lies beyond the margin, over two passes where a second can be had. As
    the lock's calls are the same every night, ill luck in them would make a noisy judge fail night
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

    def state(self, two: LockedAndCurrent, *, last: bool) -> GateState:
        """Return a GateState decided from LockedAndCurrent and `last`: no further pass can be had."""
        decided, people, groups, level = two.calibrated(), two.people, two.groups, self.level
        comparison = compare(
            two.labels,
            decided.now,
            decided.then,
            scale=people,
            a_scale=decided.judge,
            b_scale=decided.judge,
            metric=self.metric,
            groups=groups,
            level=level,
            n_perm=1,
            calibrate=False,
        )
        thin = too_thin(comparison.strata, self.metric)
        bound = None if thin is not None else _loss_bound(comparison, self.metric, level)
        same_judge = same_judge_test(two.then, two.now, groups)
        missing_now, missing_then = (
            np.array([sum(verdict is None for verdict in row) / len(row) for row in rows])
            for rows in (two.now, two.then)
        )
        rise = mean_estimate(missing_now - missing_then, groups, low=-1.0, high=1.0, level=level)
        decision, why = self._of_loss(comparison.difference, bound, last=last or two.passes > 1)
        if thin is not None:  # without a bound nothing is decided
            why = f"{thin}. So this lock can never pass: label more of them and lock again"
        exceeds = rise.low is not None and rise.low > UNSCORED_TOLERANCE
        if exceeds and unscored_rise_p(two.then, two.now, groups) < CHANGED_LEVEL:
            decision = "fail"
            why = (
                f"{rise.value:.1%} more of the verdicts are missing than when it was locked (at least "
                f"{rise.low:.1%}), and we allow {UNSCORED_TOLERANCE:.0%}"
            )
        else:
            decision, why = _watched(decision, why, same_judge, last=last or bound is None)
        if decision == "pass" and not any(verdict is not None for row in two.now for verdict in row):
            decision, why = "inconclusive", "no call has a verdict, now or when it was locked"
        return GateState(decision, why, comparison, bound, same_judge)

    def _of_loss(self, difference: Estimate, bound: float | None, *, last: bool) -> tuple[GateDecision, str]:
        """The decision on the loss alone; `last`: over two passes, or where no second one can be had."""
        if bound is None or difference.value is None:
            return "inconclusive", difference.reason or "we cannot tell how sure the loss is"
        if difference.low == difference.high == 0.0:
            return "pass", "every item agrees with its label exactly as when it was locked"

        def amount(loss: float) -> str:
            return amount_of(loss, self.metric)

        margin, loss = f"the margin of {amount(self.margin)}", _as_loss(difference.value, self.metric)
        if bound < self.margin:
            below = amount(max(bound, 0.0))
            return "pass", f"the loss is shown to stay below {below}, which is under {margin}"
        exceeds = f"the loss of {amount(loss)} exceeds {margin}"
        if loss <= self.margin:
            seen = f"a loss of {amount(loss)}" if loss > 0.0 else "no loss"
            unclear = f"it may be as large as {amount(bound)}, and we allow {amount(self.margin)}"
            return "inconclusive", f"we see {seen}, but {unclear}"
        least = _least_loss(difference, self.metric)
        if least is None or least <= self.margin:
            return "inconclusive", f"{exceeds}, but its interval includes the margin"
        if not last:
            return "inconclusive", f"{exceeds}, but only a further pass can tell it from noise"
        return "fail", f"{exceeds}, and so does the whole of its interval"


def _watched(
    decision: GateDecision, why: str, same_judge: DriftTest | None, *, last: bool
) -> tuple[GateDecision, str]:
    """The decision on the loss, beside what the test says of who answers."""
    if same_judge is None:
        if decision == "pass" and not last:
            return "inconclusive", f"{why}; a second call of each item tells whether the same judge answers"
        return decision, why
    if decision == "fail":
        if same_judge.doubtful:
            return decision, why
        apart = "but calls of now and of the lock are not shown to differ"
        return "inconclusive", f"{why}, {apart}: {same_judge.in_words}"
    if same_judge.changed and (decision == "pass" or last):
        return "changed", f"{same_judge.in_words}; of its agreement with the labels: {why}"
    if same_judge.doubtful and decision == "pass" and not last:
        return "inconclusive", f"{why}; {same_judge.in_words}, which a further pass tells from chance"
    return decision, why


def _loss_bound(comparison: PairComparison, metric: str, level: float) -> float | None:
    """Return the one-sided upper bound of the loss in a comparison in a metric at a level; None without one.

    By t, with q its lower quantile and a a third of the skewness over G^(1/2) loss - error ((1 + 3 a (q - a /
    2))^(1/3) - 1) / a. Source: Hall (1992), the cubic transformation of a studentised mean.
    """
    difference, error = comparison.difference, error_of(comparison)
    if difference.value is None or comparison.planned is None or error is None:
        return 0.0 if difference.low == difference.high == 0.0 else None
    loss, a = _as_loss(difference.value, metric), _as_loss(comparison.planned.skewness, metric)
    quantile = -t_quantile(2.0 * level - 1.0, comparison.planned.df)
    if abs(a) > _EPS:
        quantile = float(np.cbrt(1.0 + 3.0 * a * (quantile - a / 2.0)) - 1.0) / a
    return loss - error * quantile


def _as_loss(value: float, metric: str) -> float:
    return value if metric_facts(metric).direction == "less" else -value


def _least_loss(difference: Estimate, metric: str) -> float | None:
    """The end of a difference's interval that is the least loss; None without one."""
    end = difference.low if metric_facts(metric).direction == "less" else difference.high
    return None if end is None else _as_loss(end, metric)


# --- migrate


@dataclass(frozen=True)
class MigrationItems:
    """Labels of some items, and the verdicts of both judges on them (None = unscored: as wrong)."""

    labels: Sequence[Any]
    groups: Sequence[str]
    old: Sequence[Any]
    new: Sequence[Any]
    scales: tuple[Scale, Scale]  # of the old judge's verdicts, and of the new one's

    def compared(self, *, people: Scale, metric: str, level: float, seed: int = 0) -> PairComparison:
        """Return a PairComparison, new judge less old, from people's Scale, a metric and a level."""
        b_scale, a_scale = self.scales
        shared: dict[str, Any] = {"groups": self.groups, "level": level, "seed": seed, "calibrate": False}
        shared |= {"scale": people, "a_scale": a_scale, "b_scale": b_scale, "metric": metric, "n_perm": 1}
        return compare(self.labels, self.new, self.old, **shared)

    def losses(self, *, people: Scale, metric: str, margin: float, level: float, seed: int = 0) -> Losses:
        """Return these judges' Losses against each other, from people's Scale, metric, margin and level."""
        return losses_against_best(
            self.labels,
            {"old": self.old, "new": self.new},
            scale=people,
            scales=dict(zip(("old", "new"), self.scales, strict=True)),
            metric=metric,
            groups=self.groups,
            margin=margin,
            level=level,
            seed=seed,
            calibrate=False,
        )


@dataclass(frozen=True, slots=True)
class MigrationDecision:
    """What the new judge loses against the old."""

    # "pass": shown to stay under the margin; "fail": shown to exceed it; else "inconclusive"
    decision: GateDecision
    why: str
    test: PairComparison  # new less old on test, and on all items that may pass the new judge
    whole: PairComparison
    loss_below: float | None  # of these: the loss stays below, one-sided at the level; None: no bound


def migration(
    on_test: MigrationItems,
    others: MigrationItems | None,
    *,
    people: Scale,
    metric: str,
    margin: float,
    level: float,
    seed: int = 0,
) -> MigrationDecision:
    """Return a MigrationDecision on test and other MigrationItems, people's Scale, metric, margin, level.

    `others`: the items outside test that may pass it; None where there are none.
    """
    shared: dict[str, Any] = {"people": people, "metric": metric, "level": level, "seed": seed}
    together = on_test
    if others is not None:
        labels, groups, old, new = (
            [*getattr(on_test, name), *getattr(others, name)] for name in ("labels", "groups", "old", "new")
        )
        together = MigrationItems(labels, groups, old, new, on_test.scales)
    test, whole = on_test.compared(**shared), together.compared(**shared)
    losses = together.losses(margin=margin, **shared)
    bound, allowed = losses.by_judge["new"].upper, amount_of(margin, metric)

    def decided(decision: GateDecision, why: str) -> MigrationDecision:
        return MigrationDecision(decision, why, test, whole, bound)

    least, reason = (
        _least_loss(test.difference, metric),
        too_thin(test.strata, metric) or test.difference.reason,
    )
    if reason is not None or least is None:
        return decided("inconclusive", reason or "there is no interval")
    if least > margin:
        lost = amount_of(least, metric)
        return decided("fail", f"on test it loses {lost} at least, more than the margin of {allowed}")
    if bound is None:
        why = losses.by_judge["new"].reason or losses.reason
        return decided("inconclusive", why or "there is no bound")
    if bound < margin:
        fell = None if others is None else _fell(test, others.compared(**shared), metric)
        if fell is not None:
            return decided("inconclusive", fell)
        lost = amount_of(bound, metric)
        return decided("pass", f"it loses {lost} at most, less than the margin of {allowed}")
    loss = _as_loss(whole.difference.value or 0.0, metric)
    seen = f"a loss of {amount_of(loss, metric)}" if loss > 0.0 else "no loss"
    most, where = amount_of(bound, metric), f"on {losses.n_groups:,} questions"
    why = f"we see {seen} {where}; it may be as large as {most}, and we allow {allowed}"
    needed = losses.questions_needed("new", margin) if loss < margin else None
    more = None if needed is None else max(1, needed - losses.n_groups)
    if more is None or more > OUT_OF_REACH:
        return decided("inconclusive", f"{why}; more questions will hardly show that it loses less")
    questions = f"about {more:,} more question{'s' * (more > 1)}"
    return decided("inconclusive", f"{why}; {questions} would show that it loses less, if it is as it looks")


def undecided(on_open: MigrationItems | None, *, metric: str, **options: Any) -> MigrationDecision:
    """Return an inconclusive MigrationDecision, from open MigrationItems or None, and a metric's name."""
    reason = "the rows decide, so we did not look at test"
    none = PairedDifference(Estimate(None, reason=reason), None)
    test = PairComparison(
        metric, none.difference, None, None, "cannot tell", reason, None, "", None, None, none, none
    )
    whole = test if on_open is None else on_open.compared(metric=metric, **options)
    return MigrationDecision("inconclusive", reason, test, whole, None)


def error_of(compared: PairComparison) -> float | None:
    """Return the standard error, a float, of a PairComparison's difference; None without an interval."""
    low, high, planned = compared.difference.low, compared.difference.high, compared.planned
    if low is None or high is None or planned is None:
        return None
    return (high - low) / (2.0 * t_quantile(compared.difference.level, planned.df))


def _fell(test: PairComparison, others: PairComparison, metric: str) -> str | None:
    """Why test does not bear out the other items; None where it does, or where those have no interval."""
    before, after, errors = others.difference.value, test.difference.value, (error_of(test), error_of(others))
    if before is None or after is None or errors[0] is None or errors[1] is None:
        return None
    fall, most = _as_loss(after - before, metric), STANDARD_ERRORS * math.hypot(errors[0], errors[1])
    if fall <= most:
        return None
    fell, by_chance = amount_of(fall, metric), amount_of(most, metric)
    return (
        f"on all questions together it is shown to lose less than the margin, but on test it does {fell} "
        f"worse than on the others, and chance explains {by_chance}: most often somebody tuned it on "
        "questions of train and dev"
    )
