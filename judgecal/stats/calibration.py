"""Recalibration: is a gain more than a rescaling of the same judgement?

A judge that snaps its percentages to the ends of the scale may gain agreement without knowing more. Once both
judges are mapped onto the people's labels by the same monotone procedure, such a gain vanishes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judgecal.errors import InputError
from judgecal.records import Estimate
from judgecal.scale import Scale
from judgecal.stats.agreement import estimate, terms_of
from judgecal.stats.intervals import MIN_GROUPS, check_level, jackknife_error
from judgecal.stats.metrics import METRICS, Metric, metric_named
from judgecal.stats.paired import paired_difference
from judgecal.stats.sample import Bools, Floats, Ints, Sample, as_scale, build, codes_of, read_both

_FOLDS = 5
_Map = tuple[Floats, Floats]  # distinct verdicts, ascending, and their labels


@dataclass(frozen=True)
class PairedLabels:
    """Labels of people and verdicts of two judges on the same items."""

    gold: Sequence[object]  # n labels; None = missing, the item is left out
    a: Sequence[object]  # n verdicts or n rows of repeats, on its judge's scale; None = unscored
    b: Sequence[object]  # as `a`
    groups: Sequence[Hashable] | None = None  # the question of each item; each item its own where not given


def recalibrated_difference(
    fit: PairedLabels,
    test: PairedLabels,
    *,
    scale: Scale | str,
    a_scale: Scale | str | None = None,
    b_scale: Scale | str | None = None,
    metric: str = "macro_agreement",
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Paired difference a - b on `test` after the same monotone recalibration of both judges on `fit`.

    For either judge, least-squares monotone maps from verdict to label are fitted on `fit` (train + dev; no group of
    `test`) with the strata of the label weighing the same, five times, each without a fifth of the groups; their
    average maps the test verdicts, which stay uncut. Pairs unscored in `fit` are left out; in `test` they count as
    farthest. `metric` is one that reads uncut verdicts (`Metric.uncut`); `seed` is of the folds.

    Returns:
        a - b as in `compare_paired`; without an interval where either part has fewer than ten groups.

    Raises:
        InputError: as `compare_paired`; or the metric does not read uncut verdicts.
    """
    check_level(level)
    people = as_scale(scale)
    chosen = _uncut(metric, people)
    judges = [people if given is None else as_scale(given) for given in (a_scale, b_scale)]
    fit_parts, test_parts = _read(fit, people, judges), _read(test, people, judges)
    folds = _folds(fit_parts[0], seed=seed)
    maps = [list(_cross_fitted(part, folds, people).values()) for part in fit_parts]
    a, b = (
        _recalibrated(part, _mean_of_maps(fitted, part.verdicts), people)
        for part, fitted in zip(test_parts, maps, strict=True)
    )
    if not (maps[0] and maps[1]):
        return Estimate(None, level=level, n_expected=a.n_expected, reason="the fit part has no scored pairs")
    more_error = _error_of_fit(test_parts, maps, chosen, people=people)
    found = paired_difference(chosen, a, b, at_mark=False, level=level, n_perm=1, more_error=more_error).difference
    return _told(found, min(len(np.unique(part.groups[part.known.sum(axis=1) > 0])) for part in fit_parts))


