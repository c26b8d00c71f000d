"""LangSmith: runs, their feedback and the examples of a dataset, as its client lists them (JSON or JSON
lines).

Feedback tells its source: the app is where people give it, a model or the API is where judges do. What a run
has in `feedback_stats` are averages over people and judges together: they are nobody's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from judgecal.exchange import traced
from judgecal.exchange.exports import Export, ExportFormat, Score, judge_name, person, tags_of
from judgecal.records import Context, Item
from judgecal.tables.nested import nested

_FEEDBACK = frozenset({"key", "run_id", "score", "feedback_source"})
_RUNS = frozenset({"inputs", "outputs", "run_type"})
_EXAMPLES = frozenset({"dataset_id", "inputs", "outputs"})
_JUDGES = ("model", "api", "auto_eval")


def _holds(files: Sequence[Path]) -> bool:
    return any(names >= _FEEDBACK or names >= _RUNS for names in map(traced.fields_of, files))


def _read(files: Sequence[Path], export: Export) -> None:
    feedback: list[tuple[str, traced.Row]] = []
    runs: list[traced.Row] = []
    examples: dict[str, traced.Row] = {}
    for where, row in (record for file in files for record in traced.records_of(file)):
        export.count()
        if row.keys() >= _FEEDBACK:
            feedback.append((where, row))
        elif row.keys() >= _RUNS:
            runs += _with_children(row, export)
        elif row.keys() >= _EXAMPLES:
            examples[traced.word(row.get("id"))] = row
            export.skip("an example, taken as the reference of its runs")
        else:
            export.skip("a record that is no run, no feedback and no example")
    if not runs:
        export.problems.append(
            f"{export.where}: no runs among the files, so there is no text to judge: export the runs with inputs and "
            "outputs, and hand over both files"
        )
    _add_items(runs, examples, {traced.word(row.get("run_id")) for _, row in feedback}, export)
    for where, row in sorted(feedback, key=lambda pair: traced.moment_of(pair[1].get("created_at"))):
        _take(row, where, export)


def _with_children(run: traced.Row, export: Export) -> Iterator[traced.Row]:
    """A run and the runs within it, where they were exported with it."""
    yield run
    for child in export.objects(run.get("child_runs"), "run"):
        yield from _with_children(child, export)


def _add_items(
    runs: list[traced.Row], examples: dict[str, traced.Row], scored: set[str], export: Export
) -> None:
    """An item each run at the top of its trace, and each other run that has feedback, under its own id."""
    contexts: dict[str, list[Context]] = {}
    for run in sorted(runs, key=lambda run: traced.moment_of(run.get("start_time"))):
        if run.get("run_type") == "retriever":
            contexts.setdefault(_trace(run), []).extend(traced.passages_of(_documents(run)))
    for run in runs:
        n_averages = len(traced.object_of(run.get("feedback_stats")))
        export.count(n_averages)
        export.skip("an average over people and judges in `feedback_stats`", n_averages)
        is_top = not traced.word(run.get("parent_run_id"))
        if not is_top and traced.word(run.get("id")) not in scored:
            export.skip("a run within a trace, without feedback")
        elif run.get("outputs") in (None, "", {}):
            export.skip("a run without outputs: it failed, or was cut off")
        else:
            export.add_item(_item(run, examples, tuple(contexts.get(_trace(run), ())) if is_top else ()))


def _trace(run: traced.Row) -> str:
    return traced.word(run.get("trace_id")) or traced.word(run.get("id"))


def _documents(run: traced.Row) -> Any:
    outputs = traced.object_of(run.get("outputs"))
    return traced.objects(outputs.get("documents")) or traced.objects(outputs.get("output"))


def _item(run: traced.Row, examples: dict[str, traced.Row], contexts: tuple[Context, ...]) -> Item:
    """The runs over one example of the dataset are of one group."""
    example = examples.get(traced.word(run.get("reference_example_id")), {})
    reference = traced.answer_of(traced.object_of(example.get("outputs")))
    return traced.item_of(
        traced.word(run.get("id")),
        traced.object_of(run.get("inputs")),
        traced.object_of(run.get("outputs")),
        group=traced.asked_of(traced.object_of(example.get("inputs"))).question,
        reference_answers=(reference,) if reference else (),
        system=traced.word(run.get("session_name")) or traced.word(run.get("session_id")),
        contexts=contexts,
        tags=tags_of(nested(run.get("tags"))),
    )


def _take(row: traced.Row, where: str, export: Export) -> None:
    """One piece of feedback, as a rating, a judgement or a skip."""
    source, extra = traced.object_of(row.get("feedback_source")), traced.object_of(row.get("extra"))
    kind, key, run, note = (
        traced.word(one) for one in (source.get("type"), row["key"], row["run_id"], row.get("comment"))
    )
    score = traced.scalar(row.get("score"))
    value = score if score is not None else traced.scalar(row.get("value"))
    if row.get("feedback_group_id") or row.get("comparative_experiment_id"):
        export.skip("a preference between two answers, which is no score of one")
    elif not run:
        export.skip("feedback on a whole project, not on a run")
    elif kind == "app":
        by = person(traced.word(source.get("user_name")) or traced.word(source.get("user_id")))
        export.add_rating(Score(run, key, by, value, note, where))
    elif kind in _JUDGES:
        model = traced.word(traced.object_of(source.get("metadata")).get("model"))
        error = (note or "the evaluator raised an error") if extra.get("error") else None
        export.add_judgement(Score(run, key, judge_name(key, model), value, note, where, error=error))
    else:
        export.skip(f"feedback of the source {kind or 'nobody'}")


FORMAT = ExportFormat(
    "langsmith", _holds, _read, "the runs and their feedback, as list_runs and list_feedback give them"
)
