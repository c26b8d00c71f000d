"""A table cut into files, a served judge of their rows, and what it was asked."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from judgecal.goldset import load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.workspace import find_workspace
from tests.support import tables
from tests.support.locks import lock_file
from tests.support.server import StubServer, priced
from tests.support.tables import write

OPTIONS = ("--lock", "judge.lock.json", "--col", "item=id")
SECRET, MEASURED = "sk-not-to-be-seen", "latency_s"  # of the latter no two runs have the same


def rows(n: int, *, first: int = 0) -> list[dict[str, str]]:
    """Answers of two systems, one in three of them right."""
    return [
        {
            "id": f"r{number}",
            "question": f"How many crates are in store {number}?",
            "answer": f"{number % 97} crates" if number % 3 else f"worth {number % 89} boxes",
            "reference": f"{number % 97} crates",
            "system": "AB"[number % 2],
        }
        for number in range(first, first + n)
    ]


def write_files(folder: Path, n: int, parts: int, ending: str = ".csv") -> list[str]:
    """So many rows in so many files of a folder; their names, in order."""
    size, names = -(-n // parts), [f"part-{part}{ending}" for part in range(parts)]
    for place, name in enumerate(names):
        write(folder / name, rows(min(size, n - place * size), first=place * size))
    return names


def read(path: Path) -> list[dict[str, str]]:
    """A file's rows without what a run measures."""
    return [{name: value for name, value in row.items() if name != MEASURED} for row in tables.read(path)]


@contextmanager
def served_judge(workspace: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> Iterator[StubServer]:
    """A model with a price and a key, whose judge is locked."""
    monkeypatch.setenv("MY_KEY", SECRET)
    reply = "[[ ## correctness_reasoning ## ]]\nSo.\n\n[[ ## correctness_percentage ## ]]\n80\n"
    with priced(workspace, lambda _: reply, f"max_concurrency = {at_once}\n") as stub:
        judge = PromptJudge("correctness_v3@mine", workspace=find_workspace(workspace))
        lock_file(workspace / "judge.lock.json", judge, load_gold(workspace / "gold" / "starter"))
        stub.bodies.clear()
        yield stub


def asked(stub: StubServer) -> Counter[str]:
    """How often the server was asked about each row."""
    texts = (body["messages"][-1]["content"] for body in stub.bodies)
    return Counter(f"r{found[1]}" for text in texts if (found := re.search(r"in store (\d+)\?", text)))


def judged(folder: Path) -> Counter[str]:
    """How often each row has a verdict in the journals of the files."""
    paths = folder.glob("experiments/*/files/*/judgements.jsonl")
    lines = [line for path in paths for line in path.read_text().splitlines(keepends=True)]
    found = (json.loads(line) for line in lines if line.endswith("\n"))
    return Counter(row["item_id"] for row in found if row["verdict"] is not None)
