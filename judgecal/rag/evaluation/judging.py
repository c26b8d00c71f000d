"""Answers as items, judged by a suite, by locks and by local judges; and what the verdicts come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.engine import Budget, Journal
from judgecal.errors import InputError, refuse, unknown_name
from judgecal.experiment import (
    CostEstimate,
    Due,
    ReadRow,
    RunOptions,
    item_scale,
    judge_config,
    judge_to_journal,
    judgement_of,
    plan_trials,
    require_keys,
)
from judgecal.judges import Judge, JudgeName, Respondent, lacking_inputs
from judgecal.judges.suite import Suite, SuiteJudge, load_suite
from judgecal.production.suite import LoadedJudge, SuiteColumn, load_columns, survey
from judgecal.rag.answering.questions import Question, refuses
from judgecal.rag.evaluation.config import JudgesTable
from judgecal.rag.evaluation.measured import ANSWERED, CORRECTNESS, Measured, Verdicts, mean_of
from judgecal.rag.evaluation.result import CorrectedSystem, MeasuredBy
from judgecal.rag.evaluation.summary import LEVEL
from judgecal.rag.evaluation.system import SystemAnswer
from judgecal.records import Estimate, Item
from judgecal.scale import Label, Scale
from judgecal.selection.pass_rates import chance
from judgecal.stats.error_rates import carried_rate
from judgecal.stats.intervals import mean_estimate
from judgecal.workspace import Workspace

_FROM_CONTEXTS = ("context", "contexts", "chunk")
"""What an answer may bring, so that no question lacks it."""


Judged = Mapping[str, Mapping[str, Verdicts]]
"""Answer, by the id of its item -> column -> verdicts."""


@dataclass(frozen=True)
class Panel:
    """Who judges the answers."""

    suite: str
    measures: tuple[SuiteColumn, ...]  # `correctness` among them
    repeats: int  # of judges that call a model
    label: str = ""  # what progress shows instead of the suite's name

    @property
    def members(self) -> tuple[LoadedJudge, ...]:
        """Every judge."""
        return tuple(judge for column in self.measures for judge in column.judges)

    @cached_property
    def _correctness(self) -> SuiteColumn:
        return next(column for column in self.measures if column.name == CORRECTNESS)

    @property
    def correctness_by(self) -> LoadedJudge:
        """The first judge of correctness."""
        return self._correctness.judges[0]

    @property
    def right_at(self) -> float | None:
        """The people's pass mark of a locked judge of correctness as a share, 0..1; None where there is
        none.
        """
        judge = self.correctness_by
        if judge.lock is None or judge.rule.mark is None:
            return None
        return _share(judge.rule.mark, judge.rule.common)

    def config(self) -> list[dict[str, Any]]:
        """What a configuration says of the judges; more repeats extend a run."""
        return [
            {"column": column.name, **judge_config(judge.judge)}
            for column in self.measures
            for judge in column.judges
        ]

    def repeats_of(self, judge: Respondent) -> int:
        """How often it judges an answer: one that calls nobody says the same again."""
        return 1 if judge.model is None or judge.model.embedded else self.repeats

    def measured_by(self) -> tuple[MeasuredBy, ...]:
        """Who fills which column."""
        measured = []
        for column in self.measures:
            for judge in column.judges:
                lock, agreement = judge.lock, None
                if lock is not None:
                    agreement = lock.calibrated.get(lock.metric) or lock.agreement.get(lock.metric)
                mapped = lock is not None and lock.calibration is not None
                measured.append(MeasuredBy(column.name, judge.judge.name, judge.lock_path, agreement, mapped))
        return tuple(measured)

    def lacking(self, questions: Sequence[Question]) -> list[str]:
        """Questions whose answers the judge of correctness could not judge, as problems."""
        judge, why = self.correctness_by.judge, dict[str, list[str]]()
        for question in questions:
            probe = ReadRow(SystemAnswer("any", question.group, "An answer.").item(question))
            absent = [name for name in lacking_inputs(judge.inputs, probe.item) if name not in _FROM_CONTEXTS]
            if absent and self._correctness.judge_of(probe)[1] is not None:
                why.setdefault(", ".join(absent), []).append(question.group)
        return [
            f"{judge.name} judges correctness by {names}, and {len(groups)} of {len(questions)} questions "
            "have none: give each of them one, or leave them out"
            for names, groups in why.items()
        ]

    def trained_notes(self, questions: Sequence[Question]) -> list[str]:
        """Of each judge that was trained on some of these questions, that its verdicts on them may be too
        good.
        """
        seen = {
            judge.judge.name: sum(question.group in judge.judge.trained_on for question in questions)
            for judge in self.members
        }
        return [
            f"{name} was trained on {n} of these {len(questions)} questions: there it may judge better than "
            "elsewhere"
            for name, n in seen.items()
            if n
        ]

    def _trials(
        self, columns: Sequence[SuiteColumn], rows: Sequence[ReadRow], journal: Journal, options: RunOptions
    ) -> list[Due]:
        """What the judges of some columns are asked, each as often as it says anything new."""
        return [
            Due(
                trial.judge,
                trial.items,
                journal,
                replace(options, repeats=self.repeats_of(trial.judge), limit=None),
            )
            for column in columns
            for trial in column.trials(rows, journal, options)
        ]

    def _running(self, rows: Sequence[ReadRow]) -> tuple[SuiteColumn, ...]:
        return survey(self.measures, rows)[0] if rows else ()

    def preview(self, rows: Sequence[ReadRow], journal: Journal, options: RunOptions) -> CostEstimate:
        """What judging these answers would call."""
        return plan_trials(self._trials(self._running(rows), rows, journal, options))

    def require_keys(self, rows: Sequence[ReadRow], journal: Journal, options: RunOptions) -> None:
        """InputError: a call is due, and the key for it is not set."""
        for trial in self._trials(self._running(rows), rows, journal, options):
            require_keys([trial.judge], trial.items, journal, trial.options)

    def judge(
        self, rows: Sequence[ReadRow], *, journal: Journal, options: RunOptions, budget: Budget
    ) -> tuple[Panel, Judged, tuple[str, ...]]:
        """Have every answer judged; what the journal holds is not called again.

        Gives the panel without the columns that no answer has anything for, what was said of each answer, and
        a note on each judge that is left out.
        """
        if not rows:
            return self, {}, ()
        running, left_out = survey(self.measures, rows)
        trials = self._trials(running, rows, journal, options)
        judge_to_journal(trials, budget=budget, label=self.label or f"suite {self.suite}")
        judged: dict[str, dict[str, Verdicts]] = {}
        for row in rows:
            verdicts = judged[row.item.item_id] = {}
            for column in running:
                judge, lacking = column.judge_of(row)
                if lacking is None:
                    verdicts[column.name] = self._verdicts(journal, judge, row.shown(judge.judge))
        able = {CORRECTNESS, ANSWERED, *(column.name for column in running)}
        panel = replace(self, measures=tuple(column for column in self.measures if column.name in able))
        return panel, judged, tuple(f"{judge.name} is left out: {judge.why}" for judge in left_out)

    def _verdicts(self, journal: Journal, judge: LoadedJudge, item: Item) -> Verdicts:
        repeats = range(self.repeats_of(judge.judge))
        rows = tuple(judgement_of(journal, judge.judge, item, repeat=repeat) for repeat in repeats)
        failed = next((row for row in rows if row.verdict is None), None)
        error = None
        if failed is not None:
            error = f"{failed.error.kind}: {failed.error.message}" if failed.error else "parse: no verdict"
        raw = tuple(_share(row.verdict, item_scale(judge.judge)) for row in rows)
        shares = raw
        if judge.lock is not None and (to_people := judge.lock.calibration) is not None:
            shares = tuple(_share(to_people.apply(row.verdict), judge.rule.people) for row in rows)
        return Verdicts(shares, raw, error, tuple(judge.rule.passes(row.verdict) for row in rows), rows)

    def measured(self, question: Question, given: SystemAnswer, verdicts: Mapping[str, Verdicts]) -> Measured:
        """An answer with what was said of it."""
        names = [column.name for column in self.measures]
        values = {name: verdicts[name].share if name in verdicts else None for name in names}
        answered: bool | None = None
        if given.answer is not None:
            share = values[ANSWERED] if ANSWERED in values else float(not refuses(given.answer))
            answered = None if share is None else share >= 0.5
        return Measured(
            system=given.system,
            question=question.group,
            documents=question.reference_documents,
            answerable=question.answerable,
            given=given,
            answered=answered,
            correctness=values[CORRECTNESS],
            measures=values,
            n_unscored=sum(column.n_unscored for column in verdicts.values()),
            verdicts=verdicts,
        )


def _share(label: Label | None, scale: Scale) -> float | None:
    """A label's place on its scale, 0..1; None of none."""
    return None if label is None else (float(label) - scale.low) / scale.span


