"""The TOML and JSON files that judgecal keeps: read, held against their shape, written."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

import orjson

from judgecal.errors import InputError, unknown_name

if TYPE_CHECKING:
    from pydantic import ValidationError

SCHEMA = 1
"""The schema of every TOML and JSON artefact that this version writes; a higher one is refused."""

_T = TypeVar("_T")
At = Callable[[Sequence[str]], str]
"""From the keys that lead to a value to `file:line`, as messages name it."""


def read_toml(path: Path) -> dict[str, Any]:
    """Read the TOML file at a path as a dict; a later `schema` is refused (absent counts as 1)."""
    try:
        table = tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"{path}:{line}: not UTF-8 (byte {error.start}): save the file as UTF-8") from None
    except RecursionError:
        raise InputError(f"{path}: no TOML of ours: nested too deeply") from None
    except ValueError as error:  # tomllib's own, and that of a number of thousands of digits
        raise InputError(f"{path}: {error}") from None
    check_schema(table, str(path))
    return table


def read_json(path: Path, *, absent: str) -> dict[str, Any]:
    """Read the JSON object in the file at a path as a dict; the text `absent` is the error without a file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: {absent}") from None
    return json_object(data, str(path))


def json_object(data: bytes, where: str) -> dict[str, Any]:
    """Return the dict of a JSON object in bytes; `where` names it in errors; a number must fit a double."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{where}: no JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{where}: must hold a JSON object, found a JSON {type(value).__name__}")
    return value


def check_schema(table: Mapping[str, Any], where: str) -> None:
    """Refuse a table (dict) whose `schema` is of a later judgecal; the text `where` names it in the error."""
    schema = table.get("schema", SCHEMA)
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise InputError(f"{where}: schema must be a whole number from 1, found {schema!r}")
    if schema > SCHEMA:
        raise InputError(
            f"{where}: schema {schema} is newer than this judgecal reads ({SCHEMA}): update judgecal"
        )


def check_keys(table: Mapping[str, Any], valid: Iterable[str], where: str) -> list[str]:
    """Return a list of problems, led by the text `where`: keys of a table not among the valid names."""
    names = sorted(valid)
    return [f"{where}: {unknown_name('key', key, names)}" for key in table if key not in names]


def validated(model: type[_T], table: Mapping[str, Any], at: str | At) -> _T:
    """Return an instance of a pydantic class (`model`), made of a TOML table; `at` is its place in errors.

    `model` is a pydantic model or a dataclass (`extra="forbid"`, and `strict=True` for TOML), `at` the file,
    or where in it the keys lead to.
    """
    from pydantic import TypeAdapter, ValidationError

    check_schema(table, at if isinstance(at, str) else at(()))
    try:
        return TypeAdapter(model).validate_python({k: v for k, v in table.items() if k != "schema"})
    except ValidationError as error:
        raise InputError(schema_problems(error, model, at)) from None


def schema_problems(error: ValidationError, model: Any, at: str | At) -> list[str]:
    """Return pydantic's error on a model in our words, a message each, with the place `at` which it is."""
    problems = []
    for problem in error.errors(include_url=False):
        keys = [str(part) for part in problem["loc"]]
        name, kind, shown = ".".join(keys), problem["type"], f"found {problem['input']!r:.60}"
        if kind == "missing":
            what = f"no {name}: add it"
        elif kind in ("extra_forbidden", "unexpected_keyword_argument"):
            around = model
            for key in keys[:-1]:
                around = _fields_of(around).get(key, around)
            what = str(unknown_name("key", keys[-1], sorted(_fields_of(around))))
        elif kind == "literal_error":
            words = problem["ctx"]["expected"].replace(" or ", ", ").replace("'", "")
            what = f"{name} must be one of {words}, {shown}"
        elif kind == "value_error":  # from a validator of ours
            what = ": ".join(filter(None, (name, str(problem["ctx"]["error"]))))
        else:
            what = f"{name}: {problem['msg']}, {shown}"
        problems.append(f"{at if isinstance(at, str) else at(keys)}: {what}")
    return problems


def _fields_of(kind: Any) -> Mapping[str, Any]:
    """Key -> type of a model or a dataclass, found within `X | None`, lists and mappings of them too."""
    fields = getattr(kind, "model_fields", None)
    if fields is not None:
        return {field.alias or name: field.annotation for name, field in fields.items()}
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return get_type_hints(kind)
    return next((fields for part in get_args(kind) if (fields := _fields_of(part))), {})


def toml_text(table: Mapping[str, Any]) -> str:
    """Return a table as TOML text: plain values first, then its sub-tables; lists hold plain values.

    A JSON string is a TOML basic string, so texts need no rules of their own. None values are left out;
    TypeError where a value has no TOML form.
    """
    return "\n".join(_toml_lines(table, ())) + "\n"


def _toml_lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterable[str]:
    plain = {
        key: value for key, value in table.items() if not isinstance(value, Mapping) and value is not None
    }
    if path and (plain or not table):
        yield f"\n[{'.'.join(toml_key(part) for part in path)}]"
    for key, value in plain.items():
        yield f"{toml_key(key)} = {_toml_value(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _toml_lines(value, (*path, key))


def toml_key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _toml_value(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        inner = ", ".join(f"{toml_key(k)} = {_toml_value(v)}" for k, v in value.items() if v is not None)
        return "{ " + inner + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    raise TypeError(f"{type(value).__name__} has no TOML form: {value!r}")
