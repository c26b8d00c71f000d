"""The agreement table: judges, the floor below them and the raters beside them, and what explains a judge."""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from judgecal.engine import counted_remark
from judgecal.errors import InputError, unknown_name
from judgecal.experiment.folder import Experiment
from judgecal.experiment.judgements import item_scale, stored_notes, verdict_matrix, whole_items
from judgecal.experiment.result import BothOrders, Entry, JudgeEntry, Latency, Retest, Tokens
from judgecal.goldset import GoldSet
from judgecal.judges import Judge, JudgeKind, JudgeName, in_orders
from judgecal.records import ORDERS, PAIR_UNIT, PREFERS_A, TIE, Estimate, Item, Judgement
from judgecal.scale import Label, Scale, common_scale
from judgecal.stats import (
    Calibration,
    agreement,
    best_constant,
    cross_fitted,
    cross_fitted_probabilities,
    fit_calibration,
    leading_metric,
    limits_of_agreement,
)
from judgecal.stats.intervals import mean_estimate
from judgecal.stats.retest import repeatability
from judgecal.stats.sample import Floats

CONSTANT = "constant"
"""The fingerprint of what says the same of every item."""


@dataclass(frozen=True, slots=True)
class JudgeColumn:
    """One judge's judgements, unscored ones included, ready to be held against labels."""

    judge: str
    scale: Scale  # of its verdicts
    rows: Sequence[Judgement]
    # cost in US dollars of prompt and completion tokens, for the replies that came from the store
    price: Callable[[int | None, int | None], float | None] | None = None
    kind: JudgeKind = "recorded"  # how it comes to its verdicts; `recorded` where nobody here can ask it
    calls: Sequence[Judgement] = ()  # the rows as the journal holds them, where these are of single contexts

    @classmethod
    def of(cls, judge: Judge, rows: Sequence[Judgement]) -> JudgeColumn:
        """The column of a judge that judgecal called itself."""
        price = None if judge.model is None else judge.model.cost_usd
        return cls(judge.name, item_scale(judge), whole_items(rows, judge.scale), price, judge.kind, rows)

    @property
    def stored(self) -> Sequence[Judgement]:
        """The rows as the journal holds them."""
        return self.calls or self.rows

    @property
    def constant(self) -> bool:
        """Whether it says the same of every item by its making: no map would make it another."""
        return bool(self.rows) and self.rows[0].judge_fingerprint == CONSTANT

    @property
    def cell(self) -> tuple[str, str] | None:
        """Its place in the grid: the signature, and the model with its program; None without a prompt."""
        if self.kind != "prompt":
            return None
        name = JudgeName.parse(self.judge)
        return name.signature, name.system

    def cost_usd(self, row: Judgement) -> float | None:
        """What a judgement costs in production: a stored reply counts as if it had been called for."""
        if not row.cached or self.price is None:
            return row.cost_usd
        return self.price(row.prompt_tokens, row.completion_tokens)


