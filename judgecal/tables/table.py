"""Tables that people bring: their rows, a table held whole, and a table that is read piece by piece."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from judgecal.errors import InputError, refuse, unknown_name
from judgecal.tables.text import unreadable
from judgecal.workspace import shown

Unit = Literal["line", "row"]
"""What the number of a row counts: the lines of a text file, or the rows of a format without lines."""
Record = tuple[int, Mapping[str, Any]]
"""A row as field -> JSON value, with its number."""

_PIECE = 4096  # rows, where they are not long
_PIECE_SIZE = 4_000_000  # characters
_KINDS: Mapping[type, str] = {bool: "bool", int: "int", float: "float"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table: `raw` has the values as they came, `cells` their texts ("" for a missing one, JSON
    for no text).

    `line` is where the row begins, from 1 (a quoted cell may run over several), or the row's number in a
    format without lines.
    """

    line: int
    cells: Mapping[str, str]
    raw: Mapping[str, Any]

    def parts(self, column: str, separator: str | None = None) -> tuple[str, ...]:
        """A cell's alternatives: the elements of a list, else the text cut at the separator; none empty."""
        value, text = self.raw.get(column), self.cells[column]
        texts = [text]
        if isinstance(value, list):
            texts = [_cell(part) for part in value]
        elif separator:
            texts = text.split(separator)
        if len(texts) > 1:
            texts = [part.strip() for part in texts]
        return tuple(part for part in texts if part.strip())


def record_row(number: int, record: Mapping[str, Any]) -> Row:
    """A record as a row.

    A field of an object within it is a column of its own, named with a dot: `{"human": {"score": 1}}` has the
    columns `human` and `human.score`.
    """
    flat = dict(record)
    if any(isinstance(value, dict) for value in record.values()):
        flat = {}
        for key, value in record.items():
            flat[key] = value
            for inner, part in _fields(value) if isinstance(value, dict) else ():
                flat.setdefault(f"{key}.{inner}", part)
        flat |= record  # a key that holds a dot of its own keeps its value
    return Row(number, {name: _cell(value) for name, value in flat.items()}, flat)


