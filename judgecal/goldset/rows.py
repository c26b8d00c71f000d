"""Rows of items.jsonl, ratings.jsonl and documents.jsonl: read (every problem is collected) and written."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.artefacts import check_keys
from judgecal.errors import InputError
from judgecal.goldset.card import plain_label
from judgecal.records import CANNOT_TELL, Context, Item, Rating, Turn
from judgecal.scale import Scale
from judgecal.tables import decode, json_lines, read_bytes
from judgecal.workspace import shown

_ITEM_KEYS = frozenset({
    "item_id", "group", "question", "answer", "reference_answer", "system", "reference_documents",
    "document_id", "contexts", "conversation", "fields", "expect", "tags", "inclusion_probability",
})  # fmt: skip
_TURN_KEYS = frozenset({"role", "content"})
_CONTEXT_KEYS = frozenset({"document_id", "text", "score"})
_RATING_KEYS = frozenset({"item_id", "rater", "label", "note", "saw_draft", "reason", "rubric_sha256"})
_DOCUMENT_KEYS = frozenset({"document_id", "title", "text"})

# What items are counted and found by: these end up in files and on pages as they are.
_NAMES = frozenset(
    {"item_id", "group", "system", "tags", "fields", "document_id", "reference_documents", "rater"}
)

# JSON allows whole numbers that no float can hold.
_HUGE = 1e300
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """A text of the set's corpus."""

    document_id: str
    title: str | None
    text: str


class _Fields:
    """One row's fields by type; what does not fit is added to `problems`."""

    def __init__(
        self, row: Mapping[str, Any], where: str, *, known: frozenset[str], problems: list[str]
    ) -> None:
        self.row, self.where, self.problems = row, where, problems
        if not known.issuperset(row):
            problems.extend(check_keys(row, known, where))
        for key, value in row.items():
            if key in _NAMES and (half := _half_a_character(value)):
                self.fail(
                    f"{key} holds an unpaired surrogate ({half}), which no file or page can hold: take it out"
                )

    def fail(self, what: str) -> None:
        self.problems.append(f"{self.where}: {what}")

    def required(self, key: str, *, may_be_empty: bool = False) -> str:
        """A text that must be there; "" where it is not."""
        value = self.row.get(key)
        if value is None:
            self.fail(f"no {key}: add it")
        elif not isinstance(value, str):
            self.fail(f"{key} must be text, found {_found(value)}: put it in quotes")
        elif not value.strip() and not may_be_empty:
            self.fail(f"{key} is empty: fill it in")
        else:
            return value
        return ""

    def _fit(self, key: str, fits: Callable[[Any], bool], form: str) -> Any:
        """A value that may be absent, then None; None too where it does not fit, which is a problem."""
        value = self.row.get(key)
        if value is None or fits(value):
            return value
        what, _, advice = form.partition(": ")
        self.fail(f"{key} must be {what}, found {_found(value)}" + (f": {advice}" if advice else ""))
        return None

    def text(self, key: str) -> str | None:
        """A text that may be absent, null or empty: then None."""
        return (
            self._fit(key, lambda value: isinstance(value, str), "text: put it in quotes or leave it out")
            or None
        )

    def texts(self, key: str, *, or_one: bool = False) -> tuple[str, ...]:
        """A list of texts; with `or_one` a single text counts as a list of one, and an empty text as none."""
        value = self.row.get(key)
        if value is None or (or_one and value == ""):
            return ()
        if or_one and isinstance(value, str):
            return (value,)
        if isinstance(value, list) and all(isinstance(part, str) and part.strip() for part in value):
            return tuple(value)
        form = "text or a list of texts" if or_one else "a list of texts"
        self.fail(f"{key} must be {form}, none of them empty; found {_found(value)}")
        return ()

    def flag(self, key: str) -> bool:
        """A true or false that may be absent: then False."""
        return self._fit(key, lambda value: isinstance(value, bool), "true or false") is True

    def number(self, key: str) -> float | None:
        """A finite number that may be absent."""
        value = self._fit(key, _is_number, "a number")
        return None if value is None else float(value)

    def texts_by_name(self, key: str) -> dict[str, str]:
        """An object whose values are texts, which may be absent."""
        return self._fit(key, _is_texts, "an object of texts") or {}

    def table(self, key: str) -> dict[str, Any]:
        """An object by name that may be absent."""
        return self._fit(key, lambda value: isinstance(value, dict), "an object") or {}

    def parts(self, key: str, *, form: str) -> list[Any]:
        """A list that may be absent."""
        return self._fit(key, lambda value: isinstance(value, list), f"a list of {form}") or []


