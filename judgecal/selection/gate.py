"""`gate`: the locked judge again on the items that it was locked with, held against its locked verdicts."""

from __future__ import annotations

import datetime
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from judgecal.engine.budget import Budget, CostEstimate, require_prices
from judgecal.engine.log import Journal
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError, JudgecalError
from judgecal.experiment.agreement import GoldSummary, refuse_unequal, verdict_notes
from judgecal.experiment.agreement_table import AgreementTable, Verdicts, as_lists
from judgecal.experiment.folder import Experiment, open_experiment, plan_experiment
from judgecal.experiment.judgements import item_scale, whole_items
from judgecal.experiment.looks import look_at_test, looks_so_far
from judgecal.experiment.score import full_name, gold_config, run_line, summary_of_gold
from judgecal.experiment.stored import Unread, unread_judge
from judgecal.experiment.trials import (
    ExperimentJournal,
    models_of,
    plan_calls,
    require_keys,
    run_trials,
    stored_rows,
)
from judgecal.goldset import GoldSet, load_gold
from judgecal.judges.protocol import Judge
from judgecal.probes.family import Probe
from judgecal.probes.result import Footing, ProbesNow, ProbeVerdicts, probes_now, remake_probes
from judgecal.records import RETRIED_ON_RESUME, Estimate, Item, Judgement, Result
from judgecal.selection.lock import Lock, load_lock, model_ids
from judgecal.selection.pass_rates import PassRule, flip_rate
from judgecal.selection.rules import GateDecision, GateRule, GateState, LockedAndCurrent
from judgecal.stats import Calibration, metric_named
from judgecal.stats.drift import DriftTest
from judgecal.workspace import Workspace, find_workspace, shown

MOST_PASSES = 3
"""Passes over the items; a further one only where those before it cannot tell."""

_MOST_LOST = 0.05  # share of a pass's calls
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class UnscoredShares:
    """The share of judgements without a verdict of the locked judge, and now or of the new one; 0..1."""

    locked: float
    now: float


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
    # share of pairs of a locked call and one of now on other sides of the lock's cut, or in other classes:
    # the mean over the items; without a value where the scale has no mark
    flip_rate: Estimate
    odd_one_out: DriftTest | None  # whether another judge answers; None with fewer than three calls
    noise: Estimate  # flips of two calls at lock time
    locked: Mapping[str, Estimate]  # METRIC -> Estimate, an unscored item counted as wrong
    now: Mapping[str, Estimate]
    locked_calibrated: Mapping[str, Estimate]  # the same through the lock's map where it decides; else empty
    now_calibrated: Mapping[str, Estimate]
    # now - locked in the metric, through the lock's calibration map where it has one; the same without
    # unscored items
    difference: Estimate
    complete_case: Estimate
    loss_below: float | None  # the loss stays below, one-sided at the level; None: nothing can be decided
    smallest_detectable: float | None  # None where there is no interval
    model_changed: bool  # whether another model answered than the locked one
    locked_model: str | None  # its dated id; None where the lock names none
    models: tuple[str, ...]  # the dated ids that answered now, the most frequent first
    repeats: int  # passes that count
    usd: float | None  # of all calls; None where some model has no price
    unscored: UnscoredShares
    unscored_kinds: Mapping[str, int]  # kind of failure -> judgements of now without a verdict
    gold: GoldSummary
    test_looks: int  # decisions taken on the set's test labels so far
    notes: tuple[str, ...]
    run_line: str
    unread: Unread | None = None  # why, where no call of now has a verdict
    probes: tuple[ProbesNow, ...] = ()  # those of the lock, where they were asked for


