"""LangSmith's runs and feedback, and what is easily taken for something else in them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, guess, read_export
from tests.support.exports import FIXTURES, read_spoilt, written

ITSELF = [
    FIXTURES / "langsmith" / "experiment" / f"{name}.jsonl" for name in ("runs", "feedback", "examples")
]


def run(n: int = 1, **further: Any) -> dict[str, Any]:
    own = {
        "id": f"r-{n}",
        "trace_id": f"r-{n}",
        "run_type": "chain",
        "inputs": {"question": "Why?"},
        "error": None,
    }
    return {
        **own,
        "outputs": {"output": "So."},
        "start_time": f"2026-11-20T09:00:0{n}",
        "session_id": "s",
        **further,
    }


def feedback(source: str | None, score: Any, n: int = 1, **further: Any) -> dict[str, Any]:
    kind = None if source is None else {"type": source, "user_name": None, "user_id": None, "metadata": {}}
    own = {
        "id": f"f-{n}",
        "run_id": "r-1",
        "key": "correctness",
        "score": score,
        "value": None,
        "comment": None,
    }
    return {**own, "feedback_source": kind, "created_at": f"2026-11-20T10:00:0{n}Z", "extra": None, **further}


def read(tmp_path: Path, said: list[dict[str, Any]], *runs: dict[str, Any], **tables: Any) -> Export:
    files = [
        written(tmp_path / "feedback.json", said),
        written(tmp_path / "runs.json", list(runs) or [run()]),
    ]
    return read_export(
        [*files, *(written(tmp_path / f"{name}.json", rows) for name, rows in tables.items())], "langsmith"
    )


def test_the_order_of_the_files_is_all_one(tmp_path: Path) -> None:
    one, other = (read_export(files, "langsmith") for files in (ITSELF, ITSELF[::-1]))
    assert (one.items, one.ratings, one.judgements) == (other.items, other.ratings, other.judgements)


def test_who_gave_a_score_is_told_by_its_source_and_never_by_its_key(tmp_path: Path) -> None:
    said = [
        feedback("app", 1, 1, key="llm_judge"),
        feedback("model", 0, 2, key="human"),
        feedback("api", 0, 3, key="user_score"),
        feedback("auto_eval", 0, 4, key="human"),
        feedback(None, 1, 5),
    ]
    export = read(tmp_path, said)
    assert [one.name for one in export.ratings] == ["llm_judge"]
    assert [(one.by, one.repeat) for one in export.judgements] == [
        ("human", 0),
        ("user_score", 0),
        ("human", 1),
    ]
    assert export.skipped == {"feedback of the source nobody": 1}


def test_averages_are_nobodys(tmp_path: Path) -> None:
    export = read(tmp_path, [], run(feedback_stats={"correctness": {"n": 2, "avg": 0.5}, "tone": {"n": 1}}))
    assert not export.ratings and not export.judgements
    assert export.skipped == {"an average over people and judges in `feedback_stats`": 2}


def test_a_preference_between_two_runs_is_no_score_of_either(tmp_path: Path) -> None:
    said = [feedback("model", n, n, run_id=f"r-{n + 1}", feedback_group_id="g") for n in (0, 1)]
    export = read(tmp_path, said, run(1), run(2))
    assert not export.judgements
    assert export.skipped == {"a preference between two answers, which is no score of one": 2}


def test_an_evaluator_that_raised_is_unscored(tmp_path: Path) -> None:
    """The client records it with a comment, no score and `extra`."""
    failed = feedback("model", None, comment="KeyError('x')", extra={"error": True})
    scored = feedback("model", 0, 2, comment="KeyError('x')", extra={"error": True})
    export = read(tmp_path, [failed, scored, feedback("model", None, 3)])
    assert [(one.value, one.error) for one in export.judgements] == [
        (None, "KeyError('x')"), (None, "KeyError('x')"), (None, "no verdict was recorded"),
    ]  # fmt: skip


def test_a_category_counts_where_there_is_no_score(tmp_path: Path) -> None:
    said = [feedback("app", None, 1, value="good"), feedback("app", 1, 2, value="good", key="b"),
            feedback("app", None, 3, value={"a": 1}, key="c")]  # fmt: skip
    export = read(tmp_path, said)
    assert [one.value for one in export.ratings] == ["good", 1]
    assert export.skipped == {"a rating without a label": 1}


def test_a_step_with_feedback_is_an_item_and_one_without_is_not(tmp_path: Path) -> None:
    steps = [run(n, parent_run_id="r-1", trace_id="r-1", inputs={"query": "What?"}) for n in (2, 3)]
    export = read(
        tmp_path, [feedback("app", 1, run_id="r-2"), feedback("model", 1, run_id="r-9")], run(), *steps
    )
    assert list(export.items) == ["r-1", "r-2"]
    assert export.skipped == {
        "a run within a trace, without feedback": 1,
        "a score of an item that the export does not hold": 1,
    }


def test_runs_within_a_run_are_walked_for_their_documents(tmp_path: Path) -> None:
    inner = run(2, parent_run_id="r-1", trace_id="r-1", run_type="retriever",
                outputs={"documents": [{"page_content": "One.", "metadata": {"source": "a.txt"}}]})  # fmt: skip
    export = read(tmp_path, [], run(child_runs=[inner]))
    assert [(one.text, one.document_id) for one in export.items["r-1"].contexts] == [("One.", "a.txt")]


def test_runs_over_one_example_are_of_one_group(tmp_path: Path) -> None:
    example = {"id": "e", "dataset_id": "d", "inputs": {"question": "Why?"}, "outputs": {"answer": "So."}}
    runs = [run(n, reference_example_id="e", inputs={"question": f"Why? ({n})"}) for n in (1, 2)]
    export = read(tmp_path, [], *runs, examples=[example])
    assert {(item.group, item.reference_answer) for item in export.items.values()} == {("Why?", "So.")}
    assert [item.question for item in export.items.values()] == ["Why? (1)", "Why? (2)"]


def test_a_run_that_failed_is_named_with_its_feedback(tmp_path: Path) -> None:
    export = read(
        tmp_path, [feedback("model", 0, run_id="r-2")], run(), run(2, outputs=None, error="Timeout")
    )
    assert export.skipped == {
        "a run without outputs: it failed, or was cut off": 1,
        "a score of an item that the export does not hold": 1,
    }


def test_feedback_alone_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    alone = tmp_path / "feedback.jsonl"
    shutil.copy(ITSELF[1], alone)
    assert guess([alone]) == "langsmith"
    with pytest.raises(InputError, match="export the runs"):
        read_export([alone], "langsmith")


def test_what_is_of_another_type_than_it_should_be_is_refused_or_counted(tmp_path: Path) -> None:
    document = {"page_content": "One.", "metadata": {"source": "a"}}
    chat = {"messages": [[{"type": "human", "content": "Why?"}]]}
    whole = {
        "runs": [run(inputs=chat, outputs={"generations": [[{"text": "So."}]]}, feedback_stats={"a": {}}),
                 run(2, run_type="retriever", parent_run_id="r-1", trace_id="r-1", outputs={"documents": [document]})],
        "feedback": [feedback("app", 1), feedback("model", None, extra={"error": True})],
        "examples": [{"id": "e", "dataset_id": "d", "inputs": {"question": "Why?"}, "outputs": {"answer": "So."}}],
    }  # fmt: skip
    assert read_spoilt(tmp_path, "langsmith", {f"{name}.json": rows for name, rows in whole.items()}) > 50
