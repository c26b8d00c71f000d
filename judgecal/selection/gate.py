"""`gate`: the locked judge again on the items that it was locked with, held against its locked verdicts."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from judgecal.experiment import (
    Column,
    GoldSummary,
    Judgements,
    Table,
    full_name,
    item_scale,
    look_at_test,
    looks_so_far,
    open_experiment,
    open_journal,
    run_line,
    summary_of_gold,
    verdict_notes,
)
from judgecal.experiment.unread import Unread, unread_judge
from judgecal.records import Estimate, Item, Judgement, Result
from judgecal.scale import Label
from judgecal.selection.gate_plan import REPEATS_MAX, Gate, Passes, plan_gate
from judgecal.selection.gate_rule import UNSCORED_TOLERANCE, GateDecision, Standing, TwoTimes
from judgecal.selection.lock import load_lock, model_ids
from judgecal.selection.odd_one_out import OddOneOut
from judgecal.selection.pass_rates import PassRule
from judgecal.stats.intervals import mean_estimate
from judgecal.stats.sample import Floats
from judgecal.workspace import find_workspace, shown


@dataclass(frozen=True, slots=True)
class FlippedItem:
    """An item that was in some pass on a side of the mark where no locked call had it (without a mark: with a
    verdict that none had)."""

    item_id: str
    locked: tuple[Label | None, ...]
    now: tuple[Label | None, ...]


@dataclass(frozen=True, slots=True)
class NoiseCalls:
    """What the noise of a lock was measured on: so many items, each called so often."""

    n_items: int
    n_calls: int


@dataclass(frozen=True, slots=True)
class ModelIds:
    """The dated id of the lock, None where it names none, and those that answered now, the most frequent
    first."""

    locked: str | None
    now: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnscoredShares:
    """The share of judgements without a verdict in the lock, and now; 0..1."""

    locked: float
    now: float
    rise: Estimate  # now - locked, paired by item
    p_at_most: float  # the chance, if nothing had changed, of such a rise is this or less
    tolerance: float  # a rise that is shown to exceed it fails


@dataclass(frozen=True, slots=True)
class UnscoredJudgement:
    """A judgement without a verdict, with the kind of its failure."""

    item_id: str
    repeat: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult(Result):
    """What a gate comes to."""

    experiment: str
    lock: str
    judge: str
    locked_at: str
    decision: GateDecision
    why: str
    metric: str
    margin: float
    level: float
    # share of pairs of a locked call and one of now on other sides of the lock's cut, or in other classes:
    # the mean over the items; without a value where the scale has no mark
    flip_rate: Estimate
    changed: Estimate  # share of such pairs with another raw verdict at all
    odd_one_out: (
        OddOneOut | None
    )  # whether another judge answers; None with fewer than three calls of an item
    noise: Estimate  # flips and equal verdicts of two calls at lock time, and how measured
    noise_unchanged: Estimate
    noise_calls: NoiseCalls
    locked: Mapping[str, Estimate]  # METRIC -> Estimate, an unscored item counted as wrong
    now: Mapping[str, Estimate]
    locked_calibrated: Mapping[str, Estimate]  # the same through the lock's map where it decides; else empty
    now_calibrated: Mapping[str, Estimate]
    # now - locked in the metric, through the lock's calibration map where it has one; the same without
    # unscored items; the same of the verdicts as they are, None where these decide
    difference: Estimate
    complete_case: Estimate
    raw_difference: Estimate | None
    loss_below: (
        float | None
    )  # the loss stays below this, one-sided at the level; None where nothing can be decided
    lasting_difference: (
        Estimate | None
    )  # with the verdicts that changed in every pass alike; None with one pass
    smallest_detectable: float | None  # None where there is no interval
    model_changed: bool  # whether another model answered than the locked one, and which
    model_id: ModelIds
    repeats: int  # passes that count, and that were allowed
    repeats_max: int
    usd: float | None  # of all calls; None where some model has no price
    flipped: tuple[FlippedItem, ...]  # the items that moved, in file order
    unscored: UnscoredShares
    unscored_judgements: tuple[UnscoredJudgement, ...]
    gold: GoldSummary
    items: str
    test_looks: int  # decisions taken on the set's test labels so far
    notes: tuple[str, ...]
    run_line: str
    unread: Unread | None = None  # why, where no call of now has a verdict


def run_gate(gate: Gate) -> GateResult:
    """Make the passes and decide.

    Raises:
        InputError: as `Gate.check`; or the model's key is not set.
        JudgecalError: the provider cannot be reached, or refused the key.
    """
    gate.check()
    gate.require_key()
    open_experiment(gate.experiment)
    with open_journal(gate.experiment.journal, gate.options) as journal:
        budget = gate.options.open_budget(gate.experiment.folder)
        passes = Passes(
            gate.judge,
            gate.items,
            journal=journal,
            options=gate.options,
            budget=budget,
            most=gate.repeats_max,
        )
        standing = _stand(gate, passes)
    result = _result(gate, passes, standing)
    if passes.n:  # without a whole pass the gate has not ended: it goes on with --name
        gate.experiment.write_summary(result)
    return result


def _stand(gate: Gate, passes: Passes) -> Standing:
    """Pass after pass, until the rule decides or no further pass can be had or would tell more."""
    while passes.another():
        two = gate.two_times(passes.matrix)
        standing = gate.rule.standing(two, last=two.settled)
        if standing.decision != "inconclusive" or standing.loss_below is None:
            return standing  # where there is no bound, further passes give none
        if two.settled:
            why = f"all {two.passes} passes gave the same verdicts, a further one would tell no more"
            return _because(standing, why)
    standing = gate.rule.standing(gate.two_times(passes.matrix), last=True)
    if not passes.n:
        why = f"there is no whole pass to decide by: {passes.stopped}"
        return dataclasses.replace(standing, decision="inconclusive", why=why)
    return _because(standing, str(passes.stopped)) if standing.decision == "inconclusive" else standing


def _because(standing: Standing, why: str) -> Standing:
    return dataclasses.replace(standing, why=f"{standing.why}; {why}")


def _result(gate: Gate, passes: Passes, standing: Standing) -> GateResult:
    """What the passes say; the look at test labels is logged."""
    lock, rule, two = gate.lock, gate.rule, gate.two_times(passes.matrix)
    rate, changed, flipped = flips(
        two, gate.items, PassRule.of_lock(lock, item_scale(gate.judge)), level=rule.level
    )
    table = Table(gate.gold, gate.items, two.passes, gate.seed, rule.level)
    before = dataclasses.replace(table, repeats=len(two.then[0]))
    then, column = _locked(gate), Column.of(gate.judge, passes.counted)
    extra = {"lock": lock.sha256[:12], "metric": rule.metric, "margin": f"{rule.margin:g}"}
    models = ModelIds(lock.model_id, tuple(model_ids(passes.counted)))
    return GateResult(
        experiment=gate.experiment.slug,
        lock=str(gate.path),
        judge=gate.judge.name,
        locked_at=lock.locked_at,
        decision=standing.decision,
        why=standing.why,
        metric=rule.metric,
        margin=rule.margin,
        level=rule.level,
        flip_rate=rate,
        changed=changed,
        odd_one_out=standing.odd,
        noise=lock.noise.flip_rate,
        noise_unchanged=lock.noise.exact_agreement,
        noise_calls=NoiseCalls(lock.noise.n_items, lock.noise.n_calls),
        locked=before.agreements(then)["as_wrong"],
        now=table.agreements(column)["as_wrong"],
        locked_calibrated=before.through(gate.calibration, then),
        now_calibrated=table.through(gate.calibration, column),
        difference=standing.comparison.difference,
        complete_case=standing.comparison.complete_case.difference,
        raw_difference=standing.raw,
        loss_below=standing.loss_below,
        lasting_difference=standing.lasting,
        smallest_detectable=standing.comparison.smallest_detectable,
        model_changed=models.locked is not None and any(name != models.locked for name in models.now),
        model_id=models,
        repeats=passes.n,
        repeats_max=gate.repeats_max,
        usd=passes.usd,
        flipped=flipped,
        unscored=_unscored(two, standing),
        unscored_judgements=tuple(_lost(passes.counted)),
        gold=summary_of_gold(table, "all"),
        items=_scope(gate),
        test_looks=_look(gate),
        notes=tuple(_notes(gate, column)),
        run_line=run_line(table, "all", [full_name(gate.judge)], extra),
        unread=_unread(gate, passes.counted),
    )


def _unread(gate: Gate, rows: Judgements) -> Unread | None:
    judge = unread_judge(gate.judge.name, rows, sealed=gate.gold.test_ids)
    again = shlex.join(["judgecal", "gate", "--lock", str(gate.path)])  # it reads no stored reply
    return None if judge is None else Unread((judge,), 1, shown(gate.experiment.journal), again)


def _locked(gate: Gate) -> Column:
    """The locked verdicts as a judge's column."""
    name, lock = gate.judge.name, gate.lock
    rows = [
        Judgement(one.item_id, one.sha, name, lock.fingerprint, repeat, verdict)
        for one in gate.items
        for repeat, verdict in enumerate(lock.calls_of(one.item_id))
    ]
    return Column(name, item_scale(gate.judge), rows)


