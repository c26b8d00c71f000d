"""Workbooks (.xlsx) as tables: one sheet is read, with its merged cells, sums and hidden rows; and written,
every text as the text that it is, whatever it begins with.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import math
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree as ET

from judgecal.errors import InputError, listed, notice, refuse
from judgecal.tables.cells import CELL_LIMIT
from judgecal.tables.formats import Format, Output, Write
from judgecal.tables.separated import column_names, header_place, named_twice
from judgecal.tables.table import Piece, Record, RecordSource, Unit
from judgecal.tables.text import unreadable

Rows = dict[int, list[Any]]
"""The values of the rows that have any, by the row's number, each from column A on; None is an empty cell."""

_RANGE = re.compile(r"\$?([A-Z]{1,3})\$?(\d+):\$?([A-Z]{1,3})\$?(\d+)")
_CELL = re.compile(r"([A-Z]{1,3})(\d+)")
_SUM = re.compile(
    r"\s*(?:SUM|AVERAGE|MEDIAN|MODE|STDEV|VAR|MIN|MAX|COUNT|COUNTA|SUBTOTAL)(?:\.\w+)?\((?:\d+,)?([^,()]+)\)"
)
_COLUMN_NAME = re.compile(r"\w+\[[^\[\]]+\]")
_BROKEN = (
    zipfile.BadZipFile, zlib.error, SyntaxError, LookupError, ValueError, TypeError, AttributeError, EOFError,
    OSError, RuntimeError, ArithmeticError,
)  # fmt: skip
"""What openpyxl and the archive raise on a file that is damaged: they check little themselves. A SyntaxError
is that of either parser of XML: lxml is taken where it is there."""
_LARGEST = 4 * 2**30  # bytes that a workbook may unpack to
_MOST_ROWS = 1_048_576  # of a sheet, its header among them
_TOP = 50  # rows in which the header is looked for
_LINE_END = re.compile(r"\s*[\r\n\t]\s*")
_LITERAL = re.compile(r'"[^"]*"|\\.|\[[^]]*\]')
_ESCAPED = re.compile("_x(00[01][0-9A-Fa-f]|005F)_")
_STRICT = b"http://purl.oclc.org/ooxml/spreadsheetml/main"
_OLD = b"\xd0\xcf\x11\xe0"


class _Area(NamedTuple):
    """A range of cells, its columns and rows from 1."""

    name: str
    left: int
    top: int
    right: int
    bottom: int

    def value(self, rows: Rows) -> Any:
        """What the cells show where they are merged."""
        row = rows.get(self.top, [])
        return row[self.left - 1] if len(row) >= self.left else None


def _area(name: str) -> _Area | None:
    match = _RANGE.fullmatch(name)
    return match and _Area(name, _column(match[1]), int(match[2]), _column(match[3]), int(match[4]))


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number


