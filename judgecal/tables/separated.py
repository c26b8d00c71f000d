"""Tables with separated cells, such as CSV and TSV: which dialect they are in, their header, their rows."""

from __future__ import annotations

import codecs
import contextlib
import csv
import functools
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed, notice, refuse
from judgecal.tables.cells import runs
from judgecal.tables.formats import Format, Output, Write
from judgecal.tables.table import FileSource, Piece, Row
from judgecal.tables.text import (
    UNREADABLE,
    UTF_8,
    NotUtf8,
    encoding_of,
    ending_of,
    in_windows_1252,
    open_bytes,
    text_lines,
    unreadable,
)
from judgecal.workspace import shown

_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
"""What may stand between cells, as messages call it."""
_USUAL = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_SPACE = re.compile(r" *[\xa0\u2007\u202f\u200b\ufeff][ \xa0\u2007\u202f\u200b\ufeff]*")
_COMMA_NUMBER = re.compile(r'(?:^|;)"?-?\d+,\d+"?(?=;|\r|\n|$)')
_SAMPLE_LINES, _SAMPLE_CHARACTERS = 400, 500_000
_EXAMPLE = 20  # characters on each side of one
_HINT = "sep="
TOP = 10  # records that the header is held against
_LONGEST_CELL = 2**31 - 1
_MARK = "'"
_Record = tuple[int, list[str]]


def header_problems(header: Sequence[str], below: Iterable[Sequence[str]], where: str) -> list[str]:
    """What is wrong with the first row of a table, held against some of the rows below it."""
    filled = [place for place, cell in enumerate(header) if cell.strip()]
    if len(filled) != 1 or not any(any(map(str.strip, row[filled[0] + 1 :])) for row in below):
        return []
    return [
        f"{where}: the first row has one cell and rows below it have more, so it is no header: begin the "
        "table with one row that names each column, and give each answer one row below it; take out titles"
    ]


def column_names(cells: Sequence[str]) -> tuple[str, ...]:
    """The names of a header's cells: a no-break space is a space, an empty one has its place."""
    names = (_SPACE.sub(" ", cell).strip() for cell in cells)
    return tuple(name or f"column {place}" for place, name in enumerate(names, start=1))