def _half_a_character(value: Any) -> str | None:
    """The first unpaired surrogate of a name, of a list of them or of an object's names, as its code."""
    for text in (value,) if isinstance(value, str) else value if isinstance(value, list | dict) else ():
        if isinstance(text, str) and not text.isascii() and (half := _HALF.search(text)):
            return f"U+{ord(half[0]):04X}"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _HUGE


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(part, str) for part in value.values())


def _found(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_item(row: Mapping[str, Any], where: str, problems: list[str]) -> Item:
    """One row of items.jsonl; where `group` is missing the question is the group, and else the item.

    An item with fields of its own may do without a question and an answer.
    """
    fields = _Fields(row, where, known=_ITEM_KEYS, problems=problems)
    own, item_id = fields.texts_by_name("fields"), fields.required("item_id")
    question = (fields.text("question") or "") if own else fields.required("question")
    return Item(
        item_id=item_id,
        group=fields.text("group") or question or item_id,
        question=question,
        answer=(fields.text("answer") or "") if own else fields.required("answer", may_be_empty=True),
        reference_answers=fields.texts("reference_answer", or_one=True),
        system=fields.text("system"),
        reference_documents=_reference_documents(fields),
        contexts=_contexts(fields),
        tags=fields.texts("tags"),
        conversation=_conversation(fields),
        fields=own,
        expect=fields.table("expect"),
        inclusion_probability=_probability(fields),
    )


def _probability(fields: _Fields) -> float | None:
    value = fields.number("inclusion_probability")
    if value is None or 0.0 < value <= 1.0:
        return value
    fields.fail(f"inclusion_probability must be above 0 and at most 1, found {value:g}")
    return None


def read_items(path: Path) -> tuple[Item, ...]:
    """The items of a file in the format of items.jsonl; InputError lists every problem with its line."""
    where = shown(path)
    text, problems = decode(read_bytes(path), where)
    lines = json_lines(text, where)
    problems.extend(lines.problems)
    items = tuple(read_item(row, f"{where}:{line}", problems) for line, row in lines.rows)
    if problems:
        raise InputError(problems)
    return items


def _reference_documents(fields: _Fields) -> tuple[str, ...]:
    one = fields.text("document_id")
    if one is None:
        return fields.texts("reference_documents")
    if fields.row.get("reference_documents") is not None:
        fields.fail("both document_id and reference_documents: keep reference_documents")
    return (one,)


def _contexts(fields: _Fields) -> tuple[Context, ...]:
    """Texts, or objects with a text."""
    found = []
    for position, part in enumerate(
        fields.parts("contexts", form="texts or of objects with a text"), start=1
    ):
        where = f"{fields.where}: context {position}"
        if isinstance(part, str):
            found.append(Context(part))
        elif isinstance(part, dict):
            inner = _Fields(part, where, known=_CONTEXT_KEYS, problems=fields.problems)
            text = inner.required("text", may_be_empty=True)
            found.append(Context(text, inner.text("document_id"), inner.number("score")))
        else:
            fields.problems.append(f"{where} must be a text or an object with a text, found {_found(part)}")
    return tuple(found)


def _conversation(fields: _Fields) -> tuple[Turn, ...]:
    found = []
    for position, part in enumerate(fields.parts("conversation", form="objects {role, content}"), start=1):
        where = f"{fields.where}: turn {position} of the conversation"
        if not isinstance(part, dict):
            fields.problems.append(f"{where} must be an object {{role, content}}, found {_found(part)}")
            continue
        inner = _Fields(part, where, known=_TURN_KEYS, problems=fields.problems)
        found.append(Turn(inner.required("role"), inner.required("content", may_be_empty=True)))
    return tuple(found)


def read_rating(
    row: Mapping[str, Any], where: str, *, scale: Scale | None, problems: list[str]
) -> Rating | None:
    """One row of ratings.jsonl, its label read by the scale; None where the row is no rating.

    Without a scale (the card is broken, and says so itself) labels are not held against anything.
    """
    fields = _Fields(row, where, known=_RATING_KEYS, problems=problems)
    item_id, rater = fields.required("item_id"), fields.required("rater")
    note, saw_draft, reason = fields.text("note"), fields.flag("saw_draft"), fields.text("reason")
    rubric, label = fields.text("rubric_sha256"), row.get("label")
    if label is None and reason == CANNOT_TELL:
        return Rating(item_id, rater, None, note, saw_draft, reason, rubric)
    if label is None:
        unless = f"a missing rating has no row; who could not tell says so by reason {CANNOT_TELL!r}"
        fields.fail(f"no label: add it, or take the row out ({unless})")
        return None
    if reason == CANNOT_TELL:
        fields.fail(f"a label, and the reason {CANNOT_TELL!r}: keep one of them")
        return None
    if not isinstance(label, str | int | float):
        fields.fail(f"label must be a number or a word, found {_found(label)}")
        return None
    if scale is None:
        return None
    try:
        return Rating(item_id, rater, scale.read(label), note, saw_draft, reason, rubric)
    except (ValueError, OverflowError) as error:
        fields.fail(f"label outside the scale {scale}: {error}")
        return None


def read_document(row: Mapping[str, Any], where: str, problems: list[str]) -> Document:
    """One row of documents.jsonl."""
    fields = _Fields(row, where, known=_DOCUMENT_KEYS, problems=problems)
    document_id = fields.required("document_id")
    return Document(document_id, fields.text("title"), fields.required("text", may_be_empty=True))


def item_row(item: Item) -> dict[str, Any]:
    """An item as a line of items.jsonl; what it lacks is left out."""
    references = list(item.reference_answers)
    optional = {
        "reference_answer": references[0] if len(references) == 1 else references,
        "system": item.system,
        "reference_documents": list(item.reference_documents),
        "contexts": [
            _without_empty({"document_id": part.document_id, "text": part.text, "score": part.score})
            for part in item.contexts
        ],
        "conversation": [{"role": turn.role, "content": turn.content} for turn in item.conversation],
        "fields": dict(item.fields),
        "expect": dict(item.expect),
        "tags": list(item.tags),
        "inclusion_probability": item.inclusion_probability,
    }
    texts = {"item_id": item.item_id, "group": item.group, "question": item.question, "answer": item.answer}
    if item.fields and not item.question:
        texts = {name: text for name, text in texts.items() if text}
    return texts | _without_empty(optional)


def rating_row(rating: Rating) -> dict[str, Any]:
    """A rating as a line of ratings.jsonl."""
    label = None if rating.label is None else plain_label(rating.label)
    optional = {
        "label": label,
        "note": rating.note,
        "saw_draft": rating.saw_draft or None,
        "reason": rating.reason,
        "rubric_sha256": rating.rubric_sha256,
    }
    return {"item_id": rating.item_id, "rater": rating.rater} | _without_empty(optional)


def document_row(document: Document) -> dict[str, Any]:
    """A document as a line of documents.jsonl."""
    return _without_empty(dataclasses.asdict(document))


def _without_empty(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key == "text" or value not in (None, "", [], {})}