class SheetMarks:
    """What the XML of a sheet says beside its values: merged cells; cells with a formula whose value was not
    saved; by their numbers rows that sum up others by a formula over their own column; hidden rows.
    """

    def __init__(self, part: IO[bytes]) -> None:
        self.merged: list[_Area] = []
        self.unsaved: list[tuple[int, str]] = []
        self.sums: dict[int, str] = {}
        self.hidden: list[int] = []
        for _, element in ET.iterparse(part):
            tag = element.tag.rpartition("}")[2]
            if tag == "row":
                self._read_row(element)
                element.clear()
            elif tag == "mergeCell" and (area := _area(element.get("ref", ""))):
                self.merged.append(area)
        self.merged.sort(key=lambda area: (area.top, area.left))

    def _read_row(self, row: ET.Element) -> None:
        number = int(row.get("r", "0"))
        if row.get("hidden") in ("1", "true"):
            self.hidden.append(number)
        for cell in row:
            parts: dict[str, ET.Element] = {part.tag.rpartition("}")[2]: part for part in cell}
            place = _CELL.fullmatch(cell.get("r", ""))
            if "f" not in parts or place is None:
                continue
            if ("v" not in parts or not parts["v"].text) and cell.get("t") != "str":
                self.unsaved.append((number, place[0]))
            formula = parts["f"].text or ""
            if _sums_up(formula, _column(place[1]), number):
                self.sums[number] = formula

    def problems(self, rows: Rows, top: int) -> list[str]:
        """What makes the rows from the header `top` on no plain table."""
        merged = [area for area in self.merged if area.bottom >= top and area.value(rows) is not None]
        headed = [area.name for area in merged if area.top <= top]
        across = [area.name for area in merged if area.top > top and area.left < area.right]
        unsaved = [name for row, name in self.unsaved if row >= top]
        again = "open the file in a spreadsheet program and save it again"
        found = [
            (headed, "merged in the header: write it in one row, with a name for each column"),
            (across, "merged across columns: split them, and take out rows that are none of the table"),
            (unsaved, f"formulas whose values were not saved: {again}"),
        ]
        return [f"cells {listed(names)}: {what}" for names, what in found if names]

    def settle(self, rows: Rows, top: int) -> list[str]:
        """Give rows of cells merged down a column, below the header, what they show, and take out the rows
        that sum up others; says which, and how many rows are hidden.
        """
        filled = []
        for area in self.merged:
            below = [row for row in range(area.top + 1, area.bottom + 1) if row in rows]
            value = area.value(rows)
            if area.top > top and area.left == area.right and below and value is not None:
                filled.append(area.name)
                for row in below:
                    rows[row] += [None] * (area.left - len(rows[row]))
                    rows[row][area.left - 1] = value
        sums = {row: formula for row, formula in self.sums.items() if row > top and row in rows}
        for row in sums:
            del rows[row]
        notes = [f"cells {listed(filled)} are merged: each of their rows has what they show"] * bool(filled)
        if sums:
            named = listed([f"{row} ({formula})" for row, formula in sums.items()])
            notes.append(f"left out rows that sum up others: {named}")
        if n_hidden := sum(row > top and row in rows for row in self.hidden):
            notes.append(f"{n_hidden:,} of the rows are hidden in the sheet, and read anyway")
        return notes


def _sums_up(formula: str, column: int, row: int) -> bool:
    """Whether a formula sums up other rows of its column; a total of Excel's tables names the column."""
    match = _SUM.match(formula)
    if match is None:
        return False
    if formula.startswith("SUBTOTAL(") and _COLUMN_NAME.fullmatch(match[1].strip()):
        return True
    area = _area(match[1].strip())
    return area is not None and area.left == area.right == column and area.top < area.bottom < row


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
                marks = SheetMarks(part)
        if len(sheets) > 1:
            self.where = f"{self.where} (sheet {taken.title!r})"
        names, top = _header(rows)
        problems = named_twice([name for name in names if name], f"{self.where}:row {top}")
        refuse([*problems, *(f"{self.where}: {problem}" for problem in marks.problems(rows, top))])
        titled = top > min(rows)
        settled = marks.settle(rows, top)
        others = [
            f"{sheet.title!r}{'' if sheet.sheet_state == 'visible' else ' (hidden)'}"
            for sheet in sheets
            if sheet is not taken
        ]
        counts = ", ".join(f"{word} {n:,}" for word, n in errors.most_common())
        notes = [f"other sheets are not read: {listed(others)}"] * bool(others)
        notes += [f"row {top} is the header: titles above it are left out"] * titled + settled
        notes += [f"cells that hold an error of the spreadsheet: {counts}"] * bool(counts)
        self.notes = tuple(f"{self.where}: {note}" for note in notes)
        blank = [None] * len(names)
        self._held: list[Record] = [
            (row, {name: value for name, value in zip(names, [*values, *blank], strict=False) if name})
            for row, values in rows.items()
            if row > top
        ]
        super()._survey()

    def _records(self, problems: list[str]) -> Iterator[Record]:
        return iter(self._held)


