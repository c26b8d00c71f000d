"""How many files of the package a command runs through: `python -m tests.benchmarks.journeys`.

Counted are the files that hold a function which is called (modules and classes as they are loaded left out), the lines
of those files and the functions: what a reader goes through who follows one command from its words to its result.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import judgecal
from judgecal.cli import run
from tests.support.command import fresh_workspace

PACKAGE = Path(judgecal.__file__).parent
SWEEP = """
[questions]
gold = "starter"
split = "open"
limit = 12
[judges]
suite = "rag"
model = "embedded"
[[systems]]
name = "ours"
kind = "local"
"""
COLUMNS = ["--col", "question=question", "--col", "answer=answer", "--col", "reference=reference"]
TRIPS = {
    "score of two embedded judges": [
        "score",
        "--signatures",
        "correctness_v1,correctness_v3",
        "--name",
        "two",
    ],
    "report --format html of it": ["report", "two", "--format", "html"],
    "select": ["select", "two", "-o", "judge.lock.json", "--allow-below-floor"],
    "optimize --optimizer fewshot": ["optimize", "--optimizer", "fewshot", "--limit", "60"],
    "judge": ["judge", "answers.csv", "--lock", "judge.lock.json", "-o", "judged.csv", *COLUMNS],
    "rate": ["rate", "judged.csv", "--lock", "judge.lock.json", *COLUMNS[:4]],
    "answer": ["answer", "--signatures", "answer_v1", "--limit", "20"],
    "evaluate": ["evaluate", "sweep.toml"],
}


def trip(words: list[str]) -> tuple[int, int, int, int]:
    """Exit code, files, their lines and functions of one command."""
    codes: set[CodeType] = set()

    def seen(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            code = run(words)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    ours = [
        one for one in codes if one.co_filename.startswith(str(PACKAGE)) and not one.co_name.startswith("<")
    ]
    files = {Path(one.co_filename) for one in ours}
    return (
        code,
        len(files),
        sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files),
        len(ours),
    )


def main() -> None:
    """Every trip in one workspace, one after another."""
    with tempfile.TemporaryDirectory() as folder:
        fresh_workspace(Path(folder) / "workspace")
        os.chdir(Path(folder) / "workspace")
        os.environ["JUDGECAL_CACHE_DIR"] = str(Path(folder) / "cache")
        Path("sweep.toml").write_text(SWEEP, encoding="utf-8")
        rows = [
            f"when does ferry {n} run?,{'At nine' if n % 3 else 'At noon'} from pier {n}.,At nine."
            for n in range(40)
        ]
        Path("answers.csv").write_text("question,answer,reference\n" + "\n".join(rows), encoding="utf-8")
        print(f"{'trip':32} {'exit':>4} {'files':>6} {'lines':>7} {'functions':>10}")
        trip(
            ["score", "--limit", "2", "--name", "loads"]
        )  # what runs when modules are loaded is no part of a trip
        for name, words in TRIPS.items():
            code, files, lines, functions = trip(words)
            print(f"{name:32} {code:4} {files:6} {lines:7,} {functions:10,}")


if __name__ == "__main__":
    main()
