"""Tables with separated cells, such as CSV and TSV: which dialect they are in, their header, their rows."""

from __future__ import annotations

import codecs
import contextlib
import csv
import functools
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgecal.errors import InputError, notice, refuse
from judgecal.tables.formats import Format, written_rows
from judgecal.tables.table import Table, text_of
from judgecal.tables.text import UTF_8, UTF_16, is_formula, read_bytes, utf8_problems
from judgecal.workspace import shown

if TYPE_CHECKING:
    import polars as pl

_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
"""What may stand between cells, as messages call it."""
_USUAL = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_HEAD = 1_000_000  # bytes, in which the header ends
_NO_TEXT = (
    (b"PK\x03\x04", "a zip archive, as .xlsx and .ods are: give it its own ending"),
    (b"\xd0\xcf\x11\xe0", "an old or encrypted file of Excel: save it as .xlsx without a password"),
    *((mark, "UTF-32: save it as UTF-8") for mark in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)),
)
"""How files begin that are no text in lines, and what they are."""
_UNDEFINED = b"\x81\x8d\x8f\x90\x9d"  # in Windows-1252
_LONGEST_CELL = 2**31 - 1
_MARK = "'"
_CHUNK = 20_000  # records that are Python lists at a time
Record = tuple[int, list[str]]


def column_names(cells: Iterable[str]) -> tuple[str, ...]:
    """Return a tuple of column names, from a header's cells: no-break spaces are spaces."""
    names = (cell.replace("\xa0", " ").strip() for cell in cells)
    return tuple(name or f"column {place}" for place, name in enumerate(names, start=1))


def refuse_title(cells: Sequence[str], where: str) -> None:
    """Refuse a table whose first row is a title, a single cell, from the row's cells and `where`, a text."""
    if len(cells) > 1 == sum(bool(cell.strip()) for cell in cells):
        raise InputError(
            f"{where}: the first row has one cell and rows below it have more, so it is no header: take out "
            "titles, and begin the table with one row that names each column"
        )


def named_twice(names: Iterable[str], where: str) -> list[str]:
    """Return a list of problems, a text for each name twice there, from column names and `where`."""
    counts = Counter(names).items()
    return [f"{where}: {n} columns are named {name!r}: rename all but one" for name, n in counts if n > 1]


def _encoding_of(data: bytes, given: str | None, where: str) -> tuple[str, list[str]]:
    """Return (encoding as Python calls it, notes) of a file's bytes: `given`, or what the bytes tell.

    InputError, led by `where`: they are of no text, or the given encoding is none.
    """
    if given is not None:
        try:
            "".encode(given), b"a".decode(given, "replace")  # an encoding of texts
        except (LookupError, UnicodeError):
            what = "is none that is known: such as utf-8, cp1252, cp1250"
            raise InputError(f"{where}: --encoding {given} {what}") from None
        encoding = codecs.lookup(given).name
        encoding = UTF_8 if encoding == "utf-8" else encoding
    elif formats := [what for mark, what in _NO_TEXT if data.startswith(mark)]:
        raise InputError(f"{where}: the file is {formats[0]}")
    else:
        encoding = "utf-16" if data.startswith(UTF_16) else UTF_8
    if encoding != UTF_8:
        return encoding, [] if given else [f"{where}: read as UTF-16"]
    if problems := utf8_problems(data, where):
        others = (line for line in data.split(b"\n") if not line.isascii())
        two_encodings = any(line.decode(errors="ignore").encode() == line for line in others)
        undefined = not {*_UNDEFINED}.isdisjoint(data)
        if given or two_encodings or undefined or "holds a NUL" in problems[0]:
            raise InputError(problems)
        what = "since it is not UTF-8: if texts are garbled, give --encoding"
        return "cp1252", [f"{where}: read as Windows-1252, {what}"]
    return encoding, []


def _separator(text: str, usual: str, where: str) -> str:
    """The separator that divides the first row with anything in it into most cells."""
    widths = dict.fromkeys(_SEPARATORS, 0)
    for separator in _SEPARATORS:
        with contextlib.suppress(csv.Error):  # broken quoting
            records = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
            widths[separator] = next((len(cells) for cells in records if any(cells)), 0)
    most = max(widths.values())
    fitting = [separator for separator, width in widths.items() if width == most]
    if most > 1 and len(fitting) > 1:
        each = " or ".join(_SEPARATORS[separator] for separator in fitting)
        raise InputError(
            f"{where}: the cells may be separated by {each} ({most} columns): save the table as .xlsx"
        )
    return fitting[0] if most > 1 else usual


