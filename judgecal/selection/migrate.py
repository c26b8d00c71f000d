"""`migrate`: may another judge take the locked one's place, and what would change on production answers?"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.engine import Budget, Journal, require_prices
from judgecal.errors import InputError
from judgecal.experiment import (
    Column,
    CostEstimate,
    Experiment,
    GoldSummary,
    Judgements,
    Look,
    RunOptions,
    Table,
    asked_items,
    check_judge,
    foresee_look,
    full_name,
    gold_config,
    judge_config,
    look_at_test,
    models_of,
    open_experiment,
    open_journal,
    plan_calls,
    plan_experiment,
    require_keys,
    run_line,
    run_trials,
    scale_notes,
    stored_rows,
    summary_of_gold,
    together,
)
from judgecal.goldset import GoldSet
from judgecal.judges import Judge, JudgeName, judge_named
from judgecal.models import load_catalogue
from judgecal.records import RETRIED_ON_RESUME, Estimate, Item, Result
from judgecal.scale import Label
from judgecal.selection.churn import ChurnResult, Recent, churn_between
from judgecal.selection.confirm import NOISE_CALLS, calibrate, lock_judge
from judgecal.selection.gate_rule import GateDecision, loss_of
from judgecal.selection.lock import Lock, LockedJudge, reply_fingerprint, write_lock
from judgecal.selection.production import input_config
from judgecal.selection.row_items import RowItems
from judgecal.signatures import list_signatures
from judgecal.stats import PairedDifference, compare_paired
from judgecal.stats.metrics import metric_facts
from judgecal.workspace import Workspace


def judge_to(to: str, lock: Lock, workspace: Workspace) -> Judge:
    """The judge that `--to` names, as the workspace has it now.

    A model alone keeps the locked signature, and its compiled program; a signature alone keeps the model.

    Raises:
        InputError: it is neither, or both; or the workspace's signature is not the locked one, which a new model
            alone is to be tried with.
    """
    whole = JudgeName.read(to)
    if whole is not None:
        return judge_named(whole, workspace=workspace)
    old, locked = JudgeName.parse(lock.judge), lock.signature
    if locked is None:
        raise InputError(f"--to {to}: {lock.judge} has no prompt whose model could be another: name a whole judge")
    is_signature = to in list_signatures(workspace)
    try:
        load_catalogue(workspace).resolve(to)
    except InputError as error:
        if is_signature:
            return judge_named(JudgeName(to, old.model), workspace=workspace)
        raise InputError(
            f"--to {to}: no signature of the workspace ({', '.join(list_signatures(workspace))}), and {error}"
        ) from None
    if is_signature:
        raise InputError(f"--to {to}: a signature and a model have this name: write signature@model")
    judge = judge_named(JudgeName(old.signature, to, old.program), workspace=workspace)
    if judge.signature is None or judge.signature.fingerprint != locked.fingerprint:
        raise InputError(
            f"--to {to}: signature {old.signature} has changed since it was locked: bring it back to try another model "
            f"alone, or write {old.signature}@{to} to try both"
        )
    return judge


@dataclass(frozen=True, slots=True)
class OldAndNew:
    """Two judges on the same items, by the lock's metric: new less old, and the value of either."""

    difference: Estimate
    old_value: float | None
    new_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateResult(Result):
    """What a migration comes to."""

    experiment: str
    lock: str
    old: str
    new: str
    decision: GateDecision  # pass where the new judge is shown to lose less than the margin on test
    why: str
    more_questions: int | None  # about how many more questions would tell; None where it is told, or none would
    metric: str
    margin: float
    difference: Estimate  # on test, an unscored item counted as wrong
    old_value: float | None
    new_value: float | None
    all_items: OldAndNew  # the same on all items, which chose the old judge and so flatter it
    churn: ChurnResult | None  # what changes on production answers; None where no table was given
    new_lock: str | None  # where the new lock went, or why there is none
    new_lock_reason: str | None
    n_unscored: int  # of all calls
    gold: GoldSummary
    test_looks: int  # decisions so far, what this one is in words, and whether test had served before
    test_look: str
    reused: bool
    n_called_again: int  # items that the lock holds no verdict of, for which the old judge was called
    notes: tuple[str, ...]
    run_line: str


