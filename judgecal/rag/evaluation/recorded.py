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

from judgecal.engine.budget import CostEstimate
from judgecal.errors import InputError, listed, notice, refuse, unknown_name
from judgecal.rag.evaluation.system import Asking, System, SystemAnswer
from judgecal.rag.questions import Question
from judgecal.records import ErrorKind, Failure, well_formed
from judgecal.tables import Columns, Row, Table, read_columns, read_table
from judgecal.workspace import Workspace

_QUESTION_COLUMNS = ("question_id", "group", "question")
_PARTS = ("question", "answer", "system", "contexts")
_KINDS: Mapping[str, ErrorKind] = {kind: kind for kind in get_args(ErrorKind)}


class RecordedConfig(BaseModel):
    """The table of such a system."""

    model_config = ConfigDict(extra="forbid", strict=True)
    answers: str  # the file: CSV, TSV, JSONL, xlsx or Parquet
    system: str | None = None  # whose rows, where the file holds those of several
    # As `--col`: `PART=COLUMN`, of question (an id or a text, by default `question_id`, `group` or
    # `question`), answer (empty is an answer without a word), system and contexts.
    col: list[str] = []
    own_contexts: bool = False  # whether they rest on the contexts that each question of the set brings along


def recorded_columns(col: Sequence[str], table: Table, workspace: Workspace | None) -> Columns:
    """Return Columns from `col` entries (PART=COLUMN), a Table of answers, and a Workspace or None."""
    columns = read_columns(col, takes=_PARTS, inputs=(), workspace=workspace)
    columns = columns.resolved(table.columns, only=("system", "contexts"))
    usual = next((name for name in _QUESTION_COLUMNS if name in table.columns), _QUESTION_COLUMNS[0])
    question, answer = columns.question or usual, columns.answer or "answer"
    columns = dataclasses.replace(columns, question=question, answer=answer, usual=False)
    table.require(*columns.names)
    return columns


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
    workspace: Workspace | None = None  # whose `judgecal.toml` names columns

    @cached_property
    def _rows(self) -> Table:
        return read_table(Path(self.table.answers))

    @cached_property
    def shows_contexts(self) -> bool:
        """Whether some row of this system has contexts; an empty list is some."""
        system, columns = self.table.system, self._columns
        return self.table.own_contexts or any(
            row.cells[name].strip()
            for row in self._rows.rows
            for name in columns.contexts
            if system is None or row.cells.get(columns.system or "", "").strip() == system
        )

    def config(self) -> dict[str, Any]:
        """Return the table's configuration as a dict, with the file's sha256 in the place of its path."""
        sha256 = hashlib.sha256(Path(self.table.answers).read_bytes()).hexdigest()
        return {**self.table.model_dump(exclude={"answers"}), "sha256": sha256}

    def check(self, questions: Sequence[Question]) -> list[str]:
        """Return a list of messages, each a problem that the own table has with these Questions."""
        try:
            self._read(questions)
        except InputError as error:
            return list(error.problems)
        return []

    def preview(self, questions: Sequence[Question], asking: Asking) -> CostEstimate:
        return CostEstimate(0, len(questions), 0, 0.0)

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        """Return the recorded SystemAnswer to each of the Questions, given an Asking; nothing is asked."""
        recorded, unmatched = self._read(questions)
        if unmatched:  # counted alone, as they may name sealed questions
            notice(
                f"judgecal: {self.name}: {len(unmatched)} of {len(self._rows.rows)} rows of "
                f"{Path(self.table.answers).name} name no question that we asked"
            )
        lacking = Failure("parse", f"{Path(self.table.answers).name} has no row for this question")
        answers = []
        for question in questions:
            answer = recorded.get(question.group) or SystemAnswer(
                self.name, question.group, None, error=lacking
            )
            if not self.shows_contexts:
                answer = dataclasses.replace(answer, contexts=None)
            elif self.table.own_contexts and answer.error is None:
                answer = dataclasses.replace(answer, contexts=answer.contexts or question.contexts)
            answers.append(answer)
        return answers

    def _read(self, questions: Sequence[Question]) -> tuple[dict[str, SystemAnswer], list[str]]:
        """The answers of this system by the group of their question, and rows that name no question."""
        table, path = self._rows, Path(self.table.answers)
        columns = self._columns
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

    @cached_property
    def _columns(self) -> Columns:
        return recorded_columns(self.table.col, self._rows, self.workspace)


def _failure(row: Row) -> Failure | None:
    """Why a row has no answer, of kind `server` where it does not name one of ours."""
    message = row.cells.get("error", "").strip()
    if not message:
        return None
    kind, _, message_alone = message.partition(": ")
    return Failure(_KINDS[kind], message_alone or message) if kind in _KINDS else Failure("server", message)


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
