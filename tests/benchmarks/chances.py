"""What the chances of a verdict's token bring over its word: AUC with interval by question, ties, tokens, cost.

    python -m tests.benchmarks.chances
    python -m tests.benchmarks.chances --api-base http://127.0.0.1:18990/v1 --model smollm2 --table FILE.csv

The first asks a simulated judge whose chances are known, and true; the second a server that speaks OpenAI's
protocol about a table with the columns question, reference_answer, answer, group and label. By hand only.
"""

from __future__ import annotations

import argparse
import csv
import os
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import dspy

from judgecal.judges import save_program
from judgecal.signatures import load_signature
from judgecal.workspace import find_workspace
from tests.benchmarks.small_model import run_json
from tests.support.chances import judge_by_number, rows_by_number
from tests.support.command import journal
from tests.support.server import running

SIGNATURE = '''"""Whether an answer is right."""

from typing import Literal

import dspy


class Short(dspy.Signature):
    """Does the answer agree with the reference answer? Reply yes or no."""

    question: str = dspy.InputField()
    reference_answer: str = dspy.InputField()
    answer: str = dspy.InputField()
    verdict: Literal["yes", "no"] = dspy.OutputField()
'''
ASKED = ("question", "reference_answer", "answer", "verdict")
DEMOS = (
    ("who wrote hamlet", "William Shakespeare", "It was Shakespeare.", "yes"),
    ("what is the capital of australia", "Canberra", "Sydney", "no"),
)


def main() -> None:
    """Score both judges on one table, and print a row each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--api-base")
    parser.add_argument("--model", default="stub")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--questions", type=int, default=400, help="of the simulation, three answers each")
    args = parser.parse_args()
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        table, base = args.table, args.api_base
        if base is None:
            base = stack.enter_context(running(judge_by_number())).api_base
            rows, table = list(rows_by_number(args.questions)), root / "simulated.csv"
            with table.open("w", encoding="utf-8", newline="") as file:
                out = csv.DictWriter(file, list(rows[0]))
                out.writeheader()
                out.writerows(rows)
        measure(root, base, args.model, table.resolve())


def measure(root: Path, api_base: str, model: str, table: Path) -> None:
    """The judge by chances first: its stored replies then serve the one by words, so both read the same."""
    common = f'id = "openai/{model}"\napi_base = "{api_base}"\ninput_usd_per_1m = 0\noutput_usd_per_1m = 0\n'
    common += "temperature = 0.0\nmax_tokens = 32\nmax_concurrency = 1\ntimeout = 600\n"
    config = f'[models.word]\n{common}[models.chance]\n{common}verdict = "expected"\n'
    (root / "judgecal.toml").write_text(config, encoding="utf-8")
    for name in ("signatures", "gold", "experiments/demos"):
        (root / name).mkdir(parents=True)
    (root / "signatures" / "short.py").write_text(SIGNATURE, encoding="utf-8")
    signature = load_signature("short", workspace=find_workspace(root))
    program = dspy.Predict(signature.cls)
    program.demos = [dict(zip(ASKED, demo, strict=True)) for demo in DEMOS]
    save_program(root / "experiments/demos/program.json", program, signature=signature, trained_on=())
    os.environ["JUDGECAL_CACHE_DIR"] = str(root / "cache")
    options = ("--as", "t", "--label", "label", "--scale", "binary", "--labels-by", "people")
    run_json(root, "gold", "import", str(table), *options)
    judges = [f"short@{alias}#demos" for alias in ("chance", "word")]
    asked = [word for judge in judges for word in ("--judge", judge)]
    score = run_json(root, "score", "--gold", "t", "--split", "all", *asked, "--name", "s")
    labels = {row["item_id"]: row["label"] for row in csv.DictReader(table.open(encoding="utf-8"))}
    print(
        f"{'judge':<20}{'n':>5}{'AUC':>7}  {'95% by question':<17}{'ties':>6}{'tokens':>8}  as said, and why"
    )
    for entry in score["judges"]:
        rows = [row for row in journal(root, "s") if row["judge"] == entry["judge"]]
        given = [(labels[row["item_id"]], row["verdict"]) for row in rows if row["verdict"] is not None]
        of = {label: Counter(verdict for one, verdict in given if one == label) for label in ("yes", "no")}
        pairs = of["yes"].total() * of["no"].total()
        ties = sum(n * of["no"][verdict] for verdict, n in of["yes"].items()) / max(1, pairs)
        auc, tokens = entry["agreement"]["auc"], entry["tokens"]
        interval = "{low:.3f} to {high:.3f}".format(**auc) if auc["low"] is not None else auc["reason"]
        why = Counter(row["why_said"] for row in rows if row["why_said"])
        print(
            f"{entry['judge']:<20}{auc['n']:>5}{auc['value']:>7.3f}  {interval:<17}{ties:>6.1%}"
            f"{tokens['completion']:>8}  {dict(why) or ''}"
        )


if __name__ == "__main__":
    main()
