"""Labels, verdicts and groups as people give them, read into arrays and brought onto one scale.

In a sample, which every metric reads, rows are items with a gold label, sorted by group; columns are repeats.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from judgecal.errors import InputError, listed, refuse
from judgecal.records import is_missing
from judgecal.scale import Scale, common_scale, onto

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Labels = Sequence[Any] | npt.NDArray[Any]
"""Labels, verdicts or groups that can be read more than once: as people give them, or as an array."""

_NUMBER_TYPES = {int, float, type(None), np.float64}
Unscored = Literal["wrong", "drop"]
"""What an unscored verdict counts as: the farthest from its label, left out, or its label."""


def as_scale(scale: Scale | str) -> Scale:
    """A scale, read from its string where it is one."""
    return Scale.parse(scale) if isinstance(scale, str) else scale


def codes_of(groups: Iterable[Hashable] | None, n: int) -> Ints:
    """Return an array of group numbers 0..G-1, from each row's group, or None (each its own), and n rows. The
    order of rows does not matter: a seeded draw must not hang on a file's order.

    An InputError where there are not n of them, or one is missing or cannot name a group (a list, a dict).
    """
    if groups is None:
        return np.arange(n, dtype=np.int64)
    if isinstance(groups, np.ndarray) and groups.dtype.kind == "i" and len(groups) == n:
        return renumbered(groups)  # numbered at a door
    keys = list(groups)
    if len(keys) != n:
        raise InputError(f"{n} gold labels but {len(keys)} groups: give one group per item")
    lacking = [str(place) for place, key in enumerate(keys) if is_missing(key)]
    if lacking:
        raise InputError(f"groups[{listed(lacking)}]: missing: each item needs its question")
    try:
        distinct = dict.fromkeys(keys)
    except TypeError:
        raise InputError("groups: name each question by a text or a number") from None
    types = {type(key) for key in distinct}
    ordered = sorted(distinct, key=str if len(types) == 1 else lambda key: (type(key).__name__, str(key)))
    number = dict(zip(ordered, range(len(ordered)), strict=True))
    return np.fromiter(map(number.__getitem__, keys), dtype=np.int64, count=n)


def renumbered(codes: Ints) -> Ints:
    """Return an array of codes as 0, 1, ... without gaps, in their order."""
    if len(codes) and codes.min() >= 0 and codes.max() < len(codes):  # without a sort
        there = np.bincount(codes) > 0
        return codes if there.all() else (np.cumsum(there) - 1)[codes]
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def read_both(
    gold_labels: Iterable[object], judge_labels: Iterable[object], *, people: Scale, judge: Scale
) -> tuple[Floats, Floats, tuple[str, ...]]:
    """Return two arrays and words, from gold labels, judge's labels, people's Scale and judge's Scale.

    Each is on its own scale still. An InputError where lengths differ, rows are ragged, or a label is off its
    scale.
    """
    gold, rows = as_sequence(gold_labels), as_sequence(judge_labels)
    if len(gold) != len(rows):
        raise InputError(f"{len(gold)} gold labels but {len(rows)} verdicts: give one (or one row) per item")
    flat, width = _flat(rows)
    problems: list[str] = []
    ours = _read_all(gold, people, where="gold_labels", width=1, problems=problems)
    theirs = _read_all(flat, judge, where="judge_labels", width=width, problems=problems)
    refuse(problems, most=10)
    named = dict.fromkeys([*people.categories, *judge.categories])
    sides = (side for side in (ours, theirs) if isinstance(side, list))
    given = {label for side in sides for label in side if isinstance(label, str)}
    words = (*named, *sorted(given - named.keys()))
    number = {word: float(code) for code, word in enumerate(words)}
    return _coded(ours, number), _coded(theirs, number).reshape(len(gold), width), words


def as_sequence(labels: Iterable[Any]) -> Labels:
    """Labels that can be read more than once; arrays, lists and tuples as they are."""
    return labels if isinstance(labels, np.ndarray | list | tuple) else list(labels)


def _flat(rows: Labels) -> tuple[Labels, int]:
    """Verdicts row by row in one sequence, and how many each row has; a flat sequence is one repeat."""
    if isinstance(rows, np.ndarray) and rows.ndim == 2:
        widths, flat = {rows.shape[1]}, cast(Labels, rows.reshape(-1))
    elif len(rows) and isinstance(rows[0], list | tuple | np.ndarray):
        lists = [row if isinstance(row, list | tuple | np.ndarray) else [row] for row in rows]
        widths, flat = set(map(len, lists)), list(chain.from_iterable(lists))
    else:
        return rows, 1
    if len(widths) != 1 or 0 in widths:
        raise InputError(
            "verdicts: every item needs the same number of repeats, at least one (None = missing)"
        )
    return flat, widths.pop()


def _read_all(
    labels: Labels, scale: Scale, *, where: str, width: int, problems: list[str]
) -> Floats | list[float | str]:
    """All labels of one side; in one go where they are numbers and right, else one by one."""
    at_once = _numbers(labels, scale)
    if at_once is not None:
        return at_once
    return [
        read_label(label, scale, where=f"{where}[{i // width}]", problems=problems)
        for i, label in enumerate(labels)
    ]


def _numbers(labels: Labels, scale: Scale) -> Floats | None:
    """The labels where all are numbers or missing and fit a numeric scale; None where one does not."""
    plain = (
        labels.dtype.kind in "fiu" and labels.ndim == 1
        if isinstance(labels, np.ndarray)
        else {type(label) for label in labels} <= _NUMBER_TYPES
    )
    if not plain or not scale.numeric:
        return None
    try:
        values = np.array(labels, dtype=np.float64)
        if scale.kind == "binary":
            return values if (np.isin(values, (0.0, 1.0)) | np.isnan(values)).all() else None
    except (ValueError, OverflowError):
        return None
    values *= 100.0 if scale.from_fraction else 1.0
    outside: Bools = (values < scale.low) | (values > scale.high)
    return None if outside.any() else values


def _coded(labels: Floats | list[float | str], number: Mapping[str, float]) -> Floats:
    """Labels as numbers, words by their codes."""
    if isinstance(labels, np.ndarray):
        return labels
    coded = [number[label] if isinstance(label, str) else label for label in labels]
    return np.array(coded, dtype=np.float64)


def read_label(label: object, scale: Scale, *, where: str, problems: list[str]) -> float | str:
    """Return a number or a word, from a label, a Scale, `where` and the list that takes problems."""
    if is_missing(label):
        return float("nan")
    try:
        if isinstance(label, bool | np.bool_ | str) or scale.kind in ("binary", "nominal"):
            return scale.read(label)
        value = float(cast(float, label)) * (100.0 if scale.from_fraction else 1.0)
        if not scale.low <= value <= scale.high:
            raise ValueError(f"{value:g} lies outside {scale.low:g}..{scale.high:g}")
    except (TypeError, ValueError, OverflowError) as error:
        problems.append(f"{where}: {error}")
        return float("nan")
    return value


@dataclass(frozen=True)
class Classes:
    """Labels and verdicts as category numbers 0..q-1."""

    gold: Ints  # n codes
    verdicts: Floats  # n x R codes, NaN where unscored
    values: Floats  # the q categories' places on the scale (their codes where they have no order)
    problem: str | None = None  # why the verdicts are no categories, or None


@dataclass(frozen=True)
class Sample:
    """What a metric is computed from."""

    scale: Scale  # the common scale; gold labels and verdicts are on it (category codes where it is nominal)
    binary_gold: bool  # the people said pass or fail, whatever the common scale
    gold: Floats  # n labels
    verdicts: Floats  # n x R verdicts, uncut; NaN where unscored and not filled in
    filled: Bools  # n x R, true where a missing verdict was filled in as wrong
    group_of: Ints  # n group numbers 0..G-1, ascending
    n_expected: int  # judgements asked for
    n_unscored: int  # those without a verdict
    # labels and verdicts as categories, where the scale or a pass mark makes some
    classes: Classes | None = None
    weights: Floats | None = None  # n, 1 / the chance of being drawn, where that is not the same for all

    @cached_property
    def scored(self) -> Bools:
        """n x R: the pairs that there are."""
        return ~np.isnan(self.verdicts)

    @cached_property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(self._starts)

    @cached_property
    def _starts(self) -> Ints:
        return np.flatnonzero(np.diff(self.group_of, prepend=-1)).astype(np.int64)

    def per_group(self, rows: npt.NDArray[Any]) -> Floats:
        """Return an array G x ..., the sum over each of these groups of the rows of an array n x ..."""
        summed = np.add.reduceat(rows.astype(np.float64, copy=False), self._starts, axis=0)
        return cast(Floats, summed)

    def groups_among(self, used: Bools) -> int:
        """How many groups hold at least one of the marked pairs."""
        return int(np.count_nonzero(np.diff(self.group_of[used.any(axis=1)], prepend=-1)))

    @cached_property
    def at_mark(self) -> Sample:
        """The sample with pass and fail at the scale's mark as its classes."""
        return replace(self, classes=_cut(self))

    @property
    def categories(self) -> Classes:
        """Labels and verdicts as categories; an InputError where the scale has none without a pass mark."""
        if self.classes is None:
            raise InputError(f"scale {self.scale} has no classes without a pass mark")
        return self.classes

    def passes(self, people: Scale) -> Classes | None:
        """Return the Classes pass and fail of these labels by people's Scale; None where it has no mark."""
        marked = people.kind == "binary" or (people.numeric and people.pass_at is not None)
        return _cut(self) if marked else None


