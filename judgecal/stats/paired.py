"""Two judges on the same items: the paired difference, its interval, and a p value that says the same.

Intervals: means linearised by group with t, coefficients such as kappa by the jackknife by group with t. A
stratum's error is at least that of two groups that differ as much as those that do (sum a^2 / sum |a| over
the groups' net differences a): where judges rarely differ, a small stratum often shows no group that does.

P values. Means over strata (macro_agreement, balanced_accuracy): the t of the interval itself. (Random signs
of whole groups would test that the judges are exchangeable: one that is more lenient than the other is not,
however equal their worth.) Shares of right verdicts (accuracy, tpr, within_10 ...): McNemar's mid-p where
every group has one item. Everything else: the signs of the groups' parts of the difference are flipped; a
coefficient's parts are the jackknife's pseudo-values. Where such a p and the
interval fall on two sides of 1 - level, the more cautious one holds for both: the interval is drawn to 0, or
p is that of its t.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import stdtr

from judgecal.errors import InputError
from judgecal.records import Estimate
from judgecal.scale import Scale
from judgecal.stats.agreement import jackknifed, no_interval, parts_of_mean, pseudo_values, terms_of
from judgecal.stats.intervals import (
    MIN_CLASS,
    MIN_GROUPS,
    check_level,
    jackknife_error,
    linear_error,
    t_quantile,
    too_few,
)
from judgecal.stats.means import LinearMean, Means, Stratum, linearise, strata_of
from judgecal.stats.metrics import Metric, Statistic, metric_named
from judgecal.stats.sample import (
    Bools,
    Floats,
    Sample,
    Unscored,
    as_scale,
    as_sequence,
    build,
    codes_of,
    read_both,
)
from judgecal.stats.significance import N_PERM, mcnemar_midp, sign_flip_p

LEAST_DIFFERING = 2.0
"""A stratum's error is at least that of so many groups that differ: fewer prove nothing."""

