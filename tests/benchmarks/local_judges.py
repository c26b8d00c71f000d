"""How many items a second each local judge reads, on public data: short answers, and RAG answers with their
contexts.

    python -m tests.benchmarks.local_judges ../shared/data [NAME ...]

NQ301: answers of 4 words in the mean beside references of a few. MTRAG: answers of 98 words, 570 words of
contexts. The judge alone, on one core; then `run_trials` with the journal in memory, which is what `score`
does.
"""

from __future__ import annotations

import csv
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgecal.engine import Journal
from judgecal.experiment import RunOptions, run_trials
from judgecal.judges import judge_named, local_judges
from judgecal.records import Context, Item

_TARGET = 50_000  # items a second
_SECONDS = 0.5  # of each measurement at least


def main() -> int:
    """A line a judge and data set; always 0, as what is slower is said in the docs with the reason."""
    if len(sys.argv) < 2 or not (Path(sys.argv[1]) / "nq301").is_dir():
        print(f"usage: {sys.argv[0]} DATA [NAME ...], the folder that holds nq301/ and mtrag/")
        return 2
    data = Path(sys.argv[1])
    sets = {
        "nq301": list(_nq301(data / "nq301" / "items.csv")),
        "mtrag": list(_mtrag(data / "mtrag" / "items.jsonl")),
    }
    print(
        f"{'judge':<24} {'set':<6} {'alone':>10} {'in a run':>10}  scored  (items a second; target {_TARGET})"
    )
    for name, (which, items) in itertools.product(sys.argv[2:] or local_judges(), sets.items()):
        judge: Any = judge_named(f"{name}@local")
        scored = sum(judge.verdict(one).verdict is not None for one in items)
        if scored:
            alone = _rate(lambda items=items, judge=judge: [judge.verdict(one) for one in items], len(items))
            run = _run_rate(judge, items)
            print(f"{name:<24} {which:<6} {alone:10.0f} {run:10.0f}  {scored / len(items):6.0%}", flush=True)
    return 0


def _rate(work: Callable[[], object], count: int) -> float:
    """By CPU time, which other work on the machine does not lengthen; the fastest of three rounds."""
    best = 0.0
    for _ in range(3):
        start, done = time.process_time(), 0
        while (spent := time.process_time() - start) < _SECONDS:
            work()
            done += count
        best = max(best, done / spent)
    return best


def _run_rate(judge: Any, items: Sequence[Item]) -> float:
    most = 10_000
    many = [
        replace(one, item_id=str(place))
        for place, one in enumerate(itertools.islice(itertools.cycle(items), most))
    ]
    sum(len(one.sha) for one in many)  # made once for a set, whoever judges
    start = time.process_time()
    run_trials([judge], many, journal=Journal(None), options=RunOptions(quiet=True))
    return most / (time.process_time() - start)


def _nq301(path: Path) -> Iterator[Item]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            references = tuple(row["reference_answer"].split(" | "))
            yield Item(
                row["item_id"], row["group"], row["question"], row["answer"], reference_answers=references
            )


def _mtrag(path: Path) -> Iterator[Item]:
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        contexts = tuple(Context(one["text"], one["document_id"]) for one in row["contexts"])
        told = {"reference_answers": (row["reference_answer"],), "contexts": contexts}
        documents = tuple(str(one.document_id) for one in contexts[:2])
        yield Item(
            row["item_id"],
            row["group"],
            row["question"],
            row["answer"],
            **told,
            reference_documents=documents,
        )


if __name__ == "__main__":
    sys.exit(main())
