"""Systems over HTTP: asked once, timed, every failure named, resumed without a second request."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Any

import polars
import pytest

from judgecal.artefacts import validated
from judgecal.errors import InputError
from judgecal.rag.evaluation.http import HttpConfig, HttpSystem
from judgecal.rag.questions import Question
from tests.support.command import Run, one_object
from tests.support.evaluated import ask, errors
from tests.support.http import Answer
from tests.support.rag_service import RagService, inline, rag_service
from tests.support.raw_host import RawHost, moved, raw_host, sent

WORDS = {
    "500": 'server: HTTP 500: {"error": "out of memory',
    "html": "is an HTML page: Bad gateway",
    "cut": "transport: the body was cut off",
    "shape": "parse: answer answer.text: the reply does not hold it (there is no answer: its keys are result)",
    "elsewhere": "server: HTTP 307: a redirect to http://elsewhere.example/login, which is not followed",
}
ASKED = (
    "Where does the Rhine rise",
    "When does iron melt",
    "Which bird has the widest wings",
    "Who cannot fly",
)
HOLDS = ("rises in the Alps", "1538 degrees", "albatross", "Penguins")


@pytest.fixture
def service() -> Iterator[RagService]:
    with rag_service() as running:
        yield running


@pytest.fixture
def host() -> Iterator[RawHost]:
    with raw_host() as running:
        yield running


def questions(n: int) -> list[Question]:
    return [Question(f"q{k}", f"{ASKED[k % 4]}, number {k}?", ("x",), ()) for k in range(n)]


def made(table: dict[str, Any]) -> HttpSystem:
    return HttpSystem("mine", validated(HttpConfig, table, "sweep.toml"))


# --- the command


def written(folder: Path, n: int, **systems: Mapping[str, Any]) -> Path:
    """A configuration of so many questions and these systems over HTTP, with all that it names."""
    (folder / "suites" / "short.toml").write_text(
        '[judges.correctness]\njudge = "checks.py:right@python"\n[judges.answered]\njudge = "checks.py:said@python"\n'
    )
    (folder / "checks.py").write_text(
        "def right(answer: str, reference_answer: str) -> bool:\n    return reference_answer in answer\n\n\n"
        "def said(answer: str) -> bool:\n    return bool(answer.strip())\n"
    )
    rows = "".join(f'"{ASKED[k % 4]}, number {k}?",{HOLDS[k % 4]}\n' for k in range(n))
    (folder / "questions.csv").write_text(f"question,reference_answer\n{rows}")
    head = '[questions]\nfile = "questions.csv"\n[judges]\nsuite = "short"'
    lines = [head]
    for name, table in systems.items():
        fields = {"name": name, "kind": "http", **table}
        lines += ["[[systems]]", *(f"{key} = {inline(value)}" for key, value in fields.items())]
    path = folder / "sweep.toml"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("stream", [False, True])
def test_a_service_is_evaluated(
    judgecal: Run, workspace_dir: Path, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 60 questions one in twenty meets a fault: each is asked once, each fault named, each answer timed."""
    monkeypatch.setenv("RAG_KEY", "a-secret-of-ours-1234")
    n, texts = 60, [question.question for question in questions(60)]
    with rag_service(faults=0.05, seed=3) as service:
        hit = {text: fault for text in texts if (fault := service.fault_of(text))}
        assert len(hit) >= 3
        body, headers = {"query": "{question}", "stream": stream}, {"Authorization": "Bearer ${RAG_KEY}"}
        config = written(
            workspace_dir, n, service=service.table(concurrency=4, body=body, headers=headers, token="delta")
        )
        found = one_object(judgecal("evaluate", config, "--name", "http", "--json"), code=4)
        assert set(service.asked.values()) == {1} and len(service.asked) == n
        assert service.keys == {"Bearer a-secret-of-ours-1234"}
        again, slept = judgecal("evaluate", config, "--name", "http"), dict(service.slept)
    assert again.code == 4  # failures of the wire are asked again, and nothing else
    assert found["headline"]["kind"] == "measured" and "suite:short" in found["run_line"]
    (system,) = found["systems"]
    assert (system["n"], system["n_unscored"], found["n_unscored"]) == (n - len(hit), len(hit), len(hit))
    assert system["total"]["value"] == pytest.approx(system["outcomes"]["right_answer"]["count"] / n)
    off = []
    for row in polars.read_parquet(found["states"]["measured"]).to_dicts():
        text = row["question_id"]  # the questions of a file without ids
        if fault := hit.get(text):
            assert row["answer"] is None and WORDS[fault] in row["error"], row
        else:
            whole, first = slept[text]
            assert row["error"] is None and row["answer"] and row["contexts"]
            off += [abs(row["latency_s"] - whole), abs(row["first_s"] - first)]
            assert not stream or row["first_s"] < row["latency_s"]
    # The median, as another process may hold up one of them on a busy machine.
    assert statistics.median(off) < 0.1
    said = judgecal("report", "http", "--full").out
    assert (
        all(one["message"][:20] in said for one in found["failures"])
        and "Questions without an answer" in said
    )
    files = workspace_dir.joinpath("experiments").rglob("*")
    assert b"a-secret-of-ours" not in b"".join(path.read_bytes() for path in files if path.is_file())


