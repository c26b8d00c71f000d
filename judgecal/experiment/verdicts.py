"""Verdicts beside labels: where they fall at the pass mark, how they lie, and the items on which they
part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from judgecal.experiment.agreement import Column, Table, verdict_matrix
from judgecal.goldset import GOLD, GoldSet
from judgecal.records import Estimate, Item, Judgement, Rating
from judgecal.scale import Label, Scale, common_scale, onto
from judgecal.stats import agreement
from judgecal.stats.breakdown import Part, breakdown
from judgecal.stats.intervals import mean_estimate
from judgecal.stats.metrics import metrics_of
from judgecal.stats.sample import Floats

_NEAR = 0.10  # of the range: so far from its label a graded verdict is with the people, as `within_10` counts


@dataclass(frozen=True)
class Cut:
    """One judge's verdicts beside the people's labels, each with its scale, on the scale common to both."""

    people: Scale
    judge: Scale

    @cached_property
    def common(self) -> Scale:
        """The scale that labels and verdicts are brought onto."""
        return common_scale(self.people, self.judge)

    @cached_property
    def mark(self) -> float | None:
        """From where on a verdict passes, on the common scale; None where the people did not say what
        passes."""
        if not self.people.numeric or (self.people.kind != "binary" and self.people.pass_at is None):
            return None
        common = self.common
        middle = common.low + common.span / 2.0
        return middle if common.kind == "binary" or common.pass_at is None else common.pass_at

    @cached_property
    def label_mark(self) -> float | None:
        """From where on a label passes, on the common scale; None as `mark`."""
        return self.common.low + self.common.span / 2.0 if self.people.kind == "binary" else self.mark

    def label_at(self, label: Label) -> float:
        """A label on the common scale."""
        return onto(self.common, self.people, float(label))

    def verdict_at(self, verdict: Label) -> float:
        """A verdict on the common scale."""
        return onto(self.common, self.judge, float(verdict))

    def distance(self, label: Label, verdict: Label) -> float:
        """Verdict less label as a share of the range, -1..1; on words 0 or 1."""
        if not self.people.numeric:
            return float(str(label) != str(verdict))
        return (self.verdict_at(verdict) - self.label_at(label)) / self.common.span

    @cached_property
    def _known(self) -> dict[tuple[Label, Label], tuple[str | None, float]]:
        return {}

    def outcome(self, label: Label, verdict: Label) -> tuple[str | None, float]:
        """`error` and `distance`; of all items few pairs of a label and a verdict differ, so each is held
        once."""
        found = self._known.get((label, verdict))
        if found is None:
            found = self._known[label, verdict] = self.error(label, verdict), self.distance(label, verdict)
        return found

    def error(self, label: Label, verdict: Label) -> str | None:
        """How a verdict parts from a label; None where it does not.

        `false pass` or `false fail`; without a mark `too high` or `too low` by more than 10% of the range, or
        `another word`.
        """
        mark, label_mark = self.mark, self.label_mark
        if mark is not None and label_mark is not None:
            passed = self.verdict_at(verdict) >= mark
            return (
                None
                if passed == (self.label_at(label) >= label_mark)
                else "false pass"
                if passed
                else "false fail"
            )
        apart = self.distance(label, verdict)
        if not self.people.numeric:
            return "another word" if apart else None
        return None if abs(apart) <= _NEAR + 1e-9 else "too high" if apart > 0.0 else "too low"


_CALIBRATION_BINS = 10
_RATES = ("tpr", "tnr", "mae", "within_10")  # what a judge is described by; of words, kappa
_CLASSES = 8  # of a confusion matrix at most


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Verdicts of about one height: their mean, the people's mean label of them with its interval, how many
    they are.

    Both on the common scale; the interval is None where too few questions have such a verdict.
    """

    verdict: float
    label: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Confusion:
    """Judgements by class: a row for what people say, a column for what the judge says, a last one for no
    verdict.

    The last column is there only where the judge has judgements without a verdict.
    """

    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class JudgeShape:
    """One judge's verdicts beside the labels: those that describe it (`Table.described`), but where raw ones
    are named.

    Attributes:
        at_cut: counts at the pass mark; None without one.
        rates: METRIC -> Estimate over the scored judgements, of the metrics in `_RATES`.
        unit: the scale that mae, rmse and bias among them are in units of.
        confusion: of judgements by what people say and what the judge says; None of labels of many steps
            without a mark.
        mapped: whether these verdicts are calibrated; then `raw_at_cut` are the counts of the raw ones.
        low, high: of the scale that labels and raw verdicts are brought onto.
        calibration: raw verdicts of about one height beside the people's mean label of them, and
        calibration_map: (verdict, label), from which on the map gives that label, on the common scale; both
            of graded verdicts.
    """

    judge: str
    at_cut: Part | None
    rates: Mapping[str, Estimate]
    unit: str
    confusion: Confusion | None = None
    mapped: bool = False
    raw_at_cut: Part | None = None
    low: float = 0.0
    high: float = 1.0
    calibration: tuple[CalibrationBin, ...] = ()
    calibration_map: tuple[tuple[float, float], ...] = ()


