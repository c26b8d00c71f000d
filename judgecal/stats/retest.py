"""Test-retest: how far a judge agrees with itself when it is asked again.

Repeatability is no accuracy: a judge that is wrong in the same way every time repeats itself perfectly.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

import numpy as np

from judgecal.errors import InputError
from judgecal.records import Estimate
from judgecal.scale import Scale
from judgecal.stats.agreement import prepare
from judgecal.stats.intervals import (
    MIN_GROUPS,
    Interval,
    check_level,
    linear_interval,
    score_interval,
    too_few,
)
from judgecal.stats.means import Means, linearise
from judgecal.stats.sample import Bools, Floats, as_scale, read_both, renumbered

_NO_PAIR = "no item has two verdicts"


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


def repeatability(
    verdicts: Iterable[object],
    *,
    scale: Scale | str,
    judge_scale: Scale | str | None = None,
    groups: Iterable[Hashable] | None = None,
    level: float = 0.95,
) -> dict[str, Estimate]:
    """Test-retest statistics of one judge; items with fewer than two verdicts say nothing and are left out.

    `verdicts` are n rows of R repeats; the others are as in `agreement`, and so are the errors; one repeat is
    one too.

    Returns:
        `exact_agreement` (share of equal pairs of repeats, the mean over the items), `flip_rate` or
        `flip_rate@75` (share of pairs on different sides of the mark, or in different classes),
        `within_item_sd` (on the common scale), `within_item_sd_share` (of its range). n counts the verdicts
        of the items that have two or more.
    """
    check_level(level)
    people = as_scale(scale)
    rows = list(verdicts)
    labels = _any_labels(rows, people, judge_scale)
    sample = prepare(labels, rows, people=people, judge_scale=judge_scale, groups=groups, unscored="drop")
    if sample.verdicts.shape[1] < 2:
        raise InputError("repeatability needs two repeats or more, found 1")
    judged_again: Bools = sample.scored.sum(axis=1) >= 2
    verdicts_of, passes = sample.verdicts[judged_again], sample.passes(people)
    counts = np.asarray((~np.isnan(verdicts_of)).sum(axis=1), dtype=np.float64)
    column = np.zeros((len(counts), 1))
    # one row an item, so that group sums and intervals are those of items; what spreads are the verdicts
    items = replace(
        sample,
        gold=np.nanmean(verdicts_of, axis=1),
        verdicts=column,
        filled=column > 0,
        group_of=renumbered(sample.group_of[judged_again]),
        classes=None,
    )
    blank = Estimate(
        None,
        level=level,
        n=int(counts.sum()),
        n_expected=sample.n_expected,
        n_groups=items.n_groups,
        n_unscored=sample.n_unscored,
    )

    def ratio(top: Floats, bottom: Floats, *, high: float, root: bool = False) -> Estimate:
        """A ratio of sums over the items, linearised by group; of shares Wilson's on the effective n."""
        if not len(top):
            return replace(blank, reason=_NO_PAIR)
        used = np.ones((len(top), 1), dtype=np.bool_)
        linear = linearise(
            Means(top[:, None, None], bottom[:, None, None], used, 0.0, high, root=root), items
        )
        assert linear is not None  # there is an item
        interval = (linear_interval if root else score_interval)(linear, level=level)
        n = items.n_groups
        return (Interval(reason=too_few(n)) if n < MIN_GROUPS else interval).of(linear.value, blank)

    same = equal_pairs(verdicts_of)
    found = {"exact_agreement": ratio(same, np.ones_like(same), high=1.0)}
    if passes is not None or people.kind == "nominal":
        in_class = same if passes is None else equal_pairs(passes.verdicts[judged_again])
        mark = f"@{people.pass_at:g}" if people.graded else ""
        found[f"flip_rate{mark}"] = ratio(1.0 - in_class, np.ones_like(same), high=1.0)
    sd = share = replace(blank, reason="the labels have no order")
    if people.numeric:
        span = sample.scale.span
        sd = ratio(squares(verdicts_of), counts - 1.0, high=span, root=True)
        value, low, high = (None if end is None else end / span for end in (sd.value, sd.low, sd.high))
        share = replace(sd, value=value, low=low, high=high)
    return {**found, "within_item_sd": sd, "within_item_sd_share": share}


def _any_labels(rows: list[object], people: Scale, judge_scale: Scale | str | None) -> list[object]:
    """One label that fits the scale for every item: nothing is held against it."""
    if people.numeric:
        return [people.low] * len(rows)
    judge = people if judge_scale is None else as_scale(judge_scale)
    _, _, words = read_both([None] * len(rows), rows, people=people, judge=judge)
    return [words[0] if words else None] * len(rows)
