"""Rows under the field names of Mosaic AI Agent Evaluation and of MLflow 3, as items.

Mosaic: `request`, `response`, `expected_response`, `expected_facts`, `guidelines`, `retrieved_context`
(objects with `content` and `doc_uri`), `expected_retrieved_context` (objects with `doc_uri`), `request_id`.
MLflow 3 has `inputs`, `outputs` and `expectations`, and in the last one the fields of Mosaic that begin with
`expected` and `guidelines`. A value is a JSON value or its text, as in a cell of a CSV file. Names:
docs.databricks.com, "Agent Evaluation input schema"; mlflow.org, "Evaluation datasets".
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judgecal.errors import InputError
from judgecal.experiment import UNREADABLE, ReadRow
from judgecal.judges import ITEM_INPUTS
from judgecal.records import Context, Item, Turn
from judgecal.tables import FileSource, Row

_EXPECTATIONS = ("expected_response", "expected_facts", "guidelines", "expected_retrieved_context")
_QUESTION_KEYS = ("query", "question", "request", "prompt", "input", "text", "message")
_ANSWER_KEYS = ("response", "answer", "output", "content", "text", "completion", "result")
_TEXT_KEYS = ("content", "page_content", "text")
_ID_KEYS = ("doc_uri", "document_id", "id")
_CONVERSATION_KEYS = ("messages", "query", "input")
_REPLY_KEYS = ("choices", "messages", "output")
_SHOWN = 60  # characters of a value in a message
_LISTS = ("expected_facts", "guidelines")


@dataclass(frozen=True, slots=True)
class MosaicReader:
    """Reads rows for judges that need `inputs`.

    An input that neither schema knows is read from the column of its name, or from the key of its name in
    `inputs`.
    """

    inputs: frozenset[str]
    item: str | None = None  # the columns of ids, where options name them
    group: str | None = None

    def check(self, source: FileSource) -> None:
        """Refuse a table without a request, or without a column that is named."""
        source.require(*(name for name in (self.item, self.group) if name is not None))
        if not {"request", "inputs"} & {*source.columns}:
            raise InputError(
                f"{source.where}: has neither a column request nor a column inputs, as Mosaic AI Agent "
                f"Evaluation and MLflow 3 name them, found {', '.join(source.columns)}: rename them, or use "
                "--columns plain with --question and --answer"
            )

    def options(self) -> str:
        """What a configuration says of it."""
        return f"mosaic --item {self.item or ''} --group {self.group or ''}"

    def read(self, row: Row) -> ReadRow:
        """The item of a row; without a `request_id` it is known by its text."""
        item_id = row.cells.get(self.item or "request_id", "").strip()
        group = row.cells.get(self.group, "").strip() if self.group else ""
        return in_mosaics_words(read_record(row.raw, self.inputs, item_id=item_id, group=group))

    def sheet_columns(self) -> Mapping[str, str | None]:
        """Those of Mosaic AI Agent Evaluation; MLflow's hold objects, which are no texts for a sheet."""
        texts = {"question": "request", "answer": "response", "reference": "expected_response"}
        return {**texts, "item": self.item, "group": self.group}


def in_mosaics_words(row: ReadRow) -> ReadRow:
    """The row, which calls a missing reference answer as Mosaic does."""
    return replace(row, problems={"expected_response": "there is no expected response", **row.problems})


def read_record(
    record: Mapping[str, Any], inputs: Collection[str] = (), *, item_id: str = "", group: str = ""
) -> ReadRow:
    """The item of one record of either schema; `inputs`: what the judges ask for, by name.

    Without an id it is known by its text, without a group it belongs to its question. A part that cannot be
    read is a problem.
    """
    problems: dict[str, str] = {}

    def unreadable(name: str, why: str) -> str:
        problems[name] = f"{name} {UNREADABLE}: {why}"
        return problems[name]

    def first(*names: str) -> Any:
        """The first of some columns that holds anything, else an empty text; None where there is none."""
        values = [record[name] for name in names if record.get(name) is not None]
        return next((value for value in values if value != ""), values[0] if values else None)

    expectations, broken = _object(record.get("expectations"))
    if broken:
        problems |= dict.fromkeys(_EXPECTATIONS, unreadable("expectations", broken))
    parts = [record, expectations, _object(record.get("outputs"))[0]]

    def value_of(name: str) -> Any:
        return next((part[name] for part in parts if part.get(name) not in (None, "")), None)

    def parsed(name: str) -> Any:
        """A value, or what its text holds as JSON; None where it cannot be read."""
        value = value_of(name)
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            try:
                return _json(value)
            except ValueError as error:
                unreadable(name, str(error))
                return None
        return value

    def passages(name: str) -> Sequence[Any]:
        value = parsed(name)
        passages = [] if value is None else value if isinstance(value, list) else [value]
        odd = [part for part in passages if not isinstance(part, str | Mapping)]
        if odd:
            unreadable(name, f"it must hold objects with content and doc_uri, found {odd[0]!r:.{_SHOWN}}")
        return [] if odd else passages

    question, turns = _question(first("request", "inputs"))
    answer = _answer(first("response", "outputs"))
    texts = {name: "\n".join(_lines(parsed(name))) for name in _LISTS}
    for name in set(inputs) - ITEM_INPUTS - {*_LISTS}:
        value = value_of(name)
        texts[name] = _as_text(_object(record.get("inputs"))[0].get(name) if value is None else value)
    expected = value_of("expected_response")
    if not (isinstance(expected, list) and all(isinstance(part, str) for part in expected)):
        expected = [expected]  # else several that are equally right
    wanted = (_id_of(part) for part in passages("expected_retrieved_context"))
    item = Item(
        item_id=item_id,
        group=group or question,
        question=question,
        answer=answer or "",
        reference_answers=tuple(text for part in expected if (text := _answer(part)) and text.strip()),
        reference_documents=tuple(dict.fromkeys(document for document in wanted if document)),
        # one without a text is kept, as its place counts
        contexts=tuple(Context(_text_of(part), _id_of(part)) for part in passages("retrieved_context")),
        conversation=turns,
        fields={name: text for name, text in texts.items() if text},
    )
    if answer is None:
        problems["response"] = "there is no response"
    if not question.strip():
        problems["request"] = "the question is empty"
    return ReadRow(item if item_id else replace(item, item_id=item.sha), problems)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"not JSON ({error}), found {text.strip()[:_SHOWN]!r}") from None


