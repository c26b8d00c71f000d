"""Rows of production tables as items."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from judgecal.errors import InputError
from judgecal.goldset import Columns
from judgecal.judges import ITEM_INPUTS, Judge, lacking_inputs
from judgecal.records import Context, Item
from judgecal.tables import FileSource, Row

_ANY = "*"
_OPTION_OF = {
    "reference_answer": "--reference",
    "reference_answers": "--reference",
    "context": "--context",
    "contexts": "--context",
}
_WORDS = {"reference_answer": "reference answer", "reference_answers": "reference answer", "contexts": "context"}
_NOT_IN_TABLES = frozenset({"conversation", "expect"})


@dataclass(frozen=True, slots=True)
class RowReader:
    """Which column is what, and what the judges ask for.

    Attributes:
        columns: the column options of `gold import`, without labels.
        context: the column of the contexts: a text, or a list of texts or of objects with a `text`.
        inputs: what the judges ask for; a field is read from the column of its name.
    """

    columns: Columns
    context: str | None
    inputs: frozenset[str]

    @classmethod
    def of(cls, columns: Columns, context: str | None, *judges: Judge) -> RowReader:
        """The reader for some judges."""
        return cls(columns, context, frozenset(name for judge in judges for name in judge.inputs))

    def check(self, source: FileSource) -> None:
        """Hold the options against the table and the judges.

        Raises:
            InputError: a column is missing, or none is named for what a judge asks for.
        """
        given = {"--reference": self.columns.reference, "--context": self.context}
        problems = [
            f"the judge asks for {name}: name the column with {_OPTION_OF[name]}"
            for name in sorted(self.inputs & _OPTION_OF.keys())
            if given[_OPTION_OF[name]] is None
        ]
        problems += [
            f"the judge asks for {name}, and a row of a table has no place for it"
            for name in sorted(self.inputs & _NOT_IN_TABLES)
        ]
        if self.columns.reference_separator is not None and self.columns.reference is None:
            problems.append("--reference-separator without --reference: name the reference column")
        if _ANY in self.columns.answer and self.columns.answer not in source.columns:
            problems.append(
                f"--answer {self.columns.answer}: a row holds one answer here, so that rows out are rows in: bring the "
                "table into a row an answer, with a column for --system"
            )
        else:
            try:
                source.require(*self._names)
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(problems)

    @property
    def _names(self) -> tuple[str, ...]:
        return (*self.columns.names, *([self.context] if self.context else []), *self._fields)

    @property
    def _fields(self) -> list[str]:
        return sorted(self.inputs - ITEM_INPUTS)

    def read(self, row: Row) -> Item:
        """The item of a row.

        Without an id of its own it is known by its text, so that rows may move within a file, and equal ones are
        one item; a row without a group belongs to its question.
        """
        cells = row.cells
        if any(name not in cells for name in self._names):
            row = Row(row.line, dict.fromkeys(self._names, "") | dict(cells), row.raw)
        item = self.columns.read_item(row, "", item_id="", problems=[])
        named = "" if self.columns.item is None else row.cells[self.columns.item].strip()
        contexts = () if self.context is None else _contexts(row.raw.get(self.context))
        fields = {name: row.cells[name] for name in self._fields if row.cells[name].strip()}
        item = dataclasses.replace(item, group=item.group or item.question, contexts=contexts, fields=fields)
        return dataclasses.replace(item, item_id=named or item.sha)

    def lacking(self, item: Item) -> str | None:
        """What the judge asks for and the item has not; None where it has all. An answer may be empty."""
        if "question" in self.inputs and not item.question.strip():
            return "the question is empty"
        lacking = sorted({_WORDS.get(name, name) for name in lacking_inputs(self.inputs, item)})
        return f"there is no {', no '.join(lacking)}" if lacking else None


def _contexts(value: Any) -> tuple[Context, ...]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _list(value)
    parts = value if isinstance(value, list) else [] if value is None else [value]
    found = (_context(part) for part in parts)
    return tuple(context for context in found if context.text.strip())


def _list(text: str) -> Any:
    """A JSON list in a cell; a text that only begins like one stays a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _context(part: Any) -> Context:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        document = part.get("document_id")
        return Context(part["text"], document if isinstance(document, str) else None)
    return Context(part if isinstance(part, str) else "" if part is None else json.dumps(part))


@dataclass(frozen=True, slots=True)
class RowItems:
    """The items of a table that a judge can judge, read from the file whenever they are gone through."""

    source: FileSource
    reader: RowReader
    limit: int | None = None

    def __iter__(self) -> Iterator[Item]:
        for piece in self.source.pieces(self.limit):
            for row in piece.rows:
                item = self.reader.read(row)
                if self.reader.lacking(item) is None:
                    yield item
