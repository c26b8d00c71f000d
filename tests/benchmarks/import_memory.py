"""What `gold import` of large tables takes: seconds, and the most memory that the process held. By hand, some
ten minutes and 6 GB of disk. `python -m tests.benchmarks.import_memory [--only parquet|csv|ratings] [-n PERCENT]`

`parquet`: 1,000,000 rows, two raters. `csv`: 2 GB, some 1,350,000 rows of 1.5 kB, two raters and a column of
ids. `ratings`: 1,500,000 rows of 500,000 items, one a rating. `-n 10`: a tenth of them. Exits 1 where a
process held 2 GB or more.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl

from tests.benchmarks.driver import Bench

LIMIT = 2.0  # GB
WORDS = [
    f"{start}{end}" for start in ("ba", "ro", "li", "ta", "mu") for end in ("nk", "st", "ver", "den", "gel")
]


def text(rng: random.Random, characters: int) -> str:
    """Words, so many characters of them."""
    return " ".join(rng.choices(WORDS, k=characters // 4))[:characters].strip()


def parquet(path: Path, share: float) -> None:
    """1,000,000 rows: question, answer of 200 characters, reference, two raters."""
    rng, n = random.Random(1), int(1_000_000 * share)
    answers = [text(rng, 200) for _ in range(1_000)]
    place = pl.int_range(n, eager=True)
    frame = pl.DataFrame({
        "question": "What of " + place.cast(pl.String) + "?",
        "answer": pl.Series(answers).gather(place % 1_000) + " " + place.cast(pl.String),
        "reference": pl.Series(answers).gather((place * 7) % 1_000),
        "ann": place * 7919 % 101,
        "ben": place * 104_729 % 101,
    })  # fmt: skip
    frame.write_parquet(path, compression="uncompressed")


def csv(path: Path, share: float) -> None:
    """2 GB: ids, questions, answers and references of some 1.5 kB together, quoted, some with line ends; two
    raters."""
    rng, left, place = random.Random(2), int(2_000_000_000 * share), 0
    texts = [text(rng, 700) + (', "so"\n' if n % 5 == 0 else "").replace('"', '""') for n in range(1_000)]
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write("id,question,answer,reference,ann,ben\n")
        while left > 0:
            answer, reference = texts[place % 1_000], texts[place * 7 % 1_000]
            grades = place * 7919 % 101, place * 104_729 % 101
            line = f'row-{place},What of {place}?,"{answer} {place}","{reference}",{grades[0]},{grades[1]}\n'
            left -= file.write(line)
            place += 1


def ratings(path: Path, share: float) -> None:
    """One row a rating: 1,500,000 rows, each item three times, by one of forty raters, without an id."""
    rng = random.Random(3)
    texts = [text(rng, 300) for _ in range(1_000)]
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write("question,answer,who,label\n")
        file.writelines(
            f"What of {place}?,{texts[place % 1_000]} {place},rater "
            f"{(place + one) % 40},{(place + one) % 2}\n"
            for place in range(int(500_000 * share))
            for one in range(3)
        )


TEXTS = "--col question=question --col answer=answer"
GRADES = f"{TEXTS} --col reference=reference --label ann --label ben --scale percentage"
CASES: dict[str, tuple[str, Callable[[Path, float], None], str]] = {
    "parquet": ("table.parquet", parquet, GRADES),
    "csv": ("table.csv", csv, f"--col item=id {GRADES}"),
    "ratings": ("table.csv", ratings, f"{TEXTS} --col rater=who --label label --scale binary"),
}
"""The file, what makes it, and the options of its import."""


def measured(folder: Path, *argv: str) -> tuple[float, float, int]:
    """Seconds and CPU seconds of a command, and the most bytes that it held; it must end with 0."""
    start = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "judgecal", *argv], cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)} ended with {process.returncode}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main() -> int:
    bench = Bench(__doc__, n=100, of="percent of the rows", only=[])
    for name in bench.options.only or CASES:
        file, make, options = CASES[name]
        with tempfile.TemporaryDirectory() as root:
            folder = Path(root)
            for part in ("gold", "signatures"):
                (folder / part).mkdir()
            # In a process of its own: what the parent held counts as held by the command.
            share = bench.n / 100.0
            maker = multiprocessing.get_context("spawn").Process(target=make, args=(folder / file, share))
            maker.start()
            maker.join()
            size = (folder / file).stat().st_size
            seconds, cpu, held = measured(folder, "gold", "import", file, "--as", "large", *options.split())
        bench.line(f"{name}: {size / 1e9:.2f} GB, {seconds:.0f} s ({cpu:.0f} s CPU)")
        bench.target("GB held", held / 1e9, most=LIMIT)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
