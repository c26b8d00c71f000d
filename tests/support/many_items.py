"""A large set with texts of an ordinary length and three judges of it, as an experiment of `agreement`."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from tests.support.gold import made_gold

_WORDS = (
    "the a of in record court city river engine first second century minister award season house people "
    "treaty under over known founded opened closed married elected painted wrote measured lost won built "
    "named after before"
)
_JUDGES = {"careful": 0.12, "hasty": 0.18, "other": 0.2}  # how often each errs


def many_items(folder: Path, n: int, *, name: str = "many") -> Path:
    """Write the gold set `name` of n yes/no items, five to a question, two raters; gives the file of
    judgements."""
    draw = random.Random(7)

    def text(words: int) -> str:
        return " ".join(draw.choices(_WORDS.split(), k=words)) + f" {draw.randrange(10_000)}"

    rows: list[dict[str, Any]] = []
    ratings, judgements = [], []
    for number in range(n):
        group, item = f"q{number // 5:05}", f"i{number:05}"
        rows.append({"item_id": item, "group": group, "question": f"{text(10)} {group}", "answer": text(18),
                     "reference_answer": text(5), "kind": ""})  # fmt: skip
        label = draw.random() < 0.55
        ratings += [
            (item, rater, int(label != (draw.random() < wrong)))
            for rater, wrong in (("a", 0.04), ("b", 0.06))
        ]
        ratings.append((item, "gold", int(label)))
        hard = draw.random() < 0.1
        for judge, wrong in _JUDGES.items():
            verdict = label != (draw.random() < (0.6 if hard else wrong))
            judgements.append(
                {"item_id": item, "judge": judge, "verdict": int(verdict), "reasoning": text(25)}
            )
    made_gold(folder / "gold" / name, rows, ratings, scale='kind = "binary"')
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in judgements), encoding="utf-8")
    return path
