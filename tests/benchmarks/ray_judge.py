"""`judge --engine ray` on a large table: the same rows as without Ray, and what a killed worker costs.

    python -m tests.benchmarks.ray_judge [-n 200000] [--partitions 8] [--no-kill]

The table is judged whole by the local engine and in CSV partitions by Ray's workers on this machine, each
with `embedded`. One worker is killed (SIGKILL) when half of the rows have a verdict. Needs Ray: `pip install
ray`.
"""

from __future__ import annotations

import csv
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from judgecal import load_gold
from judgecal.engine import read_journal
from judgecal.judges import PromptJudge
from judgecal.workspace import init_workspace
from tests.benchmarks.driver import Bench
from tests.support.locks import lock_file
from tests.support.partitions import MEASURED, OPTIONS, rows, write
from tests.support.workers import ray_workers

_TICK_S = 0.2


def written(folder: Path, n: int, parts: int) -> list[str]:
    """The table whole, and in partitions; the names of these."""
    size = -(-n // parts)
    write(folder / "all.csv", rows(n))
    names = [f"part-{part:03d}.csv" for part in range(parts)]
    for part, name in enumerate(names):
        write(folder / "in" / name, rows(min(size, n - part * size), first=part * size))
    return names


def digests(paths: list[Path]) -> Iterator[bytes]:
    """Each row without what a run measures."""
    for path in paths:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                row.pop(MEASURED)
                yield hashlib.blake2b(repr(row).encode(), digest_size=8).digest()


def judge(folder: Path, table: str, out: str, *engine: str, kill_at: int | None = None) -> tuple[float, int]:
    """Seconds that the command took, and how many workers were killed."""
    words = ["judge", table, "--lock", "ws/judge.lock.json", "-o", out, *OPTIONS, *engine]
    words += ["--name", out.split(".")[0]]
    start, killed = time.perf_counter(), 0
    command = [sys.executable, "-m", "judgecal", "--workspace", "ws", *words]
    env = {**os.environ, "RAY_ADDRESS": "local"}
    with subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.DEVNULL) as run:
        while run.poll() is None:
            time.sleep(_TICK_S)
            due = kill_at is not None and not killed and lines(folder, out) >= kill_at
            if due and (at_work := ray_workers(run.pid)):
                os.kill(at_work[0], signal.SIGKILL)
                killed += 1
    if run.returncode:
        sys.exit(f"{' '.join(words)} ended with {run.returncode}")
    return time.perf_counter() - start, killed


def journals(folder: Path, out: str) -> list[Path]:
    """Of the partitions."""
    return sorted((folder / "ws" / "experiments" / out / "partitions").glob("*.jsonl"))


def lines(folder: Path, out: str) -> int:
    """About how many rows have a verdict, by the size of the journals."""
    size = sum(path.stat().st_size for path in journals(folder, out))
    first = next((path for path in journals(folder, out) if path.stat().st_size), None)
    if first is None:
        return 0
    with first.open("rb") as file:
        return size // max(1, len(file.readline()))


def main() -> int:
    """Judge both ways, and compare."""
    bench = Bench(__doc__, n=200_000, of="rows", partitions=8, kill=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workspace = init_workspace(folder / "ws")
        gold = load_gold("starter", workspace=workspace)
        lock = folder / "ws/judge.lock.json"
        lock_file(lock, PromptJudge("correctness_v3@embedded", workspace=workspace), gold)
        names = written(folder, bench.n, bench.options.partitions)
        plain_s, _ = judge(folder, "all.csv", "whole.csv")
        kill_at = bench.n // 2 if bench.options.kill else None
        ray_s, killed = judge(folder, "in", "out", "--engine", "ray", kill_at=kill_at)
        whole = list(digests([folder / "whole.csv"]))
        parts = list(digests([folder / "out" / name for name in names]))
        keys = [row.key for path in journals(folder, "out") for row in read_journal(path)]
        again_s, _ = judge(folder, "in", "out", "--engine", "ray")
    bench.line(
        f"{len(whole):,} rows whole, {len(parts):,} in {len(names)} partitions, workers killed: {killed}"
    )
    bench.target("rows that differ", sum(a != b for a, b in zip(whole, parts, strict=True)), most=0)
    bench.target("rows judged twice", len(keys) - len(set(keys)), most=0)
    bench.target("rows not judged", bench.n - len(set(keys)), most=0)
    bench.line(f"{plain_s:.1f} s local, {ray_s:.1f} s Ray, {again_s:.1f} s Ray again (all done)")
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
