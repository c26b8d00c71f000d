"""P values, Holm, the plan, and the test of prompts against models."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from judgecal.errors import InputError
from judgecal.stats.significance import holm, mcnemar_midp, planned_error, sign_flip_p, smallest_detectable


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# --- the tests of significance


@pytest.mark.parametrize(
    ("only_a", "only_b", "p"),
    [
        (0, 0, 1.0),
        (4, 4, 1.0),
        (5, 0, 2**-5),  # 2 P(X < 0) + P(X = 0)
        (3, 7, 2 * (1 + 10 + 45) / 1024 + 120 / 1024),
        (7, 3, 2 * (1 + 10 + 45) / 1024 + 120 / 1024),
    ],
)
def test_mcnemar_midp(only_a: int, only_b: int, p: float) -> None:
    assert mcnemar_midp(only_a, only_b) == pytest.approx(p, abs=1e-12)


def test_holm() -> None:
    # Sorted: 0.01 x 3, 0.02 x 2, 0.3 x 1; what could not be tested is not counted.
    assert holm([0.3, 0.01, None, 0.02]) == [0.3, 0.03, None, 0.04]
    assert holm([0.04, 0.03]) == [0.06, 0.06]  # never below a smaller one's
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([0.0, 1.0]) == [0.0, 1.0]  # both ends are p values
    assert holm([]) == [] and holm([None]) == [None]
    with pytest.raises(InputError, match=r"found 1\.2"):
        holm([0.1, 1.2])


# --- planning


def test_the_plan() -> None:
    # Errors 0.03 and 0.04: half of 0.0025 is 0.00125. Normal quantiles at many degrees of freedom: 1.959964 +
    # 0.841621.
    assert planned_error(0.03, 0.04) == pytest.approx(np.sqrt(0.00125))
    assert smallest_detectable(np.sqrt(0.00125), 1e9) == pytest.approx(2.801585 * 0.0353553, abs=1e-5)
    assert smallest_detectable(0.1, 9) == pytest.approx((2.262157 + 0.883404) * 0.1, abs=1e-6)


def test_sixteen_groups_are_still_counted_out() -> None:
    # All 16 for a: beyond it lies nothing, and of 2^16 patterns two reach it: half of 2 / 2^16.
    assert sign_flip_p(np.ones(16)) == (2.0**-15, "sign flips by group, exact")
    assert sign_flip_p(np.ones(17), n_perm=99)[1] == "sign flips by group, 99 draws"


def test_sign_flips() -> None:
    # 3 parts of one sign: 2 of 8 patterns reach the sum.
    assert sign_flip_p(np.array([1.0, 2.0, 0.0, 3.0])) == (0.25, "sign flips by group, exact")
    # 0.1 + 0.2 - 0.3 is a tie with 0 in spite of rounding.
    assert sign_flip_p(np.array([0.1, 0.2, -0.3]))[0] == 1.0
    many = np.random.default_rng(0).normal(0.3, 1, 40)
    p, method = sign_flip_p(many, n_perm=4000, seed=1)
    assert p == sign_flip_p(many, n_perm=4000, seed=1)[0] and "4000 draws" in method