def _lost(rows: Judgements) -> Iterator[UnscoredJudgement]:
    for row in rows:
        if row.verdict is None:
            yield UnscoredJudgement(row.item_id, row.repeat, row.error.kind if row.error else "parse")


def _unscored(two: TwoTimes, standing: Standing) -> UnscoredShares:
    then, now = (
        sum(row.count(None) for row in map(list, rows)) / sum(map(len, rows)) for rows in (two.then, two.now)
    )
    rise = standing.unscored
    return UnscoredShares(then, now, rise.difference, rise.p_at_most, UNSCORED_TOLERANCE)


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
    if all(gate.gold.split_of(item.group) != "test" for item in gate.items):
        return looks_so_far(gate.workspace.experiments, gate.gold)
    return look_at_test(
        gate.workspace.experiments,
        gate.gold,
        gate.items,
        experiment=gate.experiment.slug,
        kind="gate",
        by="gate",
        judges={gate.lock.fingerprint: gate.lock.fingerprint},
    ).number


def _notes(gate: Gate, column: Column) -> list[str]:
    notes = verdict_notes(gate.gold.scale, [column])
    if any(gate.gold.split_of(item.group) != "test" for item in gate.items):
        notes.append(
            "items that chose the judge are among these: the difference counts, the levels flatter it"
        )
    if gate.lock.model is not None and gate.lock.model_id is None:
        notes.append("the lock names no model_id, so that a change of it cannot be told")
    return notes


