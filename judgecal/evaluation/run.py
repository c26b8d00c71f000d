"""`evaluate`: systems x questions x judges, from the configuration to the result."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal import __version__
from judgecal.answering.outcomes import ITEMS_FILE, LEVEL, answered_items
from judgecal.answering.questions import Question
from judgecal.engine import Budget, Journal
from judgecal.errors import InputError, refuse
from judgecal.evaluation.asked import QuestionSource, lexically_easy, read_documents, read_questions
from judgecal.evaluation.comparisons import (
    FactorCurve,
    best_of,
    compare_documents,
    compare_systems,
    factor_curves,
    values_of,
)
from judgecal.evaluation.config import ConfiguredSystem, ReadConfig, SystemMaker, read_evaluate_config
from judgecal.evaluation.judging import Judged, Panel, corrected_systems, item_of, read_panel
from judgecal.evaluation.measured import Measured
from judgecal.evaluation.question_parts import by_complexity, by_tag
from judgecal.evaluation.result import (
    AskedQuestions,
    EvaluateResult,
    FailedAnswers,
    SystemSetting,
    WorstAnswer,
    WorstQuestion,
)
from judgecal.evaluation.states import StateFiles
from judgecal.evaluation.summary import Costs, summarise, summarise_documents
from judgecal.evaluation.system import Asking, SystemAnswer
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    RunOptions,
    full_name,
    open_experiment,
    open_journal,
    plan_experiment,
    stored_rows,
    together,
)
from judgecal.goldset import Document, item_row
from judgecal.records import Context, digest
from judgecal.selection.mosaic_rows import ReadRow
from judgecal.tables import write_json_lines
from judgecal.workspace import Workspace, find_workspace

_WORST = 10
"""Questions that went worst, of which a result tells."""
_EXPECTED_CHARS = 2_000
_MOST_CHARS = 20_000
"""Characters of the contexts of an answer that is not there yet: likely ones, and for the bound of a preview."""


@dataclass(frozen=True)
class EvaluateRun:
    """Everything that `evaluate` needs; nothing is read before it is asked for.

    Attributes:
        config: the file, read.
        options: its `limit` goes before the file's.
        repeats: instead of the file's; None for those.
        costs: of wrong answers and refusals, instead of the file's; None for those.
        seed: of the comparisons.
        out: the slug of the experiment; None for the usual one.
    """

    workspace: Workspace
    config: ReadConfig
    options: RunOptions
    repeats: int | None = None
    wrong_costs: float | None = None
    refusal_costs: float | None = None
    seed: int = 0
    out: str | None = None

    @cached_property
    def source(self) -> QuestionSource:
        """The questions of the configuration."""
        return read_questions(self.config.tables.questions, self.config.folder, self.workspace)

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """Those that are asked, after the limit."""
        return self.source.asked[: self.options.limit or self.config.tables.questions.limit]

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """Those that systems search; empty where there are none."""
        path = self.config.tables.documents.path
        return self.source.documents if path is None else read_documents(self.config.folder / path)

    @cached_property
    def systems(self) -> tuple[ConfiguredSystem, ...]:
        """Every system, in the order of the configuration."""
        return SystemMaker(self.config, self.workspace, lambda: self.documents).systems()

    @cached_property
    def panel(self) -> Panel:
        """Who judges."""
        table = self.config.tables.judges
        told = table if self.repeats is None else table.model_copy(update={"repeats": self.repeats})
        return read_panel(told, self.config.folder, self.workspace)

    @property
    def costs(self) -> Costs:
        """What wrong answers and refusals take away."""
        table = self.config.tables.costs
        wrong, refusal = self.wrong_costs, self.refusal_costs
        return Costs(table.wrong if wrong is None else wrong, table.refusal if refusal is None else refusal)

    @property
    def right_at(self) -> float:
        """Correctness, 0..1, from which an answer is right: as the file says, by the lock's pass mark, or 0.5."""
        given, mark = self.config.tables.judges.right_at, self.panel.right_at
        return given if given is not None else mark if mark is not None else 0.5

    @cached_property
    def experiment(self) -> Experiment:
        """Where answers, verdicts and result go; limit, repeats, costs and pass mark are no part of it."""
        source = self.source
        config: dict[str, Any] = {
            "command": "evaluate",
            **({} if source.split is None else {"gold": {"set": source.name, "sha256": source.sha256}}),
            "suite": self.panel.suite,
            "questions": {"name": source.name, "sha256": source.sha256, "split": source.split},
            "documents": digest([[one.document_id, one.title, one.text] for one in self.documents]),
            "design": self.config.tables.design,
            "systems": [
                {"system": one.system.name, "kind": one.kind, "config": digest(one.system.config())}
                for one in self.systems
            ],
            "judges": self.panel.config(),
            "seed": self.seed,
        }
        return plan_experiment(self.workspace, config, out=self.out)

    def asking(self, one: ConfiguredSystem, budget: Budget) -> Asking:
        """How a system is asked: its folder is named by it, and by everything that decides its answers."""
        name = re.sub(r"[^A-Za-z0-9.=-]+", "_", one.system.name).strip("_.")[:60]
        told = digest([one.system.name, one.system.config()])[:8]
        # Systems are asked live: how long they take is measured.
        options = replace(self.options, repeats=1, limit=None, batch=False)
        return Asking(self.experiment.folder / "systems" / f"{name}-{told}", options, budget)

    def check(self) -> None:
        """Refuse what cannot be done before anybody is called or anything is written.

        Raises:
            InputError: lists every problem of questions, systems and judges.
        """
        problems: list[str] = []
        for part in (lambda: self.documents, lambda: self.questions, lambda: self.panel, lambda: self.systems):
            try:
                part()
            except InputError as error:
                problems += error.problems
        refuse(list(dict.fromkeys(problems)))
        refuse([*self._system_problems(), *self.panel.lacking(self.questions), *self._cost_problems()])
        self.panel.check(self.options)

    def _system_problems(self) -> Iterator[str]:
        """What keeps systems from answering; what all of a sweep have in common is said once, of their table."""
        found: dict[tuple[str, str], list[str]] = {}
        for one in self.systems:
            for problem in one.system.check(self.questions):
                found.setdefault((one.table, problem.removeprefix(f"{one.system.name}: ")), []).append(one.system.name)
        for (table, problem), names in found.items():
            yield f"{names[0] if len(names) == 1 else table}: {problem}"

    def _cost_problems(self) -> Iterator[str]:
        for option, cost in (("--wrong-costs", self.costs.wrong), ("--refusal-costs", self.costs.refusal)):
            if not 0.0 <= cost < float("inf"):
                yield f"{option} {cost:g}: give 0 or more, what such an answer takes away"

    def preview(self) -> CostEstimate:
        """What a run would call; nothing is written.

        An answer that is not there yet is taken to be its reference, with contexts of 2,000 characters; for the bound
        of the cost it and they are 20,000 characters long.
        """
        self.check()
        budget, journal = Budget(self.options.limit_usd), stored_rows(self.experiment.journal)
        asked = [one.system.preview(self.questions, self.asking(one, budget)) for one in self.systems]
        asked = [replace(one, usd_in_batches=one.usd_at_most) for one in asked]
        near = self.panel.preview(self._expected(far=False), journal, self.options)
        far = self.panel.preview(self._expected(far=True), journal, self.options)
        return together([*asked, replace(near, usd_at_most=far.usd_at_most, usd_in_batches=far.usd_in_batches)])

    def _expected(self, *, far: bool) -> list[ReadRow]:
        """Every answer as judges will see it; one that is not there yet as `preview` says."""
        folder = self.experiment.folder
        stored = answered_items(folder) if (folder / ITEMS_FILE).is_file() else ()
        given = {(item.system, item.group): item for item in stored}
        contexts = (Context("x" * (_MOST_CHARS if far else _EXPECTED_CHARS)),)
        rows = []
        for one in self.systems:
            for question in self.questions:
                text = "x" * _MOST_CHARS if far else " | ".join(question.reference_answers)
                shown = contexts if one.system.shows_contexts else None
                guess = item_of(question, SystemAnswer(one.system.name, question.group, text, shown))
                rows.append(ReadRow(given.get((one.system.name, question.group), guess)))
        return rows

    def run(self) -> EvaluateResult:
        """Ask, judge and sum up; each state's files are there when it is reached. A run that was interrupted goes on.

        Raises:
            InputError: as `check`; or a key is not set and a call is due.
        """
        self.check()
        budget = self.options.open_budget(self.experiment.folder)
        expected = self._expected(far=False)
        self.panel.require_keys(expected, stored_rows(self.experiment.journal), self.options)
        open_experiment(self.experiment)
        states = StateFiles(self.experiment.folder, self.questions, self.source.sealed)
        states.write_questions()
        answers = [
            answer for one in self.systems for answer in one.system.answer(self.questions, self.asking(one, budget))
        ]
        states.write_answers(answers)
        with open_journal(self.experiment.journal, self.options) as journal:
            measured, judged, notes = self._judge(answers, journal, budget)
        columns = [one.name for one in self.panel.measures]
        states.write_measured(measured, judged, columns)
        notes = (*self.source.notes, *self.panel.trained_notes(self.questions), *notes)
        result = _Evaluated(self, measured, judged, notes).result(budget, states)
        states.write_summary([*result.systems, *result.documents], columns)
        self.experiment.write_summary(result)
        return result

    def _judge(
        self, answers: Sequence[SystemAnswer], journal: Journal, budget: Budget
    ) -> tuple[list[Measured], Judged, tuple[str, ...]]:
        by_group = {one.group: one for one in self.questions}
        rows = [ReadRow(item_of(by_group[one.question], one)) for one in answers if one.answer is not None]
        write_json_lines(self.experiment.folder / ITEMS_FILE, (item_row(row.item) for row in rows))
        judged, notes = self.panel.judge(rows, journal=journal, options=self.options, budget=budget)
        measured = [
            self.panel.measured(by_group[one.question], one, judged.get((one.system, one.question), {}))
            for one in answers
        ]
        return measured, judged, notes


