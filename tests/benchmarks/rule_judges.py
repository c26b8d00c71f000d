"""How many items a second each rule over `expect` takes, of CPU time: the judge alone, and a run with its
journal.

    python -m tests.benchmarks.rule_judges [N] [JUDGE ...]

The items are made here: a question, an answer of about 45 words, four contexts of about 120 words and rules
over both. The target is 50,000 items a second for the judge alone. A run also makes the key and the row of
each judgement and appends its line to the journal, which no judge can be quicker than: the line `nothing` is
a judge that does nothing.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judgecal.engine import Journal
from judgecal.errors import InputError
from judgecal.experiment import RunOptions, run_trials
from judgecal.judges import judge_named
from judgecal.records import Context, Item
from judgecal.workspace import Workspace, find_workspace

TARGET = 50_000
RULES = (
    "exact_match", "include", "include(match=phrase)", "include(lemmas=pl)", "exclude", "cite_f1", "refuse", "safe",
    "safe(lemmas=pl)",
)  # fmt: skip
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


def rate(judge: Any, items: Sequence[Item]) -> float:
    """Items a second of CPU time, the judge alone, once it has seen the words: each new one costs simplemma
    0.1 ms."""
    for item in items:
        judge.verdict(item)
    start = time.process_time()
    for item in items:
        judge.verdict(item)
    return len(items) / (time.process_time() - start)


def rate_of_run(judge: Any, items: Sequence[Item], folder: Path) -> float:
    """The same through the engine, into a journal on disk."""
    with Journal(folder / f"{judge.fingerprint}.jsonl") as journal:
        start = time.process_time()
        run_trials([judge], items, journal=journal, options=RunOptions(quiet=True))
        return len(items) / (time.process_time() - start)


def judges(names: Sequence[str], workspace: Workspace) -> list[Any]:
    """The judges of these names; without names all rules, also as they compare words in other ways."""
    wanted = names or ["nothing.py:nothing@python", *(f"{name}@local" for name in RULES)]
    found = []
    for name in wanted:
        try:
            found.append(judge_named(name, workspace=workspace))
        except InputError as error:
            print(f"left out: {error}")
    return found


def main(argv: Sequence[str]) -> None:
    n, names = (int(argv[0]), argv[1:]) if argv and argv[0].isdigit() else (20_000, argv)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for folder in ("signatures", "gold", "experiments"):
            (root / folder).mkdir()
        (root / "badwords.txt").write_text(
            "".join(f"badword{number}\n" for number in range(600)), encoding="utf-8"
        )
        (root / "nothing.py").write_text("def nothing(answer) -> bool:\n    return True\n", encoding="utf-8")
        items = made(n)
        for item in items:
            item.sha  # noqa: B018 - made once an item, for all judges
        print(f"{n:,} items; items a second of CPU time\n{'judge':30} {'alone':>10} {'in a run':>10}")
        for judge in judges(names, find_workspace(root)):
            alone = rate(judge, items)
            mark = "" if alone >= TARGET else f"  under {TARGET:,}"
            print(
                f"{judge.name:30} {alone:10,.0f} {rate_of_run(judge, items, root):10,.0f}{mark}", flush=True
            )


if __name__ == "__main__":
    main(sys.argv[1:])
