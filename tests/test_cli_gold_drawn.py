"""Labels where judges differ: verdicts of two judges -> a sheet -> people -> a comparison that weighs."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgecal.experiment.drawn import Drawing
from judgecal.goldset import load_gold
from judgecal.workspace import Workspace
from tests.support.command import Run, one_object

N = 400


@pytest.fixture
def people(workspace_dir: Path, judgecal: Run) -> dict[str, bool]:
    """A set of 400 answers of which 40 have a label, judged by two recorded judges; what people would say of
    each."""
    rng = np.random.default_rng(5)
    gold = rng.random(N) < 0.6
    judges = {
        name: np.where(rng.random(N) < right, gold, ~gold)
        for name, right in (("alpha", 0.95), ("beta", 0.75))
    }
    ids = [f"i{number:03d}" for number in range(N)]
    pool = ["id,q,question,answer,ann"]
    for number, item_id in enumerate(ids):
        label = "" if number >= 40 else "yes" if gold[number] else "no"
        pool.append(f"{item_id},q{number // 2},What is {number // 2}?,It is {number}.,{label}")
    verdicts = ["item_id,judge,verdict"]
    verdicts += [
        f"{i},{name},{'yes' if v else 'no'}"
        for name, own in judges.items()
        for i, v in zip(ids, own, strict=True)
    ]
    (workspace_dir / "pool.csv").write_text("\n".join(pool) + "\n")
    (workspace_dir / "verdicts.csv").write_text("\n".join(verdicts) + "\n")
    columns = (
        "--question",
        "question",
        "--answer",
        "answer",
        "--item",
        "id",
        "--group",
        "q",
        "--label",
        "ann",
    )
    ran = judgecal(
        "gold", "import", workspace_dir / "pool.csv", "--as", "pool", *columns, "--scale", "binary"
    )
    assert ran.code == 0, ran.err
    recorded(judgecal, workspace_dir, "pool", "first")
    return dict(zip(ids, gold.tolist(), strict=True))


def recorded(judgecal: Run, workspace: Path, gold: str, name: str) -> dict[str, Any]:
    ran = judgecal(
        "agreement", "--judgements", workspace / "verdicts.csv", "--gold", gold, "--name", name, "--json"
    )
    assert ran.code == 0, ran.err
    return one_object(ran)


def fill(sheet: Path, people: dict[str, bool]) -> list[str]:
    """Give every row its label; the items."""
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert "inclusion_probability" not in rows[0] and "alpha" not in rows[0]  # blind
    for row in rows:
        row["label"] = "yes" if people[row["item_id"]] else "no"
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return [row["item_id"] for row in rows]


def test_from_two_judges_to_a_weighted_comparison(
    workspace_dir: Path, judgecal: Run, people: dict[str, bool], tmp_path: Path
) -> None:
    sheet = tmp_path / "more.csv"
    drawn = one_object(
        judgecal("gold", "sheet", "first", "-o", sheet, "-n", "100", "--strata", "disagreement", "--json")
    )
    assert (drawn["set"], drawn["n_items"]) == ("more", 100)
    assert drawn["headline"]["next"].startswith(f"judgecal gold import {sheet} --sheet --as more")
    assert any("judges differ: " in note for note in drawn["notes"])
    lines = (workspace_dir / "gold" / "more" / "items.jsonl").read_text().splitlines()
    items = {row["item_id"]: row for row in map(json.loads, lines)}
    chances = {row["inclusion_probability"] for row in items.values()}
    assert len(chances) == 2 and max(chances) > 2 * min(chances)
    assert sum(1.0 / row["inclusion_probability"] for row in items.values()) == pytest.approx(N - 40)
    assert all(
        row["group"].startswith("q") for row in items.values()
    )  # groups stay, and with them the splits
    filled = fill(sheet, people)
    assert sorted(filled) == sorted(items) and not {f"i{number:03d}" for number in range(40)} & set(filled)
    assert judgecal("gold", "import", sheet, "--sheet", "--as", "more").code == 0

    found = recorded(judgecal, workspace_dir, "more", "second")
    alpha, beta = found["judges"]
    by_hand = {judge: weighted_accuracy(workspace_dir, judge, items, people) for judge in ("alpha", "beta")}
    assert alpha["agreement"]["accuracy"]["value"] == pytest.approx(by_hand["alpha"])
    assert beta["agreement"]["accuracy"]["value"] == pytest.approx(by_hand["beta"])
    assert alpha["agreement"]["kappa"]["value"] is None
    assert "unequal probabilities" in alpha["agreement"]["kappa"]["reason"]
    assert any("unequal probabilities" in note for note in found["notes"])
    compared = one_object(judgecal("compare", "second", "alpha", "beta", "--metric", "accuracy", "--json"))
    assert compared["difference"]["value"] == pytest.approx(by_hand["alpha"] - by_hand["beta"])
    assert compared["decision"] == "A"
    assert any("unequal probabilities" in note for note in compared["notes"])
    page = judgecal("report", "second", "--format", "md")
    assert page.code == 0 and "unequal probabilities" in page.out
    refused = judgecal("select", "second")
    assert refused.code == 2 and "select would count all items of gold set more alike" in refused.err


def weighted_accuracy(
    workspace: Path, judge: str, items: dict[str, dict[str, Any]], people: dict[str, bool]
) -> float:
    with (workspace / "verdicts.csv").open() as file:
        said = {
            row["item_id"]: row["verdict"] == "yes" for row in csv.DictReader(file) if row["judge"] == judge
        }
    weights = {item_id: 1.0 / row["inclusion_probability"] for item_id, row in items.items()}
    right = sum(weight for item_id, weight in weights.items() if said[item_id] == people[item_id])
    return right / sum(weights.values())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("first", "-n", "20", "--strata", "verdict"), "--strata is disagreement, found 'verdict'"),
        (("first", "--strata", "disagreement"), "say how many items by -n"),
        (("first", "-n", "9", "--strata", "disagreement"), "-n must be at least 10, found 9"),
        (("pool", "-n", "20", "--strata", "disagreement"), "'pool' is a gold set"),
        (("first", "-n", "20", "--strata", "disagreement", "--split", "tset"), "unknown split 'tset'"),
    ],
)
def test_what_cannot_be_drawn(
    workspace_dir: Path,
    judgecal: Run,
    people: dict[str, bool],
    tmp_path: Path,
    words: tuple[str, ...],
    message: str,
) -> None:
    ran = judgecal("gold", "sheet", *words, "-o", tmp_path / "more.csv")
    assert ran.code == 2 and message in ran.err
    assert not (tmp_path / "more.csv").exists() and not (workspace_dir / "gold" / "more").exists()


def test_a_set_of_the_sheets_name_is_not_touched(
    workspace_dir: Path, judgecal: Run, people: dict[str, bool], tmp_path: Path
) -> None:
    ran = judgecal(
        "gold", "sheet", "first", "-n", "20", "--strata", "disagreement", "-o", tmp_path / "pool.csv"
    )
    assert ran.code == 2 and "is there already" in ran.err and not (tmp_path / "pool.csv").exists()


def test_the_rubric_goes_with_a_drawn_set(workspace_dir: Path) -> None:
    workspace = Workspace(workspace_dir, workspace_dir / "experiments")
    gold = load_gold("starter", workspace=workspace)
    card = dataclasses.replace(gold.card, name="drawn")
    rubric = gold.path / str(gold.card.rubric)
    made = Drawing(card, gold.items[:3], (), rubric=rubric).write(workspace)
    assert (made.path / str(made.card.rubric)).read_text("utf-8") == rubric.read_text("utf-8")


@pytest.mark.parametrize(
    "table",
    [
        "item_id,question,answer,system\n1,What is it?,A thing,a\n1,What is it?,Another,b\n2,Who?,Me,a\n",
        "question,answer,context,system\nWhy?,I do not know,alpha,a\nWhy?,I do not know,beta,b\n",
    ],
    ids=["an id of the question", "equal answers from other contexts"],
)
def test_a_sheet_takes_a_column_of_ids_only_where_it_is_named(
    judgecal: Run, workspace_dir: Path, table: str
) -> None:
    (workspace_dir / "t.csv").write_text(table, encoding="utf-8")
    ran = judgecal("gold", "sheet", "t.csv", "--scale", "binary", "-o", "s.csv")
    assert ran.code == 0, ran.err
    if table.startswith("item_id"):
        named = judgecal("gold", "sheet", "t.csv", "--item", "item_id", "--scale", "binary", "-o", "u.csv")
        assert named.code == 2 and "rows with other texts have one id (1): leave --item out" in named.err
