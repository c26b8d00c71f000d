"""P values, Holm, the plan, and the test of prompts against models."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from judgecal.errors import InputError
from judgecal.stats import agreement, interaction
from judgecal.stats.significance import (
    clustered_mcnemar_p,
    holm,
    mcnemar_midp,
    planned_error,
    sign_flip_p,
    smallest_detectable,
)
from tests.benchmarks.false_alarms import gold_labels, two_scores


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


def test_mcnemar_takes_counts() -> None:
    with pytest.raises(InputError, match="discordant pairs cannot number -1 and 2"):
        mcnemar_midp(-1, 2)


def test_clustered_mcnemar() -> None:
    # Signs of 2, 1, 1 sum to 4 twice, to 2 four times, to 0 twice; seen is 2: P(|T| > 2) + P(|T| = 2) / 2.
    assert clustered_mcnemar_p(np.array([2.0, 1.0, -1.0])) == (0.25 + 0.25, "clustered McNemar, exact mid-p")
    assert clustered_mcnemar_p(np.array([2.0, 0.0, -1.0, -1.0])) == (1.0, "clustered McNemar")
    assert clustered_mcnemar_p(np.zeros(12))[0] == 1.0
    # 17 groups for a, 3 for b: z = 14 / sqrt(20) = 3.130495.
    net = np.array([0.1] * 17 + [-0.1] * 3)
    p, method = clustered_mcnemar_p(net)
    assert p == pytest.approx(0.00174512, abs=1e-7) and method == "clustered McNemar"
    assert clustered_mcnemar_p(-net)[0] == p


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
    assert clustered_mcnemar_p(np.ones(16)) == (2.0**-16, "clustered McNemar, exact mid-p")
    assert clustered_mcnemar_p(np.ones(17))[1] == "clustered McNemar"
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
    exact = sign_flip_p(many[:16])[0]
    rough = np.mean(
        np.abs(np.random.default_rng(2).choice([-1, 1], (20000, 16)) @ many[:16]) >= abs(many[:16].sum())
    )
    assert exact == pytest.approx(rough, abs=0.015)


Grid = dict[tuple[str, str], list[float]]


def grid_of(rights: dict[tuple[str, str], float], n: int) -> tuple[list[int], Grid]:
    """Labels, all 1; each judge is right on that share of the items, the first ones."""
    return [1] * n, {
        key: [1.0] * round(n * share) + [0.0] * round(n * (1 - share)) for key, share in rights.items()
    }


def test_deviations_by_hand() -> None:
    # Rows 0.7 and 0.6, columns 0.75 and 0.55, all 0.65: p1@m1 has 0.9 - 0.7 - 0.75 + 0.65 = 0.1.
    gold, grid = grid_of({("p1", "m1"): 0.9, ("p1", "m2"): 0.5, ("p2", "m1"): 0.6, ("p2", "m2"): 0.6}, 60)
    found = interaction(gold, grid, scale="binary", metric="accuracy")
    by_name = {(cell.row, cell.column): cell for cell in found.cells}
    assert {key: cell.value for key, cell in by_name.items()} == pytest.approx(
        {("p1", "m1"): 0.9, ("p1", "m2"): 0.5, ("p2", "m1"): 0.6, ("p2", "m2"): 0.6}
    )
    assert {key: cell.deviation for key, cell in by_name.items()} == pytest.approx(
        {("p1", "m1"): 0.1, ("p1", "m2"): -0.1, ("p2", "m1"): -0.1, ("p2", "m2"): 0.1}
    )
    # 24 of 60 items (places 31 to 54) carry a contrast, all of one sign: as good as never by chance.
    assert found.p_value == pytest.approx(1 / 10_001) and found.decision == "interaction"
    assert {cell.p_adjusted for cell in found.cells} == {found.p_value}
    assert found.why.startswith("prompts and models fit in pairs, p = 0.0001: ") and found.n_groups == 60


def test_an_additive_grid() -> None:
    """What the prompt costs and what the model costs falls on different items: the contrasts are 0
    everywhere."""
    n = 80
    prompt, model = np.arange(n) < 20, np.arange(n) >= 60
    grid = {
        (f"p{p}", f"m{m}"): np.where((prompt & (p == 1)) | (model & (m == 1)), 0.0, 1.0).tolist()
        for p in (0, 1)
        for m in (0, 1)
    }
    found = interaction([1] * n, grid, scale="binary", metric="accuracy")
    assert (found.p_value, found.decision) == (1.0, "cannot tell")
    assert all(cell.deviation == pytest.approx(0.0, abs=1e-12) for cell in found.cells)


def test_the_pair_that_fits_is_found() -> None:
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, 300)
    keys = [(p, m) for p in ("a", "b", "c") for m in ("x", "y", "z")]
    noise = {key: 25.0 if key == ("b", "y") else 55.0 for key in keys}
    grid = {
        key: np.clip(
            100.0 * gold - np.where(gold, 1, -1) * np.abs(rng.normal(0, noise[key], 300)), 0, 100
        ).tolist()
        for key in keys
    }
    scales = dict.fromkeys(keys, "percentage")
    groups = [i // 3 for i in range(300)]
    found = interaction(gold.tolist(), grid, scale="binary", scales=scales, groups=groups)
    assert (found.cells[0].row, found.cells[0].column) == ("b", "y") and found.cells[0].deviation > 0.05
    assert found.decision == "interaction" and found.n_groups == 100
    assert sum(cell.deviation for cell in found.cells) == pytest.approx(0.0, abs=1e-12)
    value = agreement(
        gold.tolist(), grid["b", "y"], scale="binary", judge_scale="percentage", metrics=["macro_agreement"]
    )["macro_agreement"].value
    assert found.cells[0].value == pytest.approx(value)
    kappa = interaction(gold.tolist(), grid, scale="binary", scales=scales, groups=groups, metric="kappa")
    own = agreement(
        gold.tolist(), grid["b", "y"], scale="binary", judge_scale="percentage", metrics=["kappa"]
    )
    assert {(c.row, c.column): c.value for c in kappa.cells}["b", "y"] == pytest.approx(own["kappa"].value)


def test_where_it_cannot_be_tested() -> None:
    gold, grid = grid_of({(p, m): 0.5 for p in "pq" for m in "xy"}, 20)
    few = interaction(gold, grid, scale="binary", metric="accuracy", groups=[i // 3 for i in range(20)])
    assert (few.p_value, few.decision, few.n_groups) == (None, "cannot tell", 7)
    assert few.why == "7 groups: fewer than 10 give no test" and len(few.cells) == 4
    hole = interaction(gold, {k: v for k, v in grid.items() if k != ("q", "x")}, scale="binary")
    assert (hole.p_value, hole.why) == (None, "the grid lacks q@x")
    row = interaction(gold, {k: v for k, v in grid.items() if k[0] == "p"}, scale="binary")
    assert row.why == "it takes two prompts and two models"
    blank = interaction(gold, grid, scale="binary")  # one stratum: macro_agreement has no value
    assert blank.p_value is None and blank.why.startswith("p@x has no value: ")
    with pytest.raises(InputError, match="unknown metric"):
        interaction(gold, grid, scale="binary", metric="accurasy")


@pytest.mark.parametrize("n_groups", [33, 110])
def test_false_alarms(n_groups: int) -> None:
    """Six judges of equal worth that find the same items hard: near 5% of 300 (three standard errors: 3.8
    points)."""
    rng = np.random.default_rng(n_groups)
    groups = np.repeat(np.arange(n_groups), 2)
    refuted = 0
    for _ in range(300):
        gold = gold_labels(rng, n_groups, 2)
        scores = [score for _ in range(3) for score in two_scores(rng, n_groups, 2)]
        keys = [(p, m) for p in "ab" for m in "xyz"]
        grid = {key: np.where(score < 0.9, gold, 1.0 - gold) for key, score in zip(keys, scores, strict=True)}
        found = interaction(gold, grid, scale="binary", groups=groups, n_perm=400)
        refuted += found.decision == "interaction"
    assert 0.012 <= refuted / 300 <= 0.088


def test_the_random_signs_are_seeded() -> None:
    rng = np.random.default_rng(3)
    gold = rng.integers(0, 2, 40)
    grid: Grid = {
        (p, m): np.where(rng.random(40) < 0.6, gold, 1 - gold).tolist() for p in "abc" for m in "xyz"
    }
    first, second, other = (
        interaction(gold.tolist(), grid, scale="binary", metric="accuracy", seed=seed, n_perm=499)
        for seed in (1, 1, 2)
    )
    assert first == second and first.cells != other.cells
    assert first.p_value is not None and (first.p_value * 500) % 1 == pytest.approx(0.0)
