"""Langfuse: the tables of its batch exports, and the pages of its scores API.

`scores` says who gave each score; `traces` have the texts, and `observations`, of which the root stands for
its trace where there is no such table, as from version 4 of the SDK; `dataset_items` and `dataset_run_items`
the reference answers and which item a trace answers. The columns that `traces` has for scores hold averages
over people and judges together: they are nobody's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from judgecal.exchange.exports import Export, ExportFormat, Score, Sources, judge_name
from judgecal.exchange.texts import (
    Placed,
    Row,
    Value,
    answer_of,
    fields_of,
    in_time,
    item_of,
    number,
    object_in,
    passages_of,
    records_of,
    request_of,
    scalar,
    tags_of,
    word,
    word_in,
)
from judgecal.records import Context, Item
from judgecal.tables.nested import nested

_SOURCES = Sources({"ANNOTATION"}, {"EVAL", "API"})
_SCORES = frozenset({"source", "dataType", "name", "value"})
_RUN_ITEMS = frozenset({"datasetItemId", "traceId"})
_DATASET_ITEMS = frozenset({"expectedOutput", "input", "status"})
_TRACES = frozenset({"input", "output", "bookmarked", "public"})
_OBSERVATIONS = frozenset({"input", "output", "traceId"})  # before the traces, whose fields some have too
_TABLES = {
    "scores": _SCORES, "dataset_run_items": _RUN_ITEMS, "dataset_items": _DATASET_ITEMS,
    "observations": _OBSERVATIONS, "traces": _TRACES,
}  # fmt: skip
_NO_SCORE = frozenset({
    "id", "projectId", "externalId", "timestamp", "createdAt", "updatedAt", "name", "userId", "sessionId",
    "release", "version", "environment", "tags", "bookmarked", "public", "input", "output", "metadata",
    "latency", "usage", "inputCost", "outputCost", "totalCost", "level", "errorCount", "warningCount",
    "defaultCount", "debugCount", "observationCount", "inputTokens", "outputTokens", "totalTokens",
    "comments", "htmlPath", "observations", "scores",
})  # fmt: skip
_OTHER_SUBJECTS = {"session": "a session", "experiment": "a run", "dataset_run": "a run"}


def _holds(files: Sequence[Path]) -> bool:
    tables = {table for file in files if (table := _table(file))}
    return bool(tables & {"scores", "traces"}) or tables >= {"dataset_items", "dataset_run_items"}


def _table(file: Path) -> str | None:
    names = fields_of(file)
    if names >= _SCORES and not names & {"traceId", "subject", "projectId"}:
        return None  # another tool's scores
    return next((table for table, needed in _TABLES.items() if needed <= names), None)


def _read(files: Sequence[Path], export: Export) -> None:
    tables: dict[str, list[Placed]] = {table: [] for table in _TABLES}
    for file in files:
        rows = list(records_of(file))
        export.count(len(rows))
        if (table := _table(file)) is None:
            what = "a row of a table that is none of scores, traces, observations or dataset items"
            export.skip(what, len(rows))
        else:
            tables[table] += rows
    # A score that two pages of the API hold counts once.
    scores = {word(row.get("id")) or where: (where, row) for where, row in tables["scores"]}
    export.skip("a score that stands there more than once", len(tables["scores"]) - len(scores))
    if not tables["traces"] and not tables["observations"]:
        export.lack_texts("traces", "the table `traces` (or the observations) with input and output")
    roots = _add_items(tables, {_observation(row) for _, row in scores.values()}, export)
    for where, row in in_time(scores.values(), "timestamp"):
        _take(row, where, roots, export)


def _add_items(tables: Mapping[str, list[Placed]], scored: set[str], export: Export) -> dict[str, str]:
    """An item a trace, and one a scored observation, under their own ids; contexts are what retrievers gave.

    A trace without a row of its own is its root observation: gives that one's id, and the trace's.
    """
    export.skip("a dataset item, taken as the reference of its traces", len(tables["dataset_items"]))
    export.skip("a link of a trace to its dataset item", len(tables["dataset_run_items"]))
    known = {word(row.get("id")): row for _, row in tables["dataset_items"]}
    pairs = [
        (word(row.get("traceId")), word(row.get("datasetItemId"))) for _, row in tables["dataset_run_items"]
    ]
    links = {trace: dataset_item for trace, dataset_item in pairs if dataset_item in known}
    contexts: dict[str, list[Context]] = {}
    steps = [row for _, row in in_time(tables["observations"], "startTime")]
    for row in steps:
        if row.get("type") == "RETRIEVER":
            contexts.setdefault(word(row.get("traceId")), []).extend(passages_of(row.get("output")))

    def item(item_id: str, trace: str, row: Row, *, retrieved: bool = True) -> Item:
        expected = known[links[trace]] if trace in links else {}
        return _item(item_id, row, expected, contexts.get(trace, []) if retrieved else [])

    averages: Counter[str] = Counter()
    traces: set[str] = set()
    for _, row in tables["traces"]:
        scores = (name for name in row.keys() - _NO_SCORE if name.partition(".")[0] not in _NO_SCORE)
        averages.update(name for name in scores if row[name] not in (None, ""))
        trace = word(row.get("id"))
        traces.add(trace)
        export.add_item(item(trace, trace, row))
    export.count_skipped("an average over people and judges in a column of the traces", averages.total())
    roots: dict[str, str] = {}
    for row in steps:
        trace, step, is_root = word(row.get("traceId")), word(row.get("id")), row.get("isRootObservation")
        if not isinstance(is_root, bool):
            is_root = not word(row.get("parentObservationId"))
        if is_root and trace and trace not in traces:
            traces.add(trace)
            roots[step] = trace
            export.add_item(item(trace, trace, row))
        elif step in scored:
            export.add_item(item(step, trace, row, retrieved=False))
        else:
            export.skip("an observation that has no score")
    return roots


def _item(item_id: str, row: Row, expected: Row, contexts: Sequence[Context]) -> Item:
    """The traces that answer one dataset item are of one group."""
    reference = answer_of(expected.get("expectedOutput"))
    return item_of(
        item_id,
        nested(row.get("input")),  # the API gives those of observations as texts
        nested(row.get("output")),
        group=request_of(expected.get("input")).question,
        reference_answers=(reference,) if reference else (),
        system=word_in(row, "version", "release"),
        contexts=tuple(contexts),
        tags=tags_of(row.get("tags")),
    )


def _observation(row: Row) -> str:
    """The observation that a score is of; empty where it is of something else."""
    subject = object_in(row, "subject")
    return word(subject.get("id") if subject.get("kind") == "observation" else row.get("observationId"))


def _take(row: Row, where: str, roots: Mapping[str, str], export: Export) -> None:
    """One score, as a rating, a judgement or a skip."""
    subject, kind, observation = object_in(row, "subject"), word(row.get("dataType")), _observation(row)
    of = roots.get(observation, observation) or word_in(subject, "traceId", "id") or word(row.get("traceId"))
    other = _OTHER_SUBJECTS.get(word(subject.get("kind")))
    if not row.keys() & {"traceId", "subject"}:
        advice = "ask the API for `fields=subject,details,annotation`"
        export.skip(f"a score that does not tell its trace: {advice}")
    elif other or not of:
        export.skip(f"a score of {other or 'a session or a run'}, not of a trace")
    elif kind == "TEXT":
        export.skip("a text where a score would stand")
    elif kind == "CORRECTION":
        export.skip("a corrected output, which is no score")
    else:
        name = word(row.get("name"))
        score = Score(of, name, "", _value(row, kind), word(row.get("comment")), where)
        author = word_in(row, "authorUserName", "authorUserId")
        _SOURCES.take(word(row.get("source")), score, export, rater=author, judge=judge_name(name))


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
