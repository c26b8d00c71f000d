"""Opik: what `opik export` writes of experiments and traces, as JSON or CSV; traces tell who scored.

The value of a score is a mean over its authors, people and judges alike; `value_by_author` tells each of
them: a source `ui` is a person, `sdk` and `online_scoring` are a judge. An experiment's file holds the means
only, so that it needs the traces beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, ExportFormat, Score, Sources, apart, judge_name
from judgecal.exchange.texts import (
    Placed,
    Row,
    answer_of,
    contexts_of,
    item_of,
    named_item,
    object_in,
    object_of,
    objects_of,
    records_of,
    scalar,
    word,
    word_in,
)
from judgecal.records import Context, Item
from judgecal.tables import nested, outline, read_json
from judgecal.workspace import shown

_SOURCES = Sources({"ui"}, {"sdk", "online_scoring"})
_CONTEXTS = ("context", "contexts", "retrieved_contexts", "retrieval_context")
_ASSERTION = "the result of an assertion, which is held against one item only"
_UNTOLD = "a mean over people and judges whose sources are not told"


@dataclass
class _Files:
    """What the files hold: traces by id, and the items of experiments."""

    traces: dict[str, Placed] = field(default_factory=dict)
    items: list[Placed] = field(default_factory=list)

    def add_trace(self, trace: Placed, again: str, export: Export) -> None:
        name = word(trace[1].get("id"))
        export.count()
        if not name:
            export.skip("a trace without an id")
        elif name in self.traces:
            export.skip(again)
        else:
            self.traces[name] = trace


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
    held = _Files()
    for file in files:
        _read_file(file, held, export)
    traces, of_items = held.traces, {word(row.get("trace_id")) for _, row in held.items}
    linked = [(traces.get(word(row.get("trace_id"))), where, row) for where, row in held.items]
    items = [_experiment_item(row, trace[1] if trace else {}) for trace, _, row in linked]
    alone = [trace for name, trace in traces.items() if name not in of_items]
    export.skip("a trace, taken with the experiment's item that it belongs to", len(traces) - len(alone))
    for (trace, where, row), item in zip(linked, apart(items), strict=True):
        export.add_item(item)
        assertions = export.objects(nested(row.get("assertion_results")) or None, "assertion")
        export.skip(_ASSERTION, len(assertions))
        means = export.objects(nested(row.get("feedback_scores")) or None, "score")
        if trace:
            export.skip("a mean over the authors of a score, which the trace tells one by one", len(means))
            _take_scores(_scores_of(trace[1], export), item.item_id, trace[0], export)
        else:
            _take_scores(means, item.item_id, where, export)
    for where, trace_row in alone:
        output = trace_row.get("output")
        item = item_of(word(trace_row.get("id")), trace_row.get("input"), output, contexts=_passages(output))
        export.add_item(item)
        _take_scores(_scores_of(trace_row, export), item.item_id, where, export)
    if n := export.skipped[_UNTOLD]:
        advice = "hand over the files of the traces as well"
        export.notes.append(f"{n:,} scores are means over people and judges: {advice}")


def _read_file(file: Path, held: _Files, export: Export) -> None:
    where, kind = shown(file), _kind(outline(file))
    if kind == "trace":
        whole = read_json(file)
        held.add_trace((where, whole["trace"]), "a trace that stands twice", export)
        spans = (objects_of(span.get("feedback_scores")) for span in objects_of(whole.get("spans")))
        export.count_skipped("a score of a span, not of the trace", sum(map(len, spans)))
    elif kind == "experiment":
        whole = read_json(file)
        system = whole["experiment"].get("name")
        for n, row in enumerate(export.objects(whole.get("items"), "experiment item"), start=1):
            held.items.append((f"{where}: item {n}", {**row, "system": system}))
    elif kind == "traces":
        for place, row in records_of(file):
            trace = (place, _gathered(row, "trace_"))
            held.add_trace(trace, "a row of a further span, its trace repeated", export)
    elif kind == "experiments":
        for place, row in records_of(file):
            export.count()
            held.items.append((place, {**_gathered(row, "item_"), "system": row.get("experiment_name")}))
    else:
        what = "neither an experiment nor a trace as `opik export` writes them"
        raise InputError(f"{where}: {what}: leave it out")


def _gathered(row: Row, prefix: str) -> Row:
    """The columns of a prefix without it; an object's fields (`trace_input_question`) as that object."""
    flat = {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)}
    for name in ("input", "output", "dataset_item_data", "evaluation_task_output"):
        start = f"{name}_"
        inner = {key.removeprefix(start): value for key, value in flat.items() if key.startswith(start)}
        if name not in flat and inner:
            flat[name] = {key: value for key, value in inner.items() if value not in (None, "")}
    return flat


def _experiment_item(row: Row, trace: Row) -> Item:
    """The dataset's item and what was answered; of older exports and of CSV, the trace's input and output."""
    given = row.get("dataset_item_data") or row.get("input")
    output = row.get("evaluation_task_output") or row.get("output") or trace.get("output")
    record = object_of(given) or {"input": given or trace.get("input")}
    name, system = word_in(row, "dataset_item_id", "trace_id"), word(row.get("system"))
    item = named_item(name, {key: value for key, value in record.items() if key != "id"})
    if output in (None, "", {}, []):
        return replace(item, system=system or None)
    return replace(
        item,
        answer=answer_of(output),
        reference_answers=item.reference_answers or ((item.answer,) if item.answer else ()),  # the dataset's
        contexts=_passages(output) or item.contexts,
        system=system or item.system,
    )


def _passages(output: Any) -> tuple[Context, ...]:
    held = object_of(output)
    return contexts_of(next((held[name] for name in _CONTEXTS if held.get(name)), None))


def _scores_of(row: Row, export: Export) -> list[Row]:
    return export.objects(nested(row.get("feedback_scores")) or None, "score")


def _take_scores(scores: Iterable[Row], item_id: str, where: str, export: Export) -> None:
    """Scores that were counted, an author each."""
    for score in scores:
        name, authors = word(score.get("name")), list(_authors(score))
        if not authors:
            export.skip(_UNTOLD)
            continue
        export.count(len(authors) - 1)
        for given in authors:
            value, note = scalar(given.get("value")), word(given.get("reason"))
            one = Score(item_id, name, "", value, note, f"{where}, score {name}")
            author, source = word(given.get("author")), word(given.get("source"))
            _SOURCES.take(source, one, export, rater=author, judge=judge_name(name))


def _authors(score: Row) -> Iterator[Row]:
    """What each author gave: value, source, reason and name; nothing where the sources are not told."""
    for name, given in object_in(score, "value_by_author").items():
        own = given if isinstance(given, dict) else {"value": given}
        known = {key: part for key, part in own.items() if part is not None}
        yield {"source": score.get("source"), "author": name, **known}
    if not score.get("value_by_author") and score.get("source"):
        yield {**score, "author": score.get("last_updated_by") or score.get("created_by")}


FORMAT = ExportFormat(
    "opik", _holds, _read, "experiment_<id>.json and the trace_<id>.json files of `opik export`"
)
