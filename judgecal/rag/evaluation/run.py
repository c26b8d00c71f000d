"""`evaluate`: systems x questions x judges, from the configuration to the result."""

from __future__ import annotations

import re
import shlex
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal._version import __version__
from judgecal.errors import InputError, refuse
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    RunOptions,
    full_name,
    open_experiment,
    plan_experiment,
)
from judgecal.goldset import Document
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.asked import QuestionSource, lexically_easy, read_documents, read_questions
from judgecal.rag.evaluation.comparisons import (
    FactorCurve,
    best_of,
    compare_documents,
    compare_systems,
    factor_curves,
    values_of,
)
from judgecal.rag.evaluation.config import ConfiguredSystem, ReadConfig, read_evaluate_config, systems_of
from judgecal.rag.evaluation.judging import Panel, corrected_systems, read_panel
from judgecal.rag.evaluation.measured import Measured
from judgecal.rag.evaluation.question_parts import by_complexity, by_tag
from judgecal.rag.evaluation.result import (
    AskedQuestions,
    EvaluateResult,
    FailedAnswers,
    FailedVerdicts,
    SystemSetting,
    WorstAnswer,
    WorstQuestion,
    labelled,
)
from judgecal.rag.evaluation.states import StateFiles
from judgecal.rag.evaluation.summary import LEVEL, Costs, documents_of, summarise
from judgecal.rag.evaluation.system import Setting, SystemAnswer
from judgecal.rag.evaluation.system_run import SystemRun
from judgecal.records import Context, digest
from judgecal.workspace import Workspace, find_workspace, shown

_WORST = 10  # questions that went worst, of which a result tells
_LIKELY, _MOST = 2_000, 20_000
"""Characters of the contexts of an answer that is not there yet: likely ones, and for a preview's bound."""


@dataclass(frozen=True)
class EvaluateRun:
    """What `evaluate` is to do; nothing is read before it is asked for.

    Attributes:
        options: its `limit` goes before the file's.
        repeats, wrong_costs, refusal_costs: instead of the file's; None for those.
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
    def _collection(self) -> tuple[tuple[Document, ...], tuple[str, ...]]:
        path = self.config.tables.documents.path
        return (self.source.documents, ()) if path is None else read_documents(self.config.folder / path)

    @property
    def documents(self) -> tuple[Document, ...]:
        """Those that systems search; empty where there are none."""
        return self._collection[0]

    @cached_property
    def systems(self) -> tuple[ConfiguredSystem, ...]:
        """Every system, in the order of the configuration."""
        return systems_of(self.config, self.workspace, lambda: self.documents)

    @cached_property
    def panel(self) -> Panel:
        """Who judges."""
        table = self.config.tables.judges
        wanted = table if self.repeats is None else table.model_copy(update={"repeats": self.repeats})
        return read_panel(wanted, self.config.folder, self.workspace)

    @property
    def costs(self) -> Costs:
        """What wrong answers and refusals take away."""
        table = self.config.tables.costs
        wrong, refusal = self.wrong_costs, self.refusal_costs
        return Costs(table.wrong if wrong is None else wrong, table.refusal if refusal is None else refusal)

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

    @cached_property
    def _trial(self) -> SystemRun:
        """Each system's folder is named by it, and by everything that decides its answers."""
        systems = []
        for one in self.systems:
            name = re.sub(r"[^A-Za-z0-9.=-]+", "_", one.system.name).strip("_.")[:60]
            named = f"{name}-{digest([one.system.name, one.system.config()])[:8]}"
            systems.append((one.system, self.experiment.folder / "systems" / named))
        return SystemRun(
            self.experiment, self.questions, systems, self.panel, self.options, live=True, guess=self._guess
        )

    def _guess(self, far: bool) -> Iterator[SystemAnswer]:
        """Its reference, with contexts of 2,000 characters; at most 20,000 characters of both."""
        contexts = (Context("x" * (_MOST if far else _LIKELY)),)
        for one in self.systems:
            for question in self.questions:
                text = "x" * _MOST if far else " | ".join(question.reference_answers)
                given = contexts if one.system.shows_contexts else None
                yield SystemAnswer(one.system.name, question.group, text, given)

    def check(self) -> None:
        """Refuse what cannot be done before anybody is called or anything is written, with every problem."""
        problems = [
            f"{option} {cost:g}: give 0 or more, what such an answer takes away"
            for option, cost in (("--wrong-costs", self.costs.wrong), ("--refusal-costs", self.costs.refusal))
            if not 0.0 <= cost < float("inf")
        ]

        def able(*parts: str) -> bool:
            n = len(problems)
            for part in parts:
                try:
                    getattr(self, part)
                except InputError as error:
                    problems.extend(error.problems)
            return len(problems) == n

        if able("documents", "questions", "systems"):
            # what all of a sweep lack is said once, of their table
            lacking: dict[tuple[str, str], list[str]] = {}
            for one in self.systems:
                for problem in one.system.check(self.questions):
                    text = problem.removeprefix(f"{one.system.name}: ")
                    lacking.setdefault((one.table, text), []).append(one.system.name)
            for (table, text), names in lacking.items():
                problems.append(f"{names[0] if len(names) == 1 else table}: {text}")
        if able("questions", "panel"):
            problems += self.panel.lacking(self.questions)
        refuse(list(dict.fromkeys(problems)))
        self._trial.check_prices()

    def preview(self) -> CostEstimate:
        """What a run would call; nothing is written."""
        self.check()
        return self._trial.preview()

    def run(self) -> EvaluateResult:
        """Ask, judge and sum up; each state's files are there when it is reached."""
        self.check()
        budget = self.options.open_budget(self.experiment.folder)
        self._trial.require_keys()
        open_experiment(self.experiment)
        states = StateFiles(self.experiment.folder, self.questions, self.source.sealed)
        states.write_questions()
        answers = self._trial.ask(budget)
        states.write_answers(answers)
        panel, measured, notes = self._trial.judge(answers, budget)
        columns = [one.name for one in panel.measures]
        states.write_measured(measured, columns)
        models = [one.judge.model for one in self.panel.members if one.judge.model is not None]
        unknown = any(one.given.prompt_tokens is not None and one.given.cost_usd is None for one in measured)
        priced = not unknown and all(model.priced for model in models)
        notes = (*self.source.notes, *self._collection[1], *self.panel.trained_notes(self.questions), *notes)
        result = _result(self, panel, measured, states, notes, usd=budget.spent_usd if priced else None)
        states.write_summary([*result.systems, *result.documents], columns)
        self.experiment.write_summary(result)
        return result


