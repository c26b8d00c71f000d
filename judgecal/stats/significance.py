"""Is a difference more than chance? P values by group, several together, and what could be shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import bdtr, ndtr, stdtrit

from judgecal.errors import InputError
from judgecal.stats.intervals import t_quantile
from judgecal.stats.sample import Floats

N_PERM = 10_000
"""Monte Carlo draws of a sign flip test."""

_EXACT = 16  # parts up to which all 2^k sign patterns are enumerated
_BLOCK = 250_000  # signs in one block: small enough to stay in the cache
_EPS = 1e-12
PLANNED_DISCORDANCE = 0.5
"""How much two judges are planned to differ, as a share of what two that err independently would."""
MARGIN = 0.03
"""The loss that is allowed where not said otherwise, in units of the metric."""
POWER = 0.80
"""The chance at which a difference counts as detectable."""
OUT_OF_REACH = 10_000
"""More further questions than this are not named: nobody labels as many."""


def sign_flip_p(parts: Floats, *, n_perm: int = N_PERM, seed: int = 0) -> tuple[float, str]:
    """Two-sided p that the groups' parts of a difference add up to so much by chance of their signs.

    Exact over all sign patterns up to 16 parts that are not 0; above, `n_perm` seeded draws with the +1 rule,
    (1 + hits) / (1 + draws). Source: Fisher (1935); Phipson and Smyth (2010) for the +1.
    """
    moving = parts[np.abs(parts) > _EPS]
    reached = abs(float(moving.sum())) - _tie(moving)
    if len(moving) <= _EXACT:
        return float(np.mean(np.abs(_all_sums(moving)) >= reached)), "sign flips by group, exact"
    rng = np.random.default_rng(seed)
    hits, block = 0, max(1, _BLOCK // len(moving))
    for start in range(0, n_perm, block):
        flips = random_bits(rng, (min(block, n_perm - start), len(moving)))
        hits += int(np.sum(np.abs(moving.sum() - 2.0 * (flips @ moving)) >= reached))
    return (1.0 + hits) / (1.0 + n_perm), f"sign flips by group, {n_perm} draws"


def random_bits(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Draw a 0/1 array of a shape; eight bits from a random byte, the main cost of a sign flip test."""
    drawn = rng.integers(0, 256, size=-(-shape[0] * shape[1] // 8), dtype=np.uint8)
    return np.unpackbits(drawn, count=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def mcnemar_midp(only_a: int, only_b: int) -> float:
    """Two-sided mid-p of McNemar's test, 0..1: `only_a` items that a alone got right against `only_b`.

    2 P(X < m) + P(X = m), X ~ Binomial(only_a + only_b, 1/2), m the smaller count: the exact p less P(X = m),
    which is too cautious; 1 for two judges that never differ. For independent items only; a negative count is
    an InputError. Source: Fagerland et al. (2013).
    """
    if only_a < 0 or only_b < 0:
        raise InputError(f"discordant pairs cannot number {only_a} and {only_b}: give counts from 0 on")
    if only_a == only_b:
        return 1.0
    fewer, n = min(only_a, only_b), only_a + only_b
    below = float(bdtr(fewer - 1.0, n, 0.5)) if fewer else 0.0
    return below + float(bdtr(float(fewer), n, 0.5))


def clustered_mcnemar_p(net: Floats) -> tuple[float, str]:
    """Two-sided p of McNemar's test on the net wins of groups, and the method's name.

    With `net` d_g = (items of group g that a alone got right) - (those that b alone did), no difference of
    the judges lets every d_g change its sign: z = sum d_g / sqrt(sum d_g^2) (Durkalski et al. 2003). Where at
    most 16 groups have a difference that normal approximation is replaced by the distribution over all sign
    patterns, as mid-p; with one item a group that is `mcnemar_midp`.
    """
    moving = net[np.abs(net) > _EPS]
    observed, tie = abs(float(moving.sum())), _tie(moving)
    if observed <= tie:
        return 1.0, "clustered McNemar"
    if len(moving) > _EXACT:
        return float(2.0 * ndtr(-observed / np.sqrt((moving**2).sum()))), "clustered McNemar"
    sums = np.abs(_all_sums(moving))
    beyond, equal = sums > observed + tie, np.abs(sums - observed) <= tie
    return float(beyond.mean() + equal.mean() / 2.0), "clustered McNemar, exact mid-p"


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p values, in the order given: each may be held against the level by itself.

    The k-th smallest of m becomes the largest of (m - j + 1) p_(j) over j <= k, at most 1: the chance of any
    false claim among the m stays below the level, whatever their dependence. A test that could not be made
    (None) stays None and is not counted; a value outside 0..1 is an InputError. Source: Holm (1979).
    """
    wrong = [p for p in p_values if p is not None and not 0.0 <= p <= 1.0]
    if wrong:
        raise InputError(f"p values lie between 0 and 1, found {', '.join(f'{p:g}' for p in wrong)}")
    ordered = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - rank) * p))
        adjusted[place] = largest
    return adjusted


def _all_sums(parts: Floats) -> Floats:
    """The sums under all 2^k patterns of signs."""
    sums = np.zeros(1)
    for part in parts.tolist():
        sums = np.concatenate([sums + part, sums - part])
    return sums


def _tie(parts: Floats) -> float:
    """How far apart two sums may lie and still be one, for rounding's sake."""
    return 1e-9 * float(np.abs(parts).sum())


def planned_error(a_error: float, b_error: float) -> float:
    """Standard error by group that the paired difference of two such judges is planned to have, from those of
    each alone.

    sqrt(PLANNED_DISCORDANCE (v_a + v_b)), v the squared errors: v_a + v_b is the variance of the difference
    of two judges that err independently. Judges find the same items hard: the three recorded judges of a
    public set of 301 questions are discordant on 0.40 to 0.48 of so many items. Why a plan and not the data:
    how far these two were seen to differ is 0 for two equal judges, who would then be said to show any
    difference. Simulated power at the smallest detectable difference is 0.80 for single items, 0.84 to 0.94
    for 2 to 12 a question.
    """
    return math.sqrt(PLANNED_DISCORDANCE * (a_error**2 + b_error**2))


def smallest_detectable(error: float, df: float, *, level: float = 0.95) -> float:
    """The true difference that a test finds with `POWER` at a standard error: (t_level + t_power) error.

    `error` is the standard error of the paired difference on `df` degrees of freedom, planned or otherwise
    known, never from the difference seen. Source: Bloom (1995), with t for small numbers of groups.
    """
    return (t_quantile(level, df) + float(stdtrit(df, POWER))) * error
