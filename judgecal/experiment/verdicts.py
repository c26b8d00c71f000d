"""Verdicts beside labels: where they fall at the pass mark, the items and slices on which they part, and what
each judge loses against the best."""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from judgecal.experiment.agreement import SliceEntry, StoredExperiment, constant_judge
from judgecal.experiment.agreement_table import AgreementTable, Matrix, Verdicts, as_lists, is_absent
from judgecal.models.embedded.text import refuses
from judgecal.records import Estimate, Item
from judgecal.scale import Label, Scale, common_scale, onto
from judgecal.stats import compare_paired
from judgecal.stats.intervals import MIN_GROUPS, mean_estimate
from judgecal.stats.means import Stratum, too_thin
from judgecal.stats.metrics import metric_facts, metrics_of
from judgecal.stats.sample import Bools, Floats, Ints, Labels
from judgecal.stats.significance import slices

_NEAR = 0.10  # of the range: so far from its label a graded verdict is with the people, as `within_10` counts
_RATES = ("tpr", "tnr", "mae", "within_10")  # what a judge is described by; of words, kappa
_CLASSES = 8  # of a confusion matrix at most
_ROW_TEXTS = ("item_id", "group", "system", "question", "answer")
_ROW_COLUMNS = (*_ROW_TEXTS, "label", "judge", "repeat", "verdict", "calibrated", "reasoning", "error")


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
        """The lowest verdict that passes, on the common scale; None where people set no pass mark."""
        if not self.people.numeric or (self.people.kind != "binary" and self.people.pass_at is None):
            return None
        common = self.common
        return common.low + common.span / 2.0 if common.kind == "binary" else common.pass_at

    @cached_property
    def label_mark(self) -> float | None:
        """The lowest label that passes, on the common scale; None where people set no pass mark."""
        return self.common.low + self.common.span / 2.0 if self.people.kind == "binary" else self.mark

    def label_at(self, label: Label) -> float:
        return onto(self.common, self.people, float(label))

    def verdict_at(self, verdict: Label) -> float:
        return onto(self.common, self.judge, float(verdict))

    def taken(self, verdict: Label) -> float:
        """Return a verdict on the people's scale: of yes and no cut, else ends to ends."""
        if self.people.kind == "binary":
            return float(self.verdict_at(verdict) >= (self.mark or 0.0))
        return onto(self.people, self.judge, float(verdict))

    @cached_property
    def classed(self) -> bool:
        """Whether a table of confusion holds these: at a mark, of words, of the same whole grades."""
        ends = {(scale.kind, scale.low, scale.high) for scale in (self.people, self.judge)}
        grades = self.people.kind == "ordinal" and len(ends) == 1
        return self.mark is not None or not self.people.numeric or grades

    def class_of(self, label: Label, *, people: bool = False) -> str:
        """Return the class of a Label (or verdict), a word: pass or fail at the mark, else as it is."""
        mark = self.label_mark if people else self.mark
        if mark is not None:
            return "pass" if (self.label_at if people else self.verdict_at)(label) >= mark else "fail"
        return f"{label:g}" if self.people.numeric else str(label)

    def distance(self, label: Label, verdict: Label) -> float:
        """Return, for a label and a verdict, verdict less label as a share of the range, -1..1."""
        if not self.people.numeric:
            return float(str(label) != str(verdict))
        return (self.verdict_at(verdict) - self.label_at(label)) / self.common.span

    def error(self, label: Label, verdict: Label) -> str | None:
        """Return, for a label and a verdict, the kind of error in words; None where it is right.

        `false pass` or `false fail`; without a mark `too high` or `too low` by more than 10% of the range, or
        `another word`.
        """
        mark, label_mark = self.mark, self.label_mark
        if mark is not None and label_mark is not None:
            passed = self.verdict_at(verdict) >= mark
            if passed == (self.label_at(label) >= label_mark):
                return None
            return "false pass" if passed else "false fail"
        apart = self.distance(label, verdict)
        if not self.people.numeric:
            return "another word" if apart else None
        return None if abs(apart) <= _NEAR + 1e-9 else "too high" if apart > 0.0 else "too low"


