"""The agreement table: judges, the floor below them and the raters beside them, and what explains a judge."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judgecal.engine import counted_remark
from judgecal.errors import InputError, unknown_name
from judgecal.experiment.chunks import item_scale, whole_items
from judgecal.experiment.drawn import drawing_weights
from judgecal.experiment.folder import Experiment
from judgecal.experiment.result import Entry, JudgeEntry, Latency, PartEntry, Retest, Tokens
from judgecal.experiment.stored_verdicts import stored_notes
from judgecal.goldset import GoldSet
from judgecal.records import Estimate, Item, Judgement
from judgecal.scale import Label, Scale, common_scale
from judgecal.stats import (
    Calibration,
    agreement,
    cross_fitted,
    cross_fitted_probabilities,
    fit_calibration,
    leading_metric,
    limits_of_agreement,
)
from judgecal.stats.breakdown import breakdown
from judgecal.stats.retest import Repeatability, repeatability
from judgecal.stats.sample import Floats

if TYPE_CHECKING:
    from judgecal.judges import Judge, JudgeKind


@dataclass(frozen=True, slots=True)
class Column:
    """One judge's judgements, unscored ones included, ready to be held against labels."""

    judge: str
    scale: Scale  # of its verdicts
    rows: Sequence[Judgement]
    # cost in US dollars of prompt and completion tokens, for the replies that came from the store
    price: Callable[[int | None, int | None], float | None] | None = None
    kind: JudgeKind = "recorded"  # how it comes to its verdicts; `recorded` where nobody here can ask it
    # its place in the grid of prompts and models, with a prompt: signature, and model with its program
    cell: tuple[str, str] | None = None
    calls: Sequence[Judgement] = ()  # the rows as the journal holds them, where these are of single contexts

    @classmethod
    def of(cls, judge: Judge, rows: Sequence[Judgement]) -> Column:
        """The column of a judge that judgecal called itself."""
        price = None if judge.model is None else judge.model.cost_usd
        cell = cell_of(judge.name, judge.kind)
        return cls(judge.name, item_scale(judge), whole_items(rows), price, judge.kind, cell, rows)

    @property
    def stored(self) -> Sequence[Judgement]:
        """The rows as the journal holds them."""
        return self.calls or self.rows

    @property
    def constant(self) -> bool:
        """Whether it says the same of every item by its making: no map would make it another."""
        return bool(self.rows) and self.rows[0].judge_fingerprint == CONSTANT

    def cost_usd(self, row: Judgement) -> float | None:
        """What a judgement costs in production: a stored reply counts as if it had been called for."""
        if not row.cached or self.price is None:
            return row.cost_usd
        return self.price(row.prompt_tokens, row.completion_tokens)


