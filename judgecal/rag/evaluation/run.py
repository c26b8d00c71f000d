"""`evaluate`: systems x questions x judges, from the configuration to the result."""

from __future__ import annotations

import shlex
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal._version import __version__
from judgecal.engine import Budget, Journal
from judgecal.experiment import RunOptions, full_name, open_experiment, open_journal, stored_rows
from judgecal.goldset import item_row
from judgecal.production.read_row import ReadRow
from judgecal.rag.answering.outcomes import ITEMS_FILE, LEVEL
from judgecal.rag.evaluation.asked import lexically_easy
from judgecal.rag.evaluation.comparisons import (
    FactorCurve,
    best_of,
    compare_documents,
    compare_systems,
    factor_curves,
    values_of,
)
from judgecal.rag.evaluation.config import read_evaluate_config
from judgecal.rag.evaluation.judging import Judged, Panel, corrected_systems, item_of
from judgecal.rag.evaluation.measured import Measured
from judgecal.rag.evaluation.plan import EvaluatePlan
from judgecal.rag.evaluation.question_parts import by_complexity, by_tag
from judgecal.rag.evaluation.result import (
    AskedQuestions,
    EvaluateResult,
    FailedAnswers,
    FailedVerdicts,
    SystemSetting,
    WorstAnswer,
    WorstQuestion,
)
from judgecal.rag.evaluation.states import StateFiles
from judgecal.rag.evaluation.summary import summarise, summarise_documents
from judgecal.rag.evaluation.system import Setting, SystemAnswer
from judgecal.tables import write_json_lines
from judgecal.workspace import find_workspace, shown

_WORST = 10
"""Questions that went worst, of which a result tells."""


@dataclass(frozen=True)
class EvaluateRun(EvaluatePlan):
    """The plan, and what carries it out."""

    def run(self) -> EvaluateResult:
        """Ask, judge and sum up; each state's files are there when it is reached. A run that was interrupted
        goes on.

        Raises:
            InputError: as `check`; or a key is not set and a call is due.
        """
        self.check()
        budget = self.options.open_budget(self.experiment.folder)
        expected = self.expected(far=False)
        self.panel.require_keys(expected, stored_rows(self.experiment.journal), self.options)
        open_experiment(self.experiment)
        states = StateFiles(self.experiment.folder, self.questions, self.source.sealed)
        states.write_questions()
        answers = [
            answer
            for one in self.systems
            for answer in one.system.answer(self.questions, self.asking(one, budget))
        ]
        states.write_answers(answers)
        with open_journal(self.experiment.journal, self.options) as journal:
            panel, measured, judged, notes = self._judge(answers, journal, budget)
        columns = [one.name for one in panel.measures]
        states.write_measured(measured, judged, columns)
        notes = (*self.input_notes, *self.panel.trained_notes(self.questions), *notes)
        result = _Evaluated(self, panel, measured, judged, notes).result(budget, states)
        states.write_summary([*result.systems, *result.documents], columns)
        self.experiment.write_summary(result)
        return result

    def _judge(
        self, answers: Sequence[SystemAnswer], journal: Journal, budget: Budget
    ) -> tuple[Panel, list[Measured], Judged, tuple[str, ...]]:
        by_group = {one.group: one for one in self.questions}
        rows = [ReadRow(item_of(by_group[one.question], one)) for one in answers if one.answer is not None]
        write_json_lines(self.experiment.folder / ITEMS_FILE, (item_row(row.item) for row in rows))
        panel, judged, notes = self.panel.judge(rows, journal=journal, options=self.options, budget=budget)
        measured = [
            panel.measured(by_group[one.question], one, judged.get((one.system, one.question), {}))
            for one in answers
        ]
        return panel, measured, judged, notes


