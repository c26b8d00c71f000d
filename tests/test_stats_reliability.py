"""Reliability among raters: values by hand, missing ratings, counts, names, invariances, what is
undefined."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from judgecal.errors import InputError
from judgecal.records import Estimate
from judgecal.scale import Scale
from judgecal.stats import agreement, reliability

THREE = {"a": [1, 1, 0, 1], "b": [1, 0, 0, None], "c": [1, None, 0, float("nan")]}


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def panel(scale: str, n: int, k: int, *, missing: float = 0.2, seed: int = 0) -> dict[str, list[object]]:
    """k raters who mostly give an item's own label; some ratings are missing."""
    rng = np.random.default_rng(seed)
    high = {"binary": 1, "nominal": 2, "ordinal:0:4": 4, "percentage": 100}[scale]
    truth = rng.integers(0, high + 1, n)
    found: dict[str, list[object]] = {}
    for rater in range(k):
        said = np.where(rng.random(n) < 0.7, truth, rng.integers(0, high + 1, n))
        words = [("x", "y", "z")[i] for i in said] if scale == "nominal" else said.tolist()
        found[f"r{rater}"] = [
            None if lost else word for word, lost in zip(words, rng.random(n) < missing, strict=True)
        ]
    return found


def values(found: dict[str, Estimate]) -> dict[str, float | None]:
    return {name: estimate.value for name, estimate in found.items()}


def test_three_raters_by_hand() -> None:
    # Items 111, 10-, 000, 1--. Of 8 ratings of items with two 4 are 1; 2 disagreeing pairs: 1 - 7 * 2 / (64 - 32).
    found = reliability(THREE, scale="binary")
    assert found["krippendorff_alpha"].value == pytest.approx(1 - 14 / 32)


def test_an_item_of_three_ratings_counts_its_pairs_by_two() -> None:
    # 1 1 0, 0 0, 1 1: two of its six ordered pairs differ each way, over 2; 4 ratings are 1 and 3 are 0.
    found = reliability({"a": [1, 0, 1], "b": [1, 0, 1], "c": [0, None, None]}, scale="binary")
    assert found["krippendorff_alpha"].value == pytest.approx(1 - 6 * 2 / (49 - 25))


def test_problems_are_told_by_the_ten() -> None:
    with pytest.raises(InputError) as told:
        reliability([[label] for label in range(2, 14)], scale="binary")
    assert len(told.value.problems) == 11 and told.value.problems[-1] == "... and 2 more problems"


def test_counts() -> None:
    found = reliability(THREE, scale="binary", groups=["p", "p", "q", "r"])
    estimate = found["krippendorff_alpha"]
    assert (estimate.n, estimate.n_expected, estimate.n_unscored, estimate.n_groups) == (3, 4, 1, 2)
    assert estimate.low is None and estimate.reason == "2 groups: fewer than 10 give no interval"


def test_an_item_that_nobody_rated_is_no_item() -> None:
    more = {rater: [None, *labels] for rater, labels in THREE.items()}
    found = reliability(more, scale="binary", groups=["p", "p", "p", "q", "r"])
    assert found == reliability(THREE, scale="binary", groups=["p", "p", "q", "r"])


def test_icc_is_of_the_items_that_all_rated() -> None:
    # The first three items: 1 2, 3 4, 5 6 (see test_stats_metrics): 8 / 9. The others lack a rater.
    found = reliability({"a": [10, 30, 50, 90, None], "b": [20, 40, 60, None, 7]}, scale="percentage")
    assert found["icc_2_1"].value == pytest.approx(8 / 9)
    assert (found["icc_2_1"].n, found["icc_2_1"].n_expected, found["icc_2_1"].n_unscored) == (3, 5, 2)


@pytest.mark.parametrize("scale", ["binary", "nominal", "ordinal:0:4", "percentage"])
def test_two_raters_are_a_judge_and_people(scale: str) -> None:
    ratings = panel(scale, 60, 2, seed=1)
    groups = np.repeat(np.arange(20), 3).tolist()
    both = [i for i, pair in enumerate(zip(*ratings.values(), strict=True)) if None not in pair]
    kept = {rater: [labels[i] for i in both] for rater, labels in ratings.items()}
    spare = [groups[i] for i in both]
    together = reliability(kept, scale=scale, groups=spare)
    pair = agreement(kept["r0"], kept["r1"], scale=scale, groups=spare)
    assert list(together) == ["krippendorff_alpha", *(["icc_2_1"] if scale[0] in "op" else [])]
    for name, estimate in together.items():
        other = pair[name]
        assert estimate.value == pytest.approx(other.value, abs=1e-12), name
        assert (estimate.low, estimate.high) == pytest.approx((other.low, other.high), abs=1e-9), name
        assert (estimate.n, estimate.n_groups) == (other.n, other.n_groups), name
    assert together["krippendorff_alpha"].value == pytest.approx(
        reliability(ratings, scale=scale)["krippendorff_alpha"].value
    )


