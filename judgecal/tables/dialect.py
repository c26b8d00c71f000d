"""How the cells of a text file are written: its encoding, what stands between them, and the `sep=` line of
Excel.

The encoding is told by the first bytes, the separator by the header and the rows that begin the file. What
comes later is held against both where the file is read: a byte of another encoding, or a row of another
width, is refused.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judgecal.errors import InputError
from judgecal.tables.encoding import UTF_8, encoding_of, ending_of, in_windows_1252, open_bytes
from judgecal.tables.text import UNREADABLE, NotUtf8, unreadable
from judgecal.workspace import shown

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
"""What may stand between cells, as messages call it."""
_USUAL = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_SAMPLE_LINES, _SAMPLE_CHARACTERS = 400, 500_000
_EXAMPLE = 20  # characters on each side of one
_HINT = "sep="


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a file is read: its encoding as Python calls it, the separator of its cells, the lines before its
    records (Excel's `sep=;`), and what its owner should know of that.
    """

    encoding: str
    separator: str
    skip: int = 0
    notes: tuple[str, ...] = ()

    def as_windows_1252(self, path: Path, problem: NotUtf8) -> Dialect:
        """The same file, which is no UTF-8, in Windows-1252; raises the problem where it can hardly be
        that."""
        with open_bytes(path) as file:
            marked = file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
            file.seek(0)
            example = None if marked else in_windows_1252(file)
        if example is None:
            raise problem
        beyond = [at for at, char in enumerate(example) if char > "\x7f"]
        place = next((at for at in beyond if example[at].isalpha()), beyond[0])
        quoted = example[max(0, place - _EXAMPLE) : place + _EXAMPLE].strip()
        note = f"{shown(path)}: read as Windows-1252, since it is no UTF-8: it says {quoted!r}"
        return replace(self, encoding="cp1252", notes=(*self.notes, note))


def dialect_of(path: Path) -> Dialect:
    """How a file is to be read.

    InputError: the file cannot be read or is no text, or two separators would each give a whole table.
    """
    where = shown(path)
    try:
        encoding = encoding_of(path)
    except UNREADABLE as error:
        raise unreadable(path, error) from None
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    lines, whole = _sample(path, encoding)
    notes = [] if encoding == UTF_8 else [f"{where}: read as {encoding.upper()}"]
    hint = lines[0].rstrip("\r\n").rstrip(",;\t") if lines else ""
    if hint.casefold() == _HINT or hint[:-1].casefold() == _HINT:
        separator = lines[0].rstrip("\r\n")[len(_HINT) : len(_HINT) + 1]
        if separator not in SEPARATORS:
            raise InputError(
                f"{where}:1: {hint} names no separator that is known: comma, semicolon, tab or bar"
            )
        return Dialect(
            encoding, separator, 1, (*notes, f"{where}:1: says that {SEPARATORS[separator]} separates cells")
        )
    usual = _USUAL.get(ending_of(path), ",")
    separator = _separator(lines, usual, where, whole=whole)
    if separator != usual:
        notes.append(f"{where}: {SEPARATORS[separator]} separates the cells")
    return Dialect(encoding, separator, 0, tuple(notes))


def _sample(path: Path, encoding: str) -> tuple[list[str], bool]:
    """The lines that a file begins with, and whether these are all; bytes that are no text do not matter
    yet."""
    lines: list[str] = []
    left = _SAMPLE_CHARACTERS
    errors = "surrogateescape" if encoding == UTF_8 else "replace"
    with io.TextIOWrapper(open_bytes(path), encoding=encoding, errors=errors, newline="") as file:
        while left > 0 and len(lines) < _SAMPLE_LINES:
            line = file.readline(left)
            if not line:
                return lines, True
            lines.append(line)
            left -= len(line)
    return lines, False


def _separator(lines: Sequence[str], usual: str, where: str, *, whole: bool) -> str:
    """The one separator that divides the header, and where there are several the one under which all rows are
    as wide as the header.
    """
    widths = {one: _widths(lines, one, whole=whole) for one in SEPARATORS}
    able = [one for one, found in widths.items() if found and found[0] > 1]
    even = [one for one in able if len(widths[one]) > 1 and len(set(widths[one])) == 1]
    if len(even) > 1:
        each = " or ".join(f"{SEPARATORS[one]} ({widths[one][0]} columns)" for one in even)
        raise InputError(
            f"{where}: the cells may be separated by {each}, and each makes a whole table: write sep=; (or the other) "
            "in a first line of its own, or save the table as .xlsx"
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
    found: list[int] = []
    try:
        for cells in csv.reader(lines, delimiter=separator, strict=True):
            if any(cells):
                width = found[0] if found else len(cells)
                found.append(width if not any(cells[width:]) and len(cells) >= width else len(cells))
        found = found if whole else found[:-1]
    except csv.Error as error:
        found += [0] * (whole or "unexpected end" not in str(error))
    return found
