"""Damaged files and odd command lines: one message and an exit code of the contract, never a traceback."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
from pathlib import Path

import pytest

from judgecal.cli import run
from judgecal.goldset import load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.workspace import find_workspace, init_workspace
from tests.support.command import Ran
from tests.support.locks import a_lock
from tests.support.server import running
from tests.torture.conftest import LEVEL
from tests.torture.damage import copied, harm

CASES = 8 if LEVEL == "full" else 4  # a file
ALLOWED = (0, 1, 2, 3, 4)
TABLE = ("rows.csv", "-o", "out.csv", "--col", "question=q", "--col", "answer=a", "--col", "reference=r")

SCORE = ("score", "--name", "sc", "--signatures", "correctness_v1,correctness_v3", "--limit", "40")
COMPARE = ("compare", "sc", "correctness_v1@embedded", "correctness_v3@embedded")
SELECT = ("select", "sc", "-o", "new.lock.json", "--allow-below-floor", "--json")
OPTIMIZE = ("optimize", "--optimizer", "labeled", "--name", "op")
COMPILED = ("score", "--signatures", "correctness_v3", "--models", "embedded#op", "--limit", "5")
TIES = ("gold", "sheet", "starter", "--ties", "-o", "ties.csv")

# File -> commands that read it.
READERS: dict[str, list[tuple[str, ...]]] = {
    "experiments/sc/verdicts.parquet": [("report", "sc"), SCORE, COMPARE, SELECT, TIES],
    "experiments/sc/experiment.toml": [("report", "sc"), ("report", "--all"), SCORE, (*COMPARE, "--dry-run")],
    "experiments/sc/judges.json": [("report", "sc"), COMPARE, SCORE],
    "experiments/sc/summary.json": [("report", "sc"), ("report", "--all"), (*SELECT, "--dry-run")],
    "experiments/co/summary.json": [("report", "co"), ("report", "co", "--json"), ("report", "--all")],
    "experiments/op/program.json": [("report", "op"), ("gold", "check", "starter"), COMPILED, OPTIMIZE],
    "experiments/op/verdicts.parquet": [("report", "op"), OPTIMIZE],
    "experiments/op/summary.json": [("report", "op"), ("report", "--all", "--format", "html")],
    "experiments/op/experiment.toml": [("report", "op"), OPTIMIZE],
    "experiments/test_looks.jsonl": [COMPARE, ("report", "sc")],
    "judge.lock.json": [
        ("judge", *TABLE, "--lock", "judge.lock.json"),
        ("gate", "--lock", "judge.lock.json"),
        ("gate", "--lock", "judge.lock.json", "--trust-lock", "--dry-run"),
        ("answer", "--lock", "judge.lock.json", "--dry-run"),
        ("migrate", "--lock", "judge.lock.json", "--to", "correctness_v1@embedded", "--dry-run"),
    ],
    "judgecal.toml": [("models",), ("score", "--limit", "5", "--models", "other", "--dry-run")],
    "gold/starter/card.toml": [("gold", "check", "starter"), ("score", "--limit", "5"), ("gold", "check")],
    "gold/starter/items.jsonl": [("gold", "check", "starter"), ("score", "--limit", "5")],
    "gold/starter/ratings.jsonl": [("gold", "check", "starter")],
    "gold/starter/documents.jsonl": [("retrieval", "--gold", "starter"), ("answer", "--dry-run")],
    "signatures/correctness_v3.py": [("score", "--limit", "5"), ("gold", "check", "starter"), ("judges",)],
    "signatures/correctness_v1.py": [("judges",), ("report", "sc")],
    "rows.csv": [("judge", *TABLE, "--lock", "judge.lock.json")],
}


def command(argv: tuple[str, ...]) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(argv)
    return Ran(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which everything has been done once."""
    root = tmp_path_factory.mktemp("whole") / "workspace"
    init_workspace(root)
    (root / "rows.csv").write_text("q,a,r\n" + "What?,Seven.,It is seven.\n" * 5, encoding="utf-8")
    config = '[models.other]\nid = "openai/x"\napi_base = "http://127.0.0.1:9"\ninput_usd_per_1m = 1.0\n'
    (root / "judgecal.toml").write_text(f"schema = 1\n{config}output_usd_per_1m = 2.0\n", encoding="utf-8")
    workspace = find_workspace(root)
    made = (
        SCORE,
        (*COMPARE, "--name", "co"),
        OPTIMIZE,
        ("score", "--name", "al", "--split", "all", "--signatures", "correctness_v1,correctness_v3"),
        ("compare", "al", *COMPARE[2:], "--name", "lo"),  # looks at test
    )
    with contextlib.chdir(root), pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGECAL_CACHE_DIR", str(root.parent / "cache"))
        for argv in made:
            ran = command(argv)
            assert ran.code == 0, (argv, ran.err)
        gold = load_gold("starter", workspace=workspace)
        lock = a_lock(PromptJudge("correctness_v3@embedded", workspace=workspace), gold, calibration=None)
        (root / "judge.lock.json").write_text(json.dumps(lock.as_json()), encoding="utf-8")
    return root


def broken(argv: tuple[str, ...], ran: Ran) -> bool:
    """Whether a command ended as none may."""
    traced = "Traceback" in ran.out + ran.err
    spoke_for_a_gate = ran.code == 1 and argv[0] in ("gate", "migrate") and "fail" not in ran.out
    silent = ran.code == 2 and not ran.err.strip()
    return ran.code not in ALLOWED or traced or spoke_for_a_gate or silent


@pytest.mark.parametrize("file", READERS)
def test_a_damaged_file_is_one_message(file: str, template: Path, tmp_path: Path) -> None:
    wrong = []
    for seed in range(CASES):
        rng = random.Random(f"{file}{seed}{os.environ.get('JUDGECAL_TORTURE_SEED', '')}")
        root = copied(template, tmp_path / str(seed))
        what = harm(root / file, rng)
        argv = rng.choice(READERS[file])
        with contextlib.chdir(root):
            ran = command(argv)
        if broken(argv, ran):
            wrong.append(f"{seed}: {what}\n  {' '.join(argv)}: exit {ran.code}\n  {ran.err[-600:]}")
        shutil.rmtree(root)
    assert not wrong, f"{len(wrong)} of {CASES}\n" + "\n".join(wrong)


@pytest.mark.parametrize("damage", ["{", "null", '{"item_id": 1}', "\0\0\0", '{"item_id": "a"}', "[" * 9000])
def test_a_damaged_row_is_named_and_called_again(damage: str, template: Path, tmp_path: Path) -> None:
    root = copied(template, tmp_path / "one")
    journal = root / "experiments" / "paid" / "judgements.jsonl"
    argv = ("score", "--name", "paid", "--models", "stub", "--limit", "10")
    with running(lambda _: "[[ ## correctness_percentage ## ]]\n85") as server, contextlib.chdir(root):
        with (root / "judgecal.toml").open("a", encoding="utf-8") as config:
            config.write(f'[models.stub]\nid = "openai/stub"\napi_base = "{server.api_base}"\n')
        assert command(argv).code == 0
        lines = journal.read_text(encoding="utf-8").splitlines()
        journal.write_text("\n".join([*lines[:3], damage, *lines[4:]]) + "\n", encoding="utf-8")
        ran = command(argv)
    assert ran.code == 0 and "judgements.jsonl:4:" in ran.err, ran.err
    added = journal.read_text(encoding="utf-8").splitlines()[len(lines) :]
    assert [json.loads(line)["item_id"] for line in added] == [json.loads(lines[3])["item_id"]]