@dataclass(frozen=True)
class _Evaluated:
    """A run whose answers were judged."""

    run: EvaluateRun
    measured: Sequence[Measured]
    judged: Judged
    notes: tuple[str, ...]

    def result(self, budget: Budget, states: StateFiles) -> EvaluateResult:
        """All that they come to."""
        run, measured, seed = self.run, self.measured, self.run.seed
        how: dict[str, Any] = {"right_at": run.right_at, "costs": run.costs}
        best = best_of(values_of(measured), seed=seed)
        curves = tuple(self._curves())
        return EvaluateResult(
            experiment=run.experiment.slug,
            states=states.paths,
            questions=self._questions(),
            design=run.config.tables.design if curves else None,
            bases=tuple(one.system.name for one in run.systems if one.is_base),
            settings=tuple(
                SystemSetting(one.system.name, one.table, one.kind, one.system.settings, one.system.shows_contexts)
                for one in run.systems
            ),
            systems=summarise(measured, **how),
            documents=summarise_documents(measured, **how),
            comparisons=compare_systems(measured, seed=seed),
            document_comparisons=compare_documents(measured, seed=seed),
            not_told_apart_from_best=tuple(one.name for one in best.not_told_apart),
            best=best,
            curves=curves,
            judges=run.panel.measured_by(),
            corrected=corrected_systems(run.panel, measured, self.judged),
            by_complexity=by_complexity(measured, run.questions),
            by_tag=by_tag(measured, run.questions),
            failures=self._failures(),
            worst=tuple(self._worst()),
            costs=run.costs,
            n_unscored=sum(one.total is None or one.n_unscored > 0 for one in measured),
            usd=self._usd(budget),
            notes=self.notes,
            run_line=self._run_line(),
        )

    def _questions(self) -> AskedQuestions:
        source, asked = self.run.source, self.run.questions
        return AskedQuestions(
            source=source.name,
            sha256=source.sha256,
            n=len(asked),
            n_answerable=sum(one.answerable for one in asked),
            n_sealed=sum(one.group in source.sealed for one in asked),
            made_by=source.made_by,
            n_lexically_easy=lexically_easy(asked, self.run.documents),
        )

    def _curves(self) -> Iterator[FactorCurve]:
        """Of each table with factors, from its own systems."""
        design = self.run.config.tables.design
        tables = dict.fromkeys(one.table for one in self.run.systems if one.system.settings)
        for table in tables if design is not None else ():
            own = {one.system.name: one.system.settings for one in self.run.systems if one.table == table}
            base = next((one.system.name for one in self.run.systems if one.table == table and one.is_base), None)
            rows = [one for one in self.measured if one.system in own]
            assert design is not None
            yield from factor_curves(rows, own, table=table, design=design, base=base, seed=self.run.seed)

    def _failures(self) -> tuple[FailedAnswers, ...]:
        """By system and kind; a message may quote the question, so none of a sealed one is told."""
        found: dict[tuple[str, str], FailedAnswers] = {}
        for one in self.measured:
            if one.given.error is not None:
                key, sealed = (one.system, one.given.error.kind), one.question in self.run.source.sealed
                row = found.get(key, FailedAnswers(*key, 0, None))
                message = row.message or (None if sealed else one.given.error.message)
                found[key] = replace(row, n=row.n + 1, message=message)
        return tuple(sorted(found.values(), key=lambda row: -row.n))

    def _worst(self) -> Iterator[WorstQuestion]:
        """The lowest mean total first; a question that every system got right is none."""
        answers: dict[str, list[Measured]] = {}
        for one in self.measured:
            if one.question not in self.run.source.sealed:
                answers.setdefault(one.question, []).append(one)
        means = {group: statistics.fmean(one.total or 0.0 for one in own) for group, own in answers.items()}
        by_group = {one.group: one for one in self.run.questions}
        for group in sorted((name for name in means if means[name] < 1.0), key=lambda name: means[name])[:_WORST]:
            question = by_group[group]
            yield WorstQuestion(
                question=group,
                text=question.question,
                reference=question.reference_answers,
                documents=question.reference_documents,
                mean_total=means[group],
                answers=tuple(map(_worst_answer, answers[group])),
            )

    def _usd(self, budget: Budget) -> float | None:
        """What this run spent; None where some model that may have been called has no price."""
        models = [one.judge.model for one in self.run.panel.members if one.judge.model is not None]
        unknown = any(one.given.prompt_tokens is not None and one.given.cost_usd is None for one in self.measured)
        return None if unknown or not all(one.priced for one in models) else budget.spent_usd

    def _run_line(self) -> str:
        run, source = self.run, self.run.source
        split = f"({source.split})" if source.split else ""
        judges = ",".join(full_name(one.judge) for one in run.panel.members)
        return (
            f"questions:{source.name}@{source.sha256[:12]}{split}|n:{len(run.questions)}|systems:{len(run.systems)}|"
            f"suite:{run.panel.suite}|judges:{judges}|repeats:{run.panel.repeats}|level:{LEVEL:g}|seed:{run.seed}|"
            f"version:{__version__}"
        )