@dataclass(frozen=True)
class AgreementTable:
    """What every entry of a table shares: the people's labels of the items asked for."""

    gold: GoldSet
    items: tuple[Item, ...]  # the labelled ones, after `--limit`
    repeats: int = 1  # the judgements asked for of each
    seed: int = 0  # of the bootstrap
    level: float = 0.95  # the nominal coverage of the intervals
    # the items beside them on which raters tie: without a gold label, raters and judges stand beside each
    # other there
    tied: tuple[Item, ...] = ()

    @cached_property
    def labels(self) -> list[Label]:
        """Gold labels, one an item."""
        return [self.gold.labels[item.item_id] for item in self.items]

    @cached_property
    def groups(self) -> list[str]:
        """Groups, one an item."""
        return [item.group for item in self.items]

    @cached_property
    def weights(self) -> Floats | None:
        """Of the items, 1 / their chance of being drawn (`drawing_weights`)."""
        return drawing_weights(self.gold, self.items)

    @property
    def drawn_notes(self) -> tuple[str, ...]:
        """What follows from items that were not all as likely to be drawn; mostly nothing."""
        if self.weights is None:
            return ()
        return (
            "the items were drawn with unequal probabilities: means are weighted by 1 / probability, "
            "and all counts are of the items drawn; we leave out what cannot be weighted (coefficients, "
            "parts, people compared with people)",
        )

    def of(self, column: JudgeColumn) -> AgreementTable:
        """The table with a recorded judge's own repeats: what others were asked more is not missing here."""
        if column.kind != "recorded":
            return self
        return dataclasses.replace(self, repeats=1 + max((row.repeat for row in column.rows), default=0))

    def beside(self, columns: Iterable[JudgeColumn]) -> list[tuple[JudgeColumn, JudgeColumn]]:
        """Each judge's column as it is, and as `described` makes it."""
        return [(column, self.of(column).described(column)) for column in columns]

    def verdicts(self, column: JudgeColumn) -> list[list[Label | None]]:
        """The verdicts of a judge as items x repeats; None where there is none."""
        return verdict_matrix(column.rows, self.items, self.repeats)

    @property
    def shared(self) -> dict[str, Any]:
        """What statistics on these items have in common, by its names there."""
        scale, groups, weights = self.gold.scale, self.groups, self.weights
        return {"scale": scale, "groups": groups, "level": self.level, "seed": self.seed, "weights": weights}

    def scaled(self, column: JudgeColumn | None = None) -> dict[str, Any]:
        """What statistics of a judge's verdicts ask for beside labels: both scales, and the questions."""
        judge_scale = self.gold.scale if column is None else column.scale
        return {"scale": self.gold.scale, "judge_scale": judge_scale, "groups": self.groups}

    def agreement(
        self,
        verdicts: Iterable[object],
        column: JudgeColumn | None = None,
        *,
        against: Iterable[object] | None = None,
        **how: Any,
    ) -> dict[str, Estimate]:
        """METRIC -> Estimate of a judge's verdicts, or of some on the people's scale, with the gold labels or
        others; `how` as in `stats.agreement`."""
        labels = self.labels if against is None else against
        return agreement(labels, verdicts, **{**self.shared, **self.scaled(column), **how})

    def agreements(
        self, column: JudgeColumn, *, labels: Sequence[Label | None] | None = None
    ) -> dict[str, dict[str, Estimate]]:
        """`agreement` (complete case), `as_wrong` and `calibrated` of one judge, against the gold labels or
        others.

        `calibrated` counts an unscored item as wrong too, and is empty where nothing can be calibrated: of
        labels without an order, and of a constant.
        """
        verdicts, calibrated = self.verdicts(column), dict[str, Estimate]()
        complete = as_wrong = self.agreement(verdicts, column, against=labels)
        if any(None in row for row in verdicts):
            as_wrong = self.agreement(verdicts, column, against=labels, unscored="wrong")
        mapped = self.calibrated(column, labels)
        if mapped is not None:
            calibrated = self.agreement(mapped, against=labels, unscored="wrong")
            known: Sequence[Label | None] = self.labels if labels is None else labels
            chances = cross_fitted_probabilities(known, verdicts, weights=self.weights, **self.scaled(column))
            if chances is not None:
                brier: dict[str, Any] = {"judge_scale": "percentage", "metrics": ["brier"]}
                calibrated |= self.agreement(chances, against=labels, unscored="wrong", **brier)
        return {"agreement": complete, "as_wrong": dict(as_wrong), "calibrated": calibrated}

    def calibrated(
        self, column: JudgeColumn, labels: Sequence[Label | None] | None = None
    ) -> list[list[float | None]] | None:
        """The verdicts of a judge on the people's scale, items x repeats, each by a map that did not see its
        question; None where nothing can be calibrated.
        """
        if column.constant:
            return None
        known: Sequence[Label | None] = self.labels if labels is None else labels
        return cross_fitted(known, self.verdicts(column), weights=self.weights, **self.scaled(column))

    def described(self, column: JudgeColumn) -> JudgeColumn:
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

    def calibration(self, column: JudgeColumn, *, fitted_on: str) -> Calibration | None:
        """The map of a judge, fitted on these items; None without an order of labels or a scored verdict."""
        return fit_calibration(self.labels, self.verdicts(column), fitted_on=fitted_on, **self.scaled(column))

    def through(self, calibration: Calibration | None, column: JudgeColumn) -> dict[str, Estimate]:
        """Agreement of a judge through a map that was fitted elsewhere, an unscored item counted as wrong."""
        if calibration is None:
            return {}
        mapped = [[calibration.apply(verdict) for verdict in row] for row in self.verdicts(column)]
        return self.agreement(mapped, unscored="wrong", weights=None)


