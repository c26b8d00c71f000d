"""The share that is right, from the share that passes and error rates measured elsewhere; and whether these
still hold; and which rows a person must read.

A judge with sensitivity s and specificity c passes p = t s + (1 - t)(1 - c) of answers of which a share t is
right, so t = (p + c - 1) / (s + c - 1) (Rogan and Gladen 1978). That takes for granted that s and c are the
same here as where they were measured. All three are estimates: the interval holds every t for which p - t s -
(1 - t)(1 - c) may be 0, the test of Fieller (1954), so that it stays true where s + c is hardly above 1; and
that difference has limits from Wilson's of each rate (MOVER: Zou and Donner 2008), so that it stays true near
0 and 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import betainc, chdtrc, expit, logit, rel_entr

from judgecal.records import Estimate
from judgecal.stats.intervals import check_level, mean_estimate, t_quantile, wilson
from judgecal.stats.sample import Bools, Floats, Ints

_GRID = 4000  # steps of the share, 0..1
_EPS = 1e-12
_INSIDE = 0.002  # from 0 and 1, where a search begins
_CLOSE = {"fatol": 1e-6, "xatol": 1e-5, "maxiter": 600}


@dataclass(frozen=True, slots=True)
class CarriedRate:
    """A share corrected by error rates that were measured elsewhere.

    Attributes:
        estimate: within 0..1; without a value where the judge was seen to be no better than chance.
        fits: whether some share is in keeping with all three rates.
    """

    estimate: Estimate
    fits: bool = True


def carried_rate(
    raw: Estimate, sensitivity: Estimate, specificity: Estimate, *, level: float = 0.95
) -> CarriedRate:
    """Return a CarriedRate, from three Estimates: of a raw pass rate, of sensitivity and of specificity."""
    counts = replace(raw, value=None, low=None, high=None, level=level, method="", reason=None)
    lacking = next((rate for rate in (raw, sensitivity, specificity) if rate.value is None), None)
    if lacking is not None:
        return CarriedRate(replace(counts, reason=lacking.reason or "an error rate is not known"))
    p, s, c = (float(rate.value or 0.0) for rate in (raw, sensitivity, specificity))
    better = s + c - 1.0
    if better <= _EPS:
        reason = (
            f"sensitivity and specificity add up to {s + c:.3f}: no better than chance, and nothing to "
            "correct by"
        )
        return CarriedRate(replace(counts, reason=reason))
    estimate = replace(counts, value=min(1.0, max(0.0, (p + c - 1.0) / better)))
    for name, rate in (
        ("the raw rate", raw),
        ("the sensitivity", sensitivity),
        ("the specificity", specificity),
    ):
        if rate.low is None or rate.high is None:
            return CarriedRate(replace(estimate, reason=f"{name} has no interval: {rate.reason}"))
    limits = _limits(raw, sensitivity, specificity, level=level)
    if limits is None:
        reason = "no share is in keeping with these verdicts and the error rates"
        return CarriedRate(replace(estimate, reason=reason), fits=False)
    low, high = min(limits[0], estimate.value or 0.0), max(limits[1], estimate.value or 0.0)
    return CarriedRate(replace(estimate, low=low, high=high, method="Rogan-Gladen, Fieller with MOVER"))


def _limits(
    raw: Estimate, sensitivity: Estimate, specificity: Estimate, *, level: float
) -> tuple[float, float] | None:
    """The lowest and the highest share that the test does not refuse."""
    (p, p_down, p_up), (s, s_down, s_up), (c, c_down, c_up) = (
        limits_around(rate, level) for rate in (raw, sensitivity, specificity)
    )
    share = np.linspace(0.0, 1.0, _GRID + 1)
    failing = 1.0 - share
    apart = p - share * s - failing * (1.0 - c)
    low = apart - np.sqrt(p_down**2 + (share * s_up) ** 2 + (failing * c_down) ** 2)
    high = apart + np.sqrt(p_up**2 + (share * s_down) ** 2 + (failing * c_up) ** 2)
    inside = np.flatnonzero((low <= 0.0) & (high >= 0.0))
    if not len(inside):
        return None
    return max(0, int(inside[0]) - 1) / _GRID, min(_GRID, int(inside[-1]) + 1) / _GRID


def limits_around(rate: Estimate, level: float) -> tuple[float, float, float]:
    """Return (value, distance below, distance above), from an Estimate of a rate and another level."""
    value, low, high = float(rate.value or 0.0), float(rate.low or 0.0), float(rate.high or 0.0)
    n = effective_n(rate)
    if abs(level - rate.level) > _EPS and math.isfinite(n):
        low, high = wilson(value, n, t_quantile(level, max(1.0, rate.n_groups - 1.0)))
    return value, value - low, high - value


def effective_n(rate: Estimate) -> float:
    """Return the number of trials, a float, that an Estimate of a rate is worth; infinite without width.

    Wilson's limits l of a rate r solve (r - l)^2 = t^2 / n l (1 - l): n is read off one that is inside.
    """
    value, low, high = float(rate.value or 0.0), float(rate.low or 0.0), float(rate.high or 0.0)
    parts = [(value - end) ** 2 / (end * (1.0 - end)) for end in (low, high) if _EPS < end < 1.0 - _EPS]
    if not parts or max(parts) <= _EPS:
        return math.inf
    return t_quantile(rate.level, max(1.0, rate.n_groups - 1.0)) ** 2 / max(parts)


def shift_p(
    sensitivity: Estimate, specificity: Estimate, *, passing: Estimate, precision: Estimate, missed: Estimate
) -> float | None:
    """Return a p value from five Estimates: sensitivity, specificity, passing, precision and missed.

    `passing` is the share of the table's rows that pass; `precision` and `missed` are the shares that are
    right of labelled rows that pass, and that fail: however rows were drawn by verdict, they hold.

    The labels count given their verdicts, and the share that is right is free: with s, c and t for
    sensitivity, specificity and that share, a row passes with p = t s + (1 - t)(1 - c), is right with t s / p
    where it passes, and with t (1 - s) / (1 - p) where it fails. Each of the five rates counts as so many
    independent trials as its interval rests on; one without an interval is left out. Two rates of the sample
    at least are needed beside the lock's two.

    Returns:
        None where they cannot be held against each other.
    """
    locked, seen = (sensitivity, specificity), (passing, precision, missed)
    bounded = [rate.low is not None and rate.high is not None for rate in seen]
    if any(rate.low is None or rate.high is None for rate in locked) or not bounded[0] or sum(bounded) < 2:
        return None
    every = [*locked, *(rate for rate, there in zip(seen, bounded, strict=True) if there)]
    values = np.array([float(rate.value or 0.0) for rate in every])
    sizes = np.array([min(effective_n(rate), float(max(rate.n, 1))) for rate in every])
    among = np.array([True, True, *bounded])

    def apart(place: Floats) -> float:
        s, c, t = expit(place)
        p = t * s + (1.0 - t) * (1.0 - c)
        rates = np.array([s, c, p, t * s / p, t * (1.0 - s) / (1.0 - p)])[among]
        return 2.0 * float(sizes @ (rel_entr(values, rates) + rel_entr(1.0 - values, 1.0 - rates)))

    inside = [min(1.0 - _INSIDE, max(_INSIDE, float(rate.value or 0.0))) for rate in locked]
    starts = (logit(np.array([*inside, share])) for share in (0.1, 0.5, 0.9))
    least = min(float(minimize(apart, start, method="Nelder-Mead", options=_CLOSE).fun) for start in starts)
    return float(chdtrc(sum(bounded) - 1, max(0.0, least)))


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
    """Return an Escalation from confidences of all rows, EscalationLabels, and a target of agreement.

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
        agreement = _agreement(labels, confident, level=level)
        if agreement.low is None or _p_value(agreement, target) > 1.0 - level:
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


def _agreement(labels: EscalationLabels, rows: Bools, *, level: float) -> Estimate:
    """Estimate the agreement of judge and people on the labelled rows of a mask, by question."""
    agrees, weight = labels.agrees[rows].astype(np.float64), labels.weight[rows]
    return mean_estimate(agrees, labels.group[rows], level=level, weights=weight)


def _p_value(agreement: Estimate, target: float) -> float:
    """Chance of so few errors on the effective n of an agreement or fewer, were it the target."""
    n = effective_n(agreement)
    errors = n * (1.0 - (agreement.value or 0.0))
    return 1.0 if errors >= n else float(betainc(n - errors, errors + 1.0, target))
