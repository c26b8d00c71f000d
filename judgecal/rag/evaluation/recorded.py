"""A system whose answers stand in a file: it is asked nothing. So state 2 of an evaluation can be read."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict

from judgecal.errors import InputError, listed, notice, refuse, unknown_name
from judgecal.experiment import CostEstimate
from judgecal.goldset import Columns
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.system import Asking, System, SystemAnswer
from judgecal.records import ErrorKind, Failure, well_formed
from judgecal.tables import Row, Table, read_table

_QUESTION_COLUMNS = ("question_id", "group", "question")
_KINDS: Mapping[str, ErrorKind] = {kind: kind for kind in get_args(ErrorKind)}


class RecordedConfig(BaseModel):
    """The table of such a system."""

    model_config = ConfigDict(extra="forbid", strict=True)
    answers: str  # the file: CSV, TSV, JSONL, xlsx or Parquet
    system: str | None = None  # whose rows, where the file holds those of several
    question_column: str | None = None  # its id or text, by default `question_id`, `group` or `question`
    answer_column: str = "answer"  # what was answered; empty is an answer without a word
    system_column: str | None = None  # whose answer it is, by default `system`
    own_contexts: bool = False  # whether they rest on the contexts that each question of the set brings along


@dataclass
class RecordedSystem(System):
    """A table of answers, in any format of tables.

    A question is named by its id or by its text; a wording that two questions share names neither. Columns
    `contexts` (a text, or a list of texts or of `{document_id, text, score}`), `latency_s` (seconds) and
    `error` (why there is no answer, perhaps with one of our kinds in front, as in "timeout: no reply") are
    taken too where they are there.
    """

    name: str
    table: RecordedConfig

    @cached_property
    def _rows(self) -> Table:
        return read_table(Path(self.table.answers))

    @cached_property
    def shows_contexts(self) -> bool:
        """Whether some row of this system has contexts; an empty list is some."""
        if self.table.own_contexts:
            return True
        system, column = self.table.system, self.table.system_column or "system"
        return any(
            row.cells.get("contexts", "").strip()
            for row in self._rows.rows
            if system is None or row.cells.get(column, "").strip() == system
        )

    def config(self) -> dict[str, Any]:
        """The table with the file's sha256 in the place of its path."""
        sha256 = hashlib.sha256(Path(self.table.answers).read_bytes()).hexdigest()
        return {**self.table.model_dump(exclude={"answers"}), "sha256": sha256}

    def check(self, questions: Sequence[Question]) -> list[str]:
        try:
            self._read(questions)
        except InputError as error:
            return list(error.problems)
        return []

    def preview(self, questions: Sequence[Question], asking: Asking) -> CostEstimate:
        return CostEstimate(0, len(questions), 0, 0.0)

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        recorded, unmatched = self._read(questions)
        if unmatched:  # counted alone, as they may name sealed questions
            notice(
                f"judgecal: {self.name}: {len(unmatched)} of {len(self._rows.rows)} rows of "
                f"{Path(self.table.answers).name} name no question that we asked"
            )
        answers = [self._answer_of(recorded, question) for question in questions]
        if not self.table.own_contexts:
            return answers
        return [
            dataclasses.replace(answer, contexts=answer.contexts or question.contexts)
            if answer.error is None
            else answer
            for answer, question in zip(answers, questions, strict=True)
        ]

    def _answer_of(self, recorded: Mapping[str, SystemAnswer], question: Question) -> SystemAnswer:
        """The answer to a question, without the contexts of a system that shows none."""
        answer = recorded.get(question.group)
        if answer is None:
            lacking = Failure("parse", f"{Path(self.table.answers).name} has no row for this question")
            return SystemAnswer(self.name, question.group, None, error=lacking)
        return answer if self.shows_contexts else dataclasses.replace(answer, contexts=None)

    def _read(self, questions: Sequence[Question]) -> tuple[dict[str, SystemAnswer], list[str]]:
        """The answers of this system by the group of their question, and what rows name that is no question.

        Raises:
            InputError: each row that cannot be read or comes twice; no row of the file, or none of this
                system, answers one of the questions.
        """
        table, path = self._rows, Path(self.table.answers)
        columns = self._columns()
        table.require(*columns.names)
        wordings = Counter(question.question.strip() for question in questions)
        groups = {
            question.question.strip(): question.group
            for question in questions
            if wordings[question.question.strip()] == 1
        } | {question.group.strip(): question.group for question in questions}
        problems, unmatched = list[str](), list[str]()
        answers: dict[str, dict[str, tuple[SystemAnswer, Row]]] = {}
        for row in table.rows:
            item = columns.read_item(row, table.at(row), item_id="", problems=problems)
            system, group = item.system or path.stem, groups.get(well_formed(item.question).strip())
            if group is None:
                unmatched.append(item.question)
                continue
            error = _failure(row)
            answer = SystemAnswer(
                self.name,
                group,
                item.answer if error is None else None,
                (item.contexts if columns.contexts else None) if error is None else None,
                error=error,
                latency_s=_seconds(row, table.at(row), problems),
            )
            _, first = answers.setdefault(system, {}).setdefault(group, (answer, row))
            if first is not row:
                already = f"{system} answers {group} on line {first.line} already"
                problems.append(f"{table.at(row)}: {already}: keep one row")
        refuse(problems)
        if not answers:
            looks = questions[0]
            raise InputError(
                f"{table.where}: no value of column {columns.question} is a question of the set (found "
                f"{unmatched[0]!r}; questions look like {looks.group!r} or {looks.question!r})"
            )
        wanted, systems = self.table.system, list(answers)
        if wanted is not None and wanted not in systems:
            raise unknown_name(f"system in {path.name}", wanted, systems)
        if wanted is None and len(systems) > 1:
            raise InputError(f"{path.name}: holds the answers of {listed(systems)}: name one with system")
        of_system = answers[wanted or systems[0]]
        return {group: answer for group, (answer, _) in of_system.items()}, unmatched

    def _columns(self) -> Columns:
        table, held = self.table, self._rows.columns
        usual = next((name for name in _QUESTION_COLUMNS if name in held), _QUESTION_COLUMNS[0])
        return Columns(
            table.question_column or usual,
            table.answer_column,
            system=table.system_column or ("system" if "system" in held else None),
            contexts=("contexts",) if "contexts" in held else (),
        )


def _failure(row: Row) -> Failure | None:
    """Why a row has no answer, of kind `server` where it does not name one of ours."""
    message = row.cells.get("error", "").strip()
    if not message:
        return None
    kind, _, rest = message.partition(": ")
    return Failure(_KINDS[kind], rest or message) if kind in _KINDS else Failure("server", message)


def _seconds(row: Row, where: str, problems: list[str]) -> float | None:
    """The latency of a row; a cell that holds no seconds is a problem, an empty one is none."""
    cell = row.cells.get("latency_s", "").strip()
    try:
        seconds = float(cell or 0)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        problems.append(f"{where}: column 'latency_s': must be seconds from 0, found {cell!r:.40}")
    return seconds if cell else None