@dataclass(frozen=True, slots=True)
class Table:
    """What every entry of a table shares: the people's labels of the items asked for."""

    gold: GoldSet
    items: tuple[Item, ...]  # the labelled ones, after `--limit`
    repeats: int = 1  # the judgements asked for of each
    seed: int = 0  # of the bootstrap
    level: float = 0.95  # the nominal coverage of the intervals
    # the items beside them on which raters tie: without a gold label, raters and judges stand beside each
    # other there
    tied: tuple[Item, ...] = ()

    @property
    def labels(self) -> list[Label]:
        """Gold labels, one an item."""
        return [self.gold.labels[item.item_id] for item in self.items]

    @property
    def groups(self) -> list[str]:
        """Groups, one an item."""
        return [item.group for item in self.items]

    @property
    def weights(self) -> Floats | None:
        """Of the items, 1 / their chance of being drawn (`drawing_weights`)."""
        return drawing_weights(self.gold, self.items)

    @property
    def drawn_notes(self) -> tuple[str, ...]:
        """What follows from items that were not all as likely to be drawn; mostly nothing."""
        if self.weights is None:
            return ()
        return (
            "the items were drawn with unequal probabilities: means are weighted by 1 / probability, all "
            "counts are of the items drawn; what cannot be weighted (coefficients, parts, people beside "
            "people) is left out",
        )

    def of(self, column: Column) -> Table:
        """The table with a recorded judge's own repeats: what others were asked more is not missing here."""
        if column.kind != "recorded":
            return self
        return dataclasses.replace(self, repeats=1 + max((row.repeat for row in column.rows), default=0))

    def agreements(
        self, column: Column, *, labels: Sequence[Label | None] | None = None
    ) -> dict[str, dict[str, Estimate]]:
        """`agreement` (complete case), `as_wrong` and `calibrated` of one judge, against the gold labels or
        others.

        `calibrated` counts an unscored item as wrong too, and is empty where nothing can be calibrated: of
        labels without an order, and of a constant.
        """
        verdicts, people = self.verdicts(column), self.gold.scale
        fit: dict[str, Any] = {"scale": people, "judge_scale": column.scale, "groups": self.groups}
        fit["weights"] = self.weights
        shared: dict[str, Any] = {**fit, "level": self.level, "seed": self.seed}
        against = self.labels if labels is None else labels
        complete = agreement(against, verdicts, **shared)
        whole = all(None not in row for row in verdicts)  # nothing to count as wrong
        as_wrong = dict(complete) if whole else agreement(against, verdicts, unscored="wrong", **shared)
        calibrated: dict[str, Estimate] = {}
        mapped = None if column.constant else cross_fitted(against, verdicts, **fit)
        if mapped is not None:
            calibrated = agreement(against, mapped, unscored="wrong", **{**shared, "judge_scale": people})
            chances = cross_fitted_probabilities(against, verdicts, **fit)
            if chances is not None:
                of_chances = {**shared, "judge_scale": "percentage", "metrics": ["brier"]}
                calibrated |= agreement(against, chances, unscored="wrong", **of_chances)
        return {"agreement": complete, "as_wrong": as_wrong, "calibrated": calibrated}

    def verdicts(self, column: Column) -> list[list[Label | None]]:
        """The verdicts of a judge as items x repeats; None where there is none."""
        return verdict_matrix(column.rows, self.items, self.repeats)

    def calibrated(self, column: Column) -> list[list[float | None]] | None:
        """The verdicts of a judge on the people's scale, items x repeats, each by a map that did not see its
        question; None where nothing can be calibrated.
        """
        if column.constant:
            return None
        return cross_fitted(
            self.labels,
            self.verdicts(column),
            scale=self.gold.scale,
            judge_scale=column.scale,
            groups=self.groups,
            weights=self.weights,
        )

    def described(self, column: Column) -> Column:
        """A judge's column with the verdicts that describe it: calibrated, on the people's scale, where a map
        decides (`calibrated`), without what the table does not ask for; else as it is.
        """
        mapped = self.calibrated(column)
        if mapped is None:
            return column
        known = {
            (item.item_id, repeat): verdict
            for item, row in zip(self.items, mapped, strict=True)
            for repeat, verdict in enumerate(row)
        }
        rows = [
            dataclasses.replace(row, verdict=known[row.item_id, row.repeat])
            for row in whole_items(column.rows)
            if (row.item_id, row.repeat) in known
        ]
        return dataclasses.replace(column, scale=self.gold.scale, rows=rows, calls=())

    def calibration(self, column: Column, *, fitted_on: str) -> Calibration | None:
        """The map of a judge, fitted on these items; None without an order of labels or a scored verdict."""
        return fit_calibration(
            self.labels,
            self.verdicts(column),
            scale=self.gold.scale,
            judge_scale=column.scale,
            groups=self.groups,
            fitted_on=fitted_on,
        )

    def through(self, calibration: Calibration | None, column: Column) -> dict[str, Estimate]:
        """Agreement of a judge through a map that was fitted elsewhere, an unscored item counted as wrong."""
        if calibration is None:
            return {}
        mapped = [[calibration.apply(verdict) for verdict in row] for row in self.verdicts(column)]
        shared: dict[str, Any] = {"groups": self.groups, "level": self.level, "seed": self.seed}
        return agreement(self.labels, mapped, scale=self.gold.scale, unscored="wrong", **shared)


