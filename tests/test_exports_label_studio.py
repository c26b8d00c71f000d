"""Label Studio's JSON, JSON-MIN and CSV."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, formats, person, read_export
from tests.support.exports import FIXTURES, read_spoilt, written

REAL = FIXTURES / "label-studio"
TOOL = "label-studio"
ANN = person("ann@example.org")


def result(name: str, **value: Any) -> dict[str, Any]:
    return {"from_name": name, "to_name": "text", "type": "any", "value": value}


def annotation(*results: Any, by: Any = 7, **further: Any) -> dict[str, Any]:
    return {"id": 1, "completed_by": by, "result": list(results), "was_cancelled": False, **further}


def task(*annotations: Any, **further: Any) -> dict[str, Any]:
    return {
        "id": 1,
        "data": {"question": "What?", "answer": "This."},
        "annotations": list(annotations),
        **further,
    }


def read(tmp_path: Path, *tasks: Any) -> Export:
    return read_export([written(tmp_path / "a.json", list(tasks))], TOOL)


@pytest.mark.parametrize(
    ("value", "label", "skip"),
    [
        ({"choices": ["yes"]}, "yes", ""),
        ({"choices": ["a", "b"]}, None, "several choices at once, where a label is one"),
        ({"rating": 4}, 4, ""),
        ({"number": 0}, 0, ""),
        ({"selected": "left"}, "left", ""),
        ({"taxonomy": [["Sport", "Football"]]}, "Sport/Football", ""),
        ({"text": ["Good."]}, None, "a comment, taken as the note of the labels beside it"),
        ({"start": 0, "end": 4, "choices": ["yes"]}, None, "a label of a region, not of the whole task"),
        ({"choices": []}, None, "a result that is no choice, rating or number"),
        ({"ranker": {"a": [1]}}, None, "a result that is no choice, rating or number"),
    ],
)
def test_a_result_is_a_label_or_a_named_skip(
    tmp_path: Path, value: dict[str, Any], label: Any, skip: str
) -> None:
    export = read(tmp_path, task(annotation(result("mark", **value))))
    assert [one.value for one in export.ratings] == ([label] if not skip else [])
    assert set(export.skipped) == ({skip} if skip else set())


@pytest.mark.parametrize(
    ("by", "rater"),
    [
        (7, "annotator-7"),
        ({"id": 7, "email": "Ann@Example.org"}, ANN),
        ({"id": 7}, "annotator-7"),
        ("ann@example.org", ANN),
        (None, "unnamed"),
    ],
)
def test_a_rater_is_an_account_and_never_an_address(tmp_path: Path, by: Any, rater: str) -> None:
    export = read(tmp_path, task(annotation(result("mark", choices=["yes"]), by=by)))
    assert [one.by for one in export.ratings] == [rater]


def test_what_a_person_said_later_counts(tmp_path: Path) -> None:
    later = annotation(result("mark", choices=["no"]), created_at="2026-01-02T00:00:00Z")
    first = annotation(result("mark", choices=["yes"]), created_at="2026-01-01T00:00:00Z")
    export = read(tmp_path, task(later, first))
    assert [one.value for one in export.ratings] == ["no"]


def test_who_began_with_a_prediction_saw_it(tmp_path: Path) -> None:
    mark = result("mark", choices=["yes"])
    export = read(tmp_path, task(annotation(mark, by=1, parent_prediction=5), annotation(mark, by=2)))
    assert [one.saw_draft for one in export.ratings] == [True, False]


def test_two_models_that_predict_are_two_judges_and_one_model_twice_repeats(tmp_path: Path) -> None:
    given = [
        {"model_version": by, "result": [result("mark", choices=[value])]} for by, value in ("a1", "b1", "a0")
    ]
    export = read(tmp_path, task(predictions=given))
    assert [(one.by, one.repeat, one.value) for one in export.judgements] == [
        ("mark@a", 0, "1"), ("mark@b", 0, "1"), ("mark@a", 1, "0")
    ]  # fmt: skip


def test_two_projects_with_one_numbering_are_kept_apart(tmp_path: Path) -> None:
    mark = annotation(result("mark", choices=["yes"]))
    files = [written(tmp_path / f"{n}.json", [task(mark, data={"question": f"{n}?"})]) for n in range(2)]
    export = read_export(files, TOOL)
    assert len(export.items) == len(export.ratings) == 2


def table(*rows: dict[str, Any]) -> str:
    out = io.StringIO()
    known = {"annotator": "7", "annotation_id": "1", "created_at": "", "updated_at": "", "lead_time": "1"}
    lines = csv.DictWriter(out, sorted({*known, *(name for row in rows for name in row)}))
    lines.writeheader()
    lines.writerows({**known, **row} for row in rows)
    return out.getvalue()


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        ([{"id": 1, "question": "a?", "mark": '[{"rating": 3}]'}], [3]),
        ([{"id": 1, "question": "a?", "mark": mark, "annotator": by} for by, mark in ((7, "a"), (8, "b"))], ["a", "b"]),
        ([{"id": n, "question": f"{n}?", "mark": "yes"} for n in range(3)], ["yes"] * 3),
        ([{"id": n, "question": f"{n}?", "mark": str(n)} for n in range(3)], None),
    ],
)  # fmt: skip
def test_the_columns_of_labels_are_told_or_the_table_is_refused(
    tmp_path: Path, rows: list[dict[str, Any]], labels: list[Any] | None
) -> None:
    path = written(tmp_path / "a.csv", table(*rows))
    assert formats()[TOOL].holds([path])
    if labels is None:
        with pytest.raises(
            InputError, match="which columns are labels is not told, found mark, question: export JSON"
        ):
            read_export([path], TOOL)
        return
    export = read_export([path], TOOL)
    assert [one.value for one in export.ratings] == labels
    assert any("taken for labels" in note and "mark" in note for note in export.notes)


@pytest.mark.parametrize("name", ["tasks.json", "tasks_min.json"])
def test_a_file_with_any_value_spoilt_never_ends_in_a_traceback(tmp_path: Path, name: str) -> None:
    tasks = json.loads((REAL / name).read_text())[: 1 if name == "tasks.json" else 2]
    assert read_spoilt(tmp_path, TOOL, {"a.json": tasks}) > 50
