"""Statistics that are no means, and what jackknife and bootstrap need of them: values under group weights.

A group left out has weight 0; a group drawn twice has weight 2. A statistic that depends on the pairs only
through sums (tables, moments) is evaluated on weighted group sums, all draws in one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from judgecal.stats.sample import Bools, Floats, Sample

__all__ = ["Statistic", "Totals", "bootstrap_draws", "divide", "leave_one_out"]

_CELLS = 250_000  # numbers in one block of weights: small enough to stay in the cache


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
    """A statistic of sums over the pairs.

    Attributes:
        sums: G x R x K sums per group and repeat.
        combine: from ... x K totals to ... values, NaN where undefined.
        used, undefined: see Statistic.
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
        kept = np.where(sample.scored[..., None], rows, 0.0)
        return cls(sample.per_group(kept), combine, sample.scored, undefined)

    def at(self, weights: Floats) -> Floats:
        n_groups, repeats, terms = self.sums.shape
        totals = weights @ self.sums.reshape(n_groups, repeats * terms)
        return self.combine(totals.reshape(-1, repeats, terms))


def divide(top: Floats, bottom: Floats, *, tiny: float = 0.0) -> Floats:
    """top / bottom, NaN where the bottom is not above `tiny`."""
    defined = bottom > tiny
    return np.where(defined, top / np.where(defined, bottom, 1.0), np.nan)


def leave_one_out(statistic: Statistic, n_groups: int) -> Floats:
    """The statistic without each group in turn: G x R."""
    parts = []
    for start in range(0, n_groups, max(1, _CELLS // n_groups)):
        weights = np.ones((min(max(1, _CELLS // n_groups), n_groups - start), n_groups))
        weights[np.arange(len(weights)), start + np.arange(len(weights))] = 0.0
        parts.append(statistic.at(weights))
    return np.concatenate(parts)


def bootstrap_draws(statistic: Statistic, n_groups: int, *, n_boot: int, seed: int) -> Floats:
    """The statistic on `n_boot` samples of groups drawn with replacement: n_boot x R.

    The draws depend on the number of groups and the seed alone, so that all metrics see the same ones.
    """
    return np.concatenate([statistic.at(weights) for weights in _draws(n_groups, n_boot, seed)])


def _draws(n_groups: int, n_boot: int, seed: int) -> Iterator[Floats]:
    rng = np.random.default_rng(seed)
    block = max(1, _CELLS // n_groups)
    for start in range(0, n_boot, block):
        rows = min(block, n_boot - start)
        drawn = rng.integers(0, n_groups, size=(rows, n_groups)) + n_groups * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n_groups).reshape(rows, n_groups).astype(np.float64)
