"""Argilla: records of `to_datasets()`, as JSON lines or Parquet; suggestions are a judge's.

Responses count where they were submitted. `to_datasets()` numbers the labels of suggestions in the order in
which they appear, while responses stay words: Parquet holds the words of the numbers, JSON lines do not, and
there such a suggestion is nobody's verdict. A CSV, whose cells hold lists without commas, is refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, ExportFormat, Score, id_of, judge_name, person
from judgecal.exchange.files import Row, columns_of, nested, outline
from judgecal.exchange.texts import named_item, number, object_in, object_of, text_of, word, word_in
from judgecal.records import Item
from judgecal.tables import json_value, read_table
from judgecal.workspace import shown

_OWN = frozenset({"id", "status", "_server_id"})
_LONG = 60  # characters of a label
_SUBMITTED = "submitted"
_SEVERAL = "several choices at once, where a label is one"
_UNTOLD = "a suggestion that is the number of a label, whose word the file does not hold"


class _Response(NamedTuple):
    value: Any
    user: str
    status: str


class _Record(NamedTuple):
    """A record: its item, and by question the responses, and what a model suggested and its name."""

    where: str
    item: Item
    responses: dict[str, list[_Response]]
    suggestions: dict[str, tuple[Any, str]]


def _questions(columns: Sequence[str] | set[str]) -> list[str]:
    answered = [name.removesuffix(".responses") for name in columns if f"{name}.users" in columns]
    suggested = [name.removesuffix(".suggestion") for name in columns if f"{name}.agent" in columns]
    questions = dict.fromkeys([*answered, *suggested])
    return [name for name in questions if {f"{name}.responses", f"{name}.suggestion"} & {*columns}]


def _read(files: Sequence[Path], export: Export) -> None:
    for file in files:
        if not _questions(columns_of(outline(file))) or file.suffix.lower() in (".csv", ".tsv", ".tab"):
            raise InputError(
                f"{shown(file)}: no records of Argilla: hand over what to_datasets() gives, as Parquet or "
                "JSON lines (.jsonl)"
            )
        _take(list(_flat_records(file, export)), export)


# --- records


def _item(record: Row, texts: Row) -> Item:
    return named_item(word_in(record, "id", "_server_id") or id_of(texts), texts)


def _flat_records(file: Path, export: Export) -> Iterator[_Record]:
    """The rows of a table; a suggestion that is the number of a label is its word, or `_UNTOLD`."""
    table, words = read_table(file), _class_names(file)
    questions = _questions(table.columns)
    responses = [{name: list(_responses(dict(row.raw), name)) for name in questions} for row in table.rows]
    numbered = set()
    for name in questions:
        answers = [answer.value for row in responses for answer in row[name] if answer.value is not None]
        places = [number(row.raw.get(f"{name}.suggestion")) for row in table.rows]
        order = list(dict.fromkeys(place for place in places if place is not None))
        # They are numbers of labels where people answered words, or nobody did and they run from 0.
        if order and not any(isinstance(value, list | dict) for value in answers):
            words_given = any(isinstance(value, str) for value in answers)
            if words_given if answers else order == list(range(len(order))):
                numbered.add(name)
    export.count(len(responses))
    # What is of no question, no vector and no part of an object beside it are the fields and metadata.
    parts = (*(f"{name}.{part}" for name in questions for part in ("responses", "suggestion")),)
    for row, given in zip(table.rows, responses, strict=True):
        suggestions = {}
        for name in questions:
            value = row.raw.get(f"{name}.suggestion")
            if (place := number(value)) is not None:
                choices = words.get(f"{name}.suggestion")
                if choices:
                    is_place = place == int(place) and 0 <= place < len(choices)
                    value = choices[int(place)] if is_place else _UNTOLD
                elif name in numbered:
                    value = _UNTOLD
            suggestions[name] = (value, word_in(row.raw, f"{name}.suggestion.agent"))
        texts = {
            name: cell
            for name, cell in row.raw.items()
            if name not in _OWN
            and not name.startswith(parts)
            and not isinstance(row.raw.get(name.partition(".")[0]), dict)
            and not (isinstance(cell, list) and cell and all(isinstance(part, float) for part in cell))
        }
        yield _Record(table.at(row), _item(dict(row.raw), texts), given, suggestions)


def _responses(cells: Row, question: str) -> Iterator[_Response]:
    lists = (nested(cells.get(f"{question}.responses{part}")) for part in ("", ".users", ".status"))
    values, users, statuses = (given if isinstance(given, list) else [] for given in lists)
    for n, value in enumerate(values):
        user = word(users[n]) if n < len(users) else ""
        yield _Response(value, user, word(statuses[n]) if n < len(statuses) else _SUBMITTED)


def _class_names(file: Path) -> dict[str, list[Any]]:
    """Column -> the words of its numbers, which the library that wrote a Parquet file keeps in it."""
    if file.suffix.lower() != ".parquet":
        return {}
    import pyarrow.parquet as pq

    stored = (pq.read_schema(file).metadata or {}).get(b"huggingface", b"{}")
    with contextlib.suppress(InputError, UnicodeDecodeError):
        features = object_in(object_of(json_value(stored.decode(), str(file))), "info", "features")
        names = {name: object_in(features, name).get("names") for name in features}
        return {name: classes for name, classes in names.items() if isinstance(classes, list)}
    return {}


# --- what was said of them


def _take(records: Sequence[_Record], export: Export) -> None:
    # The questions that are answered with comments, in the order of the file, which is that of the notes.
    comments = dict.fromkeys(
        question
        for record in records
        for question, answers in record.responses.items()
        if any(
            isinstance(answer.value, str) and (len(answer.value) > _LONG or "\n" in answer.value)
            for answer in answers
        )
    )
    items = export.add_apart([record.item for record in records])
    for (where, _, responses, suggestions), item in zip(records, items, strict=True):
        for question, answers in responses.items():
            export.count(len(answers))
            for value, user, status in answers:
                if status != _SUBMITTED:
                    export.skip(f"a response that was not submitted ({status or 'without a status'})")
                elif question in comments:
                    export.skip("a comment, taken as the note of the labels beside it")
                elif isinstance(value, list | dict):
                    export.skip(_SEVERAL)
                else:
                    comment_responses = (
                        response for name in comments for response in responses.get(name, ())
                    )
                    note = "\n".join(
                        text_of(response.value)
                        for response in comment_responses
                        if (response.user, response.status) == (user, _SUBMITTED)
                    )
                    by = person(user)
                    export.add_rating(Score(item.item_id, question, by, value, note, where))
        for question, (value, agent) in suggestions.items():
            if value in (None, ""):
                continue
            export.count()
            if value == _UNTOLD or isinstance(value, list | dict):
                export.skip(_UNTOLD if value == _UNTOLD else _SEVERAL)
            else:
                judge = judge_name(question, agent)
                export.add_judgement(Score(item.item_id, question, judge, value, where=where))
    if n := export.skipped[_UNTOLD]:
        export.notes.append(
            f"{n:,} suggestions are numbers of labels, given in the order in which they appear: save the "
            "data set with to_parquet(), which holds the words"
        )


FORMAT = ExportFormat(
    "argilla",
    lambda begun: all(_questions(columns_of(part)) for part in begun),
    _read,
    "the data set of to_datasets() as Parquet or JSON lines",
)
