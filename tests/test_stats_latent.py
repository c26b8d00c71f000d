"""Agreement with the latent truth: it recovers the accuracies that made the ratings, where they can be known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from judgecal.stats.latent import Latent, latent_truth

Rates = Sequence[float]


def simulated(
    people: Sequence[Rates], judges: Sequence[Rates], *, n: int = 3000, seed: int = 1
) -> tuple[dict[str, dict[Any, Any]], dict[str, dict[Any, Any]]]:
    """Ratings of n items; of each rater how often it is right on each class, other classes equally often else."""
    rng = np.random.default_rng(seed)
    k = len(people[0])
    truth = rng.integers(0, k, n)

    def said(right: Rates) -> dict[Any, Any]:
        wrong = (truth + rng.integers(1, k, n)) % k
        labels = np.where(rng.random(n) < np.array(right)[truth], truth, wrong)
        return dict(enumerate(labels.astype(float).tolist() if k == 2 else [f"w{label}" for label in labels]))

    return {f"p{i}": said(own) for i, own in enumerate(people)}, {f"j{i}": said(own) for i, own in enumerate(judges)}


def fitted(ratings: Any, judges: Any, *, scale: str = "binary", **more: Any) -> Latent:
    n = 1 + max(max(row) for row in ratings.values())
    return latent_truth(ratings, judges, scale=scale, groups={i: i // 2 for i in range(n)}, **more)


@pytest.mark.parametrize(
    ("people", "judges"),
    [
        ([(0.9, 0.8), (0.7, 0.95), (0.8, 0.9)], [(0.9, 0.9), (0.7, 0.95)]),
        ([(0.9, 0.9, 0.9), (0.8, 0.8, 0.8), (0.7, 0.7, 0.7)], [(0.85, 0.85, 0.85)]),
        ([(0.85, 0.85), (0.85, 0.85)], [(0.9, 0.7)]),
        ([(0.8, 0.8, 0.8), (0.8, 0.8, 0.8)], [(0.9, 0.9, 0.9)]),
    ],
    ids=["three on two classes", "three on three", "two on two", "two on three"],
)
def test_the_accuracies_behind_the_ratings_come_back(people: list[Rates], judges: list[Rates]) -> None:
    ratings, verdicts = simulated(people, judges)
    found = fitted(ratings, verdicts, scale="binary" if len(people[0]) == 2 else "nominal")
    made = {**found.raters, **found.judges}
    assert made.keys() == ratings.keys() | verdicts.keys() and found.reason is None
    held = 0
    for one, right in zip(made.values(), (*people, *judges), strict=True):
        assert one.value == pytest.approx(np.mean(right), abs=0.025)
        assert one.low is not None and one.high is not None and one.high - one.low < 0.1 and "bootstrap" in one.method
        held += bool(one.low < np.mean(right) < one.high)
    assert held >= len(made) - 1  # of 95% intervals
    assert ("two raters cannot tell" in found.assumes) == (len(people) == 2)
    assert sum(found.prevalence.values()) == pytest.approx(1.0)


def test_two_raters_by_hand() -> None:
    """They agree on A of the items: with accuracy a each, A = a^2 + (1 - a)^2."""
    a = {i: float(i % 2) for i in range(1000)}
    b = {i: 1.0 - label if i % 10 < 2 else label for i, label in a.items()}
    found = fitted({"a": a, "b": b}, {})
    assert found.raters["a"].value == pytest.approx((1.0 + (2 * 0.8 - 1) ** 0.5) / 2, abs=1e-4)
    assert found.raters["a"] == found.raters["b"]


def test_judges_do_not_move_people() -> None:
    ratings, verdicts = simulated([(0.9, 0.8), (0.7, 0.95), (0.8, 0.9)], [(0.9, 0.9)], n=400)
    alone = fitted(ratings, verdicts)
    echo = {f"echo{i}": {item: 1.0 - label for item, label in verdicts["j0"].items()} for i in range(5)}
    crowd = fitted(ratings, {**verdicts, **echo})
    assert crowd.raters == alone.raters and crowd.judges["j0"] == alone.judges["j0"]
    assert (crowd.judges["echo0"].value or 1.0) < 0.3
    assert fitted(ratings, verdicts) == alone and fitted(ratings, verdicts, seed=1) != alone


def test_what_is_missing_is_left_out() -> None:
    ratings, verdicts = simulated([(0.9, 0.8), (0.7, 0.95), (0.8, 0.9)], [(0.9, 0.9)])
    thin = {"a thin one": dict.fromkeys(range(20), 1.0), **ratings}
    half = {item: label if item % 2 else None for item, label in verdicts["j0"].items()}
    found = fitted(thin, {"j0": half, "silent": dict.fromkeys(range(3000))})
    assert found.raters.keys() == ratings.keys()
    assert found.raters["p0"].value == pytest.approx(fitted(ratings, {}).raters["p0"].value, abs=0.01)
    assert found.judges["j0"].value == pytest.approx(0.9, abs=0.03)
    assert (found.judges["j0"].n, found.judges["j0"].n_expected) == (1500, 3000)
    assert (found.judges["silent"].value, found.judges["silent"].reason) == (None, "no verdict on these items")


def test_where_nothing_can_be_told() -> None:
    ratings, verdicts = simulated([(0.9, 0.8), (0.7, 0.95)], [(0.9, 0.9)], n=29)
    assert fitted(ratings, verdicts).reason == (
        "it takes 30 items with three ratings, or with two where there are but two raters"
    )
    # Three raters, of whom no three rated an item: who of two errs cannot be known, and the third is another.
    apart, _ = simulated([(0.9, 0.8), (0.7, 0.95), (0.8, 0.9)], [], n=300)
    pairs = {name: {i: y for i, y in row.items() if i % 3 != at} for at, (name, row) in enumerate(apart.items())}
    assert fitted(pairs, {}).reason is not None
    assert "an error has a size" in (fitted(ratings, {}, scale="ordinal:0:1").reason or "")
    few = latent_truth(*simulated([(0.9, 0.8)] * 3, [], n=90), scale="binary", groups={i: i % 9 for i in range(90)})
    assert few.raters["p0"].value is not None and "9 groups" in (few.raters["p0"].reason or "")