def _records_in(data: bytes, encoding: str, separator: str, where: str) -> Iterator[Record]:
    """Yield Records, (line where it begins, cells), of a file's bytes; a blank line is none.

    Cells are quoted with `"`; a quoted cell may hold line ends. InputError, led by `where`: the file is not
    in the encoding, or its quoting is broken: nothing after that is sure.
    """
    limit, line = csv.field_size_limit(_LONGEST_CELL), 1
    lines = io.TextIOWrapper(io.BytesIO(data), encoding=encoding, newline="")
    reader: Any = csv.reader(lines, delimiter=separator, strict=True)
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except UnicodeError as error:
        raise InputError(f"{where}: broken {encoding.upper()} ({error}): save the file as UTF-8") from None
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
    """Read the Table of separated cells at a path, with a header line; every cell is text.

    The file tells how its cells are written; what is not as its ending says stands in the notes.

    `pads`: a row may end before its last cells, as Excel writes rows with nothing in them.
    """
    import polars as pl

    data, where = read_bytes(path), shown(path)
    encoding, notes = _encoding_of(data, encoding, where)
    usual = _USUAL.get(path.suffix.lower(), ",")
    if (separator := _separator(data[:_HEAD].decode(encoding, "replace"), usual, where)) != usual:
        notes.insert(0, f"{where}: {_SEPARATORS[separator]} separates the cells")
    lines, problems, frames = list[int](), list[str](), list[pl.DataFrame]()
    records = _records_in(data, encoding, separator, where)
    records = dropwhile(lambda record: not any(map(str.strip, record[1])), records)
    line, header = next(records, (1, [""]))
    header = list(map(_unmarked, header))
    names, at = column_names(header), f"{where}:{line}"
    refuse_title(header, at)
    unique = [f"{name}\0{place}" if name in names[:place] else name for place, name in enumerate(names)]
    while chunk := list(islice(records, _CHUNK)):
        rows = list[list[str]]()
        for line, cells in chunk:
            if (len(cells) < len(names) and not pads) or any(cells[len(names) :]):
                problems.append(
                    f"{where}:{line}: {len(cells)} cells where the header names {len(names)} columns: put "
                    f'"..." round cells that hold {_SEPARATORS[separator]} or a line end'
                )
            rows.append([*cells, *[""] * len(names)][: len(names)])
            lines.append(line)
        try:
            frames.append(pl.DataFrame(rows, schema=dict.fromkeys(unique, pl.String), orient="row"))
        except UnicodeEncodeError as error:  # as UTF-7 can write it
            raise InputError(f"{where}: holds half of a surrogate pair ({error}): save it as UTF-8") from None
    frame = pl.concat(frames or [pl.DataFrame(schema=dict.fromkeys(unique, pl.String))])
    twins = [pair for pair in zip(unique, names, strict=True) if pair[0] != pair[1]]
    if any(not frame[twin].equals(frame[name]) for twin, name in twins):
        problems[:0] = named_twice(names, at)
    refuse(problems)
    frame = frame.drop([twin for twin, _ in twins])  # pandas writes an index that is a column too twice
    marked = [column for column in frame if column.str.starts_with(_MARK).any()]
    frame = frame.with_columns(column.map_elements(_unmarked, pl.String) for column in marked)
    return Table(where, frame, lines, tuple(frame.columns), path=path, notes=tuple(notes))


def _unmarked(cell: str) -> str:
    """A cell without the apostrophe that careful programs put before what would be run."""
    return cell[1:] if cell[:1] == _MARK and is_formula(cell.lstrip(_MARK)) else cell


def _write(draft: Path, frame: pl.DataFrame, source: Table | None, *, delimiter: str) -> None:
    def safe(cell: str) -> str:
        runs = cell and not cell[0].isalnum() and is_formula(cell.lstrip(_MARK))
        return _MARK + cell if runs else cell

    n_marked, names = 0, (*(source.columns if source else ()), *frame.columns)
    with draft.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        out.writerow(map(safe, names))
        for record in written_rows(frame, source):
            cells = [_cell(record.get(name)) for name in names]
            marked = list(map(safe, cells))
            n_marked += marked != cells
            out.writerow(marked)
    if n_marked:
        notice(
            f"judgecal: in {n_marked:,} rows cells that a spreadsheet would run got an apostrophe in front; "
            ".jsonl and .parquet hold every text as it is"
        )


def _cell(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return text_of(value)


FORMATS = (
    Format((".csv",), read_separated, functools.partial(_write, delimiter=",")),
    Format((".tsv", ".tab"), read_separated, functools.partial(_write, delimiter="\t")),
    Format((".txt",), read_separated),
)
