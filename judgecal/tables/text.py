"""Bytes to text, with the file and the line of whatever is not UTF-8."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from judgecal.errors import InputError
from judgecal.tables.encoding import UTF_8, is_packed, open_bytes
from judgecal.workspace import shown

_OTHER_ENCODINGS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


UNREADABLE = (OSError, EOFError, zlib.error)
"""What reading a file raises, packed or not."""
_MOST_BYTES = 2**30  # of a packed file that is read whole, unpacked


def unreadable(path: Path, error: Exception) -> InputError:
    """Why a file cannot be read, and what to do."""
    if isinstance(error, gzip.BadGzipFile | EOFError | zlib.error):
        return InputError(f"{shown(path)}: no whole gzip file ({error}): pack it anew, or give it unpacked")
    if isinstance(error, FileNotFoundError):
        return InputError(f"{shown(path)}: there is no such file")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{shown(path)}: is a folder: name a file in it")
    why = error.strerror if isinstance(error, OSError) else error
    return InputError(f"{shown(path)}: cannot be read ({why}): check its rights")


def no_files(paths: Iterable[Path]) -> list[str]:
    """A problem for each path where there is no file, or a folder."""
    folders, missing = IsADirectoryError(), FileNotFoundError()
    found = [unreadable(path, folders if path.is_dir() else missing) for path in paths if not _is_there(path)]
    return [problem for error in found for problem in error.problems]


def _is_there(path: Path) -> bool:
    return path.exists() and not path.is_dir()


def read_bytes(path: Path) -> bytes:
    """The bytes of a file; InputError where there is none, or it cannot be read."""
    try:
        with open_bytes(path) as file:
            if not is_packed(path):
                return file.read()
            data = file.read(_MOST_BYTES + 1)
    except UNREADABLE as error:
        raise unreadable(path, error) from None
    if len(data) > _MOST_BYTES:
        raise InputError(f"{shown(path)}: over {_MOST_BYTES:,} bytes once unpacked: give it unpacked")
    return data


def byte_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file as they are, one at a time, each with its line end; InputError as `read_bytes`."""
    try:
        with open_bytes(path) as file:
            yield from file
    except UNREADABLE as error:
        raise unreadable(path, error) from None


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark; InputError where it cannot be read or
    is none."""
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
            yield from _utf8_lines(path, newline)
            return
        with io.TextIOWrapper(open_bytes(path), encoding=encoding, newline=newline) as file:
            yield from file
    except UnicodeError as error:
        raise InputError(
            f"{shown(path)}: broken {encoding.upper()} ({error}): save the file as UTF-8"
        ) from None
    except UNREADABLE as error:
        raise unreadable(path, error) from None


def _utf8_lines(path: Path, newline: str) -> Iterator[str]:
    # A byte that is no UTF-8 becomes half a surrogate pair, which UTF-8 itself cannot hold.
    with io.TextIOWrapper(
        open_bytes(path), encoding=UTF_8, errors="surrogateescape", newline=newline
    ) as file:
        for number, line in enumerate(file, start=1):
            if not line.isascii() and not _has_utf8(line):
                raise NotUtf8(_problem_of(path))
            if "\0" in line:
                raise _holds_nul(shown(path), number)
            yield line


def _has_utf8(line: str) -> bool:
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


def _holds_nul(where: str, line: int) -> InputError:
    return InputError(f"{where}:{line}: holds a NUL byte, so it may be UTF-16: save the file as UTF-8")


def _problem_of(path: Path) -> str:
    with open_bytes(path) as file:
        return _encoding_problem(file, shown(path))


def _encoding_problem(lines: Iterable[bytes], where: str) -> str:
    """The first line that is no UTF-8, and how many more there are."""
    first, bad, before = "", 0, 0
    for number, line in enumerate(lines, start=1):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            bad += 1
            first = first or (
                f"{where}:{number}: not UTF-8: byte 0x{line[error.start]:02x} at byte {error.start + 1} of the line, "
                f"byte {before + error.start} of the file"
            )
        before += len(line)
    more = f" (and {bad - 1} more such lines)" if bad > 1 else ""
    return f"{first}{more}: save the file as UTF-8"
