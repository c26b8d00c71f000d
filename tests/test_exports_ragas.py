"""Ragas' tables of results and files of annotations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.exchange.exports import formats, read_export
from tests.support.exports import FIXTURES, read_spoilt, written

REAL = FIXTURES / "ragas"


def test_the_words_of_a_metric_are_annotated_too(tmp_path: Path) -> None:
    one = {"metric_input": {"user_input": "Q?", "response": "A."}, "metric_output": "pass", "prompts": {}}
    given = [
        {**one, "is_accepted": True},
        {**one, "is_accepted": False, "target": "fail"},
        {**one, "is_accepted": False},
    ]
    export = read_export([written(tmp_path / "a.json", {"tone": given})], "ragas")
    assert [one.value for one in export.ratings] == ["fail"], "the later one of the same sample counts"
    assert [one.value for one in export.judgements] == ["pass"] * 3
    assert export.skipped["a verdict that was rejected without saying what is right"] == 1


def old(**further: Any) -> dict[str, Any]:
    return {
        "question": "Q?",
        "answer": "A.",
        "contexts": ["One.", "Two."],
        "ground_truth": "Right.",
        **further,
    }


def test_the_names_of_version_0_1_are_read(tmp_path: Path) -> None:
    rows = [old(faithfulness=0.5), old(question="R?", ground_truths=["a", "b"], faithfulness=1)]
    path = written(tmp_path / "a.json", rows)
    assert formats()["ragas"].holds([path])
    export = read_export([path], "ragas")
    first, second = export.items.values()
    assert (first.question, first.answer, first.reference_answers) == ("Q?", "A.", ("Right.",))
    assert second.reference_answers == ("a", "b") and [one.text for one in second.contexts] == [
        "One.",
        "Two.",
    ]


@pytest.mark.parametrize("rows", [[old()], [old(score=1)], [{"input": "a", "output": "b"}]])
def test_a_table_of_somebody_else_is_not_taken_for_ragas(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    assert not formats()["ragas"].holds([written(tmp_path / "a.json", rows)])


@pytest.mark.parametrize(
    ("column", "values", "judged"),
    [
        ("verdict", ["pass", "fail"], True),
        ("rubrics_score", [5, 1], True),
        ("failed_throughout", [None, None], True),
        ("tokens", [512, 80], False),
        ("category", ["sport", "news"], False),
        ("trace", [{"a": 1}, {"a": 2}], False),
    ],
)
def test_a_column_is_a_judge_where_its_values_are_a_metrics(
    tmp_path: Path, column: str, values: list[Any], judged: bool
) -> None:
    rows = [{"user_input": f"{n}?", "response": "A.", column: value} for n, value in enumerate(values)]
    export = read_export([written(tmp_path / "a.json", rows)], "ragas")
    assert (len(export.judgements) == 2) is judged
    assert judged or any(column in note for note in export.notes)


def test_an_answer_that_looks_like_a_list_stays_text(tmp_path: Path) -> None:
    rows = [
        {"user_input": "[1] What?", "response": "['not', 'a list']", "reference": "[7]", "faithfulness": 1}
    ]
    (item,) = read_export([written(tmp_path / "a.json", rows)], "ragas").items.values()
    assert (item.question, item.answer, item.reference_answer) == ("[1] What?", "['not', 'a list']", "[7]")


@pytest.mark.parametrize("name", ["result.json", "annotations.json", "annotations_of_one.json"])
def test_a_file_with_any_value_spoilt_never_ends_in_a_traceback(tmp_path: Path, name: str) -> None:
    value = json.loads((REAL / name).read_text())
    if isinstance(value, list):
        value = value[:2]
    elif "closeness" in value:
        value["closeness"] = value["closeness"][:1]
    assert read_spoilt(tmp_path, "ragas", {"a.json": value}) > 50


def test_a_table_of_other_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no results of Ragas"):
        read_export([written(tmp_path / "a.csv", "a,b\nx,y\n")], "ragas")
