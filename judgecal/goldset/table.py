"""Tables that people bring: CSV, TSV and JSONL, read with the line of every row.

The commands that take column options (`gold import`, `judge`, `agreement`) read their files here.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, unknown_name
from judgecal.goldset.lines import decode, json_lines, read_bytes, shown

__all__ = ["Row", "Table", "read_table"]

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_JSON_LINES = (".jsonl", ".ndjson")
_LATER = {".json": "JSON", ".parquet": "Parquet"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table.

    Attributes:
        line: the line where the row begins, from 1 (a quoted cell may run over several).
        cells: column -> text. A missing value is ""; a JSON number or list is its JSON text.
        raw: column -> the value as it came: for JSONL numbers, lists and objects, else the text.
    """

    line: int
    cells: Mapping[str, str]
    raw: Mapping[str, Any]

    def parts(self, column: str, separator: str | None = None) -> tuple[str, ...]:
        """A cell's alternatives: the elements of a list, else the text cut at the separator; none empty."""
        value = self.raw.get(column)
        if isinstance(value, list):
            texts = [_cell(part) for part in value]
        else:
            text = self.cells[column]
            texts = text.split(separator) if separator else [text]
        if len(texts) > 1:
            texts = [text.strip() for text in texts]
        return tuple(text for text in texts if text.strip())


@dataclass(frozen=True, slots=True)
class Table:
    """A table: where it came from (as messages name it), its columns in order, its rows in order."""

    where: str
    columns: tuple[str, ...]
    rows: list[Row]

    def at(self, row: Row) -> str:
        """`file:line` of a row."""
        return f"{self.where}:{row.line}"

    def require(self, *columns: str) -> None:
        """Refuse a table that lacks a column.

        Raises:
            InputError: lists each missing column with the nearest ones that are there.
        """
        missing = [column for column in dict.fromkeys(columns) if column not in self.columns]
        if missing:
            raise InputError(
                f"{self.where}:1: {unknown_name('column', column, self.columns)}" for column in missing
            )


def read_table(path: str | Path) -> Table:
    """Read a table; its format is the ending of its name: .csv, .tsv, .tab, .jsonl or .ndjson.

    CSV and TSV are UTF-8 with a header line and cells quoted with `"`; a quoted cell may hold line ends. In
    JSONL each line is an object; the columns are all the keys that occur, a key that a row lacks is an empty
    cell there, null and NaN too. Rows without any content are passed over.

    Raises:
        InputError: every problem of the file, each with its line.
    """
    if str(path).startswith("hf:"):
        raise InputError(
            f"{path}: data sets of the Hub cannot be read yet: save it as CSV, TSV or JSONL first"
        )
    path = Path(path)
    ending = path.suffix.lower()
    if ending in _LATER:
        raise InputError(
            f"{shown(path)}: {_LATER[ending]} cannot be read yet: save it as CSV, TSV or JSONL first"
        )
    if ending not in _DELIMITERS and ending not in _JSON_LINES:
        raise InputError(f"{shown(path)}: unknown ending {ending!r}: it must be .csv, .tsv or .jsonl")
    where = shown(path)
    text, problems = decode(read_bytes(path), where)
    if problems:
        raise InputError(problems)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(f"{where}:{line}: holds a NUL byte, so it may be UTF-16: save the file as UTF-8")
    if ending in _JSON_LINES:
        return _read_json(text, where)
    return _read_separated(text, where, _DELIMITERS[ending])


def _read_json(text: str, where: str) -> Table:
    lines = json_lines(text, where, nan_is_missing=True)
    if lines.problems:
        raise InputError(lines.problems)
    columns = tuple(dict.fromkeys(key for _, row in lines.rows for key in row))
    rows = [
        Row(line, {column: _cell(row.get(column)) for column in columns}, row)
        for line, row in lines.rows
        if any(_cell(value) for value in row.values())
    ]
    if not rows:
        raise InputError(f"{where}:1: the file holds no rows")
    return Table(where, columns, rows)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_separated(text: str, where: str, delimiter: str) -> Table:
    problems: list[str] = []
    rows: list[Row] = []
    columns: tuple[str, ...] = ()
    for line, cells in _records(text, where, delimiter=delimiter, problems=problems):
        if not columns:
            columns = _header(cells, f"{where}:{line}", delimiter=delimiter, problems=problems)
        elif len(cells) != len(columns):
            problems.append(
                f"{where}:{line}: {len(cells)} cells where the header names {len(columns)} columns: "
                f'put "..." round cells that hold {_named(delimiter)} or a line end'
            )
        elif any(cells):
            row = dict(zip(columns, cells, strict=True))
            rows.append(Row(line, row, row))
    if not rows and not problems:
        problems.append(f"{where}:1: the file holds no rows below a header line")
    if problems:
        raise InputError(problems)
    return Table(where, columns, rows)


def _records(
    text: str, where: str, *, delimiter: str, problems: list[str]
) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line where it begins; a quoting error ends the reading, as nothing after is sure."""
    limit = csv.field_size_limit(max(len(text), 1))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        problems.append(_quoting_problem(error, where, first=line, last=reader.line_num))
    finally:
        csv.field_size_limit(limit)


def _quoting_problem(error: csv.Error, where: str, *, first: int, last: int) -> str:
    if "unexpected end of data" in str(error):
        return f"{where}:{first}: a quote opened in the row that begins here is never closed: close it"
    return (
        f"{where}:{last}: broken quoting in the row that begins in line {first} ({error}): write a quote "
        'inside a quoted cell as ""'
    )


def _header(cells: list[str], where: str, *, delimiter: str, problems: list[str]) -> tuple[str, ...]:
    names = [cell.strip() or f"column {position}" for position, cell in enumerate(cells, start=1)]
    problems.extend(
        f"{where}: {count} columns are named {name!r}: rename all but one"
        for name, count in Counter(names).items()
        if count > 1
    )
    others = [other for other in (";", "\t", ",") if other in names[0]]
    if len(names) == 1 and others:
        problems.append(
            f"{where}: one column only, and {_named(others[0])} in its name: save the file with "
            f"{_named(delimiter)} between the cells"
        )
    return tuple(names)


def _named(delimiter: str) -> str:
    return {",": "a comma", "\t": "a tab", ";": "a semicolon"}[delimiter]