def cell_of(judge: str, kind: JudgeKind) -> tuple[str, str] | None:
    """Where a judge stands in the grid of prompts and models; None for one without a prompt."""
    from judgecal.judges import JudgeName

    if kind != "prompt":
        return None
    name = JudgeName.parse(judge)
    return name.signature, name.system


@dataclass(frozen=True, slots=True)
class StoredExperiment:
    """An experiment on disk, with what it says of its judges."""

    experiment: Experiment
    gold: GoldSet  # unchanged since
    items: tuple[Item, ...]  # the labelled ones that judges may be held against each other on, in file order
    tied: tuple[Item, ...]  # the items of the same part of the set on which raters tie
    split: str
    columns: tuple[
        Column, ...
    ]  # each judge that was asked for, in that order, then the floor's, if it judged
    asked: int  # how many of them were asked for
    seed: int
    notes: tuple[str, ...]  # what the reader must know of how this was read

    @property
    def table(self) -> Table:
        """The items with the repeats that were asked for."""
        return Table(
            self.gold, self.items, int(self.experiment.config.get("repeats", 1)), self.seed, tied=self.tied
        )

    def column(self, judge: str) -> Column:
        """One judge's judgements."""
        for column in self.columns:
            if column.judge == judge:
                return column
        raise unknown_name(
            f"judge in {self.experiment.slug}", judge, [column.judge for column in self.columns]
        )


def verdict_matrix(
    rows: Sequence[Judgement], items: Sequence[Item], repeats: int
) -> list[list[Label | None]]:
    """Verdicts on whole items as items x repeats; None where there is none, be it unscored or absent."""
    if repeats == 1:  # by far the most, and read some twenty times for a page
        once = {row.item_id: row.verdict for row in whole_items(rows) if row.repeat == 0}
        return [[once.get(item.item_id)] for item in items]
    found = {(row.item_id, row.repeat): row.verdict for row in whole_items(rows)}
    return [[found.get((item.item_id, repeat)) for repeat in range(repeats)] for item in items]


def entry(table: Table, column: Column, *, labels: Sequence[Label | None] | None = None) -> Entry:
    """One judge's entry: counts, agreement with the gold labels or others, cost and latency."""
    expected = len({item.item_id for item in table.items}) * table.repeats
    rows = _rows_of(table, column)
    n = sum(row.verdict is not None for row in rows)
    unscored = Counter(row.error.kind if row.error else "parse" for row in rows if row.verdict is None)
    times = sorted(row.latency_s for row in rows if row.latency_s is not None)
    costs = [cost for row in rows if (cost := column.cost_usd(row)) is not None]

    def total(counts: Iterable[int | None]) -> int | None:
        known = [count for count in counts if count is not None]
        return sum(known) if known else None

    return Entry(
        judge=column.judge,
        n=n,
        n_expected=expected,
        n_unscored=expected - n,
        **table.agreements(column, labels=labels),
        latency_s=Latency(
            statistics.median(times) if times else None,
            statistics.quantiles(times, n=20, method="inclusive")[18]
            if len(times) > 1
            else next(iter(times), None),
        ),
        usd_per_1k=1000.0 * sum(costs) / len(costs) if costs and len(costs) == len(rows) else None,
        tokens=Tokens(total(row.prompt_tokens for row in rows), total(row.completion_tokens for row in rows)),
        unit=str(common_scale(table.gold.scale, column.scale)),
        unscored=({"missing": expected - len(rows)} if expected > len(rows) else {}) | dict(unscored),
    )


def _rows_of(table: Table, column: Column) -> list[Judgement]:
    """The judgements that the table asks for."""
    asked = {item.item_id for item in table.items}
    return [row for row in column.rows if row.item_id in asked and row.repeat < table.repeats]


CONSTANT = "constant"
"""The fingerprint of what says the same of every item."""


