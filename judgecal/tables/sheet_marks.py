"""What a sheet of a workbook holds beside the values of its cells: merged cells, formulas, hidden rows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import IO, Any
from xml.etree import ElementTree as ET

from judgecal.errors import listed

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
                "formulas whose values were not saved: open the file in a spreadsheet program and save it again",
            ),
        ]
        return [f"cells {listed(names)}: {what}" for names, what in found if names]

    def fill(self, rows: Rows, top: int) -> list[str]:
        """Give every row of cells that are merged down a column, below the header, what they show; says
        which."""
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
    """Whether a formula sums up other rows of its own column; in a total of a table of Excel the column has a
    name."""
    match = _SUM.match(formula)
    if match and formula.startswith("SUBTOTAL(") and _COLUMN_NAME.fullmatch(match[1].strip()):
        return True
    area = _Area.of(match[1].strip()) if match else None
    return area is not None and area.left == area.right == column and area.top < area.bottom < row
