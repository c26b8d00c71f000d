"""Calibration: maps from verdicts to labels, and what two judges differ by once both went through theirs."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from judgecal.errors import InputError
from judgecal.stats import Calibration, agreement, compare, cross_fit, fit_calibration
from judgecal.stats.calibration import DecidingVerdicts, best_cuts, smoothed
from tests.support.two_judges import labels


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def cross_fitted(*args: Any, **options: Any) -> Any:
    """The verdicts through the maps; None where there are none."""
    fit = cross_fit(*args, **options)
    return None if fit is None else fit.verdicts


def macro(gold: object, verdicts: object, scale: str) -> float:
    found = agreement(gold, verdicts, scale=scale, metrics=["macro_agreement"])["macro_agreement"].value  # type: ignore[arg-type]
    assert found is not None
    return found


def test_the_cuts_have_the_least_error_of_all_monotone_maps() -> None:
    """Against every non-decreasing map from four verdicts to the labels 0..2, tried one by one."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        counts = rng.integers(0, 9, (4, 3)).astype(float)  # verdict x label
        above = np.stack([counts[:, 1:].sum(axis=1), counts[:, 2]], axis=1)
        cuts = best_cuts(above, counts.sum(axis=1)[:, None] - above)
        mapped = np.searchsorted(cuts, np.arange(4), side="right")

        def error(labels: Sequence[int], counts: np.ndarray = counts) -> float:
            return sum(counts[v, y] * abs(y - labels[v]) for v in range(4) for y in range(3))

        best = min(error(one) for one in itertools.combinations_with_replacement(range(3), 4))
        assert error(mapped.tolist()) == best


def test_of_equally_good_cuts_the_middlemost_is_taken() -> None:
    assert best_cuts(np.zeros((4, 1)), np.zeros((4, 1))).tolist() == [2]
    below, above = np.eye(1, 8, 0).T, np.eye(1, 8, 6).T  # any cut from 1 to 6 is right
    assert best_cuts(above, below).tolist() == [3]


def test_binary_labels_are_cut_where_balanced_accuracy_is_highest() -> None:
    # Fails are judged 20, 40, 60 and passes 50, 70, 80: from 50 on, all passes and two of three fails are
    # right.
    found = fit_calibration(
        [0, 0, 0, 1, 1, 1], [20, 40, 60, 50, 70, 80], scale="binary", judge_scale="percentage"
    )
    assert found == Calibration((50.0,), (0.0, 1.0), 6, 6)
    assert [found.apply(verdict) for verdict in (49.0, 50.0, None)] == [0.0, 1.0, None]


def test_a_judge_that_knows_nothing_or_the_opposite_gets_a_constant() -> None:
    gold = [0.0, 100.0] * 20
    for verdicts in ([50.0] * 40, [100.0 - label for label in gold]):
        found = fit_calibration(gold, verdicts, scale="percentage")
        assert found is not None and found.constant and len(found.values) == 1
    mapped = cross_fitted(gold, [50.0] * 40, scale="percentage")
    assert mapped is not None and macro(gold, mapped, "percentage") == 0.5


def test_a_rescaling_changes_nothing() -> None:
    gold, a, _ = labels(60)
    bent = [v * v / 200.0 + 3.0 for v in a]
    assert np.array_equal(
        cross_fitted(gold, a, scale="percentage"), cross_fitted(gold, bent, scale="percentage")
    )
    found = compare(gold, a, bent, scale="percentage")
    assert (found.difference.value, found.decision) == (0.0, "cannot tell")
    assert found.raw is not None and found.raw.difference.value not in (None, 0.0)
    raw = compare(gold, a, bent, scale="percentage", calibrate=False)
    assert (raw.difference, raw.raw) == (found.raw.difference, None)


def test_no_item_is_mapped_by_its_own_label() -> None:
    """With another label of a whole question its own verdicts stay where they were, and others move."""
    gold, a, _ = labels(60)
    groups = [i // 2 for i in range(60)]
    before = cross_fitted(gold, a, scale="percentage", groups=groups)
    turned = [100.0 - label if group < 6 else label for label, group in zip(gold, groups, strict=True)]
    for group in range(6):
        mine = [t if g == group else y for t, y, g in zip(turned, gold, groups, strict=True)]
        after = cross_fitted(mine, a, scale="percentage", groups=groups)
        assert before is not None and after is not None
        assert np.array_equal(before[2 * group : 2 * group + 2], after[2 * group : 2 * group + 2])
    assert not np.array_equal(cross_fitted(turned, a, scale="percentage", groups=groups), before)


def test_what_cannot_be_calibrated() -> None:
    assert cross_fitted(["a", "b"] * 10, ["a", "a"] * 10, scale="nominal") is None
    assert (
        cross_fitted([0, 1] * 30, [0, 1] * 30, scale="binary") is None
    )  # a yes means no other label than yes
    assert (
        cross_fitted([0, 5] * 9, [0, 1] * 9, scale="percentage", groups=[i // 2 for i in range(18)]) is None
    )
    assert cross_fitted([0, 5] * 9, [None] * 18, scale="percentage") is None
    assert fit_calibration(["a"], ["a"], scale="nominal") is None
    assert fit_calibration([1, 0], [1, 0], scale="binary") is None
    assert fit_calibration([1], [None], scale="percentage") is None
    with pytest.raises(InputError, match="share no order"):
        fit_calibration([1], ["a"], scale="binary", judge_scale="nominal")
    with pytest.raises(ValueError, match="1 cuts has 2 values, not 1"):
        Calibration((1.0,), (1.0,), 1, 1)
    mapped = cross_fitted(
        [0, 1] * 10, [None, 90.0] + [0.0, 90.0] * 9, scale="binary", judge_scale="percentage"
    )
    assert mapped is not None and np.isnan(mapped[0]) and mapped[1] == 1.0


def test_the_error_of_a_fit_is_the_jackknife_over_its_ten_maps() -> None:
    """sqrt(9 / 10 sum (D_k - mean)^2) of the difference through each map, on 9 degrees of freedom."""
    rng = np.random.default_rng(2)
    first, second = (SimpleNamespace(by_map=rng.normal(size=10)) for _ in range(2))
    once: Any = DecidingVerdicts({}, {}, {"a": first, "b": second})  # type: ignore[dict-item]
    for names, apart in ((("a", "b"), first.by_map - second.by_map), (("a",), first.by_map)):
        expected = 3.0 * apart.std()
        assert once.error_of_fit(*names) == pytest.approx((expected, 9.0))
    assert once.error_of_fit("a", "unmapped") == once.error_of_fit("a")
    assert once.error_of_fit("unmapped") == (0.0, 1.0)


def test_smoothed_weights_by_hand() -> None:
    """Ranks 1/8, 1/2, 7/8 of verdicts given once, twice, once; each keeps its weight among all."""
    ranks = np.array([1, 4, 7]) / 8
    kernel = np.exp(-0.5 * ((ranks[:, None] - ranks) / 0.3) ** 2)
    weights = np.array([[1.0], [0.0], [2.0]])
    found = smoothed(weights, np.array([1.0, 2.0, 1.0]), width=0.3)
    assert found[:, 0] == pytest.approx(
        kernel[:, 0] / kernel[:, 0].sum() + 2 * kernel[:, 2] / kernel[:, 2].sum()
    )
    assert found.sum() == pytest.approx(3.0)