_EPS = 1e-12


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The difference of two judges, a minus b, in the metric.

    Attributes:
        errors: standard errors by group of a, of b and of a - b, with the degrees of freedom of the last;
            None where they are not known. A judge without an error in the sample has that of one group in G +
            1.
    """

    difference: Estimate  # a - b with its interval; counts items (n_unscored: by either judge)
    p_value: float | None  # two-sided, of no difference; None where there is no interval either
    method: str = ""  # how p was made
    a: float | None = None  # the metric of either judge on these items
    b: float | None = None
    errors: tuple[float, float, float, float] | None = None
    step: float = 0.0  # what one differing group adds to the difference; known where the errors are
    strata: tuple[Stratum, ...] = ()  # of a macro metric, with their parts of the difference's variance
    # of a - b, over three times the root of the groups
    skewness: float = field(default=0.0, metadata={"json": False})


def compare_paired(
    gold_labels: Iterable[object],
    a_labels: Iterable[object],
    b_labels: Iterable[object],
    *,
    scale: Scale | str,
    a_scale: Scale | str | None = None,
    b_scale: Scale | str | None = None,
    metric: str = "macro_agreement",
    groups: Iterable[Hashable] | None = None,
    level: float = 0.95,
    seed: int = 0,
    n_perm: int = N_PERM,
    unscored: Unscored = "wrong",
    more_error: tuple[float, float] = (0.0, 1.0),
    weights: Floats | None = None,
) -> PairedDifference:
    """Return the PairedDifference a - b, from gold labels, judge a's labels, judge b's labels and a Scale.

    Interval and p are made as the head of this module says. Fewer than ten groups: the value without either.

    Args:
        a_labels, b_labels: verdicts of either judge, n or n x R; each on its own scale (the people's where
            not given). Both are taken onto what is common to them and the people.
        seed, n_perm: of the Monte Carlo sign flips (above 16 groups with a difference).
        unscored: as in `agreement`, as the others are; "drop" leaves items that either judge has not scored
            in any repeat out for both.
        more_error: a further standard error of a mean's difference with its degrees of freedom, from a source
            outside these items, such as the fit of a map.
        weights: as in `agreement`.
    """
    check_level(level)
    people, labels, samples = as_scale(scale), as_sequence(gold_labels), list[Sample]()
    chosen, at_mark = metric_named(metric, people)
    codes, read = codes_of(groups, len(labels)), []
    for side, given in ((a_labels, a_scale), (b_labels, b_scale)):
        judge = people if given is None else as_scale(given)
        read.append((judge, *read_both(labels, side, people=people, judge=judge)))
    gold, labelled = read[0][1], ~np.isnan(read[0][1])
    incomplete = np.any([np.isnan(verdicts).any(axis=1) for _, _, verdicts, _ in read], axis=0)
    counted = np.where(incomplete, np.nan, gold) if unscored == "drop" else gold
    for judge, _, verdicts, words in read:
        options: dict[str, Any] = {"people": people, "judge": judge, "unscored": unscored, "words": words}
        samples.append(build(counted, verdicts, codes, weights=weights, **options))
    options = {"level": level, "seed": seed, "n_perm": n_perm, "more_error": more_error}
    paired = paired_difference(chosen, *samples, at_mark=at_mark, **options)
    # with the counts of all labelled items, whatever was left out
    difference, lost = paired.difference, labelled.any() and paired.difference.n == 0
    difference = replace(
        difference,
        n_expected=int(labelled.sum()),
        n_unscored=int((incomplete & labelled).sum()),
        reason="no item that both judges scored" if lost else difference.reason,
    )
    return replace(paired, difference=difference)


def paired_difference(
    metric: Metric,
    a: Sample,
    b: Sample,
    *,
    at_mark: bool,
    level: float = 0.95,
    seed: int = 0,
    n_perm: int = N_PERM,
    more_error: tuple[float, float] = (0.0, 1.0),
) -> PairedDifference:
    """Return the PairedDifference, from a Metric, Samples a and b of the same items, and a flag `at_mark`."""
    if metric.unit == "scale" and a.scale.span != b.scale.span:
        raise InputError(
            f"{metric.name} is in units of {a.scale} for one judge and of {b.scale} for the other"
        )
    ours, theirs = terms_of(metric, a, at_mark), terms_of(metric, b, at_mark)
    if isinstance(ours, str) or isinstance(theirs, str):
        reason = ours if isinstance(ours, str) else str(theirs)
        return _blank(a, a.scored, level=level, reason=reason)
    if isinstance(ours, Means) and isinstance(theirs, Means):
        means = (ours, theirs)
        return _of_means(metric, means, (a, b), level=level, flips=(n_perm, seed), more_error=more_error)
    if isinstance(ours, Means) or isinstance(theirs, Means):
        raise TypeError(f"{metric.name} gave a mean for one judge only")
    why = no_interval(metric, a, a.groups_among(ours.used), of_spread=False)
    return _of_statistics(ours, theirs, a, level=level, flips=(n_perm, seed), refused=why)


def _of_means(
    metric: Metric,
    means: tuple[Means, Means],
    sides: tuple[Sample, Sample],
    *,
    level: float,
    flips: tuple[int, int],
    more_error: tuple[float, float],
) -> PairedDifference:
    ours = means[0]
    first, second = linearise(ours, sides[0]), linearise(means[1], sides[1])
    if first is None or second is None:
        return _blank(sides[0], sides[0].scored, level=level, reason=ours.undefined)
    difference, spread = difference_of(first, second)
    paired = _blank(sides[0], ours.used, level=level, values=(first.value, second.value))
    paired = replace(paired, strata=strata_of(spread, sides[0]))
    if metric.is_rate and first.items[0] < MIN_CLASS:
        return _with_reason(paired, f"fewer than {MIN_CLASS} items of the class: no interval for its rate")
    if paired.difference.n_groups < MIN_GROUPS:
        return _with_reason(paired, too_few(paired.difference.n_groups))
    errors = [linear_error(linear) for linear in (first, second, spread)]
    if not any(math.isnan(error) for error, _ in errors):
        parts = parts_of_mean(difference)
        paired = _with_errors(
            paired, [error for error, _ in errors], errors[2][1], parts, span=ours.high - ours.low
        )
    if spread is difference:
        return _no_difference(paired, "linearised by group")
    paired = replace(paired, skewness=_skewness(difference.influence @ difference.weights))
    se, df = _combined(errors[2], more_error)
    if math.isnan(se):
        return _with_reason(paired, "a stratum rests on one group: no error can be known")
    paired = _with_interval(
        paired, se, df, made=f"linearised by group, t({df:.3g})", most=ours.high - ours.low
    )
    if ours.fewest > 1:
        return replace(paired, p_value=_t_p(paired, se, df), method="the t of the interval")
    p, method = _swapped_p(parts_of_mean(difference), (first, second), sides, flips=flips)
    return _with_p(paired, p, method, of_interval=_t_p(paired, se, df), n_perm=flips[0])


def difference_of(first: LinearMean, second: LinearMean) -> tuple[LinearMean, LinearMean]:
    """Return two LinearMeans, the difference and its spread, from a first and a second LinearMean."""
    difference = replace(
        first, ratios=first.ratios - second.ratios, influence=first.influence - second.influence
    )
    terms = difference.influence + difference.ratios * difference.share
    if np.all(np.abs(terms) <= _EPS):
        return difference, difference
    return difference, _with_least_spread(difference, terms * difference.items)


def _with_least_spread(difference: LinearMean, net: Floats) -> LinearMean:
    """The linearised difference with what a stratum lacks of the spread of `LEAST_DIFFERING` groups that
    differ.

    `net` is G x S, by how many items' worth of the metric the judges differ in each group; a group that
    differs does so by sum net^2 / sum |net|. What is lacking is added as one more group a stratum, to the
    influences alone.
    """
    size = float((net**2).sum() / np.abs(net).sum())
    least = LEAST_DIFFERING * (size / np.maximum(difference.items, 1.0)) ** 2
    lacking = np.sqrt(np.maximum(least - (difference.influence**2).sum(axis=0), 0.0))
    return replace(difference, influence=np.vstack([difference.influence, np.diag(lacking)]))


def _swapped_p(
    parts: Floats,
    linears: tuple[LinearMean, LinearMean],
    sides: tuple[Sample, Sample],
    *,
    flips: tuple[int, int],
) -> tuple[float, str]:
    """P of the groups' parts of a difference when the judges could have changed places in any group."""
    shares = sides[0].weights is None and all(
        linear.two_valued and len(linear.weights) == 1 for linear in linears
    )
    used = [linear.means.used for linear in linears]
    alone = shares and all(
        side.per_group(pairs.sum(axis=1)).max() <= 1.0 for side, pairs in zip(sides, used, strict=True)
    )
    if not alone or any(linear.means.root for linear in linears):
        return sign_flip_p(parts, n_perm=flips[0], seed=flips[1])
    return mcnemar_midp(int(np.sum(parts > _EPS)), int(np.sum(parts < -_EPS))), "McNemar mid-p"


