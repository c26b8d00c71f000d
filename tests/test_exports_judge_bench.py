"""JUDGE-BENCH's files: every score is counted, a metric is chosen by its name, on the scale that the file
declares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgecal.exchange.exports import guess, read_export
from judgecal.goldset import load_gold
from judgecal.workspace import Workspace
from tests.support.command import Run, one_object

GRADED = {
    "metric": "Relevance",
    "category": "graded",
    "prompt": "1 to 5? {{ instance }}",
    "worst": 1,
    "best": 5,
}
REVERSED = {"metric": "Effort", "category": "graded", "prompt": "?", "worst": 7, "best": 1}
CONTINUOUS = {"metric": "Slider", "category": "continuous", "prompt": "?", "worst": 0, "best": 1}
YES_NO = {"metric": "Missing Steps", "category": "categorical", "prompt": "?", "labels_list": ["yes", "no"]}
WORDS = {"metric": "risk", "category": "categorical", "prompt": "?", "labels_list": ["Serious", "Critical"]}


def said(*scores: Any, **more: Any) -> dict[str, Any]:
    return {**more, "individual_human_scores": list(scores)}


def task(*instances: dict[str, Any]) -> dict[str, Any]:
    asked = [GRADED, REVERSED, CONTINUOUS, YES_NO, WORDS]
    return {
        "dataset": "d",
        "dataset_url": "u",
        "annotations": asked,
        "expert_annotator": "true",
        "instances": instances,
    }


INSTANCES = (
    {"id": 1, "instance": "### Summary\n\ns\n\n### Article\n\na",
     "annotations": {"Relevance": said(4, 5, 1, mean_human=3.33), "Missing Steps": said("no"), "Effort": said(7, 1),
                     "Slider": said(0.25, 1), "risk": said("Serious", "Critical")}},
    {"id": 2, "instance": {"query": "why?", "response": "because", "the source": "text"},
     "annotations": {"Relevance": said(None, 2), "Missing Steps": {"majority_human": "yes"}, "Effort": said(2, 3),
                     "Slider": said(0.5), "risk": said("Critical")}},
    {"id": 3, "instance": ["a", "b"], "annotations": {"Relevance": said(), "other": said(3)}},
)  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "task.json"
    path.write_text(json.dumps(task(*INSTANCES)), encoding="utf-8")
    return path


def test_it_is_known_by_its_form_and_all_is_counted(file: Path) -> None:
    assert guess([file]) == "judge-bench"
    found = read_export([file], "judge-bench")
    n_scores = 3 + 1 + 2 + 2 + 2 + 2 + 1 + 2 + 1 + 1 + 1
    assert found.n_records == 3 + n_scores == len(found.items) + len(found.ratings) + found.skipped.total()
    assert found.skipped == {"a rating without a label": 1}
    one, two, three = found.items.values()
    assert one.fields == {"instance": INSTANCES[0]["instance"]} and three.fields == {"instance": '["a", "b"]'}
    assert (two.question, two.answer, dict(two.fields), two.group) == (
        "why?",
        "because",
        {"the_source": "text"},
        "why?",
    )
    assert found.scales == {"Relevance": "ordinal:1:5", "Effort": "ordinal:1:7", "Slider": "points:0:1",
                            "Missing Steps": "binary", "risk": "nominal"}  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "scale", "raters", "labels"),
    [
        ("Relevance", "ordinal:1:5", {"r1": 1, "r2": 2, "r3": 1}, [4, 5, 1, 2]),
        ("Effort", "ordinal:1:7", {"r1": 2, "r2": 2}, [7, 1, 2, 3]),
        ("Slider", "points:0:1", {"r1": 2, "r2": 1}, [0.25, 1, 0.5]),
        ("Missing Steps", "binary", {"majority": 1, "r1": 1}, [0, 1]),
        ("risk", "nominal", {"r1": 2, "r2": 1}, ["Serious", "Critical", "Critical"]),
    ],
)
def test_a_metric_by_its_name(
    judgecal: Run, file: Path, metric: str, scale: str, raters: dict[str, int], labels: list[Any]
) -> None:
    found = one_object(judgecal("gold", "import", file, "--as", "task", "--label", metric, "--json"))
    assert found["raters"] == raters and found["n_items"] == 3
    assert found["n_rows"] == 3 + sum(raters.values()) + sum(found["skipped"].values())
    here = Path.cwd()
    gold = load_gold("task", workspace=Workspace(here, here / "experiments"))
    assert str(gold.scale) == scale
    assert sorted(map(str, (one.label for one in gold.ratings))) == sorted(
        str(gold.scale.read(one)) for one in labels
    )
    assert any("the places of the scores" in note for note in found["notes"])


def test_several_metrics_must_be_chosen_from(judgecal: Run, file: Path) -> None:
    ran = judgecal("gold", "import", file, "--as", "task")
    assert ran.code == 2 and "choose one with --label NAME: Relevance (4 by 3 people)" in ran.err
    ran = judgecal("gold", "import", file, "--as", "task", "--label", "relevance")
    assert ran.code == 2 and "did you mean Relevance" in ran.err


def test_scores_between_the_grades_are_points(tmp_path: Path) -> None:
    path = tmp_path / "task.json"
    scores = {"Relevance": said(4.5, 3)}
    path.write_text(json.dumps(task({"id": 1, "instance": "x", "annotations": scores})), encoding="utf-8")
    assert read_export([path], "judge-bench").scales["Relevance"] == "points:1:5"


@pytest.mark.parametrize(
    "text", ['{"annotations": [], "instances": []}', '[{"metric": "x"}]', "{}", '{"instances": 3}']
)
def test_other_files_are_not_taken_for_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    assert guess([path]) != "judge-bench"
