"""Pages of retrieval, gate and judge: test items, text that is never run; results in a notebook."""

from __future__ import annotations

import json
from pathlib import Path

from judgecal.experiment import CompareRun, read_experiment
from judgecal.experiment.result import AgreementResult
from judgecal.experiment.stored import find_experiment
from judgecal.workspace import find_workspace
from tests.support.command import Run
from tests.support.locks import Served, flips
from tests.support.locks import served as served
from tests.support.pages import (
    ATTACK,
    HOSTILE,
    Parsed,
    by_kind,
    check_page,
    items_of,
    made_set,
    page_of,
    printed_by,
    recorded,
    told,
)

# --- retrieval


# --- gate and judge


def test_gate(judgecal: Run, served: Served) -> None:
    served.script.change = flips(0.15)
    printed = printed_by(judgecal, "gate", "--lock", served.path, "--name", "g", code=1)
    n = len(printed["flipped"])
    estimates = [printed[name] for name in ("flip_rate", "noise", "difference")]
    estimates += [printed[when][printed["metric"]] for when in ("locked", "now")]
    shown = [told(estimate, 1, 100.0) for estimate in estimates]
    page = check_page(judgecal, printed, ["loss", "flipped", "notes"], *shown)
    assert "Stop using this judge." in page
    gold = served.script.gold
    sealed = {item.item_id for item in gold.select("test")} & {one["item_id"] for one in printed["flipped"]}
    rows = items_of(page)["items"]
    assert len(rows) == n - len(sealed) > 10 and all(row["label"] for row in rows)
    assert all(row["said"][0]["verdict"] != row["said"][1]["verdict"] for row in rows)
    assert not sealed & {row["id"] for row in rows} and f"{n} items with another verdict" in page
    assert sealed and f"{len(sealed)} of test, which we count and never show" in page
    assert not [one for one in sealed if one in page]

    card = served.workspace.root / "gold" / "starter" / "items.jsonl"
    card.write_text(card.read_text() + "\n")
    changed = page_of(judgecal, "g")  # other bytes: another set
    assert "so we treat every item as a test item and show none." in changed
    assert 'id="explore"' not in changed


def test_judge(judgecal: Run, served: Served, tmp_path: Path) -> None:
    served.script.change = lambda item, n, verdict: None if item.item_id.endswith("7") else verdict
    rows = [
        {"q": item.question, "a": item.answer, "r": item.reference_answer, "s": HOSTILE if place % 2 else "b"}
        for place, item in enumerate(served.script.gold.items[:40])
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = ["--col", "question=q", "--col", "answer=a", "--col", "reference=r", "--col", "system=s"]
    printed = printed_by(
        judgecal, "judge", path, "--lock", served.path, "-o", tmp_path / "out.jsonl", *columns, code=4
    )
    assert printed["n_unscored"] == 4  # items 7, 17, 27, 37
    shown = [told(one["raw"], 1, 100.0) for one in printed["systems"].values()]
    page = check_page(judgecal, printed, ["rates", "rate", "unscored", "notes"], *shown, "4 of 40 unscored")
    assert "That is not the share that people would pass." in page
    carried = items_of(page)
    marks = [item["marks"] for item in carried["items"]]
    verdicts = ["verdict:unscored", "verdict:fail", "verdict:pass"]
    assert len(marks) == 40 and marks == sorted(marks, key=lambda mark: verdicts.index(mark[0]))
    assert [item["said"][0]["error"] != "" for item in carried["items"]] == [True] * 4 + [False] * 36
    assert {item["further"][0][0] for item in carried["items"]} == {"r"}


# --- what is not there, and parts


def test_what_cannot_be_read_is_one_message(judgecal: Run, workspace_dir: Path) -> None:
    printed = printed_by(judgecal, "retrieval", "--name", "ret")
    path = workspace_dir / "experiments" / printed["experiment"] / "summary.json"
    for text, said in (
        ("{", "no JSON"),
        ("[]", "must hold a JSON object"),
        ('{"schema": 99}', "99"),
        (None, "is not there: the command did not finish"),
    ):
        path.unlink() if text is None else path.write_text(text)
        ran = judgecal("report", "ret")
        assert ran.code == 2 and said in ran.err, ran.err
    assert judgecal("report", "--all").code == 0
    assert "summary.json: is not there" in (workspace_dir / "experiments" / "index.html").read_text()


# --- the list of all


# --- in a notebook


def test_judges_in_a_notebook(judgecal: Run, workspace_dir: Path, tmp_path: Path) -> None:
    made = made_set(workspace_dir)
    verdicts = {f"sharp {ATTACK}": by_kind(made, "yes", "no", "no"), "lax": by_kind(made, "yes", "yes", "no")}
    slug = recorded(judgecal, tmp_path, verdicts, made)
    workspace = find_workspace(None)
    result = find_experiment(workspace, slug).read_summary(AgreementResult)
    printed = json.loads(judgecal("report", slug, "--json").out)
    shown = Parsed(result._repr_html_())
    assert printed["headline"]["sentence"] in "".join(shown.text)
    assert shown.all("img") == [] and shown.all("table")
    frame = result.frame()
    assert frame["judge"].to_list() == [f"sharp {ATTACK}", "lax"] and frame["n"].to_list() == [60, 60]
    kappa = result.judges[1].agreement["kappa"]
    row = frame.row(1, named=True)
    shown_ends = [row[f"agreement.kappa{end}"] for end in ("", "_low", "_high")]
    assert shown_ends == [kappa.value, kappa.low, kappa.high]
    assert Parsed(result.gold._repr_html_()).all("table")  # a part of a result: its table alone

    compared = CompareRun(workspace=workspace, stored=read_experiment(workspace, slug)).run()
    assert compared.frame()["b"].to_list() == ["lax"] and "difference_low" in compared.frame().columns
    assert "<strong>" in compared._repr_html_()
