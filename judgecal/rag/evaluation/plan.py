"""What `evaluate` is to do, before the first call: questions, documents, systems and judges, checked
together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from judgecal.engine import Budget, require_prices
from judgecal.errors import InputError, refuse
from judgecal.experiment import CostEstimate, Experiment, RunOptions, plan_experiment, stored_rows, together
from judgecal.goldset import Document
from judgecal.production.read_row import ReadRow
from judgecal.rag.answering.outcomes import ITEMS_FILE, answered_items
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.asked import QuestionSource, read_documents, read_questions
from judgecal.rag.evaluation.config import ConfiguredSystem, ReadConfig, systems_of
from judgecal.rag.evaluation.judging import Panel, item_of, read_panel
from judgecal.rag.evaluation.summary import Costs
from judgecal.rag.evaluation.system import Asking, SystemAnswer
from judgecal.records import Context, digest
from judgecal.workspace import Workspace

_EXPECTED_CHARS = 2_000
_MOST_CHARS = 20_000
"""Characters of the contexts of an answer that is not there yet: likely ones, and for the bound of a
preview."""


@dataclass(frozen=True)
class EvaluatePlan:
    """Everything that `evaluate` needs; nothing is read before it is asked for, and nobody is called.

    Attributes:
        config: the file, read.
        options: its `limit` goes before the file's.
        repeats: instead of the file's; None for those.
        wrong_costs, refusal_costs: what such answers take away, instead of the file's; None for those.
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

    @property
    def input_notes(self) -> tuple[str, ...]:
        """What was noticed while questions and documents were read."""
        return (*self.source.notes, *self._collection[1])

    @cached_property
    def systems(self) -> tuple[ConfiguredSystem, ...]:
        """Every system, in the order of the configuration."""
        return systems_of(self.config, self.workspace, lambda: self.documents)

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
        """Correctness, 0..1, from which an answer is right: as the file says, by the lock's pass mark, or
        0.5."""
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
        problems: list[str] = [*self._cost_problems()]

        def able(*parts: str) -> bool:
            n = len(problems)
            for part in parts:
                try:
                    getattr(self, part)
                except InputError as error:
                    problems.extend(error.problems)
            return len(problems) == n

        if able("documents", "questions", "systems"):
            problems += self._system_problems()
        if able("questions", "panel"):
            problems += self.panel.lacking(self.questions)
        refuse(list(dict.fromkeys(problems)))
        require_prices(
            [model for one in self.systems for model in one.system.models()], self.options.limit_usd
        )
        self.panel.check(self.options)

    def _system_problems(self) -> Iterator[str]:
        """What keeps systems from answering; what all of a sweep have in common is said once, of their
        table."""
        found: dict[tuple[str, str], list[str]] = {}
        for one in self.systems:
            for problem in one.system.check(self.questions):
                found.setdefault((one.table, problem.removeprefix(f"{one.system.name}: ")), []).append(
                    one.system.name
                )
        for (table, problem), names in found.items():
            yield f"{names[0] if len(names) == 1 else table}: {problem}"

    def _cost_problems(self) -> Iterator[str]:
        for option, cost in (("--wrong-costs", self.costs.wrong), ("--refusal-costs", self.costs.refusal)):
            if not 0.0 <= cost < float("inf"):
                yield f"{option} {cost:g}: give 0 or more, what such an answer takes away"

    def preview(self) -> CostEstimate:
        """What a run would call; nothing is written.

        An answer that is not there yet is taken to be its reference, with contexts of 2,000 characters; for
        the bound of the cost it and they are 20,000 characters long.
        """
        self.check()
        budget, journal = Budget(self.options.limit_usd), stored_rows(self.experiment.journal)
        asked = [one.system.preview(self.questions, self.asking(one, budget)) for one in self.systems]
        asked = [replace(one, usd_in_batches=one.usd_at_most) for one in asked]
        near = self.panel.preview(self.expected(far=False), journal, self.options)
        far = self.panel.preview(self.expected(far=True), journal, self.options)
        return together(
            [*asked, replace(near, usd_at_most=far.usd_at_most, usd_in_batches=far.usd_in_batches)]
        )

    def expected(self, *, far: bool) -> list[ReadRow]:
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
