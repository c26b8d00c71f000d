"""What the commands decide on small and awkward sets, as `tests/golden/small` holds it: JSON and text of each command.

A set has few questions, a scarce class, ties, unequal chances, unscored verdicts, judges alike or silent; a
lock is gated, drifts, is migrated and rated. `python -m tests.test_small_worlds` writes the files anew.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import json
import random
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.gold import made_gold
from tests.support.golden import World

FOLDER = Path(__file__).parent / "golden" / "small"
ASKS = (
    "Who built",
    "How many boats left",
    "In which year did they leave",
    "Why is there",
    "Name",
    "and when was it in",
)
WORDS = ("barley", "oak", "tin", "salt", "amber", "flint", "peat", "wool", "slate", "ochre")
JUDGES = {"good": 0.1, "hasty": 0.25, "dear": 0.12, "coin": 1.0}  # how often each says anything


def rows_of(n_questions: int, rng: random.Random, *, most: int = 3) -> list[dict[str, Any]]:
    """Questions with answers of one to twelve words, refusals, numbers, tags, systems and one to four references."""
    rows = []
    for number in range(n_questions):
        question = f"{ASKS[number % len(ASKS)]} town {number}?"
        references = [f"{rng.choice(WORDS)} {number}" for _ in range(1 + number % 4)]
        for part in range(rng.randint(1, most)):
            answer = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 12)))
            answer = (
                "I do not know."
                if rng.random() < 0.15
                else f"{answer} {rng.choice(['', 1907])} {part}".strip()
            )
            rows.append({
                "item_id": f"i{number}-{part}", "group": f"q{number}", "question": question, "answer": answer,
                "reference_answer": references, "system": f"s{part % 2}", "tags": ["odd"] * (number % 2),
            })  # fmt: skip
    return rows


def recorded(
    folder: Path, *, scale: str, labels: Sequence[Any], n: int, seed: int, verdicts: Sequence[Any] = (),
    raters: int = 1, drawn: bool = False, most: int = 3, splits: str = "seed = 1",
) -> None:  # fmt: skip
    """A gold set `made`, of one rater or several who tie at times, and recorded judgements of six judges on it."""
    rng = random.Random(seed)
    rows, steps = rows_of(n, rng, most=most), list(verdicts or labels)
    truth = {row["item_id"]: rng.choice(list(labels)) for row in rows}
    ratings = []
    for rater, (item_id, label) in ((rater, pair) for rater in range(raters) for pair in truth.items()):
        if rater == 0 or rng.random() < 0.8:
            ratings.append(
                (item_id, f"rater{rater}", label if rng.random() > 0.2 * rater else rng.choice(list(labels)))
            )
    for row in rows if drawn else ():
        row["inclusion_probability"] = rng.choice([0.1, 0.25, 0.5])
    made_gold(folder / "gold" / "made", rows, ratings, scale=scale, splits=splits)
    lines, place = (
        [],
        {
            label: steps[round(at * (len(steps) - 1) / max(1, len(labels) - 1))]
            for at, label in enumerate(labels)
        },
    )
    for judge, share in JUDGES.items():
        for row in rows:
            verdict = rng.choice(steps) if rng.random() < share else place[truth[row["item_id"]]]
            cost, latency = {"dear": 0.002, "coin": 0.0001}.get(judge, 0.0003), rng.random()
            line = {"judge": judge, "item_id": row["item_id"], "verdict": verdict, "cost_usd": cost}
            if judge == "hasty" and rng.random() < 0.15:
                line |= {
                    "verdict": None,
                    "error": {"kind": rng.choice(["parse", "timeout"]), "message": "none"},
                }
            lines.append({**line, "latency_s": latency, "reasoning": f"because of {judge}"})
    absent = {"coin": {rows[0]["item_id"]}, "dear": {row["item_id"] for row in rows[1:4]}}
    lines = [line for line in lines if line["item_id"] not in absent.get(line["judge"], ())]
    lines += [{**line, "judge": "twin"} for line in lines if line["judge"] == "good"]
    lines += [
        {**line, "judge": "silent", "verdict": None, "error": {"kind": "refused", "message": "no"}}
        for line in lines
        if line["judge"] == "good"
    ]
    (folder / "judged.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


CHECKS = """
from pathlib import Path


def old(answer: str) -> KIND:
    drifted = Path("experiments/drifted").exists() and answer.endswith("7")
    return said(answer, 3 if drifted else 1)


def new(answer: str) -> KIND:
    return said(answer, 2)


def worse(answer: str) -> KIND:
    return said(answer, 3)


def said(answer: str, at: int) -> KIND:
    word = answer.split("|")[at]
    if word == "none":
        raise ValueError("nothing to say")
    return KIND(float(word))
