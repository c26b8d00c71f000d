"""MLflow: traces with their assessments, as `search_traces()` and the `result_df` of `mlflow.genai.evaluate`
hold them.

An assessment tells its source, and only the list of them tells all: the columns `{name}/value` of a
`result_df` hold the last one of each name, whoever gave it. A trace has another id in every run, so traces of
one input, output and contexts are one item.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judgecal.exchange import traced
from judgecal.exchange.exports import Export, ExportFormat, Score, id_of, judge_name, person, text_of
from judgecal.records import ITEM_UNIT, Context, Item
from judgecal.tables.nested import nested

_SESSION = ("mlflow.trace.session", "mlflow.assessment.onlineScoringSessionId")
_BY = "/source_id"
_NO_MODEL = ("", "default", "unknown")


def _holds(files: Sequence[Path]) -> bool:
    return any(
        {"trace_id", "assessments"} <= fields
        or _is_frame(fields)
        or _is_trace(fields)
        or _names_judges(fields)
        for fields in map(traced.fields_of, files)
    )


def _is_frame(fields: frozenset[str]) -> bool:
    """A frame of traces without their assessments; Opik's traces have such columns too, and a start time."""
    return {"trace_id", "trace_metadata"} <= fields and "trace_start_time" not in fields


def _is_trace(fields: frozenset[str]) -> bool:
    """A trace as `to_json` writes it, one a line or in an array."""
    return {"info", "data"} <= fields and len(fields) <= 3


def _names_judges(fields: frozenset[str]) -> bool:
    """A table that `judge --columns mlflow` wrote."""
    return any(name.endswith(_BY) and name.removesuffix(_BY) + "/source_type" in fields for name in fields)


@dataclass
class _Trace:
    """A trace as it is read: its item, what is said of it, and where the contexts of each retriever begin."""

    item: Item
    assessments: list[traced.Row]
    where: str
    root: str = ""
    retrievers: dict[str, int] = field(default_factory=dict)

    @property
    def judged(self) -> set[str]:
        """The ids of what judges said."""
        others = (
            one
            for one in self.assessments
            if traced.object_of(one.get("source")).get("source_type") != "HUMAN"
        )
        return {known for one in others if (known := traced.word(one.get("assessment_id")))}


def _read(files: Sequence[Path], export: Export) -> None:
    traces = [
        trace
        for file in files
        for where, row in traced.records_of(file)
        if (trace := _trace(row, where, export))
    ]
    items: dict[str, Item] = {}
    for trace in traces:
        item = items.setdefault(trace.item.item_id, trace.item)
        if item is not trace.item:
            export.skip("a trace of the same input, output and contexts as another one")
            items[item.item_id] = _joined(item, trace.item)
    for item in items.values():
        export.add_item(item)
    said = [(trace, one) for trace in traces for one in trace.assessments]
    judged: list[Score] = []
    for trace, one in sorted(said, key=lambda pair: traced.moment_of(pair[1].get("create_time"))):
        judged += _take(trace, one, export)
    for score in _with_models(judged):
        export.add_judgement(score)


