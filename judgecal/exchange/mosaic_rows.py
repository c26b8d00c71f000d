"""Rows under the field names of Mosaic AI Agent Evaluation and of MLflow 3, as items.

Mosaic: `request`, `response`, `expected_response`, `expected_facts`, `guidelines`, `retrieved_context`
(objects with `content` and `doc_uri`), `expected_retrieved_context` (objects with `doc_uri`), `request_id`.
MLflow 3 has `inputs`, `outputs` and `expectations`, and in the last one the fields of Mosaic that begin with
`expected` and `guidelines`. A value is a JSON value or its text, as in a cell of a CSV file. Names:
docs.databricks.com, "Agent Evaluation input schema"; mlflow.org, "Evaluation datasets".
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judgecal.errors import InputError
from judgecal.experiment import UNREADABLE, ReadRow
from judgecal.judges import ITEM_INPUTS
from judgecal.records import Context, Item, Turn
from judgecal.tables import FileSource, Row

_EXPECTATIONS = ("expected_response", "expected_facts", "guidelines", "expected_retrieved_context")
_REQUEST = ("request", "inputs")
_RESPONSE = ("response", "outputs")
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
        if not any(name in source.columns for name in _REQUEST):
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
        cells = row.cells
        named = cells.get(self.item or "request_id", "").strip()
        group = cells.get(self.group, "").strip() if self.group else ""
        return in_mosaics_words(read_record(row.raw, self.inputs, item_id=named, group=group))

    def sheet_columns(self) -> Mapping[str, str | None]:
        """Those of Mosaic AI Agent Evaluation; MLflow's hold objects, which are no texts for a sheet."""
        texts = {"question": "request", "answer": "response", "reference": "expected_response"}
        return {**texts, "item": self.item, "group": self.group}


def read_record(
    record: Mapping[str, Any], inputs: Collection[str] = (), *, item_id: str = "", group: str = ""
) -> ReadRow:
    """The item of one record of either schema; `inputs`: what the judges ask for, by name.

    Without an id it is known by its text, without a group it belongs to its question.
    """
    fields = _Fields(record)
    question, turns = _question(fields.first(*_REQUEST))
    answer = _answer(fields.first(*_RESPONSE))
    texts = {name: text for name in _LISTS if (text := fields.lines(name))}
    texts |= {name: text for name in set(inputs) - ITEM_INPUTS - {*_LISTS} if (text := fields.text(name))}
    references = fields.references("expected_response")
    item = Item(
        item_id=item_id,
        group=group or question,
        question=question,
        answer=answer or "",
        reference_answers=references,
        reference_documents=tuple(fields.documents("expected_retrieved_context")),
        contexts=tuple(fields.contexts("retrieved_context")),
        conversation=turns,
        fields=texts,
    )
    problems = fields.problems
    if answer is None:
        problems["response"] = "there is no response"
    if not question.strip():
        problems["request"] = "the question is empty"
    return ReadRow(item if item_id else replace(item, item_id=item.sha), problems)


def in_mosaics_words(row: ReadRow) -> ReadRow:
    """The row, which calls a missing reference answer as Mosaic does."""
    return replace(row, problems={"expected_response": "there is no expected response", **row.problems})


