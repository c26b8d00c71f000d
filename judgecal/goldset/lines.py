"""Bytes to text to JSON lines, each problem with its file and line."""

from __future__ import annotations

import codecs
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from judgecal.errors import InputError
from judgecal.workspace import shown

__all__ = ["JsonLines", "decode", "json_lines", "read_bytes", "shown"]

_OTHER_ENCODINGS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
_ITEM_ID = re.compile(r'"item_id"\s*:\s*("(?:[^"\\]|\\.)*")')


class JsonLines(NamedTuple):
    """What a file of JSON lines holds.

    Attributes:
        rows: the objects that could be read, each with its line (from 1).
        problems: the lines that could not.
        lost_ids: the item ids that can still be told in unreadable lines, so that no second message blames
            the rows which refer to them.
    """

    rows: list[tuple[int, dict[str, Any]]]
    problems: list[str]
    lost_ids: set[str]


def read_bytes(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        InputError: there is no such file, or it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{shown(path)}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{shown(path)}: is a folder: name a file in it") from None
    except OSError as error:
        raise InputError(f"{shown(path)}: cannot be read ({error.strerror}): check its rights") from None


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
    except UnicodeDecodeError as error:
        # The decoder counts from behind a byte order mark.
        start = error.start + (len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0)
        return data.decode("utf-8-sig", errors="replace"), [_encoding_problem(data, start, where)]


def _encoding_problem(data: bytes, start: int, where: str) -> str:
    line = data.count(b"\n", 0, start) + 1
    column = start - (data.rfind(b"\n", 0, start) + 1) + 1
    lines = data.splitlines()
    bad = sum(1 for text in lines if not _is_utf8(text))
    more = f" (and {bad - 1} more such lines)" if bad > 1 else ""
    return (
        f"{where}:{line}: not UTF-8: byte 0x{data[start]:02x} at byte {column} of the line, byte {start} of the "
        f"file{more}: save the file as UTF-8"
    )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def json_lines(text: str, where: str, *, nan_is_missing: bool = False) -> JsonLines:
    """Read one JSON object a line; blank lines are passed over.

    Args:
        text: the whole file. Only a line feed ends a line: U+2028 and its like are text.
        where: the file, as messages name it.
        nan_is_missing: read the NaN that pandas writes as null instead of refusing it.
    """
    found = JsonLines([], [], set())
    decoder = json.JSONDecoder(
        object_pairs_hook=_unique_keys, parse_constant=_missing if nan_is_missing else _refuse_constant
    )
    for line, source in enumerate(text.split("\n"), start=1):
        if not source.strip():
            continue
        try:
            value = decoder.decode(source)
        except (ValueError, RecursionError) as error:
            found.problems.append(f"{where}:{line}: {_reason(error)}")
            _salvage(source, found.lost_ids)
            continue
        if isinstance(value, dict):
            found.rows.append((line, value))
        else:
            kind = type(value).__name__
            found.problems.append(f"{where}:{line}: a JSON {kind}, where each line must be one JSON object")
    return found


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"broken JSON at column {error.colno} ({error.msg}): mend the line or take it out"
    if isinstance(error, RecursionError):
        return "broken JSON (nested too deeply): mend the line or take it out"
    return f"broken JSON ({error}): mend the line or take it out"


def _salvage(source: str, lost_ids: set[str]) -> None:
    match = _ITEM_ID.search(source)
    if match is None:
        return
    try:
        lost_ids.add(json.loads(match[1]))
    except ValueError:  # the id itself is what is broken: nothing to save, and the line is reported already
        return


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return table


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number; write null or leave the field out")


def _missing(word: str) -> Any:
    if word == "NaN":
        return None
    return float(word)
