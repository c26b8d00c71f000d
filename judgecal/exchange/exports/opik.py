"""Opik: what `opik export` writes of experiments and traces, as JSON or CSV; traces tell who scored.

The value of a score is a mean over its authors, people and judges alike; `value_by_author` tells each of
them: a source `ui` is a person, `sdk` and `online_scoring` are a judge. An experiment's file holds the means
only, so that it needs the traces beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, ExportFormat, Score, Sources, each_begins, judge_name
from judgecal.exchange.files import Placed, Row, columns_of, nested, outline, records_of
from judgecal.exchange.texts import (
    answer_of,
    contexts_of,
    has,
    item_of,
    named_item,
    object_in,
    object_of,
    objects_of,
    scalar,
    word_in,
)
from judgecal.records import Context, Item
from judgecal.tables import read_json
from judgecal.workspace import shown

_SOURCES = Sources({"ui"}, {"sdk", "online_scoring"})
_CONTEXTS = ("context", "contexts", "retrieved_contexts", "retrieval_context")
_UNTOLD = "a mean over people and judges whose sources the file does not name"


def _kind(begun: Any) -> str:
    """Whether a file is of a trace or of an experiment, as JSON or as a table; empty where it is neither."""
    if isinstance(begun, dict):
        if isinstance(begun.get("trace"), dict) and isinstance(begun.get("spans"), list):
            return "trace"
        experiment = begun.get("experiment")
        return "experiment" if isinstance(experiment, dict) and "dataset_name" in experiment else ""
    columns = columns_of(begun)
    if {"trace_id", "trace_start_time"} <= columns and any(name.startswith("span_") for name in columns):
        return "traces"
    return "experiments" if {"experiment_id", "item_trace_id", "item_dataset_item_id"} <= columns else ""


def _read(files: Sequence[Path], export: Export) -> None:
    traces: dict[str, Placed] = {}
    answers: list[Placed] = []  # the items of experiments
    for file in files:
        where, kind = shown(file), _kind(outline(file))
        held: list[Placed] = []
        again = "a row of a further span, its trace repeated"
        if kind == "trace":
            whole = read_json(file)
            held, again = [(where, whole["trace"])], "a trace that is there twice"
            spans = (objects_of(span.get("feedback_scores")) for span in objects_of(whole.get("spans")))
            export.count_skipped("a score of a span, not of the trace", sum(map(len, spans)))
        elif kind == "traces":
            held = [(place, _gathered(row, "trace_")) for place, row in records_of(file)]
        elif kind == "experiment":
            whole = read_json(file)
            system = whole["experiment"].get("name")
            rows = enumerate(export.objects(whole.get("items"), "experiment item"), start=1)
            answers += [(f"{where}: item {n}", {**row, "system": system}) for n, row in rows]
        elif kind == "experiments":
            for place, row in records_of(file):
                export.count()
                answers.append((place, {**_gathered(row, "item_"), "system": row.get("experiment_name")}))
        else:
            what = "neither an experiment nor a trace as `opik export` writes them"
            raise InputError(f"{where}: {what}: leave it out")
        for place, row in held:
            name = word_in(row, "id")
            export.count()
            if name and name not in traces:
                traces[name] = (place, row)
            else:
                export.skip(again if name else "a trace without an id")
    _add(traces, answers, export)
    if n := export.skipped[_UNTOLD]:
        advice = "hand over the files of the traces as well"
        export.notes.append(f"{n:,} scores are means over people and judges: {advice}")


def _add(traces: Mapping[str, Placed], answers: Sequence[Placed], export: Export) -> None:
    """The items of experiments, each with the scores of its trace, and the traces that are of none."""
    pairs = [(traces.get(word_in(row, "trace_id")), where, row) for where, row in answers]
    of_answers = {word_in(row, "trace_id") for _, row in answers}
    alone = [trace for name, trace in traces.items() if name not in of_answers]
    export.skip("a trace, taken with the experiment's item that it belongs to", len(traces) - len(alone))
    items = [_experiment_item(row, trace[1] if trace else {}) for trace, _, row in pairs]
    for (trace, where, row), item in zip(pairs, export.add_apart(items), strict=True):
        assertions = _listed(row, "assertion_results", "assertion", export)
        export.skip("the result of an assertion, which is held against one item only", len(assertions))
        if trace:
            means = _listed(row, "feedback_scores", "score", export)
            export.skip("a mean over the authors of a score, which the trace tells one by one", len(means))
        _take_scores(*(trace or (where, row)), item.item_id, export)
    for where, row in alone:
        output = row.get("output")
        item = item_of(word_in(row, "id"), row.get("input"), output, contexts=_passages(output))
        export.add_item(item)
        _take_scores(where, row, item.item_id, export)


def _listed(row: Row, name: str, what: str, export: Export) -> list[Row]:
    return export.objects(nested(row.get(name)) or None, what)


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
    item = named_item(
        word_in(row, "dataset_item_id", "trace_id"), {key: record[key] for key in record if key != "id"}
    )
    system = word_in(row, "system") or None
    if not has(output):
        return replace(item, system=system)
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


def _take_scores(where: str, row: Row, item_id: str, export: Export) -> None:
    """What each author of a score gave; a skip where the sources are not told."""
    for score in _listed(row, "feedback_scores", "score", export):
        name, authors = word_in(score, "name"), []
        for author, given in object_in(score, "value_by_author").items():
            known = {key: part for key, part in object_of(given).items() if part is not None}
            known = known if isinstance(given, dict) else {"value": given}
            authors.append({"source": score.get("source"), "author": author, **known})
        if not score.get("value_by_author") and score.get("source"):
            authors = [{**score, "author": score.get("last_updated_by") or score.get("created_by")}]
        if not authors:
            export.skip(_UNTOLD)
            continue
        export.count(len(authors) - 1)
        for given in authors:
            value, note = scalar(given.get("value")), word_in(given, "reason")
            by_judge = Score(item_id, name, judge_name(name), value, note, f"{where}, score {name}")
            _SOURCES.take(word_in(given, "source"), by_judge, export, rater=word_in(given, "author"))


FORMAT = ExportFormat(
    "opik", each_begins(_kind), _read, "experiment_<id>.json and the trace_<id>.json files of `opik export`"
)
