"""Results in a notebook: headline, table, and a frame."""

from __future__ import annotations

import json
from pathlib import Path

from judgecal.experiment import CompareRun, read_experiment
from judgecal.experiment.result import AgreementResult
from judgecal.experiment.stored import find_experiment
from judgecal.rag.retrieval import RetrievalResult
from judgecal.workspace import find_workspace
from tests.support.command import Run
from tests.support.gold import made_gold, made_items, rated
from tests.support.pages import ATTACK, OPEN, Parsed, printed_by, recorded


def test_judges_in_a_notebook(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> None:
    made = made_items(20)
    labels = rated(made, {"full": 1, "half": 0, "none": 0})
    made_gold(workspace_dir / "gold" / "made", made, labels, scale='kind = "binary"', splits=OPEN)
    sharp = ["yes" if row["kind"] == "full" else "no" for row in made]
    lax = ["no" if row["kind"] == "none" else "yes" for row in made]
    slug = recorded(judgecal, tmp_path, {f"sharp {ATTACK}": sharp, "lax": lax}, made)
    workspace = find_workspace(None)
    result = find_experiment(workspace, slug).read_summary(AgreementResult)
    printed = json.loads(judgecal("report", slug, "--json").out)
    shown = Parsed(result._repr_html_())
    assert (
        printed["headline"]["sentence"] in "".join(shown.text)
        and shown.all("img") == []
        and shown.all("table")
    )
    frame = result.frame()
    assert frame["judge"].to_list() == [f"sharp {ATTACK}", "lax"] and frame["n"].to_list() == [60, 60]
    kappa = result.judges[1].agreement["kappa"]
    row = frame.row(1, named=True)
    assert [row[f"agreement.kappa{end}"] for end in ("", "_low", "_high")] == [
        kappa.value,
        kappa.low,
        kappa.high,
    ]
    assert Parsed(result.gold._repr_html_()).all("table")  # a part of a result: its table alone

    compared = CompareRun(workspace=workspace, stored=read_experiment(workspace, slug)).run()
    assert compared.frame()["b"].to_list() == ["lax"] and "difference_low" in compared.frame().columns
    assert "<strong>" in compared._repr_html_()


def test_what_draws_a_result_is_there(judgecal: Run) -> None:
    slug = printed_by(judgecal, "retrieval", "--name", "ret")["experiment"]
    result = find_experiment(find_workspace(None), slug).read_summary(RetrievalResult)
    assert "among the first" in result._repr_html_()
    frame = result.frame()
    assert len(frame) == len(result.hand_on) and "recall_low" in frame.columns