def _result(
    run: EvaluateRun,
    panel: Panel,
    measured: Sequence[Measured],
    states: StateFiles,
    notes: tuple[str, ...],
    *,
    usd: float | None,
) -> EvaluateResult:
    """All that the measured answers come to; `usd` is what this run spent, None where that is not known."""
    source, seed, given = run.source, run.seed, run.config.tables.judges.right_at
    mark = run.panel.right_at
    right_at = given if given is not None else mark if mark is not None else 0.5
    best = best_of(values_of(measured), seed=seed)
    curves = tuple(_curves(run, measured))
    bases = tuple(one.system.name for one in run.systems if one.is_base)
    design = run.config.tables.design if curves else None
    settings = [
        SystemSetting(one.system.name, one.table, one.kind, one.system.settings, one.system.shows_contexts)
        for one in run.systems
    ]
    n_with_document, n_lexically_easy = lexically_easy(run.questions, run.documents)
    answer_errors = [
        (one.system, one.question, f"{one.given.error.kind}: {one.given.error.message}")
        for one in measured
        if one.given.error is not None
    ]
    verdict_errors = [
        (column, one.question, verdicts.error)
        for one in measured
        for column, verdicts in one.verdicts.items()
        if verdicts.error is not None
    ]
    return EvaluateResult(
        experiment=run.experiment.slug,
        states=states.paths,
        questions=AskedQuestions(
            source=source.name,
            sha256=source.sha256,
            n=len(run.questions),
            n_answerable=sum(one.answerable for one in run.questions),
            n_sealed=sum(one.group in source.sealed for one in run.questions),
            made_by=source.made_by,
            n_with_document=n_with_document,
            n_lexically_easy=n_lexically_easy,
        ),
        design=design,
        bases=bases,
        settings=labelled(settings, bases, swept=design is not None),
        systems=summarise(measured, right_at=right_at, costs=run.costs),
        documents=summarise(measured, documents_of(measured), right_at=right_at, costs=run.costs),
        comparisons=compare_systems(measured, seed=seed),
        document_comparisons=compare_documents(measured, seed=seed),
        not_told_apart_from_best=tuple(one.name for one in best.not_told_apart),
        best=best,
        curves=curves,
        judges=run.panel.measured_by(),
        corrected=corrected_systems(panel, measured),
        by_complexity=by_complexity(measured, run.questions),
        by_tag=by_tag(measured, run.questions),
        failures=tuple(FailedAnswers(*row) for row in _tallied(answer_errors, source.sealed)),
        failed_verdicts=tuple(FailedVerdicts(*row) for row in _tallied(verdict_errors, source.sealed)),
        worst=tuple(_worst(run, measured)),
        costs=run.costs,
        n_unscored=sum(one.total is None or one.n_unscored > 0 for one in measured),
        usd=usd,
        notes=notes,
        run_line=_run_line(run),
        again=shlex.join(
            [
                "judgecal",
                "evaluate",
                shown(run.config.path),
                *(["--name", run.out] if run.out else []),
                "--retry-unscored",
            ]
        ),
    )


