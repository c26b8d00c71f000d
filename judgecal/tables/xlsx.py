"""Workbooks (.xlsx) as tables: the values of one sheet are read; and written, every text as the text that it
is, whatever it begins with.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import warnings
import zipfile
from collections import Counter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from judgecal.errors import InputError, listed, notice, refuse
from judgecal.tables.formats import Format, written_rows
from judgecal.tables.separated import column_names, named_twice, refuse_title
from judgecal.tables.table import Table, text_of
from judgecal.tables.text import CELL_LIMIT, unpacks_to_much
from judgecal.workspace import shown

if TYPE_CHECKING:
    import polars as pl

Rows = dict[int, list[Any]]
"""The values of the rows that have any, by the row's number, each from column A on; None is an empty cell."""

_MOST_READ = 1_000_000  # rows of a sheet
_MANY_CELLS, _LEAST_FILLED = 2_000_000, 0.02  # of a sheet, empty ones before the last of a row among them
_ESCAPED = re.compile("_x(00[01][0-9A-Fa-f]|005F)_")
_OLD = b"\xd0\xcf\x11\xe0"


def _read(path: Path) -> Table:
    """Read one sheet of a workbook; a row's number is the sheet's own."""
    import openpyxl

    where = shown(path)
    try:
        if problem := _no_workbook(path):
            raise InputError(f"{where}: {problem}")
        with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(path) as archive:
            book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
            with contextlib.closing(book):
                rows_of = {sheet.title: _rows_of(sheet) for sheet in book.worksheets}
                sheets = [sheet for sheet in book.worksheets if rows_of[sheet.title]]
                if not sheets:
                    raise InputError(f"{where}: no sheet of the workbook holds anything")
                taken = next((sheet for sheet in sheets if sheet.sheet_state == "visible"), sheets[0])
                rows = rows_of[taken.title]
                with archive.open(
                    taken._worksheet_path.lstrip("/")
                ) as xml:  # the one way to what is no value
                    merged, unsaved = _odd_cells(xml, rows)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - openpyxl checks little: a damaged file raises anything
        reason = f"{type(error).__name__}: {error}"[:100]
        raise InputError(
            f"{where}: cannot be read as a workbook ({reason}): save it again as .xlsx, or as CSV"
        ) from None
    if len(sheets) > 1:
        where = f"{where} (sheet {taken.title!r})"
    top = min(rows)
    header, at = rows.pop(top), f"{where}:row {top}"
    texts = ["" if value is None else " ".join(str(value).split()) for value in header]
    filled = {place for values in rows.values() for place, value in enumerate(values) if value is not None}
    texts += [""] * (max(filled, default=0) + 1 - len(texts))
    all_names = column_names(texts)
    names = {place: all_names[place] for place, text in enumerate(texts) if text.strip() or place in filled}
    refuse_title([texts[place] for place in names], at)
    problems = named_twice(names.values(), at)
    if merged and not problems:
        problems.append(
            f"{where}: cells {listed(merged)} are merged: write one row that names each column, and a value "
            "into each cell of the rows below it"
        )
    if unsaved:
        problems.append(
            f"{where}: cells {listed(unsaved)}: formulas whose values were not saved: open the file in a "
            "spreadsheet program and save it again"
        )
    refuse(problems)
    others = [repr(sheet.title) for sheet in sheets if sheet is not taken]
    records = (
        (row, {name: values[place] if place < len(values) else None for place, name in names.items()})
        for row, values in rows.items()
    )
    notes = (f"{where}: other sheets are not read: {listed(others)}",) * bool(others)
    return Table.of_records(where, records, unit="row", path=path, notes=notes)


def _odd_cells(sheet: IO[bytes], rows: Rows) -> tuple[list[str], list[str]]:
    """The merged ranges that show anything, and the cells with a formula whose value was not saved."""
    from openpyxl.utils import range_boundaries

    merged: list[tuple[int, int, str]] = []
    unsaved: list[str] = []
    for _, element in ET.iterparse(sheet):
        tag = element.tag.rpartition("}")[2]
        if tag == "c":
            parts = {part.tag.rpartition("}")[2]: part.text for part in element}
            if "f" in parts and not parts.get("v") and element.get("t") != "str":
                unsaved.append(element.get("r", "without a name"))
        elif tag == "row":
            element.clear()
        elif tag == "mergeCell":
            left, top, _, _ = range_boundaries(element.get("ref", ""))
            if any(value is not None for value in rows.get(top, ())[left - 1 : left]):
                merged.append((top, left, element.get("ref", "")))
    return [name for _, _, name in sorted(merged)], unsaved


