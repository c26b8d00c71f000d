"""How labels spread by strata of the verdict, and which rows a person must read."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from judgecal.records import Estimate
from judgecal.stats.intervals import MIN_GROUPS, check_level, t_quantile, wilson
from judgecal.stats.sample import Bools, Floats, Ints


@dataclass(frozen=True)
class Spread:
    """What labels vary by, and how far verdicts tell them: the share that is right, the judge's rates."""

    right: float
    sensitivity: float
    specificity: float

    @property
    def by_stratum(self) -> tuple[tuple[float, float], ...]:
        """(share of the rows, standard deviation of their labels) of those that pass and those that fail."""
        hits = self.right * self.sensitivity
        passing = hits + (1.0 - self.right) * (1.0 - self.specificity)
        parts = ((passing, hits), (1.0 - passing, self.right - hits))
        rates = [(share, min(1.0, max(0.0, right / share)) if share > 0.0 else 0.0) for share, right in parts]
        return tuple((share, math.sqrt(rate * (1.0 - rate))) for share, rate in rates)


_STEPS = 40  # shares of the rows that are tried


@dataclass(frozen=True, slots=True)
class EscalationLabels:
    """Labelled rows as the test takes them: the judge's confidence, whether it agrees, group, weight."""

    confidence: Floats
    agrees: Bools
    group: Ints
    weight: Floats  # in proportion to 1 / the chance of being drawn


@dataclass(frozen=True, slots=True)
class Escalation:
    """What is kept for the judge.

    Attributes:
        threshold: rows of at least this confidence are kept; None where no threshold is shown to keep the
            promise.
        share: of all rows that is kept, 0..1.
        agreement: of judge and people on what is kept.
    """

    threshold: float | None
    share: float
    agreement: Estimate | None


def escalation(
    confidence: Floats, labels: EscalationLabels, *, target: float, level: float = 0.95
) -> Escalation:
    """The boldest threshold on the judge's confidence that is shown to keep agreement at the target.

    The first one tried keeps twice as many labels as would do without a single error.

    Args:
        confidence: of all rows; minus infinity for a row that is never kept, such as one without a verdict.
        target: the agreement to be kept, above 0 and below 1.
        level: with which it is to be.
    """
    check_level(level)
    fewest = 2.0 * math.log(1.0 - level) / math.log(target)
    best: float | None = None
    for threshold in _thresholds(confidence):
        confident = labels.confidence >= threshold
        if confident.sum() < fewest and confident.sum() < len(confident):
            continue
        agreed, n = _effective(labels, confident)
        if n <= 0.0 or _p_value(agreed, n, target) > 1.0 - level:
            break
        best = threshold
    if best is None:
        return Escalation(None, 0.0, None)
    share = float((confidence >= best).mean())
    return Escalation(best, share, _agreement(labels, labels.confidence >= best, level=level))


def _thresholds(confidence: Floats) -> list[float]:
    """From safe to bold: confidences that keep ever larger parts of the rows."""
    ordered = np.sort(confidence[np.isfinite(confidence)])[::-1]
    if not len(ordered):
        return []
    places = np.ceil(np.arange(1, _STEPS + 1) * len(ordered) / _STEPS).astype(np.int64) - 1
    return sorted(set(ordered[places].tolist()), reverse=True)


def _effective(labels: EscalationLabels, rows: Bools) -> tuple[float, float]:
    """Agreement on kept rows, and on how many independent ones it rests; 0 below ten groups."""
    groups, group_codes = np.unique(labels.group[rows], return_inverse=True)
    if len(groups) < MIN_GROUPS:
        return 0.0, 0.0
    weight, agrees = labels.weight[rows], labels.agrees[rows].astype(np.float64)
    weight = weight / weight.sum()
    agreed, n = float(weight @ agrees), float(len(weight))
    uneven = n * float((weight**2).sum())
    if not 0.0 < agreed < 1.0:
        return agreed, min(n / uneven, float(len(groups)))
    sums = np.bincount(group_codes, weights=weight * (agrees - agreed))
    variance = float((sums**2).sum()) * len(groups) / (len(groups) - 1.0)
    return agreed, n / max(1.0, uneven, variance * n / (agreed * (1.0 - agreed)))


def _p_value(agreed: float, n: float, target: float) -> float:
    """Chance of so few errors among n or fewer, were the agreement the target."""
    errors = n * (1.0 - agreed)
    return 1.0 if errors >= n else float(betainc(n - errors, errors + 1.0, target))


def _agreement(labels: EscalationLabels, rows: Bools, *, level: float) -> Estimate:
    agreed, n = _effective(labels, rows)
    n_groups = len(np.unique(labels.group[rows]))
    low, high = wilson(agreed, n, t_quantile(level, n_groups - 1.0))
    n_kept = int(rows.sum())
    method = f"Wilson on the effective n, t({n_groups - 1})"
    return Estimate(agreed, low, high, level, n=n_kept, n_expected=n_kept, n_groups=n_groups, method=method)
