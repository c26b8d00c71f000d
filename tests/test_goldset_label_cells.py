"""Labels as people type them and spreadsheets save them, and the scale that fits them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.goldset import Columns, Imported, import_gold
from judgecal.goldset.labels import read_label, says_nothing
from judgecal.scale import Scale
from judgecal.workspace import Workspace


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
        ("1,000", "percentage", "is no number"),
        ("85%", "ordinal:0:5", "is no number"),
        ("8,5", "ordinal:0:10", "8.5 is no whole number"),
        ("2026-10-08", "percentage", "is a date: a spreadsheet makes one of 8/10"),
        ("8.10.2026", "ordinal:0:10", "is a date"),
        ("WAHR", "percentage", "is no number"),
        ("#NAME?", "percentage", "is no number"),
        ("gut", "binary", "is none of yes/no"),
        ("3/5", "binary", "is none of yes/no"),
    ],
)
def test_a_cell_that_is_no_label(cell: str, scale: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        read_label(cell, Scale.parse(scale))


@pytest.mark.parametrize("cell", ["N/A", "n/a", "-", "?", "#N/A", "#NV", "\u00a0–", "NaN"])
def test_cells_without_a_label(cell: str) -> None:
    assert says_nothing(cell, Scale.parse("percentage"))
    assert says_nothing("None", Scale.parse("binary")) and not says_nothing("none", Scale.parse("nominal"))


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    for name in ("signatures", "gold", "experiments"):
        (tmp_path / name).mkdir()
    return Workspace(tmp_path, tmp_path / "experiments")


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
        (
            ["1", "2", "3", "4", "5", "3", "2", "1", "4", "3,5"],
            "ordinal:0:5",
            "--scale points:0:5:0.5 fits them all",
        ),
        (["1", "2", "2.25", "4", "5", "3"], "ordinal:1:5", "--scale points:1:5:0.25 fits them all"),
        (["1", "2,5", "2.25", "4", "5", "3"], "points:0:5:0.5", "--scale points:0:5:0.25 fits them all"),
        (
            ["80", "65", "90", "100"],
            "fraction",
            "4 of 4 labels are none of the scale fraction: --scale percentage",
        ),
        (["50%", "0.5", "75 %", "1"], "percentage", "(2), and some without one lie between 0 and 1 (1)"),
        (
            ["80", "N/A", "90", "20"],
            "ordinal:0:5",
            "3 of 3 labels are none of the scale ordinal:0:5: --scale percent",
        ),
    ],
)
def test_the_scale_that_fits_is_named(place: Workspace, cells: list[str], scale: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        run(place, cells, scale)
    assert message in error.value.problems[0]


def test_a_slip_of_the_pen_is_no_other_scale(place: Workspace) -> None:
    with pytest.raises(InputError) as error:
        run(place, ["0", "1", "2", "3", "4"] * 4 + ["3.7"], "ordinal:0:5")
    (found,) = error.value.problems
    assert "t.csv:22: column 'x': 3.7 is no whole number" in found
