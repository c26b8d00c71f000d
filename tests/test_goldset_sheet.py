"""Blind sheets: what goes out, what a spreadsheet does to it, and what comes back."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgecal.errors import InputError
from judgecal.goldset import GoldDocument, GoldSet, import_sheets, load_gold, write_gold, write_sheets
from judgecal.goldset.card import Card, RaterCard
from judgecal.goldset.sheet import code_of
from judgecal.records import Context, Item, Rating
from judgecal.scale import Scale
from judgecal.tables import defuse, same_text, undefuse
from judgecal.workspace import Workspace

Row = dict[str, str]

# What a spreadsheet would run, turn into a number, a date or a truth value, or cut apart.
ANSWERS = (
    "=1+1", "+49 30 1234", "-5", "@home", "\tindented", " =SUM(A1)", "'tis so", "November 1", "1.50", "007",
    "TRUE", "1/2", "12 %", "", "two\nlines; and, commas", 'a "quoted" word', "Zażółć gęślą jaźń €",
    '=HYPERLINK("x","y")', "1. März", "plain",
)  # fmt: skip


def made(n: int = 0) -> list[Item]:
    items = [
        Item(
            f"it-{n:03d}",
            f"g{n}",
            f"Question {n}?",
            answer,
            (("100",) if n % 2 else ("one", "two")),
            system="secret-sys",
            tags=("hidden-tag",),
            contexts=(Context("first"), Context("- second")) if n == 3 else (),
        )
        for n, answer in enumerate(ANSWERS)
    ]
    return items[:n] if n else items


@pytest.fixture
def gold(place: Workspace) -> GoldSet:
    card = Card(
        "mine",
        Scale.parse("percentage", step=5, pass_at=75),
        raters={"anna": RaterCard("first")},
        explained={"thin_split": "small on purpose"},
    )
    items = made()
    ratings = [Rating(item.item_id, "anna", 50.0) for item in items[:4]]
    return write_gold(card, items, ratings, workspace=place, documents=[GoldDocument("d", None, "text")])


def read(path: Path) -> list[Row]:
    text = path.read_bytes().decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def as_spreadsheet(cell: str) -> str:
    """What a spreadsheet makes of a cell on opening: formulas are run, numbers, dates and truth values
    rewritten."""
    if re.match(r"[=+\-@\t\r]", cell.lstrip(" ")):
        return "#NAME?"
    if re.fullmatch(r"[\d.,]+", cell):
        return f"{float(cell):g}"
    if re.fullmatch(r"\d+/\d+|[A-Z][a-zä]+ \d+|\d+\. [A-Z][a-zä]+", cell):
        return "01. Nov"
    if cell in ("TRUE", "FALSE"):
        return "WAHR"
    return f"{cell.rstrip(' %')}.00%" if re.fullmatch(r"\d+ ?%", cell) else cell


def resave(
    path: Path, fill: Callable[[Row], dict[str, str]], *, delimiter: str = ";", bom: bool = True
) -> None:
    """Open a sheet, fill it in, sort it, move the columns and save it, as a spreadsheet of another locale
    would."""
    rows = [{name: as_spreadsheet(cell) for name, cell in row.items()} for row in read(path)]
    rows = [row | fill(row) for row in rows]
    random.Random(1).shuffle(rows)
    columns = [*reversed(rows[0]), ""]
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow([name.capitalize() for name in columns])
    writer.writerows([row.get(name, "").replace("\n", "\r\n") for name in columns] for row in rows)
    writer.writerow([""] * len(columns))
    path.write_text(text.getvalue(), encoding="utf-8-sig" if bom else "utf-8", newline="")


def test_a_sheet_is_blind_and_shuffled(gold: GoldSet, tmp_path: Path) -> None:
    sheets = write_sheets(gold.items, tmp_path / "out" / "s.csv", raters=2, seed=4)
    assert [path.name for path in sheets.paths] == ["s-1.csv", "s-2.csv"]
    first, second = (read(path) for path in sheets.paths)
    assert list(first[0]) == [
        "item_id", "question", "reference_answer", "answer", "contexts", "label", "note",
    ]  # fmt: skip
    ids = [item.item_id for item in gold.items]
    orders = [[row["item_id"] for row in rows] for rows in (first, second)]
    assert sorted(orders[0]) == sorted(orders[1]) == ids
    assert len({tuple(ids), *map(tuple, orders)}) == 3
    assert {row["label"] + row["note"] for row in (*first, *second)} == {""}
    text = sheets.paths[0].read_bytes()
    assert text.startswith(b"\xef\xbb\xbf") and b"secret-sys" not in text and b"hidden-tag" not in text
    again = write_sheets(gold.items, tmp_path / "t.csv", raters=2, seed=4)
    assert again.paths[0].read_bytes() == text
    other = write_sheets(gold.items, tmp_path / "u.csv", seed=5)
    assert [row["item_id"] for row in read(other.paths[0])] != orders[0]


def test_a_limit_draws_the_same_items_for_every_rater(gold: GoldSet, tmp_path: Path) -> None:
    sheets = write_sheets(gold.items, tmp_path / "s.csv", raters=3, limit=5)
    drawn = [{row["item_id"] for row in read(path)} for path in sheets.paths]
    assert drawn[0] == drawn[1] == drawn[2] and len(drawn[0]) == sheets.n_items == 5
    assert drawn[0] != {item.item_id for item in gold.items[:5]}


def test_ids_that_tell_the_system_are_coded(place: Workspace, tmp_path: Path) -> None:
    items = [Item(f"plover-2/{n}", f"g{n}", f"Q{n}?", f"A{n}", system="Plover-2") for n in range(4)]
    card = Card("coded", Scale.parse("binary"))
    write_gold(card, items, [Rating(items[0].item_id, "x", 1.0)], workspace=place)
    sheets = write_sheets(items, tmp_path / "ben.csv")
    assert sheets.coded and "codes stand in their place" in sheets.notes[0]
    assert {row["item_id"] for row in read(sheets.paths[0])} == {code_of(item) for item in items}
    resave(sheets.paths[0], lambda row: {"label": "yes"})
    done = import_sheets([sheets.paths[0]], name="coded", workspace=place)
    assert done.gold.ratings_by_rater["ben"] == {item.item_id: 1.0 for item in items}


def test_wrong_use_writes_nothing(gold: GoldSet, tmp_path: Path) -> None:
    (tmp_path / "s-2.csv").write_text("somebody's work", encoding="utf-8")
    with pytest.raises(InputError) as error:
        write_sheets(gold.items, tmp_path / "s.csv", raters=2, limit=0)
    assert len(error.value.problems) == 2 and "--limit must be at least 1" in error.value.problems[0]
    assert "s-2.csv: is there already" in error.value.problems[1]
    assert not (tmp_path / "s-1.csv").exists()
    with pytest.raises(InputError, match=r"no item to label\n.*must be at least 1.*\n?"):
        write_sheets([], tmp_path / "t.csv", raters=-1)
    with pytest.raises(InputError, match=r"let its name end in \.csv or \.xlsx"):
        write_sheets(gold.items, tmp_path / "s.ods")


@given(st.text(max_size=30))
def test_every_cell_comes_back(text: str) -> None:
    cell = defuse(text)
    assert undefuse(cell) == text and same_text(cell, text) and same_text(text, text)
    assert cell.lstrip(" \u00a0")[:1] not in tuple("=+-@\t\r\n")


@pytest.mark.parametrize(("delimiter", "bom"), [(";", True), (",", False), ("\t", True)])
def test_the_round_trip(gold: GoldSet, place: Workspace, tmp_path: Path, delimiter: str, bom: bool) -> None:
    sheets = write_sheets(gold.items, tmp_path / "s.csv", raters=2)
    files = [
        path.rename(path.with_name(f"{name}.csv"))
        for path, name in zip(sheets.paths, ("ben", "cleo"), strict=True)
    ]
    last = gold.items[-1].item_id

    def fill(row: Row) -> Row:
        number = int(row["item_id"].removeprefix("it-"))
        return {
            "label": "" if row["item_id"] == last else f"{number % 3 * 50}%",
            "note": "=odd" if number == 1 else "",
        }

    for file in files:
        resave(file, fill, delimiter=delimiter, bom=bom)
    before = (gold.path / "ratings.jsonl").read_text(encoding="utf-8")
    done = import_sheets(files, name="mine", workspace=place)
    assert done.gold.raters == ("anna", "ben", "cleo")
    wanted = {item.item_id: float(n % 3 * 50) for n, item in enumerate(gold.items[:-1])}
    assert done.gold.ratings_by_rater["ben"] == done.gold.ratings_by_rater["cleo"] == wanted
    assert (
        done.gold.items == gold.items
        and done.gold.card == gold.card
        and done.gold.documents == gold.documents
    )
    assert (gold.path / "ratings.jsonl").read_text(encoding="utf-8").startswith(before)
    noted = [rating for rating in done.gold.ratings if rating.note]
    assert [(rating.item_id, rating.note) for rating in noted] == [("it-001", "=odd")] * 2
    assert "'ben' left 1 items without a label" in done.notes
    assert any("[raters.cleo]" in note for note in done.notes)


def filled(gold: GoldSet, path: Path, label: str = "50") -> Path:
    write_sheets(gold.items, path)
    resave(path, lambda _: {"label": label})
    return path


def test_earlier_labels_are_kept_without_replace(gold: GoldSet, place: Workspace, tmp_path: Path) -> None:
    same = filled(gold, tmp_path / "anna.csv")
    done = import_sheets([same], name="mine", workspace=place)  # four of them say the same as before
    assert len(done.gold.ratings) == len(gold.items)
    same.unlink()
    other = filled(gold, tmp_path / "anna.csv", "60")
    with pytest.raises(
        InputError, match=rf"'anna' rated {len(gold.items)} of the items differently .*: add --replace"
    ):
        import_sheets([other], name="mine", workspace=place)
    assert load_gold("mine", workspace=place).ratings == done.gold.ratings
    replaced = import_sheets([other], name="mine", workspace=place, replace=True).gold
    assert set(replaced.ratings_by_rater["anna"].values()) == {60.0} and replaced.raters == ("anna",)


def test_every_problem_has_its_line(gold: GoldSet, place: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "ben.csv"
    write_sheets(gold.items[13:], path, seed=0)
    rows = sorted(read(path), key=lambda row: row["item_id"])
    for row in rows:
        row["label"] = "50"
    rows[0]["label"] = "52"
    rows[2]["question"] = rows[3]["question"]
    rows[4]["item_id"] = "it-999"
    rows[5]["item_id"] = rows[3]["item_id"]
    rows[5] |= {name: rows[3][name] for name in ("question", "reference_answer", "answer")}
    rows[6]["item_id"] = ""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    before = (gold.path / "ratings.jsonl").read_bytes()
    with pytest.raises(InputError) as error:
        import_sheets([path], name="mine", workspace=place)
    # item 14 has an answer of two lines, so what comes after it stands a line lower
    problems = [problem.split("ben.csv:")[1] for problem in error.value.problems]
    assert problems[0].startswith("2: column label: 52 lies between the steps of 5")
    assert problems[1].startswith("5: item 'it-015' has another question than the set")
    assert problems[2].startswith("7: no item 'it-999' in gold set 'mine'")
    assert "8: item 'it-016' of 'ben' is in" in problems[3] and "ben.csv" in error.value.problems[3]
    assert problems[4].startswith("9: column item_id: empty")
    assert len(problems) == 5 and (gold.path / "ratings.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item_id,question,answer\nx,y,z\n", "unknown column 'label'"),
        ("item_id,question,answer,label,Label\n1,,,,\n", "'label' names two columns"),
        ("item_id;question;answer;label\nx;y;z;1;2\n", "5 cells where the header names 4"),
        ('item_id,question,answer,label\nx,"y\n', "s.csv:2: a quote opened in the row that begins here is never closed"),
        ("\n\n", "s.csv:1: the file holds no rows"),
        ("item_id,question,answer,label\n1,Q,A,N/A\n", "no item '1'"),
    ],
)  # fmt: skip
def test_broken_sheets(gold: GoldSet, place: Workspace, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "s.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(message)):
        import_sheets([tmp_path / "s.csv"], name="mine", workspace=place)


@pytest.mark.parametrize("scale", ["binary", "ordinal:0:3", "percentage", "nominal"])
def test_a_sheet_as_a_workbook(place: Workspace, tmp_path: Path, scale: str) -> None:
    texts = [*ANSWERS, "'=1", "''x", "_x0001_", "\x02", "#N/A"]
    items = [
        Item(f"it-{n:03d}", f"g{n}", f"Question {n}?", text, fields={"f": text})
        for n, text in enumerate(texts)
    ]
    path, known = tmp_path / "ben.xlsx", Scale.parse(scale)
    known = dataclasses.replace(known, categories=("good", "bad")) if scale == "nominal" else known
    write_gold(Card("new", known), items, (), workspace=place)
    assert write_sheets(items, path, scale=known).paths == (path,)
    book = openpyxl.load_workbook(path)
    sheet = book["table"]
    columns = {cell.value: cell.column for cell in sheet[1]}
    assert sheet.freeze_panes == "A2" and all(
        isinstance(cell.value, str | None) for row in sheet for cell in row
    )
    assert {cell.data_type for row in sheet for cell in row} == {"s", "n"}  # n: empty
    label = {"binary": True, "ordinal:0:3": 3, "percentage": 0.85, "nominal": "good"}[scale]
    for row in range(2, sheet.max_row + 1):
        cell = sheet.cell(row, columns["label"])
        cell.value, cell.number_format = label, "0%" if scale == "percentage" else "General"
    book.save(path)
    done = import_sheets([path], name="new", workspace=place)
    wanted = {"binary": 1.0, "ordinal:0:3": 3.0, "percentage": 85.0, "nominal": "good"}[scale]
    assert {rating.label for rating in done.gold.ratings} == {wanted} and len(done.gold.ratings) == len(items)


def test_gold_is_a_rater_only_by_name(gold: GoldSet, place: Workspace, tmp_path: Path) -> None:
    path = filled(gold, tmp_path / "gold.csv", "100")
    done = import_sheets([path], name="mine", workspace=place)
    assert set(done.gold.labels.values()) == {100.0} and done.gold.raters == ("anna",)


def test_labels_that_fit_no_set_are_refused_and_nothing_is_written(
    gold: GoldSet, place: Workspace, tmp_path: Path
) -> None:
    path = filled(gold, tmp_path / "ben.csv", "0")
    with pytest.raises(InputError, match="unknown gold set 'new': did you mean mine"):
        import_sheets([path], name="new", workspace=place)
    write_gold(Card("waits", Scale.parse("percentage")), gold.items, (), workspace=place)
    (path,) = write_sheets(gold.items, tmp_path / "cleo.csv").paths
    resave(path, lambda row: {"label": f"{int(row['item_id'].removeprefix('it-')) % 2}"})
    with pytest.raises(InputError, match="a small part of the scale percentage"):
        import_sheets([path], name="waits", workspace=place)
    assert load_gold("waits", workspace=place).ratings == ()


def test_answers_of_a_system_become_a_labelled_set(judgecal: Callable[..., Any], tmp_path: Path) -> None:
    assert judgecal("answer", "--limit", "14", "--name", "run1").code == 0
    sheet = tmp_path / "anna.csv"
    out = judgecal("gold", "sheet", "run1", "-o", sheet)
    assert out.code == 0, out.err
    command = out.out.strip().replace("\\\n", " ").partition("judgecal ")[2].split()
    assert command[-2:] == ["--as", "run1"]
    resave(sheet, lambda row: {"label": "80" if "document" in row["answer"] else "0"})
    assert judgecal(*command).code == 0
    answers = [json.loads(line) for line in Path("experiments/run1/items.jsonl").read_text().splitlines()]
    made = json.loads(judgecal("gold", "check", "run1", "--json").out)
    assert made["n_items"] == made["n_groups"] == len(answers) == 14
    scored = json.loads(judgecal("score", "--gold", "run1", "--split", "all", "--json").out)
    assert scored["judges"][0]["n"] == 14


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sheet", "nothing", "-o", "x.csv"), "unknown gold set or experiment 'nothing'"),
        (("import", "gold/README.md", "--as", "n", "--sheet", "--label", "a", "--map", "a=b"), "--label with --sheet"),
        (("import", "gold/README.md", "judgecal.toml", "--as", "n", "--col", "question=q"), "gold import reads one table, found 2"),
        (("import", "gold/starter/items.jsonl", "--as", "n"), "no column of labels has any: name it, --label, or give the --scale"),
        (("import", "x.csv", "--as", "starter", "--sheet"), "x.csv: there is no such file"),
    ],
)  # fmt: skip
def test_wrong_commands(judgecal: Callable[..., Any], words: Sequence[str], message: str) -> None:
    done = judgecal("gold", *words)
    assert done.code == 2 and message in done.err and not Path("x.csv").exists()