def judge_shape(table: Table, column: Column, described: Column) -> JudgeShape:
    """One judge's verdicts beside the labels of a table; `described` is what `Table.described` makes of the
    column."""
    people, mapped = table.gold.scale, described is not column
    cut = Cut(people, described.scale)
    verdicts = verdict_matrix(described.rows, table.items, table.repeats)
    wanted = _RATES if people.numeric else ("kappa",)
    rates = agreement(
        table.labels,
        verdicts,
        scale=people,
        judge_scale=described.scale,
        groups=table.groups,
        level=table.level,
        seed=table.seed,
        weights=table.weights,
        metrics=[name for name, (metric, _) in metrics_of(people).items() if metric.name in wanted],
    )
    found = JudgeShape(
        judge=column.judge,
        at_cut=_at_cut(table, described),
        rates=rates,
        unit=str(cut.common),
        confusion=_confusion(table.labels, verdicts, cut),
        mapped=mapped,
        raw_at_cut=_at_cut(table, column) if mapped else None,
    )
    if not people.numeric:
        return found
    raw = Cut(people, column.scale)
    pairs = [
        (raw.label_at(label), raw.verdict_at(verdict), item.group)
        for label, row, item in zip(
            table.labels, verdict_matrix(column.rows, table.items, table.repeats), table.items, strict=True
        )
        for verdict in row
        if verdict is not None
    ]
    both = np.array([pair[:2] for pair in pairs], dtype=np.float64).reshape(-1, 2)
    graded = raw.common.kind != "binary" and len(both) > 0
    return replace(
        found,
        low=raw.common.low,
        high=raw.common.high,
        calibration=_calibration(both, [pair[2] for pair in pairs], raw) if graded else (),
        calibration_map=_map(table, column, raw) if graded else (),
    )


def _at_cut(table: Table, column: Column) -> Part | None:
    """Counts at the pass mark; None without one."""
    cut, verdicts = (
        Cut(table.gold.scale, column.scale),
        verdict_matrix(column.rows, table.items, table.repeats),
    )
    if cut.mark is None:
        return None
    whole = [("all",)] * len(table.items)
    return breakdown(
        table.labels, verdicts, parts=whole, scale=cut.people, judge_scale=cut.judge, groups=table.groups
    )["all"]


def _confusion(
    labels: Sequence[Label], verdicts: Sequence[Sequence[Label | None]], cut: Cut
) -> Confusion | None:
    """At the pass mark where there is one; of words and of a few whole grades as they are."""
    name = _class_of(cut)
    if name is None:
        return None
    counts = Counter(
        (
            name(label, cut.label_at, cut.label_mark),
            None if one is None else name(one, cut.verdict_at, cut.mark),
        )
        for label, row in zip(labels, verdicts, strict=True)
        for one in row
    )
    said = {one for pair in counts for one in pair if one is not None}
    in_order = sorted(said, key=float if cut.mark is None and cut.people.numeric else str)
    classes = in_order if cut.mark is None else ["fail", "pass"]
    if len(classes) > _CLASSES:
        return None
    columns: list[str | None] = [*classes, *([None] if any(one is None for _, one in counts) else [])]
    rows = tuple(tuple(counts[people, judge] for judge in columns) for people in classes)
    return Confusion(tuple(classes), rows)


def _class_of(cut: Cut) -> Callable[[Label, Callable[[Label], float], float | None], str] | None:
    """What names the class of a label or a verdict; None where there are no classes."""
    if cut.mark is not None:
        return lambda one, at, mark: "pass" if mark is not None and at(one) >= mark else "fail"
    if not cut.people.numeric:
        return lambda one, _at, _mark: str(one)
    people, judge = cut.people, cut.judge
    if (people.kind, people.low, people.high) == (
        "ordinal",
        judge.low,
        judge.high,
    ) and judge.kind == "ordinal":
        return lambda one, _at, _mark: f"{one:g}"
    return None


def _map(table: Table, column: Column, cut: Cut) -> tuple[tuple[float, float], ...]:
    """The steps of the judge's map, fitted on these items, each from where it begins."""
    found = table.calibration(column, fitted_on="these items")
    if found is None:
        return ()
    starts = (cut.common.low, *(cut.verdict_at(one) for one in found.cuts))
    return tuple((start, cut.label_at(label)) for start, label in zip(starts, found.values, strict=True))


