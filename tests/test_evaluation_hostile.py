"""What systems and files may give that no file can hold: half a character, and scores that are no numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pytest

from judgecal.cli import run
from judgecal.rag.evaluation.result import NAMES
from tests.support.raw_host import raw_host

HALF = "\ud83d"
SYSTEMS = """
import numpy

def half(question):
    if "0" in question:
        raise ValueError("cut \\ud83d")
    context = {"text": "c \\ud83d", "document_id": "d \\ud83d", "score": numpy.float32(0.5)}
    return {"answer": "It is seven \\ud83d", "contexts": [context]}
"""
CONFIG = """
[questions]
file = "questions.jsonl"
col = ["document=document"]
[judges]
suite = "mine"
"""
SUITE = """
[judges.correctness]
judge = "token_f1@local"
"""
TABLES = {
    "http": '[[systems]]\nname = "web"\nkind = "http"\nurl = "ROOT/ask"\nanswer = "answer"\n'
    'body = { q = "{question}" }\ncontexts = "contexts"\n',
    "python": '[[systems]]\nname = "code"\nkind = "python"\nfunction = "systems.py:half"\n',
    "answers": '[[systems]]\nname = "file"\nkind = "answers"\nanswers = "answers.jsonl"\n',
}


def lines_of(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    for name in ("signatures", "gold", "suites"):
        (tmp_path / name).mkdir()
    (tmp_path / "suites" / "mine.toml").write_text(SUITE, encoding="utf-8")
    (tmp_path / "systems.py").write_text(SYSTEMS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def evaluated(kind: str, root: str = "", half: str = "") -> int:
        beside = {"reference_answer": f"seven{half}", "document": f"d{half}"}
        named = [{"question": f"What is {k}{half}?", **beside} for k in range(3)]
        lines_of(tmp_path / "questions.jsonl", named)
        (tmp_path / "sweep.toml").write_text(CONFIG + TABLES[kind].replace("ROOT", root), encoding="utf-8")
        return run(["evaluate", "sweep.toml", "--name", "hostile"])

    return evaluated


def answers_of(folder: Path) -> polars.DataFrame:
    return polars.read_parquet(folder / "experiments" / "hostile" / f"{NAMES[1]}.parquet")


@pytest.mark.parametrize("kind", ["http", "python", "answers"])
def test_half_a_character_ends_no_evaluation(tmp_path: Path, evaluate: Callable[..., int], kind: str) -> None:
    """Wherever it comes from; and what was answered is not asked again."""
    context = {"text": f"c {HALF}", "document_id": f"d {HALF}", "score": 0.5}
    given = {"answer": f"It is seven {HALF}", "contexts": [context]}
    asked = [{"question": f"What is {k}{HALF}?", **given} for k in range(3)]
    lines_of(tmp_path / "answers.jsonl", [{**asked[0], "answer": "", "error": f"cut {HALF}"}, *asked[1:]])
    with raw_host() as host:
        host.put("/ask", json.dumps(asked[0]).encode())
        codes = [evaluate(kind, host.root, HALF) for _ in range(2)]
        assert len(host.asked) == (3 if kind == "http" else 0)
    assert codes == ([0, 0] if kind == "http" else [4, 4])
    rows = answers_of(tmp_path).rows(named=True)
    answers = [row["answer"] for row in rows if row["error"] is None]
    assert answers == ["It is seven \ufffd"] * (3 if kind == "http" else 2)
    contexts = json.loads(rows[2]["contexts"])
    assert contexts == [{"text": "c \ufffd", "document_id": "d \ufffd", "score": 0.5}]
    assert rows[0]["question"] == "What is 0\ufffd?" and json.loads(rows[0]["documents"]) == ["d\ufffd"]
    assert kind == "http" or rows[0]["error"].endswith("cut \ufffd")
