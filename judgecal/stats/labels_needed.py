"""How many labels a rate takes: alone, with a judge's verdicts beside them, and drawn by strata of the verdict.

A judge whose verdicts correlate by r with the labels takes away r^2 of their variance at most, so that 1 - r^2 of the
labels do (Angelopoulos, Duchi and Zrnic 2023). That is the limit for a table without end, and for the judge as it was
seen elsewhere: no promise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from judgecal.errors import InputError
from judgecal.stats.intervals import MIN_GROUPS, t_quantile

_MOST = 10_000_000


@dataclass(frozen=True, slots=True)
class Spread:
    """What labels vary by, in the range 0..1 of their scale.

    Attributes:
        variance: of the labels.
        correlation: of labels and verdicts, -1..1.
        by_stratum: (share of the rows, standard deviation of their labels) by stratum of the verdict; may be empty.
    """

    variance: float
    correlation: float
    by_stratum: tuple[tuple[float, float], ...] = ()

    @property
    def with_judge(self) -> float:
        """The variance that the verdicts leave."""
        return self.variance * (1.0 - max(0.0, self.correlation) ** 2)

    @property
    def stratified(self) -> float | None:
        """The same per label where they are shared out to make it least (Neyman 1934); None without strata."""
        return sum(share * spread for share, spread in self.by_stratum) ** 2 if self.by_stratum else None


def spread_of_rates(right: float, sensitivity: float, specificity: float) -> Spread:
    """The spread of labels and verdicts of yes and no, from the share that is right and the judge's two rates."""
    passing = right * sensitivity + (1.0 - right) * (1.0 - specificity)
    variance = right * (1.0 - right)
    covariance = right * sensitivity - right * passing
    both = variance * passing * (1.0 - passing)
    correlation = covariance / math.sqrt(both) if both > 0.0 else 0.0
    strata = []
    for share, hits in ((passing, right * sensitivity), (1.0 - passing, right * (1.0 - sensitivity))):
        if share > 0.0:
            rate = min(1.0, max(0.0, hits / share))
            strata.append((share, math.sqrt(rate * (1.0 - rate))))
    return Spread(variance, correlation, tuple(strata))


def labels_for(half_width: float, variance: float, *, level: float = 0.95) -> int:
    """The fewest labels whose mean has an interval of this half width, at least ten; t(n - 1) on its standard error.

    Raises:
        InputError: the half width is not between 0 and 0.5.
    """
    if not 0.0 < half_width < 0.5:
        raise InputError(f"--half-width {half_width:g}: a half width lies between 0 and 0.5")
    low, high = MIN_GROUPS, _MOST
    while low < high:
        middle = (low + high) // 2
        if half_width_of(middle, variance, level=level) <= half_width:
            high = middle
        else:
            low = middle + 1
    return low


def half_width_of(n: int, variance: float, *, level: float = 0.95) -> float:
    """The half width of the interval of a mean of n labels, n >= 2."""
    return t_quantile(level, n - 1.0) * math.sqrt(variance / n)
