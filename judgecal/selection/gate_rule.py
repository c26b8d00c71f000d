"""When a locked judge passes, fails, or cannot be told: the rule of `gate`, apart from every call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from judgecal.errors import InputError
from judgecal.records import Estimate
from judgecal.scale import Label, Scale
from judgecal.selection.gate_bound import upper_bound
from judgecal.stats import Comparison, compare, compare_paired, metric_named
from judgecal.stats.agreement import prepare
from judgecal.stats.metrics import metric_facts

__all__ = ["GateDecision", "GateRule", "Standing", "TwoTimes", "lasting"]

GateDecision = Literal["pass", "fail", "inconclusive"]
Verdict = Label | None


@dataclass(frozen=True, slots=True)
class TwoTimes:
    """The same items as a judge judged them when it was locked, and now.

    Attributes:
        labels: n labels of people.
        then: n locked verdicts; None = unscored.
        now: n x passes, the same of each further pass.
        groups: the question of each item.
        people, judge: their scales.
    """

    labels: Sequence[Label]
    then: Sequence[Verdict]
    now: Sequence[Sequence[Verdict]]
    groups: Sequence[str]
    people: Scale
    judge: Scale

    @property
    def passes(self) -> int:
        """How often every item was judged anew."""
        return len(self.now[0])

    @property
    def settled(self) -> bool:
        """Whether there are several passes, and all gave the same verdicts: a further one would tell nothing new."""
        return self.passes > 1 and all(len(set(row)) == 1 for row in self.now)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the items say of a locked judge.

    Attributes:
        decision: pass, fail or inconclusive.
        why: in a sentence.
        comparison: now against then, an unscored verdict counted as wrong; the repeats' single-call values averaged.
        loss_below: the loss stays below this, one-sided at the level; None where there is no interval.
        lasting: the same difference with the verdicts that changed in every pass alike; None with one pass.
    """

    decision: GateDecision
    why: str
    comparison: Comparison
    loss_below: float | None
    lasting: Estimate | None


@dataclass(frozen=True)
class GateRule:
    """How much a locked judge may lose.

    Passes where the loss is shown to stay under the margin, with a one-sided bound at the level. Fails where the
    interval of the difference lies on the losing side of 0, the loss seen exceeds the margin, and the verdicts that
    changed alike in every pass have their interval there too: what differs from pass to pass is noise, and no change
    of the judge. That takes two passes; where no second one can be had, the whole interval has to lie beyond the
    margin.

    Attributes:
        metric: by which the judge was chosen.
        margin: the loss that is allowed, in units of the metric.
        level: of the two-sided interval and of the one-sided bound.

    Raises:
        InputError: margin or level is out of range.
    """

    metric: str
    margin: float
    level: float = 0.95

    def __post_init__(self) -> None:
        problems = []
        if not 0.0 <= self.margin < float("inf"):
            problems.append(f"--margin is {self.margin:g}: a loss that is allowed is 0 or more")
        if not 0.5 < self.level < 1.0:
            problems.append(f"--level is {self.level:g}: give one above 0.5 and below 1")
        if problems:
            raise InputError(problems)

    @cached_property
    def sign(self) -> float:
        """1 where more of the metric is better, -1 where less is."""
        return -1.0 if metric_facts(self.metric).direction == "less" else 1.0

    def standing(self, two: TwoTimes, *, last: bool) -> Standing:
        """What can be said by now; `last` where no further pass can be had.

        Raises:
            InputError: as `compare`.
        """
        found = compare(
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
        )
        bound = self._bound(two) if found.difference.low is not None else None
        kept = self._lasting(two) if two.passes > 1 else None
        decision, why = self._decide(found.difference, bound, kept, last=last)
        return Standing(decision, why, found, bound, kept)

    def _decide(
        self, difference: Estimate, bound: float | None, kept: Estimate | None, *, last: bool
    ) -> tuple[GateDecision, str]:
        if bound is None or difference.value is None:
            return "inconclusive", difference.reason or "there is no error to tell the loss by"
        if difference.low == difference.high == 0.0:
            return "pass", "no item agrees with people better or worse than when it was locked"
        margin, loss = f"the margin of {self.margin:g}", -self.sign * difference.value
        if bound < self.margin:
            return "pass", f"the loss is shown to stay below {max(bound, 0.0):.3f}, which is under {margin}"
        if not (self._lost(difference) and loss > self.margin):
            return "inconclusive", self._unclear(difference, bound, loss, margin)
        if kept is not None and not self._lost(kept):
            return "inconclusive", (
                f"the loss of {loss:.3f} exceeds {margin}, but it is noise: the verdicts that changed in every pass "
                f"alike make {max(0.0, -self.sign * (kept.value or 0.0)):.3f} of it"
            )
        if kept is None and not (last and self._lost(difference, by=self.margin)):
            wanted = "none can be had" if last else "none was made yet"
            return "inconclusive", (
                f"the loss of {loss:.3f} exceeds {margin}, but only a further pass tells it from noise, and {wanted}"
            )
        return (
            "fail",
            f"the interval of the difference lies {self._below} 0 and the loss of {loss:.3f} exceeds {margin}",
        )

    @property
    def _below(self) -> str:
        return "below" if self.sign > 0.0 else "above"

    def _unclear(self, difference: Estimate, bound: float, loss: float, margin: str) -> str:
        if loss > self.margin:
            return f"the loss of {loss:.3f} exceeds {margin}, but the interval of the difference holds 0"
        seen = f"a loss of {loss:.3f}" if loss > 0.0 else "no loss"
        return (
            f"{seen} is seen, but it is not shown to stay under {margin}: it may be as large as {bound:.3f}"
        )

    def _lost(self, difference: Estimate, *, by: float = 0.0) -> bool:
        """Whether an interval lies on the losing side of 0, or of a loss."""
        end = difference.high if self.sign > 0.0 else difference.low
        return end is not None and self.sign * end < -by

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
            [lasting(row, then) for row, then in zip(two.now, two.then, strict=True)],
            two.then,
            scale=two.people,
            a_scale=two.judge,
            b_scale=two.judge,
            metric=self.metric,
            groups=two.groups,
            level=self.level,
            n_perm=1,
        ).difference


def lasting(passes: Sequence[Verdict], then: Verdict) -> Verdict:
    """What is left of a change once every pass has had its say: the verdict nearest to the locked one.

    Where the passes lie on both sides of it, where one kept it, or where they do not agree on having a verdict at
    all, that is the locked verdict itself. Words, and verdicts where there was none, have to be equal.
    """
    if len(set(passes)) == 1:
        return passes[0]
    numbers = [verdict for verdict in passes if isinstance(verdict, float | int)]
    if len(numbers) < len(passes) or not isinstance(then, float | int):
        return then
    if min(numbers) > then:
        return min(numbers)
    return max(numbers) if max(numbers) < then else then
