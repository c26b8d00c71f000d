"""Langfuse: the tables of its batch exports, and the pages of its scores API.

`scores` says who gave each score; `traces` have the texts, and `observations`, of which the root stands for
its trace where there is no such table, as from version 4 of the SDK; `dataset_items` and `dataset_run_items`
the reference answers and which item a trace answers. The columns that `traces` has for scores hold averages
over people and judges together: they are nobody's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from judgecal.exchange import traced
from judgecal.exchange.exports import Export, ExportFormat, Score, Value, judge_name, person, tags_of
from judgecal.records import Context, Item
from judgecal.tables.nested import nested

Rows = list[tuple[str, traced.Row]]

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
    "id", "projectId", "externalId", "timestamp", "createdAt", "updatedAt", "name", "userId", "sessionId", "release",
    "version", "environment", "tags", "bookmarked", "public", "input", "output", "metadata", "latency", "usage",
    "inputCost", "outputCost", "totalCost", "level", "errorCount", "warningCount", "defaultCount", "debugCount",
    "observationCount", "inputTokens", "outputTokens", "totalTokens", "comments", "htmlPath", "observations", "scores",
})  # fmt: skip
_OTHER_SUBJECTS = {"session": "a session", "experiment": "a run", "dataset_run": "a run"}


def _holds(files: Sequence[Path]) -> bool:
    tables = {table for file in files if (table := _table(file))}
    return bool(tables & {"scores", "traces"}) or tables >= {"dataset_items", "dataset_run_items"}


def _table(file: Path) -> str | None:
    names = traced.fields_of(file)
    if names >= _SCORES and not names & {"traceId", "subject", "projectId"}:
        return None  # another tool's scores
    return next((table for table, own in _TABLES.items() if own <= names), None)


def _read(files: Sequence[Path], export: Export) -> None:
    tables: dict[str, Rows] = {table: [] for table in _TABLES}
    for file in files:
        rows = list(traced.records_of(file))
        export.count(len(rows))
        if (table := _table(file)) is None:
            export.skip(
                "a row of a table that is none of scores, traces, observations or dataset items", len(rows)
            )
        else:
            tables[table] += rows
    scores = _distinct(tables["scores"], export)
    if not tables["traces"] and not tables["observations"]:
        export.problems.append(
            f"{export.where}: no traces among the files, so there is no text to judge: export the table `traces` (or "
            "the observations) with input and output, and hand over both files"
        )
    roots = _add_items(tables, {_observation(row) for _, row in scores}, export)
    for where, row in sorted(scores, key=lambda pair: traced.moment_of(pair[1].get("timestamp"))):
        _take(row, where, roots, export)


def _distinct(rows: Rows, export: Export) -> Rows:
    """The scores; one that two pages of the API hold counts once."""
    known = {traced.word(row.get("id")) or where: (where, row) for where, row in rows}
    export.skip("a score that stands there more than once", len(rows) - len(known))
    return list(known.values())


def _add_items(tables: dict[str, Rows], scored: set[str], export: Export) -> dict[str, str]:
    """An item a trace, and one a scored observation, under their own ids; what retrievers gave are the
    contexts.

    A trace without a row of its own is its root observation: gives that one's id, and the trace's.
    """
    contexts: dict[str, list[Context]] = {}
    steps = sorted(
        (row for _, row in tables["observations"]), key=lambda row: traced.moment_of(row.get("startTime"))
    )
    for row in steps:
        if row.get("type") == "RETRIEVER":
            contexts.setdefault(traced.word(row.get("traceId")), []).extend(
                traced.passages_of(row.get("output"))
            )
    wanted = _wanted(tables, export)
    averages: Counter[str] = Counter()
    for _, row in tables["traces"]:
        own = (name for name in row.keys() - _NO_SCORE if name.partition(".")[0] not in _NO_SCORE)
        averages.update(name for name in own if row[name] not in (None, ""))
        trace = traced.word(row.get("id"))
        export.add_item(_item(row, wanted.get(trace, {}), contexts.get(trace, [])))
    export.count(averages.total())
    export.skip("an average over people and judges in a column of the traces", averages.total())
    traces, roots = {traced.word(row.get("id")) for _, row in tables["traces"]}, dict[str, str]()
    for row in steps:
        trace = traced.word(row.get("traceId"))
        if _is_root(row) and trace and trace not in traces:
            traces.add(trace)
            roots[traced.word(row.get("id"))] = trace
            export.add_item(
                replace(_item(row, wanted.get(trace, {}), contexts.get(trace, [])), item_id=trace)
            )
        elif traced.word(row.get("id")) in scored:
            export.add_item(_item(row, wanted.get(traced.word(row.get("traceId")), {}), []))
        else:
            export.skip("an observation that has no score")
    return roots


def _is_root(row: traced.Row) -> bool:
    told = row.get("isRootObservation")
    return told if isinstance(told, bool) else not traced.word(row.get("parentObservationId"))


def _wanted(tables: dict[str, Rows], export: Export) -> dict[str, traced.Row]:
    """The dataset item that each trace answers."""
    export.skip("a dataset item, taken as the reference of its traces", len(tables["dataset_items"]))
    export.skip("a link of a trace to its dataset item", len(tables["dataset_run_items"]))
    items = {traced.word(row.get("id")): row for _, row in tables["dataset_items"]}
    links = (
        (traced.word(row.get("traceId")), row.get("datasetItemId")) for _, row in tables["dataset_run_items"]
    )
    return {trace: items[item] for trace, link in links if (item := traced.word(link)) in items}


def _item(row: traced.Row, wanted: traced.Row, contexts: Sequence[Context]) -> Item:
    """The traces that answer one dataset item are of one group."""
    reference = traced.answer_of(wanted.get("expectedOutput"))
    return traced.item_of(
        traced.word(row.get("id")),
        nested(row.get("input")),  # the API gives those of observations as texts
        nested(row.get("output")),
        group=traced.asked_of(wanted.get("input")).question,
        reference_answers=(reference,) if reference else (),
        system=traced.word(row.get("version")) or traced.word(row.get("release")),
        contexts=tuple(contexts),
        tags=tags_of(row.get("tags")),
    )


def _observation(row: traced.Row) -> str:
    """The observation that a score is of; empty where it is of something else."""
    subject = traced.object_of(row.get("subject"))
    return traced.word(
        subject.get("id") if subject.get("kind") == "observation" else row.get("observationId")
    )


def _take(row: traced.Row, where: str, roots: Mapping[str, str], export: Export) -> None:
    """One score, as a rating, a judgement or a skip."""
    subject = traced.object_of(row.get("subject"))
    kind, source = traced.word(row.get("dataType")), traced.word(row.get("source"))
    inner = _observation(row)
    inner = roots.get(inner, inner)
    trace = (
        traced.word(subject.get("traceId"))
        or traced.word(subject.get("id"))
        or traced.word(row.get("traceId"))
    )
    name, note = traced.word(row.get("name")), traced.word(row.get("comment"))
    if not row.keys() & {"traceId", "subject"}:
        export.skip(
            "a score that does not tell its trace: ask the API for `fields=subject,details,annotation`"
        )
    elif (other := _OTHER_SUBJECTS.get(traced.word(subject.get("kind")))) or not (inner or trace):
        export.skip(f"a score of {other or 'a session or a run'}, not of a trace")
    elif kind in ("TEXT", "CORRECTION"):
        export.skip(
            "a text where a score would stand" if kind == "TEXT" else "a corrected output, which is no score"
        )
    elif source == "ANNOTATION":
        by = person(traced.word(row.get("authorUserName")) or traced.word(row.get("authorUserId")))
        export.add_rating(Score(inner or trace, name, by, _value(row, kind), note, where))
    elif source in ("EVAL", "API"):
        export.add_judgement(Score(inner or trace, name, judge_name(name), _value(row, kind), note, where))
    else:
        export.skip(f"a score of the source {source or 'nobody'}")


def _value(row: traced.Row, kind: str) -> Value:
    """A category is its word, which the batch export has beside a number; a truth value is 0 or 1 there."""
    value = row.get("value")
    if kind == "CATEGORICAL":
        return traced.scalar(row.get("stringValue")) or (
            traced.scalar(value) if isinstance(value, str) else None
        )
    if kind == "BOOLEAN" and not isinstance(value, bool):
        found = traced.number(value)
        return (
            bool(found)
            if found in (0.0, 1.0)
            else {"true": True, "false": False}.get(traced.word(value).lower())
        )
    return value if isinstance(value, bool) else traced.number(value)


FORMAT = ExportFormat("langfuse", _holds, _read, "the batch exports of scores and of traces")
