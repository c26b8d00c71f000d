"""Critical values for a judge against several others, and the bounds that they make: tables, likeness, groups."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtrit

from judgecal.stats import agreement
from judgecal.stats.sample import Floats
from judgecal.stats.simultaneous import critical_values, losses_against_best


def apart(k: int, *, scale: float = 1.0) -> Floats:
    """k judges whose influences over 200 groups are of one spread and do not go together."""
    square = np.random.default_rng(0).standard_normal((200, k))
    return scale * np.linalg.qr(square - square.mean(axis=0))[0].T


def of(parts: Floats, df: float = 109.0, *, level: float = 0.95, seed: int = 0) -> list[float]:
    table = np.full((len(parts), len(parts)), df)
    return critical_values(parts, table, level=level, n_draws=20_000, seed=seed).tolist()


@pytest.mark.parametrize(
    ("others", "df", "level", "published"),
    [(2, 10, 0.95, 2.15), (3, 10, 0.95, 2.34), (2, 20, 0.95, 2.03), (4, 20, 0.95, 2.30), (2, 20, 0.99, 2.81)],
)
def test_values_of_a_published_table(others: int, df: float, level: float, published: float) -> None:
    """Dunnett (1955), one-sided, comparisons with one control of equal spread (they correlate by a half)."""
    for found in of(apart(others + 1), df, level=level):
        assert found == pytest.approx(published, rel=0.025)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_judges_alike_but_for_rounding_are_no_further_comparison(scale: float) -> None:
    # The first two differ by rounding alone, or by as good as that: either has one other judge, and the plain t.
    plain = pytest.approx(float(stdtrit(109, 0.95)))
    for seed in range(40):
        rng = np.random.default_rng(seed)
        first, third = (scale * rng.standard_normal(110) for _ in range(2))
        for second in ((first + 0.1 * scale) - 0.1 * scale, first * (1.0 + 1e-7)):
            parts = np.array([one - one.mean() for one in (first, second, third)])
            found = critical_values(parts, np.full((3, 3), 109.0), level=0.95, n_draws=500, seed=0).tolist()
            assert found[:2] == [plain, plain]
    assert of(parts)[2] == pytest.approx(1.66, rel=0.03)  # for the third, two alike are as good as one


def test_a_judge_like_every_other_and_one_that_stands_alone_have_the_plain_t() -> None:
    plain = pytest.approx(float(stdtrit(109, 0.9)))
    assert of(np.repeat(apart(1), 3, axis=0), level=0.9) == [plain] * 3
    assert of(apart(1), level=0.9) == [plain]


def test_the_fewest_degrees_of_freedom_count_and_whole_ones() -> None:
    nothing = np.nan
    df = np.array([[nothing, 7.9], [12.0, nothing]])
    found = critical_values(apart(2), df, level=0.95, n_draws=10, seed=0).tolist()
    assert found == pytest.approx([stdtrit(7, 0.95), stdtrit(12, 0.95)])
    df = np.array([[nothing, 0.4], [nothing, nothing]])  # at least one; where none is known, groups less one
    found = critical_values(apart(2), df, level=0.95, n_draws=10, seed=0).tolist()
    assert found == pytest.approx([stdtrit(1, 0.95), stdtrit(199, 0.95)])


def test_a_close_rival_counts_in_full_and_a_small_difference_is_one() -> None:
    # The second judge is the first but for a thousandth: for the third they are one, for the first they are two.
    parts = apart(3)
    parts[1] = parts[0] + 1e-3 * parts[1]
    first, _, third = of(parts)
    assert first > 1.85 and third == pytest.approx(1.66, rel=0.02)


def test_values_are_seeded_and_have_no_unit() -> None:
    parts = apart(4) * np.array([[1.0], [1.1], [1.2], [1.3]])
    assert of(parts, seed=1) == of(parts, seed=1) != of(parts, seed=2)
    assert of(parts, seed=1) == pytest.approx(of(parts / 1024.0, seed=1))


def test_items_of_one_question_bound_a_loss_as_one_item_does() -> None:
    gold, right = [1] * 8 + [0] * 6, [1] * 8 + [0] * 6
    wrong = [1 - label if place % 5 == 0 else label for place, label in enumerate(gold)]
    once = losses_against_best(gold, {"a": right, "b": wrong}, scale="binary", metric="accuracy")
    twice = losses_against_best(
        gold * 2, {"a": right * 2, "b": wrong * 2}, scale="binary", metric="accuracy", groups=[*range(14)] * 2
    )
    assert once.n_groups == twice.n_groups == 14
    for judge in "ab":
        assert once.by_judge[judge].upper == pytest.approx(twice.by_judge[judge].upper)


def test_the_loss_in_a_coefficient_by_leaving_each_item_out() -> None:
    # s^2 = 19/20 sum (D_g - mean)^2 over the differences D_g of kappa without each item; with p_g its parts,
    # D / 20 + 19/20 (mean - D_g), and 2 / 20 for a further one: u = (sum p^2 + 0.1^2) / (sum |p| + 0.1).
    gold = [1] * 12 + [0] * 8
    judges = {
        "a": [1 - label if place in (1, 15) else label for place, label in enumerate(gold)],
        "b": [1 - label if place % 4 == 0 else label for place, label in enumerate(gold)],
    }

    def difference(rows: list[int]) -> float:
        kappas = [
            agreement([gold[i] for i in rows], [judge[i] for i in rows], scale="binary", metrics=["kappa"])
            for judge in judges.values()
        ]
        ours, theirs = (found["kappa"].value or 0.0 for found in kappas)
        return ours - theirs

    whole = difference(list(range(20)))
    without = np.array([difference([i for i in range(20) if i != out]) for out in range(20)])
    s2 = 19 / 20 * float(((without - without.mean()) ** 2).sum())
    parts = np.abs(whole / 20 + 19 / 20 * (without.mean() - without))
    u = (float((parts**2).sum()) + 0.1**2) / (float(parts.sum()) + 0.1)
    c = float(stdtrit(19, 0.95))
    b = c**2 * u / 2 + c * np.sqrt(s2 + (c * u) ** 2 / 4)
    found = losses_against_best(gold, judges, scale="binary", metric="kappa")
    assert found.best == "a" and found.by_judge["b"].loss == pytest.approx(whole)
    assert found.by_judge["b"].upper == pytest.approx(whole + b)
