"""promptfoo's results, and what is easily taken for something else in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from judgecal.exchange.exports import Export, read_export
from tests.support.exports import read_spoilt, written

RUBRIC = {"type": "llm-rubric", "value": "is right", "provider": "openai:gpt-4o"}


def component(assertion: dict[str, Any] | None, *, score: float = 1, **further: Any) -> dict[str, Any]:
    own = {"pass": score >= 0.5, "score": score, "reason": "so", **further}
    return {**own, "assertion": assertion} if assertion else own


def row(*components: dict[str, Any], output: Any = "So.", n: int = 0, **further: Any) -> dict[str, Any]:
    grading = {"pass": True, "score": 1, "reason": "", "componentResults": list(components)}
    own = {
        "testIdx": n,
        "promptIdx": 0,
        "promptId": "p",
        "provider": {"id": "small", "label": ""},
        "failureReason": 0,
    }
    own |= {
        "vars": {"question": "Why?", "expected": "So."},
        "response": {"output": output},
        "gradingResult": grading,
    }
    return {
        **own,
        "success": True,
        "score": 1,
        "testCase": {"vars": {}, "assert": [], "options": {}},
        **further,
    }


def read(tmp_path: Path, *rows: dict[str, Any]) -> Export:
    whole = {
        "evalId": "eval-1",
        "results": {"version": 3, "prompts": [], "results": list(rows)},
        "config": {},
    }
    return read_export([written(tmp_path / "results.json", whole)], "promptfoo")


def verdicts(export: Export) -> list[tuple[str, Any]]:
    return [(one.by, one.value) for one in export.judgements]


def test_a_persons_override_is_a_rating_and_leaves_the_judge_its_verdict(tmp_path: Path) -> None:
    """The person turns `success`, `score` and the reason of the row over; neither is read."""
    human = component({"type": "human"}, score=0, comment="It is wrong.")
    grading = {
        "pass": False,
        "score": 0,
        "reason": "Manual result",
        "componentResults": [component(RUBRIC), human],
    }
    export = read(tmp_path, row(gradingResult=grading, success=False, score=0))
    assert verdicts(export) == [("llm-rubric@openai:gpt-4o", 1.0)]
    assert [(one.value, one.note) for one in export.ratings] == [(False, "It is wrong.")]


def test_the_members_of_a_set_of_assertions_count_once(tmp_path: Path) -> None:
    members = [component({"type": "contains", "value": "a"}), component(RUBRIC, score=0.25)]
    whole = component(None, score=0.6, componentResults=members)
    export = read(tmp_path, row(whole, *members, component({"type": "latency"})))
    assert verdicts(export) == [("contains", 1.0), ("llm-rubric@openai:gpt-4o", 0.25), ("latency", 1.0)]
    assert export.skipped == {"a set of assertions, whose members were taken": 1}


def test_the_parts_of_an_assertion_are_not_further_verdicts_of_it(tmp_path: Path) -> None:
    script = {"type": "python", "value": "file://x.py"}
    parts = [component(script, score=0), component(script)]
    export = read(
        tmp_path, row(component(script, score=0.5, componentResults=parts), *parts, component(RUBRIC))
    )
    assert verdicts(export) == [("python", 0.5), ("llm-rubric@openai:gpt-4o", 1.0)]


def test_a_judge_that_failed_is_unscored_and_not_a_zero(tmp_path: Path) -> None:
    """Recent versions mark it; older ones leave its assertion out, which the test then tells by the place."""
    marked = component(RUBRIC, score=0, metadata={"graderError": True}, reason="429")
    bare = component(None, score=0, reason="no JSON")
    test = {
        "assert": [RUBRIC, {"type": "g-eval", "metric": "sense"}],
        "options": {"provider": {"id": "judge"}},
    }
    export = read(tmp_path, row(marked, bare, testCase=test))
    assert [(one.by, one.value, one.error) for one in export.judgements] == [
        ("llm-rubric@openai:gpt-4o", None, "429"), ("sense@judge", None, "no JSON"),
    ]  # fmt: skip


def test_two_rubrics_of_one_row_are_two_judges_and_one_twice_is_a_repeat(tmp_path: Path) -> None:
    other = {**RUBRIC, "value": "is kind"}
    export = read(tmp_path, row(component(RUBRIC), component(other), component(RUBRIC)))
    assert [(one.by.split("@")[0], one.repeat) for one in export.judgements] == [
        ("llm-rubric", 0), ("llm-rubric (2)", 0), ("llm-rubric", 1),
    ]  # fmt: skip


def test_a_row_without_an_output_is_a_skip_and_an_object_is_an_answer(tmp_path: Path) -> None:
    failed = row(output=None, n=1, failureReason=2, gradingResult=None, error="503")
    answers = ({"answer": "So.", "sources": ["a"]}, {"a": 1, "b": 2}, 7)
    export = read(tmp_path, failed, *(row(output=output, n=n) for n, output in enumerate(answers, start=2)))
    assert [item.answer for item in export.items.values()] == ["So.", '{"a": 1, "b": 2}', "7"]
    assert export.skipped == {"a row without an output: the provider failed": 1}


def test_repeats_without_an_index_are_one_item_where_the_output_is_the_same(tmp_path: Path) -> None:
    rows = [row(component(RUBRIC, score=score), n=n) for n, score in enumerate((1, 0))]
    export = read(tmp_path, *rows, row(component(RUBRIC), n=2, output="Otherwise."))
    assert len(export.items) == 2
    assert [(one.repeat, one.value) for one in export.judgements] == [(0, 1.0), (1, 0.0), (0, 1.0)]
    assert len({item.group for item in export.items.values()}) == 1


def test_what_is_of_another_type_than_it_should_be_is_refused_or_counted(tmp_path: Path) -> None:
    members = [component({"type": "contains", "metric": "m"}), component(RUBRIC)]
    test = {"assert": [RUBRIC], "options": {"provider": "j"}}
    rated = row(component(None, componentResults=members), *members, component({"type": "human"}))
    rows = [rated, row(component(None, score=0), n=1, testCase=test)]
    whole = {"evalId": "eval-1", "results": {"version": 3, "results": rows}, "config": {}}
    assert read_spoilt(tmp_path, "promptfoo", {"a.json": whole}) > 50


def test_an_assertion_that_threw_gave_no_verdict(tmp_path: Path) -> None:
    """promptfoo writes a score of 0; a rubric may quote such words, and then it is one."""
    threw = [
        ("javascript", "Custom function threw error: x is not defined\nStack Trace: ..."),
        ("not-javascript", "Custom function threw error: x"), ("python", "Python code execution failed: no module"),
        ("ruby", "Ruby code execution failed: x"), ("webhook", "Webhook error: Request timed out"),
        ("regex", "Invalid regex pattern: Unterminated group"),
    ]  # fmt: skip
    said = [
        ("javascript", "Custom function returned false"),
        ("llm-rubric", "Custom function threw error: it says so"),
    ]
    given = [
        component({"type": kind, "value": "x"}, score=0, reason=reason) for kind, reason in [*threw, *said]
    ]
    export = read(tmp_path, row(*given))
    assert [one.value for one in export.judgements if one.error is None] == [0, 0]
    assert [one.error for one in export.judgements if one.error] == [reason for _, reason in threw]
