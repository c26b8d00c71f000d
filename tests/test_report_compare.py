"""The page of `compare`: what the command said, rebuilt from its summary alone, in every form and in the
index."""

from __future__ import annotations

import json
import shutil
from html import unescape
from pathlib import Path

import pytest

from tests.support.command import Run, one_object, tree
from tests.support.pages import page_of

JUDGES = ("correctness_v1@embedded", "correctness_v3@embedded")


@pytest.fixture
def scored(judgecal: Run) -> str:
    """Two prompts on one model over all items of the starter, those of test among them."""
    ran = judgecal("score", "--signatures", "correctness_v1,correctness_v3", "--split", "all", "--name", "sc")
    assert ran.code == 0, ran.err
    return "sc"


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
    assert {name: one for name, one in tree(experiments).items() if "looks" in name} == logs


def test_a_name_that_is_taken(judgecal: Run, scored: str, workspace_dir: Path) -> None:
    before = tree(workspace_dir)
    for argv in (("--name", scored), ("--name", "a/b")):
        ran = judgecal("compare", scored, *JUDGES, *argv)
        assert ran.code == 2 and "--name" in ran.err
    assert tree(workspace_dir) == before
    assert judgecal("compare", scored, *JUDGES, "--name", "cmp").code == 0
    ran = judgecal("compare", "cmp")
    assert ran.code == 2 and "an experiment of 'compare'; only those of score, agreement" in ran.err


def test_a_damaged_summary_is_one_message(judgecal: Run, scored: str, workspace_dir: Path) -> None:
    assert judgecal("compare", scored, *JUDGES, "--name", "cmp").code == 0
    path = workspace_dir / "experiments" / "cmp" / "summary.json"
    whole, wrong = json.loads(path.read_text()), ([{"a": [1], "b": "x"}], [{"a": "x", "b": "y"}], {"x": 1})
    for pairs in (None, [], [1], [{}], *wrong):
        path.write_text(json.dumps({**whole, "compared": pairs}), encoding="utf-8")
        ran = judgecal("report", "cmp")
        assert ran.code == 2 and "compared" in ran.err
        assert "delete it and run the same command again" in ran.err
