"""Metrics that are means: closeness, errors, proportions; and how a mean is linearised by group.

Each is a weighted mean of ratios of sums: one ratio a stratum, the strata weighing the same, the repeats
averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgecal.errors import InputError
from judgecal.scale import Label, Scale
from judgecal.stats.sample import Bools, Classes, Floats, Ints, Sample, as_scale, as_sequence, read_both

_NO_CLASS = "no scored item of the class"
UNEQUAL = "the items were drawn with unequal probabilities, which only means are weighted by"
"""Why a metric has no value on such items."""


@dataclass(frozen=True)
class Means:
    """The terms of a mean of ratios."""

    top: Floats  # n x R x S; a pair that is not used has zeros
    bottom: Floats  # n x R x S
    used: Bools  # n x R, the pairs that the value rests on
    low: float  # of the metric's range
    high: float  # of the same
    fewest: int = 1  # strata that must be filled for the mean to be defined; `undefined` says what is missing
    undefined: str = "no scored pairs"
    root: bool = False  # the square root of the ratio is meant (one stratum)
    plain: bool = True  # whether it is a mean over items, whose weights hang on no verdict


@dataclass(frozen=True)
class LinearMean:
    """A mean of ratios, linearised by group: value = weights @ ratios."""

    weights: Floats  # S; the repeats are averaged
    ratios: Floats  # S
    influence: Floats  # G x S, what each group adds to its stratum's ratio; sums to 0 over the groups
    share: Floats  # G x S, the group's part of the stratum's denominator; sums to 1
    items: Floats  # S, how many the stratum rests on
    groups: Floats  # S
    all_groups: int  # how many groups the value rests on
    repeats: Bools  # repeats in which the metric is defined
    two_valued: bool  # every pair counts one end of the range or the other: the ratios are proportions
    means: Means  # the terms

    @property
    def value(self) -> float:
        return float(self.weights @ self.ratios)


def linearise(means: Means, sample: Sample) -> LinearMean | None:
    """Return a LinearMean, with each group's influence, from Means and their Sample; None where undefined.

    The influence of group g on a ratio A/N is (A_g - r N_g) / N (Taylor linearisation with groups as primary
    units; Woodruff 1971). A repeat in which too few strata are filled is left out. Items that were not all as
    likely to be drawn weigh by 1 / that chance, in value and influences (Hajek 1971).
    """
    weight = 1.0 if sample.weights is None else sample.weights[:, None, None]
    top, bottom = sample.per_group(weight * means.top), sample.per_group(weight * means.bottom)  # G x R x S
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
    present, counted = _present(means, filled), means.bottom > 0.0
    whole = np.all(means.bottom[counted] == 1.0)
    return LinearMean(
        weights=per_stratum,
        ratios=(part * ratios).sum(axis=0),
        influence=(part * influence).sum(axis=1),
        share=(part * np.where(filled, bottom, 0.0) / safe).sum(axis=1),
        items=present.sum(axis=0).astype(np.float64),
        groups=(sample.per_group(present) > 0.0).sum(axis=0).astype(np.float64),
        all_groups=sample.groups_among(present),
        repeats=repeats,
        two_valued=bool(whole and np.all(np.isin(means.top[counted], (means.low, means.high)))),
        means=means,
    )


def linear_mean(
    values: Floats, group_of: Ints, *, low: float = 0.0, high: float = 1.0, weights: Floats | None = None
) -> LinearMean:
    """Return the LinearMean of an array of values in low..high, from them and the group of each."""
    codes = np.unique(group_of, return_inverse=True)[1]
    heavy = np.ones(len(values)) if weights is None else weights
    size, top = np.bincount(codes, heavy), np.bincount(codes, heavy * values)
    ratio, share = float(top.sum() / size.sum()), size / size.sum()
    influence = (top - ratio * size) / size.sum()
    blank, used = np.zeros((1, 1, 1)), np.ones((1, 1), dtype=np.bool_)
    return LinearMean(
        weights=np.ones(1),
        ratios=np.array([ratio]),
        influence=influence[:, None],
        share=share[:, None],
        items=np.array([float(len(values)) if weights is None else 1.0 / float((share**2).sum())]),
        groups=np.array([float(len(size))]),
        all_groups=len(size),
        repeats=used[0],
        two_valued=bool(np.isin(values, (low, high)).all()),
        means=Means(blank, blank, used, low, high),
    )


def _present(means: Means, filled: Bools) -> Bools:
    """n x S: the items that a stratum rests on; with one stratum all that are used, whatever their weight."""
    inside: Bools = means.used[..., None] if means.bottom.shape[2] == 1 else means.bottom > 0.0
    present: Bools = (inside & filled).sum(axis=1) > 0
    return present


def best_constant(
    gold_labels: Iterable[object],
    *,
    scale: Scale | str,
    metric: str | None = None,
    weights: Floats | None = None,
) -> Label:
    """Return the best constant verdict, a label, by a metric, from gold labels and a Scale.

    The metric is macro_agreement where not given. The label is a step of the scale, and where it has none a
    label that occurs; of equally good ones it is the lowest. `weights` as in `agreement`.
    """
    people = as_scale(scale)
    labels = as_sequence(gold_labels)
    gold, _, words = read_both(labels, np.full(len(labels), np.nan), people=people, judge=people)
    there = ~np.isnan(gold)
    distinct, place = np.unique(gold[there], return_inverse=True)
    counts = np.bincount(place, weights=None if weights is None else weights[there], minlength=len(distinct))
    if distinct.size == 0:
        raise InputError("no gold label: there is no best constant")
    if people.kind == "nominal":
        return min(words[int(code)] for code in distinct[counts == counts.max()])
    steps = (
        distinct
        if people.step is None
        else np.arange(people.low, people.high + people.step / 2.0, people.step)
    )
    weights = counts.astype(np.float64)
    if metric in (None, "macro_agreement"):
        strata = np.array([people.stratum(label) for label in distinct.tolist()])
        weights /= np.bincount(strata, weights=counts)[strata]
    apart = np.abs(steps[:, None] - distinct)
    missed = np.round(_MISSED.get(metric or "", np.asarray)(apart / people.span) @ weights, 12)
    return float(steps[missed.argmin()])


_MISSED: Mapping[str, Callable[[Floats], Floats]] = {
    "rmse": np.square,
    "accuracy": np.sign,
    "within_10": lambda apart: (apart > 0.1 * (1.0 + 1e-9)).astype(np.float64),
}
"""What a constant loses: its distance from a label as a share of the range, or by any other metric."""


def mean_agreement(sample: Sample) -> Means:
    """1 - |verdict - label| / range, the mean over a Sample's pairs, as Means; 0..1."""
    return _one_mean(_closeness(sample), sample.scored, low=0.0, high=1.0)