def _worst_answer(one: Measured) -> WorstAnswer:
    contexts = one.given.contexts
    retrieved = None if contexts is None else tuple(context.document_id or "?" for context in contexts)
    return WorstAnswer(one.system, one.given.answer, one.given.error, one.total, retrieved)


def evaluate(
    config: str | Path,
    *,
    limit: int | None = None,
    repeats: int | None = None,
    wrong_costs: float | None = None,
    refusal_costs: float | None = None,
    budget_usd: float | None = None,
    use_cache: bool = True,
    retry_unscored: bool = False,
    seed: int = 0,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> EvaluateResult:
    """Systems x questions x judges, as a configuration says (evaluation.config); what was asked before is not again.

    Args:
        config: the TOML file.
        limit: only so many questions, instead of the file's limit.
        repeats: judgements of each answer, instead of the file's.
        wrong_costs, refusal_costs: what such answers take away, instead of the file's costs.
        budget_usd: for this run; None for no limit.
        name: slug of the experiment.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.

    Raises:
        InputError: lists every problem of the configuration.
    """
    options = RunOptions(limit=limit, budget_usd=budget_usd, use_cache=use_cache, retry_unscored=retry_unscored)
    options.check()
    return EvaluateRun(
        workspace=find_workspace(None if workspace is None else Path(workspace)),
        config=read_evaluate_config(Path(config)),
        options=options,
        repeats=repeats,
        wrong_costs=wrong_costs,
        refusal_costs=refusal_costs,
        seed=seed,
        out=name,
    ).run()
