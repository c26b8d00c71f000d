"""A system whose answers stand in a file: it is asked nothing.

The file is a table of answers as `judgecal answer --answers` reads it; columns `contexts` (a text, or a list
of texts or of `{document_id, text, score}`), `latency_s` (seconds) and `error` (why there is no answer,
perhaps with one of our kinds in front, as in "timeout: no reply") are taken too where they are there. So
state 2 of an evaluation can be read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict

from judgecal.errors import InputError, listed, notice, unknown_name
from judgecal.experiment import CostEstimate
from judgecal.models import ModelSpec
from judgecal.rag.answering.questions import Question, RecordedAnswers, read_answers
from judgecal.rag.evaluation.system import Asking, Setting, SystemAnswer
from judgecal.records import ErrorKind, Failure
from judgecal.tables import Table, read_table

_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)


class RecordedConfig(BaseModel):
    """The table of such a system.

    Attributes:
        answers: the file, from the current folder.
        system: whose rows, where the file holds those of several.
        question_column: the question's id or text; None for `question_id`, `group` or `question`.
        answer_column: the answer.
        system_column: the system; None for `system`, or for a file of one system.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    answers: str
    system: str | None = None
    question_column: str | None = None
    answer_column: str = "answer"
    system_column: str | None = None


class RecordedSystem:
    """A file of answers.

    Args:
        name: as tables show it.
        config: its table.
        settings: the factors with their values.
    """

    def __init__(
        self, name: str, config: RecordedConfig, *, settings: Mapping[str, Setting] | None = None
    ) -> None:
        self.name = name
        self.settings: Mapping[str, Setting] = dict(settings or {})
        self._config = config
        self._path = Path(config.answers)

    @cached_property
    def shows_contexts(self) -> bool:
        """Whether some row of this system has contexts; an empty list is some."""
        own, column = self._config.system, self._config.system_column or "system"
        rows = (
            row.cells for row in self._table.rows if own is None or row.cells.get(column, "").strip() == own
        )
        return any(cells.get("contexts", "").strip() for cells in rows)

    def config(self) -> dict[str, Any]:
        """The table with the file's sha256 in the place of its path."""
        return {
            **self._config.model_dump(exclude={"answers"}),
            "sha256": hashlib.sha256(self._path.read_bytes()).hexdigest(),
        }

    def models(self) -> Sequence[ModelSpec]:
        """None: the answers are there."""
        return ()

    def check(self, questions: Sequence[Question]) -> list[str]:
        """What of the file cannot be used."""
        try:
            self._read(questions)
        except InputError as error:
            return [f"{self.name}: {problem}" for problem in error.problems]
        return []

    def preview(self, questions: Sequence[Question], asking: Asking) -> CostEstimate:
        """Nobody is called."""
        return CostEstimate(0, len(questions), 0, 0.0)

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        """One answer a question, in their order; a question without a row is a failure."""
        recorded, system = self._read(questions)
        if recorded.unmatched:  # counted alone, as they may name sealed questions
            n, of = len(recorded.unmatched), recorded.n_rows
            notice(
                f"judgecal: {self.name}: {n} of {of} rows of {recorded.name} name no question that was asked"
            )
        return [_answer(recorded, system, one, self.name, contexts=self.shows_contexts) for one in questions]

    @cached_property
    def _table(self) -> Table:
        return read_table(self._path)

    def _read(self, questions: Sequence[Question]) -> tuple[RecordedAnswers, str]:
        """The answers of the file, and whose rows are this system's."""
        one = self._config
        recorded = read_answers(
            self._path,
            questions,
            one.question_column,
            one.answer_column,
            one.system_column,
            measured=True,
            table=self._table,
        )
        systems = list(recorded.rows)
        if one.system is not None and one.system not in systems:
            raise unknown_name(f"system in {recorded.name}", one.system, systems)
        if one.system is None and len(systems) > 1:
            raise InputError(f"{recorded.name}: holds the answers of {listed(systems)}: name one with system")
        return recorded, one.system or systems[0]


class RecordedTable:
    """The systems of a file whose answers were matched with the questions already; contexts are not read."""

    name, shows_contexts = "recorded", False

    def __init__(self, recorded: RecordedAnswers) -> None:
        self.recorded = recorded
        self.settings: Mapping[str, Setting] = {}

    def config(self) -> dict[str, Any]:
        """The file and its columns."""
        return self.recorded.config()

    def models(self) -> Sequence[ModelSpec]:
        """None: the answers are there."""
        return ()

    def check(self, questions: Sequence[Question]) -> list[str]:
        """Nothing: it was read."""
        return []

    def preview(self, questions: Sequence[Question], asking: Asking) -> CostEstimate:
        """Nobody is called."""
        return CostEstimate(0, 0, 0, 0.0)

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        """One answer a system and question; a question without a row is a failure."""
        return [
            _answer(self.recorded, system, one, system, contexts=False)
            for system in self.recorded.rows
            for one in questions
        ]


def _answer(
    recorded: RecordedAnswers, system: str, question: Question, name: str, *, contexts: bool
) -> SystemAnswer:
    """What the file has of a system and question, under a name."""
    text, key = recorded.rows[system].get(question.group), (system, question.group)
    error = Failure("parse", f"{recorded.name} has no row for this question") if text is None else None
    if key in recorded.errors:
        text, error = None, _failure(recorded.errors[key])
    return SystemAnswer(
        name,
        question.group,
        text,
        recorded.contexts.get(key) if contexts and error is None else None,
        error=error,
        latency_s=recorded.latency_s.get(key),
    )


def _failure(told: str) -> Failure:
    """An error of the file; of kind `server` where it does not name one of ours."""
    kind, _, message = told.partition(": ")
    known = next((one for one in _KINDS if one == kind), None)
    return Failure("server", told) if known is None else Failure(known, message or told)
