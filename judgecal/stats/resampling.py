"""Statistics that are no means, and what the jackknife needs of them: values under group weights.

A group left out has weight 0. What depends on the pairs only through sums or through the table of labels
against verdicts is evaluated on weighted group sums, many weights in one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from judgecal.stats.sample import Bools, Floats, Ints, Sample

_CELLS = 100_000  # numbers in one block of weights: small enough to stay in the cache
_ROWS = 32  # weights in one block, at least: narrower ones waste a sparse product
_SPARSE = 0.1  # share of sums that are not 0, below which a sparse product is the faster one


class Statistic(Protocol):
    """A statistic with a value per repeat, for any weights of the groups."""

    @property
    def used(self) -> Bools:
        """n x R: the pairs that it rests on."""

    @property
    def undefined(self) -> str:
        """Why it has no value, where it has none."""

    def at(self, weights: Floats) -> Floats:
        """Values under B x G weights of the groups: B x R, NaN where undefined."""


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
        """From n x R x K terms of the pairs; unscored pairs count nothing."""
        scored = sample.scored
        kept = rows if scored.all() else np.where(scored[..., None], rows, 0.0)
        return cls(sample.per_group(kept), combine, scored, undefined)

    def at(self, weights: Floats) -> Floats:
        totals = weights @ self._flat if self._sparse is None else (self._sparse @ weights.T).T
        return self.combine(totals.reshape(-1, *self.sums.shape[1:]))

    @cached_property
    def _sparse(self) -> csr_array | None:
        """RK x G sums where nearly all are 0, as those of a scale with many categories are."""
        filled = np.count_nonzero(self.sums)
        return csr_array(self._flat.T) if filled < _SPARSE * self.sums.size else None

    def without_each(self) -> Floats:
        """Values without each group in turn, by subtraction: G x R."""
        rows = max(1, _CELLS // max(1, self.sums[0].size))
        totals = self.sums.sum(axis=0)
        parts = [self.sums[start : start + rows] for start in range(0, len(self.sums), rows)]
        return np.concatenate([self.combine(totals - part) for part in parts])

    @property
    def _flat(self) -> Floats:
        """G x RK"""
        return self.sums.reshape(len(self.sums), -1)


def divide(top: Floats, bottom: Floats, *, tiny: float = 0.0) -> Floats:
    """top / bottom, NaN where the bottom is not above `tiny`."""
    defined = bottom > tiny
    return np.where(defined, top / np.where(defined, bottom, 1.0), np.nan)


def leave_one_out(statistic: Statistic, n_groups: int) -> Floats:
    """The statistic without each group in turn: G x R."""
    if isinstance(statistic, Totals):
        return statistic.without_each()
    return _without(statistic, n_groups, np.arange(n_groups, dtype=np.int64))


def leave_blocks_out(statistic: Statistic, n_groups: int, *, n_blocks: int, seed: int) -> Floats:
    """The statistic without each of `n_blocks` random blocks of groups in turn: n_blocks x R.

    The delete-a-group jackknife, for a statistic that is dear to evaluate on many groups. Source: Kott
    (2001).
    """
    block_of = np.random.default_rng(seed).permutation(n_groups) % n_blocks
    return _without(statistic, n_groups, block_of.astype(np.int64))


def _without(statistic: Statistic, n_groups: int, block_of: Ints) -> Floats:
    """Values without each block of groups in turn."""
    n_blocks = int(block_of.max()) + 1
    rows = _block(n_groups)
    parts = []
    for start in range(0, n_blocks, rows):
        out = np.arange(start, min(start + rows, n_blocks))[:, None] == block_of
        parts.append(statistic.at(np.where(out, 0.0, 1.0)))
    return np.concatenate(parts)


def _block(columns: int) -> int:
    return max(_ROWS, _CELLS // columns)
