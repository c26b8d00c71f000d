"""What a cell may hold beside a text: contexts, a conversation, tags."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from judgecal.records import Context, Turn
from judgecal.tables.table import Row

_PLAIN_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def read_contexts(row: Row, column: str, where: str, problems: list[str]) -> tuple[Context, ...]:
    """The contexts in a cell: one text, or a list (in a text cell: a JSON list) of texts or of {document_id,
    text, score}. Empty ones are passed over; what is none of these, and a score that is no finite number, is
    added to the problems. NaN is how pandas writes that there is none.
    """
    value = listed_cell(row.raw.get(column))
    parts = value if isinstance(value, list) else [] if value is None else [value]
    found = []
    for place, part in enumerate(parts, start=1):
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(part, dict) and isinstance(text, str):
            score = _number(part.get("score"))
            if score is not None and not math.isfinite(score):
                problems.append(
                    f"{where}: column {column!r}: context {place}: score is no number that a double holds"
                )
            found.append(Context(text, _text_of(part.get("document_id")), score))
            continue
        if not (isinstance(part, str) or part is None):
            shown = json.dumps(part, ensure_ascii=False)
            problems.append(
                f"{where}: column {column!r}: context {place} must be a text or an object with a text, found "
                f"{shown[:60]}"
            )
            part = shown
        found.append(Context(part or ""))
    return tuple(context for context in found if context.text.strip())


def listed_cell(value: Any) -> Any:
    """A cell's value; of a text that is a JSON list that list, as tables without lists write it."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with contextlib.suppress(
            ValueError, RecursionError
        ):  # a text that only begins like a JSON list stays a text
            found = json.loads(value)
            return found if isinstance(found, list) else value
    return value


def _text_of(value: Any) -> str | None:
    """An id as text; None where there is none."""
    return None if value is None or isinstance(value, bool | dict | list) or value == "" else str(value)


def _number(value: Any) -> float | None:
    """A number; None for NaN and what is no number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        return None
    try:
        return float(value)
    except OverflowError:  # JSON allows whole numbers that no double holds
        return math.inf


def read_conversation(row: Row, column: str, where: str, problems: list[str]) -> tuple[Turn, ...]:
    """The turns in a cell: a list (in a text cell: a JSON list) of {role, content}; what is not is added to
    the problems.
    """
    value = listed_cell(row.raw.get(column))
    if value in (None, ""):
        return ()
    turns = [
        Turn(part["role"], part["content"])
        for part in (value if isinstance(value, list) else ())
        if isinstance(part, dict)
        and isinstance(part.get("role"), str)
        and isinstance(part.get("content"), str)
    ]
    if not isinstance(value, list) or len(turns) < len(value):
        problems.append(
            f"{where}: column {column!r}: a conversation must be a list of objects {{role, content}} with texts, found "
            f"{row.cells[column][:60]!r}"
        )
    return tuple(turns)


def read_tags(row: Row, column: str) -> Iterator[str]:
    """The tags of a cell: a text itself, each of a list, the column's name for true, and a number with that
    name."""
    value = listed_cell(row.raw.get(column))
    for part in value if isinstance(value, list) else [value]:
        text = str(part).strip()
        if part is None or not text or text.lower() == "false":
            continue
        if text.lower() == "true":
            yield column
        else:
            yield f"{column}={text}" if _PLAIN_NUMBER.fullmatch(text) else text
