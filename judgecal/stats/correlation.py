"""Agreement of numbers by their moments, their ranks or the order of pairs: concordance, Pearson, Spearman,
Kendall.

What asks for ranks is a statistic of the table of labels against verdicts: ranks are taken anew in every draw
from the weighted cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from scipy.sparse import csr_array

from judgecal.stats.intervals import Totals, divide
from judgecal.stats.sample import Bools, Floats, Ints, Sample

_CELLS = 60_000  # numbers in one block of cell counts: small enough to stay in the cache
# A (co)variance below this share of the squared range is rounding.
_TINY = 1e-12
_CONSTANT = "labels or verdicts are constant"


@dataclass(frozen=True)
class Cells:
    """The C filled cells of a table, ordered by label, then by verdict."""

    row: Ints  # C places of the label among the labels
    column: Ints  # C places of the verdict among the verdicts

    def sum_rows(self, cells: Floats) -> Floats:
        """C x B numbers of the cells, summed by label."""
        return cast(Floats, self._in_row @ cells)

    def sum_columns(self, cells: Floats) -> Floats:
        """C x B numbers of the cells, summed by verdict."""
        return cast(Floats, self._in_column @ cells)

    @cached_property
    def _in_row(self) -> csr_array:
        return _indicator(self.row)

    @cached_property
    def _in_column(self) -> csr_array:
        return _indicator(self.column)


def _indicator(places: Ints) -> csr_array:
    return csr_array((np.ones(len(places)), (places, np.arange(len(places)))))


@dataclass(frozen=True)
class Tables:
    """A statistic of the weighted table of labels against verdicts, one table a repeat (a `Statistic`)."""

    cells: tuple[Cells, ...]  # the R tables' filled cells
    counts: tuple[csr_array, ...]  # R sparse matrices, C x G: how many pairs of each group are in each cell
    combine: Callable[[Cells, Floats], Floats]  # from cells and C x B weighted counts to B values
    used: Bools
    undefined: str

    @classmethod
    def of(cls, sample: Sample, combine: Callable[[Cells, Floats], Floats], *, undefined: str) -> Tables:
        """Make Tables from a Sample, a function `combine`, and a text `undefined`, why there is no value."""
        cells, counts = [], []
        row = np.unique(sample.gold, return_inverse=True)[1]
        for repeat, used in enumerate(sample.scored.T):
            column = np.unique(sample.verdicts[used, repeat], return_inverse=True)[1]
            width = int(column.max(initial=0)) + 1
            filled, number = np.unique(row[used] * width + column, return_inverse=True)
            rows = np.unique(filled // width, return_inverse=True)[1]
            cells.append(Cells(rows.astype(np.int64), (filled % width).astype(np.int64)))
            shape = (len(filled), sample.n_groups)
            counts.append(csr_array((np.ones(len(number)), (number, sample.group_of[used])), shape=shape))
        return cls(tuple(cells), tuple(counts), combine, sample.scored, undefined)

    def values(self) -> Floats:
        """R values."""
        return cast(Floats, self._at(np.ones((1, self.counts[0].shape[1])))[0])

    def without_each(self) -> Floats:
        """Values without each group in turn: G x R."""
        return self.without(np.arange(self.counts[0].shape[1], dtype=np.int64))

    def without(self, block_of: Ints) -> Floats:
        """Return values without each block of groups, blocks x R, from an array, each group's block.

        The delete-a-group jackknife. Source: Kott (2001).
        """
        n_blocks, most = int(block_of.max()) + 1, max(len(cells.row) for cells in self.cells)
        step = max(16, _CELLS // max(1, most))
        parts = (np.arange(start, min(start + step, n_blocks)) for start in range(0, n_blocks, step))
        return np.concatenate([self._at((part[:, None] != block_of).astype(np.float64)) for part in parts])

    def _at(self, weights: Floats) -> Floats:
        """B x R values under B x G weights of the groups."""
        values = np.full((len(weights), len(self.cells)), np.nan)
        for repeat, (cells, counts) in enumerate(zip(self.cells, self.counts, strict=True)):
            if len(cells.row):
                values[:, repeat] = self.combine(cells, counts @ weights.T)
        return values


def concordance(sample: Sample) -> Totals:
    """Return the Totals of a Sample for Lin's concordance: 2 s_xy / (s_x + s_y + (mean x - mean y)^2).

    1 only where verdicts equal labels; correlation without bias or change of scale. Source: Lin (1989).
    """

    def combine(totals: Floats) -> Floats:
        mean_x, mean_y, var_x, var_y, cov = _moments(totals)
        return divide(2.0 * cov, var_x + var_y + (mean_x - mean_y) ** 2, tiny=_TINY)

    return Totals.of(_powers(sample), sample, combine, undefined="both sides are constant and equal")


def pearson(sample: Sample) -> Totals:
    """Return the Totals of a Sample for Pearson's correlation, -1..1; blind to bias and scale."""

    def combine(totals: Floats) -> Floats:
        _, _, var_x, var_y, cov = _moments(totals)
        return _correlation(var_x, var_y, cov)

    return Totals.of(_powers(sample), sample, combine, undefined=_CONSTANT)