def drawing_weights(gold: GoldSet, items: Sequence[Item]) -> Floats | None:
    """1 / the chance of each item to be drawn, their mean 1; None where all are the same or not known."""
    chances = [item.inclusion_probability for item in items]
    known = [chance for chance in chances if chance is not None]
    if not known:
        return None
    if len(known) < len(chances):
        lacking = next(item.item_id for item in items if item.inclusion_probability is None)
        raise InputError(
            f"gold set {gold.name}: {len(chances) - len(known)} of {len(chances)} items have no "
            f"inclusion_probability, such as {lacking!r}, and the others do: give it in items.jsonl, or "
            "keep those in a set of their own"
        )
    weights = 1.0 / np.array(known)
    return None if np.ptp(weights) <= 1e-9 * weights.max() else weights / weights.mean()


def refuse_unequal(gold: GoldSet, items: Sequence[Item], command: str) -> None:
    """Refuse a command that cannot weigh items which were drawn with unequal probabilities."""
    if drawing_weights(gold, items) is not None:
        raise InputError(
            f"{command} would count all items of gold set {gold.name} alike, but they were drawn with "
            "unequal probabilities (inclusion_probability in items.jsonl): use score, agreement, "
            "compare or report, which weight them"
        )


@dataclass(frozen=True, slots=True)
class StoredExperiment:
    """An experiment on disk, with what it says of its judges."""

    experiment: Experiment
    gold: GoldSet  # unchanged since
    items: tuple[Item, ...]  # the labelled ones that judges may be held against each other on, in file order
    tied: tuple[Item, ...]  # the items of the same part of the set on which raters tie
    split: str
    judges: tuple[JudgeColumn, ...]  # each that was asked for, in that order
    floor: tuple[JudgeColumn, ...]  # those of the embedded model below them, where they judged
    seed: int
    notes: tuple[str, ...]  # what the reader must know of how this was read
    trained_on: frozenset[str] = frozenset()  # groups whose labels a compiled judge of it has seen

    @property
    def columns(self) -> tuple[JudgeColumn, ...]:
        """All that judged."""
        return (*self.judges, *self.floor)

    @property
    def holds_test(self) -> bool:
        """Whether test items are among its items."""
        return any(self.gold.split_of(item.group) == "test" for item in self.items)

    @property
    def table(self) -> AgreementTable:
        """The items with the repeats that were asked for."""
        repeats = int(self.experiment.config.get("repeats", 1))
        return AgreementTable(self.gold, self.items, repeats, self.seed, tied=self.tied)

    def asked_as(self, judge: Judge) -> Judge:
        """The judge, to be asked about a pair in as many orders as here."""
        return in_orders(judge, one=bool(self.experiment.config.get("one_order")))

    def column(self, judge: str) -> JudgeColumn:
        """One judge's judgements."""
        known = {column.judge: column for column in reversed(self.columns)}
        column = known.get(judge) or known.get(str(JudgeName.read(judge)))  # `J x5` is `J*5`
        if column is None:
            names = [column.judge for column in self.columns]
            raise unknown_name(f"judge in {self.experiment.slug}", judge, names)
        return column


def entry(
    table: AgreementTable, column: JudgeColumn, *, labels: Sequence[Label | None] | None = None
) -> Entry:
    """One judge's entry: counts, agreement with the gold labels or others, cost and latency."""
    return Entry(**entry_fields(table, column, labels=labels))


