"""Labels as people type them and spreadsheets save them, the scale that fits them, and raters who cannot tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.experiment.people import rater_agreement
from judgecal.goldset import Columns, Imported, check_gold, import_gold, load_gold
from judgecal.goldset.labels import guess_scale, is_no_label, read_label
from judgecal.scale import Scale
from judgecal.workspace import Workspace
from tests.support.command import Run
from tests.support.gold import made_gold, made_items


@pytest.mark.parametrize(
    ("cell", "scale", "label"),
    [
        ("85%", "percentage", 85.0),
        ("85 %", "percentage", 85.0),
        ("85\u202f%", "percentage", 85.0),
        ("8/10", "percentage", 80.0),
        ("8,5 / 10", "percentage", 85.0),
        ("85%", "fraction", 85.0),
        ("0,125", "fraction", 12.5),
        ("4/5", "fraction", 80.0),
        ("8/10", "ordinal:1:10", 8.0),
        ("3,5", "points:0:5:0.5", 3.5),
        ("1.0", "ordinal:0:5", 1.0),
        ("1,0", "ordinal:0:5", 1.0),
        ("+3", "ordinal:0:5", 3.0),
        ("WAHR", "binary", 1.0),
        ("Falsch", "binary", 0.0),
        ("VRAI", "binary", 1.0),
        ("FAUX", "binary", 0.0),
        ("1,0", "binary", 1.0),
        ("\u00a0Yes ", "binary", 1.0),
        ("correct\u00a0", "nominal", "correct"),
    ],
)
def test_a_label_cell(cell: str, scale: str, label: float | str) -> None:
    read = read_label(cell, Scale.parse(scale))
    assert read == pytest.approx(label) if isinstance(label, float) else read == label


@pytest.mark.parametrize(
    ("cell", "scale", "message"),
    [
        ("8/10", "ordinal:0:5", "'8/10' is out of 10, and the scale ends at 5"),
        ("11/10", "percentage", "out of 10, and the scale ends at 100"),
        ("1,000", "percentage", "is not a number"),
        ("85%", "ordinal:0:5", "is not a number"),
        ("8,5", "ordinal:0:10", "8.5 is not a whole number"),
        ("2026-10-08", "percentage", "is a date: a spreadsheet makes one of 8/10"),
        ("8.10.2026", "ordinal:0:10", "is a date"),
        ("WAHR", "percentage", "is not a number"),
        ("#NAME?", "percentage", "is not a number"),
        ("gut", "binary", "is none of yes/no"),
        ("3/5", "binary", "is none of yes/no"),
    ],
)
def test_a_cell_that_is_no_label(cell: str, scale: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        read_label(cell, Scale.parse(scale))


@pytest.mark.parametrize("cell", ["N/A", "n/a", "-", "?", "#N/A", "#NV", "\u00a0–", "NaN"])
def test_cells_without_a_label(cell: str) -> None:
    assert is_no_label(cell, Scale.parse("percentage"))
    assert is_no_label("None", Scale.parse("binary")) and not is_no_label("none", Scale.parse("nominal"))


def run(place: Workspace, cells: list[str], scale: str, **options: Any) -> Imported:
    path = place.root / "t.csv"
    path.write_text(
        "q,a,x\n" + "".join(f'Q{n},A,"{cell}"\n' for n, cell in enumerate(cells)), encoding="utf-8"
    )
    columns = Columns(question="q", answer="a", labels=("x",))
    return import_gold(path, name="s", columns=columns, scale=scale, workspace=place, **options)


def test_what_says_nothing_is_counted_by_its_word(place: Workspace) -> None:
    done = run(place, ["80", "N/A", "85 %", "", "-", "N/A", "9/10"], "percentage")
    assert sorted(rating.label for rating in done.gold.ratings) == [80.0, 85.0, 90.0]
    assert "label cells that say there is no label: 'N/A' 2, '-' 1" in done.notes


@pytest.mark.parametrize(
    ("cells", "scale", "message"),
    [
        (["0", "1", "2", "3", "4", "5"] * 2, "percentage", "the scale ordinal:0:5 fits them"),
        (["0", "0,5", "2", "3", "4", "5"] * 2, "percentage", "the scale points:0:5:0.5 fits them"),
        (["0.2", "0.9", "0.5"], "percentage", "the scale fraction fits them"),
        (["50%", "0.5", "75 %", "1"], "percentage", "and some without one lie between 0 and 1"),
    ],
)
def test_the_scale_that_fits_is_named(place: Workspace, cells: list[str], scale: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        run(place, cells, scale)
    assert message in error.value.problems[0]


@pytest.mark.parametrize(
    ("cells", "scale"),
    [
        (["richtig", "false"], "binary"),  # as WAHR and FALSCH are read
        (["yes", "nein"], "binary"),
        (["y", "n", "yes", "no"], "binary"),
        (["-1", "1"], "binary"),
        (["good", "ok", "bad"], "nominal"),  # two grades, and not two words for yes
        (["supported", "unsupported", "irrelevant"], "nominal"),
        (["1", "2", "5"], "ordinal:1:5"),
        (["0.1", "0.7"], "fraction"),
        (["40%", "90"], "percentage"),
    ],
)
def test_labels_tell_their_scale(cells: list[str], scale: str) -> None:
    assert guess_scale(cells)[0] == scale


def test_a_slip_of_the_pen_is_no_other_scale(place: Workspace) -> None:
    with pytest.raises(InputError) as error:
        run(place, ["0", "1", "2", "3", "4"] * 4 + ["3.7"], "ordinal:0:5")
    (found,) = error.value.problems
    assert "t.csv:22: column 'x': 3.7 is not a whole number" in found


PERCENT = 'kind = "percentage"\nmin = 0\nmax = 100'


def with_rows(folder: Path, *rows: dict[str, object], scale: str = PERCENT) -> Path:
    """A set of 12 questions, 36 answers; two people labelled all but the first."""
    items = made_items(12)
    labels = [
        (row["item_id"], rater, {"full": 100, "half": 50, "none": 0}[row["kind"]])
        for row in items[1:]
        for rater in ("ann", "bob")
    ]
    made_gold(folder, items, labels, scale=scale)
    with (folder / "ratings.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)
    return folder


def test_it_is_a_rating_and_no_label(tmp_path: Path) -> None:
    row = {"item_id": "i000-full", "rater": "ann", "reason": "cannot tell", "note": "no date"}
    gold = load_gold(with_rows(tmp_path / "one", row))
    (unclear,) = [rating for rating in gold.ratings if rating.label is None]
    assert (unclear.note, unclear.reason) == ("no date", "cannot tell")
    assert gold.cannot_tell == {"ann": 1} and "i000-full" not in gold.labels
    assert "i000-full" not in gold.ratings_by_rater["ann"] and len(gold.shared_items("ann", "bob")) == 35
    found = rater_agreement(gold)
    assert found.cannot_tell == {"ann": 1} and found.pairs[0].n == 35
    messages = {problem.kind: problem.message for problem in check_gold(gold)}
    assert "nobody who rated it could tell" in messages["unlabelled"]


def test_who_can_tell_of_nothing_is_no_rater(tmp_path: Path) -> None:
    row = {"item_id": "i000-full", "rater": "carol", "reason": "cannot tell"}
    gold = load_gold(with_rows(tmp_path / "one", row))
    assert gold.raters == ("ann", "bob") and gold.cannot_tell == {"carol": 1}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"label": 50, "reason": "cannot tell"}, "keep one of them"),
        ({}, "no label"),
        ({"reason": "no idea"}, "no label"),
    ],
)
def test_half_of_one_is_refused(tmp_path: Path, row: dict[str, object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        load_gold(with_rows(tmp_path / "one", {"item_id": "i000-full", "rater": "ann", **row}))


def test_a_sheet_may_say_so(judgecal: Run, workspace_dir: Path) -> None:
    folder = with_rows(workspace_dir / "gold" / "one")
    sheet = workspace_dir / "carol.csv"
    rows = [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    first = rows[0]
    sheet.write_text(
        f'item_id,question,answer,label,note\n{first["item_id"]},"{first["question"]}","{first["answer"]}",'
        "Cannot tell,which fair?\n",
        encoding="utf-8",
    )
    ran = judgecal("gold", "import", sheet, "--sheet", "--as", "one")
    assert ran.code == 0, ran.err
    assert load_gold(folder).cannot_tell == {"carol": 1}
    assert "carol could not tell on 1 item" in judgecal("gold", "check", "one").said
    assert judgecal("score", "--gold", "one", "--split", "all", "--limit", "12").code == 0
