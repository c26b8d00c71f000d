"""Do the 95% intervals hold the truth in 95% of samples? Run by hand: `python tests/benchmarks/coverage.py`.

Groups of two items, within-group correlation 0.3 (of the labels' and of the judge's latent normal scores),
pass rates 0.65 and 0.85. Three judges: a binary one (TPR 0.90, TNR 0.75) and one that gives percentages, both on
binary labels, and one that gives percentages on labels that are percentages, passed from 50. The truth is the
same statistic on a very large sample.

Coverage is the share of the intervals that were given. A class of fewer than ten items gives no interval for its
rate, so where passing is common some samples have none for TNR. Which samples those are hangs on the sample
itself; where fewer than half of them have an interval the rest are unusual ones, and the cell is shown in
brackets and not certified. `(0.52)` behind a cell is the share that has one, where it is below 0.995.

A cell outside 0.93..0.98 is measured anew on four times as many fresh samples, and that is what is shown.

The last lines compare two equally good judges: there the interval of the difference should hold 0, and p fall
below 0.05 in one sample of twenty.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr, ndtri

from judgecal.scale import Scale
from judgecal.stats import agreement, compare_paired

Floats = npt.NDArray[np.float64]

METRICS = ("accuracy", "tpr", "tnr", "kappa", "macro_agreement", "mae")
GRADED = ("accuracy@50", "tpr@50", "tnr@50", "kappa@50", "macro_agreement", "mae", "concordance")
COLUMNS = (*METRICS, "concordance")
CORRELATION = 0.3
LEAST, MOST = 0.93, 0.98
CERTIFIED_FROM = 0.5  # share of samples with an interval


def latent(rng: np.random.Generator, n_groups: int, size: int = 2) -> Floats:
    """Normal scores of groups of items, correlated within the group; n_groups * size."""
    between = np.sqrt(CORRELATION) * rng.standard_normal((n_groups, 1))
    within = np.sqrt(1.0 - CORRELATION) * rng.standard_normal((n_groups, size))
    return (between + within).ravel()


def verdicts(gold: Floats, score: Floats, *, graded: bool) -> Floats:
    """A judge's verdicts, 0..100, from its latent score on each item."""
    rank = ndtr(score)
    if graded:
        right = np.where(gold == 1.0, betaincinv(4.0, 0.7, rank), betaincinv(1.2, 0.8, rank))
    else:
        right = (rank < np.where(gold == 1.0, 0.90, 0.75)).astype(np.float64)
    return np.round(100.0 * np.where(gold == 1.0, right, 1.0 - right))


def gold_labels(rng: np.random.Generator, n_groups: int, pass_rate: float) -> Floats:
    return (latent(rng, n_groups) < ndtri(pass_rate)).astype(np.float64)


def graded_sample(rng: np.random.Generator, n_groups: int, pass_rate: float) -> tuple[Floats, Floats]:
    """Labels in tens, 0..100, of which so many lie at 50 or above, and verdicts that err by 15 points."""
    gold = np.round(10.0 * ndtr(latent(rng, n_groups) + ndtri(pass_rate))) * 10.0
    judge = np.round(np.clip(gold + 15.0 * latent(rng, n_groups), 0.0, 100.0))
    return gold, judge


def drawn(rng: np.random.Generator, n_groups: int, pass_rate: float, *, judge: str) -> tuple[Floats, Floats, Scale]:
    """Labels, verdicts and the people's scale, for one of the three judges."""
    if judge == "percentage labels":
        return *graded_sample(rng, n_groups, pass_rate), Scale.parse("percentage", pass_at=50.0)
    gold = gold_labels(rng, n_groups, pass_rate)
    given = verdicts(gold, latent(rng, n_groups), graded=judge == "percentage")
    return gold, given, Scale.parse("binary")


@dataclass(frozen=True)
class Covered:
    """One metric in one setting.

    Attributes:
        held: share of the intervals that hold the truth; NaN where there are none.
        share: share of the samples that have an interval.
        width: mean width of the intervals.
    """

    held: float
    share: float
    width: float

    @property
    def certified(self) -> bool:
        """Whether enough samples have an interval for the share that holds to mean something."""
        return self.share >= CERTIFIED_FROM

    def __str__(self) -> str:
        if not self.share:
            return "none"
        held = f"{self.held:.3f}" if self.certified else f"[{self.held:.3f}]"
        return held + (f" ({self.share:.2f})" if self.share < 0.995 else "")


def coverage(
    n_groups: int, pass_rate: float, *, judge: str, reps: int, seed: int, metrics: Sequence[str] | None = None
) -> dict[str, Covered]:
    """Coverage by metric; the metrics of percentage labels without their pass mark."""
    names = metrics or (GRADED if judge == "percentage labels" else METRICS)
    rng = np.random.default_rng(seed)

    def found(groups_of: int, **options: int) -> dict[str, tuple[float | None, float | None, float | None]]:
        gold, given, scale = drawn(rng, groups_of, pass_rate, judge=judge)
        estimates = agreement(
            gold,
            given,
            scale=scale,
            judge_scale="percentage",
            groups=np.repeat(np.arange(groups_of), 2),
            metrics=names,
            **options,
        )
        return {name: (e.value, e.low, e.high) for name, e in estimates.items()}

    truth = {name: value for name, (value, _, _) in found(200_000, n_boot=1).items()}
    ends: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for _ in range(reps):
        for name, (_, low, high) in found(n_groups).items():
            if low is not None and high is not None:
                ends[name].append((low, high))
    return {name.partition("@")[0]: _covered(pairs, truth[name], reps=reps) for name, pairs in ends.items()}


