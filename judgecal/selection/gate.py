"""`gate`: the locked judge again on the items that it was locked with, held against its locked verdicts."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgecal.experiment import (
    Column,
    Table,
    full_name,
    gold_summary,
    look_at_test,
    looks_so_far,
    open_experiment,
    open_journal,
    run_line,
    scale_notes,
)
from judgecal.records import Estimate, Item, Judgement
from judgecal.scale import Label
from judgecal.selection.gate_plan import Gate, Passes
from judgecal.selection.gate_rule import Standing, TwoTimes
from judgecal.selection.pass_rates import PassRule
from judgecal.stats.intervals import mean_estimate
from judgecal.stats.sample import Floats

__all__ = ["Flips", "flips", "gate_result", "run_gate"]


def run_gate(gate: Gate) -> dict[str, Any]:
    """Make the passes and give the contract's object, with `Estimate`s as they are.

    Raises:
        InputError: as `Gate.check`; or the model's key is not set.
        JudgecalError: the provider cannot be reached, or refused the key.
    """
    gate.check()
    gate.require_key()
    open_experiment(gate.experiment)
    with open_journal(gate.experiment.journal, gate.options) as journal:
        passes = Passes(gate.judge, gate.items, journal=journal, options=gate.options, most=gate.repeats_max)
        standing = _stand(gate, passes)
    result = gate_result(gate, passes, standing)
    if passes.n:  # without a whole pass the gate has not ended: it goes on with --name
        gate.experiment.write_summary(result)
    return result


def _stand(gate: Gate, passes: Passes) -> Standing:
    """Pass after pass, until the rule decides or no further pass can be had or would tell more."""
    while passes.another():
        two = gate.two_times(passes.matrix)
        standing = gate.rule.standing(two, last=False)
        if standing.decision != "inconclusive" or standing.loss_below is None:
            return standing  # where there is no interval, further passes give none
        if two.settled:
            return _because(
                standing, f"all {two.passes} passes gave the same verdicts, a further one would tell no more"
            )
    standing = gate.rule.standing(gate.two_times(passes.matrix), last=True)
    if not passes.n:
        why = f"there is no whole pass to decide by: {passes.stopped}"
        return dataclasses.replace(standing, decision="inconclusive", why=why)
    return standing if standing.decision == "fail" else _because(standing, str(passes.stopped))


def _because(standing: Standing, why: str) -> Standing:
    return dataclasses.replace(standing, why=f"{standing.why}; {why}")


def gate_result(gate: Gate, passes: Passes, standing: Standing) -> dict[str, Any]:
    """The object, with `Estimate`s as they are; the look at test labels is logged."""
    lock, rule, two = gate.lock, gate.rule, gate.two_times(passes.matrix)
    mark = PassRule.of(lock.gold, gate.judge.scale)
    found = flips(two, gate.items, mark, level=rule.level)
    table = Table(gate.gold, gate.items, two.passes, gate.seed, rule.level)
    column = Column.of(gate.judge, passes.counted)
    return {
        "lock": str(gate.path),
        "decision": standing.decision,
        "why": standing.why,
        "flip_rate": found.rate,
        "noise": lock.noise.flip_rate,
        "changed": found.changed,
        "noise_unchanged": lock.noise.exact_agreement,
        "noise_calls": {"n_items": lock.noise.n_items, "n_calls": lock.noise.n_calls},
        "metric": rule.metric,
        "margin": rule.margin,
        "level": rule.level,
        "locked": dataclasses.replace(table, repeats=1).agreements(_locked(gate))["as_wrong"],
        "now": table.agreements(column)["as_wrong"],
        "difference": standing.comparison.difference,
        "complete_case": standing.comparison.complete_case.difference,
        "loss_below": standing.loss_below,
        "lasting_difference": standing.lasting,
        "smallest_detectable": standing.comparison.smallest_detectable,
        **_models(gate, passes.counted),
        "repeats": passes.n,
        "repeats_max": gate.repeats_max,
        "usd": passes.usd,
        "judge": gate.judge.name,
        "locked_at": lock.locked_at,
        "flipped": list(found.items),
        "unscored": _unscored(passes.counted),
        "experiment": gate.experiment.slug,
        "gold": gold_summary(table, "all"),
        "items": _scope(gate),
        "test_looks": _look(gate),
        "notes": _notes(gate, column),
        "run_line": _run_line(gate, table),
    }


def _locked(gate: Gate) -> Column:
    """The locked verdicts as a judge's column."""
    rows = [
        Judgement(item.item_id, item.sha, gate.judge.name, gate.lock.fingerprint, 0, verdict)
        for item in gate.items
        for verdict in (gate.lock.verdicts[item.item_id],)
    ]
    return Column(gate.judge.name, gate.judge.scale, rows)


