"""Graded verdicts as chances of being right."""

from __future__ import annotations

import numpy as np
import pytest

from judgecal.stats import agreement, cross_fitted_probabilities

SCALES = {"scale": "binary", "judge_scale": "percentage"}


def _drawn(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, list[int]]:
    rng = np.random.default_rng(seed)
    gold = (rng.random(n) < 0.7).astype(float)
    verdicts = np.clip(np.round(30.0 + 35.0 * gold + 20.0 * rng.standard_normal(n)), 0.0, 100.0)
    return gold, verdicts, (np.arange(n) // 2).tolist()


def _column(rows: np.ndarray | None) -> np.ndarray:
    assert rows is not None
    return rows[:, 0]


def test_a_rescaling_changes_nothing() -> None:
    gold, verdicts, groups = _drawn(1, 120)
    plain = _column(cross_fitted_probabilities(gold, verdicts, groups=groups, **SCALES))
    bent = _column(cross_fitted_probabilities(gold, verdicts**2 / 100.0, groups=groups, **SCALES))
    assert plain == pytest.approx(bent) and plain.min() >= 0.0 and plain.max() <= 100.0


def test_verdicts_all_alike_have_the_base_rate() -> None:
    gold, _, groups = _drawn(2, 120)
    chances = _column(cross_fitted_probabilities(gold, np.full(120, 50.0), groups=groups, **SCALES))
    assert np.all(np.abs(chances - 100.0 * gold.mean()) < 8.0)
    found = agreement(gold, chances, groups=groups, metrics=["brier"], **SCALES)["brier"]
    assert found.value == pytest.approx(gold.mean() * (1.0 - gold.mean()), abs=0.01)


def test_no_item_is_given_what_its_own_label_says() -> None:
    gold, verdicts, groups = _drawn(3, 120)
    before = _column(cross_fitted_probabilities(gold, verdicts, groups=groups, **SCALES))
    changed = gold.copy()
    changed[7] = 1.0 - changed[7]
    after = _column(cross_fitted_probabilities(changed, verdicts, groups=groups, **SCALES))
    assert after[6:8].tolist() == before[6:8].tolist()  # the question of the item
    assert not np.array_equal(after, before)


def test_a_verdict_that_is_missing_stays_so_and_what_has_no_chances_has_none() -> None:
    gold, verdicts, groups = _drawn(4, 60)
    rows: list[list[float | None]] = [[one] for one in verdicts.tolist()]
    rows[5] = [None]
    found = cross_fitted_probabilities(gold, rows, groups=groups, **SCALES)
    assert found is not None and np.isnan(found[5, 0]) and not np.isnan(found[:5]).any()
    assert cross_fitted_probabilities(gold, gold, scale="binary", judge_scale="binary", groups=groups) is None
    assert cross_fitted_probabilities(gold, verdicts, groups=[0] * 60, **SCALES) is None
    graded = cross_fitted_probabilities(verdicts, verdicts, scale="percentage", judge_scale="percentage")
    assert graded is None
