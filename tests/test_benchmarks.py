"""Every benchmark runs, on so little that its numbers mean nothing."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.command import ROOT

BENCHMARKS = ROOT / "tests" / "benchmarks"
OF_THEIR_OWN = ("mutations", "optimize_auto")  # they fork, or move this process elsewhere
NAMES = [
    path.stem
    for path in sorted(BENCHMARKS.glob("*.py"))
    if re.search(r"Bench\(\s*__doc__", path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name in OF_THEIR_OWN:
        command = [sys.executable, "-m", f"tests.benchmarks.{name}", "--quick"]
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        code, out = ran.returncode, ran.stdout + ran.stderr[-2000:] * bool(ran.returncode)
    else:
        monkeypatch.setattr(sys, "argv", [name, "--quick"])
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        code = importlib.import_module(f"tests.benchmarks.{name}").main()
        out = capsys.readouterr().out
    assert code == 0, out
    assert "nothing is promised of a quick run" in out.rstrip().rpartition("\n")[2], out


def test_each_promise_names_a_benchmark_or_a_test_that_is_there() -> None:
    """The page of evidence is made from the table, and a test of the handbook holds that it is."""
    table = tomllib.loads((BENCHMARKS / "promises.toml").read_text(encoding="utf-8"))
    commands = {row["command"].split()[0] for section in table["section"] for row in section["promise"]}
    assert {name for name in commands if "/" in name and not (ROOT / name).is_file()} == set()
    named = {name for name in commands if "/" not in name}
    assert named == set(NAMES) - {"mutations", "embedded_fit"}  # which promise users nothing
