"""Paired differences and recalibration."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import ndtr

from judgecal.errors import InputError
from judgecal.scale import Scale
from judgecal.stats import (
    PairedLabels,
    agreement,
    compare_paired,
    recalibrated_agreement,
    recalibrated_difference,
)
from judgecal.stats.calibration import fit_monotone
from judgecal.stats.paired import _combined
from judgecal.stats.significance import sign_flip_p
from tests.benchmarks.coverage import false_alarms


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def labels(n: int, *, seed: int = 0) -> tuple[list[float], list[float], list[float]]:
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 101, n).astype(float)
    a, b = (np.clip(gold + rng.normal(0, sd, n), 0, 100) for sd in (10, 30))
    return gold.tolist(), a.tolist(), b.tolist()


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


def test_identical_judges() -> None:
    gold, a, _ = labels(20)
    scale = Scale.parse("percentage", pass_at=50)
    for metric in ("macro_agreement", "kappa@50", "concordance", "rmse"):
        found = compare_paired(gold, a, a, scale=scale, metric=metric)
        assert (found.difference.value, found.difference.low, found.difference.high) == (0.0, 0.0, 0.0), (
            metric
        )
        assert found.p_value == 1.0 and not found.difference.clear_of_zero


def test_few_groups() -> None:
    gold, a, b = labels(18)
    for metric in ("mae", "concordance"):
        found = compare_paired(
            gold, a, b, scale="percentage", metric=metric, groups=[i % 9 for i in range(18)]
        )
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


def test_sign_flips() -> None:
    # 3 parts of one sign: 2 of 8 patterns reach the sum.
    assert sign_flip_p(np.array([1.0, 2.0, 0.0, 3.0])) == (0.25, "sign flips by group, exact")
    # 0.1 + 0.2 - 0.3 is a tie with 0 in spite of rounding.
    assert sign_flip_p(np.array([0.1, 0.2, -0.3]))[0] == 1.0
    many = np.random.default_rng(0).normal(0.3, 1, 40)
    p, method = sign_flip_p(many, n_perm=4000, seed=1)
    assert p == sign_flip_p(many, n_perm=4000, seed=1)[0] and "4000 draws" in method
    exact = sign_flip_p(many[:16])[0]
    rough = np.mean(
        np.abs(np.random.default_rng(2).choice([-1, 1], (20000, 16)) @ many[:16]) >= abs(many[:16].sum())
    )
    assert exact == pytest.approx(rough, abs=0.015)


def test_false_alarms_in_small() -> None:
    held, low_p = false_alarms(33, 0.85, graded=True, reps=200, seed=3)
    assert held >= 0.90 and low_p <= 0.10


def test_monotone_map() -> None:
    scale = Scale.parse("percentage")
    # Verdict 50 twice with labels 0 and 20, 60 with 0: pooled. Strata: three lows weigh 1/3 each, one high 1.
    knots, mapped = fit_monotone(np.array([50.0, 50.0, 60.0, 90.0]), np.array([0.0, 20.0, 0.0, 100.0]), scale)
    assert knots.tolist() == [50, 60, 90]
    assert mapped.tolist() == pytest.approx([20 / 3, 20 / 3, 100])


def judged(rng: np.random.Generator, n_groups: int, noise: float) -> PairedLabels:
    """People's percentages and two judges that see them through noise; the second snaps to the ends."""

    def latent() -> np.ndarray:
        pair = np.sqrt(0.3) * rng.standard_normal((n_groups, 1))
        return (pair + np.sqrt(0.7) * rng.standard_normal((n_groups, 2))).ravel()

    gold = np.round(10 * ndtr(latent() + 0.6)) * 10
    a, b = (gold / 100 + 0.25 * latent() * size for size in (1.0, noise))
    soft, snapped = np.round(100 * ndtr(2 * (a - 0.5))), np.round(100 * ndtr(6 * (b - 0.5)))
    return PairedLabels(
        gold.tolist(), soft.tolist(), snapped.tolist(), np.repeat(np.arange(n_groups), 2).tolist()
    )


def test_a_gain_by_rescaling_vanishes() -> None:
    """The same worth, another scale: a raw difference nearly always, a recalibrated one in at most ~5%."""
    rng = np.random.default_rng(11)
    raw = recalibrated = 0
    for _ in range(150):
        fit, test = judged(rng, 60, 1.0), judged(rng, 50, 1.0)
        plain = compare_paired(test.gold, test.a, test.b, scale="percentage", groups=test.groups, n_perm=100)
        raw += plain.difference.clear_of_zero
        recalibrated += recalibrated_difference(fit, test, scale="percentage").clear_of_zero
    assert raw > 100 and recalibrated <= 12


def test_a_better_judge_is_still_seen() -> None:
    rng = np.random.default_rng(12)
    seen = 0
    for _ in range(40):
        found = recalibrated_difference(judged(rng, 100, 2.5), judged(rng, 80, 2.5), scale="percentage")
        assert found.value is not None and found.n == found.n_expected == 160
        seen += found.low is not None and found.low > 0
    assert seen >= 32


