"""Numbers described, means of one number a row by group, and the interval that draws of the bootstrap
make."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from judgecal.rag.evaluation.summary import number_summary
from judgecal.stats.intervals import IntervalBasis, mean_estimate, smooth_interval

T19 = 2.093024054  # the 97.5% point of t(19)


def test_an_overview_by_hand() -> None:
    # Of four numbers the 90% point lies at place 0.9 * 3 = 2.7 of 0..3: 3 + 0.7; the 95% point at 2.85.
    found = number_summary([4, 1, 3, 2])
    assert list(found) == ["count", "min", "max", "average", "p50", "p90", "p95"]
    assert list(found.values()) == pytest.approx([4, 1.0, 4.0, 2.5, 2.5, 3.7, 3.85])
    assert type(found["count"]) is int and all(type(found[name]) is float for name in list(found)[1:])


def test_an_overview_of_nothing_has_no_numbers() -> None:
    assert number_summary([]) == {
        "count": 0, "min": None, "max": None, "average": None, "p50": None, "p90": None, "p95": None,
    }  # fmt: skip


def test_a_proportion_on_another_range() -> None:
    # Ten rows of 0 and ten of 100, each its own group: design effect 20 / 19, so 19 count; Wilson's interval
    # of a half on n is 1/2 -+ t / (2 sqrt(n + t^2)).
    found = mean_estimate([0.0, 100.0] * 10, range(20), high=100.0)
    half = 50.0 * T19 / math.sqrt(19.0 + T19**2)
    assert (found.value, found.low, found.high) == pytest.approx((50.0, 50.0 - half, 50.0 + half))
    assert found.method == "Wilson, effective n, t(19)" and found.reason is None
    # In a wider range the same numbers are no proportion: linearised, an influence of 50 / 20 a group, on the
    # logit of the middle of the range, 300 * tanh(z / 2) / 2 from it at z, where the derivative is 4 / 300.
    wider = mean_estimate([0.0, 100.0] * 10, range(20), low=-100.0, high=200.0)
    half = 150.0 * math.tanh(T19 * math.sqrt(20 * (50 / 20) ** 2 * 20 / 19) * 4.0 / 300.0 / 2.0)
    assert (wider.low, wider.high) == pytest.approx((50.0 - half, 50.0 + half))
    assert wider.method == "linearised by group, logit, t(19)"


def test_rows_come_in_any_order_and_some_have_no_number() -> None:
    values = [float(number) for number in range(24)]
    groups = [f"q{number // 2}" for number in range(24)]
    found = mean_estimate(values, groups, high=30.0, level=0.9)
    order = np.random.default_rng(1).permutation(24).tolist()
    again = mean_estimate(
        [math.nan, *(values[i] for i in order)], ["lost", *(groups[i] for i in order)], high=30.0, level=0.9
    )
    # 12 groups of two: sums 1, 5, ... 45, mean 23, sum of squares 16 * 143 = 2288; t(11) at 90% is 1.795885.
    # On the logit of 11.5 in 0..30, with a derivative of 30 / (11.5 * 18.5).
    half = 1.795884819 * math.sqrt(2288 / 24**2 * 12 / 11) * 30.0 / (11.5 * 18.5)
    ends = [30.0 / (1.0 + 18.5 / 11.5 * math.exp(-side * half)) for side in (-1, 1)]
    for one in (found, again):
        assert (one.value, one.low, one.high) == pytest.approx((11.5, *ends))
        assert (one.n, one.n_groups, one.level) == (24, 12, 0.9)
    assert (found.n_expected, again.n_expected) == (24, 25)


def test_a_smooth_interval_keeps_to_its_range_and_tells_its_scale() -> None:
    even = np.array([1.0, -1.0] * 10) / 20.0
    unbounded = smooth_interval(0.9, even, IntervalBasis("made", -math.inf, math.inf, 20), level=0.95)
    half = T19 * math.sqrt(21 / 19 * 20 / 19 * 20 / 400)  # nothing ends it below: (G + 1) / (G - 1) more
    assert (unbounded.low, unbounded.high) == pytest.approx((0.9 - half, 0.9 + half))
    assert unbounded.method == "made, t(19)"
    below = smooth_interval(0.9, even, IntervalBasis("made", -math.inf, 1.0, 20), level=0.95)
    assert below.method == "made, log, t(19)" and below.low is not None and below.high is not None
    assert 1.0 - below.low == pytest.approx(0.1 * math.exp(half / 0.1)) and below.high < 1.0
    far = smooth_interval(1.0 - 1e-6, even, IntervalBasis("made", -math.inf, 1.0, 20), level=0.95)
    assert far.low is not None and math.isfinite(far.low)  # the exponent of 5e5 has no number
    inside = smooth_interval(0.9, even, IntervalBasis("made", -1.0, 1.0, 20), level=0.95)
    assert inside.low is not None and inside.high is not None and -1.0 < inside.low < 0.9 < inside.high < 1.0


def test_a_weighted_mean_rests_on_the_groups_that_carry_it() -> None:
    """All labels alike, and one group with most of the weight: the interval is that of few groups."""
    groups = [f"g{n}" for n in range(12)]
    even, heavy = (
        mean_estimate([1.0] * 12, groups, weights=np.array([1.0] * 11 + [last])) for last in (1.0, 50.0)
    )
    assert even == replace(mean_estimate([1.0] * 12, groups), method=even.method)
    assert even.low is not None and heavy.low is not None and heavy.low < even.low - 0.3
    values = [0.0, 1.0] * 6
    tilted = mean_estimate(values, groups, weights=np.array([1.0, 3.0] * 6))
    assert tilted.value == pytest.approx(0.75) and tilted.method.startswith("weighted by the draw")