# --- interruption


def test_a_run_that_was_interrupted_asks_nothing_twice(service: RagService, tmp_path: Path) -> None:
    """As kill -9 has it after five answers: the last line is torn."""
    asked = questions(10)
    ask(made(service.table(concurrency=1)), asked[:5], tmp_path)
    with (tmp_path / "answers.jsonl").open("ab") as file:
        file.write(b'{"config": "torn')
    assert len(service.asked) == 5
    assert not any(errors(ask(made(service.table(concurrency=3)), asked, tmp_path)))
    assert list(service.asked.values()) == [1] * 10


def test_another_configuration_is_asked_anew_and_failures_of_the_wire_again(
    service: RagService, host: RawHost, tmp_path: Path
) -> None:
    asked = questions(2)
    ask(made(service.table()), asked, tmp_path)
    ask(made(service.table(body={"query": "{question}", "k": 3})), asked, tmp_path)
    assert set(service.asked.values()) == {2}
    ask(made(service.table(timeout=99.0, concurrency=1)), asked, tmp_path)
    assert set(service.asked.values()) == {2}
    url = host.put("/q", sent(b"{}", status=501), b'{"a": "yes"}')
    table = {"url": url, "method": "GET", "answer": "a", "body": {"q": "{question}"}}
    assert errors(ask(made(table), asked[:1], tmp_path))[0].startswith("server: HTTP 501")
    assert ask(made(table), asked[:1], tmp_path)[0].answer == "yes"


# --- requests and replies


def test_a_lost_connection_is_not_paid_twice(host: RawHost, tmp_path: Path) -> None:
    """What was sent may have been answered; only GET is asked again in the same run."""
    good, table = sent(b'{"a": "yes"}'), {"body": {"q": "{question}"}, "answer": "a"}
    url = host.put("/post", sent(hang_up=True), good)
    (lost,) = errors(ask(made({**table, "url": url}), questions(1), tmp_path / "1"))
    assert lost.startswith("transport: the connection was lost: Server disconnected")
    assert host.asked == ["/post"]
    url = host.put("/get", sent(hang_up=True), good)
    got = ask(made({**table, "url": url, "method": "GET"}), questions(1), tmp_path / "get")
    assert got[0].answer == "yes"
    (nobody,) = errors(ask(made({**table, "url": "http://127.0.0.1:9/"}), questions(1), tmp_path / "2"))
    assert nobody.startswith("transport: no connection: ")


