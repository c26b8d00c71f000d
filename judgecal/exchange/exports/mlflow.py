"""MLflow: traces with their assessments, from `search_traces()`, and `mlflow.genai.evaluate`'s `result_df`.

An assessment tells its source, and only the list of them tells all: the columns `{name}/value` of a
`result_df` hold the last one of each name, whoever gave it. A trace has another id in every run, so traces of
one input, output and contexts are one item.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from judgecal.exchange.exports import Export, ExportFormat, Score, id_of, judge_name, person
from judgecal.exchange.files import Row, fields_of, nested, records_of
from judgecal.exchange.texts import (
    item_of,
    moment_of,
    object_in,
    objects,
    passages_of,
    scalar,
    text_of,
    texts_of,
    word,
    word_in,
)
from judgecal.records import Item

_JUDGES = ("LLM_JUDGE", "AI_JUDGE", "CODE")
_SESSION = {"mlflow.trace.session", "mlflow.assessment.onlineScoringSessionId"}
_BY, _TYPE = "/source_id", "/source_type"


def _holds(begun: Sequence[Any]) -> bool:
    def is_ours(names: set[str]) -> bool:
        # A frame of traces without their assessments; Opik's traces have such columns too, and a start time.
        is_frame = {"trace_id", "trace_metadata"} <= names and "trace_start_time" not in names
        is_trace = {"info", "data"} <= names and len(names) <= 3  # as `to_json` writes it
        judged = {name.removesuffix(_BY) + _TYPE for name in names if name.endswith(_BY)}
        # as `judge --columns mlflow` writes a table
        return {"trace_id", "assessments"} <= names or is_frame or is_trace or bool(judged & names)

    return any(is_ours(fields_of(part)) for part in begun)


class _Trace(NamedTuple):
    item: Item
    assessments: Sequence[Row]
    where: str
    steps: Collection[str]  # the spans whose scores are of the item: the first one and the retrievers


def _read(files: Sequence[Path], export: Export) -> None:
    records = [record for file in files for record in records_of(file)]
    traces = [trace for where, row in records if (trace := _trace(row, where, export))]
    items: dict[str, Item] = {}
    for trace in traces:
        item = items.setdefault(trace.item.item_id, trace.item)
        if item is not trace.item:
            export.skip("a trace of the same input, output and contexts as another one")
            items[item.item_id] = replace(
                item,
                reference_answers=item.reference_answers or trace.item.reference_answers,
                reference_documents=item.reference_documents or trace.item.reference_documents,
                fields={**trace.item.fields, **item.fields},
            )
    for item in items.values():
        export.add_item(item)
    judged: list[Score] = []
    given = [(trace, assessment) for trace in traces for assessment in trace.assessments]
    for trace, assessment in sorted(given, key=lambda pair: moment_of(pair[1].get("create_time"))):
        _take(trace, assessment, judged, export)
    # A judge that raised is recorded as code, without its model: it is the one judge of that name.
    models: defaultdict[str, set[str]] = defaultdict(set)
    for score in judged:
        if score.by != score.name:
            models[score.name].add(score.by)
    for score in judged:
        judge_models = models.get(score.by, ()) if score.error else ()
        export.add_judgement(replace(score, by=next(iter(judge_models))) if len(judge_models) == 1 else score)


def _trace(row: Row, where: str, export: Export) -> _Trace | None:
    trace = row if {"info", "data"} <= row.keys() else object_in(row, "trace")
    info = object_in(trace, "info") | {name: part for name, part in row.items() if part not in (None, "")}
    spans = objects(row.get("spans")) or objects(object_in(trace, "data").get("spans"))
    root = next((span for span in spans if not span.get("parent_span_id")), {})
    assessments, judged = nested(info.get("assessments")), _judged(row)
    export.count(1 + len(judged))
    if assessments is None:
        judge_columns = {f"{_name(each)}/value" for each in judged}
        others = [name for name in row if name.endswith("/value") and name not in judge_columns]
        reason = "a `{name}/value` without the list `assessments`, which tells whose it is: export it too"
        export.count_skipped(reason, sum(row[name] not in (None, "") for name in others))
    every = [*export.objects(assessments, "assessment"), *judged]
    request = nested(_first(row.get("request"), row.get("inputs"), _attribute(root, "mlflow.spanInputs")))
    response = _first(row.get("response"), row.get("outputs"), _attribute(root, "mlflow.spanOutputs"))
    of_scorer = "mlflow.trace.sourceScorer" in object_in(info, "tags")
    if of_scorer or (not request and not response):
        export.skip("a trace of a scorer's own call" if of_scorer else "a trace without input and output")
        export.skip("a score of a trace that is not an item", len(every))
        return None
    retrievers = [span for span in spans if _attribute(span, "mlflow.spanType") == "RETRIEVER"]
    outputs = (_attribute(span, "mlflow.spanOutputs") for span in retrievers)
    contexts = tuple(context for output in outputs for context in passages_of(output))
    item = item_of(
        id_of(request, response, [context.text for context in contexts]),
        request,
        response,
        system=word_in(object_in(info, "trace_metadata"), "mlflow.modelId", "mlflow.sourceRun"),
        contexts=contexts,
    )
    steps = {"", *(_hex(span.get("span_id")) for span in (root, *retrievers))}
    return _Trace(_with_expected(item, every), every, where, steps)


def _judged(row: Row) -> list[Row]:
    """What `judge --columns mlflow` wrote beside a row, which tells whose each value is, as assessments."""
    return [
        {
            "assessment_name": name,
            "source": {"source_type": row.get(name + _TYPE), "source_id": row[name + _BY]},
            "rationale": row.get(f"{name}/rationale"),
            "feedback": {
                "value": row.get(f"{name}/value"),
                "error": {key: row.get(f"{name}/{key}") for key in ("error_message", "error_code")},
            },
            "judge": row[name + _BY],
        }
        for name in (column.removesuffix(_BY) for column in row if column.endswith(_BY) and row[column])
    ]


def _first(*values: Any) -> Any:
    return next((value for value in values if value not in (None, "")), None)


def _attribute(span: Row, name: str) -> Any:
    value = object_in(span, "attributes").get(name)
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def _hex(value: Any) -> str:
    """A span's id, which stands as hexadecimal digits or in base64."""
    text = word(value)
    try:
        return base64.b64decode(text, validate=True).hex() if len(text) == 12 else text
    except binascii.Error:
        return text


