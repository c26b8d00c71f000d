"""Error rates carried over: known values, intervals that hold at every base rate, and what contradicts
them."""

from __future__ import annotations

import numpy as np
import pytest

from judgecal.records import Estimate
from judgecal.stats.error_rates import carried_rate, limits_around, shift_p
from judgecal.stats.intervals import mean_estimate, t_quantile, wilson


def rate(value: float, n: int, *, level: float = 0.95) -> Estimate:
    low, high = wilson(value, n, t_quantile(level, n - 1.0))
    return Estimate(value, low, high, level, n=n, n_expected=n, n_groups=n)


def test_known_value() -> None:
    # Rogan and Gladen: 0.5 passes, sensitivity 0.9, specificity 0.8: (0.5 + 0.8 - 1) / (0.9 + 0.8 - 1)
    found = carried_rate(rate(0.5, 400), rate(0.9, 100), rate(0.8, 100))
    assert found.estimate.value == pytest.approx(3.0 / 7.0)
    low, high = found.estimate.low, found.estimate.high
    assert low is not None and high is not None and 0.25 < low < 0.36 < 0.5 < high < 0.58


def test_a_perfect_judge_leaves_the_raw_interval() -> None:
    sure = Estimate(1.0, 1.0, 1.0, n=10_000, n_expected=10_000, n_groups=10_000)
    raw = rate(0.3, 200)
    found = carried_rate(raw, sure, sure).estimate
    assert found.value == pytest.approx(0.3)
    assert found.low == pytest.approx(raw.low, abs=0.002) and found.high == pytest.approx(raw.high, abs=0.002)


def test_chance_level_has_no_corrected_rate() -> None:
    found = carried_rate(rate(0.5, 400), rate(0.6, 50), rate(0.4, 50))
    assert found.estimate.value is None and "no better than chance" in (found.estimate.reason or "")


def test_verdicts_that_fit_no_share_are_told() -> None:
    # The judge passes 5% here, and of wrong answers it passed 40% where it was tested.
    found = carried_rate(rate(0.05, 1000), rate(0.9, 100), rate(0.6, 100))
    assert (found.fits, found.estimate.value, found.estimate.low) == (False, 0.0, None)
    assert "no share" in (found.estimate.reason or "")


def test_what_is_missing_is_the_reason() -> None:
    gone = Estimate(None, reason="no scored item of the class")
    assert carried_rate(rate(0.5, 400), gone, rate(0.8, 50)).estimate.reason == gone.reason
    bare = Estimate(0.9, reason="9 groups: fewer than 10 give no interval")
    found = carried_rate(rate(0.5, 400), bare, rate(0.8, 50)).estimate
    assert (
        found.value is not None
        and found.low is None
        and "the sensitivity has no interval" in (found.reason or "")
    )


@pytest.mark.parametrize("value", [0.0, 0.3, 0.9, 1.0])
def test_limits_at_another_level(value: float) -> None:
    told = limits_around(rate(value, 40, level=0.97), 0.95)
    own = rate(value, 40)
    assert told == pytest.approx((value, value - (own.low or 0.0), (own.high or 0.0) - value))


@pytest.mark.parametrize("true", [0.05, 0.95])
@pytest.mark.parametrize("rates", [(0.95, 0.9), (0.7, 0.6)])
def test_intervals_hold_near_the_ends(true: float, rates: tuple[float, float]) -> None:
    rng, held = np.random.default_rng(1), 0
    for _ in range(200):
        right = rng.random(800) < true
        passed = rng.random(800) < np.where(right, rates[0], 1.0 - rates[1])
        known = [mean_estimate((rng.random(25) < one).astype(np.float64), range(25)) for one in rates]
        found = carried_rate(mean_estimate(passed.astype(np.float64), range(800)), *known).estimate
        held += found.low is None or (found.low <= true <= (found.high or 0.0))
    assert held >= 0.91 * 200


def test_a_share_that_may_be_none_has_an_interval_from_nought() -> None:
    passed, right, wrong = (np.repeat([1.0, 0.0], n) for n in ((6, 94), (90, 10), (95, 5)))
    found = carried_rate(*(mean_estimate(rows, range(100)) for rows in (passed, right, wrong))).estimate
    assert found.low == 0.0 and found.high is not None and found.high < 0.1


def test_a_shift_is_seen_and_none_is_not() -> None:
    rng = np.random.default_rng(2)

    def said(by: float) -> float:
        seen = 0
        for _ in range(60):
            then = [
                mean_estimate((rng.random(150) < one).astype(np.float64), range(150)) for one in (0.9, 0.8)
            ]
            right = rng.random(1000) < 0.7
            passes = rng.random(1000) < np.where(right, 0.9 - by, 0.2 + by)
            # half of the labels where the judge fails, which is rarer: by their verdicts they are as any
            # others
            given = [
                mean_estimate(right[passes == side][:100].astype(np.float64), range(100))
                for side in (True, False)
            ]
            table = mean_estimate(passes.astype(np.float64), range(1000))
            seen += (shift_p(*then, passing=table, precision=given[0], missed=given[1]) or 0.0) < 0.05
        return seen / 60

    assert said(0.15) >= 0.8
    assert said(0.0) <= 0.1


def test_two_rates_of_the_sample_are_enough_to_contradict() -> None:
    """A judge that passes most and is mostly wrong there, locked as one that is right, whatever it fails."""
    bare = Estimate(0.2, reason="4 items of the class")
    sample = {"passing": rate(0.9, 900), "precision": rate(0.3, 100), "missed": bare}
    assert (shift_p(rate(0.9, 100), rate(0.8, 100), **sample) or 0.0) < 0.05


def test_too_few_labels_cannot_contradict() -> None:
    bare = Estimate(0.2, reason="4 items of the class")
    sample = {"passing": rate(0.7, 900), "precision": bare, "missed": bare}
    assert shift_p(rate(0.9, 100), rate(0.8, 100), **sample) is None
