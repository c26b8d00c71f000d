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
from itertools import dropwhile, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgecal.errors import InputError, listed, notice, refuse
from judgecal.tables.formats import Format, Output, Write
from judgecal.tables.table import Piece, Table
from judgecal.tables.text import (
    UTF_8,
    encoding_of,
    ending_of,
    read_bytes,
    runs,
    utf8_problems,
    windows_1252_line,
)
from judgecal.workspace import shown

if TYPE_CHECKING:
    import polars as pl

_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
"""What may stand between cells, as messages call it."""
_USUAL = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_SPACE = re.compile(r" *[\xa0\u2007\u202f\u200b\ufeff][ \xa0\u2007\u202f\u200b\ufeff]*")
_COMMA_NUMBER = re.compile(r'(?:^|;)"?-?\d+,\d+"?(?=;|\r|\n|$)')
_SAMPLE_LINES, _SAMPLE_CHARACTERS = 400, 500_000
_EXAMPLE = 20  # characters on each side of one
TOP = 10  # records that the header is held against
_LONGEST_CELL = 2**31 - 1
_MARK = "'"
_CHUNK = 20_000  # records that are Python lists at a time
Record = tuple[int, list[str]]


def header_problems(header: Sequence[str], below: Iterable[Sequence[str]], where: str) -> list[str]:
    """What is wrong with the first row of a table, held against some of the rows below it."""
    filled = [place for place, cell in enumerate(header) if cell.strip()]
    if len(filled) != 1 or not any(any(map(str.strip, row[filled[0] + 1 :])) for row in below):
        return []
    return [
        f"{where}: the first row has one cell and rows below it have more, so it is no header: begin the "
        "table with one row that names each column, and give each answer one row below it; take out titles"
    ]


def column_names(cells: Iterable[str]) -> tuple[str, ...]:
    """The names of a header's cells: a no-break space is a space, an empty one has its place."""
    names = (_SPACE.sub(" ", cell).strip() for cell in cells)
    return tuple(name or f"column {place}" for place, name in enumerate(names, start=1))


