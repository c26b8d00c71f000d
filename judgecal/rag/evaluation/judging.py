"""Answers as items, judged by a suite, by locks and by local judges; and what the verdicts on each come
to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.engine import Budget, Journal
from judgecal.errors import InputError, refuse, unknown_name
from judgecal.experiment import (
    CostEstimate,
    RunOptions,
    item_scale,
    judge_config,
    keep_together,
    models_of,
    plan_calls,
    require_keys,
    together,
    whole_item,
)
from judgecal.judges import Judge, JudgeName, lacking_inputs, units_of
from judgecal.judges.suite import Suite, SuiteJudge, load_suite
from judgecal.production.read_row import ReadRow
from judgecal.production.suite_columns import Measure, Member
from judgecal.production.suite_judges import measures_of, pick, survey
from judgecal.rag.answering.questions import Question, refuses
from judgecal.rag.evaluation.config import JudgesTable
from judgecal.rag.evaluation.measured import ANSWERED, CORRECTNESS, Measured, Verdicts, mean_of
from judgecal.rag.evaluation.result import CorrectedSystem, MeasuredBy
from judgecal.rag.evaluation.summary import LEVEL
from judgecal.rag.evaluation.system import SystemAnswer
from judgecal.records import Estimate, Item, Key
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
    """Who judges the answers.

    Attributes:
        suite: its name.
        measures: the columns with the judges that fill them, `correctness` among them.
        repeats: of judges that call a model.
        label: what progress shows instead of the suite's name.
    """

    suite: str
    measures: tuple[Measure, ...]
    repeats: int
    label: str = ""

    @property
    def members(self) -> tuple[Member, ...]:
        """Every judge."""
        return tuple(member for measure in self.measures for member in measure.members)

    @cached_property
    def correctness_by(self) -> Member:
        """The first judge of correctness."""
        return next(one for one in self.measures if one.name == CORRECTNESS).members[0]

    @property
    def right_at(self) -> float | None:
        """The people's pass mark of a locked judge of correctness as a share, 0..1; None where there is
        none."""
        member = self.correctness_by
        if member.lock is None or member.rule.mark is None:
            return None
        return _share(member.rule.mark, member.rule.common)

    def config(self) -> list[dict[str, Any]]:
        """What a configuration says of the judges; more repeats extend a run."""
        return [
            {"column": measure.name, **judge_config(member.judge)}
            for measure in self.measures
            for member in measure.members
        ]

    def repeats_of(self, judge: Judge) -> int:
        """How often it judges an answer: one that calls nobody says the same again."""
        return 1 if judge.model is None or judge.model.embedded else self.repeats

    def measured_by(self) -> tuple[MeasuredBy, ...]:
        """Who fills which column."""
        return tuple(_measured_by(measure, member) for measure in self.measures for member in measure.members)

    def lacking(self, questions: Sequence[Question]) -> list[str]:
        """Questions whose answers the judge of correctness could not judge, as problems."""
        measure = next(one for one in self.measures if one.name == CORRECTNESS)
        judge, why = measure.members[0].judge, dict[str, list[str]]()
        for question in questions:
            probe = ReadRow(SystemAnswer("any", question.group, "An answer.").item(question))
            absent = [name for name in lacking_inputs(judge.inputs, probe.item) if name not in _FROM_CONTEXTS]
            if absent and pick(measure, probe)[1] is not None:
                why.setdefault(", ".join(absent), []).append(question.group)
        return [
            f"{judge.name} judges correctness by {names}, and {len(groups)} of {len(questions)} questions have none: "
            "give each of them one, or leave them out"
            for names, groups in why.items()
        ]

    def trained_notes(self, questions: Sequence[Question]) -> list[str]:
        """Of each judge that was trained on some of these questions, that its verdicts on them may be too
        good."""
        seen = {
            one.judge.name: sum(q.group in one.judge.trained_on for q in questions) for one in self.members
        }
        return [
            f"{name} was trained on {n} of these {len(questions)} questions: there it may judge better than elsewhere"
            for name, n in seen.items()
            if n
        ]

    def check(self, options: RunOptions) -> None:
        """InputError: a budget meets a model without a price."""
        options.check_models(models_of([one.judge for one in self.members]))

    def _asked(
        self, rows: Sequence[ReadRow]
    ) -> tuple[list[tuple[Measure, Member, dict[str, Item]]], tuple[str, ...]]:
        """The judges that some answer has something for, with the answers as they see them, by the id of the
        answer's item; and a note on each of the others."""
        if not rows:
            return [], ("no answer came, so nothing was judged",)
        found = survey(self.measures, rows)
        items: dict[str, dict[str, Item]] = {}
        for measure in found.running:
            for row in rows:
                member, lacking = pick(measure, row)
                if lacking is None:
                    items.setdefault(member.name, {})[row.item.item_id] = row.shown(member.judge)
        asked = [
            (measure, member, items[member.name])
            for measure in found.running
            for member in measure.members
            if member.name in items
        ]
        return asked, tuple(f"{one.name} is left out: {one.why}" for one in found.left_out)

    def preview(self, rows: Sequence[ReadRow], journal: Journal, options: RunOptions) -> CostEstimate:
        """What judging these answers would call."""
        plans = [
            plan_calls([member.judge], items.values(), journal, self._options(options, member.judge))
            for _, member, items in self._asked(rows)[0]
        ]
        return together(plans)

    def require_keys(self, rows: Sequence[ReadRow], journal: Journal, options: RunOptions) -> None:
        """InputError: a call is due, and the key for it is not set."""
        for _, member, items in self._asked(rows)[0]:
            require_keys([member.judge], items.values(), journal, self._options(options, member.judge))

    def _options(self, options: RunOptions, judge: Judge) -> RunOptions:
        return replace(options, repeats=self.repeats_of(judge), limit=None)

    def judge(
        self, rows: Sequence[ReadRow], *, journal: Journal, options: RunOptions, budget: Budget
    ) -> tuple[Panel, Judged, tuple[str, ...]]:
        """Have every answer judged; what the journal holds is not called again.

        Gives the panel without the columns that no answer has anything for, what was said of each answer, and
        a note on each judge that is left out.
        """
        if not rows:
            return self, {}, ()
        asked, left_out = self._asked(rows)
        for repeats in sorted({self.repeats_of(member.judge) for _, member, _ in asked}):
            own = [
                (member.judge, list(items.values()))
                for _, member, items in asked
                if self.repeats_of(member.judge) == repeats
            ]
            how = replace(options, repeats=repeats, limit=None)
            keep_together(
                own, journal=journal, options=how, budget=budget, label=self.label or f"suite {self.suite}"
            )
        found: dict[str, dict[str, Verdicts]] = {row.item.item_id: {} for row in rows}
        for measure, member, items in asked:
            for item_id, item in items.items():
                found[item_id][measure.name] = self._verdicts(journal, member, item)
        able = {CORRECTNESS, ANSWERED, *(measure.name for measure, _, _ in asked)}
        return (
            replace(self, measures=tuple(one for one in self.measures if one.name in able)),
            found,
            left_out,
        )

    def _verdicts(self, journal: Journal, member: Member, item: Item) -> Verdicts:
        judge = member.judge
        units = [name for name, _ in units_of(judge, item)]
        rows = tuple(
            whole_item(
                [journal.latest[Key(item.item_id, item.sha, judge.fingerprint, n, unit)] for unit in units]
            )
            for n in range(self.repeats_of(judge))
        )
        failed = next((row for row in rows if row.verdict is None), None)
        error = None
        if failed is not None:
            error = f"{failed.error.kind}: {failed.error.message}" if failed.error else "parse: no verdict"
        raw = tuple(_share(row.verdict, item_scale(judge)) for row in rows)
        shares = raw
        if member.lock is not None and (to_people := member.lock.calibration) is not None:
            shares = tuple(_share(to_people.apply(row.verdict), member.rule.people) for row in rows)
        return Verdicts(shares, raw, error, tuple(member.rule.passes(row.verdict) for row in rows), rows)

    def measured(self, question: Question, given: SystemAnswer, said: Mapping[str, Verdicts]) -> Measured:
        """An answer with what was said of it."""
        values = {one.name: said[one.name].share if one.name in said else None for one in self.measures}
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
            n_unscored=sum(one.n_unscored for one in said.values()),
            verdicts=said,
        )


