"""Reliability among raters: how far people agree with each other, all at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judgecal.errors import InputError, refuse
from judgecal.records import Estimate
from judgecal.scale import INTERVAL, Scale
from judgecal.stats.agreement import Estimates, estimate, prepare
from judgecal.stats.chance import icc, interval_alpha, nominal_alpha, ordinal_alpha
from judgecal.stats.intervals import MIN_GROUPS, Interval, check_level, score_interval, too_few
from judgecal.stats.means import linear_mean
from judgecal.stats.metrics import METRICS, Terms
from judgecal.stats.sample import (
    Bools,
    Floats,
    Ints,
    Sample,
    as_scale,
    build,
    codes_of,
    read_both,
    read_label,
)

RaterLabels = Iterable[object] | Mapping[Hashable, object]
"""One rater's labels: one an item in the order of the items, or by item; None or NaN = missing."""


@dataclass(frozen=True)
class Ratings:
    """What the raters said: k raters, n items (their numbers where the raters were given as rows)."""

    raters: tuple[str, ...]
    items: tuple[Hashable, ...]
    labels: Floats  # n x k numbers on the scale (codes of the words on a nominal one), NaN where missing
    words: tuple[str, ...] = ()  # of a nominal scale, those known and those that occur


def read_ratings(ratings: Mapping[str, RaterLabels] | Sequence[RaterLabels], *, scale: Scale) -> Ratings:
    """Return Ratings, from ratings (RaterLabels by rater, or rows of equal length) and a Scale.

    Items that are given by name come in the order of their first mention.
    """
    rows = dict(ratings) if isinstance(ratings, Mapping) else {str(i): row for i, row in enumerate(ratings)}
    table = _by_item({str(rater): row for rater, row in rows.items()})
    items = tuple(dict.fromkeys(item for row in table.values() for item in row))
    problems: list[str] = []
    read = {
        rater: {
            item: read_label(label, scale, where=f"ratings[{rater!r}][{item!r}]", problems=problems)
            for item, label in row.items()
        }
        for rater, row in table.items()
    }
    refuse(problems, most=10)
    used = {label for row in read.values() for label in row.values() if isinstance(label, str)}
    words = tuple(dict.fromkeys([*scale.categories, *sorted(used)]))
    number = {word: float(code) for code, word in enumerate(words)}
    labels = np.full((len(items), len(read)), np.nan)
    place = {item: i for i, item in enumerate(items)}
    for rater, row in enumerate(read.values()):
        for item, label in row.items():
            labels[place[item], rater] = number[label] if isinstance(label, str) else label
    return Ratings(tuple(read), items, labels, words)


def _by_item(rows: Mapping[str, RaterLabels]) -> dict[str, dict[Hashable, object]]:
    named = {rater: row for rater, row in rows.items() if isinstance(row, Mapping)}
    if len(named) == len(rows):
        return {rater: dict(row) for rater, row in named.items()}
    if named:
        raise InputError("ratings: give every rater's labels by item, or every rater's as a row")
    listed = {rater: list(row) for rater, row in rows.items()}
    lengths = {rater: len(row) for rater, row in listed.items()}
    if len(set(lengths.values())) > 1:
        counted = ", ".join(f"{rater!r} {n}" for rater, n in lengths.items())
        raise InputError(
            f"ratings: rows of {counted} items: give one label per item and rater (None = missing)"
        )
    return {rater: dict(enumerate(row)) for rater, row in listed.items()}