def flips(
    two: TwoTimes, items: Sequence[Item], rule: PassRule, *, level: float
) -> tuple[Estimate, Estimate, tuple[FlippedItem, ...]]:
    """How far the verdicts are no longer the locked ones: flip rate, share changed, and which items.

    n counts items; one without a verdict then or now says nothing.
    """
    pairs = list(zip(two.then, two.now, strict=True))
    changed = np.array([_differences(then, row) for then, row in pairs])
    sides, marked = changed, pairs
    if rule.mark is not None:
        marked = [([*map(rule.passes, then)], [*map(rule.passes, row)]) for then, row in pairs]
        sides = np.array([_differences(then, row) for then, row in marked])
    rate = _share(sides, two.groups, level)
    if rule.mark is None and rule.people.numeric:
        rate = dataclasses.replace(rate, value=None, low=None, high=None, method="", reason=rule.reason)
    named = tuple(
        FlippedItem(item.item_id, tuple(then), tuple(row))
        for item, (then, row), (before, after) in zip(items, pairs, marked, strict=True)
        if set(after) - {*before, None} and set(before) != {None}
    )
    return rate, _share(changed, two.groups, level), named


def _differences(then: Sequence[Label | bool | None], now: Sequence[Label | bool | None]) -> list[float]:
    return [_differ(before, after) for before in then for after in now]


def _differ(then: Label | bool | None, now: Label | bool | None) -> float:
    return np.nan if then is None or now is None else float(then != now)


def _share(values: Floats, groups: Sequence[str], level: float) -> Estimate:
    """The mean over items of the share of their pairs of calls; NaN where a verdict is missing."""
    known = ~np.isnan(values)
    counted = known.sum(axis=1)
    shares = np.where(counted > 0, np.where(known, values, 0.0).sum(axis=1) / np.maximum(counted, 1), np.nan)
    found = mean_estimate(shares, groups, level=level)
    return dataclasses.replace(found, n_unscored=int(np.sum(counted == 0)))


def gate(
    lock: str | Path,
    *,
    margin: float | None = None,
    level: float = 0.95,
    repeats_max: int = REPEATS_MAX,
    budget_usd: float | None = None,
    seed: int = 0,
    name: str | None = None,
    trust_lock: bool = False,
    workspace: str | Path | None = None,
) -> GateResult:
    """Has a locked judge drifted? It judges the items of its lock again, called afresh: this costs calls.

    Args:
        lock: the judge.lock.json of select.
        margin: the loss that is allowed; the lock's where not given.
        level: of the interval and of the bound on the loss.
        repeats_max: passes over the items at most.
        budget_usd: spend at most this much in all passes.
        name: slug of the experiment; of one that was interrupted, to go on with it.
        trust_lock: run the lock's own signature where the workspace has another.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.

    Raises:
        InputError: as `plan_gate` and `run_gate`.
        JudgecalError: the provider cannot be reached, or refused the key.
    """
    path = Path(lock)
    where = find_workspace(None if workspace is None else Path(workspace))
    planned = plan_gate(
        where,
        load_lock(path),
        path,
        margin=margin,
        level=level,
        budget_usd=budget_usd,
        repeats_max=repeats_max,
        seed=seed,
        out=name,
        trust_lock=trust_lock,
    )
    return run_gate(planned)