def _of_statistics(
    ours: Statistic,
    theirs: Statistic,
    sample: Sample,
    *,
    level: float,
    flips: tuple[int, int],
    refused: str | None,
) -> PairedDifference:
    first, second = jackknifed(ours), jackknifed(theirs)
    if first is None or second is None:
        return _blank(sample, ours.used, level=level, reason=ours.undefined)
    value, without = first[0] - second[0], first[1] - second[1]
    paired = _blank(sample, ours.used, level=level, values=(first[0], second[0]))
    if refused is not None:
        return _with_reason(paired, refused)
    if not np.all(np.isfinite(without)):
        return _with_reason(paired, "undefined without one of the groups")
    df = len(without) - 1.0
    errors = [jackknife_error(values) for values in (first[1], second[1], without)]
    parts = pseudo_values(value, without)
    paired = _with_errors(paired, errors, df, parts, span=1.0)
    paired = replace(paired, skewness=_skewness(without.mean() - without))
    if abs(value) <= _EPS and np.all(np.abs(without) <= _EPS):
        return _no_difference(paired, "jackknife by group")
    # At least what one more group without a difference would make of a spread of 0: else no width at all.
    se = max(errors[2], abs(value) / (paired.difference.n_groups + 1.0))
    paired = _with_interval(paired, se, df, made=f"jackknife by group, t({df:g})", most=2.0)
    p, method = sign_flip_p(parts, n_perm=flips[0], seed=flips[1])
    return _with_p(paired, p, method, of_interval=_t_p(paired, se, df), n_perm=flips[0])