def _share(label: Label | None, scale: Scale) -> float | None:
    """A label's place on its scale, 0..1; None of none."""
    return None if label is None else (float(label) - scale.low) / scale.span


def _measured_by(measure: Measure, member: Member) -> MeasuredBy:
    lock = member.lock
    agreement = None if lock is None else lock.calibrated.get(lock.metric) or lock.agreement.get(lock.metric)
    mapped = lock is not None and lock.calibration is not None
    return MeasuredBy(measure.name, member.judge.name, member.lock_path, agreement, mapped)


def corrected_systems(panel: Panel, measured: Sequence[Measured]) -> tuple[CorrectedSystem, ...]:
    """Each system's share of right answers, with the error rates of the lock carried over (Rogan-Gladen).

    None where correctness is judged by no lock with a pass mark.
    """
    member = panel.correctness_by
    if member.lock is None or member.rule.mark is None:
        return ()
    warning = chance(member.rule.people, member.lock.applied)
    rates = member.rule.class_rates(member.lock.applied)
    passed: dict[str, dict[str, float | None]] = {}
    for one in measured:
        said = one.verdicts.get(CORRECTNESS)
        marks = () if said is None else said.passed
        passed.setdefault(one.system, {})[one.question] = mean_of(
            [None if mark is None else float(mark) for mark in marks]
        )
    return tuple(_corrected(name, CORRECTNESS, own, rates, warning) for name, own in passed.items())


