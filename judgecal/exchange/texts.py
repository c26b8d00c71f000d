"""What the records of other tools hold, whatever its type: values, texts, and the items that they make.

An input is a text, an object (`{"question": ...}`), or a chat; an output too. Each function takes any value
and gives an empty one where it is not what was looked for.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from judgecal.exchange.files import Placed, Row, nested
from judgecal.records import Context, Item, Turn

Value = bool | int | float | str | None

_NOTHING: tuple[Any, ...] = (None, "", [], {})
_MOST_PLACES = 1_000_000
_DOCUMENT = ("document_id", "doc_id", "doc_uri", "id", "source", "name")
_QUESTION = ("question", "query", "input", "user_input", "prompt", "user_query", "request", "text")
_ANSWER = ("answer", "response", "output", "content", "completion", "result", "text", "message")
_CHATS = ("messages", "input", "output")
_PASSAGES = ("documents", "contexts", "chunks", "results")
# The usual names of what people named themselves, by what it is.
_ROLES: Mapping[str, tuple[str, ...]] = {
    "question": (
        "question", "query", "user_input", "prompt", "instruction", "input", "user_query", "messages", "chat",
    ),
    "answer": (
        "answer_under_test", "response", "answer", "output", "completion", "generation", "model_output",
        "actual_output",
    ),
    "reference": (
        "reference_answer", "reference", "expected_output", "expected_answer", "expected_response",
        "ground_truth", "expected", "target",
    ),
    "contexts": (
        "contexts", "context", "retrieved_contexts", "retrieval_context", "documents", "passages", "chunks",
    ),
    "system": ("system", "model", "model_name"),
}  # fmt: skip


# --- values


def has(value: Any) -> bool:
    """Whether a field holds anything; 0 and false are something."""
    return value not in _NOTHING


def field_of(record: Mapping[str, Any], *names: str) -> Any:
    """The first of the names that a record has with a value; None where it has none of them."""
    return next((record[name] for name in names if has(record.get(name))), None)


def in_time(records: Iterable[Placed], *names: str) -> list[Placed]:
    """Records in the order of the moment that they have under the first of the names with one."""
    return sorted(records, key=lambda record: moment_of(field_of(record[1], *names)))


def word(value: Any) -> str:
    """An id or a name, which may be a number."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def word_in(record: Mapping[str, Any], *names: str) -> str:
    """The word under the first of the names that has one."""
    return next((text for name in names if (text := word(record.get(name)))), "")


def object_of(value: Any) -> Row:
    """A value as an object, out of a cell's text too."""
    value = nested(value)
    return value if isinstance(value, dict) else {}


def object_in(record: Mapping[str, Any], *path: str) -> Row:
    """The object under a name, or under the last of several, each in the object before."""
    for name in path:
        record = object_of(record.get(name))
    return dict(record)


def objects_of(value: Any) -> list[Row]:
    """The objects of a list; none of what is no list."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def objects(value: Any) -> list[Row]:
    """The objects of a list, out of a cell's text too."""
    return objects_of(nested(value))


def scalar(value: Any) -> Value:
    """A label or a verdict: a truth value, a finite number, or a text that is not blank; else None."""
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, bool | int) else None


def value_of(value: Any) -> Value:
    """A score's value: a truth value, a number or a text as it is, a list of one as its one; else JSON."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def number(value: Any) -> float | None:
    """A finite number, out of a cell's text too."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        finite = float(value)
    except (ValueError, OverflowError):
        return None
    return finite if math.isfinite(finite) else None


def number_of(value: Any) -> float | None:
    """A finite number, but none that is a text."""
    return None if isinstance(value, str) else number(value)


def place_of(value: Any) -> int | None:
    """A place in a list, from 0; None for anything else."""
    place = number(value)
    return int(place) if place is not None and place.is_integer() and 0 <= place < _MOST_PLACES else None


def moment_of(value: Any) -> float:
    """A time as seconds: ISO text, or a number; 0 where it is none."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(value.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return number(value) or 0.0


# --- texts


def text_of(value: Any) -> str:
    """A value as the text of an item: itself, the one text of an object, else JSON; None is ""."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, dict) and len(value) == 1:
        return text_of(next(iter(value.values())))
    return json.dumps(value, ensure_ascii=False)


def text_in(record: Mapping[str, Any], *names: str) -> str:
    """The text under the first of the names with a value."""
    return text_of(field_of(record, *names))


def texts_of(values: Any) -> tuple[str, ...]:
    """The texts of a list that are not empty; of one value its own."""
    values = values if isinstance(values, list) else [values]
    return tuple(text for text in map(text_of, values) if text)


def _filled(value: Any) -> str:
    return "" if value in ([], {}) else text_of(value)


def tags_of(value: Any) -> tuple[str, ...]:
    """Tags: the texts of a list."""
    return tuple(part for part in value if isinstance(part, str) and part) if isinstance(value, list) else ()


def contexts_of(value: Any) -> tuple[Context, ...]:
    """Passages: a list of texts, or of objects that hold one; a single text is one passage."""
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
    return Context(text, text_of(document) or None, number_of(value.get("score")))


