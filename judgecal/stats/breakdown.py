"""Agreement by part of a set: tags, systems."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from judgecal.errors import InputError
from judgecal.records import Estimate
from judgecal.scale import Scale
from judgecal.stats.agreement import estimate
from judgecal.stats.intervals import check_level
from judgecal.stats.means import Means
from judgecal.stats.metrics import Metric, metric_named
from judgecal.stats.sample import Floats, Ints, Sample, as_scale, build, codes_of, read_both, renumbered

MIN_ITEMS = 30
"""A part of fewer items has its numbers without an interval."""

_MARKED = ("passes", "fails", "false_passes", "false_fails")
_FEW = f"fewer than {MIN_ITEMS} items: no interval"


@dataclass(frozen=True, slots=True)
class Part:
    """The judge on one part of the set.

    Attributes:
        agreement: mean agreement (accuracy on a nominal scale), an unscored item counted as the verdict
            farthest from its label. No interval below 30 items.
    """

    agreement: Estimate
    n: int  # judgements with a verdict
    n_expected: int  # judgements asked for
    n_unscored: int  # judgements without a verdict
    passes: int | None = None  # judgements with a verdict whose label passes; None without a pass mark
    fails: int | None = None  # those whose label fails
    false_passes: int | None = None  # the wrong ones of them
    false_fails: int | None = None


def part_metric(people: Scale) -> str:
    """What a part is measured by; macro_agreement would be undefined on a part whose labels are all alike."""
    return "mean_agreement" if people.numeric else "accuracy"


def breakdown(
    gold_labels: Iterable[object],
    judge_labels: Iterable[object],
    *,
    parts: Sequence[Iterable[str]],
    scale: Scale | str,
    judge_scale: Scale | str | None = None,
    groups: Iterable[Hashable] | None = None,
    level: float = 0.95,
) -> dict[str, Part]:
    """One judge's agreement on each part of a set; an item may belong to several parts, or to none.

    Counts and a list, the lowest agreement first: no part is tested against another, as of many small parts
    some are bad by chance. Parts without a labelled item are absent. `parts` are the names of each item's
    parts, the other arguments as in `agreement`.
    """
    check_level(level)
    people = as_scale(scale)
    judge = people if judge_scale is None else as_scale(judge_scale)
    gold, verdicts, words = read_both(gold_labels, judge_labels, people=people, judge=judge)
    if len(parts) != len(gold):
        raise InputError(
            f"{len(gold)} gold labels but parts of {len(parts)} items: give one row of names per item"
        )
    group_of = codes_of(groups, len(gold))
    names, rows, codes = _memberships(parts, _rows_of(gold, group_of))
    if not names:
        return {}
    sample = build(gold, verdicts, group_of, people=people, judge=judge, unscored="wrong", words=words)
    metric, _ = metric_named(part_metric(people), people)
    means = metric.terms(sample)
    assert isinstance(means, Means)  # mean agreement is one on every numeric scale, accuracy on a nominal one
    found = _Members(sample, codes, rows, len(names)).parts(
        metric, means, _counts(sample, people), level=level
    )
    listed = [(name, part) for name, part in zip(names, found, strict=True) if part.n_expected]
    return dict(sorted(listed, key=lambda one: (one[1].agreement.value or 0.0, one[0])))


def _rows_of(gold: Floats, groups: Ints) -> Ints:
    """Where each item stands in the sample, which holds the labelled items by group; -1 for the others."""
    labelled = np.flatnonzero(~np.isnan(gold))
    rows = np.full(len(gold), -1, dtype=np.int64)
    rows[labelled[np.argsort(groups[labelled], kind="stable")]] = np.arange(len(labelled))
    return rows


def _memberships(parts: Sequence[Iterable[str]], rows: Ints) -> tuple[list[str], Ints, Ints]:
    """Names of the parts, and each membership once as row and part number: by part, in it by row."""
    lists = [list(one) for one in parts]
    flat = list(chain.from_iterable(lists))
    number = {name: code for code, name in enumerate(dict.fromkeys(flat))}
    codes = np.fromiter(map(number.__getitem__, flat), dtype=np.int64, count=len(flat))
    row = rows[
        np.repeat(np.arange(len(lists)), np.fromiter(map(len, lists), dtype=np.int64, count=len(lists)))
    ]
    n = max(1, len(rows))
    distinct = np.unique(codes[row >= 0] * n + row[row >= 0])
    return list(number), distinct % n, distinct // n


def _counts(sample: Sample, people: Scale) -> Floats | None:
    """The `_MARKED` counts of each row's scored verdicts: n x 4; None without a pass mark."""
    classes = sample.passes(people)
    if classes is None:
        return None
    passes = np.broadcast_to(classes.gold[:, None] == 1, sample.filled.shape)
    scored, passed = ~sample.filled, classes.verdicts == 1.0
    marked = [passes, ~passes, ~passes & passed, passes & ~passed]
    return np.stack([(one & scored).sum(axis=1) for one in marked], axis=1).astype(np.float64)


@dataclass(frozen=True)
class _Members:
    """Which row of the sample belongs to which of K parts: memberships by part, in it by row."""

    sample: Sample
    codes: Ints
    rows: Ints
    n_parts: int

    def parts(self, metric: Metric, means: Means, counts: Floats | None, *, level: float) -> list[Part]:
        """The parts in the order of their numbers; sums over all parts at once."""
        repeats = self.sample.verdicts.shape[1]
        n_items = self._sum(np.ones(len(self.sample.gold)))
        sums = (
            self._sum(means.top[..., 0].sum(axis=1)) / np.maximum(n_items * repeats, 1.0),
            n_items * repeats,
            self._groups(),
            self._sum(self.sample.filled.sum(axis=1).astype(np.float64)),
        )
        marked = {} if counts is None else dict(zip(_MARKED, map(self._sum, counts.T), strict=True))
        found = []
        for part, end in enumerate(np.cumsum(n_items).astype(np.int64).tolist()):
            value, *of_part = (column[part] for column in sums)
            asked, n_groups, lost = map(int, of_part)
            rows = self.rows[end - int(n_items[part]) : end]
            if len(rows) >= MIN_ITEMS:
                one = self._estimate(metric, means, rows, lost, level=level)
            else:
                one = Estimate(float(value), None, None, level, asked, asked, n_groups, lost, reason=_FEW)
            of_mark = {name: int(column[part]) for name, column in marked.items()}
            found.append(Part(one, asked - lost, asked, lost, **of_mark))
        return found

    def _sum(self, of_row: Floats) -> Floats:
        summed = np.bincount(self.codes, weights=of_row[self.rows], minlength=self.n_parts)
        return summed.astype(np.float64, copy=False)

    def _groups(self) -> Floats:
        """In how many groups each part has items."""
        group = self.sample.group_of[self.rows]
        new = (np.diff(group, prepend=-1) != 0) | (np.diff(self.codes, prepend=-1) != 0)
        return np.bincount(self.codes[new], minlength=self.n_parts).astype(np.float64)

    def _estimate(
        self, metric: Metric, means: Means, rows: Ints, n_unscored: int, *, level: float
    ) -> Estimate:
        part = replace(
            self.sample,
            gold=self.sample.gold[rows],
            verdicts=self.sample.verdicts[rows],
            filled=self.sample.filled[rows],
            group_of=renumbered(self.sample.group_of[rows]),
            n_expected=len(rows) * self.sample.verdicts.shape[1],
            n_unscored=n_unscored,
            classes=None,
        )
        terms = replace(means, top=means.top[rows], bottom=means.bottom[rows], used=means.used[rows])
        return estimate(metric, terms, part, level=level, seed=0)
