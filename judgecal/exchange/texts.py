"""Values, texts and items in the records of other tools, whatever their types.

Each function takes any value, and returns an empty one where the value has not the form that it reads.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from judgecal.exchange.files import Placed, Row, nested
from judgecal.records import Context, Item, Turn, well_formed
from judgecal.tables.columns import USUAL

Value = bool | int | float | str | None

_NOTHING: tuple[Any, ...] = (None, "", [], {})
_DOCUMENT = ("document_id", "doc_id", "doc_uri", "id", "source", "name")
_QUESTION = ("question", "query", "input", "user_input", "prompt", "user_query", "request", "text")
_ANSWER = ("answer", "response", "output", "content", "completion", "result", "text", "message")
_CHATS = ("messages", "input", "output")
_PASSAGES = ("documents", "contexts", "chunks", "results")


# --- values


def has(value: Any) -> bool:
    """Whether a field holds anything; 0 and false are something."""
    return value not in _NOTHING


def field_of(record: Mapping[str, Any], *names: str) -> Any:
    """Return the value of the first of the names that has any; None where none has."""
    return next((record[name] for name in names if has(record.get(name))), None)


def in_time(records: Iterable[Placed], *names: str) -> list[Placed]:
    """Sort records by the moment under the first of the names with one."""
    return sorted(records, key=lambda record: moment_of(field_of(record[1], *names)))


def word(value: Any) -> str:
    """Return a value as the text of an id or a name, a number too; else an empty text."""
    if isinstance(value, str):
        return well_formed(value.strip())
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def word_in(record: Mapping[str, Any], *names: str) -> str:
    """Return the word under the first of the names that has one."""
    return next((text for name in names if (text := word(record.get(name)))), "")


def object_of(value: Any) -> Row:
    """Return a value as a dict (Row), out of a cell's text too."""
    value = nested(value)
    return value if isinstance(value, dict) else {}


def object_in(record: Mapping[str, Any], *path: str) -> Row:
    """Return the dict (Row) in a record under a name, or under a path of names."""
    for name in path:
        record = object_of(record.get(name))
    return dict(record)


def objects(value: Any) -> list[Row]:
    """Return the list of Rows (dicts) in a value that is a list, out of a cell's text too."""
    value = nested(value)
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def scalar(value: Any) -> Value:
    """Return a value as a label or verdict: a bool, a finite number or a text not blank; else None."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int) else None


def number(value: Any) -> float | None:
    """Return a value as a finite number, out of a cell's text too; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        finite = float(value)
    except (ValueError, OverflowError):
        return None
    return finite if math.isfinite(finite) else None


def moment_of(value: Any) -> float:
    """Return a value (ISO text or number) as seconds since 1970; 0 where it is neither."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(value.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return number(value) or 0.0


# --- texts


def text_of(value: Any) -> str:
    """Return a value as text: itself, the one text of an object, else JSON; "" for None and what is empty."""
    if isinstance(value, str) or value in _NOTHING:
        return well_formed(value or "")
    if isinstance(value, dict) and len(value) == 1:
        return text_of(next(iter(value.values())))
    return well_formed(json.dumps(value, ensure_ascii=False))


def texts_of(values: Any) -> tuple[str, ...]:
    """Return a tuple of texts, none empty, from a list, or from a single value."""
    values = values if isinstance(values, list) else [values]
    return tuple(text for text in map(text_of, values) if text)


def contexts_of(value: Any) -> tuple[Context, ...]:
    """Return a value as a tuple of Contexts: a list of texts or of objects that hold one, or one text."""
    values = value if isinstance(value, list) else [] if value in (None, "") else [value]
    return tuple(map(_context, values))


def _context(value: Any) -> Context:
    if not isinstance(value, dict):
        return Context(text_of(value))
    if isinstance(inner := value.get("document"), dict):
        value = {**value, **inner}
    text = field_of(value, "text", "content", "context", "page_content", "document")
    document = field_of(value, *_DOCUMENT)
    if document is None and isinstance(about := value.get("metadata"), dict):
        document = field_of(about, *_DOCUMENT)
    text = text_of(value if text is None else text)
    return Context(text, text_of(document) or None, number(value.get("score")))


def passages_of(value: Any) -> tuple[Context, ...]:
    """Return a value, a retriever's output, as a tuple of Contexts: a list, or an object's list."""
    if isinstance(value, dict):
        value = next((value[name] for name in _PASSAGES if value.get(name)), None)
    return contexts_of(value)


def _turns(value: Any) -> tuple[Turn, ...]:
    """Return the turns of a chat: objects with a role (or type) and a content, a text or parts with texts."""
    turns = []
    for turn in objects(value):
        parts = turn.get("content")
        parts = parts if isinstance(parts, list) else [parts]
        texts = (field_of(part, "text", "content") if isinstance(part, dict) else part for part in parts)
        if any(parts):
            role = text_of(field_of(turn, "role", "type"))
            turns.append(Turn(role, "\n".join(filter(None, map(text_of, texts)))))
    return tuple(turns)


def _chat(value: Any) -> tuple[Turn, ...]:
    """Return the turns of a list of chat messages, or of an object's list; none where it is no chat."""
    if isinstance(value, dict):
        value = next((value[name] for name in _CHATS if isinstance(value.get(name), list)), None)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]  # LangChain's batch of one conversation
    turns = value if isinstance(value, list) else []  # a call of a tool has no content
    is_chat = all(isinstance(turn, dict) and turn.keys() & {"role", "type"} for turn in turns)
    return _turns(turns) if is_chat else ()


