"""How many labels a rate takes: alone, with a judge's verdicts beside them, and drawn by strata of the
verdict.

What is expected of `corrected_mean` on so many labels, pseudo-rows and all, for a judge of yes and no with
the error rates that it had elsewhere, on a table without end: no promise
(`tests/benchmarks/corrected_rate.py` holds it against what `rate` gives).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from judgecal.errors import InputError
from judgecal.stats.intervals import MIN_GROUPS, t_quantile
from judgecal.stats.prediction_powered import KINDS, PSEUDO, share_limits, slope, unseen

_MOST = 10_000_000


@dataclass(frozen=True, slots=True)
class Design:
    """What labels come to, by their number: the rate's variance, and whether verdicts count in it."""

    variance: Callable[[int], float]
    weighed: bool = False


@dataclass(frozen=True)
class Spread:
    """What labels vary by, and how far verdicts tell them: the share that is right, the judge's rates."""

    right: float
    sensitivity: float
    specificity: float

    @cached_property
    def strata(self) -> tuple[tuple[float, float], ...]:
        """(share of the rows, share of them that is right) of those that pass and those that fail."""
        hits = self.right * self.sensitivity
        passing = hits + (1.0 - self.right) * (1.0 - self.specificity)
        parts = ((passing, hits), (1.0 - passing, self.right - hits))
        return tuple((share, min(1.0, max(0.0, own / share)) if share > 0.0 else 0.0) for share, own in parts)

    @property
    def correlation(self) -> float:
        """Of labels and verdicts, -1..1; 0 where one of them does not vary."""
        (passing, precision), _ = self.strata
        both = self.right * (1.0 - self.right) * passing * (1.0 - passing)
        return passing * (precision - self.right) / math.sqrt(both) if both > 0.0 else 0.0

    @property
    def by_stratum(self) -> tuple[tuple[float, float], ...]:
        """(share of the rows, standard deviation of their labels) of those that pass and those that fail."""
        return tuple((share, math.sqrt(rate * (1.0 - rate))) for share, rate in self.strata)

    @property
    def plain(self) -> Design:
        """Labels alone."""
        return Design(lambda n: _variance(n, [self.right], [1.0], 0.0, 1))

    @property
    def with_judge(self) -> Design:
        """With the verdicts, drawn from all rows alike."""
        return Design(self._with_judge, weighed=True)

    def _with_judge(self, n: int) -> float:
        shares = [share for share, _ in self.strata]
        cells = np.array([(share * rate, share * (1.0 - rate)) for share, rate in self.strata])
        weight = slope(np.tile([1.0, 0.0], 2), np.repeat([1.0, 0.0], 2), n * cells.ravel(), pseudo=KINDS)
        return _variance(n, [rate for _, rate in self.strata], shares, min(1.0, max(0.0, weight)), 1)

    def stratified(
        self, allocate: Callable[[Sequence[float], Sequence[float], int], Sequence[float]]
    ) -> Design:
        """Drawn by strata of the verdict, `allocate(shares, spreads, n)` of each."""

        def variance(n: int) -> float:
            there = [(share, rate) for share, rate in self.strata if share > 0.0]
            spreads = [math.sqrt(rate * (1.0 - rate)) for _, rate in there]
            sizes = allocate([share for share, _ in there], spreads, n)
            parts = (
                share**2 * _variance(size, [rate], [1.0], 0.0, len(there))
                for (share, rate), size in zip(there, sizes, strict=True)
            )
            return sum(parts)

        return Design(variance)

    def half_width(self, n: int, design: Design, *, level: float = 0.95) -> float:
        """The half width of the interval that n labels give, n >= 2."""
        quantile = t_quantile(level, n - 1.0)
        low, high = share_limits(self.right, n, design.variance(n), quantile, evened=design.weighed)
        return (high - low) / 2.0

    def labels_for(self, half_width: float, design: Design, *, level: float = 0.95) -> int:
        """The fewest labels whose interval has this half width, at least ten.

        Raises InputError: the half width is not between 0 and 0.5.
        """
        if not 0.0 < half_width < 0.5:
            raise InputError(f"--half-width {half_width:g}: a half width lies between 0 and 0.5")
        low, high = MIN_GROUPS, _MOST
        while low < high:
            middle = (low + high) // 2
            if self.half_width(middle, design, level=level) <= half_width:
                high = middle
            else:
                low = middle + 1
        return low


def _variance(
    n: float, rates: Sequence[float], shares: Sequence[float], weight: float, n_strata: int
) -> float:
    """Of the mean of what a weight of the verdicts leaves of n labels in one stratum, its pseudo-rows among
    them.

    `rates` are the shares right of those that pass and fail, or of all.
    """
    verdicts = [1.0, 0.0][: len(rates)]
    cells = list(zip(verdicts, rates, shares, strict=True))
    rest = sum(share * (rate - weight * verdict) for verdict, rate, share in cells)
    squares = sum(
        share * chance * (end - weight * verdict - rest) ** 2
        for verdict, rate, share in cells
        for end, chance in ((1.0, rate), (0.0, 1.0 - rate))
    )
    ends = (verdicts[0], verdicts[-1])
    kinds = [end - weight * verdict for end in (0.0, 1.0) for verdict in ends]
    return squares / n + unseen(n, rest, kinds, PSEUDO / n_strata)