def named_twice(names: Iterable[str], where: str) -> list[str]:
    """What is wrong with the names of columns."""
    counts = Counter(names).items()
    return [f"{where}: {n} columns are named {name!r}: rename all but one" for name, n in counts if n > 1]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a file is read: its encoding as Python calls it, the separator of its cells, and what its owner
    should know of that.
    """

    encoding: str
    separator: str
    notes: tuple[str, ...] = ()
    marked: bool = False  # with a byte order mark, by which spreadsheets know UTF-8
    decimal: str = "."  # a comma where its numbers have one
    quoted: bool = True

    def lines(self, data: bytes, errors: str = "strict") -> io.TextIOWrapper:
        """The text, line by line as it stands; of cells that are not quoted only a line feed ends a line."""
        newline = "" if self.quoted else "\n"
        return io.TextIOWrapper(io.BytesIO(data), encoding=self.encoding, errors=errors, newline=newline)


def dialect_of(data: bytes, path: Path, encoding: str | None = None) -> Dialect:
    """How a file is to be read, as it is said, else by the lines that it begins with.

    InputError: it is no text, what is said is none that is known, or two separators would each give a whole
    table.
    """
    where, given = shown(path), encoding
    try:
        encoding = encoding_of(data) if encoding is None else _encoding(encoding)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    marked, lines, left, whole = data.startswith(codecs.BOM_UTF8), list[str](), _SAMPLE_CHARACTERS, False
    try:
        with Dialect(encoding, "").lines(data, "replace") as file:
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
    usual = _USUAL.get(ending_of(path), ",")
    if (separator := _separator(lines, usual, where, whole=whole)) != usual:
        notes.append(f"{where}: {_SEPARATORS[separator]} separates the cells")
    commas = separator == ";" and any(map(_COMMA_NUMBER.search, lines))
    return Dialect(encoding, separator, tuple(notes), marked, "," if commas else ".")


def _encoding(name: str) -> str:
    """An encoding as Python calls it; ValueError: there is none of that name."""
    try:
        codec = codecs.lookup(name).name
        "".encode(codec), "a".encode(codec).decode(codec, "replace")  # of texts, and with any byte
    except (LookupError, UnicodeError):
        raise ValueError(f"--encoding {name} is none that is known: such as utf-8, cp1252, cp1250") from None
    return UTF_8 if codec == "utf-8" else codec


def _separator(lines: Sequence[str], usual: str, where: str, *, whole: bool) -> str:
    """The separator that divides the header, and where there are several that under which all rows are as
    wide as the header.
    """
    widths = {separator: _widths(lines, separator, whole=whole) for separator in _SEPARATORS}
    able = [separator for separator, cells in widths.items() if cells and cells[0] > 1]
    even = [sign for sign in able if len(widths[sign]) > 1 and len(set(widths[sign])) == 1]
    if len(even) > 1:
        each = " or ".join(f"{_SEPARATORS[sign]} ({widths[sign][0]} columns)" for sign in even)
        raise InputError(
            f"{where}: the cells may be separated by {each}, and each makes a whole table: save the table "
            "as .xlsx"
        )
    if even:
        return even[0]
    mostly = [sign for sign in able if 2 * widths[sign].count(widths[sign][0]) >= len(widths[sign])]
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


def records_in(data: bytes, dialect: Dialect, where: str) -> Iterator[Record]:
    """Each record that is no blank line, as its cells, with the line where it begins, from 1.

    Cells are quoted with `"`; a quoted cell may hold line ends. InputError: the file is not in the encoding,
    or its quoting is broken: nothing after that is sure.
    """
    limit, line = csv.field_size_limit(_LONGEST_CELL), 1
    reader: Any = None
    try:
        lines = dialect.lines(data)
        if not dialect.quoted:
            texts = ((number, text.rstrip("\r\n")) for number, text in enumerate(lines, start=line))
            yield from ((number, text.split(dialect.separator)) for number, text in texts if text)
            return
        reader = csv.reader(lines, delimiter=dialect.separator, strict=True)
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except UnicodeError as error:
        raise InputError(
            f"{where}: broken {dialect.encoding.upper()} ({error}): save the file as UTF-8"
        ) from None
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            what = "a quote opened in the row that begins here is never closed: close it"
            raise InputError(f"{where}:{line}: {what}") from None
        raise InputError(
            f"{where}:{reader.line_num}: broken quoting in the row that begins in line {line} "
            f'({error}): write a quote inside a quoted cell as ""'
        ) from None
    finally:
        csv.field_size_limit(limit)


def read_separated(path: Path, encoding: str | None = None, *, pads: bool = False) -> Table:
    """Read separated cells with a header line; every cell is text.

    How the cells are written is told by the file (`Dialect`); what is not as its ending says stands in the
    notes. Many files of tab-separated cells do not quote at all. So where one cannot be read as quoted, and
    every line of it has the tabs of its header, each line is a row and every quote is text. Of two columns of
    one name, as pandas writes an index that is a column too, one is read where they are the same.

    `pads`: a row may end before its last cells, as one of an older Excel with nothing in them does. Whoever
    reads such a table takes its marks off (`cells.undo`), which are more than those of other tables.
    """
    import polars as pl

    data, where = read_bytes(path), shown(path)
    dialect = dialect_of(data, path, encoding)
    if dialect.encoding == UTF_8 and (problems := utf8_problems(data, where)):
        line = None if dialect.marked or encoding is not None else windows_1252_line(data)
        if line is None or "holds a NUL" in problems[0]:
            raise InputError(problems)
        beyond = [at for at, char in enumerate(line) if char > "\x7f"]
        place = next((at for at in beyond if line[at].isalpha()), beyond[0])
        note = (
            f"{where}: read as Windows-1252, since it is not UTF-8: it says "
            f"{line[max(0, place - _EXAMPLE) : place + _EXAMPLE].strip()!r}; if that is garbled, save it as "
            "UTF-8, or give --encoding"
        )
        dialect = replace(dialect, encoding="cp1252", notes=(*dialect.notes, note))
    frame, numbers, problems = _cells(data, dialect, where, pads=pads)
    notes = dialect.notes
    if problems and dialect.separator == "\t":
        plain = replace(dialect, quoted=False)
        unquoted, lines, further = _cells(data, plain, where, pads=pads)
        if not further and unquoted.width > 1:
            texts = enumerate(plain.lines(data), start=1)
            first = next((number for number, text in texts if not _is_quoted(text.rstrip("\r\n"))), 1)
            notes = (*notes, f'{where}: the cells are not quoted (see line {first}), so every " is text')
            frame, numbers, problems = unquoted, lines, further
    refuse(problems, most=50)
    if not pads:
        marked = [column for column in frame if column.str.starts_with(_MARK).any()]
        frame = frame.with_columns(column.map_elements(_unmarked, pl.String) for column in marked)
    return Table(
        where, frame, numbers, tuple(frame.columns),
        path=path, name=path.name, source=path.name, notes=notes, dialect=dialect,
    )  # fmt: skip


def _cells(
    data: bytes, dialect: Dialect, where: str, *, pads: bool
) -> tuple[pl.DataFrame, list[int], list[str]]:
    """The cells as a frame, the line of each row, and what is wrong with them."""
    import polars as pl

    lines, problems, frames = list[int](), list[str](), [pl.DataFrame()]
    try:
        records = records_in(data, dialect, where)
        records = dropwhile(lambda record: not any(map(str.strip, record[1])), records)
        line, header = next(records, (1, [""]))
        names, at = column_names(header if pads else map(_unmarked, header)), f"{where}:{line}"
        top = list(islice(records, TOP))
        problems += header_problems(header, (cells for _, cells in top), at)
        unique = [f"{name}\0{place}" if name in names[:place] else name for place, name in enumerate(names)]
        others = [what for sign, what in _SEPARATORS.items() if len(header) == 1 and sign in header[0]]
        if others and not problems:
            problems = [f"{at}: one column only, and {others[0]} in its name: quote it"]
        while not problems or frames[1:]:
            rows = list[list[str]]()
            for line, cells in top:
                if len(cells) != len(names):
                    short = len(cells) < len(names)
                    if not pads if short else any(cells[len(names) :]):
                        problems.append(
                            f"{where}:{line}: {len(cells)} cells where the header names {len(names)} "
                            f'columns: put "..." round cells that hold {_SEPARATORS[dialect.separator]} or a '
                            "line end"
                        )
                    cells = [*cells, *[""] * len(names)][: len(names)]
                rows.append(cells)
                lines.append(line)
            columns = zip(*rows, strict=True) if rows else [()] * len(names)
            series = zip(unique, columns, strict=True)
            frames.append(pl.DataFrame([pl.Series(name, cells, dtype=pl.String) for name, cells in series]))
            if not (top := list(islice(records, _CHUNK))):
                break
        frame = pl.concat(frames[1:] or frames)
        twins = [(name, of_name) for name, of_name in zip(unique, names, strict=True) if name != of_name]
        if any(frame.width and not frame[name].equals(frame[of_name]) for name, of_name in twins):
            problems[:0] = named_twice(names, at)
        return frame.drop([name for name, _ in twins], strict=False), lines, problems
    except InputError as error:
        problems[:0] = error.problems
    except UnicodeEncodeError as error:  # as UTF-7 can write it
        problems.append(f"{where}: holds half of a surrogate pair ({error}): save it as UTF-8")
    return frames[0], lines, problems


def _unmarked(cell: str) -> str:
    """A cell without the apostrophe that careful programs put before what would be run."""
    return cell[1:] if cell[:1] == _MARK and runs(cell.lstrip(_MARK)) else cell


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
    if output.source is not None and (dialect := output.source.dialect) is not None:
        # as the input was, so that the same spreadsheet opens it
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
    Format("CSV", (".csv",), read_separated, functools.partial(_writer, delimiter=",")),
    Format("TSV", (".tsv", ".tab"), read_separated, functools.partial(_writer, delimiter="\t")),
    Format("separated text", (".txt",), read_separated),
)
