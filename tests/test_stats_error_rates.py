"""Error rates carried over: known values, intervals that hold at every base rate, and what contradicts
them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import chi2

from judgecal.records import Estimate
from judgecal.stats.error_rates import carried_rate, effective_n, limits_around, shift_p
from judgecal.stats.intervals import t_quantile, wilson


def rate(value: float, n: int, *, level: float = 0.95) -> Estimate:
    low, high = wilson(value, n, t_quantile(level, n - 1.0))
    return Estimate(value, low, high, level, n=n, n_expected=n, n_groups=n)


def test_known_value() -> None:
    # Rogan and Gladen: 0.5 passes, sensitivity 0.9, specificity 0.8: (0.5 + 0.8 - 1) / (0.9 + 0.8 - 1)
    found = carried_rate(rate(0.5, 400), rate(0.9, 100), rate(0.8, 100))
    assert found.estimate.value == pytest.approx(3.0 / 7.0)


def exact(value: float) -> Estimate:
    return Estimate(value, value, value, n=10_000, n_expected=10_000, n_groups=10_000)


def ends(*rates: Estimate) -> tuple[float, float]:
    found = carried_rate(*rates).estimate
    assert found.low is not None and found.high is not None and found.method.startswith("Rogan-Gladen")
    return found.low, found.high


STEP = 2.001 / 4000  # ends are rounded outwards to the next of 4,000 steps


def test_one_uncertain_rate_carries_its_own_limits_over() -> None:
    """With two rates exact the ends are the corrected rates of the third one's ends, whichever it is."""
    p, s, c = rate(0.5, 400), rate(0.9, 60), rate(0.8, 60)
    by_raw = [((end or 0.0) - 0.2) / 0.7 for end in (p.low, p.high)]
    assert ends(p, exact(0.9), exact(0.8)) == pytest.approx(by_raw, abs=STEP)
    by_sensitivity = [0.3 / ((end or 0.0) - 0.2) for end in (s.high, s.low)]
    assert ends(exact(0.5), s, exact(0.8)) == pytest.approx(by_sensitivity, abs=STEP)
    by_specificity = [((end or 0.0) - 0.5) / ((end or 0.0) - 0.1) for end in (c.low, c.high)]
    low, high = ends(exact(0.5), exact(0.9), c)
    assert (low, high) == pytest.approx(by_specificity, abs=STEP)
    assert low <= by_specificity[0] and high >= by_specificity[1]


def test_three_uncertain_rates_add_their_squares() -> None:
    p, s, c = rate(0.5, 400), rate(0.9, 60), rate(0.8, 60)

    def spare(share: float, p_end: float, s_end: float, c_end: float) -> float:
        apart = 0.5 - share * 0.9 - (1.0 - share) * 0.2
        parts = (p_end - 0.5, share * (s_end - 0.9), (1.0 - share) * (c_end - 0.8))
        return apart**2 - sum(part**2 for part in parts)

    lowest = brentq(spare, 0.1, 3 / 7, args=(p.low, s.high, c.low))
    highest = brentq(spare, 3 / 7, 0.9, args=(p.high, s.low, c.high))
    assert ends(p, s, c) == pytest.approx((lowest, highest), abs=STEP)


def test_the_worth_of_an_interval_in_trials() -> None:
    assert effective_n(rate(0.3, 40)) == pytest.approx(40.0)
    assert effective_n(rate(1.0, 25, level=0.9)) == pytest.approx(25.0)
    two = replace(rate(0.3, 40), n_groups=2)  # the same limits by t(1) are worth many more
    assert effective_n(two) == pytest.approx(40.0 * (t_quantile(0.95, 1) / t_quantile(0.95, 39)) ** 2)
    assert effective_n(replace(two, n_groups=1)) == effective_n(two)
    assert effective_n(exact(0.4)) == effective_n(exact(1.0)) == math.inf


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
    assert limits_around(own, 0.95) == pytest.approx(told)


def test_two_rates_of_the_sample_are_enough_to_contradict() -> None:
    """A judge that passes most and is mostly wrong there, locked as one that is right, whatever it fails."""
    bare = Estimate(0.2, reason="4 items of the class")
    sample = {"passing": rate(0.9, 900), "precision": rate(0.3, 100), "missed": bare}
    assert (shift_p(rate(0.9, 100), rate(0.8, 100), **sample) or 0.0) < 0.05


@pytest.mark.parametrize("precision", [0.9, 0.8])
def test_a_contradiction_by_a_likelihood_ratio(precision: float) -> None:
    """The lock's rates hardly vary: the share that is right alone is free, as many rates less one are left."""
    s, c, n, sizes = 0.9, 0.8, 10**7, (800, 90, 60)
    seen = {"passing": rate(0.6, 800), "precision": rate(precision, 90), "missed": rate(0.2, 60)}

    def ratio(t: float) -> float:
        p = t * s + (1 - t) * (1 - c)
        pairs = zip((0.6, precision, 0.2), (p, t * s / p, t * (1 - s) / (1 - p)), sizes, strict=True)
        return 2 * sum(n * (r * math.log(r / e) + (1 - r) * math.log((1 - r) / (1 - e))) for r, e, n in pairs)

    locked = rate(s, n), rate(c, n)

    def missed(t: float) -> float:
        e = t * (1 - s) / (1 - t * s - (1 - t) * (1 - c))
        return 2 * 60 * (0.2 * math.log(0.2 / e) + 0.8 * math.log(0.8 / (1 - e)))

    least = minimize_scalar(ratio, bounds=(0.05, 0.95), method="bounded", options={"xatol": 1e-9}).fun
    assert shift_p(*locked, **seen) == pytest.approx(chi2.sf(least, 2), rel=2e-3)
    without = shift_p(*locked, **{**seen, "missed": replace(seen["missed"], low=None)})
    two = minimize_scalar(
        lambda t: ratio(t) - missed(t), bounds=(0.05, 0.95), method="bounded", options={"xatol": 1e-9}
    ).fun
    assert without == pytest.approx(chi2.sf(two, 1), rel=2e-3)
