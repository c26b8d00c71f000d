"""How far a chosen judge may fall on questions that did not choose it."""

from __future__ import annotations

import math

import pytest
from scipy.stats import t as student

from judgecal.scale import Scale
from judgecal.stats.confirmation import Gains, Held, fall_between

BINARY = Scale.parse("binary")


def held(n: int, n_wrong: int) -> Held:
    """Single answers, half of them good; the first so many are judged wrongly."""
    labels = [place % 2 for place in range(n)]
    verdicts = [1 - label if place < n_wrong else label for place, label in enumerate(labels)]
    return Held(labels, verdicts, BINARY, list(range(n)))


def test_a_fall_is_held_against_the_errors_of_both_parts() -> None:
    found = fall_between(held(100, 10), held(80, 40), people=BINARY, metric="accuracy", n_judges=1)
    assert found is not None and found.value == pytest.approx(0.4) and found.unexplained
    assert found.at_most == pytest.approx(2.58 * math.sqrt(0.09 / 99 + 0.25 / 79))
    of_twelve = fall_between(held(100, 10), held(80, 40), people=BINARY, metric="accuracy", n_judges=12)
    assert of_twelve is not None and of_twelve.at_most == pytest.approx(
        found.at_most * 3.343 / 2.58, rel=1e-3
    )


def test_what_luck_gains_is_a_quantile_of_the_paired_errors() -> None:
    """A candidate that errs on a fifth of 100 questions: the error of its gain is sqrt(0.2 0.8 / 99)."""

    def luck(*candidates: Held, of_fit: float = 0.0) -> float:
        fits = [of_fit] * len(candidates)
        gains = Gains.over(held(100, 0), candidates, people=BINARY, metric="accuracy", of_fit=fits)
        assert gains is not None
        return gains.by_luck()

    error, other = math.sqrt(0.2 * 0.8 / 99), held(100, 20)
    once = luck(other)
    assert once == pytest.approx(student.ppf(0.8, 99) * error)
    assert luck(other, of_fit=0.03) == pytest.approx(student.ppf(0.8, 99) * math.hypot(error, 0.03))
    assert luck(other, other) == pytest.approx(once, rel=0.05)  # the same candidate twice is one
    # The larger of two independent equal ones stays below z with chance 0.8 where each does with 0.8^(1/2).
    few = Gains.over(held(12, 0), [held(12, 3)] * 2, people=BINARY, metric="accuracy", of_fit=[0.0] * 2)
    assert few is not None
    assert few.by_luck() == pytest.approx(student.ppf(0.8, 11) * few.errors[0], rel=0.02)
    two = luck(other, other, of_fit=100.0)
    assert two == pytest.approx(100.0 * student.ppf(math.sqrt(0.8), 99), rel=0.05)
