"""Rows of a table of answers as items, what they lack for a judge, and the stored judgement of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from judgecal.engine.log import Journal
from judgecal.errors import InputError
from judgecal.experiment.judgements import of_calls, whole_item
from judgecal.judges.protocol import Judge, lacking_inputs, single_calls, units_of
from judgecal.records import Item, Judgement, Key, digest
from judgecal.signatures import ANSWER_A, ANSWER_B, ITEM_INPUTS
from judgecal.tables import Columns, Row, Table
from judgecal.tables.columns import PAIR
from judgecal.workspace import Workspace

UNREADABLE = "cannot be read"
# Of a judge's input that is made of a column: its part, the name under which a reader says why it cannot be
# read, and the word for it.
_INPUTS = {
    "question": ("question", "request", "question"),
    **dict.fromkeys(("answer_under_test", "answer", "response"), ("answer", "response", "answer")),
    **dict.fromkeys(
        ("reference_answer", "reference_answers"), ("reference", "expected_response", "reference answer")
    ),
    **dict.fromkeys(("context", "contexts", "chunk"), ("contexts", "retrieved_context", "context")),
    "conversation": ("conversation", "conversation", "conversation"),
    ANSWER_A: (ANSWER_A, ANSWER_A, "answer A"),
    ANSWER_B: (ANSWER_B, ANSWER_B, "answer B"),
}
_ANSWERS = frozenset(("answer_under_test", "answer", "response"))
_ALWAYS = _ANSWERS | {"question"}  # what every item has, if only as an empty text


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A row as an item; `problems`: a part that is not there -> why, or how its table calls it."""

    item: Item
    problems: Mapping[str, str] = field(default_factory=dict)

    def shown(self, judge: Judge) -> Item:
        """Return the row's own Item as a Judge is shown it: a prompt judge sees no context without a text.

        One that reads all of the item may read the documents, which are no part of an item's sha: they become
        a part of its id, so that no verdict outlives them in the journal.
        """
        item = self.item
        if "item" in judge.inputs:
            ids = [item.reference_documents, [context.document_id for context in item.contexts]]
            return dataclasses.replace(item, item_id=f"{item.item_id}#{digest(ids)[:8]}")
        if judge.kind != "prompt" or all(context.text.strip() for context in item.contexts):
            return item
        texts = tuple(context for context in item.contexts if context.text.strip())
        return dataclasses.replace(item, contexts=texts)

    def lacking(self, judge: Judge) -> str | None:
        """Return a text on what a Judge asks for and this row lacks, but an answer; None where it has all."""
        inputs, problems = judge.inputs, self.problems
        rules: tuple[str, ...] = getattr(judge, "rules", ())
        if rules and self.item.expect.keys().isdisjoint(rules):
            return f"there is no rule {' or '.join(rules)}"
        if "item" in inputs:  # it reads what it needs: a part that cannot be read must not pass for none
            return "; ".join(why for why in problems.values() if UNREADABLE in why) or None
        shown = self.shown(judge) if self.item.contexts else self.item
        absent = [name for name in lacking_inputs(inputs, shown) if name not in _ANSWERS]
        if problems:
            absent += [name for name in inputs if name in _ALWAYS and _INPUTS[name][1] in problems]
        reasons = []
        for name in inputs if absent else ():
            if name in absent:
                _, part, word = _INPUTS.get(name, ("", name, name))
                reasons.append(problems.get(part, f"there is no {word}"))
        return "; ".join(dict.fromkeys(reasons)) or None


class Reader(Protocol):
    """Rows as items, by the columns that options name or by a tool's own names."""

    @property
    def columns(self) -> Columns: ...
    def check(self, source: Table) -> None: ...
    def read(self, row: Row) -> ReadRow: ...


