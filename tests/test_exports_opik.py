"""Opik's experiments and traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.exchange.exports import formats, read_export
from tests.support.exports import FIXTURES, read_spoilt, written

REAL = FIXTURES / "opik"


def test_a_table_of_an_experiment_alone_holds_no_text() -> None:
    with pytest.raises(InputError, match="an item without any text"):
        read_export([REAL / "experiment_csv" / "experiments_first.csv"], "opik")


def trace(**score: Any) -> dict[str, Any]:
    given = {"name": "good", "value": 0.5, "source": "ui", **score}
    return {
        "trace": {"id": "t", "input": "What?", "output": "This.", "feedback_scores": [given]},
        "spans": [],
    }


@pytest.mark.parametrize(
    ("score", "raters", "judges", "skip"),
    [
        ({"last_updated_by": "Bo"}, ["Bo"], [], ""),
        ({"source": "online_scoring", "last_updated_by": "Bo"}, [], ["good"], ""),
        ({"source": "unknown"}, [], [], "a score of the source unknown"),
        ({"source": None}, [], [], "a mean over people and judges whose sources are not told"),
        (
            {"value_by_author": {"Bo": {"value": 0}, "Ann": {"value": 1, "source": "sdk"}}},
            ["Bo"],
            ["good"],
            "",
        ),
        ({"value_by_author": {"Bo_1": {"value": 0.0, "author": "Bo"}}}, ["Bo"], [], ""),
    ],
)
def test_a_score_is_its_sources(
    tmp_path: Path, score: dict[str, Any], raters: list[str], judges: list[str], skip: str
) -> None:
    export = read_export([written(tmp_path / "a.json", trace(**score))], "opik")
    assert [one.by for one in export.ratings] == raters and [one.by for one in export.judgements] == judges
    assert set(export.skipped) == ({skip} if skip else set())
    assert all(one.value in (0, 0.5, 1) for one in (*export.ratings, *export.judgements))


def test_two_scores_of_one_judge_are_repeats(tmp_path: Path) -> None:
    authors = {name: {"value": value, "source": "sdk"} for name, value in (("a", 0.25), ("b", 0.75))}
    export = read_export([written(tmp_path / "a.json", trace(value_by_author=authors))], "opik")
    assert [(one.by, one.repeat, one.value) for one in export.judgements] == [
        ("good", 0, 0.25),
        ("good", 1, 0.75),
    ]


def test_two_experiments_on_one_dataset_are_two_systems(tmp_path: Path) -> None:
    files = []
    for name in ("first", "second"):
        value = json.loads((REAL / "experiment_first.json").read_text())
        value["experiment"]["name"] = name
        for item in value["items"]:
            item["evaluation_task_output"] = {"output": f"By the {name}."}
        files.append(written(tmp_path / f"{name}.json", value))
    export = read_export(files, "opik")
    assert len(export.items) == 6 and {item.system for item in export.items.values()} == {"first", "second"}
    assert len({item.group for item in export.items.values()}) == 3


def test_results_of_assertions_are_counted_and_skipped(tmp_path: Path) -> None:
    value = json.loads((REAL / "experiment_first.json").read_text())
    value["items"][0]["assertion_results"] = [{"value": "It is kind.", "passed": True}, 7]
    export = read_export([written(tmp_path / "a.json", value)], "opik")
    assert export.skipped["the result of an assertion, which is held against one item only"] == 1
    assert export.skipped["no assertion, where one should stand"] == 1


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "dataset_a.json", {"name": "cases", "items": []})
    assert not formats()["opik"].holds([path])
    with pytest.raises(InputError, match=r"dataset_a\.json: neither an experiment nor a trace"):
        read_export([REAL / "trace_0.json", path], "opik")


@pytest.mark.parametrize("name", ["trace_0.json", "experiment_first.json"])
def test_a_file_with_any_value_spoilt_never_ends_in_a_traceback(tmp_path: Path, name: str) -> None:
    whole = json.loads((REAL / name).read_text())
    whole = {key: value[:1] if isinstance(value, list) else value for key, value in whole.items()}
    assert read_spoilt(tmp_path, "opik", {"a.json": whole}) > 50
