"""Every command once, on a starter set whose test items hold words that stand nowhere else."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from judgecal.cli import run
from judgecal.commands import COMMANDS
from tests.support.command import ROOT, Ran

PLANTED = ("qzsealed", "azsealed", "rzsealed", "sealed-starter")
"""In the question, the answer, the reference answer and the id of every test item."""


_EVALUATE = """
[questions]
gold = "starter"
split = "all"
[judges]
local = ["token_f1@local"]
[[systems]]
name = "told"
kind = "python"
[sweep.told]
function = ["told.py:long", "told.py:short"]
"""
_TOLD = """
def long(question):
    return {"answer": f"It stands in what was asked: {question}", "contexts": [question]}


def short(question):
    return {"answer": "I do not know.", "contexts": [question]}
"""
MORE: dict[str, tuple[str, ...]] = {
    "gold make": ("--name", "making"),
    "gold label": ("--overlap", "1"),  # every item is labelled, so that nothing is served
    "score": ("--split", "all"),
    "agreement": ("--name", "taken"),
    "optimize": ("--limit", "40", "--name", "better"),
    "compare": ("--name", "compared"),
    "select": ("--allow-below-floor", "--name", "chosen"),
    "gate": ("--name", "gated"),
    "migrate": (
        "--on", "answers.csv", "--col", "question=q", "--col", "answer=a", "--col", "reference=reference",
        "--name", "moved",
    ),
    "judge": ("--name", "judged"),
    "rate": ("--name", "rated"),
    "retrieval": ("--name", "found"),
    "answer": ("--limit", "20", "--name", "told"),
    "evaluate": ("--name", "evaluated"),
}  # fmt: skip
"""What the tests add to the example of a command: a name, and what makes it short."""

RUNS: dict[str, tuple[str, ...]] = {
    name: (*shlex.split(command.example), *MORE.get(name, ())) for name, command in COMMANDS.items()
}
"""Command -> arguments, in the order in which they need each other: the examples that `--help` shows."""


@dataclass
class EveryCommand:
    """A workspace in which every command ran, and what each printed."""

    folder: Path
    sealed_questions: frozenset[str]
    ran: dict[str, Ran] = field(default_factory=dict)

    def __call__(self, *argv: str | Path) -> Ran:
        """Run one more."""
        out, err, home = io.StringIO(), io.StringIO(), Path.cwd()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run([str(word) for word in argv])
        finally:
            os.chdir(home)
        return Ran(code, out.getvalue(), err.getvalue())

    @property
    def slugs(self) -> list[str]:
        """Every experiment."""
        return sorted(path.parent.name for path in self.folder.glob("experiments/*/experiment.toml"))


@pytest.fixture(scope="session")
def every_command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EveryCommand]:
    """All of them at 80 columns."""
    folder = tmp_path_factory.mktemp("every")
    for name in ("signatures", "suites", "gold"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    found = EveryCommand(folder, _plant(folder / "gold" / "starter"))
    _tables(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        patch.setenv("JUDGECAL_CACHE_DIR", str(folder / "cache"))
        for command, argv in RUNS.items():
            found.ran[command] = found(*command.split(), *argv)
            assert found.ran[command].code in (0, 1, 3), (command, found.ran[command].err)
        yield found


def _plant(folder: Path) -> frozenset[str]:
    """Mark every item of test; gives their questions."""
    from judgecal.goldset import load_gold

    gold = load_gold(folder)
    for name in ("items.jsonl", "ratings.jsonl"):
        rows = [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        for row in rows:
            if row["item_id"] in gold.test_ids:
                row["item_id"] = f"sealed-{row['item_id']}"
                for key, word in zip(("question", "answer", "reference_answer"), PLANTED, strict=False):
                    if key in row and row.get("reference_documents"):  # else it says that there is no answer
                        row[key] += f" {word}"
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return gold.test_groups


def _tables(folder: Path) -> None:
    rows = "".join(f"q{n},The ferry runs at nine.,At nine.\n" for n in range(12))
    (folder / "answers.csv").write_text(f"q,a,reference\n{rows}", encoding="utf-8")
    table = "".join(f"why {n}?,because,{n % 2},{n % 3 == 0:d}\n" for n in range(30))
    (folder / "labels.csv").write_text(f"question,answer,ann,bob\n{table}", encoding="utf-8")
    (folder / "sweep.toml").write_text(_EVALUATE, encoding="utf-8")
    (folder / "told.py").write_text(_TOLD, encoding="utf-8")
    verdicts = "".join(f"my-set-{n + 1:05},{'yes' if n % 2 else 'no'}\n" for n in range(30))
    (folder / "verdicts.csv").write_text(f"item_id,verdict\n{verdicts}", encoding="utf-8")
