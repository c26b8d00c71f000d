"""`judgecal agreement FILE`: a table's judges held against its labels, in any folder."""

from __future__ import annotations

import csv
import random
import runpy
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from judgecal.tables import Columns, read_table
from judgecal.tables.guess import guess_columns
from tests.support.command import BASE, CLASS, ROOT, Run, check_table, journal, one_object

JUDGED = ROOT / "examples" / "judged.csv"


@pytest.fixture
def elsewhere(judgecal: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is no workspace; commands run in it."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(header)
        out.writerows(rows)
    return path


def yes_no(n: int, *, seed: int = 0) -> list[tuple[str, str]]:
    """Labels, and the verdicts of a judge that is right on four of five."""
    draw = random.Random(seed)
    labels = [draw.choice(["yes", "no"]) for _ in range(n)]
    return [(one, one if draw.random() < 0.8 else {"yes": "no", "no": "yes"}[one]) for one in labels]


def test_the_demo_holds_the_truth_that_its_judge_hides(judgecal: Run, elsewhere: Path) -> None:
    found = one_object(judgecal("agreement", JUDGED, "--labels-by", "project", "--json"))
    check_table(found, BASE | CLASS)
    make = runpy.run_path(str(ROOT / "examples" / "make.py"))
    replies = make["replies"]([*make["read"]("answers.csv"), *make["read"]("new_answers.csv")])
    truth = np.array([float(label == "yes") for *_, label in replies])
    (rate,) = found["table"]["rates"]
    assert rate["raw"]["value"] == pytest.approx(194 / 223) and 0.40 < truth.mean() < 0.42
    assert rate["corrected"]["low"] < truth.mean() < rate["corrected"]["high"] < rate["raw"]["value"] - 0.1
    assert rate["people"]["n"] == 130 and rate["drawn"]


@pytest.mark.parametrize(
    ("header", "people", "judges"),
    [
        (["human_score", "score"], "human_score", "score"),
        (["HumanLabel", "GPT-4o"], "HumanLabel", "GPT-4o"),
        (["annotator1", "annotator2", "llm_label"], "annotator1 annotator2", "llm_label"),
        (["rater_a", "claude_correct", "gemini-pro"], "rater_a", "claude_correct gemini-pro"),
        (["label", "judge", "judge_reason", "judge_cost_usd"], "label", "judge"),
        (["expert", "gold", "verdict"], "expert gold", "verdict"),
        (["gold_answer", "label", "verdict", "id"], "label", "verdict"),
    ],
)
def test_names_decide(tmp_path: Path, header: list[str], people: str, judges: str) -> None:
    rows = [["yes" if (n + k) % 3 else "no" for k in range(len(header))] for n in range(30)]
    for place, name in enumerate(header):
        for n, row in enumerate(rows):
            if name in ("judge_reason", "gold_answer"):
                row[place] = f"a text of its own, number {n}, that is longer than any label would ever be"
            if name == "id":
                row[place] = str(n)
    found = guess_columns(Columns(usual=True), read_table(write(tmp_path / "t.csv", header, rows)))
    assert {*found.labels, *filter(None, [found.gold_label])} == {*people.split()}
    assert found.verdicts == tuple(judges.split())
    assert found.gold_label == ("gold" if "gold" in header else None)


def test_what_cannot_be_measured_is_one_message(judgecal: Run, elsewhere: Path) -> None:
    rows = yes_no(40)
    texts = [
        [f"a long text about something, the {n}th of its kind here", one] for n, (one, _) in enumerate(rows)
    ]
    cases = {
        "there is no such file": ["absent.csv"],
        "the file holds no rows": [write(Path("empty.csv"), [], [])],
        "unknown ending": [write(Path("table.bin"), ["label"], rows)],
        "--label 'correct' or --verdict 'correct'": [write(Path("open.csv"), ["text", "correct"], texts)],
        "--label 'b' or --verdict 'b'": [write(Path("half.csv"), ["label", "b"], rows)],
        "no column is people's labels by its name": [write(Path("no.csv"), ["a"], [one[:1] for one in texts])],
        "all 40 labels are yes": [write(Path("same.csv"), ["label", "judge"], [("yes", b) for _, b in rows])],
        "column 'judge' holds no verdict": [write(Path("long.csv"), ["label", "judge"], [(a, f"gpt-{b}") for a, b in rows])],
        "the labels show no scale": [write(Path("mix.csv"), ["label", "judge"], [(f"{a}{n % 2 or 7.5}"[-3:], b) for n, (a, b) in enumerate(rows)])],
        "--gold with": ["empty.csv", "--gold", "starter"],
        "--label without FILE": ["--label", "x"],
        "(Human as label): name one with --verdict COL, or let a judge judge the answers: judgecal gold import "
        "bare.csv --as bare --label Human, then judgecal score --gold bare --judge NAME": [write(Path("bare.csv"), ["Human"], [one[:1] for one in rows])],
    }  # fmt: skip
    for message, argv in cases.items():
        ran = judgecal("agreement", *argv)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), (message, ran)
        assert message in ran.err and ran.err.startswith("judgecal: "), (message, ran.err)
    assert not (elsewhere / "experiments").exists()
    few = judgecal("agreement", write(Path("few.csv"), ["label", "judge"], rows[:3]))
    assert few.code == 0 and few.out.startswith("○ too few · ")


