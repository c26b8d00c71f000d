"""`gold import --dry-run`: how a file is understood, and nothing written."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from judgecal.exchange import exports
from judgecal.goldset import Splits
from tests.support.command import Run, one_object, tree
from tests.support.made_up_tool import MADE_UP, items, scores

COLUMNS = ("--question", "q", "--answer", "a", "--item", "id", "--label", "ann", "--label", "b*")
SAME = (
    "set",
    "tool",
    "n_rows",
    "n_items",
    "n_groups",
    "n_ratings",
    "raters",
    "judges",
    "skipped",
    "notes",
    "left_out",
)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def table(workspace_dir: Path) -> Path:
    """60 answers with two raters; the test items' texts hold a word of their own."""
    path = workspace_dir / "a table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "q", "a", "ann", "bob", "junk"])
        for k in range(60):
            question = f"What is {k}?"
            sealed = " qzsealed" * (Splits().of(question) == "test")
            answer = f"It is {k}.{sealed}" if k else f"\x1b[31mIt{sealed}"
            lines.writerow([f"i{k}", question, answer, k % 4 + 1, "" if k % 6 else k % 4 + 1, "x"])
    return Path(path.name)


def test_a_table_is_understood_and_nothing_is_written(
    judgecal: Run, table: Path, workspace_dir: Path
) -> None:
    argv = ("gold", "import", table, "--as", "new", *COLUMNS, "--scale", "ordinal:1:4")
    before = tree(workspace_dir)
    ran = judgecal(*argv, "--dry-run")
    assert ran.code == 0, ran.err
    assert tree(workspace_dir) == before
    lines = ran.out.splitlines()
    assert lines[0] == "new would have 60 items on 60 questions, and 70 ratings by ann, bob. Nothing is"
    assert "The labels' scale is ordinal:1:4, as --scale says." in ran.said
    assert "Columns taken: q as question, a as answer, ann as label, b* as label, id as item." in ran.said
    assert "Columns left: junk." in ran.said
    assert "ann gave 60 labels: 1 (25%), 2 (25%), 3 (25%), 4 (25%)." in ran.said
    assert "bob gave 10 labels: 1 (50%), 3 (50%)." in ran.said
    assert "qzsealed" not in judgecal(*argv, "--dry-run", "--full").out + ran.out
    assert "\x1b" not in ran.out
    assert len(lines) <= 30 and max(map(len, lines)) <= 80
    seen = one_object(judgecal(*argv, "--dry-run", "--json"))
    assert (seen["scale_from"], seen["labels"]["ann"]["shares"]["2"]) == ("declared", 0.25)
    assert Splits().of(seen["first_item"]["question"]) != "test"
    following = " ".join(
        line.removesuffix("\\").strip() for line in ran.out.partition("next: ")[2].splitlines()
    )
    assert shlex.split(following)[1:] == [str(word) for word in argv]
    done = one_object(judgecal(*shlex.split(following)[1:], "--json"))
    assert [seen[key] for key in SAME] == [done[key] for key in SAME]


def test_what_the_import_refuses_the_dry_run_refuses(judgecal: Run, table: Path, workspace_dir: Path) -> None:
    argv = ("gold", "import", table, "--as", "new", *COLUMNS)
    for more in (
        ("--scale", "percentage"),
        ("--scale", "binary"),
        ("--scale", "ordinal:1:4", "--answer", "none"),
    ):
        dry, wet = judgecal(*argv, *more, "--dry-run"), judgecal(*argv, *more)
        assert dry.code == wet.code == 2 and dry.err == wet.err
    assert judgecal(*argv, "--scale", "ordinal:1:4").code == 0
    again = judgecal(*argv, "--scale", "ordinal:1:4", "--dry-run")
    assert again.code == 2 and "give --replace" in again.err
    assert judgecal(*argv, "--scale", "ordinal:1:4", "--dry-run", "--replace").code == 0
    ran = judgecal("gold", "import", table, "--as", "new", "--sheet", "--dry-run")
    assert ran.code == 2 and "--dry-run with --sheet" in ran.err