def verdict_notes(
    people: Scale, columns: Sequence[Column], *, rows: Iterable[Judgement] | None = None
) -> list[str]:
    """What must be known of the verdicts of some judges, without full stops: scales, counted tokens, stored
    replies.

    `rows` are those that the result rests on, where they are not the columns'.
    """
    notes, by_scale = [], dict[Scale, list[str]]()
    for column in columns:
        if str(column.scale) != str(people):
            by_scale.setdefault(column.scale, []).append(column.judge)
    for scale, judges in by_scale.items():  # how they were held against the people's
        common = common_scale(people, scale)
        how = f"raw ones are taken onto {people}, ends to ends"
        if common.pass_at is not None and people.kind == "binary":
            how = f"raw ones are held against {common.low:g} and {common.high:g}, cut at {common.pass_at:g}"
        notes.append(f"{scale} verdicts on {people} labels ({', '.join(judges)}): {how}")
    called = [column for column in columns if column.kind != "recorded"]
    for column in called:  # cost counted from the texts, for want of a usable count by the server
        counts = ((row.cost_usd, row.prompt_tokens, row.completion_tokens) for row in column.rows)
        n = sum(bool(cost) and None in tokens for cost, *tokens in counts)
        notes += [counted_remark(column.judge, n)] if n else []
    stored = (row for column in called for row in column.stored) if rows is None else rows
    return [*notes, *stored_notes(stored)]


def require_metric(estimates: Mapping[str, Estimate], metric: str) -> Estimate:
    """The estimate of a metric by its name."""
    if metric not in estimates:
        raise InputError(f"metric {metric!r} is not defined on this set: use one of {', '.join(estimates)}")
    return estimates[metric]


def judge_entry(table: Table, column: Column) -> JudgeEntry:
    """A judge's entry with what explains it, all of the verdicts that describe it (`Table.described`)."""
    gold, described, line = table.gold, table.described(column), entry(table, column)
    labels, verdicts = table.labels, table.verdicts(described)
    shared: dict[str, Any] = {"scale": gold.scale, "judge_scale": described.scale}
    shared |= {"groups": table.groups, "level": table.level}
    best_case = None
    if line.n_unscored:  # what decides, with unscored items counted as their labels
        metrics, weights = [leading_metric(gold.scale)], table.weights
        best_case = agreement(
            labels, verdicts, metrics=metrics, unscored="right", weights=weights, seed=table.seed, **shared
        )
    fields = {field.name: getattr(line, field.name) for field in dataclasses.fields(Entry)}
    judge = JudgeEntry(**fields, kind=column.kind, by_tag={}, by_system={}, best_case=best_case)
    if table.weights is not None:
        return judge
    systems = [() if item.system is None else (item.system,) for item in table.items]
    by_tag, by_system = (
        breakdown(labels, verdicts, parts=parts, **shared)
        for parts in ([item.tags for item in table.items], systems)
    )
    retest = None
    if table.repeats > 1:
        retest = _retest(
            repeatability(verdicts, gold_labels=labels, seed=table.seed, **shared), table, described
        )
    return dataclasses.replace(
        judge,
        by_tag={name: PartEntry.of(part, gold.scale) for name, part in by_tag.items()},
        by_system={name: PartEntry.of(part, gold.scale) for name, part in by_system.items()},
        retest=retest,
        limits_of_agreement=limits_of_agreement(labels, verdicts, **shared) if gold.scale.graded else None,
    )


def _retest(repeats: Repeatability, table: Table, column: Column) -> Retest:
    """With whether every reply came from the store: those calls were made before, each repeat for itself."""
    rows, estimates = _rows_of(table, column), repeats.estimates
    named = ("exact_agreement", "unanimous", "within_item_sd", "within_item_sd_share", "icc_1_1")
    flips = (estimate for name, estimate in estimates.items() if name.startswith("flip_rate"))
    return Retest(
        repeats=table.repeats,
        n_items=repeats.n_items,
        flip_rate=next(flips, None),
        **{name: estimates[name] for name in named},
        expected=repeats.expected,
        enough=repeats.enough,
        why=repeats.why,
        all_cached=bool(rows) and all(row.cached for row in rows),
        unit=str(common_scale(table.gold.scale, column.scale)),
    )
