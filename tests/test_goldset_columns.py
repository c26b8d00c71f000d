"""A row with the answers of several systems side by side becomes an item of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.goldset import Columns, Imported, import_gold
from judgecal.workspace import Workspace

ROWS = [
    {"id": 1, "q": "Q1", "ref": ["r"], "answer_a": "A1", "judge_a": True, "answer_b": "B1", "judge_b": False},
    {"id": 2, "q": "Q2", "ref": None, "answer_a": "A2", "judge_a": None, "answer_b": None, "judge_b": None},
    {"id": 3, "q": "Q3", "ref": None, "answer_a": None, "judge_a": False, "answer_b": "B3", "judge_b": True},
]


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    (tmp_path / "gold").mkdir()
    (tmp_path / "signatures").mkdir()
    return Workspace(tmp_path, tmp_path / "experiments")


def run(place: Workspace, rows: list[dict[str, Any]], **options: Any) -> Imported:
    path = place.root / "t.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    options = {"answer": "answer_*", "labels": ("judge_*",)} | options
    columns = Columns("q", options.pop("answer"), **options)
    return import_gold(path, name="new", columns=columns, scale="binary", workspace=place)


def test_an_item_of_each_system(place: Workspace) -> None:
    done = run(place, ROWS, reference="ref", item="id")
    gold = done.gold
    assert [(item.item_id, item.system, item.question, item.answer) for item in gold.items] == [
        ("1-a", "a", "Q1", "A1"),
        ("1-b", "b", "Q1", "B1"),
        ("2-a", "a", "Q2", "A2"),  # b gave neither an answer nor a label there
        ("3-a", "a", "Q3", ""),
        ("3-b", "b", "Q3", "B3"),
    ]
    assert gold.items[1].reference_answers == ("r",)
    assert gold.ratings_by_rater == {"judge": {"1-a": 1.0, "1-b": 0.0, "3-a": 0.0, "3-b": 1.0}}
    assert gold.n_groups(gold.items) == 3
    assert done.notes[0].endswith("t.json: 5 answers in 3 rows, of 2 systems: a, b")
    assert "--answer 'answer_*' --reference ref --label 'judge_*'" in gold.card.made_by


def test_ids_of_its_own_and_several_raters(place: Workspace) -> None:
    rows = [{"q": "Q", "a x": "1", "b x": "2", "ann a": 1, "ann b": 0, "ben a": 1, "ben b": 1, "ann": "note"}]
    gold = run(place, rows, answer="* x", labels=("ann *", "ben *"), gold_label="ben *").gold
    assert [item.item_id for item in gold.items] == ["new-00001", "new-00002"]
    # `ann` is a column of the table already, so that rater keeps the name of the pattern
    assert gold.ratings_by_rater["ann *"] == {"new-00001": 1.0, "new-00002": 0.0}
    assert gold.ratings_by_rater["ben"] == {"new-00001": 1.0, "new-00002": 1.0}
    assert gold.labels == {"new-00001": 1.0, "new-00002": 1.0}


def test_a_column_of_that_very_name_is_that_column(place: Workspace) -> None:
    gold = run(place, [{"q": "Q", "answer_*": "A", "x": 1}], labels=("x",)).gold
    assert [item.answer for item in gold.items] == ["A"]


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ({"answer": "reply_*"}, ["t.json: no column fits --answer reply_*: known: id, q, ref, answer_a"]),
        ({"answer": "*_*"}, ["--answer *_*: write one *"]),
        (
            {"labels": ("grade_*", "judge_a"), "system": "id"},
            [
                "--system id: --answer answer_* names the systems already",
                "no column 'grade_a' beside answer_*",
                "no column 'grade_b' beside answer_*",
                "write one * in judge_a too",
            ],
        ),
        ({"reference": "reff"}, ["t.json: unknown column 'reff': did you mean ref?"]),
        ({"answer": "answer_a", "labels": ("grade_*",)}, ["t.json: no column fits --label grade_*"]),
    ],
)
def test_options_that_do_not_fit(place: Workspace, options: dict[str, Any], messages: list[str]) -> None:
    with pytest.raises(InputError) as error:
        run(place, ROWS, **options)
    assert len(error.value.problems) == len(messages)
    assert all(message in problem for message, problem in zip(messages, error.value.problems, strict=True))
    assert list(place.gold.iterdir()) == []


def test_a_problem_names_the_row_that_it_came_from(place: Workspace) -> None:
    with pytest.raises(InputError, match=r"t\.json:row 2: column 'judge': 'maybe' is none of"):
        run(place, [ROWS[0], ROWS[1] | {"judge_b": "maybe"}])
