"""MLflow's traces and assessments, and what is easily taken for something else in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgecal.exchange.exports import Export, guess, person, read_export
from tests.support.exports import read_spoilt, written

JUDGE = {"source_type": "LLM_JUDGE", "source_id": "openai:/gpt-4o"}
CODE = {"source_type": "CODE", "source_id": "correctness"}
ADA = {"source_type": "HUMAN", "source_id": "ada@example.com"}


def assessment(
    value: Any, source: dict[str, str], name: str = "correctness", **further: Any
) -> dict[str, Any]:
    kind = {"feedback": {"value": value}}
    own = {
        "assessment_id": "a-1",
        "assessment_name": name,
        "source": source,
        "create_time": "2026-11-22T12:00:00Z",
    }
    return {**own, **kind, "valid": True, "metadata": {}, **further}


def expectation(name: str, value: Any) -> dict[str, Any]:
    found = (
        {"value": value}
        if isinstance(value, str | bool)
        else {"serialized_value": {"value": json.dumps(value)}}
    )
    own = assessment(None, ADA, name, expectation=found)
    del own["feedback"]
    return own


def span(n: int, kind: str, output: Any) -> dict[str, Any]:
    attributes = {"mlflow.spanType": json.dumps(kind), "mlflow.spanOutputs": json.dumps(output)}
    return {
        "span_id": f"{n:016x}",
        "parent_span_id": None if n == 1 else f"{1:016x}",
        "attributes": attributes,
    }


def trace(*assessments: dict[str, Any], n: int = 1, **further: Any) -> dict[str, Any]:
    own = {
        "trace_id": f"tr-{n}",
        "request": {"question": "Why?"},
        "response": "So.",
        "trace_metadata": {},
        "tags": {},
    }
    return {**own, "spans": [span(1, "CHAIN", "So.")], "assessments": list(assessments), **further}


def read(tmp_path: Path, *traces: dict[str, Any]) -> Export:
    return read_export([written(tmp_path / "traces.json", list(traces))], "mlflow")


def said(export: Export) -> list[tuple[str, Any, str]]:
    return [(one.by, one.value, one.note) for one in export.judgements]


def test_the_last_value_of_a_name_in_result_df_does_not_hide_the_others(tmp_path: Path) -> None:
    """`{name}/value` is by name alone: here an expectation of that name stands over the judge and the
    person."""
    row = trace(assessment("no", JUDGE), assessment("yes", ADA), expectation("correctness", "as in the book"))
    export = read(tmp_path, {**row, "correctness/value": "as in the book"})
    assert said(export) == [("correctness@openai/gpt-4o", "no", "")]
    assert [one.value for one in export.ratings] == ["yes"]
    assert next(iter(export.items.values())).fields == {"correctness": "as in the book"}


def test_a_corrected_judge_keeps_its_verdict_and_an_overridden_rating_goes(tmp_path: Path) -> None:
    export = read(
        tmp_path,
        trace(
            assessment("no", JUDGE, valid=False, rationale="Too short."),
            assessment("yes", ADA, overrides="a-1", valid=False, create_time="2026-11-22T12:00:01Z"),
            assessment("no", ADA, overrides="a-2", create_time="2026-11-22T12:00:02Z"),
        ),
    )
    assert said(export) == [("correctness@openai/gpt-4o", "no", "Too short.")]
    assert [(one.by, one.value) for one in export.ratings] == [(person("ada@example.com"), "no")]
    assert export.skipped == {"a rating that was overridden": 1}


def test_who_corrects_a_judge_has_seen_its_verdict(tmp_path: Path) -> None:
    judged = {**assessment("no", JUDGE, valid=False), "assessment_id": "a-9"}
    ben = {"source_type": "HUMAN", "source_id": "ben"}
    export = read(tmp_path, trace(judged, assessment("yes", ADA, overrides="a-9"), assessment("yes", ben)))
    assert [one.saw_draft for one in export.ratings] == [True, False]


def test_the_later_of_two_ratings_counts_whatever_their_order(tmp_path: Path) -> None:
    late, early = (
        assessment(value, ADA, create_time=f"2026-11-22T12:00:0{n}.5Z") for value, n in (("b", 2), ("a", 1))
    )
    assert [one.value for one in read(tmp_path, trace(late, early)).ratings] == ["b"]


def test_runs_are_joined_by_input_output_and_contexts(tmp_path: Path) -> None:
    export = read(
        tmp_path,
        trace(assessment("yes", ADA), expectation("expected_response", "So."), n=1),
        trace(assessment("no", JUDGE), n=2),
        trace(assessment("yes", JUDGE), n=3, response="Otherwise."),
    )
    assert len(export.items) == 2
    both = export.ratings[0].item_id
    assert [one.item_id == both for one in export.judgements] == [True, False]
    assert export.items[both].reference_answer == "So."


def test_who_gave_a_score_is_told_by_the_source_and_never_by_the_name(tmp_path: Path) -> None:
    person_as_judge = assessment(True, {"source_type": "HUMAN", "source_id": "gpt-4o"}, "llm_judge")
    judge_as_person = assessment(3.0, {"source_type": "AI_JUDGE", "source_id": "default"}, "human_rating")
    export = read(tmp_path, trace(person_as_judge, judge_as_person, assessment(1, {"source_type": "?"})))
    assert [(one.by, one.value) for one in export.ratings] == [("gpt-4o", True)]
    assert said(export) == [("human_rating", 3.0, "")]
    assert export.skipped == {"a score of the source ?": 1}


def test_a_judge_that_raised_is_unscored_under_the_name_of_its_model(tmp_path: Path) -> None:
    """MLflow records it as code. Where two models judged under one name, it cannot be told which of them
    failed."""
    failed = assessment(
        None, CODE, feedback={"value": None, "error": {"error_code": "X", "error_message": "429"}}
    )
    other = assessment("yes", {"source_type": "LLM_JUDGE", "source_id": "anthropic:/claude"})
    export = read(tmp_path, trace(assessment("yes", JUDGE)), trace(failed, response="Otherwise."))
    assert [(one.by, one.error) for one in export.judgements][1] == ("correctness@openai/gpt-4o", "429")
    export = read(tmp_path, trace(assessment("yes", JUDGE), other, failed))
    assert [one.by for one in export.judgements if one.error] == ["correctness"]
    assert [one.repeat for one in export.judgements] == [0, 0, 0]


def test_of_several_retrievers_the_span_tells_whose_context_was_judged(tmp_path: Path) -> None:
    spans = [span(1, "CHAIN", "So."), span(2, "RETRIEVER", [{"page_content": "one"}]),
             span(3, "RETRIEVER", [{"page_content": "two"}, {"page_content": "three"}])]  # fmt: skip
    of_second = assessment("yes", JUDGE, "chunk", span_id=f"{3:016x}", metadata={"chunk_index": "1"})
    of_either = assessment("yes", JUDGE, "chunk", span_id=f"{1:016x}", metadata={"chunk_index": "0"})
    export = read(tmp_path, trace(of_second, of_either, spans=spans))
    assert [one.text for one in next(iter(export.items.values())).contexts] == ["one", "two", "three"]
    assert [one.unit for one in export.judgements] == ["chunk:2"]
    assert export.skipped.total() == 1
    beyond = assessment("yes", JUDGE, "chunk", span_id=f"{3:016x}", metadata={"chunk_index": "2"})
    export = read(tmp_path, trace(beyond, spans=spans))
    assert export.skipped == {"a score of a context that the item does not have": 1}


def test_sessions_scorers_own_calls_and_failed_traces_are_no_items(tmp_path: Path) -> None:
    of_session = assessment(0.5, JUDGE, metadata={"mlflow.trace.session": "s"})
    own = trace(assessment("yes", JUDGE), n=2, tags={"mlflow.trace.sourceScorer": "correctness"})
    empty = trace(n=3, request=None, response=None, spans=[])
    export = read(tmp_path, trace(of_session, assessment(["a"], JUDGE)), own, empty)
    assert len(export.items) == 1
    assert [(one.value, one.error) for one in export.judgements] == [(None, "no verdict was recorded")]
    assert export.skipped == {
        "a trace of a scorer's own call": 1,
        "a score of a trace that is no item": 1,
        "a trace without input and output": 1,
        "a score of a whole session": 1,
    }


def test_a_chat_is_its_last_question_after_its_turns(tmp_path: Path) -> None:
    messages = [("system", "Be brief."), ("user", "Who?"), ("assistant", "She."), ("user", "Why?")]
    request = {"messages": [{"role": role, "content": text} for role, text in messages]}
    response = {"choices": [{"message": {"role": "assistant", "content": "So."}}]}
    item = next(iter(read(tmp_path, trace(request=request, response=response)).items.values()))
    assert (item.question, item.answer) == ("Why?", "So.")
    assert [turn.content for turn in item.conversation] == ["Be brief.", "Who?", "She."]


@pytest.mark.parametrize("orient", ["records", "columns", "index", "split"])
def test_a_frame_is_read_however_pandas_turned_it(orient: str, tmp_path: Path) -> None:
    rows = [trace(assessment("yes", ADA)), trace(assessment("no", JUDGE), n=2, response="Otherwise.")]
    columns = list(rows[0])
    turned = {
        "records": rows,
        "columns": {name: {str(n): row[name] for n, row in enumerate(rows)} for name in columns},
        "index": {str(n): row for n, row in enumerate(rows)},
        "split": {
            "columns": columns,
            "index": [0, 1],
            "data": [[row[name] for name in columns] for row in rows],
        },
    }
    file = written(tmp_path / "frame.json", turned[orient])
    assert guess([file]) == "mlflow"
    export = read_export([file], "mlflow")
    assert (len(export.items), len(export.ratings), len(export.judgements)) == (2, 1, 1)


def test_traces_as_to_json_writes_them(tmp_path: Path) -> None:
    attributes = {"mlflow.spanInputs": '{"question": "Why?"}', "mlflow.spanOutputs": '"So."'}
    info = {"trace_id": "tr-1", "assessments": [assessment("yes", ADA)]}
    one = {"info": info, "data": {"spans": [{"span_id": "1", "attributes": attributes}]}}
    export = read_export([written(tmp_path / "t.jsonl", json.dumps(one))], "mlflow")
    assert [(item.question, item.answer) for item in export.items.values()] == [("Why?", "So.")]
    assert [one.value for one in export.ratings] == ["yes"]


def test_what_is_of_another_type_than_it_should_be_is_refused_or_counted(tmp_path: Path) -> None:
    failed = assessment(
        None, CODE, feedback={"value": None, "error": {"error_code": "X", "error_message": "429"}}
    )
    chunk = assessment("yes", JUDGE, "chunk", span_id=f"{2:016x}", metadata={"chunk_index": "0"})
    expected = [expectation("expected_facts", ["a", "b"]), expectation("expected_response", "So.")]
    spans = [
        span(1, "CHAIN", "So."),
        span(2, "RETRIEVER", [{"page_content": "one", "metadata": {"doc_uri": "d"}}]),
    ]
    whole = [trace(assessment("yes", ADA), failed, chunk, *expected, spans=spans)]
    assert read_spoilt(tmp_path, "mlflow", {"a.json": whole}) > 50
