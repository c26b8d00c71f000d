"""Choose a candidate on dev, then confirm it once on the sealed test split.

A gain counts on test only if it stays once both judges are recalibrated. So the candidates are ranked on dev by the
smaller of their two gains over the judge as it was: in the metric, and in the metric once recalibrated. A candidate
that merely uses the scale differently has nothing of the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judgecal.experiment import Column, Table, require_metric, verdict_matrix
from judgecal.judges import PromptJudge
from judgecal.optimize.training import Candidate
from judgecal.records import Estimate
from judgecal.stats import PairedLabels, compare_paired, recalibrated_agreement, recalibrated_difference

_MIN_GROUPS = 10


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate on dev, or the judge as it was."""

    name: str  # `before` of the judge as it was
    n_demos: int
    judge_fingerprint: str
    rated_in_training: int  # replies that its making asked for
    unusable_in_training: int  # those of them without a verdict
    as_wrong: Estimate  # the deciding metric, an unscored item counted as wrong
    recalibrated: Estimate | None  # the same once recalibrated; None on labels without order


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate, or the judge as it was, with its judgements on dev and what they come to (as in `Tried`)."""

    candidate: Candidate | None
    judge: PromptJudge
    column: Column
    estimates: dict[str, Estimate]  # by metric
    recalibrated: Estimate | None

    @property
    def name(self) -> str:
        """The candidate's name, or `before`."""
        return self.candidate.name if self.candidate else "before"

    @property
    def trained_on(self) -> frozenset[str]:
        """The groups whose labels its judge carries."""
        return self.candidate.trained_on if self.candidate else frozenset()

    def tried(self, metric: str) -> Tried:
        """What the result says of it."""
        return Tried(
            name=self.name,
            n_demos=len(self.judge.demos),
            judge_fingerprint=self.judge.fingerprint,
            rated_in_training=self.candidate.rated if self.candidate else 0,
            unusable_in_training=self.candidate.unusable if self.candidate else 0,
            as_wrong=self.estimates[metric],
            recalibrated=self.recalibrated,
        )

    def value(self, metric: str) -> float:
        """The metric on dev; below everything where it is undefined."""
        return _or_lowest(require_metric(self.estimates, metric))


@dataclass(frozen=True, slots=True)
class Choice:
    """Who was taken, and why in a sentence."""

    taken: Scored
    why: str


def score_on(dev: Table, candidate: Candidate | None, judge: PromptJudge, column: Column, metric: str) -> Scored:
    """Hold one candidate's judgements against the people."""
    again = None
    if dev.gold.scale.numeric:
        again = recalibrated_agreement(
            dev.labels,
            verdict_matrix(column.rows, dev.items, dev.repeats),
            scale=dev.gold.scale,
            judge_scale=column.scale,
            groups=dev.groups,
            metric=metric,
            seed=dev.seed,
        )
    return Scored(candidate, judge, column, dev.agreements(column)["as_wrong"], again)


def choose(scored: Sequence[Scored], dev: Table, metric: str) -> Choice:
    """Take one; the first of `scored` is the judge as it was, and stays unless another has a higher metric.

    Of equals the one with the higher metric is taken, then the one with fewer demos. Below ten questions, where
    maps cannot be fitted, and on labels without order the highest metric decides alone.
    """
    before = scored[0]
    rising = [one for one in scored[1:] if one.value(metric) > before.value(metric)]
    if not rising:
        return Choice(before, f"no candidate had a higher {metric} than the judge as it was")
    highest = max(rising, key=lambda one: (one.value(metric), -len(one.judge.demos)))
    if len(set(dev.groups)) < _MIN_GROUPS or before.recalibrated is None:
        return Choice(highest, f"it had the highest {metric}")
    taken = max(rising, key=lambda one: (_lasting(one, before, metric), one.value(metric), -len(one.judge.demos)))
    if taken is highest:
        return Choice(taken, f"it had the highest {metric}, and the most of its gain stays once recalibrated")
    return Choice(taken, f"{highest.name} had a higher {metric}, but less of its gain stays once recalibrated")


