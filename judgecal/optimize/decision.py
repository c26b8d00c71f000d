"""Choose a candidate on dev, then confirm it once on the sealed test split.

Both are decided once calibrated: a candidate that merely uses the scale differently knows no more than the
judge as it was, and a map gives what it gains without another prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judgecal.experiment import Column, Table, require_metric, verdict_matrix
from judgecal.judges import PromptJudge
from judgecal.optimize.training import Candidate
from judgecal.records import Estimate
from judgecal.stats import PairedLabels, calibrated_difference, compare_paired
from judgecal.stats.calibration import calibrated
from judgecal.stats.confirmation import Held, gain_by_luck
from judgecal.stats.sample import as_scale
from judgecal.stats.significance import MARGIN


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate on dev, or the judge as it was."""

    name: str  # `before` of the judge as it was
    n_demos: int
    judge_fingerprint: str
    rated_in_training: int  # replies that its making asked for
    unusable_in_training: int  # those of them without a verdict
    as_wrong: Estimate  # the deciding metric, an unscored item counted as wrong
    calibrated: Estimate | None  # the same once calibrated; None where that cannot be


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate, or the judge as it was, with its judgements on dev and what they come to (see `Tried`)."""

    candidate: Candidate | None
    judge: PromptJudge
    column: Column
    estimates: dict[str, Estimate]  # by metric
    calibrated: Estimate | None

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
            calibrated=self.calibrated,
        )

    def value(self, metric: str) -> float:
        """What decides on dev: the metric, calibrated where it can be; below everything where undefined."""
        found = self.calibrated or require_metric(self.estimates, metric)
        return float("-inf") if found.value is None else found.value


@dataclass(frozen=True, slots=True)
class Choice:
    """Who was taken, and why in a sentence; `sealed` says why test stays closed: a candidate was ahead by no
    more than luck, or calls were lost."""

    taken: Scored
    why: str
    sealed: str | None = None


def score_on(
    dev: Table, candidate: Candidate | None, judge: PromptJudge, column: Column, metric: str
) -> Scored:
    """Hold one candidate's judgements against the people."""
    found = dev.agreements(column)
    return Scored(candidate, judge, column, found["as_wrong"], found["calibrated"].get(metric))


def choose(scored: Sequence[Scored], metric: str, dev: Table) -> Choice:
    """Take one; the first of `scored` is the judge as it was, and stays unless another gains more on dev than
    luck.

    Luck is what the largest gain among as many equal candidates stays below in four of five samples. Of
    equals the one with fewer demos is taken. Below ten questions no error is known, so that nothing is more
    than luck. On labels without order the metric of the verdicts as they are decides.
    """
    before = scored[0]
    once = f"{metric} once calibrated" if before.calibrated else metric
    rising = [one for one in scored[1:] if one.value(metric) > before.value(metric)]
    if not rising:
        return Choice(before, f"no candidate had a higher {once} than the judge as it was")
    taken = max(rising, key=lambda one: (one.value(metric), -len(one.judge.demos)))
    luck = _luck([one for one in scored if one.value(metric) > float("-inf")], metric, dev)
    gain = taken.value(metric) - before.value(metric)
    if luck is not None and gain > luck:
        return Choice(taken, f"it had the highest {once}, and gained more than luck")
    n, points = len(scored) - 1, f"{taken.name} gained {100.0 * gain:.1f} points of {once} on dev"
    if luck is None:
        questions = len(set(dev.groups))
        return Choice(
            before, "dev shows nothing", f"{points}, and {questions} questions cannot tell that from luck"
        )
    equal = "one equal candidate" if n == 1 else f"the best of {n} equal candidates"
    why = f"{points}, and by luck alone {equal} gains more than {100.0 * luck:.1f} in one run of five"
    return Choice(before, "dev shows no more than luck", why)


def _luck(scored: Sequence[Scored], metric: str, dev: Table) -> float | None:
    """`gain_by_luck` over the first of them; None where that one has no value of its own."""
    if scored[0].candidate is not None:
        return None
    columns = {place: one.column for place, one in enumerate(scored)}
    once = calibrated(
        dev.labels,
        {place: verdict_matrix(one.rows, dev.items, dev.repeats) for place, one in columns.items()},
        scale=dev.gold.scale,
        scales={place: one.scale for place, one in columns.items()},
        groups=dev.groups,
        asked=scored[0].calibrated is not None,
        weights=dev.weights,
    )
    before, *others = (
        Held(dev.labels, list(once.verdicts[place]), as_scale(once.scales[place]), dev.groups, dev.weights)
        for place in columns
    )
    of_fit = [once.error_of_fit(0, place)[0] for place in range(1, len(scored))]
    return gain_by_luck(before, others, people=dev.gold.scale, metric=metric, of_fit=of_fit, seed=dev.seed)


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

    `before`, `after` (metric -> Estimate) and what is made of them count an unscored item as the verdict
    farthest from its label; `complete_case` leaves it out.
    """

    before: dict[str, Estimate] | None = None
    after: dict[str, Estimate] | None = None
    difference: Estimate | None = None  # after minus before in the metric, paired, by group
    # the same once both are calibrated by maps from train and dev
    difference_recalibrated: Estimate | None = None
    p_value: float | None = None  # None where there are too few groups too
    complete_case: BeforeAfter | None = None
    calibrated: BeforeAfter | None = None  # through those maps; None where labels have no order


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What the test split says: the numbers, a decision (better, worse, rescaled only ...), and why."""

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
        calibrated_difference(_paired(fit, before, after), pairs, **how)
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
        calibrated=BeforeAfter(_through(test, fit, before), _through(test, fit, after)) if ordered else None,
    )
    return Confirmation(numbers, *_decide(paired.difference, recalibrated, metric, ordered=ordered))


def _through(test: Table, fit: Table, column: Column) -> dict[str, Estimate]:
    """Metric -> Estimate on test through the map that fit gives."""
    return test.through(fit.calibration(column, fitted_on="train and dev"), column)


def _paired(table: Table, before: Column, after: Column) -> PairedLabels:
    later, earlier = (verdict_matrix(one.rows, table.items, table.repeats) for one in (after, before))
    return PairedLabels(table.labels, later, earlier, table.groups)


def _decide(difference: Estimate, calibrated: Estimate, metric: str, *, ordered: bool) -> tuple[str, str]:
    """By the difference once calibrated; on labels without order by the difference as it is."""
    deciding, once = (calibrated, f"{metric} once calibrated") if ordered else (difference, metric)
    if deciding.low is None or deciding.high is None:
        return CANNOT_TELL, f"{once}: {deciding.reason or 'there is no interval'}"
    if deciding.low > 0.0:
        return BETTER, f"{once} rose, and its interval lies above 0"
    if deciding.high < 0.0:
        return WORSE, f"{once} fell, and its interval lies below 0"
    if not (ordered and difference.clear_of_zero):
        return CANNOT_TELL, f"the interval of the difference in {once} holds 0"
    rose = (difference.value or 0.0) > 0.0
    if deciding.low > -MARGIN and deciding.high < MARGIN:
        gain = "gives the same gain without another prompt" if rose else "takes the loss back"
        small = f"once calibrated it is shown to change by less than {MARGIN:g}"
        return RESCALED_ONLY, f"{metric} {'rose' if rose else 'fell'}, but {small}: the map {gain}"
    seen = "better, perhaps only in scale" if rose else "worse, perhaps only in scale"
    return CANNOT_TELL, (
        f"{seen}: {metric} {'rose' if rose else 'fell'} with an interval clear of 0, and once calibrated its "
        "interval holds 0"
    )
