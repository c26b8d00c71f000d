"""The files of other tools: how one begins, its records, and the lists and objects in their cells."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import tokenize
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.tables.formats import open_table
from judgecal.tables.json_files import json_value, one_array, read_json
from judgecal.tables.text import read_text
from judgecal.workspace import shown

Row = dict[str, Any]
Placed = tuple[str, Row]
"""A record after where it stands, as messages name it (`scores.csv:12`)."""


# --- the beginning of a file

_ROWS, _TEXT = 3, 500


def outline(path: Path) -> Any:
    """Return the start of the file at a path as JSON, of a table its first rows; None for another file.

    Lists are cut to three elements, texts to 500 characters.
    """
    with contextlib.suppress(InputError, OSError, ValueError, RecursionError):
        return _pared(_beginning(path))
    return None


def _beginning(path: Path) -> Any:
    ending = path.suffix.lower()
    if ending == ".json":
        value = read_json(path)
        return of_frame(value) or value
    if ending in (".jsonl", ".ndjson"):
        lines = (line for line in read_text(path).split("\n") if line.strip())
        return [json_value(line, str(path)) for line in islice(lines, _ROWS)]
    if ending not in (".csv", ".tsv", ".tab", ".parquet"):
        return None
    table = open_table(path)
    return [dict(row.raw) for row in table.each(_ROWS)]


def _pared(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pared(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_pared(inner) for inner in value[:_ROWS]]
    return value[:_TEXT] if isinstance(value, str) else value


def columns_of(begun: Any) -> set[str]:
    """From the outline of a table (`begun`, a JSON value), return the set of its column names."""
    rows = begun if isinstance(begun, list) else []
    return {name for row in rows if isinstance(row, dict) for name in row}


def fields_of(begun: Any) -> set[str]:
    """From the outline of a file (`begun`, a JSON value), return the set of columns or records' fields."""
    if isinstance(begun, dict):
        return {*begun}.union(*(columns_of(nested(part)) for part in begun.values()))
    return columns_of(begun)


# --- records


def records_of(path: Path) -> Iterator[Placed]:
    """Yield (place, record) for each record of the file at a path, the record a dict.

    Rows of a table, or the objects of a JSON file: an array, the one array in an object, a data frame as
    pandas writes it (its index is the column `index`). Lists and objects in cells of text are parsed.
    """
    if path.suffix.lower() == ".json":
        value, where = read_json(path), shown(path)
        for nth, row in enumerate(of_frame(value) or one_array(value, where)[1], start=1):
            yield f"{where}:row {nth}", row
        return
    source = open_table(path)
    typed = path.suffix.lower() in (".jsonl", ".ndjson", ".parquet")
    for line in source.each():
        cells = dict(line.raw) if typed else {name: nested(cell) for name, cell in line.raw.items()}
        yield source.at(line), cells


def of_frame(value: Any) -> list[dict[str, Any]]:
    """Return the rows (dicts), with an `index`, of a JSON value that is a pandas frame; else none."""
    if not isinstance(value, dict) or not value:
        return []
    if isinstance(columns := value.get("columns"), list) and isinstance(data := value.get("data"), list):
        index = index if isinstance(index := value.get("index"), list) else []
        rows = [dict(zip(map(str, columns), row, strict=False)) for row in data if isinstance(row, list)]
        return [{"index": name, **row} for name, row in zip(index or range(len(rows)), rows, strict=False)]
    first = next(iter(value.values()))
    if len(value) > 1 and all(
        isinstance(column, dict) and column.keys() == first.keys() for column in value.values()
    ):
        return [{"index": name, **{column: value[column][name] for column in value}} for name in first]
    return []


# --- lists and objects that a cell holds as text

_LONGEST, _LONGEST_PYTHON = 20_000_000, 300_000  # characters; a longer cell stays text
_IS_VALUE = re.compile(r"(.*\.)?(array|UUID|(float|int|uint|bool|str)\d*_?)")


def nested(cell: Any) -> Any:
    """Return a cell as the list or object that its text holds, in JSON or Python; any other cell as it is.

    `array([1, 2])` is the list, `float64(0.5)` the number; other calls become text; nothing is run. A number,
    a word and a broken text stay text, and so does one of over 20,000,000 characters, or of over 300,000 that
    is no JSON, whose parts would take many times the memory.
    """
    if not isinstance(cell, str) or len(cell) > _LONGEST or cell.lstrip()[:1] not in ("[", "{"):
        return cell
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(cell)
    if len(cell) > _LONGEST_PYTHON:
        return cell
    with contextlib.suppress(SyntaxError, tokenize.TokenError, ValueError, RecursionError, MemoryError):
        body = ast.parse(cell.strip(), mode="eval").body
        tokens = tokenize.generate_tokens(io.StringIO(cell.strip()).readline)
        kinds = [token.type for token in tokens if token.type != tokenize.NL]
        # Texts side by side, as NumPy prints them, are one text to Python.
        beside = (tokenize.STRING, tokenize.STRING) in pairwise(kinds)
        if isinstance(body, ast.List | ast.Dict | ast.Set) and not beside:
            return _value(body)
    return cell


def _value(node: ast.expr | None) -> Any:
    """Return the value of a literal; ValueError for what is none and no call either."""
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str()):
            return node.value
        case ast.Constant():
            return str(node.value)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return [_value(part) for part in parts]
        case ast.Dict(keys=keys, values=parts):
            return {str(_value(key)): _value(part) for key, part in zip(keys, parts, strict=True)}
        case ast.UnaryOp(op=ast.USub()) if isinstance(value := _value(node.operand), int | float):
            return -value
        case ast.Name(id="nan" | "inf"):
            return None
        case ast.Call():
            is_value = node.args and _IS_VALUE.fullmatch(ast.unparse(node.func))
            return _value(node.args[0]) if is_value else ast.unparse(node)
    raise ValueError("no literal")