@dataclass(frozen=True)
class Gate:
    """Everything that a gate needs."""

    workspace: Workspace  # where the alias, the gold set and the experiments are
    lock: Lock
    path: Path
    gold: GoldSet  # what it names; the judge is made from the lock alone
    judge: Judge
    rule: GateRule
    options: RunOptions  # how to call; the budget is for all passes
    seed: int
    experiment: Experiment
    probes: Mapping[str, Sequence[Probe]] = field(default_factory=dict)  # by family; empty unless asked for

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The labelled items with a locked verdict, in file order; refused where the gold set lacks one."""
        labelled = {item.item_id: item for item in self.gold.items if item.item_id in self.gold.labels}
        lacking = sorted(self.lock.verdicts.keys() - labelled.keys())
        if lacking or not self.lock.verdicts:
            what = f"holds verdicts on {', '.join(lacking[:3])}, which {self.gold.name} has no label of"
            raise InputError(
                f"{self.path}: the lock {what if lacking else 'holds no verdict'}: run judgecal select again"
            )
        return tuple(item for item_id, item in labelled.items() if item_id in self.lock.verdicts)

    @property
    def calibration(self) -> Calibration | None:
        """The map through which the loss is decided; None where the metric is of verdicts as they are.

        One that gives every verdict the same label would show no loss whatever the judge says, so it is none.
        """
        metric, _ = metric_named(self.rule.metric, self.gold.scale)
        calibration = self.lock.calibration
        return None if calibration is None or calibration.constant or not metric.calibrated else calibration

    def check(self) -> None:
        """Refuse a gate that cannot run, with every problem, before any call."""
        metric_named(self.rule.metric, self.gold.scale)
        refuse_unequal(self.gold, self.items, "gate")
        require_prices(models_of([self.judge]), self.options.budget_usd)
        self.judge.check_items(self.items)
        if (self.experiment.folder / "summary.json").exists():
            raise InputError(
                f"{self.experiment.folder}: this gate has ended, and every gate makes new calls: leave "
                "--name out or choose another name; only an interrupted gate goes on"
            )

    def preview(self) -> CostEstimate:
        """Return the CostEstimate of the first pass; nothing is written."""
        self.check()
        stored = stored_rows(self.experiment.journal)
        return plan_calls([self.judge], [*self.items, *self._probe_items], stored, self.options)

    @property
    def _probe_items(self) -> list[Item]:
        """The probes, and those of the answers that they were made of which the lock has no verdict on."""
        every = [probe for probes in self.probes.values() for probe in probes]
        item_ids = {item.item_id for item in self.items}
        originals = {probe.of.item_id: probe.of for probe in every if probe.of.item_id not in item_ids}
        return [*originals.values(), *(probe.item for probe in every)]

    def run(self) -> GateResult:
        """Make the passes, decide, log the look at test labels, and return the GateResult.

        Raises:
            JudgecalError: the provider cannot be reached, or refused the key.
        """
        self.check()
        require_keys([self.judge], self.items, stored_rows(self.experiment.journal), self.options)
        open_experiment(self.experiment)
        with ExperimentJournal(self.experiment, [self.judge], self.options) as journal:
            budget = Budget(self.options.budget_usd)
            passes = Passes(self.judge, self.items, journal, self.options, budget)
            state = self._decide(passes)
            probes, lost = self._probed(passes) if passes.n and self.probes else ((), 0)
        if easier := [probe.family for probe in probes if probe.easier]:
            why = f"it breaks on more probes than when it was locked: {', '.join(easier)}; {state.why}"
            state = replace(state, decision="fail", why=why)
        elif lost and state.decision == "pass":
            why = f"{lost} calls for probes were lost (connection or budget); {state.why}"
            state = replace(state, decision="inconclusive", why=why)
        result = replace(_result(self, passes, state), probes=probes)
        if passes.n:  # without a whole pass the gate has not ended: it goes on with --name
            self.experiment.write_summary(result)
        return result

    def _probed(self, passes: Passes) -> tuple[tuple[ProbesNow, ...], int]:
        """The lock's probes on the judge of now, called once each, and how many calls were lost."""
        once, label = replace(self.options, repeats=1, use_cache=False), f"{self.judge.name}, probes"
        run_options: dict[str, Any] = {"options": once, "budget": passes.budget, "label": label}
        rows = run_trials([self.judge], self._probe_items, journal=passes.journal, **run_options)
        column = Verdicts.from_calls(self.judge, [*(row for row in passes.rows if row.repeat == 0), *rows])
        footing = Footing.through(self.lock.calibration, self.gold.scale, column.scale)
        verdicts = ProbeVerdicts.of(footing, column)
        now = probes_now(self.lock.probes, self.probes, verdicts, level=self.rule.level)
        return now, sum(_lost(row) or _unpaid(row) for row in rows)

    def both_times(self, passes: Passes) -> LockedAndCurrent:
        """Return LockedAndCurrent: the verdicts of the Passes given beside the gate's own locked ones."""
        column = Verdicts.from_calls(self.judge, passes.rows)
        return LockedAndCurrent(
            labels=[self.gold.labels[item.item_id] for item in self.items],
            then=[self.lock.calls_of(item.item_id) for item in self.items],
            now=as_lists(AgreementTable(self.gold, self.items, max(1, passes.n)).verdicts(column)),
            groups=[item.group for item in self.items],
            people=self.gold.scale,
            judge=item_scale(self.judge),
            calibrate=None if self.calibration is None else self.calibration.apply,
        )

    def _decide(self, passes: Passes) -> GateState:
        """Decide pass after pass, until the rule does or no further pass can be had or would tell more."""
        while passes.another():
            two = self.both_times(passes)
            last = two.settled or passes.n == MOST_PASSES
            state = self.rule.state(two, last=last)
            if last or state.decision != "inconclusive" or state.loss_below is None:
                return state  # where there is no bound, further passes give none
        state = self.rule.state(self.both_times(passes), last=True)
        if not passes.n:
            why = f"there is no whole pass to decide by: {passes.stopped}"
            return replace(state, decision="inconclusive", why=why)
        if state.decision != "inconclusive":
            return state
        return replace(state, why=f"{state.why}; {passes.stopped}")


