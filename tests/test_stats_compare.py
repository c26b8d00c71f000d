"""`compare`: the decision and what it rests on, Holm over several, and the smallest detectable difference."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import stdtrit

from judgecal.errors import InputError
from judgecal.stats import agreement, compare, compare_all, compare_paired
from judgecal.stats.compare import Planned
from judgecal.stats.significance import mcnemar_midp


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def outcomes(*counts: tuple[int, int, int]) -> tuple[list[int], list[int], list[int]]:
    """Labels, all 1, and verdicts: (a right, b right, how often) by how often."""
    a = [x for x, _, n in counts for _ in range(n)]
    b = [y for _, y, n in counts for _ in range(n)]
    return [1] * len(a), a, b


def test_which_test_for_which_metric() -> None:
    gold, a, b = outcomes((1, 1, 20), (1, 0, 9), (0, 1, 2), (0, 0, 9))
    singles = compare(gold, a, b, scale="binary", metric="accuracy")
    assert singles.p_method == "McNemar mid-p" and singles.p_value == mcnemar_midp(9, 2)
    pairs = [i // 2 for i in range(40)]
    assert compare(gold, a, b, scale="binary", metric="tpr", groups=pairs).p_method.startswith("sign flips")
    twice = compare(gold, [[v, v] for v in a], b, scale="binary", metric="accuracy")
    assert twice.p_method.startswith("sign flips")  # two calls on one item are no two items
    mixed = [1, 0] * 20
    assert "sign flips by group" in compare(mixed, a, b, scale="binary", metric="kappa").p_method
    assert compare(mixed, a, b, scale="binary", metric="macro_agreement").p_method == "the t of the interval"


# --- the decision


def test_a_and_b() -> None:
    gold, a, b = outcomes((1, 1, 60), (1, 0, 20), (0, 1, 4), (0, 0, 16))
    found = compare(gold, a, b, scale="binary", metric="accuracy")
    assert (found.decision, found.a, found.b) == ("A", 0.80, 0.64)
    assert found.difference.value == pytest.approx(0.16)
    assert found.p_value == found.p_adjusted == pytest.approx(mcnemar_midp(20, 4))
    assert found.why.startswith("the interval of the difference lies above 0, p = 0.00")
    back = compare(gold, b, a, scale="binary", metric="accuracy")
    assert (back.decision, back.p_value) == ("B", found.p_value)
    assert (back.difference.low, back.difference.high) == pytest.approx(
        (-(found.difference.high or 0), -(found.difference.low or 0))
    )
    assert back.smallest_detectable == pytest.approx(found.smallest_detectable)


@pytest.mark.parametrize("metric", ["macro_agreement", "accuracy", "kappa", "mae"])
def test_identical_judges(metric: str) -> None:
    gold = [1, 0] * 15
    judge = [1, 0, 1, 1, 0, 0] * 5
    found = compare(gold, judge, judge, scale="binary", metric=metric)
    assert (found.difference.value, found.difference.low, found.difference.high) == (0.0, 0.0, 0.0)
    assert (found.p_value, found.decision) == (1.0, "cannot tell")
    assert "equally well with people on every question" in found.why
    assert (
        found.smallest_detectable is not None and found.smallest_detectable > 0.05
    )  # never that of no spread


def test_two_perfect_judges() -> None:
    gold = [1, 0] * 15
    found = compare(gold, gold, gold, scale="binary", metric="accuracy")
    # Each has the error of one group in 31; (t_0.975 + t_0.8)(29) = 2.045230 + 0.854192.
    planned = np.sqrt(1 / 31**2 + 3 / 30**2)  # wider, as so few items would differ
    assert found.decision == "cannot tell"
    assert found.smallest_detectable == pytest.approx((2.04522964 + 0.85419227) * planned, abs=1e-6)


@pytest.mark.parametrize("fails", [9, 10])
def test_few_items_of_a_stratum_decide_nothing(fails: int) -> None:
    gold = [1] * 100 + [0] * fails
    found = compare(gold, gold, [0] * 60 + [1] * (40 + fails), scale="binary")
    assert found.difference.clear_of_zero and found.p_value is not None and found.p_value < 0.001
    assert [(one.name, one.n, one.n_all) for one in found.strata] == [
        ("fail", fails, 100 + fails),
        ("pass", 100, 100 + fails),
    ]
    if fails == 10:
        assert found.decision == "A"
        return
    assert found.decision == "cannot tell"
    assert found.why == (
        'of 109 labelled items only 9 in "fail" (1 more would do): below 10 we decide nothing by '
        "macro_agreement"
    )
    # What rests on all items can still be told apart.
    assert (
        compare(gold, gold, [0] * 60 + [1] * (40 + fails), scale="binary", metric="accuracy").decision == "A"
    )


# --- unscored items


def test_where_the_order_changes_nobody_wins() -> None:
    # b is right wherever it answers, a is wrong on 20 of those; b is silent on 40 that a gets right.
    gold, a, b = outcomes((1, 1, 40), (0, 1, 20), (1, 0, 40))
    silent: list[int | None] = [*b[:60], *[None] * 40]
    found = compare(gold, a, silent, scale="binary", metric="accuracy")
    assert found.difference.value == pytest.approx(0.80 - 0.60) and found.difference.clear_of_zero
    assert found.p_value is not None and found.p_value < 0.05
    # 60 items with both: 40/60 against 60/60.
    assert found.complete_case.difference.value == pytest.approx(-1 / 3)
    counts = [found.difference, found.complete_case.difference]
    assert [(one.n, one.n_expected, one.n_unscored) for one in counts] == [(100, 100, 40), (60, 100, 40)]
    assert found.decision == "cannot tell"
    assert (
        found.why == "the order depends on how items without a verdict count: +0.2 as wrong, -0.333 in the "
        "complete case"
    )
    assert compare(gold, a, b, scale="binary", metric="accuracy").decision == "A"


def test_an_order_that_cannot_be_confirmed() -> None:
    gold, a, _ = outcomes((1, 1, 40), (0, 0, 10))
    found = compare(gold, a, [None] * 50, scale="binary", metric="accuracy")
    assert found.decision == "cannot tell" and "no item that both judges scored" in found.why


def test_failing_on_the_hard_items_is_no_way_up() -> None:
    rng = np.random.default_rng(4)
    gold = rng.integers(0, 101, 150).astype(float)
    hard = np.arange(150) % 3 == 0
    judge = np.clip(gold + np.where(hard, 60.0, 8.0) * rng.choice([-1, 1], 150), 0, 100)
    silent: list[float | None] = [
        None if hard[i] and i % 2 else float(verdict) for i, verdict in enumerate(judge)
    ]
    found = compare(gold, silent, judge, scale="percentage", calibrate=False)
    assert (found.difference.value or 0) < 0 and found.decision != "A"
    # Left out, the silent judge would be as good; over its own scored items it would look better.
    assert found.complete_case.difference.value == 0.0
    alone = agreement(gold, silent, scale="percentage", metrics=["macro_agreement"])["macro_agreement"]
    both = agreement(gold, judge, scale="percentage", metrics=["macro_agreement"])["macro_agreement"]
    assert (alone.value or 0) > (both.value or 0)


def test_an_unknown_way_to_count() -> None:
    with pytest.raises(InputError, match="use 'wrong' or 'drop'"):
        compare_paired([1], [1], [1], scale="binary", unscored="zero")  # type: ignore[arg-type]


# --- several judges


def several(n: int = 80) -> tuple[list[int], dict[str, list[int]]]:
    gold = [1] * n
    return gold, {
        "best": [1] * 72 + [0] * 8,
        "middle": [1] * 64 + [0] * 16,
        "worst": [0] * 10 + [1] * 50 + [0] * 20,
    }


def test_every_pair_after_holm() -> None:
    gold, judges = several()
    found = compare_all(gold, judges, scale="binary", metric="accuracy")
    assert list(found) == [("best", "middle"), ("best", "worst"), ("middle", "worst")]
    raw = [mcnemar_midp(8, 0), mcnemar_midp(22, 0), mcnemar_midp(14, 0)]
    assert [one.p_value for one in found.values()] == pytest.approx(raw)
    assert [one.p_adjusted for one in found.values()] == pytest.approx([raw[0], 3 * raw[1], 2 * raw[2]])
    assert [one.decision for one in found.values()] == ["A", "A", "A"]
    # Detectable at the first step of Holm: at 1 - 0.05 / 3.
    alone = compare(gold, judges["best"], judges["worst"], scale="binary", metric="accuracy")
    of_three = found["best", "worst"].smallest_detectable
    assert alone.smallest_detectable is not None and of_three is not None
    # t(79): 1.990450 and 2.444636 (0.975 and 1 - 0.05 / 6), 0.846200 (0.8).
    assert of_three / alone.smallest_detectable == pytest.approx(
        (2.4450 + 0.8462) / (1.9905 + 0.8462), abs=1e-3
    )


def test_holm_can_take_a_decision_back() -> None:
    gold, a, b = outcomes((1, 1, 40), (1, 0, 6), (0, 0, 34))  # mid-p of 6 to 0: 1/64
    assert compare(gold, a, b, scale="binary", metric="accuracy").decision == "A"
    judges = {"a": a, "b": b, "c": a, "d": a}
    found = compare_all(gold, judges, scale="binary", metric="accuracy")["a", "b"]
    assert found.p_value == pytest.approx(1 / 64) and found.p_adjusted == pytest.approx(6 / 64)
    assert found.decision == "cannot tell" and "after Holm over 6 comparisons" in found.why


def test_a_comparison_takes_two() -> None:
    gold, judges = several()
    with pytest.raises(InputError, match="1 judge: a comparison takes two or more"):
        compare_all(gold, {"best": judges["best"]}, scale="binary")


def test_the_default_metric_and_wrong_ones() -> None:
    assert compare(["x", "y"] * 6, ["x"] * 12, ["y"] * 12, scale="nominal").metric == "accuracy"
    assert compare([1, 0] * 6, [1] * 12, [0] * 12, scale="binary").metric == "macro_agreement"
    with pytest.raises(InputError, match="unknown metric 'acuracy': did you mean accuracy"):
        compare([1], [1], [1], scale="binary", metric="acuracy")
    with pytest.raises(InputError, match="level is 95"):
        compare([1], [1], [1], scale="binary", level=95)


def test_the_smallest_difference_does_not_follow_the_one_seen() -> None:
    """Two pairs with the same accuracies of their judges, up to which one is ahead, and discordances under
    the plan."""
    seen = []
    for ahead in (0, 4, 8):
        # 0.80 and 0.80, 0.82 and 0.78, 0.84 and 0.76 of 100 items; 12 discordant.
        gold, a, b = outcomes((1, 1, 74), (1, 0, 6 + ahead // 2), (0, 1, 6 - ahead // 2), (0, 0, 14))
        found = compare(gold, a, b, scale="binary", metric="accuracy")
        assert found.difference.value == pytest.approx(ahead / 100)
        seen.append(found.smallest_detectable)
    # Planned are 16 items that differ, each of a hundredth.
    assert seen[0] == pytest.approx(0.16**0.5 * 2.83 / np.sqrt(99) * np.sqrt(1.0 + 3 / 16), abs=0.002)
    assert max(seen) - min(seen) < 0.002  # type: ignore[type-var,operator]
    # Judges that err apart from each other differ more than planned, and are not promised the plan.
    gold, a, b = outcomes((1, 1, 60), (1, 0, 20), (0, 1, 20))
    apart = compare(gold, a, b, scale="binary", metric="accuracy").smallest_detectable
    assert apart == pytest.approx(0.40**0.5 * 2.83 / np.sqrt(99) * np.sqrt(1.0 + 3 / 40), abs=0.003)


# --- what the benchmark measures, in small


def test_a_plan_for_other_numbers_of_questions_by_hand() -> None:
    """Errors fall with the root of the questions, what one of them adds with their number, freedom rises."""
    plan = Planned(error=0.05, step=0.02, df=39.0, n_groups=40, level=0.9)
    for n in (10, 40, 160):
        error = math.sqrt(0.05**2 * 40 / n + 3.0 * (0.02 * 40 / n) ** 2)
        df = 39 * n / 40
        assert plan.detectable(n) == pytest.approx((stdtrit(df, 0.95) + stdtrit(df, 0.8)) * error)
    needed = plan.groups_for(0.05)
    assert needed is not None and plan.detectable(needed) <= 0.05 < plan.detectable(needed - 1)
    assert plan.groups_for(9.0) == 10 and plan.groups_for(0.0) is None and plan.groups_for(1e-6) is None
    assert replace(plan, df=1.0, n_groups=4).detectable(2) == replace(plan, df=2.0, n_groups=4).detectable(2)