def _named_text(value: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, str]:
    """Return the first of the names under which an object has a text, and that text; empty where none has."""
    texts = ((name, value.get(name)) for name in names)
    named = ((name, well_formed(text)) for name, text in texts if isinstance(text, str) and text.strip())
    return next(named, ("", ""))


# --- items


class Request(NamedTuple):
    """The question of an input, the turns before it, and the texts of an object's further fields."""

    question: str
    conversation: tuple[Turn, ...] = ()
    fields: Mapping[str, str] = {}


def request_of(value: Any) -> Request:
    """Return a value, an input, as a Request: a text, a chat's last question, an object's text, or JSON."""
    if turns := _chat(value):
        places = [place for place, turn in enumerate(turns) if turn.role in ("user", "human")]
        return Request(turns[places[-1]].content, turns[: places[-1]]) if places else Request("", turns[:-1])
    if isinstance(value, dict):
        name, question = _named_text(value, _QUESTION)
        if name:
            before = _turns(value.get("history"))
            texts = {well_formed(key): text_of(part) for key, part in value.items() if key != name}
            texts |= {"history": ""} if before else {}
            return Request(question, before, {key: text for key, text in texts.items() if text})
        if len(value) == 1:
            return request_of(next(iter(value.values())))
    return Request(text_of(value))


def answer_of(value: Any) -> str:
    """Return a value, an output, as text: itself, a chat's last message, an object's text, or JSON."""
    if turns := _chat(value):
        return turns[-1].content
    if isinstance(value, dict):
        if choices := objects(value.get("choices")) or objects(value.get("generations")):
            return answer_of(choices[0].get("message", choices[0]))
        _, text = _named_text(value, _ANSWER)
        inner = next((value[name] for name in _ANSWER if isinstance(value.get(name), dict)), None)
        if text or inner is not None:
            return text or answer_of(inner)
    return text_of(value)


def item_of(item_id: str, input_: Any, output: Any, **further: Any) -> Item:
    """Return the Item of an id, an input value and an output value; its group is its question by default.

    `further` are attributes of `Item`, left as they are where empty.
    """
    question, conversation, fields = request_of(input_)
    group, answer = question.strip() or item_id, answer_of(output)
    item = Item(item_id, group, question, answer, conversation=conversation, fields=fields)
    return replace(item, **{name: value for name, value in further.items() if value})


def named_item(item_id: str, record: Mapping[str, Any]) -> Item:
    """From an item id and a record (dict), return the Item; parts of no usual name are its fields."""
    names = {name.lower().strip(): name for name in record if has(record[name])}
    roles: dict[str, Any] = {}
    for role in ("question", "answer", "reference", "contexts", "system"):
        usual = USUAL[role]
        roles[role] = next((names[name] for name in usual if name in names), None)
    values = {role: nested(record.get(name)) for role, name in roles.items()}
    item = item_of(
        item_id,
        values["question"],
        text_of(values["answer"]),
        reference_answers=texts_of(values["reference"]),
        system=text_of(values["system"]),
        contexts=contexts_of(values["contexts"]),
    )
    texts = {well_formed(name): text_of(part) for name, part in record.items() if name not in roles.values()}
    return replace(
        item, fields={**item.fields, **{name: text for name, text in texts.items() if text.strip()}}
    )
