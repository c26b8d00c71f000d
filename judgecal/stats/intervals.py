"""Intervals for grouped data: the items of one question are not independent.

Below ten groups there is no interval at all. Which method serves which metric was settled by measuring
coverage (tests/benchmarks/coverage.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit, stdtrit

from judgecal.errors import InputError
from judgecal.records import Estimate
from judgecal.stats.means import LinearMean, linear_mean
from judgecal.stats.sample import Bools, Floats, Sample, codes_of

MIN_GROUPS = 10
"""Fewer groups than this give no interval."""
MIN_CLASS = 10
"""Fewer items than this in a class give no interval for its rate."""
MIN_STRATUM = 3
"""Fewer items than this in a class or third of the scale give no interval of a mean over them."""

_NO_SPREAD = "no spread between groups to make an interval from"
_EPS = 1e-12
_FAR = 500.0  # exp of it is still a number


@dataclass(frozen=True)
class Interval:
    """The ends of an interval and how they were made, or the reason why there are none."""

    low: float | None = None
    high: float | None = None
    method: str = ""
    reason: str | None = None

    def of(self, value: float, counts: Estimate) -> Estimate:
        """Return an Estimate with this Interval, from its value and an Estimate whose counts it takes."""
        return replace(
            counts, value=value, low=self.low, high=self.high, method=self.method, reason=self.reason
        )


def check_level(level: float) -> None:
    """Refuse (InputError) an interval's level, a number, that is not between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level:g}: an interval's level lies between 0 and 1")


def too_few(n_groups: int, *, gives: str = "interval") -> str:
    """Why so few groups give no interval."""
    return f"{n_groups} group{'s' * (n_groups != 1)}: fewer than {MIN_GROUPS} give no {gives}"


def t_quantile(level: float, df: float) -> float:
    """The two-sided quantile of Student's t: 95% of it lies within plus and minus this."""
    return float(stdtrit(df, 0.5 + level / 2.0))


