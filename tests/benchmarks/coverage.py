"""Do the 95% intervals hold the truth in 95% of samples? Run by hand: `python tests/benchmarks/coverage.py`.

Groups of two items, within-group correlation 0.3 (of the labels' and of the judge's latent normal scores),
pass rates 0.65 and 0.85. Two judges: a binary one (TPR 0.90, TNR 0.75) and one that gives percentages. The
truth is the same statistic on a very large sample. The last lines compare two equally good judges: there the
interval of the difference should hold 0, and p fall below 0.05 in one sample of twenty.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr, ndtri

from judgecal.stats import agreement, compare_paired

Floats = npt.NDArray[np.float64]

METRICS = ("accuracy", "tpr", "tnr", "kappa", "macro_agreement", "mae")
CORRELATION = 0.3


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


def coverage(
    n_groups: int, pass_rate: float, *, graded: bool, reps: int, seed: int, metrics: Sequence[str] = METRICS
) -> dict[str, tuple[float, float, float]]:
    """Metric -> share of intervals that hold the truth, share of samples with an interval, mean width."""
    rng = np.random.default_rng(seed)
    many = gold_labels(rng, 200_000, pass_rate)
    known = agreement(
        many,
        verdicts(many, latent(rng, 200_000), graded=graded),
        scale="binary",
        judge_scale="percentage",
        metrics=metrics,
        n_boot=1,
    )
    groups = np.repeat(np.arange(n_groups), 2).tolist()
    ends: dict[str, list[tuple[float, float]]] = {name: [] for name in metrics}
    for _ in range(reps):
        gold = gold_labels(rng, n_groups, pass_rate)
        judge = verdicts(gold, latent(rng, n_groups), graded=graded)
        found = agreement(
            gold, judge, scale="binary", judge_scale="percentage", groups=groups, metrics=metrics
        )
        for name, estimate in found.items():
            if estimate.low is not None and estimate.high is not None:
                ends[name].append((estimate.low, estimate.high))
    result = {}
    for name, pairs in ends.items():
        low, high = np.array(pairs).reshape(-1, 2).T
        truth = known[name].value or 0.0
        held = float(np.mean((low <= truth) & (truth <= high))) if len(pairs) else float("nan")
        result[name] = (held, len(pairs) / reps, float(np.mean(high - low)) if len(pairs) else float("nan"))
    return result


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
        a, b = (
            verdicts(gold, shared + np.sqrt(0.4) * latent(rng, n_groups), graded=graded) for _ in range(2)
        )
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=1000)
    reps = parser.parse_args().reps
    start = time.perf_counter()
    print(
        f"coverage / width of nominal 95% intervals, {reps} samples (share of samples with an interval if < 1)"
    )
    print(f"{'groups':>6} {'pass':>5} {'judge':>7} " + " ".join(f"{name:>19}" for name in METRICS))
    settings = [(g, p, graded) for graded in (False, True) for p in (0.65, 0.85) for g in (20, 33, 110)]
    for n_groups, pass_rate, graded in settings:
        found = coverage(n_groups, pass_rate, graded=graded, reps=reps, seed=n_groups)
        cells = [
            f"{held:.3f}/{width:.3g}" + (f" ({share:.2f})" if share < 1.0 else "")
            for held, share, width in found.values()
        ]
        kind = "graded" if graded else "binary"
        print(
            f"{n_groups:>6} {pass_rate:>5} {kind:>7} " + " ".join(f"{cell:>19}" for cell in cells), flush=True
        )
    print("\ntwo equal judges: intervals that hold 0 / p < 0.05")
    for n_groups, pass_rate, graded in settings:
        cells = []
        for metric in ("macro_agreement", "kappa", "accuracy"):
            held, low_p = false_alarms(
                n_groups, pass_rate, graded=graded, reps=reps, seed=n_groups, metric=metric
            )
            cells.append(f"{metric} {held:.3f}/{low_p:.3f}")
        print(
            f"{n_groups:>6} {pass_rate:>5} {'graded' if graded else 'binary':>7} " + "  ".join(cells),
            flush=True,
        )
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