def by_pair(labels: Labels, verdicts: Matrix, number: Callable[[Label, Label], float]) -> Floats:
    """Return an array of number(label, verdict), from Labels, a matrix of verdicts and that function."""
    given = ~is_absent(verdicts)
    at, _ = np.nonzero(given)
    (words, label_at), (others, verdict_at) = (
        np.unique(side if side.dtype.kind == "f" else side.astype(np.str_), return_inverse=True)
        for side in (np.asarray(labels)[at], verdicts[given])
    )
    pairs, place = np.unique(label_at * len(others) + verdict_at, return_inverse=True)
    first, second = words.tolist(), others.tolist()
    each = [number(first[pair // len(others)], second[pair % len(others)]) for pair in pairs.tolist()]
    numbers = np.full(verdicts.shape, np.nan)
    numbers[given] = np.array(each, dtype=np.float64)[place]
    return numbers


@dataclass(frozen=True, slots=True)
class Confusion:
    """Judgements by class: rows by people, columns by the judge, a last one for no verdict, if any."""

    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class VerdictShape:
    """One judge's verdicts beside the labels: those that describe it, unless raw is said."""

    judge: str
    rates: Mapping[str, Estimate]  # METRIC -> Estimate over the scored judgements, of the metrics in `_RATES`
    unit: str  # the scale that mae, rmse and bias among them are in units of
    # by what people say and what the judge says; None of labels of many steps without a mark
    confusion: Confusion | None = None
    mapped: bool = False  # whether these verdicts are calibrated


def judge_shape(table: AgreementTable, column: Verdicts) -> VerdictShape:
    """Return the VerdictShape from an AgreementTable and a judge's Verdicts: rates, confusion."""
    people, (verdicts, scale) = table.gold.scale, table.described(column)
    cut, rates = Cut(people, scale), _RATES if people.numeric else ("kappa",)
    metrics = [name for name, (metric, _) in metrics_of(people).items() if metric.name in rates]
    return VerdictShape(
        judge=column.judge,
        rates=table.agreement(verdicts, judge_scale=scale, metrics=metrics),
        unit=str(cut.common),
        confusion=_confusion(table.labels, verdicts, cut),
        mapped=verdicts is not table.verdicts(column),
    )


def _confusion(labels: Labels, verdicts: Matrix, cut: Cut) -> Confusion | None:
    """At the pass mark where there is one; of words and of a few whole grades as they are."""
    if not cut.classed:
        return None
    given = Counter(
        (label, verdict) for label, row in zip(labels, as_lists(verdicts), strict=True) for verdict in row
    )
    counts = Counter[tuple[str, str | None]]()
    for (label, verdict), n in given.items():
        counts[cut.class_of(label, people=True), None if verdict is None else cut.class_of(verdict)] += n
    classes = ["fail", "pass"]
    if cut.mark is None:
        names = {word for pair in counts for word in pair if word is not None}
        classes = sorted(names, key=float if cut.people.numeric else str)
    if len(classes) > _CLASSES:
        return None
    columns = [*classes, *([None] if any(word is None for _, word in counts) else [])]
    rows = tuple(tuple(counts[row, column] for column in columns) for row in classes)
    return Confusion(tuple(classes), rows)


def farthest(table: AgreementTable, judge: Verdicts) -> tuple[Ints, Bools, Floats]:
    """Return arrays, one number an item, of an AgreementTable and a judge's Verdicts as they describe it.

    Which repeat lies farthest from the label, an error first; whether the judge errs there or has no verdict;
    and how far that lies, 0..1, without a verdict 1.
    """
    verdicts, scale = table.described(judge)
    cut = Cut(table.gold.scale, scale)
    apart = np.abs(by_pair(table.labels, verdicts, cut.distance))
    wrong = by_pair(
        table.labels, verdicts, lambda label, verdict: float(cut.error(label, verdict) is not None)
    )
    rank = np.where(np.isnan(apart), -1.0, 2.0 * wrong + apart)
    worst = rank.argmax(axis=1)
    of_worst = rank[np.arange(len(rank)), worst]
    unscored = of_worst < 0.0
    return worst, unscored | (of_worst >= 2.0), np.where(unscored, 1.0, of_worst % 2.0)


def judgement_rows(stored: StoredExperiment) -> tuple[pl.DataFrame, int]:
    """Return the judgements of a StoredExperiment as a polars frame, and the count of test items left out.

    A judgement that was asked for and is not there has the error `absent`. `label` and `calibrated` are on
    the people's scale, the latter by a map that did not see the item; `verdict` is on the judge's own.
    """
    table, rows = stored.table, list[tuple[Any, ...]]()
    sealed = {item.item_id for item in stored.items} & stored.gold.test_ids
    for column in stored.judges:
        mapped = table.calibrated(column)
        calibrated = np.full(table.verdicts(column).shape, np.nan) if mapped is None else mapped
        by_key = {(row.item_id, row.repeat): row for row in column.rows}
        for place, item in enumerate(table.items):
            texts = (*(getattr(item, name) for name in _ROW_TEXTS), stored.gold.labels[item.item_id])
            for repeat in range(table.repeats * (item.item_id not in sealed)):
                row, why = by_key.get((item.item_id, repeat)), "absent: no judgement is recorded"
                if row is not None:
                    why = f"{row.error.kind}: {row.error.message}" if row.error else "parse: no verdict"
                verdict = None if row is None else row.verdict
                given = (verdict, calibrated[place][repeat], row.reasoning if row else "")
                rows.append((*texts, column.judge, repeat, *given, why if verdict is None else None))
    kinds = dict.fromkeys(_ROW_COLUMNS, pl.String) | {"repeat": pl.Int64, "calibrated": pl.Float64}
    for judged in ("label", "verdict"):
        kinds[judged] = pl.Float64 if stored.gold.scale.numeric else pl.String
    frame = pl.DataFrame(rows, schema=kinds, orient="row")
    return frame.with_columns(pl.col("calibrated").fill_nan(None)), len(sealed)


@dataclass(frozen=True, slots=True)
class FloorLoss:
    """What the best constant, or another free judge, loses against a judge by a metric, paired."""

    judge: str
    loss: Estimate
    strata: tuple[Stratum, ...] = ()  # of the labels that the difference rests on
    metric: str = ""

    @property
    def shown(self) -> bool:
        return self.loss.low is not None and self.loss.low > 0.0

    @property
    def below(self) -> bool:
        return self.loss.high is not None and self.loss.high < 0.0


def floor_loss(
    table: AgreementTable, judge: Verdicts, *, metric: str, n_judges: int, floor: Verdicts | None = None
) -> FloorLoss:
    """Return the FloorLoss from an AgreementTable, a judge's Verdicts, a metric's name and n_judges.

    The judge is one of so many, the best of which may owe its place to luck: the interval stands at level
    1 - (1 - level) / n_judges (Bonferroni). Of errors the difference is turned round: a loss is above 0.
    """
    table = dataclasses.replace(table, level=1.0 - (1.0 - table.level) / n_judges)
    table = table if floor is None else table.asked_of(floor)
    measured = paired_loss(table, judge, floor or constant_judge(table), metric)
    loss = measured.loss
    if metric_facts(metric).direction == "less" and loss.value is not None:
        low, high = (None if end is None else -end for end in (loss.high, loss.low))
        loss = dataclasses.replace(loss, value=-loss.value, low=low, high=high)
    return dataclasses.replace(measured, loss=loss)


def paired_loss(table: AgreementTable, best: Verdicts, other: Verdicts, metric: str) -> FloorLoss:
    """Return the FloorLoss of another judge's Verdicts against the best's, in an AgreementTable, by a metric.

    Without an interval where it rests on too few items.
    """
    judges = {"best": best, "other": other}
    once = table.deciding(judges, calibrated=metric_facts(metric).calibrated)
    paired = compare_paired(
        table.labels,
        once.verdicts["best"],
        once.verdicts["other"],
        a_scale=once.scales["best"],
        b_scale=once.scales["other"],
        metric=metric,
        n_perm=1,  # the interval needs no p value
        more_error=once.error_of_fit("best", "other"),
        **table.shared,
    )
    loss, thin = paired.difference, too_thin(paired.strata, metric)
    if thin is not None:
        loss = dataclasses.replace(loss, low=None, high=None, method="", reason=thin)
    return FloorLoss(other.judge, loss, paired.strata, metric)


_DIGIT = re.compile(r"\d|[^\x00-\x7f]")


@dataclass(frozen=True)
class SliceTable:
    """One judge on the slices of some items."""

    entries: tuple[SliceEntry, ...]  # the largest error first
    whole: Estimate  # the error on all of the items
    items: Sequence[Item]
    places: Mapping[str, Ints]  # mark of a slice -> the places of its items

    @cached_property
    def marks(self) -> dict[str, list[str]]:
        """Item id -> the slices that hold the item."""
        marks: dict[str, list[str]] = {}
        for mark, places in self.places.items():
            for place in places.tolist():
                marks.setdefault(self.items[place].item_id, []).append(mark)
        return marks


def judge_slices(table: AgreementTable, judge: Verdicts) -> SliceTable | None:
    """Return a SliceTable (or None) from an AgreementTable and Verdicts: errors on slices of items.

    The error is the share of wrong verdicts; of graded labels verdict less label, in units of their scale.
    None where the items were drawn with unequal probabilities.
    """
    if table.weights is not None:
        return None
    verdicts, scale = table.described(judge)
    cut, graded = Cut(table.gold.scale, scale), table.gold.scale.graded
    span = cut.common.span if graded else 1.0

    def error(label: Label, verdict: Label) -> float:
        return span * cut.distance(label, verdict) if graded else float(cut.error(label, verdict) is not None)

    each = by_pair(table.labels, verdicts, error)
    n_given = (~np.isnan(each)).sum(axis=1)
    errors = np.where(n_given, np.nansum(each, axis=1), np.nan) / np.maximum(n_given, 1)
    places = {trait: rows for trait, rows in traits_of(table.items).items() if len(rows) >= MIN_GROUPS}
    members = [np.isin(np.arange(len(errors)), rows) for rows in places.values()]
    ends: dict[str, Any] = {"low": -span if graded else 0.0, "high": span, "level": table.level}
    held = slices(errors, members, table.groups, **ends)
    entries, marked = list[SliceEntry](), dict[str, Ints]()
    for (name, value), rows, measured in zip(places, places.values(), held, strict=True):
        if measured is None:
            continue
        n, n_groups, p = measured.error.n, measured.error.n_groups, measured.p_value
        entry = SliceEntry(
            judge.judge, name, value, n, n_groups, measured.error, p, measured.stands_out, measured.rest
        )
        entries.append(entry)
        marked[entry.mark] = rows
    entries.sort(key=lambda entry: -(entry.error.value or 0.0))
    return SliceTable(tuple(entries), mean_estimate(errors, table.groups, **ends), table.items, marked)


def traits_of(items: Sequence[Item]) -> dict[tuple[str, str], Ints]:
    """Return a dict from Items: (trait, value) -> array of places of its items, by the first of them."""
    lengths = [len(item.answered.split()) for item in items]
    ordered = sorted(lengths)
    ends = sorted({ordered[len(items) * third // 3] for third in (1, 2)}) if items else []
    begins = [0, *(end + 1 for end in ends)]
    words = [
        f"up to {end}" if not begin else f"{begin} to {end}" if begin < end else str(end)
        for begin, end in zip(begins, ends, strict=False)
    ]
    words.append(f"{begins[-1]} or more")
    places = defaultdict[tuple[str, str], list[int]](list)
    for at, item in enumerate(items):
        answer = item.answered
        places["answer length", words[bisect_left(ends, lengths[at])]].append(at)
        if refuses(answer):
            places["refusal", "yes"].append(at)
        if (first := _DIGIT.search(answer)) and (first[0].isdigit() or any(map(str.isdigit, answer))):
            places["digits", "yes"].append(at)
        if item.system:
            places["system", item.system].append(at)
        for tag in filter(None, dict.fromkeys(item.tags)):
            places["tag", tag].append(at)
    return {trait: np.array(rows, dtype=np.int64) for trait, rows in places.items()}
