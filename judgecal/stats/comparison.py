"""Two judges on the same items: the paired difference, its interval, and a p value."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from judgecal.errors import InputError
from judgecal.records import Estimate
from judgecal.scale import Scale, common_scale
from judgecal.stats.agreement import check_level, terms_of
from judgecal.stats.intervals import MIN_GROUPS, jackknife_error, linear_error, t_quantile, two_sided_p
from judgecal.stats.linear import Means, linearise
from judgecal.stats.metrics import Metric, metric_named
from judgecal.stats.resampling import Statistic, leave_one_out
from judgecal.stats.sample import Bools, Floats, Sample, Unscored, as_scale, build, codes_of, read_both
from judgecal.stats.significance import N_PERM, sign_flip_p

__all__ = ["PairedDifference", "compare_paired", "paired_difference"]

_EPS = 1e-12


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The difference of two judges, a minus b, in the metric.

    Attributes:
        difference: a - b with its interval; n, n_expected and n_unscored count items (unscored by either judge).
        p_value: two-sided, of no difference; None where there is no interval either.
        method: how the p value was made.
    """

    difference: Estimate
    p_value: float | None
    method: str = ""


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
) -> PairedDifference:
    """Paired difference a - b of two judges on the same items.

    Means: linearised by group with t, p by flipping the sign of each group's part of the difference (under no
    difference the two judges could have changed places in any group). Coefficients such as kappa: jackknife
    by group with t. Fewer than ten groups: the value without interval and p.

    Args:
        gold_labels, scale, groups, level: as in `agreement`.
        a_labels, b_labels: verdicts of either judge, n or n x R; each on its own scale (the people's where not
            given). Both are taken onto what is common to them and the people.
        metric: a name of the people's scale.
        seed, n_perm: of the Monte Carlo sign flips (above 16 groups with a difference).
        unscored: "wrong" = as in `agreement`; "drop" = items unscored by either judge in any repeat are left
            out for both.

    Raises:
        InputError: as `agreement`; or mae, rmse, bias of judges whose common scales have different units.
    """
    check_level(level)
    people = as_scale(scale)
    chosen, at_mark = metric_named(metric, people)
    judges = tuple(people if given is None else as_scale(given) for given in (a_scale, b_scale))
    a, b, incomplete = _prepared(
        gold_labels, (a_labels, b_labels), judges, people=people, groups=groups, unscored=unscored
    )
    found = paired_difference(chosen, a, b, at_mark=at_mark, level=level, seed=seed, n_perm=n_perm)
    counts = replace(found.difference, n_expected=len(incomplete), n_unscored=int(incomplete.sum()))
    return replace(found, difference=counts)


def _prepared(
    gold_labels: Iterable[object],
    sides: tuple[Iterable[object], Iterable[object]],
    judges: tuple[Scale, ...],
    *,
    people: Scale,
    groups: Iterable[Hashable] | None,
    unscored: Unscored,
) -> tuple[Sample, Sample, Bools]:
    """Both judges' samples on the same rows; and of each labelled item, whether a verdict on it is missing."""
    labels = list(gold_labels)
    codes = codes_of(groups, len(labels))
    read = [
        read_both(labels, side, people=people, judge=judge) for side, judge in zip(sides, judges, strict=True)
    ]
    incomplete: Bools = np.isnan(read[0][1]).sum(axis=1) + np.isnan(read[1][1]).sum(axis=1) > 0
    a, b = (
        build(
            np.where(incomplete, np.nan, gold) if unscored == "drop" else gold,
            verdicts,
            codes,
            people=people,
            judge=judge,
            common=common_scale(people, judge),
            unscored=unscored,
            words=words,
        )
        for (gold, verdicts, words), judge in zip(read, judges, strict=True)
    )
    return a, b, incomplete[~np.isnan(read[0][0])]


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
    """The paired difference of two prepared samples of the same items (see `compare_paired`).

    `more_error` is a further standard error of a mean's difference with its degrees of freedom, from a source
    outside these items.
    """
    if metric.in_units and a.scale.span != b.scale.span:
        raise InputError(
            f"{metric.name} is in units of {a.scale} for one judge and of {b.scale} for the other"
        )
    ours, theirs = terms_of(metric, a, at_mark), terms_of(metric, b, at_mark)
    if isinstance(ours, str) or isinstance(theirs, str):
        reason = ours if isinstance(ours, str) else str(theirs)
        return _blank(a, a.scored, level=level, reason=reason)
    if isinstance(ours, Means) and isinstance(theirs, Means):
        return _of_means(ours, theirs, (a, b), level=level, flips=(n_perm, seed), more_error=more_error)
    if isinstance(ours, Means) or isinstance(theirs, Means):
        raise TypeError(f"{metric.name} gave a mean for one judge only")
    return _of_statistics(ours, theirs, a, level=level)


