"""Spreadsheets as people save them: each is read right, every cell of it, or refused in one message.

The files are in fixtures/spreadsheets, with the script that made them and what each must be read as.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgecal.errors import InputError
from judgecal.goldset import Columns, import_gold
from judgecal.tables import read_table
from judgecal.tables.cells import runs
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


def test_there_are_thirty_of_three_locales_and_each_has_its_expectation() -> None:
    files = {path.name for path in FOLDER.iterdir() if path.suffix not in (".py", ".json")}
    assert files == set(EXPECTED) and len(READ) >= 30
    assert all(sum(f"-{language}" in name for name in READ) >= 6 for language in ("en", "de", "fr"))


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
    assert len(error.value.problems) == 1 and wanted["refused"] in error.value.problems[0]
    assert not (place.gold / "s").exists()


def test_the_files_have_the_line_ends_that_they_were_saved_with() -> None:
    assert (
        b"\r\n" in (FOLDER / "excel-de.csv").read_bytes()
        and b"\n" not in (FOLDER / "excel-mac-en.csv").read_bytes()
    )


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
            assert cell == one or (cell == one[1:] and one[0] == "'" and runs(one.lstrip("'")))