def corrected_systems(panel: Panel, measured: Sequence[Measured]) -> tuple[CorrectedSystem, ...]:
    """Each system's share of right answers, with the error rates of the lock carried over (Rogan-Gladen).

    None where correctness is judged by no lock with a pass mark.
    """
    judge = panel.correctness_by
    if judge.lock is None or judge.rule.mark is None:
        return ()
    warning = chance(judge.rule.people, judge.lock.applied)
    unknown = Estimate(None, reason="the lock does not know its judge's error rates")
    sensitivity, specificity = (rate or unknown for rate in judge.rule.class_rates(judge.lock.applied))
    passed: dict[str, dict[str, float | None]] = {}
    for answer in measured:
        verdicts = answer.verdicts.get(CORRECTNESS)
        marks = () if verdicts is None else verdicts.passed
        passed.setdefault(answer.system, {})[answer.question] = mean_of(
            [None if mark is None else float(mark) for mark in marks]
        )
    systems = []
    for system, shares in passed.items():
        known = {question: share for question, share in shares.items() if share is not None}
        raw = mean_estimate(list(known.values()), list(known), low=0.0, high=1.0, level=LEVEL)
        raw = replace(raw, n_expected=len(shares), n_unscored=len(shares) - len(known))
        if warning is not None:
            systems.append(CorrectedSystem(system, CORRECTNESS, raw, None, None, warning))
            continue
        rate = carried_rate(raw, sensitivity, specificity, level=LEVEL).estimate
        corrected, method = (None, None) if rate.value is None else (rate, "Rogan-Gladen")
        systems.append(CorrectedSystem(system, CORRECTNESS, raw, corrected, method, rate.reason))
    return tuple(systems)


