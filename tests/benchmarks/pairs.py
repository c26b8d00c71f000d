"""Judges of pairs that lean to a place: `python -m tests.benchmarks.pairs [--data DATA]`.

A made-up judge takes the first answer unread in some of its calls, on some questions more often than on others,
and else says what it finds right, which people share in four of five pairs; people prefer A in 70%. Promised: the
interval of `first_place` holds the truth in 93% of the runs at least; and in both orders agreement on the pairs
that have a verdict is that of the same judge without the habit, while one order flatters it or hides what it knows.

`rate --systems X,Y`: the corrected share that prefers X, ties half, of a table of 600 pairs, by labels drawn from it.
Promised: its interval holds the table's own share in 93% of the runs, less two standard errors of their number.

With DATA: people and the longer answer on PandaLM, counted by a few lines here and by the commands, the same.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from judgecal.engine import Journal
from judgecal.experiment import RunOptions, run_trials
from judgecal.experiment.agreement import judge_entry
from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.experiment.judgements import whole_items
from judgecal.experiment.people import rater_agreement
from judgecal.goldset import load_gold
from judgecal.judges import judge_named
from judgecal.records import ORDERS, OTHER, Judgement
from judgecal.scale import Scale
from judgecal.stats.prediction_powered import LabelledRows, corrected_mean
from tests.benchmarks.driver import Bench
from tests.support.gold import made_gold

SIZE, KNOWS = 4, 0.8  # pairs of a question; how often the judge finds right what people do
_TEXTS = ("group", "question", "answer_a", "answer_b")
_HEAD = "habit  ties  first  covered  width  consistent | agreement: A first  B first   both"
HABITS = ((0.0, 0.0), (0.02, 0.0), (0.1, 0.0), (0.3, 0.0), (0.3, 0.2), (0.6, 0.2))  # with how many ties


def gold_table(
    folder: Path, texts: Sequence[tuple[str, ...]], labels: Mapping[str, list[str]]
) -> AgreementTable:
    """A set of pairs: group, question and both answers, and the labels by rater."""
    rows = [{"item_id": f"i{n}", **dict(zip(_TEXTS, of, strict=True))} for n, of in enumerate(texts)]
    ratings = [(f"i{n}", rater, label) for rater, given in labels.items() for n, label in enumerate(given)]
    gold = load_gold(made_gold(folder, rows, ratings, scale='kind = "nominal"'))
    return AgreementTable(gold, gold.items)


def judge(table: AgreementTable, rng: np.random.Generator, habit: float, ties: float) -> Verdicts:
    """A judge with this chance to take the first answer, on average over questions."""
    takes = {group: rng.beta(2 * habit + 1e-9, 2 - 2 * habit) for group in dict.fromkeys(table.groups)}
    scale, rows = Scale("nominal", 0.0, 0.0, categories=("A", "B", *["tie"] * bool(ties))), list[Judgement]()
    for item, label in zip(table.items, map(str, table.labels), strict=True):
        finds = "tie" if rng.random() < ties else label if rng.random() < KNOWS else OTHER[label]
        for order in ORDERS:
            said = order[0].upper() if rng.random() < takes[item.group] else finds
            rows.append(Judgement(item.item_id, item.sha, "j", "f", 0, said, unit="pair", order=order))
    return Verdicts("j", scale, whole_items(rows, scale), calls=rows)


def simulate(bench: Bench, folder: Path, n_groups: int) -> None:
    rng, size = np.random.default_rng(n_groups), range(n_groups * SIZE)
    texts = [(f"g{n // SIZE}", f"q{n // SIZE}", f"one {n}", f"other {n}") for n in size]
    table = gold_table(
        folder / str(n_groups), texts, {"ann": rng.choice(["A", "B"], len(size), p=[0.7, 0.3]).tolist()}
    )
    bench.head(f"{n_groups} questions of {SIZE} pairs", _HEAD)
    for habit, ties in HABITS:
        read, runs = (1.0 - habit) * (1.0 - ties), []
        truth = (habit + read / 2.0) / (habit + read)
        for _ in range(bench.n):
            column = judge(table, rng, habit, ties)
            entry = judge_entry(table, column)
            first, orders = entry.first_place, entry.both_orders
            numbers = [entry.consistent, *orders.accuracy.values(), entry.agreement["accuracy"]]
            held = first.low <= truth <= first.high
            runs.append([held, first.high - first.low, *(one.value for one in numbers)])
        held, width, *reached = np.mean(runs, axis=0)
        gap, noise = reached[-1] - KNOWS, float(np.std([row[-1] for row in runs])) / np.sqrt(bench.n)
        line = "{:5} {:5} {:6.3f} {:8.3f} {:6.3f} {:11.3f} |          {:8.3f} {:8.3f} {:6.3f}"
        kept = bool(held >= 0.93 and (ties or abs(gap) <= 3.0 * noise))
        bench.line(line.format(habit, ties, truth, held, width, *reached), kept=kept)


def rates(bench: Bench) -> None:
    """How often the interval of the share that prefers one system holds, by what people prefer and say of it."""
    bench.head(
        "rate --systems, 600 pairs of 300 questions", "prefer  ties  labels   raw  corrected  covered  width"
    )
    groups, worth = np.arange(600) // 2, np.array([1.0, 0.5, 0.0])
    for prefer, ties in ((0.5, 0.1), (0.65, 0.3), (0.9, 0.05)):
        for n in (30, 100):
            found = []
            for run in range(bench.n):
                rng = np.random.default_rng([run, n, round(100 * prefer)])
                likes = rng.beta(6 * prefer, 6 - 6 * prefer, 300)[groups]  # by question
                chances = np.stack([likes * (1 - ties), np.full(600, ties), (1 - likes) * (1 - ties)])
                people = worth[(rng.random(600) > chances.cumsum(axis=0)).sum(axis=0).clip(max=2)]
                says = np.where(
                    rng.random(600) < KNOWS, people, 1.0 - (rng.random(600) < 0.3)
                )  # else X in 70%
                at = np.sort(rng.choice(600, n, replace=False))
                rate = corrected_mean(says, groups, LabelledRows(at, people[at]), seed=run).estimate
                ends = (rate.low or 0.0, rate.value or 0.0, rate.high or 0.0)
                found.append((says.mean(), *ends, ends[0] <= people.mean() <= ends[2]))
            raw, low, value, high, covered = np.mean(np.array(found, dtype=np.float64), axis=0)
            line = f"{prefer:6.2f}  {ties:4.2f}  {n:6}  {raw:4.2f}  {value:9.3f}  {covered:7.1%}  {high - low:5.3f}"
            bench.line(line, kept=bool(covered >= 0.93 - 2.0 * np.sqrt(0.93 * 0.07 / bench.n)))


def equal(a: Sequence[str], b: Sequence[str]) -> float:
    return sum(x == y for x, y in zip(a, b, strict=True)) / len(a)


def kappa(a: Sequence[str], b: Sequence[str]) -> float:
    by_chance = sum(Counter(a)[word] * Counter(b)[word] for word in {*a, *b}) / len(a) ** 2
    return (equal(a, b) - by_chance) / (1.0 - by_chance)


COUNTED = {"accuracy": equal, "kappa": kappa}


def pandalm(bench: Bench, data: Path, folder: Path) -> None:
    with (data / "pandalm" / "items.csv").open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    word = {"1": "A", "2": "B", "tie": "tie"}
    labels = {name: [word[row[name]] for row in rows] for name in ("annotator1", "annotator2", "annotator3")}
    texts = [(row["group"], row["item_id"], row["response_1"], row["response_2"]) for row in rows]
    table, longer = gold_table(folder / "pandalm", texts, labels), judge_named("longer_answer@local")
    judged = run_trials([longer], table.items, journal=Journal(None), options=RunOptions(quiet=True))
    entry, lines = judge_entry(table, Verdicts.from_calls(longer, judged)), []
    for pair in rater_agreement(table.gold).pairs:
        sides, what = (labels[pair.a], labels[pair.b]), f"{pair.a} and {pair.b}"
        lines += [(f"{what}, {name}", of(*sides), pair.agreement[name]) for name, of in COUNTED.items()]
    votes = [Counter(given).most_common(1)[0] for given in zip(*labels.values(), strict=True)]
    said = ["tie" if len(a) == len(b) else "AB"[len(a) < len(b)] for *_, a, b in texts]
    known = [(vote, own) for (vote, n), own in zip(votes, said, strict=True) if n > 1]
    sides, untied = ([*zip(*of, strict=True)] for of in (known, [pair for pair in known if pair[0] != "tie"]))
    lines += [(f"longer answer, {name}", of(*sides), entry.agreement[name]) for name, of in COUNTED.items()]
    assert entry.both_orders
    lines += [("longer answer where people do not tie", equal(*untied), entry.both_orders.untied)]
    bench.head(f"PandaLM, {len(rows)} pairs: counted here, and by judgecal")
    for what, here, there in lines:
        bench.line(f"{what:40} {here:.9f} {there.value:.9f}", kept=abs(here - there.value) < 1e-12)


def main() -> int:
    bench = Bench(__doc__, n=400, of="runs a line", data="")
    with tempfile.TemporaryDirectory() as folder:
        for n_groups in (20, 100):
            simulate(bench, Path(folder), n_groups)
        rates(bench)
        if bench.options.data:
            pandalm(bench, Path(bench.options.data), Path(folder))
    return bench.end("numpy", "scipy")


if __name__ == "__main__":
    sys.exit(main())