def passages_of(value: Any) -> tuple[Context, ...]:
    """The passages that a retriever gave: a list of texts or objects, or an object's list of them."""
    if isinstance(value, dict):
        value = next((value[name] for name in _PASSAGES if value.get(name)), None)
    return contexts_of(value)


def joined(contexts: Sequence[Context]) -> str:
    """The texts of passages as one text."""
    return "\n\n".join(context.text for context in contexts)


def turns_of(value: Any) -> tuple[Turn, ...]:
    """The turns of a chat: objects with a role (or type) and a content, which may be parts with texts."""
    turns = []
    for turn in objects_of(value):
        content = turn.get("content")
        if content and isinstance(content, list):
            parts = (
                field_of(part, "text", "content") if isinstance(part, dict) else part for part in content
            )
            content = "\n".join(filter(None, map(text_of, parts)))
            turns.append(Turn(text_in(turn, "role", "type"), content))
        elif content:
            turns.append(Turn(text_in(turn, "role", "type"), text_of(content)))
    return tuple(turns)


def spoken(turns: Sequence[Turn]) -> tuple[tuple[Turn, ...], str, str]:
    """The turns before the last question, that question, and the answer to it ("" where there is none)."""
    asks = [place for place, turn in enumerate(turns) if turn.role in ("user", "human")]
    if not asks:
        return tuple(turns[:-1]), "", turns[-1].content if turns else ""
    answers = [turn.content for turn in turns[asks[-1] + 1 :] if turn.role in ("assistant", "ai")]
    return tuple(turns[: asks[-1]]), turns[asks[-1]].content, answers[-1] if answers else ""


def _chat(value: Any) -> tuple[Turn, ...]:
    """The turns of a list with chat messages, or of an object's; none where it is no chat."""
    if isinstance(value, dict):
        value = next((value[name] for name in _CHATS if isinstance(value.get(name), list)), None)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]  # LangChain's batch of one conversation
    turns = value if isinstance(value, list) else []  # a call of a tool has no content
    is_chat = all(isinstance(turn, dict) and turn.keys() & {"role", "type"} for turn in turns)
    return turns_of(turns) if is_chat else ()


def _named_text(value: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, str]:
    """The first of the names under which an object has a text, and that text; empty where it has none."""
    texts = ((name, value.get(name)) for name in names)
    return next(((name, text) for name, text in texts if isinstance(text, str) and text.strip()), ("", ""))


# --- items


class Request(NamedTuple):
    """What an input asks: the question, the turns before it, and the texts of an object's further fields."""

    question: str
    conversation: tuple[Turn, ...] = ()
    fields: Mapping[str, str] = {}


def request_of(value: Any) -> Request:
    """What was asked: a text, the last question of a chat, or an object's text of a usual name; else JSON."""
    if turns := _chat(value):
        before, question, _ = spoken(turns)
        return Request(question, before)
    if isinstance(value, dict):
        name, question = _named_text(value, _QUESTION)
        if name:
            before = turns_of(value.get("history"))
            known = (name, "history") if before else (name,)
            rest = {key: text for key, part in value.items() if key not in known and (text := _filled(part))}
            return Request(question, before, rest)
        if len(value) == 1:
            return request_of(next(iter(value.values())))
    return Request(_filled(value))


def answer_of(value: Any) -> str:
    """What was answered: a text, a chat's last message, or an object's text of a usual name; else JSON."""
    if turns := _chat(value):
        return turns[-1].content
    if isinstance(value, dict):
        if choices := objects(value.get("choices")) or objects(value.get("generations")):
            return answer_of(choices[0].get("message", choices[0]))
        _, text = _named_text(value, _ANSWER)
        inner = next((value[name] for name in _ANSWER if isinstance(value.get(name), dict)), None)
        if text or inner is not None:
            return text or answer_of(inner)
    return _filled(value)


def item_of(item_id: str, input_: Any, output: Any, **further: Any) -> Item:
    """The item of an input and an output; `further` are attributes of `Item`, left as they are where empty.

    Its group is the one given, else the question.
    """
    question, conversation, fields = request_of(input_)
    item = Item(
        item_id, question or item_id, question, answer_of(output), conversation=conversation, fields=fields
    )
    return replace(item, **{name: value for name, value in further.items() if value})


def named_item(item_id: str, record: Mapping[str, Any]) -> Item:
    """An item of a record whose fields people named; what has no usual name is a field of the item."""
    names = {name.lower().strip(): name for name in record}
    roles: dict[str, str] = {}
    for role, usual in _ROLES.items():
        known = (names[name] for name in usual if name in names)
        if name := next((name for name in known if has(record[name])), None):
            roles[role] = name
    values = {role: record[name] for role, name in roles.items()}
    question, conversation, fields = request_of(nested(values.get("question")))
    rest = {name: text_of(value) for name, value in record.items() if name not in roles.values()}
    return Item(
        item_id,
        question or item_id,
        question,
        text_of(values.get("answer")),
        texts_of(nested(values.get("reference"))),
        system=text_of(values.get("system")) or None,
        contexts=contexts_of(nested(values.get("contexts"))),
        conversation=conversation,
        fields={**fields, **{name: text for name, text in rest.items() if text.strip()}},
    )