def _corrected(
    system: str,
    column: str,
    passed: Mapping[str, float | None],
    rates: tuple[Estimate | None, Estimate | None],
    warning: str | None,
) -> CorrectedSystem:
    known = {question: value for question, value in passed.items() if value is not None}
    raw = mean_estimate(list(known.values()), list(known), low=0.0, high=1.0, level=LEVEL)
    raw = replace(raw, n_expected=len(passed), n_unscored=len(passed) - len(known))
    if warning is not None:
        return CorrectedSystem(system, column, raw, None, None, warning)
    unknown = Estimate(None, reason="the lock does not know its judge's error rates")
    found = carried_rate(raw, rates[0] or unknown, rates[1] or unknown, level=LEVEL).estimate
    if found.value is None:
        return CorrectedSystem(system, column, raw, None, None, found.reason)
    return CorrectedSystem(system, column, raw, found, "Rogan-Gladen", found.reason)


def read_panel(table: JudgesTable, folder: Path, workspace: Workspace) -> Panel:
    """The judges of a configuration.

    Args:
        folder: from where the paths of locks and of a suite are taken.

    Raises:
        InputError: the suite, a lock or a judge cannot be used, a column is not there, or gives words.
    """
    name = str(folder / table.suite) if table.suite.endswith(".toml") else table.suite
    suite = load_suite(name, workspace=workspace)
    own = {one.name: one for one in suite.judges}
    problems = [
        str(unknown_name("column to lock in the suite", one, list(own)))
        for one in table.locks
        if one not in own
    ]
    judges = [
        replace(one, judge=None, lock=folder / table.locks[one.name]) if one.name in table.locks else one
        for one in suite.judges
    ]
    judges += [SuiteJudge(one, judge=one, column=one) for one in _local(table.local, list(own), problems)]
    refuse([f"judges: {one}" for one in problems])
    measures = measures_of(
        Suite(suite.name, tuple(judges)), workspace, model=table.model, trust_lock=table.trust_lock
    )
    columns = [one.name for one in measures]
    if CORRECTNESS not in columns:
        problems.append(
            f"suite {suite.name} has no judge that is called {CORRECTNESS}, which says how right an answer is: its "
            f"judges are {', '.join(columns)}: name one so in the suite's file"
        )
    problems += [
        f"{member.judge.name} gives words, of which there is no mean: leave it out"
        for measure in measures
        for member in measure.members
        if not member.judge.scale.numeric
    ]
    refuse([f"judges: {one}" for one in problems])
    return Panel(suite.name, measures, table.repeats)


def _local(names: Sequence[str], taken: Sequence[str], problems: list[str]) -> Iterator[str]:
    """Further judges by their strings, each once; a problem for each that is none that calls nobody."""
    for name in dict.fromkeys(names):
        try:
            kind = JudgeName.parse(name).kind
        except InputError as error:
            problems += [f"local: {one}" for one in error.problems]
            continue
        if kind == "prompt":
            problems.append(f"local: {name} calls a model: put it into a suite")
        elif name in taken:
            problems.append(f"local: {name} is a column of the suite: leave it out here")
        else:
            yield name