def _run_line(run: EvaluateRun) -> str:
    source, panel = run.source, run.panel
    split = f"({source.split})" if source.split else ""
    judges = ",".join(full_name(one.judge) for one in panel.members)
    return (
        f"questions:{source.name}@{source.sha256[:12]}{split}|n:{len(run.questions)}|"
        f"systems:{len(run.systems)}|suite:{panel.suite}|judges:{judges}|repeats:{panel.repeats}|"
        f"level:{LEVEL:g}|seed:{run.seed}|version:{__version__}"
    )


def _curves(run: EvaluateRun, measured: Sequence[Measured]) -> Iterator[FactorCurve]:
    """Of each table with factors, from its own systems."""
    design = run.config.tables.design
    tables: dict[str, dict[str, Mapping[str, Setting]]] = {}
    for one in run.systems if design is not None else ():
        if one.system.settings:
            tables.setdefault(one.table, {})[one.system.name] = one.system.settings
    levels = {
        (table, *level)
        for table, settings in tables.items()
        for each in settings.values()
        for level in each.items()
    }
    n_curves = sum(n > 1 for n in Counter((table, factor) for table, factor, _ in levels).values())
    for table, settings in tables.items():
        assert design is not None
        yield from factor_curves(
            [one for one in measured if one.system in settings],
            settings,
            table=table,
            design=design,
            base=next((one.system.name for one in run.systems if one.table == table and one.is_base), None),
            n_curves=max(n_curves, 1),
            seed=run.seed,
        )


def _tallied(
    errors: Sequence[tuple[str, str, str]], sealed: frozenset[str]
) -> list[tuple[str, str, int, str | None]]:
    """Of (name, question, "kind: message"): name, kind, how many and the first message, most frequent first.

    A message may quote the question, so none of a sealed one is shown.
    """
    messages: dict[tuple[str, str], list[str | None]] = {}
    for name, question, error in errors:
        kind, _, message = error.partition(": ")
        messages.setdefault((name, kind), []).append(None if question in sealed else message)
    rows = [(*key, len(some), next(filter(None, some), None)) for key, some in messages.items()]
    return sorted(rows, key=lambda row: -row[2])


def _worst(run: EvaluateRun, measured: Sequence[Measured]) -> Iterator[WorstQuestion]:
    """The lowest mean score first; what every system got right is none, and a right refusal scores 1."""
    answers: dict[str, list[Measured]] = {}
    for one in measured:
        if one.question not in run.source.sealed:
            answers.setdefault(one.question, []).append(one)
    means = {
        group: statistics.fmean(
            (one.total or 0.0) if one.answerable else float(one.answered is False) for one in own
        )
        for group, own in answers.items()
    }
    by_group = {one.group: one for one in run.questions}
    for group in sorted((name for name in means if means[name] < 1.0), key=lambda name: means[name])[:_WORST]:
        question = by_group[group]
        yield WorstQuestion(
            question=group,
            text=question.question,
            reference=question.reference_answers,
            documents=question.reference_documents,
            mean_score=means[group],
            answers=tuple(
                WorstAnswer(
                    one.system,
                    one.given.answer,
                    one.given.error,
                    one.total,
                    None
                    if one.given.contexts is None
                    else tuple(context.document_id or "?" for context in one.given.contexts),
                )
                for one in answers[group]
            ),
        )


def evaluate(
    config: str | Path,
    *,
    limit: int | None = None,
    repeats: int | None = None,
    wrong_costs: float | None = None,
    refusal_costs: float | None = None,
    budget_usd: float | None = None,
    batch: bool = False,
    use_cache: bool = True,
    retry_unscored: bool = False,
    seed: int = 0,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> EvaluateResult:
    """Systems x questions x judges, as a configuration says; what was asked before is not asked again.

    Args:
        config: the TOML file.
        limit: only so many questions, instead of the file's limit.
        repeats: judgements of each answer, instead of the file's.
        wrong_costs, refusal_costs: what such answers take away, instead of the file's costs.
        budget_usd: for this run; None for no limit.
        batch: have the answers judged by the batch APIs of the judges' providers; they are asked for live.
        name: slug of the experiment.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
    """
    options = RunOptions(
        repeats=1 if repeats is None else repeats,
        limit=limit,
        budget_usd=budget_usd,
        batch=batch,
        use_cache=use_cache,
        retry_unscored=retry_unscored,
    )
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
