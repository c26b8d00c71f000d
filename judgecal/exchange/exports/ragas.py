"""Ragas: tables of results (`result.to_pandas()`, saved) and files of annotations; every metric is a judge.

A table has no ids and no labels of people; a cell without a number is a metric that failed. An annotation
holds what the metric said and what a person made of it: accepted, or another `target`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgecal.errors import InputError, listed
from judgecal.exchange.exports import Export, ExportFormat, Score, id_of
from judgecal.exchange.texts import (
    Value,
    contexts_of,
    field_of,
    objects_of,
    scalar,
    spoken,
    text_of,
    turns_of,
)
from judgecal.records import Context, Item
from judgecal.tables import Table, nested, outline, read_json, read_table
from judgecal.workspace import shown

_ANNOTATOR = "annotator"
"""The rater of an annotation; Ragas does not record who it was."""
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


def _holds(files: Sequence[Path]) -> bool:
    return bool(files) and all(_is_table(begun) or _annotations(begun) for begun in map(outline, files))


def _is_table(begun: Any) -> bool:
    columns = {name for row in objects_of(begun) for name in row}
    if "user_input" in columns:
        return bool(columns & {"response", "reference", "retrieved_contexts"}) or len(columns) > 1
    return {"question", "answer", "contexts"} <= columns and bool(columns & _OLD_METRICS)


def _annotations(value: Any) -> dict[str, Any]:
    """Metric -> its annotations; empty where a value is no such file. One metric may be saved alone."""
    if not isinstance(value, dict):
        return {}
    if isinstance(value.get("name"), str) and isinstance(value.get("samples"), list):
        value = {value["name"]: value["samples"]}
    some = [one for samples in value.values() for one in objects_of(samples)]
    return value if any("metric_input" in one and "metric_output" in one for one in some) else {}


def _read(files: Sequence[Path], export: Export) -> None:
    for file in files:
        annotations = _annotations(read_json(file)) if file.suffix.lower() == ".json" else {}
        for metric, samples in annotations.items():
            _read_annotations(metric, export.objects(samples, "annotation"), shown(file), export)
        if not annotations:
            _read_table(read_table(file), export)


def _read_annotations(metric: str, samples: list[dict[str, Any]], where: str, export: Export) -> None:
    """Each annotation is an item, the metric's verdict, and what a person made of it."""
    export.count(2 * len(samples))
    binary = all(sample.get("metric_output") in (0, 1) for sample in samples)
    for n, sample in enumerate(samples, start=1):
        place = f"{where}: {metric} {n}"
        given, said = sample.get("metric_input"), scalar(sample.get("metric_output"))
        item = _item(given if isinstance(given, dict) else {})
        export.add_item(item)
        export.add_judgement(Score(item.item_id, metric, metric, said, where=place))
        label, accepted = scalar(sample.get("target")), sample.get("is_accepted")
        if label is None and accepted is True:
            label = said
        elif label is None and accepted is False and binary:
            label = 1.0 - float(said or 0.0)
        if label is None:
            rejected = "a verdict that was rejected without saying what is right"
            export.skip(rejected if accepted is False else "a verdict that nobody accepted or rejected")
        else:
            export.add_rating(Score(item.item_id, metric, _ANNOTATOR, label, where=place, saw_draft=True))


def _read_table(table: Table, export: Export) -> None:
    fields = [name for name in table.columns if name.partition(".")[0] in table.columns and "." in name]
    columns = [name for name in table.columns if name not in (*_TAKEN, *fields)]
    metrics = [
        name for name in columns if name not in _LEFT and _is_metric(row.raw.get(name) for row in table.rows)
    ]
    if not _is_table([dict.fromkeys(table.columns)]) and not metrics:
        raise InputError(f"{table.top}: no results of Ragas: the columns are {listed(table.columns, 8)}")
    left = [name for name in columns if name not in metrics]
    if left:
        export.notes.append(f"{table.where}: columns that are no metric were left: {listed(left, 8)}")
    for row in table.rows:
        item = _item(row.raw)
        export.count()
        export.add_item(item)
        for name in metrics:
            if name in row.raw:
                export.count()
                value, where = _value(row.raw[name]), table.at(row)
                error = "the metric gave no number (NaN)" if value is None else None
                export.add_judgement(Score(item.item_id, name, name, value, where=where, error=error))


def _is_metric(cells: Any) -> bool:
    """Whether a column is a metric's: numbers from -1 to 10, or words such as pass; empty where it failed.

    A sample is written without what it lacks, so that a column without any value is a metric that failed
    throughout.
    """
    values = [value for value in map(_value, cells) if value is not None]
    return all(
        value.lower() in _WORDS if isinstance(value, str) else -1.0 <= value <= 10.0 for value in values
    )


def _value(cell: Any) -> Value:
    """The number of a cell, or its text; None for an empty one and NaN. An object is no metric's."""
    if isinstance(cell, str):
        try:
            cell = float(cell)
        except ValueError:
            return cell.strip() or None
    if cell is None or isinstance(cell, bool):
        return cell
    if not isinstance(cell, int | float):
        return "an object"
    return None if isinstance(cell, float) and math.isnan(cell) else cell


def _item(sample: Mapping[str, Any]) -> Item:
    """A sample, with the names of today's Ragas or of its version 0.1."""
    asked = sample.get("user_input")
    turns = turns_of(nested(asked))
    question = text_of(field_of(sample, "user_input", "question"))
    before, question, answer = spoken(turns) if turns else ((), question, "")
    references = nested(sample.get("ground_truths"))
    if not isinstance(references, list):
        references = [field_of(sample, "reference", "ground_truth")]
    ideal = contexts_of(nested(sample.get("reference_contexts")))
    further = {
        "reference_contexts": "\n\n".join(context.text for context in ideal),
        "rubrics": text_of(sample.get("rubrics")),
    }
    ids = nested(sample.get("reference_context_ids"))
    item = Item(
        "",
        question,
        question,
        text_of(field_of(sample, "response", "answer")) or answer,
        tuple(text for text in map(text_of, references) if text),
        contexts=_contexts(sample),
        reference_documents=tuple(map(text_of, ids)) if isinstance(ids, list) else (),
        conversation=before,
        fields={name: text for name, text in further.items() if text},
    )
    return replace(item, item_id=id_of(item.sha))


def _contexts(sample: Mapping[str, Any]) -> tuple[Context, ...]:
    contexts = contexts_of(nested(field_of(sample, "retrieved_contexts", "contexts")))
    ids = nested(sample.get("retrieved_context_ids"))
    if not isinstance(ids, list) or len(ids) != len(contexts):
        return contexts
    return tuple(Context(one.text, text_of(name) or None) for one, name in zip(contexts, ids, strict=True))


FORMAT = ExportFormat(
    "ragas", _holds, _read, "the table of result.to_pandas(), or a JSON file of annotations"
)