def plan_gate(
    workspace: Workspace,
    lock: Lock,
    path: Path,
    *,
    margin: float | None = None,
    level: float = 0.95,
    budget_usd: float | None = None,
    seed: int = 0,
    out: str | None = None,
    trust_lock: bool = False,
    probes: bool = False,
) -> Gate:
    """Set up a Gate from a Workspace, a Lock and the path that it was read from; nothing is written.

    `margin` is the lock's where not given, `budget_usd` is for all passes, and `out` is its slug to go on
    with, or a name of one's own. `trust_lock` is as `Lock.runnable` has it. Everything that is not as it was
    locked is refused at once, with every option out of range.
    """
    options = RunOptions(budget_usd=budget_usd, use_cache=False)
    problems = list[str]()

    def made(make: Callable[[], _Made]) -> _Made | None:
        """None where it cannot be, with the problems added to the others."""
        try:
            return make()
        except InputError as error:
            problems.extend(error.problems)
            return None

    made(options.check)
    rule = made(lambda: GateRule(lock.metric, lock.margin if margin is None else margin, level))
    gold = made(lambda: load_gold(lock.gold.set, workspace=workspace))
    if gold is not None:
        made(lambda: lock.require_gold(gold))
    judge = made(lambda: lock.runnable(workspace, trust_lock=trust_lock))
    if probes and not lock.probes:
        ask = f"judgecal probe --judge {shlex.quote(lock.judge)} --gold {lock.gold.set}"
        problems.append(f"{path}: the lock holds no probes: run {ask}, then judgecal select again")
    if rule is None or gold is None or judge is None or problems:
        raise InputError(problems)
    again = remake_probes(lock.probes, gold, str(path)) if probes else {}
    # what the lock says of its judge, so that neither endpoint nor price is in it
    judge_config: dict[str, Any] = {"judge": lock.judge, "fingerprint": lock.fingerprint}
    if lock.signature is not None and lock.model is not None:
        judge_config["signature_fingerprint"] = lock.signature.fingerprint
        judge_config["model"] = {"id": lock.model.id, **lock.model.settings}
    config = {
        "command": "gate",
        "gold": gold_config(gold),
        "lock": lock.sha256,
        "judge": judge_config,
        "metric": rule.metric,
        "margin": rule.margin,
        "level": rule.level,
        "seed": seed,
        **({"probes": True} if probes else {}),
    }
    now = datetime.datetime.now(datetime.UTC)  # to the millisecond: two gates never share a folder
    started = f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03d}Z"
    slug = out or f"{plan_experiment(workspace, config, out=None).slug}-{started}"
    experiment = plan_experiment(workspace, config, out=slug)
    return Gate(workspace, lock, path, gold, judge, rule, options, seed, experiment, again)


