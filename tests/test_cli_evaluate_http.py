"""`judgecal evaluate` against a RAG service over HTTP: set up, asked once, timed, and every fault with a
name."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars
import pytest

from tests.support.command import Run, one_object
from tests.support.rag_service import DOCUMENTS, RagService, rag_service

KINDS = {"500": "server", "html": "server", "cut": "transport", "shape": "parse", "elsewhere": "server"}
WORDS = {
    "500": 'HTTP 500: {"error": "out of memory',
    "html": "is an HTML page: Bad gateway",
    "cut": "the body was cut off",
    "shape": "answer answer.text: the reply does not hold it",
    "elsewhere": "a redirect to another host",
}
ASKED = (
    "Where does the Rhine rise",
    "When does iron melt",
    "Which bird has the widest wings",
    "Who cannot fly",
)
HOLDS = ("rises in the Alps", "1538 degrees", "albatross", "Penguins")
SUITE = """
[judges.correctness]
judge = "checks.py:right@python"
[judges.answered]
judge = "checks.py:said@python"
"""
CHECKS = """
def right(answer: str, reference_answer: str) -> bool:
    return reference_answer in answer


def said(answer: str) -> bool:
    return bool(answer.strip())
"""
FEW, MANY, SEED = 12, 60, 3


def toml(value: Any) -> str:
    """A value as TOML, tables within a line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(key)} = {toml(one)}' for key, one in value.items())} }}"
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else json.dumps(value)


def written(folder: Path, n: int, **systems: Mapping[str, Any]) -> Path:
    """A configuration of so many questions and these systems over HTTP, with all that it names."""
    (folder / "suites" / "short.toml").write_text(SUITE, encoding="utf-8")
    (folder / "checks.py").write_text(CHECKS, encoding="utf-8")
    rows = "".join(f'"{ASKED[k % 4]}, number {k}?",{HOLDS[k % 4]}\n' for k in range(n))
    (folder / "questions.csv").write_text(f"question,reference_answer\n{rows}", encoding="utf-8")
    documents = ({"document_id": one.document_id, "text": one.text} for one in DOCUMENTS)
    (folder / "documents.jsonl").write_text(
        "".join(f"{json.dumps(one)}\n" for one in documents), encoding="utf-8"
    )
    lines = [
        '[questions]\nfile = "questions.csv"\n[documents]\npath = "documents.jsonl"\n[judges]\nsuite = '
        '"short"'
    ]
    for name, table in systems.items():
        fields = {"name": name, "kind": "http", **table}
        lines += ["[[systems]]", *(f"{key} = {toml(value)}" for key, value in fields.items())]
    path = folder / "sweep.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def faults(service: RagService, n: int) -> dict[str, str]:
    """Question -> the fault that it meets."""
    asked = (f"{ASKED[k % 4]}, number {k}?" for k in range(n))
    return {one: fault for one in asked if (fault := service.fault_of(one))}


@pytest.mark.parametrize("stream", [False, True])
def test_a_service_is_evaluated_from_create_to_delete(
    judgecal: Run, workspace_dir: Path, stream: bool
) -> None:
    """Of 60 questions one in twenty meets a fault: each is asked once, each fault named, each answer
    timed."""
    with rag_service(faults=0.05, seed=SEED) as service:
        hit = faults(service, MANY)
        assert len(hit) >= 3
        table = service.table(concurrency=4, body={"query": "{question}", "stream": stream}, token="delta")
        config = written(workspace_dir, MANY, service=table)
        found = one_object(judgecal("evaluate", config, "--name", "http", "--json"), code=4)
        assert set(service.asked.values()) == {1} and len(service.asked) == MANY
        assert service.requests[:4] == ["POST /collections", *["POST /collections/c1/documents"] * 3]
        assert (
            service.requests[-1] == "DELETE /collections/c1" and len(service.requests) > 6
        )  # it was waited for
        again = judgecal("evaluate", config, "--name", "http")
        slept = dict(service.slept)
    assert found["headline"]["kind"] == "measured" and "suite:short" in found["run_line"]
    (system,) = found["systems"]
    assert (system["n"], system["n_unscored"], found["n_unscored"]) == (MANY - len(hit), len(hit), len(hit))
    assert system["total"]["value"] == pytest.approx(system["outcomes"]["right_answer"]["count"] / MANY)
    rows = polars.read_parquet(found["states"]["measured"])
    check_rows(rows, hit, slept)
    said = judgecal("report", "http", "--full").out
    assert {one["kind"] for one in found["failures"]} == {KINDS[fault] for fault in hit.values()}
    assert (
        all(one["message"][:30] in said for one in found["failures"])
        and "Questions without an answer" in said
    )
    assert again.code == 4  # failures of the wire are asked again, and nothing else


def check_rows(
    rows: polars.DataFrame, hit: Mapping[str, str], slept: Mapping[str, tuple[float, float]]
) -> None:
    """A row a question: the fault by its name, or an answer and the time that the service took for it."""
    off = []
    for row in rows.to_dicts():
        text = row["question_id"]  # the questions of a file without ids
        if fault := hit.get(text):
            assert row["answer"] is None and KINDS[fault] in row["error"] and WORDS[fault] in row["error"], (
                row
            )
        else:
            whole, first = slept[text]
            assert row["error"] is None and row["answer"]
            off += [abs(row["latency_s"] - whole), abs(row["first_s"] - first)]
    # The median, as another process may hold up one of them on a busy machine.
    assert statistics.median(off) < 0.02


def test_what_no_answer_can_come_of_is_named(judgecal: Run, workspace_dir: Path) -> None:
    """A page under status 200, a path that replies do not hold, and documents that are never stored."""
    with rag_service(faults=1.0) as broken, rag_service() as other, rag_service(stores=False) as hanging:
        broken.fault_of = lambda _: "html"  # type: ignore[method-assign]
        never = hanging.table()
        never["setup"]["steps"][2]["time_limit"] = 0.2
        config = written(
            workspace_dir, FEW, page=broken.table(), path=other.table(answer="answer.txt"), hanging=never
        )
        ran = judgecal("evaluate", config, "--name", "broken")
        assert not hanging.asked and hanging.requests[-1] == "DELETE /collections/c1"
        assert set(broken.asked.values()) == set(other.asked.values()) == {1}
    assert ran.code == 4
    assert ran.said.startswith(
        "Nothing could be measured: no answer of any system has a score. 12 answers of page"
    )
    found = one_object(judgecal("report", "broken", "--json"))["result"]
    told = {one["system"]: (one["kind"], one["n"], one["message"]) for one in found["failures"]}
    assert told["page"] == ("server", FEW, "the answer (text/html) is an HTML page: Bad gateway")
    kind, n, message = told["path"]
    assert (kind, n) == (
        "parse",
        FEW,
    ) and "answer answer.txt: the reply does not hold it (its keys are" in message
    assert told["hanging"] == ("timeout", FEW, "setup step wait: not done within its time limit of 0.2 s")
    page = judgecal("report", "broken", "--full").out
    assert "Bad gateway" in page and "answer.txt" in page and "not done within its time limit" in page


def test_a_configuration_with_mistakes_calls_nobody(judgecal: Run, workspace_dir: Path) -> None:
    with rag_service() as service:
        table = service.table(answer="a[", headers={"Authorization": "Bearer in-the-file-1234"})
        ran = judgecal("evaluate", written(workspace_dir, FEW, service=table))
        assert not service.asked and not service.requests
    assert ran.code == 2 and not ran.out
    assert (
        "'a[' is no JMESPath" in ran.err and "the value of Authorization would stand in the file" in ran.err
    )
    assert "in-the-file" not in ran.err
