"""Records of traces and scores as tools export them, and the texts of an item that lie in inputs and outputs.

An input is a text, an object (`{"question": ...}`), or a chat; an output too. What a record holds may be of
any type: each function here takes any value and gives an empty one where it is not what was looked for.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from judgecal.exchange.exports import Value, contexts_of, objects_of, spoken, text_of, turns_of
from judgecal.records import Context, Item, Turn
from judgecal.tables.encoding import ending_of
from judgecal.tables.formats import open_source
from judgecal.tables.json_files import of_frame, one_array, read_json
from judgecal.tables.nested import nested
from judgecal.tables.outline import outline
from judgecal.workspace import shown

Row = dict[str, Any]

_TYPED = frozenset({".jsonl", ".ndjson", ".parquet"})
_QUESTION = ("question", "query", "input", "user_input", "prompt", "user_query", "request", "text")
_ANSWER = ("answer", "response", "output", "content", "completion", "result", "text", "message")
_MOST_PLACES = 1_000_000
_PASSAGES = ("documents", "contexts", "chunks", "results")


def fields_of(path: Path) -> frozenset[str]:
    """The names of a file's columns, of the fields of its first records, or of its one JSON object; none
    where it cannot be read.
    """
    value = outline(path)
    rows = value if isinstance(value, list) else [value]
    names = {name for row in rows if isinstance(row, dict) for name in row}
    if isinstance(value, dict):
        if isinstance(value.get("columns"), list) and "data" in value:  # the outline has the first few alone
            names |= {name for row in of_frame(read_json(path))[:1] for name in row}
        if all(map(str.isdigit, value)):
            names |= {name for row in value.values() if isinstance(row, dict) for name in row}
        names |= {name for part in value.values() for row in objects(part)[:1] for name in row}
    return frozenset(names)


def records_of(path: Path) -> Iterator[tuple[str, Row]]:
    """Each record with where it stands, as messages name it (`scores.csv:12`).

    Rows of a table, or the objects of a JSON file: an array, the one array in an object, a data frame as
    pandas writes it (its index is the column `index`). Lists and objects in the cells of a sheet are lists
    and objects.
    """
    if ending_of(path) == ".json":
        yield from _json_rows(read_json(path), shown(path))
        return
    source = open_source(path)
    typed = path.suffix.lower() in _TYPED
    for piece in source.pieces():
        for row in piece.rows:
            where = (
                f"{source.where}:{row.line}" if source.unit == "line" else f"{source.where}:row {row.line}"
            )
            yield where, dict(row.raw) if typed else {name: nested(cell) for name, cell in row.raw.items()}


def _json_rows(value: Any, where: str) -> Iterator[tuple[str, Row]]:
    for number, row in enumerate(of_frame(value) or one_array(value, where)[1], start=1):
        yield f"{where}:row {number}", row


def object_of(value: Any) -> Row:
    """A value as an object, out of a cell's text too."""
    value = nested(value)
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[Row]:
    """The objects of a list, out of a cell's text too."""
    return objects_of(nested(value))


def word(value: Any) -> str:
    """An id or a name, which may be a number."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def scalar(value: Any) -> Value:
    """A label or a verdict: a truth value, a finite number, or a text that is not blank; else None."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int) else None


def number(value: Any) -> float | None:
    """A finite number, out of a cell's text too."""
    try:
        found = (
            float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
        )
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def place_of(value: Any) -> int | None:
    """A place in a list, from 0; None for anything else."""
    found = number(value)
    return int(found) if found is not None and found.is_integer() and 0 <= found < _MOST_PLACES else None


def named_text(value: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The text that an object has under the first of the names that has one."""
    return next((text for name in names if isinstance(text := value.get(name), str) and text.strip()), "")


@dataclass(frozen=True, slots=True)
class Asked:
    """What an input asks: the question, the turns before it, and the texts of the further fields of an
    object."""

    question: str
    conversation: tuple[Turn, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)


def asked_of(value: Any) -> Asked:
    """What was asked: a text, the last question of a chat, or the text of an object under a usual name; else
    JSON."""
    if turns := _chat(value):
        before, question, _ = spoken(turns)
        return Asked(question, before)
    if not isinstance(value, dict):
        return Asked(_text(value))
    name = next((name for name in _QUESTION if named_text(value, (name,))), None)
    if name is None:
        return asked_of(next(iter(value.values()))) if len(value) == 1 else Asked(_text(value))
    return Asked(
        value[name], (), {key: text for key, part in value.items() if key != name and (text := _text(part))}
    )


def item_of(item_id: str, input_: Any, output: Any, **further: Any) -> Item:
    """The item of an input and an output; `further` are attributes of `Item`, of which None is one that is
    not told.

    Its group is the one given, else the question.
    """
    asked = asked_of(input_)
    item = Item(
        item_id,
        asked.question or item_id,
        asked.question,
        answer_of(output),
        conversation=asked.conversation,
        fields=asked.fields,
    )
    return replace(item, **{name: value for name, value in further.items() if value})


def answer_of(value: Any) -> str:
    """What was answered: a text, the last message of a chat, or the text of an object under a usual name;
    else JSON."""
    if turns := _chat(value):
        return turns[-1].content
    if isinstance(value, dict):
        if choices := objects(value.get("choices")) or objects(value.get("generations")):
            return answer_of(choices[0].get("message", choices[0]))
        if text := named_text(value, _ANSWER):
            return text
        for name in _ANSWER:
            if isinstance(value.get(name), dict):
                return answer_of(value[name])
    return _text(value)


def _chat(value: Any) -> tuple[Turn, ...]:
    """The turns of a list of chat messages, or of an object's `messages`; none where it is no chat."""
    messages = value.get("messages") if isinstance(value, dict) else value
    if isinstance(messages, list) and len(messages) == 1 and isinstance(messages[0], list):
        messages = messages[0]  # LangChain's batch of one conversation
    if not isinstance(messages, list) or len(listed := objects_of(messages)) < len(messages):
        return ()
    is_chat = all("content" in one and ("role" in one or "type" in one) for one in listed)
    return turns_of(listed) if is_chat else ()


def passages_of(value: Any) -> tuple[Context, ...]:
    """The passages that a retriever gave: a list of texts or objects, or an object's list of them."""
    if isinstance(value, dict):
        value = next((value[name] for name in _PASSAGES if value.get(name)), None)
    return contexts_of(value)


def _text(value: Any) -> str:
    return "" if value in ([], {}) else text_of(value)


def moment_of(value: Any) -> float:
    """A time as seconds: ISO text, or a number; 0 where it is none."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(value.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return number(value) or 0.0
