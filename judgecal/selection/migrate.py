"""`migrate`: may another judge take the locked one's place?"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from judgecal.engine.budget import Budget, CostEstimate, require_prices, together
from judgecal.engine.log import Journal
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError, refuse
from judgecal.experiment.agreement import GoldSummary, refuse_unequal, verdict_notes
from judgecal.experiment.agreement_table import AgreementTable, Verdicts, as_lists
from judgecal.experiment.folder import Experiment, open_experiment, plan_experiment
from judgecal.experiment.judgements import item_scale, whole_items
from judgecal.experiment.looks import Look, LookKind, foresee_look, look_at_test, verdicts_sha
from judgecal.experiment.rows import OnRows, UnlabelledRows
from judgecal.experiment.score import (
    asked_items,
    check_judge,
    full_name,
    gold_config,
    judge_config,
    run_line,
    summary_of_gold,
)
from judgecal.experiment.table_rows import JudgedItems, ReadRow, TableRows, input_config, judgement_of
from judgecal.experiment.trials import (
    Due,
    judge_to_journal,
    models_of,
    open_journal,
    plan_calls,
    require_keys,
    run_trials,
    stored_rows,
)
from judgecal.goldset import GoldSet, load_gold, split_notes
from judgecal.judges import judge_named
from judgecal.judges.protocol import Judge, JudgeName
from judgecal.records import RETRIED_ON_RESUME, Estimate, Item, Judgement, Result, as_plain
from judgecal.scale import Label, Scale
from judgecal.selection.confirm import NOISE_CALLS, Confirmed, calibrate, lock_judge, shown_above_floor
from judgecal.selection.gate import UnscoredShares
from judgecal.selection.lock import (
    Lock,
    LockedJudge,
    load_lock,
    lock_problems,
    model_ids,
    reply_fingerprint,
    write_lock,
)
from judgecal.selection.pass_rates import PassRule, at_chance, flip_rate
from judgecal.selection.rules import GateDecision, MigrationDecision, MigrationItems, migration, undecided
from judgecal.stats import Calibration
from judgecal.stats.disagreement import by_rows
from judgecal.stats.metrics import metric_facts
from judgecal.workspace import Workspace, find_workspace

DecidedBy = Literal["rows", "labels", "gold"]
_SEALED = "the rows decide: no look at test was taken"


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
    # pass where the new judge is shown to lose less than the margin on `all_items`, and test bears that out;
    # fail where test shows that it loses more, or where it tells right from wrong no better than a coin
    decision: GateDecision
    why: str
    metric: str
    margin: float
    difference: Estimate  # new - old on test, an unscored item counted as wrong
    loss_below: float | None  # of `all_items`: the loss stays below, one-sided at the level; None: no bound
    smallest_detectable: float | None  # None where there is no interval
    locked: Mapping[str, Estimate]  # METRIC -> Estimate on test, an unscored item counted as wrong
    now: Mapping[str, Estimate]
    flip_rate: Estimate  # share of test items that lie on different sides of the mark, or differ in words
    noise: Estimate  # flips of two calls of the locked judge at lock time
    unscored: UnscoredShares  # of the test items
    model_changed: bool  # whether another model answered than the locked one
    old_value: float | None
    new_value: float | None
    # the same on all items but those that trained or chose the new judge: that they chose the old one
    # flatters that one
    all_items: OldAndNew
    new_lock: str | None  # where the new lock went, or why there is none
    new_lock_reason: str | None
    n_unscored: int  # of all calls
    gold: GoldSummary
    test_looks: int  # decisions so far, what this one is in words, and whether test had served before
    test_look: str
    reused: bool
    notes: tuple[str, ...]
    run_line: str
    # what rows without labels say (--on, --labels); what decided, and their keys of the contract
    on_rows: OnRows | None = None
    decided_by: DecidedBy = "gold"
    go_on: str | None = None  # the command that goes on where calls were lost

    @property
    def sheet_command(self) -> str | None:
        """The command of a sheet of more labels, a text; None where none would help."""
        on = self.on_rows
        if on is None or on.more is None:
            return None
        extends, to = "", "labels"
        if on.labels is not None:
            extends, to = f" --labels {on.labels}", f"{on.labels}-{on.n_labels + on.more}"
        return (
            f"judgecal gold sheet {self.experiment} --strata disagreement -n {on.more}{extends} -o {to}.csv"
        )

    def as_json(self) -> dict[str, Any]:
        """Return own fields as a dict, the contract's object, with those of the rows at its top."""
        of_rows = {} if self.on_rows is None else as_plain(self.on_rows)
        return {**Result.as_json(self), **{name: of_rows.get(name) for name in ("differ", "labels_needed")}}


