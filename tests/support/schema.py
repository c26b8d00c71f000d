"""The page of `evaluate`'s file: every key with its type, its default and a line, read off the models."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from judgecal.artefacts import toml_text
from judgecal.rag.evaluation import config, http

_HOLDS = {str: "text", int: "integer", float: "number", bool: "flag", Any: "any JSON"}
_READ_BY = {
    http._is_path: "path",
    http._is_address: "address",
    http._headers_hold_no_secret: "table of texts",
}
_BOUNDS = {"ge": ">=", "gt": ">", "le": "<="}


_HEAD = """# The file of evaluate

What `judgecal evaluate CONFIG.toml` reads, key by key. What has no default is not set. An unknown key is refused, with the
nearest that there is. Paths are taken from the file's own folder. [The whole chain](../evaluate.md) has examples.

"""


def schema_page(made: str) -> str:
    """The whole file, a section for each table; `made`: the comment that says what makes it."""
    parts = [
        made.format(where="the models of judgecal/rag/evaluation"),
        _HEAD,
        _rows(config.EvaluateConfig, "`schema` | integer | `1` | the edition of this format"),
    ]
    for name, field in config.EvaluateConfig.model_fields.items():
        if (table := _model(field.annotation)) is not None:
            parts.append(f"\n## `[{name}]`\n\n{_rows(table)}")
    parts.append(f"\n## `[[systems]]`\n\n{_rows(config.SystemHead)}")
    for kind, table in config.KINDS.items():
        parts.append(f"\n## Kind `{kind}`\n\n{_rows(table)}")
        parts += (f"\n### `{path}` of `{kind}`\n\n{_rows(inner)}" for path, inner in _inner(table))
    return "".join(parts)


def _inner(table: type[BaseModel], path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """The tables within one, by dotted path; one that stands there twice comes once."""
    seen: dict[type[BaseModel], list[str]] = {}
    for name, field in table.model_fields.items():
        if (inner := _model(field.annotation)) is not None:
            seen.setdefault(inner, []).append(f"{path}{name}")
    for inner, paths in seen.items():
        yield "`, `".join(paths), inner
        yield from _inner(inner, f"{paths[0]}.")


def _model(kind: Any) -> type[BaseModel] | None:
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        return kind
    return next((found for part in get_args(kind) if (found := _model(part)) is not None), None)


def _rows(table: type[BaseModel], *more: str) -> str:
    said = comments_of(table)
    lines = [
        "| key | holds | default | meaning |\n| --- | --- | --- | --- |\n",
        *(f"| {row} |\n" for row in more),
    ]
    for name, field in table.model_fields.items():
        default = "needed" if field.is_required() else ""
        if not field.is_required() and not isinstance(field.default, BaseModel) and field.default is not None:
            default = "`{}`" if field.default == {} else f"`{toml_text({'x': field.default})[4:].strip()}`"
        lines.append(f"| `{name}` | {_holds(field.annotation, field)} | {default} | {said[name]} |\n")
    return "".join(lines)


def _holds(kind: Any, field: FieldInfo | None = None) -> str:
    """A type in words, with its bounds."""
    metadata = list(field.metadata) if field is not None else []
    if hasattr(kind, "__metadata__"):
        kind, metadata = kind.__origin__, [*metadata, *kind.__metadata__]
    origin, args = get_origin(kind), [arg for arg in get_args(kind) if arg is not type(None)]
    known = [name for part in metadata if (name := _READ_BY.get(getattr(part, "func", None))) is not None]
    if known:
        return known[0]
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in args)
    if origin is list:
        tables = _model(kind) is not None or get_origin(args[0]) is dict
        return "list of tables" if tables else f"list of {_HOLDS[args[0]]}s"
    if origin is dict:
        return (
            "table of tables"
            if get_origin(args[1]) is dict
            else f"table of {_holds(args[1]).replace('list of', 'lists of').removesuffix('s')}s"
        )
    if args:  # `X | None`
        return _holds(args[0])
    if _model(kind) is not None:
        return "table"
    found = [bound for part in metadata for bound in [part, *getattr(part, "metadata", ())]]
    ends = [
        f"{sign}{getattr(part, name):,}"
        for name, sign in _BOUNDS.items()
        for part in found
        if hasattr(part, name)
    ]
    return ", ".join([_HOLDS[kind], *ends])


def comments_of(table: type[BaseModel]) -> dict[str, str]:
    """Field -> the comment lines above it and the comment behind it; AssertionError where one has none."""
    said, above = dict[str, str](), list[str]()
    for line in inspect.getsource(table).splitlines():
        code, _, comment = line.partition("# ")
        field = re.match(r" +(\w+): ", code)
        if field is not None and field[1] in table.model_fields:
            text = " ".join(filter(None, [*above, comment.strip()])).rstrip(".").replace("|", "\\|")
            assert text, f"{table.__name__}.{field[1]} has no comment: say in one line what it is"
            said[field[1]] = text if text[1:2].isupper() else text[0].lower() + text[1:]
        above = [*above, comment.strip()] if comment and not code.strip() else []
    return said