def macro_agreement(sample: Sample) -> Means:
    """Return the Means of a Sample: agreement 0..1, averaged over strata of the gold label. These are the two
    classes, or thirds of the scale.

    Undefined where fewer than two strata hold a scored pair: a constant verdict would win it.
    """
    places = {label: sample.scale.stratum(label) for label in set(sample.gold.tolist())}
    stratum = np.array([places[label] for label in sample.gold.tolist()], dtype=np.int64)
    member = stratum[:, None] == np.arange(3)
    return _stratified(
        _closeness(sample),
        sample.scored,
        member,
        undefined="scored labels lie in one stratum of the scale only",
    )


def skill(sample: Sample) -> Means | str:
    """Return the Means of a Sample for 1 - MAE / MAE of its best constant, the median label; up to 1."""
    if sample.weights is not None:
        return UNEQUAL
    error, scored = _error(sample), sample.scored
    best = [float(np.median(sample.gold[column])) if column.any() else 0.0 for column in scored.T]
    deviation = np.where(scored, np.abs(sample.gold[:, None] - np.array(best)), 0.0)
    top = np.where(scored, deviation - np.abs(error), 0.0)
    undefined = "all labels are equal: the best constant makes no error"
    return Means(
        top[..., None], deviation[..., None], scored, -math.inf, 1.0, undefined=undefined, plain=False
    )


def mae(sample: Sample) -> Means:
    """Mean absolute error of a Sample, as Means, in units of the common scale; 0..range."""
    return _one_mean(np.abs(_error(sample)), sample.scored, low=0.0, high=sample.scale.span)


def rmse(sample: Sample) -> Means:
    """Root of the mean squared error of a Sample, as Means, in units of the common scale; 0..range."""
    return _one_mean(_error(sample) ** 2, sample.scored, low=0.0, high=sample.scale.span, root=True)