def test_forms_of_input_are_the_same() -> None:
    by_rater = reliability(THREE, scale="binary", groups=["p", "p", "q", "r"])
    rows = reliability(list(THREE.values()), scale="binary", groups=["p", "p", "q", "r"])
    by_item = reliability(
        {
            rater: {f"i{i}": y for i, y in enumerate(labels) if y is not None}
            for rater, labels in THREE.items()
        },
        scale="binary",
        groups={"i0": "p", "i1": "p", "i2": "q", "i3": "r", "i4": "of another set"},
    )
    assert by_item == by_rater
    assert list(rows.values()) == list(by_rater.values())


def test_at_the_pass_mark() -> None:
    graded = {"a": [90, 60, 20, 70], "b": [80, 10, 30, None], "c": [50, None, 49, None]}
    found = reliability(graded, scale=Scale.parse("percentage", pass_at=50))
    passed = reliability(THREE, scale="binary")
    expected = passed["krippendorff_alpha"].value
    assert found["krippendorff_alpha@50"].value == pytest.approx(expected)
    assert found["krippendorff_alpha"].value != pytest.approx(expected)


def test_groups_without_a_pair_of_ratings_carry_no_degrees_of_freedom() -> None:
    ratings = {"a": [1, 0] * 12 + [1] * 8, "b": [1, 0, 1, 1] * 6 + [None] * 8}
    found = reliability(ratings, scale="binary")["krippendorff_alpha"]
    alone = reliability({rater: labels[:24] for rater, labels in ratings.items()}, scale="binary")
    assert found.n_groups == 24 and found.method.startswith("jackknife by group, logit, t(")
    assert (found.low, found.method) == (alone["krippendorff_alpha"].low, alone["krippendorff_alpha"].method)


def test_all_ratings_equal() -> None:
    found = reliability([[1] * 12] * 3, scale="binary")
    alpha = found["krippendorff_alpha"]
    assert alpha.value is None and alpha.reason and alpha.n == 12
    graded = reliability([[50] * 12] * 3, scale="percentage")
    assert graded["icc_2_1"].value is None and graded["krippendorff_alpha"].value is None


@pytest.mark.parametrize(
    ("ratings", "reason"),
    [
        ([[1, 0, 1]], "1 rater: reliability needs two"),
        ([], "0 raters: reliability needs two"),
        ([[1, None], [None, 0]], "no item has two ratings"),
        ([[None], [None]], "no item has two ratings"),
    ],
)
def test_nothing_to_compare(ratings: list[list[object]], reason: str) -> None:
    found = reliability(ratings, scale="binary")
    assert found["krippendorff_alpha"].value is None and found["krippendorff_alpha"].reason == reason


def test_raters_who_never_meet_in_threes() -> None:
    found = reliability([[1, 2, None], [1, None, 4], [None, 2, 4]], scale="ordinal:0:4")
    assert found["icc_2_1"].value is None and found["icc_2_1"].reason == "no item was rated by every rater"
    assert found["krippendorff_alpha"].value == 1.0


@pytest.mark.parametrize(
    ("ratings", "groups", "message"),
    [
        ({"a": [1, 0], "b": [1]}, None, "'a' 2, 'b' 1"),
        ({"a": [1, 5], "b": [1, 0]}, None, r"ratings\['a'\]\[1\]: '?5"),
        ({"a": [1, 0], "b": {"i": 1}}, None, "every rater's labels by item"),
        ({"a": {"i": 1}, "b": {"i": 1}}, {"j": "q"}, "no group for 1 items: 'i'"),
        ({"a": [1, 0], "b": [1, 0]}, ["q"], "2 items but 1 groups"),
    ],
)
def test_bad_input(ratings: dict[str, object], groups: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reliability(ratings, scale="binary", groups=groups)  # type: ignore[arg-type]