def _with_expected(item: Item, assessments: Sequence[Row]) -> Item:
    """The item with what people expect of its answer; facts are one reference answer together."""
    expected: Row = {}
    for each in assessments:
        if isinstance(expectation := each.get("expectation"), dict) and each.get("valid") is not False:
            serialized = nested(object_in(expectation, "serialized_value").get("value"))
            expected[_name(each)] = serialized or expectation.get("value")
    facts = expected.pop("expected_facts", None)
    lines = "\n".join(map(text_of, facts)) if isinstance(facts, list) else text_of(facts)
    retrieved = expected.pop("expected_retrieved_context", None)
    documents = [word_in(part, "doc_uri") for part in objects(retrieved)]
    documents += [context.document_id or "" for context in passages_of(retrieved)]
    return replace(
        item,
        reference_answers=texts_of(text_of(expected.pop("expected_response", None)) or lines),
        reference_documents=tuple(dict.fromkeys(filter(None, documents))),
        fields={
            **item.fields,
            **{name: text for name, part in expected.items() if name and (text := text_of(part))},
        },
    )


def _take(trace: _Trace, assessment: Row, judged: list[Score], export: Export) -> None:
    """One assessment: a rating or a skip, or a judgement, for `judged`."""
    source, feedback, metadata = (object_in(assessment, key) for key in ("source", "feedback", "metadata"))
    kind, by, name = word_in(source, "source_type").upper(), word_in(source, "source_id"), _name(assessment)
    value, note = scalar(feedback.get("value")), word_in(assessment, "rationale")
    score = Score(trace.item.item_id, name, person(by), value, note, trace.where)
    if "feedback" not in assessment:
        is_expected = "expectation" in assessment
        export.skip("an expectation, taken as the item's reference or field" if is_expected else "an issue")
    elif metadata.keys() & _SESSION:
        export.skip("a score of a whole session")
    elif kind not in ("HUMAN", *_JUDGES):
        export.skip(f"a score of the source {kind or 'nobody'}")
    elif kind == "HUMAN" and assessment.get("valid") is False:
        export.skip("a rating that was overridden")
    elif "chunk_index" in metadata or _hex(assessment.get("span_id")) not in trace.steps:
        export.skip("a score of a single context, or of a step within the trace")
    elif kind == "HUMAN":
        export.add_rating(score)
    else:
        no_model = ("", "default", "unknown", name, f"custom_prompt_judge_{name}")
        model = "" if kind == "CODE" or by in no_model else by.replace(":/", "/")
        judge = word_in(assessment, "judge") or judge_name(name, model)
        error = word_in(object_in(feedback, "error"), "error_message", "error_code") or None
        judged.append(replace(score, by=judge, error=error))


def _name(assessment: Row) -> str:
    return word_in(assessment, "assessment_name")


FORMAT = ExportFormat(
    "mlflow", _holds, _read, "the data frame of mlflow.search_traces(), or result_df of evaluate"
)
