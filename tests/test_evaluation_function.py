"""Systems that are a function of the user's."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from judgecal.artefacts import validated
from judgecal.experiment import RunOptions
from judgecal.rag.answering.questions import Question
from judgecal.rag.evaluation.function import FunctionConfig, FunctionSystem
from judgecal.rag.evaluation.system import Asking, SystemAnswer
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
    await asyncio.sleep(5 if question == "slow" else 0.02)
    if question == "odd":
        return {"answer": "x", "sources": []}
    if question == "none":
        return None
    if question == "number":
        return {"answer": "x", "contexts": [3]}
    return {"answer": question.upper(), "contexts": ["a", {"text": "b", "document_id": 7, "score": 1}], "cost_usd": 0.5}

def nothing():
    return ""
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path


def made(folder: Path, function: str, **table: Any) -> FunctionSystem:
    config = validated(FunctionConfig, {"function": f"mine.py:{function}", **table}, "sweep.toml")
    return FunctionSystem("mine", config, folders=[folder])


def ask(system: FunctionSystem, folder: Path, *asked: str) -> list[SystemAnswer]:
    questions = [Question(f"q-{text}", text, (), ()) for text in asked]
    assert system.check(questions) == []
    run = RunOptions(quiet=True)
    return system.answer(questions, Asking(folder / "run", run, run.open_budget(folder)))


def errors(answers: list[SystemAnswer]) -> list[str]:
    return [f"{one.error.kind}: {one.error.message}" if one.error else "" for one in answers]


def test_a_plain_function_is_asked_once_and_its_exceptions_are_rows(folder: Path) -> None:
    for _ in range(2):
        answers = ask(made(folder, "plain"), folder, "one", "bad", "exit", "two")
        assert [one.answer for one in answers] == ["ONE", None, None, "TWO"]
        assert errors(answers) == ["", "code: KeyError: 'no such thing'", "code: SystemExit: 3", ""]
        assert 0.02 <= (answers[0].latency_s or 0.0) < 2.0
        assert answers[0].contexts is None
    assert (folder / "mine.log").read_text().split() == ["one", "bad", "exit", "two"]
    assert not made(folder, "plain").shows_contexts


def test_latency_is_the_functions_own_in_as_many_threads_as_asked(folder: Path) -> None:
    """Of the 40 that wait for their turn none takes longer for it; StopIteration is an error like any
    other."""
    (folder / "mine.py").write_text(
        FILE
        + "\ndef nap(question):\n    time.sleep(0.05)\n    if question == 'stop':\n        raise StopIteration\n"
        "    return question\n"
    )
    start = time.monotonic()
    answers = ask(made(folder, "nap", concurrency=40), folder, *map(str, range(40)), "stop")
    assert time.monotonic() - start < 1.9  # one after another they take two seconds
    assert sorted(one.latency_s or 9.0 for one in answers[:-1])[20] < 0.5
    assert errors(answers)[-1] == "code: StopIteration"


def test_another_text_of_the_file_is_asked_anew(folder: Path) -> None:
    ask(made(folder, "plain"), folder, "one")
    (folder / "mine.py").write_text(FILE.replace("upper", "lower"))
    assert ask(made(folder, "plain"), folder, "one")[0].answer == "one"


def test_an_async_function_gives_contexts_and_is_ended_in_time(folder: Path) -> None:
    answers = ask(
        made(folder, "full", timeout=0.2, concurrency=5), folder, "one", "slow", "odd", "none", "number"
    )
    first = answers[0]
    assert (first.answer, first.cost_usd) == ("ONE", 0.5)
    assert [(one.text, one.document_id, one.score) for one in first.contexts or ()] == [
        ("a", None, None),
        ("b", "7", 1.0),
    ]
    assert errors(answers)[1:] == [
        "timeout: no answer within 0.2 s",
        "parse: what it returned: unknown key 'sources': known are answer, contexts, prompt_tokens, "
        "completion_tokens, cost_usd",
        "parse: what it returned: a text or {answer, contexts, ...} is needed, found None",
        "parse: what it returned: contexts, number 1: a text or {text, document_id, score} is needed, found "
        "3",
    ]
    assert made(folder, "full").shows_contexts


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"function": "mine.py:plan"}, "did you mean plain"),
        ({"function": "mine.py:nothing"}, "must take one argument, the question"),
        ({"function": "mine.py:plain", "timeout": 1.0}, "timeout is for async functions"),
        ({"function": "yours.py:plain"}, "there is no file yours.py"),
        ({"function": "no_such_module_here:f"}, "cannot be loaded (ModuleNotFoundError"),
        ({"function": "plain"}, "write FILE.py:function or module:function"),
    ],
)
def test_what_cannot_be_asked_is_said_before(folder: Path, table: dict[str, Any], said: str) -> None:
    system = FunctionSystem("mine", validated(FunctionConfig, table, "sweep.toml"), folders=[folder])
    assert said in "\n".join(system.check([]))


def test_a_function_of_a_module(folder: Path) -> None:
    system = FunctionSystem("mine", validated(FunctionConfig, {"function": "textwrap:dedent"}, "sweep.toml"))
    assert ask(system, folder, "  as it is")[0].answer == "as it is"


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_whatever_a_function_raises_or_returns_is_a_row(folder: Path, kind: str) -> None:
    (folder / "mine.py").write_text(f"{CLASSES}\n\n{kind} answer(question):\n    return act(question)\n")
    start = time.monotonic()
    answers = ask(made(folder, "answer", concurrency=3), folder, *WHATS, "trap", "large", "well")
    assert time.monotonic() - start < 60.0
    assert errors(answers) == [
        *WHATS.values(), "code: GeneratorExit: trapped", "length: the answer is larger than 10 MB", "",
    ]  # fmt: skip
    assert answers[-1].answer == "well"
    assert (folder / "run" / "answers.jsonl").stat().st_size < 20_000


STUBBORN = """
import asyncio, time

async def answer(question):
    if question == "blocks":
        time.sleep(8)
    if question == "exits":
        asyncio.create_task(exits())
    while question == "swallows":
        try:
            await asyncio.sleep(0.01)
        except BaseException:
            pass
    await asyncio.sleep(0.01)
    return question

async def exits():
    raise SystemExit(1)
"""


@pytest.mark.parametrize("what", ["swallows", "blocks"])
def test_an_async_function_that_no_cancelling_ends_is_ended_by_timeout(folder: Path, what: str) -> None:
    (folder / "mine.py").write_text(STUBBORN)
    start = time.monotonic()
    answers = ask(made(folder, "answer", timeout=0.3), folder, "one", "exits", what)
    assert time.monotonic() - start < 7.5
    assert errors(answers) == ["", "", "timeout: no answer within 0.3 s"]


@pytest.mark.parametrize("error", ["asyncio.CancelledError", "GeneratorExit", "Mute", "Odd"])
def test_a_file_that_raises_anything_on_loading_is_named(folder: Path, error: str) -> None:
    (folder / "mine.py").write_text(f"{CLASSES}\nraise {error}\n")
    (problem,) = made(folder, "answer").check([])
    assert f"running the file raised {error.rpartition('.')[2]}" in problem


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_an_interrupt_in_a_function_ends_the_run(folder: Path, kind: str) -> None:
    (folder / "mine.py").write_text(f"{kind} answer(question):\n    raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        ask(made(folder, "answer"), folder, "one", "two")
