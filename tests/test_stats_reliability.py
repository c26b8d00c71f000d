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


def test_a_pass_mark_of_zero_is_a_mark() -> None:
    rng = np.random.default_rng(3)
    grades = {name: rng.integers(-2, 3, 40).tolist() for name in ("a", "b", "c")}
    passed = {name: [int(grade >= 0) for grade in given] for name, given in grades.items()}
    at_zero = reliability(grades, scale=Scale.parse("ordinal:-2:2", pass_at=0.0))["krippendorff_alpha@0"]
    assert at_zero.value == pytest.approx(reliability(passed, scale="binary")["krippendorff_alpha"].value)
