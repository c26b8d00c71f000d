"""Reliability among raters: how far people agree with each other, all at once and two at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from judgecal.errors import InputError, refuse
from judgecal.records import Estimate, is_missing
from judgecal.scale import GRADED, INTERVAL, Kind, Label, Scale
from judgecal.stats.agreement import Estimates, estimate
from judgecal.stats.chance import fleiss, gwet, icc, interval_alpha, nominal_alpha, ordinal_alpha
from judgecal.stats.intervals import check_level
from judgecal.stats.metrics import METRICS, Terms
from judgecal.stats.sample import Bools, Floats, Ints, Sample, as_scale, build, codes_of

RaterLabels = Iterable[object] | Mapping[Hashable, object]
"""One rater's labels: one an item in the order of the items, or by item; None or NaN = missing."""

_EQUAL = "no disagreement is expected: all ratings are equal"


@dataclass(frozen=True)
class Ratings:
    """What the raters said: k raters, n items (their numbers where the raters were given as rows)."""

    raters: tuple[str, ...]
    items: tuple[Hashable, ...]
    labels: Floats  # n x k numbers on the scale (codes of the words on a nominal one), NaN where missing
    words: tuple[str, ...] = ()  # of a nominal scale, those known and those that occur


def read_ratings(ratings: Mapping[str, RaterLabels] | Sequence[RaterLabels], *, scale: Scale) -> Ratings:
    """Read raters x items, given as rows of equal length or as mappings from item to label.

    Items that are given by name come in the order of their first mention.
    """
    rows = dict(ratings) if isinstance(ratings, Mapping) else {str(i): row for i, row in enumerate(ratings)}
    table = _by_item({str(rater): row for rater, row in rows.items()})
    items = tuple(dict.fromkeys(item for row in table.values() for item in row))
    problems: list[str] = []
    read = {
        rater: {item: _label(row[item], scale, f"ratings[{rater!r}][{item!r}]", problems) for item in row}
        for rater, row in table.items()
    }
    refuse(problems, most=10)
    said = {label for row in read.values() for label in row.values() if isinstance(label, str)}
    words = tuple(dict.fromkeys([*scale.categories, *sorted(said)]))
    number = {word: float(code) for code, word in enumerate(words)}
    labels = np.full((len(items), len(read)), np.nan)
    place = {item: i for i, item in enumerate(items)}
    for rater, row in enumerate(read.values()):
        for item, label in row.items():
            if label is not None:
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
        found = ", ".join(f"{rater!r} {n}" for rater, n in lengths.items())
        raise InputError(
            f"ratings: rows of {found} items: give one label per item and rater (None = missing)"
        )
    return {rater: dict(enumerate(row)) for rater, row in listed.items()}


def _label(label: object, scale: Scale, where: str, problems: list[str]) -> Label | None:
    if is_missing(label):
        return None
    try:
        return scale.read(label)
    except ValueError as error:
        problems.append(f"{where}: {error}")
        return None


