"""A judge of pairs from gold set to production: selected, locked, gated, asked about a table, corrected."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Run, one_object

N = 240
SYSTEMS = ("lynx", "otter")


def _pair(number: int, rng: random.Random) -> tuple[dict[str, Any], str]:
    """A pair, and which answer people prefer: otter's in eight of ten, the longer one in seven of ten."""
    tie, otter = rng.random() < 0.1, rng.random() < 0.8
    long_wins = rng.random() < 0.7
    texts = {
        name: f"{name} says that it is {number}" + ", all told" * ((name == "otter") == (otter == long_wins))
        for name in SYSTEMS
    }
    a, b = rng.sample(SYSTEMS, 2)
    row = {
        "question": f"What is {number}?",
        "answer_a": texts[a],
        "answer_b": texts[b],
        "system_a": a,
        "system_b": b,
    }
    return row, "tie" if tie else "A" if (a == "otter") == otter else "B"


@pytest.fixture
def world(workspace_dir: Path) -> list[tuple[dict[str, Any], str]]:
    """A gold set of pairs, and a table of other ones, of which we know what people would say."""
    rng = random.Random(7)
    with (workspace_dir / "gold.csv").open("w", newline="") as file:
        rows = [_pair(number, rng) for number in range(N)]
        writer = csv.DictWriter(file, [*rows[0][0], "label"])
        writer.writeheader()
        writer.writerows({**row, "label": label} for row, label in rows)
    with (workspace_dir / "rows.csv").open("w", newline="") as file:
        rows = [_pair(number, rng) for number in range(N, 2 * N)]
        writer = csv.DictWriter(file, [*rows[0][0]])
        writer.writeheader()
        writer.writerows(row for row, _ in rows)
    return rows


def _lock(judgecal: Run) -> str:
    """Where the lock of the longer answer stands, selected on the gold set."""
    assert judgecal("gold", "import", "gold.csv", "--as", "pairs", "--label", "label").code == 0
    assert judgecal("score", "--gold", "pairs", "--judge", "longer_answer@local", "--name", "s").code == 0
    return str(one_object(judgecal("select", "s", "--json"))["lock"])


