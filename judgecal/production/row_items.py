"""Rows of production tables: as items, and as they are written once they are judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from judgecal.errors import InputError
from judgecal.judges import ITEM_INPUTS, Judge, lacking_inputs
from judgecal.records import Item
from judgecal.scale import Label
from judgecal.signatures import CHUNK
from judgecal.tables import Columns, FileSource, Kind, Row

_ANY = "*"
_OPTION_OF = {
    "question": "--question",
    "answer_under_test": "--answer",
    "answer": "--answer",
    "response": "--answer",
    "reference_answer": "--reference",
    "reference_answers": "--reference",
    "context": "--context",
    "contexts": "--context",
    CHUNK: "--context",
    "conversation": "--conversation",
}
_WORDS = {
    "reference_answer": "reference answer",
    "reference_answers": "reference answer",
    "contexts": "context",
    CHUNK: "context",
}
_ANSWERS = frozenset(name for name, option in _OPTION_OF.items() if option == "--answer")
_NOT_IN_TABLES = frozenset({"expect"})


@dataclass(frozen=True, slots=True)
class RowReader:
    """Which column is what, and what the judges ask for; a field that no option names has the column of its
    name."""

    columns: (
        Columns  # the column options of `gold import`, without labels; with a column for each field asked for
    )
    inputs: frozenset[str]  # what the judges ask for
    named: tuple[str, ...]  # the columns that the options name

    @classmethod
    def of(cls, columns: Columns, source: FileSource, *judges: Judge) -> RowReader:
        """The reader of a table for some judges."""
        return cls.asking(columns, source, frozenset(name for judge in judges for name in judge.inputs))

    @classmethod
    def asking(cls, columns: Columns, source: FileSource, inputs: frozenset[str]) -> RowReader:
        """The reader of a table for some inputs of judges; what no judge asks for has no usual column."""
        asked = {_OPTION_OF[name] for name in inputs & _OPTION_OF.keys()}
        parts = {"--reference": "reference", "--context": "contexts", "--conversation": "conversation"}
        only = [
            "question",
            "answer",
            "item",
            "group",
            "system",
            *(parts[name] for name in parts if name in asked),
        ]
        columns = columns.resolved(source.columns, source.path, only=only)
        fields = {name for name, _ in columns.fields}
        more = ((name, name) for name in sorted(inputs - ITEM_INPUTS - fields))
        return cls(dataclasses.replace(columns, fields=(*columns.fields, *more)), inputs, columns.names)

    def check(self, source: FileSource) -> None:
        """Hold the options against the table and the judges.

        Raises InputError: a column is missing, or none is named for what a judge asks for.
        """
        given = {
            "--question": self.columns.question,
            "--answer": self.columns.answer,
            "--reference": self.columns.reference,
            "--context": self.columns.contexts,
            "--conversation": self.columns.conversation,
        }
        problems = [
            f"the judge asks for {name}: name the column with {_OPTION_OF[name]}"
            for name in sorted(self.inputs & _OPTION_OF.keys())
            if not given[_OPTION_OF[name]]
        ]
        problems += [
            f"the judge asks for {name}, and a row of a table has no place for it"
            for name in sorted(self.inputs & _NOT_IN_TABLES)
        ]
        if self.columns.reference_separator is not None and self.columns.reference is None:
            problems.append("--reference-separator without --reference: name the reference column")
        answer = self.columns.answer or ""
        if _ANY in answer and answer not in source.columns:
            problems.append(
                f"--answer {answer}: a row holds one answer here, so that rows out are rows in: bring the table into a "
                "row an answer, with a column for --system"
            )
        else:
            try:
                asked = (column for name, column in self.columns.fields if name in self.inputs)
                source.require(*self.named, *asked)
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(problems)

    def read(self, row: Row) -> Item:
        """The item of a row.

        Without an id of its own it is known by its text, so that rows may move within a file, and equal ones
        are one item; a row without a group belongs to its question, and one without a question to itself.
        """
        item = self.columns.read_row(row)
        item_id = item.item_id or item.sha
        return dataclasses.replace(item, item_id=item_id, group=item.group or item.question or item_id)

    def lacking(self, item: Item) -> str | None:
        """What the judge asks for and the item has not; None where it has all. An answer may be empty."""
        if "question" in self.inputs and not item.question.strip():
            return "the question is empty"
        lacking = sorted({_WORDS.get(name, name) for name in lacking_inputs(self.inputs - _ANSWERS, item)})
        return f"there is no {', no '.join(lacking)}" if lacking else None


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


class Judged(NamedTuple):
    """The columns that are added to a row; `error` is `kind: message` where there is no verdict."""

    verdict: Label | None
    reasoning: str = ""
    error: str | None = None
    passed: bool | None = None
    model_id: str | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    calibrated: float | None = None  # the verdict on the people's scale, through the map of the lock


def judged_columns(*, words: bool) -> list[tuple[str, Kind]]:
    """The columns of `Judged` with what they hold; `words`: whether verdicts are words."""
    kinds: dict[str, Kind] = {
        "cost_usd": "number",
        "latency_s": "number",
        "passed": "flag",
        "calibrated": "number",
    }
    kinds["verdict"] = "text" if words else "number"
    return [(name, kinds.get(name, "text")) for name in Judged._fields]
