"""`evaluate` and `answer`: systems x questions x judges, from the configuration to the result."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from judgecal._version import __version__
from judgecal.engine import Budget
from judgecal.errors import InputError, refuse
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    RunOptions,
    full_name,
    open_experiment,
    plan_experiment,
)
from judgecal.goldset import GoldDocument
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.comparisons import (
    FactorCurve,
    best_of,
    compare_documents,
    compare_systems,
    factor_curves,
    values_of,
)
from judgecal.rag.evaluation.config import (
    QuestionSource,
    ReadConfig,
    SystemTable,
    read_documents,
    read_evaluate_config,
    read_questions,
    system_of,
)
from judgecal.rag.evaluation.judging import Panel, SystemRun, read_panel
from judgecal.rag.evaluation.result import (
    AskedQuestions,
    EvaluateResult,
    FailedAnswers,
    FailedVerdicts,
    StateFiles,
    States,
    SystemSetting,
    labelled,
)
from judgecal.rag.evaluation.summary import LEVEL, Measured, by_tag, documents_of, summarise
from judgecal.rag.evaluation.system import Setting, System, SystemAnswer
from judgecal.records import Context, digest
from judgecal.workspace import Workspace, find_workspace

_F = TypeVar("_F")
_LIKELY, _MOST = 2_000, 20_000
"""Characters of the contexts of an answer that is not there yet: likely ones, and for a preview's bound."""