def _with_rows(
    decision: MigrationDecision, on_rows: OnRows | None, *, sealed: bool
) -> tuple[MigrationDecision, DecidedBy]:
    """The decision of the gold set with that of the rows: if either fails, it fails; `sealed`: rows alone."""
    if on_rows is None or decision.decision == "fail":
        return decision, "gold"
    if sealed or on_rows.decision == "fail" or (on_rows.decision and decision.decision != "pass"):
        decided_as = on_rows.decision or "inconclusive"
        decided = replace(decision, decision=decided_as, why=on_rows.why)
        return decided, on_rows.decided_by or "labels"
    if decision.decision == "inconclusive":
        return replace(decision, why=f"{on_rows.why}; on the gold set: {decision.why}"), "gold"
    return decision, "gold"


_RowsJudged = Sequence[tuple[Item, Sequence[Judgement]]]
"""Rows with the judgements of both judges, none where a row lacks what they ask for."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One judge with its verdicts by item, on a scale."""

    judge: Judge
    scale: Scale
    verdicts: Mapping[str, Label | None]

    def on(self, items: Sequence[Item]) -> list[Label | None]:
        return [self.verdicts[item.item_id] for item in items]

    def column(self, items: Sequence[Item]) -> Verdicts:
        name, fingerprint = self.judge.name, self.judge.fingerprint
        rows = [
            Judgement(item.item_id, item.sha, name, fingerprint, 0, verdict)
            for item, verdict in zip(items, self.on(items), strict=True)
        ]
        return Verdicts(name, self.scale, rows)

    def through(self, calibration: Calibration | None, people: Scale) -> _Side:
        """The same through a map onto the people's scale; as it is without one."""
        if calibration is None:
            return self
        mapped = {item_id: calibration.apply(verdict) for item_id, verdict in self.verdicts.items()}
        return _Side(self.judge, people, mapped)


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
    recent: TableRows | None = None  # production answers without labels, or None
    output: Path | None = None  # where the new lock goes, or None
    replace: bool = False  # whether a lock that is there may be written over
    out: str | None = None  # the slug of the experiment, or None for the usual one
    labels: GoldSet | None = None  # labels of those rows, drawn where the judges differ

    @cached_property
    def experiment(self) -> Experiment:
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
        """The labelled items with a locked verdict that the new judge was not trained on."""
        limit, trained = self.options.limit, self.new.trained_on
        labelled = asked_items(self.gold, "all", limit=limit, without_groups=trained)
        return tuple(item for item in labelled if item.item_id in self.lock.verdicts)

    @cached_property
    def test_items(self) -> tuple[Item, ...]:
        """The test items: they alone can fail the new judge, for train and dev chose the locked one."""
        return tuple(item for item in self.items if self.gold.split_of(item.group) == "test")

    @cached_property
    def open_items(self) -> tuple[Item, ...]:
        """The open items that may pass the new judge; none of a compiled judge, which they chose."""
        name = JudgeName.read(self.new.name)
        if name is not None and name.program is not None:
            return ()
        return tuple(item for item in self.items if self.gold.split_of(item.group) != "test")

    def check(self) -> None:
        """Refuse what cannot be done before anything is called or logged."""
        self.lock.require_gold(self.gold)
        refuse_unequal(self.gold, self.items, "migrate")
        problems = [] if self.margin > 0.0 else [f"--margin must be above 0, found {self.margin:g}"]
        if self.new.fingerprint == self.old.fingerprint:
            problems.append(f"--to names {self.new.name}, which is the locked judge itself")
        if self.labels is not None and self.recent is None:
            problems.append("--labels are of rows: name the table that they were drawn from with --on")
        if self.labels is not None and not by_rows(self.lock.metric, self.gold.scale):
            problems.append(f"--labels: a loss in {self.lock.metric} on {self.gold.scale} has no bound")
        if not self.test_items:
            problems.append(f"none of the {len(self.items):,} items is a test item: we can decide nothing")
        if self.output is not None and not self.output.parent.is_dir():
            problems.append(f"--output {self.output}: name a file in a folder that is there")
        elif self.output is not None:
            problems += lock_problems(self.output, replace=self.replace)
        refuse(problems)
        check_judge(self.gold, self.new)
        require_prices(models_of([self.old, self.new]), self.options.budget_usd)
        self.new.check_items(self.items)
        if self.recent is not None:
            self.recent.reader.check(self.recent.source)
        if self.output is not None:
            LockedJudge.from_judge(self.new, self.workspace)

    def _recent_items(self) -> list[JudgedItems]:
        """The rows of production that the judges are called for."""
        if self.recent is None:
            return []
        return [JudgedItems(judge, self.recent, self._takes) for judge in (self.old, self.new)]

    def _takes(self, row: ReadRow) -> bool:
        """Whether a row of production has what both judges need."""
        return all(row.lacking(judge) is None for judge in (self.old, self.new))

    def _judgements(self, row: ReadRow, journal: Journal) -> list[Judgement]:
        """The judgements of both judges; none of a row that lacks what they ask for."""
        judges = (self.old, self.new) if self._takes(row) else ()
        return [judgement_of(journal, judge, row.shown(judge)) for judge in judges]

    def _calls(self) -> list[tuple[Judge, Iterable[Item]]]:
        recent = ((judged.judge, judged) for judged in self._recent_items())
        return [(self.new, self.items), *recent]

    def preview(self) -> CostEstimate:
        """Return the CostEstimate of the calls that a run would make; nothing is written."""
        self.check()
        journal = stored_rows(self.experiment.journal)
        plans = [plan_calls([judge], items, journal, self.options) for judge, items in self._calls()]
        if self.output is not None:
            again = replace(self.options, repeats=NOISE_CALLS)
            plans.append(plan_calls([self.new], self.items, Journal(None), again))
        return together(plans)

    def run(self) -> MigrateResult:
        """Call whoever is due, decide on test, lock the new judge where wanted, return the MigrateResult."""
        self.check()
        stored = stored_rows(self.experiment.journal)
        for judge, items in self._calls():
            require_keys([judge], items, stored, self.options)
        open_experiment(self.experiment)
        budget = Budget(self.options.budget_usd)
        with open_journal(self.experiment.journal, self.options) as journal:
            rows = run_trials([self.new], self.items, journal=journal, options=self.options, budget=budget)
            # each judge's map: the lock's, and one fitted on train and dev
            maps = (
                self.lock.calibration,
                calibrate(AgreementTable(self.gold, self.items), Verdicts.from_calls(self.new, rows)),
            )
            for judged in self._recent_items():
                trial = Due(judged.judge, judged, journal, self.options)
                judge_to_journal([trial], budget=budget, label=judged.judge.name)
            recent = [(row.item, self._judgements(row, journal)) for row in self.recent or ()]
        of_recent = (row for _, judgements in recent for row in judgements)
        errors = [row.error for row in (*rows, *of_recent) if row.error is not None]
        lost = sum(error.kind in RETRIED_ON_RESUME for error in errors)
        new = {row.item_id: row.verdict for row in whole_items(rows, self.new.scale)}
        sides = (
            _Side(self.old, item_scale(self.old), self.lock.verdicts),
            _Side(self.new, item_scale(self.new), new),
        )
        test = self.test_items
        judges = {
            reply_fingerprint(side.judge): verdicts_sha(self.gold, test, side.column(test).rows)
            for side in sides
        }
        # the same verdicts of two by one metric on the same items are the same look
        seen: dict[str, Any] = {
            "experiments": self.workspace.experiments,
            "gold": self.gold,
            "items": test,
            "by": f"migrate by {self.lock.metric}",
            "judges": judges,
        }
        on_rows = None
        if self.recent is not None and not lost:
            on_rows = self._on_rows(sides, maps, self.recent, recent)
        look = foresee_look(**seen)
        # rows that decide, and their labels, cost no look at test: one taken before speaks, and so does that
        # of a lock, which says how its judge does on test
        decides_on_rows = on_rows is not None and (self.labels is not None or on_rows.decision is not None)
        sealed = look.new and decides_on_rows and self.output is None
        if not sealed:
            kind: LookKind = "report" if lost else "decision"  # of lost calls nothing is decided yet
            look = look_at_test(**seen, experiment=self.experiment.slug, kind=kind)
        result = self._result(sides, maps, rows, recent, look=look, on_rows=on_rows, sealed=sealed)
        if lost:  # they count as wrong, and that is not the judge's doing
            why = f"{lost} calls were lost (connection or budget): the same command makes them again"
            result = replace(
                result,
                decision="inconclusive",
                why=why,
                new_lock_reason=why,
                go_on=self._again(self.experiment.config["on"]),
                test_look=(
                    f"test labels of {self.gold.name}: seen, but no decision taken, as calls were lost"
                ),
            )
        elif self.output is not None and result.decision != "pass":
            unproven = "a judge that is not shown to lose less than the margin"
            result = replace(result, new_lock_reason=f"no lock is written of {unproven}")
        elif self.output is not None:
            self._lock_new(self.output, rows, look, budget)
            result = replace(result, new_lock=str(self.output))
        self.experiment.write_summary(result)
        return result

    def _on_rows(
        self,
        sides: tuple[_Side, _Side],
        maps: tuple[Calibration | None, Calibration | None],
        recent: TableRows,
        rows: _RowsJudged,
    ) -> OnRows | None:
        """What the rows decide, and labels of some; None of what cannot be bounded so."""
        if not by_rows(self.lock.metric, self.gold.scale):
            return None
        open_items = tuple(item for item in self.items if self.gold.split_of(item.group) != "test")
        judged = UnlabelledRows.of(
            self.gold,
            self.lock.metric,
            (self.old.name, self.new.name),
            maps,
            (open_items, [side.on(open_items) for side in sides]),
            [(item, [row.verdict for row in judged]) for item, judged in rows if judged],
            where=recent.source.path.name,
            trained=self.old.trained_on | self.new.trained_on,
        )
        if judged is None and self.labels is not None:
            where = recent.source.path.name
            raise InputError(
                f"{where}: no row, or too few labelled questions, to decide by --labels: leave it out"
            )
        if judged is None:
            return None
        judged.write(self.experiment.folder)
        return judged.decide(margin=self.margin, **judged.at_level(self.experiment, self.labels))

    def _both(self, items: Sequence[Item], sides: tuple[_Side, _Side]) -> MigrationItems:
        labels, groups = [self.gold.labels[item.item_id] for item in items], [item.group for item in items]
        old, new = sides
        return MigrationItems(labels, groups, old.on(items), new.on(items), (old.scale, new.scale))

    def _result(
        self,
        sides: tuple[_Side, _Side],
        maps: tuple[Calibration | None, Calibration | None],
        rows: Sequence[Judgement],
        recent: _RowsJudged,
        *,
        look: Look,
        on_rows: OnRows | None,
        sealed: bool,
    ) -> MigrateResult:
        """The decision, before any lock is written; `sealed`: without a look at test."""
        lock, metric, people, test_items = self.lock, self.lock.metric, self.gold.scale, self.test_items
        table = AgreementTable(self.gold, test_items, 1, self.seed, look.level)
        mapped = sides[0].through(maps[0], people), sides[1].through(maps[1], people)
        decided, of_open = sides, sides
        if metric_facts(metric).calibrated:
            decided, of_open = mapped, self._cross_fitted(sides, mapped)
        on_open = self._both(self.open_items, of_open) if self.open_items else None
        shared: dict[str, Any] = {"people": people, "metric": metric, "level": look.level, "seed": self.seed}
        if sealed:
            decision = undecided(on_open, **shared)
        else:
            decision = migration(self._both(test_items, decided), on_open, margin=self.margin, **shared)
            blind = at_chance(people, table.agreements(mapped[1].column(test_items))["agreement"])
            if blind is not None:
                decision = replace(decision, decision="fail", why=blind)
        decision, by = _with_rows(decision, on_rows, sealed=sealed)
        test, whole = decision.test, decision.whole
        locked, now = (
            {} if sealed else table.agreements(side.column(test_items))["as_wrong"] for side in sides
        )
        of_recent = [row for _, judged in recent for row in judged]
        lacking = sum(not judged for _, judged in recent)
        rules = [
            PassRule.for_scale(lock.gold, side.scale, calibration)
            for side, calibration in zip(sides, maps, strict=True)
        ]
        of_test = [[[side.verdicts[item.item_id]] for side in sides] for item in test_items]
        extra = {"lock": lock.sha256[:12], "metric": metric, "margin": self.margin}
        return MigrateResult(
            experiment=self.experiment.slug,
            lock=str(self.lock_path),
            old=self.old.name,
            new=self.new.name,
            decision=decision.decision,
            why=decision.why,
            metric=metric,
            margin=self.margin,
            difference=test.difference,
            loss_below=decision.loss_below,
            smallest_detectable=test.smallest_detectable,
            locked=locked,
            now=now,
            flip_rate=flip_rate(rules, of_test, [item.group for item in test_items], level=look.level),
            noise=lock.noise.flip_rate,
            unscored=UnscoredShares(*(side.on(test_items).count(None) / len(test_items) for side in sides)),
            model_changed=lock.model_id is not None
            and any(name != lock.model_id for name in model_ids(rows)),
            old_value=test.b,
            new_value=test.a,
            all_items=OldAndNew(whole.difference, whole.b, whole.a),
            new_lock=None,
            new_lock_reason=None,
            n_unscored=sum(row.verdict is None for row in (*rows, *of_recent)) + lacking,
            gold=summary_of_gold(table, "test"),
            test_looks=look.number - sealed,
            test_look=_SEALED if sealed else look.sentence(self.gold.name),
            reused=look.reused and not sealed,
            notes=(
                *self._notes_on_rows(lacking, bool(recent) and on_rows is None),
                *split_notes(self.gold),
                *verdict_notes(people, [Verdicts.from_calls(self.new, rows)]),
            ),
            run_line=run_line(table, "test", [full_name(self.old), full_name(self.new)], extra),
            on_rows=on_rows,
            decided_by=by,
        )

    def _notes_on_rows(self, lacking: int, unused: bool) -> Iterator[str]:
        if lacking:
            yield f"{lacking:,} rows of --on lack what the judges ask for, and are left out"
        if unused:
            why = "too few labelled questions are open, or it has no bound row by row"
            yield f"the rows of --on say nothing of {self.lock.metric}: {why}"

    def _again(self, on: Mapping[str, str] | None) -> str:
        """The command, on the rows of a table as a configuration names it."""
        words = ["judgecal", "migrate", "--lock", str(self.lock_path), "--to", self.new.name]
        words += ["--margin", f"{self.margin:g}"] * (self.margin != self.lock.margin)
        columns = on["columns"] if on else ""
        return f"{shlex.join([*words, *(['--on', on['file']] if on else [])])} {columns}".rstrip()

    def _cross_fitted(self, sides: tuple[_Side, _Side], mapped: tuple[_Side, _Side]) -> tuple[_Side, _Side]:
        """The open items, each by maps fitted without its question: train and dev made the final ones."""
        table = AgreementTable(self.gold, self.open_items)

        def fitted(side: _Side, final: _Side) -> _Side:
            fit = None if final is side or not table.items else table.cross_fit(side.column(table.items))
            if fit is None:
                return final
            rows = zip(table.items, as_lists(fit.verdicts), strict=True)
            return _Side(final.judge, self.gold.scale, {item.item_id: row[0] for item, row in rows})

        return fitted(sides[0], mapped[0]), fitted(sides[1], mapped[1])

    def _lock_new(self, path: Path, rows: Sequence[Judgement], look: Look, budget: Budget) -> None:
        test, metric = AgreementTable(self.gold, self.test_items, 1, self.seed, look.level), self.lock.metric
        confirmed = Confirmed.from_table(look, test, Verdicts.from_calls(self.new, rows))
        lock, _ = lock_judge(
            self.new,
            confirmed,
            metric=metric,
            margin=self.margin,
            confirmed_on_test=shown_above_floor(test, confirmed.decided_by(metric), metric),
            folder=self.experiment.folder,
            options=self.options,
            budget=budget,
            workspace=self.workspace,
        )
        write_lock(path, lock)


