"""Rows under the field names of Mosaic AI Agent Evaluation and of MLflow 3, as items.

Mosaic: `request`, `response`, `expected_response`, `expected_facts`, `guidelines`, `retrieved_context`
(objects with `content` and `doc_uri`), `expected_retrieved_context` (objects with `doc_uri`), `request_id`.
MLflow 3 has `inputs`, `outputs` and `expectations`, and in the last one the fields of Mosaic that begin with
`expected` and `guidelines`. A value is a JSON value or its text, as in a cell of a CSV file. Names:
docs.databricks.com, "Agent Evaluation input schema"; mlflow.org, "Evaluation datasets".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from judgecal.errors import InputError
from judgecal.exchange.files import nested
from judgecal.exchange.texts import answer_of, contexts_of, field_of, object_of, objects, request_of, text_of
from judgecal.experiment.table_rows import UNREADABLE, ReadRow
from judgecal.records import Context, Item, Turn
from judgecal.signatures import ITEM_INPUTS
from judgecal.tables import Columns, Row, Table

_EXPECTATIONS = ("expected_response", "expected_facts", "guidelines", "expected_retrieved_context")
_TEXT_KEYS = ("content", "page_content", "text")
_CONVERSATION_KEYS = {"messages", "query", "input"}
_REPLY_KEYS = {"choices", "messages", "output"}
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

    def check(self, source: Table) -> None:
        """Refuse a source Table without a request, or without a column that is named."""
        source.require(*(name for name in (self.item, self.group) if name is not None))
        if not {"request", "inputs"} & {*source.columns}:
            raise InputError(
                f"{source.where}: has neither a column request nor a column inputs, as Mosaic AI Agent "
                f"Evaluation and MLflow 3 name them, found {', '.join(source.columns)}: rename them, or use "
                "--columns plain with --col question= and --col answer="
            )

    def read(self, row: Row) -> ReadRow:
        """Read a Row as a ReadRow with its item; without a `request_id` the item's id is of its text."""
        item_id = row.cells.get(self.item or "request_id", "").strip()
        group = row.cells.get(self.group, "").strip() if self.group else ""
        return read_record(row.raw, self.inputs, item_id=item_id, group=group)

    @property
    def columns(self) -> Columns:
        """The columns of Mosaic AI Agent Evaluation; objects in MLflow's columns fit no sheet."""
        texts: dict[str, Any] = {
            "question": "request",
            "answer": "response",
            "reference": "expected_response",
        }
        return Columns(**texts, item=self.item, group=self.group)


def read_record(
    record: Mapping[str, Any], inputs: Collection[str] = (), *, item_id: str = "", group: str = ""
) -> ReadRow:
    """Read a record (dict) of either schema as a ReadRow: its item and the judges' `inputs` by name.

    Without an id it is known by its text, without a group it belongs to its question. A part that cannot be
    read is a problem, and a reference answer that is not there is called as Mosaic does.
    """
    problems = {"expected_response": "there is no expected response"}

    def unreadable(name: str, why: str) -> None:
        problems[name] = f"{name} {UNREADABLE}: {why}"

    def parsed(name: str, value: Any) -> Any:
        """A value, or what its text holds; None where it begins as a list or an object and is none."""
        value = nested(value)
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            unreadable(name, f"not JSON, found {value.strip()[:_SHOWN]!r}")
            return None
        return value

    expectations = parsed("expectations", record.get("expectations"))
    if broken := problems.get("expectations"):
        problems |= dict.fromkeys(_EXPECTATIONS, broken)
    parts = [record, object_of(expectations), object_of(record.get("outputs"))]

    def value_of(name: str) -> Any:
        return next((part[name] for part in parts if part.get(name) not in (None, "")), None)

    def passages(name: str) -> list[Any]:
        value = parsed(name, value_of(name))
        passages = [] if value is None else value if isinstance(value, list) else [value]
        odd = [part for part in passages if not isinstance(part, str | Mapping)]
        if odd:
            unreadable(name, f"it must hold objects with content and doc_uri, found {odd[0]!r:.{_SHOWN}}")
        return [] if odd else passages

    question, turns, _ = request_of(_spoken(field_of(record, "request", "inputs"), _CONVERSATION_KEYS))
    texts = {name: "\n".join(_lines(parsed(name, value_of(name)))) for name in _LISTS}
    for name in set(inputs) - ITEM_INPUTS - {*_LISTS}:
        value = value_of(name)
        texts[name] = text_of(object_of(record.get("inputs")).get(name) if value is None else value)
    expected = value_of("expected_response")
    if not (isinstance(expected, list) and all(isinstance(part, str) for part in expected)):
        expected = [expected]  # else several that are equally right
    wanted = (context.document_id for context in contexts_of(passages("expected_retrieved_context")))
    item = Item(
        item_id=item_id,
        group=group or question,
        question=question,
        answer=answer_of(_spoken(field_of(record, "response", "outputs"), _REPLY_KEYS)),
        reference_answers=tuple(
            text for part in expected if (text := answer_of(_spoken(part, _REPLY_KEYS))).strip()
        ),
        reference_documents=tuple(dict.fromkeys(document for document in wanted if document)),
        contexts=tuple(map(_passage, passages("retrieved_context"))),
        conversation=(*turns, Turn("user", question)) if turns else (),
        fields={name: text for name, text in texts.items() if text},
    )
    if record.get("response") is None and record.get("outputs") is None:
        problems["response"] = "there is no response"
    if not question.strip():
        problems["request"] = "the question is empty"
    return ReadRow(item if item_id else replace(item, item_id=item.sha), problems)


def _spoken(value: Any, keys: Collection[str]) -> Any:
    """What a text holds where that is a chat, or an object with one of the keys: an answer may be JSON."""
    inner = nested(value)
    chat = inner.keys() & keys if isinstance(inner, dict) else objects(inner)
    return inner if chat else value


def _passage(part: str | Mapping[str, Any]) -> Context:
    """A passage; one without a text is kept, as its place counts."""
    [context] = contexts_of([part])
    return context if isinstance(part, str) else replace(context, text=text_of(field_of(part, *_TEXT_KEYS)))


def _lines(value: Any) -> Iterable[str]:
    """A list of texts, or texts by name, one a line; a text alone is itself."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from (f"- {name}: {text.removeprefix('- ')}" for text in _lines(inner))
    elif isinstance(value, list):
        yield from (f"- {text}" for part in value if (text := text_of(part).strip()))
    elif text := text_of(value).strip():
        yield text
