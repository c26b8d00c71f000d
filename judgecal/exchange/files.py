"""The files of other tools: how one begins, its records, and the lists and objects in their cells."""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.tables.formats import open_source
from judgecal.tables.json_files import json_value, of_frame, one_array, read_json
from judgecal.tables.separated import dialect_of, separated_records
from judgecal.tables.text import ending_of, text_lines
from judgecal.workspace import shown

Row = dict[str, Any]
Placed = tuple[str, Row]
"""A record after where it stands, as messages name it (`scores.csv:12`)."""


# --- what a file begins with

_ROWS, _KEYS, _TEXT, _DEPTH = 3, 500, 500, 9


def outline(path: Path) -> Any:
    """The beginning of a file as a JSON value; of a table it is a list of the first rows, each an object.

    Every list in it is cut to three elements, every text to 500 characters. None: the file cannot be read, or
    it is neither JSON, JSON lines, CSV, TSV nor Parquet.
    """
    try:
        stat = path.stat()
    except (OSError, ValueError):
        return None
    return _outline(path, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=16)
def _outline(path: Path, size: int, stamp: int) -> Any:
    """By size and time of change too, so that a file which was written again is read again."""
    with contextlib.suppress(InputError):
        return _pared(_beginning(path), _DEPTH)
    return None


def _beginning(path: Path) -> Any:
    ending = ending_of(path)
    if ending == ".json":
        return read_json(path)
    if ending in (".jsonl", ".ndjson"):
        lines = (line for line in text_lines(path, newline="\n") if line.strip())
        return [json_value(line, str(path)) for line in islice(lines, _ROWS)]
    if ending in (".csv", ".tsv", ".tab"):
        records = separated_records(path, dialect_of(path))
        header = next(records, (1, []))[1]
        rows = [dict(zip(header, cells, strict=False)) for _, cells in islice(records, _ROWS)]
        return rows or [dict.fromkeys(header, "")]
    if ending != ".parquet":
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            batch = next(file.iter_batches(batch_size=_ROWS), None)
            if batch is None or not batch.num_rows:
                return [dict.fromkeys(file.schema.names)]
            return batch.to_pylist()
    except (pa.ArrowException, OSError):
        return None