@dataclass(frozen=True, slots=True)
class RowReader:
    """Rows whose columns the options name; a field that no option names has the column of its name."""

    # the column options of `gold import`, without labels; with a column for each field asked for
    columns: Columns
    required: frozenset[str]  # inputs of judges that every table must have a column for
    named: tuple[str, ...]  # the columns that the options name

    @classmethod
    def of(cls, columns: Columns, source: Table, *judges: Judge, may_lack: bool = False) -> RowReader:
        """Return a RowReader from Columns and a source Table, for any Judges given.

        `may_lack`: a judge whose column is not there is left out, not refused.
        """
        inputs = frozenset(name for judge in judges for name in judge.inputs)
        of_inputs = {_INPUTS[name][0] for name in inputs & _INPUTS.keys()} - {"answer"}
        answers = PAIR if ANSWER_A in inputs else ("answer",)
        looked_for = {"question", *answers, "item", "group", "system", *of_inputs}
        columns = columns.resolved(source.columns, source.path, only=looked_for)
        fields = {name for name, _ in columns.fields}
        more = ((name, name) for name in sorted(inputs - ITEM_INPUTS - fields))
        required = inputs & _ALWAYS if may_lack else inputs
        return cls(dataclasses.replace(columns, fields=(*columns.fields, *more)), required, columns.names)

    def check(self, source: Table) -> None:
        """Refuse a source Table that lacks a named column or leaves a judge of this reader without any."""
        columns = self.columns
        problems = [
            f"the judge asks for {name}: name the column with --col {_INPUTS[name][0]}=COLUMN"
            for name in sorted(self.required & _INPUTS.keys())
            if not getattr(columns, _INPUTS[name][0])
        ]
        if "expect" in self.required:
            problems.append("the judge asks for expect, which a row of a table cannot hold")
        if columns.reference_separator is not None and columns.reference is None:
            problems.append("--reference-separator without --col reference=: name the column")
        try:
            fields = (column for name, column in columns.fields if name in self.required)
            source.require(*self.named, *fields)
        except InputError as error:
            problems += error.problems
        if problems:
            raise InputError(problems)

    def read(self, row: Row) -> ReadRow:
        """Read a Row of a table as a ReadRow, with its Item.

        Without an id of its own it is known by its text, so that rows may move within a file, and equal ones
        are one item; a row without a group belongs to its question, and one without a question to itself.
        """
        item = self.columns.read_row(row)
        item_id = item.item_id or item.sha
        item = dataclasses.replace(item, item_id=item_id, group=item.group or item.question or item_id)
        return ReadRow(item, {} if item.question.strip() else {"request": "the question is empty"})


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of a table, the first `limit` of them, read from the file whenever they are gone through."""

    source: Table
    reader: Reader
    limit: int | None = None

    def __iter__(self) -> Iterator[ReadRow]:
        return map(self.reader.read, self.source.each(self.limit))


@dataclass(frozen=True, slots=True)
class JudgedItems:
    """The items that a judge is asked about among some rows, as it is shown them."""

    judge: Judge
    rows: Iterable[ReadRow]
    takes: Callable[[ReadRow], bool]

    def __iter__(self) -> Iterator[Item]:
        return (row.shown(self.judge) for row in self.rows if self.takes(row))


def judgement_of(
    journal: Journal, judge: Judge, item: Item, *, unit: str | None = None, repeat: int = 0
) -> Judgement:
    """Return a Judge's Judgement of an Item, or of one of its chunks, from a Journal."""
    parts = [(name, order) for name, order, _ in units_of(judge, item) if unit in (None, name)]
    fingerprint, calls = single_calls(judge.fingerprint)
    numbers = range(calls * repeat, calls * (repeat + 1))
    try:
        rows = [
            [journal.latest[Key(item.item_id, item.sha, fingerprint, number, *part)] for number in numbers]
            for part in parts
        ]
        judgement = whole_item([of_calls(judge.name, row) for row in rows], judge.scale)
        return judgement if unit is None else dataclasses.replace(judgement, unit=unit)
    except KeyError:
        raise InputError(
            f"{journal.path}: holds no judgement of item {item.item_id} by {judge.name}: the table changed "
            "while it was being judged, run the same command again"
        ) from None


def input_config(workspace: Workspace, source: Table, reader: Reader) -> dict[str, str]:
    """Return a configuration's dict, from a Workspace, a source Table (by its path there) and a Reader.

    Its content is no part of that: a row is known by its text, so that of a table that has grown, or in which
    a row was mended, only what is new is called for.
    """
    path, root = source.path.resolve(), workspace.root.resolve()
    shown: Path = path.relative_to(root) if path.is_relative_to(root) else path
    return {"file": shown.as_posix(), "columns": reader.columns.options()}