def reliability(
    ratings: Mapping[str, RaterLabels] | Sequence[RaterLabels],
    *,
    scale: Scale | str,
    groups: Iterable[Hashable] | Mapping[Hashable, Hashable] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Estimates:
    """Return Estimates of raters' agreement with each other, from RaterLabels by rater and a Scale.

    Intervals are by group as in `agreement`.

    >>> found = judgecal.reliability({"anna": [1, 0, 1, 1], "ben": [1, 0, 0, 1]}, scale="binary")
    >>> round(found["krippendorff_alpha"].value, 3), found["krippendorff_alpha"].reason
    (0.533, '4 groups: fewer than 10 give no interval')

    Args:
        ratings: rater to labels, or rows of labels (their raters are then called 0, 1, ...). A rater's labels
            are one an item in the order of the items, or a mapping from item to label; None or NaN = missing.
        groups: the question of each item, in their order or by item; each item its own where not given.
        others: as in `agreement`.

    Returns:
        `krippendorff_alpha` at the level of the scale (and at the pass mark of a graded one that has one, as
        `krippendorff_alpha@75`), over the items with two ratings or more; `icc_2_1` of a graded scale, over
        the items that all raters rated. n counts items, n_expected those with any rating, n_unscored those of
        them that the value does not rest on.
    """
    check_level(level)
    people = as_scale(scale)
    table = read_ratings(ratings, scale=people)
    rated: Bools = (~np.isnan(table.labels)).sum(axis=1) > 0
    codes = groups_of(groups, table.items)
    order = np.argsort(codes, kind="stable")
    order = order[rated[order]]
    labels, groups_of_items, n_raters = table.labels[order], codes[order], len(table.raters)
    given = (~np.isnan(labels)).sum(axis=1)
    blank = Estimate(None, level=level, n_expected=len(labels), n_unscored=len(labels))
    names = ["krippendorff_alpha"]
    names += (
        [f"krippendorff_alpha@{people.pass_at:g}"] if people.graded and people.pass_at is not None else []
    )
    names += ["icc_2_1"] if people.graded else []
    estimates = Estimates()
    for name in names:
        rows = given >= (n_raters if name == "icc_2_1" else 2)
        reason = "" if rows.any() else "no item was rated by every rater"
        reason = reason if (given >= 2).any() else "no item has two ratings"
        if n_raters < 2:
            reason = f"{n_raters} rater{'s' * (n_raters != 1)}: reliability needs two"
        if reason:
            estimates[name] = replace(blank, reason=reason)
            continue
        ours = labels[rows]
        first = ours[np.arange(len(ours)), np.argmin(np.isnan(ours), axis=1)]
        sample = build(
            first,
            first[:, None],
            groups_of_items[rows],
            people=people,
            judge=people,
            unscored="drop",
            words=table.words,
        )
        terms = _terms(name, ours[:, None, :], sample, people=people, words=table.words)
        metric = METRICS[name.partition("@")[0]]
        value = estimate(metric, terms, sample.at_mark if "@" in name else sample, level=level, seed=seed)
        estimates[name] = replace(value, n_expected=len(labels), n_unscored=len(labels) - value.n)
    return estimates


def _terms(name: str, panel: Floats, sample: Sample, *, people: Scale, words: tuple[str, ...]) -> Terms:
    """What a coefficient makes of the labels of all raters, n x 1 x k."""
    if name == "icc_2_1":
        return icc(panel, sample)
    if "@" in name:
        passed = np.where(np.isnan(panel), np.nan, panel >= (people.pass_at or 0.0))
        return nominal_alpha(passed, 2, sample)
    if people.kind == "ordinal":
        return ordinal_alpha(panel, sample)
    if people.kind in INTERVAL:
        return interval_alpha(panel, sample)
    return nominal_alpha(panel - people.low, max(2, len(words)), sample)


def groups_of(
    groups: Iterable[Hashable] | Mapping[Hashable, Hashable] | None, items: Sequence[Hashable]
) -> Ints:
    """Return an array of items' group numbers, from groups (in order, by item, or None) and the items."""
    if groups is None:
        return codes_of(None, len(items))
    if not isinstance(groups, Mapping):
        keys = list(groups)
        if len(keys) != len(items):
            raise InputError(f"{len(items)} items but {len(keys)} groups: give one group per item")
        return codes_of(keys, len(items))
    lost = [repr(item) for item in items if item not in groups]
    if lost:
        raise InputError(f"no group for {len(lost)} items: {', '.join(lost[:5])}")
    return codes_of([groups[item] for item in items], len(items))


_NO_PAIR = "no item has two verdicts"


def equal_pairs(values: Floats) -> Floats:
    """Return an array of the share of equal pairs in each row, from an array of values; NaN is in no pair."""
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
    """Return name -> Estimate, test-retest numbers, from a judge's repeated verdicts and a Scale.

    `verdicts` are n rows of R repeats, two or more; the others are as in `agreement`, and so are the errors.

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
    codes = sample.group_of[judged_again]
    blank = Estimate(
        None,
        level=level,
        n=int((~np.isnan(verdicts_of)).sum()),
        n_expected=sample.n_expected,
        n_groups=len(np.unique(codes)),
        n_unscored=sample.n_unscored,
    )

    def share(top: Floats) -> Estimate:
        """The mean of the items' shares, with Wilson's interval on the effective n."""
        if not len(top):
            return replace(blank, reason=_NO_PAIR)
        linear, n = linear_mean(top, codes), blank.n_groups
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
