"""Opik: what `opik export` writes of experiments and of traces, as JSON or CSV; who scored stands in the
traces.

The value of a score is a mean over its authors, people and judges alike; `value_by_author` tells each of
them: a source `ui` is a person, `sdk` and `online_scoring` are a judge. An experiment's file holds the means
only, so that it needs the traces beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from judgecal.errors import InputError
from judgecal.exchange.exports import (
    Export,
    ExportFormat,
    Score,
    apart,
    contexts_of,
    judge_name,
    objects_of,
    person,
)
from judgecal.exchange.named_texts import named_item
from judgecal.exchange.traced import Row, answer_of, asked_of, object_of, records_of, scalar, word
from judgecal.records import Item
from judgecal.tables import nested, outline, read_json
from judgecal.workspace import shown

_CONTEXTS = ("context", "contexts", "retrieved_contexts", "retrieval_context")


class _Read(NamedTuple):
    """What the files hold: traces by id, and the items of experiments, each with where it stands."""

    traces: dict[str, tuple[str, Row]]
    items: list[tuple[str, Row]]


def _holds(files: Sequence[Path]) -> bool:
    return bool(files) and all(_kind(outline(file)) for file in files)


def _kind(begun: Any) -> str:
    """Whether a file is of a trace or of an experiment, as JSON or as a table; empty where it is neither."""
    if isinstance(begun, dict):
        if isinstance(begun.get("trace"), dict) and isinstance(begun.get("spans"), list):
            return "trace"
        experiment = begun.get("experiment")
        return "experiment" if isinstance(experiment, dict) and "dataset_name" in experiment else ""
    columns = {name for row in objects_of(begun) for name in row}
    if {"trace_id", "trace_start_time"} <= columns and any(name.startswith("span_") for name in columns):
        return "traces"
    return "experiments" if {"experiment_id", "item_trace_id", "item_dataset_item_id"} <= columns else ""


def _read(files: Sequence[Path], export: Export) -> None:
    read = _Read({}, [])
    for file in files:
        _take_file(file, read, export)
    linked = [(read.traces.get(word(row.get("trace_id"))), where, row) for where, row in read.items]
    items = [_experiment_item(row, trace[1] if trace else {}) for trace, _, row in linked]
    of_items = {word(row.get("trace_id")) for _, row in read.items}
    alone = [trace for name, trace in read.traces.items() if name not in of_items]
    export.skip("a trace, taken with the experiment's item that it belongs to", len(read.traces) - len(alone))
    for (trace, where, row), item in zip(linked, apart(items), strict=True):
        export.add_item(item)
        export.skip(
            _ASSERTION, len(export.objects(nested(row.get("assertion_results")) or None, "assertion"))
        )
        means = export.objects(nested(row.get("feedback_scores")) or None, "score")
        if trace:
            export.skip("a mean over the authors of a score, which the trace tells one by one", len(means))
            _take_scores(trace[1], item.item_id, trace[0], export)
        else:
            _take_scores({"feedback_scores": means}, item.item_id, where, export, counted=True)
    for where, trace_row in alone:
        item = _trace_item(trace_row)
        export.add_item(item)
        _take_scores(trace_row, item.item_id, where, export)
    if n := export.skipped[_UNTOLD]:
        export.notes.append(
            f"{n:,} scores are means over people and judges: hand over the files of the traces as well"
        )


_ASSERTION = "the result of an assertion, which is held against one item only"
_UNTOLD = "a mean over people and judges whose sources are not told"


def _take_file(file: Path, read: _Read, export: Export) -> None:
    where, kind = shown(file), _kind(outline(file))
    if kind == "trace":
        whole = read_json(file)
        _add_trace(where, whole["trace"], read, export)
        spans = [
            score
            for span in objects_of(whole.get("spans"))
            for score in objects_of(span.get("feedback_scores"))
        ]
        export.count(len(spans))
        export.skip("a score of a span, not of the trace", len(spans))
    elif kind == "experiment":
        whole = read_json(file)
        for n, row in enumerate(export.objects(whole.get("items"), "experiment item"), start=1):
            read.items.append((f"{where}: item {n}", {**row, "system": whole["experiment"].get("name")}))
    elif kind == "traces":
        for place, row in records_of(file):
            _add_trace(
                place, _gathered(row, "trace_"), read, export, "a row of a further span, its trace repeated"
            )
    elif kind == "experiments":
        for place, row in records_of(file):
            export.count()
            read.items.append((place, {**_gathered(row, "item_"), "system": row.get("experiment_name")}))
    else:
        raise InputError(
            f"{where}: neither an experiment nor a trace as `opik export` writes them: leave it out"
        )


def _add_trace(
    where: str, trace: Row, read: _Read, export: Export, again: str = "a trace that stands twice"
) -> None:
    name = word(trace.get("id"))
    export.count()
    if not name:
        export.skip("a trace without an id")
    elif name in read.traces:
        export.skip(again)
    else:
        read.traces[name] = (where, trace)


def _gathered(row: Row, prefix: str) -> Row:
    """The columns of a prefix without it; those of an object's fields (`trace_input_question`) as that
    object."""
    flat = {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)}
    for name in ("input", "output", "dataset_item_data", "evaluation_task_output"):
        inner = {
            key.removeprefix(f"{name}_"): value for key, value in flat.items() if key.startswith(f"{name}_")
        }
        if name not in flat and inner:
            flat[name] = {key: value for key, value in inner.items() if value not in (None, "")}
    return flat


# --- items


def _trace_item(trace: Row) -> Item:
    asked, name = asked_of(trace.get("input")), word(trace.get("id"))
    answer, contexts = answer_of(trace.get("output")), _passages(trace.get("output"))
    item = Item(
        name,
        asked.question or name,
        asked.question,
        answer,
        contexts=contexts,
        conversation=asked.conversation,
    )
    return replace(item, fields=asked.fields)


def _experiment_item(row: Row, trace: Row) -> Item:
    """The item of the dataset and what was answered; of older exports and of CSV, the input and output of the
    trace."""
    given = row.get("dataset_item_data") or row.get("input")
    said = row.get("evaluation_task_output") or row.get("output") or trace.get("output")
    asked = object_of(given) or {"input": given or trace.get("input")}
    name = word(row.get("dataset_item_id")) or word(row.get("trace_id"))
    item = named_item(name, {key: value for key, value in asked.items() if key != "id"})
    if said in (None, "", {}, []):
        return replace(item, system=word(row.get("system")) or None)
    references = item.reference_answers or ((item.answer,) if item.answer else ())  # a dataset's own answer
    return replace(
        item,
        answer=answer_of(said),
        reference_answers=references,
        contexts=_passages(said) or item.contexts,
        system=word(row.get("system")) or item.system,
    )


def _passages(output: Any) -> Any:
    found = object_of(output)
    return contexts_of(next((found[name] for name in _CONTEXTS if found.get(name)), None))


# --- scores


def _take_scores(row: Row, item_id: str, where: str, export: Export, *, counted: bool = False) -> None:
    """The scores of a trace, an author each; `counted`: a score without authors was counted before."""
    scores = nested(row.get("feedback_scores")) or None
    for score in objects_of(scores) if counted else export.objects(scores, "score"):
        authors = list(_authors(score))
        if not authors:
            export.skip(_UNTOLD)
            continue
        export.count(len(authors) - 1)
        for given in authors:
            _take_score(given, word(score.get("name")), item_id, where, export)


def _authors(score: Row) -> Iterator[Row]:
    """What each author gave: value, source, reason and name; nothing where the sources are not told."""
    for name, given in object_of(score.get("value_by_author")).items():
        own: Mapping[str, Any] = given if isinstance(given, dict) else {"value": given}
        told = {key: part for key, part in own.items() if part is not None}
        yield {"source": score.get("source"), "author": name, **told}
    if not score.get("value_by_author") and score.get("source"):
        yield {**score, "author": score.get("last_updated_by") or score.get("created_by")}


def _take_score(given: Row, name: str, item_id: str, where: str, export: Export) -> None:
    source, note, value = word(given.get("source")), word(given.get("reason")), scalar(given.get("value"))
    place = f"{where}, score {name}"
    if source == "ui":
        export.add_rating(Score(item_id, name, person(word(given.get("author"))), value, note, place))
    elif source in ("sdk", "online_scoring"):
        export.add_judgement(Score(item_id, name, judge_name(name), value, note, place))
    else:
        export.skip(f"a score of the source {source or 'nobody'}")


FORMAT = ExportFormat(
    "opik", _holds, _read, "experiment_<id>.json and the trace_<id>.json files of `opik export`"
)
