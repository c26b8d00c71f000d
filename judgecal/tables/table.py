"""A table that people bring, held as one polars frame of texts, with the values as they came beside it."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from judgecal.errors import InputError, unknown_name
from judgecal.records import well_formed

if TYPE_CHECKING:
    import polars as pl

Unit = Literal["line", "row"]
"""What the number of a row counts: the lines of a text file, or the rows of a format without lines."""
_MOST_CELLS, _MANY_COLUMNS = 50_000_000, 1_000  # of JSON, most of them empty where there are so many keys
_DEEPEST = 20  # objects within objects whose fields are columns
_PIECE, _PIECE_BYTES = 4096, 4_000_000  # rows that become Python objects at a time, and their texts


@dataclass(slots=True)
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
        if not isinstance(value, list) and not separator:
            return (text,) if text.strip() else ()
        texts = list(map(text_of, value)) if isinstance(value, list) else text.split(separator)
        if len(texts) > 1:
            texts = [part.strip() for part in texts]
        return tuple(part for part in texts if part.strip())


def text_of(value: Any) -> str:
    """The text of a cell with a JSON value."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def flat(record: Mapping[str, Any], depth: int = _DEEPEST) -> Mapping[str, Any]:
    """A record with the fields of objects within it as fields of its own, named with a dot: `{"human":
    {"score": 1}}` has `human` and `human.score`; a key that holds a dot keeps its value.
    """
    if not depth or not any(isinstance(value, dict) for value in record.values()):
        return record
    fields: dict[str, Any] = {}
    for key, value in record.items():
        fields[key] = value
        for inner, part in flat(value, depth - 1).items() if isinstance(value, dict) else ():
            fields.setdefault(f"{key}.{inner}", part)
    return {**fields, **record}


def plain(value: Any) -> Any:
    """A value of a frame as a JSON value: NaN is None, a date or a time its ISO text."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, datetime.date | datetime.time):  # a datetime is a date too
        return value.isoformat()
    return str(value) if isinstance(value, datetime.timedelta | decimal.Decimal) else value


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows in a row; `first` is the place of the first, counted from 0."""

    rows: list[Row]
    first: int = 0


