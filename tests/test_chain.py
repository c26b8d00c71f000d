"""Eight commands from two hundred rows to a corrected rate, each given what the one before it has made."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest

from tests.support.command import Run, one_object
from tests.support.gold import made_items

LOCK, COLUMNS = ("--lock", "judge.lock.json"), ("--col", "item=item_id")


def write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)


def answers(n_groups: int, seed: int) -> list[dict[str, str]]:
    """Two answers a question; people pass those with all four facts, and one in twenty of the others."""
    rng = random.Random(seed)
    rows = [row for row in made_items(n_groups, seed=seed) if row["kind"] != "half"]
    for row in rows:
        row["label"] = "yes" if (row.pop("kind") == "full") != (rng.random() < 0.05) else "no"
    return rows


def test_from_two_hundred_rows_to_a_corrected_rate(
    judgecal: Run, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = workspace_dir / "mine"
    assert judgecal("init", place).code == 0
    labelled, rows = answers(100, seed=1), answers(400, seed=2)
    assert len(labelled) == 200
    write(place / "labelled.csv", labelled)
    write(place / "rows.csv", [{k: v for k, v in row.items() if k != "label"} for row in rows])
    monkeypatch.chdir(place)
    imported = one_object(
        judgecal("gold", "import", "labelled.csv", "--as", "own", "--label", "label", "--json")
    )
    assert imported["n_items"] == 200
    judges = ("--judge", "token_f1@local", "--judge", "correctness_v3@embedded")
    scored = one_object(judgecal("score", "--gold", "own", *judges, "--name", "first", "--json"))
    assert {judge["judge"] for judge in scored["judges"]} >= {"token_f1@local", "correctness_v3@embedded"}
    chosen = one_object(judgecal("select", "first", "--json"))
    assert chosen["confirmed_on_test"]
    assert judgecal("judge", "rows.csv", *LOCK, "-o", "judged.csv").code == 0
    sheet = ("gold", "sheet", "judged.csv", "-n", 60, "-o", "sheet.csv", *LOCK, *COLUMNS)
    assert judgecal(*sheet).code == 0
    right = {row["answer"]: row["label"] for row in rows}
    with (place / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        drawn = [row | {"label": right[row["answer"]]} for row in csv.DictReader(file)]
    write(place / "sheet.csv", drawn)
    assert judgecal("gold", "import", "sheet.csv", "--sheet", "--as", "sheet").code == 0
    rated = one_object(judgecal("rate", "judged.csv", *LOCK, "--labels", "sheet", *COLUMNS, "--json"))
    assert (rated["method"], rated["n"], rated["n_labelled"]) == ("PPI++", 800, 60)
    true = sum(row["label"] == "yes" for row in rows) / len(rows)
    assert rated["corrected"]["low"] <= true <= rated["corrected"]["high"]
