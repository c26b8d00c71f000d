"""Every benchmark runs, on so little that its numbers mean nothing."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ROOT

BENCHMARKS = ROOT / "tests" / "benchmarks"
OF_THEIR_OWN = ("mutations",)  # it forks
LONG = ("embedded_fit", "free_judges", "optimize_auto")  # have no short run yet
NAMES = [
    path.stem
    for path in sorted(BENCHMARKS.glob("*.py"))
    if path.stem not in LONG and re.search(r"Bench\(\s*__doc__", path.read_text(encoding="utf-8"))
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