def _trace(row: traced.Row, where: str, export: Export) -> _Trace | None:
    trace = row if {"info", "data"} <= row.keys() else traced.object_of(row.get("trace"))
    info, data = traced.object_of(trace.get("info")), traced.object_of(trace.get("data"))
    spans = traced.objects(row.get("spans")) or traced.objects(data.get("spans"))
    root = next((span for span in spans if not span.get("parent_span_id")), {})
    tags, about = (
        traced.object_of(_either(row, info, "tags")),
        traced.object_of(_either(row, info, "trace_metadata")),
    )
    assessments = nested(_either(row, info, "assessments"))
    export.count()
    ours = _by_us(row)
    if assessments is None:
        known = {f"{one['assessment_name']}/value" for one in ours}
        others = [name for name in row if name.endswith("/value") and name not in known]
        export.count(n := sum(row[name] not in (None, "") for name in others))
        export.skip(
            "a `{name}/value` without the list `assessments`, which tells whose it is: export it too", n
        )
    said = [*export.objects(assessments, "assessment"), *ours]
    export.count(len(ours))
    asked = nested(_first(row.get("request"), row.get("inputs"), _attribute(root, "mlflow.spanInputs")))
    answered = _first(row.get("response"), row.get("outputs"), _attribute(root, "mlflow.spanOutputs"))
    if "mlflow.trace.sourceScorer" in tags or (not asked and not answered):
        own = "mlflow.trace.sourceScorer" in tags
        export.skip("a trace of a scorer's own call" if own else "a trace without input and output")
        export.skip("a score of a trace that is no item", len(said))
        return None
    retrievers, contexts = _retrieved(spans)
    item = traced.item_of(
        id_of(asked, answered, [context.text for context in contexts]),
        asked,
        answered,
        system=traced.word(about.get("mlflow.modelId")) or traced.word(about.get("mlflow.sourceRun")),
        contexts=contexts,
    )
    expected = {
        traced.word(one.get("assessment_name")): _expected(one) for one in said if _is_expectation(one)
    }
    return _Trace(_with_expected(item, expected), said, where, _hex(root.get("span_id")), retrievers)


def _by_us(row: traced.Row) -> list[traced.Row]:
    """What `judge --columns mlflow` wrote beside a row, as assessments: it says with each value who gave
    it."""
    found: list[traced.Row] = []
    for name in (column.removesuffix(_BY) for column in row if column.endswith(_BY) and row[column]):
        source = {"source_type": row.get(f"{name}/source_type"), "source_id": row[name + _BY]}
        error = {
            "error_message": row.get(f"{name}/error_message"),
            "error_code": row.get(f"{name}/error_code"),
        }
        feedback = {"value": row.get(f"{name}/value"), "error": error}
        said = {"assessment_name": name, "source": source, "rationale": row.get(f"{name}/rationale")}
        found.append({**said, "feedback": feedback, "judge": row[name + _BY]})
    return found


def _first(*values: Any) -> Any:
    return next((value for value in values if value not in (None, "")), None)


def _either(row: traced.Row, info: traced.Row, name: str) -> Any:
    return info.get(name) if row.get(name) in (None, "") else row[name]


def _attribute(span: traced.Row, name: str) -> Any:
    """An attribute of a span, which holds JSON."""
    value = traced.object_of(span.get("attributes")).get(name)
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def _retrieved(spans: list[traced.Row]) -> tuple[dict[str, int], tuple[Context, ...]]:
    """Where the contexts of each retriever begin, and all contexts."""
    starts: dict[str, int] = {}
    contexts: list[Context] = []
    for span in spans:
        if _attribute(span, "mlflow.spanType") == "RETRIEVER":
            starts[_hex(span.get("span_id"))] = len(contexts)
            contexts += traced.passages_of(_attribute(span, "mlflow.spanOutputs"))
    return starts, tuple(contexts)


def _hex(value: Any) -> str:
    """A span's id, which stands as hexadecimal digits or in base64."""
    text = traced.word(value)
    try:
        return base64.b64decode(text, validate=True).hex() if len(text) == 12 else text
    except binascii.Error:
        return text


def _is_expectation(assessment: traced.Row) -> bool:
    return isinstance(assessment.get("expectation"), dict) and assessment.get("valid") is not False


def _expected(assessment: traced.Row) -> Any:
    expectation = traced.object_of(assessment.get("expectation"))
    return nested(traced.object_of(expectation.get("serialized_value")).get("value")) or expectation.get(
        "value"
    )


def _with_expected(item: Item, expected: traced.Row) -> Item:
    """The item with what people expect of its answer; facts are one reference answer together."""
    facts = expected.pop("expected_facts", None)
    lines = "\n".join(map(text_of, facts)) if isinstance(facts, list) else text_of(facts)
    reference = text_of(expected.pop("expected_response", None)) or lines
    documents = traced.passages_of(expected.get("expected_retrieved_context"))
    found = [
        traced.word(one.get("doc_uri"))
        for one in traced.objects(expected.pop("expected_retrieved_context", None))
    ]
    names = dict.fromkeys(name for name in (*found, *(one.document_id or "" for one in documents)) if name)
    texts = {name: text_of(value) for name, value in expected.items() if name and text_of(value)}
    return replace(
        item,
        reference_answers=(reference,) if reference else (),
        reference_documents=tuple(names),
        fields={**item.fields, **texts},
    )


