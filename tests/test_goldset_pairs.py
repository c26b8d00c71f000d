"""Pairs of answers: from a table, to raters who see them in either order, and back as labels of A and B."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import polars
import pytest

from judgecal import GoldSet
from judgecal.desk.desk import Refusal
from judgecal.desk.server import choices_of
from judgecal.errors import InputError
from judgecal.goldset import import_sheets, load_gold, write_sheets
from judgecal.goldset.check import check_gold
from judgecal.goldset.labels import left_of, pair_scale
from judgecal.records import Item, Pair
from judgecal.scale import Scale
from judgecal.tables import Columns
from judgecal.workspace import Workspace
from tests.support.command import Run, one_object
from tests.support.desk import act, desk_of, ratings
from tests.support.gold import made_gold


def table(path: Path, rows: list[dict[str, Any]]) -> str:
    polars.DataFrame(rows).write_csv(path)
    return str(path)


def rows(*labels: str, a: str = "answer_a", b: str = "answer_b") -> list[dict[str, Any]]:
    return [{"question": f"Q{n}?", a: f"first {n}", b: f"second {n}", "model_a": "old", "model_b": "new", "label": label}
            for n, label in enumerate(labels)]  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "labels"),
    [(["A", "b", "Tie"], "A B tie"), (["left", "RIGHT", "tie"], "A B tie"), (["model_b"], "B")],
)  # fmt: skip
def test_words_for_sides(cells: list[str], labels: str) -> None:
    scale, words, _ = pair_scale(cells)
    assert scale == "nominal" and " ".join(words[cell.casefold()] for cell in cells) == labels


@pytest.mark.parametrize("cells", [["0", "1"], ["1", "tie"], ["A", "gpt-9"], ["-1", "1"], ["yes", "no"]])
def test_what_may_be_either_is_refused(judgecal: Run, workspace_dir: Path, cells: list[str]) -> None:
    typed = ("gold", "import", table(workspace_dir / "t.csv", rows(*cells)), "--as", "p", "--label", "label")
    ran = judgecal(*typed)
    assert ran.code == 2 and "A, B or tie" in ran.err and "--map" in ran.err
    maps = [part for cell, to in zip(cells, "AB", strict=True) for part in ("--map", f"{cell}={to}")]
    assert one_object(judgecal(*typed, *maps, "--json"))["n_labelled"] == 2
    assert list(load_gold(workspace_dir / "gold" / "p").labels.values()) == ["A", "B"]


@pytest.mark.parametrize(("a", "b"), [("response_a", "response_b"), ("answer_a", "response_b")])
def test_usual_names_make_pairs(judgecal: Run, workspace_dir: Path, a: str, b: str) -> None:
    file = table(workspace_dir / "t.csv", rows("model_a", "Right", "model_b", a=a, b=b))
    typed = ("gold", "import", file, "--as", "p", "--label", "label")
    done = judgecal(*typed)
    assert (
        done.code == 0
        and f"{a} as answer a" in done.said
        and "model_a is A, model_b is B, right is B" in done.said
    )
    gold = load_gold(workspace_dir / "gold" / "p")
    assert gold.items[1].pair == Pair("first 1", "second 1", "old", "new") and not gold.items[1].answer
    assert list(gold.labels.values()) == ["A", "B", "B"] and gold.scale.categories == ("A", "B")


def test_an_answer_goes_before_a_pair() -> None:
    header = ("question", "answer", "answer_a", "answer_b", "model_a", "model_b")
    assert not Columns(usual=True).resolved(header).pairs
    given = Columns(usual=True, answer_a="x", answer_b="y").resolved((*header, "x", "y"))
    assert given == Columns("question", answer_a="x", answer_b="y", system_a="model_a", system_b="model_b")
    assert Columns("q", answer_a="x").problems() and Columns("q", "z", answer_a="x", answer_b="y").problems()
    assert Columns("q", "a", system_a="s").problems() and not given.problems()


def test_verdicts_beside_labels_and_frames(judgecal: Run, workspace_dir: Path) -> None:
    made = [{**row, "gpt-9": ("tie", "B")[n % 2]} for n, row in enumerate(rows(*"ABBA" * 10))]
    found = one_object(judgecal("agreement", table(workspace_dir / "t.csv", made), "--json"))
    (judge,) = found["judges"]
    assert judge["n_unscored"] == 0, "a tie is a verdict though no person said so"
    assert judge["agreement"]["accuracy"]["value"] == pytest.approx(0.25)
    gold = GoldSet.from_frame(polars.DataFrame(made), labels="label")
    assert gold.items[0].pair == Pair("first 0", "second 0", "old", "new")


def pair_set(workspace: Path, n: int = 24) -> Path:
    items = [{"item_id": f"i{n}", "question": f"Q{n}?", "answer_a": f"first {n}", "answer_b": f"second {n}",
              "system_a": "gpt-9", "system_b": "mistral-8"} for n in range(n)]  # fmt: skip
    scale = 'kind = "nominal"\ncategories = ["A", "B", "tie"]'
    return made_gold(workspace / "gold" / "p", items, (), scale=scale)


def test_sheets_shuffle_sides_and_come_back_as_a_and_b(workspace_dir: Path) -> None:
    gold, lefts = load_gold(pair_set(workspace_dir)), []
    paths = write_sheets(gold.items, workspace_dir / "s.xlsx", raters=2, scale=gold.scale).paths
    for path in paths:
        sheet: Any = openpyxl.load_workbook(path).active
        header, *cells = ([cell or "" for cell in row] for row in sheet.values)
        assert header[3:6] == ["answer_left", "answer_right", "label"] and not any(
            "gpt" in str(row) or "mistral" in str(row) for row in cells
        )
        read = [dict(zip(header, row, strict=True)) for row in cells]
        for row in read:  # whoever is right: the first answer
            row["label"] = "Left" if row["answer_left"].startswith("first") else "right"
        lefts.append({row["item_id"]: row["label"] for row in read})
        table(path.with_suffix(".csv"), read)
    assert 4 < sum(left == "Left" for left in lefts[0].values()) < 20 and lefts[0] != lefts[1]
    into: dict[str, Any] = {"name": "p", "workspace": Workspace(workspace_dir, workspace_dir / "experiments")}
    import_sheets([path.with_suffix(".csv") for path in paths], **into)
    done = load_gold(gold.path).ratings
    assert {rating.label for rating in done} == {"A"} and len(done) == 48
    shown = {rating.item_id: rating.shown_left for rating in done if rating.rater == "s-1"}
    assert shown == {item: "A" if left == "Left" else "B" for item, left in lefts[0].items()}
    read[0]["label"], read[1]["answer_left"] = "A", "another"
    with pytest.raises(InputError, match="none of left, right, tie") as refused:
        import_sheets([Path(table(workspace_dir / "t.csv", read))], **into)
    assert "another answer_left" in str(refused.value)


def test_the_desk_shows_sides_and_keeps_a_and_b(tmp_path: Path) -> None:
    folder = pair_set(tmp_path)
    with desk_of(folder, shuffled=False) as desk:
        shown, seen = act(desk, "ann", "next"), []
        assert [choice["said"] for choice in choices_of(desk.gold.card, sides=True)] == [
            "left",
            "tie",
            "right",
        ]
        with pytest.raises(Refusal, match="not a label"):
            act(desk, "ann", "label", item=shown["item"]["key"], turn=1, label="A")
        while shown["item"]:
            assert "gpt" not in json.dumps(shown) and not shown["item"]["answer"]
            seen.append(shown["item"]["answers"][0])
            said = ("left", "right", "tie")[(len(seen) - 1) % 3]
            shown = act(desk, "ann", "label", item=shown["item"]["key"], turn=1, label=said)
    assert len(ratings(folder)) == 24
    for n, (row, left) in enumerate(zip(ratings(folder), seen, strict=False)):
        side = "A" if left.startswith("first") else "B"
        assert row["shown_left"] == side and row["label"] == (side, {"A": "B", "B": "A"}[side], "tie")[n % 3]
    assert {row["shown_left"] for row in ratings(folder)} == {"A", "B"}
    opinions = {rating.item_id: [rating] for rating in load_gold(folder).ratings}
    with desk_of(folder, raters=("gold",), shuffled=False, opinions=opinions, seed=5) as desk:
        item = act(desk, "gold", "next")["item"]
    assert item["opinions"] == [["left" if item["answers"][0] == seen[0] else "right", ""]]


def test_sides_are_of_pairs_labels_alone_and_a_swapped_pair_is_the_same(tmp_path: Path) -> None:
    gold = load_gold(pair_set(tmp_path, 2))
    first = gold.items[0]
    again = replace(first, item_id="again", pair=first.pair and first.pair.swapped())
    problems = check_gold(replace(gold, items=(*gold.items, again)))
    assert [one.where for one in problems if one.kind == "duplicate"] == ["items.jsonl:1, again"]
    assert left_of(first, Scale.parse("ordinal:-2:2"), "0:ann") is None
    assert left_of(Item("i", "g", "Q?", "a"), gold.scale, "0:ann") is None
