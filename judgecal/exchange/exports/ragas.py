"""Ragas: tables of results (`result.to_pandas()`, saved) and files of annotations; every metric is a judge.

A table has no ids and no labels of people; a cell without a number is a metric that failed. An annotation
holds what the metric said and what a person made of it: accepted, or another `target`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed
from judgecal.exchange.exports import Export, ExportFormat, Score, each_begins, id_of
from judgecal.exchange.files import Row, columns_of, nested
from judgecal.exchange.texts import (
    Value,
    contexts_of,
    field_of,
    joined,
    object_in,
    objects_of,
    scalar,
    spoken,
    text_in,
    text_of,
    texts_of,
    turns_of,
)
from judgecal.records import Context, Item
from judgecal.tables import Table, read_json, read_table
from judgecal.workspace import shown

_TAKEN = (
    "user_input", "response", "reference", "retrieved_contexts", "retrieved_context_ids",
    "reference_contexts", "reference_context_ids", "rubrics", "question", "answer", "contexts",
    "ground_truth", "ground_truths",
)  # fmt: skip
_LEFT = (
    "multi_responses", "persona_name", "query_style", "query_length", "reference_tool_calls",
    "reference_topics", "synthesizer_name", "", "index", "Unnamed: 0", "__index_level_0__", "column 1", "id",
)  # fmt: skip
_OLD_METRICS = {
    "faithfulness", "answer_relevancy", "context_precision", "context_recall", "context_relevancy",
    "context_utilization", "context_entity_recall", "answer_similarity", "answer_correctness", "harmfulness",
}  # fmt: skip
_WORDS = {"pass", "fail", "yes", "no", "true", "false", "correct", "incorrect"}


def _is_table(columns: set[str]) -> bool:
    if "user_input" in columns:
        return bool(columns & {"response", "reference", "retrieved_contexts"}) or len(columns) > 1
    return {"question", "answer", "contexts"} <= columns and bool(columns & _OLD_METRICS)


def _annotations(value: Any) -> Row:
    """Metric -> its annotations; empty where a value is no such file. One metric may be saved alone."""
    if not isinstance(value, dict):
        return {}
    if isinstance(value.get("name"), str) and isinstance(value.get("samples"), list):
        value = {value["name"]: value["samples"]}
    given = [annotation for samples in value.values() for annotation in objects_of(samples)]
    return (
        value if any(annotation.keys() >= {"metric_input", "metric_output"} for annotation in given) else {}
    )


def _read(files: Sequence[Path], export: Export) -> None:
    for file in files:
        annotations = _annotations(read_json(file)) if file.suffix.lower() == ".json" else {}
        for metric, samples in annotations.items():
            _read_annotations(metric, export.objects(samples, "annotation"), shown(file), export)
        if not annotations:
            _read_table(read_table(file), export)


def _read_annotations(metric: str, samples: Sequence[Row], where: str, export: Export) -> None:
    """Each annotation is an item, the metric's verdict, and what a person made of it.

    Ragas does not record who it was.
    """
    export.count(2 * len(samples))
    binary = all(sample.get("metric_output") in (0, 1) for sample in samples)
    for n, sample in enumerate(samples, start=1):
        at, verdict = f"{where}: {metric} {n}", scalar(sample.get("metric_output"))
        item = _item(object_in(sample, "metric_input"))
        export.add_item(item)
        export.add_judgement(Score(item.item_id, metric, metric, verdict, where=at))
        label, accepted = scalar(sample.get("target")), sample.get("is_accepted")
        if label is None and accepted is True:
            label = verdict
        elif label is None and accepted is False and binary:
            label = 1.0 - float(verdict or 0.0)
        if label is None:
            rejected = "a verdict that was rejected without saying what is right"
            export.skip(rejected if accepted is False else "a verdict that nobody accepted or rejected")
        else:
            export.add_rating(Score(item.item_id, metric, "annotator", label, where=at, saw_draft=True))


def _read_table(table: Table, export: Export) -> None:
    fields = [name for name in table.columns if name.partition(".")[0] in table.columns and "." in name]
    columns = [name for name in table.columns if name not in (*_TAKEN, *fields)]
    metrics = [
        name for name in columns if name not in _LEFT and _is_metric(row.raw.get(name) for row in table.rows)
    ]
    if not metrics and not _is_table({*table.columns}):
        raise InputError(f"{table.top}: not results of Ragas: the columns are {listed(table.columns, 8)}")
    if left := [name for name in columns if name not in metrics]:
        export.notes.append(f"{table.where}: columns that are not metrics were left: {listed(left, 8)}")
    for row in table.rows:
        item = _item(dict(row.raw))
        export.count()
        export.add_item(item)
        for name in (name for name in metrics if name in row.raw):
            value = _value(row.raw[name])
            error = "the metric gave no number (NaN)" if value is None else None
            export.count()
            export.add_judgement(Score(item.item_id, name, name, value, where=table.at(row), error=error))


def _is_metric(cells: Iterable[Any]) -> bool:
    """Whether a column is a metric's: numbers from -1 to 10, or words such as pass; empty where it failed.

    A sample is written without what it lacks, so that a column without any value is a metric that failed
    throughout.
    """
    return all(
        value.lower() in _WORDS if isinstance(value, str) else -1.0 <= value <= 10.0
        for value in map(_value, cells)
        if value is not None
    )


def _value(cell: Any) -> Value:
    """The number of a cell, or its text; None for an empty one and NaN. An object is no metric's."""
    if isinstance(cell, str):
        try:
            cell = float(cell)
        except ValueError:
            return cell.strip() or None
    if isinstance(cell, float) and math.isnan(cell):
        return None
    return cell if cell is None or isinstance(cell, bool | int | float) else "an object"


def _item(sample: Row) -> Item:
    """A sample, with the names of today's Ragas or of its version 0.1."""
    question, answer = text_in(sample, "user_input", "question"), text_in(sample, "response", "answer")
    turns = turns_of(nested(sample.get("user_input")))
    before, question, spoken_answer = spoken(turns) if turns else ((), question, "")
    references = nested(sample.get("ground_truths"))
    if not isinstance(references, list):
        references = [field_of(sample, "reference", "ground_truth")]
    contexts = contexts_of(nested(field_of(sample, "retrieved_contexts", "contexts")))
    names = nested(sample.get("retrieved_context_ids"))
    if isinstance(names, list) and len(names) == len(contexts):
        pairs = zip(contexts, names, strict=True)
        contexts = tuple(Context(context.text, text_of(name) or None) for context, name in pairs)
    further = {
        "reference_contexts": joined(contexts_of(nested(sample.get("reference_contexts")))),
        "rubrics": text_of(sample.get("rubrics")),
    }
    wanted = nested(sample.get("reference_context_ids"))
    item = Item(
        "",
        question,
        question,
        answer or spoken_answer,
        texts_of(references),
        contexts=contexts,
        reference_documents=tuple(map(text_of, wanted)) if isinstance(wanted, list) else (),
        conversation=before,
        fields={name: text for name, text in further.items() if text},
    )
    return replace(item, item_id=id_of(item.sha))


FORMAT = ExportFormat(
    "ragas",
    each_begins(lambda begun: _is_table(columns_of(begun)) or _annotations(begun)),
    _read,
    "the table of result.to_pandas(), or a JSON file of annotations",
)