def wilson(rate: float, n: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's (1927) interval (low, high), from a rate, its n trials, and a normal quantile."""
    q2 = quantile * quantile / n
    centre = (rate + q2 / 2.0) / (1.0 + q2)
    half = quantile / (1.0 + q2) * math.sqrt(rate * (1.0 - rate) / n + q2 / (4.0 * n))
    return max(0.0, min(centre - half, rate)), min(1.0, max(centre + half, rate))


def linear_error(linear: LinearMean) -> tuple[float, float]:
    """Return (standard error, degrees of freedom) of a LinearMean, a linearised mean of ratios.

    With u_gs the influence of group g on stratum s and G_s the groups there:
    se^2 = sum_g (sum_s w_s u_gs sqrt(G_s / (G_s - 1)))^2. With one stratum that is the usual G / (G - 1)
    correction and t(G-1); with several, df = (sum v_s)^2 / sum(v_s^2 / (G_s - 1)) after Satterthwaite (1946),
    at most G - 1, as the few groups of the smallest stratum carry most of the error.
    NaN where a stratum rests on one group.
    """
    used = linear.weights > 0.0
    spare = linear.groups[used] - 1.0
    if spare.min() < 1.0:
        return math.nan, math.nan
    scaled = linear.influence[:, used] * linear.weights[used] * np.sqrt(linear.groups[used] / spare)
    parts = (scaled**2).sum(axis=0)
    spread = float((parts**2 / spare).sum())
    df = float(parts.sum()) ** 2 / spread if spread > 0.0 else math.inf
    return math.sqrt(float((scaled.sum(axis=1) ** 2).sum())), min(linear.all_groups - 1.0, df)


@dataclass(frozen=True)
class IntervalBasis:
    """How an interval is made: range (an end may be infinite), groups, and the influences' method."""

    how: str
    low: float
    high: float
    n_groups: int


def linear_interval(linear: LinearMean, *, level: float) -> Interval:
    """Make the Interval of a LinearMean, from it and a level, by its groups' influences."""
    means, influence = linear.means, linear.influence @ linear.weights
    if means.root:
        return _root_interval(linear, influence, level=level)
    made = IntervalBasis("linearised by group", means.low, means.high, linear.all_groups)
    return smooth_interval(linear.value, influence, made, level=level)


def _root_interval(linear: LinearMean, influence: Floats, *, level: float) -> Interval:
    """Interval of a root mean square: the jackknife of its logarithm, as few groups hold most squares."""
    with np.errstate(divide="ignore", invalid="ignore"):  # without the only group there is no mean
        without = linear.value**2 - 2.0 * linear.value * influence / (1.0 - linear.share @ linear.weights)
    if linear.value <= 0.0:
        return Interval(reason=_NO_SPREAD)
    if without.min() <= _EPS * linear.value**2:
        return Interval(reason="all of the error lies in one group")
    made = IntervalBasis("jackknife of the log by group", -math.inf, math.inf, linear.all_groups)
    logs = jackknife_interval(math.log(linear.value), np.log(without) / 2.0, made, level=level)
    if logs.low is None or logs.high is None:
        return logs
    high = min(math.exp(min(logs.high, _FAR)), linear.means.high)
    return Interval(math.exp(logs.low), max(high, linear.value), logs.method)


def jackknife_interval(value: float, left_out: Floats, made: IntervalBasis, *, level: float) -> Interval:
    """Make an Interval from a value, an array of values without each group, an IntervalBasis and a level."""
    if not np.all(np.isfinite(left_out)):
        return Interval(reason="undefined without one of the groups")
    influence = (1.0 - 1.0 / len(left_out)) * (left_out.mean() - left_out)
    return smooth_interval(value, influence, made, level=level)


def freedom(parts: Floats, n_groups: int) -> float:
    """Return degrees of freedom of an error, a float, from an array of groups' parts and n_groups.

    (G - 1) min(1, 2 / (k - 1)) after Satterthwaite (1946), k the kurtosis of the parts, put up by (G + 1) /
    (G - 1) as that of a normal sample is as much too small.
    """
    n, squares = n_groups, float((parts**2).sum())
    kurtosis = n * float((parts**4).sum()) / squares**2 * (n + 1.0) / (n - 1.0)
    return (n - 1.0) * (min(1.0, 2.0 / (kurtosis - 1.0)) if kurtosis > 1.0 else 1.0)


def smooth_interval(value: float, influence: Floats, made: IntervalBasis, *, level: float) -> Interval:
    """Make an Interval from a value, each group's influence, an IntervalBasis and a level. It is by t on a
    scale on which the range has no ends.

    se^2 = G / (G - 1) sum(u_g^2) is taken, by the derivative, to the logit of the place in the range, or to
    the log of the distance from the one end that there is; df is that of `freedom`. Where nothing
    ends the range below (skill, the log of an error) no scale takes the skewness in, and se^2 is put up as
    much.
    """
    n, squares = made.n_groups, float((influence**2).sum())
    slack = (n + 1.0) / (n - 1.0) if math.isinf(made.low) else 1.0
    se = math.sqrt(slack * n / (n - 1.0) * squares)
    to_end = min(value - made.low, made.high - value)
    if not (se > _EPS * max(1.0, abs(value)) and to_end > _EPS):
        return Interval(reason=_NO_SPREAD)
    df = freedom(influence, n)
    low, high, scale = _spread(value, t_quantile(level, df) * se, made.low, made.high)
    return Interval(low, high, f"{made.how}{scale}, t({df:.3g})")


def _spread(value: float, half: float, low: float, high: float) -> tuple[float, float, str]:
    """Ends that lie `half` apart from the value on a scale without ends, and what that scale is called."""
    if math.isinf(high):
        return value - half, value + half, ""
    if math.isinf(low):
        gap, apart = high - value, min(half / (high - value), _FAR)
        return high - gap * math.exp(apart), high - gap * math.exp(-apart), ", log"
    span, share = high - low, (value - low) / (high - low)
    middle, apart = float(logit(share)), half / (span * share * (1.0 - share))
    lower, upper = (low + span * float(expit(end)) for end in (middle - apart, middle + apart))
    return min(lower, value), max(upper, value), ", logit"


def score_interval(linear: LinearMean, *, level: float) -> Interval:
    """Make an Interval from a LinearMean of rates and a level, by Wilson's of each on its effective n.

    A rate r (of a range taken to 0..1) with clustered variance V over n items has the design effect
    phi = V n / (r (1 - r)) and the effective n = n / phi (Korn and Graubard 1998). Proportions have phi >= 1
    and the t quantile on all groups. Graded scores may have phi < 1; a stratum then has at least the pooled
    phi, as a few equal scores are no proof of no spread. A rate of 0 or 1, or one that rests on a single
    group, has the pooled phi. The t quantile is on the groups that phi was measured on: a stratum's own, or
    those of all strata. Several rates are combined by their distances to their own limits (MOVER: Zou and
    Donner 2008), with the correlation of the groups' influences: a symmetric interval would hold too rarely
    where a class is small.
    """
    used = linear.weights > 0.0
    floor, span = linear.means.low, linear.means.high - linear.means.low
    rates = np.clip((linear.ratios[used] - floor) / span, 0.0, 1.0)
    influence, weights = linear.influence[:, used] / span, linear.weights[used]
    phi, df = _design_effects(linear, influence, rates)
    if not linear.two_valued and (np.any(np.isnan(phi)) or np.all(np.abs(influence @ weights) <= _EPS)):
        return Interval(reason=_NO_SPREAD)
    limits = [
        wilson(rate, n, t_quantile(level, spare))
        for rate, n, spare in zip(
            rates.tolist(), (linear.items[used] / phi).tolist(), df.tolist(), strict=True
        )
    ]
    together = _correlations(influence)
    below, above = (weights * np.abs(rates - side) for side in np.array(limits).T)
    middle = float(weights @ rates)
    low = max(0.0, middle - math.sqrt(max(0.0, float(below @ together @ below))))
    high = min(1.0, middle + math.sqrt(max(0.0, float(above @ together @ above))))
    t = f"t({df[0]:g})" if np.all(df == df[0]) else "t by stratum"
    method = f"Wilson, effective n, {t}" if len(rates) == 1 else f"Wilson by stratum, effective n, MOVER, {t}"
    return Interval(floor + span * low, floor + span * high, method)


def _design_effects(linear: LinearMean, influence: Floats, rates: Floats) -> tuple[Floats, Floats]:
    """Design effect of each rate, NaN where none is known, and the degrees of freedom that it rests on."""
    used = linear.weights > 0.0
    spread, spare = rates * (1.0 - rates), linear.groups[used] - 1.0
    on_all = np.full_like(rates, linear.all_groups - 1.0)
    usable = (spread > _EPS) & (spare > 0.0)
    if not usable.any():
        return np.ones_like(rates) if linear.two_valued else np.full_like(rates, np.nan), on_all
    variance = (influence**2).sum(axis=0) * linear.groups[used] / np.where(usable, spare, 1.0)
    effects = np.where(usable, variance * linear.items[used] / np.where(usable, spread, 1.0), 0.0)
    pooled = float((effects * spare)[usable].sum() / spare[usable].sum())
    if linear.two_valued:
        return np.maximum(np.where(usable, effects, pooled), 1.0), on_all
    return np.maximum(effects, pooled), np.where(
        usable & (effects >= pooled), spare, np.minimum(on_all, spare[usable].sum())
    )


def _correlations(influence: Floats) -> Floats:
    products = influence.T @ influence
    size = np.sqrt(np.diag(products))
    scale = np.outer(size, size)
    return np.where(np.eye(len(size)) > 0.0, 1.0, products / np.where(scale > 0.0, scale, 1.0))


def jackknife_error(left_out: Floats) -> float:
    """Return the standard error, a float, from an array of values without each group. Tukey (1958)."""
    n_groups = len(left_out)
    return math.sqrt((n_groups - 1.0) / n_groups * float(((left_out - left_out.mean()) ** 2).sum()))


def mean_estimate(
    values: Sequence[float] | Floats,
    groups: Iterable[Hashable],
    *,
    low: float = 0.0,
    high: float = 1.0,
    level: float = 0.95,
    weights: Floats | None = None,
) -> Estimate:
    """Return the Estimate of a mean, from values in low..high and their groups, which are independent.

    Where every number is one end of the range the mean is a proportion and has Wilson's interval on the
    effective n; all other means are linearised by group. A NaN counts in n_expected, and not in n.

    `weights`: of each number, 1 / its chance of being drawn. The effective n is then at most Kish's, by
    groups: the first labels may all be the same, or all but one of little weight.
    """
    check_level(level)
    numbers = np.asarray(values, dtype=np.float64)
    group_of = codes_of(groups, len(numbers))
    defined = ~np.isnan(numbers)
    if not defined.any():
        return Estimate(None, level=level, n_expected=len(numbers), reason="no rows to take a mean of")
    used = None if weights is None else weights[defined]
    linear = linear_mean(numbers[defined], group_of[defined], low=low, high=high, weights=used)
    if linear.all_groups < MIN_GROUPS:
        interval = Interval(reason=too_few(linear.all_groups))
    else:
        interval = (score_interval if linear.two_valued else linear_interval)(linear, level=level)
    if weights is not None and interval.method:
        interval = replace(interval, method=f"weighted by the draw, {interval.method}")
    counts = Estimate(
        None, level=level, n=int(defined.sum()), n_expected=len(numbers), n_groups=linear.all_groups
    )
    return interval.of(linear.value, counts)


_CELLS = 100_000  # numbers in one block of sums: small enough to stay in the cache


@dataclass(frozen=True)
class Totals:
    """A statistic of sums over the pairs: G x R x K `sums` per group and repeat; `combine` takes ... x K
    totals to ... values, NaN where undefined.
    """

    sums: Floats
    combine: Callable[[Floats], Floats]
    used: Bools
    undefined: str

    @classmethod
    def of(
        cls, rows: Floats, sample: Sample, combine: Callable[[Floats], Floats], *, undefined: str
    ) -> Totals:
        """Make Totals from rows (n x R x K), a Sample, a function `combine`, and a text why undefined."""
        scored = sample.scored
        values = rows if scored.all() else np.where(scored[..., None], rows, 0.0)
        return cls(sample.per_group(values), combine, scored, undefined)

    def values(self) -> Floats:
        """R values."""
        return self.combine(self.sums.sum(axis=0))

    def without_each(self) -> Floats:
        """Return the values without each group in turn, by subtraction, an array G x R."""
        rows = max(1, _CELLS // max(1, self.sums[0].size))
        totals = self.sums.sum(axis=0)
        parts = [self.sums[start : start + rows] for start in range(0, len(self.sums), rows)]
        return np.concatenate([self.combine(totals - part) for part in parts])


def divide(top: Floats, bottom: Floats, *, tiny: float = 0.0) -> Floats:
    """Return the array top / bottom, from two arrays; NaN where the bottom is not above `tiny`."""
    defined = bottom > tiny
    return np.where(defined, top / np.where(defined, bottom, 1.0), np.nan)