@dataclass(eq=False)
class Table:
    """A table, held whole.

    `frame` has the cells as texts, a column a field; `numbers` the line or row of each. `records`: the JSON
    values of the rows, with the fields of objects by their dotted names; `values`: those of a Parquet file,
    `stored` the Arrow table with all its types; with neither of them the values are the texts.

    `where`: where it came from, as messages name it; `name` is free of folders. `source`, `licence`: for the
    card of a set, "" where nothing is known. `notes`: what its owner should know of how it was read.
    `columns` are the top-level keys, `fields` those of objects too. `n_rows` were in the file, `n_empty` of
    them had nothing and were left out. `bytes_columns`: bytes (pictures, sound), which only Parquet holds.
    `dialect`: of separated text, how it was written.
    """

    where: str
    frame: pl.DataFrame
    numbers: Sequence[int]
    columns: tuple[str, ...]
    records: Sequence[Mapping[str, Any]] | None = None
    values: pl.DataFrame | None = None
    stored: Any = None
    unit: Unit = "line"
    path: Path = Path(os.devnull)
    name: str = ""
    source: str = ""
    licence: str = ""
    notes: tuple[str, ...] = ()
    bytes_columns: tuple[str, ...] = ()
    dialect: Any = None
    n_empty: int = 0

    @classmethod
    def of_records(cls, where: str, numbered: Iterable[tuple[int, Mapping[str, Any]]], **more: Any) -> Table:
        """The table of some records with their numbers; half a surrogate pair in a text becomes U+FFFD, and
        the notes say so.
        """
        import polars as pl

        numbers, records, top = list[int](), list[Mapping[str, Any]](), dict[str, None]()
        for number, record in numbered:
            numbers.append(number)
            top.update(dict.fromkeys(record))
            records.append(flat(record))
        fields = dict.fromkeys(name for record in records for name in record)
        if len(fields) * len(records) > _MOST_CELLS and len(fields) > _MANY_COLUMNS:
            what = f"{len(fields):,} different keys in {len(records):,} rows"
            raise InputError(f"{where}: holds {what}: give all rows the same keys")
        try:
            columns = {name: [text_of(record.get(name)) for record in records] for name in fields}
        except RecursionError:
            raise InputError(f"{where}: a value is nested too deeply: take it out") from None
        try:
            frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
        except UnicodeEncodeError:
            broken = [
                number
                for number, record in zip(numbers, map(text_of, records), strict=True)
                if well_formed(record) != record
            ]
            note = (
                f"{where}: half of a surrogate pair, which no file can hold, is read as U+FFFD: "
                f"{more.get('unit', 'line')} {broken[0]} and {len(broken) - 1} more"
            )
            more["notes"] = (*more.get("notes", ()), note.removesuffix(" and 0 more"))
            columns = {well_formed(name): list(map(well_formed, texts)) for name, texts in columns.items()}
            frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
        return cls(where, frame, numbers, tuple(top), records, **more)

    @classmethod
    def of_frame(cls, where: str, whole: pl.DataFrame, stored: Any = None, **more: Any) -> Table:
        """The table of a frame of any types; lists and structs stay lists and objects, whole numbers whole;
        null and NaN are None. A 32-bit float is the shortest decimal that means it: 0.1, not
        0.10000000149011612.
        """
        import polars as pl

        left_out = tuple(name for name, dtype in whole.schema.items() if _holds_bytes(dtype))
        readable = whole.drop(left_out)
        narrow = {
            name: dtype for name, dtype in readable.schema.items() if _with_floats(dtype, pl.String) != dtype
        }
        for floats in (pl.String, pl.Float64):  # its text is the shortest decimal
            readable = readable.cast({name: _with_floats(dtype, floats) for name, dtype in narrow.items()})
        names, series = set(whole.columns), dict[str, pl.Series]()
        for column in readable:
            series |= {
                name: part for name, part in _fields(column) if name == column.name or name not in names
            }
        frame = pl.DataFrame([_texts(part).alias(name) for name, part in series.items()])
        numbers = range(1, whole.height + 1)
        return cls(
            where, frame, numbers, tuple(whole.columns),
            values=readable, stored=stored, unit="row", bytes_columns=left_out, **more,
        )  # fmt: skip

    @property
    def fields(self) -> tuple[str, ...]:
        """The columns, and the fields of objects in them by their dotted names."""
        return tuple(self.frame.columns)

    @property
    def n_rows(self) -> int:
        """How many rows were in the file; those without any content count, a blank line does not."""
        return self.frame.height + self.n_empty

    @cached_property
    def rows(self) -> list[Row]:
        """All rows as Python objects."""
        return [row for piece in self.pieces() for row in piece.rows]

    def pieces(self, limit: int | None = None) -> Iterator[Piece]:
        """The rows, or the first so many, at most a few thousand at a time."""
        names = self.frame.columns
        n, n_bytes = self.frame.height, int(self.frame.estimated_size())
        size = min(_PIECE, 1 + _PIECE_BYTES * n // max(1, n_bytes))
        n = n if limit is None else min(limit, n)
        for first in range(0, n, size):
            height = min(size, n - first)
            texts = self.frame.slice(first, height).iter_rows()
            cells = [dict(zip(names, row, strict=True)) for row in texts]
            values: Sequence[Mapping[str, Any]] = cells
            if self.records is not None:
                values = self.records[first : first + height]
            elif self.values is not None:
                part = self.values.slice(first, height).iter_rows(named=True)
                values = [flat({name: plain(value) for name, value in row.items()}) for row in part]
            numbers = self.numbers[first : first + height]
            yield Piece([*map(Row, numbers, cells, values)], first)

    def filled(self) -> Table:
        """The table without its rows that have no content; InputError: there is no other."""
        import polars as pl

        some = self.frame.select(pl.any_horizontal(pl.all() != "")).to_series() if self.fields else None
        if some is None or not some.any():
            raise NoRowsError(f"{self.top}: the file holds no rows")
        notes, n_empty = self.notes, int((~some).sum())
        if self.bytes_columns:
            notes = (*notes, f"{self.where}: left out {', '.join(self.bytes_columns)}: bytes, not text")
        whole = dataclasses.replace(self, columns=self.fields, notes=notes, n_empty=n_empty)
        if n_empty:
            places = some.arg_true().to_list()
            whole.frame, whole.numbers = self.frame.filter(some), [self.numbers[place] for place in places]
            whole.stored = None
            whole.values = None if self.values is None else self.values.filter(some)
            whole.records = self.records and [self.records[place] for place in places]
        return whole

    # --- how messages name it, its rows and the columns that it lacks

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

    def missing(self, *names: str) -> list[str]:
        """A problem for each column that the table lacks, with the nearest ones; `a.b` is the field `b` of
        objects in `a`.
        """
        there = {*self.columns, *self.fields}
        lacking = [name for name in dict.fromkeys(names) if name not in there]
        return [f"{self.top}: {unknown_name('column', name, self.columns)}" for name in lacking]

    def require(self, *names: str) -> None:
        """Refuse (InputError) a table that lacks a column."""
        if problems := self.missing(*names):
            raise InputError(problems)

    def typed(self, names: Sequence[str]) -> Any:
        """Some columns as an Arrow table: as a Parquet file stores them, of JSON values as what all of them
        are, else as text.
        """
        import polars as pl
        import pyarrow as pa

        if self.stored is not None:
            return self.stored.select(names)
        if self.records is None:
            return (self.frame if self.values is None else self.values).select(names).to_arrow()
        columns = {}
        for name in names:
            values = [record.get(name) for record in self.records]
            kinds = {type(value) for value in values} - {type(None)}
            if kinds <= {int, float} and all(value is None or abs(value) < 2**63 for value in values):
                dtype: Any = pl.Float64 if float in kinds else pl.Int64
            else:
                dtype = pl.Boolean if kinds == {bool} else pl.String
            if dtype == pl.String or not kinds:  # what is no text is its JSON
                values = [None if value is None else escaped(text_of(value)) for value in values]
            columns[name] = pl.Series(name, values, dtype=dtype if kinds else pl.String, strict=False)
        return pl.DataFrame(columns).to_arrow() if columns else pa.table({})


def escaped(text: str) -> str:
    """A text that UTF-8 can write: half of a surrogate pair is its escape."""
    return text.encode("utf-8", "backslashreplace").decode()


class NoRowsError(InputError):
    """A file that is a table without a row."""


def _holds_bytes(dtype: Any) -> bool:
    import polars as pl

    if isinstance(dtype, pl.List | pl.Array):
        return _holds_bytes(dtype.inner)
    if isinstance(dtype, pl.Struct):
        return any(_holds_bytes(field.dtype) for field in dtype.fields)
    return dtype in (pl.Binary, pl.Object)


def _with_floats(dtype: Any, floats: Any) -> Any:
    """The type with another one in place of 32-bit floats, within lists and structs too."""
    import polars as pl

    if isinstance(dtype, pl.List):
        return pl.List(_with_floats(dtype.inner, floats))
    if isinstance(dtype, pl.Struct):
        return pl.Struct({field.name: _with_floats(field.dtype, floats) for field in dtype.fields})
    return floats if dtype == pl.Float32 else dtype


def _fields(column: pl.Series) -> Iterator[tuple[str, pl.Series]]:
    """A column by its name, and the fields of objects in it by their dotted names."""
    import polars as pl

    yield column.name, column
    for inner in column.dtype.fields if isinstance(column.dtype, pl.Struct) else ():
        for name, part in _fields(column.struct.field(inner.name).alias(inner.name)):
            yield f"{column.name}.{name}", part


def _texts(column: pl.Series) -> pl.Series:
    import polars as pl

    if column.dtype == pl.String or column.dtype.is_integer() or column.dtype == pl.Boolean:
        return column.cast(pl.String).fill_null("")
    return pl.Series(column.name, [text_of(plain(value)) for value in column.to_list()], dtype=pl.String)