def _no_workbook(path: Path) -> str | None:
    """Why a file is not read as a workbook, told by its archive before a part is parsed; None where it is."""
    if not zipfile.is_zipfile(path):
        if path.read_bytes().startswith(_OLD):
            return "is encrypted, or of an Excel before 2007: save it as .xlsx without a password, or as CSV"
        return "is not a workbook: save it as .xlsx, or give it the ending that it should have"
    with zipfile.ZipFile(path) as archive:
        too_much = unpacks_to_much(sum(part.file_size for part in archive.infolist()), path)
    return too_much and f"{too_much}: save the sheet as CSV"


def _rows_of(sheet: Any) -> Rows:
    """The rows with any content; InputError for one that lies too far down."""
    rows, n_cells, n_filled = Rows(), 0, 0
    sheet.reset_dimensions()  # what a workbook says of its own size may be wrong
    for number, cells in enumerate(sheet.iter_rows(), start=1):
        if number > _MOST_READ:
            raise InputError(f"{sheet.title!r} has more than {_MOST_READ:,} rows: save it as CSV or Parquet")
        if not cells:
            continue
        values = [None if cell.value is None else _value(cell) for cell in cells]
        n_filled += len(values) - values.count(None)
        n_cells += len(values)
        if n_cells > max(_MANY_CELLS, n_filled / _LEAST_FILLED):
            what = f"{sheet.title!r} spreads few values over more than {_MANY_CELLS:,} cells"
            raise InputError(f"{what}: take out what stands far to the right")
        if any(value is not None for value in values):
            rows[number] = values
    return rows


def _value(cell: Any) -> Any:
    """A cell as a JSON value; None where there is nothing in it. A number has the 15 digits that a
    spreadsheet has, and is whole where it is; a percentage is its text, as 0.85 would be another label.
    """
    value = cell.value
    if isinstance(value, str):
        if "_x" in value:  # control characters stand so; a line ends with a line feed
            value = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), value).replace("\r\n", "\n")
        return value if value.strip() else None
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        return str(value).removesuffix(" 00:00:00")
    if isinstance(value, int | float) and not isinstance(value, bool) and "%" in cell.number_format:
        return f"{value * 100.0:.13g}%"
    if not isinstance(value, float):
        return value
    number = float(f"{value:.15g}")
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


_LIKE_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")
_MOST_ROWS = 1_048_576  # that a sheet holds, its header among them
_LARGEST_NUMBER = 10**15  # a spreadsheet keeps 15 digits
_WIDTH = 40  # characters of a column


def _write(draft: Path, frame: pl.DataFrame, source: Table | None) -> None:
    """Write a table as the one sheet of a workbook; numbers and truth values are such, lists their JSON.

    Texts are wrapped and stay as they are typed, those that somebody types into an empty one too: no formula
    runs, no date is made of 8/10. Control characters stand as `_x0001_`, as Excel writes them.
    """
    import openpyxl
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    if frame.height >= _MOST_ROWS:
        raise InputError(f"a workbook holds {_MOST_ROWS - 1:,} rows at most: write .csv or .parquet")
    names, cut = (*(source.columns if source else ()), *frame.columns), Counter[str]()
    wrapped = Alignment(vertical="top", wrap_text=True)
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("table")
    sheet.freeze_panes = "A2"

    def cell(name: str, value: Any) -> Any:
        # what a spreadsheet would round, or not know, is a text
        if value is None or (isinstance(value, int | float) and abs(value) < _LARGEST_NUMBER):
            return value
        text = text_of(value)
        cut[name] += len(text) > CELL_LIMIT
        text_cell = WriteOnlyCell(sheet)
        text_cell.alignment, text_cell.number_format = wrapped, "@"
        if text:
            text = _LIKE_ESCAPED.sub("_x005F_", text)
            text = _CONTROL.sub(lambda match: f"_x{ord(match[0]):04X}_", text)
            text_cell.value = text[:CELL_LIMIT]
            text_cell.data_type = "s"
        return text_cell

    header = [cell(name, name) for name in names]
    for place, name_cell in enumerate(header, start=1):
        name_cell.font = Font(bold=True)
        sheet.column_dimensions[get_column_letter(place)].width = _WIDTH
    sheet.append(header)
    for record in written_rows(frame, source):
        sheet.append([cell(name, record.get(name)) for name in names])
    book.save(draft)
    if cut.total():
        notice(
            f"judgecal: {cut.total():,} texts above the {CELL_LIMIT:,} characters of a workbook's cell are "
            f"cut off there ({listed([*+cut])}); .csv, .jsonl and .parquet hold them whole"
        )


FORMATS = (Format((".xlsx", ".xlsm"), _read), Format((".xlsx",), None, _write))
