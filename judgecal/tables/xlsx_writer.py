"""The writer of workbooks (.xlsx): every text stays the text that it is, whatever it begins with."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from judgecal.errors import listed, notice
from judgecal.tables.cells import CELL_LIMIT
from judgecal.tables.formats import Output, Write
from judgecal.tables.table import Piece

MOST_ROWS = 1_048_576
"""The rows of a sheet, its header among them."""
_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGEST_WHOLE = 10**15  # a spreadsheet keeps 15 digits
_LONGEST_LIST = 255  # characters of a list of choices
_WIDTHS = (10, 60)  # characters of a column
_NARROW = 24  # of a header that tells nothing of its cells


def text_cell(sheet: Any, text: str) -> Any:
    """A cell of a sheet that is being written, with a text: no formula runs, no number is made of it."""
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet)
    if text:
        cell.value = written(text)
        cell.data_type = "s"
    return cell


def written(text: str) -> str:
    """A text as it stands in a workbook: control characters as `_x0001_`, as Excel writes them, at most
    `CELL_LIMIT` characters long.
    """
    text = _ESCAPED.sub("_x005F_", text)
    text = _CONTROL.sub(lambda match: f"_x{ord(match[0]):04X}_", text)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)[:CELL_LIMIT]


def header_row(sheet: Any, names: Sequence[str], widths: Sequence[int]) -> list[Any]:
    """The cells of a header, which stays in view; called before the first row is written."""
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    sheet.freeze_panes = "A2"
    cells = []
    for place, (name, width) in enumerate(zip(names, widths, strict=True), start=1):
        sheet.column_dimensions[get_column_letter(place)].width = min(max(width, _WIDTHS[0]), _WIDTHS[1])
        cell = text_cell(sheet, name)
        cell.font, cell.alignment = Font(bold=True), Alignment(vertical="top", wrap_text=True)
        cells.append(cell)
    return cells


@contextlib.contextmanager
def writer(draft: Path, output: Output) -> Iterator[Write]:
    """Write a table as the one sheet of a workbook; numbers and truth values are such, lists their JSON."""
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("judged")
    names = (*output.own, *output.added)
    sheet.append(header_row(sheet, names, [max(len(name) + 2, _NARROW) for name in names]))
    cut: Counter[str] = Counter()

    def cell(name: str, value: Any) -> Any:
        value = _plain(value)
        if not isinstance(value, str):
            return value
        cut[name] += len(value) > CELL_LIMIT
        return text_cell(sheet, value)

    def write(piece: Piece, added: Sequence[Sequence[Any]]) -> None:
        for row, values in zip(piece.rows, added, strict=True):
            own = [cell(name, row.raw.get(name)) for name in output.own]
            sheet.append(
                [*own, *(cell(name, value) for name, value in zip(output.added, values, strict=True))]
            )

    yield write
    book.save(draft)
    if cut.total():
        columns = listed([f"{name} {count:,}" for name, count in cut.most_common() if count])
        notice(
            f"judgecal: {cut.total():,} texts above the {CELL_LIMIT:,} characters of a workbook's cell are "
            f"cut off there ({columns}); .csv, .jsonl and .parquet hold them whole"
        )


def _plain(value: Any) -> Any:
    """A value as a cell holds it: what a spreadsheet would round or not know is a text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        whole = isinstance(value, int) and abs(value) >= _LARGEST_WHOLE
        return str(value) if whole or not math.isfinite(value) else value
    return json.dumps(value, ensure_ascii=False)


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
    in too.

    What is typed into them stays as it is typed: no date is made of 8/10.
    """
    import openpyxl
    from openpyxl.styles import Alignment

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("labels")
    sheet.append(header_row(sheet, form.columns, form.widths))
    wrapped = Alignment(vertical="top", wrap_text=True)
    for row in form.rows:
        cells = [text_cell(sheet, text) for text in row]
        for cell in cells:
            cell.alignment, cell.number_format = wrapped, "@"
        sheet.append(cells)
    _offer(sheet, form)
    book.save(file)


def _offer(sheet: Any, form: Form) -> None:
    """The list of a column's texts, shown beside each of its cells; others may be typed too."""
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    name, choices = form.choices
    listed_choices = ",".join(choices)
    if (
        not choices
        or not form.rows
        or any("," in choice for choice in choices)
        or len(listed_choices) > _LONGEST_LIST
    ):
        return
    quoted = listed_choices.replace('"', '""')
    column = get_column_letter(form.columns.index(name) + 1)
    offer = DataValidation(
        "list", formula1=f'"{quoted}"', allow_blank=True, errorStyle="warning", showErrorMessage=True
    )
    offer.error, offer.errorTitle = f"Known are {', '.join(choices)}."[:225], "No label of the list"
    offer.add(f"{column}2:{column}{len(form.rows) + 1}")
    sheet.data_validations.append(offer)