def reliability(
    ratings: Mapping[str, RaterLabels] | Sequence[RaterLabels],
    *,
    scale: Scale | str,
    groups: Iterable[Hashable] | Mapping[Hashable, Hashable] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Estimates:
    """How far raters agree with each other; ratings may be missing.

    Intervals are by group as in `agreement`. A statistic that the scale does not have is null with the
    reason.

    >>> found = judgecal.reliability({"anna": [1, 0, 1, 1], "ben": [1, 0, 0, 1]}, scale="binary")
    >>> found["kappa[anna,ben]"].value, found["kappa[anna,ben]"].reason
    (0.5, '4 groups: fewer than 10 give no interval')

    Args:
        ratings: rater to labels, or rows of labels (their raters are then called 0, 1, ...). A rater's labels
            are one an item in the order of the items, or a mapping from item to label; None or NaN = missing.
        groups: the question of each item, in their order or by item; each item its own where not given.
        others: as in `agreement`.

    Returns:
        `krippendorff_alpha` at the level of the scale (ordinal: `krippendorff_alpha_interval` too),
        `fleiss_kappa`, `gwet_ac1`, over the items with two ratings or more; `icc_2_1` (scales with grades)
        over the items that all raters rated; `kappa[a,b]` of each pair of raters (ordinal also
        `kappa_quadratic[a,b]`). Graded scales with a pass mark have those on categories at the mark too:
        `fleiss_kappa@75`, `kappa@75[a,b]`. n counts items, n_expected those with any rating, n_unscored
        those of them that the value does not rest on.

    Raises:
        InputError: rows differ in length, a label is none of the scale, an item has no group.
    """
    check_level(level)
    people = as_scale(scale)
    table = read_ratings(ratings, scale=people)
    rated: Bools = (~np.isnan(table.labels)).sum(axis=1) > 0
    codes = groups_of(groups, table.items)
    order = np.argsort(codes, kind="stable")
    order = order[rated[order]]
    panel = _Panel(people, table.raters, table.labels[order], codes[order], table.words, (level, seed))
    marks = [False, True] if people.graded and people.pass_at is not None else [False]
    found = Estimates()
    for at_mark in marks:
        found |= panel.together(at_mark=at_mark) | panel.two_by_two(at_mark=at_mark)
    return found


def groups_of(
    groups: Iterable[Hashable] | Mapping[Hashable, Hashable] | None, items: Sequence[Hashable]
) -> Ints:
    """Group numbers of the items, given in their order or by item; each item its own where not given."""
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


@dataclass(frozen=True)
class _Rated:
    """Ratings of some of the items (n x 1 x k), ready for a coefficient.

    Attributes:
        level: what differences of labels mean: nothing, their order, their size
    """

    labels: Floats
    sample: Sample
    codes: Floats  # the labels as category numbers
    values: Floats  # the categories' places on the scale
    level: Literal["nominal", "ordinal", "interval"]


def _alpha(rated: _Rated) -> Terms:
    if rated.level == "interval":
        return interval_alpha(rated.labels, rated.sample)
    if rated.level == "ordinal":
        return ordinal_alpha(rated.labels, rated.sample)
    return nominal_alpha(rated.codes, len(rated.values), rated.sample)


@dataclass(frozen=True)
class _Line:
    """A coefficient of all raters at once."""

    name: str
    metric: str  # the same for two raters
    terms: Callable[[_Rated], Terms]
    fewest: int | None  # ratings that an item must have; None = one of every rater
    # the scales whose own labels it is taken on; `why_not` says why others do not have it
    kinds: tuple[Kind, ...]
    at_mark: bool = True  # graded scales with a pass mark have it there too
    why_not: str = "a percentage has no categories without a pass mark"


_CATEGORIES: tuple[Kind, ...] = ("binary", "nominal", "ordinal")
_LINES = (
    _Line("krippendorff_alpha", "krippendorff_alpha", _alpha, 2, (*_CATEGORIES, *INTERVAL)),
    _Line(
        "fleiss_kappa",
        "scott_pi",
        lambda one: fleiss(one.codes, one.values, one.sample, undefined=_EQUAL),
        1,
        _CATEGORIES,
    ),
    _Line("gwet_ac1", "gwet_ac1", lambda one: gwet(one.codes, one.values, one.sample), 1, _CATEGORIES),
    _Line(
        "krippendorff_alpha_interval",
        "krippendorff_alpha",
        lambda one: interval_alpha(one.labels, one.sample),
        2,
        ("ordinal",),
        False,
        "",
    ),
    _Line(
        "icc_2_1",
        "icc_2_1",
        lambda one: icc(one.labels, one.sample),
        None,
        GRADED,
        False,
        "taken on scales with grades only",
    ),
)


@dataclass(frozen=True)
class _Panel:
    """The rated items, sorted by group: n x k labels, n group numbers, and level and seed of intervals."""

    scale: Scale
    raters: tuple[str, ...]
    labels: Floats
    groups: Ints
    words: tuple[str, ...]
    made: tuple[float, int]

    def together(self, *, at_mark: bool) -> dict[str, Estimate]:
        """The coefficients of all raters at once."""
        return {
            self._named(line.name, at_mark=at_mark): self._joint(line, at_mark=at_mark)
            for line in _LINES
            if (line.at_mark or not at_mark) and (line.why_not or self.scale.kind in line.kinds)
        }

    def two_by_two(self, *, at_mark: bool) -> dict[str, Estimate]:
        """The kappas of each pair of raters."""
        kappas = ["kappa", "kappa_quadratic"] if self.scale.kind == "ordinal" and not at_mark else ["kappa"]
        return {
            f"{self._named(kappa, at_mark=at_mark)}[{self.raters[a]},{self.raters[b]}]": self._pair(
                kappa, [a, b], at_mark=at_mark
            )
            for kappa in kappas
            for a, b in combinations(range(len(self.raters)), 2)
        }

    def _named(self, name: str, *, at_mark: bool) -> str:
        return f"{name}@{self.scale.pass_at:g}" if at_mark else name

    def _joint(self, line: _Line, *, at_mark: bool) -> Estimate:
        given = (~np.isnan(self.labels)).sum(axis=1)
        k = len(self.raters)
        rows = given >= (k if line.fewest is None else line.fewest)
        if k < 2:
            return self._undefined(f"{k} rater{'s' * (k != 1)}: reliability needs two")
        if not (given >= 2).any():
            return self._undefined("no item has two ratings")
        if not at_mark and self.scale.kind not in line.kinds:
            return self._undefined(line.why_not)
        if not rows.any():
            return self._undefined("no item was rated by every rater")
        labels = self.labels[rows]
        first = labels[np.arange(len(labels)), np.argmin(np.isnan(labels), axis=1)]
        sample = self._sample(first, first, self.groups[rows])
        terms = line.terms(self._rated(labels, sample, at_mark=at_mark))
        return self._estimate(line.metric, terms, sample.at_mark if at_mark else sample)

    def _rated(self, labels: Floats, sample: Sample, *, at_mark: bool) -> _Rated:
        panel = labels[:, None, :]
        if at_mark:
            passed = np.where(np.isnan(panel), np.nan, panel >= (self.scale.pass_at or 0.0))
            return _Rated(panel, sample, passed, np.array([0.0, 1.0]), "nominal")
        if self.scale.kind == "nominal":
            return _Rated(panel, sample, panel, np.arange(len(self.words), dtype=np.float64), "nominal")
        values = np.arange(self.scale.low, self.scale.high + 1.0)
        levels: dict[Kind, Literal["nominal", "ordinal", "interval"]]
        levels = {"binary": "nominal", "ordinal": "ordinal", "percentage": "interval", "points": "interval"}
        return _Rated(panel, sample, panel - self.scale.low, values, levels[self.scale.kind])

    def _pair(self, name: str, pair: list[int], *, at_mark: bool) -> Estimate:
        labels = self.labels[:, pair]
        both = ~np.isnan(labels).any(axis=1)
        if self.scale.kind in INTERVAL and not at_mark:
            return self._undefined(_LINES[1].why_not)
        if not both.any():
            return self._undefined("no item has a rating of both")
        sample = self._sample(labels[both, 0], labels[both, 1], self.groups[both])
        sample = sample.at_mark if at_mark else sample
        return self._estimate(name, METRICS[name].terms(sample), sample)

    def _sample(self, ours: Floats, theirs: Floats, groups: Ints) -> Sample:
        return build(
            ours,
            theirs[:, None],
            groups,
            people=self.scale,
            judge=self.scale,
            unscored="drop",
            words=self.words,
        )

    def _estimate(self, metric: str, terms: Terms, sample: Sample) -> Estimate:
        level, seed = self.made
        return self._counted(estimate(METRICS[metric], terms, sample, level=level, seed=seed))

    def _undefined(self, reason: str) -> Estimate:
        return self._counted(Estimate(None, level=self.made[0], reason=reason))

    def _counted(self, found: Estimate) -> Estimate:
        items = len(self.labels)
        return replace(found, n_expected=items, n_unscored=items - found.n)
