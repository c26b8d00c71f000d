"""Langfuse: the tables of its batch exports, and the pages of its scores API.

`scores` says who gave each score; `traces` have the texts, and `observations`, of which the root stands for
its trace where there is no such table, as from version 4 of the SDK; `dataset_items` and `dataset_run_items`
the reference answers and which item a trace answers. The columns that `traces` has for scores hold averages
over people and judges together: they are nobody's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgecal.exchange.exports import Export, ExportFormat, Score, judge_name
from judgecal.exchange.files import Placed, Row, fields_of, nested, outline, records_of
from judgecal.exchange.texts import (
    Value,
    answer_of,
    in_time,
    item_of,
    number,
    object_in,
    passages_of,
    request_of,
    scalar,
    texts_of,
    word,
    word_in,
)
from judgecal.records import Context

_TABLES: Mapping[str, set[str]] = {
    "scores": {"source", "dataType", "name", "value"},
    "dataset_run_items": {"datasetItemId", "traceId"},
    "dataset_items": {"expectedOutput", "input", "status"},
    "observations": {"input", "output", "traceId"},  # before the traces, whose fields some have too
    "traces": {"input", "output", "bookmarked", "public"},
}
_NO_SCORE = frozenset({
    "id", "projectId", "externalId", "timestamp", "createdAt", "updatedAt", "name", "userId", "sessionId",
    "release", "version", "environment", "tags", "bookmarked", "public", "input", "output", "metadata",
    "latency", "usage", "inputCost", "outputCost", "totalCost", "level", "errorCount", "warningCount",
    "defaultCount", "debugCount", "observationCount", "inputTokens", "outputTokens", "totalTokens",
    "comments", "htmlPath", "observations", "scores",
})  # fmt: skip
_OTHER_SUBJECTS = {"session": "a session", "experiment": "a run", "dataset_run": "a run"}


def _holds(begun: Sequence[Any]) -> bool:
    tables = {table for part in begun if (table := _table(part))}
    return bool(tables & {"scores", "traces"}) or tables >= {"dataset_items", "dataset_run_items"}


def _table(begun: Any) -> str | None:
    names = fields_of(begun)
    if names >= _TABLES["scores"] and not names & {"traceId", "subject", "projectId"}:
        return None  # another tool's scores
    return next((table for table, needed in _TABLES.items() if needed <= names), None)


def _read(files: Sequence[Path], export: Export) -> None:
    tables: dict[str, list[Placed]] = {table: [] for table in _TABLES}
    for file in files:
        rows = list(records_of(file))
        export.count(len(rows))
        if (table := _table(outline(file))) is None:
            what = "a row of a table that is none of scores, traces, observations or dataset items"
            export.skip(what, len(rows))
        else:
            tables[table] += rows
    # A score that two pages of the API hold counts once.
    scores = {word_in(row, "id") or where: (where, row) for where, row in tables["scores"]}
    export.skip("a score that is there more than once", len(tables["scores"]) - len(scores))
    if not tables["traces"] and not tables["observations"]:
        export.lack_texts("traces", "the table `traces` (or the observations) with input and output")
    roots = _add_items(tables, {_observation(row) for _, row in scores.values()}, export)
    for where, row in in_time(scores.values(), "timestamp"):
        subject, kind, observation = object_in(row, "subject"), word_in(row, "dataType"), _observation(row)
        trace = word_in(subject, "traceId", "id") or word_in(row, "traceId")
        target = roots.get(observation, observation) or trace
        other = _OTHER_SUBJECTS.get(word_in(subject, "kind"))
        if not row.keys() & {"traceId", "subject"}:
            advice = "ask the API for `fields=subject,details,annotation`"
            export.skip(f"a score that does not tell its trace: {advice}")
        elif other or not target:
            export.skip(f"a score of {other or 'a session or a run'}, not of a trace")
        elif kind == "TEXT":
            export.skip("a text where a score would stand")
        elif kind == "CORRECTION":
            export.skip("a corrected output, which is not a score")
        else:
            name, note = word_in(row, "name"), word_in(row, "comment")
            score = Score(target, name, judge_name(name), _value(row, kind), note, where)
            author, source = word_in(row, "authorUserName", "authorUserId"), word_in(row, "source")
            export.add_by_source(source, score, rater=author, people="ANNOTATION", judges=("EVAL", "API"))


def _add_items(tables: Mapping[str, list[Placed]], scored: set[str], export: Export) -> dict[str, str]:
    """An item a trace, and one a scored observation, under their own ids; contexts are what retrievers gave.

    The traces that answer one dataset item are of one group. A trace without a row of its own is its root
    observation: gives that one's id, and the trace's.
    """
    export.skip("a dataset item, taken as the reference of its traces", len(tables["dataset_items"]))
    export.skip("a link of a trace to its dataset item", len(tables["dataset_run_items"]))
    wanted = {word_in(row, "id"): row for _, row in tables["dataset_items"]}
    links = (
        (word_in(row, "traceId"), word_in(row, "datasetItemId")) for _, row in tables["dataset_run_items"]
    )
    expected = {trace: wanted[name] for trace, name in links if name in wanted}
    contexts: dict[str, list[Context]] = {}
    steps = [row for _, row in in_time(tables["observations"], "startTime")]
    for row in steps:
        if row.get("type") == "RETRIEVER":
            contexts.setdefault(word_in(row, "traceId"), []).extend(passages_of(row.get("output")))

    def add(item_id: str, trace: str, row: Row) -> None:
        dataset_item = expected.get(trace, {})
        item = item_of(
            item_id,
            nested(row.get("input")),  # the API gives those of observations as texts
            nested(row.get("output")),
            group=request_of(dataset_item.get("input")).question,
            reference_answers=texts_of(answer_of(dataset_item.get("expectedOutput"))),
            system=word_in(row, "version", "release"),
            contexts=tuple(contexts.get(trace, ())) if item_id == trace else (),
            tags=texts_of(row.get("tags")),
        )
        export.add_item(item)

    traces = {word_in(row, "id") for _, row in tables["traces"]}
    for _, row in tables["traces"]:
        scores = (name for name in row.keys() - _NO_SCORE if name.partition(".")[0] not in _NO_SCORE)
        averages = "an average over people and judges in a column of the traces"
        export.count_skipped(averages, sum(row[name] not in (None, "") for name in scores))
        add(word_in(row, "id"), word_in(row, "id"), row)
    roots: dict[str, str] = {}
    for row in steps:
        trace, step, is_root = word_in(row, "traceId"), word_in(row, "id"), row.get("isRootObservation")
        if not isinstance(is_root, bool):
            is_root = not word_in(row, "parentObservationId")
        if is_root and trace and trace not in traces:
            traces.add(trace)
            roots[step] = trace
            add(trace, trace, row)
        elif step in scored:
            add(step, trace, row)
        else:
            export.skip("an observation that has no score")
    return roots


def _observation(row: Row) -> str:
    """The observation that a score is of; empty where it is of something else."""
    subject = object_in(row, "subject")
    return word(subject.get("id") if subject.get("kind") == "observation" else row.get("observationId"))


def _value(row: Row, kind: str) -> Value:
    """A category is its word, which the batch export has beside a number; a truth value is 0 or 1 there."""
    value = row.get("value")
    if kind == "CATEGORICAL":
        return scalar(row.get("stringValue")) or (scalar(value) if isinstance(value, str) else None)
    if isinstance(value, bool):
        return value
    if kind != "BOOLEAN":
        return number(value)
    if (truth := number(value)) in (0.0, 1.0):
        return bool(truth)
    return {"true": True, "false": False}.get(word(value).lower())


FORMAT = ExportFormat("langfuse", _holds, _read, "the batch exports of scores and of traces")