@dataclass(frozen=True)
class _Evaluated:
    """A run whose answers were judged."""

    run: EvaluateRun
    panel: Panel
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
                SystemSetting(
                    one.system.name, one.table, one.kind, one.system.settings, one.system.shows_contexts
                )
                for one in run.systems
            ),
            systems=summarise(measured, **how),
            documents=summarise_documents(measured, **how),
            comparisons=compare_systems(measured, seed=seed),
            document_comparisons=compare_documents(measured, seed=seed),
            not_told_apart_from_best=tuple(one.name for one in best.not_told_apart),
            best=best,
            curves=curves,
            judges=self.panel.measured_by(),
            corrected=corrected_systems(self.panel, measured, self.judged),
            by_complexity=by_complexity(measured, run.questions),
            by_tag=by_tag(measured, run.questions),
            failures=self._failures(),
            failed_verdicts=self._failed_verdicts(),
            worst=tuple(self._worst()),
            costs=run.costs,
            n_unscored=sum(one.total is None or one.n_unscored > 0 for one in measured),
            usd=self._usd(budget),
            notes=self.notes,
            run_line=self._run_line(),
            again=shlex.join(
                ["judgecal", "evaluate", shown(run.config.path), *self._named, "--retry-unscored"]
            ),
        )

    def _questions(self) -> AskedQuestions:
        source, asked = self.run.source, self.run.questions
        n_with_document, n_lexically_easy = lexically_easy(asked, self.run.documents)
        return AskedQuestions(
            source=source.name,
            sha256=source.sha256,
            n=len(asked),
            n_answerable=sum(one.answerable for one in asked),
            n_sealed=sum(one.group in source.sealed for one in asked),
            made_by=source.made_by,
            n_with_document=n_with_document,
            n_lexically_easy=n_lexically_easy,
        )

    def _curves(self) -> Iterator[FactorCurve]:
        """Of each table with factors, from its own systems."""
        design = self.run.config.tables.design
        tables: dict[str, dict[str, Mapping[str, Setting]]] = {}
        for one in self.run.systems if design is not None else ():
            if one.system.settings:
                tables.setdefault(one.table, {})[one.system.name] = one.system.settings
        levels = {
            (table, *level)
            for table, own in tables.items()
            for each in own.values()
            for level in each.items()
        }
        n_curves = sum(n > 1 for n in Counter((table, factor) for table, factor, _ in levels).values())
        for table, own in tables.items():
            base = next(
                (one.system.name for one in self.run.systems if one.table == table and one.is_base), None
            )
            rows = [one for one in self.measured if one.system in own]
            assert design is not None
            how: dict[str, Any] = {"base": base, "n_curves": max(n_curves, 1), "seed": self.run.seed}
            yield from factor_curves(rows, own, table=table, design=design, **how)

    def _failures(self) -> tuple[FailedAnswers, ...]:
        """By system and kind."""
        errors = [
            (one.system, one.question, f"{error.kind}: {error.message}")
            for one in self.measured
            if (error := one.given.error) is not None
        ]
        return tuple(FailedAnswers(*row) for row in self._tallied(errors))

    def _failed_verdicts(self) -> tuple[FailedVerdicts, ...]:
        """By column and kind."""
        errors = [
            (column, question, verdicts.error)
            for (_, question), said in self.judged.items()
            for column, verdicts in said.items()
            if verdicts.error is not None
        ]
        return tuple(FailedVerdicts(*row) for row in self._tallied(errors))

    def _tallied(self, errors: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, int, str | None]]:
        """Of (name, question, "kind: message"): name, kind, how many and the first message, the most frequent
        first.

        A message may quote the question, so none of a sealed one is told.
        """
        found: dict[tuple[str, str], list[str | None]] = {}
        for name, question, error in errors:
            kind, _, message = error.partition(": ")
            sealed = question in self.run.source.sealed
            found.setdefault((name, kind), []).append(None if sealed else message)
        rows = [(*key, len(said), next(filter(None, said), None)) for key, said in found.items()]
        return sorted(rows, key=lambda row: -row[2])

    def _worst(self) -> Iterator[WorstQuestion]:
        """The lowest mean score first; a question that every system got right is none."""
        answers: dict[str, list[Measured]] = {}
        for one in self.measured:
            if one.question not in self.run.source.sealed:
                answers.setdefault(one.question, []).append(one)
        means = {group: statistics.fmean(map(_score, own)) for group, own in answers.items()}
        by_group = {one.group: one for one in self.run.questions}
        for group in sorted((name for name in means if means[name] < 1.0), key=lambda name: means[name])[
            :_WORST
        ]:
            question = by_group[group]
            yield WorstQuestion(
                question=group,
                text=question.question,
                reference=question.reference_answers,
                documents=question.reference_documents,
                mean_score=means[group],
                answers=tuple(map(_worst_answer, answers[group])),
            )

    def _usd(self, budget: Budget) -> float | None:
        """What this run spent; None where some model that may have been called has no price."""
        models = [one.judge.model for one in self.run.panel.members if one.judge.model is not None]
        unknown = any(
            one.given.prompt_tokens is not None and one.given.cost_usd is None for one in self.measured
        )
        return None if unknown or not all(one.priced for one in models) else budget.spent_usd

    @property
    def _named(self) -> list[str]:
        """The slug, where the user gave one."""
        return ["--name", self.run.out] if self.run.out else []

    def _run_line(self) -> str:
        run, source = self.run, self.run.source
        split = f"({source.split})" if source.split else ""
        judges = ",".join(full_name(one.judge) for one in run.panel.members)
        return (
            f"questions:{source.name}@{source.sha256[:12]}{split}|n:{len(run.questions)}|systems:{len(run.systems)}|"
            f"suite:{run.panel.suite}|judges:{judges}|repeats:{run.panel.repeats}|level:{LEVEL:g}|seed:{run.seed}|"
            f"version:{__version__}"
        )


def _score(one: Measured) -> float:
    """By which questions went well or badly: a right refusal is worth a right answer."""
    return (one.total or 0.0) if one.answerable else float(one.answered is False)


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
    batch: bool = False,
    use_cache: bool = True,
    retry_unscored: bool = False,
    seed: int = 0,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> EvaluateResult:
    """Systems x questions x judges, as a configuration says (evaluation.config); what was asked before is not
    again.

    Args:
        config: the TOML file.
        limit: only so many questions, instead of the file's limit.
        repeats: judgements of each answer, instead of the file's.
        wrong_costs, refusal_costs: what such answers take away, instead of the file's costs.
        budget_usd: for this run; None for no limit.
        batch: have the answers judged by the batch APIs of the judges' providers; they are asked for live.
        name: slug of the experiment.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.

    Raises:
        InputError: lists every problem of the configuration.
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