def test_strict_rescaling_leaves_nothing() -> None:
    gold, a, _ = labels(60)
    part = PairedLabels(gold, a, [v / 2 + 30 for v in a])
    found = recalibrated_difference(part, part, scale="percentage")
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)


def test_recalibration_edges() -> None:
    gold, a, b = labels(60)
    few = PairedLabels(gold[:16], a[:16], b[:16], [i // 2 for i in range(16)])
    whole = PairedLabels(gold, a, b)
    for fit, test in ((few, whole), (whole, few)):
        found = recalibrated_difference(fit, test, scale="percentage")
        assert found.value is not None and found.low is None and "fewer than 10" in (found.reason or "")
    holes = PairedLabels(gold, [None, *a[1:]], b)
    assert recalibrated_difference(holes, whole, scale="percentage").n_unscored == 0
    found = recalibrated_difference(whole, holes, scale="percentage")
    assert (found.n, found.n_unscored) == (60, 1)
    nothing = PairedLabels(gold, [None] * 60, b)
    assert recalibrated_difference(nothing, whole, scale="percentage").value is None
    with pytest.raises(InputError, match="uncut"):
        recalibrated_difference(whole, whole, scale="percentage", metric="pearson")
    passes = PairedLabels([int(g > 50) for g in gold], a, b)
    found = recalibrated_difference(
        passes, passes, scale="binary", a_scale="percentage", b_scale="percentage"
    )
    assert found.value is not None and found.method.startswith("isotonic over 5 folds by group")


def test_the_level_of_a_difference() -> None:
    gold, a, b = labels(40)
    wide, narrow = (compare_paired(gold, a, b, scale="percentage", level=x).difference for x in (0.95, 0.9))
    assert (wide.level, narrow.level) == (0.95, 0.9) and wide.method == narrow.method == (
        "linearised by group, t(" + wide.method.partition("t(")[2]
    )
    assert wide.low is not None and narrow.low is not None and wide.value is not None
    assert wide.low < narrow.low < wide.value


def test_recalibrated_agreement_by_hand() -> None:
    # Five questions, each a fold of its own, with a pass judged 60 and a fail judged 40; the first has a fail judged
    # 80 too. Its own map, fitted without it, takes 40 to 0 and 60 and above to 100. The maps of the others see that
    # fail: a fifth of the fails against all passes, pooled to 100 / 1.2, so their passes are 5/6 right.
    # Passes: (1 + 4 * 5/6) / 5 = 13/15; fails: 5 of 6. Their mean is 0.85.
    gold, judge, groups = [100, 0] * 5 + [0], [60, 40] * 5 + [80], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 0]
    for seed in range(3):
        found = recalibrated_agreement(gold, judge, scale="percentage", groups=groups, level=0.9, seed=seed)
        assert found.value == pytest.approx(0.85)
        assert (found.n, found.n_groups, found.level, found.low) == (11, 5, 0.9, None)
    # In units of the scale: (4 * 100/6 + 100) / 11.
    error = recalibrated_agreement(gold, judge, scale="percentage", groups=groups, metric="mae")
    assert error.value == pytest.approx((400 / 6 + 100) / 11)


def test_recalibrated_agreement_counts_what_is_missing_as_farthest() -> None:
    # Labels 1 and 0 judged 3 and 2 of 0..4: told apart without fail, but for one pass that has no verdict.
    gold: list[int | None] = [1, 0] * 10
    judge: list[int | None] = [3, 2] * 10
    judge[0] = None
    found = recalibrated_agreement(gold, judge, scale="binary", judge_scale="ordinal:0:4")
    assert found.value == pytest.approx((9 / 10 + 1.0) / 2)
    assert (found.n, found.n_expected, found.n_unscored, found.n_groups) == (20, 20, 1, 20)
    gold[1] = None  # an item without a label is none
    assert recalibrated_agreement(gold, judge, scale="binary", judge_scale="ordinal:0:4").n_expected == 19
    nothing = recalibrated_agreement(gold, [None] * 20, scale="binary")
    assert nothing.value == pytest.approx(0.0) and nothing.n_unscored == 19
    with pytest.raises(InputError, match="not taken on uncut verdicts: use one of macro_agreement, "):
        recalibrated_agreement(gold, judge, scale="binary", judge_scale="ordinal:0:4", metric="rmse")
    with pytest.raises(InputError, match="level is 95"):
        recalibrated_agreement(gold, judge, scale="binary", judge_scale="ordinal:0:4", level=95)


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


def test_why_there_is_no_recalibrated_difference() -> None:
    gold, a, b = labels(30)
    nothing = PairedLabels(gold, [None] * 30, b)
    found = recalibrated_difference(nothing, PairedLabels(gold, a, b), scale="percentage", level=0.9)
    assert (found.value, found.reason) == (None, "the fit part has no scored pairs")
    assert (found.level, found.n_expected) == (0.9, 30)


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
