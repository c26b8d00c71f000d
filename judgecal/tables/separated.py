"""CSV, TSV and their like: the one reader of them, with the line of every row, and their writer."""

from __future__ import annotations

import contextlib
import csv
import functools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed, notice, refuse
from judgecal.tables.cells import runs
from judgecal.tables.dialect import SEPARATORS, Dialect, dialect_of
from judgecal.tables.formats import Format, Output, Write
from judgecal.tables.header import column_names, header_place, named_twice
from judgecal.tables.table import FileSource, Piece, Row
from judgecal.tables.text import NotUtf8, text_lines
from judgecal.workspace import shown

_TOP = 50  # records in which the header is looked for
_LONGEST_CELL = 2**31 - 1
_MARK = "'"
_Record = tuple[int, list[str]]


def separated_records(path: Path, dialect: Dialect) -> Iterator[_Record]:
    """Each record that is no blank line, as its cells, with the line where it begins, from 1.

    Cells are quoted with `"`; a quoted cell may hold line ends. InputError: the file cannot be read, is not
    in the encoding (`NotUtf8`), or its quoting is broken: nothing after that is sure.
    """
    limit = csv.field_size_limit(_LONGEST_CELL)
    skip = dialect.skip
    lines = islice(text_lines(path, encoding=dialect.encoding), skip, None)
    reader = csv.reader(lines, delimiter=dialect.separator, strict=True)
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


class SeparatedSource(FileSource):
    """Separated cells with a header line; every cell is text.

    How the cells are written is told by the file (`Dialect`); what is not as its ending says stands in the
    notes, and so do titles above the header. Many files of tab-separated cells do not quote at all. So where
    one cannot be read as quoted, and every line of it has the tabs of its header, each line is a row and
    every quote is text. Of two columns of one name, as pandas writes an index that is a column too, one is
    read where no row tells them apart.
    """

    pads = False
    """Whether a row may end before its last cells, as one of an older Excel with nothing in them does.
    Whoever reads such a table takes its marks off (`cells.undo`), which are more than those of other tables.
    """

    _notes: list[str]
    _twins_differ: bool

    def _survey(self) -> None:
        self.dialect = dialect_of(self.path)
        self._records = self._quoted
        try:
            problems = self._problems()
        except NotUtf8 as problem:
            self.dialect = self.dialect.as_windows_1252(self.path, problem)
            problems = self._problems()
        if problems and self.dialect.separator == "\t":
            self._records = self._unquoted
            if not self._problems() and len(self.columns) > 1:
                line = next((number for number, text in self._lines() if not _is_quoted(text)), 1)
                self._notes.append(
                    f'{self.where}: the cells are not quoted (see line {line}), so every " is text'
                )
                problems = []
        refuse(problems, most=50)
        self.notes = (*self.dialect.notes, *self._notes)

    def _problems(self) -> list[str]:
        """Read the whole file; what is wrong with it."""
        problems: list[str] = []
        self.n_rows = 0
        try:
            records = self._records()
            top = list(islice(records, _TOP))
            header = self._header(top, problems)
            for line, cells in chain(top[self._above + 1 :], records):
                self.n_rows += 1
                if self._twins and not self._twins_differ:
                    self._twins_differ = any(
                        cells[one : one + 1] != cells[two : two + 1] for one, two in self._twins
                    )
                short = len(cells) < len(header) and not self.pads
                if short or any(cells[len(header) :]):
                    problems.append(
                        f"{self.where}:{line}: {len(cells)} cells where the header names {len(self._names)} columns: "
                        f'put "..." round cells that hold {SEPARATORS[self.dialect.separator]} or a line end'
                    )
            if self._twins_differ or not self.n_rows:
                problems[:0] = named_twice(self._names, self._header_at)
        except NotUtf8:
            raise
        except InputError as error:
            return [*error.problems, *problems]
        return problems

    def _header(self, top: Sequence[_Record], problems: list[str]) -> list[str]:
        """The cells of the header, which is looked for among the records that the file begins with; what
        twins there are.
        """
        self._above = header_place([cells for _, cells in top])
        line, cells = top[self._above] if top else (1, [])
        self._names, self._header_at = column_names(self._unmarked(cells)), f"{self.where}:{line}"
        first: dict[str, int] = {}
        places = [(first.setdefault(name, place), place) for place, name in enumerate(self._names)]
        self._twins = [pair for pair in places if pair[0] != pair[1]]
        self._twins_differ = False
        self.columns = tuple(first)
        others = [name for one, name in SEPARATORS.items() if len(cells) == 1 and one in cells[0]]
        problems += [
            f"{self.where}:{line}: one column only, and {name} in its name: quote it" for name in others[:1]
        ]
        titled = any(any(above) for _, above in top[: self._above])
        self._notes = [f"{self.where}:{line}: the header: titles above it are left out"] * titled
        twice = listed([self._names[place] for place, _ in self._twins])
        self._notes += [f"{self.where}:{line}: read once, as both columns are the same: {twice}"] * bool(
            twice
        )
        return cells

    def _pieces(self) -> Iterator[Piece]:
        return self._in_pieces(
            Row(line, row := dict(zip(self._names, self._unmarked(cells), strict=False)), row)
            for line, cells in islice(self._records(), self._above + 1, None)
        )

    def _unmarked(self, cells: list[str]) -> list[str]:
        """Cells without the apostrophe that `_writer`, as other careful programs, puts before what would be
        run."""
        if self.pads or not any(cell[:1] == _MARK for cell in cells):
            return cells
        return [cell[1:] if cell[:1] == _MARK and runs(cell.lstrip(_MARK)) else cell for cell in cells]

    def _quoted(self) -> Iterator[_Record]:
        return separated_records(self.path, self.dialect)

    def _unquoted(self) -> Iterator[_Record]:
        yield from ((number, line.split(self.dialect.separator)) for number, line in self._lines())

    def _lines(self) -> Iterator[tuple[int, str]]:
        lines = text_lines(self.path, newline="\n", encoding=self.dialect.encoding)
        for number, line in islice(enumerate(lines, start=1), self.dialect.skip, None):
            if text := line.rstrip("\r\n"):
                yield number, text