def build(
    gold: Floats,
    verdicts: Floats,
    group_of: Ints,
    *,
    people: Scale,
    judge: Scale,
    unscored: Unscored,
    words: tuple[str, ...] = (),
    weights: Floats | None = None,
) -> Sample:
    """Build a Sample: gold array, verdict array, groups, people's Scale, judge's Scale, and `unscored`.

    Items without a gold label are left out. A missing verdict stays out with `drop` (an item without any
    verdict goes too); with `wrong` it becomes the verdict farthest from its label, in a nominal scale a
    category of its own.
    """
    if unscored not in ("wrong", "drop"):
        raise InputError(f"unscored is {unscored!r}: use 'wrong' or 'drop'")
    common = common_scale(people, judge)
    labelled: Bools = ~np.isnan(gold)
    gold, verdicts, group_of = gold[labelled], verdicts[labelled], group_of[labelled]
    missing: Bools = np.isnan(verdicts)
    order = np.argsort(group_of, kind="stable")
    if unscored == "drop":
        order = order[missing.sum(axis=1)[order] < missing.shape[1]]
    sample = Sample(
        scale=common,
        binary_gold=people.kind == "binary",
        gold=rescaled(gold, people, common)[order],
        verdicts=rescaled(verdicts, judge, common)[order],
        filled=(np.zeros_like(missing) if unscored == "drop" else missing)[order],
        group_of=renumbered(group_of[order]),
        n_expected=int(missing.size),
        n_unscored=int(missing.sum()),
        weights=None if weights is None else weights[labelled][order],
    )
    sample = replace(sample, verdicts=_filled(sample, words))
    declared = len(dict.fromkeys([*people.categories, *judge.categories]))
    return replace(sample, classes=_own_classes(sample, words, declared))