def _pared(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value[:_TEXT]
    if isinstance(value, dict):
        return {key: _pared(inner, depth - 1) for key, inner in islice(value.items(), _KEYS)} if depth else {}
    if isinstance(value, list):
        return [_pared(inner, depth - 1) for inner in value[:_ROWS]] if depth else []
    return value


def columns_of(begun: Any) -> set[str]:
    """The names of the columns of a table, by its outline."""
    return (
        {name for row in begun if isinstance(row, dict) for name in row} if isinstance(begun, list) else set()
    )


def fields_of(path: Path) -> set[str]:
    """The names of a file's columns, first records' fields, or one JSON object; none where unread."""
    value = outline(path)
    names = columns_of(value if isinstance(value, list) else [value])
    if isinstance(value, dict):
        if isinstance(value.get("columns"), list) and "data" in value:  # the outline has the first few alone
            names |= columns_of(of_frame(read_json(path))[:1])
        if all(map(str.isdigit, value)):
            names |= columns_of([*value.values()])
        lists = (part for part in map(nested, value.values()) if isinstance(part, list))
        objects = ([row for row in part if isinstance(row, dict)] for part in lists)
        names |= columns_of([row for rows in objects for row in rows[:1]])
    return names


# --- records


def records_of(path: Path) -> Iterator[Placed]:
    """Each record of a file.

    Rows of a table, or the objects of a JSON file: an array, the one array in an object, a data frame as
    pandas writes it (its index is the column `index`). Lists and objects in the cells of a sheet are lists
    and objects.
    """
    if ending_of(path) == ".json":
        value, where = read_json(path), shown(path)
        for nth, row in enumerate(of_frame(value) or one_array(value, where)[1], start=1):
            yield f"{where}:row {nth}", row
        return
    source = open_source(path)
    typed = path.suffix.lower() in (".jsonl", ".ndjson", ".parquet")
    unit = "" if source.unit == "line" else "row "
    for piece in source.pieces():
        for line in piece.rows:
            cells = dict(line.raw) if typed else {name: nested(cell) for name, cell in line.raw.items()}
            yield f"{source.where}:{unit}{line.line}", cells


# --- lists and objects that a cell holds as text

_LONGEST, _LONGEST_PYTHON = 20_000_000, 300_000  # characters; a longer cell stays text
_BESIDE = re.compile(r"""["']\s+[rRbBuU]{0,2}["']""")
# a text, a word or what closes a list, each whole, and the space before another value
_PART = re.compile(
    r"""('(?:[^'\\]|\\.)*+'?|"(?:[^"\\]|\\.)*+"?|[\w.]+|[)\]}])(\s+(?=[-'"\w\[{]))?""", re.DOTALL
)
_NUMBERS = re.compile(r"\s*\[[\s\d.eE+-]*\]\s*")
_NO_LITERAL = (SyntaxError, ValueError, RecursionError, MemoryError)


def nested(cell: Any, *, numbers: bool = False) -> Any:
    """The list or object that a text holds, in JSON or as Python prints it; anything else as it is.

    `numbers`: so is `[4 5]`, an array of numbers as NumPy prints it, which may be a text's references as
    well. Python prints literals, `nan`, `array([...])`, and calls such as `datetime.datetime(2026, 1, 2)`,
    which become text; nothing is run.

    A number or a word stays text, and so does a text that is broken, over 20,000,000 characters long, or no
    JSON and over 300,000, as its parts would take many times the memory.
    """
    if (
        not isinstance(cell, str)
        or len(cell) > _LONGEST
        or not cell.lstrip().startswith(("[", "{", "array("))
    ):
        return cell
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(cell)
    if len(cell) > _LONGEST_PYTHON or (_NUMBERS.fullmatch(cell) and not numbers):
        return cell
    with contextlib.suppress(*_NO_LITERAL):
        # NumPy prints what is in an array side by side without commas; to Python two texts so are one text.
        if not _BESIDE.search(cell):
            with contextlib.suppress(SyntaxError, ValueError):
                return _literal(cell)
        return _literal(_with_commas(cell))
    return cell


def _literal(text: str) -> Any:
    body = ast.parse(text.strip(), mode="eval").body
    whole = {"[": ast.List, "{": ast.Dict | ast.Set, "a": ast.Call}
    if not isinstance(body, whole[text.lstrip()[0]]):
        raise ValueError("no list and no object, or more than one")
    return _value(body)


def _with_commas(text: str) -> str:
    """The text with a comma between two values that stand side by side."""
    return _PART.sub(lambda part: f"{part[1]},{part[2]}" if part[2] else part[1], text)


def _value(node: ast.expr | None) -> Any:
    """The value of a literal; ValueError for what is none and no call either.

    `array([1, 2])` is the list, `float64(0.5)` the number, `UUID('a')` the text; other calls are text.
    """
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str()):
            return node.value
        case ast.Constant():
            return str(node.value)
        case ast.List() | ast.Tuple() | ast.Set():
            return [_value(part) for part in node.elts]
        case ast.Dict():
            return {
                str(_value(key)): _value(value) for key, value in zip(node.keys, node.values, strict=True)
            }
        case ast.UnaryOp(op=ast.USub()) if isinstance(value := _value(node.operand), int | float):
            return -value
        case ast.Name(id="nan"):
            return None
        case ast.Name(id="inf"):
            return float("inf")
        case ast.Call():
            name = ast.unparse(node.func).rpartition(".")[2]
            is_value = node.args and re.fullmatch(r"array|UUID|(float|int|uint|bool|str)\d*_?", name)
            return _value(node.args[0]) if is_value else ast.unparse(node)
    raise ValueError("no literal")