class PaddedSource(SeparatedSource):
    """A table whose rows may end before their last cells; what these cells mean must be told by something
    else."""

    pads = True


def _is_quoted(line: str) -> bool:
    """Whether a line of tab-separated cells can be one whose quotes are quoting."""
    try:
        return len(list(csv.reader([line], delimiter="\t", strict=True))) == 1
    except csv.Error:
        return False


@contextlib.contextmanager
def _writer(draft: Path, output: Output, *, delimiter: str) -> Iterator[Write]:
    marked: Counter[str] = Counter()

    def safe(name: str, cell: str) -> str:
        if not cell or cell[0].isalnum() or not runs(cell.lstrip(_MARK)):
            return cell
        marked[name] += 1
        return _MARK + cell

    # An unpaired surrogate, which JSON can hold, has no UTF-8.
    with draft.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        out = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        out.writerow([safe("the header", name) for name in (*output.own, *output.added)])

        def write(piece: Piece, added: Sequence[Sequence[Any]]) -> None:
            for row, values in zip(piece.rows, added, strict=True):
                own = [safe(name, row.cells.get(name, "")) for name in output.own]
                out.writerow(
                    [
                        *own,
                        *(safe(name, _cell(value)) for name, value in zip(output.added, values, strict=True)),
                    ]
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
    Format("CSV", (".csv",), SeparatedSource, functools.partial(_writer, delimiter=",")),
    Format("TSV", (".tsv", ".tab"), SeparatedSource, functools.partial(_writer, delimiter="\t")),
    Format("separated text", (".txt",), SeparatedSource),
)
