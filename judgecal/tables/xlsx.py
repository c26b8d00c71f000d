"""Workbooks of Excel and LibreOffice (.xlsx): the first sheet with any content, read as it is seen, and
written.

A cell is what its reader sees: a percentage is `85%`, a date its ISO text, an error its word. What a workbook
holds beside plain rows (titles, merged cells, formulas, further sheets) is told in the notes, or refused.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed, refuse
from judgecal.tables.formats import Format
from judgecal.tables.header import column_names, header_place, named_twice
from judgecal.tables.sheet_marks import Rows, marks_of
from judgecal.tables.table import Record, RecordSource, Unit
from judgecal.tables.text import unreadable
from judgecal.tables.xlsx_writer import MOST_ROWS, writer

_BROKEN = (
    zipfile.BadZipFile, zlib.error, SyntaxError, LookupError, ValueError, TypeError, AttributeError, EOFError,
    OSError, RuntimeError, ArithmeticError,
)  # fmt: skip
"""What openpyxl and the archive raise on a file that is damaged: they check little themselves. A SyntaxError
is that of either parser of XML: lxml is taken where it is there."""
_LARGEST = 4 * 2**30  # bytes that a workbook may unpack to
_TOP = 50  # rows in which the header is looked for
_LINE_END = re.compile(r"\s*[\r\n\t]\s*")
_LITERAL = re.compile(r'"[^"]*"|\\.|\[[^]]*\]')
_ESCAPED = re.compile("_x(00[01][0-9A-Fa-f]|005F)_")
_STRICT = b"http://purl.oclc.org/ooxml/spreadsheetml/main"
_OLD = b"\xd0\xcf\x11\xe0"


class XlsxSource(RecordSource):
    """One sheet of a workbook, held whole; a row's number is the sheet's own."""

    unit: Unit = "row"

    def _survey(self) -> None:
        with _opened(self.path, self.where) as book, zipfile.ZipFile(self.path) as archive:
            sheets = [sheet for sheet in book.worksheets if _has_content(sheet)]
            if not sheets:
                raise InputError(f"{self.where}: no sheet of the workbook holds anything")
            taken = next((sheet for sheet in sheets if sheet.sheet_state == "visible"), sheets[0])
            rows, errors = _read(taken)
            with archive.open(taken._worksheet_path.lstrip("/")) as part:  # the one way to what is no cell
                marks = marks_of(part)
        if len(sheets) > 1:
            self.where = f"{self.where} (sheet {taken.title!r})"
        names, top = self._header(rows)
        problems = named_twice([name for name in names if name], f"{self.where}:row {top}")
        refuse([*problems, *(f"{self.where}: {problem}" for problem in marks.problems(rows, top))])
        titled = [f"row {top} is the header: titles above it are left out"] * (top > min(rows))
        below = [*marks.fill(rows, top), *marks.drop_sums(rows, top), *marks.hidden_notes(rows, top)]
        told = (*_others(sheets, taken), *titled, *below, *_error_notes(errors))
        self.notes = tuple(f"{self.where}: {note}" for note in told)
        blank = [None] * len(names)
        self._held: list[Record] = [
            (row, {name: value for name, value in zip(names, [*values, *blank], strict=False) if name})
            for row, values in rows.items()
            if row > top
        ]
        super()._survey()

    def _header(self, rows: Rows) -> tuple[list[str], int]:
        """The columns' names, "" for one that holds nothing at all, and the row where they stand."""
        width = max(map(len, rows.values()))
        first = range(min(rows), min(min(rows) + _TOP, max(rows) + 1))
        texts = [[_text(value) for value in [*rows.get(row, ()), *[None] * width][:width]] for row in first]
        place = header_place(texts)
        top = first[place]
        below = [values for row, values in rows.items() if row > top]
        filled = {at for values in below for at, value in enumerate(values) if value is not None}
        named = column_names([_LINE_END.sub(" ", text) for text in texts[place]])
        return [
            name if texts[place][at].strip() or at in filled else "" for at, name in enumerate(named)
        ], top

    def _records(self, problems: list[str]) -> Iterator[Record]:
        return iter(self._held)


