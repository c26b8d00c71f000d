"""A table in partitions, its outputs read back, and partitions run one after the other in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from judgecal.bulk.partitioned import PartitionFacts, PartitionJob
from judgecal.engine import Budget, Progress
from judgecal.experiment import RunOptions
from judgecal.goldset import Columns
from judgecal.production.judge_counts import JudgedRows
from tests.support import tables
from tests.support.tables import write

COLUMNS = Columns("question", "answer", reference="reference", item="id", system="system")
OPTIONS = (
    "--col",
    "question=question",
    "--col",
    "answer=answer",
    "--col",
    "reference=reference",
    "--col",
    "item=id",
    "--col",
    "system=system",
)
MEASURED = "latency_s"  # no two runs have the same


def rows(n: int, *, first: int = 0) -> list[dict[str, str]]:
    """Answers of two systems, one in three of them right; `worth` is what a scripted server gives."""
    return [
        {
            "id": f"r{number}",
            "question": f"How many crates are in store {number}?",
            "answer": f"{number % 97} crates" if number % 3 else f"worth {number % 89} boxes",
            "reference": f"{number % 97} crates",
            "system": "AB"[number % 2],
        }
        for number in range(first, first + n)
    ]


def write_partitions(folder: Path, n: int, parts: int, ending: str = ".csv") -> list[str]:
    """So many rows in a folder, every second partition in a folder of its own; the names in their order."""
    size = -(-n // parts)
    names = sorted(f"{'' if part % 2 else 'sub/'}part-{part:03d}{ending}" for part in range(parts))
    for place, name in enumerate(names):
        write(folder / name, rows(min(size, n - place * size), first=place * size))
    return names


def read(path: Path) -> list[dict[str, str]]:
    """A file's rows without what a run measures."""
    return [{name: value for name, value in row.items() if name != MEASURED} for row in tables.read(path)]


class InThisProcess:
    """An engine without workers."""

    def look(self, jobs: Sequence[PartitionJob], *, estimate: bool) -> list[PartitionFacts]:
        return [job.look(estimate=estimate) for job in jobs]

    def judge(
        self, jobs: Sequence[PartitionJob], options: RunOptions, *, calls: bool, progress: Progress | None
    ) -> Iterator[tuple[int, JudgedRows]]:
        for place in reversed(range(len(jobs))):  # they may end in any order
            yield place, jobs[place].judge(Budget(options.budget_usd))
