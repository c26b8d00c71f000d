"""The paired difference of two judges."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import stdtrit
from scipy.stats import spearmanr

from judgecal.scale import Scale
from judgecal.stats import agreement, compare_paired
from judgecal.stats.paired import _combined
from tests.support.two_judges import labels


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize(
    "metric",
    ["macro_agreement", "mean_agreement", "mae", "bias", "rmse", "skill", "kappa@50", "tpr@50", "spearman"],
)
def test_difference_is_a_minus_b(metric: str) -> None:
    gold, a, b = labels(120)
    scale = Scale.parse("percentage", pass_at=50)
    groups = [i // 3 for i in range(120)]
    found = compare_paired(gold, a, b, scale=scale, metric=metric, groups=groups)
    one, two = (
        agreement(gold, judge, scale=scale, metrics=[metric], groups=groups)[metric] for judge in (a, b)
    )
    assert found.difference.value == pytest.approx((one.value or 0) - (two.value or 0))
    assert found.difference.n == one.n and found.difference.n_groups == one.n_groups
    back = compare_paired(gold, b, a, scale=scale, metric=metric, groups=groups)
    assert back.difference.value == pytest.approx(-(found.difference.value or 0))
    assert (back.difference.low, back.difference.high) == pytest.approx(
        (-(found.difference.high or 0), -(found.difference.low or 0))
    )
    assert back.p_value == found.p_value
    if metric != "bias":
        assert found.difference.clear_of_zero and found.p_value is not None and found.p_value < 0.02


def test_unscored() -> None:
    gold = [1, 0] * 10
    a, b = list(gold), list(gold)
    a[0] = a[3] = b[3] = None  # type: ignore[call-overload]
    wrong = compare_paired(gold, a, b, scale="binary").difference
    # a has 9/10 and 9/10, b 1 and 9/10.
    assert wrong.value == pytest.approx(-0.05)
    assert (wrong.n, wrong.n_expected, wrong.n_unscored) == (20, 20, 2)
    drop = compare_paired(gold, a, b, scale="binary", unscored="drop").difference
    assert (drop.value, drop.n, drop.n_expected, drop.n_unscored) == (0.0, 18, 20, 2)


def test_the_same_difference_everywhere_keeps_a_width() -> None:
    gold = [float(i) for i in range(20)]
    found = compare_paired(gold, gold, [g + 10 for g in gold], scale="percentage", metric="mae")
    # No spread: the error is that of two groups of 20 that differ by 10, sqrt(2) 10 / 20 with 20 / 19.
    assert found.difference.value == pytest.approx(-10.0)
    assert found.difference.high == pytest.approx(
        -10 + 2.093024054 * np.sqrt(2 * 20 / 19) * 10 / 20, abs=1e-6
    )
    assert found.p_value == pytest.approx(1 / 10_001)
    spearman = compare_paired(gold, gold, gold[::-1], scale="percentage", metric="spearman")
    # Left out or not, rho is 1 and -1: that of one more group without a difference, 2 / 21.
    assert spearman.difference.low == pytest.approx(2 - 2.093024054 * 2 / 21, abs=1e-6)


def test_a_stratum_has_the_spread_of_two_groups_that_differ() -> None:
    # 30 pass and 12 fail. The judges differ on three that pass, and on one that fails.
    gold, judge = [1] * 30 + [0] * 12, [1] * 30 + [0] * 12
    other = [0] * 3 + [1] * 27 + [1] + [0] * 11
    found = compare_paired(gold, judge, other, scale="binary")
    # Variances of the halves: passes 0.1 * 0.9 / 29; fails sqrt(2) / 12 instead of sqrt(1 / 12 * 11 / 12 /
    # 11), as one more group that differs by 1 item is no proof; 12 / 11 as ever.
    passes, fails = 0.25 * 0.09 / 29, 0.25 * 2 / 144 * 12 / 11
    df = (passes + fails) ** 2 / (passes**2 / 29 + fails**2 / 11)
    assert found.difference.value == pytest.approx((0.1 + 1 / 12) / 2)
    half = stdtrit(df, 0.975) * np.sqrt(passes + fails)
    assert found.difference.high == pytest.approx((0.1 + 1 / 12) / 2 + half, abs=1e-9)
    assert [(one.name, one.n, one.n_all) for one in found.strata] == [("fail", 12, 42), ("pass", 30, 42)]
    assert found.strata[0].share == pytest.approx(fails / (passes + fails))


def test_groups_whose_differences_cancel_are_no_proof_that_the_judges_are_alike() -> None:
    # In each of 12 questions a alone passes the pass, b alone fails the fail: +1 in one class, -1 in the
    # other.
    gold = [1, 0] * 12
    found = compare_paired(gold, [1, 1] * 12, [0, 0] * 12, scale="binary", groups=[i // 2 for i in range(24)])
    assert found.difference.value == 0.0 and found.p_value == 1.0
    assert found.difference.high is not None and found.difference.high > 0.1


def test_the_more_cautious_of_interval_and_p_holds() -> None:
    # b is off by one more on 5 of 10 items. t = 0.5 / (0.527 / sqrt(10)) = 3.0: the interval is clear of 0.
    # But all five on one side come up in 2 of 32 patterns of signs: p = 0.0625.
    gold, off = [50.0] * 10, [51.0] * 5 + [50.0] * 5
    found = compare_paired(gold, gold, off, scale="percentage", metric="mae")
    assert (found.p_value, found.difference.high) == (0.0625, 0.0)
    assert found.difference.low == pytest.approx(-0.5 - 2.262157163 * np.sqrt(0.25 / 9), abs=1e-8)
    assert found.difference.method == "linearised by group, t(9), drawn to 0 as p is not below 0.05"
    alone = compare_paired(gold, gold, off, scale="percentage", metric="mae", n_perm=1).difference
    assert alone.high == pytest.approx(-0.5 + 2.262157163 * np.sqrt(0.25 / 9), abs=1e-8)
    assert compare_paired(
        gold, gold, off, scale="percentage", metric="mae", level=0.9
    ).difference.clear_of_zero


def test_signs_that_are_surer_than_the_interval_take_its_p() -> None:
    # Six of 12 groups differ, all one way and one of them by far: 2 of 64 patterns, and no t to speak of.
    gold, off = [50.0] * 12, [51.0] * 5 + [80.0] + [50.0] * 6

    def p(n_perm: int, level: float = 0.95) -> float:
        options = {"scale": "percentage", "metric": "mae", "n_perm": n_perm, "level": level}
        return compare_paired(gold, off, gold, **options).p_value or 0.0  # type: ignore[arg-type]

    assert p(19) == p(10_000, 1 - 2 / 64) == 2 / 64  # too few draws for the level; at the level itself
    assert p(20) == p(10_000) > 0.05


def test_a_further_error_joins_with_its_degrees_of_freedom() -> None:
    # 3 on 4 and 4 on 9: sqrt(9 + 16) = 5 on 25^2 / (81 / 4 + 256 / 9) = 625 / 48.694 (Satterthwaite).
    assert _combined((3.0, 4.0), (4.0, 9.0)) == pytest.approx((5.0, 625 / (81 / 4 + 256 / 9)))
    assert _combined((3.0, 4.0), (0.0, 1.0)) == (3.0, 4.0)


@pytest.mark.parametrize("metric", ["mae", "spearman"])
def test_the_errors_of_a_plan_by_hand(metric: str) -> None:
    """Of each judge and of the difference, and how much a differing group adds: sum p^2 / sum |p| of its parts."""
    gold, a, b = labels(24)
    found = compare_paired(gold, a, b, scale="percentage", metric=metric)
    if metric == "mae":
        off = [np.abs(np.array(side) - gold) for side in (a, b)]
        errors = [one.std() / np.sqrt(23) for one in (*off, off[0] - off[1])]
        parts, least = (off[0] - off[1]) / 24, 100 / 25
    else:
        every = [spearmanr(gold, side).statistic for side in (a, b)]
        left = [
            np.array([spearmanr(np.delete(gold, at), np.delete(side, at)).statistic for at in range(24)])
            for side in (a, b)
        ]
        errors = [np.sqrt(23) * one.std() for one in (*left, left[0] - left[1])]
        without = left[0] - left[1]
        parts, least = (every[0] - every[1]) / 24 + 23 / 24 * (without.mean() - without), 1 / 25
    assert found.errors == pytest.approx((max(errors[0], least), max(errors[1], least), errors[2], 23.0))
    assert found.step == pytest.approx((parts**2).sum() / np.abs(parts).sum())
    same = compare_paired(gold, a, a, scale="percentage", metric=metric)
    assert same.step == pytest.approx(100 / 24 if metric == "mae" else 1 / 24)
    assert (same.difference.low, same.difference.high, same.p_value) == (0.0, 0.0, 1.0)
