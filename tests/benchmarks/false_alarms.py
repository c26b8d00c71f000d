"""How often does `compare` decide between judges of equal worth? By hand: `python -m
tests.benchmarks.false_alarms`.

Two tables, all seeded. Exit code 1 where a setting of the first decides in more than 6%, also on four and
on sixteen times as many fresh samples.

0. Wrong decisions: pairs of judges of equal worth (`PAIRS`: alike, near twins, apart, wrong on opposite
items, one
   more lenient, mirrored; `GRADED`: on graded labels, one of them rescaled) by shape and pass rate. A
   decision is wrong whichever way it goes. What `compare` refuses (a class or stratum under ten items, under
   ten questions) is left out, and its share is in brackets; a setting that is refused in more than four of
   five samples is passed over. Verdicts of yes and no are compared as they are, which saves the time of
   fitting maps that change none; graded ones, which take twenty times as long, on a tenth of the samples.
1. Power: two judges whose scores correlate so that, equally good, they would be discordant half as often as
if they
   erred independently (the planning assumption), one of them worse by the stated smallest detectable
   difference: `compare` should decide in about 80% of runs.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal

from judgecal.stats import compare
from tests.benchmarks.driver import Bench, Floats, latent

SHAPES = ((110, 2), (60, 5), (60, 12))
SHARED = 0.6  # of a judge's latent score, what it has in common with the other judge


def two_scores(
    rng: np.random.Generator, n_groups: int, size: int, shared: float = SHARED
) -> Iterator[Floats]:
    """Latent scores of two judges that find the same items hard."""
    common = np.sqrt(shared) * latent(rng, n_groups, size)
    return (common + np.sqrt(1.0 - shared) * latent(rng, n_groups, size) for _ in range(2))


Rates = tuple[float, float]  # TPR and TNR
PAIRS: dict[str, tuple[Rates, Rates, float]] = {
    "alike": ((0.90, 0.75), (0.90, 0.75), 0.6),
    "near twins": ((0.90, 0.75), (0.90, 0.75), 0.97),
    "apart": ((0.90, 0.75), (0.90, 0.75), 0.0),
    "opposite": ((0.90, 0.75), (0.90, 0.75), -1.0),
    "lenient": ((0.95, 0.65), (0.75, 0.85), 0.6),
    "mirrored": ((0.97, 0.70), (0.70, 0.97), 0.6),
    "mirrored, good": ((0.99, 0.90), (0.90, 0.99), 0.6),
}
"""Judges of the same balanced accuracy on binary labels, and what their errors have in common; -1: nothing
but sign."""
GRADED = {"graded": 0.6, "graded, near twins": 0.97, "graded, apart": 0.0}
"""Judges that err as much on labels of a percentage scale, one lenient and timid, the other bent and
strict."""
EXCHANGEABLE = ("alike", "near twins", "apart", "opposite")  # of equal worth by every metric
QUESTIONS, SIZES, RATES = (12, 20, 33, 60, 110), (1, 2, 5), (0.5, 0.65, 0.85, 0.95)
MOST, PASSED_OVER = 0.06, 0.8
Setting = tuple[str, str, int, int, float]  # metric, pair, questions, items of each, pass rate
SETTINGS: list[Setting] = [
    *itertools.product(["macro_agreement"], PAIRS, QUESTIONS, SIZES, RATES),
    *((("macro_agreement", pair, *shape, 0.5)) for pair in GRADED for shape in ((20, 5), (33, 2), (60, 1), (110, 1))),
    *itertools.product(["accuracy", "kappa"], EXCHANGEABLE, QUESTIONS, SIZES, RATES[1:3]),
]  # fmt: skip


def judged(
    rng: np.random.Generator, pair: str, n_groups: int, size: int, rate: float
) -> tuple[Floats, Floats, Floats]:
    """Labels, and the verdicts of two judges of equal worth."""
    shared = GRADED[pair] if pair in GRADED else PAIRS[pair][2]
    scores = list(two_scores(rng, n_groups, size, max(0.0, shared)))
    if shared < 0.0:
        scores[1] = -scores[0]
    seen = latent(rng, n_groups, size)
    if pair in GRADED:
        gold = np.round(10.0 * ndtr(seen + ndtri(rate))) * 10.0
        ours, theirs = (ndtr(4.0 * (gold / 100.0 + 0.2 * score - 0.5)) for score in scores)
        return gold, np.round(30.0 + 70.0 * ours, 1), np.round(90.0 * theirs**2, 1)
    gold = (seen < ndtri(rate)).astype(np.float64)
    sides = zip(scores, PAIRS[pair][:2], strict=True)
    a, b = (
        np.where(score < ndtri(np.where(gold == 1.0, *rates)), gold, 1.0 - gold) for score, rates in sides
    )
    return gold, a, b


def wrong_decisions(setting: Setting, *, reps: int, seed: int) -> tuple[float, float]:
    """Share of the samples that are not refused in which `compare` decides; share that it refuses."""
    metric, pair, n_groups, size, rate = setting
    rng = np.random.default_rng([seed, n_groups, size])
    groups = np.repeat(np.arange(n_groups), size)
    scale = "percentage" if pair in GRADED else "binary"
    decided = refused = 0
    for _ in range(reps):
        gold, a, b = judged(rng, pair, n_groups, size, rate)
        found = compare(
            gold, a, b, scale=scale, metric=metric, groups=groups, n_perm=499, calibrate=pair in GRADED
        )
        refused += found.difference.low is None or any(one.thin for one in found.strata)
        decided += found.decision != "cannot tell"
    return decided / max(1, reps - refused), refused / reps


def _wrong(setting: Setting, reps: int) -> tuple[float, float]:
    """The same, anew on four and on sixteen times as many samples where it is above what is promised."""
    reps = max(1, reps // 10) if setting[1] in GRADED else reps
    found, refused = wrong_decisions(setting, reps=reps, seed=1)
    for times in (4, 16):
        if found > MOST and refused <= PASSED_OVER:
            found, refused = wrong_decisions(setting, reps=round(times * reps / (1.0 - refused)), seed=times)
    return found, refused


def wrong_table(bench: Bench) -> None:
    """Print the worst cells of each pair; a setting above what is promised is a broken promise."""
    cells = list(bench.each(partial(_wrong, reps=bench.n), bench.some(SETTINGS)))
    held = [(setting, found, refused) for setting, (found, refused) in cells if refused <= PASSED_OVER]
    bench.head(
        f"wrong decisions of compare between judges of equal worth; {len(held)} of {len(cells)} settings are",
        "not refused; the worst three of each pair:",
    )
    for metric, pair in dict.fromkeys(setting[:2] for setting, _, _ in held):
        of_pair = sorted((cell for cell in held if cell[0][:2] == (metric, pair)), key=lambda cell: -cell[1])
        mean = float(np.mean([found for _, found, _ in of_pair]))
        worst = "   ".join(
            f"{s[2]} x {s[3]} at {s[4]:g}: {found:.3f} ({out:.2f})" for s, found, out in of_pair[:3]
        )
        kept = of_pair[0][1] <= MOST
        bench.line(f"  {metric:<16} {pair:<20} mean {mean:.3f}   {worst}", kept=kept)


def half_discordant(accuracy: float) -> float:
    """The correlation of two judges' latent scores at which they are discordant half as often as independent
    ones."""

    def excess(shared: float) -> float:
        both = float(multivariate_normal(cov=[[1.0, shared], [shared, 1.0]]).cdf([ndtri(accuracy)] * 2))
        return 2.0 * (accuracy - both) - accuracy * (1.0 - accuracy)

    return float(brentq(excess, 0.0, 0.999))


def power(n_groups: int, size: int, *, accuracy: float, reps: int, seed: int) -> tuple[float, float]:
    """Mean stated smallest detectable difference in accuracy; share of runs that find one of that size."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    gold = np.ones(n_groups * size)
    shared = half_discordant(accuracy)

    def compared(rates: tuple[float, float]) -> tuple[float, bool]:
        scores = two_scores(rng, n_groups, size, shared)
        a, b = ((score < ndtri(rate)).astype(np.float64) for score, rate in zip(scores, rates, strict=True))
        found = compare(gold, a, b, scale="binary", metric="accuracy", groups=groups)
        return found.smallest_detectable or float("nan"), found.decision == "A"

    stated = float(
        np.mean([compared((accuracy, accuracy))[0] for _ in range(max(min(50, 10 * reps), reps // 10))])
    )
    return stated, float(np.mean([compared((accuracy, accuracy - stated))[1] for _ in range(reps)]))


def main() -> int:
    bench = Bench(__doc__, n=3000, of="samples", quick={"n": 6})
    wrong_table(bench)
    bench.head(f"power at the stated smallest detectable difference in accuracy, {bench.n // 3} samples")
    for accuracy in (0.70, 0.90, 0.95):
        cells = []
        for n_groups, size in bench.some([(33, 1), (110, 1), (330, 1), (33, 3), *SHAPES]):
            stated, found = power(n_groups, size, accuracy=accuracy, reps=bench.n // 3, seed=n_groups * size)
            cells.append(f"{n_groups} x {size}: {stated:.3f} found in {found:.3f}")
        bench.line(f"  accuracy {accuracy:.2f}   " + "   ".join(cells))
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
