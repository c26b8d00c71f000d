"""Which setting of a RAG system is the best, on 83 questions? By hand: `python -m tests.benchmarks.sweeps` (3
minutes).

Ten settings answer the same questions. A setting answers or refuses, and what it answers has a correctness
0..1; both hang on how hard the question is, which all settings share (`--shared`, the correlation of two
settings' scores), and on chance. Shares answered and correctness follow from the true `total` as in a
published sweep: 0.86 is 0.95 answered at 0.91, 0.71 is 0.85 at 0.84. Correctness has a beta distribution
with a + b = 2: most answers are right or nearly so.

It exits 1 where a single setting is called best that is not in more than 5% of the runs, where the best is
said to be told apart from the best as often, or where a setting that leads all nine others by 0.15 is found
in less than 80%.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from judgecal.rag.evaluation.comparisons import not_told_apart
from judgecal.stats.simultaneous import losses_against_best
from tests.benchmarks.driver import Bench, Floats

N_QUESTIONS = 83
SHARED = 0.6
SPREAD = 2.0  # a + b of the beta distribution of correctness
TOTALS = (0.71, 0.86)
ANSWERED = (0.85, 0.95)

KINDS: Mapping[str, tuple[float, ...]] = {
    "ten equal": (0.86,) * 10,
    "0.81 to 0.86": tuple(np.linspace(0.86, 0.81, 10).tolist()),
    "two at 0.86, eight at 0.71": (0.86,) * 2 + (0.71,) * 8,
    "one at 0.86, nine at 0.71": (0.86,) + (0.71,) * 9,
}
"""True totals, the best first; the last kind has the lead that is to be found."""


@dataclass(frozen=True)
class Shares:
    """Of the runs: a single setting was called best; one that is not; the first one, truly best, was told
    apart from the best; and how many settings could not be.
    """

    single: float
    wrong: float
    lost: float
    left: float


def answers(rng: np.random.Generator, totals: Sequence[float], n_questions: int, shared: float) -> Floats:
    """Settings x questions: correctness where answered, else 0."""

    def scores() -> Floats:
        own = rng.standard_normal((len(totals), n_questions))
        made: Floats = math.sqrt(shared) * rng.standard_normal(n_questions) + math.sqrt(1.0 - shared) * own
        return made

    share = np.interp(totals, TOTALS, ANSWERED)[:, None]
    correctness = np.asarray(totals)[:, None] / share
    answered = scores() < ndtri(share)
    given = betaincinv(SPREAD * correctness, SPREAD * (1.0 - correctness), ndtr(scores()))
    return np.where(answered, given, 0.0)


def simulate(
    totals: Sequence[float],
    *,
    runs: int,
    seed: int = 0,
    n_questions: int = N_QUESTIONS,
    shared: float = SHARED,
) -> Shares:
    """What is said of settings with these true totals; a setting that ties with the best is no single best
    one."""
    rng, names = np.random.default_rng(seed), [str(place) for place in range(len(totals))]
    sole = list(totals).count(max(totals)) == 1
    found = []
    for _ in range(runs):
        points = 100.0 * answers(rng, totals, n_questions, shared)
        losses = losses_against_best(
            [100.0] * n_questions,
            dict(zip(names, points, strict=True)),
            scale="percentage",
            metric="mean_agreement",
        )
        found.append(not_told_apart(losses))
    single = [left for left in found if len(left) == 1]
    return Shares(
        single=len(single) / runs,
        wrong=sum(left[0] != "0" or not sole for left in single) / runs,
        lost=sum("0" not in left for left in found) / runs,
        left=float(np.mean([len(left) for left in found])),
    )


def table(bench: Bench) -> None:
    """A Markdown table, a row for each kind; the lead of the last kind is to be found in 80%."""
    heads = "true totals | a single one called best | wrongly | the best left out | not told apart"
    bench.line(f"| {heads} |\n" + "| --- " * 5 + "|")
    for name, totals in KINDS.items():
        found = simulate(totals, runs=bench.n, seed=bench.options.seed, shared=bench.options.shared)
        cells = " | ".join(f"{share:.1%}" for share in (found.single, found.wrong, found.lost))
        kept = found.wrong <= 0.05 and found.lost <= 0.05
        if totals == [*KINDS.values()][-1]:
            kept &= found.single - found.wrong >= 0.8
        bench.line(f"| {name} | {cells} | {found.left:.1f} |", kept=kept)


def main() -> int:
    bench = Bench(__doc__, n=1000, of="runs", seed=0, shared=SHARED)
    bench.head(f"{N_QUESTIONS} questions, correlation {bench.options.shared:g}\n")
    table(bench)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
