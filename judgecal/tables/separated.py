"""CSV and TSV: the one reader of them, with the line of every row, and their writer."""

from __future__ import annotations

import contextlib
import csv
import functools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed, notice, refuse
from judgecal.tables.cells import runs
from judgecal.tables.formats import Format, Output, Write
from judgecal.tables.table import FileSource, Piece, Row
from judgecal.tables.text import text_lines
from judgecal.workspace import shown

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_NAMES = {",": "a comma", "\t": "a tab", ";": "a semicolon"}
_LONGEST_CELL = 2**31 - 1
_Record = tuple[int, list[str]]


def separated_records(path: Path, delimiter: str, *, skip: int = 0) -> Iterator[_Record]:
    """Each record that is no blank line, as its cells, with the line where it begins, from 1; `skip` lines are passed
    over.

    Cells are quoted with `"`; a quoted cell may hold line ends. InputError: the file cannot be read, is no UTF-8, or
    its quoting is broken: nothing after that is sure.
    """
    limit = csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(islice(text_lines(path), skip, None), delimiter=delimiter, strict=True)
    line = 1 + skip
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1 + skip
    except csv.Error as error:
        raise InputError(_quoting_problem(error, shown(path), line, reader.line_num + skip)) from None
    finally:
        csv.field_size_limit(limit)


def _quoting_problem(error: csv.Error, where: str, first: int, last: int) -> str:
    if "unexpected end of data" in str(error):
        return f"{where}:{first}: a quote opened in the row that begins here is never closed: close it"
    return (
        f"{where}:{last}: broken quoting in the row that begins in line {first} ({error}): write a quote "
        'inside a quoted cell as ""'
    )


class _SeparatedSource(FileSource):
    """Separated cells with a header line; every cell is text.

    Many files of tab-separated cells do not quote at all. So where one cannot be read as quoted, and every line of it
    has the tabs of its header, each line is a row and every quote is text; a note says so.
    """

    def _survey(self) -> None:
        self._delimiter = _DELIMITERS[self.path.suffix.lower()]
        self._records = self._quoted
        problems = self._problems()
        if problems and self._delimiter == "\t":
            self._records = self._unquoted
            if not self._problems() and len(self.columns) > 1:
                line = next((number for number, text in self._lines() if not _is_quoted(text)), 1)
                self.notes = (f'{self.where}: the cells are not quoted (see line {line}), so every " is text',)
                return
        refuse(problems, most=50)

    def _problems(self) -> list[str]:
        """Read the whole file; what is wrong with it."""
        problems: list[str] = []
        self.n_rows = 0
        try:
            records = self._records()
            line, header = next(records, (1, []))
            self.columns, problems = _header(header, f"{self.where}:{line}", self._delimiter)
            for line, cells in records:
                self.n_rows += 1
                if len(cells) != len(self.columns):
                    problems.append(
                        f"{self.where}:{line}: {len(cells)} cells where the header names {len(self.columns)} columns: "
                        f'put "..." round cells that hold {_NAMES[self._delimiter]} or a line end'
                    )
        except InputError as error:
            return [*error.problems, *problems]
        return problems

    def _pieces(self) -> Iterator[Piece]:
        return self._in_pieces(
            Row(line, row := dict(zip(self.columns, cells, strict=True)), row)
            for line, cells in islice(self._records(), 1, None)
        )

    def _quoted(self) -> Iterator[_Record]:
        return separated_records(self.path, self._delimiter)

    def _unquoted(self) -> Iterator[_Record]:
        yield from ((number, line.split(self._delimiter)) for number, line in self._lines())

    def _lines(self) -> Iterator[tuple[int, str]]:
        for number, line in enumerate(text_lines(self.path, newline="\n"), start=1):
            if text := line.rstrip("\r\n"):
                yield number, text


def _is_quoted(line: str) -> bool:
    """Whether a line of tab-separated cells can be one whose quotes are quoting."""
    try:
        return len(list(csv.reader([line], delimiter="\t", strict=True))) == 1
    except csv.Error:
        return False


def _header(cells: Sequence[str], where: str, delimiter: str) -> tuple[tuple[str, ...], list[str]]:
    """The names of the columns, and what is wrong with them."""
    names = tuple(cell.strip() or f"column {position}" for position, cell in enumerate(cells, start=1))
    problems = [
        f"{where}: {count} columns are named {name!r}: rename all but one"
        for name, count in Counter(names).items()
        if count > 1
    ]
    others = [other for other in (";", "\t", ",") if names and other in names[0]]
    if len(names) == 1 and others:
        problems.append(
            f"{where}: one column only, and {_NAMES[others[0]]} in its name: save the file with "
            f"{_NAMES[delimiter]} between the cells"
        )
    return names, problems


@contextlib.contextmanager
def _writer(draft: Path, output: Output, *, delimiter: str) -> Iterator[Write]:
    marked: Counter[str] = Counter()

    def safe(name: str, cell: str) -> str:
        if not cell or cell[0].isalnum() or not runs(cell):
            return cell
        marked[name] += 1
        return f"'{cell}"

    # An unpaired surrogate, which JSON can hold, has no UTF-8.
    with draft.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        out = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        out.writerow([safe("the header", name) for name in (*output.own, *output.added)])

        def write(piece: Piece, added: Sequence[Sequence[Any]]) -> None:
            for row, values in zip(piece.rows, added, strict=True):
                own = [safe(name, row.cells.get(name, "")) for name in output.own]
                out.writerow(
                    [*own, *(safe(name, _cell(value)) for name, value in zip(output.added, values, strict=True))]
                )

        yield write
    if marked:
        columns = listed([f"{name} {count:,}" for name, count in marked.most_common()])
        notice(
            f"judgecal: {marked.total():,} cells that a spreadsheet would run as formulas got an apostrophe in front "
            f"({columns}); .jsonl and .parquet hold every text as it is"
        )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value)


FORMATS = (
    Format("CSV", (".csv",), _SeparatedSource, functools.partial(_writer, delimiter=",")),
    Format("TSV", (".tsv", ".tab"), _SeparatedSource, functools.partial(_writer, delimiter="\t")),
)
