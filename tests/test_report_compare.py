"""The page of `compare`: what the command said, rebuilt from its summary alone, in every form and in the
index."""

from __future__ import annotations

import json
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from judgecal.experiment import CompareRun, read_experiment
from judgecal.experiment.compare import CompareResult
from judgecal.experiment.stored import find_experiment
from judgecal.workspace import find_workspace
from tests.support.command import Run, one_object, tree
from tests.support.pages import (
    ATTACK,
    Parsed,
    by_kind,
    cells_of,
    check_page,
    items_of,
    made_set,
    page_of,
    printed_by,
    recorded,
    told,
)

JUDGES = ("correctness_v1@embedded", "correctness_v3@embedded")


@pytest.fixture
def scored(judgecal: Run) -> str:
    """Two prompts on one model over all items of the starter, those of test among them."""
    ran = judgecal("score", "--signatures", "correctness_v1,correctness_v3", "--split", "all", "--name", "sc")
    assert ran.code == 0, ran.err
    return "sc"


@pytest.fixture
def taken_in(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> str:
    """Three recorded judges over items of dev: one right, one as right but for an unscored item, one lax."""
    made = made_set(workspace_dir)
    right = by_kind(made, "yes", "no", "no")
    judges = {"sharp": right, f"short {ATTACK}": [None, *right[1:]], "lax": by_kind(made, "yes", "yes", "no")}
    return recorded(judgecal, tmp_path, judges, made)


def test_the_page_of_two_recorded_judges(judgecal: Run, taken_in: str) -> None:
    printed = printed_by(judgecal, "compare", taken_in, "sharp", "lax")
    assert (printed["compared_from"], printed["decision"], printed["test_look"]) == (taken_in, "A", None)
    page = check_page(judgecal, printed, ["square", "pairs", "notes"], "+25.0 [+")
    cells = [(one["data-show"], text) for one, text in cells_of(page) if "data-show" in one]
    assert cells == [("pair:both", "40 (67%)"), ("pair:only B", "0 (0%)"),
                     ("pair:only A", "20 (33%)"), ("pair:none", "0 (0%)")]  # fmt: skip
    carried = items_of(page)
    pairs = [[mark for mark in item["marks"] if mark.startswith("pair:")] for item in carried["items"]]
    assert pairs == [["pair:only A"]] * 20 + [["pair:both"]] * 40 and carried["loud"] == 20
    assert told(printed["difference"]).startswith("0.250 [0.")
    assert f'<h1 id="decision">{printed["headline"]["sentence"]}</h1>' in unescape(page)
    assert page.count("<svg ") == 2  # the ladder, wide and narrow
    unscored = printed_by(judgecal, "compare", taken_in, "lax", f"short {ATTACK}")
    shown = Parsed(page_of(judgecal, unscored["experiment"]))
    assert {f"unscored {how}" for how in ("as wrong", "left out", "as right")} <= set(shown.text)
    assert not shown.all("img") and f"B: short {ATTACK}" in shown.text


def test_an_interval_without_0_beside_a_pair_that_holm_leaves_open_is_explained(
    judgecal: Run, taken_in: str, workspace_dir: Path
) -> None:
    stands = "Each interval looks at its pair alone."
    assert stands not in judgecal("compare", taken_in, "--name", "three").said
    summary = workspace_dir / "experiments" / "three" / "summary.json"
    found = json.loads(summary.read_text(encoding="utf-8"))
    for pair in found["pairs"]:  # as Holm leaves a pair with p between the level and a third of it
        pair["comparison"]["decision"] = "cannot tell"
    summary.write_text(json.dumps(found), encoding="utf-8")
    assert stands in judgecal("report", "three", "--full").said


def test_a_report_says_what_the_command_said_and_needs_nothing_else(
    judgecal: Run, scored: str, workspace_dir: Path
) -> None:
    said = judgecal("compare", scored, *JUDGES, "--name", "both", "--full").out
    printed = one_object(judgecal("compare", scored, *JUDGES, "--name", "both", "--json"))
    assert printed["test_looks"] == 1
    assert printed["test_look"].startswith("decision 1 on the test labels of starter")
    experiments = workspace_dir / "experiments"
    logs = {name: one for name, one in tree(experiments).items() if "looks" in name}
    assert set(logs) == {".test_looks.lock", "test_looks.jsonl"}
    for gone in (workspace_dir / "gold" / "starter", experiments / scored, workspace_dir / "signatures"):
        shutil.rmtree(gone)
    (workspace_dir / "signatures").mkdir()
    assert judgecal("report", "both", "--full").out == said
    assert printed["headline"]["sentence"] in unescape(page_of(judgecal, "both"))
    short = judgecal("report", "both", "--format", "md").out
    assert short.startswith("**○ cannot tell · We cannot tell ") and printed["run_line"] in short
    carried = one_object(judgecal("report", "both", "--json"))
    assert carried["headline"] == printed["headline"]
    assert carried["result"] == {key: one for key, one in printed.items() if key != "headline"}
    assert judgecal("report", "--all").code == 0
    index = Parsed((experiments / "index.html").read_text(encoding="utf-8"))
    listed = " ".join([printed["headline"]["sentence"], *printed["headline"]["because"]])
    assert listed in index.text and "both/report.html" in [a["href"] for a in index.all("a")]
    assert {name: one for name, one in tree(experiments).items() if "looks" in name} == logs


def test_the_look_counts_once_wherever_its_comparison_lies(
    judgecal: Run, scored: str, workspace_dir: Path
) -> None:
    first = one_object(judgecal("compare", scored, *JUDGES, "--json"))
    for name in ("one", "two"):
        again = one_object(judgecal("compare", scored, *JUDGES, "--name", name, "--json"))
        assert (again["test_looks"], again["level"]) == (1, first["level"])
    other = one_object(judgecal("compare", scored, *JUDGES, "--metric", "mae", "--json"))
    assert other["test_looks"] == 2


def test_the_summary_is_the_result(judgecal: Run, scored: str, taken_in: str) -> None:
    workspace = find_workspace(None)
    for slug in (scored, taken_in):
        result = CompareRun(workspace=workspace, stored=read_experiment(workspace, slug)).run()
        assert find_experiment(workspace, result.experiment).read_summary(CompareResult) == result


def test_a_name_that_is_taken(judgecal: Run, scored: str, workspace_dir: Path) -> None:
    before = tree(workspace_dir)
    for argv in (("--name", scored), ("--name", scored, "--dry-run"), ("--name", "a/b")):
        ran = judgecal("compare", scored, *JUDGES, *argv)
        assert ran.code == 2 and "--name" in ran.err
    assert judgecal("compare", scored, *JUDGES, "--dry-run").code == 0
    assert tree(workspace_dir) == before
    assert judgecal("compare", scored, *JUDGES, "--name", "cmp").code == 0
    ran = judgecal("compare", "cmp")
    assert ran.code == 2 and "an experiment of 'compare'; only those of score, agreement, optimize" in ran.err


@pytest.mark.parametrize(
    "pairs", [None, [], [1], [{}], [{"a": [1], "b": "x"}], [{"a": "x", "b": "y"}], {"x": 1}]
)
def test_a_damaged_summary_is_one_message(
    judgecal: Run, scored: str, workspace_dir: Path, pairs: Any
) -> None:
    assert judgecal("compare", scored, *JUDGES, "--name", "cmp").code == 0
    path = workspace_dir / "experiments" / "cmp" / "summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pairs": pairs}), encoding="utf-8")
    ran = judgecal("report", "cmp")
    assert ran.code == 2 and "pairs" in ran.err and "delete it and run the same command again" in ran.err
