"""A server that gives the chances of tokens, in OpenAI's form."""

from __future__ import annotations

import csv
import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.http import Answer, as_answer
from tests.support.server import Script, completion

Tokens = Sequence[str | Mapping[str, float]]
"""Each a text, or the chances of what may stand there, of which the first is what is said."""


def with_tokens(*tokens: str | Mapping[str, float], given: bool = True) -> Answer:
    """A completion of these tokens; without logprobs where none are `given`."""
    tops = [{token: 1.0} if isinstance(token, str) else token for token in tokens]
    rows = [[_row(text, chance) for text, chance in top.items()] for top in tops]
    body = completion("".join(next(iter(top)) for top in tops))
    if given:
        content = [{**row[0], "top_logprobs": row} for row in rows]
        body["choices"][0]["logprobs"] = {"content": content}
    return as_answer(body)


def _row(text: str, chance: float) -> dict[str, Any]:
    return {"token": text, "logprob": math.log(chance), "bytes": list(text.encode())}


def sure_of(chance_of_yes: float, rng: random.Random) -> dict[str, float]:
    """The chances of a yes or a no, with a surface form and a rest beside them; what is said is drawn by them."""
    forms = {
        "yes": 0.9 * chance_of_yes,
        "Yes": 0.07 * chance_of_yes,
        "no": 0.97 * (1 - chance_of_yes),
        "the": 0.03,
    }
    said = "yes" if rng.random() < chance_of_yes else "no"
    return {said: forms[said], **forms}


def judge_by_number(name: str = "verdict", seed: int = 1) -> Script:
    """Says yes with the chance that stands in the answer as `sure 0.37`; a reasoning with a yes stands before."""
    rng = random.Random(seed)

    def script(body: dict[str, Any]) -> Answer:
        chance = float(re.findall(r"sure (\d\.\d+)", json.dumps(body["messages"][-1]))[-1])
        before = ('{"reasoning": "yes', ' or no", "', name, '": "')
        return with_tokens(*before, sure_of(chance, rng), '"}', given="logprobs" in body)

    return script


def write_rows(path: Path, n_groups: int, of_each: int = 3, seed: int = 7) -> Path:
    """A table whose labels are yes with the chance that the judge gives each answer, a beta of 1/2 and 1/2."""
    rng = random.Random(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(("item_id", "group", "question", "reference_answer", "answer", "label"))
        for n in range(n_groups * of_each):
            chance, group = min(0.999, max(0.001, rng.betavariate(0.5, 0.5))), n // of_each
            label = "yes" if rng.random() < chance else "no"
            answer = f"It is {n}, sure {chance:.4f}."
            out.writerow((f"i{n}", f"q{group}", f"What is {group}?", f"It is {n}.", answer, label))
    return path
