"""What each judge loses against the best, the floor and the people beside it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgecal.experiment.agreement import constant_judge
from judgecal.experiment.agreement_table import AgreementTable, Matrix, Verdicts
from judgecal.records import Estimate
from judgecal.scale import Label
from judgecal.stats import compare_paired
from judgecal.stats.calibration import CrossFit, DecidingVerdicts, cross_fit
from judgecal.stats.metrics import metric_facts
from judgecal.stats.paired import PairedDifference
from judgecal.stats.sample import Labels
from judgecal.stats.simultaneous import Losses, losses_against_best
from judgecal.stats.strata import Stratum, too_thin


@dataclass(frozen=True, slots=True)
class JudgeLoss:
    """What one judge loses against the best, as shares."""

    judge: str
    value: float | None  # the metric itself
    loss: float | None
    low: float | None  # of the paired interval
    high: float | None  # the bound that holds for all judges at once and decides
    reason: str | None  # why either is missing


@dataclass(frozen=True, slots=True)
class FloorLoss:
    """What the best constant, or another free judge, loses against a judge by a metric, paired."""

    judge: str
    loss: Estimate
    strata: tuple[Stratum, ...] = ()  # of the labels that the difference rests on
    metric: str = ""

    @property
    def shown(self) -> bool:
        return self.loss.low is not None and self.loss.low > 0.0

    @property
    def below(self) -> bool:
        return self.loss.high is not None and self.loss.high < 0.0


@dataclass(frozen=True, slots=True)
class LossPicture:
    """Losses against the best judge: of each judge and of the floor."""

    losses: Losses
    judges: tuple[JudgeLoss, ...]
    floor: tuple[FloorLoss, ...]


def judge_losses(
    table: AgreementTable, columns: Sequence[Verdicts], *, metric: str, margin: float | None
) -> tuple[Losses, tuple[JudgeLoss, ...]]:
    """What judges lose on the items of a table; for each the paired interval beside the bound of all."""
    by_name = {column.judge: column for column in columns}
    deciding = table.deciding(by_name, calibrated=metric_facts(metric).calibrated)
    options: dict[str, Any] = {"metric": metric, "margin": margin, **table.shared}
    losses = losses_against_best(table.labels, deciding.verdicts, deciding=deciding, **options)
    best = next(column for column in columns if column.judge == losses.best)
    judges = []
    for column in columns:
        low = 0.0 if column is best else _decided(_paired(table, best, column, metric), metric).low
        loss = losses.by_judge[column.judge]
        judges.append(JudgeLoss(column.judge, loss.value, loss.loss, low, loss.upper, loss.reason))
    return losses, tuple(judges)


def floor_loss(
    table: AgreementTable, judge: Verdicts, *, metric: str, of: int, floor: Verdicts | None = None
) -> FloorLoss:
    """What the best constant, or another floor, loses against a judge, paired on a table's items.

    The judge is one of so many, the best of which may owe its place to luck: the interval stands at level
    1 - (1 - level) / of (Bonferroni). Of errors the difference is turned round, so that a loss is above 0.
    """
    table = dataclasses.replace(table, level=1.0 - (1.0 - table.level) / of)
    table = table if floor is None else table.asked_of(floor)
    column = floor or constant_judge(dataclasses.replace(table, repeats=1))
    paired = _paired(table, judge, column, metric, repeats=1)
    loss = _decided(paired, metric)
    if metric_facts(metric).direction == "less" and loss.value is not None:
        low, high = (None if end is None else -end for end in (loss.high, loss.low))
        loss = dataclasses.replace(loss, value=-loss.value, low=low, high=high)
    return FloorLoss(column.judge, loss, paired.strata, metric)


def _paired(
    table: AgreementTable,
    best: Verdicts,
    other: Verdicts,
    metric: str,
    *,
    labels: Sequence[Label] | None = None,
    repeats: int | None = None,
) -> PairedDifference:
    """What another loses against the best judge, once calibrated where the metric asks for it.

    The verdicts of the one with fewer repeats (`repeats` of the other, where they are not its own) are taken
    in turn until they are as many; a mean over repeats stays itself.
    """
    n = {"best": table.repeats_of(best), "other": repeats or table.repeats_of(other)}
    judges, most = {"best": best, "other": other}, max(n.values())
    gold_labels: Labels = table.labels if labels is None else labels
    sides: dict[str, Matrix] = {
        side: np.take(table.verdicts(judge, n[side]), np.arange(most) % n[side], axis=1)
        for side, judge in judges.items()
    }
    fits = dict[str, CrossFit]()
    for side, judge in judges.items():
        if not metric_facts(metric).calibrated or judge.constant is not None:
            continue
        if labels is None and n[side] == most:
            fit = table.cross_fit(judge, most)
        else:
            fit = cross_fit(gold_labels, sides[side], weights=table.weights, **table.scaled(judge))
        fits |= {} if fit is None else {side: fit}
    scales = {side: judge.scale for side, judge in judges.items()}
    once = DecidingVerdicts.from_fits(sides, scales, fits, scale=table.gold.scale)
    return compare_paired(
        gold_labels,
        once.verdicts["best"],
        once.verdicts["other"],
        a_scale=once.scales["best"],
        b_scale=once.scales["other"],
        metric=metric,
        n_perm=1,  # the interval needs no p value
        more_error=once.error_of_fit("best", "other"),
        **table.shared,
    )


def _decided(paired: PairedDifference, metric: str) -> Estimate:
    """The difference, without an interval where it rests on too few items."""
    thin = too_thin(paired.strata, metric)
    if thin is None:
        return paired.difference
    return dataclasses.replace(paired.difference, low=None, high=None, method="", reason=thin)
