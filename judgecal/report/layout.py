"""Aligned plain-text tables."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, indent: str = "") -> str:
    """A table with a rule under its header.

    Args:
        header: column names.
        rows: cells, as many as the header has; a row of one cell is a heading across the table.
        left: how many columns, from the first, are aligned to the left; the others to the right.
        indent: put before each line.
    """
    full = [row for row in rows if len(row) == len(header)]
    widths = [max(map(_width, column)) for column in zip(header, *full, strict=True)]
    lines = [_line(header, widths, left), "-" * (sum(widths) + 2 * (len(widths) - 1))]
    lines += [_line(row, widths, left) if len(row) == len(header) else row[0] for row in rows]
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], left: int) -> str:
    padded = []
    for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        space = " " * (width - _width(cell))
        padded.append(cell + space if place < left else space + cell)
    return "  ".join(padded)


def _width(text: str) -> int:
    """Columns on a terminal: wide characters take two, combining ones none."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)
