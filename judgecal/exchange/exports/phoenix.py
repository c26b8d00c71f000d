"""Phoenix: spans and their annotations, as its client gives them (data frames, or the pages of its API).

An annotation tells its kind: HUMAN, LLM or CODE. Two evaluators of one name differ by their `identifier`.
Annotations of documents are of single contexts. The attributes of a span may be nested, or flattened as
OpenTelemetry has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgecal.exchange.exports import Export, ExportFormat, Score, Sources, judge_name
from judgecal.exchange.texts import (
    Placed,
    Row,
    Value,
    fields_of,
    in_time,
    item_of,
    moment_of,
    number,
    objects,
    passages_of,
    place_of,
    records_of,
    scalar,
    word,
    word_in,
)
from judgecal.records import ITEM_UNIT, Context
from judgecal.tables.nested import nested

_SOURCES = Sources({"HUMAN"}, {"LLM", "CODE"}, "an annotation of the kind")
_UNREAD = "NOT_PARSABLE"
_NUMBERED = re.compile(r"(?:attributes\.)?retrieval\.documents\.(\d{1,6})\.(?:document\.)?(\w+)")


def _holds(files: Sequence[Path]) -> bool:
    return any("annotator_kind" in names or _are_spans(names) for names in map(fields_of, files))


def _are_spans(names: frozenset[str]) -> bool:
    return "span_kind" in names and bool(names & {"context.span_id", "context"})


@dataclass
class _Spans:
    """The spans by id."""

    rows: dict[str, Row] = field(default_factory=dict)
    roots: dict[str, str] = field(default_factory=dict)  # trace -> its root
    starts: dict[str, int] = field(default_factory=dict)  # where a span's contexts begin in its root's
    contexts: dict[str, list[Context]] = field(default_factory=dict)

    def root_of(self, span: str) -> str:
        return self.roots.get(_trace(self.rows.get(span, {})), span)


def _read(files: Sequence[Path], export: Export) -> None:
    records = [(where, _flat(row)) for file in files for where, row in records_of(file)]
    export.count(len(records))
    annotations = [(where, row) for where, row in records if "annotator_kind" in row]
    others = [row for _, row in records if "annotator_kind" not in row]
    span_rows = [row for row in others if "span_kind" in row]
    spans = _spans(span_rows)
    export.skip("a row that is neither a span nor an annotation", len(others) - len(span_rows))
    export.skip("a span that stands there more than once", len(span_rows) - len(spans.rows))
    if not spans.rows:
        export.lack_texts("spans", "get_spans_dataframe() too")
    scored = {_span(row) for _, row in annotations if not _of_document(row)} | {*spans.roots.values()}
    for span, row in spans.rows.items():
        if span not in scored:
            export.skip("a span within a trace, without annotations")
            continue
        system, contexts = word(_attribute(row, "llm.model_name")), tuple(spans.contexts.get(span, ()))
        input_, output = _value(row, "input"), _value(row, "output")
        export.add_item(item_of(span, input_, output, system=system, contexts=contexts))
    for where, row, judge, value in _labelled(in_time(annotations, "updated_at", "created_at")):
        _take(row, where, spans, export, judge=judge, value=value)


def _flat(row: Row) -> Row:
    """The row with the fields of objects within it under dotted names, as OpenTelemetry has them."""
    flat: Row = {}
    waiting = [("", row)]
    while waiting:
        dot, part = waiting.pop()
        for name, value in part.items():
            flat.setdefault(dot + name, value)
            if isinstance(value, dict):
                waiting.append((f"{dot}{name}.", value))
    return flat


def _span(row: Row) -> str:
    return word_in(row, "context.span_id", "span_id", "index")


def _trace(row: Row) -> str:
    return word_in(row, "context.trace_id", "trace_id")


def _name(row: Row) -> str:
    return word_in(row, "annotation_name", "name")


def _of_document(row: Row) -> bool:
    return row.get("document_position") not in (None, "")


def _attribute(row: Row, name: str) -> Any:
    value = row.get(f"attributes.{name}")
    return row.get(name) if value is None else value


def _value(row: Row, name: str) -> Any:
    value = _attribute(row, f"{name}.value")
    return nested(value) if _attribute(row, f"{name}.mime_type") == "application/json" else value


def _spans(rows: Sequence[Row]) -> _Spans:
    spans = _Spans()
    for row in sorted(rows, key=lambda row: moment_of(row.get("start_time"))):
        spans.rows.setdefault(_span(row), row)
    for span, row in spans.rows.items():
        if not word(row.get("parent_id")):
            spans.roots.setdefault(_trace(row), span)
    for span, row in spans.rows.items():
        retrieved = _documents(row)
        of_root = spans.contexts.setdefault(spans.root_of(span), [])
        spans.starts[span] = len(of_root)
        of_root += retrieved
        if of_root is not (of_span := spans.contexts.setdefault(span, [])):
            of_span += retrieved
    return spans


def _documents(row: Row) -> list[Context]:
    """The documents that a span retrieved, in their order."""
    documents: list[Row] = []
    whole = _attribute(row, "retrieval.documents")
    if isinstance(nested(whole), list):
        documents = [
            {
                name.removeprefix("document."): part
                for name, part in _flat(document).items()
                if name != "document"
            }
            for document in objects(whole)
        ]
    else:
        numbered: dict[int, Row] = {}
        for name, value in row.items():
            if match := _NUMBERED.fullmatch(name):
                numbered.setdefault(int(match[1]), {})[match[2]] = value
        documents = [numbered[place] for place in sorted(numbered)]
    return list(passages_of(documents))


def _labelled(annotations: Sequence[Placed]) -> Iterator[tuple[str, Row, str, Value]]:
    """Each annotation with its judge and its value.

    Under one name all values are scores where every one that says anything has a score, else labels. The
    identifier is named where judges of one name have several.
    """
    in_words: set[str] = set()
    known: dict[str, set[str]] = {}
    for _, row in annotations:
        label = row.get("result.label")
        if label != _UNREAD and scalar(label) is not None and number(row.get("result.score")) is None:
            in_words.add(_name(row))
        if row.get("annotator_kind") != "HUMAN":
            known.setdefault(_name(row), set()).add(word(row.get("identifier")))
    for where, row in annotations:
        name, identifier = _name(row), word(row.get("identifier"))
        judge = f"{name} ({identifier})" if identifier and len(known.get(name, ())) > 1 else name
        value = scalar(row.get("result.label")) if name in in_words else number(row.get("result.score"))
        yield where, row, judge_name(judge, word_in(row, "metadata.model", "metadata.model_name")), value


def _take(row: Row, where: str, spans: _Spans, export: Export, *, judge: str, value: Value) -> None:
    """One annotation, as a rating, a judgement or a skip."""
    name, span, note = _name(row), _span(row), word(row.get("result.explanation"))
    unit = ITEM_UNIT
    if _of_document(row):
        place = place_of(row["document_position"])
        unit = "" if place is None else f"chunk:{spans.starts.get(span, 0) + place}"
        span = spans.root_of(span)
    elif not span:
        span = spans.roots.get(_trace(row), "")
    if not unit:
        export.skip("an annotation of a document that does not tell its place")
    elif name == "note":
        export.skip("a note, which is no score")
    else:
        unread = row.get("result.label") == _UNREAD
        error = (note or "the judge's reply could not be read") if unread else None
        score = Score(span, name, "", value, note, where, error=error, unit=unit)
        kind, rater = word(row.get("annotator_kind")).upper(), word_in(row, "user_id", "identifier")
        _SOURCES.take(kind, score, export, rater=rater, judge=judge)


FORMAT = ExportFormat(
    "phoenix", _holds, _read, "the data frames of get_spans_dataframe() and of its annotations"
)