@dataclass(frozen=True)
class EvaluateRun:
    """What `evaluate` is to do; nothing is read before it is asked for."""

    workspace: Workspace
    config: ReadConfig
    options: RunOptions  # its `limit` goes before the file's
    repeats: int | None = None  # instead of the file's; None for those
    seed: int = 0  # of the comparisons
    out: str | None = None  # the slug of the experiment; None for the usual one

    @property
    def _folder(self) -> Path:
        """From where paths of the configuration are taken."""
        return self.config.folder

    @cached_property
    def source(self) -> QuestionSource:
        """The questions of the configuration."""
        return read_questions(self.config.tables.questions, self._folder, self.workspace)

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """Those that are asked, after the limit."""
        return self.source.asked[: self.options.limit or self.config.tables.questions.limit]

    @cached_property
    def collection(self) -> tuple[tuple[GoldDocument, ...], tuple[str, ...]]:
        """The documents that systems search, empty where there are none; and what was noticed in them."""
        path = self.config.tables.documents.path
        return (self.source.documents, ()) if path is None else read_documents(self._folder / path)

    @cached_property
    def systems(self) -> tuple[tuple[SystemTable, System], ...]:
        """Every system, in the order of the configuration."""
        return tuple(
            (table, system_of(table, self.config, self.workspace, lambda: self.collection[0]))
            for table in self.config.systems
        )

    @cached_property
    def panel(self) -> Panel:
        """Who judges."""
        table = self.config.tables.judges
        wanted = table if self.repeats is None else table.model_copy(update={"repeats": self.repeats})
        return read_panel(wanted, self._folder, self.workspace)

    @cached_property
    def experiment(self) -> Experiment:
        """Where answers, verdicts and result go; limit, repeats, costs and pass mark are no part of it."""
        source = self.source
        config: dict[str, Any] = {
            "command": self.config.command[0],
            **({} if source.split is None else {"gold": {"set": source.name, "sha256": source.sha256}}),
            "suite": self.panel.suite,
            "questions": {"name": source.name, "sha256": source.sha256, "split": source.split},
            "documents": digest([[one.document_id, one.title, one.text] for one in self.collection[0]]),
            "systems": [
                {"system": table.name, "kind": table.kind, "config": digest(system.config())}
                for table, system in self.systems
            ],
            "judges": self.panel.config(),
            "seed": self.seed,
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @cached_property
    def _trial(self) -> SystemRun:
        """Each system's folder is named by it, and by everything that decides its answers."""
        systems = []
        for table, system in self.systems:
            name = re.sub(r"[^A-Za-z0-9.=-]+", "_", table.name).strip("_.")[:60]
            folder = f"{name}-{digest([table.name, system.config()])[:8]}"
            systems.append((system, self.experiment.folder / "systems" / folder))
        told = {table.name: table.options.answerer for table, _ in self.systems if table.kind == "local"}
        return SystemRun(
            self.experiment,
            self.questions,
            systems,
            self.panel,
            self.options,
            guess=self._guess,
            refusals={name: who.refusal_message for name, who in told.items() if who.refusal_message},
        )

    def _guess(self, far: bool) -> Iterator[SystemAnswer]:
        """Its reference, with contexts of 2,000 characters; at most 20,000 characters of both."""
        contexts = (Context("x" * (_MOST if far else _LIKELY)),)
        for _, system in self.systems:
            given = contexts if system.shows_contexts else None
            for question in self.questions:
                text = "x" * _MOST if far else " | ".join(question.reference_answers)
                yield SystemAnswer(system.name, question.group, text, given)

    def check(self) -> None:
        """Refuse what cannot be done before anybody is called or anything is written, with every problem."""
        problems = list[str]()

        def able(*parts: str) -> bool:
            n = len(problems)
            for part in parts:
                try:
                    getattr(self, part)
                except InputError as error:
                    problems.extend(error.problems)
            return len(problems) == n

        if able("collection", "questions", "systems"):
            # what all of a sweep lack is said once, of their table
            lacking: dict[tuple[str, str], list[str]] = {}
            for table, system in self.systems:
                for problem in system.check(self.questions):
                    lacking.setdefault((table.table, problem), []).append(table.name)
            for (table_name, problem), names in lacking.items():
                problems.append(f"{names[0] if len(names) == 1 else table_name}: {problem}")
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
        budget = Budget(self.options.budget_usd)
        self._trial.require_keys()
        open_experiment(self.experiment)
        states = StateFiles(self.experiment.folder, self.questions, self.source.sealed)
        states.write_questions()
        answers = self._trial.ask(budget)
        states.write_answers(answers)
        panel, measured, notes = self._trial.judge(answers, budget)
        columns = [column.name for column in panel.columns]
        states.write_measured(measured, columns)
        models = [judge.judge.model for judge in self.panel.members if judge.judge.model is not None]
        unknown = any(one.given.prompt_tokens is not None and one.given.cost_usd is None for one in measured)
        priced = not unknown and all(model.priced for model in models)
        own = {one.id for _, system in self.systems for one in system.models()} & {one.id for one in models}
        favour = "answers and rates its own answers, and judges favour their own"
        rated = [f"model {name} {favour}" for name in sorted(own)]
        notes = (
            *rated,
            *self.source.notes,
            *self.collection[1],
            *self.panel.trained_notes(self.questions),
            *notes,
        )
        usd = budget.spent_usd if priced else None
        result = _result(self, panel, measured, states.paths, notes, usd=usd)
        pooled = self.config.tables.judges.pooled
        states.write_summary([*result.systems, *result.documents], [*columns, *pooled])
        self.experiment.write_summary(result)
        return result


def _result(
    run: EvaluateRun,
    panel: Panel,
    measured: Sequence[Measured],
    states: States,
    notes: tuple[str, ...],
    *,
    usd: float | None,
) -> EvaluateResult:
    """All that the measured answers come to; `usd` is what this run spent, None where that is not known."""
    source, seed, judges = run.source, run.seed, run.panel
    marks = (run.config.tables.judges.right_at, judges.right_at, 0.5)
    right_at = next(mark for mark in marks if mark is not None)
    pooled = run.config.tables.judges.pooled
    how: dict[str, Any] = {"right_at": right_at, "pooled": pooled}
    curves = tuple(_curves(run, measured))
    bases = tuple(table.name for table, _ in run.systems if table.is_base)
    settings = [
        SystemSetting(
            table.name,
            table.table,
            table.kind,
            table.settings,
            system.shows_contexts,
            contexts=_contexts_of(table),
            withholds=system.withholds,
        )
        for table, system in run.systems
    ]
    best = best_of(values_of(measured), seed=seed)
    split = f"({source.split})" if source.split else ""
    run_line = (
        f"questions:{source.name}@{source.sha256[:12]}{split}|n:{len(run.questions)}|"
        f"systems:{len(run.systems)}|suite:{judges.suite}|"
        f"judges:{','.join(full_name(one.judge) for one in judges.members)}|repeats:{judges.repeats}|"
        f"level:{LEVEL:g}|seed:{seed}|version:{__version__}"
    )
    again = ["judgecal", *run.config.command, *(["--name", run.out] if run.out else [])]
    return EvaluateResult(
        experiment=run.experiment.slug,
        states=states,
        questions=_asked(source, run.questions, run.collection[0]),
        bases=bases,
        settings=labelled(settings, bases, swept=bool(curves)),
        systems=summarise(measured, **how),
        documents=summarise(measured, documents_of(measured), **how),
        comparisons=compare_systems(measured, seed=seed),
        document_comparisons=compare_documents(measured, seed=seed),
        not_told_apart_from_best=tuple(candidate.name for candidate in best.not_told_apart),
        best=best,
        curves=curves,
        judges=judges.measured_by(),
        by_tag=by_tag(measured, run.questions),
        failures=_tallied(
            FailedAnswers,
            source,
            (
                (answer.system, answer.question, f"{answer.given.error.kind}: {answer.given.error.message}")
                for answer in measured
                if answer.given.error is not None
            ),
        ),
        failed_verdicts=_tallied(
            FailedVerdicts,
            source,
            (
                (column, answer.question, verdicts.error)
                for answer in measured
                for column, verdicts in answer.verdicts.items()
                if verdicts.error is not None
            ),
        ),
        n_unscored=sum(one.total is None or one.n_unscored > 0 for one in measured),
        usd=usd,
        notes=notes,
        run_line=run_line,
        again=shlex.join([*again, "--retry-unscored"]),
    )


def _contexts_of(table: SystemTable) -> str:
    """The kind of contexts that a local system is given by a rule; empty for all that search."""
    kind: str = table.options.contexts.kind if table.kind == "local" else "search"
    return "" if kind == "search" else kind


def _curves(run: EvaluateRun, measured: Sequence[Measured]) -> Iterator[FactorCurve]:
    """Of each table with factors, from its own systems."""
    swept: dict[str, dict[str, Mapping[str, Setting]]] = {}
    for table, _ in run.systems:
        if table.settings:
            swept.setdefault(table.table, {})[table.name] = table.settings
    levels = {
        (name, *level) for name, systems in swept.items() for its in systems.values() for level in its.items()
    }
    n_curves = sum(n > 1 for n in Counter((name, factor) for name, factor, _ in levels).values())
    for base in [table for table, _ in run.systems if table.is_base]:
        systems = swept[base.table]
        answers = [answer for answer in measured if answer.system in systems]
        yield from factor_curves(
            answers, systems, table=base.table, base=base.name, n_curves=max(n_curves, 1), seed=run.seed
        )


def _asked(
    source: QuestionSource, questions: Sequence[Question], documents: Sequence[GoldDocument]
) -> AskedQuestions:
    """What was asked, and how many questions name a document that is there."""
    there = {document.document_id for document in documents}
    return AskedQuestions(
        source=source.name,
        sha256=source.sha256,
        n=len(questions),
        n_answerable=sum(question.answerable for question in questions),
        n_sealed=sum(question.group in source.sealed for question in questions),
        made_by=source.made_by,
        n_with_document=sum(not there.isdisjoint(one.reference_documents) for one in questions),
    )


def _tallied(
    failure: Callable[[str, str, int, str | None], _F],
    source: QuestionSource,
    errors: Iterable[tuple[str, str, str]],
) -> tuple[_F, ...]:
    """Of (name, question, "kind: message"): name, kind, how many and the first message, most frequent first.

    A message may quote the question, so none of a sealed one is shown.
    """
    messages: dict[tuple[str, str], list[str | None]] = {}
    for name, question, error in errors:
        kind, _, message = error.partition(": ")
        messages.setdefault((name, kind), []).append(None if question in source.sealed else message)
    rows = [(*key, len(some), next(filter(None, some), None)) for key, some in messages.items()]
    return tuple(failure(*row) for row in sorted(rows, key=lambda row: -row[2]))


def evaluate(
    config: str | Path,
    *,
    limit: int | None = None,
    repeats: int | None = None,
    budget_usd: float | None = None,
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
        budget_usd: for this run; None for no limit.
        name: slug of the experiment.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
    """
    options = RunOptions(
        repeats=1 if repeats is None else repeats,
        limit=limit,
        budget_usd=budget_usd,
        use_cache=use_cache,
        retry_unscored=retry_unscored,
    )
    options.check()
    return EvaluateRun(
        workspace=find_workspace(None if workspace is None else Path(workspace)),
        config=read_evaluate_config(Path(config)),
        options=options,
        repeats=repeats,
        seed=seed,
        out=name,
    ).run()
