"""Test-retest: how far a judge agrees with itself when it is asked again.

Repeatability is no accuracy: a judge that is wrong in the same way every time repeats itself perfectly.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from judgecal.errors import InputError
from judgecal.records import Estimate
from judgecal.scale import Scale
from judgecal.stats.agreement import estimate, prepare
from judgecal.stats.intervals import (
    MIN_GROUPS,
    Interval,
    Totals,
    check_level,
    divide,
    linear_interval,
    score_interval,
    too_few,
)
from judgecal.stats.means import Linear, Means, linearise
from judgecal.stats.metrics import METRICS
from judgecal.stats.sample import Bools, Floats, Sample, as_scale, read_both, renumbered

_TINY = 1e-12  # a mean square below this share of the squared range is rounding
_NO_PAIR = "no item has two verdicts"


@dataclass(frozen=True)
class Repeated:
    """The items with two verdicts or more, sorted by group, of a `sample` of all labelled items."""

    people: Scale
    sample: Sample
    rows: Sample  # one row an item, so that its group sums and intervals are those of items
    verdicts: Floats  # n x R on the common scale; codes on a nominal one
    classes: Floats | None  # n x R, pass (1) or fail (0); None where there is no mark
    labels: Floats | None  # n, likewise

    @classmethod
    def of(cls, sample: Sample, people: Scale, *, against_labels: bool) -> Repeated:
        """Those of a sample from which unscored verdicts were dropped."""
        kept: Bools = sample.scored.sum(axis=1) >= 2
        column = np.zeros((int(kept.sum()), 1))
        gold, group_of, passes = sample.gold[kept], renumbered(sample.group_of[kept]), sample.passes(people)
        verdicts = sample.verdicts[kept]
        middle = np.nanmean(verdicts, axis=1)  # what spreads here are the verdicts
        return cls(
            people=people,
            sample=sample,
            rows=replace(
                sample, gold=middle, verdicts=column, filled=column > 0, group_of=group_of, classes=None
            ),
            verdicts=verdicts,
            classes=None if passes is None else passes.verdicts[kept],
            labels=gold if against_labels else None,
        )

    @cached_property
    def counts(self) -> Floats:
        """Verdicts of each item."""
        return np.asarray((~np.isnan(self.verdicts)).sum(axis=1), dtype=np.float64)

    def linear(self, top: Floats, bottom: Floats, *, high: float, root: bool = False) -> Linear:
        """A ratio of sums over the items, linearised by group."""
        used = np.ones((len(top), 1), dtype=np.bool_)
        means = Means(top[:, None, None], bottom[:, None, None], used, 0.0, high, root=root)
        linear = linearise(means, self.rows)
        assert linear is not None  # there is an item
        return linear


def equal_pairs(values: Floats) -> Floats:
    """The share of each row's pairs that are equal; NaN is in no pair. In a sorted row equal values are
    runs."""
    ordered = np.sort(values, axis=1)  # NaN goes last
    run = np.zeros(len(values))
    equal = np.zeros(len(values))
    for left, right in zip(ordered.T[:-1], ordered.T[1:], strict=True):
        run = np.where(left == right, run + 1.0, 0.0)
        equal += run
    n = (~np.isnan(values)).sum(axis=1)
    return np.asarray(equal / (n * (n - 1) / 2.0), dtype=np.float64)


def squares(values: Floats) -> Floats:
    """Each row's sum of squares around its own mean; exactly 0 where all its values are equal."""
    above = values - np.nanmin(values, axis=1, keepdims=True)
    away = above - np.nanmean(above, axis=1, keepdims=True)
    return np.asarray(np.nansum(away**2, axis=1), dtype=np.float64)


def _run_sd(repeated: Repeated) -> float | None:
    """The standard deviation that one call an item brings into the mean of `_scores` over all items; None
    where verdicts have none, or on fewer than ten questions."""
    values = _scores(repeated)
    if values is None or not len(values) or repeated.rows.n_groups < MIN_GROUPS:
        return None
    mean_square = float(squares(values).sum() / ((~np.isnan(values)).sum() - len(values)))
    return math.sqrt(mean_square / len(values))


def _scores(repeated: Repeated) -> Floats | None:
    """What a trial's mean is taken of, 0..1: closeness to the label, or without one the verdict itself."""
    scale, verdicts = repeated.sample.scale, repeated.verdicts
    if repeated.labels is None:
        return (verdicts - scale.low) / scale.span if scale.numeric else None
    apart = np.abs(verdicts - repeated.labels[:, None])
    if scale.numeric:
        return np.asarray(1.0 - apart / scale.span, dtype=np.float64)
    return np.where(np.isnan(apart), np.nan, (apart == 0.0).astype(np.float64))


@dataclass(frozen=True, slots=True)
class Repeatability:
    """How far a judge agrees with itself.

    Attributes:
        estimates: `exact_agreement` (share of equal pairs of repeats, the mean over the items), `unanimous`
            (share of items with equal verdicts), `flip_rate` or `flip_rate@75` (share of pairs on different
            sides of the mark, or in different classes), `within_item_sd` (on the common scale),
            `within_item_sd_share` (of its range), `icc_1_1`. n counts the verdicts of the `n_items` items
            that have two or more.
        run_sd: the standard deviation of the mean agreement of a run of one call an item (without labels of
            its mean verdict, 0..1) between runs; None where there is none, or on fewer than ten questions.
    """

    estimates: dict[str, Estimate]
    n_items: int
    run_sd: float | None


