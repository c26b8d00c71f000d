"""Systems whose answers stand in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgecal.artefacts import validated
from judgecal.experiment import RunOptions
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation import recorded
from judgecal.rag.evaluation.recorded import RecordedConfig, RecordedSystem
from judgecal.rag.evaluation.system import Asking, SystemAnswer
from judgecal.records import Context, Failure
from judgecal.tables import read_table

QUESTIONS = [Question(f"q{k}", f"What is {k}?", (), ()) for k in range(3)]
ROWS: list[dict[str, Any]] = [
    {"question": "q0", "answer": "nought", "system": "a", "latency_s": 1.5, "contexts": ["x", {"text": "y"}]},
    {"question": "What is 1?", "answer": "", "system": "a", "contexts": []},
    {"question": "q0", "answer": "zero", "system": "b", "latency_s": 0.5, "contexts": []},
]  # fmt: skip


def made(path: Path, rows: list[dict[str, Any]], **table: Any) -> RecordedSystem:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return RecordedSystem("mine", validated(RecordedConfig, {"answers": str(path), **table}, "sweep.toml"))


def ask(system: RecordedSystem, folder: Path) -> list[SystemAnswer]:
    assert system.check(QUESTIONS) == []
    run = RunOptions(quiet=True)
    return system.answer(QUESTIONS, Asking(folder, run, run.open_budget(folder)))


def test_answers_contexts_and_latencies_of_a_file(tmp_path: Path) -> None:
    system = made(tmp_path / "answers.jsonl", ROWS, system="a")
    first, second, third = ask(system, tmp_path)
    assert system.shows_contexts
    assert first == SystemAnswer("mine", "q0", "nought", (Context("x"), Context("y")), latency_s=1.5)
    assert (second.answer, second.contexts, second.latency_s) == ("", (), None)
    assert third.answer is None
    assert third.error == Failure("parse", "answers.jsonl has no row for this question")


def test_an_error_of_the_file_is_no_empty_answer(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"question": "q0", "answer": "", "error": "timeout: no reply in 9 s", "contexts": None},
        {"question": "q1", "answer": None, "error": "the cat was on it"},
        {"question": "q2", "answer": "two", "error": None},
    ]
    system = made(tmp_path / "answers.jsonl", rows)
    first, second, third = ask(system, tmp_path)
    assert (first.answer, first.error) == (None, Failure("timeout", "no reply in 9 s"))
    assert (second.answer, second.error) == (None, Failure("server", "the cat was on it"))
    assert (third.answer, third.error, third.contexts) == ("two", None, None)
    assert not system.shows_contexts


def test_rows_that_name_no_question_are_counted_and_the_file_read_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [*ROWS[:2], {**ROWS[0], "question": "a sealed one?"}]
    system, read = made(tmp_path / "answers.jsonl", rows, system="a"), []
    monkeypatch.setattr(recorded, "read_table", lambda path: read.append(path) or read_table(path))
    assert system.shows_contexts
    ask(system, tmp_path)
    assert (
        capsys.readouterr().err
        == "judgecal: mine: 1 of 3 rows of answers.jsonl name no question that was asked\n"
    )
    assert len(read) == 1


def test_a_file_without_contexts_shows_none(tmp_path: Path) -> None:
    system = made(tmp_path / "answers.jsonl", [{"question": "q1", "answer": "one"}])
    assert not system.shows_contexts
    assert [(one.answer, one.contexts) for one in ask(system, tmp_path)] == [
        (None, None),
        ("one", None),
        (None, None),
    ]


@pytest.mark.parametrize(
    ("rows", "table", "said"),
    [
        (ROWS, {}, "holds the answers of a, b: name one with system"),
        (ROWS, {"system": "c"}, "unknown system in answers.jsonl 'c'"),
        ([{**ROWS[0], "latency_s": "soon"}], {}, "column 'latency_s': must be seconds from 0, found 'soon'"),
        ([{**ROWS[0], "latency_s": -1}], {}, "column 'latency_s': must be seconds from 0, found '-1'"),
        ([{**ROWS[0], "contexts": [3]}], {}, "context 1 must be a text or an object with a text"),
        ([ROWS[0], ROWS[0]], {}, "a answers q0 on line 1 already"),
    ],
)
def test_what_cannot_be_used_is_said_before(
    tmp_path: Path, rows: list[dict[str, Any]], table: dict[str, Any], said: str
) -> None:
    assert said in "\n".join(made(tmp_path / "answers.jsonl", rows, **table).check(QUESTIONS))