def recalibrated_agreement(
    gold_labels: Sequence[object],
    judge_labels: Sequence[object],
    *,
    scale: Scale | str,
    judge_scale: Scale | str | None = None,
    groups: Sequence[Hashable] | None = None,
    metric: str = "macro_agreement",
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Agreement that is left once a judge's verdicts are recalibrated: how well it tells answers apart.

    The monotone maps are those of `recalibrated_difference`; an item's verdict is mapped by the one that was fitted
    without its fold, so no label takes part in its own prediction. Two judges that differ by a monotone rescaling
    have the same value. Unscored pairs count as farthest. Arguments as in `agreement`; `seed` is of the folds.

    Raises:
        InputError: as `agreement`; or the metric does not read uncut verdicts.
    """
    check_level(level)
    people = as_scale(scale)
    chosen = _uncut(metric, people)
    judge = people if judge_scale is None else as_scale(judge_scale)
    gold, verdicts, _ = read_both(gold_labels, judge_labels, people=people, judge=judge)
    part = _Part(gold, verdicts, codes_of(groups, len(gold)))
    folds, mapped = _folds(part, seed=seed), np.full_like(verdicts, np.nan)
    for fold, fitted in _cross_fitted(part, folds, people).items():
        mapped[folds == fold] = _mean_of_maps([fitted], verdicts[folds == fold])
    sample = _recalibrated(part, mapped, people)
    return estimate(chosen, terms_of(chosen, sample, False), sample, level=level, n_boot=0, seed=seed)


def _uncut(metric: str, people: Scale) -> Metric:
    chosen, _ = metric_named(metric, people)
    if not chosen.uncut:
        usable = ", ".join(known.name for known in METRICS.values() if known.uncut)
        raise InputError(f"metric {metric!r} is not taken on uncut verdicts: use one of {usable}")
    return chosen


def _recalibrated(part: _Part, verdicts: Floats, people: Scale) -> Sample:
    """A part with verdicts that were mapped onto the people's scale; missing ones count as farthest."""
    return build(part.gold, verdicts, part.groups, people=people, judge=people, unscored="wrong")


def _error_of_fit(parts: list[_Part], maps: list[list[_Map]], metric: Metric, *, people: Scale) -> tuple[float, float]:
    """Standard error of the difference that comes from fitting the maps, and its degrees of freedom.

    The grouped jackknife: with D_k the difference under the maps without fold k, se^2 = (K-1)/K sum (D_k - mean)^2 on
    K - 1 degrees of freedom. Without it one rescaled judge in ten would pass for a better one.
    """
    values = []
    for pair in zip(*maps, strict=False):
        a, b = (
            _recalibrated(part, _mean_of_maps([one], part.verdicts), people)
            for part, one in zip(parts, pair, strict=True)
        )
        values.append(paired_difference(metric, a, b, at_mark=False, n_perm=1).difference.value)
    known = np.array([value for value in values if value is not None])
    return (jackknife_error(known), len(known) - 1.0) if len(known) > 1 else (0.0, 1.0)


@dataclass(frozen=True)
class _Part:
    """One judge's side of one part, read: gold (n), verdicts (n x R, own scale), groups (n codes)."""

    gold: Floats
    verdicts: Floats
    groups: Ints

    @property
    def known(self) -> Bools:
        """n x R: the pairs with a label and a verdict."""
        return ~np.isnan(self.verdicts + self.gold[:, None])


def _read(labels: PairedLabels, people: Scale, judges: Sequence[Scale]) -> list[_Part]:
    groups = codes_of(labels.groups, len(labels.gold))
    sides = zip((labels.a, labels.b), judges, strict=True)
    read = [read_both(labels.gold, side, people=people, judge=judge) for side, judge in sides]
    return [_Part(gold, verdicts, groups) for gold, verdicts, _ in read]


def _folds(part: _Part, *, seed: int) -> Ints:
    """A fold 0..4 for each row, whole groups together, as even as can be."""
    labelled = np.unique(part.groups[~np.isnan(part.gold)])
    fold_of = np.zeros(int(part.groups.max(initial=0)) + 1, dtype=np.int64)
    fold_of[np.random.default_rng(seed).permutation(labelled)] = np.arange(len(labelled)) % _FOLDS
    return fold_of[part.groups]


def _cross_fitted(part: _Part, folds: Ints, people: Scale) -> dict[int, _Map]:
    """One map for each fold left out, where any pair remains."""
    labels = np.broadcast_to(part.gold[:, None], part.verdicts.shape)
    kept = {fold: part.known & (folds != fold)[:, None] for fold in range(_FOLDS)}
    return {
        fold: fit_monotone(part.verdicts[pairs], labels[pairs], people) for fold, pairs in kept.items() if pairs.any()
    }


def fit_monotone(verdicts: Floats, labels: Floats, people: Scale) -> _Map:
    """The non-decreasing map from verdict to label with the least squared error, strata weighing the same.

    Isotonic regression by pooling adjacent violators (Barlow et al. 1972).
    """
    from scipy.optimize import isotonic_regression

    strata = np.array([people.stratum(label) for label in labels.tolist()], dtype=np.int64)
    weights = 1.0 / np.bincount(strata)[strata]
    knots, place = np.unique(verdicts, return_inverse=True)
    mass = np.bincount(place, weights=weights)
    mean = np.bincount(place, weights=weights * labels) / mass
    return knots, np.asarray(isotonic_regression(mean, weights=mass).x, dtype=np.float64)


def _mean_of_maps(maps: list[_Map], verdicts: Floats) -> Floats:
    """The average of the maps; a missing verdict stays missing."""
    if not maps:
        return np.full_like(verdicts, np.nan)
    mapped = np.mean([_applied(knots, values, verdicts) for knots, values in maps], axis=0)
    return np.where(np.isnan(verdicts), np.nan, mapped)


def _applied(knots: Floats, values: Floats, verdicts: Floats) -> Floats:
    """The map's value at a verdict; between two knots half-way between theirs.

    (Not by distance: the result must not hang on how a judge spaces its scale, or a pure rescaling would
    leave a difference.)
    """
    last = len(knots) - 1
    below = np.clip(np.searchsorted(knots, verdicts, side="right") - 1, 0, last)
    above = np.clip(np.searchsorted(knots, verdicts, side="left"), 0, last)
    return (values[below] + values[above]) / 2.0


def _told(found: Estimate, n_fit_groups: int) -> Estimate:
    if n_fit_groups < MIN_GROUPS:
        reason = f"{n_fit_groups} groups to fit on: fewer than {MIN_GROUPS} give no interval"
        return replace(found, low=None, high=None, method="", reason=found.reason or reason)
    made = f"isotonic over {_FOLDS} folds by group, then {found.method}" if found.method else ""
    return replace(found, method=made)
