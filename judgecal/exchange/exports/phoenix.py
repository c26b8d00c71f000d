"""Phoenix: spans and their annotations, as its client gives them (data frames, or the pages of its API).

An annotation tells its kind: HUMAN, LLM or CODE. Two evaluators of one name differ by their `identifier`.
Annotations of single documents are skipped. The attributes of a span may be nested, or flattened as
OpenTelemetry has them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judgecal.exchange.exports import Export, ExportFormat, Score, judge_name
from judgecal.exchange.files import Placed, Row, fields_of, nested, records_of
from judgecal.exchange.texts import in_time, item_of, number, objects, passages_of, scalar, word, word_in
from judgecal.records import Context

_UNREAD = "NOT_PARSABLE"
_NUMBERED = re.compile(r"(?:attributes\.)?retrieval\.documents\.(\d{1,6})\.(?:document\.)?(\w+)")


def _holds(begun: Sequence[Any]) -> bool:
    return any(
        "annotator_kind" in names or ("span_kind" in names and names & {"context.span_id", "context"})
        for names in map(fields_of, begun)
    )


def _read(files: Sequence[Path], export: Export) -> None:
    records = [(where, _flat(row)) for file in files for where, row in records_of(file)]
    export.count(len(records))
    annotations = [(where, row) for where, row in records if "annotator_kind" in row]
    others = [record for record in records if "annotator_kind" not in record[1]]
    of_spans = [record for record in others if "span_kind" in record[1]]
    spans: dict[str, Row] = {}
    for _, row in in_time(of_spans, "start_time"):
        spans.setdefault(_span(row), row)
    export.skip("a row that is neither a span nor an annotation", len(others) - len(of_spans))
    export.skip("a span that is there more than once", len(of_spans) - len(spans))
    if not spans:
        export.lack_texts("spans", "get_spans_dataframe() too")
    roots: dict[str, str] = {}  # trace -> its root
    for span, row in spans.items():
        if not word_in(row, "parent_id"):
            roots.setdefault(_trace(row), span)
    contexts: defaultdict[str, list[Context]] = defaultdict(list)
    for span, row in spans.items():
        for name in {span, roots.get(_trace(row), span)}:
            contexts[name] += passages_of(_documents(row))
    scored = {_span(row) for _, row in annotations if not _of_document(row)} | {*roots.values()}
    for span, row in spans.items():
        if span in scored:
            system = word(_attribute(row, "llm.model_name"))
            input_, output = _value(row, "input"), _value(row, "output")
            export.add_item(item_of(span, input_, output, system=system, contexts=tuple(contexts[span])))
        else:
            export.skip("a span within a trace, without annotations")
    _take(annotations, roots, export)


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


def _of_document(row: Row) -> bool:
    return row.get("document_position") not in (None, "")


def _attribute(row: Row, name: str) -> Any:
    value = row.get(f"attributes.{name}")
    return row.get(name) if value is None else value


def _value(row: Row, name: str) -> Any:
    value = _attribute(row, f"{name}.value")
    return nested(value) if _attribute(row, f"{name}.mime_type") == "application/json" else value


def _documents(row: Row) -> list[Row]:
    whole = nested(_attribute(row, "retrieval.documents"))
    if isinstance(whole, list):
        flat = ({**_flat(document)} for document in objects(whole))
        return [
            {name.removeprefix("document."): part for name, part in row.items() if name != "document"}
            for row in flat
        ]
    numbered: defaultdict[int, Row] = defaultdict(dict)
    for name, value in row.items():
        if match := _NUMBERED.fullmatch(name):
            numbered[int(match[1])][match[2]] = value
    return [numbered[place] for place in sorted(numbered)]


def _take(annotations: Sequence[Placed], roots: dict[str, str], export: Export) -> None:
    """Each annotation, as a rating, a judgement or a skip.

    Under one name all values are scores where every one that says anything has a score, else labels. The
    identifier is named where judges of one name have several.
    """
    in_words: set[str] = set()
    identifiers: defaultdict[str, set[str]] = defaultdict(set)
    for _, row in annotations:
        name, label = word_in(row, "annotation_name", "name"), row.get("result.label")
        if label != _UNREAD and scalar(label) is not None and number(row.get("result.score")) is None:
            in_words.add(name)
        if row.get("annotator_kind") != "HUMAN":
            identifiers[name].add(word_in(row, "identifier"))
    for where, row in in_time(annotations, "updated_at", "created_at"):
        name, span, label = word_in(row, "annotation_name", "name"), _span(row), row.get("result.label")
        if _of_document(row):
            export.skip("an annotation of a single document")
        elif name == "note":
            export.skip("a note, which is not a score")
        else:
            value = scalar(label) if name in in_words else number(row.get("result.score"))
            note, identifier = word_in(row, "result.explanation"), word_in(row, "identifier")
            error = (note or "the judge's reply could not be read") if label == _UNREAD else None
            judge = f"{name} ({identifier})" if identifier and len(identifiers[name]) > 1 else name
            judge = judge_name(judge, word_in(row, "metadata.model", "metadata.model_name"))
            score = Score(span or roots.get(_trace(row), ""), name, judge, value, note, where, error=error)
            rater, kind = word_in(row, "user_id", "identifier"), word_in(row, "annotator_kind").upper()
            export.add_by_source(kind, score, rater=rater, people="HUMAN", judges=("LLM", "CODE"))


FORMAT = ExportFormat(
    "phoenix", _holds, _read, "the data frames of get_spans_dataframe() and of its annotations"
)
