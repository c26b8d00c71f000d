"""`gate`: the locked judge again on the items that it was locked with, held against its locked verdicts."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgecal.experiment import (
    Column,
    GoldSummary,
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
from judgecal.experiment.stored import Unread, unread_judge
from judgecal.records import Estimate, Item, Judgement, Result
from judgecal.scale import Label
from judgecal.selection.gate_plan import REPEATS_MAX, Gate, Passes, plan_gate
from judgecal.selection.gate_rule import UNSCORED_TOLERANCE, GateDecision, GateState, LockedAndCurrent
from judgecal.selection.lock import load_lock, model_ids
from judgecal.selection.pass_rates import PassRule
from judgecal.stats.drift import SameJudgeTest
from judgecal.stats.intervals import mean_estimate
from judgecal.workspace import find_workspace, shown


@dataclass(frozen=True, slots=True)
class FlippedItem:
    """An item on a side of the mark where no locked call had it (without a mark: with a verdict none had)."""

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
    """The dated ids of the model."""

    locked: str | None  # None where the lock names none
    now: tuple[str, ...]  # those that answered, the most frequent first


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
    odd_one_out: SameJudgeTest | None  # whether another judge answers; None with fewer than three calls
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
    )  # the loss stays below, one-sided at the level; None where nothing can be decided
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
    """Make the passes, decide, and log the look at test labels.

    Raises:
        JudgecalError: the provider cannot be reached, or refused the key.
    """
    gate.check()
    gate.require_key()
    open_experiment(gate.experiment)
    with open_journal(gate.experiment.journal, gate.options) as journal:
        budget = gate.options.open_budget(gate.experiment.folder)
        shared: dict[str, Any] = {"journal": journal, "options": gate.options, "budget": budget}
        passes = Passes(gate.judge, gate.items, most=gate.repeats_max, **shared)
        state = _decide(gate, passes)
    result = _result(gate, passes, state)
    if passes.n:  # without a whole pass the gate has not ended: it goes on with --name
        gate.experiment.write_summary(result)
    return result


def _decide(gate: Gate, passes: Passes) -> GateState:
    """Pass after pass, until the rule decides or no further pass can be had or would tell more."""
    while passes.another():
        two = gate.both_times(passes.matrix)
        state = gate.rule.state(two, last=two.settled)
        if state.decision != "inconclusive" or state.loss_below is None:
            return state  # where there is no bound, further passes give none
        if two.settled:
            why = f"all {two.passes} passes gave the same verdicts, a further one would tell no more"
            return dataclasses.replace(state, why=f"{state.why}; {why}")
    state = gate.rule.state(gate.both_times(passes.matrix), last=True)
    if not passes.n:
        why = f"there is no whole pass to decide by: {passes.stopped}"
        return dataclasses.replace(state, decision="inconclusive", why=why)
    if state.decision != "inconclusive":
        return state
    return dataclasses.replace(state, why=f"{state.why}; {passes.stopped}")


def _result(gate: Gate, passes: Passes, state: GateState) -> GateResult:
    lock, rule, gold, items = gate.lock, gate.rule, gate.gold, gate.items
    two, scale = gate.both_times(passes.matrix), item_scale(gate.judge)
    rate, changed, flipped = flips(two, items, PassRule.of_lock(lock, scale), level=rule.level)
    table = Table(gold, items, two.passes, gate.seed, rule.level)
    before, column = (
        dataclasses.replace(table, repeats=len(two.then[0])),
        Column.of(gate.judge, passes.counted),
    )
    locked_rows = [
        Judgement(item.item_id, item.sha, gate.judge.name, lock.fingerprint, repeat, verdict)
        for item in items
        for repeat, verdict in enumerate(lock.calls_of(item.item_id))
    ]
    then = Column(gate.judge.name, scale, locked_rows)
    models = ModelIds(lock.model_id, tuple(model_ids(passes.counted)))
    locked_share, share_now = (
        sum(row.count(None) for row in map(list, rows)) / sum(map(len, rows)) for rows in (two.then, two.now)
    )
    rise = state.unscored
    n_looks, notes = _looked(gate)
    unread = unread_judge(gate.judge.name, passes.counted, sealed=gold.test_ids)
    again = shlex.join(["judgecal", "gate", "--lock", str(gate.path)])  # it reads no stored reply
    extra = {"lock": lock.sha256[:12], "metric": rule.metric, "margin": f"{rule.margin:g}"}
    return GateResult(
        experiment=gate.experiment.slug,
        lock=str(gate.path),
        judge=gate.judge.name,
        locked_at=lock.locked_at,
        decision=state.decision,
        why=state.why,
        metric=rule.metric,
        margin=rule.margin,
        level=rule.level,
        flip_rate=rate,
        changed=changed,
        odd_one_out=state.same_judge,
        noise=lock.noise.flip_rate,
        noise_unchanged=lock.noise.exact_agreement,
        noise_calls=NoiseCalls(lock.noise.n_items, lock.noise.n_calls),
        locked=before.agreements(then)["as_wrong"],
        now=table.agreements(column)["as_wrong"],
        locked_calibrated=before.through(gate.calibration, then),
        now_calibrated=table.through(gate.calibration, column),
        difference=state.comparison.difference,
        complete_case=state.comparison.complete_case.difference,
        raw_difference=state.raw,
        loss_below=state.loss_below,
        lasting_difference=state.persistent,
        smallest_detectable=state.comparison.smallest_detectable,
        model_changed=models.locked is not None and any(name != models.locked for name in models.now),
        model_id=models,
        repeats=passes.n,
        repeats_max=gate.repeats_max,
        usd=passes.usd,
        flipped=flipped,
        unscored=UnscoredShares(locked_share, share_now, rise.difference, rise.p_at_most, UNSCORED_TOLERANCE),
        unscored_judgements=tuple(
            UnscoredJudgement(row.item_id, row.repeat, row.error.kind if row.error else "parse")
            for row in passes.counted
            if row.verdict is None
        ),
        gold=summary_of_gold(table, "all"),
        items=_scope(gate),
        test_looks=n_looks,
        notes=(*verdict_notes(gold.scale, [column]), *notes),
        run_line=run_line(table, "all", [full_name(gate.judge)], extra),
        unread=None if unread is None else Unread((unread,), 1, shown(gate.experiment.journal), again),
    )


def _looked(gate: Gate) -> tuple[int, list[str]]:
    """Log a look at test labels, if it is one: how many so far, and what the reader must know."""
    gold, lock, notes = gate.gold, gate.lock, []
    n_looks = looks_so_far(gate.workspace.experiments, gold)
    if any(gold.split_of(item.group) == "test" for item in gate.items):
        # not counted: a gate decides nothing on test labels
        n_looks = look_at_test(
            gate.workspace.experiments,
            gold,
            gate.items,
            experiment=gate.experiment.slug,
            kind="gate",
            by="gate",
            judges={lock.fingerprint: lock.fingerprint},
        ).number
    if any(gold.split_of(item.group) != "test" for item in gate.items):
        notes.append(
            "items that chose the judge are among these: the difference counts, the levels flatter it"
        )
    if lock.model is not None and lock.model_id is None:
        notes.append("the lock names no model_id, so that a change of it cannot be told")
    return n_looks, notes


def _scope(gate: Gate) -> str:
    """Which items these are, in words."""
    judged, gold = {item.item_id for item in gate.items}, gate.gold
    left = [item for item in gold.items if item.item_id in gold.labels and item.item_id not in judged]
    which = f"{len(judged)} labelled items of {gold.name}, on {gold.n_groups(gate.items)} questions"
    if not left:
        return f"all {which}"
    trained = sum(item.group in gate.judge.trained_on for item in left)
    others = [f"{trained} that the judge was trained on"] if trained else []
    others += [f"{len(left) - trained} that the lock has no verdict on"] if trained < len(left) else []
    return f"{which}; left out: {' and '.join(others)}"


def flips(
    two: LockedAndCurrent, items: Sequence[Item], rule: PassRule, *, level: float
) -> tuple[Estimate, Estimate, tuple[FlippedItem, ...]]:
    """How far the verdicts are no longer the locked ones: flip rate, share changed, and which items.

    n counts items; one without a verdict then or now says nothing.
    """

    def share(pairs: Sequence[tuple[Sequence[Label | None], Sequence[Label | None]]]) -> Estimate:
        """The mean over items of the share of their pairs of calls, one then and one now, that differ."""
        values = np.array(
            [
                [np.nan if None in (before, after) else before != after for before in then for after in now]
                for then, now in pairs
            ],
            dtype=np.float64,
        )
        known = ~np.isnan(values)
        counted = known.sum(axis=1)
        differing = np.where(known, values, 0.0).sum(axis=1)
        shares = np.where(counted > 0, differing / np.maximum(counted, 1), np.nan)
        mean = mean_estimate(shares, two.groups, level=level)
        return dataclasses.replace(mean, n_unscored=int(np.sum(counted == 0)))

    raw = list(zip(two.then, two.now, strict=True))
    marked = raw
    if rule.mark is not None:
        marked = [([*map(rule.passes, then)], [*map(rule.passes, now)]) for then, now in raw]
    changed = share(raw)
    rate = changed if marked is raw else share(marked)
    if rule.mark is None and rule.people.numeric:
        rate = dataclasses.replace(rate, value=None, low=None, high=None, method="", reason=rule.reason)
    flipped = tuple(
        FlippedItem(item.item_id, tuple(then), tuple(now))
        for item, (then, now), (before, after) in zip(items, raw, marked, strict=True)
        if set(after) - {*before, None} and set(before) != {None}
    )
    return rate, changed, flipped


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
        JudgecalError: the provider cannot be reached, or refused the key.
    """
    path, where = Path(lock), find_workspace(None if workspace is None else Path(workspace))
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