def named_twice(names: Sequence[str], where: str) -> list[str]:
    """What is wrong with the names of columns."""
    return [
        f"{where}: {count} columns are named {name!r}: rename all but one"
        for name, count in Counter(names).items()
        if count > 1
    ]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a file is read: its encoding as Python calls it, the separator of its cells, the lines before its
    records (Excel's `sep=;`), and what its owner should know of that.
    """

    encoding: str
    separator: str
    skip: int = 0
    notes: tuple[str, ...] = ()
    marked: bool = False  # with a byte order mark, by which spreadsheets know UTF-8
    decimal: str = "."  # a comma where its numbers have one

    def as_windows_1252(self, path: Path, problem: NotUtf8) -> Dialect:
        """The same file in Windows-1252; raises the problem where it cannot be that."""
        with open_bytes(path) as file:
            marked = file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
            file.seek(0)
            example = None if marked else in_windows_1252(file)
        if example is None:
            raise problem
        beyond = [at for at, char in enumerate(example) if char > "\x7f"]
        place = next((at for at in beyond if example[at].isalpha()), beyond[0])
        quoted = example[max(0, place - _EXAMPLE) : place + _EXAMPLE].strip()
        note = (
            f"{shown(path)}: read as Windows-1252, since it is not UTF-8: it says {quoted!r}; if that is "
            "garbled, save it as UTF-8, or give gold import --encoding"
        )
        return replace(self, encoding="cp1252", notes=(*self.notes, note))


def dialect_of(path: Path, encoding: str | None = None) -> Dialect:
    """How a file is to be read, as it is said, else by the lines that it begins with; undecodable bytes do
    not matter yet.

    InputError: the file cannot be read or is no text, what is said is none that is known, or two separators
    would each give a whole table.
    """
    where, given = shown(path), encoding
    try:
        encoding = encoding_of(path) if encoding is None else _encoding(encoding)
        with open_bytes(path) as start:
            marked = start.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
    except UNREADABLE as error:
        raise unreadable(path, error) from None
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    lines, left, whole = list[str](), _SAMPLE_CHARACTERS, False
    errors = "surrogateescape" if encoding == UTF_8 else "replace"
    try:
        with io.TextIOWrapper(open_bytes(path), encoding=encoding, errors=errors, newline="") as file:
            while left > 0 and len(lines) < _SAMPLE_LINES and not whole:
                line = file.readline(left)
                whole = not line
                lines += [line] * (not whole)
                left -= len(line)
    except UnicodeError as error:  # UTF-16 without its mark, which no error handler passes over
        raise InputError(
            f"{where}: is not {encoding} ({error}): leave --encoding out, or name another"
        ) from None
    notes = [] if encoding == UTF_8 or given else [f"{where}: read as {encoding.upper()}"]
    hint = lines[0].rstrip("\r\n").rstrip(",;\t") if lines else ""
    if _HINT in (hint.casefold(), hint[:-1].casefold()):
        separator = lines[0].rstrip("\r\n")[len(_HINT) : len(_HINT) + 1]
        if separator not in _SEPARATORS:
            raise InputError(
                f"{where}:1: {hint} names no separator that is known: comma, semicolon, tab or bar"
            )
        notes.append(f"{where}:1: says that {_SEPARATORS[separator]} separates cells")
        return Dialect(encoding, separator, 1, tuple(notes), marked)
    usual = _USUAL.get(ending_of(path), ",")
    if (separator := _separator(lines, usual, where, whole=whole)) != usual:
        notes.append(f"{where}: {_SEPARATORS[separator]} separates the cells")
    commas = separator == ";" and any(map(_COMMA_NUMBER.search, lines))
    return Dialect(encoding, separator, 0, tuple(notes), marked, "," if commas else ".")


def _encoding(name: str) -> str:
    """An encoding as Python calls it; ValueError: there is none of that name."""
    try:
        known = codecs.lookup(name).name
        "".encode(known), "a".encode(known).decode(known, "replace")  # of texts, and with any byte
    except (LookupError, UnicodeError):
        raise ValueError(f"--encoding {name} is none that is known: such as utf-8, cp1252, cp1250") from None
    return UTF_8 if known == "utf-8" else known


def _separator(lines: Sequence[str], usual: str, where: str, *, whole: bool) -> str:
    """The one separator that divides the header, and where there are several the one under which all rows are
    as wide as the header.
    """
    widths = {separator: _widths(lines, separator, whole=whole) for separator in _SEPARATORS}
    able = [separator for separator, found in widths.items() if found and found[0] > 1]
    even = [one for one in able if len(widths[one]) > 1 and len(set(widths[one])) == 1]
    if len(even) > 1:
        each = " or ".join(f"{_SEPARATORS[one]} ({widths[one][0]} columns)" for one in even)
        raise InputError(
            f"{where}: the cells may be separated by {each}, and each makes a whole table: write sep=; (or "
            "the other) in a first line of its own, or save the table as .xlsx"
        )
    if even:
        return even[0]
    mostly = [one for one in able if 2 * widths[one].count(widths[one][0]) >= len(widths[one])]
    return usual if usual in able or not mostly else mostly[0]


def _widths(lines: Sequence[str], separator: str, *, whole: bool) -> list[int]:
    """How many cells each record of a sample has, empty ones behind the header's last not counted; 0 is
    broken quoting.

    The last record of a sample that is not the whole file may be cut off, and does not count.
    """
    widths: list[int] = []
    try:
        for cells in csv.reader(lines, delimiter=separator, strict=True):
            if any(cells):
                width = widths[0] if widths else len(cells)
                widths.append(width if not any(cells[width:]) and len(cells) >= width else len(cells))
    except csv.Error as error:
        return widths + [0] * (whole or "unexpected end" not in str(error))
    return widths if whole else widths[:-1]


def separated_records(path: Path, dialect: Dialect) -> Iterator[_Record]:
    """Each record that is no blank line, as its cells, with the line where it begins, from 1.

    Cells are quoted with `"`; a quoted cell may hold line ends. InputError: the file cannot be read, is not
    in the encoding (`NotUtf8`), or its quoting is broken: nothing after that is sure.
    """
    limit, where = csv.field_size_limit(_LONGEST_CELL), shown(path)
    lines = islice(text_lines(path, encoding=dialect.encoding), dialect.skip, None)
    reader = csv.reader(lines, delimiter=dialect.separator, strict=True)
    line = 1 + dialect.skip
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1 + dialect.skip
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            what = "a quote opened in the row that begins here is never closed: close it"
            raise InputError(f"{where}:{line}: {what}") from None
        raise InputError(
            f"{where}:{reader.line_num + dialect.skip}: broken quoting in the row that begins in line {line} "
            f'({error}): write a quote inside a quoted cell as ""'
        ) from None
    finally:
        csv.field_size_limit(limit)


class SeparatedSource(FileSource):
    """Separated cells with a header line; every cell is text.

    How the cells are written is told by the file (`Dialect`); what is not as its ending says stands in the
    notes, and so do titles above the header. Many files of tab-separated cells do not quote at all. So where
    one cannot be read as quoted, and every line of it has the tabs of its header, each line is a row and
    every quote is text. Of two columns of one name, as pandas writes an index that is a column too, one is
    read where no row tells them apart: Phoenix's spans have such.

    `pads`: a row may end before its last cells, as one of an older Excel with nothing in them does. Whoever
    reads such a table takes its marks off (`cells.undo`), which are more than those of other tables.
    """

    def __init__(self, path: Path, encoding: str | None = None, *, pads: bool = False) -> None:
        self._encoding, self._pads = encoding, pads
        super().__init__(path)

    def _survey(self) -> None:
        self.dialect, self._quoted = dialect_of(self.path, self._encoding), True
        try:
            problems = self._problems()
        except NotUtf8 as problem:
            if self._encoding is not None:
                raise
            self.dialect = self.dialect.as_windows_1252(self.path, problem)
            problems = self._problems()
        if problems and self.dialect.separator == "\t":
            self._quoted = False
            if not self._problems() and len(self.columns) > 1:
                line = next((number for number, text in self._lines() if not _is_quoted(text)), 1)
                self._notes.append(
                    f'{self.where}: the cells are not quoted (see line {line}), so every " is text'
                )
                problems = []
        refuse(problems, most=50)
        self.notes = (*self.dialect.notes, *self._notes)

    def _problems(self) -> list[str]:
        """Read the whole file, its header and its notes with it; what is wrong with it."""
        problems: list[str] = []
        self.n_rows, twins_differ, between = 0, False, _SEPARATORS[self.dialect.separator]
        try:
            records = self._from_header()
            top = list(islice(records, TOP))
            line, header = top[0] if top else (1, [])
            at = f"{self.where}:{line}"
            self._names = column_names(self._unmarked(header))

            firsts: dict[str, int] = {}
            places = [(firsts.setdefault(name, place), place) for place, name in enumerate(self._names)]
            twins = [(first, place) for first, place in places if first != place]
            self.columns = self.fields = tuple(firsts)
            others = [what for sign, what in _SEPARATORS.items() if len(header) == 1 and sign in header[0]]
            problems += [f"{at}: one column only, and {what} in its name: quote it" for what in others[:1]]
            self._notes = []
            if odd := header_problems(header, (cells for _, cells in top[1:]), at):
                return odd
            if twins:
                twice = listed([self._names[place] for _, place in twins])
                self._notes.append(f"{at}: read once, as both columns are the same: {twice}")
            for line, cells in chain(top[1:], records):
                self.n_rows += 1
                twins_differ = twins_differ or any(
                    cells[one : one + 1] != cells[two : two + 1] for one, two in twins
                )
                short = len(cells) < len(header) and not self._pads
                if short or any(cells[len(header) :]):
                    problems.append(
                        f"{self.where}:{line}: {len(cells)} cells where the header names {len(header)} "
                        f'columns: put "..." round cells that hold {between} or a line end'
                    )
            if twins_differ or not self.n_rows:
                problems[:0] = named_twice(self._names, at)
        except NotUtf8:
            raise
        except InputError as error:
            return [*error.problems, *problems]
        return problems

    def _pieces(self) -> Iterator[Piece]:
        return self._in_pieces(
            Row(line, row := dict(zip(self._names, self._unmarked(cells), strict=False)), row)
            for line, cells in islice(self._from_header(), 1, None)
        )

    def _unmarked(self, cells: list[str]) -> list[str]:
        """Cells without the apostrophe that careful programs put before what would be run."""
        if self._pads or not any(cell[:1] == _MARK for cell in cells):
            return cells
        return [cell[1:] if cell[:1] == _MARK and runs(cell.lstrip(_MARK)) else cell for cell in cells]

    def _from_header(self) -> Iterator[_Record]:
        """The records from the header on, which is the first one with any content."""
        return dropwhile(lambda record: not any(map(str.strip, record[1])), self._records())

    def _records(self) -> Iterator[_Record]:
        if self._quoted:
            return separated_records(self.path, self.dialect)
        return ((number, line.split(self.dialect.separator)) for number, line in self._lines())

    def _lines(self) -> Iterator[tuple[int, str]]:
        lines = text_lines(self.path, newline="\n", encoding=self.dialect.encoding)
        for number, line in islice(enumerate(lines, start=1), self.dialect.skip, None):
            if text := line.rstrip("\r\n"):
                yield number, text


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

    encoding, decimal = "utf-8", "."
    if isinstance(output.source, SeparatedSource):  # as the input was, so that the same spreadsheet opens it
        dialect = output.source.dialect
        delimiter = dialect.separator if delimiter == "," else delimiter
        encoding = UTF_8 if dialect.marked or dialect.encoding != UTF_8 else encoding
        decimal = dialect.decimal if delimiter == ";" else decimal
    # An unpaired surrogate, which JSON can hold, has no UTF-8.
    with draft.open("w", encoding=encoding, errors="backslashreplace", newline="") as file:
        out = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        out.writerow([safe("the header", name) for name in (*output.own, *output.added)])

        def write(piece: Piece, added: Sequence[Sequence[Any]]) -> None:
            for row, values in zip(piece.rows, added, strict=True):
                cells = [(name, row.cells.get(name, "")) for name in output.own]
                cells += zip(output.added, (_cell(value, decimal) for value in values), strict=True)
                out.writerow([safe(name, cell) for name, cell in cells])

        yield write
    if marked:
        columns = listed([f"{name} {count:,}" for name, count in marked.most_common()])
        notice(
            f"judgecal: {marked.total():,} cells that a spreadsheet would run as formulas got an apostrophe "
            f"in front ({columns}); .jsonl and .parquet hold every text as it is"
        )


def _cell(value: Any, decimal: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value).replace(".", decimal)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value)


FORMATS = (
    Format("CSV", (".csv",), SeparatedSource, functools.partial(_writer, delimiter=",")),
    Format("TSV", (".tsv", ".tab"), SeparatedSource, functools.partial(_writer, delimiter="\t")),
    Format("separated text", (".txt",), SeparatedSource),
)