def test_the_splits_of_a_replaced_set_say_what_is_shown(
    judgecal: Run, table: Path, workspace_dir: Path
) -> None:
    argv = ("gold", "import", table, "--as", "new", *COLUMNS, "--scale", "ordinal:1:4")
    assert judgecal(*argv).code == 0
    card = workspace_dir / "gold" / "new" / "card.toml"
    text = card.read_text(encoding="utf-8")
    for share, value in (("train", 0.25), ("dev", 0.3), ("test", 0.45)):
        text = text.replace(f"{share} = {value}", f"{share} = {float(share == 'test')}")
    card.write_text(text, encoding="utf-8")
    ran = judgecal(*argv, "--dry-run", "--replace")
    assert ran.code == 0 and "Every item is of test, and none of these is shown." in ran.said
    assert one_object(judgecal(*argv, "--dry-run", "--replace", "--json"))["first_item"] is None


def test_an_export_with_many_raters_and_judges_fits_a_screen(
    judgecal: Run, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = exports.formats()
    monkeypatch.setattr(exports, "formats", lambda: {**known, "made-up": MADE_UP})
    these: list[dict[str, Any]] = [
        {**row, "answer": row["answer"] * 40, "contexts": ["one passage", "and one more"]} for row in items()
    ]
    said = [
        one for n in range(12) for one in scores(f"person {n}", [k * n % 101 for k in range(40)], human=True)
    ]
    said += [one for n in range(9) for one in scores(f"correct@judge-{n}", [k / 40 for k in range(40)])]
    said += scores("correct@broken", [None] * 40, error="timed out")
    said += scores("sure@one", ["of", "a", "kind", "or", "not", "at", "all", "so"] * 5)
    path = Path("e.json")  # `judgecal` has made the workspace the current folder
    path.write_text(
        json.dumps({"tool": "made-up", "items": these, "scores": said, "spans": 7}), encoding="utf-8"
    )
    argv = ("gold", "import", path, "--as", "new")
    before = tree(workspace_dir)
    ran = judgecal(*argv, "--dry-run")
    assert ran.code == 0 and tree(workspace_dir) == before, ran.err
    lines = ran.out.splitlines()
    assert len(lines) <= 30 and max(map(len, lines)) <= 80
    assert "480 ratings by person 0, person 1, person 10, person 11 and 8 more" in ran.said
    assert "Read as an export of made-up" in ran.said and "The labels tell the scale percentage" in ran.said
    assert lines[-1] == f"next: judgecal gold import {path} --as new"
    seen = one_object(judgecal(*argv, "--dry-run", "--json"))
    assert seen["verdicts"]["correct@broken"] == {"n": 40, "n_unscored": 40, "scale": "percentage"}
    assert seen["verdicts"]["correct@judge-0"]["scale"] == "fractions of 1"
    assert set(seen["labels"]["person 3"]["quantiles"]) == {"min", "p25", "median", "p75", "max"}
    assert seen["labels"]["person 0"]["shares"] == {"0": 1.0}
    assert seen["first_item"]["contexts"] == "one passage (and 1 more)"
    done = one_object(judgecal(*argv, "--json"))
    assert [seen[key] for key in SAME] == [done[key] for key in SAME]
    assert {name: one["n_unscored"] for name, one in seen["verdicts"].items()} == done["unscored"]
    full = judgecal(*argv, "--replace", "--dry-run", "--full").said
    assert "correct@judge-8" in full and "person 11" in full


def test_a_set_that_would_wait(judgecal: Run, table: Path) -> None:
    argv = ("gold", "import", table, "--as", "new", "--question", "q", "--answer", "a", "--scale", "binary")
    ran = judgecal(*argv, "--dry-run")
    assert ran.out.startswith("new would have 60 items on 60 questions, and no label. Nothing is written.")
