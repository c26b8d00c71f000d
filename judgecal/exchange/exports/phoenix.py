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

from judgecal.exchange import traced
from judgecal.exchange.exports import Export, ExportFormat, Score, judge_name, person
from judgecal.records import ITEM_UNIT, Context, Item
from judgecal.tables.nested import nested

_UNREAD = "NOT_PARSABLE"
_NUMBERED = re.compile(r"(?:attributes\.)?retrieval\.documents\.(\d{1,6})\.(?:document\.)?(\w+)")
_INPUT, _OUTPUT = "input.value", "output.value"


def _holds(files: Sequence[Path]) -> bool:
    return any("annotator_kind" in names or _is_spans(names) for names in map(traced.fields_of, files))


def _is_spans(names: frozenset[str]) -> bool:
    return "span_kind" in names and bool(names & {"context.span_id", "context"})


@dataclass
class _Spans:
    """The spans by id, the root of each trace, and where the contexts of each span begin in those of its
    root."""

    rows: dict[str, traced.Row] = field(default_factory=dict)
    roots: dict[str, str] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    contexts: dict[str, list[Context]] = field(default_factory=dict)


def _read(files: Sequence[Path], export: Export) -> None:
    records = [(where, _flat(row)) for file in files for where, row in traced.records_of(file)]
    export.count(len(records))
    annotations = [(where, row) for where, row in records if "annotator_kind" in row]
    others = [row for _, row in records if "annotator_kind" not in row]
    spans = _spans([row for row in others if "span_kind" in row])
    export.skip(
        "a row that is neither a span nor an annotation", sum("span_kind" not in row for row in others)
    )
    export.skip(
        "a span that stands there more than once", sum("span_kind" in row for row in others) - len(spans.rows)
    )
    if not spans.rows:
        export.problems.append(
            f"{export.where}: no spans among the files, so there is no text to judge: export get_spans_dataframe() "
            "too, and hand over both files"
        )
    judged = {_span(row) for _, row in annotations if not _of_document(row)}
    roots = set(spans.roots.values())
    for span, row in spans.rows.items():
        if span in roots or span in judged:
            export.add_item(_item(span, row, spans))
        else:
            export.skip("a span within a trace, without annotations")
    annotations.sort(
        key=lambda pair: traced.moment_of(pair[1].get("updated_at") or pair[1].get("created_at"))
    )
    for where, row in _labelled(annotations):
        _take(row, where, spans, export)


def _flat(row: traced.Row) -> traced.Row:
    """The row with the fields of objects within it under dotted names, as frames and OpenTelemetry have
    them."""
    flat: traced.Row = {}
    waiting = [("", row)]
    while waiting:
        dot, part = waiting.pop()
        for name, value in part.items():
            flat.setdefault(dot + name, value)
            if isinstance(value, dict):
                waiting.append((f"{dot}{name}.", value))
    return flat


def _span(row: traced.Row) -> str:
    return (
        traced.word(row.get("context.span_id"))
        or traced.word(row.get("span_id"))
        or traced.word(row.get("index"))
    )


def _trace(row: traced.Row) -> str:
    return traced.word(row.get("context.trace_id")) or traced.word(row.get("trace_id"))


def _attribute(row: traced.Row, name: str) -> Any:
    value = row.get(f"attributes.{name}")
    return row.get(name) if value is None else value


def _spans(rows: list[traced.Row]) -> _Spans:
    spans = _Spans()
    for row in sorted(rows, key=lambda row: traced.moment_of(row.get("start_time"))):
        spans.rows.setdefault(_span(row), row)
    for span, row in spans.rows.items():
        if not traced.word(row.get("parent_id")):
            spans.roots.setdefault(_trace(row), span)
    for span, row in spans.rows.items():
        found = list(_documents(row))
        root = spans.contexts.setdefault(spans.roots.get(_trace(row), span), [])
        spans.starts[span] = len(root)
        root += found
        if root is not spans.contexts.setdefault(span, []):
            spans.contexts[span] += found
    return spans