def _header(rows: Rows) -> tuple[list[str], int]:
    """The columns' names, "" for one that holds nothing at all, and the row where they stand."""
    width = max(map(len, rows.values()))
    first = range(min(rows), min(min(rows) + _TOP, max(rows) + 1))
    whole = [[*rows.get(row, ()), *[None] * width][:width] for row in first]
    texts = [["" if value is None else str(value) for value in values] for values in whole]
    place = header_place(texts)
    below = [values for row, values in rows.items() if row > first[place]]
    filled = {at for values in below for at, value in enumerate(values) if value is not None}
    named = column_names([_LINE_END.sub(" ", text) for text in texts[place]])
    used = [bool(text.strip()) or at in filled for at, text in enumerate(texts[place])]
    return [name if there else "" for name, there in zip(named, used, strict=True)], first[place]


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
            f"{where}: cannot be read as a workbook ({reason}): save it again as .xlsx, or as CSV"
        ) from None


def _no_workbook(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            start = file.read(len(_OLD))
        if start == _OLD:
            return "is encrypted, or of an Excel before 2007: save it as .xlsx without a password, or as CSV"
        with zipfile.ZipFile(path) as archive:
            if (size := sum(info.file_size for info in archive.infolist())) > _LARGEST:
                return f"unpacks to {size / 2**30:.1f} GB: save the sheet as CSV"
            names = archive.namelist()
            books = [name for name in names if name.startswith("xl/workbook") and name.endswith(".xml")]
            if any(_STRICT in archive.read(name) for name in books):
                return "is in the form Strict Open XML: save it as plain Excel workbook (.xlsx), or as CSV"
    except zipfile.BadZipFile:
        return "is not a workbook: save it as .xlsx, or give it the ending that it should have"
    except OSError as error:
        raise unreadable(path, error) from None
    return None


def _has_content(sheet: Any) -> bool:
    sheet.reset_dimensions()  # what a workbook says of its own size may be wrong
    cells = (cell for _, row in _numbered(sheet) for cell in row)
    return any(str(cell.value or "").strip() or cell.value == 0 for cell in cells)


def _numbered(sheet: Any) -> Iterator[tuple[int, Any]]:
    """The rows by their numbers, empty ones too; ValueError for one beyond those that a sheet has."""
    for number, cells in enumerate(sheet.iter_rows(), start=1):
        if number > _MOST_ROWS:
            raise ValueError(f"a row beyond {_MOST_ROWS:,}")
        yield number, cells


def _read(sheet: Any) -> tuple[Rows, Counter[str]]:
    """The rows with any content, and the errors among their cells."""
    rows: Rows = {}
    errors: Counter[str] = Counter()
    for number, cells in _numbered(sheet):
        values = [_value(cell) for cell in cells]
        if any(value is not None for value in values):
            rows[number] = values
            wrong = [cell.value for cell in cells if cell.data_type == "e" and cell.value is not None]
            errors.update(map(str, wrong))
    return rows, errors


def _value(cell: Any) -> Any:
    """A cell as a JSON value; None where there is nothing in it. A number has the 15 digits that a
    spreadsheet has, and is whole where it is; a percentage is its text.
    """
    value = cell.value
    if isinstance(value, str):
        if "_x" in value:  # control characters stand so; a line ends with a line feed
            value = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), value).replace("\r\n", "\n")
        return value or None
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time.min else value.isoformat(sep=" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return str(value)
    if _is_percent(str(cell.number_format or "")):
        return f"{value * 100.0:.13g}%"
    if isinstance(value, int):
        return value
    number = float(f"{value:.15g}")
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


@functools.cache
def _is_percent(form: str) -> bool:
    return "%" in _LITERAL.sub("", form)


_LIKE_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGEST_WHOLE = 10**15  # a spreadsheet keeps 15 digits
_LONGEST_LIST = 255  # characters of a list of choices
_WIDTHS = (10, 60)  # characters of a column
_NARROW = 24  # of a header that tells nothing of its cells


def _text_cell(sheet: Any, text: str) -> Any:
    """A cell of a sheet that is being written, with a text: no formula runs, no number is made of it. Control
    characters stand as `_x0001_`, as Excel writes them; it is at most `CELL_LIMIT` characters long.
    """
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet)
    if text:
        text = _LIKE_ESCAPED.sub("_x005F_", text)
        text = _CONTROL.sub(lambda match: f"_x{ord(match[0]):04X}_", text)
        cell.value = _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)[:CELL_LIMIT]
        cell.data_type = "s"
    return cell


