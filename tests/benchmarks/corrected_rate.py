"""Does a corrected rate hold what it says? `python -m tests.benchmarks.corrected_rate --data DATA`.

- Labels drawn from judged rows, of recorded judges (nq301; MTRAG's faithfulness by task, as a mean and as a share that
  passes): the share of 95% intervals that hold the mean of the whole table, and their width against that of the labels
  alone. Rows are drawn one by one, by strata of the verdict, or with all rows of their question.
- The same of simulated tables of which nearly all or nearly none is right. An interval that is not given is left out.
- Error rates carried over (Rogan-Gladen): coverage by true rate, error rates and size of the gold set.
- The warnings: how often a labelled sample is said to contradict the lock's error rates, with and without a shift; and
  how often a random draw is said to be none.

Exits 1 where a coverage leaves 0.93..0.98 by more than two standard errors (near 0 and 1 it may be above), a judge with
r >= 0.7 saves less than a quarter of 100 labels, or a shift of 0.15 in both rates is seen with 200 labels in less than
80% of runs (gold of 300).
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np

from judgecal.goldset.draw import allocate
from judgecal.records import Estimate
from judgecal.stats.error_rates import carried_rate, shift_p
from judgecal.stats.intervals import mean_estimate, t_quantile, wilson
from judgecal.stats.prediction_powered import LabelledRows, corrected_mean, selection_test
from tests.benchmarks.driver import Bench, Floats, Ints, slack

SIZES = (50, 100, 200)
DESIGNS = ("rows", "strata", "questions")
LOW, HIGH = 0.93, 0.98
RATES = tuple(product((0.05, 0.5, 0.95), ((0.95, 0.9), (0.7, 0.6)), (50, 300)))
N_JUDGED = 2000
ENDS = tuple(product((0.97, 0.95, 0.9, 0.03), ((0.95, 0.9), (0.9, 0.8), (0.7, 0.6)), (20, 30, 50, 60, 100)))
SHIFT, N_LABELS = 0.15, 200


@dataclass(frozen=True)
class World:
    """A table of which every row is labelled: labels and verdicts in 0..1, and groups."""

    name: str
    label: Floats
    verdict: Floats
    group: Ints

    @property
    def correlation(self) -> float:
        known = ~np.isnan(self.verdict)
        return float(np.corrcoef(self.label[known], self.verdict[known])[0, 1])


@cache
def worlds(data: Path) -> dict[str, World]:
    """Those of recorded judges, by name; none where the data are not there."""
    there = (data / "nq301").is_dir() and (data / "mtrag").is_dir()
    found = [*_nq301(data / "nq301"), *_mtrag(data / "mtrag")] if there else []
    return {world.name: world for world in found}


def _numbered(names: list[str]) -> Ints:
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _nq301(folder: Path) -> Iterator[World]:
    items = list(csv.DictReader((folder / "items.csv").open(encoding="utf-8")))
    said: dict[str, dict[str, float]] = {}
    for row in csv.DictReader((folder / "judgements.csv").open(encoding="utf-8")):
        given = {"yes": 1.0, "no": 0.0}.get(row["verdict"], np.nan)
        said.setdefault(row["judge"], {})[row["item_id"]] = given
    label = np.array([float(row["acceptable"] == "yes") for row in items])
    group = _numbered([row["group"] for row in items])
    given = {judge: np.array([own[row["item_id"]] for row in items]) for judge, own in said.items()}
    for judge, verdict in given.items():
        yield World(f"nq301 {judge}", label, verdict, group)


def _mtrag(folder: Path) -> Iterator[World]:
    ratings: dict[str, list[float]] = {}
    for row in csv.DictReader((folder / "ratings.csv").open(encoding="utf-8")):
        if row["metric"] == "faithfulness":
            ratings[row["item_id"]] = [float(row[f"r{rater}"]) for rater in range(1, 8) if row[f"r{rater}"]]
    rows = [json.loads(line) for line in (folder / "items.jsonl").open(encoding="utf-8")]
    rows = [row for row in rows if ratings.get(row["item_id"])]
    said: dict[str, dict[str, float]] = {}
    for one in csv.DictReader((folder / "judgements.csv").open(encoding="utf-8")):
        said.setdefault(one["judge"], {})[one["item_id"]] = float(one["verdict"] or "nan")
    graded = (np.array([median(ratings[row["item_id"]]) for row in rows]) - 1.0) / 3.0
    group = _numbered([row["item_id"].removesuffix(f"-{row['system']}") for row in rows])
    for judge, own in said.items():
        verdict = np.array([own.get(row["item_id"], np.nan) for row in rows])
        yield World(f"mtrag {judge} mean", graded, verdict, group)
        passed = np.where(np.isnan(verdict), np.nan, (verdict >= 0.75).astype(np.float64))
        yield World(f"mtrag {judge} rate", (graded >= 0.75).astype(np.float64), passed, group)


def _inside(found: Estimate, true: float) -> float:
    """1 or 0; NaN where there is no interval."""
    return np.nan if found.low is None or found.high is None else float(found.low <= true <= found.high)


def near_ends(
    task: tuple[float, tuple[float, float], int], *, reps: int
) -> tuple[float, float, float, float]:
    """Coverage of PPI++ and of labels alone where nearly all or nearly none is right, the mean width, and the
    share of PPI++'s intervals that is missing.
    """
    true, rates, n = task
    rng, held, widths = np.random.default_rng(n), [], []
    for rep in range(reps):
        right = (rng.random(N_JUDGED) < true).astype(np.float64)
        at = rng.choice(N_JUDGED, n, replace=False)
        labelled = LabelledRows(at, right[at])
        found = corrected_mean(_sampled(rng, right, rates), np.arange(N_JUDGED), labelled, seed=rep)
        held.append([_inside(one, float(right.mean())) for one in (found.estimate, found.plain)])
        if found.estimate.low is not None and found.estimate.high is not None:
            widths.append(found.estimate.high - found.estimate.low)
    share = np.nanmean(held, axis=0).tolist()
    return share[0], share[1], float(np.mean(widths)), 1.0 - len(widths) / reps


def drawn(world: World, n: int, design: str, rng: np.random.Generator) -> LabelledRows:
    """The rows of a draw with their labels and chances."""
    if design == "rows":
        at = rng.choice(len(world.label), n, replace=False)
        return LabelledRows(at, world.label[at])
    if design == "questions":
        order, per_group = rng.permutation(int(world.group.max()) + 1), np.bincount(world.group)
        n_groups = int(np.searchsorted(np.cumsum(per_group[order]), n)) + 1
        at = np.flatnonzero(np.isin(world.group, order[:n_groups]))
        return LabelledRows(at, world.label[at], np.full(len(at), n_groups / len(per_group)))
    verdict = np.where(np.isnan(world.verdict), -1.0, np.floor(np.minimum(2.0, 3.0 * world.verdict)))
    strata = [np.flatnonzero(verdict == one) for one in np.unique(verdict)]
    sizes = allocate([len(rows) for rows in strata], [0.4] * len(strata), n)
    parts = [rng.choice(rows, size, replace=False) for rows, size in zip(strata, sizes, strict=True)]
    chances = [np.full(size, size / len(rows)) for rows, size in zip(strata, sizes, strict=True)]
    at = np.concatenate(parts)
    return LabelledRows(at, world.label[at], np.concatenate(chances))


def covered(task: tuple[str, int, str], *, data: Path, reps: int) -> tuple[int, float, float, float, float]:
    """Intervals made; the share that holds, of PPI++ and of labels alone; their mean widths."""
    name, n, design = task
    world = worlds(data)[name]
    true, rng = float(world.label.mean()), np.random.default_rng(n)
    held, widths = [], []
    for rep in range(reps):
        found = corrected_mean(world.verdict, world.group, drawn(world, n, design, rng), seed=rep)
        both = (found.estimate, found.plain)
        if any(one.low is None or one.high is None for one in both):
            continue
        held.append([(one.low or 0.0) <= true <= (one.high or 0.0) for one in both])
        widths.append([(one.high or 0.0) - (one.low or 0.0) for one in both])
    share, width = np.mean(held, axis=0).tolist(), np.mean(widths, axis=0).tolist()
    return len(held), share[0], share[1], width[0], width[1]


def _sampled(rng: np.random.Generator, right: Floats, rates: tuple[float, float]) -> Floats:
    """Verdicts on answers of which some are right."""
    chance = np.where(right == 1.0, rates[0], 1.0 - rates[1])
    return (rng.random(len(right)) < chance).astype(np.float64)


def _share(passed: Floats) -> Estimate:
    """A share of independent rows, with the interval that judgecal gives it: by hand, as it is made so
    often."""
    value, n = float(passed.mean()), len(passed)
    low, high = wilson(value, n, t_quantile(0.95, n - 1.0))
    return Estimate(value, low, high, n=n, n_expected=n, n_groups=n)


def _rates(right: Floats, passed: Floats) -> tuple[Estimate, Estimate]:
    """Sensitivity and specificity of a sample; every row is a question."""
    return _share(passed[right == 1.0]), _share(1.0 - passed[right == 0.0])


def carried(task: tuple[float, tuple[float, float], int], *, reps: int) -> tuple[float, float, float]:
    """Coverage, mean width, and the share of runs that have an interval; half of the gold set is right."""
    true, rates, size = task
    rng = np.random.default_rng(size)
    held, widths = [], []
    for _ in range(reps):
        gold = np.repeat([0.0, 1.0], size // 2)
        right = (rng.random(N_JUDGED) < true).astype(np.float64)
        raw = _share(_sampled(rng, right, rates))
        found = carried_rate(raw, *_rates(gold, _sampled(rng, gold, rates))).estimate
        if found.low is not None and found.high is not None:
            held.append(found.low <= true <= found.high)
            widths.append(found.high - found.low)
    return float(np.mean(held)), float(np.mean(widths)), len(held) / reps


def judged(rng: np.random.Generator, true: float, rates: tuple[float, float]) -> World:
    """A table of which so much is right, three rows a question, harder and easier ones."""
    group = np.arange(N_JUDGED) // 3
    easy = 0.5 * rng.random(int(group.max()) + 1)[group] + 0.5 * rng.random(N_JUDGED)
    right = (easy < np.quantile(easy, true)).astype(np.float64)
    return World("judged", right, _sampled(rng, right, rates), group)


def shifted(
    task: tuple[tuple[float, float], int, tuple[float, float], float, str], *, reps: int
) -> tuple[float, float]:
    """How often a labelled sample is said to contradict the error rates of a gold set, and to be no random
    draw."""
    rates, size, by, true, design = task
    rng = np.random.default_rng([size, round(100 * true), len(design)])
    seen = odd = 0
    for rep in range(reps):
        gold = np.repeat([0.0, 1.0], size // 2)
        table = judged(rng, true, (rates[0] - by[0], rates[1] - by[1]))
        labelled = drawn(table, N_LABELS, design, rng)
        verdict, group = table.verdict[labelled.at], table.group[labelled.at]
        heavy = np.ones(len(verdict)) if labelled.chance is None else 1.0 / labelled.chance
        given = [
            mean_estimate(
                labelled.label[verdict == one], group[verdict == one].tolist(), weights=heavy[verdict == one]
            )
            for one in (1.0, 0.0)
        ]
        passing = mean_estimate(table.verdict, table.group.tolist())
        sample = {"passing": passing, "precision": given[0], "missed": given[1]}
        p = shift_p(*_rates(gold, _sampled(rng, gold, rates)), **sample)
        seen += p is not None and p < 0.05
        odd += selection_test(table.verdict, table.group, replace(labelled, label=verdict), seed=rep).differs
    return seen / reps, odd / reps


def _holds(share: float, reps: int) -> bool:
    return LOW - slack(LOW, reps) <= share <= HIGH + slack(HIGH, reps)


def carried_table(bench: Bench) -> None:
    for (true, rates, size), (share, width, made) in bench.each(
        partial(carried, reps=bench.n), bench.some(RATES)
    ):
        bench.line(
            f"Rogan-Gladen   right {true:.2f}   tpr, tnr {rates}   gold {size:>3}   holds {share:.3f}   "
            f"width {width:.3f}   made in {made:.3f}",
            kept=_holds(share, round(bench.n * made)),
        )


def warnings_table(bench: Bench) -> None:
    """A shift where there is none is said in at most 5%, one of both rates is seen in 80% with a gold set of 300."""
    bys = ((0.0, 0.0), (SHIFT, 0.0), (SHIFT, SHIFT))
    every = product(((0.95, 0.9), (0.7, 0.6)), (50, 300), bys, (0.5, 0.9), ("rows", "strata", "questions"))
    shifts = [task for task in every if task[2] == (0.0, 0.0) or task[3:] == (0.5, "rows")]
    found = bench.each(partial(shifted, reps=bench.n), bench.some(shifts))
    for (rates, size, by, true, design), (share, odd) in found:
        kept = odd <= 0.01 + slack(0.01, bench.n)
        if by == (0.0, 0.0):
            kept &= share <= 0.05 + slack(0.05, bench.n)
        elif min(by) > 0.0 and size >= 300:
            kept &= share >= 0.8
        bench.line(
            f"shift by {by}   tpr, tnr {rates}   gold {size:>3}   right {true}   {N_LABELS} labels by "
            f"{design:<9} said {share:.3f}   no random draw {odd:.3f}",
            kept=kept,
        )


def ends_table(bench: Bench) -> None:
    for (true, rates, n), found in bench.each(partial(near_ends, reps=bench.n), bench.some(ENDS)):
        share, alone, width, missing = found
        bench.line(
            f"near the ends   right {true:.2f}   tpr, tnr {rates}   {n:>3} labels   holds {share:.3f} (labels "
            f"alone {alone:.3f})   missing {missing:.3f}   width {width:.3f}",
            kept=min(share, alone) >= LOW - slack(LOW, bench.n),
        )


def draws_table(bench: Bench, data: Path) -> None:
    tasks = product(worlds(data), SIZES, DESIGNS)
    for (name, n, design), found in bench.each(partial(covered, data=data, reps=bench.n), bench.some(tasks)):
        made, share, alone, width, plain = found
        world = worlds(data)[name]
        n_rows = len(world.label)
        # fewer labels for the same width, both less what a finite table takes away
        fewer = 1.0 - (1.0 / n) / ((plain / width) ** 2 * (1.0 / n - 1.0 / n_rows) + 1.0 / n_rows)
        useful = design == "rows" and n == 100 and world.correlation >= 0.7
        bench.line(
            f"{name:<28} {n:>3} {design:<9} r {world.correlation:.2f}   {made} intervals hold {share:.3f} "
            f"(labels alone {alone:.3f})   width {width:.3f} of {plain:.3f}   {fewer:.0%} fewer labels",
            kept=_holds(share, made) and (fewer >= 0.25 or not useful),
        )


def main() -> int:
    bench = Bench(__doc__, n=1000, of="draws of each", data="../shared/data")
    data = Path(bench.options.data)
    carried_table(bench)
    warnings_table(bench)
    ends_table(bench)
    if worlds(data):
        draws_table(bench, data)
    else:
        bench.head(f"{data}: no nq301 and mtrag here, so recorded judges are left out")
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
