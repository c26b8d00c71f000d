"""LangSmith: runs, their feedback and a dataset's examples, as its client lists them (JSON or JSON lines).

Feedback tells its source: the app is where people give it, a model or the API is where judges do. What a run
has in `feedback_stats` are averages over people and judges together: they are nobody's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgecal.exchange.exports import Export, ExportFormat, Score, judge_name
from judgecal.exchange.files import Placed, Row, fields_of, nested, records_of
from judgecal.exchange.texts import (
    answer_of,
    has,
    in_time,
    item_of,
    object_in,
    objects,
    passages_of,
    request_of,
    scalar,
    texts_of,
    word_in,
)
from judgecal.records import Context

_JUDGES = frozenset({"model", "api", "auto_eval"})
_FEEDBACK = frozenset({"key", "run_id", "score", "feedback_source"})
_RUNS = frozenset({"inputs", "outputs", "run_type"})
_EXAMPLES = frozenset({"dataset_id", "inputs", "outputs"})


def _holds(begun: Sequence[Any]) -> bool:
    return any(names >= _FEEDBACK or names >= _RUNS for names in map(fields_of, begun))


def _read(files: Sequence[Path], export: Export) -> None:
    feedback: list[Placed] = []
    runs: list[Row] = []
    examples: dict[str, Row] = {}
    for where, row in (record for file in files for record in records_of(file)):
        export.count()
        if row.keys() >= _FEEDBACK:
            feedback.append((where, row))
        elif row.keys() >= _RUNS:
            runs += _with_children(row, export)
        elif row.keys() >= _EXAMPLES:
            examples[word_in(row, "id")] = row
            export.skip("an example, taken as the reference of its runs")
        else:
            export.skip("a record that is not a run, feedback or an example")
    if not runs:
        export.lack_texts("runs", "the runs with inputs and outputs")
    _add_items(runs, examples, {word_in(row, "run_id") for _, row in feedback}, export)
    for where, row in in_time(feedback, "created_at"):
        source, note, key = object_in(row, "feedback_source"), word_in(row, "comment"), word_in(row, "key")
        if row.get("feedback_group_id") or row.get("comparative_experiment_id"):
            export.skip("a preference between two answers, which is not a score of one")
        elif not (run := word_in(row, "run_id")):
            export.skip("feedback on a whole project, not on a run")
        else:
            score = scalar(row.get("score"))
            value = scalar(row.get("value")) if score is None else score
            failed = object_in(row, "extra").get("error")
            error = (note or "the evaluator raised an error") if failed else None
            judge = judge_name(key, word_in(object_in(source, "metadata"), "model"))
            given = Score(run, key, judge, value, note, where, error=error)
            rater = word_in(source, "user_name", "user_id")
            export.add_by_source(word_in(source, "type"), given, rater=rater, people="app", judges=_JUDGES)


def _with_children(run: Row, export: Export) -> Iterator[Row]:
    """A run and the runs within it, where they were exported with it."""
    yield run
    for child in export.objects(run.get("child_runs"), "run"):
        yield from _with_children(child, export)


def _add_items(runs: Sequence[Row], examples: Mapping[str, Row], scored: set[str], export: Export) -> None:
    """An item each run at the top of its trace, and each other run that has feedback, under its own id.

    The runs over one example of the dataset are of one group.
    """
    contexts: dict[str, list[Context]] = {}
    for trace, run in in_time([(word_in(run, "trace_id", "id"), run) for run in runs], "start_time"):
        if run.get("run_type") == "retriever":
            outputs = object_in(run, "outputs")
            documents = objects(outputs.get("documents")) or objects(outputs.get("output"))
            contexts.setdefault(trace, []).extend(passages_of(documents))
    for run in runs:
        averages = "an average over people and judges in `feedback_stats`"
        export.count_skipped(averages, len(object_in(run, "feedback_stats")))
        run_id, is_top = word_in(run, "id"), not word_in(run, "parent_run_id")
        if not is_top and run_id not in scored:
            export.skip("a run within a trace, without feedback")
        elif not has(run.get("outputs")) and run.get("outputs") != []:
            export.skip("a run without outputs: it failed, or was cut off")
        else:
            example = examples.get(word_in(run, "reference_example_id"), {})
            item = item_of(
                run_id,
                object_in(run, "inputs"),
                object_in(run, "outputs"),
                group=request_of(object_in(example, "inputs")).question,
                reference_answers=texts_of(answer_of(object_in(example, "outputs"))),
                system=word_in(run, "session_name", "session_id"),
                contexts=tuple(contexts.get(word_in(run, "trace_id", "id"), ())) if is_top else (),
                tags=texts_of(nested(run.get("tags"))),
            )
            export.add_item(item)


FORMAT = ExportFormat(
    "langsmith", _holds, _read, "the runs and their feedback, as list_runs and list_feedback give them"
)