def test_several_raters_and_judges_on_scales_of_their_own(judgecal: Run, elsewhere: Path) -> None:
    draw = random.Random(1)
    grades = [draw.randint(1, 4) for _ in range(60)]
    rows = [
        (
            f"q{n // 2}", one, min(4, one + draw.randint(0, 1)), min(5, one + draw.randint(0, 1)), one / 5,
            "" if n < 3 else one,
        )
        for n, one in enumerate(grades)
    ]  # fmt: skip
    path = write(Path("t.csv"), ["prompt", "rater_1", "rater_2", "judge", "gpt4_score", "llm"], rows)
    found = one_object(judgecal("agreement", path, "--json"))
    assert found["gold"]["scale"] == "ordinal:1:5"  # the judge uses the 5 that no person gave
    assert [judge["judge"] for judge in found["judges"]] == ["judge", "gpt4_score", "llm"]
    assert [judge["n_unscored"] for judge in found["judges"]] == [0, 0, 3]
    assert found["gold"]["n_groups"] == 30 and len(found["raters"]) == 2
    assert found["gold"]["n_test_items"] == 0
    typed = one_object(judgecal("agreement", path, "--label", "rater_1", "--verdict", "rater_2", "--json"))
    assert [judge["judge"] for judge in typed["judges"]] == ["rater_2"]
    assert typed["table"]["columns"] == {"prompt": "question", "rater_1": "label", "rater_2": "verdict"}
    assert typed["table"]["left_out"] == ["judge", "gpt4_score", "llm"]


def test_labels_that_are_no_draw_are_said_to_be_none(judgecal: Run, elsewhere: Path) -> None:
    rows = yes_no(400)
    picked = [
        (label if verdict == "no" and n < 300 else "", verdict) for n, (label, verdict) in enumerate(rows)
    ]
    picked[:20] = rows[:20]
    found = one_object(judgecal("agreement", write(Path("t.csv"), ["human", "judge"], picked), "--json"))
    assert found["table"]["rates"][0]["drawn"] is False
    assert "not drawn at random" in found["headline"]["unknown"][0]
    assert "Corrected" not in " ".join(found["headline"]["because"])


def test_words_take_a_map_and_verdicts_take_it_too(judgecal: Run, elsewhere: Path) -> None:
    rows = [({"yes": "Fine", "no": "poor"}[a], b) for a, b in yes_no(60)]
    path = write(Path("t.csv"), ["human", "judge"], rows)
    maps = ["--map", "fine=yes", "--map", "poor=no"]
    found = one_object(judgecal("agreement", path, *maps, "--json"))
    assert (
        found["gold"]["scale"] == "binary" and 0.6 < found["judges"][0]["agreement"]["accuracy"]["value"] < 1
    )
    assert "--map fine=yes --map poor=no" in found["headline"]["next"]


def test_free_judges_answer_whole_questions_of_a_large_table(
    judgecal: Run, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgecal.experiment.agreement_table.FREE_ITEMS", 60)
    draw, rows = random.Random(1), []
    for n in range(240):
        label = draw.random() < 0.5
        rows.append([f"question {n % 80}?", f"it is {n if label else 'no'}", f"it is {n}", label * 1])
        rows[-1].append(80 * label + draw.randrange(20))
    header = ["question", "answer", "reference", "label", "judge"]
    file = write(Path("t.csv"), header, rows)
    ran = judgecal("agreement", file, "--name", "large")
    assert "correctness_v3@embedded reaches" in ran.said and "on 60 of 240 answers)" in ran.said
    assert judgecal("report", "large").out == ran.out
    kept = [row for row in journal(elsewhere, "large") if row["judge"] == "correctness_v3@embedded"]
    asked = {int(row["item_id"].rpartition("-")[2]) - 1 for row in kept}
    assert len(asked) == 60 and all({n % 80, n % 80 + 80, n % 80 + 160} <= asked for n in asked)
