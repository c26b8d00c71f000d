"""Pairs of answers: from a table, to raters who see them in either order, and back as labels of A and B."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import openpyxl
import polars
import pytest

import judgecal
from judgecal.desk.desk import Refusal
from judgecal.desk.server import choices_of
from judgecal.errors import InputError
from judgecal.goldset import import_sheets, load_gold, write_sheets
from judgecal.goldset.check import check_gold
from judgecal.goldset.pairs import by_side, left_of, pairs_told
from judgecal.records import Item, Pair
from judgecal.scale import Scale
from judgecal.tables import Columns
from judgecal.workspace import Workspace
from tests.support.command import Run, one_object
from tests.support.desk import act, desk_of, ratings

PAIRS = Scale("nominal", 0.0, 0.0, categories=("A", "B", "tie"))


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def rows(*labels: str, **more: str) -> list[dict[str, Any]]:
    return [
        {"question": f"Q{n}?", "answer_a": f"first {n}", "answer_b": f"second {n}", "system_a": "old",
         "system_b": "new", "label": label, **more} for n, label in enumerate(labels)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["A", "b", "Tie"], {"a": "A", "b": "B", "tie": "tie"}),
        (["left", "RIGHT", "tie"], {"left": "A", "right": "B", "tie": "tie"}),
        (["1", "2", "0"], {"1": "A", "2": "B", "0": "tie"}),
        (["model_a", "model_b", "tie (inconsistent)"], {"model_a": "A", "model_b": "B", "tie (inconsistent)": "tie"}),
        (["A > B", "B>A", "A=B"], {"a > b": "A", "b>a": "B", "a=b": "tie"}),
        (["output_2"], {"output_2": "B"}),
    ],
)  # fmt: skip
def test_words_for_sides(cells: list[str], words: dict[str, str]) -> None:
    assert pairs_told(cells)[:2] == ("nominal", words)


@pytest.mark.parametrize("cells", [["0", "1"], ["1", "tie"], ["A", "gpt-9"], ["-1", "1"], ["yes", "no"]])
def test_what_may_be_either_is_refused(judgecal: Run, workspace_dir: Path, cells: list[str]) -> None:
    file = table(workspace_dir / "t.csv", rows(*cells))
    ran = judgecal("gold", "import", str(file), "--as", "p", "--label", "label")
    assert ran.code == 2 and "A, B or tie" in ran.err and "--map" in ran.err
    maps = [part for cell, to in zip(cells, "AB", strict=True) for part in ("--map", f"{cell}={to}")]
    ran = judgecal("gold", "import", str(file), "--as", "p", "--label", "label", *maps, "--json")
    assert one_object(ran)["n_labelled"] == 2
    assert list(load_gold(workspace_dir / "gold" / "p").labels.values()) == ["A", "B"]


@pytest.mark.parametrize("names", [("response_A", "response_B"), ("output_1", "output_2"), ("answer_left", "answer_right")])  # fmt: skip
def test_usual_names_make_pairs(judgecal: Run, workspace_dir: Path, names: tuple[str, str]) -> None:
    made = [
        {"question": row["question"], names[0]: row["answer_a"], names[1]: row["answer_b"], "model_a": "old",
         "model_b": "new", "label": row["label"]} for row in rows("1", "2", "2")
    ]  # fmt: skip
    file = table(workspace_dir / "t.csv", made)
    dry = judgecal("gold", "import", str(file), "--as", "p", "--label", "label", "--dry-run").out
    assert f"{names[0]} as answer a" in " ".join(dry.split()) and "1 is A, 2 is B" in dry
    assert judgecal("gold", "import", str(file), "--as", "p", "--label", "label").code == 0
    gold = load_gold(workspace_dir / "gold" / "p")
    assert gold.items[1].pair == Pair("first 1", "second 1", "old", "new") and not gold.items[1].answer
    assert list(gold.labels.values()) == ["A", "B", "B"] and gold.scale.categories == ("A", "B")
    again = judgecal(
        "gold", "import", str(file), "--as", "q", *gold.card.made_by.split(" --as p ")[1].split()
    )
    assert again.code == 0 and load_gold(workspace_dir / "gold" / "q").labels == {
        name.replace("p-", "q-"): label for name, label in gold.labels.items()
    }


def test_three_answers_are_no_pair_and_an_answer_goes_before(judgecal: Run, workspace_dir: Path) -> None:
    three = table(
        workspace_dir / "t.csv", [{"question": "Q?", "answer_1": "a", "answer_2": "b", "answer_3": "c"}]
    )
    assert "--answer" in judgecal("gold", "import", str(three), "--as", "p").err
    header = ("question", "answer", "answer_a", "answer_b")
    assert not Columns(usual=True).resolved(header).pairs
    assert Columns(usual=True, answer_a="x", answer_b="y").resolved((*header, "x", "y", "model_a", "model_b")) == (
        Columns("question", answer_a="x", answer_b="y", system_a="model_a", system_b="model_b")
    )  # fmt: skip
    wrong = (
        Columns("q", answer_a="x"),
        Columns("q", "z", answer_a="x", answer_b="y"),
        Columns("q", system_a="s"),
    )
    assert all(columns.problems() for columns in wrong)


def test_verdicts_beside_labels_and_frames(judgecal: Run, workspace_dir: Path) -> None:
    said = ["A", "B", "B", "A"] * 10
    made = [{**row, "gpt-9": ("tie", "B")[n % 2]} for n, row in enumerate(rows(*said, human="x"))]
    made = [{**row, "human": row["label"]} for row in made]
    found = one_object(judgecal("agreement", str(table(workspace_dir / "t.csv", made)), "--json"))
    (judge,) = found["judges"]
    assert judge["n_unscored"] == 0, "a tie is a verdict though no person said so"
    assert judge["agreement"]["accuracy"]["value"] == pytest.approx(0.25)
    gold = judgecal_frame(made)
    assert gold.items[0].pair == Pair("first 0", "second 0", "old", "new")
    assert sum(label == "A" for label in gold.labels.values()) == 20


def judgecal_frame(made: list[dict[str, Any]]) -> Any:
    return judgecal.GoldSet.from_frame(polars.DataFrame(made), labels="label")


def pair_set(workspace: Path, n: int = 24, categories: str = '["A", "B", "tie"]') -> Path:
    folder = workspace / "gold" / "p"
    folder.mkdir(parents=True)
    (folder / "card.toml").write_text(
        f'schema = 1\nname = "p"\nversion = "1"\n[scale]\nkind = "nominal"\ncategories = {categories}\n'
    )
    items = [
        {"item_id": f"i{n}", "question": f"Q{n}?", "answer_a": f"first {n}", "answer_b": f"second {n}",
         "system_a": "gpt-9", "system_b": "mistral-8"} for n in range(n)
    ]  # fmt: skip
    (folder / "items.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items))
    (folder / "ratings.jsonl").write_text("")
    return folder


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_sheets_shuffle_sides_and_come_back_as_a_and_b(workspace_dir: Path, form: str) -> None:
    gold = load_gold(pair_set(workspace_dir))
    sheets = write_sheets(gold.items, workspace_dir / f"s.{form}", raters=2, scale=gold.scale)
    lefts = []
    for path in sheets.paths:
        if form == "csv":
            with path.open(encoding="utf-8-sig", newline="") as file:
                read = list(csv.DictReader(file))
        else:
            header, *cells = openpyxl.load_workbook(path).active.values
            read = [dict(zip(header, (cell or "" for cell in row), strict=True)) for row in cells]
        assert [*read[0]] == [
            "item_id",
            "question",
            "reference_answer",
            "answer_left",
            "answer_right",
            "label",
            "note",
        ]
        assert not any("gpt" in str(row) or "mistral" in str(row) for row in read)
        for row in read:  # whoever is right: the first answer
            row["label"] = "Left" if row["answer_left"].startswith("first") else "right"
        lefts.append({row["item_id"]: row["label"] for row in read})
        table(path.with_suffix(".csv"), read)
    assert 4 < sum(left == "Left" for left in lefts[0].values()) < 20 and lefts[0] != lefts[1]
    workspace = Workspace(workspace_dir, workspace_dir / "experiments")
    import_sheets([path.with_suffix(".csv") for path in sheets.paths], name="p", workspace=workspace)
    done = load_gold(gold.path)
    assert {rating.label for rating in done.ratings} == {"A"} and len(done.ratings) == 48
    shown = {rating.item_id: rating.shown_left for rating in done.ratings if rating.rater == "s-1"}
    assert shown == {item: "A" if left == "Left" else "B" for item, left in lefts[0].items()}
    read[0]["label"], read[1]["answer_left"] = "A", "another"
    with pytest.raises(InputError) as refused:
        import_sheets([table(workspace_dir / "t.csv", read)], name="p", workspace=workspace)
    assert "none of left, right, tie" in str(refused.value) and "another answer_left" in str(refused.value)


def test_the_desk_shows_sides_and_keeps_a_and_b(tmp_path: Path) -> None:
    folder = pair_set(tmp_path)
    with desk_of(folder, raters=("ann", "bob"), order="in-order") as desk:
        shown, seen = act(desk, "ann", "next"), []
        assert choices_of(desk.gold.card, sides=True)[0].name == "Left is better"
        with pytest.raises(Refusal, match="not a label"):
            act(desk, "ann", "label", item=shown["item"]["key"], turn=1, label="A")
        while shown["item"]:
            assert "gpt" not in json.dumps(shown) and not shown["item"]["answer"]
            seen.append(shown["item"]["answers"][0])
            said = ("right", "left", "tie")[len(seen) % 3]
            shown = act(desk, "ann", "label", item=shown["item"]["key"], turn=1, label=said)
        before = act(desk, "ann", "undo")["item"]
        assert before["answers"][0] == seen[-1] and len(ratings(folder)) == 23
    for row, left, n in zip(ratings(folder), seen, range(1, 24), strict=False):
        assert row["shown_left"] == ("A" if left.startswith("first") else "B")
        other = "B" if row["shown_left"] == "A" else "A"
        assert row["label"] == (other, row["shown_left"], "tie")[n % 3]
    assert {row["shown_left"] for row in ratings(folder)} == {"A", "B"}
    gold = load_gold(folder)
    opinions = {
        item.item_id: [one for one in gold.ratings if one.item_id == item.item_id] for item in gold.items
    }
    with desk_of(folder, raters=("gold",), order="in-order", opinions=opinions, seed=5) as desk:
        item = act(desk, "gold", "next")["item"]
        said = by_side(str(gold.labels["i0"]), "A" if item["answers"][0] == "first 0" else "B")
        assert item["opinions"] == [[said, ""]] and said in ("left", "right")


def test_without_a_tie_and_off_pair_scales() -> None:
    item = Item("i", "g", "Q?", "", pair=Pair("a", "b"))
    assert left_of(item, PAIRS, "0:ann") == left_of(item, PAIRS, "0:ann") is not None
    assert left_of(item, Scale.parse("ordinal:-2:2"), "0:ann") is None
    assert left_of(Item("i", "g", "Q?", "a"), PAIRS, "0:ann") is None
    assert [by_side(label, "B") for label in ("A", "B", "tie", "left", "right")] == [
        "right",
        "left",
        "tie",
        "B",
        "A",
    ]
    assert by_side("A", None) == "A"


def test_the_check_takes_a_swapped_pair_for_the_same(tmp_path: Path) -> None:
    folder = pair_set(tmp_path, 2)
    swapped = {
        "item_id": "again",
        "group": "Q0?",
        "question": "Q0?",
        "answer_a": "second 0",
        "answer_b": "first 0",
    }
    with (folder / "items.jsonl").open("a") as file:
        file.write(f"{json.dumps(swapped)}\n")
    found = [(problem.kind, problem.where) for problem in check_gold(load_gold(folder))]
    assert ("near_duplicate", "items.jsonl:1, items.jsonl:3") in found