def entry_fields(
    table: AgreementTable, column: JudgeColumn, *, labels: Sequence[Label | None] | None = None
) -> dict[str, Any]:
    """The fields of `entry`, for whatever is one with more."""
    expected = len({item.item_id for item in table.items}) * table.repeats
    rows = _rows_of(table, column)
    n = sum(row.verdict is not None for row in rows)
    unscored = Counter(row.error.kind if row.error else "parse" for row in rows if row.verdict is None)
    times = sorted(row.latency_s for row in rows if row.latency_s is not None)
    p95 = times[0] if times else None
    if len(times) > 1:
        p95 = statistics.quantiles(times, n=20, method="inclusive")[18]
    called = [row for row in rows if row.error is None or row.error.kind != "budget"]
    costs = [cost for row in called if (cost := column.cost_usd(row)) is not None]

    def total(counts: Iterable[int | None]) -> int | None:
        known = [count for count in counts if count is not None]
        return sum(known) if known else None

    return {
        "judge": column.judge,
        "n": n,
        "n_expected": expected,
        "n_unscored": expected - n,
        **table.agreements(column, labels=labels),
        "latency_s": Latency(statistics.median(times) if times else None, p95),
        "usd_per_1k": 1000.0 * sum(costs) / len(costs) if costs and len(costs) == len(called) else None,
        "tokens": Tokens(
            total(row.prompt_tokens for row in rows), total(row.completion_tokens for row in rows)
        ),
        "unit": str(common_scale(table.gold.scale, column.scale)),
        "unscored": ({"missing": expected - len(rows)} if expected > len(rows) else {}) | unscored,
    }


def _rows_of(table: AgreementTable, column: JudgeColumn) -> list[Judgement]:
    asked = {item.item_id for item in table.items}
    return [row for row in column.rows if row.item_id in asked and row.repeat < table.repeats]


def constant_column(table: AgreementTable, metric: str | None = None) -> JudgeColumn:
    """The constant that is best by a metric, the leading one where not given, on the same items."""
    scale = table.gold.scale
    label = best_constant(table.labels, scale=scale, metric=metric, weights=table.weights)
    name = f"constant {label:g}" if isinstance(label, float) else f"constant {label}"
    rows = [
        Judgement(item.item_id, item.sha, name, CONSTANT, repeat, label)
        for item in table.items
        for repeat in range(table.repeats)
    ]
    return JudgeColumn(name, scale, rows)


def constant_entry(table: AgreementTable) -> Entry:
    """What the best constant of each metric reaches; it costs nothing, and no map makes it another."""
    leading = entry(table, constant_column(table))
    best = dict(leading.agreement)
    for metric in leading.agreement:
        column = constant_column(table, metric)
        if column.judge != leading.judge:
            best |= table.agreement(table.verdicts(column), metrics=[metric])
    same: dict[str, Any] = {"agreement": best, "as_wrong": dict(best), "calibrated": dict(best)}
    return dataclasses.replace(leading, judge="best constant", usd_per_1k=0.0, **same)


def judge_entry(table: AgreementTable, column: JudgeColumn) -> JudgeEntry:
    """A judge's entry with what explains it, all of the verdicts that describe it (`described`)."""
    people, described = table.gold.scale, table.described(column)
    labels, verdicts = table.labels, table.verdicts(described)
    shared = table.scaled(described) | {"level": table.level}
    fields = entry_fields(table, column) | {"kind": column.kind}
    if fields["n_unscored"]:  # what decides, with unscored items counted as their labels
        metrics = [leading_metric(people)]
        fields["best_case"] = table.agreement(verdicts, described, metrics=metrics, unscored="right")
    fields |= pair_fields(table, column)
    if table.weights is not None:
        return JudgeEntry(**fields)
    if people.graded:
        fields["limits_of_agreement"] = limits_of_agreement(labels, verdicts, **shared)
    if table.repeats > 1:
        again, rows = (
            repeatability(verdicts, gold_labels=labels, seed=table.seed, **shared),
            _rows_of(table, described),
        )
        named = ("exact_agreement", "unanimous", "within_item_sd", "within_item_sd_share", "icc_1_1")
        flips = (estimate for name, estimate in again.estimates.items() if name.startswith("flip_rate"))
        fields["retest"] = Retest(
            repeats=table.repeats,
            n_items=again.n_items,
            flip_rate=next(flips, None),
            **{name: again.estimates[name] for name in named},
            run_sd=again.run_sd,
            # then those calls were made before, each repeat for itself
            all_cached=bool(rows) and all(row.cached for row in rows),
            unit=str(common_scale(people, described.scale)),
        )
    return JudgeEntry(**fields)


