"""Means of ratios and their linearisation by group.

Every mean-type metric is a weighted mean of ratios of sums: one ratio a stratum, the strata weighing the same,
the repeats averaged. That one shape gives its value, the influence of each group on it, and its difference
between two judges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judgecal.stats.sample import Bools, Floats, Sample

__all__ = ["Linear", "Means", "linearise"]


@dataclass(frozen=True)
class Means:
    """The terms of a mean of ratios.

    Attributes:
        top, bottom: n x R x S; a pair that is not used has zeros.
        used: n x R, the pairs that the value rests on.
        low, high: the metric's range.
        fewest: strata that must be filled for the mean to be defined.
        undefined: what to say where it is not.
        root: the square root of the ratio is meant (one stratum).
    """

    top: Floats
    bottom: Floats
    used: Bools
    low: float
    high: float
    fewest: int = 1
    undefined: str = "no scored pairs"
    root: bool = False


@dataclass(frozen=True)
class Linear:
    """A mean of ratios, linearised by group: value = weights @ ratios.

    Attributes:
        weights, ratios: S each; the repeats are averaged.
        influence: G x S, what each group adds to its stratum's ratio; sums to 0 over the groups.
        share: G x S, the group's part of the stratum's denominator; sums to 1.
        items, groups: S each, how many the stratum rests on.
        all_groups: how many groups the value rests on.
        repeats: repeats in which the metric is defined.
        two_valued: every pair counts one end of the range or the other: the ratios are proportions.
        means: the terms.
    """

    weights: Floats
    ratios: Floats
    influence: Floats
    share: Floats
    items: Floats
    groups: Floats
    all_groups: int
    repeats: Bools
    two_valued: bool
    means: Means

    @property
    def value(self) -> float:
        return float(self.weights @ self.ratios)


def linearise(means: Means, sample: Sample) -> Linear | None:
    """Value and group influences of a mean of ratios; None where no repeat defines it.

    The influence of group g on a ratio A/N is (A_g - r N_g) / N (Taylor linearisation with groups as primary
    units; Woodruff 1971). A repeat in which too few strata are filled is left out.
    """
    top, bottom = sample.per_group(means.top), sample.per_group(means.bottom)  # G x R x S
    total = bottom.sum(axis=0)  # R x S
    filled = total > 0.0
    repeats = filled.sum(axis=1) >= means.fewest
    if not repeats.any():
        return None
    filled &= repeats[:, None]
    safe = np.where(filled, total, 1.0)
    ratios = np.where(filled, top.sum(axis=0), 0.0) / safe
    weights = filled / np.maximum(filled.sum(axis=1, keepdims=True), 1) / repeats.sum()  # R x S, sums to 1
    influence = np.where(filled, top - ratios * bottom, 0.0) / safe
    if means.root:
        ratios = np.sqrt(ratios)
        influence = influence / np.where(ratios > 0.0, 2.0 * ratios, 1.0)
    per_stratum = weights.sum(axis=0)
    part = weights / np.where(per_stratum > 0.0, per_stratum, 1.0)
    present = _present(means, filled)
    return Linear(
        weights=per_stratum,
        ratios=(part * ratios).sum(axis=0),
        influence=(part * influence).sum(axis=1),
        share=(part * np.where(filled, bottom, 0.0) / safe).sum(axis=1),
        items=present.sum(axis=0).astype(np.float64),
        groups=(sample.per_group(present) > 0.0).sum(axis=0).astype(np.float64),
        all_groups=sample.groups_among(present),
        repeats=repeats,
        two_valued=_two_valued(means),
        means=means,
    )


def _present(means: Means, filled: Bools) -> Bools:
    """n x S: the items that a stratum rests on; with one stratum all that are used, whatever their weight."""
    inside: Bools = means.used[..., None] if means.bottom.shape[2] == 1 else means.bottom > 0.0
    present: Bools = (inside & filled).sum(axis=1) > 0
    return present


def _two_valued(means: Means) -> bool:
    counted = means.bottom > 0.0
    ends = (means.low, means.high)
    return bool(np.all(means.bottom[counted] == 1.0) and np.all(np.isin(means.top[counted], ends)))
