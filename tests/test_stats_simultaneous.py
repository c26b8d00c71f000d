"""Losses against the best: bounds by hand, what they refuse, and that they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri, stdtrit
from scipy.stats import multivariate_t

from judgecal.errors import InputError
from judgecal.stats.simultaneous import Losses, critical_values, losses_against_best
from tests.benchmarks.selection import scores

GOLD = [1] * 12 + [0] * 8
RIGHT = list(GOLD)
FOUR_WRONG = [1 - label if place % 5 == 0 else label for place, label in enumerate(GOLD)]
C = 1.7291328  # Student's t, 95% one-sided, 19 degrees of freedom


def losses(judges: dict[str, list[object]], *, metric: str = "accuracy", scale: str = "binary") -> Losses:
    return losses_against_best(GOLD, judges, scale=scale, metric=metric)


def test_two_judges_by_hand() -> None:
    found = losses({"b": list(FOUR_WRONG), "a": list(RIGHT)})
    assert found.best == "a" and found.n_groups == 20
    # d = 4 / 20; s^2 = 20/19 * (4 * 0.8^2 + 16 * 0.2^2) / 20^2; u = (4 / 20^2 + 1 / 20^2) / (4 / 20 + 1 / 20) = 0.05;
    # b = c^2 u / 2 + c sqrt(s^2 + c^2 u^2 / 4)
    s2, u = 20 / 19 * 3.2 / 400, 0.05
    b = C**2 * u / 2 + C * math.sqrt(s2 + C**2 * u**2 / 4)
    assert b == pytest.approx(0.2501, abs=1e-4)
    assert found.by_judge["b"].loss == pytest.approx(0.2)
    assert found.by_judge["b"].upper == pytest.approx(0.2 + b, abs=1e-6)
    assert found.by_judge["a"].loss == 0.0 and found.by_judge["a"].upper == pytest.approx(b - 0.2, abs=1e-6)


def test_judges_alike_on_every_item_may_still_differ_on_the_next() -> None:
    """b = c^2 / G, 0.149 of 20 questions: the rule of three gives 0.15."""
    found = losses({"a": list(RIGHT), "b": list(RIGHT)})
    assert [one.upper for one in found.by_judge.values()] == [pytest.approx(C**2 / 20, abs=1e-6)] * 2


def test_the_questions_needed_by_hand() -> None:
    found = losses({"a": list(RIGHT), "b": list(FOUR_WRONG)})
    # room r = 0.3 - 0.2; G (c + t_power)^2 (s^2 + u r) / r^2 with t_0.8(19) = 0.8610
    s2 = 20 / 19 * 3.2 / 400
    wanted = 20 * (C + 0.86095) ** 2 * (s2 + 0.05 * 0.1) / 0.1**2
    assert found.questions_needed("b", 0.3) == math.ceil(wanted)
    assert found.questions_needed("b", 0.2) is None


def test_an_unscored_item_counts_as_wrong() -> None:
    holes = [None if place % 5 == 0 else label for place, label in enumerate(GOLD)]
    wrong, unscored = (losses({"a": list(RIGHT), "b": side}) for side in (list(FOUR_WRONG), holes))
    assert wrong.by_judge["b"].upper == unscored.by_judge["b"].upper


def test_less_is_better_for_an_error() -> None:
    near, far = [float(90 * label) for label in GOLD], [float(50) for _ in GOLD]
    gold = [100.0 * label for label in GOLD]
    found = losses_against_best(gold, {"far": far, "near": near}, scale="percentage", metric="mae")
    assert found.best == "near"
    assert found.by_judge["far"].loss == pytest.approx(50.0 - 120.0 / 20)


def test_a_coefficient_takes_the_jackknife() -> None:
    found = losses({"a": list(RIGHT), "b": list(FOUR_WRONG)}, metric="kappa")
    loss = found.by_judge["b"]
    assert loss.loss is not None and loss.upper is not None and loss.loss < loss.upper < 2.0


def test_the_order_of_rows_and_judges_changes_nothing() -> None:
    judges = {"a": list(RIGHT), "b": list(FOUR_WRONG), "c": [1] * 20}
    groups = [place // 2 for place in range(20)]
    one = losses_against_best(GOLD, judges, scale="binary", groups=groups)
    back = {name: rows[::-1] for name, rows in judges.items()}
    other = losses_against_best(GOLD[::-1], back, scale="binary", groups=groups[::-1])
    for name in judges:
        assert one.by_judge[name].upper == pytest.approx(other.by_judge[name].upper, abs=1e-9)


def test_few_groups_give_no_bound() -> None:
    found = losses_against_best(GOLD[4:13], {"a": RIGHT[4:13], "b": FOUR_WRONG[4:13]}, scale="binary")
    assert found.pairs is None and found.questions_needed("b", 0.5) is None
    assert found.by_judge["b"].upper is None and "9 groups: fewer than 10" in str(found.by_judge["b"].reason)


def test_one_judge_loses_nothing() -> None:
    assert losses({"a": list(FOUR_WRONG)}).by_judge["a"].upper == 0.0


def test_what_ranks_nobody_is_refused() -> None:
    with pytest.raises(InputError, match="prevalence ranks nobody"):
        losses({"a": list(RIGHT)}, metric="prevalence")
    with pytest.raises(InputError, match="no judge has a value"):
        losses_against_best([1] * 20, {"a": [1] * 20}, scale="binary")
    with pytest.raises(InputError, match="in units of"):
        losses_against_best(
            GOLD,
            {"a": [100.0] * 20, "b": RIGHT},
            scale="binary",
            scales={"a": "percentage"},
            metric="mae",
        )


@pytest.mark.parametrize(("k", "df"), [(3, 20), (6, 109), (11, 12)])
def test_critical_values_against_the_multivariate_t(k: int, df: int) -> None:
    """Judges of equal spread that vary apart: their differences from one of them correlate by 1/2."""
    square = np.random.default_rng(0).standard_normal((200, k))
    parts = np.linalg.qr(square - square.mean(axis=0))[0].T
    found = critical_values(parts, np.full((k, k), float(df)), level=0.95, n_draws=20_000, seed=0)
    shape = np.full((k - 1, k - 1), 0.5) + 0.5 * np.eye(k - 1)
    for c in found:
        held = multivariate_t(shape=shape, df=df, seed=1).cdf(np.full(k - 1, c), maxpts=200_000)
        assert held == pytest.approx(0.95, abs=0.006)


def test_the_critical_value_of_two_is_that_of_t() -> None:
    parts = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    found = critical_values(parts, np.full((2, 2), 2.0), level=0.95, n_draws=10, seed=0)
    assert found.tolist() == [pytest.approx(stdtrit(2, 0.95))] * 2


@pytest.mark.parametrize("worth", [(0.98, 0.95), (0.95, 0.92, 0.92)])
def test_a_loss_of_the_margin_is_rarely_shown_to_be_less(worth: tuple[float, ...]) -> None:
    """Rare differences: a plain linearised bound fails in 11% here. 400 draws of 5%: 0.05 + 2 * 0.011."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(110), 2)
    false = 0
    for _ in range(400):
        gold = (scores(rng, 1, 110)[0] < ndtri(0.65)).astype(float)
        score = np.sqrt(0.95) * scores(rng, 1, 110) + np.sqrt(0.05) * scores(rng, len(worth), 110)
        right = score < ndtri(np.array(worth))[:, None]
        judges = {str(j): np.where(row, gold, 1.0 - gold) for j, row in enumerate(right)}
        found = losses_against_best(
            gold, judges, scale="binary", metric="accuracy", groups=groups, n_draws=5_000
        )
        false += any((one.upper or 0.0) < 0.03 for name, one in found.by_judge.items() if name != "0")
    assert false / 400 <= 0.072
