"""The paired difference of two judges."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from judgecal.errors import InputError
from judgecal.scale import Scale
from judgecal.stats import agreement, compare_paired
from judgecal.stats.paired import _combined
from tests.benchmarks.coverage import false_alarms
from tests.support.two_judges import labels


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize(
    "metric", ["macro_agreement", "mean_agreement", "mae", "bias", "rmse", "skill", "kappa@50", "tpr@50", "spearman"]
)
def test_difference_is_a_minus_b(metric: str) -> None:
    gold, a, b = labels(120)
    scale = Scale.parse("percentage", pass_at=50)
    groups = [i // 3 for i in range(120)]
    found = compare_paired(gold, a, b, scale=scale, metric=metric, groups=groups)
    one, two = (agreement(gold, judge, scale=scale, metrics=[metric], groups=groups)[metric] for judge in (a, b))
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


def test_identical_judges() -> None:
    gold, a, _ = labels(20)
    scale = Scale.parse("percentage", pass_at=50)
    for metric in ("macro_agreement", "kappa@50", "concordance", "rmse"):
        found = compare_paired(gold, a, a, scale=scale, metric=metric)
        assert (found.difference.value, found.difference.low, found.difference.high) == (0.0, 0.0, 0.0), metric
        assert found.p_value == 1.0 and not found.difference.clear_of_zero


def test_few_groups() -> None:
    gold, a, b = labels(18)
    for metric in ("mae", "concordance"):
        found = compare_paired(gold, a, b, scale="percentage", metric=metric, groups=[i % 9 for i in range(18)])
        assert found.difference.value is not None and found.difference.low is None and found.p_value is None
        assert "fewer than 10" in (found.difference.reason or "")


def test_undefined() -> None:
    found = compare_paired([1] * 12, [1] * 12, [0, 1] * 6, scale="binary", metric="kappa")
    assert found.difference.value is None and found.p_value is None and found.difference.reason
    found = compare_paired([1] * 12, [1] * 12, [0, 1] * 6, scale="binary")
    assert found.difference.value is None and "one stratum" in (found.difference.reason or "")
    assert compare_paired([], [], [], scale="binary").difference.reason == "no labelled items"


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


def test_judges_on_their_own_scales() -> None:
    gold = [1, 0] * 10
    percent, yes_no = [80, 30] * 10, [1, 0] * 10
    found = compare_paired(gold, percent, yes_no, scale="binary", a_scale="percentage")
    assert found.difference.value == pytest.approx(0.75 - 1.0)
    with pytest.raises(InputError, match="in units of"):
        compare_paired(gold, percent, yes_no, scale="binary", a_scale="percentage", metric="mae")


def test_the_same_difference_everywhere_keeps_a_width() -> None:
    gold = [float(i) for i in range(20)]
    found = compare_paired(gold, gold, [g + 10 for g in gold], scale="percentage", metric="mae")
    # No spread: the error is that of one more group without a difference, 10 / 21.
    assert found.difference.value == pytest.approx(-10.0)
    assert found.difference.high == pytest.approx(-10 + 2.093024054 * 10 / 21, abs=1e-6)
    assert found.p_value == pytest.approx(1 / 10_001)


def test_small_stratum_takes_its_degrees_of_freedom() -> None:
    rng = np.random.default_rng(0)
    gold = np.array([100.0] * 40 + [0.0] * 3)
    a, b = (np.abs(gold - rng.integers(0, 40, 43)) for _ in range(2))
    found = compare_paired(gold, a, b, scale="percentage").difference
    assert found.method.startswith("linearised by group, t(2.")
    # One item at 0: its stratum takes the variance per item of the forty at 100, v: half of each, so
    # se^2 = (v / 40 + v) / 4, on 39 degrees of freedom (t = 2.022691).
    lone = compare_paired(gold[:41], a[:41], b[:41], scale="percentage").difference
    v = np.var((b[:40] - 100) / 100 - (a[:40] - 100) / 100, ddof=1)
    half = 2.022690920 * np.sqrt((v / 40 + v) / 4)
    assert lone.high is not None and lone.low is not None and lone.value is not None
    assert lone.high - lone.value == pytest.approx(half, abs=1e-8)
    levels = agreement(gold[:41], a[:41], scale="percentage")["macro_agreement"]
    assert levels.low is not None and levels.high is not None and levels.high - levels.low > 0.1


def test_false_alarms_in_small() -> None:
    held, low_p = false_alarms(33, 0.85, graded=True, reps=200, seed=3)
    assert held >= 0.90 and low_p <= 0.10


def test_the_level_of_a_difference() -> None:
    gold, a, b = labels(40)
    wide, narrow = (compare_paired(gold, a, b, scale="percentage", level=x).difference for x in (0.95, 0.9))
    assert (wide.level, narrow.level) == (0.95, 0.9) and wide.method == narrow.method == (
        "linearised by group, t(" + wide.method.partition("t(")[2]
    )
    assert wide.low is not None and narrow.low is not None and wide.value is not None
    assert wide.low < narrow.low < wide.value


def test_a_further_error_joins_with_its_degrees_of_freedom() -> None:
    # 3 on 4 and 4 on 9: sqrt(9 + 16) = 5 on 25^2 / (81 / 4 + 256 / 9) = 625 / 48.694 (Satterthwaite).
    assert _combined((3.0, 4.0), (4.0, 9.0)) == pytest.approx((5.0, 625 / (81 / 4 + 256 / 9)))
    assert _combined((3.0, 4.0), (0.0, 1.0)) == (3.0, 4.0)


@pytest.mark.parametrize(
    ("metric", "made"), [("macro_agreement", "linearised by group"), ("spearman", "jackknife by group")]
)
def test_no_difference_is_told_in_full(metric: str, made: str) -> None:
    gold, a, _ = labels(20)
    found = compare_paired(gold, a, a, scale="percentage", metric=metric)
    assert found.difference.method == f"{made}, no difference anywhere"
    assert (found.p_value, found.method) == (1.0, "no difference in any group")
    assert (found.difference.value, found.difference.low, found.difference.high) == (0.0, 0.0, 0.0)


def test_a_coefficient_that_hangs_on_one_group_has_no_interval() -> None:
    # One item fails: without it all labels and verdicts are equal, and kappa is undefined.
    gold = [1] * 11 + [0]
    found = compare_paired(gold, gold, [1] * 12, scale="binary", metric="kappa")
    assert (found.difference.value, found.difference.low, found.p_value) == (1.0, None, None)
    assert found.difference.reason == "undefined without one of the groups"


@pytest.mark.parametrize("turned", [False, True])
def test_a_judge_without_a_value_has_no_difference(turned: bool) -> None:
    gold, a, b = [0] * 12, [0] * 12, [1] + [0] * 11  # only b passes anything
    sides = (b, a) if turned else (a, b)
    found = compare_paired(gold, *sides, scale="binary", metric="f1").difference
    assert (found.value, found.reason) == (None, "no scored item passes by label or verdict")
