"""Workbooks (.xlsx) as tables, and the marks by which a sheet of ours is known again."""

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree as ET

from judgecal.errors import InputError, listed, refuse
from judgecal.tables.formats import Format
from judgecal.tables.separated import column_names, header_place, named_twice
from judgecal.tables.table import Record, RecordSource, Unit
from judgecal.tables.text import unreadable
from judgecal.tables.xlsx_writer import MOST_ROWS, writer

Rows = dict[int, list[Any]]
"""The values of the rows that have any, by the row's number, each from column A on; None is an empty cell."""

_RANGE = re.compile(r"\$?([A-Z]{1,3})\$?(\d+):\$?([A-Z]{1,3})\$?(\d+)")
_CELL = re.compile(r"([A-Z]{1,3})(\d+)")
_SUM = re.compile(
    r"\s*(?:SUM|AVERAGE|MEDIAN|MODE|STDEV|VAR|MIN|MAX|COUNT|COUNTA|SUBTOTAL)(?:\.\w+)?\((?:\d+,)?([^,()]+)\)"
)
_COLUMN_NAME = re.compile(r"\w+\[[^\[\]]+\]")


@dataclass(frozen=True, slots=True)
class _Area:
    """A range of merged cells, its columns and rows from 1."""

    name: str
    left: int
    top: int
    right: int
    bottom: int

    @classmethod
    def of(cls, name: str) -> _Area | None:
        match = _RANGE.fullmatch(name)
        return match and cls(name, _column(match[1]), int(match[2]), _column(match[3]), int(match[4]))

    def value(self, rows: Rows) -> Any:
        """What the merged cells show."""
        row = rows.get(self.top, [])
        return row[self.left - 1] if len(row) >= self.left else None


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number


@dataclass(slots=True)
class SheetMarks:
    """Merged cells; cells with a formula whose value was not saved; by their numbers rows that sum up others
    by a formula over their own column; the numbers of hidden rows.
    """

    merged: list[_Area] = field(default_factory=list)
    unsaved: list[tuple[int, str]] = field(default_factory=list)
    sums: dict[int, str] = field(default_factory=dict)
    hidden: list[int] = field(default_factory=list)

    def problems(self, rows: Rows, top: int) -> list[str]:
        """What makes the rows from the header `top` on no plain table."""
        shown = [one for one in self.merged if one.bottom >= top and one.value(rows) is not None]
        headed = [one.name for one in shown if one.top <= top]
        across = [one.name for one in shown if one.top > top and one.left < one.right]
        unsaved = [name for row, name in self.unsaved if row >= top]
        found = [
            (headed, "merged in the header: write it in one row, with a name for each column"),
            (across, "merged across columns: split them, and take out rows that are none of the table"),
            (
                unsaved,
                "formulas whose values were not saved: open the file in a spreadsheet program and save it "
                "again",
            ),
        ]
        return [f"cells {listed(names)}: {what}" for names, what in found if names]

    def fill(self, rows: Rows, top: int) -> list[str]:
        """Give rows of cells merged down a column, below the header, what they show; says which."""
        filled = []
        for area in self.merged:
            below = [row for row in range(area.top + 1, area.bottom + 1) if row in rows]
            if (
                area.top > top
                and area.left == area.right
                and below
                and (value := area.value(rows)) is not None
            ):
                filled.append(area.name)
                for row in below:
                    rows[row] += [None] * (area.left - len(rows[row]))
                    rows[row][area.left - 1] = value
        return [f"cells {listed(filled)} are merged: each of their rows has what they show"] if filled else []

    def drop_sums(self, rows: Rows, top: int) -> list[str]:
        """Take the rows out that sum up others; says which."""
        dropped = {row: formula for row, formula in self.sums.items() if row > top and row in rows}
        for row in dropped:
            del rows[row]
        named = [f"{row} ({formula})" for row, formula in dropped.items()]
        return [f"left out rows that sum up others: {listed(named)}"] if named else []

    def hidden_notes(self, rows: Rows, top: int) -> list[str]:
        """What to say of hidden rows, which are read as all others."""
        n = sum(row > top and row in rows for row in self.hidden)
        return [f"{n:,} of the rows are hidden in the sheet, and read all the same"] if n else []


def marks_of(part: IO[bytes]) -> SheetMarks:
    """Read the marks of a sheet from its XML."""
    marks = SheetMarks()
    for _, element in ET.iterparse(part):
        tag = element.tag.rpartition("}")[2]
        if tag == "row":
            _read_row(element, marks)
            element.clear()
        elif tag == "mergeCell" and (area := _Area.of(element.get("ref", ""))):
            marks.merged.append(area)
    marks.merged.sort(key=lambda one: (one.top, one.left))
    return marks


def _read_row(row: ET.Element, marks: SheetMarks) -> None:
    number = int(row.get("r", "0"))
    if row.get("hidden") in ("1", "true"):
        marks.hidden.append(number)
    for cell in row:
        parts: dict[str, ET.Element] = {part.tag.rpartition("}")[2]: part for part in cell}
        place = _CELL.fullmatch(cell.get("r", ""))
        if "f" not in parts or place is None:
            continue
        if ("v" not in parts or not parts["v"].text) and cell.get("t") != "str":
            marks.unsaved.append((number, place[0]))
        formula = parts["f"].text or ""
        if _sums_up(formula, _column(place[1]), number):
            marks.sums[number] = formula


def _sums_up(formula: str, column: int, row: int) -> bool:
    """Whether a formula sums up other rows of its column; a total of Excel's tables names the column."""
    match = _SUM.match(formula)
    if match and formula.startswith("SUBTOTAL(") and _COLUMN_NAME.fullmatch(match[1].strip()):
        return True
    area = _Area.of(match[1].strip()) if match else None
    return area is not None and area.left == area.right == column and area.top < area.bottom < row


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
        others = [
            f"{sheet.title!r}{'' if sheet.sheet_state == 'visible' else ' (hidden)'}"
            for sheet in sheets
            if sheet is not taken
        ]
        counts = ", ".join(f"{word} {n:,}" for word, n in errors.most_common())
        notes = [f"other sheets are not read: {listed(others)}"] * bool(others) + titled + below
        notes += [f"cells that hold an error of the spreadsheet: {counts}"] * bool(counts)
        self.notes = tuple(f"{self.where}: {note}" for note in notes)
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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a workbook holds beside cells
            book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
            with contextlib.closing(book):
                yield book
    except InputError:
        raise
    except _BROKEN as error:
        reason = f"{type(error).__name__}: {error}"[:100]
        raise InputError(
            f"{where}: cannot be read as a workbook ({reason}): save it anew as .xlsx, or as CSV"
        ) from None


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