@dataclass
class Passes:
    """Whole passes of a judge over items, one after the other; of the options' `repeats` nothing is read."""

    judge: Judge
    items: Sequence[Item]
    journal: Journal
    options: RunOptions
    budget: Budget
    rows: Sequence[Judgement] = ()  # of all passes that were made
    n: int = 0  # passes that count
    stopped: str | None = None  # why no further pass was begun, or is not counted; None while one may be

    def another(self) -> bool:
        """Make one more pass; return whether one could be had (`stopped` says why not).

        Raises JudgecalError: not one call of the first pass came through.
        """
        limit = self.budget.limit_usd
        costs = [sum(row.cost_usd or 0.0 for row in self.rows if row.repeat == at) for at in range(self.n)]
        # replies vary in length: a tenth more than the dearest pass must be left
        if costs and limit is not None and self.budget.spent_usd + 1.1 * max(costs) > limit:
            self.stopped = f"another pass would not fit the budget of {limit:g} USD"
        else:
            self.rows = self._made()
            latest = [row for row in self.rows if row.repeat == self.n]
            unpaid, lost = sum(map(_unpaid, self.rows)), sum(map(_lost, latest))
            if not self.n and lost == len(latest):
                first = next(row.error.message for row in latest if row.error)
                raise JudgecalError(f"{self.judge.name}: no call came through; the first said: {first}")
            if unpaid:
                share = f"{unpaid:,} of {len(self.rows):,} calls to make"
                self.stopped = f"the budget of {limit or 0.0:g} USD ended with {share}"
            elif lost > _MOST_LOST * len(latest):  # they would count as wrong: that is not the judge's doing
                self.stopped = f"{lost:,} of {len(latest):,} calls of a pass lost their connection"
            else:
                self.n += 1
        return self.stopped is None

    @property
    def counted(self) -> list[Judgement]:
        """The rows of the passes that count; those of the first one where none was whole."""
        return [row for row in self.rows if row.repeat < max(1, self.n)]

    @property
    def usd(self) -> float | None:
        """What all calls of this gate cost; None where some model has no price."""
        costs = [row.cost_usd for row in self.rows if not _unpaid(row)]
        return None if None in costs else sum(cost or 0.0 for cost in costs)

    def _made(self) -> Sequence[Judgement]:
        rows = run_trials(
            [self.judge],
            self.items,
            journal=self.journal,
            options=replace(self.options, repeats=self.n + 1, use_cache=False),
            budget=self.budget,
            label=f"{self.judge.name}, pass {self.n + 1} of at most {MOST_PASSES}",
        )
        return whole_items(rows, self.judge.scale)


def _lost(row: Judgement) -> bool:
    """Whether a call ended on the wire."""
    return row.error is not None and row.error.kind in RETRIED_ON_RESUME and not _unpaid(row)


def _unpaid(row: Judgement) -> bool:
    """Whether a call was not made for want of money."""
    return row.error is not None and row.error.kind == "budget"


