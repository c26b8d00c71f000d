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
from judgecal.stats.intervals import MIN_GROUPS, Interval, check_level, score_interval, too_few
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
        `exact_agreement` (share of equal pairs of repeats, the mean over the items) and `flip_rate` or
        `flip_rate@75` (share of pairs on different sides of the mark, or in different classes). n counts the
        verdicts of the items that have two or more.
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

    def share(top: Floats) -> Estimate:
        """The mean of the items' shares, with Wilson's interval on the effective n."""
        if not len(top):
            return replace(blank, reason=_NO_PAIR)
        used = np.ones((len(top), 1), dtype=np.bool_)
        means = Means(top[:, None, None], np.ones((len(top), 1, 1)), used, 0.0, 1.0)
        linear = linearise(means, items)
        assert linear is not None  # there is an item
        n = items.n_groups
        few = n < MIN_GROUPS
        interval = Interval(reason=too_few(n)) if few else score_interval(linear, level=level)
        return interval.of(linear.value, blank)

    same = equal_pairs(verdicts_of)
    shares = {"exact_agreement": share(same)}
    if passes is not None or people.kind == "nominal":
        in_class = same if passes is None else equal_pairs(passes.verdicts[judged_again])
        mark = f"@{people.pass_at:g}" if people.graded else ""
        shares[f"flip_rate{mark}"] = share(1.0 - in_class)
    return shares


def _any_labels(rows: list[object], people: Scale, judge_scale: Scale | str | None) -> list[object]:
    """One label that fits the scale for every item: nothing is held against it."""
    if people.numeric:
        return [people.low] * len(rows)
    judge = people if judge_scale is None else as_scale(judge_scale)
    _, _, words = read_both([None] * len(rows), rows, people=people, judge=judge)
    return [words[0] if words else None] * len(rows)