@dataclass(frozen=True)
class MigrateRun:
    """Everything that `migrate` needs."""

    workspace: Workspace
    lock: Lock
    lock_path: Path
    gold: GoldSet
    old: Judge
    new: Judge
    margin: float  # the loss that is allowed, in units of the lock's metric
    options: RunOptions  # how it is run; the limit is one of items, and of rows
    seed: int = 0
    recent: Recent | None = None  # production answers to measure the churn on, or None
    output: Path | None = None  # where the new lock goes, or None
    out: str | None = None  # the slug of the experiment, or None for the usual one

    @cached_property
    def experiment(self) -> Experiment:
        """Where calls and result go."""
        on = self.recent
        config = {
            "command": "migrate",
            "gold": gold_config(self.gold),
            "lock": self.lock.sha256,
            "judges": [judge_config(self.old), judge_config(self.new)],
            "margin": self.margin,
            "on": None if on is None else input_config(self.workspace, on.source, on.reader),
            "seed": self.seed,
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The labelled items that neither judge was trained on."""
        trained = self.old.trained_on | self.new.trained_on
        return asked_items(self.gold, "all", limit=self.options.limit, without_groups=trained)

    @cached_property
    def test_items(self) -> tuple[Item, ...]:
        """Those of test: they alone decide, for train and dev chose the locked judge."""
        return tuple(item for item in self.items if self.gold.split_of(item.group) == "test")

    @property
    def missing(self) -> tuple[Item, ...]:
        """The items that the lock holds no verdict of."""
        return tuple(item for item in self.items if item.item_id not in self.lock.verdicts)

    def check(self) -> None:
        """Refuse what cannot be done before anything is called or logged.

        Raises:
            InputError: the gold set is not that of the lock, the new judge is the locked one or does not fit the
                set, the margin is none, or there is no item of test.
        """
        self.lock.require_gold(self.gold)
        problems = [] if self.margin > 0.0 else [f"--margin must be above 0, found {self.margin:g}"]
        if self.new.fingerprint == self.old.fingerprint:
            problems.append(f"--to names {self.new.name}, which is the locked judge itself")
        if not self.test_items:
            problems.append(f"no item of test among the {len(self.items)} items: nothing can be decided")
        if self.output is not None and (self.output.is_dir() or not self.output.parent.is_dir()):
            problems.append(f"--output {self.output}: name a file in a folder that is there")
        if problems:
            raise InputError(problems)
        check_judge(self.gold, self.new)
        require_prices(models_of([self.old, self.new]), self.options.budget_usd)
        self.new.check_items(self.items)
        self.old.check_items(self.missing)
        if self.recent is not None:
            self.recent.reader.check(self.recent.source)
        if self.output is not None:
            LockedJudge.of(self.new, self.workspace)

    def preview(self) -> CostEstimate:
        """What a run would call; nothing is written."""
        self.check()
        journal = stored_rows(self.experiment.journal, long=True)
        plans = [plan_calls([judge], items, journal, self.options) for judge, items in self._calls()]
        if self.output is not None:
            again = dataclasses.replace(self.options, repeats=NOISE_CALLS)
            plans.append(plan_calls([self.new], self.items, Journal(None), again))
        return together(plans)

    def _calls(self) -> list[tuple[Judge, Sequence[Item] | RowItems]]:
        """Who is called for what."""
        calls: list[tuple[Judge, Sequence[Item] | RowItems]] = [(self.old, self.missing), (self.new, self.items)]
        if self.recent is not None:
            rows = RowItems(self.recent.source, self.recent.reader, self.options.limit)
            calls += [(self.old, rows), (self.new, rows)]
        return calls

    def run(self) -> MigrateResult:
        """Call whoever is due, decide on test, and lock the new judge where that was asked for.

        Raises InputError: as `check`; or a key is not set and a call is due.
        """
        self.check()
        stored = stored_rows(self.experiment.journal, long=True)
        for judge, items in self._calls():
            require_keys([judge], items, stored, self.options)
        open_experiment(self.experiment)
        budget = Budget(self.options.budget_usd)
        with open_journal(self.experiment.journal, self.options, long=True) as journal:
            shared: dict[str, Any] = {"journal": journal, "options": self.options, "budget": budget}
            called = run_trials([self.old], self.missing, **shared)
            rows = run_trials([self.new], self.items, **shared)
            churn = None
            if self.recent is not None:
                churn = churn_between(self.old, self.new, self.recent, gold=self.lock.gold, **shared)
        look = self._look()
        result = self._result(called, rows, churn, look=look)
        lost = sum(row.error is not None and row.error.kind in RETRIED_ON_RESUME for row in (*called, *rows))
        if lost:  # they count as wrong, and that is not the judge's doing
            why = f"{lost} calls were lost on the wire or for want of budget: the same command makes them again"
            result = dataclasses.replace(
                result, decision="inconclusive", why=why, more_questions=None, new_lock_reason=why
            )
        elif self.output is not None and result.decision == "fail":
            why = "no lock is written of a judge that is shown to lose more than the margin"
            result = dataclasses.replace(result, new_lock_reason=why)
        elif self.output is not None:
            self._lock_new(self.output, rows, look, budget)
            result = dataclasses.replace(result, new_lock=str(self.output))
        self.experiment.write_summary(result)
        return result

    def _look(self) -> Look:
        return look_at_test(**self._seen(), experiment=self.experiment.slug, kind="decision")

    def foresee(self) -> Look:
        """Which decision on test labels a run would take."""
        return foresee_look(**self._seen())

    def _seen(self) -> dict[str, Any]:
        """What makes the look: the same two judges by the same metric on the same items are the same one."""
        return {
            "experiments": self.workspace.experiments,
            "gold": self.gold,
            "items": self.test_items,
            "by": f"migrate by {self.lock.metric}",
            "judges": [reply_fingerprint(self.old), reply_fingerprint(self.new)],
        }

    def _paired(
        self, items: Sequence[Item], old: Mapping[str, Label | None], rows: Judgements, *, level: float
    ) -> PairedDifference:
        """New less old on some items, an unscored one counted as the verdict farthest from its label.

        By macro_agreement each goes through its own map: the lock's, and one that is fitted on train and dev.
        """
        new: dict[str, Label | None] = {row.item_id: row.verdict for row in rows}
        then, scales = dict(old), (self.new.scale, self.old.scale)
        theirs, ours = self.lock.calibration, calibrate(Table(self.gold, self.items), Column.of(self.new, rows))
        if metric_facts(self.lock.metric).calibrated and theirs and ours:
            new = {one: ours.apply(verdict) for one, verdict in new.items()}
            then = {one: theirs.apply(verdict) for one, verdict in then.items()}
            scales = (self.gold.scale, self.gold.scale)
        return compare_paired(
            [self.gold.labels[item.item_id] for item in items],
            [new[item.item_id] for item in items],
            [then[item.item_id] for item in items],
            scale=self.gold.scale,
            a_scale=scales[0],
            b_scale=scales[1],
            metric=self.lock.metric,
            groups=[item.group for item in items],
            level=level,
            seed=self.seed,
        )

    def _result(self, called: Judgements, rows: Judgements, churn: ChurnResult | None, *, look: Look) -> MigrateResult:
        """The decision, before any lock is written."""
        old = {row.item_id: row.verdict for row in called}
        old |= {item.item_id: self.lock.verdicts[item.item_id] for item in self.items if item.item_id not in old}
        test = self._paired(self.test_items, old, rows, level=look.level)
        everywhere = self._paired(self.items, old, rows, level=look.level)
        loss = loss_of(test.difference, metric=self.lock.metric, margin=self.margin)
        table = self._table(look, self.test_items)
        extra = {"lock": self.lock.sha256[:12], "metric": self.lock.metric, "margin": self.margin}
        in_production = 0 if churn is None else churn.n_unscored.old + churn.n_unscored.new + churn.n_lacking
        return MigrateResult(
            experiment=self.experiment.slug,
            lock=str(self.lock_path),
            old=self.old.name,
            new=self.new.name,
            decision=loss.decision,
            why=loss.why,
            more_questions=loss.more_questions,
            metric=self.lock.metric,
            margin=self.margin,
            difference=test.difference,
            old_value=test.b,
            new_value=test.a,
            all_items=OldAndNew(everywhere.difference, everywhere.b, everywhere.a),
            churn=churn,
            new_lock=None,
            new_lock_reason=None,
            n_unscored=len(rows.unscored) + len(called.unscored) + in_production,
            gold=summary_of_gold(table, "test"),
            test_looks=look.number,
            test_look=look.sentence(self.gold.name),
            reused=look.reused,
            n_called_again=len(self.missing),
            notes=tuple(scale_notes(self.gold.scale, [Column.of(self.new, rows)])),
            run_line=run_line(table, "test", [full_name(self.old), full_name(self.new)], extra),
        )

    def _lock_new(self, path: Path, rows: Judgements, look: Look, budget: Budget) -> None:
        """Measure the new judge's noise, and write its lock."""
        test, column = self._table(look, self.test_items), Column.of(self.new, rows)
        lock, _ = lock_judge(
            self.new,
            rows,
            test,
            agreement=test.agreements(column)["as_wrong"],
            metric=self.lock.metric,
            margin=self.margin,
            folder=self.experiment.folder,
            options=self.options,
            budget=budget,
            workspace=self.workspace,
        )
        write_lock(path, lock)

    def _table(self, look: Look, items: tuple[Item, ...]) -> Table:
        return Table(self.gold, items, 1, self.seed, look.level)
