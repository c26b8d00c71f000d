"""Numbers described, means of one number a row by group, and the interval that draws of the bootstrap make."""

from __future__ import annotations

import math

import numpy as np
import pytest

from judgecal.errors import InputError
from judgecal.stats.intervals import bootstrap_interval, described, mean_estimate

T19 = 2.093024054  # the 97.5% point of t(19)


def test_an_overview_by_hand() -> None:
    # Of four numbers the 90% point lies at place 0.9 * 3 = 2.7 of 0..3: 3 + 0.7; the 95% point at 2.85.
    found = described([4, 1, 3, 2])
    assert list(found) == ["count", "min", "max", "average", "p50", "p90", "p95"]
    assert list(found.values()) == pytest.approx([4, 1.0, 4.0, 2.5, 2.5, 3.7, 3.85])
    assert type(found["count"]) is int and all(type(found[name]) is float for name in list(found)[1:])


def test_an_overview_of_nothing_has_no_numbers() -> None:
    assert described([]) == {
        "count": 0,
        "min": None,
        "max": None,
        "average": None,
        "p50": None,
        "p90": None,
        "p95": None,
    }


def test_a_proportion_on_another_range() -> None:
    # Ten rows of 0 and ten of 100, each its own group: design effect 20 / 19, so 19 count; Wilson's interval of a
    # half on n is 1/2 -+ t / (2 sqrt(n + t^2)).
    found = mean_estimate([0.0, 100.0] * 10, range(20), high=100.0)
    half = 50.0 * T19 / math.sqrt(19.0 + T19**2)
    assert (found.value, found.low, found.high) == pytest.approx((50.0, 50.0 - half, 50.0 + half))
    assert found.method == "Wilson, effective n, t(19)" and found.reason is None
    # In a wider range the same numbers are no proportion: linearised, an influence of 50 / 20 a group.
    wider = mean_estimate([0.0, 100.0] * 10, range(20), low=-100.0, high=200.0)
    half = T19 * math.sqrt(20 * (50 / 20) ** 2 * 20 / 19)
    assert (wider.low, wider.high) == pytest.approx((50.0 - half, 50.0 + half))
    assert wider.method == "linearised by group, t(19)"


def test_rows_come_in_any_order_and_some_have_no_number() -> None:
    values = [float(number) for number in range(24)]
    groups = [f"q{number // 2}" for number in range(24)]
    found = mean_estimate(values, groups, high=30.0, level=0.9)
    order = np.random.default_rng(1).permutation(24).tolist()
    again = mean_estimate(
        [math.nan, *(values[i] for i in order)], ["lost", *(groups[i] for i in order)], high=30.0, level=0.9
    )
    # 12 groups of two: sums 1, 5, ... 45, mean 23, sum of squares 16 * 143 = 2288; t(11) at 90% is 1.795885.
    half = 1.795884819 * math.sqrt(2288 / 24**2 * 12 / 11)
    for one in (found, again):
        assert (one.value, one.low, one.high) == pytest.approx((11.5, 11.5 - half, 11.5 + half))
        assert (one.n, one.n_groups, one.level) == (24, 12, 0.9)
    assert (found.n_expected, again.n_expected) == (24, 25)


def test_a_mean_of_few_groups_or_of_nothing_says_so() -> None:
    one = mean_estimate([0.25, 0.75], ["a", "a"], level=0.9)
    assert (one.value, one.low, one.reason) == (0.5, None, "1 group: fewer than 10 give no interval")
    nine, ten = (mean_estimate([0.0, 1.0] * n, [*range(n), *range(n)]) for n in (9, 10))
    assert nine.low is None and nine.reason == "9 groups: fewer than 10 give no interval"
    assert ten.low is not None and ten.reason is None
    nothing = mean_estimate([math.nan, math.nan], ["a", "b"], level=0.9)
    assert (nothing.value, nothing.n, nothing.n_expected, nothing.level) == (None, 0, 2, 0.9)
    assert nothing.reason == "no rows to take a mean of"
    with pytest.raises(InputError, match="level is 95"):
        mean_estimate([1.0], ["a"], level=95.0)


def test_an_interval_of_draws_by_hand() -> None:
    # 101 draws 0.00, 0.01 ... 1.00: 5% of them lie below 0.05 and above 0.95.
    draws = np.arange(101) / 100
    found = bootstrap_interval(draws[::-1], level=0.9)
    assert (found.low, found.high) == pytest.approx((0.05, 0.95))
    assert (found.method, found.reason) == ("cluster bootstrap, 101 draws", None)


def test_draws_without_a_value_are_told_and_are_not_too_many() -> None:
    draws = np.arange(100) / 100
    draws[:5] = np.nan
    found = bootstrap_interval(draws, level=0.9)  # of 0.05 ... 0.99: 5% of 94 steps in from either end
    assert (found.low, found.high) == pytest.approx((0.05 + 0.047, 0.99 - 0.047))
    assert found.method == "cluster bootstrap, 100 draws (5.0% undefined)"
    draws[5] = np.nan
    found = bootstrap_interval(draws, level=0.9)
    assert (found.low, found.high, found.method) == (None, None, "")
    assert found.reason == "undefined in 6.0% of the bootstrap draws"
    assert bootstrap_interval(np.empty(0), level=0.9).reason == "undefined in 100.0% of the bootstrap draws"
    assert bootstrap_interval(np.full(9, 0.5), level=0.9).reason == (
        "no spread between groups to make an interval from"
    )
