"""Bytes that come in as text, in any encoding, with every line's problem named."""

from __future__ import annotations

import codecs
import functools
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from judgecal.errors import InputError
from judgecal.workspace import no_such_file, shown

UTF_8 = "utf-8-sig"
"""With or without a byte order mark; what is taken until a byte says otherwise."""
_MARKS = ((codecs.BOM_UTF8, UTF_8), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_OTHER_FILES = (
    (b"PK\x03\x04", "a zip archive, as .xlsx and .ods are: give it its own ending"),
    (
        b"\xd0\xcf\x11\xe0",
        "an old or encrypted file of Excel: save it as .xlsx without a password, or as CSV",
    ),
)
_HEAD = 65_536  # bytes
_HALF = re.compile("[\ud800-\udfff]")
_TEXTS = (".csv", ".tsv", ".tab", ".txt", ".json", ".jsonl", ".ndjson")
_PACKED = ".gz"
MOST_UNPACKED = 200_000_000
"""Bytes that a packed file may unpack to."""


def ending_of(path: Path) -> str:
    """The ending of a file's name in lower case; of a packed one that of the text, `.csv` of `a.csv.gz`."""
    inner = path.with_suffix("").suffix.lower()
    return inner if is_packed(path) else path.suffix.lower()


def is_packed(path: Path) -> bool:
    """Whether a file is a text file packed by gzip, by its name."""
    return path.suffix.lower() == _PACKED and path.with_suffix("").suffix.lower() in _TEXTS


def open_bytes(path: Path) -> BinaryIO:
    """A file to be read, unpacked where it is packed; InputError: it unpacks to too much."""
    if not is_packed(path):
        return path.open("rb")
    stat = path.stat()
    if not _unpacks_small(path, stat.st_size, stat.st_mtime_ns):
        raise InputError(f"{shown(path)}: unpacks to more than {MOST_UNPACKED / 1e6:,.0f} MB: unpack it")
    return cast(BinaryIO, gzip.open(path))


@functools.lru_cache(maxsize=64)
def _unpacks_small(path: Path, _size: int, _changed: int) -> bool:
    """Whether a packed file unpacks to what is read at most; counted, as its own word may be wrong."""
    size = 0
    with gzip.open(path) as file:
        while size <= MOST_UNPACKED and (chunk := file.read(1 << 20)):
            size += len(chunk)
    return size <= MOST_UNPACKED


def encoding_of(path: Path) -> str:
    """The encoding that the first bytes tell: a byte order mark, or the zeros of UTF-16 without one; else
    UTF-8.

    ValueError: they are those of no text; the message says what it is.
    """
    with open_bytes(path) as file:
        head = file.read(_HEAD)
    for mark, what in _OTHER_FILES:
        if head.startswith(mark):
            raise ValueError(f"the file is {what}")
    if head.startswith(_UTF_32):
        raise ValueError("the file is UTF-32: save it as UTF-8")
    if marked := [name for mark, name in _MARKS if head.startswith(mark)]:
        return marked[0]
    # UTF-16 has a zero beside every ASCII character: behind it (little endian) or before it.
    zeros = head[0::2].count(0), head[1::2].count(0)
    if max(zeros) > 0 and min(zeros) == 0 and b"\n" in head and len(head) < 4 * max(zeros):
        return "utf-16-le" if zeros[1] else "utf-16-be"
    return UTF_8


def in_windows_1252(lines: Iterable[bytes]) -> str | None:
    """The first line with a letter that is no ASCII, or else with anything else, read in Windows-1252.

    None where a line is UTF-8 beyond ASCII, as the file is then in two encodings, or cannot be read so.
    """
    texts: list[str] = []
    for line in lines:
        if line.isascii():
            continue
        text = line.decode("cp1252", errors="replace")
        if _not_utf8(line) is None or "\ufffd" in text:
            return None
        if len(texts) < 2 and (not texts or any(char > "\x7f" and char.isalpha() for char in text)):
            texts.append(text)
    return texts[-1] if texts else None


def _not_utf8(line: bytes) -> UnicodeDecodeError | None:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error
    return None


_OTHER_ENCODINGS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


UNREADABLE = (OSError, EOFError, zlib.error)
"""What reading a file raises, packed or not."""


def unreadable(path: Path, error: Exception) -> InputError:
    """Why a file cannot be read, and what to do."""
    if isinstance(error, gzip.BadGzipFile | EOFError | zlib.error):
        return InputError(
            f"{shown(path)}: not a whole gzip file ({error}): pack it again, or give it unpacked"
        )
    if isinstance(error, FileNotFoundError):
        return no_such_file(path)
    if isinstance(error, IsADirectoryError):
        return InputError(f"{shown(path)}: is a folder: name a file in it")
    why = error.strerror if isinstance(error, OSError) else error
    return InputError(f"{shown(path)}: cannot be read ({why}): check its rights")


def no_files(paths: Iterable[Path]) -> list[str]:
    """A problem for each path where there is no file, or a folder."""
    causes = {path: IsADirectoryError() if path.is_dir() else FileNotFoundError() for path in paths}
    found = [unreadable(path, cause) for path, cause in causes.items() if path.is_dir() or not path.exists()]
    return [problem for error in found for problem in error.problems]


def read_bytes(path: Path) -> bytes:
    """The bytes of a file; InputError where there is none, or it cannot be read."""
    try:
        with open_bytes(path) as file:
            return file.read()
    except UNREADABLE as error:
        raise unreadable(path, error) from None


def byte_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file as they are, one at a time, each with its line end; InputError as `read_bytes`."""
    try:
        with open_bytes(path) as file:
            yield from file
    except UNREADABLE as error:
        raise unreadable(path, error) from None


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark; InputError where it is none."""
    text, problems = decode(read_bytes(path), shown(path))
    if problems:
        raise InputError(problems)
    if "\0" in text:
        raise _holds_nul(shown(path), text.count("\n", 0, text.index("\0")) + 1)
    return text


def decode(data: bytes, where: str) -> tuple[str, list[str]]:
    """UTF-8 text, with or without a byte order mark, and a problem for the first line that is something else.

    Unreadable bytes become U+FFFD, so that a caller can go on looking for further problems before it refuses.
    Another encoding's byte order mark gives no text at all.
    """
    for mark, name in _OTHER_ENCODINGS.items():
        if data.startswith(mark):
            return "", [f"{where}:1: the file is {name}: save it as UTF-8"]
    try:
        return data.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        return data.decode("utf-8-sig", errors="replace"), [_encoding_problem(io.BytesIO(data), where)]


class NotUtf8(InputError):
    """A file that was read as UTF-8 holds a byte that is none."""


def text_lines(path: Path, *, newline: str = "", encoding: str = UTF_8) -> Iterator[str]:
    """The lines of a file, one at a time, each with its line end; InputError as `read_text` (`NotUtf8` for
    that cause).

    `newline` is as `open` has it: "" ends a line at any line end and keeps it as it is, a line feed only
    there. Any `encoding` but UTF-8 is one that was told from the file (`encoding_of`).
    """
    try:
        if encoding == UTF_8:
            with open_bytes(path) as raw:
                start = raw.read(2)
            if start in _OTHER_ENCODINGS:
                raise InputError(decode(start, shown(path))[1])
        # A byte that is no UTF-8 becomes half a surrogate pair, which UTF-8 itself cannot hold.
        errors = "surrogateescape" if encoding == UTF_8 else "strict"
        with io.TextIOWrapper(open_bytes(path), encoding=encoding, errors=errors, newline=newline) as file:
            for number, line in enumerate(file, start=1):
                if encoding == UTF_8 and not line.isascii() and _HALF.search(line):
                    with open_bytes(path) as lines:
                        raise NotUtf8(_encoding_problem(lines, shown(path)))
                if encoding == UTF_8 and "\0" in line:
                    raise _holds_nul(shown(path), number)
                yield line
    except UnicodeError as error:
        raise InputError(
            f"{shown(path)}: broken {encoding.upper()} ({error}): save the file as UTF-8"
        ) from None
    except UNREADABLE as error:
        raise unreadable(path, error) from None


def _holds_nul(where: str, line: int) -> InputError:
    return InputError(f"{where}:{line}: holds a NUL byte, so it may be UTF-16: save the file as UTF-8")


def _encoding_problem(lines: Iterable[bytes], where: str) -> str:
    """The first line that is no UTF-8, and how many more there are."""
    first, bad, before = "", 0, 0
    for number, line in enumerate(lines, start=1):
        if error := _not_utf8(line):
            bad += 1
            first = first or (
                f"{where}:{number}: not UTF-8: byte 0x{line[error.start]:02x} at byte {error.start + 1} of "
                f"the line, byte {before + error.start} of the file"
            )
        before += len(line)
    more = f" (and {bad - 1} more such lines)" if bad > 1 else ""
    return f"{first}{more}: save the file as UTF-8"
