"""The agreement table: judges, the floor below them and the raters beside them, and what explains a judge;
the objects of the JSON of `score` and `agreement`."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from judgecal.engine.budget import counted_remark
from judgecal.errors import InputError, unknown_name
from judgecal.experiment.agreement_table import AgreementTable, Verdicts, drawing_weights, is_absent
from judgecal.experiment.folder import Experiment
from judgecal.experiment.judgements import VerdictRows, stored_notes, values_of
from judgecal.goldset import GoldSet
from judgecal.judges.protocol import JudgeName
from judgecal.records import ORDERS, PAIR_UNIT, TIE, Estimate, Item, Judgement, Result
from judgecal.scale import PREFERENCE, Scale, common_scale
from judgecal.stats import best_constant
from judgecal.stats.intervals import mean_estimate
from judgecal.stats.metrics import metric_facts
from judgecal.stats.reliability import repeatability
from judgecal.stats.sample import Floats, Labels
from judgecal.stats.stand_in import MIN_SHARED, AltTest, StandIn

_E = TypeVar("_E", bound="Entry")


def refuse_unequal(gold: GoldSet, items: Sequence[Item], command: str) -> None:
    """From a GoldSet, Items and a command's name, refuse it if the Items were drawn with unequal chances."""
    if drawing_weights(gold, items) is not None:
        raise InputError(
            f"{command} would count all items of gold set {gold.name} alike, but they were drawn with "
            "unequal probabilities (inclusion_probability in items.jsonl): use score, agreement, "
            "compare or report, which weight them"
        )


@dataclass(frozen=True)
class StoredExperiment:
    """An experiment on disk, with what it says of its judges."""

    experiment: Experiment
    gold: GoldSet  # unchanged since
    items: tuple[Item, ...]  # the labelled ones that judges may be held against each other on, in file order
    tied: tuple[Item, ...]  # the items of the same part of the set on which raters tie
    split: str
    judges: tuple[Verdicts, ...]  # each that was asked for, in that order
    floor: tuple[Verdicts, ...]  # those of the embedded model below them, where they judged
    seed: int
    notes: tuple[str, ...]  # what the reader must know of how this was read

    @property
    def columns(self) -> tuple[Verdicts, ...]:
        return (*self.judges, *self.floor)

    @property
    def holds_test(self) -> bool:
        """Whether the experiment has test items."""
        return any(item.group in self.gold.test_groups for item in self.items)

    @cached_property
    def table(self) -> AgreementTable:
        """The items with the repeats that were asked for."""
        repeats = int(self.experiment.config.get("repeats", 1))
        return AgreementTable(self.gold, self.items, repeats, self.seed, tied=self.tied)

    def column(self, judge: str) -> Verdicts:
        """From a judge's name, return the Verdicts of that judge in the experiment."""
        by_name = {column.judge: column for column in reversed(self.columns)}
        column = by_name.get(judge) or by_name.get(str(JudgeName.read(judge)))  # `J x5` is `J*5`
        if column is None:
            names = [column.judge for column in self.columns]
            raise unknown_name(f"judge in {self.experiment.slug}", judge, names)
        return column


