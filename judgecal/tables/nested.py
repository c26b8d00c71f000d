"""Lists and objects that a cell of a table holds as text: JSON, or as Python prints them."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import tokenize
from typing import Any

_LONGEST, _LONGEST_PYTHON = 20_000_000, 300_000  # characters; a longer cell stays text
_BEGINS = ("[", "{", "array(")
_BESIDE = re.compile(r"""["']\s+[rRbBuU]{0,2}["']""")
_VALUES = (tokenize.STRING, tokenize.NUMBER, tokenize.NAME)
_OPENING, _CLOSING = ("[", "{", "-"), ("]", "}", ")")
_NUMBERS = re.compile(r"\s*\[[\s\d.eE+-]*\]\s*")
_BROKEN = (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError)


def nested(cell: Any, *, numbers: bool = False) -> Any:
    """The list or object that a text holds, in JSON or as Python prints it; anything else as it is.

    `numbers`: so is `[4 5]`, an array of numbers as NumPy prints it, which may be a text's references as
    well.

    A number or a word stays text, and so does a text that is broken, over 20,000,000 characters long, or no
    JSON and over 300,000, as its parts would take many times the memory.
    """
    if not isinstance(cell, str) or not cell.lstrip().startswith(_BEGINS) or len(cell) > _LONGEST:
        return cell
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(cell)
    if len(cell) <= _LONGEST_PYTHON and (numbers or not _NUMBERS.fullmatch(cell)):
        with contextlib.suppress(*_BROKEN):
            return _python_value(cell)
    return cell


def _python_value(text: str) -> Any:
    """What Python prints: literals, `nan`, `array([...])`, and calls such as `datetime.datetime(2026, 1, 2)`
    as text.

    Nothing is run. NumPy prints what is in an array side by side without commas; to Python two texts so are
    one text.
    """
    if _BESIDE.search(text):
        return _literal(_with_commas(text))
    with contextlib.suppress(SyntaxError, ValueError):
        return _literal(text)
    return _literal(_with_commas(text))


def _literal(text: str) -> Any:
    body = ast.parse(text.strip(), mode="eval").body
    whole = {"[": ast.List, "{": ast.Dict | ast.Set, "a": ast.Call}
    if not isinstance(body, whole[text.lstrip()[0]]):
        raise ValueError("no list and no object, or more than one")
    return _value(body)


def _with_commas(text: str) -> str:
    """The text with a comma between two values that stand side by side."""
    starts = [0]
    for line in io.StringIO(text):
        starts.append(starts[-1] + len(line))
    parts: list[str] = []
    done, ended = 0, False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        begins = token.type in _VALUES or token.string in _OPENING
        if begins and ended:
            start = starts[token.start[0] - 1] + token.start[1]
            parts += [text[done:start], ","]
            done = start
        if token.type != tokenize.NL:
            ended = token.type in _VALUES or token.string in _CLOSING
    return "".join([*parts, text[done:]])


def _value(node: ast.expr) -> Any:
    """The value of a literal; ValueError for what is none and no call either."""
    if isinstance(node, ast.Constant):
        known = node.value is None or isinstance(node.value, bool | int | float | str)
        return node.value if known else str(node.value)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_value(part) for part in node.elts]
    if isinstance(node, ast.Dict):
        if any(key is None for key in node.keys):
            raise ValueError("an object with ** in it")
        return {
            _key(key): _value(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand)
    if isinstance(node, ast.Name) and node.id in ("nan", "inf"):
        return None if node.id == "nan" else float("inf")
    if isinstance(node, ast.Call):
        return _called(node)
    raise ValueError("no literal")


def _key(node: ast.expr) -> str:
    value = _value(node)
    return value if isinstance(value, str) else str(value)


def _number(node: ast.expr) -> float:
    value = _value(node)
    if not isinstance(value, int | float):
        raise ValueError("a minus before what is no number")
    return value


def _called(node: ast.Call) -> Any:
    """`array([1, 2])` is the list, `float64(0.5)` the number, `UUID('a')` the text; others stay text."""
    name = ast.unparse(node.func).rpartition(".")[2]
    if node.args and re.fullmatch(r"array|UUID|(float|int|uint|bool|str)\d*_?", name):
        return _value(node.args[0])
    return ast.unparse(node)