def _joined(item: Item, other: Item) -> Item:
    return replace(
        item,
        reference_answers=item.reference_answers or other.reference_answers,
        reference_documents=item.reference_documents or other.reference_documents,
        fields={**other.fields, **item.fields},
    )


def _take(trace: _Trace, one: traced.Row, export: Export) -> list[Score]:
    """One assessment: the judgement where it is one; else it is taken as a rating or skipped."""
    source, feedback, metadata = (
        traced.object_of(one.get(name)) for name in ("source", "feedback", "metadata")
    )
    kind, name = traced.word(source.get("source_type")).upper(), traced.word(one.get("assessment_name"))
    by, unit = traced.word(source.get("source_id")), _unit(trace, one, metadata)
    if "feedback" not in one:
        export.skip(
            "an expectation, taken as the item's reference or field" if "expectation" in one else "an issue"
        )
    elif any(name in metadata for name in _SESSION):
        export.skip("a score of a whole session")
    elif kind not in ("HUMAN", "LLM_JUDGE", "AI_JUDGE", "CODE"):
        export.skip(f"a score of the source {kind or 'nobody'}")
    elif kind == "HUMAN" and one.get("valid") is False:
        export.skip("a rating that was overridden")
    elif unit is None:
        export.skip("a score of a step within the trace, or of a context of one among several retrievers")
    elif kind == "HUMAN":
        saw_draft = traced.word(one.get("overrides")) in trace.judged
        export.add_rating(replace(_score(trace, one, person(by)), unit=unit, saw_draft=saw_draft))
    else:
        model = "" if kind == "CODE" or by in (*_NO_MODEL, name, f"custom_prompt_judge_{name}") else by
        error = traced.object_of(feedback.get("error"))
        said = traced.word(error.get("error_message")) or traced.word(error.get("error_code")) or None
        score = _score(
            trace, one, traced.word(one.get("judge")) or judge_name(name, model.replace(":/", "/"))
        )
        return [
            replace(
                score,
                unit=unit,
                error=said,
                cost_usd=traced.number(metadata.get("mlflow.assessment.judgeCost")),
            )
        ]
    return []


def _unit(trace: _Trace, one: traced.Row, metadata: traced.Row) -> str | None:
    """What is scored: the item, one of its contexts, or None for another step of the trace.

    `evaluate` hangs every score on the root, so that only a single retriever's contexts can be told.
    """
    span = _hex(one.get("span_id"))
    on_top = span in ("", trace.root)
    if "chunk_index" not in metadata:
        return ITEM_UNIT if on_top or span in trace.retrievers else None
    if on_top and len(trace.retrievers) == 1:
        span = next(iter(trace.retrievers))
    place = traced.place_of(metadata["chunk_index"])
    return (
        None if place is None or span not in trace.retrievers else f"chunk:{trace.retrievers[span] + place}"
    )


def _score(trace: _Trace, one: traced.Row, by: str) -> Score:
    value, name = traced.object_of(one.get("feedback")).get("value"), traced.word(one.get("assessment_name"))
    return Score(
        trace.item.item_id, name, by, traced.scalar(value), traced.word(one.get("rationale")), trace.where
    )


def _with_models(judged: list[Score]) -> list[Score]:
    """A judge that raised is recorded as code, without its model: it is the one judge of that name."""
    models: dict[str, set[str]] = {}
    for score in judged:
        if score.by != score.name:
            models.setdefault(score.name, set()).add(score.by)
    known = {name: next(iter(found)) for name, found in models.items() if len(found) == 1}
    return [
        score if score.error is None else replace(score, by=known.get(score.by, score.by)) for score in judged
    ]


FORMAT = ExportFormat(
    "mlflow", _holds, _read, "the data frame of mlflow.search_traces(), or result_df of evaluate"
)