def _object(value: Any) -> tuple[Mapping[str, Any], str]:
    """An object, out of a text too, and why the text is none; any other value is an empty one."""
    try:
        value = _json(value) if isinstance(value, str) and value.lstrip().startswith("{") else value
    except ValueError as error:
        return {}, str(error)
    return (value, "") if isinstance(value, Mapping) else ({}, "")


def _text_of(part: str | Mapping[str, Any]) -> str:
    if isinstance(part, str):
        return part
    return next((part[key] for key in _TEXT_KEYS if isinstance(part.get(key), str)), "")


def _id_of(part: str | Mapping[str, Any]) -> str | None:
    if isinstance(part, str):
        return None
    inner = part.get("metadata")
    places = [part, inner] if isinstance(inner, Mapping) else [part]
    ids = (place[key] for place in places for key in _ID_KEYS if place.get(key) not in (None, ""))
    return next(map(str, ids), None)


def _lines(value: Any) -> Iterable[str]:
    """A list of texts, or texts by name, one a line; a text alone is itself."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from (f"- {name}: {text.removeprefix('- ')}" for text in _lines(inner))
    elif isinstance(value, list):
        yield from (f"- {_stripped(part)}" for part in value if _stripped(part))
    elif value is not None and _stripped(value):
        yield _stripped(value)


def _stripped(value: Any) -> str:
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).strip()


def _as_text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else _stripped(value)


def _structured(value: Any, keys: Sequence[str]) -> Any:
    """What a text holds where it is the JSON of a message or of an object with such a key; else itself."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        inner = json.loads(value)
    except (ValueError, RecursionError):
        return value
    known = inner.keys() & {*keys} if isinstance(inner, Mapping) else _are_messages(inner)
    return inner if known else value


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_message, value))


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and "content" in value


def _question(value: Any) -> tuple[str, tuple[Turn, ...]]:
    """The last thing that the user said, and the turns where there were several."""
    value = _structured(value, _CONVERSATION_KEYS)
    if isinstance(value, Mapping):
        chats = [value[key] for key in ("messages", "input") if isinstance(value.get(key), list)]
        if not chats:
            text, turns = _one_text(value, _QUESTION_KEYS), _turns(value.get("history"))
            return text, (*turns, Turn("user", text)) if turns else ()
        value = chats[0]
    elif not _are_messages(value):
        return _as_text(value), ()
    turns = _turns(value)
    of_user = [turn for turn in turns if turn.role == "user"] or turns
    return of_user[-1].content if of_user else "", tuple(turns) if len(turns) > 1 else ()


def _turns(messages: Any) -> list[Turn]:
    whole = filter(_is_message, messages) if isinstance(messages, list) else ()
    return [Turn(str(message.get("role", "user")), _content(message.get("content"))) for message in whole]


def _content(value: Any) -> str:
    """The text of a message, whose parts may be a list."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_content, value)))
    if isinstance(value, Mapping):
        return _content(value.get("text", value.get("content")))
    return _as_text(value)


def _answer(value: Any) -> str | None:
    """The text of a response, of choices or messages the last one; None where there is none."""
    value = _structured(value, _REPLY_KEYS)
    if isinstance(value, Mapping):
        lists = [value[key] for key in _REPLY_KEYS if isinstance(value.get(key), list) and value[key]]
        if not lists:
            return _one_text(value, _ANSWER_KEYS)
        value = lists[0]
    elif isinstance(value, list) and not any(map(_is_message, value)):
        return "\n".join(map(_stripped, value))
    elif not isinstance(value, list):
        return None if value is None else _as_text(value)
    inner = [part.get("message", part) for part in value if isinstance(part, Mapping)]
    texts = [text for part in inner if _is_message(part) and (text := _content(part.get("content")))]
    return texts[-1] if texts else ""


def _one_text(value: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The text of an object: under a key that is known, the only one, or all of it as JSON."""
    texts = [inner for inner in value.values() if isinstance(inner, str)]
    known = [value[key] for key in keys if isinstance(value.get(key), str)]
    if known or len(texts) == 1:
        return (known or texts)[0]
    return json.dumps(value, ensure_ascii=False)