def bias(sample: Sample) -> Means:
    """Mean of verdict - label in a Sample, as Means, in units of the common scale; above 0 is lenient."""
    return _one_mean(_error(sample), sample.scored, low=-sample.scale.span, high=sample.scale.span)


def brier(sample: Sample) -> Means:
    """Return the Means of a Sample for the squared distance of verdict, a probability, and binary label.

    Source: Brier (1950).
    """
    return _one_mean((_error(sample) / sample.scale.span) ** 2, sample.scored, low=0.0, high=1.0)


def within_10(sample: Sample) -> Means:
    """Return the Means of a Sample for the share of verdicts within a tenth of the range of their label."""
    near = np.abs(_error(sample)) <= 0.1 * sample.scale.span * (1.0 + 1e-9)
    return _one_mean(near.astype(np.float64), sample.scored, low=0.0, high=1.0)


def accuracy(sample: Sample) -> Means | str:
    """Return the Means of a Sample for the share, 0..1, of pairs in the same class."""
    classes = sample.categories
    return classes.problem or _one_mean(_same(classes), sample.scored, low=0.0, high=1.0)


def tpr(sample: Sample) -> Means:
    """Share of a Sample's passing items that the judge passes (sensitivity), as Means; 0..1."""
    return _rate(sample, 1)


def tnr(sample: Sample) -> Means:
    """Share of a Sample's failing items that the judge fails (specificity), as Means; 0..1."""
    return _rate(sample, 0)


def balanced_accuracy(sample: Sample) -> Means:
    """Return the Means of a Sample for the mean of TPR and TNR, 0..1, undefined where a class is empty."""
    classes = sample.categories
    member = classes.gold[:, None] == np.arange(2)
    return _stratified(_same(classes), sample.scored, member, undefined=_NO_CLASS)


def f1(sample: Sample) -> Means:
    """Return the Means of a Sample for F1 of passing items: 2 tp / (2 tp + fp + fn).

    It rests on the items that pass by label or verdict: right fails do not count.
    """
    classes = sample.categories
    gold = np.broadcast_to(classes.gold[:, None].astype(np.float64), sample.scored.shape)
    verdicts = np.where(sample.scored, classes.verdicts, 0.0)
    used: Bools = sample.scored & (gold + verdicts > 0.0)
    top = np.where(used, gold * verdicts, 0.0)[..., None]
    bottom = np.where(used, (gold + verdicts) / 2.0, 0.0)[..., None]
    undefined = "no scored item passes by label or verdict"
    return Means(top, bottom, used, 0.0, 1.0, undefined=undefined, plain=False)


def prevalence(sample: Sample) -> Means:
    """Return the Means of a Sample for the share, 0..1, of scored items that pass by their label."""
    passed = np.broadcast_to(sample.categories.gold[:, None].astype(np.float64), sample.scored.shape)
    return _one_mean(passed, sample.scored, low=0.0, high=1.0)


def _rate(sample: Sample, of_class: int) -> Means:
    classes = sample.categories
    used = sample.scored & (classes.gold == of_class)[:, None]
    return _one_mean(_same(classes), used, low=0.0, high=1.0, undefined=_NO_CLASS)


def _same(classes: Classes) -> Floats:
    same: Bools = classes.verdicts == classes.gold[:, None]
    return same.astype(np.float64)


def _error(sample: Sample) -> Floats:
    return sample.verdicts - sample.gold[:, None]


def _closeness(sample: Sample) -> Floats:
    return 1.0 - np.abs(_error(sample)) / sample.scale.span


def _one_mean(
    values: Floats,
    used: Bools,
    *,
    low: float,
    high: float,
    undefined: str = "no scored pairs",
    root: bool = False,
) -> Means:
    top = np.where(used, values, 0.0)[..., None]
    bottom = used.astype(np.float64)[..., None]
    return Means(top, bottom, used, low, high, undefined=undefined, root=root, plain=not root)


def _stratified(values: Floats, used: Bools, member: Bools, *, undefined: str) -> Means:
    inside = used[:, :, None] & member[:, None, :]
    top = np.where(inside, values[..., None], 0.0)
    return Means(top, inside.astype(np.float64), used, 0.0, 1.0, fewest=2, undefined=undefined)


MIN_STRATUM = 10
"""Fewer items than this in a class or stratum, and nothing is decided by a macro metric."""
DRIVING = 2.0 / 3.0
"""The share of the variance from which on one stratum drives an interval."""
NARROWER = 0.25
"""`Stratum.more` items would narrow the interval by this share."""