class _Fields:
    """The values of a record by Mosaic's names; `problems` is why one of them cannot be read."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self.problems: dict[str, str] = {}
        self._record = record
        expected = self._objects("expectations")
        self._parts = [record, *expected, *self._objects("outputs", broken_is_text=True)]

    def _objects(self, name: str, *, broken_is_text: bool = False) -> Iterator[Mapping[str, Any]]:
        value = self._record.get(name)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                value = _json(value)
            except ValueError as error:
                if not broken_is_text:
                    self._say(name, str(error))
                    self.problems |= dict.fromkeys(_EXPECTATIONS, self.problems[name])
        if isinstance(value, Mapping):
            yield value

    def _say(self, name: str, why: str) -> None:
        self.problems[name] = f"{name} {UNREADABLE}: {why}"

    def first(self, *names: str) -> Any:
        """The first of some columns that holds anything, else an empty text; None where there is none."""
        values = [self._record[name] for name in names if self._record.get(name) is not None]
        return next((value for value in values if value != ""), values[0] if values else None)

    def _value(self, name: str) -> Any:
        return next((part[name] for part in self._parts if part.get(name) not in (None, "")), None)

    def _parsed(self, name: str, opening: str) -> Any:
        """A value, or what its text holds as JSON where it begins like that; None where it cannot be read."""
        value = self._value(name)
        if isinstance(value, str) and value.lstrip()[:1] in tuple(opening):
            try:
                return _json(value)
            except ValueError as error:
                self._say(name, str(error))
                return None
        return value

    def text(self, name: str) -> str:
        """A further field, of the record or of its inputs."""
        value = self._value(name)
        if value is None:
            inputs = self._objects("inputs", broken_is_text=True)
            value = next((part[name] for part in inputs if name in part), None)
        return _as_text(value)

    def references(self, name: str) -> tuple[str, ...]:
        """The expected response, or several that are equally right."""
        value = self._value(name)
        several = isinstance(value, list) and all(isinstance(part, str) for part in value)
        parts = value if isinstance(value, list) and several else [value]
        return tuple(text for part in parts if (text := _answer(part)) and text.strip())

    def lines(self, name: str) -> str:
        """A list of texts, or texts by name, one a line; a text alone is itself."""
        return "\n".join(_lines(self._parsed(name, "[{")))

    def contexts(self, name: str) -> Iterator[Context]:
        """Passages with the id of their document; one without a text is kept, as its place counts."""
        for part in self._list(name):
            yield Context(_text_of(part), _id_of(part))

    def documents(self, name: str) -> Iterator[str]:
        """Ids of documents, each once."""
        yield from dict.fromkeys(document for part in self._list(name) if (document := _id_of(part)))

    def _list(self, name: str) -> Sequence[Any]:
        value = self._parsed(name, "[{")
        parts = [] if value is None else value if isinstance(value, list) else [value]
        odd = next((part for part in parts if not isinstance(part, str | Mapping)), None)
        if odd is not None:
            self._say(name, f"it must hold objects with content and doc_uri, found {odd!r:.{_SHOWN}}")
            return []
        return parts


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("no JSON that we read: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"no JSON ({error}), found {text.strip()[:_SHOWN]!r}") from None


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
    if not (isinstance(value, str) and value.lstrip()[:1] in ("{", "[")):
        return value
    try:
        inner = json.loads(value)
    except (ValueError, RecursionError):
        return value
    if isinstance(inner, Mapping):
        return inner if inner.keys() & set(keys) else value
    return inner if isinstance(inner, list) and inner and all(map(_is_message, inner)) else value


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and "content" in value


def _question(value: Any) -> tuple[str, tuple[Turn, ...]]:
    """The last thing that the user said, and the turns where there were several."""
    value = _structured(value, _CONVERSATION_KEYS)
    if isinstance(value, Mapping):
        chats = [value[key] for key in ("messages", "input") if isinstance(value.get(key), list)]
        if chats:
            return _last_said(chats[0])
        history = value.get("history")
        text = _one_text(value, _QUESTION_KEYS)
        turns = _turns(history) if isinstance(history, list) else []
        return text, (*turns, Turn("user", text)) if turns else ()
    if isinstance(value, list) and value and all(map(_is_message, value)):
        return _last_said(value)
    return _as_text(value), ()


def _last_said(messages: Sequence[Any]) -> tuple[str, tuple[Turn, ...]]:
    turns = _turns(messages)
    of_user = [turn for turn in turns if turn.role == "user"] or turns
    return of_user[-1].content if of_user else "", tuple(turns) if len(turns) > 1 else ()


def _turns(messages: Sequence[Any]) -> list[Turn]:
    whole = filter(_is_message, messages)
    return [Turn(str(message.get("role", "user")), _content(message.get("content"))) for message in whole]


def _content(value: Any) -> str:
    """The text of a message, whose parts may be a list."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_content, value)))
    if isinstance(value, Mapping):
        return _content(value.get("text", value.get("content")))
    return _as_text(value)


def _answer(value: Any) -> str | None:
    """The text of a response; None where there is none."""
    value = _structured(value, _REPLY_KEYS)
    if isinstance(value, Mapping):
        for key in _REPLY_KEYS:
            if isinstance(value.get(key), list) and value[key]:
                return _last_message(value[key])
        return _one_text(value, _ANSWER_KEYS)
    if isinstance(value, list):
        return _last_message(value) if any(map(_is_message, value)) else "\n".join(map(_stripped, value))
    return None if value is None else _as_text(value)


def _last_message(parts: Sequence[Any]) -> str:
    """The last text of choices, of messages, or of the parts of a reply."""
    inner = [part.get("message", part) for part in parts if isinstance(part, Mapping)]
    texts = [text for part in inner if _is_message(part) and (text := _content(part.get("content")))]
    return texts[-1] if texts else ""


def _one_text(value: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The text of an object: under a key that is known, the only one, or all of it as JSON."""
    named = next((value[key] for key in keys if isinstance(value.get(key), str)), None)
    texts = [inner for inner in value.values() if isinstance(inner, str)]
    if named is None and len(texts) == 1:
        named = texts[0]
    return json.dumps(value, ensure_ascii=False) if named is None else named
