"""DeepEval's test runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.exchange.exports import read_export
from tests.support.exports import read_or_refused, read_spoilt, written


def metric(name: str = "Correctness [GEval]", **further: Any) -> dict[str, Any]:
    return {
        "name": name,
        "threshold": 0.5,
        "success": True,
        "score": 0.75,
        "reason": "It is close.",
        **further,
    }


def case(n: int, *metrics: dict[str, Any], **further: Any) -> dict[str, Any]:
    own = {"name": f"test_case_{n}", "input": f"Question {n}?", "actualOutput": f"Answer {n}.", "order": n}
    return {**own, "expectedOutput": "Right.", "metricsData": list(metrics), **further}


def run(*cases: dict[str, Any], **further: Any) -> dict[str, Any]:
    return {"testCases": list(cases), "conversationalTestCases": [], "metricsScores": [], **further}


RUN = run(
    case(0, metric(evaluationModel="gpt-4o", evaluationCost=0.002), metric(flaky=True)),
    case(
        1, metric(score=None, error="TimeoutError: no reply"), retrievalContext=["One.", {"context": "Two."}]
    ),
    hyperparameters={"model": "small", "temperature": 0},
    conversationalTestCases=[
        {
            "name": "conversational_test_case_0",
            "scenario": "A parcel is late.",
            "turns": [
                {"role": "user", "content": "Hello?", "order": 0},
                {"role": "assistant", "content": "Hello.", "order": 1},
                {"role": "user", "content": "Where is it?", "order": 2},
                {"role": "assistant", "content": "On its way.", "order": 3},
            ],
            "metricsData": [metric("Role Adherence")],
        }
    ],
)


def test_a_run_is_read_to_the_last_metric(tmp_path: Path) -> None:
    export = read_export([written(tmp_path / "run.json", RUN)], "deepeval")
    assert (export.n_records, len(export.items), len(export.judgements)) == (7, 3, 4)
    first, second, third = export.items.values()
    assert (first.question, first.answer, first.reference_answer) == ("Question 0?", "Answer 0.", "Right.")
    assert first.system == "model=small, temperature=0"
    assert [one.text for one in second.contexts] == ["One.", "Two."]
    assert (third.question, third.answer) == ("Where is it?", "On its way.")
    assert [turn.content for turn in third.conversation] == ["Hello?", "Hello."]
    assert third.fields == {"scenario": "A parcel is late."}
    verdicts = [(one.by, one.value, one.error, one.cost_usd) for one in export.judgements]
    assert verdicts == [
        ("Correctness [GEval]@gpt-4o", 0.75, None, 0.002),
        ("Correctness [GEval]", 0.75, None, None),
        ("Correctness [GEval]", None, "TimeoutError: no reply", None),
        ("Role Adherence", 0.75, None, None),
    ]
    assert any("flaky" in note for note in export.notes)


def test_ids_do_not_hang_on_the_order(tmp_path: Path) -> None:
    cases = [case(n, metric()) for n in range(3)]
    turned = [{**one, "name": f"test_case_{n}", "order": n} for n, one in enumerate(reversed(cases))]
    there = read_export([written(tmp_path / "a.json", run(*cases))], "deepeval")
    back = read_export([written(tmp_path / "b.json", run(*turned))], "deepeval")
    by_question = {item.question: item.item_id for item in there.items.values()}
    assert by_question == {item.question: item.item_id for item in back.items.values()}


@pytest.mark.parametrize(
    ("names", "kept"),
    [(["refund", "parcel"], True), (["same", "same"], False), (["test_it[case0]", "test_it[case1]"], False)],
)
def test_a_name_that_a_user_gave_is_the_id_where_it_names_one_case(
    tmp_path: Path, names: list[str], kept: bool
) -> None:
    cases = [case(n, metric(), name=name) for n, name in enumerate(names)]
    export = read_export([written(tmp_path / "a.json", run(*cases))], "deepeval")
    assert len(export.items) == 2
    assert (list(export.items) == names) is kept


def test_metrics_of_one_name_and_model_are_repeats(tmp_path: Path) -> None:
    judged = case(0, metric(score=0.1), metric(score=0.2), metric(score=0.3, evaluationModel="other"))
    export = read_export([written(tmp_path / "a.json", run(judged))], "deepeval")
    assert [(one.by, one.repeat, one.value) for one in export.judgements] == [
        ("Correctness [GEval]", 0, 0.1),
        ("Correctness [GEval]", 1, 0.2),
        ("Correctness [GEval]@other", 0, 0.3),
    ]


def test_two_runs_of_one_case_are_repeats(tmp_path: Path) -> None:
    files = [written(tmp_path / f"{n}.json", run(case(0, metric(score=n / 4)))) for n in range(2)]
    export = read_export(files, "deepeval")
    assert [(one.repeat, one.value) for one in export.judgements] == [(0, 0.0), (1, 0.25)]
    assert export.skipped == {"an item that stands there more than once": 1}


@pytest.mark.parametrize("text", ["[]", "7", '{"testCases": [', "", '{"testCases": [1, null]}'])
def test_what_is_no_run_is_refused_or_skipped(tmp_path: Path, text: str) -> None:
    export = read_or_refused(written(tmp_path / "a.json", text), "deepeval")
    assert export is None or (not export.items and export.skipped.total() == export.n_records)


def test_a_run_with_any_value_spoilt_never_ends_in_a_traceback(tmp_path: Path) -> None:
    assert read_spoilt(tmp_path, "deepeval", {"a.json": RUN}) > 100


def test_an_error_lists_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.json: no test run of DeepEval"):
        read_export([written(tmp_path / "a.json", "[]")], "deepeval")
