"""Argilla: records of `to_datasets()` (CSV, JSON lines, Parquet) or `to_json()`; suggestions are a judge's.

Responses count where they were submitted. `to_datasets()` numbers the labels of suggestions in the order in
which they appear, while responses stay words: Parquet holds the words of the numbers, CSV and JSON lines do
not, and there such a suggestion is nobody's verdict.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, ExportFormat, Score, apart, id_of, judge_name, person
from judgecal.exchange.texts import Row, named_item, number, object_of, objects_of, text_of, value_of, word
from judgecal.records import Item
from judgecal.tables import Row as TableRow
from judgecal.tables import json_value, nested, outline, read_json, read_table
from judgecal.workspace import shown

_OWN = frozenset({"id", "status", "_server_id"})
_LONG = 60  # characters of a label
_SUBMITTED = "submitted"
_SEVERAL = "several choices at once, where a label is one"
_UNTOLD = "a suggestion that is the number of a label, whose word the file does not hold"


class _Response(NamedTuple):
    """What a person answered to a question."""

    value: Any
    user: str
    status: str


class _Suggestion(NamedTuple):
    """What a model answered to a question."""

    value: Any
    agent: str


class _Record(NamedTuple):
    """A record: its item, and the responses and the suggestion by question."""

    where: str
    item: Item
    responses: dict[str, list[_Response]]
    suggestions: dict[str, _Suggestion]


def _holds(files: Sequence[Path]) -> bool:
    return bool(files) and all(_is_nested(begun) or _questions(begun) for begun in map(outline, files))


def _is_nested(begun: Any) -> bool:
    records = objects_of(begun)
    known = ("fields", "responses", "suggestions")
    return bool(records) and all(isinstance(one.get(name), dict) for one in records for name in known)


def _questions(begun: Any) -> list[str]:
    """The questions of a flat table, by its columns."""
    columns = list(dict.fromkeys(name for row in objects_of(begun) for name in row))
    answered = [name.removesuffix(".responses") for name in columns if f"{name}.users" in columns]
    suggested = [name.removesuffix(".suggestion") for name in columns if f"{name}.agent" in columns]
    questions = dict.fromkeys([*answered, *suggested])
    return [name for name in questions if {f"{name}.responses", f"{name}.suggestion"} & {*columns}]


def _read(files: Sequence[Path], export: Export) -> None:
    for file in files:
        begun = outline(file)
        if _is_nested(begun) and file.suffix.lower() == ".json":
            records = export.objects(read_json(file), "record")
            places = (f"{shown(file)}: record {n}" for n in range(1, len(records) + 1))
            _take([_nested_record(at, one, export) for at, one in zip(places, records, strict=True)], export)
            export.notes.append(
                f"{shown(file)}: to_json() tells no submitted response from a draft or a discarded one: all "
                "were taken"
            )
        elif _questions(begun):
            _take(list(_flat_records(file, export)), export)
        else:
            raise InputError(
                f"{shown(file)}: no records of Argilla: hand over what to_json() or to_datasets() wrote "
                "(JSON lines under the name .jsonl)"
            )


# --- records


def _nested_record(where: str, record: Row, export: Export) -> _Record:
    responses = {
        name: [
            _Response(one.get("value"), word(one.get("user_id")), word(one.get("status")) or _SUBMITTED)
            for one in export.objects(given, "response", holders=True)
        ]
        for name, given in object_of(record.get("responses")).items()
    }
    suggestions = {
        name: _Suggestion(one.get("value"), word(one.get("agent")))
        for name, given in object_of(record.get("suggestions")).items()
        for one in export.objects([] if given is None else [given], "suggestion", holders=True)
    }
    texts = {**object_of(record.get("metadata")), **object_of(record.get("fields"))}
    return _Record(where, _item(record, texts), responses, suggestions)


def _flat_records(file: Path, export: Export) -> Iterator[_Record]:
    """The rows of a table; a suggestion that is the number of a label is its word, or `_UNTOLD`."""
    table, words = read_table(file), _class_names(file)
    questions = _questions([dict.fromkeys(table.columns)])
    read = [({name: list(_responses(row.raw, name)) for name in questions}, row) for row in table.rows]
    numbered = {name for name in questions if _is_numbered(name, read)}
    export.count(len(read))
    for responses, row in read:
        suggestions = {}
        for name in questions:
            value = row.raw.get(f"{name}.suggestion")
            if (place := number(value)) is not None:
                known = words.get(f"{name}.suggestion")
                value = _word(known, place) if known else _UNTOLD if name in numbered else value
            suggestions[name] = _Suggestion(value, word(row.raw.get(f"{name}.suggestion.agent")))
        yield _Record(table.at(row), _item(row.raw, _texts(row.raw, questions)), responses, suggestions)


def _responses(cells: Mapping[str, Any], question: str) -> Iterator[_Response]:
    values, users, statuses = (
        found
        if isinstance(found := nested(cells.get(f"{question}.responses{part}"), numbers=True), list)
        else []
        for part in ("", ".users", ".status")
    )
    for n, value in enumerate(values):
        user = word(users[n]) if n < len(users) else ""
        yield _Response(value, user, word(statuses[n]) if n < len(statuses) else _SUBMITTED)


def _is_numbered(question: str, read: Sequence[tuple[dict[str, list[_Response]], TableRow]]) -> bool:
    """Whether suggestions are numbers of labels: people answered words, or nobody did and they run from 0."""
    answers = [one.value for responses, _ in read for one in responses[question] if one.value is not None]
    places = [number(row.raw.get(f"{question}.suggestion")) for _, row in read]
    order = list(dict.fromkeys(place for place in places if place is not None))
    if not order or any(isinstance(value, list | dict) for value in answers):
        return False
    return any(isinstance(value, str) for value in answers) if answers else order == list(range(len(order)))


def _class_names(file: Path) -> dict[str, list[str]]:
    """Column -> the words of its numbers, which the library that wrote a Parquet file keeps in it."""
    if file.suffix.lower() != ".parquet":
        return {}
    import pyarrow.parquet as pq

    kept = (pq.read_schema(file).metadata or {}).get(b"huggingface", b"{}")
    with contextlib.suppress(InputError, UnicodeDecodeError):
        info = object_of(object_of(json_value(kept.decode(), str(file))).get("info"))
        features = object_of(info.get("features")).items()
        return {
            name: names for name, one in features if isinstance(names := object_of(one).get("names"), list)
        }
    return {}


def _word(names: Sequence[Any], place: float) -> Any:
    return names[int(place)] if place == int(place) and 0 <= place < len(names) else _UNTOLD


def _texts(cells: Mapping[str, Any], questions: Sequence[str]) -> dict[str, Any]:
    """The fields and metadata of a row: what is of no question, no vector, no part of an object beside it."""
    parts = tuple(f"{name}.{part}" for name in questions for part in ("responses", "suggestion"))
    return {
        name: cell
        for name, cell in cells.items()
        if name not in _OWN
        and not name.startswith(parts)
        and not isinstance(cells.get(name.partition(".")[0]), dict)
        and not (isinstance(cell, list) and cell and all(isinstance(one, float) for one in cell))
    }


def _item(record: Mapping[str, Any], texts: Mapping[str, Any]) -> Item:
    return named_item(word(record.get("id")) or word(record.get("_server_id")) or id_of(texts), texts)


# --- what was said of them


def _take(records: Sequence[_Record], export: Export) -> None:
    given = [pair for record in records for pair in record.responses.items()]
    commented = (question for question, answers in given if any(_is_long(one.value) for one in answers))
    comments = dict.fromkeys(commented)  # in the order of the file, which is that of the notes
    for record, item in zip(records, apart([record.item for record in records]), strict=True):
        export.add_item(item)
        _take_responses(record, item.item_id, comments, export)
        for question, suggestion in record.suggestions.items():
            if suggestion.value in (None, ""):
                continue
            export.count()
            if suggestion.value == _UNTOLD or isinstance(suggestion.value, list | dict):
                export.skip(_UNTOLD if suggestion.value == _UNTOLD else _SEVERAL)
            else:
                by, value = judge_name(question, suggestion.agent), value_of(suggestion.value)
                export.add_judgement(Score(item.item_id, question, by, value, where=record.where))
    if n := export.skipped[_UNTOLD]:
        export.notes.append(
            f"{n:,} suggestions are numbers of labels, given in the order in which they appear: save the "
            "data set with to_parquet(), or the records with to_json(), which hold the words"
        )


def _take_responses(record: _Record, item_id: str, comments: Collection[str], export: Export) -> None:
    for question, answers in record.responses.items():
        export.count(len(answers))
        suggested = record.suggestions.get(question)
        drafted = suggested is not None and suggested.value not in (None, "")
        for one in answers:
            if reason := _why_not(one, comment=question in comments):
                export.skip(reason)
                continue
            note = "\n".join(
                text for name in comments for text in _said(record.responses.get(name, []), one.user)
            )
            by, value = person(one.user), value_of(one.value)
            export.add_rating(Score(item_id, question, by, value, note, record.where, saw_draft=drafted))


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and (len(value) > _LONG or "\n" in value)


def _why_not(response: _Response, *, comment: bool) -> str:
    """Why a response is no rating; empty where it is one."""
    if response.status != _SUBMITTED:
        return f"a response that was not submitted ({response.status or 'without a status'})"
    if comment:
        return "a comment, taken as the note of the labels beside it"
    return _SEVERAL if isinstance(response.value, list | dict) else ""


def _said(responses: Sequence[_Response], user: str) -> list[str]:
    return [text_of(one.value) for one in responses if one.user == user and one.status == _SUBMITTED]


FORMAT = ExportFormat(
    "argilla", _holds, _read, "what to_json() wrote, or the data set of to_datasets() as a table"
)
