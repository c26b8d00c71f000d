"""How many items a second each local judge reads: `python -m tests.benchmarks.local_judges [--data DATA]`.

Items made here, for rules over `expect`: a question, an answer of about 45 words, four contexts of about 120
words and rules over both. With `--data`, public sets: NQ301, answers of 4 words in the mean beside references
of a few, and MTRAG, answers of 98 words, 570 words of contexts. The judge alone, on one core, once it has seen
the words (each new one costs simplemma 0.1 ms); then `run_trials` with its journal, which no judge can be
quicker than: the line `nothing` is a judge that does nothing. 50,000 items a second is the target of the judge
alone; what is slower is said in the docs with the reason, so nothing here fails.
"""

from __future__ import annotations

import csv
import itertools
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgecal.engine import Journal
from judgecal.errors import InputError
from judgecal.experiment import RunOptions, run_trials
from judgecal.judges import judge_named, local_judges
from judgecal.records import Context, Item
from judgecal.workspace import Workspace, find_workspace
from tests.benchmarks.driver import Bench

_TARGET = 50_000  # items a second
_SECONDS = 0.5  # of each measurement at least
_RUN = 10_000  # items of a run
RULES = ("include(match=phrase)", "include(lemmas=pl)", "safe(lemmas=pl)")
SYLLABLES = ("ka", "lo", "mi", "ter", "ran", "so", "vel", "dus", "pri", "on", "get", "ba")


def made(n: int) -> list[Item]:
    """Items whose words come from a vocabulary of 5,000, the frequent ones often."""
    rng = random.Random(1)
    vocabulary = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(5_000)]
    weights = [1.0 / rank for rank in range(1, len(vocabulary) + 1)]

    def text(words: int) -> str:
        drawn = rng.choices(vocabulary, weights, k=words)
        return " ".join(
            f"{word.capitalize()}." if place % 12 == 11 else word for place, word in enumerate(drawn)
        )

    passages = [text(120) for _ in range(500)]
    return [_item(number, text(45), rng.sample(range(500), 4), passages, rng) for number in range(n)]


def _item(
    number: int, answer: str, places: Sequence[int], passages: Sequence[str], rng: random.Random
) -> Item:
    words = answer.split()
    expect = {
        "include": [rng.choice(words), [rng.choice(words), "nowhere"], "two words"],
        "exclude": ["nowhere at all", rng.choice(words)],
        "cite": [f"d{places[0]}"],
        "refuse": False,
        "safe": True,
    }
    return Item(
        item_id=f"i{number}",
        group=f"g{number}",
        question=" ".join(words[:8]),
        answer=f"{answer} [0] [2]",
        reference_answers=(" ".join(words[5:30]),),
        reference_documents=(f"d{places[0]}", f"d{places[1]}"),
        contexts=tuple(Context(passages[place], f"d{place}") for place in places),
        expect=expect,
    )


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
    many = [
        replace(one, item_id=str(place))
        for place, one in enumerate(itertools.islice(itertools.cycle(items), _RUN))
    ]
    sum(len(one.sha) for one in many)  # made once for a set, whoever judges
    start = time.process_time()
    run_trials([judge], many, journal=Journal(None), options=RunOptions(quiet=True))
    return _RUN / (time.process_time() - start)


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


def judges(names: Sequence[str], workspace: Workspace) -> Iterator[Any]:
    """The judges of these names; without names all, rules also as they compare words in other ways."""
    for name in names or [
        "nothing.py:nothing@python",
        *(f"{name}@local" for name in (*local_judges(), *RULES)),
    ]:
        try:
            yield judge_named(name, workspace=workspace)
        except InputError as error:
            print(f"left out: {error}")


def main() -> int:
    bench = Bench(__doc__, n=20_000, of="made items", data="", judge=[])
    sets = {"made": made(bench.n)}
    if bench.options.data:
        data = Path(bench.options.data)
        sets |= {
            "nq301": list(_nq301(data / "nq301" / "items.csv")),
            "mtrag": list(_mtrag(data / "mtrag" / "items.jsonl")),
        }
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for folder in ("signatures", "gold", "experiments"):
            (root / folder).mkdir()
        (root / "badwords.txt").write_text("".join(f"badword{n}\n" for n in range(600)), encoding="utf-8")
        (root / "nothing.py").write_text("def nothing(answer) -> bool:\n    return True\n", encoding="utf-8")
        bench.head(
            f"{'judge':<30} {'set':<6} {'alone':>10} {'in a run':>10}  scored  (items a second of CPU)"
        )
        for judge, (which, items) in itertools.product(
            judges(bench.options.judge, find_workspace(root)), sets.items()
        ):
            if scored := sum(judge.verdict(item).verdict is not None for item in items):
                alone = _rate(
                    lambda items=items, judge=judge: [judge.verdict(one) for one in items], len(items)
                )
                slow = f"  under {_TARGET:,}" * (alone < _TARGET)
                share = f"{scored / len(items):6.0%}"
                bench.line(
                    f"{judge.name:<30} {which:<6} {alone:10,.0f} {_run_rate(judge, items):10,.0f}  {share}{slow}"
                )
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