_THIRDS = ("low third", "middle third", "high third")


@dataclass(frozen=True, slots=True)
class Stratum:
    """One class or third of the scale in a macro metric.

    Attributes:
        name: "fail" or "pass"; of a graded scale "low third", "middle third" or "high third" of the labels.
        n: items whose label lies in it.
        n_all: items of all strata.
        share: its part of the variance of the metric, or of the difference, 0..1; None where that has none.
    """

    name: str
    n: int
    n_all: int
    share: float | None

    @property
    def thin(self) -> bool:
        """Whether the stratum holds too few items for a decision."""
        return self.n < MIN_STRATUM

    @property
    def more(self) -> int | None:
        """Items of it beside those there are that bring it to `MIN_STRATUM`, or narrow the interval by
        `NARROWER`.

        With v its share of the variance and n items, n / (n + more) of v is left: (1 - NARROWER)^2 = 1 - v
        more / (n + more). None where the rest of the variance is too large for that.
        """
        if self.thin:
            return MIN_STRATUM - self.n
        gone = 1.0 - (1.0 - NARROWER) ** 2
        share = self.share or 0.0
        return math.ceil(self.n * gone / (share - gone)) if share > gone else None

    @property
    def in_words(self) -> str:
        """How many more items of the stratum to label, and what they would bring."""
        if self.more is None:
            return "more of them would hardly help"
        brings = "so that we can decide" if self.thin else "to narrow the interval by a quarter"
        return f"label {self.more} more of them {brings}"


def strata_of(linear: LinearMean, sample: Sample) -> tuple[Stratum, ...]:
    """Return a tuple of filled Stratum objects, from the LinearMean of a macro metric and its Sample."""
    if linear.means.fewest < 2:
        return ()
    parts = ((linear.influence * linear.weights) ** 2).sum(axis=0)
    parts *= linear.groups / np.maximum(linear.groups - 1.0, 1.0)
    total, n_all = float(parts.sum()), int(linear.items.sum())
    two = sample.binary_gold or len(linear.items) == 2
    return tuple(
        Stratum(
            ("pass" if place else "fail") if two else _THIRDS[place],
            n=int(linear.items[place]),
            n_all=n_all,
            share=float(parts[place]) / total if total > 0.0 else None,
        )
        for place in np.flatnonzero(linear.items).tolist()
    )


def too_thin(strata: Sequence[Stratum], metric: str) -> str | None:
    """Return why nothing is decided, a text, from a list of Stratum and a metric's name; None where it is."""
    few = " and ".join(
        f'{stratum.n} in "{stratum.name}" ({stratum.more} more would do)'
        for stratum in strata
        if stratum.thin
    )
    if not few:
        return None
    return (
        f"of {strata[0].n_all} labelled items only {few}: below {MIN_STRATUM} we decide nothing by {metric}"
    )


def stratum_that_drives(strata: Sequence[Stratum]) -> Stratum | None:
    """Return, from a list of Stratum, the Stratum with `DRIVING` of the variance or more, or None."""
    return next(
        (
            stratum
            for stratum in strata
            if (stratum.share or 0.0) >= DRIVING and stratum.n * len(strata) < stratum.n_all
        ),
        None,
    )


def driven_in_words(pairs: Iterable[tuple[str, str, Sequence[Stratum]]]) -> list[str]:
    """Return sentences, a list, from pairs (a, b, strata), for each stratum that drives an interval. It has
    no full stop.

    Of several pairs it names the one whose interval hangs on the stratum most, and counts the others.
    """
    driven: dict[str, list[tuple[str, str, Stratum]]] = {}
    for a, b, strata in pairs:
        driver = stratum_that_drives(strata)
        if driver is not None:
            driven.setdefault(driver.name, []).append((a, b, driver))
    sentences = []
    for drivers in driven.values():
        a, b, most = max(drivers, key=lambda one: one[2].share or 0.0)
        also = "" if len(drivers) == 1 else f", and {DRIVING:.0%} or more in {len(drivers) - 1} more pairs"
        sentences.append(
            f"{a} and {b}: most of the doubt about their difference ({most.share:.0%} of its variance{also}) "
            f'comes from the {most.n} "{most.name}" items of {most.n_all}; {most.in_words}'
        )
    return sentences
