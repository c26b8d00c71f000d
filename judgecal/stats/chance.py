"""Agreement beyond chance: kappa and its kin, Krippendorff's alpha, the intraclass correlation.

A panel is n x R x k: n items, R repeats, k raters; NaN where a rating is missing. Labels and verdicts are a
panel of two raters, so a judge and a group of people go through the same formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import cast

import numpy as np
from scipy.sparse import csr_array

from judgecal.scale import INTERVAL
from judgecal.stats.correlation import Cells, Tables
from judgecal.stats.intervals import Totals, divide
from judgecal.stats.sample import Bools, Classes, Floats, Sample

# an expected disagreement below this, or a mean square below this share of the squared range, is rounding
_TINY = 1e-12
_EQUAL = "no disagreement is expected: both sides are constant and equal"
_ALL_EQUAL = "no disagreement is expected: all ratings are equal"


def classes_of(sample: Sample) -> Classes:
    """Return the Classes that can occur in a Sample.

    A nominal scale keeps a category for verdicts that were counted as wrong; where there are none, it is no
    category of the scale, and coefficients that ask how many there are must not count it.
    """
    classes = sample.categories
    if sample.scale.kind != "nominal" or sample.filled.any():
        return classes
    return Classes(classes.gold, classes.verdicts, classes.values[:-1], classes.problem)


def codes_panel(classes: Classes) -> Floats:
    """Labels and verdicts of a sample as two raters' category numbers: n x R x 2."""
    return _two_raters(classes.gold.astype(np.float64), classes.verdicts)


def values_panel(sample: Sample) -> Floats:
    """Labels and verdicts of a sample as two raters' values: n x R x 2."""
    return _two_raters(sample.gold, sample.verdicts)


def counts_of(codes: Floats, n_categories: int) -> Floats:
    """Count raters by category, an array n x R x q, from an array of category codes and n_categories."""
    indicator = np.eye(n_categories + 1)[:, :n_categories]
    chosen = np.where(np.isnan(codes), float(n_categories), codes).astype(np.int64)
    total = indicator[chosen[..., 0]]
    for rater in range(1, chosen.shape[2]):
        total += indicator[chosen[..., rater]]
    return total


def enough(panel: Floats) -> Bools:
    """Return which items of a panel, an array of ratings, have two or more: booleans, n x R."""
    paired: Bools = (~np.isnan(panel)).sum(axis=2) >= 2
    return paired


def _two_raters(gold: Floats, verdicts: Floats) -> Floats:
    return np.stack([np.broadcast_to(gold[:, None], verdicts.shape), verdicts], axis=2)


def kappa(sample: Sample) -> Totals | str:
    """Return a Sample's Totals for Cohen's kappa, or a text why none: 1 - sum(w O) / sum(w E).

    Undefined where no disagreement is expected (both raters constant and equal). Source: Cohen (1960).
    """
    return _cohen(sample, quadratic=False)


def kappa_quadratic(sample: Sample) -> Totals | str:
    """Return a Sample's Totals for quadratically weighted kappa, or a text why none; the whole scale counts.

    Source: Cohen (1968).
    """
    return _cohen(sample, quadratic=True)


def scott_pi(sample: Sample) -> Totals | str:
    """Return a Sample's Totals for Scott's pi, or a text why none: kappa where raters are alike.

    Undefined where both are constant and equal. Source: Scott (1955).
    """
    return _beyond_chance(sample, lambda shares: (shares**2).sum(axis=-1), undefined=_EQUAL)


def gwet_ac1(sample: Sample) -> Totals | str:
    """Return a Sample's Totals for Gwet's AC1, or a text why none: chance is sum p_c (1 - p_c) / (q - 1).

    Stays high where one category is rare, and may lie far above 0 for a constant judge: never a gate alone.
    Source: Gwet (2008).
    """
    q = len(classes_of(sample).values)
    if q < 2:
        return "one category is known: name all of the scale's"
    return _beyond_chance(
        sample,
        lambda shares: (shares * (1.0 - shares)).sum(axis=-1) / (q - 1),
        undefined="no item has two ratings",
    )


def mcc(sample: Sample) -> Totals | str:
    """Return the Totals of a Sample for Matthews' correlation of pass and fail; a text where undefined.

    (n tp - passed by label * passed by verdict) / root of the product of all four margins.
    Source: Matthews (1975).
    """
    classes = classes_of(sample)
    gold = np.broadcast_to(classes.gold[:, None].astype(np.float64), classes.verdicts.shape)
    terms = np.stack([np.ones_like(gold), gold, classes.verdicts, gold * classes.verdicts], axis=2)

    def combine(totals: Floats) -> Floats:
        n, ours, theirs, agreed = np.moveaxis(totals, -1, 0)
        # One root of all four: that of a square is exact, so that no rounding takes the value beyond 1.
        spread = np.sqrt(ours * (n - ours) * (theirs * (n - theirs)))
        return divide(n * agreed - ours * theirs, spread)

    return Totals.of(terms, sample, combine, undefined="labels or verdicts are constant")


