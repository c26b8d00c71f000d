"""Spreadsheets as people save them: each is read right, every cell of it, or refused in one message.

Workbooks of every kind come in and go out. The files are in fixtures/spreadsheets, with what each must be read
as: LibreOffice saved them in its own dialects, and a script in those that Excel is known to save (no Excel was at hand).
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from judgecal.errors import InputError
from judgecal.goldset import Columns, import_gold
from judgecal.tables import Table, open_table, read_table, write_table
from judgecal.tables.text import is_formula
from judgecal.workspace import Workspace

FOLDER = Path(__file__).parent / "fixtures" / "spreadsheets"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
READ = [name for name, wanted in EXPECTED.items() if "refused" not in wanted]
REFUSED = [name for name in EXPECTED if name not in READ]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    for name in ("signatures", "gold", "experiments"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    return Workspace(tmp_path, tmp_path / "experiments")


@pytest.mark.parametrize("name", READ)
def test_a_spreadsheet_is_read_right(name: str, place: Workspace) -> None:
    wanted = EXPECTED[name]
    column, day = wanted["field"]
    columns = Columns(question=wanted["question"], answer=wanted["answer"], fields=(("day", column),))
    labels = list(wanted["labels"].items()) or [("percentage", (None, []))]
    for scale, (labelled, expected) in labels:
        asked = columns if labelled is None else Columns(**_fields(columns), labels=(labelled,))
        done = import_gold(FOLDER / name, name="s", columns=asked, scale=scale, workspace=place, replace=True)
        items = list(done.gold.items)
        assert [[item.question, item.answer] for item in items] == wanted["texts"]
        if day is not None:
            assert {item.fields["day"] for item in items} == {day}
        found = {rating.item_id: rating.label for rating in done.gold.ratings}
        assert [found.get(item.item_id) for item in items] == (expected or [None] * len(items))


def _fields(columns: Columns) -> dict[str, Any]:
    return {"question": columns.question, "answer": columns.answer, "fields": columns.fields}


@pytest.mark.parametrize("name", REFUSED)
def test_a_spreadsheet_is_refused_in_one_message(name: str, place: Workspace) -> None:
    wanted = EXPECTED[name]
    columns = Columns(question=wanted["question"], answer=wanted["answer"], labels=(wanted["label"],))
    with pytest.raises(InputError) as error:
        import_gold(FOLDER / name, name="s", columns=columns, scale="percentage", workspace=place)
    assert wanted["refused"] in error.value.problems[0]
    assert not (place.gold / "s").exists()


_WESTERN = "abcdefghij ABC0123456789äöüßéèàçñ,;|\t\"'\n.%-/=€"
_CELLS = st.text(st.sampled_from(_WESTERN), max_size=8)
_TABLES = st.lists(st.tuples(_CELLS, _CELLS, _CELLS), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(
    _TABLES,
    st.sampled_from(",;\t|"),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["t.csv", "t.tsv", "t.txt"]),
)
def test_no_way_to_save_a_table_is_read_wrong_in_silence(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str]],
    separator: str,
    encoding: str,
    quoting: int,
    name: str,
) -> None:
    """What is read is what was saved, or nothing is; the apostrophe that keeps a cell from being run is taken
    off."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator="\r\n")
    writer.writerow(("question", "an, answer", "label; one"))
    writer.writerows(rows)
    path = tmp_path_factory.mktemp("saved") / name
    path.write_bytes(text.getvalue().encode(encoding, "replace"))
    wanted = [[one.encode(encoding, "replace").decode(encoding) for one in row] for row in rows]
    try:
        table = read_table(path)
    except InputError:
        return
    assert table.columns == ("question", "an, answer", "label; one")
    for row, saved in zip(table.rows, [row for row in wanted if any(row)], strict=True):
        for cell, one in zip(row.cells.values(), saved, strict=True):
            assert cell == one or (cell == one[1:] and one[0] == "'" and is_formula(one.lstrip("'")))


