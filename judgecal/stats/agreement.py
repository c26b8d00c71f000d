"""Agreement of one judge with people: every metric of the scale, each with its interval and its counts."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from judgecal.records import Estimate, Result
from judgecal.scale import Scale
from judgecal.stats.correlation import Tables
from judgecal.stats.intervals import (
    MIN_CLASS,
    MIN_GROUPS,
    MIN_STRATUM,
    Interval,
    IntervalBasis,
    check_level,
    jackknife_interval,
    linear_interval,
    score_interval,
    too_few,
)
from judgecal.stats.means import UNEQUAL, LinearMean, Means, linearise
from judgecal.stats.metrics import Metric, Statistic, Terms, metric_named, metrics_of
from judgecal.stats.sample import Bools, Floats, Sample, Unscored, as_scale, build, codes_of, read_both

_MOST_GROUPS = 1000  # up to which each is left out in turn where values hang on the whole table of ranks
_BLOCKS = 100  # of groups, left out in turn from there on


class Estimates(dict[str, Estimate], Result):
    """Estimates by their names, the one to look at first leading."""

    def frame(self) -> Any:
        """Return these Estimates as a `polars.DataFrame`, a row an estimate."""
        import polars

        rows = [{"number": name, **value.as_json()} for name, value in self.items()]
        return polars.DataFrame(rows, infer_schema_length=None)


class Agreement(Estimates):
    """How far a judge agrees with labels: metric -> Estimate, the metric first that judges are ranked by.

    Attributes:
        metric: that one.
        decides: its estimate as it decides between judges: an item without a verdict counts as wrong, and
            verdicts are brought onto the scale of the labels by a map that did not see the item's question,
            where there are questions enough for one (`calibrated`).
    """

    def __init__(
        self, estimates: Mapping[str, Estimate], *, metric: str, decides: Estimate, calibrated: bool
    ) -> None:
        super().__init__({metric: estimates[metric], **estimates} if metric in estimates else estimates)
        self.metric, self.decides, self.calibrated = metric, decides, calibrated

    def as_json(self) -> dict[str, Any]:
        """Return a JSON dict of these results: the metrics under `agreement`, and what decides."""
        return {
            "metric": self.metric,
            "calibrated": self.calibrated,
            "decides": self.decides.as_json(),
            "agreement": super().as_json(),
        }


def agreement(
    gold_labels: Iterable[object],
    judge_labels: Iterable[object],
    *,
    scale: Scale | str,
    judge_scale: Scale | str | None = None,
    groups: Iterable[Hashable] | None = None,
    level: float = 0.95,
    seed: int = 0,
    metrics: Sequence[str] | None = None,
    unscored: Unscored = "drop",
    weights: Floats | None = None,
) -> dict[str, Estimate]:
    """Return metric name -> Estimate, from people's gold labels, a judge's labels and a Scale.

    Repeats: a metric is taken in each repeat and averaged, so it is the agreement of a single call; a repeat
    in which it is undefined is left out. Intervals are by group over that average.

    Args:
        gold_labels: n labels of people; None or NaN = missing: the item is left out entirely.
        judge_labels: n verdicts on the judge's scale, or n rows of R repeats; None or NaN = unscored.
        scale, judge_scale: the people's, with its pass mark; the judge's, where it is another.
        groups: the question of each item; each item its own where not given.
        level: nominal coverage of the intervals.
        seed: of the blocks of groups that are left out together (coefficients of ranks, above 1,000 groups).
        metrics: which, in this order; all that the scale has where not given.
        unscored: "drop" = complete case; "wrong" = an unscored pair counts as the verdict farthest from its
            label, on classes as the wrong class, on a nominal scale as a category of its own.
        weights: n, in proportion to 1 / the chance with which each item was drawn, where these differ. Means
            are weighted; skill and coefficients have no value then, and the reason.

    Returns:
        Metric name to Estimate; n counts the pairs that the value rests on, n_expected labelled items times
        R.
    """
    check_level(level)
    people = as_scale(scale)
    chosen = metrics_of(people)
    if metrics is not None:
        chosen = {name: metric_named(name, people) for name in metrics}
    options: dict[str, Any] = {
        "judge_scale": judge_scale,
        "groups": groups,
        "unscored": unscored,
        "weights": weights,
    }
    sample = prepare(gold_labels, judge_labels, people=people, **options)
    return {
        name: estimate(
            metric, terms_of(metric, sample, cut), sample.at_mark if cut else sample, level=level, seed=seed
        )
        for name, (metric, cut) in chosen.items()
    }


def prepare(
    gold_labels: Iterable[object],
    judge_labels: Iterable[object],
    *,
    people: Scale,
    judge_scale: Scale | str | None,
    groups: Iterable[Hashable] | None,
    unscored: Unscored,
    weights: Floats | None = None,
) -> Sample:
    """Make a Sample of gold labels, judge labels, people's Scale, judge's Scale, groups and `unscored`."""
    judge = people if judge_scale is None else as_scale(judge_scale)
    gold, verdicts, words = read_both(gold_labels, judge_labels, people=people, judge=judge)
    return build(
        gold,
        verdicts,
        codes_of(groups, len(gold)),
        people=people,
        judge=judge,
        unscored=unscored,
        words=words,
        weights=weights,
    )


def terms_of(metric: Metric, sample: Sample, at_mark: bool) -> Terms:
    """Return the Terms of a Metric on a Sample, at its mark or not (a flag); a text why it has none."""
    if sample.n_expected == 0:
        return "no labelled items"
    if len(sample.gold) == 0:
        return "no scored pairs"
    terms = metric.terms(sample.at_mark if at_mark else sample)
    return UNEQUAL if sample.weights is not None and not isinstance(terms, Means | str) else terms


def estimate(metric: Metric, terms: Terms, sample: Sample, *, level: float, seed: int) -> Estimate:
    """Return an Estimate from a Metric, its Terms, a Sample, a level and a seed; or the reason for none.

    `sample` is the one that the terms are of: at its mark where they are.
    """
    if isinstance(terms, str):
        every = np.ones(sample.scored.shape[1], dtype=np.bool_)
        return replace(_counted(sample, sample.scored, every, level=level), reason=terms)
    if isinstance(terms, Means):
        return _estimate_mean(metric, terms, sample, level=level)
    return _estimate_coefficient(metric, terms, sample, level=level, seed=seed)


def _estimate_mean(metric: Metric, means: Means, sample: Sample, *, level: float) -> Estimate:
    linear = linearise(means, sample)
    if linear is None:
        every = np.ones(means.used.shape[1], dtype=np.bool_)
        return replace(_counted(sample, means.used, every, level=level), reason=means.undefined)
    blank = _counted(sample, means.used, linear.repeats, level=level)
    refused = no_interval(metric, sample, blank.n_groups, of_spread=False)
    if metric.is_rate and linear.items[0] < MIN_CLASS:
        refused = f"fewer than {MIN_CLASS} items of the class: no interval for its rate"
    if not refused and linear.items[linear.weights > 0.0].min() < MIN_STRATUM:
        refused = (
            f"fewer than {MIN_STRATUM} items in a class or third of the scale: no interval for the mean over "
            "them"
        )
    # rates and means of rates by Wilson on the effective n, all other means linearised
    rates = math.isfinite(linear.means.low) and (linear.two_valued or linear.means.fewest > 1)
    made = score_interval if rates and not linear.means.root else linear_interval
    interval = Interval(reason=refused) if refused else made(linear, level=level)
    return _with(blank, linear.value, interval, repeats=linear.repeats)


def no_interval(metric: Metric, sample: Sample, n_groups: int, *, of_spread: bool) -> str | None:
    """Return why no interval is given, from a Metric, a Sample, n_groups and flag `of_spread`, or None.

    In a small sample whose labels all lie in one third of the scale, those that would set the spread are
    missing, and every interval is too short.
    """
    if n_groups < MIN_GROUPS:
        return too_few(n_groups)
    if metric.by_class and sample.classes is not None:
        counts = np.bincount(sample.classes.gold[sample.scored.any(axis=1)])
        rarer = int(counts.sum() - counts.max())
        if rarer < MIN_CLASS:
            items = f"{rarer} item{'s' * (rarer != 1)} outside the commonest class"
            return f"{items}: fewer than {MIN_CLASS} give no interval"
    elif of_spread and sample.scale.numeric:
        low, high = (sample.scale.stratum(float(end)) for end in (sample.gold.min(), sample.gold.max()))
        if low == high:
            return "all labels lie in one third of the scale: no interval for what hangs on their spread"
    return None


def _estimate_coefficient(
    metric: Metric, statistic: Statistic, sample: Sample, *, level: float, seed: int
) -> Estimate:
    values = statistic.values()
    repeats = np.isfinite(values)
    if not repeats.any():
        return replace(_counted(sample, statistic.used, ~repeats, level=level), reason=statistic.undefined)
    blank, value = _counted(sample, statistic.used, repeats, level=level), float(values[repeats].mean())
    refused = no_interval(metric, sample, blank.n_groups, of_spread=True)
    if refused:
        return _with(blank, value, Interval(reason=refused), repeats=repeats)
    method = "jackknife by group"
    if isinstance(statistic, Tables) and sample.n_groups > _MOST_GROUPS:
        method = f"jackknife by {_BLOCKS} blocks of groups"
        blocks = np.random.default_rng(seed).permutation(sample.n_groups) % _BLOCKS
        without = statistic.without(blocks.astype(np.int64))
    else:
        without = statistic.without_each()
    left_out = without[:, repeats].mean(axis=1)
    made = IntervalBasis(method, metric.lowest, 1.0, len(left_out))
    return _with(blank, value, jackknife_interval(value, left_out, made, level=level), repeats=repeats)


def _counted(sample: Sample, used: Bools, repeats: Bools, *, level: float) -> Estimate:
    """The counts of an estimate that rests on these pairs in these repeats."""
    pairs = used & repeats
    return Estimate(
        None,
        level=level,
        n=int(pairs.sum()),
        n_expected=sample.n_expected,
        n_groups=sample.groups_among(pairs),
        n_unscored=sample.n_unscored,
    )


def _with(blank: Estimate, value: float, interval: Interval, *, repeats: Bools) -> Estimate:
    over = "" if repeats.all() else f"over {int(repeats.sum())} of {len(repeats)} repeats"
    method = ", ".join(part for part in (interval.method, over) if part)
    return replace(interval.of(value, blank), method=method)


def pseudo_values(value: float, without: Floats) -> Floats:
    """Return the jackknife's G pseudo-values, an array, from a value and an array without each group."""
    n_groups = len(without)
    parts: Floats = value / n_groups + (n_groups - 1.0) / n_groups * (without.mean() - without)
    return parts


def parts_of_mean(linear: LinearMean) -> Floats:
    """Return an array of G parts, a group each, that sum to the value of a LinearMean."""
    parts: Floats = (linear.influence + linear.ratios * linear.share) @ linear.weights
    return parts


def jackknifed(statistic: Statistic) -> tuple[float, Floats] | None:
    """Return (value, array without each group) of a Statistic, repeats averaged; None if undefined."""
    values = statistic.values()
    repeats = np.isfinite(values)
    if not repeats.any():
        return None
    return float(values[repeats].mean()), statistic.without_each()[:, repeats].mean(axis=1)
