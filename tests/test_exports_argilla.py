"""Argilla's records, as `to_json()` and `to_datasets()` give them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from judgecal.errors import InputError
from judgecal.exchange.exports import Export, formats, read_export
from tests.support.exports import FIXTURES, accounted, read_spoilt, written

REAL = FIXTURES / "argilla"
UNTOLD = "a suggestion that is the number of a label, whose word the file does not hold"


def judged(export: Export, question: str) -> list[Any]:
    return [one.value for one in export.judgements if one.name == question]


def row(n: int = 0, **cells: Any) -> dict[str, Any]:
    return {
        "id": f"r{n}",
        "status": "completed",
        "_server_id": None,
        "prompt": f"{n}?",
        "response": "This.",
        **cells,
    }


def asked(name: str, *values: Any, suggestion: Any = None, status: str = "submitted") -> dict[str, Any]:
    return {
        f"{name}.responses": list(values), f"{name}.responses.users": [f"u{n}" for n in range(len(values))],
        f"{name}.responses.status": [status] * len(values), f"{name}.suggestion": suggestion,
        f"{name}.suggestion.score": None, f"{name}.suggestion.agent": "m",
    }  # fmt: skip


def read(tmp_path: Path, *rows: dict[str, Any]) -> Export:
    return read_export([written(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))], "argilla")


@pytest.mark.parametrize(
    ("answers", "suggestions", "verdicts"),
    [
        ([["4"], ["5"], ["4"]], [0, 1, 0], []),  # labels that are digits are words all the same
        ([[4], [5], [4]], [4, 5, 3], [4, 5, 3]),  # a rating
        ([["yes"], ["no"], ["no"]], ["yes", "no", "yes"], ["yes", "no", "yes"]),
        ([[], [], []], [0, 1, 0], []),  # nobody answered: may be labels
        ([[], [], []], [3, 1, 5], [3, 1, 5]),
    ],
)
def test_numbers_are_compared_with_numbers_only(
    tmp_path: Path, answers: list[list[Any]], suggestions: list[Any], verdicts: list[Any]
) -> None:
    pairs = enumerate(zip(answers, suggestions, strict=True))
    export = read(tmp_path, *(row(n, **asked("mark", *given, suggestion=one)) for n, (given, one) in pairs))
    assert judged(export, "mark") == verdicts
    assert export.skipped[UNTOLD] == (0 if verdicts else 3)


def test_responses_of_several_people_are_several_ratings(tmp_path: Path) -> None:
    export = read(tmp_path, row(**asked("mark", "yes", "no", None)))
    assert [(one.by, one.value, one.saw_draft) for one in export.ratings] == [
        ("u0", "yes", False),
        ("u1", "no", False),
    ]
    assert export.skipped == {"a rating without a label": 1}


def test_notes_stand_in_the_order_of_the_file(tmp_path: Path) -> None:
    long = [f"{name} because " + "of this" * 10 for name in ("third", "first", "second")]
    said = [asked(name, text) for name, text in zip(("c", "a", "b"), long, strict=True)]
    export = read(tmp_path, row(**asked("mark", "yes"), **said[0], **said[1], **said[2]))
    assert [one.note for one in export.ratings] == ["\n".join(long)]


def test_what_is_no_response_is_counted(tmp_path: Path) -> None:
    record = {
        "id": "r1",
        "fields": {"prompt": "Why?", "response": "So."},
        "metadata": {},
        "suggestions": {"mark": 3},
    }
    record |= {"responses": {"mark": [{"value": "yes", "user_id": "u0"}, "no", None]}}
    export = read_export([written(tmp_path / "a.json", [record])], "argilla")
    assert export.skipped == {
        "no response, where one should stand": 2, "no suggestion, where one should stand": 1
    }  # fmt: skip
    assert accounted(export) == export.n_records


def test_vectors_and_the_parts_of_questions_are_no_texts_of_the_item(tmp_path: Path) -> None:
    (item,) = read(tmp_path, row(vector=[0.1, 0.2], level="easy", **asked("mark", "yes"))).items.values()
    assert item.fields == {"level": "easy"}


def test_a_table_without_anything_of_argilla_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "id,prompt,label\n1,What?,yes\n")
    assert not formats()["argilla"].holds([path])
    with pytest.raises(InputError, match="no records of Argilla"):
        read_export([path], "argilla")


def test_parquet_without_the_words_is_read_as_the_other_tables_are(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.read_parquet(REAL / "records.parquet").write_parquet(path)
    export = read_export([path], "argilla")
    assert not judged(export, "correct") and export.skipped[UNTOLD] == 5


@pytest.mark.parametrize("name", ["records.json", "records.jsonl"])
def test_a_file_with_any_value_spoilt_never_ends_in_a_traceback(tmp_path: Path, name: str) -> None:
    text = (REAL / name).read_text()
    rows = json.loads(text) if name == "records.json" else [json.loads(line) for line in text.splitlines()]
    assert read_spoilt(tmp_path, "argilla", {name: rows[1:2]}) > 50
