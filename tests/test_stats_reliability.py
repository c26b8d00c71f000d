"""Reliability among raters: values by hand, missing ratings, counts, names, invariances, what is
undefined."""

from __future__ import annotations

import warnings
from itertools import combinations

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
    # Items 111, 10-, 000, 1--. Three have two ratings; agreeing pairs 1, 0, 1: observed 2/3.
    # Shares of 1 by item 1, 1/2, 0, 1: mean 5/8. Fleiss: chance 34/64. AC1: chance 2 * 5/8 * 3/8 = 30/64.
    # Alpha: of 8 ratings 4 are 1; 2 disagreeing pairs: 1 - 7 * 2 / (64 - 32).
    found = reliability(THREE, scale="binary")
    assert found["fleiss_kappa"].value == pytest.approx((2 / 3 - 34 / 64) / (30 / 64))
    assert found["gwet_ac1"].value == pytest.approx((2 / 3 - 30 / 64) / (34 / 64))
    assert found["krippendorff_alpha"].value == pytest.approx(1 - 14 / 32)
    # a and b share three items: 2/3 agree; chance 2/3 * 1/3 + 1/3 * 2/3. a and c: both items the same.
    assert found["kappa[a,b]"].value == pytest.approx((2 / 3 - 4 / 9) / (5 / 9))
    assert found["kappa[a,c]"].value == found["kappa[b,c]"].value == 1.0
    assert [name for name in found if "[" in name] == ["kappa[a,b]", "kappa[a,c]", "kappa[b,c]"]


def test_counts() -> None:
    found = reliability(THREE, scale="binary", groups=["p", "p", "q", "r"])
    for name, n, groups in (("krippendorff_alpha", 3, 2), ("fleiss_kappa", 3, 2), ("kappa[a,c]", 2, 2)):
        estimate = found[name]
        counts = (estimate.n, estimate.n_expected, estimate.n_unscored, estimate.n_groups)
        assert counts == (n, 4, 4 - n, groups), name
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
    both = [
        i for i, pair in enumerate(zip(*ratings.values(), strict=True)) if None not in pair
    ]  # single ratings count in AC1's and Fleiss' shares, and in no pair
    kept = {rater: [labels[i] for i in both] for rater, labels in ratings.items()}
    spare = [groups[i] for i in both]
    together = reliability(kept, scale=scale, groups=spare)
    pair = agreement(kept["r0"], kept["r1"], scale=scale, groups=spare)
    names = {"fleiss_kappa": "scott_pi", "kappa[r0,r1]": "kappa", "kappa_quadratic[r0,r1]": "kappa_quadratic"}
    held = 0
    for name, estimate in together.items():
        other = pair.get(names.get(name, name))
        if other is not None:
            held += 1
            assert estimate.value == pytest.approx(other.value, abs=1e-12), name
            assert (estimate.low, estimate.high) == pytest.approx((other.low, other.high), abs=1e-9), name
            assert (estimate.n, estimate.n_groups) == (other.n, other.n_groups), name
    assert held >= (2 if scale == "percentage" else 4)
    assert together["krippendorff_alpha"].value == pytest.approx(
        reliability(ratings, scale=scale)["krippendorff_alpha"].value
    )


def test_categories_that_nobody_chose_count_in_ac1() -> None:
    # Items xx, yy, xy: two thirds agree, shares 1/2 and 1/2: chance 1/2 with two categories, 1/4 with three.
    ratings = [["x", "y", "x"], ["x", "y", "y"]]
    full = Scale("nominal", 0.0, 0.0, categories=("w", "x", "y"))
    assert reliability(ratings, scale="nominal")["gwet_ac1"].value == pytest.approx((2 / 3 - 1 / 2) / (1 / 2))
    assert reliability(ratings, scale=full)["gwet_ac1"].value == pytest.approx((2 / 3 - 1 / 4) / (3 / 4))


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
    assert "kappa[0,1]" in rows


def test_at_the_pass_mark() -> None:
    graded = {"a": [90, 60, 20, 70], "b": [80, 10, 30, None], "c": [50, None, 49, None]}
    found = reliability(graded, scale=Scale.parse("percentage", pass_at=50))
    passed = reliability(THREE, scale="binary")
    for name in ("krippendorff_alpha", "fleiss_kappa", "gwet_ac1"):
        assert found[f"{name}@50"].value == pytest.approx(passed[name].value), name
    assert found["kappa@50[a,b]"].value == pytest.approx(passed["kappa[a,b]"].value)
    assert "icc_2_1@50" not in found
    assert found["krippendorff_alpha"].value != pytest.approx(found["krippendorff_alpha@50"].value)
    for name in ("fleiss_kappa", "gwet_ac1", "kappa[a,b]"):
        assert found[name].value is None
        assert found[name].reason == "a percentage has no categories without a pass mark"


def test_groups_without_a_pair_of_ratings_carry_no_degrees_of_freedom() -> None:
    ratings = {"a": [1, 0] * 12 + [1] * 8, "b": [1, 0, 1, 1] * 6 + [None] * 8}
    found = reliability(ratings, scale="binary")["krippendorff_alpha"]
    alone = reliability({rater: labels[:24] for rater, labels in ratings.items()}, scale="binary")
    assert found.n_groups == 24 and found.method.startswith("jackknife by group, logit, t(")
    assert (found.low, found.method) == (alone["krippendorff_alpha"].low, alone["krippendorff_alpha"].method)


def test_all_ratings_equal() -> None:
    found = reliability([[1] * 12] * 3, scale="binary")
    for name in ("krippendorff_alpha", "fleiss_kappa", "kappa[0,1]"):
        assert found[name].value is None and found[name].reason and found[name].n == 12, name
    assert found["gwet_ac1"].value == 1.0 and found["gwet_ac1"].low is None
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
    for name in ("krippendorff_alpha", "fleiss_kappa", "gwet_ac1", "icc_2_1"):
        assert found[name].value is None and found[name].reason == reason, name
    pairs = [name for name in found if "[" in name]
    assert len(pairs) == len(list(combinations(ratings, 2)))
    assert all(found[name].reason == "no item has a rating of both" for name in pairs)


def test_raters_who_never_meet_in_threes() -> None:
    found = reliability([[1, 2, None], [1, None, 4], [None, 2, 4]], scale="ordinal:0:4")
    assert found["icc_2_1"].value is None and found["icc_2_1"].reason == "no item was rated by every rater"
    assert found["krippendorff_alpha"].value == 1.0


def test_a_scale_without_grades_has_no_icc() -> None:
    found = reliability(THREE, scale="binary")["icc_2_1"]
    assert found.value is None and found.reason == "taken on scales with grades only"


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
