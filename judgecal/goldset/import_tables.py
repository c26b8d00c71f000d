"""The table of an import, read one row at a time and never held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from judgecal.errors import InputError, notice, refuse
from judgecal.tables import Row, Source
from judgecal.tables.columns import Columns
from judgecal.tables.formats import open_table
from judgecal.tables.table import RowLocator

_STEP = 1000  # rows between two looks at the progress
_LARGE = 500_000_000  # bytes
JUDGE, VERDICT = "judge", "verdict"
Progress = Callable[[int, int], None]
"""Told now and then how many rows have been read, of how many."""
_T = TypeVar("_T")


class Stream(RowLocator):
    """A table whose rows are read once, in order, and never held.

    `skipped` (rows by reason), `notes` and `problems` are whole once the rows have been read.
    """

    def __init__(self, source: Source, progress: Progress | None = None) -> None:
        self.where, self.unit, self.name = source.where, source.unit, source.name
        self.source, self.columns = source, source.fields
        self.problems: list[str] = []
        self.notes = list(source.remarks)
        self.skipped: dict[str, int] = {}
        self.rows = self._read(progress)

    def _read(self, progress: Progress | None) -> Iterator[Row]:
        count, total = 0, self.source.n_rows
        for count, row in enumerate(self.source.filled_rows(), start=1):
            if progress is not None and not count % _STEP:
                progress(count, total)
            yield row
        self.skipped["without any content"] = total - count
        if not count:
            self.problems.append(f"{self.top}: the file holds no rows")


def open_stream(
    file: str | Path | Source, columns: Columns, encoding: str | None, progress: Progress | None
) -> tuple[Stream, Columns]:
    """Open the table of an import, and resolve its columns; InputError lists what makes no sense."""
    problems: list[str] = []

    def opened() -> Stream:
        if isinstance(file, Source):
            return Stream(file, progress)
        if Path(file).is_file() and (size := Path(file).stat().st_size) >= _LARGE:
            notice(
                f"judgecal: {Path(file).name} is {size / 1e9:.1f} GB: we read it to the end before we "
                "take its rows"
            )
        return Stream(open_table(file, encoding), progress)

    table = attempt(opened, problems)
    if table is None:
        raise InputError([*([] if columns.usual else columns.problems()), *problems])
    columns = columns.resolved(table.columns, None if isinstance(file, Source) else Path(file))
    refuse([*columns.problems(), *table.missing(*columns.names)])
    return table, columns


def attempt(step: Callable[[], _T], problems: list[str]) -> _T | None:
    """What a step comes to; None where it refuses its input, with its problems among the others."""
    try:
        return step()
    except InputError as error:
        problems.extend(error.problems)
        return None
