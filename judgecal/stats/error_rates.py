"""The share that is right, from the share that passes and error rates measured elsewhere; and whether these still hold.

A judge with sensitivity s and specificity c passes p = t s + (1 - t)(1 - c) of answers of which a share t is right, so
t = (p + c - 1) / (s + c - 1) (Rogan and Gladen 1978). That takes for granted that s and c are the same here as where
they were measured. All three are estimates: the interval holds every t for which p - t s - (1 - t)(1 - c) may be 0,
the test of Fieller (1954), so that it stays true where s + c is hardly above 1; and that difference has limits from
Wilson's of each rate (MOVER: Zou and Donner 2008), so that it stays true near 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtrc, rel_entr

from judgecal.records import Estimate
from judgecal.stats.intervals import t_quantile, wilson

_GRID = 4000  # steps of the share, 0..1
_EPS = 1e-12


@dataclass(frozen=True, slots=True)
class CarriedRate:
    """A share corrected by error rates that were measured elsewhere.

    Attributes:
        estimate: within 0..1; without a value where the judge was seen to be no better than chance.
        unclipped: what the formula gives; outside 0..1 the error rates do not fit these verdicts.
        fits: whether some share is in keeping with all three rates.
    """

    estimate: Estimate
    unclipped: float | None
    fits: bool = True


def carried_rate(raw: Estimate, sensitivity: Estimate, specificity: Estimate, *, level: float = 0.95) -> CarriedRate:
    """The share that is right, from the raw share that passes here and error rates from elsewhere, all within 0..1."""
    counts = replace(raw, value=None, low=None, high=None, level=level, method="", reason=None)
    lacking = next((one for one in (raw, sensitivity, specificity) if one.value is None), None)
    if lacking is not None:
        return CarriedRate(replace(counts, reason=lacking.reason or "an error rate is not known"), None)
    p, s, c = (float(one.value or 0.0) for one in (raw, sensitivity, specificity))
    better = s + c - 1.0
    if better <= _EPS:
        reason = f"sensitivity and specificity add up to {s + c:.3f}: no better than chance, and nothing to correct by"
        return CarriedRate(replace(counts, reason=reason), None)
    unclipped = (p + c - 1.0) / better
    found = replace(counts, value=min(1.0, max(0.0, unclipped)))
    for name, one in (("the raw rate", raw), ("the sensitivity", sensitivity), ("the specificity", specificity)):
        if one.low is None or one.high is None:
            return CarriedRate(replace(found, reason=f"{name} has no interval: {one.reason}"), unclipped)
    limits = _limits(raw, sensitivity, specificity, level=level)
    if limits is None:
        reason = "no share is in keeping with these verdicts and the error rates"
        return CarriedRate(replace(found, reason=reason), unclipped, fits=False)
    low, high = min(limits[0], found.value or 0.0), max(limits[1], found.value or 0.0)
    return CarriedRate(replace(found, low=low, high=high, method="Rogan-Gladen, Fieller with MOVER"), unclipped)


def _limits(raw: Estimate, sensitivity: Estimate, specificity: Estimate, *, level: float) -> tuple[float, float] | None:
    """The lowest and the highest share that the test does not refuse."""
    (p, p_down, p_up), (s, s_down, s_up), (c, c_down, c_up) = (
        limits_around(one, level) for one in (raw, sensitivity, specificity)
    )
    share = np.linspace(0.0, 1.0, _GRID + 1)
    rest = 1.0 - share
    apart = p - share * s - rest * (1.0 - c)
    low = apart - np.sqrt(p_down**2 + (share * s_up) ** 2 + (rest * c_down) ** 2)
    high = apart + np.sqrt(p_up**2 + (share * s_down) ** 2 + (rest * c_up) ** 2)
    inside = np.flatnonzero((low <= 0.0) & (high >= 0.0))
    if not len(inside):
        return None
    return max(0, int(inside[0]) - 1) / _GRID, min(_GRID, int(inside[-1]) + 1) / _GRID


def limits_around(found: Estimate, level: float) -> tuple[float, float, float]:
    """A rate, and how far its limits lie below and above it at another level than its own; both must be there."""
    value, low, high = float(found.value or 0.0), float(found.low or 0.0), float(found.high or 0.0)
    n = effective_n(found)
    if abs(level - found.level) > _EPS and math.isfinite(n):
        low, high = wilson(value, n, t_quantile(level, max(1.0, found.n_groups - 1.0)))
    return value, value - low, high - value


def effective_n(found: Estimate) -> float:
    """On how many independent trials the interval of a rate rests; infinite where it has no width.

    Wilson's limits l of a rate r solve (r - l)^2 = t^2 / n l (1 - l): n is read off one that is inside.
    """
    value, low, high = float(found.value or 0.0), float(found.low or 0.0), float(found.high or 0.0)
    parts = [(value - end) ** 2 / (end * (1.0 - end)) for end in (low, high) if _EPS < end < 1.0 - _EPS]
    if not parts or max(parts) <= _EPS:
        return math.inf
    return t_quantile(found.level, max(1.0, found.n_groups - 1.0)) ** 2 / max(parts)


@dataclass(frozen=True, slots=True)
class Shift:
    """Whether rates of a labelled sample contradict those that a judge was locked with."""

    contradicts: bool
    p_value: float | None  # of all rates at once; None where none can be held against each other
    rates: Mapping[str, tuple[Estimate, Estimate]]  # name -> at lock time, in the sample


def shift(rates: Mapping[str, tuple[Estimate, Estimate]], *, level: float = 0.95) -> Shift:
    """Hold rates of two independent samples against each other, all at once, by their likelihood ratio.

    Each rate counts as so many independent trials as its interval rests on. Rates without an interval are passed over.
    A small gold set hides a shift from any test: with 25 items of each class and 200 labels here, a fall of both rates
    by 0.15 is seen in some 70% of samples (from 0.95 and 0.9) or 40% (from 0.7 and 0.6), and in 87 or 61% by a test
    that knows size and direction of the shift beforehand, which none can exceed (Neyman and Pearson 1933). In
    large samples no test has more power than this one on average over all directions (Wald 1943). With 150 items of
    each class these are 99 and 86% (simulated: `tests/benchmarks/corrected_rate.py`).
    """
    squares, n = 0.0, 0
    for one, other in rates.values():
        if None in (one.low, one.high, other.low, other.high):
            continue
        sizes = [min(effective_n(side), float(max(side.n, 1))) for side in (one, other)]
        values = [float(side.value or 0.0) for side in (one, other)]
        both = sum(size * value for size, value in zip(sizes, values, strict=True)) / sum(sizes)
        squares += 2.0 * sum(size * _divergence(value, both) for size, value in zip(sizes, values, strict=True))
        n += 1
    p_value = float(chdtrc(n, max(0.0, squares))) if n else None
    return Shift(p_value is not None and p_value < 1.0 - level, p_value, dict(rates))


def _divergence(rate: float, other: float) -> float:
    """Of a rate from another one, as a likelihood has it (Kullback and Leibler 1951)."""
    return float(rel_entr(rate, other) + rel_entr(1.0 - rate, 1.0 - other))
