"""Statistics that are no means, and what jackknife and bootstrap need of them: values under group weights.

A group left out has weight 0; a group drawn twice has weight 2. What depends on the pairs only through sums or through
the table of labels against verdicts is evaluated on weighted group sums, all draws in one matrix product. Groups with
equal sums or tables are one pattern: drawing G groups with replacement draws each pattern a multinomial number of
times, so where patterns are few their numbers are drawn, with the same distribution and no cost that grows with n.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from judgecal.stats.sample import Bools, Floats, Ints, Sample

_CELLS = 100_000  # numbers in one block of weights: small enough to stay in the cache
_ROWS = 32  # draws in one block, at least: narrower ones waste a sparse product
_SPARSE = 0.1  # share of sums that are not 0, below which a sparse product is the faster one
_RARE = 8  # a pattern of fewer groups is drawn faster group by group
_FEW = 3.0  # patterns up to sqrt(G) / 3 are drawn as a plain multinomial
_GROUPS_A_PATTERN = 10  # patterns pay where so many groups, on average, share one


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


@runtime_checkable
class Patterned(Statistic, Protocol):
    """A statistic that tells which groups are alike to it."""

    @property
    def kinds(self) -> Floats | Ints | None:
        """G rows, equal where groups are interchangeable; None where that is not worth knowing."""

    def among(self, groups: Ints) -> Statistic:
        """The same statistic of these groups alone."""


@dataclass(frozen=True)
class Totals:
    """A statistic of sums over the pairs: G x R x K `sums` per group and repeat; `combine` takes ... x K totals to
    ... values, NaN where undefined.
    """

    sums: Floats
    combine: Callable[[Floats], Floats]
    used: Bools
    undefined: str

    @classmethod
    def of(cls, rows: Floats, sample: Sample, combine: Callable[[Floats], Floats], *, undefined: str) -> Totals:
        """From n x R x K terms of the pairs; unscored pairs count nothing."""
        scored = sample.scored
        kept = rows if scored.all() else np.where(scored[..., None], rows, 0.0)
        return cls(sample.per_group(kept), combine, scored, undefined)

    def at(self, weights: Floats) -> Floats:
        totals = weights @ self.kinds if self._sparse is None else (self._sparse @ weights.T).T
        return self.combine(totals.reshape(-1, *self.sums.shape[1:]))

    @cached_property
    def _sparse(self) -> csr_array | None:
        """RK x G sums where nearly all are 0, as those of a scale with many categories are."""
        filled = np.count_nonzero(self.sums)
        return csr_array(self.kinds.T) if filled < _SPARSE * self.sums.size else None

    def without_each(self) -> Floats:
        """Values without each group in turn, by subtraction: G x R."""
        rows = max(1, _CELLS // max(1, self.sums[0].size))
        totals = self.sums.sum(axis=0)
        parts = [self.sums[start : start + rows] for start in range(0, len(self.sums), rows)]
        return np.concatenate([self.combine(totals - part) for part in parts])

    @property
    def kinds(self) -> Floats:
        """G x RK; groups with equal rows are interchangeable."""
        return self.sums.reshape(len(self.sums), -1)

    def among(self, groups: Ints) -> Totals:
        """The same statistic of these groups alone."""
        return replace(self, sums=self.sums[groups])


@dataclass(frozen=True)
class _Patterns:
    """The groups' patterns, in the order of their first groups (renamed labels keep it): P groups, G numbers."""

    first: Ints
    of_group: Ints

    @cached_property
    def counts(self) -> Ints:
        """How many groups have each pattern."""
        return np.bincount(self.of_group).astype(np.int64)


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

    The delete-a-group jackknife, for a statistic that is dear to evaluate on many groups. Source: Kott (2001).
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


