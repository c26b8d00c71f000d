"""Every benchmark of made-up worlds still runs, on so few samples that its numbers mean nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMALL = (
    "calibration -n 6", "corrected_rate -n 3", "coverage -n 2 --kind nominal --metric kappa",
    "gate_nights -n 2", "looks -n 2", "migrations -n 4 --questions 100", "optimize_decisions -n 1 --only 3",
    "optimize_auto --only instructions --quick",
    "retrieval_speed -n 1 --quick", "selection -n 3", "slices -n 1", "sweeps -n 3",
)  # fmt: skip


@pytest.mark.parametrize("words", SMALL)
def test_a_benchmark_runs(words: str) -> None:
    name, *options = words.split()
    command = [sys.executable, "-m", f"tests.benchmarks.{name}", *options]
    ran = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    last = ran.stdout.rstrip().rpartition("\n")[2]
    assert last.startswith(("no promise broken", "promises broken")), ran.stdout[-500:] + ran.stderr[-2000:]
    assert ran.returncode == (0 if last.startswith("no") else 1)