def _beyond_chance(sample: Sample, expected: Callable[[Floats], Floats], *, undefined: str) -> Totals | str:
    """(observed - expected) / (1 - expected) agreement of labels and verdicts; `expected` takes the shares of
    the categories among both.
    """
    classes = classes_of(sample)
    if classes.problem:
        return classes.problem
    panel = codes_panel(classes)
    same = (panel[..., 0] == panel[..., 1]).astype(np.float64)
    terms = np.concatenate([same[..., None], counts_of(panel, len(classes.values)) / 2.0], axis=2)

    def combine(totals: Floats) -> Floats:
        n = totals[..., 1:].sum(axis=-1, keepdims=True)
        safe = np.where(n > 0.0, n, 1.0)
        by_chance = expected(totals[..., 1:] / safe)
        observed = divide(totals[..., 0], n[..., 0])
        return divide(observed - by_chance, 1.0 - by_chance, tiny=_TINY)

    return Totals.of(terms, sample, combine, undefined=undefined)


def _cohen(sample: Sample, *, quadratic: bool) -> Totals | str:
    classes = classes_of(sample)
    if classes.problem:
        return classes.problem
    q = len(classes.values)
    apart = np.abs(classes.values[:, None] - classes.values[None, :])
    weights = apart**2 if quadratic else (apart > 0.0).astype(np.float64)
    verdicts = np.where(sample.scored, classes.verdicts, 0.0).astype(np.int64)
    indicator = np.eye(q)
    gold = np.broadcast_to(indicator[classes.gold][:, None, :], (*verdicts.shape, q))
    observed = weights[classes.gold[:, None], verdicts][..., None]
    terms = np.concatenate([observed, gold, indicator[verdicts]], axis=2)

    def combine(totals: Floats) -> Floats:
        disagreement, ours, theirs = totals[..., 0], totals[..., 1 : q + 1], totals[..., q + 1 :]
        expected = ((ours @ weights) * theirs).sum(axis=-1)
        return 1.0 - divide(disagreement * ours.sum(axis=-1), expected)

    return Totals.of(terms, sample, combine, undefined=_EQUAL)


def krippendorff_alpha(sample: Sample) -> Totals | Tables:
    """Return the Totals or Tables of a Sample for Krippendorff's alpha, up to 1; 0 is chance.

    Nominal on binary and nominal scales and at a pass mark, ordinal on ordinal ones, interval on percentage
    and points.
    """
    classes = sample.classes
    two = classes is not None and len(classes.values) == 2 and classes.problem is None
    if two or sample.scale.kind == "nominal":
        categories = classes_of(sample)
        return nominal_alpha(codes_panel(categories), len(categories.values), sample)
    if sample.scale.kind in INTERVAL:
        return interval_alpha(values_panel(sample), sample)
    return ordinal_alpha(values_panel(sample), sample)


def nominal_alpha(codes: Floats, n_categories: int, sample: Sample) -> Totals:
    """Return the Totals for nominal alpha, from category codes (n x R x k), n_categories and a Sample."""
    paired = enough(codes)
    counts = np.where(paired[..., None], counts_of(codes, n_categories), 0.0)
    m = counts.sum(axis=2)
    apart = (counts * (m[..., None] - counts)).sum(axis=2) / np.where(paired, m - 1.0, 1.0)
    terms = np.concatenate([apart[..., None], counts], axis=2)

    def combine(totals: Floats) -> Floats:
        used = totals[..., 1:]
        n = used.sum(axis=-1)
        return 1.0 - divide((n - 1.0) * totals[..., 0], n**2 - (used**2).sum(axis=-1))

    return replace(Totals.of(terms, sample, combine, undefined=_ALL_EQUAL), used=paired & sample.scored)


def interval_alpha(values: Floats, sample: Sample) -> Totals:
    """Return the Totals for interval alpha, from a panel's values (n x R x k, NaN missing) and a Sample.

    The differences of an item's m ratings come from their sums: sum over pairs (x - y)^2 = m sum x^2 - (sum
    x)^2.
    """
    paired = enough(values)
    present = ~np.isnan(values) & paired[..., None]
    centre = float(values[present].mean()) if present.any() else 0.0
    x = np.where(present, (values - centre) / sample.scale.span, 0.0)
    m, total, squares = present.sum(axis=2), x.sum(axis=2), (x**2).sum(axis=2)
    apart = (m * squares - total**2) / np.where(paired, m - 1.0, 1.0)
    terms = np.stack([m, total, squares, apart], axis=2)

    def combine(totals: Floats) -> Floats:
        n, total, squares, apart = np.moveaxis(totals, -1, 0)
        safe = np.where(n > 0.0, n, 1.0)
        spread = squares / safe - (total / safe) ** 2
        return 1.0 - divide((n - 1.0) / safe**2 * apart, spread, tiny=_TINY)

    return replace(Totals.of(terms, sample, combine, undefined=_ALL_EQUAL), used=paired & sample.scored)