def repeatability(
    verdicts: Iterable[object],
    *,
    scale: Scale | str,
    judge_scale: Scale | str | None = None,
    gold_labels: Iterable[object] | None = None,
    groups: Iterable[Hashable] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Repeatability:
    """Test-retest statistics of one judge; items with fewer than two verdicts say nothing and are left out.

    `verdicts` are n rows of R repeats; `gold_labels` turn `run_sd` into that of the agreement (an item
    without one is left out); the others are as in `agreement`, and so are the errors; one repeat is one too.
    """
    check_level(level)
    people = as_scale(scale)
    rows = list(verdicts)
    labels = _any_labels(rows, people, judge_scale) if gold_labels is None else gold_labels
    sample = prepare(labels, rows, people=people, judge_scale=judge_scale, groups=groups, unscored="drop")
    if sample.verdicts.shape[1] < 2:
        raise InputError("repeatability needs two repeats or more, found 1")
    repeated = Repeated.of(sample, people, against_labels=gold_labels is not None)
    found = _Estimates(repeated, level).all(seed=seed)
    return Repeatability(found, len(repeated.counts), _run_sd(repeated))


def _any_labels(rows: list[object], people: Scale, judge_scale: Scale | str | None) -> list[object]:
    """One label that fits the scale for every item: nothing is held against it."""
    if people.numeric:
        return [people.low] * len(rows)
    judge = people if judge_scale is None else as_scale(judge_scale)
    _, _, words = read_both([None] * len(rows), rows, people=people, judge=judge)
    return [words[0] if words else None] * len(rows)


@dataclass(frozen=True)
class _Estimates:
    """What the estimates share: the items judged more than once, and the level of the intervals."""

    of: Repeated
    level: float

    def all(self, *, seed: int) -> dict[str, Estimate]:
        """Every statistic by its name."""
        same, people = equal_pairs(self.of.verdicts), self.of.people
        unanimous = (same == 1.0).astype(np.float64)
        found = {"exact_agreement": self._share(same), "unanimous": self._share(unanimous)}
        if self.of.classes is not None or people.kind == "nominal":
            in_class = same if self.of.classes is None else equal_pairs(self.of.classes)
            mark = f"@{people.pass_at:g}" if people.graded else ""
            found[f"flip_rate{mark}"] = self._share(1.0 - in_class)
        found["within_item_sd"], found["within_item_sd_share"] = self._sd()
        return found | {"icc_1_1": self._icc(seed=seed)}

    def _blank(self, reason: str | None = None) -> Estimate:
        return Estimate(
            None,
            level=self.level,
            n=int(self.of.counts.sum()),
            n_expected=self.of.sample.n_expected,
            n_groups=self.of.rows.n_groups,
            n_unscored=self.of.sample.n_unscored,
            reason=reason,
        )

    def _share(self, values: Floats) -> Estimate:
        """The mean of shares, an item the same weight each; as a proportion by Wilson on the effective n."""
        if not len(values):
            return self._blank(_NO_PAIR)
        linear = self.of.linear(values, np.ones_like(values), high=1.0)
        return self._with(linear, score_interval(linear, level=self.level))

    @property
    def _no_spread(self) -> str | None:
        """Why nothing can be said of how far verdicts lie apart, where that is so."""
        if not self.of.people.numeric:
            return "the labels have no order"
        return None if len(self.of.counts) else _NO_PAIR

    def _sd(self) -> tuple[Estimate, Estimate]:
        """In units of the common scale, and as a share of its range."""
        if self._no_spread:
            return (self._blank(self._no_spread),) * 2
        span = self.of.sample.scale.span
        linear = self.of.linear(squares(self.of.verdicts), self.of.counts - 1.0, high=span, root=True)
        sd = self._with(linear, linear_interval(linear, level=self.level))
        value, low, high = (None if one is None else one / span for one in (sd.value, sd.low, sd.high))
        return sd, replace(sd, value=value, low=low, high=high)

    def _icc(self, *, seed: int) -> Estimate:
        if self._no_spread:
            return self._blank(self._no_spread)
        kin, terms = METRICS["icc_2_1"], _icc_1_1(self.of)
        found = estimate(kin, terms, self.of.rows, level=self.level, seed=seed)
        n, all_items = int(self.of.counts.sum()), self.of.sample
        return replace(found, n=n, n_expected=all_items.n_expected, n_unscored=all_items.n_unscored)

    def _with(self, linear: Linear, interval: Interval) -> Estimate:
        n = self.of.rows.n_groups
        interval = Interval(reason=too_few(n)) if n < MIN_GROUPS else interval
        return interval.of(linear.value, self._blank())


def _icc_1_1(repeated: Repeated) -> Totals:
    """ICC(1,1) = (MSB - MSW) / (MSB + (m - 1) MSW), with the mean squares between and within items.

    m: verdicts an item, or (N - sum m_i^2 / N) / (n - 1) where some are missing. Source: Shrout and Fleiss
    (1979); Searle, Casella and McCulloch (1992).
    """
    middle, span = float(np.nanmean(repeated.verdicts)), repeated.sample.scale.span
    x = (repeated.verdicts - middle) / span
    m, mean = repeated.counts, np.nanmean(x, axis=1)
    sums = np.stack([np.ones_like(m), m, m**2, m * mean, m * mean**2, squares(x)], axis=1)

    def combine(totals: Floats) -> Floats:
        items, n, squared, total, between, within = np.moveaxis(totals, -1, 0)
        several = np.where(items > 1.5, items, np.nan)
        msb = np.maximum(between - total**2 / n, 0.0) / (several - 1.0)
        msw = within / (n - several)
        size = (n - squared / n) / (several - 1.0)
        return divide(msb - msw, msb + (size - 1.0) * msw, tiny=_TINY)

    reason = "all verdicts are equal, or fewer than two items have two of them"
    return Totals.of(sums[:, None, :], repeated.rows, combine, undefined=reason)