def _covered(pairs: Sequence[tuple[float, float]], truth: float | None, *, reps: int) -> Covered:
    if truth is None or not pairs:
        return Covered(float("nan"), 0.0, float("nan"))
    low, high = np.array(pairs).T
    held = float(np.mean((low <= truth) & (truth <= high)))
    return Covered(held, len(pairs) / reps, float(np.mean(high - low)))


def false_alarms(
    n_groups: int, pass_rate: float, *, graded: bool, reps: int, seed: int, metric: str = "macro_agreement"
) -> tuple[float, float]:
    """Two judges of equal worth: share of intervals of the difference that hold 0, share of p below 0.05."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), 2).tolist()
    held, low_p, defined = 0, 0, 0
    for _ in range(reps):
        gold = gold_labels(rng, n_groups, pass_rate)
        shared = np.sqrt(0.6) * latent(rng, n_groups)
        a, b = (verdicts(gold, shared + np.sqrt(0.4) * latent(rng, n_groups), graded=graded) for _ in range(2))
        found = compare_paired(
            gold,
            a,
            b,
            scale="binary",
            a_scale="percentage",
            b_scale="percentage",
            metric=metric,
            groups=groups,
            n_perm=1000,
        )
        if found.p_value is not None and found.difference.low is not None:
            defined += 1
            held += not found.difference.clear_of_zero
            low_p += found.p_value < 0.05
    return held / max(defined, 1), low_p / max(defined, 1)


JUDGES = ("binary", "percentage", "percentage labels")
SETTINGS = [(judge, rate, groups) for judge in JUDGES for rate in (0.65, 0.85) for groups in (20, 33, 110)]
PAIRS = [(judge, rate, groups) for judge in JUDGES[:2] for rate in (0.65, 0.85) for groups in (20, 33, 110)]
COMPARED = ("macro_agreement", "kappa", "accuracy")


def _one(setting: tuple[str, float, int], reps: int) -> dict[str, Covered]:
    judge, rate, groups = setting
    found = coverage(groups, rate, judge=judge, reps=reps, seed=groups)
    names = {name.partition("@")[0]: name for name in (GRADED if judge == JUDGES[2] else METRICS)}
    for name in [name for name, cell in found.items() if _outside(cell)]:
        again = coverage(groups, rate, judge=judge, reps=4 * reps, seed=1000 + groups, metrics=[names[name]])
        found[name] = again[name]
    return found


def _outside(cell: Covered) -> bool:
    return cell.certified and not LEAST <= cell.held <= MOST


def _pair(setting: tuple[str, float, int], reps: int) -> list[tuple[float, float]]:
    judge, rate, groups = setting
    graded = judge == "percentage"
    return [false_alarms(groups, rate, graded=graded, reps=reps, seed=groups, metric=metric) for metric in COMPARED]


def table(found: Sequence[dict[str, Covered]], reps: int) -> str:
    """Coverage as a Markdown table, a row a setting."""
    lines = [
        f"Share of nominal 95% intervals that hold the truth, {reps} samples a row (Monte Carlo error "
        f"{1.96 * (0.95 * 0.05 / reps) ** 0.5:.3f})",
        "",
        "| judge | pass rate | groups of two | " + " | ".join(COLUMNS) + " |",
        "| --- | ---: | ---: |" + " ---: |" * len(COLUMNS),
    ]
    for (judge, rate, groups), cells in zip(SETTINGS, found, strict=True):
        row = " | ".join(str(cells[name]) if name in cells else "" for name in COLUMNS)
        lines.append(f"| {judge} | {rate:g} | {groups} | {row} |")
    return "\n".join(lines)


def outside(found: Sequence[dict[str, Covered]]) -> list[str]:
    """The certified cells that lie outside 0.93..0.98."""
    return [
        f"{judge}, pass rate {rate:g}, {groups} groups: {name} {cell.held:.3f}"
        for (judge, rate, groups), cells in zip(SETTINGS, found, strict=True)
        for name, cell in cells.items()
        if _outside(cell)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=4000)
    parser.add_argument("--output", type=Path, help="write the coverage table here too")
    args = parser.parse_args()
    start = time.perf_counter()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read by the processes that are started
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        found = list(pool.map(partial(_one, reps=args.reps), SETTINGS))
        print(table(found, args.reps), flush=True)
        if args.output:
            args.output.write_text(table(found, args.reps) + "\n", encoding="utf-8")
        missed = outside(found)
        certified = sum(cell.certified for cells in found for cell in cells.values())
        print(f"\n{certified} cells certified, {len(missed)} outside {LEAST}..{MOST}", *missed, sep="\n")
        pairs = args.reps // 4
        error = 1.96 * (0.05 * 0.95 / pairs) ** 0.5
        print(
            f"\ntwo equal judges, {pairs} samples (95% of the share below {0.05 + error:.3f} by chance): "
            "intervals that hold 0 / p < 0.05"
        )
        for (judge, rate, groups), cells in zip(
            PAIRS, pool.map(partial(_pair, reps=args.reps // 4), PAIRS), strict=True
        ):
            told = [f"{name} {held:.3f}/{p:.3f}" for name, (held, p) in zip(COMPARED, cells, strict=True)]
            print(f"{judge:>10} {rate:>5} {groups:>4}  " + "  ".join(told), flush=True)
    print(f"\n{time.perf_counter() - start:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