def entry(
    made: type[_E],
    table: AgreementTable,
    column: Verdicts,
    *,
    labels: Labels | None = None,
    metrics: Sequence[str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> _E:
    """Return an entry of the class `made`, from an AgreementTable and a judge's Verdicts."""
    expected = len({item.item_id for item in table.items}) * table.repeats
    rows = _rows_of(table, column)
    verdicts, errors = values_of(rows, "verdict"), values_of(rows, "error")
    failures = [error for verdict, error in zip(verdicts, errors, strict=True) if verdict is None]
    n, unscored = len(rows) - len(failures), Counter(error.kind if error else "parse" for error in failures)
    times = sorted(seconds for seconds in values_of(rows, "latency_s") if seconds is not None)
    p95 = times[0] if times else None
    if len(times) > 1:
        p95 = statistics.quantiles(times, n=20, method="inclusive")[18]
    each = values_of(rows, "cost_usd") if column.price is None else list(map(column.cost_usd, rows))
    called = [cost for cost, error in zip(each, errors, strict=True) if not error or error.kind != "budget"]
    costs = [cost for cost in called if cost is not None]

    def total(counts: Iterable[int | None]) -> int | None:
        counted = [count for count in counts if count is not None]
        return sum(counted) if counted else None

    return made(
        judge=column.judge,
        n=n,
        n_expected=expected,
        n_unscored=expected - n,
        **table.agreements(column, labels=labels, metrics=metrics),
        latency_s=Latency(statistics.median(times) if times else None, p95),
        usd_per_1k=1000.0 * sum(costs) / len(costs) if costs and len(costs) == len(called) else None,
        tokens=Tokens(total(values_of(rows, "prompt_tokens")), total(values_of(rows, "completion_tokens"))),
        unit=str(common_scale(table.gold.scale, column.scale)),
        unscored=({"missing": expected - len(rows)} if expected > len(rows) else {}) | unscored,
        **(more or {}),
    )


def _rows_of(table: AgreementTable, column: Verdicts) -> Sequence[Judgement]:
    """The rows of a judge that are of the table's items and of the repeats asked for."""
    at = table.row_at(column)[:, : table.repeats]
    places = np.unique(at[at >= 0])
    if len(places) == len(column.rows):
        return column.rows
    if isinstance(column.rows, VerdictRows):
        return VerdictRows(column.rows.frame[places])
    return [column.rows[place] for place in places.tolist()]


def constant_judge(table: AgreementTable, metric: str | None = None) -> Verdicts:
    """Return the Verdicts of the best constant on an AgreementTable."""
    scale = table.gold.scale
    label = best_constant(table.labels, scale=scale, metric=metric, weights=table.weights)
    name = f"constant {label:g}" if isinstance(label, float) else f"constant {label}"
    return Verdicts(name, scale, (), constant=label)


def constant_entry(table: AgreementTable, metrics: Sequence[str] | None = None) -> Entry:
    """Return the Entry of the best constants on an AgreementTable, the best by each metric."""
    leading = constant_judge(table)
    best = table.agreement(table.verdicts(leading), metrics=metrics)
    for metric in best:
        judge = constant_judge(table, metric)
        if judge.judge != leading.judge:
            best |= table.agreement(table.verdicts(judge), metrics=[metric])
    n = len(table.items) * table.repeats
    return Entry(
        judge="best constant",
        n=n,
        n_expected=n,
        n_unscored=0,
        agreement=best,
        as_wrong=dict(best),
        calibrated=dict(best),
        latency_s=Latency(None, None),
        usd_per_1k=0.0,
        tokens=Tokens(None, None),
        unit=str(common_scale(table.gold.scale, leading.scale)),
        unscored={},
    )


def judge_entry(table: AgreementTable, column: Verdicts) -> JudgeEntry:
    """Return the JudgeEntry of a judge's Verdicts on an AgreementTable, with its repeats and pairs."""
    verdicts, scale = table.described(column)
    more: dict[str, Any] = {"kind": column.kind, **pair_fields(table, column)}
    if table.weights is None and table.repeats > 1:
        again = repeatability(verdicts, **{**table.scaled(), "judge_scale": scale, "level": table.level})
        more["retest"] = Retest(
            repeats=table.repeats,
            n_items=int(((~is_absent(verdicts)).sum(axis=1) > 1).sum()),
            flip_rate=next((again[name] for name in again if name.startswith("flip_rate")), None),
            exact_agreement=again["exact_agreement"],
        )
    return entry(JudgeEntry, table, column, more=more)


def pair_fields(table: AgreementTable, column: Verdicts) -> dict[str, Estimate]:
    """Return name -> Estimate (`first_place`, `consistent`) of pair Verdicts on an AgreementTable."""
    item_ids = (
        {item.item_id for item in table.items} if PAIR_UNIT in values_of(column.calls, "unit") else set()
    )
    rows = [row for row in column.calls if row.item_id in item_ids and row.repeat < table.repeats]
    if not rows:
        return {}
    given = {(row.order, row.item_id, row.repeat): str(row.verdict) for row in rows}
    keys = [(item.item_id, repeat) for item in table.items for repeat in range(table.repeats)]
    ab, ba = (
        np.array([PREFERENCE.get(given.get((order, *key), ""), np.nan) for key in keys]) for order in ORDERS
    )
    first, same = np.concatenate([ab, 1.0 - ba]), np.where(np.isnan(ab + ba), np.nan, ab == ba)
    n_pairs = len(keys) * (len({row.order for row in rows}) == len(ORDERS))

    def share(values: Floats, n_expected: int, unscored: Floats) -> Estimate:
        at = np.resize(np.repeat(np.arange(len(table.items)), table.repeats), len(values))
        weighed = None if table.weights is None else table.weights[at]
        estimate = mean_estimate(values, table.groups[at], level=table.level, weights=weighed)
        n_unscored = n_expected - int((~np.isnan(unscored)).sum())
        return dataclasses.replace(estimate, n_expected=n_expected, n_unscored=n_unscored)

    return {
        "first_place": share(np.where(first == PREFERENCE[TIE], np.nan, first), len(rows), first),
        "consistent": share(same, n_pairs, same),
    }


def verdict_notes(
    people: Scale, columns: Sequence[Verdicts], *, rows: Iterable[Judgement] | None = None
) -> list[str]:
    """From people's Scale and a list of judges' Verdicts, return notes on scales, tokens, stored replies.

    `rows` are those that the result rests on, where they are not the columns'.
    """
    notes, by_scale = [], dict[Scale, list[str]]()
    for column in columns:
        if str(column.scale) != str(people):
            by_scale.setdefault(column.scale, []).append(column.judge)
    for scale, judges in by_scale.items():  # how they were held against the people's
        common = common_scale(people, scale)
        manner = f"raw ones are taken onto {people}, ends to ends"
        if common.pass_at is not None and people.kind == "binary":
            manner = (
                f"raw verdicts are compared on {common.low:g} to {common.high:g}, cut at {common.pass_at:g}"
            )
        notes.append(f"{scale} verdicts on {people} labels ({', '.join(judges)}): {manner}")
    called = [column for column in columns if column.kind != "recorded"]
    for column in called:  # cost counted from the texts, for want of a usable count by the server
        counts = ((row.cost_usd, row.prompt_tokens, row.completion_tokens) for row in column.rows)
        n = sum(bool(cost) and None in tokens for cost, *tokens in counts)
        notes += [counted_remark(column.judge, n)] if n else []
    stored = (row for column in called for row in column.stored) if rows is None else rows
    return [*notes, *stored_notes(stored)]


@dataclass(frozen=True, slots=True)
class Latency(Result):
    """Seconds a call took, the median and the 95th percentile; None where nothing was timed."""

    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Tokens(Result):
    """Tokens of all calls together; None where no call told them."""

    prompt: int | None
    completion: int | None


@dataclass(frozen=True, slots=True)
class Entry(Result):
    """A line of the agreement table: a judge, a part of the floor, or a rater."""

    judge: str
    n: int  # judgements with a verdict, asked for, and without one
    n_expected: int
    n_unscored: int
    agreement: dict[str, Estimate]  # METRIC -> Estimate over the scored items
    as_wrong: dict[
        str, Estimate
    ]  # the same with an unscored item counted as the verdict farthest from its label
    latency_s: Latency
    usd_per_1k: float | None  # None where it is not known, which is never 0
    tokens: Tokens
    unit: str  # the scale that mae, rmse and bias are in units of
    unscored: dict[str, int]  # why judgements have no verdict -> how many
    # as `as_wrong`, through the map fitted on other questions; empty without an order or with too few
    # questions
    calibrated: dict[str, Estimate]

    def decided_by(self, metric: str) -> Estimate:
        """Return the Estimate, of the metric so named, that decides on the judge, calibrated where due."""
        mapped = metric_facts(metric).calibrated and metric in self.calibrated
        return (self.calibrated if mapped else self.as_wrong)[metric]


@dataclass(frozen=True, slots=True)
class Retest(Result):
    """How a judge agrees with itself over its repeats, as `stats.repeatability` says it."""

    repeats: int
    n_items: int
    exact_agreement: Estimate
    flip_rate: Estimate | None  # None without a pass mark and classes


@dataclass(frozen=True, slots=True)
class JudgeEntry(Entry):
    """A judge with what explains its numbers."""

    kind: str  # `prompt`, `local` or `python`; `recorded` where its verdicts came with the data
    retest: Retest | None = None  # of its repeats; None where there are none
    stand_in: StandIn | None = None  # beside each rater, both against the others; None with fewer than two
    # the alternative annotator test by what is granted, the most first; None likewise
    alt_test: tuple[AltTest, ...] | None = None
    # of a judge of pairs: the share of its verdicts other than tie that prefer the answer shown first, 0.5
    # where that is of no account; and the share of pairs on which both orders name the same content: tie and
    # tie do, tie and an answer do not
    first_place: Estimate | None = None
    consistent: Estimate | None = None


@dataclass(frozen=True, slots=True)
class RaterEntry(Entry):
    """A rater against the others, and under `judges` the judges on the same items against the same labels."""

    against: str
    judges: tuple[Entry, ...]

    @property
    def enough(self) -> bool:
        """Whether the rater shares enough items for a short table and the headline."""
        return self.n >= MIN_SHARED


@dataclass(frozen=True, slots=True)
class GoldSummary(Result):
    """What a result was measured on."""

    set: str
    sha256: str
    split: str
    n_items: int  # labelled ones asked for, and their questions
    n_groups: int
    n_unlabelled: int  # items of the split without a gold label
    n_tied: int  # of them: their ratings tie, so that they stand where judges meet raters, and nowhere else
    n_test_items: int
    labels_by: str
    scale: str
    pass_at: float | None
    noun: str = "answers"  # or pairs: what its items are

    @property
    def unscored_counts_as(self) -> str:
        """What an unscored item counts as where judges are ranked, on the scale of the labels."""
        return "a wrong verdict" if self.scale == "nominal" else "the verdict farthest from its label"


@dataclass(frozen=True, slots=True)
class SliceEntry(Result):
    """A judge on the open items that share a trait, held against all others (`stats.significance.slices`)."""

    judge: str
    trait: str
    value: str
    n: int  # items with a verdict, and their questions
    n_groups: int
    error: Estimate  # share of wrong verdicts; of graded labels verdict less label, in units of their scale
    p_value: float  # of no difference from all others, by itself
    stands_out: bool  # by Holm over all slices
    rest: float = field(default=0.0, metadata={"json": False})  # the error of all others

    @property
    def mark(self) -> str:
        """The key by which the explorer finds the slice's items."""
        return f"{self.trait}:{self.value}"


@dataclass(frozen=True, slots=True)
class TableRate(Result):
    """A judge's mean verdict on all rows of a table (the share that passes, where labels are yes and no)
    beside people's on those that they labelled, and the mean that people would give all rows."""

    judge: str
    raw: Estimate
    people: Estimate
    corrected: Estimate
    drawn: bool  # whether the labelled rows are like the others in what the judge says of them


@dataclass(frozen=True, slots=True)
class LabelledTable(Result):
    """The table that labels and verdicts came from, how it was understood, and what keeps it."""

    file: str
    columns: Mapping[str, str]  # what each is taken as
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    rates: tuple[TableRate, ...]  # none of words
    keep: str  # the command


@dataclass(frozen=True, slots=True)
class AgreementResult(Result):
    """What `score` and `agreement` come to."""

    experiment: str
    gold: GoldSummary
    judges: tuple[JudgeEntry, ...]  # in the order asked for
    floor: tuple[Entry, ...]  # the best constant, then `embedded` where it can judge
    raters: tuple[RaterEntry, ...]  # each human against the other humans
    test_looks: int  # decisions taken on the set's test labels so far
    run_line: str
    notes: tuple[str, ...]  # what else the reader must know, without full stops
    floor_reason: str | None = None  # why the embedded model cannot judge
    # humans who are no raters, as they were mostly asked where others differ -> how that shows
    tie_breakers: dict[str, str] = field(default_factory=dict)
    slices: tuple[SliceEntry, ...] = ()  # of the headline's judge, which `selection` knows
    table: LabelledTable | None = None  # of `agreement FILE`