def test_the_share_that_prefers_a_system_is_corrected(
    judgecal: Run, workspace_dir: Path, world: list[tuple[dict[str, Any], str]]
) -> None:
    lock = _lock(judgecal)
    assert one_object(judgecal("gate", "--lock", lock, "--json"))["decision"] == "pass"
    judged = one_object(judgecal("judge", "rows.csv", "--lock", lock, "-o", "judged.csv", "--json"))
    assert (judged["n"], judged["n_unscored"]) == (N, 0)

    alone = one_object(judgecal("rate", "judged.csv", "--lock", lock, "--json"))
    assert alone["prefers"] == list(SYSTEMS) and alone["corrected"]["value"] is None
    drawn = judgecal(
        *("gold", "sheet", "judged.csv", "-n", 120, "--strata", "verdict", "--lock", lock, "-o", "sheet.csv")
    )
    assert drawn.code == 0, drawn.err

    people = {(row["question"], row["answer_a"]): label for row, label in world}
    sheet = list(csv.DictReader((workspace_dir / "sheet.csv").open(encoding="utf-8-sig")))
    for row in sheet:
        left_is_a = (row["question"], row["answer_left"]) in people
        label = people[row["question"], row["answer_left" if left_is_a else "answer_right"]]
        row["label"] = {"A": "left", "B": "right"}.get(label, label)
        if not left_is_a:
            row["label"] = {"left": "right", "right": "left"}.get(row["label"], "tie")
    with (workspace_dir / "filled.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*sheet[0]])
        writer.writeheader()
        writer.writerows(sheet)
    assert judgecal("gold", "import", "filled.csv", "--sheet", "--as", "sheet").code == 0

    rated = {
        systems: one_object(
            judgecal(
                *("rate", "judged.csv", "--lock", lock, "--labels", "sheet", "--json"),
                *("--systems", ",".join(systems)),
            )
        )
        for systems in (SYSTEMS, SYSTEMS[::-1])
    }
    lynx, otter = (found["corrected"] for found in rated.values())
    assert lynx["value"] == pytest.approx(1.0 - otter["value"], abs=1e-6)
    worth = {"A": 1.0, "tie": 0.5, "B": 0.0}
    truth = sum(
        worth[label] if row["system_a"] == "otter" else 1.0 - worth[label] for row, label in world
    ) / len(world)
    assert otter["low"] < truth < otter["high"]
    assert (otter["n"], rated[SYSTEMS]["method"]) == (120, "PPI++")
    assert "prefer otter over lynx" in json.dumps(rated[SYSTEMS[::-1]]["headline"])
    # what the judge alone says is off by what it gets wrong
    assert abs(rated[SYSTEMS[::-1]]["raw"]["value"] - truth) > 0.05


def test_systems_are_named_where_there_are_more_than_two(
    judgecal: Run, workspace_dir: Path, world: list[tuple[dict[str, Any], str]]
) -> None:
    _lock(judgecal)
    table = workspace_dir / "rows.csv"
    table.write_text(table.read_text().replace("otter,lynx", "heron,lynx"))
    judgecal("judge", "rows.csv", "--lock", "judge.lock.json", "-o", "judged.csv")
    refused = judgecal("rate", "judged.csv", "--lock", "judge.lock.json")
    assert refused.code == 2 and "3 systems (heron, lynx, otter)" in refused.err
    two = one_object(
        judgecal("rate", "judged.csv", "--lock", "judge.lock.json", "--systems", "heron,lynx", "--json")
    )
    assert 0 < two["n"] < N and two["prefers"] == ["heron", "lynx"]
    assert judgecal("rate", "judged.csv", "--lock", "judge.lock.json", "--systems", "heron").code == 2


def test_a_judge_that_contradicts_itself_has_no_verdict_in_a_table(
    judgecal: Run, workspace_dir: Path, world: list[tuple[dict[str, Any], str]]
) -> None:
    (workspace_dir / "checks.py").write_text(
        "from typing import Literal\n\n\ndef longer(answer_a: str, answer_b: str) -> Literal['A', 'B']:\n"
        "    return 'AB'[len(answer_b) > len(answer_a) and '7, all' not in answer_b]\n"
    )
    assert judgecal("gold", "import", "gold.csv", "--as", "pairs", "--label", "label").code == 0
    name = "checks.py:longer@python*3"
    assert judgecal("score", "--gold", "pairs", "--judge", name, "--name", "both").code in (0, 4)
    lock = one_object(judgecal("select", "both", "-o", "both.json", "--json"), code=4)["lock"]
    judged = one_object(judgecal("judge", "rows.csv", "--lock", lock, "-o", "both.csv", "--json"), code=4)
    with Path("both.csv").open(encoding="utf-8-sig") as file:
        verdicts = Counter(row["verdict"] for row in csv.DictReader(file))
    assert set(verdicts) == {"A", "B", ""} and verdicts[""] == judged["n_unscored"] > 0


def test_the_words_of_pairs_on_single_answers_are_words(
    judgecal: Run, workspace_dir: Path, world: list[tuple[dict[str, Any], str]]
) -> None:
    _lock(judgecal)
    (workspace_dir / "single.csv").write_text("question,answer,verdict\nq,a,A\nr,b,B\n")
    rated = judgecal("rate", "single.csv", "--lock", "judge.lock.json")
    assert rated.code == 2 and "nominal verdicts have no pass mark, and rate is the share" in rated.err
    draw = ("-n", "20", "--lock", "judge.lock.json", "-o", "sheet.csv")
    drawn = judgecal("gold", "sheet", "single.csv", *draw)
    assert drawn.code == 2 and "words without an order" in drawn.err
    systems = judgecal("rate", "single.csv", "--lock", "judge.lock.json", "--systems", "x,y")
    assert systems.code == 2 and "--systems is of judged pairs" in systems.err
