"""JSON lines, and JSON files that hold one array of objects: read and written."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgecal.errors import InputError, refuse
from judgecal.tables.formats import Format, written_rows
from judgecal.tables.table import Table
from judgecal.tables.text import read_text
from judgecal.workspace import replacing, shown

if TYPE_CHECKING:
    import polars as pl


def json_lines(text: str, where: str, problems: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object), from a text of JSON lines, `where`, and the list that takes problems.
    Blank lines are passed over, NaN and Infinity are None. Only a line feed ends a line: U+2028 is text.
    """
    # and no list of all lines, which are as many bytes again
    for number, line in enumerate(re.finditer(r"[^\n]*\n|[^\n]+", text), start=1):
        if not line[0].strip():
            continue
        try:
            value = _DECODER.decode(line[0])
        except (ValueError, RecursionError) as error:
            problems.append(f"{where}:{number}: broken JSON {_fault(error)}: fix the line or remove it")
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            what = f"found a JSON {type(value).__name__}"
            problems.append(f"{where}:{number}: {what}; each line must be one JSON object")


def _fault(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"at column {error.colno} ({error.msg})"
    return "(nested too deeply)" if isinstance(error, RecursionError) else f"({error})"


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} is there twice in one object")
    return table


# pandas writes NaN where a value is missing
_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=lambda _: None)


def _read_lines(path: Path) -> Table:
    """A JSON object a line; blank lines are passed over."""
    where, problems = shown(path), list[str]()
    records = list(json_lines(read_text(path), where, problems))
    refuse(problems)
    return Table.of_records(where, records, path=path)


def _read_array(path: Path) -> Table:
    """An array of objects, or an object that holds one."""
    value, where = read_json(path), shown(path)
    keys, rows = one_array(value, where)
    notes = (f"{where}: took the array {keys} ({len(rows):,} objects)",) if keys else ()
    return Table.of_records(where, enumerate(rows, start=1), unit="row", path=path, notes=notes)


def one_array(value: Any, where: str) -> tuple[str, list[dict[str, Any]]]:
    """Return (key to it, list) of the single array of objects, from a JSON value and `where`, a text.

    It is the value itself, or under a key of it. InputError: there is none, there are several, or an element
    is no object.
    """
    parts = value.items() if isinstance(value, dict) else ()
    lists = [(key, part) for key, part in parts if isinstance(part, list)]
    arrays = [(key, rows) for key, rows in lists if any(isinstance(row, dict) for row in rows)]
    arrays = [("", value)] if isinstance(value, list) else arrays
    if len(arrays) != 1:
        named = ", ".join(f"{key} ({len(rows):,})" for key, rows in arrays) or type(value).__name__
        raise InputError(
            f"{where}: holds {len(arrays) or 'no'} arrays of objects, found {named}: write one, "
            "[{...}, {...}], or one object a line and name the file .jsonl"
        )
    refuse(
        f"{where}:row {number}: a JSON {type(row).__name__}, where each row must be a JSON object"
        for number, row in enumerate(arrays[0][1], start=1)
        if not isinstance(row, dict)
    )
    return arrays[0]


def read_json(path: Path) -> Any:
    """The value of a JSON file, whatever it is; NaN and Infinity are None."""
    return json_value(read_text(path), shown(path))


def json_value(text: str, where: str) -> Any:
    """Return the value of a JSON text, from it and `where`, a name for errors; NaN and Infinity are None."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        line, what = getattr(error, "lineno", 1), f"broken JSON {_fault(error)}: fix the file"
        begin = text[: getattr(error, "pos", 0)].lstrip()
        if getattr(error, "msg", "") == "Extra data" and begin.startswith("{"):
            what = "a second JSON object follows the first: name the file .jsonl"
        raise InputError(f"{where}:{line}: {what}") from None


# Made once: `json.dumps` makes an encoder for every call that is not all defaults.
_line = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def json_line(record: Mapping[str, Any]) -> str:
    """Return a record as a str, one line of JSON that UTF-8 can encode; ValueError for a NaN."""
    text = _line(record)
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, as a cut-off reply may hold: only an escape writes it
        return json.dumps(record)
    return text


def write_json_lines(path: Path, records: Iterable[Mapping[str, Any]], *, after: Iterable[str] = ()) -> None:
    """Write JSON lines, from a path and records (dicts), in one step; `after` are lines before them."""
    with replacing(path) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in after)
        file.writelines(f"{json_line(record)}\n" for record in records)


def _write(draft: Path, frame: pl.DataFrame, source: Table | None, *, array: bool) -> None:
    lead, between, after = ("[\n", ",\n", "\n]\n") if array else ("", "\n", "\n")
    with draft.open("w", encoding="utf-8", newline="\n") as file:
        for record in written_rows(frame, source):
            file.write(lead + json.dumps(record, ensure_ascii=False))
            lead = between
        file.write(after)


FORMATS = (
    Format((".jsonl", ".ndjson"), _read_lines, functools.partial(_write, array=False)),
    Format((".json",), _read_array, functools.partial(_write, array=True)),
)