def _calibration(both: Floats, groups: Sequence[str], cut: Cut) -> tuple[CalibrationBin, ...]:
    """People's mean label of verdicts of about the same height, ten bins of the scale."""
    place = (both[:, 1] - cut.common.low) / cut.common.span * _CALIBRATION_BINS
    bins = np.minimum(place.astype(np.int64), _CALIBRATION_BINS - 1)
    found = []
    for number in np.unique(bins).tolist():
        rows = np.flatnonzero(bins == number).tolist()
        mean = mean_estimate(
            both[rows, 0], [groups[row] for row in rows], low=cut.common.low, high=cut.common.high, level=0.95
        )
        label = float(both[rows, 0].mean())
        found.append(CalibrationBin(float(both[rows, 1].mean()), label, mean.low, mean.high, len(rows)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Said:
    """What one judge said of one item.

    Attributes:
        binary: whether these verdicts are pass and fail.
        verdicts: those that describe the judge (`Table.described`), of its repeats; None where unscored.
        raw: as it gave them, where the others are calibrated; else empty.
        reasoning: of the one that lies farthest from the label, and
        raw_reply: of it, where the journal holds one.
        error: as `Cut.error` names it, of that one; None where right or unscored.
        distance: of that one, as `Cut.distance`.
        unscored: the error kind where it has no verdict.
    """

    judge: str
    binary: bool
    verdicts: tuple[Label | None, ...]
    reasoning: str
    raw_reply: str
    error: str | None
    distance: float
    unscored: str | None
    raw: tuple[Label | None, ...] = ()

    @property
    def parts(self) -> bool:
        """Whether it errs, or has no verdict: that counts as the verdict farthest from the label."""
        return self.error is not None or self.unscored is not None


@dataclass(frozen=True, slots=True)
class PartedItem:
    """An item on which a judge and people part: its label and ratings, and what every judge said.

    `judges_differ`, `people_differ`: whether they part among themselves, at the pass mark where there is one.
    """

    item: Item
    label: Label
    binary: bool
    ratings: tuple[Rating, ...]
    said: tuple[Said, ...]
    judges_differ: bool
    people_differ: bool

    @property
    def n_wrong(self) -> int:
        """How many judges err or have no verdict."""
        return sum(one.parts for one in self.said)

    @property
    def distance(self) -> float:
        """Of the judge that is farthest off, 0..1."""
        return max((1.0 if one.unscored else abs(one.distance) for one in self.said), default=0.0)


def parted_items(
    gold: GoldSet, columns: Sequence[tuple[Column, Column]], items: Sequence[Item]
) -> tuple[PartedItem, ...]:
    """Every item on which one of the judges errs or has no verdict.

    Worst first: farthest from the label, then most judges wrong, then those of whose label the single raters
    are surest. Test items, which are not for reading, are not to be among `items`. `columns`: each judge's as
    it is, and as `Table.described` makes it.
    """
    ratings = dict[str, list[Rating]]()
    for rating in gold.ratings:
        ratings.setdefault(rating.item_id, []).append(rating)
    people = Cut(gold.scale, gold.scale)
    every = [_judged(gold, column, described, items) for column, described in columns]
    parted = []
    for item in items:
        said = tuple(own[item.item_id] for own in every)
        if any(one.parts for one in said):
            label, own = gold.labels[item.item_id], tuple(ratings.get(item.item_id, ()))
            differ = _judges_differ(said, words=not gold.scale.numeric), _people_differ(own, people)
            parted.append(PartedItem(item, label, gold.scale.kind == "binary", own, said, *differ))
    return tuple(sorted(parted, key=lambda one: (-one.distance, -one.n_wrong, -_sure(one))))


def _judges_differ(said: Sequence[Said], *, words: bool) -> bool:
    return len({one.verdicts if words else one.error for one in said if one.unscored is None}) > 1


def _people_differ(ratings: Sequence[Rating], people: Cut) -> bool:
    labels = [one.label for one in ratings if one.rater != GOLD and one.label is not None]
    return any(people.error(labels[0], one) for one in labels[1:])


def _sure(one: PartedItem) -> float:
    """The share of the single raters who gave the label."""
    labels = [rating.label for rating in one.ratings if rating.rater != GOLD and rating.label is not None]
    return sum(label == one.label for label in labels) / len(labels) if labels else 0.0


def _judged(gold: GoldSet, column: Column, described: Column, items: Sequence[Item]) -> dict[str, Said]:
    cut, rows, raw = Cut(gold.scale, described.scale), _by_item(described), {}
    if described is not column:
        raw = {item: tuple(row.verdict for row in own) for item, own in _by_item(column).items()}
    return {
        item.item_id: replace(
            _farthest(column.judge, cut, gold.labels[item.item_id], rows.get(item.item_id, ())),
            raw=raw.get(item.item_id, ()),
        )
        for item in items
    }


def _by_item(column: Column) -> dict[str, list[Judgement]]:
    rows = dict[str, list[Judgement]]()
    for row in column.rows:
        rows.setdefault(row.item_id, []).append(row)
    return rows


def _farthest(judge: str, cut: Cut, label: Label, rows: Sequence[Judgement]) -> Said:
    verdicts, binary = tuple(row.verdict for row in rows), cut.judge.kind == "binary"
    scored = [(row, *cut.outcome(label, row.verdict)) for row in rows if row.verdict is not None]
    if not scored:
        why = rows[0].error.kind if rows and rows[0].error else "missing"
        told = (rows[0].reasoning, rows[0].raw_reply or "") if rows else ("", "")
        return Said(judge, binary, verdicts or (None,), *told, None, 0.0, why)
    wrong = [one for one in scored if one[1]] or scored
    row, error, apart = wrong[0] if len(wrong) == 1 else max(wrong, key=lambda one: abs(one[2]))
    return Said(judge, binary, verdicts, row.reasoning, row.raw_reply or "", error, apart, None)