def _of_means(
    ours: Means,
    theirs: Means,
    sides: tuple[Sample, Sample],
    *,
    level: float,
    flips: tuple[int, int],
    more_error: tuple[float, float],
) -> PairedDifference:
    first, second = linearise(ours, sides[0]), linearise(theirs, sides[1])
    if first is None or second is None:
        return _blank(sides[0], ours.used, level=level, reason=ours.undefined)
    difference = replace(
        first, ratios=first.ratios - second.ratios, influence=first.influence - second.influence
    )
    found = _blank(sides[0], ours.used, level=level, value=difference.value)
    if found.difference.n_groups < MIN_GROUPS:
        return _too_few(found)
    parts = (difference.influence + difference.ratios * difference.share) @ difference.weights
    if np.all(np.abs(parts) <= _EPS):
        return _no_difference(found, "linearised by group")
    p, method = sign_flip_p(parts, n_perm=flips[0], seed=flips[1])
    se, df = _combined(linear_error(difference), more_error)
    if math.isnan(se):
        return _with_reason(
            found, "every stratum rests on one group: no error can be known", p=p, method=method
        )
    made = f"linearised by group, t({df:.3g})"
    se = _floored(se, difference.value, found)
    if ours.root:  # the root of a mean is no sum over groups: flipping signs would not swap the judges
        p, method = two_sided_p(difference.value / se, df), made
    found = replace(found, p_value=p, method=method)
    return _with_interval(found, se, df, made=made, most=ours.high - ours.low)


def _of_statistics(ours: Statistic, theirs: Statistic, sample: Sample, *, level: float) -> PairedDifference:
    first, second = _jackknifed(ours, sample), _jackknifed(theirs, sample)
    if first is None or second is None:
        return _blank(sample, ours.used, level=level, reason=ours.undefined)
    value, without = first[0] - second[0], first[1] - second[1]
    found = _blank(sample, ours.used, level=level, value=value)
    if found.difference.n_groups < MIN_GROUPS:
        return _too_few(found)
    if not np.all(np.isfinite(without)):
        return _with_reason(found, "undefined without one of the groups")
    if abs(value) <= _EPS and np.all(np.abs(without) <= _EPS):
        return _no_difference(found, "jackknife by group")
    df = len(without) - 1.0
    se = _floored(jackknife_error(without), value, found)
    made = f"jackknife by group, t({df:g})"
    found = replace(found, p_value=two_sided_p(value / se, df), method=made)
    return _with_interval(found, se, df, made=made, most=2.0)


def _jackknifed(statistic: Statistic, sample: Sample) -> tuple[float, Floats] | None:
    """Value and values without each group, averaged over the repeats that define it; None if none does."""
    values = statistic.at(np.ones((1, sample.n_groups)))[0]
    repeats = np.isfinite(values)
    if not repeats.any():
        return None
    return float(values[repeats].mean()), leave_one_out(statistic, sample.n_groups)[:, repeats].mean(axis=1)


def _combined(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Two independent standard errors as one, with its degrees of freedom. Source: Satterthwaite (1946)."""
    if other[0] == 0.0:
        return one
    variance = one[0] ** 2 + other[0] ** 2
    return math.sqrt(variance), variance**2 / (one[0] ** 4 / one[1] + other[0] ** 4 / other[1])


def _floored(se: float, value: float, found: PairedDifference) -> float:
    """At least |difference| / (G + 1): what one more group without a difference would make of a spread of 0.

    Without it a difference that is the same in every group would have an interval of no width.
    """
    return max(se, abs(value) / (found.difference.n_groups + 1.0))


def _blank(
    sample: Sample, used: Bools, *, level: float, value: float | None = None, reason: str | None = None
) -> PairedDifference:
    items = used.sum(axis=1) > 0
    estimate = Estimate(
        value,
        level=level,
        n=int(items.sum()),
        n_expected=len(items),
        n_groups=sample.groups_among(used),
        n_unscored=int((sample.filled.sum(axis=1) > 0).sum()),
        reason=reason,
    )
    return PairedDifference(estimate, None)


def _too_few(found: PairedDifference) -> PairedDifference:
    n = found.difference.n_groups
    return _with_reason(found, f"{n} group{'s' * (n != 1)}: fewer than {MIN_GROUPS} give no interval")


def _with_reason(
    found: PairedDifference, reason: str, *, p: float | None = None, method: str = ""
) -> PairedDifference:
    return PairedDifference(replace(found.difference, reason=reason), p, method)


def _no_difference(found: PairedDifference, made: str) -> PairedDifference:
    estimate = replace(
        found.difference, value=0.0, low=0.0, high=0.0, method=f"{made}, no difference anywhere"
    )
    return PairedDifference(estimate, 1.0, "no difference in any group")


def _with_interval(
    found: PairedDifference, se: float, df: float, *, made: str, most: float
) -> PairedDifference:
    value = found.difference.value or 0.0
    half = t_quantile(found.difference.level, df) * se
    low, high = max(-most, value - half), min(most, value + half)
    return replace(found, difference=replace(found.difference, low=low, high=high, method=made))