"""


def locked(
    folder: Path, *, kind: str, scale: str, labels: Sequence[Any], steps: Sequence[float], seed: int
) -> None:
    """A gold set of 60 questions, judges that read their verdict from the answer, 150 rows, and labels of some."""
    rng = random.Random(seed)
    says = 'SCALE = "percentage"\n' if kind == "float" else ""
    (folder / "checks.py").write_text(says + CHECKS.replace("KIND", kind), encoding="utf-8")

    def answers(n: int, name: str) -> list[tuple[dict[str, Any], Any]]:
        made = []
        for row in rows_of(n, rng, most=2):
            label = rng.choice(list(labels))
            near = steps[round(labels.index(label) * (len(steps) - 1) / (len(labels) - 1))]
            said = [near if rng.random() > share else rng.choice(list(steps)) for share in (0.15, 0.2, 0.7)]
            words = ["none" if rng.random() < 0.02 else f"{verdict:g}" for verdict in said]
            text = f"{row['answer']} |{'|'.join(words)}| {name} {len(made)}"
            made.append(
                (
                    {
                        **row,
                        "answer": text,
                        "item_id": f"{name}{len(made)}",
                        "group": f"{name}{row['group']}",
                        "question": f"{name}: {row['question']}",
                    },
                    label,
                )
            )
        return made

    gold, rows = answers(60, "gold"), answers(90, "row")
    made_gold(
        folder / "gold" / "made",
        [row for row, _ in gold],
        [(row["item_id"], "ann", label) for row, label in gold]
        + [(row["item_id"], "bob", labels[labels.index(label) - 1]) for row, label in gold[::6]],
        scale=scale,
        splits="seed = 2",
    )
    for name, chances in (("alike", None), ("strata", (0.3, 0.6))):
        some = []
        for row, label in rows:
            word = row["answer"].split("|")[1]
            chance = chances[word not in ("0", "none")] if chances else 0.5
            if rng.random() < chance and not (chances and word == "none"):
                some.append(({**row, "inclusion_probability": chance} if chances else row, label))
        card = f'sampling = "{"stratified" if chances else "random"}"\n'
        ratings = [(row["item_id"], "ann", label) for row, label in some[5:]]  # the others wait
        path = made_gold(folder / "gold" / name, [row for row, _ in some], ratings, scale=scale) / "card.toml"
        path.write_text(
            path.read_text(encoding="utf-8").replace("[scale]", f"{card}\n[scale]"), encoding="utf-8"
        )
    with (folder / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(
            file, ["item_id", "group", "question", "answer", "system"], extrasaction="ignore"
        )
        out.writeheader()
        out.writerows(row for row, _ in rows)


def tabled(folder: Path, *, seed: int) -> None:
    """A table of 70 answers, of which people labelled two in three, with the verdicts of three judges."""
    rng = random.Random(seed)
    with (folder / "table.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["question", "answer", "system", "person", "good", "graded", "coin"])
        for row in rows_of(35, rng):
            right = rng.random() < 0.6
            good = right if rng.random() > 0.1 else not right
            graded = "" if rng.random() < 0.05 else f"{(70 if right else 35) + rng.randint(-30, 30)}"
            person = ("yes" if right else "no") if rng.random() < 0.7 else ""
            verdicts = ["yes" if good else "no", graded, rng.choice(["yes", "no"])]
            out.writerow([row["question"], row["answer"], row["system"], person, *verdicts])


TABLED = (
    "agreement table.csv --label person --verdict good --verdict graded --verdict coin --name t --json",
    "report t --full", "compare t --name ct --json", "select t --name st --json",
    "agreement table.csv --label person --verdict graded --scale binary --name one -o rows.csv --json",
)  # fmt: skip


def choosing(*metrics: str) -> tuple[str, ...]:
    """Judge recorded judgements, compare and select by several metrics, margins and caps."""
    lines = [
        "agreement --gold made --judgements judged.jsonl --name held",
        "report held --json",
        "report held --full",
    ]
    for metric in metrics:
        lines += [
            f"compare held --metric {metric} --name c-{metric} --json",
            f"select held --metric {metric} --name s-{metric} --json",
        ]
    lines += [
        "compare held --level 0.8 --name c8 --json",
        "select held --margin 0.2 --name s2 --json",
        "report s2 --full",
    ]
    lines += [
        "select held --max-usd-per-1k 0.2 --allow-below-floor --name cheap --json",
        "gold check made --json",
    ]
    return tuple(lines)


GATED = (
    "score --gold made --judge checks.py:old@python --judge checks.py:new@python --judge token_f1@local --name e --json",
    "select e --dry-run --name chosen", "select e --name chosen --json", "select e --name anyway --allow-below-floor --margin 0.1 --replace --json",
    "gate --lock judge.lock.json --dry-run", "gate --lock judge.lock.json --name gated --json", "gate --lock judge.lock.json --margin 0.2 --name wide --full",
    "migrate --lock judge.lock.json --to checks.py:worse@python --dry-run", "migrate --lock judge.lock.json --to checks.py:worse@python --name bad --json",
    "migrate --lock judge.lock.json --to checks.py:new@python --margin 0.1 --name good --on rows.csv --json",
    "judge rows.csv --lock judge.lock.json -o judged.csv --name j --json", "rate judged.csv --lock judge.lock.json --by system --name r1 --json",
    "rate judged.csv --lock judge.lock.json --labels alike --escalate 0.8 --name r2 --json",
    "rate judged.csv --lock judge.lock.json --labels strata --by system --level 0.9 --name r3 --full", "rate judged.csv --lock judge.lock.json --labels strata --escalate 0.55 --level 0.8 --name r4 --json",
    "gold sheet judged.csv -n 40 --lock judge.lock.json --strata verdict -o sheet.csv --json",
    "gold sheet judged.csv -n 30 --lock judge.lock.json --labels strata --strata verdict -o more.csv --json",
    "gold sheet rows.csv -n 25 --scale percentage -o fresh.csv --json", "gold sheet judged.csv -n 20 --lock judge.lock.json --strata verdict --labels sheet -o again.csv --json",
    "gold sheet rows.csv -n 25 --scale percentage -o made.csv", "gold sheet judged.csv -n 9 --lock judge.lock.json -o made.csv",
    "gate --lock judge.lock.json --margin=-1 --level 0.4", "rate judged.csv --lock judge.lock.json --escalate 1",
    "gate --lock judge.lock.json --name drifted --json",
)  # fmt: skip
WEIGHED = (
    *choosing()[:3],
    "compare held --name c --json",
    "compare held --metric accuracy --name ca --json",
    "select held --json",
)
HALVES = [place / 2 for place in range(11)]
SETS: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "binary": (partial(recorded, scale='kind = "binary"', labels=[0, 1], n=40, seed=1, raters=3), choosing("kappa", "mae")),
    "by percentages": (partial(recorded, scale='kind = "binary"\npass_at = 60', labels=[0, 1], verdicts=[*range(0, 101, 10)], n=44, seed=2), choosing("auc", "tpr", "brier")),
    "drawn": (partial(recorded, scale='kind = "binary"', labels=[0, 1, 1], n=50, seed=3, drawn=True), WEIGHED),
    "words": (partial(recorded, scale='kind = "nominal"', labels=["a", "b", "c"], n=36, seed=4, raters=3), choosing("kappa")),
    "grades": (partial(recorded, scale='kind = "ordinal"\nmin = 0\nmax = 4\npass_at = 3', labels=[*range(5)], n=48, seed=5, raters=2), choosing("kappa@3", "skill")),
    "percentages": (partial(recorded, scale='kind = "percentage"\npass_at = 75', labels=[0, 40, 75, 100], verdicts=[*range(0, 101, 5)], n=60, seed=6, most=1), choosing("pearson", "rmse")),
    "points": (partial(recorded, scale='kind = "points"\nmin = 0\nmax = 5\nstep = 0.5', labels=HALVES, n=25, seed=7, raters=2), choosing("mean_agreement")),
    "nine questions": (partial(recorded, scale='kind = "binary"', labels=[0, 1], n=16, seed=8), choosing("f1")),
    "scarce": (partial(recorded, scale='kind = "binary"', labels=[0, *[1] * 5], n=40, seed=9), choosing("balanced_accuracy")),
    "table": (partial(tabled, seed=13), TABLED),
    "locked": (partial(locked, kind="bool", scale='kind = "binary"', labels=[0, 1], steps=[0, 1], seed=10), GATED),
    "locked grades": (partial(locked, kind="float", scale='kind = "percentage"\npass_at = 75', labels=[0, 50, 75, 100], steps=[*range(0, 101, 10)], seed=11), GATED),
    "locked without a mark": (partial(locked, kind="float", scale='kind = "ordinal"\nmin = 0\nmax = 4', labels=[*range(5)], steps=[*range(0, 101, 25)], seed=12), GATED),
}  # fmt: skip


def played(name: str) -> str:
    """What the commands of a set print."""
    with tempfile.TemporaryDirectory() as folder:  # as long a path as that with which the files were written
        texts = World(*SETS[name]).play(Path(folder) / "workspace")
        return "\n".join(shortened(text).rstrip() for _, text in texts) + "\n"


def shortened(text: str) -> str:
    """A text of a command, its beginning and the hash of all of it where it is long."""
    head = text if len(text) <= 2500 else f"{text[:2500]}\n... {len(text):,} characters"
    return head if head is text else f"{head}, hash {hashlib.sha256(text.encode()).hexdigest()[:16]}"


@pytest.mark.parametrize("name", SETS)
def test_every_decision_is_as_it_was(name: str) -> None:
    now, stored = played(name).splitlines(), (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    changed = "\n".join([*difflib.unified_diff(stored, now, lineterm="", n=1)][:60])
    assert not changed, f"{changed}\nwhere it is meant: python -m tests.test_small_worlds"


def write_all() -> None:
    """Write all files anew."""
    FOLDER.mkdir(exist_ok=True)
    for name in SETS:
        (FOLDER / f"{name}.txt").write_text(played(name), encoding="utf-8")


if __name__ == "__main__":
    write_all()