def pair_fields(table: AgreementTable, column: JudgeColumn) -> dict[str, Any]:
    """What a judge of pairs has beside its agreement; nothing of any other."""
    calls = dataclasses.replace(column, rows=column.calls)
    rows = [row for row in _rows_of(table, calls) if row.unit == PAIR_UNIT]
    if not rows:
        return {}

    def accuracy(verdicts: Sequence[Sequence[Label | None]], **how: Any) -> Estimate:
        return table.agreement(verdicts, column, metrics=["accuracy"], **how)["accuracy"]

    shares, counts, orders = order_shares(rows, table.items, table.repeats, table.level, table.weights)
    untied = [None if label == TIE else label for label in table.labels]
    both = BothOrders(
        **counts,
        accuracy={order: accuracy(verdicts) for order, verdicts in orders.items()},
        untied=accuracy(table.verdicts(column), against=untied),
    )
    return {**shares, "both_orders": both}


def order_shares(
    rows: Sequence[Judgement],
    items: Sequence[Item],
    repeats: int,
    level: float,
    weights: Floats | None = None,
) -> tuple[dict[str, Any], dict[str, int], dict[str, list[list[Label | None]]]]:
    """`first_place` and `consistent`, by question; the counts of `BothOrders`; the verdicts by order."""
    orders = {
        order: verdict_matrix([row for row in rows if row.order == order], items, repeats) for order in ORDERS
    }
    ab, ba = (
        np.array([PREFERS_A.get(str(said), np.nan) for of_item in verdicts for said in of_item])
        for verdicts in orders.values()
    )
    first, same = np.concatenate([ab, 1.0 - ba]), np.where(np.isnan(ab + ba), np.nan, ab == ba)
    n_pairs, tie = len(ab) * (len({row.order for row in rows}) == len(ORDERS)), PREFERS_A[TIE]

    def share(values: Floats, n_expected: int, unscored: Floats) -> Estimate:
        at = np.resize(np.repeat(np.arange(len(items)), repeats), len(values))
        groups, weighed = [items[int(n)].group for n in at], None if weights is None else weights[at]
        estimate = mean_estimate(values, groups, level=level, weights=weighed)
        n_unscored = n_expected - int((~np.isnan(unscored)).sum())
        return dataclasses.replace(estimate, n_expected=n_expected, n_unscored=n_unscored)

    shares = {
        "first_place": share(np.where(first == tie, np.nan, first), len(rows), first),
        "consistent": share(same, n_pairs, same),
    }
    counts = {"n_inconsistent": (same == 0.0).sum(), "n_tied": ((ab == tie) & (ba == tie)).sum()}
    return shares, {name: int(count) for name, count in counts.items()}, orders


def verdict_notes(
    people: Scale, columns: Sequence[JudgeColumn], *, rows: Iterable[Judgement] | None = None
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
            how = f"raw verdicts are compared on {common.low:g} to {common.high:g}, cut at {common.pass_at:g}"
        notes.append(f"{scale} verdicts on {people} labels ({', '.join(judges)}): {how}")
    called = [column for column in columns if column.kind != "recorded"]
    for column in called:  # cost counted from the texts, for want of a usable count by the server
        counts = ((row.cost_usd, row.prompt_tokens, row.completion_tokens) for row in column.rows)
        n = sum(bool(cost) and None in tokens for cost, *tokens in counts)
        notes += [counted_remark(column.judge, n)] if n else []
    stored = (row for column in called for row in column.stored) if rows is None else rows
    return [*notes, *stored_notes(stored)]