def panel_of(judge: Judge) -> Panel:
    """A judge that alone rates how right an answer is, once, by its raw verdicts."""
    column = SuiteColumn(CORRECTNESS, "rating", (LoadedJudge.unlocked(CORRECTNESS, judge),))
    return Panel(judge.name, (column,), 1, label=f"rating by {judge.name}")


def read_panel(table: JudgesTable, folder: Path, workspace: Workspace) -> Panel:
    """The judges of a configuration; paths of locks and of a suite are taken from its `folder`."""
    name = str(folder / table.suite) if table.suite.endswith(".toml") else table.suite
    suite = load_suite(name, workspace=workspace)
    names = [judge.name for judge in suite.judges]
    problems = [
        str(unknown_name("column to lock in the suite", column, names))
        for column in table.locks
        if column not in names
    ]
    judges = [
        replace(judge, judge=None, lock=folder / table.locks[judge.name])
        if judge.name in table.locks
        else judge
        for judge in suite.judges
    ]
    for local in dict.fromkeys(table.local):  # further judges by their strings, each once
        try:
            kind = JudgeName.parse(local).kind
        except InputError as error:
            problems += [f"local: {problem}" for problem in error.problems]
            continue
        if kind == "prompt":
            problems.append(f"local: {local} calls a model: put it into a suite")
        elif local in names:
            problems.append(f"local: {local} is a column of the suite: leave it out here")
        else:
            judges.append(SuiteJudge(local, judge=local, column=local))
    refuse([f"judges: {problem}" for problem in problems])
    columns = load_columns(
        Suite(suite.name, tuple(judges)), workspace, model=table.model, trust_lock=table.trust_lock
    )
    names = [column.name for column in columns]
    if CORRECTNESS not in names:
        problems.append(
            f"suite {suite.name} has no judge that is called {CORRECTNESS}, which says how right an answer "
            f"is: its judges are {', '.join(names)}: name one so in the suite's file"
        )
    problems += [
        f"{judge.judge.name} gives words, of which there is no mean: leave it out"
        for column in columns
        for judge in column.judges
        if not judge.judge.scale.numeric
    ]
    refuse([f"judges: {problem}" for problem in problems])
    return Panel(suite.name, columns, table.repeats)