def _new_sheet(title: str, names: Sequence[str], widths: Sequence[int]) -> tuple[Any, Any]:
    """A book and its one sheet, with a header that stays in view."""
    import openpyxl
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet(title)
    sheet.freeze_panes = "A2"
    cells = []
    for place, (name, width) in enumerate(zip(names, widths, strict=True), start=1):
        sheet.column_dimensions[get_column_letter(place)].width = min(max(width, _WIDTHS[0]), _WIDTHS[1])
        cell = _text_cell(sheet, name)
        cell.font, cell.alignment = Font(bold=True), Alignment(vertical="top", wrap_text=True)
        cells.append(cell)
    sheet.append(cells)
    return book, sheet


@contextlib.contextmanager
def _writer(draft: Path, output: Output) -> Iterator[Write]:
    """Write a table as the one sheet of a workbook; numbers and truth values are such, lists their JSON."""
    names = (*output.own, *output.added)
    book, sheet = _new_sheet("judged", names, [max(len(name) + 2, _NARROW) for name in names])
    cut: Counter[str] = Counter()

    def cell(name: str, value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            # What a spreadsheet would round or not know is a text.
            huge = isinstance(value, int) and abs(value) >= _LARGEST_WHOLE
            value = str(value) if huge or not math.isfinite(value) else value
        if value is None or isinstance(value, bool | int | float):
            return value
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        cut[name] += len(text) > CELL_LIMIT
        return _text_cell(sheet, text)

    def write(piece: Piece, added: Sequence[Sequence[Any]]) -> None:
        for row, values in zip(piece.rows, added, strict=True):
            whole = [*(row.raw.get(name) for name in output.own), *values]
            sheet.append([cell(name, value) for name, value in zip(names, whole, strict=True)])

    yield write
    book.save(draft)
    if cut.total():
        columns = listed([f"{name} {count:,}" for name, count in cut.most_common() if count])
        notice(
            f"judgecal: {cut.total():,} texts above the {CELL_LIMIT:,} characters of a workbook's cell are "
            f"cut off there ({columns}); .csv, .jsonl and .parquet hold them whole"
        )


@dataclass(frozen=True, slots=True)
class Form:
    """A sheet for people to fill in: its columns, their rows and widths (characters), and for one column the
    texts that a list offers (none: no list).
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    widths: Sequence[int]
    choices: tuple[str, Sequence[str]]


def write_form(file: IO[bytes], form: Form) -> None:
    """Write a form as the one sheet of a workbook: its texts wrapped, and all cells texts, those to be filled
    in too, so that what is typed into them stays as it is typed: no date is made of 8/10. The list of a
    column's texts is shown beside each of its cells; others may be typed too.
    """
    from openpyxl.styles import Alignment
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    book, sheet = _new_sheet("labels", form.columns, form.widths)
    wrapped = Alignment(vertical="top", wrap_text=True)
    for row in form.rows:
        cells = [_text_cell(sheet, text) for text in row]
        for cell in cells:
            cell.alignment, cell.number_format = wrapped, "@"
        sheet.append(cells)
    name, choices = form.choices
    offered = ",".join(choices)
    fits = len(offered) <= _LONGEST_LIST and not any("," in choice for choice in choices)
    if form.rows and choices and fits:
        quoted = offered.replace('"', '""')
        column = get_column_letter(form.columns.index(name) + 1)
        offer = DataValidation(
            "list", formula1=f'"{quoted}"', allow_blank=True, errorStyle="warning", showErrorMessage=True
        )
        offer.error, offer.errorTitle = f"Known are {', '.join(choices)}."[:225], "No label of the list"
        offer.add(f"{column}2:{column}{len(form.rows) + 1}")
        sheet.data_validations.append(offer)
    book.save(file)


FORMATS = (
    Format("xlsx", (".xlsx", ".xlsm"), XlsxSource),
    Format("xlsx", (".xlsx",), None, _writer, most_rows=_MOST_ROWS),
)
