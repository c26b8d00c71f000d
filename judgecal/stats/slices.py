"""Where a judge errs more, or less, than elsewhere: slices of the items, each held against all others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammainc, gammaincc, ndtr, ndtri, stdtr

from judgecal.errors import InputError
from judgecal.records import Estimate
from judgecal.stats.intervals import MIN_GROUPS, mean_estimate
from judgecal.stats.sample import Bools, Floats, Ints, Labels, codes_of
from judgecal.stats.significance import holm

_EPS = 1e-15
_NO_SKEW = 1e-4  # below which the tails are normal ones
_LEAST = 1e-300  # whose normal quantile is still a number


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice held against all other items."""

    error: Estimate  # its mean
    rest: float  # that of all other items
    p_value: float  # two-sided, of no difference, by itself
    stands_out: bool  # by Holm over all slices


def slices(
    errors: Sequence[float] | Floats,
    members: Sequence[Bools],
    groups: Labels,
    *,
    low: float = 0.0,
    high: float = 1.0,
    level: float = 0.95,
) -> list[Slice | None]:
    """Each slice's mean error (members: a mask each), and whether it differs from all other items'.

    A slice of fewer than ten questions, or with fewer outside it, is None and no test. Two slices of the same
    items, or of which one is the rest of the other, are one test.

    The test takes errors to be exchangeable: were the slice of no account, any two items of a question, and
    any two questions, could change places. Then variance and skewness of the difference follow from how
    errors hang together within the questions of the whole set (ten right answers have no spread of their
    own). A gamma distribution with these moments gives the tails, brought from the normal to t(G-1), or to a
    t of fewer degrees of freedom where long tails of the errors ask for it.

    Args:
        errors: n, 0 or 1 or an amount with its sign; NaN where there is no verdict.
        members: of each slice n, whether the item belongs to it.
        groups: n, the question of each item.
        low, high: the ends that an error can have.
        level: of the intervals; all slices together are tested at 1 - level.
    """
    every, codes = np.asarray(errors, dtype=np.float64), codes_of(groups, len(errors))
    if any(len(member) != len(every) for member in members):
        raise InputError(f"{len(every)} errors: give each slice as many yes or no, one an item")
    scored = ~np.isnan(every)
    null = _Exchangeable.of(every[scored], codes[scored])
    tested: dict[bytes, float] = {}
    keys: list[bytes] = []
    for member in members:
        inside = member[scored]
        fewest = min(np.count_nonzero(np.bincount(null.codes[side])) for side in (inside, ~inside))
        keys.append((inside ^ inside[0]).tobytes() if fewest >= MIN_GROUPS else b"")
        if keys[-1] and keys[-1] not in tested:
            tested[keys[-1]] = null.p_value(inside)
    adjusted = dict(zip(tested, holm([*tested.values()]), strict=True))
    measured: list[Slice | None] = []
    for member, key in zip(members, keys, strict=True):
        p = adjusted.get(key)
        if p is None:
            measured.append(None)
            continue
        member_codes = codes[member].tolist()
        mean = mean_estimate(every[member], member_codes, low=low, high=high, level=level)
        mean = replace(mean, n_unscored=mean.n_expected - mean.n)
        others_mean = float(np.nanmean(every[~member]))
        measured.append(Slice(mean, others_mean, tested[key], p < round(1.0 - level, 12)))
    return measured


@dataclass(frozen=True)
class _Exchangeable:
    """How errors hang together were no slice of account, over the items that have a verdict.

    With e, f, g the errors, less their mean, of different items of one question: the means of e^2 and e^3, of
    e f and e^2 f, and of e f g; and the excess kurtosis of the sums of the questions.
    """

    apart: Floats  # n, each error less the mean
    codes: Ints  # n
    sizes: Floats  # items of each group
    square: float
    cube: float
    pair: float
    square_pair: float
    triple: float
    excess: float

    @classmethod
    def of(cls, errors: Floats, codes: Ints) -> _Exchangeable:
        """Read from errors and their groups."""
        apart = errors - errors.mean() if len(errors) else errors
        n, sums, squares, cubes = (
            np.bincount(codes, weights=apart**power).astype(np.float64) for power in range(4)
        )

        def mean(total: Floats, number: Floats) -> float:
            return float(total.sum() / number.sum()) if number.sum() > 0.0 else 0.0

        square, pair = mean(squares, n), max(0.0, mean(sums**2 - squares, n * (n - 1.0)))
        spread = square * n + pair * n * (n - 1.0)
        return cls(
            apart=apart,
            codes=codes,
            sizes=n,
            square=square,
            cube=mean(cubes, n),
            pair=pair,
            square_pair=mean(sums * squares - cubes, n * (n - 1.0)),
            triple=mean(sums**3 - 3.0 * sums * squares + 2.0 * cubes, n * (n - 1.0) * (n - 2.0)),
            excess=mean(sums**4 / np.where(spread > 0.0, spread, 1.0) ** 2, np.sign(n)) - 3.0,
        )

    def p_value(self, inside: Bools) -> float:
        """Two-sided p of the difference of the items inside and all others."""
        there = np.bincount(self.codes, weights=inside, minlength=len(self.sizes))
        n, others = there.sum(), self.sizes - there
        # sums over each group of its items' weights in the difference, of their squares and of their cubes
        first, two, three = (
            there / n**power + (-1) ** power * others / (len(inside) - n) ** power for power in (1, 2, 3)
        )
        parts = self.square * two + self.pair * (first**2 - two)
        variance = float(parts.sum())
        third = self.cube * three + 3.0 * self.square_pair * (first * two - three)
        third += self.triple * (first**3 - 3.0 * first * two + 2.0 * three)
        if variance <= _EPS:
            return 1.0
        n_groups = float((self.sizes > 0.0).sum())
        z = float(self.apart[inside].mean() - self.apart[~inside].mean())
        z /= math.sqrt(variance * n_groups / (n_groups - 1.0))
        least = min(_above(z, skew := float(third.sum()) / variance**1.5), _above(-z, -skew))
        # the kurtosis that a gamma distribution of this skewness lacks is that of a t of fewer degrees
        lacking = self.excess * float((parts**2).sum()) / variance**2 - 1.5 * skew**2
        df = min(n_groups - 1.0, 4.0 + 6.0 / max(lacking, _EPS))
        return min(1.0, 2.0 * float(stdtr(df, ndtri(max(least, _LEAST)))))


def _above(z: float, skew: float) -> float:
    """The chance of more than z under a gamma distribution of mean 0, variance 1 and that skewness."""
    if abs(skew) < _NO_SKEW:
        return float(ndtr(-z))
    shape = 4.0 / skew**2
    reached = max(0.0, shape + math.copysign(math.sqrt(shape), skew) * z)
    return float(gammaincc(shape, reached) if skew > 0.0 else gammainc(shape, reached))