def migrate(
    lock: str | Path,
    to: str,
    *,
    margin: float | None = None,
    output: str | Path | None = None,
    replace: bool = False,
    limit: int | None = None,
    budget_usd: float | None = None,
    seed: int = 0,
    name: str | None = None,
    trust_lock: bool = False,
    workspace: str | Path | None = None,
) -> MigrateResult:
    """Return a MigrateResult, given a lock's path and the name `to` of the judge that may replace it.

    Args:
        lock: the judge.lock.json of select.
        to: the other judge.
        margin: the loss that is allowed; the lock's where not given.
        output: where the new lock goes, if it may; `replace`: also over one that is there.
        limit: only the first so many items; the others as in `gate`.
    """
    where, path = find_workspace(None if workspace is None else Path(workspace)), Path(lock)
    locked = load_lock(path)
    options = RunOptions(limit=limit, budget_usd=budget_usd)
    options.check()
    return MigrateRun(
        where,
        locked,
        path,
        load_gold(locked.gold.set, workspace=where),
        locked.runnable(where, trust_lock=trust_lock),
        judge_named(to, workspace=where),
        margin=locked.margin if margin is None else margin,
        options=options,
        seed=seed,
        output=None if output is None else Path(output),
        replace=replace,
        out=name,
    ).run()
