"""Losses against the best: bounds by hand, what they refuse, and that they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import stdtrit
from scipy.stats import multivariate_t

from judgecal.errors import InputError
from judgecal.stats import agreement, compare
from judgecal.stats.means import driven_in_words
from judgecal.stats.sample import Floats
from judgecal.stats.simultaneous import Losses, critical_values, losses_against_best

GOLD = [1] * 12 + [0] * 8


RIGHT = list(GOLD)


FOUR_WRONG = [1 - label if place % 5 == 0 else label for place, label in enumerate(GOLD)]


C = 1.7291328  # Student's t, 95% one-sided, 19 degrees of freedom


def losses(judges: dict[str, list[object]], *, metric: str = "accuracy", scale: str = "binary") -> Losses:
    return losses_against_best(GOLD, judges, scale=scale, metric=metric)


def test_two_judges_by_hand() -> None:
    found = losses({"b": list(FOUR_WRONG), "a": list(RIGHT)})
    assert found.best == "a" and found.n_groups == 20
    # d = 4 / 20; s^2 = 20/19 * (4 * 0.8^2 + 16 * 0.2^2) / 20^2; u = (4 / 20^2 + 1 / 20^2) / (4 / 20 + 1 / 20)
    # = 0.05; b = c^2 u / 2 + c sqrt(s^2 + c^2 u^2 / 4)
    s2, u = 20 / 19 * 3.2 / 400, 0.05
    b = C**2 * u / 2 + C * math.sqrt(s2 + C**2 * u**2 / 4)
    assert b == pytest.approx(0.2501, abs=1e-4)
    assert found.by_judge["b"].loss == pytest.approx(0.2)
    assert found.by_judge["b"].upper == pytest.approx(0.2 + b, abs=1e-6)
    assert found.by_judge["a"].loss == 0.0 and found.by_judge["a"].upper == pytest.approx(b - 0.2, abs=1e-6)


def test_identical_verdicts_are_identical() -> None:
    """Both lose what the other loses, and nothing to each other."""
    found = losses({"a": list(RIGHT), "b": list(RIGHT)})
    assert [one.upper for one in found.by_judge.values()] == [0.0, 0.0]
    three = losses({"a": list(RIGHT), "b": list(FOUR_WRONG), "c": list(FOUR_WRONG)}).by_judge
    assert (
        three["b"] == three["c"]
        and three["b"].upper == losses({"a": RIGHT, "b": FOUR_WRONG}).by_judge["b"].upper
    )


def alike(
    gold: list[int], groups: list[int], *, judges: str = "ab", metric: str = "accuracy", margin: float = 0.03
) -> Losses:
    """Judges that say what people say, all of them."""
    sides = dict.fromkeys(judges, gold)
    return losses_against_best(gold, sides, scale="binary", metric=metric, margin=margin, groups=groups)


def test_with_a_margin_few_identical_verdicts_prove_nothing() -> None:
    """A judge that truly loses 0.03 gives the same verdicts on 98 questions in 0.97^98 = 5.05%, on 99 in
    4.9%."""
    for n_groups, shown in ((20, False), (98, False), (99, True)):
        for size in (1, 5):  # items of one question prove no more than one item
            gold, groups = [place % 2 for place in range(n_groups * size)], [*range(n_groups)] * size
            upper = alike(gold, groups).by_judge["b"].upper
            assert upper == pytest.approx(1.0 - 0.05 ** (1.0 / n_groups)) and (upper < 0.03) is shown
            assert alike(gold, groups).questions_needed("b", 0.03) == 99


def test_the_largest_question_may_hold_the_whole_loss() -> None:
    """Ten questions of ten answers and 90 of one weigh 10 / 1.9 = w: (1 - 0.03 / w)^100 = 56%."""
    gold, groups = (
        [place % 2 for place in range(190)],
        [*range(90), *(90 + place // 10 for place in range(100))],
    )
    assert alike(gold, groups).by_judge["b"].upper == pytest.approx(10 / 1.9 * (1.0 - 0.05**0.01))


def test_the_scarce_class_may_hold_the_whole_loss() -> None:
    """A fail of 44 among 220 weighs 1 / 88: w = 2.5; the loss of 0.03 is one of 0.06 of the fails."""
    gold, metric = [0] * 44 + [1] * 176, "macro_agreement"
    found = alike(gold, [*range(220)], metric=metric).by_judge["b"]
    assert found.upper == pytest.approx(2.5 * (1.0 - 0.05 ** (1 / 220))) and found.upper > 0.03
    # of each question a pass and a fail: all weigh the same
    found = alike([0, 1] * 110, [place // 2 for place in range(220)], metric=metric).by_judge["b"]
    assert found.upper == pytest.approx(1.0 - 0.05 ** (1 / 110)) and found.upper < 0.03


def test_several_judges_alike_share_the_level() -> None:
    """Of three each may claim to be as good as two others: (1 - 0.05) / 2 each, 0.97^122 = 2.43%."""
    for n_groups, shown in ((121, False), (122, True)):
        found = alike([place % 2 for place in range(n_groups)], [*range(n_groups)], judges="abc")
        upper = found.by_judge["c"].upper
        assert upper == pytest.approx(1.0 - 0.025 ** (1.0 / n_groups)) and (upper < 0.03) is shown


def test_what_a_claim_of_judges_alike_takes_is_lost_to_the_others() -> None:
    """110 identical verdicts take 0.96^110 = 1.1% of the 5%: the third judge's bound stands at 0.961, not
    0.95."""
    gold = [place % 2 for place in range(110)]
    near = [1 - label if place < 1 else label for place, label in enumerate(gold)]
    judges = {"a": gold, "b": gold, "c": near}
    found = losses_against_best(gold, judges, scale="binary", metric="accuracy", margin=0.04)
    t, u = float(stdtrit(109, 0.95 + 0.96**110)), 1 / 110
    bound = u + t**2 * u / 2 + t * math.sqrt(u**2 + (t * u) ** 2 / 4)
    assert found.by_judge["c"].upper == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize("metric", ["kappa", "f1", "skill", "rmse"])
def test_identical_verdicts_prove_nothing_where_no_question_has_a_weight(metric: str) -> None:
    gold = [place % 2 for place in range(60)]
    upper = alike(gold, [*range(60)], metric=metric).by_judge["b"].upper
    assert upper is not None and upper > 0.03


def test_judges_clearly_beyond_the_margin_leave_the_critical_value() -> None:
    """(d - margin) / s >= sqrt(2 log log 100) = 1.748: the twin has the plain t, the others their own
    bound."""
    gold = [place % 2 for place in range(100)]

    def wrong(n: int, step: int = 1, start: int = 0) -> list[int]:
        places = set(range(start, start + n * step, step))
        return [1 - label if place in places else label for place, label in enumerate(gold)]

    judges = {"best": gold, "twin": wrong(1), "bad": wrong(30, start=40), "mid": wrong(8, start=10)}
    plain, screened = (
        losses_against_best(gold, judges, scale="binary", metric="accuracy", margin=margin)
        for margin in (None, 0.03)
    )
    # mid: d = 0.08, s = (100/99 * 0.08 * 0.92 / 100)^(1/2) = 0.0273, and 0.05 / s = 1.83; bad: 0.27 / 0.046 =
    # 5.9
    t, u, s2 = float(stdtrit(99, 0.95)), 0.01, 0.01 * 0.99 / 99
    bound = 0.01 + t**2 * u / 2 + t * math.sqrt(s2 + (t * u) ** 2 / 4)
    assert screened.by_judge["twin"].upper == pytest.approx(bound)
    assert bound < (plain.by_judge["twin"].upper or 0.0)
    assert screened.by_judge["bad"].upper == plain.by_judge["bad"].upper
    assert screened.method.endswith("without judges clearly beyond the margin")
    near = losses_against_best(gold, judges, scale="binary", metric="accuracy", margin=0.034)
    assert (screened.by_judge["twin"].upper or 0.0) < (near.by_judge["twin"].upper or 0.0)  # 0.046 / s = 1.69


def test_the_questions_needed_by_hand() -> None:
    found = losses({"a": list(RIGHT), "b": list(FOUR_WRONG)})
    # room r = 0.3 - 0.2; G (c + t_power)^2 (s^2 + u r) / r^2 with t_0.8(19) = 0.8610
    s2 = 20 / 19 * 3.2 / 400
    wanted = 20 * (C + 0.86095) ** 2 * (s2 + 0.05 * 0.1) / 0.1**2
    assert found.questions_needed("b", 0.3) == math.ceil(wanted)
    assert found.questions_needed("b", 0.2) is None


def test_what_ranks_nobody_is_refused() -> None:
    with pytest.raises(InputError, match="prevalence ranks nobody"):
        losses({"a": list(RIGHT)}, metric="prevalence")
    with pytest.raises(InputError, match="no judge has a value"):
        losses_against_best([1] * 20, {"a": [1] * 20}, scale="binary")
    with pytest.raises(InputError, match="in units of"):
        losses_against_best(
            GOLD, {"a": [100.0] * 20, "b": RIGHT}, scale="binary", scales={"a": "percentage"}, metric="mae"
        )


@pytest.mark.parametrize(("k", "df"), [(3, 20), (6, 109), (11, 12)])
def test_critical_values_against_the_multivariate_t(k: int, df: int) -> None:
    """Judges of equal spread that vary apart: their differences from one of them correlate by 1/2."""
    square = np.random.default_rng(0).standard_normal((200, k))
    parts = np.linalg.qr(square - square.mean(axis=0))[0].T
    found = critical_values(parts, np.full((k, k), float(df)), level=0.95, n_draws=20_000, seed=0)[:, 0]
    shape = np.full((k - 1, k - 1), 0.5) + 0.5 * np.eye(k - 1)
    for c in (min(found), max(found)):  # what it holds rises with c, so those between hold too
        held = multivariate_t(shape=shape, df=df, seed=1).cdf(np.full(k - 1, c), maxpts=200_000)
        assert held == pytest.approx(0.95, abs=0.006)


def apart(k: int, *, scale: float = 1.0) -> Floats:
    """k judges whose influences over 200 groups are of one spread and do not go together."""
    square = np.random.default_rng(0).standard_normal((200, k))
    return scale * np.linalg.qr(square - square.mean(axis=0))[0].T


def critical(parts: Floats, df: float = 109.0, *, level: float = 0.95, seed: int = 0) -> list[float]:
    table = np.full((len(parts), len(parts)), df)
    return critical_values(parts, table, level=level, n_draws=20_000, seed=seed)[:, 0].tolist()


@pytest.mark.parametrize(
    ("others", "df", "level", "published"),
    [(2, 10, 0.95, 2.15), (3, 10, 0.95, 2.34), (2, 20, 0.95, 2.03), (4, 20, 0.95, 2.30), (2, 20, 0.99, 2.81)],
)
def test_values_of_a_published_table(others: int, df: float, level: float, published: float) -> None:
    """Dunnett (1955), one-sided, comparisons with one control of equal spread (they correlate by a half)."""
    for found in critical(apart(others + 1), df, level=level):
        assert found == pytest.approx(published, rel=0.025)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_judges_alike_but_for_rounding_are_no_further_comparison(scale: float) -> None:
    # The first two differ by rounding alone, or by as good as that: either has one other judge, and the plain
    # t.
    plain = pytest.approx(float(stdtrit(109, 0.95)))
    for seed in range(40):
        rng = np.random.default_rng(seed)
        first, third = (scale * rng.standard_normal(110) for _ in range(2))
        for second in ((first + 0.1 * scale) - 0.1 * scale, first * (1.0 + 1e-7)):
            parts = np.array([one - one.mean() for one in (first, second, third)])
            found = critical_values(parts, np.full((3, 3), 109.0), level=0.95, n_draws=500, seed=0)[
                :, 0
            ].tolist()
            assert found[:2] == [plain, plain]
    assert critical(parts)[2] == pytest.approx(1.66, rel=0.03)  # for the third, two alike are as good as one


def test_a_judge_like_every_other_and_one_that_stands_alone_have_the_plain_t() -> None:
    plain = pytest.approx(float(stdtrit(109, 0.9)))
    assert critical(np.repeat(apart(1), 3, axis=0), level=0.9) == [plain] * 3
    assert critical(apart(1), level=0.9) == [plain]


def test_the_fewest_degrees_of_freedom_count_and_whole_ones() -> None:
    nothing = np.nan
    df = np.array([[nothing, 7.9], [12.0, nothing]])
    found = critical_values(apart(2), df, level=0.95, n_draws=10, seed=0)[:, 0].tolist()
    assert found == pytest.approx([stdtrit(7, 0.95), stdtrit(12, 0.95)])
    df = np.array([[nothing, 0.4], [nothing, nothing]])  # at least one; where none is known, groups less one
    found = critical_values(apart(2), df, level=0.95, n_draws=10, seed=0)[:, 0].tolist()
    assert found == pytest.approx([stdtrit(1, 0.95), stdtrit(199, 0.95)])


def test_a_close_rival_counts_in_full_and_a_small_difference_is_one() -> None:
    # The second judge is the first but for a thousandth: for the third they are one, for the first they are
    # two.
    parts = apart(3)
    parts[1] = parts[0] + 1e-3 * parts[1]
    first, _, third = critical(parts)
    assert first > 1.85 and third == pytest.approx(1.66, rel=0.02)


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


def test_the_stratum_that_the_bounds_hang_on_is_that_of_compare() -> None:
    gold = [1] * 108 + [0] * 12
    judges = {
        "a": gold,
        "b": [1 - label if place % 3 == 0 else label for place, label in enumerate(gold)],
        "c": gold,
    }
    found = losses_against_best(gold, judges, scale="binary")
    strata = compare(gold, gold, judges["b"], scale="binary").strata
    assert [found.by_judge[judge].strata for judge in "ab"] == [(), strata]
    assert (
        found.driven == driven_in_words([("a", "b", strata)])
        and 'the 12 "fail" items of 120' in found.driven[0]
    )
    assert losses_against_best(gold, judges, scale="binary", metric="accuracy").driven == []
