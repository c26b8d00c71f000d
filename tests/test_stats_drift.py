"""The odd one out: when calls of now are shown not to be calls of the locked judge."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from judgecal.stats.drift import permutation_p_bound, same_judge_test


def test_one_call_of_the_lock_and_two_of_now_are_the_odd_one_in_a_third() -> None:
    """Twelve items say 0 then and 1 twice now: 3^-12, twice over as the way that they moved is tested as
    well."""
    found = same_judge_test([[0.0]] * 40, [[1.0, 1.0]] * 12 + [[0.0, 0.0]] * 28, range(40))
    assert found is not None and (found.n, found.n_differ, found.graded) == (40, 12, False)
    assert found.p_at_most == pytest.approx(3 * 3.0**-12, rel=0.01)
    assert (found.between, found.shift) == (pytest.approx(12 / 40), pytest.approx(12 / 40))
    assert found.expected == pytest.approx(12 / 40 * (1.0 + 0.5 + 0.5) / 3)
    assert found.changed and found.in_words == (
        "30.0% of verdicts differ from the locked verdicts; chance gives 20.0%"
    )


def test_the_chance_is_an_upper_bound_of_the_exact_one() -> None:
    """Six questions of four deals: all 4,096 ways, and the bound at most six times as large where it is
    small."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        scores = rng.normal(size=(6, 4)) + np.array([1.2, 0.0, 0.0, 0.0])
        totals = np.array([sum(each) for each in itertools.product(*scores.tolist())])
        exact = float(np.mean(totals >= scores[:, 0].sum() - 1e-9))
        bound = permutation_p_bound(scores, np.arange(6))
        assert exact <= bound <= 6.0 * exact + 0.2


def test_items_of_a_question_are_dealt_out_together() -> None:
    then, now = [[0.0] * 3] * 40, [[1.0]] * 10 + [[0.0]] * 30
    alone, together = (same_judge_test(then, now, [place // size for place in range(40)]) for size in (1, 5))
    assert alone is not None and together is not None
    assert alone.p_at_most == pytest.approx(3 * 4.0**-10, rel=0.01)
    assert together.p_at_most == pytest.approx(3 * 4.0**-2, rel=0.01)
    assert alone.changed and not together.changed


def test_an_item_without_a_verdict_in_some_call_is_left_out() -> None:
    found = same_judge_test([[1.0, None], [1.0, 1.0], [None, None]], [[1.0], [0.0], [1.0]], range(3))
    assert found is not None and (found.n, found.between) == (1, 1.0)
    none = same_judge_test([[None, None]], [[1.0]], range(1))
    assert (
        none is not None and (none.n, none.p_at_most) == (0, 1.0) and "no item has a verdict" in none.in_words
    )


def test_a_small_shift_of_noisy_grades_is_seen() -> None:
    """Noise of 10 points hides a shift of 5 from the distances, and not from the mean."""
    rng = np.random.default_rng(2)
    base = rng.uniform(20.0, 70.0, size=(220, 1))
    then, now = base + rng.normal(0, 10, (220, 3)), base + 5.0 + rng.normal(0, 10, (220, 2))
    found = same_judge_test(then.tolist(), now.tolist(), range(220))
    assert found is not None and found.changed and 3.0 < (found.shift or 0.0) < 7.0
    assert "moved by +" in found.in_words
