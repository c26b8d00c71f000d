"""A sheet as a spreadsheet saved it: read in whatever of its dialects it comes back.

`read_table` reads what a program wrote and is strict; this reads what people saved: commas, semicolons or tabs,
with or without a byte order mark, columns in another order, empty cells cut off at the end of a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from judgecal.errors import InputError, unknown_name
from judgecal.goldset.sheet import ITEM
from judgecal.tables import separated_records, text_lines
from judgecal.workspace import shown

__all__ = ["SheetRow", "read_sheet"]

_DELIMITERS = ",;\t"


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One row: `file:line` of where it begins, and its cells by column."""

    where: str
    cells: Mapping[str, str]


def read_sheet(path: Path, *, columns: tuple[str, ...]) -> list[SheetRow]:
    """The rows of a sheet by the names of its columns in lower case; empty rows and nameless columns are left out.

    Args:
        path: the file, ending in .csv, .tsv or .txt.
        columns: what must be there.

    Raises:
        InputError: it is no text in UTF-8, a column is missing or there twice, or a row has more cells than the
            header; each with its line.
    """
    where = shown(path)
    if path.suffix.lower() not in (".csv", ".tsv", ".txt"):
        raise InputError(
            f"{where}: a sheet comes back as CSV in UTF-8: save it so, not as {path.suffix or 'this'}"
        )
    first = next(text_lines(path), "")
    # Excel itself takes this line, and some programs write it for Excel.
    has_hint = first.strip().casefold() in ("sep=,", "sep=;", "sep=\t")
    records = [
        (line, cells)
        for line, cells in separated_records(path, _delimiter(path), skip=int(has_hint))
        if any(cell.strip() for cell in cells)
    ]
    if not records:
        raise InputError(f"{where}:1: the sheet is empty")
    header_line, header = records[0]
    names = [name.strip().casefold() for name in header]
    problems = _header_problems(names, columns, f"{where}:{header_line}")
    rows = []
    for line, cells in records[1:]:
        if any(cell.strip() for cell in cells[len(names) :]):
            problems.append(
                f"{where}:{line}: more cells than the header names: save the sheet as CSV once more"
            )
        padded = [*cells, *[""] * (len(names) - len(cells))]
        rows.append(SheetRow(f"{where}:{line}", dict(zip(names, padded, strict=False))))
    if problems:
        raise InputError(problems)
    return rows


def _header_problems(names: list[str], columns: tuple[str, ...], where: str) -> list[str]:
    twice = [name for name, count in Counter(names).items() if name and count > 1]
    missing = [name for name in columns if name not in names]
    known = [name for name in names if name]
    return [
        *(f"{where}: {name!r} names two columns: keep one" for name in twice),
        *(f"{where}: {unknown_name('column', name, known)}" for name in missing),
    ]


def _delimiter(path: Path) -> str:
    """The separator under which one of the first lines names the id column; a comma where none does."""
    for line in islice(text_lines(path), 3):
        for delimiter in _DELIMITERS:
            names = [name.strip(' "\r\n').casefold() for name in line.split(delimiter)]
            if ITEM in names and len(names) > 1:
                return delimiter
    return ","
