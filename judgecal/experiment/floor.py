"""The floor below the judges: what the best constant reaches, and what the embedded model says."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from judgecal.engine import Budget, Journal
from judgecal.errors import InputError
from judgecal.experiment.agreement import CONSTANT, Column, Table, entry
from judgecal.experiment.chunks import item_scale, refuse_unfit
from judgecal.experiment.result import Entry
from judgecal.experiment.trials import RunOptions, run_trials
from judgecal.goldset import GoldSet
from judgecal.judges import Judge, JudgeName, judge_named
from judgecal.models import EMBEDDED
from judgecal.records import Item, Judgement
from judgecal.scale import common_scale
from judgecal.signatures import load_signature
from judgecal.stats import agreement, best_constant
from judgecal.workspace import Workspace

FLOOR_JUDGE = f"correctness_v3@{EMBEDDED}"
_REFERENCES = frozenset({"reference_answer", "reference_answers"})
_TEXTS = frozenset({"question", "answer", "answer_under_test", "response"})
_OWN_FLOOR = f": name SIGNATURE@{EMBEDDED}, with the judges' own signature, among them to have it as a floor"


def constant_column(table: Table, metric: str | None = None) -> Column:
    """The constant that is best by a metric, the leading one where not given, on the same items."""
    scale = table.gold.scale
    label = best_constant(table.labels, scale=scale, metric=metric, weights=table.weights)
    name = f"constant {label:g}" if isinstance(label, float) else f"constant {label}"
    rows = [
        Judgement(item.item_id, item.sha, name, CONSTANT, repeat, label)
        for item in table.items
        for repeat in range(table.repeats)
    ]
    return Column(name, scale, rows)


def constant_entry(table: Table) -> Entry:
    """What the best constant of each metric reaches; it costs nothing, and no map makes it another."""
    leading = entry(table, constant_column(table))
    best = dict(leading.agreement)
    for metric in leading.agreement:
        column = constant_column(table, metric)
        if column.judge != leading.judge:
            best |= agreement(
                table.labels,
                table.verdicts(column),
                scale=table.gold.scale,
                metrics=[metric],
                groups=table.groups,
                level=table.level,
                seed=table.seed,
                weights=table.weights,
            )
    return dataclasses.replace(
        leading,
        judge="best constant",
        agreement=best,
        as_wrong=dict(best),
        calibrated=dict(best),
        usd_per_1k=0.0,
    )


def check_judge(gold: GoldSet, judge: Judge, items: Sequence[Item] = ()) -> None:
    """Refuse a judge whose verdicts cannot stand beside the people's labels of some items."""
    refuse_unfit(judge, items)
    try:
        common_scale(gold.scale, item_scale(judge))
    except InputError as error:
        raise InputError(f"{judge.name} on gold set {gold.name}: {error}") from None


def floor_judges(workspace: Workspace, table: Table, judges: Iterable[str]) -> tuple[str, ...]:
    """The judges of the embedded model that stand below some judges: each prompt judge's own signature on
    that model.

    Where a judge compares an answer with a reference answer that is FLOOR_JUDGE, so that all such judges have
    one floor; so it is where there is no prompt judge, or its signature is gone.
    """
    signatures = prompt_signatures(judges)
    return tuple(dict.fromkeys(_floor_below(one, workspace, table) for one in signatures)) or (FLOOR_JUDGE,)


def prompt_signatures(judges: Iterable[str]) -> list[str]:
    """The signatures of the prompt judges among some."""
    names = [
        name for judge in judges if (name := JudgeName.read(judge)) is not None and name.kind == "prompt"
    ]
    return [name.signature for name in names]


def _floor_below(signature: str, workspace: Workspace, table: Table) -> str:
    try:
        inputs = frozenset(load_signature(signature, workspace=workspace).inputs)
    except InputError:
        return FLOOR_JUDGE
    compares = bool(inputs & _REFERENCES) and inputs <= _REFERENCES | _TEXTS
    return FLOOR_JUDGE if compares and table.gold.scale.numeric else f"{signature}@{EMBEDDED}"


def no_floor_judge(table: Table, judge: str) -> str | None:
    """Why one of the floor's judges cannot stand below the judges of these items; None where it can."""
    if judge != FLOOR_JUDGE:
        return None
    if not table.gold.scale.numeric:
        return f"{FLOOR_JUDGE} gives percentages, and the labels of this set have no order{_OWN_FLOOR}"
    if any(item.reference_answer is None for item in table.items):
        return f"{FLOOR_JUDGE} compares with a reference answer, and some items have none{_OWN_FLOOR}"
    return None


def floor_columns(
    workspace: Workspace, table: Table, journal: Journal, options: RunOptions, *, judges: Iterable[str]
) -> tuple[tuple[Column, ...], str | None]:
    """What `embedded` says of the same items as some judges, below the best constant; and the reason where it
    cannot.

    A signature is the user's and may be gone or changed: that costs the floor, not the result.
    """
    columns, reasons = list[Column](), list[str]()
    for name in floor_judges(workspace, table, judges):
        if why := no_floor_judge(table, name):
            reasons.append(why)
            continue
        try:
            judge = judge_named(name, workspace=workspace)
            check_judge(table.gold, judge, table.items)
            judge.check_items(table.items)
        except InputError as error:
            reasons.append(f"the floor lacks {name}: {error}")
            continue
        rows = run_trials(
            [judge], table.items, journal=journal, options=options, budget=Budget(None), label="floor"
        )
        columns.append(Column.of(judge, rows))
    return tuple(columns), "; ".join(reasons) or None


def with_floor(columns: Sequence[Column], floor: Sequence[Column]) -> tuple[Column, ...]:
    """The judges, then the floor's where it is not one of them."""
    asked = {row.judge_fingerprint for column in columns for row in column.rows}
    return (*columns, *(one for one in floor if asked.isdisjoint(row.judge_fingerprint for row in one.rows)))