def _lasting(one: Scored, before: Scored, metric: str) -> float:
    """The smaller of the gain in the metric and the gain once both are recalibrated."""
    gain = one.value(metric) - before.value(metric)
    return min(gain, _or_lowest(one.recalibrated) - _or_lowest(before.recalibrated))


def _or_lowest(found: Estimate | None) -> float:
    return float("-inf") if found is None or found.value is None else found.value


BETTER, WORSE, RESCALED_ONLY, CANNOT_TELL = "better", "worse", "rescaled only", "cannot tell"
NOTHING_CHANGED = "nothing changed"


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """Metric -> Estimate of the judge as it was, and of the one that was taken."""

    before: dict[str, Estimate]
    after: dict[str, Estimate]


@dataclass(frozen=True, slots=True)
class OnTest:
    """The numbers on test; all None where test stayed sealed.

    `before`, `after` (metric -> Estimate) and what is made of them count an unscored item as the verdict farthest from
    its label; `complete_case` leaves it out.
    """

    before: dict[str, Estimate] | None = None
    after: dict[str, Estimate] | None = None
    difference: Estimate | None = None  # after minus before in the metric, paired, by group
    difference_recalibrated: Estimate | None = None  # the same once both are recalibrated by maps from train and dev
    p_value: float | None = None  # None where there are too few groups too
    complete_case: BeforeAfter | None = None


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What the test split says: the numbers, a decision (better, worse, rescaled only, cannot tell), and why."""

    numbers: OnTest
    decision: str
    why: str


def confirm(*, test: Table, fit: Table, before: Column, after: Column, metric: str) -> Confirmation:
    """Hold two judges against each other on test.

    Args:
        test: the test items, at the level that this look is shown at.
        fit: train and dev items, without the questions in either judge's demos; the maps are fitted there.
        before, after: both judges' judgements over test and fit items.
        metric: what decides; a mean such as macro_agreement.
    """
    earlier, later, pairs = test.agreements(before), test.agreements(after), _paired(test, before, after)
    scales = {"scale": test.gold.scale, "a_scale": after.scale, "b_scale": before.scale}
    how: dict[str, Any] = {**scales, "metric": metric, "level": test.level, "seed": test.seed}
    paired = compare_paired(pairs.gold, pairs.a, pairs.b, groups=pairs.groups, **how)
    ordered = test.gold.scale.numeric
    recalibrated = (
        recalibrated_difference(_paired(fit, before, after), pairs, **how)
        if ordered
        else Estimate(None, level=test.level, reason="labels without an order cannot be rescaled")
    )
    numbers = OnTest(
        before=earlier["as_wrong"],
        after=later["as_wrong"],
        difference=paired.difference,
        difference_recalibrated=recalibrated,
        p_value=paired.p_value,
        complete_case=BeforeAfter(earlier["agreement"], later["agreement"]),
    )
    return Confirmation(numbers, *_decide(paired.difference, recalibrated, metric, ordered=ordered))


def _paired(table: Table, before: Column, after: Column) -> PairedLabels:
    later, earlier = (verdict_matrix(one.rows, table.items, table.repeats) for one in (after, before))
    return PairedLabels(table.labels, later, earlier, table.groups)


def _decide(difference: Estimate, recalibrated: Estimate, metric: str, *, ordered: bool) -> tuple[str, str]:
    if difference.low is None or difference.high is None:
        return CANNOT_TELL, difference.reason or "there is no interval"
    if difference.high < 0.0:
        return WORSE, f"{metric} fell, and its interval lies below 0"
    if difference.low <= 0.0:
        return CANNOT_TELL, f"the interval of the difference in {metric} holds 0"
    if not ordered:
        return BETTER, f"{metric} rose, and its interval lies above 0"
    if recalibrated.low is None:
        # Without the check a mere change of scale could not be told from a better judge.
        return CANNOT_TELL, f"{metric} rose, but the recalibration check could not be made: {recalibrated.reason}"
    if recalibrated.low <= 0.0:
        return RESCALED_ONLY, f"{metric} rose, but once both judges are recalibrated the gain is not clear of 0"
    return BETTER, f"{metric} rose, also when both judges are recalibrated, and both intervals lie above 0"
