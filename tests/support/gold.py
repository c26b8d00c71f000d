"""Made-up gold sets and signatures."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgecal.scale import Label
from tests.support.command import Run

TOWNS = ("Arnel", "Bower", "Culm", "Dorran", "Ewes", "Fenwick", "Garth", "Holm", "Ilsley", "Jarrow", "Kelso")
THINGS = (
    "copper", "tin", "oak", "slate", "wool", "barley", "salmon", "amber", "chalk", "peat", "ochre", "flint",
)  # fmt: skip


def made_items(n_groups: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """Questions with three answers each: all four facts, two of the four, none.

    `kind` (full, half, none) says which, so that a test can give the label that its people would give.
    """
    rng = random.Random(seed)
    rows = []
    for number in range(n_groups):
        facts = rng.sample(THINGS, 4)
        other = rng.sample([thing for thing in THINGS if thing not in facts], 4)
        town = f"{rng.choice(TOWNS)} {number}"
        reference = f"{town} sold {facts[0]}, {facts[1]}, {facts[2]} and {facts[3]}."
        answers = {
            "full": f"{facts[3]}, {facts[1]}, {facts[0]} and {facts[2]} were sold.",
            "half": f"{facts[0]} and {facts[2]} were sold.",
            "none": f"{other[0]} and {other[1]} were sold.",
        }
        rows += [
            {
                "item_id": f"i{number:03d}-{kind}",
                "group": f"g{number:03d}",
                "question": f"What did {town} sell at the fair?",
                "answer": answer,
                "reference_answer": reference,
                "kind": kind,
            }
            for kind, answer in answers.items()
        ]
    return rows


def made_gold(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    ratings: Iterable[tuple[str, str, Label]],
    *,
    scale: str = 'kind = "percentage"\nmin = 0\nmax = 100',
    splits: str = "seed = 0",
) -> Path:
    """Write a gold set: item rows (their `kind` is left out), (item_id, rater, label) rows, and a card."""
    folder.mkdir(parents=True)
    items = [{key: value for key, value in row.items() if key != "kind"} for row in rows]
    given = [{"item_id": i, "rater": rater, "label": label} for i, rater, label in ratings]
    for name, lines in (("items.jsonl", items), ("ratings.jsonl", given)):
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder / name).write_text(text, encoding="utf-8")
    card = f'schema = 1\nname = "{folder.name}"\n\n[scale]\n{scale}\n\n[splits]\n{splits}\n'
    (folder / "card.toml").write_text(card, encoding="utf-8")
    return folder


def rated(rows: Iterable[Mapping[str, Any]], labels: Mapping[str, Label]) -> list[tuple[str, str, Label]]:
    """One rater's label for each row, by its kind."""
    return [(row["item_id"], "ann", labels[row["kind"]]) for row in rows]


def harsh_gold(workspace: Path) -> Path:
    """The set `harsh` of people who mark how much is missing: demos teach the embedded judge that, and no map
    can."""
    rows = made_items(44)
    return made_gold(workspace / "gold" / "harsh", rows, rated(rows, {"full": 0, "half": 0, "none": 100}))


NQ301 = (
    "--col item=item_id --col group=group --col question=question --col answer=answer --scale binary "
    "--col reference=reference_answer --label annotator1 --label annotator2 --label annotator3 "
    "--col gold=acceptable"
)


def import_nq301(judgecal: Run, folder: Path) -> None:
    """Import the public set nq301 with its three raters and its gold label."""
    words = ("gold", "import", folder / "items.csv", "--as", "nq301", *NQ301.split())
    ran = judgecal(*words, "--reference-separator", " | ")
    assert ran.code == 0, ran.err


def write_signature(workspace: Path, name: str, verdicts: Sequence[tuple[str, str, str]]) -> None:
    """A judge's signature with these verdict fields: (name, annotation, arguments)."""
    fields = "".join(f"    {field}: {kind} = dspy.OutputField({more})\n" for field, kind, more in verdicts)
    (workspace / "signatures" / f"{name}.py").write_text(
        "from typing import Literal\n\nimport dspy\n\n\n"
        'class Graded(dspy.Signature):\n    """Grade the answer under test against the reference '
        'answer."""\n\n'
        "    question: str = dspy.InputField()\n"
        "    reference_answer: str = dspy.InputField()\n"
        "    answer_under_test: str = dspy.InputField()\n"
        f"    reasoning: str = dspy.OutputField()\n{fields}",
        encoding="utf-8",
    )
