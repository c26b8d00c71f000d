"""`judgecal judge` on a large table: seconds, peak memory, and that every row came out in order.

    python -m tests.benchmarks.production [-n 1000000] [--format csv|jsonl|parquet] [--questions 1000000]

The memory is the largest that the command and its worker processes had together, read from /proc twice a
second (Linux), and beside it the largest of the single process. The target is 1 GB for a million rows, on any
format that is read by pieces.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from judgecal import load_gold
from judgecal.judges import PromptJudge
from judgecal.workspace import find_workspace
from tests.benchmarks.driver import Bench
from tests.support.locks import lock_file

ROOT = Path(__file__).resolve().parents[2]
_MB_AT_MOST = 1000.0
_COLUMNS = ("id", "question", "answer", "reference", "system", "price")


def rows(count: int, questions: int) -> Iterator[tuple[str, ...]]:
    """Short rows of two systems, the n-th answer right for one in three."""
    for number in range(count):
        question = f"How many crates are in store {number % questions}?"
        reference = f"{number % 97} crates"
        answer = reference if number % 3 else f"{number % 89} boxes"
        yield str(number), question, answer, reference, "AB"[number % 2], f"{number / 8:g}"


def write(path: Path, count: int, questions: int) -> None:
    """The table in the format of the ending."""
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(_COLUMNS)
            out.writerows(rows(count, questions))
    elif path.suffix == ".jsonl":
        with path.open("w") as file:
            for row in rows(count, questions):
                file.write(json.dumps(dict(zip(_COLUMNS, row, strict=True))) + "\n")
    else:
        import polars as pl

        pl.DataFrame(list(rows(count, questions)), schema=list(_COLUMNS), orient="row").write_parquet(path)


def ids(path: Path) -> list[str]:
    """The ids of a table and, glued on, whether there is a verdict."""
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return [f"{row['id']}:{row['verdict'] != ''}" for row in csv.DictReader(file)]
    if path.suffix == ".jsonl":
        with path.open() as file:
            found = (json.loads(line) for line in file)
            return [f"{row['id']}:{row['verdict'] is not None}" for row in found]
    import polars as pl

    frame = pl.read_parquet(path, columns=["id", "verdict"])
    return [f"{one}:{verdict is not None}" for one, verdict in frame.iter_rows()]


def resident_mb(pid: int) -> float:
    """What a process and its children have in memory now."""
    total = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if pid in (int(folder.name), parent):
                total += int((folder / "statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            continue  # it has ended meanwhile
    return total * os.sysconf("SC_PAGE_SIZE") / 1e6


def run(folder: Path, table: Path, output: Path) -> tuple[float, float, float]:
    """Seconds, megabytes of all processes together, and of the largest one."""
    options = [f"--{name}={name}" for name in ("question", "answer", "reference", "system")]
    command = [
        sys.executable,
        "-m",
        "judgecal",
        "judge",
        str(table),
        "--lock",
        "judge.lock.json",
        "-o",
        str(output),
    ]
    began, most = time.monotonic(), 0.0
    process = subprocess.Popen([*command, *options], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})
    while process.poll() is None:
        most = max(most, resident_mb(process.pid))
        time.sleep(0.5)
    if process.returncode:
        raise SystemExit(f"judgecal judge ended with {process.returncode}")
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    return time.monotonic() - began, most, largest


def main() -> int:
    bench = Bench(__doc__, n=1_000_000, of="rows", questions=1_000_000, format="csv")
    ending = bench.options.format
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("signatures", "gold"):
            shutil.copytree(ROOT / part, folder / part)
        judge = PromptJudge("correctness_v3@embedded", workspace=find_workspace(folder))
        lock_file(folder / "judge.lock.json", judge, load_gold(str(folder / "gold" / "starter")))
        table, output = folder / f"in.{ending}", folder / f"out.{ending}"
        write(table, bench.n, bench.options.questions)
        for what in ("first run", "again, all in the journal"):
            seconds, together, largest = run(folder, table, output)
            whole = ids(output) == [f"{number}:True" for number in range(bench.n)]
            rows_are = "whole and in order" if whole else "NOT WHOLE"
            rate = f"{seconds:.0f} s ({bench.n / seconds:,.0f}/s)"
            bench.line(f"{what}: {rate}, {largest:.0f} MB the largest process, rows {rows_are}", kept=whole)
            bench.target("MB of all processes", together, most=_MB_AT_MOST)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