def ordinal_alpha(values: Floats, sample: Sample) -> Tables:
    """Return the Tables for ordinal alpha, from a panel's values (n x R x k, NaN missing) and a Sample.

    The distance of two values is the number of ratings between them, half of those at either value included:
    the difference of their midranks, squared. Ranks are taken anew in every draw.
    """
    tables = [_pairs_of(values[:, repeat], sample) for repeat in range(values.shape[1])]
    cells, counts = zip(*tables, strict=True)
    return Tables(cells, counts, _of_pairs, enough(values), _ALL_EQUAL)


def _pairs_of(ratings: Floats, sample: Sample) -> tuple[_Pairs, csr_array]:
    """The pairs of values that stand in one item (n x k ratings), and how many of them each group has."""
    present = ~np.isnan(ratings)
    share = 1.0 / np.maximum(present.sum(axis=1) - 1.0, 1.0)
    distinct, place = np.unique(ratings, return_inverse=True)
    places, width = place.reshape(ratings.shape), len(distinct)
    pairs = [(a, b, present[:, a] & present[:, b]) for a, b in combinations(range(ratings.shape[1]), 2)]
    cell = np.concatenate([places[rated, a] * width + places[rated, b] for a, b, rated in pairs])
    item = np.concatenate([np.flatnonzero(rated) for *_, rated in pairs])
    filled, number = np.unique(cell, return_inverse=True)
    shape = (len(filled), sample.n_groups)
    counts = csr_array((share[item], (number, sample.group_of[item])), shape=shape)
    return _Pairs((filled // width).astype(np.int64), (filled % width).astype(np.int64)), counts


class _Pairs(Cells):
    """Pairs of values; rows and columns are places among the same values."""

    @cached_property
    def ratings(self) -> csr_array:
        """V x C: how often each value stands in each pair."""
        once = np.ones(2 * len(self.row))
        pair = np.arange(len(self.row))
        return csr_array((once, (np.concatenate([self.row, self.column]), np.concatenate([pair, pair]))))


def _of_pairs(cells: Cells, counts: Floats) -> Floats:
    """Ordinal alpha from weighted pairs of values.

    With p the pairs' shares, N = 2 sum(pairs) ratings, M their midranks as shares and V the variance of M:
    alpha = 1 - (N - 1) / (2 N) sum p (M_a - M_b)^2 / V.
    """
    n = 2.0 * counts.sum(axis=0)
    safe = np.where(n > 0.0, n, 1.0)
    share = (cast(_Pairs, cells).ratings @ counts) / safe
    middle = np.cumsum(share, axis=0) - share / 2.0 - 0.5
    apart = (counts * (middle[cells.row] - middle[cells.column]) ** 2).sum(axis=0) * 2.0 / safe
    spread = (share * middle**2).sum(axis=0)
    return 1.0 - divide((n - 1.0) / (2.0 * safe) * apart, spread, tiny=_TINY)


def icc_2_1(sample: Sample) -> Totals:
    """Return the Totals of a Sample for ICC(2,1): two-way random effects, absolute agreement.

    A constant bias of the judge lowers it. Undefined where all labels and verdicts are equal. See `icc`.
    """
    return icc(values_panel(sample), sample)


def icc(values: Floats, sample: Sample) -> Totals:
    """Return the Totals for ICC(2,1), from a panel's values (n x R x k, NaN missing) and a Sample.

    (MSR - MSE) / (MSR + (k-1) MSE + k (MSC - MSE) / n), with the mean squares of items, raters and rest.
    Source: Shrout and Fleiss (1979); ICC(A,1) in McGraw and Wong (1996).
    """
    complete: Bools = np.isnan(values).sum(axis=2) == 0
    whole = values[complete]
    x = (values - (whole.mean() if whole.size else 0.0)) / sample.scale.span
    x = np.where(complete[..., None], x, 0.0)
    ours = np.stack([complete, (x**2).sum(axis=2), x.sum(axis=2) ** 2], axis=2)
    k = values.shape[2]

    def combine(totals: Floats) -> Floats:
        n, squares, of_items, by_rater = totals[..., 0], totals[..., 1], totals[..., 2], totals[..., 3:]
        several = np.where(n > 1.5, n, np.nan)
        middle = by_rater.sum(axis=-1) ** 2 / (several * k)
        items, raters = of_items / k - middle, (by_rater**2).sum(axis=-1) / several - middle
        msr = items / (several - 1.0)
        mse = np.maximum(squares - middle - items - raters, 0.0) / ((several - 1.0) * (k - 1.0))
        bottom = msr + (k - 1.0) * mse + k * (raters / (k - 1.0) - mse) / several
        return divide(msr - mse, bottom, tiny=_TINY)

    reason = "all ratings are equal, or fewer than two items have all of them"
    totals = Totals.of(np.concatenate([ours, x], axis=2), sample, combine, undefined=reason)
    return replace(totals, used=complete & sample.scored)
