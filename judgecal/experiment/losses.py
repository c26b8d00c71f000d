"""What each judge loses against the best, the floor and the people beside it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from judgecal.experiment.agreement import SliceEntry, constant_judge
from judgecal.experiment.agreement_table import AgreementTable, Matrix, Verdicts
from judgecal.experiment.verdicts import Cut, by_pair
from judgecal.models.embedded.text import refuses
from judgecal.records import Estimate, Item
from judgecal.scale import Label
from judgecal.stats import compare_paired
from judgecal.stats.calibration import CrossFit, DecidingVerdicts, cross_fit
from judgecal.stats.intervals import MIN_GROUPS, mean_estimate
from judgecal.stats.means import Stratum, too_thin
from judgecal.stats.metrics import metric_facts
from judgecal.stats.paired import PairedDifference
from judgecal.stats.sample import Ints
from judgecal.stats.significance import slices
from judgecal.stats.simultaneous import Losses, losses_against_best


@dataclass(frozen=True, slots=True)
class JudgeLoss:
    """What one judge loses against the best, as shares."""

    judge: str
    value: float | None  # the metric itself
    loss: float | None
    low: float | None  # of the paired interval
    high: float | None  # the bound that holds for all judges at once and decides
    reason: str | None  # why either is missing


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


@dataclass(frozen=True, slots=True)
class LossPicture:
    """Losses against the best judge: of each judge and of the floor."""

    losses: Losses
    judges: tuple[JudgeLoss, ...]
    floor: tuple[FloorLoss, ...]


def judge_losses(
    table: AgreementTable, columns: Sequence[Verdicts], *, metric: str, margin: float | None
) -> tuple[Losses, tuple[JudgeLoss, ...]]:
    """Judges' losses in a metric on a table's items; of each the paired interval and the joint bound."""
    by_name = {column.judge: column for column in columns}
    deciding = table.deciding(by_name, calibrated=metric_facts(metric).calibrated)
    options: dict[str, Any] = {"metric": metric, "margin": margin, **table.shared}
    losses = losses_against_best(table.labels, deciding.verdicts, deciding=deciding, **options)
    best = next(column for column in columns if column.judge == losses.best)
    judges = []
    for column in columns:
        low = 0.0 if column is best else _decided(_paired(table, best, column, metric), metric).low
        loss = losses.by_judge[column.judge]
        judges.append(JudgeLoss(column.judge, loss.value, loss.loss, low, loss.upper, loss.reason))
    return losses, tuple(judges)


def floor_loss(
    table: AgreementTable, judge: Verdicts, *, metric: str, of: int, floor: Verdicts | None = None
) -> FloorLoss:
    """What a floor's verdicts (else the best constant) lose against a judge's in a metric, on a table.

    The judge is one of so many, the best of which may owe its place to luck: the interval stands at level
    1 - (1 - level) / of (Bonferroni). Of errors the difference is turned round, so that a loss is above 0.
    """
    table = dataclasses.replace(table, level=1.0 - (1.0 - table.level) / of)
    table = table if floor is None else table.asked_of(floor)
    column = floor or constant_judge(dataclasses.replace(table, repeats=1))
    paired = _paired(table, judge, column, metric, repeats=1)
    loss = _decided(paired, metric)
    if metric_facts(metric).direction == "less" and loss.value is not None:
        low, high = (None if end is None else -end for end in (loss.high, loss.low))
        loss = dataclasses.replace(loss, value=-loss.value, low=low, high=high)
    return FloorLoss(column.judge, loss, paired.strata, metric)


def _paired(
    table: AgreementTable, best: Verdicts, other: Verdicts, metric: str, *, repeats: int | None = None
) -> PairedDifference:
    """What another loses against the best judge, once calibrated where the metric asks for it.

    The verdicts of the one with fewer repeats (`repeats` of the other, where they are not its own) are taken
    in turn until they are as many; a mean over repeats stays itself.
    """
    n = {"best": table.repeats_of(best), "other": repeats or table.repeats_of(other)}
    judges, most = {"best": best, "other": other}, max(n.values())
    sides: dict[str, Matrix] = {
        side: np.take(table.verdicts(judge, n[side]), np.arange(most) % n[side], axis=1)
        for side, judge in judges.items()
    }
    fits = dict[str, CrossFit]()
    for side, judge in judges.items():
        if not metric_facts(metric).calibrated or judge.constant is not None:
            continue
        if n[side] == most:
            fit = table.cross_fit(judge, most)
        else:
            fit = cross_fit(table.labels, sides[side], weights=table.weights, **table.scaled(judge))
        fits |= {} if fit is None else {side: fit}
    scales = {side: judge.scale for side, judge in judges.items()}
    once = DecidingVerdicts.from_fits(sides, scales, fits, scale=table.gold.scale)
    return compare_paired(
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


def _decided(paired: PairedDifference, metric: str) -> Estimate:
    """The difference, without an interval where it rests on too few items."""
    thin = too_thin(paired.strata, metric)
    if thin is None:
        return paired.difference
    return dataclasses.replace(paired.difference, low=None, high=None, method="", reason=thin)


_ASKS = {word: word for word in ("who", "what", "where", "when", "why", "how", "which")} | {
    "whom": "who",
    "whose": "who",
}
_WORD, _DIGIT = re.compile(r"[^\W_]+"), re.compile(r"\d|[^\x00-\x7f]")
_WITHIN = 4  # words in which a question begins to ask: "in which year", "and at the end who"
_MANY_REFERENCES = 3


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
    """A judge's errors on the slices of a table's items (`traits_of`), by the verdicts that describe it.

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
    members = np.zeros((len(places), len(errors)), dtype=np.bool_)
    for member, rows in zip(members, places.values(), strict=True):
        member[rows] = True
    ends: dict[str, Any] = {"low": -span if graded else 0.0, "high": span, "level": table.level}
    held = slices(errors, list(members), table.groups, **ends)
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
    """What is to be seen of items: trait and value -> the places of those that have it, in the order of the
    first of them; the bins of length are thirds of the items.
    """
    answers = [item.answered for item in items]
    lengths = [len(answer.split()) for answer in answers]
    ordered, word_of = sorted(lengths), dict[str, str]()
    for item in items:
        if item.question not in word_of:
            word_of[item.question] = question_word(item.question)
    ends = sorted({ordered[len(items) * third // 3] for third in (1, 2)}) if items else []
    bins = {length: _bin(length, ends) for length in set(lengths)}
    n_references = [len(item.reference_answers) for item in items]
    many = f"{_MANY_REFERENCES} or more"
    traits: dict[str, list[Any]] = {
        "question word": [word_of[item.question] for item in items],
        "answer length": [bins[length] for length in lengths],
        "references": [many if n >= _MANY_REFERENCES else str(n) for n in n_references],
        "refusal": ["yes" if refusal else "" for refusal in map(refuses, answers)],
        "digits": ["yes" if _DIGIT.search(text) and any(map(str.isdigit, text)) else "" for text in answers],
        "system": [item.system or "" for item in items],
    }
    places: dict[tuple[str, str], Ints] = {}
    for trait, values in traits.items():
        frame = pl.DataFrame({"value": values}, schema={"value": pl.String}).with_row_index("at")
        of_value = frame.filter(pl.col("value") != "").group_by("value", maintain_order=True).agg("at")
        places |= {(trait, value): rows.to_numpy() for value, rows in zip(*of_value, strict=True)}
    tagged: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        for tag in dict.fromkeys(item.tags):
            tagged.setdefault(tag, []).append(place)
    places |= {("tag", tag): np.array(rows) for tag, rows in tagged.items()}
    return dict(sorted(places.items(), key=lambda pair: int(pair[1][0])))


def question_word(question: str) -> str:
    """What a question asks for; its first word where it begins with none of the English words for that."""
    words = _WORD.findall(question.lower())
    for place, word in enumerate(words[:_WITHIN]):
        if word in _ASKS:
            counted = word == "how" and words[place + 1 : place + 2] in (["many"], ["much"])
            return "how many/much" if counted else _ASKS[word]
    return words[0] if words else ""


def _bin(length: int, ends: Sequence[int]) -> str:
    """Words of an answer by the last length of each bin but the longest."""
    begin = 0
    for end in ends:
        if length <= end:
            return f"up to {end}" if not begin else f"{begin} to {end}" if begin < end else str(end)
        begin = end + 1
    return f"{begin} or more"
