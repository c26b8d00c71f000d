"""Slices: what differs from the rest is called out, what only looks as if it did is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import hypergeom, kurtosis, norm, pearson3, t

from judgecal.errors import InputError
from judgecal.stats.intervals import mean_estimate
from judgecal.stats.significance import slices

N = 100
GROUPS = np.repeat(np.arange(N), 3)  # 100 questions of three answers
RNG = np.random.default_rng(7)
ERRORS = (RNG.random(3 * N) < 0.13).astype(float)


def of_groups(*groups: int) -> np.ndarray:
    return np.isin(GROUPS, groups)


def test_a_slice_that_differs_and_one_that_does_not() -> None:
    errors = ERRORS.copy()
    errors[of_groups(*range(20))] = np.tile([1.0, 0.0, 1.0, 0.0, 0.0], 12)  # 40%
    planted, other, few = slices(
        errors, [of_groups(*range(20)), of_groups(*range(40, 70)), of_groups(*range(9))], GROUPS
    )
    assert planted and other and few is None  # nine questions are no slice
    assert planted.stands_out and planted.p_value < 0.001 and planted.error.value == pytest.approx(0.4)
    assert not other.stands_out and other.p_value > 0.05
    there = of_groups(*range(20))
    assert planted.error == mean_estimate(
        errors[there], GROUPS[there].tolist(), low=0.0, high=1.0, level=0.95
    )
    assert planted.rest == pytest.approx(errors[~there].mean())


def test_a_slice_and_its_rest_are_one_test() -> None:
    """Holm counts what is tested: a slice again, or turned round, costs the others nothing."""
    errors, member = ERRORS.copy(), of_groups(*range(20))
    errors[member] = np.tile([1.0, 0.0, 0.0, 0.0, 1.0, 0.0], 10)  # 33%
    (alone,) = slices(errors, [member], GROUPS)
    assert alone and alone.stands_out
    both = slices(errors, [member, ~member] * 300, GROUPS)
    assert all(one and one.stands_out and one.p_value == pytest.approx(alone.p_value) for one in both)
    noise = [np.repeat(RNG.random(N) < 0.5, 3) for _ in range(2_000)]
    assert not (first := slices(errors, [member, *noise], GROUPS)[0]) or not first.stands_out


def test_ten_right_answers_prove_nothing() -> None:
    """A slice without an error has no spread of its own: that of the whole set counts, and p is nearly exact."""
    errors, groups, member = np.zeros(100), np.arange(100), np.arange(100) < 10
    errors[20:33] = 1.0
    (found,) = slices(errors, [member], groups)
    assert found and not found.stands_out and found.error.value == 0.0 and found.p_value > 0.1
    errors[:6] = 1.0
    (found,) = slices(errors, [member], groups)
    exact = hypergeom(100, 19, 10)
    assert found and 0.5 < found.p_value / (2.0 * (exact.sf(6) + exact.pmf(6) / 2.0)) < 4.0


def test_amounts_with_a_sign_and_what_has_no_verdict() -> None:
    errors = np.random.default_rng(3).normal(0.0, 10.0, 300)
    member = of_groups(*range(30))
    errors[member] -= 15.0
    errors[[0, 299]] = math.nan
    (found,) = slices(errors, [member], GROUPS, low=-100.0, high=100.0)
    assert found and found.stands_out and -18.0 < (found.error.value or 0.0) < -12.0 < -5.0 < found.rest
    assert (found.error.n, found.error.n_expected, found.error.n_unscored) == (89, 90, 1)
    (same,) = slices(np.zeros(300), [member], GROUPS)
    assert same and same.p_value == 1.0 and not same.stands_out
    with pytest.raises(InputError, match="300 errors: give each slice as many"):
        slices(errors, [member[:5]], GROUPS)


@pytest.mark.parametrize(
    "power", [1.0, 4.0]
)  # of amounts with tails hardly longer than normal, and far longer
def test_the_p_of_a_slice_by_hand(power: float) -> None:
    """A gamma distribution with the moments of a random split, its tails brought to those of t."""
    errors = np.random.default_rng(5).gamma(2.0, size=60) ** power
    inside, apart = np.arange(60) % 4 == 0, errors - errors.mean()
    (found,) = slices(errors, [inside], np.arange(60), high=1e9)
    variance = np.mean(apart**2) * (1 / 15 + 1 / 45)
    skew = np.mean(apart**3) * (1 / 15**2 - 1 / 45**2) / variance**1.5
    z = (apart[inside].mean() - apart[~inside].mean()) / math.sqrt(variance * 60 / 59)
    tail = min(pearson3(skew).sf(z), pearson3(skew).cdf(z))
    squares = np.mean(apart**2) ** 2 * (15 / 15**4 + 45 / 45**4) / variance**2
    lacking = kurtosis(errors) * squares - 1.5 * skew**2
    df = min(59.0, 4 + 6 / lacking) if lacking > 0 else 59.0
    assert found and found.p_value == pytest.approx(2 * t(df).cdf(norm.ppf(tail)), rel=1e-6)
    assert found.rest == pytest.approx(errors[~inside].mean())
