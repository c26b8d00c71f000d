"""What labels are worth where judges differ: `python -m tests.benchmarks.disagreement_draw` (some three
minutes).

Two judges have judged 2,000 items (1,000 questions of two); N of them are labelled, drawn at random or by
`gold sheet --strata disagreement`, and the judges compared on these, weighted. Binary labels with judges that
say yes and no, and labels in tens with judges on a percentage scale. Printed: the share of 95% intervals that
hold the truth of all 2,000 items' world (of the difference, and of the first judge's agreement), the standard
deviation of the difference against that at random, and for how many labels at random a drawn one stands (the
squared ratio).

Exit code 1 where an interval of the drawn sample covers less than 0.93, by more than two standard errors, or
a drawn label is worth less than a random one for the difference.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from judgecal.goldset.draw import by_disagreement, draw
from judgecal.records import Item
from judgecal.stats import agreement, compare
from tests.benchmarks.driver import Bench, Floats, latent, slack

QUESTIONS, SIZE = 1000, 2
SHARED = 0.6
WORTH = {"binary": (0.88, 0.84), "percentage": (0.9, 1.1)}  # right verdicts; noise of the verdicts
METRICS = (("binary", "accuracy"), ("binary", "macro_agreement"), ("percentage", "mean_agreement"))
SETTINGS = tuple(itertools.product(METRICS, (100, 300)))
LEAST = 0.93


def world(rng: np.random.Generator, kind: str, n_groups: int) -> tuple[Floats, Floats, Floats]:
    """Labels, and two judges' verdicts, the first of them better."""
    q, common = latent(rng, n_groups, SIZE), latent(rng, n_groups, SIZE)
    own = [np.sqrt(SHARED) * common + np.sqrt(1.0 - SHARED) * latent(rng, n_groups, SIZE) for _ in range(2)]
    if kind == "binary":
        gold = (q < ndtri(0.65)).astype(np.float64)
        a, b = (
            np.where(one < ndtri(right), gold, 1.0 - gold)
            for one, right in zip(own, WORTH[kind], strict=True)
        )
        return gold, a, b
    a, b = (np.round(100.0 * ndtr(q + noise * one)) for one, noise in zip(own, WORTH[kind], strict=True))
    return np.round(10.0 * ndtr(q + 0.4)) * 10.0, a, b


@cache
def truth(kind: str, metric: str) -> tuple[float, float]:
    """The true difference, and the first judge's true agreement."""
    gold, a, b = world(np.random.default_rng(0), kind, 100_000)
    values = []
    for verdicts in (a, b):
        value = agreement(gold, verdicts, scale=kind, metrics=[metric], groups=np.zeros(len(gold)))[
            metric
        ].value
        assert value is not None
        values.append(value)
    return values[0] - values[1], values[0]


def labelled(
    rng: np.random.Generator, a: Floats, b: Floats, n: int, *, drawn: bool
) -> tuple[npt.NDArray[Any], Floats]:
    """Which items are labelled, and how they weigh."""
    if not drawn:
        return rng.choice(len(a), n, replace=False), np.ones(n)
    items = [Item(str(number), "", "", "") for number in range(len(a))]
    verdicts: Mapping[str, Any] = {
        name: dict(zip(map(str, range(len(side))), side.tolist(), strict=True))
        for name, side in (("a", a), ("b", b))
    }
    chosen = draw(by_disagreement(items, verdicts), n, seed=int(rng.integers(2**31))).items
    weights = np.array([1.0 / (item.inclusion_probability or 1.0) for item in chosen])
    return np.array([int(item.item_id) for item in chosen]), weights / weights.mean()


def measured(setting: tuple[tuple[str, str], int], *, reps: int) -> dict[bool, tuple[float, float, float]]:
    """By whether it is drawn: coverage of the difference, of the agreement, and the difference's spread."""
    (kind, metric), n = setting
    true = truth(kind, metric)
    groups = np.repeat(np.arange(QUESTIONS), SIZE)
    found = {}
    for drawn in (False, True):
        rng = np.random.default_rng(n)
        held, values = np.zeros((reps, 2)), np.zeros(reps)
        for rep in range(reps):
            gold, a, b = world(rng, kind, QUESTIONS)
            at, weights = labelled(rng, a, b, n, drawn=drawn)
            how: dict[str, Any] = {"scale": kind, "groups": groups[at], "weights": weights if drawn else None}
            one = compare(
                gold[at], a[at], b[at], metric=metric, calibrate=False, n_perm=999, **how
            ).difference
            own = agreement(gold[at], a[at], metrics=[metric], **how)[metric]
            for place, estimate in enumerate((one, own)):
                assert estimate.value is not None and estimate.low is not None and estimate.high is not None
                held[rep, place] = estimate.low <= true[place] <= estimate.high
            values[rep] = one.value or 0.0
        found[drawn] = (*held.mean(axis=0).tolist(), float(values.std()))
    return found


def main() -> int:
    bench = Bench(__doc__, n=300, of="samples a setting")
    bench.head("at random / where judges differ")
    for ((kind, metric), n), found in bench.each(partial(measured, reps=bench.n), SETTINGS):
        (plain, plain_own, plain_sd), (held, own, sd) = found[False], found[True]
        worth = (plain_sd / sd) ** 2
        bench.line(
            f"{kind:<10} {metric:<15} {n} labels   difference held {plain:.3f} / {held:.3f}   agreement held "
            f"{plain_own:.3f} / {own:.3f}   sd {plain_sd:.4f} / {sd:.4f}   a label is worth {worth:.1f}",
            kept=min(held, own) >= LEAST - slack(LEAST, bench.n) and worth > 1.0,
        )
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
