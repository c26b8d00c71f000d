"""The front door on tables of many sizes, as ratios to polars and `stats` called directly in the same run.

`python -m tests.benchmarks.front_door` makes tables with a seed, runs the commands as processes, and prints
wall seconds, CPU seconds (user and system), the peak of memory and each target. A target holds the smaller of
both seconds: other work on the machine lengthens the wall's, threads on its two cores the CPU's.
`--no-million` leaves out the million answers.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from tests.benchmarks.driver import Bench, latent

_DIRECT = """
import sys
import numpy as np, polars as pl
from judgecal.scale import Scale
from judgecal.stats import agreement
from judgecal.stats.calibration import cross_fit
from judgecal.stats.simultaneous import losses_against_best
frame = pl.read_csv(sys.argv[1])
people, percentage = Scale.parse("binary"), Scale.parse("percentage")
labels = frame["label"].to_numpy().astype(float)
groups = (frame["question"].rank("dense").to_numpy() - 1).astype(np.int64)
shared, mapped = {"scale": people, "groups": groups}, {}
for name in (name for name in frame.columns if name[0] == "j" and name[1:].isdigit()):
    verdicts = frame[name].to_numpy().astype(float)[:, None]
    fit = cross_fit(labels, verdicts, judge_scale=percentage, **shared)
    mapped[name] = fit.verdicts
    agreement(labels, verdicts, judge_scale=percentage, **shared)
    agreement(labels, fit.verdicts, unscored="wrong", **shared)
if len(mapped) > 1:
    losses_against_best(labels, mapped, metric="accuracy", margin=0.03, scale=people, groups=groups)
"""
_COMMAND = "from judgecal.__main__ import main; main()"


@dataclass(frozen=True)
class Ran:
    """What one process took."""

    wall: float
    cpu: float
    peak_mb: float


def ran(code: str, *argv: object, folder: Path) -> Ran:
    """Run Python code as a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    with (folder / "log.txt").open("wb") as log:
        command = [sys.executable, "-c", code, *map(str, argv)]
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError((folder / "log.txt").read_text(encoding="utf-8")[-2000:])
    return Ran(time.perf_counter() - start, _cpu(usage), usage.ru_maxrss / 1024)


def _cpu(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def table(folder: Path, n: int, n_judges: int) -> Path:
    """Answers to questions of four each, labels of people, and judges that see what people see with noise."""
    rng, path = np.random.default_rng(n), folder / f"t{n}x{n_judges}.csv"
    question = np.repeat(np.arange(n // 4), 4)
    seen = latent(rng, n // 4, 4)
    columns: dict[str, object] = {
        "question": [f"Question {q}: what is known of it, and why?" for q in question.tolist()],
        "answer": [f"Answer {i}, with the number {i * 13 % 97} and a few more words." for i in range(n)],
        **({"reference": [f"The number {i * 13 % 89} and words." for i in range(n)]} if n_judges > 3 else {}),
        "system": [f"system{i % 3}" for i in range(n)],
        "label": (seen > -0.2).astype(np.int64),
    }
    for judge in range(n_judges):
        noisy = 50.0 + 25.0 * ((0.9 - 0.02 * judge) * seen + 0.6 * rng.standard_normal(n))
        columns[f"j{judge}"] = np.clip(noisy, 0.0, 100.0).round().astype(np.int64)
    pl.DataFrame(columns).write_csv(path)
    return path


def verdict_options(n_judges: int) -> list[str]:
    """The options that name the columns of a table."""
    return ["--label", "label", *(word for n in range(n_judges) for word in ("--verdict", f"j{n}"))]


def main() -> int:
    """Measure all of it."""
    bench = Bench(__doc__, n=20_000, of="answers of the large table", quick={"n": 40}, million=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)

        def command(what: str, *argv: object, most: float, direct: Ran | None = None) -> Ran:
            used = ran(_COMMAND, *argv, folder=folder)
            ratio = f", {used.cpu / direct.cpu:.1f} times the direct way" if direct else ""
            bench.line(f"{what}: {used.wall:.1f} s, CPU {used.cpu:.1f} s, {used.peak_mb:,.0f} MB{ratio}")
            bench.target("seconds", min(used.wall, used.cpu), most=most)
            return used

        if not bench.quick:
            ran(_COMMAND, "agreement", table(folder, 40, 1), *verdict_options(1), folder=folder)  # bytecode
        bench.head("agreement FILE")
        sizes = [
            (200, 1, 2.5),
            (2_000, 3, 3.0),
            (bench.n, 3, 6.0),
            *[(1_000_000, 1, 40.0)] * bench.options.million,
        ][2 * bench.quick : 3 if bench.quick else None]
        for n, n_judges, most in sizes:
            path = table(folder, n, n_judges)
            direct = ran(_DIRECT, path, folder=folder)
            bench.line(f"{n:,} x {n_judges} direct: CPU {direct.cpu:.1f} s, {direct.peak_mb:,.0f} MB")
            argv = ("agreement", path, *verdict_options(n_judges), "--name", path.stem)
            used = command(f"{n:,} x {n_judges}", *argv, most=most, direct=direct)
            if n == bench.n:
                bench.target("times the direct way", used.cpu / direct.cpu, most=4.0)
            if n == 1_000_000:
                bench.target("MB", used.peak_mb, most=2_048.0)
        bench.head("what was judged")
        command(f"page of {bench.n:,} x 3", "report", f"t{bench.n}x3", "--format", "html", most=5.0)
        if bench.quick:
            return bench.end()
        ran(_COMMAND, "init", "workspace", folder=folder)
        many, at = table(folder, bench.n, 12), ["--workspace", "workspace"]
        imported = ["gold", "import", many, "--as", "many", *verdict_options(12)]
        ran(_COMMAND, *at, *imported, folder=folder)
        ran(_COMMAND, *at, "agreement", "--gold", "many", "--name", "held", folder=folder)
        command(f"select of 12 judges on {bench.n:,}", *at, "select", "held", most=8.0)
        judges = [
            w for name in ("relevancy_overlap", "token_f1", "rouge_l") for w in ("--judge", f"{name}@local")
        ]
        score = [*at, "score", "--gold", "many", *judges, "--split", "all", "--name", "again"]
        ran(_COMMAND, *score, folder=folder)
        command(f"score of 3 judges whose verdicts are stored, {bench.n:,}", *score, most=5.0)
    return bench.end("polars", "numpy")


if __name__ == "__main__":
    sys.exit(main())
