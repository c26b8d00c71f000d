"""The alternative annotator test: by hand, who is left out, constant differences, groups, a range of
epsilon."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from judgecal.errors import InputError
from judgecal.stats import alt_test
from judgecal.stats.stand_in import _benjamini_yekutieli


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def rated(*labels: object) -> dict[str, object]:
    return {f"i{i}": label for i, label in enumerate(labels)}


def made_up(
    n: int = 60, k: int = 3, *, seed: int = 0, high: int = 3
) -> tuple[dict[str, dict[Any, Any]], Any]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, high + 1, n)

    def labels() -> dict[str, object]:
        said = np.where(rng.random(n) < 0.7, truth, rng.integers(0, high + 1, n))
        return rated(*said.tolist())

    return {f"h{j}": labels() for j in range(k)}, labels()


def test_who_is_nearer_by_hand() -> None:
    """40 items: the judge alone says what b says on 10, a alone on 4, both or neither on 26."""
    b = rated(*[1] * 40)
    a = rated(*[0] * 10, *[1] * 26, *[0] * 4)
    judge = rated(*[1] * 10, *[1] * 22, *[0] * 8)
    found = alt_test({"a": a, "b": b}, judge, scale="binary", epsilon=0.2)
    near = found.nearer["a"]
    assert (near.judge, near.human, near.tie) == (10 / 40, 4 / 40, 26 / 40)
    assert found.advantage_probability == pytest.approx(
        sum(one.judge + one.tie for one in found.nearer.values()) / 2
    )


def test_graded_labels_are_scored_by_rmse() -> None:
    # Left out a: the others are 0 and 4. a says 2: RMSE 2. The judge says 0: RMSE sqrt(8): a wins, always.
    # By accuracy the judge would win. Left out b (0) or c (4): the others are 2 and 4, or 0 and 2. The judge
    # says 0 as b does: tie; against c (4): RMSE of 0 to 0 and 2 is sqrt(2), of 4 sqrt(10): the judge wins.
    humans = {"a": rated(*[2] * 30), "b": rated(*[0] * 30), "c": rated(*[4] * 30)}
    judge = rated(*[0] * 30)
    found = alt_test(humans, judge, scale="ordinal:0:4", epsilon=0.1)
    assert found.p_values == {"a": 1.0, "b": 0.0, "c": 0.0}
    assert found.rejected == ("b", "c") and found.winning_rate == pytest.approx(2 / 3)
    assert found.advantage_probability == pytest.approx(2 / 3)
    words = {name: {i: str(y) for i, y in row.items()} for name, row in humans.items()}
    by_word = alt_test(words, {i: str(y) for i, y in judge.items()}, scale="nominal", epsilon=0.1)
    assert by_word.p_values == {"a": 0.0, "b": 0.0, "c": 0.0}


def test_ties_win_for_both_in_spite_of_rounding() -> None:
    # 10.1 and 10.3 are as far from 10.2 as each other, but not in floating point; whoever is left out, a tie.
    assert 10.3 - 10.2 != 10.2 - 10.1
    for ours, theirs in ((10.3, 10.1), (10.1, 10.3)):
        humans = {"a": rated(*[ours] * 30), "b": rated(*[10.2] * 30)}
        found = alt_test(humans, rated(*[theirs] * 30), scale="percentage", epsilon=0.0)
        assert found.p_values["a"] is None  # a difference of 0 throughout, where epsilon is 0


def test_constant_differences() -> None:
    same = rated(*[1, 0] * 20)
    humans = {"a": same, "b": same, "c": same}
    below = alt_test(humans, same, scale="binary", epsilon=0.1)
    assert below.p_values == {"a": 0.0, "b": 0.0, "c": 0.0} and below.passed is True
    equal = alt_test(humans, same, scale="binary", epsilon=0.0)
    assert equal.p_values == {"a": None, "b": None, "c": None}
    assert (equal.winning_rate, equal.rejected, equal.passed) == (0.0, (), False)
    assert equal.advantage_probability == 1.0
    never = rated(*[0, 1] * 20)
    above = alt_test(humans, never, scale="binary", epsilon=0.2)
    assert above.p_values == {"a": 1.0, "b": 1.0, "c": 1.0} and above.advantage_probability == 0.0
    at_one = alt_test(humans, never, scale="binary", epsilon=1.0)
    assert at_one.p_values == {"a": None, "b": None, "c": None} and at_one.passed is False


def test_one_label_an_item() -> None:
    humans = {"a": rated(*[1] * 40), "b": {f"j{i}": 0 for i in range(40)}}
    found = alt_test(humans, rated(*[1] * 40), scale="binary", epsilon=0.2)
    assert found.winning_rate is None and found.advantage_probability is None and found.passed is None
    assert found.p_values == {} and found.rejected == () and set(found.left_out) == {"a", "b"}
    assert found.reason is not None and found.reason.startswith("each item has one human label:")
    assert (found.n_expected, found.n_unscored) == (0, 0)
    alone = alt_test({"a": rated(*[1] * 40)}, rated(*[1] * 40), scale="binary", epsilon=0.2)
    assert alone.winning_rate is None and alone.reason == found.reason
    assert alt_test({}, {}, scale="binary", epsilon=0.2).reason == found.reason


def test_humans_with_few_items_are_left_out_and_named() -> None:
    humans, judge = made_up(60)
    humans["h3"] = {item: humans["h0"][item] for item in list(humans["h0"])[:29]}
    found = alt_test(humans, judge, scale="nominal", epsilon=0.2)
    assert list(found.p_values) == ["h0", "h1", "h2"] and found.n_items["h3"] == 29
    assert found.left_out == {"h3": "29 items shared with another human and the judge: fewer than 30"}
    # A label of a human who is left out still is a human's label: it counts among the others'.
    without = alt_test(
        {n: row for n, row in humans.items() if n != "h3"}, judge, scale="nominal", epsilon=0.2
    )
    assert without.p_values != found.p_values
    humans["h3"] = {item: humans["h0"][item] for item in list(humans["h0"])[:30]}
    assert alt_test(humans, judge, scale="nominal", epsilon=0.2).left_out == {}


def test_items_of_one_question_are_no_new_evidence() -> None:
    """Every item twice, in one group with its copy: the p values are those of the single items."""
    humans, judge = made_up(60, seed=2)
    twice = {name: row | {f"{item}+": label for item, label in row.items()} for name, row in humans.items()}
    double = judge | {f"{item}+": label for item, label in judge.items()}
    once = alt_test(humans, judge, scale="nominal", epsilon=0.2)
    grouped = alt_test(
        twice, double, scale="nominal", epsilon=0.2, groups={item: item.rstrip("+") for item in double}
    )
    naive = alt_test(twice, double, scale="nominal", epsilon=0.2)
    assert grouped.p_values == pytest.approx(once.p_values, abs=1e-12)
    assert all((naive.p_values[name] or 0.0) < (once.p_values[name] or 0.0) for name in humans)
    alone = alt_test(humans, judge, scale="nominal", epsilon=0.2, groups={item: item for item in judge})
    assert alone.p_values == once.p_values
    nine = {item: int(item[1:]) % 9 for item in judge}
    few = alt_test(humans, judge, scale="nominal", epsilon=0.2, groups=nine)
    assert few.winning_rate is None and few.left_out["h0"] == "9 groups: fewer than 10"


@pytest.mark.parametrize("seed", range(5))
def test_benjamini_yekutieli(seed: int) -> None:
    """The same hypotheses as SciPy's adjusted p values reject."""
    p = np.random.default_rng(seed).beta(0.15, 4.0, 12)
    names = [f"h{i}" for i in range(12)]
    adjusted = false_discovery_control(p, method="by")
    expected = tuple(name for name, q in zip(names, adjusted, strict=True) if q <= 0.05)
    assert _benjamini_yekutieli(dict(zip(names, p.tolist(), strict=True))) == expected
    assert 0 < len(expected) < 12


@pytest.mark.parametrize("epsilon", [-0.1, 1.1, float("nan")])
def test_an_epsilon_that_is_none(epsilon: float) -> None:
    humans, judge = made_up(40)
    with pytest.raises(InputError, match="between 0 and 1"):
        alt_test(humans, judge, scale="nominal", epsilon=epsilon)


def test_bad_labels_and_groups() -> None:
    humans, judge = made_up(40)
    with pytest.raises(InputError, match=r"ratings\['human h1'\]\['i7'\]: .*7"):
        alt_test(humans | {"h1": rated(*[1] * 7, 7, *[0] * 32)}, judge, scale="ordinal:0:3", epsilon=0.1)
    with pytest.raises(InputError, match=r"ratings\['judge'\]\['i0'\]"):
        alt_test(humans, {"i0": 9}, scale="ordinal:0:3", epsilon=0.1)
    with pytest.raises(InputError, match="no group for 40 items"):
        alt_test(humans, judge, scale="nominal", epsilon=0.1, groups={})