def test_a_server_that_is_busy_is_asked_again(service: RagService, host: RawHost, tmp_path: Path) -> None:
    """And where it asks for a wait, as a date too, not before that."""
    service.busy = 1
    assert ask(made(service.table()), questions(1), tmp_path / "1")[0].error is None
    assert list(service.asked.values()) == [2]
    for status in (429, 500, 502, 504):
        url = host.put(f"/{status}", sent(b"later", status=status), b'{"a": "yes"}')
        table = {"url": url, "body": {"q": "{question}"}, "answer": "a"}
        assert ask(made(table), questions(1), tmp_path / str(status))[0].answer == "yes"
    busy = sent(b"later", status=503, headers={"retry-after": formatdate(time.time() + 2, usegmt=True)})
    table = {"url": host.put("/q", busy, b'{"a": "yes"}'), "body": {"q": "{question}"}, "answer": "a"}
    start = time.monotonic()
    assert ask(made(table), questions(1), tmp_path)[0].answer == "yes"
    assert time.monotonic() - start > 0.9


REPLIES: dict[str, tuple[Answer, str]] = {
    "page": (sent(b"<!doctype html><p>Sign in"), "server: the answer (application/octet-stream) is an HTML page: Sign in"),
    "empty": (sent(b""), "it is empty"),
    "list": (sent(b"[1]"), "parse: answer a: the reply does not hold it (there is no a: it is a list of 1)"),
    "number": (sent(b'{"a": 7}'), "parse: answer a: a text is needed, found 7"),
    "none": (sent(b'{"a": "x"}'), "parse: contexts c: the reply does not hold it"),
    "odd": (sent(b'{"a": "x", "c": [{"passage": "y"}]}'), "parse: contexts c, number 1: a text or {text, document_id"),
    "cut": (sent(b'{"a": "x", "c": []}', cut=5), "transport: the body was cut off"),
    "large": (sent(b'"' + b"x" * 10_000_001), "length: the answer is larger than 10 MB"),
    "slow": (sent(b'{"a": "x"}', drip_s=0.4), "timeout: no whole answer within 0.3 s"),
    "moved": (moved("http://127.0.0.2/x?key=1"), "server: HTTP 302: a redirect to http://127.0.0.2/x, which is not followed: write that address"),
    "here": (moved("/y", 307), "a redirect to /y, which"),
    "stream": (sent(b"data: {}\n\n", headers={"content-type": "text/event-stream"}), "parse: the reply streams"),
    "zipped": (sent(b"x", headers={"content-encoding": "gzip"}), "server: the answer is compressed by 'gzip'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REPLIES)
def test_what_is_no_answer_has_a_name(host: RawHost, tmp_path: Path, name: str) -> None:
    reply, message = REPLIES[name]
    url = host.put(f"/{name}", reply)
    table = {"url": url, "body": {"q": "{question}"}, "answer": "a", "contexts": "c", "timeout": 0.3}
    assert message in errors(ask(made({**table, "method": "GET"}), questions(1), tmp_path))[0]
    assert host.asked == [f"/{name}"]


def test_what_a_question_says_is_data(service: RagService, tmp_path: Path) -> None:
    nasty = 'iron", "stream": true, {chunk} {question} \x00 ${RAG_KEY} \ud800'
    answers = ask(made(service.table()), [Question("q", nasty, (), ())], tmp_path)
    assert list(service.asked) == [nasty] and answers[0].error is None


def test_a_table_with_mistakes_is_refused_in_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {
        "url": "http://user:hidden-word@x.example/", "headers": {"X-Api-Key": "hidden-word-2"}, "answr": "a",
        "contexts": "a[",
    }  # fmt: skip
    with pytest.raises(InputError) as refused:
        made(table)
    text = str(refused.value)
    assert "hidden-word" not in text
    for part in (
        "it holds a user or a password", "the value of X-Api-Key would stand in the file", "did you mean answer?",
        "'a[' is no path",
    ):  # fmt: skip
        assert part in text
    monkeypatch.delenv("NOT_SET", raising=False)
    one = made({"url": "http://x.example/", "headers": {"a": "${NOT_SET}"}})
    assert len(one.check([])) == 3
