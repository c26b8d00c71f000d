"""Which row of a sheet names its columns, and how they are called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_TITLES = 10
"""Rows above the header that may be titles."""
_SPACE = re.compile(r" *[\xa0\u2007\u202f\u200b\ufeff][ \xa0\u2007\u202f\u200b\ufeff]*")
_NUMBER = re.compile(r"[+-]?[\d.,]+\s*%?")


def header_place(rows: Sequence[Sequence[str]]) -> int:
    """The place of the header among the rows that a table begins with, from 0: the first one that is neither
    empty nor a title.

    A title has a text in the first column alone, where three columns and more, or an empty row below it, show
    that it is no header, and the next row with any content names two columns and more.
    """
    filled = [[place for place, cell in enumerate(row) if cell.strip()] for row in rows]
    left = min((places[0] for places in filled if places), default=0)
    first = place = _next_filled(filled, 0)
    while place < min(len(rows), _TITLES) and filled[place] == [left]:
        below = _next_filled(filled, place + 1)
        if below == place + 1 and len(rows[place]) - left < 3:
            return first
        place = below
    names = [rows[place][at] for at in filled[place]] if place < len(rows) else []
    return (
        place
        if len(names) > 1 and not any(map(_NUMBER.fullmatch, names))
        else min(first, max(len(rows) - 1, 0))
    )


def _next_filled(filled: Sequence[Sequence[int]], start: int) -> int:
    return next((place for place in range(start, len(filled)) if filled[place]), len(filled))


def column_names(cells: Sequence[str]) -> tuple[str, ...]:
    """The names of a header's cells: a no-break space in one is a space, and an empty one is named by its
    place."""
    names = (_SPACE.sub(" ", cell).strip() for cell in cells)
    return tuple(name or f"column {place}" for place, name in enumerate(names, start=1))


def named_twice(names: Sequence[str], where: str) -> list[str]:
    """What is wrong with the names of columns."""
    return [
        f"{where}: {count} columns are named {name!r}: rename all but one"
        for name, count in Counter(names).items()
        if count > 1
    ]