def _skewness(influence: Floats) -> float:
    squares = float((influence**2).sum())
    return 0.0 if squares <= _EPS**2 else float((influence**3).sum()) / (3.0 * squares**1.5)


def _t_p(paired: PairedDifference, se: float, df: float) -> float:
    """Two-sided p of the t that makes the interval."""
    value = abs(paired.difference.value or 0.0)
    return 1.0 if value <= _EPS else float(2.0 * stdtr(df, -value / se))


def _with_p(
    paired: PairedDifference, p: float, method: str, *, of_interval: float, n_perm: int
) -> PairedDifference:
    """With a p that was not made as the interval was; where they disagree, the more cautious one."""
    difference, alpha = paired.difference, round(1.0 - paired.difference.level, 12)
    if 1.0 / (1.0 + n_perm) < alpha and p < alpha <= of_interval:
        p, method = of_interval, f"the t of the interval, above {method}"
    elif 1.0 / (1.0 + n_perm) < alpha and of_interval < alpha <= p:
        above = (difference.value or 0.0) > 0.0
        low, high = (0.0, difference.high) if above else (difference.low, 0.0)
        made = f"{difference.method}, drawn to 0 as p is not below {alpha:.3g}"
        difference = replace(difference, low=low, high=high, method=made)
    return replace(paired, difference=difference, p_value=p, method=method)


def _combined(first: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Two independent standard errors as one, with its degrees of freedom (Satterthwaite 1946)."""
    if other[0] == 0.0:
        return first
    variance = first[0] ** 2 + other[0] ** 2
    return math.sqrt(variance), variance**2 / (first[0] ** 4 / first[1] + other[0] ** 4 / other[1])


def _blank(
    sample: Sample,
    used: Bools,
    *,
    level: float,
    values: tuple[float, float] | None = None,
    reason: str | None = None,
) -> PairedDifference:
    items = used.sum(axis=1) > 0
    a, b = values or (None, None)
    estimate = Estimate(
        None if values is None else values[0] - values[1],
        level=level,
        n=int(items.sum()),
        n_expected=len(items),
        n_groups=sample.groups_among(used),
        n_unscored=int((sample.filled.sum(axis=1) > 0).sum()),
        reason=reason,
    )
    return PairedDifference(estimate, None, a=a, b=b)


def _with_reason(paired: PairedDifference, reason: str) -> PairedDifference:
    return replace(paired, difference=replace(paired.difference, reason=reason))


def _no_difference(paired: PairedDifference, made: str) -> PairedDifference:
    estimate = replace(
        paired.difference, value=0.0, low=0.0, high=0.0, method=f"{made}, no difference anywhere"
    )
    return replace(paired, difference=estimate, p_value=1.0, method="no difference in any group")


def _with_errors(
    paired: PairedDifference, errors: list[float], df: float, parts: Floats, *, span: float
) -> PairedDifference:
    """With the errors, and how large the parts of those groups are that differ (of the whole span where none
    does)."""
    whole, n_groups, total = (
        span if math.isfinite(span) else 1.0,
        paired.difference.n_groups,
        np.abs(parts).sum(),
    )
    step = float((parts**2).sum() / total) if total > _EPS else whole / n_groups
    least = whole / (n_groups + 1.0)
    return replace(paired, errors=(max(errors[0], least), max(errors[1], least), errors[2], df), step=step)


def _with_interval(
    paired: PairedDifference, se: float, df: float, *, made: str, most: float
) -> PairedDifference:
    value = paired.difference.value or 0.0
    half = t_quantile(paired.difference.level, df) * se
    low, high = max(-most, value - half), min(most, value + half)
    return replace(paired, difference=replace(paired.difference, low=low, high=high, method=made))