def _documents(row: traced.Row) -> Iterator[Context]:
    """The documents that a span retrieved, in their order."""
    listed = _attribute(row, "retrieval.documents")
    if isinstance(nested(listed), list):
        yield from traced.passages_of([_flat_document(one) for one in traced.objects(listed)])
        return
    numbered: dict[int, traced.Row] = {}
    for name, value in row.items():
        if match := _NUMBERED.fullmatch(name):
            numbered.setdefault(int(match[1]), {})[match[2]] = value
    yield from traced.passages_of([numbered[place] for place in sorted(numbered)])


def _flat_document(document: traced.Row) -> traced.Row:
    return {
        name.removeprefix("document."): value for name, value in _flat(document).items() if name != "document"
    }


def _item(span: str, row: traced.Row, spans: _Spans) -> Item:
    return traced.item_of(
        span,
        _value(row, _INPUT, "input.mime_type"),
        _value(row, _OUTPUT, "output.mime_type"),
        system=traced.word(_attribute(row, "llm.model_name")),
        contexts=tuple(spans.contexts.get(span, ())),
    )


def _value(row: traced.Row, name: str, kind: str) -> Any:
    value = _attribute(row, name)
    return nested(value) if _attribute(row, kind) == "application/json" else value


def _labelled(annotations: list[tuple[str, traced.Row]]) -> Iterator[tuple[str, traced.Row]]:
    """Each annotation with its judge and its value.

    Under one name all values are scores where every one that says anything has a score, else labels. The
    identifier is named where judges of one name have several.
    """
    said = [row for _, row in annotations if row.get("result.label") != _UNREAD]
    words = {
        _name(row)
        for row in said
        if traced.scalar(row.get("result.label")) is not None and _score(row) is None
    }
    known: dict[str, set[str]] = {}
    for _, row in annotations:
        if row.get("annotator_kind") != "HUMAN":
            known.setdefault(_name(row), set()).add(traced.word(row.get("identifier")))
    for where, row in annotations:
        name, identifier = _name(row), traced.word(row.get("identifier"))
        label, score = traced.scalar(row.get("result.label")), _score(row)
        judge = f"{name} ({identifier})" if identifier and len(known.get(name, ())) > 1 else name
        model = next(
            (text for key in ("model", "model_name") if (text := traced.word(row.get(f"metadata.{key}")))), ""
        )
        value = label if name in words else score
        yield where, {**row, "judge": judge_name(judge, model), "value": value}


def _name(row: traced.Row) -> str:
    return traced.word(row.get("annotation_name")) or traced.word(row.get("name"))


def _of_document(row: traced.Row) -> bool:
    return row.get("document_position") not in (None, "")


def _score(row: traced.Row) -> float | None:
    return traced.number(row.get("result.score"))


def _take(row: traced.Row, where: str, spans: _Spans, export: Export) -> None:
    """One annotation, as a rating, a judgement or a skip."""
    kind, name, span = traced.word(row.get("annotator_kind")).upper(), _name(row), _span(row)
    note, unit = traced.word(row.get("result.explanation")), ITEM_UNIT
    if _of_document(row):
        root, place = (
            spans.roots.get(_trace(spans.rows.get(span, {})), span),
            traced.place_of(row["document_position"]),
        )
        unit, span = f"chunk:{spans.starts.get(span, 0) + place}" if place is not None else "", root
    elif not span:
        span = spans.roots.get(_trace(row), "")
    if not unit:
        export.skip("an annotation of a document that does not tell its place")
    elif name == "note":
        export.skip("a note, which is no score")
    elif kind == "HUMAN":
        by = person(traced.word(row.get("user_id")) or traced.word(row.get("identifier")))
        export.add_rating(Score(span, name, by, row["value"], note, where, unit=unit))
    elif kind in ("LLM", "CODE"):
        error = (
            (note or "the judge's reply could not be read") if row.get("result.label") == _UNREAD else None
        )
        export.add_judgement(
            Score(span, name, row["judge"], row["value"], note, where, error=error, unit=unit)
        )
    else:
        export.skip(f"an annotation of the kind {kind or 'nobody'}")


FORMAT = ExportFormat(
    "phoenix", _holds, _read, "the data frames of get_spans_dataframe() and of its annotations"
)
