"""Recalibration: what is left of a gain once both judges are mapped onto the labels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import ndtr

from judgecal.errors import InputError
from judgecal.scale import Scale
from judgecal.stats import PairedLabels, compare_paired, recalibrated_agreement, recalibrated_difference
from judgecal.stats.calibration import fit_monotone
from tests.support.two_judges import labels


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


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
    return PairedLabels(gold.tolist(), soft.tolist(), snapped.tolist(), np.repeat(np.arange(n_groups), 2).tolist())


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
    found = recalibrated_difference(passes, passes, scale="binary", a_scale="percentage", b_scale="percentage")
    assert found.value is not None and found.method.startswith("isotonic over 5 folds by group")


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


def test_why_there_is_no_recalibrated_difference() -> None:
    gold, a, b = labels(30)
    nothing = PairedLabels(gold, [None] * 30, b)
    found = recalibrated_difference(nothing, PairedLabels(gold, a, b), scale="percentage", level=0.9)
    assert (found.value, found.reason) == (None, "the fit part has no scored pairs")
    assert (found.level, found.n_expected) == (0.9, 30)
