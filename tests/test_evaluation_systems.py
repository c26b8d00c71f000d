"""Systems that are a function of the user's, and systems whose answers stand in a file."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from judgecal.artefacts import validated
from judgecal.rag.evaluation.function import FunctionConfig, FunctionSystem
from judgecal.rag.evaluation.recorded import RecordedConfig, RecordedSystem
from judgecal.rag.evaluation.system import SystemAnswer
from judgecal.rag.questions import Question
from judgecal.records import Context, Failure
from tests.support import evaluated
from tests.support.evaluated import errors
from tests.support.hostile_code import CLASSES, WHATS

FILE = """
import asyncio, pathlib, time
LOG = pathlib.Path(__file__).with_suffix(".log")

def log(question):
    with LOG.open("a") as file:
        file.write(question + "\\n")

def plain(question: str) -> str:
    log(question)
    asyncio.run(asyncio.sleep(0))
    if question == "bad":
        raise KeyError("no such thing")
    if question == "exit":
        raise SystemExit(3)
    time.sleep(0.02)
    return question.upper()

async def full(question):
    log(question)
    await asyncio.sleep(0.02)
    odd = {"odd": {"answer": "x", "sources": []}, "none": None, "number": {"answer": "x", "contexts": [3]}}
    if question in odd:
        return odd[question]
    return {"answer": question.upper(), "contexts": ["a", {"text": "b", "document_id": 7, "score": 1}], "cost_usd": 0.5}

def nap(question):
    time.sleep(0.05)
    if question == "stop":
        raise StopIteration
    return question

def nothing():
    return ""
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path


def made(folder: Path, function: str, **table: Any) -> FunctionSystem:
    config = validated(FunctionConfig, {"function": f"mine.py:{function}", **table}, "sweep.toml")
    return FunctionSystem("mine", config, [folder])


def ask(system: FunctionSystem, folder: Path, *asked: str) -> list[SystemAnswer]:
    return evaluated.ask(system, [Question(f"q-{text}", text, (), ()) for text in asked], folder / "run")


def test_a_plain_function_is_asked_once_and_its_exceptions_are_rows(folder: Path) -> None:
    for _ in range(2):
        answers = ask(made(folder, "plain"), folder, "one", "bad", "exit", "two")
        assert [one.answer for one in answers] == ["ONE", None, None, "TWO"]
        assert errors(answers) == ["", "code: KeyError: 'no such thing'", "code: SystemExit: 3", ""]
        assert 0.02 <= (answers[0].latency_s or 0.0) < 2.0
        assert answers[0].contexts is None
    assert (folder / "mine.log").read_text().split() == ["one", "bad", "exit", "two"]
    assert not made(folder, "plain").shows_contexts
    (folder / "mine.py").write_text(FILE.replace("upper", "lower"))  # another text is asked anew
    assert ask(made(folder, "plain"), folder, "one")[0].answer == "one"


def test_an_async_function_gives_contexts(folder: Path) -> None:
    system = made(folder, "full", concurrency=5)
    answers = ask(system, folder, "one", "odd", "none", "number")
    assert (answers[0].answer, answers[0].cost_usd) == ("ONE", 0.5)
    assert answers[0].contexts == (Context("a"), Context("b", "7", 1.0))
    assert errors(answers)[1:] == [
        "parse: what it returned: unknown key 'sources': known are answer, contexts, prompt_tokens, "
        "completion_tokens, cost_usd",
        "parse: what it returned: a text or {answer, contexts, ...} is needed, found None",
        "parse: what it returned: contexts, number 1: a text or {text, document_id, score} is needed, found 3",
    ]
    assert system.shows_contexts


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"function": "mine.py:plan"}, "did you mean plain"),
        ({"function": "mine.py:nothing"}, "must take one argument, the question"),
        ({"function": "yours.py:plain"}, "there is no file yours.py"),
        ({"function": "plain"}, "write FILE.py:function"),
    ],
)
def test_what_cannot_be_asked_is_said_before(folder: Path, table: dict[str, Any], said: str) -> None:
    system = FunctionSystem("mine", validated(FunctionConfig, table, "sweep.toml"), [folder])
    assert said in "\n".join(system.check([]))


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_whatever_a_function_raises_or_returns_is_a_row(folder: Path, kind: str) -> None:
    (folder / "mine.py").write_text(f"{CLASSES}\n\n{kind} answer(question):\n    return act(question)\n")
    start = time.monotonic()
    answers = ask(made(folder, "answer", concurrency=3), folder, *WHATS, "trap", "large", "well")
    assert time.monotonic() - start < 60.0
    last = ["code: GeneratorExit: trapped", "length: the answer is larger than 10 MB", ""]
    assert errors(answers) == [*WHATS.values(), *last] and answers[-1].answer == "well"
    assert (folder / "run" / "answers.jsonl").stat().st_size < 20_000


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_an_interrupt_in_a_function_ends_the_run(folder: Path, kind: str) -> None:
    (folder / "mine.py").write_text(f"{kind} answer(question):\n    raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        ask(made(folder, "answer"), folder, "one", "two")


# --- answers that stand in a file


QUESTIONS = [Question(f"q{k}", f"What is {k}?", (), ()) for k in range(3)]
ROWS: list[dict[str, Any]] = [
    {"question": "q0", "answer": "nought", "system": "a", "latency_s": 1.5, "contexts": ["x", {"text": "y"}]},
    {"question": "What is 1?", "answer": "", "system": "a", "contexts": []},
    {"question": "q0", "answer": "zero", "system": "b", "latency_s": 0.5, "contexts": []},
]  # fmt: skip


def recorded(folder: Path, rows: list[dict[str, Any]], **table: Any) -> RecordedSystem:
    path = folder / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return RecordedSystem("mine", validated(RecordedConfig, {"answers": str(path), **table}, "sweep.toml"))


def test_answers_contexts_and_latencies_of_a_file(tmp_path: Path) -> None:
    system = recorded(tmp_path, ROWS, system="a")
    first, second, third = evaluated.ask(system, QUESTIONS, tmp_path)
    assert system.shows_contexts
    assert first == SystemAnswer("mine", "q0", "nought", (Context("x"), Context("y")), latency_s=1.5)
    assert (second.answer, second.contexts, second.latency_s) == ("", (), None)
    assert (third.answer, third.error) == (
        None, Failure("parse", "answers.jsonl has no row for this question"),
    )  # fmt: skip


def test_an_error_of_the_file_is_no_empty_answer(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"question": "q0", "answer": "", "error": "timeout: no reply in 9 s", "contexts": None},
        {"question": "q1", "answer": None, "error": "the cat was on it"},
        {"question": "q2", "answer": "two", "error": None},
    ]
    system = recorded(tmp_path, rows)
    answers = evaluated.ask(system, QUESTIONS, tmp_path)
    assert errors(answers) == ["timeout: no reply in 9 s", "server: the cat was on it", ""]
    assert [(one.answer, one.contexts) for one in answers] == [(None, None), (None, None), ("two", None)]
    assert not system.shows_contexts


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
def test_what_of_a_file_cannot_be_used_is_said_before(
    tmp_path: Path, rows: list[dict[str, Any]], table: dict[str, Any], said: str
) -> None:
    assert said in "\n".join(recorded(tmp_path, rows, **table).check(QUESTIONS))