def _result(gate: Gate, passes: Passes, state: GateState) -> GateResult:
    lock, rule, gold, items, judge = gate.lock, gate.rule, gate.gold, gate.items, gate.judge
    two, now = gate.both_times(passes), passes.counted
    calls = zip(two.then, two.now, strict=True)
    n_looks = looks_so_far(gate.workspace.experiments, gold)
    marked = PassRule.for_scale(lock.gold, two.judge, lock.calibration)
    notes = []
    if any(gold.split_of(item.group) == "test" for item in items):
        # not counted: a gate decides nothing on test labels
        n_looks = look_at_test(
            gate.workspace.experiments,
            gold,
            items,
            experiment=gate.experiment.slug,
            kind="gate",
            by="gate",
            judges={lock.fingerprint: lock.fingerprint},
        ).number
    if any(gold.split_of(item.group) != "test" for item in items):
        flattered = "some of the items chose the judge"
        notes.append(f"{flattered}: trust the difference, as the levels flatter it")
    table = AgreementTable(gold, items, two.passes, gate.seed, rule.level)
    column = Verdicts.from_calls(judge, now)
    before = replace(table, repeats=len(two.then[0]))
    then_rows = [
        Judgement(item.item_id, item.sha, judge.name, lock.fingerprint, repeat, verdict)
        for item, verdicts in zip(items, two.then, strict=True)
        for repeat, verdict in enumerate(verdicts)
    ]
    then = Verdicts(judge.name, two.judge, then_rows)
    locked_share, share_now = (
        sum(list(row).count(None) for row in rows) / sum(map(len, rows)) for rows in (two.then, two.now)
    )
    models = tuple(model_ids(now))
    unread = unread_judge(judge.name, now, sealed=gold.test_ids)
    again = shlex.join(["judgecal", "gate", "--lock", str(gate.path)])  # it reads no stored reply
    extra = {"lock": lock.sha256[:12], "metric": rule.metric, "margin": f"{rule.margin:g}"}
    return GateResult(
        experiment=gate.experiment.slug,
        lock=str(gate.path),
        judge=judge.name,
        locked_at=lock.locked_at,
        decision=state.decision,
        why=state.why,
        metric=rule.metric,
        margin=rule.margin,
        flip_rate=flip_rate([marked, marked], calls, two.groups, level=rule.level),
        odd_one_out=state.same_judge,
        noise=lock.noise.flip_rate,
        locked=before.agreements(then)["as_wrong"],
        now=table.agreements(column)["as_wrong"],
        locked_calibrated=before.through(gate.calibration, then),
        now_calibrated=table.through(gate.calibration, column),
        difference=state.comparison.difference,
        complete_case=state.comparison.complete_case.difference,
        loss_below=state.loss_below,
        smallest_detectable=state.comparison.smallest_detectable,
        model_changed=lock.model_id is not None and any(name != lock.model_id for name in models),
        locked_model=lock.model_id,
        models=models,
        repeats=passes.n,
        usd=passes.usd,
        unscored=UnscoredShares(locked_share, share_now),
        unscored_kinds=dict(
            Counter(row.error.kind if row.error else "parse" for row in now if row.verdict is None)
        ),
        gold=summary_of_gold(table, "all"),
        test_looks=n_looks,
        notes=(*verdict_notes(gold.scale, [column]), *notes),
        run_line=run_line(table, "all", [full_name(judge)], extra),
        unread=None if unread is None else Unread((unread,), 1, shown(gate.experiment.journal), again),
    )


def gate(
    lock: str | Path,
    *,
    margin: float | None = None,
    level: float = 0.95,
    budget_usd: float | None = None,
    seed: int = 0,
    name: str | None = None,
    trust_lock: bool = False,
    probes: bool = False,
    workspace: str | Path | None = None,
) -> GateResult:
    """Return a GateResult, given the path of a lock: has its judge drifted? Its items are judged again.

    Args:
        lock: the judge.lock.json of select.
        margin: the loss that is allowed; the lock's where not given.
        level: of the interval and of the bound on the loss.
        budget_usd: spend at most this much in all passes.
        name: slug of the experiment; of one that was interrupted, to go on with it.
        trust_lock: run the lock's own signature where the workspace has another.
        probes: repeat the lock's probes: a judge that breaks on more of them fails.
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
        seed=seed,
        out=name,
        trust_lock=trust_lock,
        probes=probes,
    )
    return planned.run()