def bootstrap_all(statistics: Sequence[Statistic], n_groups: int, *, n_boot: int, seed: int) -> list[Floats]:
    """Each statistic on `n_boot` samples of groups drawn with replacement: n_boot x R each.

    A statistic's draws depend on the seed and on which groups are alike to it, and on no other statistic.
    Those with few patterns have numbers of patterns drawn; all others share one set of drawn groups.
    """
    found: list[Floats] = [np.empty(0)] * len(statistics)
    dear = []
    for place, statistic in enumerate(statistics):
        patterns = _patterns(statistic, n_groups, at_most=n_groups // _GROUPS_A_PATTERN)
        if patterns is None or not isinstance(statistic, Patterned):
            dear.append(place)
        else:
            few = statistic.among(patterns.first)
            found[place] = np.concatenate([few.at(weights) for weights in _pattern_draws(patterns, n_boot, seed)])
    if dear:
        parts = [[statistics[i].at(weights) for i in dear] for weights in _draws(n_groups, n_boot, seed)]
        for place, values in zip(dear, zip(*parts, strict=True), strict=True):
            found[place] = np.concatenate(values)
    return found


def _patterns(statistic: Statistic, n_groups: int, *, at_most: int) -> _Patterns | None:
    """The patterns of the groups, where the statistic tells them and they are not too many."""
    kinds = statistic.kinds if isinstance(statistic, Patterned) else None
    if kinds is None or at_most == 0:
        return None
    number: defaultdict[bytes, int] = defaultdict(count().__next__)
    of_group: list[int] = []
    step = max(1, _CELLS // max(1, kinds.shape[1]))
    for start in range(0, n_groups, step):
        of_group += [number[row] for row in _bytes_of(kinds[start : start + step])]
        if len(number) > at_most:
            return None
    codes = np.array(of_group, dtype=np.int64)
    return _Patterns(np.unique(codes, return_index=True)[1].astype(np.int64), codes)


def _bytes_of(rows: npt.NDArray[Any]) -> list[bytes]:
    width = rows.dtype.itemsize * rows.shape[1]
    raw = np.ascontiguousarray(rows).tobytes()
    return [raw[at : at + width] for at in range(0, len(raw), width)]


def _block(columns: int) -> int:
    return max(_ROWS, _CELLS // columns)


def _draws(n_groups: int, n_boot: int, seed: int) -> Iterator[Floats]:
    """How often each group is drawn: blocks of B x G."""
    rng = np.random.default_rng(seed)
    block = _block(n_groups)
    for start in range(0, n_boot, block):
        weights = np.empty((min(block, n_boot - start), n_groups))
        for row in weights:
            row[:] = np.bincount(rng.integers(0, n_groups, size=n_groups), minlength=n_groups)
        yield weights


def _pattern_draws(patterns: _Patterns, n_boot: int, seed: int) -> Iterator[Floats]:
    """How often each pattern is drawn: blocks of B x P."""
    rng = np.random.default_rng(seed)
    n_groups, n_patterns = len(patterns.of_group), len(patterns.first)
    common = _Common.of(patterns) if _FEW * n_patterns > math.sqrt(n_groups) else None
    block = _block(n_patterns)
    for start in range(0, n_boot, block):
        rows = min(block, n_boot - start)
        if common is None:
            drawn = rng.multinomial(n_groups, patterns.counts / n_groups, size=rows)
        else:
            drawn = common.draw(rng, rows)
        yield drawn.astype(np.float64)


@dataclass(frozen=True)
class _Common:
    """Draws of many patterns, from the same distribution as a multinomial and faster.

    Independent Poisson numbers are multinomial given their total. One for all rare patterns together, and those of
    the C common ones, get a mean (`rates`, 1 + C) two standard deviations below the G draws that are needed; what is
    missing is drawn group by group. The few draws whose numbers add up to more than G are made anew. `rare` are the
    groups whose patterns are rare.
    """

    patterns: _Patterns
    common: Ints
    rates: Floats
    rare: Ints

    @classmethod
    def of(cls, patterns: _Patterns) -> _Common:
        counts, n_groups = patterns.counts, len(patterns.of_group)
        is_rare = counts < _RARE
        rare = np.flatnonzero(is_rare[patterns.of_group]).astype(np.int64)
        common = np.flatnonzero(~is_rare).astype(np.int64)
        rates = (1.0 - 2.0 / math.sqrt(n_groups)) * np.append(len(rare), counts[common])
        return cls(patterns, common, rates, rare)

    def draw(self, rng: np.random.Generator, rows: int) -> Ints:
        """How often each pattern is drawn: rows x P."""
        n_groups, n_patterns = len(self.patterns.of_group), len(self.patterns.first)
        numbers = rng.poisson(self.rates, size=(rows, len(self.rates)))
        over = numbers.sum(axis=1) > n_groups
        numbers[over] = rng.multinomial(n_groups, self.rates / self.rates.sum(), size=int(over.sum()))
        missing = n_groups - numbers.sum(axis=1)
        any_group = rng.integers(0, n_groups, size=int(missing.sum()))
        rare_group = self.rare[rng.integers(0, max(1, len(self.rare)), size=int(numbers[:, 0].sum()))]
        cells = [
            np.repeat(np.arange(rows) * n_patterns, times) + self.patterns.of_group[groups]
            for times, groups in ((missing, any_group), (numbers[:, 0], rare_group))
        ]
        drawn = np.bincount(np.concatenate(cells), minlength=rows * n_patterns).reshape(rows, n_patterns)
        drawn[:, self.common] += numbers[:, 1:]
        return drawn
