"""Agreement of numbers by their moments or ranks: Lin's concordance, Pearson, Spearman."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judgecal.stats.resampling import Totals, divide
from judgecal.stats.sample import Bools, Floats, Ints, Sample

__all__ = ["concordance", "pearson", "spearman"]

# A (co)variance below this share of the squared range is rounding.
_TINY = 1e-12
_CONSTANT = "labels or verdicts are constant"
_BLOCK = 250_000  # numbers in one block of weighted ranks: small enough to stay in the cache


def concordance(sample: Sample) -> Totals:
    """Lin's concordance, -1..1: 2 s_xy / (s_x + s_y + (mean x - mean y)^2), moments over n.

    1 only where verdicts equal labels; correlation without bias or change of scale. Source: Lin (1989).
    """

    def combine(totals: Floats) -> Floats:
        mean_x, mean_y, var_x, var_y, cov = _moments(totals)
        return divide(2.0 * cov, var_x + var_y + (mean_x - mean_y) ** 2, tiny=_TINY)

    return Totals.of(_powers(sample), sample, combine, undefined="both sides are constant and equal")


def pearson(sample: Sample) -> Totals:
    """Pearson's correlation of labels and verdicts, -1..1; blind to bias and to a change of scale."""

    def combine(totals: Floats) -> Floats:
        _, _, var_x, var_y, cov = _moments(totals)
        return _correlation(var_x, var_y, cov)

    return Totals.of(_powers(sample), sample, combine, undefined=_CONSTANT)


def spearman(sample: Sample) -> Ranks:
    """Pearson's correlation of the midranks, -1..1; ranks are taken anew in every draw."""
    return Ranks(sample.gold, sample.verdicts, sample.group_of, sample.scored, _CONSTANT)


@dataclass(frozen=True)
class Ranks:
    """Spearman's correlation under weights of the groups (see resampling.Statistic)."""

    gold: Floats
    verdicts: Floats
    group_of: Ints
    used: Bools
    undefined: str

    def at(self, weights: Floats) -> Floats:
        block = max(1, _BLOCK // max(1, len(self.gold)))
        parts = [self._block(weights[i : i + block]) for i in range(0, len(weights), block)]
        return np.concatenate(parts)

    def _block(self, weights: Floats) -> Floats:
        columns = [
            self._column(weights, self.used[:, r], self.verdicts[:, r]) for r in range(self.used.shape[1])
        ]
        return np.stack(columns, axis=1)

    def _column(self, weights: Floats, used: Bools, verdicts: Floats) -> Floats:
        if not used.any():
            return np.full(len(weights), np.nan)
        of_pairs = weights[:, self.group_of[used]]
        n = of_pairs.sum(axis=1, keepdims=True)
        share = of_pairs / np.where(n > 0.0, n, 1.0)
        x, y = _midranks(self.gold[used], share), _midranks(verdicts[used], share)
        x, y = (side - (share * side).sum(axis=1, keepdims=True) for side in (x, y))
        var_x, var_y, cov = ((share * product).sum(axis=1) for product in (x * x, y * y, x * y))
        return _correlation(var_x, var_y, cov)


def _midranks(values: Floats, share: Floats) -> Floats:
    """Midranks as shares of n, for each row of weights: the weight below, and half of the weight at it."""
    distinct, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(distinct)))
    at = np.add.reduceat(share[:, order], starts, axis=1)
    middle: Floats = (np.cumsum(at, axis=1) - at / 2.0)[:, place]
    return middle


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
