"""Twenty looks at one test split: how many users take any false decision? `python -m tests.benchmarks.looks`.

A user compares twenty pairs of judges on the same test labels, one pair after the other. The two of a pair
are equally good, so each decision is a false one. Look k is taken at 1 - 0.05 * 6 / (pi^2 k^2), and at most
5% of users may decide even once. All seeded; exit 1 where the share is above 5% by two standard errors.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from scipy.special import ndtri

from judgecal.experiment.looks import Look
from judgecal.stats import compare
from tests.benchmarks.coverage import verdicts
from tests.benchmarks.driver import Bench, Floats, latent, slack
from tests.benchmarks.false_alarms import two_scores

LOOKS, PROMISE = 20, 0.05
SETTINGS = (
    (110, 2, "accuracy", False), (110, 2, "macro_agreement", False), (50, 2, "accuracy", False),
    (110, 2, "kappa", True),
)  # fmt: skip


def gold_labels(rng: np.random.Generator, n_groups: int, size: int) -> Floats:
    """Labels of which 65% pass."""
    return (latent(rng, n_groups, size) < ndtri(0.65)).astype(np.float64)


def decides(gold: Floats, pair: list[Floats], size: int, metric: str, *, graded: bool, level: float) -> bool:
    """Whether `compare` takes one of the two at a level, with as many sign flips as it takes to do so."""
    groups = np.arange(len(gold)) // size
    own = "percentage" if graded else "binary"

    def clear(n_perm: int) -> tuple[bool, bool]:
        found = compare(
            gold, *pair, scale="binary", a_scale=own, b_scale=own, metric=metric, groups=groups, level=level,
            n_perm=n_perm,
        )  # fmt: skip
        return found.difference.clear_of_zero, found.decision != "cannot tell"

    # The interval decides too, and hangs on no draw: the many flips are needed where it is clear of 0 alone.
    return clear(1)[0] and clear(max(10_000, math.ceil(20.0 / (1.0 - level))))[1]


def any_false_decision(n_groups: int, size: int, metric: str, *, graded: bool, users: int) -> float:
    """The share of users with a false decision in twenty looks."""
    rng, n_false = np.random.default_rng(20261122), 0
    for _ in range(users):
        gold = gold_labels(rng, n_groups, size)
        pairs = [
            [verdicts(gold, score, graded=graded) for score in two_scores(rng, n_groups, size)]
            for _ in range(LOOKS)
        ]
        if not graded:
            pairs = [[(given >= 50.0).astype(np.float64) for given in pair] for pair in pairs]
        n_false += any(
            decides(gold, pair, size, metric, graded=graded, level=Look(number, new=True).level)
            for number, pair in enumerate(pairs, start=1)
        )
    return n_false / users


def main() -> int:
    bench = Bench(__doc__, n=300, of="users a setting")
    most = PROMISE + slack(PROMISE, bench.n)
    bench.head(f"{LOOKS} looks at equal judges: share of the users with any false decision")
    for n_groups, size, metric, graded in bench.some(SETTINGS):
        share = any_false_decision(n_groups, size, metric, graded=graded, users=bench.n)
        bench.line(f"{n_groups:4} questions x {size}  {metric:16}  {share:6.1%}", kept=share <= most)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
