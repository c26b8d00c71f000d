"""Confirm once: the judge before and after on the sealed test split, and what may be said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgecal.experiment import Column, Table, verdict_matrix
from judgecal.records import Estimate
from judgecal.stats import PairedDifference, PairedLabels, compare_paired, recalibrated_difference

__all__ = ["BETTER", "CANNOT_TELL", "RESCALED_ONLY", "WORSE", "Confirmation", "confirm"]

BETTER, WORSE, RESCALED_ONLY, CANNOT_TELL = "better", "worse", "rescaled only", "cannot tell"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What the test split says.

    Attributes:
        before, after: metric -> Estimate, an unscored item counted as the verdict farthest from its label.
        before_complete, after_complete: the same over the scored items alone.
        difference: after minus before in the metric, paired, by group.
        recalibrated: the same once both were recalibrated by a monotone map fitted on train and dev.
        decision: better, worse, rescaled only or cannot tell.
        why: the decision in a sentence.
        p_value: of the difference, None where there are too few groups.
    """

    before: Mapping[str, Estimate]
    after: Mapping[str, Estimate]
    before_complete: Mapping[str, Estimate]
    after_complete: Mapping[str, Estimate]
    difference: Estimate
    recalibrated: Estimate
    decision: str
    why: str
    p_value: float | None


def confirm(
    *,
    test: Table,
    fit: Table,
    before: Column,
    after: Column,
    metric: str,
) -> Confirmation:
    """Hold two judges against each other on test.

    Args:
        test: the test items, at the level that this look is shown at.
        fit: train and dev items, without the questions in either judge's demos; the maps are fitted there.
        before, after: both judges' judgements over test and fit items.
        metric: what decides; a mean such as macro_agreement.
    """
    one, two = test.agreements(before), test.agreements(after)
    paired = _paired(test, before, after, metric)
    ordered = test.gold.scale.numeric
    recalibrated = (
        _recalibrated(test, fit, before, after, metric)
        if ordered
        else Estimate(None, level=test.level, reason="labels without an order cannot be rescaled")
    )
    decision, why = _decide(paired.difference, recalibrated, metric, ordered=ordered)
    return Confirmation(
        before=one["as_wrong"],
        after=two["as_wrong"],
        before_complete=one["agreement"],
        after_complete=two["agreement"],
        difference=paired.difference,
        recalibrated=recalibrated,
        decision=decision,
        why=why,
        p_value=paired.p_value,
    )


def _verdicts(table: Table, column: Column) -> Sequence[Any]:
    return verdict_matrix(column.rows, table.items, table.repeats)


def _paired(test: Table, before: Column, after: Column, metric: str) -> PairedDifference:
    return compare_paired(
        test.labels,
        _verdicts(test, after),
        _verdicts(test, before),
        scale=test.gold.scale,
        a_scale=after.scale,
        b_scale=before.scale,
        metric=metric,
        groups=test.groups,
        level=test.level,
        seed=test.seed,
    )


def _recalibrated(test: Table, fit: Table, before: Column, after: Column, metric: str) -> Estimate:
    return recalibrated_difference(
        _labels(fit, before, after),
        _labels(test, before, after),
        scale=test.gold.scale,
        a_scale=after.scale,
        b_scale=before.scale,
        metric=metric,
        level=test.level,
        seed=test.seed,
    )


def _labels(table: Table, before: Column, after: Column) -> PairedLabels:
    return PairedLabels(table.labels, _verdicts(table, after), _verdicts(table, before), table.groups)


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
        return (
            CANNOT_TELL,
            f"{metric} rose, but the recalibration check could not be made: {recalibrated.reason}",
        )
    if recalibrated.low <= 0.0:
        return (
            RESCALED_ONLY,
            f"{metric} rose, but once both judges are recalibrated the gain is not clear of 0",
        )
    return BETTER, f"{metric} rose, also when both judges are recalibrated, and both intervals lie above 0"
