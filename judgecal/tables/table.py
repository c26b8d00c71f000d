"""A table that people bring, held as one polars frame of texts, with the values as they came beside it."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import itertools
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from judgecal.errors import InputError, listed, refuse, unknown_name
from judgecal.records import well_formed

if TYPE_CHECKING:
    import polars as pl

Unit = Literal["line", "row"]
"""What the number of a row counts: the lines of a text file, or the rows of a format without lines."""
_MOST_CELLS, _MANY_COLUMNS = 50_000_000, 1_000  # of JSON, most of them empty where there are so many keys
_DEEPEST = 20  # objects within objects whose fields are columns


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
        """Return the alternatives, a tuple, in this row's cell of a column name: a list's, or cut text."""
        value, text = self.raw.get(column), self.cells[column]
        cut = text.split(separator) if separator else [text]
        texts = list(map(text_of, value)) if isinstance(value, list) else cut
        return tuple(part.strip() if len(texts) > 1 else part for part in texts if part.strip())


def text_of(value: Any) -> str:
    """Return the text of a cell with a JSON value."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def flat(record: Mapping[str, Any], depth: int = _DEEPEST) -> Mapping[str, Any]:
    """Return a record, a dict, with the fields of objects in it as its own, named with a dot. `{"human":
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
    """Return a value of a frame as a JSON value: NaN and infinity are None, a date or a time its ISO text."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime.date | datetime.time):  # a datetime is a date too
        return value.isoformat()
    return str(value) if isinstance(value, datetime.timedelta | decimal.Decimal) else value


@dataclass(eq=False)
class Table:
    """A table, held whole.

    `frame` has the cells as texts, a column a field; `numbers` the line or row of each. `records`: the JSON
    values of the rows, with the fields of objects by their dotted names; `values`: the columns of a Parquet
    file with their types; with neither of them the values are the texts.

    `where`: where it came from, as messages name it; `name` is free of folders. `source`: for the card of a
    set. `notes`: what its owner should know of how it was read. `columns` are the top-level keys, `fields`
    those of objects too. `n_empty` rows of the file had nothing and were left out.
    """

    where: str
    frame: pl.DataFrame
    numbers: Sequence[int]
    columns: tuple[str, ...]
    records: Sequence[Mapping[str, Any]] | None = None
    values: pl.DataFrame | None = None
    unit: Unit = "line"
    path: Path = Path(os.devnull)
    name: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()
    n_empty: int = 0

    def __post_init__(self) -> None:
        self.name = self.name or self.path.name
        self.source = self.source or self.name

    @classmethod
    def of_records(cls, where: str, numbered: Iterable[tuple[int, Mapping[str, Any]]], **more: Any) -> Table:
        """Make a Table from `where`, a name, and pairs (number, record), in their order."""
        import polars as pl

        numbered = list(numbered)
        numbers, records = [number for number, _ in numbered], [flat(record) for _, record in numbered]
        fields = dict.fromkeys(name for record in records for name in record)
        if len(fields) * len(records) > _MOST_CELLS and len(fields) > _MANY_COLUMNS:
            what = f"{len(fields):,} different keys in {len(records):,} rows"
            raise InputError(f"{where}: holds {what}: give all rows the same keys")
        try:
            columns = {name: [text_of(record.get(name)) for record in records] for name in fields}
            frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
        except RecursionError:
            raise InputError(f"{where}: a value is nested too deeply: take it out") from None
        except UnicodeEncodeError:  # half of a surrogate pair, which no file can hold, becomes U+FFFD
            whole = [(number, json.loads(well_formed(text_of(record)))) for number, record in numbered]
            lines = [
                str(number) for (number, old), (_, new) in zip(numbered, whole, strict=True) if old != new
            ]
            what = f"half of a surrogate pair is read as U+FFFD: {more.get('unit', 'line')} {listed(lines)}"
            return cls.of_records(
                where, whole, **more | {"notes": (*more.get("notes", ()), f"{where}: {what}")}
            )
        top = dict.fromkeys(name for _, record in numbered for name in record)
        return cls(where, frame, numbers, tuple(top), records, **more)

    @classmethod
    def of_frame(cls, where: str, whole: pl.DataFrame, **more: Any) -> Table:
        """Make a Table from `where`, a name, and a whole polars frame of any types. Lists and structs stay
        lists and objects, whole numbers whole; null and NaN are None. A 32-bit float is the shortest decimal
        that means it: 0.1, not 0.10000000149011612. Columns of bytes are left out.
        """
        import polars as pl
        import polars.selectors as cs

        numbers = range(1, whole.height + 1)
        if lost := whole.select(cs.binary() | cs.object()).columns:
            note = f"{where}: left out {', '.join(lost)}: bytes, not text"
            whole, more = whole.drop(lost), {**more, "notes": (*more.get("notes", ()), note)}
        whole = whole.with_columns(pl.col(pl.Float32).cast(pl.String).cast(pl.Float64))
        whole = whole.with_columns(cs.float().fill_nan(None))
        if whole.select(cs.nested()).width:
            rows = zip(numbers, (plain(row) for row in whole.iter_rows(named=True)), strict=True)
            return cls.of_records(where, rows, unit="row", values=whole, **more)
        texts = whole.select(pl.all().cast(pl.String).fill_null(""))
        return cls(where, texts, numbers, tuple(whole.columns), values=whole, unit="row", **more)

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
        return list(self.each())

    def each(self, limit: int | None = None) -> Iterator[Row]:
        """Yield this table's Rows, or its first `limit`, each made when it is needed."""
        raws: Iterable[Mapping[str, Any]] = itertools.repeat({})
        if self.records is not None:
            raws = self.records
        elif self.values is not None:
            raws = map(plain, self.values.iter_rows(named=True))
        texts, is_text = self.frame.iter_rows(named=True), self.records is None and self.values is None
        rows = zip(self.numbers, texts, raws, strict=False)
        for number, cells, raw in itertools.islice(rows, limit):
            yield Row(number, cells, cells if is_text else raw)

    def filled(self) -> Table:
        """Return this Table without its rows that have no content; InputError where there is no other."""
        import polars as pl

        some = self.frame.select(pl.any_horizontal(pl.all() != "")).to_series() if self.fields else None
        if some is None or not some.any():
            raise NoRowsError(f"{self.top}: the file holds no rows")
        whole = dataclasses.replace(self, columns=self.fields, n_empty=int((~some).sum()))
        if whole.n_empty:
            places = some.arg_true().to_list()
            whole.frame, whole.numbers = self.frame.filter(some), [self.numbers[place] for place in places]
            whole.values = None if self.values is None else self.values.filter(some)
            whole.records = self.records and [self.records[place] for place in places]
        return whole

    @property
    def top(self) -> str:
        """The table as a whole: `file:1`, or just the file where there are no lines."""
        return f"{self.where}:1" if self.unit == "line" else self.where

    def at(self, row: Row) -> str:
        return self.place(row.line)

    def place(self, row: int) -> str:
        """`file:line` of a row, or `file:row N`, by its number."""
        return f"{self.where}:{row}" if self.unit == "line" else f"{self.where}:row {row}"

    def require(self, *names: str) -> None:
        """Refuse (InputError) a table that lacks one of the column names, with the nearest ones."""
        lacking = [name for name in dict.fromkeys(names) if name not in {*self.columns, *self.fields}]
        refuse([f"{self.top}: {unknown_name('column', name, self.columns)}" for name in lacking])


class NoRowsError(InputError):
    """A file that is a table without a row."""