def spearman(sample: Sample) -> Tables:
    """Pearson's correlation of the midranks, -1..1; ranks are taken anew in every draw."""
    return Tables.of(sample, _rank_correlation, undefined=_CONSTANT)


def _rank_correlation(cells: Cells, counts: Floats) -> Floats:
    n = counts.sum(axis=0)
    n = np.where(n > 0.0, n, 1.0)
    rows, columns = cells.sum_rows(counts) / n, cells.sum_columns(counts) / n
    x, y = _midranks(rows), _midranks(columns)
    cov = (cells.sum_rows(counts * y[cells.column]) * x).sum(axis=0) / n
    return _correlation((rows * x * x).sum(axis=0), (columns * y * y).sum(axis=0), cov)


def _midranks(share: Floats) -> Floats:
    """Midranks as shares of n, less their mean of 1/2: the share below, and half of the share at a value."""
    return np.cumsum(share, axis=0) - share / 2.0 - 0.5


def _powers(sample: Sample) -> Floats:
    """n x R x 6: 1, x, y, x^2, y^2, xy, on the unit scale and around the labels' mean, for accuracy."""
    centre = sample.gold.mean()
    x = np.broadcast_to(((sample.gold - centre) / sample.scale.span)[:, None], sample.verdicts.shape)
    y = (sample.verdicts - centre) / sample.scale.span
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=2)


def _moments(totals: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    n = totals[..., :1]
    mean_x, mean_y, xx, yy, xy = np.moveaxis(totals[..., 1:] / np.where(n > 0.0, n, np.nan), -1, 0)
    cov = xy - mean_x * mean_y
    return mean_x, mean_y, xx - mean_x**2, yy - mean_y**2, np.where(np.abs(cov) > _TINY, cov, 0.0)


def _correlation(var_x: Floats, var_y: Floats, cov: Floats) -> Floats:
    defined = (var_x > _TINY) & (var_y > _TINY)
    scale = np.sqrt(np.where(defined, var_x * var_y, 1.0))
    return np.where(defined, np.clip(cov / scale, -1.0, 1.0), np.nan)


def kendall(sample: Sample) -> Tables:
    """Return the Tables of a Sample for Kendall's tau-b: (concordant - discordant) / root of untied pairs.

    Undefined where labels or verdicts are constant. Source: Kendall (1945).
    """
    return Tables.of(sample, _tau_b, undefined=_CONSTANT)


def concordance_index(sample: Sample) -> Tables:
    """Return the Tables of a Sample for the share, 0..1, of pairs of items in the order of labels.

    (D + 1) / 2 with Somers' D of verdicts given labels; of binary labels the area under the ROC curve, for a
    binary judge (tpr + tnr) / 2. Undefined where labels are constant. Source: Somers (1962), Harrell et al.
    (1982).
    """
    return Tables.of(sample, _in_order, undefined="labels are constant: no pair of items has an order")


def _tau_b(cells: Cells, counts: Floats) -> Floats:
    untied = [_untied(side) for side in (cells.sum_rows(counts), cells.sum_columns(counts))]
    return divide(_twice_net(cells, counts), np.sqrt(untied[0] * untied[1]))


def _in_order(cells: Cells, counts: Floats) -> Floats:
    return (divide(_twice_net(cells, counts), _untied(cells.sum_rows(counts))) + 1.0) / 2.0


def _untied(side: Floats) -> Floats:
    """Twice the number of pairs that differ on a side, from how many items have each of its values."""
    return cast(Floats, side.sum(axis=0) ** 2 - (side**2).sum(axis=0))


def _twice_net(cells: Cells, counts: Floats) -> Floats:
    """Twice the concordant less the discordant pairs, each value of one side against those below it."""
    few, many = sorted((cells.row, cells.column), key=lambda side: int(side.max()))
    below, net = np.zeros((int(many.max()) + 1, counts.shape[1])), np.zeros(counts.shape[1])
    for value in range(int(few.max()) + 1):
        inside = np.flatnonzero(few == value)
        at, here = many[inside], counts[inside]
        sums = np.cumsum(below, axis=0)
        net += (here * (2.0 * sums[at] - below[at] - sums[-1])).sum(axis=0)
        below[at] += here
    return 2.0 * net
