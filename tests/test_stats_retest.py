"""Test-retest: known values, values by hand with verdicts missing, and the noise of one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgecal.errors import InputError
from judgecal.scale import Scale
from judgecal.stats.reliability import repeatability

GOLDEN = Path(__file__).parent / "golden" / "statistics.json"


def golden_case() -> tuple[list[list[float]], dict[str, Any]]:
    cases = json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"]
    (case,) = [case for case in cases if case["id"] == "test_retest_5x40"]
    return np.array(case["input"]["raters_by_units"], dtype=float).T.tolist(), case["expected"]


def test_known_values() -> None:
    rows, expected = golden_case()
    found = repeatability(rows, scale="ordinal:0:10")
    names = {"exact_agreement": "exact_repeat_agreement_pairwise"}
    for ours, theirs in names.items():
        estimate = found[ours]
        assert estimate.value == pytest.approx(expected[theirs]["value"], abs=expected[theirs]["tol"]), ours
        assert estimate.low is not None and estimate.high is not None
        assert estimate.low < estimate.value < estimate.high
        assert (estimate.n, estimate.n_expected, estimate.n_groups) == (200, 200, 40)
    assert "flip_rate" not in found  # ordinal labels without a mark have no sides


def test_by_hand_with_verdicts_missing() -> None:
    # Equal pairs: 1 of 3, 1 of 1, none (one verdict: left out), 0 of 1: mean (1/3 + 1 + 0) / 3 = 4/9.
    # At 90, 100 passes and 80 fails: flips 0, 0 and 1.
    rows = [[10, 10, 20], [0, None, 0], [None, 50, None], [100, None, 80]]
    found = repeatability(rows, scale=Scale.parse("percentage", pass_at=90))
    values = {name: estimate.value for name, estimate in found.items()}
    assert values == pytest.approx({"exact_agreement": 4 / 9, "flip_rate@90": 1 / 3})
    for estimate in found.values():
        assert (estimate.n, estimate.n_expected, estimate.n_unscored, estimate.n_groups) == (7, 12, 4, 3)
        assert estimate.low is None and estimate.reason == "3 groups: fewer than 10 give no interval"


def test_nothing_was_judged_twice() -> None:
    found = repeatability([[5, None], [None, 7], [None, None]], scale="percentage")
    for estimate in found.values():
        assert (estimate.value, estimate.reason) == (None, "no item has two verdicts")
        assert (estimate.n, estimate.n_expected, estimate.n_unscored) == (0, 6, 4)


@pytest.mark.parametrize("rows", [[[1], [0]], [1, 0]])
def test_one_repeat_is_refused(rows: list[object]) -> None:
    with pytest.raises(InputError, match="needs two repeats or more, found 1"):
        repeatability(rows, scale="binary")