def _models(gate: Gate, rows: Sequence[Judgement]) -> dict[str, Any]:
    """The ids that the provider returned, the most frequent first; changed where one of them is not the locked one."""
    then = gate.lock.model_id
    now = [name for name, _ in Counter(row.model_id for row in rows if row.model_id).most_common()]
    changed = then is not None and any(name != then for name in now)
    return {"model_changed": changed, "model_id": {"locked": then, "now": now}}


def _unscored(rows: Sequence[Judgement]) -> list[dict[str, Any]]:
    """The judgements without a verdict, with the kind of their failure."""
    return [
        {"item_id": row.item_id, "repeat": row.repeat, "kind": row.error.kind if row.error else "parse"}
        for row in rows
        if row.verdict is None
    ]


def _scope(gate: Gate) -> str:
    """Which items these are, in words."""
    judged = {item.item_id for item in gate.items}
    left = [
        item for item in gate.gold.items if item.item_id in gate.gold.labels and item.item_id not in judged
    ]
    groups = gate.gold.n_groups(gate.items)
    which = f"{len(judged)} labelled items of {gate.gold.name}, on {groups} questions"
    if not left:
        return f"all {which}"
    trained = sum(item.group in gate.judge.trained_on for item in left)
    others = [f"{trained} that the judge was trained on"] if trained else []
    others += [f"{len(left) - trained} that the lock has no verdict on"] if trained < len(left) else []
    return f"{which}; left out: {' and '.join(others)}"


def _look(gate: Gate) -> int:
    """Log that test labels were looked at: a gate decides nothing on them, and is not counted."""
    n_test = sum(gate.gold.split_of(item.group) == "test" for item in gate.items)
    if not n_test:
        return looks_so_far(gate.workspace.experiments, gate.gold.name)
    return look_at_test(
        gate.workspace.experiments,
        gold=gate.gold.name,
        gold_sha256=gate.gold.sha256,
        experiment=gate.experiment.slug,
        kind="gate",
        n_items=n_test,
    ).number


def _notes(gate: Gate, column: Column) -> list[str]:
    notes = scale_notes(gate.gold.scale, [column])
    if any(gate.gold.split_of(item.group) != "test" for item in gate.items):
        notes.append(
            "items that chose the judge are among these: the difference counts, the levels flatter it"
        )
    if gate.lock.model is not None and gate.lock.model_id is None:
        notes.append("the lock names no model_id, so that a change of it cannot be told")
    return notes


def _run_line(gate: Gate, table: Table) -> str:
    extra = {"lock": gate.lock.sha256[:12], "metric": gate.rule.metric, "margin": f"{gate.rule.margin:g}"}
    return run_line(table, "all", [full_name(gate.judge)], extra)


@dataclass(frozen=True, slots=True)
class Flips:
    """How far the verdicts are no longer the locked ones; an item without a verdict then or now says nothing.

    Attributes:
        rate: share of items on the other side of the mark, or in another class: the mean over the passes. Without a
            value where the scale has no mark.
        changed: share of items whose verdict is another one at all.
        items: of each item that flipped in some pass (that changed, where there is no mark) its id, the locked verdict
            and those of the passes, in file order.
    """

    rate: Estimate
    changed: Estimate
    items: tuple[dict[str, Any], ...]


def flips(two: TwoTimes, items: Sequence[Item], rule: PassRule, *, level: float) -> Flips:
    """Hold every pass against the locked verdicts; n counts items."""
    changed = np.array(
        [[_differ(then, verdict) for verdict in row] for then, row in zip(two.then, two.now, strict=True)]
    )
    sides = changed
    if rule.mark is not None:
        sides = np.array(
            [
                [_differ(rule.passes(then), rule.passes(verdict)) for verdict in row]
                for then, row in zip(two.then, two.now, strict=True)
            ]
        )
    rate = _share(sides, two.groups, level)
    if rule.mark is None and rule.people.numeric:
        rate = dataclasses.replace(rate, value=None, low=None, high=None, method="", reason=rule.reason)
    moved = np.nansum(sides, axis=1) > 0.0
    named = tuple(
        {"item_id": item.item_id, "locked": then, "now": list(row)}
        for item, then, row, flipped in zip(items, two.then, two.now, moved, strict=True)
        if flipped
    )
    return Flips(rate, _share(changed, two.groups, level), named)


def _differ(then: Label | bool | None, now: Label | bool | None) -> float:
    return np.nan if then is None or now is None else float(then != now)


def _share(values: Floats, groups: Sequence[str], level: float) -> Estimate:
    """The mean over items of the share of their passes; NaN where a verdict is missing."""
    known = ~np.isnan(values)
    counted = known.sum(axis=1)
    shares = np.where(counted > 0, np.where(known, values, 0.0).sum(axis=1) / np.maximum(counted, 1), np.nan)
    found = mean_estimate(shares, groups, level=level)
    return dataclasses.replace(found, n_unscored=int(np.sum(counted == 0)))
