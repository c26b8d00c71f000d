"""Bytes that come in as text: in the encoding that they begin in, each fault with its line."""

from __future__ import annotations

import codecs
import re
import unicodedata
from pathlib import Path

from judgecal.errors import InputError
from judgecal.workspace import no_such_file, shown

UTF_8 = "utf-8-sig"
"""With or without a byte order mark; what is taken until a byte says otherwise."""
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
MOST_UNPACKED = 200_000_000
"""Bytes that a packed file may unpack to."""
_MOST_PACKED, _SMALL = 100, 20_000_000
"""How many times its size an honest file may unpack to, beyond so many bytes."""


def read_bytes(path: Path) -> bytes:
    """Return the bytes of the file at a path; InputError where there is none, or it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None


def unpacks_to_much(size: int, path: Path, most: float = MOST_UNPACKED) -> str | None:
    """Return why a packed file is not read, a text, or None, from its unpacked size and its path."""
    if size > most:
        return f"unpacks to {size / 1e6:,.0f} MB, and {most / 1e6:,.0f} MB are read at most"
    if size > max(_SMALL, _MOST_PACKED * path.stat().st_size):
        return f"unpacks to {size / 1e6:,.0f} MB, more than {_MOST_PACKED} times its size"
    return None


def unreadable(path: Path, error: Exception) -> InputError:
    """Return the InputError, with what to do, for an unreadable file, from its path and the exception."""
    if isinstance(error, FileNotFoundError):
        return no_such_file(path)
    if isinstance(error, IsADirectoryError):
        return InputError(f"{shown(path)}: is a folder: name a file in it")
    why = error.strerror if isinstance(error, OSError) else error
    return InputError(f"{shown(path)}: cannot be read ({why}): check its rights")


def decode(data: bytes, where: str) -> tuple[str, list[str]]:
    """Return (text, list of problems), from data (UTF-8 bytes) and `where`, a name for the problems.

    Unreadable bytes become U+FFFD, so that a caller can go on looking for further problems before it refuses.
    UTF-16 gives no text at all.
    """
    if data.startswith(UTF_16):
        return "", [f"{where}:1: the file is UTF-16: save it as UTF-8"]
    return data.decode(UTF_8, errors="replace"), utf8_problems(data, where)


def read_text(path: Path) -> str:
    """Return the text of the UTF-8 file at a path, with or without a byte order mark; refuse any other."""
    text, problems = decode(read_bytes(path), shown(path))
    if problems:
        raise InputError(problems)
    return text


def utf8_problems(data: bytes, where: str) -> list[str]:
    """Return a list of problems of UTF-8, from data (bytes) and `where`: a first bad line, or a NUL byte."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        begin, line = data.rfind(b"\n", 0, error.start) + 1, data.count(b"\n", 0, error.start) + 1
        return [
            f"{where}:{line}: not UTF-8: byte 0x{data[error.start]:02x} at byte {error.start - begin + 1} of "
            f"the line, byte {error.start} of the file: save the file as UTF-8"
        ]
    if (nul := data.find(b"\0")) < 0:
        return []
    line = data.count(b"\n", 0, nul) + 1
    return [f"{where}:{line}: holds a NUL byte, so it may be UTF-16: save the file as UTF-8"]


CELL_LIMIT = 32_767
"""Characters that a cell of Excel holds; longer texts are cut off."""

_MARK = "'"
_FORMULA = frozenset("=+-@\t\r\n＝＋－＠")
_LIST_POINT = re.compile(r"[-－]+(?:$|[ \u00a0\n]+(?![\s\-－]*[=+@＝＋＠\"(])[^|(]*[^\W\d_][^|(]*$)")
_TRUTH = frozenset({"true", "false", "wahr", "falsch"})
_MONTH = r"(?:jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[^\W\d_]*"  # English and German
_CONVERTED = re.compile(
    rf"(?:[\d\s.,:;/\\+\-−–%$€£¥()'°]|(?<![^\W\d_])(?:{_MONTH}|[ap]m?|st|[nr]d|th|de|of|e)(?![^\W\d_]))*"
)
"""What a spreadsheet may take for a number or a date."""


def defuse(text: str) -> str:
    """Return a text, with an apostrophe before it if a spreadsheet would run or rewrite it."""
    word = text.strip().casefold()
    dated = len(word) <= 40 and any(map(str.isdigit, word)) and _CONVERTED.fullmatch(word)
    risky = text.lstrip(" \u00a0")[:1] in _FORMULA or word in _TRUTH or dated
    return _MARK + text if risky or text.startswith(_MARK) else text


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet would run a CSV cell's text; numbers and a leading "- " are no formula."""
    begin = text.lstrip(" \u00a0")
    if begin[:1] not in _FORMULA or is_number(begin):
        return False
    return _LIST_POINT.match(begin) is None


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def undefuse(cell: str) -> str:
    """Return the text of which `defuse` made a cell; a cell that somebody typed stays as it is."""
    unmarked = cell.removeprefix(_MARK)
    return unmarked if cell != unmarked and defuse(unmarked) == cell else cell


def same_text(cell: str, text: str) -> bool:
    """Whether a cell still holds a text, whatever a spreadsheet did to its line ends, spacing or the mark."""
    return _settled(cell) in (_settled(text), _settled(defuse(text)))


def _settled(text: str) -> str:
    """Without what no spreadsheet keeps: kinds of white space, control characters, unpaired surrogates."""
    written = text.encode("utf-8", "replace").decode("utf-8")
    spaced = "".join(" " if unicodedata.category(char) == "Cc" else char for char in written)
    return " ".join(unicodedata.normalize("NFC", spaced).split())
