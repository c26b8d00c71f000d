"""Calibration: the monotone map from a judge's verdicts to the people's scale, and what a judge is worth
through it.

Judges are decided on what they know: their verdicts go through the non-decreasing map onto the people's scale
that makes macro_agreement highest, which is fitted on other questions than those that it is applied to. A
constant stays a constant, and a rescaling changes nothing.

The map has the least absolute error, each stratum of the labels weighing the same, as macro_agreement does,
on counts that are smoothed over a tenth of the verdicts' ranks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from judgecal.records import Estimate
from judgecal.scale import Label, Scale, common_scale
from judgecal.stats.intervals import MIN_GROUPS, check_level, jackknife_error, too_few
from judgecal.stats.means import linearise, macro_agreement, too_thin
from judgecal.stats.metrics import metric_named
from judgecal.stats.paired import paired_difference
from judgecal.stats.sample import Bools, Floats, Ints, Labels, Sample, as_scale, build, codes_of, read_both

FOLDS = 10
"""Parts of the questions; each part's verdicts are mapped by what the others say."""

_MOST = 200  # distinct verdicts, and labels, that are told apart: more share a step by their rank
_WIDTH = 0.1  # standard deviation of the smoothing, as a share of the verdicts


_Name = TypeVar("_Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Calibration:
    """A monotone step map from verdicts to labels.

    Attributes:
        cuts: ascending, on the judge's own scale: from each on a verdict has the next of `values`.
        values: ascending labels of the people's scale, one more than there are cuts.
        n, n_groups: the labelled pairs that it was fitted on, and their questions.
        fitted_on: which items these are, in words.
    """

    cuts: tuple[float, ...]
    values: tuple[float, ...]
    n: int
    n_groups: int
    fitted_on: str = ""

    def __post_init__(self) -> None:
        if len(self.values) != len(self.cuts) + 1:
            raise ValueError(
                f"a map of {len(self.cuts)} cuts has {len(self.cuts) + 1} values, not {len(self.values)}"
            )

    @property
    def constant(self) -> bool:
        """Whether every verdict has the same label: the judge tells answers apart no better than chance."""
        return not self.cuts

    def apply(self, verdict: Label | None) -> float | None:
        """The people's label of a verdict; None of none."""
        return None if verdict is None else self.values[bisect_right(self.cuts, float(verdict))]

    def mapped(self, verdicts: Floats) -> Floats:
        """Return the labels, an array, to which this map takes an array of verdicts; NaN stays NaN."""
        labels = np.array(self.values)[np.searchsorted(np.array(self.cuts), verdicts, side="right")]
        return np.where(np.isnan(verdicts), np.nan, labels)


def mappable(people: Scale, judge: Scale) -> bool:
    """Return whether verdicts may mean other labels than they say, by people's Scale and a judge's Scale.

    Raises InputError: they share no order.
    """
    common_scale(people, judge)
    return people.numeric and not people.kind == judge.kind == "binary"


def fit_calibration(
    gold_labels: Iterable[object],
    judge_labels: Iterable[object],
    *,
    scale: Scale | str,
    judge_scale: Scale | str | None = None,
    groups: Iterable[Hashable] | None = None,
    fitted_on: str = "",
) -> Calibration | None:
    """Fit a Calibration (None without a map), from gold labels, judge labels and people's Scale.

    None where there is nothing to map (`mappable`), or no item has both. Arguments and errors as in
    `agreement`.
    """
    people = as_scale(scale)
    judge = as_scale(judge_scale or people)
    if not mappable(people, judge):
        return None
    pairs = _Pairs.read(gold_labels, judge_labels, people=people, judge=judge, groups=groups)
    return None if not pairs.known.any() else pairs.fit(fitted_on)


def cross_fit(
    gold_labels: Iterable[object],
    judge_labels: Iterable[object],
    *,
    scale: Scale | str,
    judge_scale: Scale | str | None = None,
    groups: Iterable[Hashable] | None = None,
    seed: int = 0,
    weights: Floats | None = None,
) -> CrossFit | None:
    """Return a CrossFit by tenths of the questions, or None, from gold labels, judge labels and a Scale.

    Two judges that differ by a strictly monotone rescaling have the same verdicts through them. An unscored
    verdict is NaN. `seed` is of the parts; the others as in `agreement`, with its errors (`weights` have a
    mean of 1).

    Returns:
        None where there is nothing to calibrate (`mappable`), or fewer than ten questions are labelled.
    """
    people = as_scale(scale)
    judge = people if judge_scale is None else as_scale(judge_scale)
    if not mappable(people, judge):
        return None
    pairs = _Pairs.read(gold_labels, judge_labels, people=people, judge=judge, groups=groups, weights=weights)
    return pairs.folds(seed)


@dataclass(frozen=True)
class DecidingVerdicts(Generic[_Name]):
    """The verdicts of judges once calibrated, as they are where that cannot be, and their scales."""

    verdicts: Mapping[_Name, Iterable[object]]
    scales: Mapping[_Name, Scale | str]
    fits: Mapping[_Name, CrossFit]  # of those that pass a map

    @classmethod
    def from_fits(
        cls,
        verdicts: Mapping[_Name, Iterable[object]],
        scales: Mapping[_Name, Scale | str],
        fits: Mapping[_Name, CrossFit],
        *,
        scale: Scale,
    ) -> DecidingVerdicts[_Name]:
        """Make DecidingVerdicts, from dicts by name of verdicts, of Scales and of CrossFits, and a Scale."""
        mapped = {name: fit.verdicts for name, fit in fits.items()}
        return cls({**verdicts, **mapped}, {**scales, **dict.fromkeys(mapped, scale)}, fits)

    def error_of_fit(self, a: _Name, b: _Name | None = None) -> tuple[float, float]:
        """Return (standard error, df) that judge a's map, by name, adds, or that of a difference a - b.

        Without the second judge, that of one against what needs no map.

        The grouped jackknife: with D_k the difference through the maps without part k of K, se^2 = (K - 1) /
        K sum (D_k - mean)^2.
        """
        by_map = [self.fits[name].by_map for name in (a, b) if name is not None and name in self.fits]
        return (jackknife_error(by_map[0] - sum(by_map[1:])), FOLDS - 1.0) if by_map else (0.0, 1.0)


def calibrated(
    gold_labels: Labels,
    judges: Mapping[_Name, Iterable[object]],
    *,
    scale: Scale,
    scales: Mapping[_Name, Scale | str],
    groups: Labels | None,
    mapped: bool = True,
    weights: Floats | None = None,
) -> DecidingVerdicts[_Name]:
    """Make DecidingVerdicts from gold labels, labels by judge, people's Scale, Scale by judge, and groups."""
    before, fits = {name: scales.get(name, scale) for name in judges}, dict[_Name, CrossFit]()
    shared: dict[str, Any] = {"scale": scale, "groups": groups, "weights": weights}
    for name, rows in judges.items() if mapped else ():
        fit = cross_fit(gold_labels, rows, judge_scale=before[name], **shared)
        if fit is not None:
            fits[name] = fit
    return DecidingVerdicts.from_fits(judges, before, fits, scale=scale)


@dataclass(frozen=True)
class PairedLabels:
    """Labels of people and verdicts of two judges on the same items."""

    gold: Labels  # n labels; None = missing, the item is left out
    a: Labels  # n verdicts or n rows of repeats, on its judge's scale; None = unscored
    b: Labels  # as `a`
    groups: Labels | None = None  # the question of each item; each item its own where not given


def calibrated_difference(
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
    """Return the Estimate of a - b, from PairedLabels to fit maps, PairedLabels to test on, and a Scale.

    `fit` holds no question of `test` (train and dev, where test decides). Pairs unscored in `fit` are left
    out; in `test` they count as farthest. `seed` is of what the comparison draws.

    Returns:
        a - b as in `compare_paired`; without an interval where either part has fewer than ten groups, or a
        class or stratum fewer than ten items.
    """
    check_level(level)
    people = as_scale(scale)
    chosen, at_mark = metric_named(metric, people)
    judges = [people if given is None else as_scale(given) for given in (a_scale, b_scale)]
    sides, groups, fits = [], [], dict[str, CrossFit]()
    for name, seen, unseen, judge in zip("ab", (fit.a, fit.b), (test.a, test.b), judges, strict=True):
        pairs = _Pairs.read(fit.gold, seen, people=people, judge=judge, groups=fit.groups)
        part = _Pairs.read(test.gold, unseen, people=people, judge=judge, groups=test.groups)
        if not pairs.known.any():
            expected = int((~np.isnan(part.gold)).sum()) * part.verdicts.shape[1]
            return Estimate(None, level=level, n_expected=expected, reason="the fit part has no scored pairs")
        groups.append(pairs.n_groups)
        if not mappable(people, judge):
            sides.append(part.sample(part.verdicts))
            continue
        sides.append(part.sample(pairs.fit().mapped(part.verdicts)))
        if (fit_of_side := pairs.folds(seed, of=part)) is not None:
            fits[name] = fit_of_side
    more_error = DecidingVerdicts[str]({}, {}, fits).error_of_fit("a", "b")
    paired = paired_difference(
        chosen, *sides, at_mark=at_mark, level=level, seed=seed, n_perm=1, more_error=more_error
    )
    difference, refused = paired.difference, too_thin(paired.strata, metric)
    if min(groups) < MIN_GROUPS:
        refused = too_few(min(groups), gives="map")
    if refused is not None:
        return replace(difference, low=None, high=None, method="", reason=difference.reason or refused)
    return replace(difference, method=f"calibrated, then {difference.method}" if difference.method else "")


@dataclass(frozen=True)
class _Pairs:
    """Labels (n), verdicts (n x R, on the judge's scale) and group numbers (n); NaN where missing."""

    people: Scale
    gold: Floats
    verdicts: Floats
    groups: Ints
    weights: Floats | None = None

    @classmethod
    def read(
        cls,
        gold_labels: Iterable[object],
        judge_labels: Iterable[object],
        *,
        people: Scale,
        judge: Scale,
        groups: Iterable[Hashable] | None,
        weights: Floats | None = None,
    ) -> _Pairs:
        gold, verdicts, _ = read_both(gold_labels, judge_labels, people=people, judge=judge)
        return cls(people, gold, verdicts, codes_of(groups, len(gold)), weights)

    @property
    def known(self) -> Bools:
        """n x R: the pairs with a label and a verdict."""
        return ~np.isnan(self.verdicts + self.gold[:, None])

    @property
    def n_groups(self) -> int:
        """Groups with such a pair."""
        return len(np.unique(self.groups[self.known.any(axis=1)]))

    def sample(self, mapped: Floats) -> Sample:
        """The items with verdicts on the people's scale; a missing one counts as the farthest."""
        options: dict[str, Any] = {"people": self.people, "judge": self.people, "weights": self.weights}
        return build(self.gold, mapped, self.groups, unscored="wrong", **options)

    def fit(self, fitted_on: str = "") -> Calibration:
        """The map of all pairs."""
        steps = _Steps.of(self)
        cuts = steps.cuts(steps.counts(np.ones(len(self.gold), dtype=np.bool_)))
        inside = np.unique(cuts[(cuts > 0) & (cuts < len(steps.verdicts))])
        values = steps.grid[np.searchsorted(cuts, np.concatenate([[0], inside]), side="right")]
        n = int(self.known.sum())
        return Calibration(
            tuple(steps.verdicts[inside].tolist()), tuple(values.tolist()), n, self.n_groups, fitted_on
        )

    def folds(self, seed: int, *, of: _Pairs | None = None) -> CrossFit | None:
        """The maps without each tenth of the labelled groups; None below ten groups."""
        fold = fold_numbers(self.gold, self.groups, seed)
        if fold is None or not self.known.any():
            return None
        steps = _Steps.of(self)
        every = steps.counts(np.ones(len(self.gold), dtype=np.bool_))
        to = of or self
        codes = np.maximum(0, np.searchsorted(steps.verdicts, to.verdicts, side="right") - 1)
        maps = []
        for part in range(FOLDS):
            others = every - steps.counts(fold == part)
            fitted_on = others if others.any() else every  # one part may hold all verdicts
            maps.append(steps.grid[np.searchsorted(steps.cuts(fitted_on), codes, side="right")])
        return CrossFit(to, fold, np.where(np.isnan(to.verdicts), np.nan, np.stack(maps)))


@dataclass(frozen=True, eq=False)
class CrossFit:
    """All items through the map of each part left out: n part numbers, K x n x R verdicts."""

    pairs: _Pairs
    fold: Ints
    maps: Floats

    @cached_property
    def verdicts(self) -> Floats:
        """Each item through the map that did not see it, n x R."""
        mapped: Floats = self.maps[self.fold, np.arange(len(self.fold))]
        return mapped

    @cached_property
    def by_map(self) -> Floats:
        """macro_agreement of all items through each map: how far the fit moves it; 0 where undefined."""

        def value(sample: Sample) -> float:
            linear = linearise(macro_agreement(sample), sample)
            return 0.0 if linear is None else linear.value

        return np.array([value(self.pairs.sample(mapped)) for mapped in self.maps])


@dataclass(frozen=True)
class _Steps:
    """The verdicts and labels that a map can tell apart, and how a map is fitted on counts of their pairs."""

    pairs: _Pairs
    verdicts: Floats  # m, ascending; where the step of each begins
    labels: Floats  # k distinct labels
    grid: Floats  # t + 1 labels that the map may give, ascending

    @classmethod
    def of(cls, pairs: _Pairs) -> _Steps:
        gold, people = pairs.gold[~np.isnan(pairs.gold)], pairs.people
        labels = np.unique(gold)
        if people.step is not None:
            grid = np.arange(people.low, people.high + people.step / 2.0, people.step)
        else:
            grid = _thinned(gold, _MOST)
        return cls(pairs, _thinned(pairs.verdicts[~np.isnan(pairs.verdicts)], _MOST), labels, grid)

    def counts(self, rows: Bools) -> Floats:
        """m x k: how often each verdict stands beside each label among these items, weighted where they
        are."""
        scored = self.pairs.known & rows[:, None]
        verdict = np.searchsorted(self.verdicts, self.pairs.verdicts[scored], side="right") - 1
        label = np.searchsorted(self.labels, np.broadcast_to(self.pairs.gold[:, None], scored.shape)[scored])
        shape = (len(self.verdicts), len(self.labels))
        weights = (
            None
            if self.pairs.weights is None
            else np.broadcast_to(self.pairs.weights[:, None], scored.shape)[scored]
        )
        counts = np.bincount(verdict * shape[1] + label, weights=weights, minlength=shape[0] * shape[1])
        return counts.reshape(shape).astype(np.float64)

    def cuts(self, counts: Floats) -> Ints:
        """For each step of the grid the place of the verdict from which on it is taken; m where it never
        is."""
        strata = np.array(
            [self.pairs.people.stratum(label) for label in self.labels.tolist()], dtype=np.int64
        )
        size = np.bincount(strata, weights=counts.sum(axis=0), minlength=3)
        reached = np.clip((self.labels[:, None] - self.grid[:-1]) / np.diff(self.grid), 0.0, 1.0)
        weighed = smoothed(counts / np.maximum(size, 1.0)[strata], counts.sum(axis=1))
        return best_cuts(weighed @ reached, weighed @ (1.0 - reached))


def fold_numbers(gold: Floats, groups: Ints, seed: int) -> Ints | None:
    """Return each item's fold, an array, from gold labels, groups and a seed; None below ten groups."""
    labelled = np.unique(groups[~np.isnan(gold)])
    if len(labelled) < MIN_GROUPS:
        return None
    fold_of = np.zeros(int(groups.max()) + 1, dtype=np.int64)
    fold_of[np.random.default_rng(seed).permutation(labelled)] = np.arange(len(labelled)) % FOLDS
    return fold_of[groups]


def smoothed(weighed: Floats, n: Floats, *, width: float = _WIDTH) -> Floats:
    """Return weights, an array, spread over neighbouring ranks, from them and `n`, counts of each verdict."""
    rank = (np.cumsum(n) - n / 2.0) / n.sum()
    kernel = np.exp(-0.5 * ((rank[:, None] - rank) / width) ** 2)
    spread: Floats = (kernel / kernel.sum(axis=0)) @ weighed
    return spread


def best_cuts(above: Floats, below: Floats) -> Ints:
    """Return the cuts of least absolute error, by two arrays, weights of labels above and of those below.
    Both are m verdicts x t steps.

    That error is a sum over the steps of what lies on the wrong side of each, so each cut has its own least
    error (isotonic regression by thresholds: Chakravarti 1989). The lowest best cuts never fall from step to
    step, nor do the highest; of equally good ones the middlemost is taken, and never one below its
    predecessor.
    """
    blank, last = np.zeros((1, above.shape[1])), len(above)
    low = np.concatenate([blank, np.cumsum(above, axis=0)])
    high = np.concatenate([blank, np.cumsum(below, axis=0)])
    error = low + high[-1] - high  # of the cut before each verdict, and after the last one
    best = error <= error.min(axis=0) + 1e-12
    middle = (best.argmax(axis=0) + last - best[::-1].argmax(axis=0)) / 2.0
    away = np.where(best, np.abs(np.arange(last + 1)[:, None] - middle), np.inf)
    return np.maximum.accumulate(away.argmin(axis=0)).astype(np.int64)


def _thinned(values: Floats, most: int) -> Floats:
    """The distinct values; of more than `most` those at evenly spaced ranks."""
    distinct = np.unique(values)
    if len(distinct) <= most:
        return distinct
    ranks = np.sort(values)[np.linspace(0, len(values) - 1, most).astype(np.int64)]
    return np.unique(ranks)


# standard deviation of the smoothing, as a share of the verdicts, times the root of their number
_CHANCE_WIDTH = 0.3


def cross_fitted_probabilities(
    gold_labels: Iterable[object],
    judge_labels: Iterable[object],
    *,
    scale: Scale | str,
    judge_scale: Scale | str,
    groups: Iterable[Hashable] | None = None,
    seed: int = 0,
    weights: Floats | None = None,
) -> Floats | None:
    """Return percentages n x R from binary gold labels, graded judge labels, and each side's Scale. Each
    item's is from the other questions.

    Two judges that differ by a strictly increasing rescaling have the same; all verdicts alike have the base
    rate. An unscored verdict is NaN. Arguments and errors as in `cross_fit`.

    Returns:
        None where the labels are not binary, the verdicts are, or fewer than ten questions are labelled.
    """
    people, judge = as_scale(scale), as_scale(judge_scale)
    if people.kind != "binary" or judge.kind == "binary" or not judge.numeric:
        return None
    gold, verdicts, _ = read_both(gold_labels, judge_labels, people=people, judge=judge)
    fold, scored = fold_numbers(gold, codes_of(groups, len(gold)), seed), ~np.isnan(verdicts + gold[:, None])
    if fold is None or not scored.any():
        return None
    heavy = np.ones(len(gold)) if weights is None else weights
    chances = np.full(verdicts.shape, np.nan)
    for part in range(FOLDS):
        others, held_out = scored & (fold != part)[:, None], fold == part
        used = others if others.any() else scored  # one part may hold all verdicts
        right, weight = (np.broadcast_to(column[:, None], used.shape)[used] for column in (gold, heavy))
        chances[held_out] = _fitted(verdicts[used], right, weight, at=verdicts[held_out])
    percentages: Floats = 100.0 * np.where(np.isnan(verdicts), np.nan, chances)
    return percentages


def _fitted(verdicts: Floats, right: Floats, weight: Floats, *, at: Floats) -> Floats:
    """The non-decreasing chances with the least squared error, read at other verdicts."""
    from scipy.optimize import isotonic_regression  # 220 modules that every command would load with it

    distinct, code = np.unique(verdicts, return_inverse=True)
    size, passes = (
        np.bincount(code, weights=column).astype(np.float64) for column in (weight, weight * right)
    )
    sums = smoothed(np.stack([size, passes], axis=1), size, width=_CHANCE_WIDTH / len(verdicts) ** 0.5)
    chance: Floats = isotonic_regression(sums[:, 1] / sums[:, 0], weights=size).x
    return chance[np.maximum(0, np.searchsorted(distinct, at, side="right") - 1)]