def rescaled(values: Floats, source: Scale, target: Scale) -> Floats:
    """Return an array of values, mapped linearly, ends to ends, from a source Scale to a target Scale."""
    if not target.numeric or (source.low, source.high) == (target.low, target.high):
        return values
    return cast(Floats, onto(target, source, cast(Any, values)))


def _filled(sample: Sample, words: tuple[str, ...]) -> Floats:
    """Verdicts with the missing ones filled in as wrong, where that was asked for."""
    if not sample.scale.numeric:
        return np.where(sample.filled, float(len(words)), sample.verdicts)
    if not sample.filled.any():
        return sample.verdicts
    labels, place = np.unique(sample.gold, return_inverse=True)
    far = np.array([sample.scale.farthest(label) for label in labels.tolist()], dtype=np.float64)[place]
    return np.where(sample.filled, far.reshape(-1, 1), sample.verdicts)


def _own_classes(sample: Sample, words: tuple[str, ...], declared: int) -> Classes | None:
    """The scale's own categories: all of them, observed or not; pass and fail where the people said so.

    Of words that no scale declares, those of items left out are no category; the last one is for no verdict.
    """
    if sample.binary_gold:
        return _cut(sample)
    if sample.scale.kind == "nominal":
        there = np.arange(len(words) + 1) < declared
        there[sample.gold.astype(np.int64)] = True
        there[sample.verdicts[sample.scored].astype(np.int64)] = True
        there[len(words)] = True
        code = np.cumsum(there) - 1.0
        verdicts = np.where(
            sample.scored, code[np.where(sample.scored, sample.verdicts, 0.0).astype(np.int64)], np.nan
        )
        gold = code[sample.gold.astype(np.int64)].astype(np.int64)
        return Classes(gold, verdicts, np.arange(there.sum(), dtype=np.float64))
    if sample.scale.kind != "ordinal":
        return None
    values = np.arange(sample.scale.low, sample.scale.high + 1.0)
    whole = bool(np.all(sample.gold % 1.0 == 0.0) and np.all(sample.verdicts[sample.scored] % 1.0 == 0.0))
    problem = None if whole else "labels or verdicts lie between the categories of the scale"
    return Classes((sample.gold - values[0]).astype(np.int64), sample.verdicts - values[0], values, problem)


def _cut(sample: Sample) -> Classes:
    """Pass (1) and fail (0) at the mark. A verdict filled in as wrong has the class that its label has not.

    (The verdict farthest from a label between the middle and the mark lies on the label's own side of the
    mark: cutting it would count a failed call as right.)
    """
    middle = sample.scale.low + sample.scale.span / 2.0
    mark = middle if sample.scale.kind == "binary" or sample.scale.pass_at is None else sample.scale.pass_at
    gold = (sample.gold >= (middle if sample.binary_gold else mark)).astype(np.int64)
    cut = np.where(sample.filled, 1.0 - gold[:, None], (sample.verdicts >= mark).astype(np.float64))
    return Classes(gold, np.where(sample.scored, cut, np.nan), np.array([0.0, 1.0]))