def saved(tmp_path: Path, rows: list[list[Any]], **cells: Any) -> Path:
    """A workbook of rows; `cells`: further ones by their names, (value, number format) or a value."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for name, value in cells.items():
        value, form = value if isinstance(value, tuple) else (value, "General")
        book.active[name], book.active[name].number_format = value, form
    book.save(tmp_path / "t.xlsx")
    return tmp_path / "t.xlsx"


def changed(path: Path, change: Any) -> Path:
    book = openpyxl.load_workbook(path)
    change(book)
    book.save(path)
    return path


def rows_of(table: Table) -> list[tuple[int, dict[str, Any]]]:
    return [(row.line, dict(row.raw)) for row in table.rows]


def refused(path: Path) -> tuple[str, ...]:
    with pytest.raises(InputError) as error:
        read_table(path)
    return error.value.problems


def test_a_cell_is_its_value(tmp_path: Path) -> None:
    day = datetime.datetime(2026, 3, 1)
    path = saved(
        tmp_path,
        [["n", "p", "m", "d", "t", "b", "s"], [5.0, 0.855, 85, day, day.replace(hour=9), True, "_x000D_\nx"]],
        B2=(0.855, "0%"),
        A3=0.1 + 0.2,
        B3=(1, "0.00 %"),
        G3="#N/A",
    )
    table = read_table(path)
    assert rows_of(table) == [
        (
            2,
            dict(
                zip(
                    table.columns,
                    (5, "85.5%", 85, "2026-03-01", "2026-03-01 09:00:00", True, "\nx"),
                    strict=True,
                )
            ),
        ),
        (3, dict(zip(table.columns, (0.3, "100%", None, None, None, None, "#N/A"), strict=True))),
    ]
    assert table.rows[0].cells["n"] == "5" and table.rows[0].cells["b"] == "true"
    assert table.at(table.rows[1]).endswith("t.xlsx:row 3")
    assert table.notes == ()
    mac = changed(path, lambda book: setattr(book, "epoch", CALENDAR_MAC_1904))
    assert read_table(mac).rows[0].raw["d"] == "2026-03-01"


def test_the_first_visible_sheet_with_anything_is_read(tmp_path: Path) -> None:
    path = saved(tmp_path, [], B4="q", C4="a\u00a0\n(text) ", E4="l", B5="Q", C5="1", C6="2", E6=3)

    def add(book: Any) -> None:
        book.active.merge_cells("B8:C8")  # decoration: nothing stands there
        book.create_sheet("empty")
        book.create_sheet("more").append(["x"])
        hidden = book.create_sheet("first", 0)
        hidden["A1"], hidden.sheet_state = 1, "hidden"
        book.active = 1

    table = read_table(changed(path, add))
    assert rows_of(table) == [
        (5, {"q": "Q", "a (text)": "1", "l": None}),
        (6, {"q": None, "a (text)": "2", "l": 3}),
    ]
    assert table.where == f"{path} (sheet 'Sheet')"
    assert table.notes == (f"{table.where}: other sheets are not read: 'first', 'more'",)


def test_a_formula_without_a_value_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path, [["q", "l"], ["Q1", 1], ["mean", "=AVERAGE(B2:B2)"]])
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    assert "cells B3: formulas whose values were not saved" in refused(path)[0]
    parts[sheet] = parts[sheet].replace(b"<v />", b"<v>1.5</v>").replace(b"<v></v>", b"<v>1.5</v>")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert rows_of(read_table(path)) == [(2, {"q": "Q1", "l": 1}), (3, {"q": "mean", "l": 1.5})]


def test_a_damaged_workbook_is_refused_or_read(tmp_path: Path) -> None:
    path = saved(tmp_path, [["q", "l"], ["Q1", 1], ["Q2", 2]])
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    outcomes = set()
    for seed in range(60):
        draw = random.Random(seed)
        name = draw.choice(sorted(parts))
        damaged = bytearray(parts[name])
        for _ in range(3):
            damaged[draw.randrange(len(damaged))] = draw.choice(b'<>/"=0A9 &x')
        with zipfile.ZipFile(path, "w") as archive:
            for other, content in parts.items():
                if other != name or seed % 7:
                    archive.writestr(other, bytes(damaged) if other == name else content)
        try:
            outcomes.add(len(read_table(path).rows))
        except InputError as error:
            outcomes.add(str(error).split(": ", 1)[1][:10])
    assert "cannot be " in outcomes and 2 in outcomes


def test_what_is_written_is_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [
        "=1+1", "@x", "007", "TRUE", "#N/A", " two\nlines ", "a\r\nb\rc", "\x01_x0001_", "'tis", "1/2", "",
    ]  # fmt: skip
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"q": text, "n": 0.5, "l": [1], "b": True}) + "\n" for text in texts))
    source, out = open_table(path), tmp_path / "o.xlsx"
    values = [("v", 85.0, True), (None, None, None), *[("=x", 0.1, False)] * 9]
    write_table(out, pl.DataFrame(values, {"v": str, "s": float, "f": bool}, orient="row"), source)
    table = read_table(out)
    assert table.columns == ("q", "n", "l", "b", "v", "s", "f") and table.notes == ()
    assert [row.cells["q"] for row in table.rows] == [text.replace("\r\n", "\n") for text in texts]
    assert dict(table.rows[0].raw) == dict(
        zip(table.columns, ("=1+1", 0.5, "[1]", True, "v", 85, True), strict=True)
    )
    assert table.rows[1].raw["v"] is None and table.rows[2].raw["v"] == "=x"
    assert capsys.readouterr().err == ""


def test_what_a_workbook_cannot_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.jsonl").write_text('{"q": "' + "x" * 40_000 + '"}\n')
    source = open_table(tmp_path / "t.jsonl")
    write_table(tmp_path / "o.xlsx", pl.DataFrame({"n": [1]}), source)
    assert "1 texts above the 32,767 characters" in capsys.readouterr().err
    assert len(read_table(tmp_path / "o.xlsx").rows[0].cells["q"]) == 32_767
    with pytest.raises(InputError, match="holds 1,048,575 rows at most"):
        write_table(tmp_path / "p.xlsx", pl.DataFrame({"n": range(2_000_000)}))