def _fields(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, part in value.items():
        yield key, part
        if isinstance(part, dict):
            yield from ((f"{key}.{inner}", deep) for inner, deep in _fields(part))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if type(value) is int:
        return str(value)  # as JSON has it, and quicker
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class RowLocator:
    """How messages name a table, its rows and the columns that it lacks."""

    where: str
    columns: tuple[str, ...]
    unit: Unit = "line"

    def number(self, row: int) -> str:
        """A row by its number alone, as within a message: `line 3` or `row 3`."""
        return f"{self.unit} {row}"

    @property
    def top(self) -> str:
        """The table as a whole: `file:1`, or just the file where there are no lines."""
        return f"{self.where}:1" if self.unit == "line" else self.where

    def at(self, row: Row) -> str:
        """`file:line` of a row, or `file:row N`."""
        return self.place(row.line)

    def place(self, row: int) -> str:
        """The same of a row by its number."""
        return f"{self.where}:{row}" if self.unit == "line" else f"{self.where}:row {row}"

    @property
    def header(self) -> str:
        """Where messages say that a column is missing."""
        return self.top

    def missing(self, *names: str) -> list[str]:
        """A problem for each column that the table lacks, with the nearest ones."""
        lacking = [name for name in dict.fromkeys(names) if not self.has(name)]
        return [f"{self.header}: {unknown_name('column', name, self.columns)}" for name in lacking]

    def has(self, name: str) -> bool:
        """Whether there is such a column; `a.b` is the field `b` of objects in `a`."""
        return name in self.columns

    def require(self, *names: str) -> None:
        """Refuse (InputError) a table that lacks a column."""
        if problems := self.missing(*names):
            raise InputError(problems)


class Table(RowLocator):
    """A table held whole; rows without any content are left out, and counted in `n_rows` and `n_empty`.

    `where`: where it came from, as messages name it; `name` is free of folders. `source`, `licence`: for the
    card of a set, "" where nothing is known. `notes`: what its owner should know of how it was read.
    """

    def __init__(self, table: Source, rows: list[Row]) -> None:
        self.where, self.unit, self.columns, self.rows = table.where, table.unit, table.fields, rows
        self.name, self.source, self.licence = table.name, table.source, table.licence
        self.n_rows, self.n_empty, self.notes = table.n_rows, table.n_rows - len(rows), table.notes
        if table.bytes_columns:
            left_out = f"{self.where}: left out {', '.join(table.bytes_columns)}: bytes, not text"
            self.notes = (*table.notes, left_out)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows in a row; `batch` is their `pyarrow.RecordBatch` where the file is Parquet."""

    rows: list[Row]
    batch: Any = None


class Source(RowLocator, ABC):
    """A table that is read piece by piece, as often as is asked for; it is never held whole unless it must
    be.

    `where` ... `notes` are as those of `Table`; `columns` of JSON are the top-level keys that occur, `fields`
    the fields of objects in them too, by their dotted names, as rows have them. A row of empty cells counts
    in `n_rows`, a blank line does not. `types` of JSON: field -> the kinds of its values. `bytes_columns`:
    bytes (pictures, sound), which only Parquet can hold.
    """

    def __init__(self, where: str) -> None:
        self.where = self.name = self.source = where
        self.licence = ""
        self.notes: tuple[str, ...] = ()
        self.columns: tuple[str, ...] = ()
        self.fields: tuple[str, ...] = ()
        self.n_rows = 0
        self.types: dict[str, set[str]] = {}
        self.bytes_columns: tuple[str, ...] = ()

    def pieces(self, limit: int | None = None) -> Iterator[Piece]:
        """The rows, or the first so many, from the start."""
        left = self.n_rows if limit is None else min(limit, self.n_rows)
        for piece in self._pieces():
            if left < len(piece.rows):
                batch = None if piece.batch is None else piece.batch.slice(0, left)
                piece = Piece(piece.rows[:left], batch)
            if piece.rows:
                yield piece
            left -= len(piece.rows)
            if not left:
                return

    @property
    def header(self) -> str:
        """The file alone."""
        return self.where

    def has(self, name: str) -> bool:
        """As `RowLocator.has`."""
        return name in self.fields or name in self.columns

    def table(self) -> Table:
        """The rows that have any content, all at once; a column that a row lacks is an empty cell there.
        InputError: none.
        """
        empty, rows = dict.fromkeys(self.fields, ""), list[Row]()
        for piece in self.pieces():
            for row in piece.rows:
                if any(row.cells.values()):
                    whole = len(row.cells) == len(empty)
                    rows.append(row if whole else Row(row.line, {**empty, **row.cells}, row.raw))
        table = Table(self, rows)
        if not rows:
            raise InputError(f"{table.top}: the file holds no rows")
        return table

    @abstractmethod
    def _pieces(self) -> Iterator[Piece]:
        """All rows."""

    def _in_pieces(self, rows: Iterable[Row]) -> Iterator[Piece]:
        taken: list[Row] = []
        size = 0
        for row in rows:
            taken.append(row)
            size += sum(map(len, row.cells.values()))
            if len(taken) == _PIECE or size >= _PIECE_SIZE:
                yield Piece(taken)
                taken, size = [], 0
        if taken:
            yield Piece(taken)


class NoRowsError(InputError):
    """A file that is a table without a row."""


class FileSource(Source):
    """A table in a file, read once from end to end when it is opened, so that faults are said first."""

    def __init__(self, path: Path) -> None:
        super().__init__(shown(path))
        self.path = path
        self.name = self.source = path.name
        self._stamp = self._now()
        self._survey()
        if not self.n_rows:
            raise NoRowsError(f"{self.top}: the file holds no rows")

    def pieces(self, limit: int | None = None) -> Iterator[Piece]:
        """The rows, or the first so many, from the start; InputError where the file is not what it was when
        it was opened.
        """
        for piece in super().pieces(limit):
            if self._now() != self._stamp:
                raise InputError(
                    f"{self.where}: the file changed while it was being read: run the same command again "
                    "(judgements that were made are kept)"
                )
            yield piece

    @abstractmethod
    def _survey(self) -> None:
        """Read the file once, refuse it where it cannot be read, and fill in what it holds."""

    def _now(self) -> tuple[int, int]:
        try:
            stat = self.path.stat()
        except OSError as error:
            raise unreadable(self.path, error) from None
        if not self.path.is_file():
            raise InputError(f"{self.where}: is not a file")
        return stat.st_size, stat.st_mtime_ns


class RecordSource(Source):
    """Rows that are records of JSON values, with or without a field; by default those that it holds. A format
    without lines sets `unit` to "row".
    """

    _held: Sequence[Record] = ()

    def _records(self, problems: list[str]) -> Iterable[Record]:
        """All records; what is wrong with the file is added to the problems."""
        return self._held

    def survey(self) -> None:
        """Read all records once, and fill in what they hold; InputError lists what is wrong."""
        problems: list[str] = []
        top: dict[str, None] = {}
        for number, record in self._records(problems):
            self.n_rows += 1
            top.update(dict.fromkeys(record))
            for name, value in record_row(number, record).raw.items():
                kinds = self.types.setdefault(name, set())
                if type(value) is int and not -(2**63) <= value < 2**63:
                    kinds.add("text")  # as no column of Parquet holds it
                elif value is not None:
                    kinds.add(_KINDS.get(type(value), "text"))
        self.columns, self.fields = tuple(top), tuple(self.types)
        refuse(problems, most=50)

    def _pieces(self) -> Iterator[Piece]:
        return self._in_pieces(record_row(number, record) for number, record in self._records([]))


class RecordFile(RecordSource, FileSource):
    """A file of records."""

    def _survey(self) -> None:
        self.survey()