@contextlib.contextmanager
def _opened(path: Path, where: str) -> Iterator[Any]:
    """The workbook, for reading its values; InputError where the file is none, or is broken."""
    import openpyxl

    try:
        if problem := _no_workbook(path):
            raise InputError(f"{where}: {problem}")
        with warnings.catch_warnings(), contextlib.closing(_load(openpyxl, path)) as book:
            warnings.simplefilter("ignore")  # of what a workbook holds beside cells
            yield book
    except InputError:
        raise
    except _BROKEN as error:
        reason = f"{type(error).__name__}: {error}"[:100]
        raise InputError(
            f"{where}: cannot be read as a workbook ({reason}): save it anew as .xlsx, or as CSV"
        ) from None


def _load(openpyxl: Any, path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)


def _no_workbook(path: Path) -> str | None:
    """Why a file is no workbook that can be read."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_OLD))
        if start == _OLD:
            return "is encrypted, or of an Excel before 2007: save it as .xlsx without a password, or as CSV"
        with zipfile.ZipFile(path) as archive:
            if (size := sum(info.file_size for info in archive.infolist())) > _LARGEST:
                return f"unpacks to {size / 2**30:.1f} GB: save the sheet as CSV"
            books = [
                name
                for name in archive.namelist()
                if name.startswith("xl/workbook") and name.endswith(".xml")
            ]
            if any(_STRICT in archive.read(name) for name in books):
                return "is in the form Strict Open XML: save it as plain Excel workbook (.xlsx), or as CSV"
    except zipfile.BadZipFile:
        return "is no workbook: save it as .xlsx, or give it the ending that it should have"
    except OSError as error:
        raise unreadable(path, error) from None
    return None


def _has_content(sheet: Any) -> bool:
    sheet.reset_dimensions()  # what a workbook says of its own size may be wrong
    return any(
        str(cell.value or "").strip() or cell.value == 0 for _, row in _numbered(sheet) for cell in row
    )


def _numbered(sheet: Any) -> Iterator[tuple[int, Any]]:
    """The rows by their numbers, empty ones too; ValueError for one beyond those that a sheet has."""
    for number, cells in enumerate(sheet.iter_rows(), start=1):
        if number > MOST_ROWS:
            raise ValueError(f"a row beyond {MOST_ROWS:,}")
        yield number, cells


def _others(sheets: list[Any], taken: Any) -> list[str]:
    """Which sheets are left out."""
    hidden = {"visible": ""}
    names = [f"{one.title!r}{hidden.get(one.sheet_state, ' (hidden)')}" for one in sheets if one is not taken]
    return [f"other sheets are not read: {listed(names)}"] if names else []


def _read(sheet: Any) -> tuple[Rows, Counter[str]]:
    """The rows with any content, and the errors among their cells."""
    rows: Rows = {}
    errors: Counter[str] = Counter()
    for number, cells in _numbered(sheet):
        values = [_value(cell) for cell in cells]
        if any(value is not None for value in values):
            rows[number] = values
            errors.update(
                str(cell.value) for cell in cells if cell.data_type == "e" and cell.value is not None
            )
    return rows, errors


def _error_notes(errors: Counter[str]) -> list[str]:
    said = ", ".join(f"{word} {n:,}" for word, n in errors.most_common())
    return [f"cells that hold an error of the spreadsheet: {said}"] if errors else []


def _value(cell: Any) -> Any:
    """A cell as a JSON value; None where there is nothing in it."""
    value = cell.value
    if isinstance(value, str):
        return _unescaped(value) if value else None
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time.min else value.isoformat(sep=" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return str(value)
    return _number(value, str(cell.number_format or ""))


def _number(value: float, form: str) -> Any:
    """A number with the 15 digits that a spreadsheet has, whole where it is; a percentage as its text."""
    if _is_percent(form):
        return f"{value * 100.0:.13g}%"
    if isinstance(value, int):
        return value
    number = float(f"{value:.15g}")
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


@functools.cache
def _is_percent(form: str) -> bool:
    return "%" in _LITERAL.sub("", form)


def _unescaped(text: str) -> str:
    """Control characters stand in a workbook as `_x000D_` and the like; a line ends with a line feed."""
    return (
        _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text).replace("\r\n", "\n")
        if "_x" in text
        else text
    )


def _text(value: Any) -> str:
    return "" if value is None else str(value)


FORMATS = (
    Format("xlsx", (".xlsx", ".xlsm"), XlsxSource),
    Format("xlsx", (".xlsx",), None, writer, most_rows=MOST_ROWS),
)
