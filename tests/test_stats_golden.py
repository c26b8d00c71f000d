"""Values against independent implementations: the cases of tests/golden/statistics.json."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgecal.records import Estimate
from judgecal.stats import agreement, alt_test, compare, reliability
from judgecal.stats.error_rates import carried_rate
from judgecal.stats.intervals import mean_estimate, wilson
from judgecal.stats.significance import holm, mcnemar_midp, sign_flip_p

GOLDEN = Path(__file__).parent / "golden" / "statistics.json"
SHARED = Path(__file__).parents[2] / "shared" / "golden" / "statistics.json"


CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"]


ALPHA = {"binary": "nominal", "ordinal": "ordinal", "percentage": "interval"}


PAIRS = {
    "percent_agreement": "accuracy", "balanced_accuracy": "balanced_accuracy",
    "bias_mean_judge_minus_gold": "bias", "cohen_kappa": "kappa", "cohen_kappa_quadratic": "kappa_quadratic",
    "f1_positive": "f1", "gwet_ac1": "gwet_ac1", "icc_2_1_absolute": "icc_2_1", "kendall_tau_b": "kendall",
    "lin_ccc": "concordance", "mae": "mae", "mcc": "mcc", "pearson": "pearson", "rmse": "rmse",
    "scott_pi": "scott_pi", "spearman": "spearman", "tnr_specificity": "tnr", "tpr_sensitivity": "tpr",
}  # fmt: skip


PANELS = {"icc_2_1_absolute": "icc_2_1"}


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def of_family(*names: str) -> list[Any]:
    found = [pytest.param(case, id=case["id"]) for case in CASES if case["family"] in names]
    assert found, f"the golden file has none of the families {names}"
    return found


def scale_of(case: dict[str, Any]) -> str:
    domain = case["input"]["domain"]
    if domain == "0-100":
        return "percentage"
    return "binary" if domain == [0, 1] else f"ordinal:{domain[0]}:{domain[-1]}"


def level_of(case: dict[str, Any]) -> str:
    return ALPHA[scale_of(case).partition(":")[0]]


def check(estimate: Estimate, expected: dict[str, Any], what: str) -> None:
    """The value to its tolerance; what is undefined has a reason and is nothing that a library makes of
    it."""
    if expected["value"] is None:
        assert estimate.value is None and estimate.low is None and estimate.reason, what
    else:
        assert estimate.value == pytest.approx(expected["value"], abs=expected["tol"]), what
    assert estimate.value is None or estimate.value != expected.get("reference_returns"), what


@pytest.mark.parametrize("case", of_family("pair_categorical", "pair_percentage"))
def test_pairs(case: dict[str, Any]) -> None:
    found = agreement(case["input"]["gold"], case["input"]["judge"], scale=scale_of(case))
    names = PAIRS | {f"krippendorff_alpha_{level_of(case)}": "krippendorff_alpha"}
    held = {ours for theirs, ours in names.items() if theirs in case["expected"] and ours in found}
    for theirs, ours in names.items():
        if ours in held:
            check(found[ours], case["expected"][theirs], ours)
    assert len(held) >= 9
    assert next(iter(found.values())).n == case["expected"]["n_pairs"]["value"]


def test_every_metric_with_a_known_value_was_held_to_one() -> None:
    """Had a name been misspelt in the table above, its metric would have been skipped in silence."""
    known = {name for case in CASES for name in case["expected"]}
    assert set(PAIRS) <= known and set(PANELS) <= known


@pytest.mark.parametrize("case", of_family("pair_categorical", "pair_percentage"))
def test_alpha_at_other_levels(case: dict[str, Any]) -> None:
    """The same numbers read as words have the nominal alpha, read as percentages the interval one."""
    gold, judge = case["input"]["gold"], case["input"]["judge"]
    for level, scale in (("nominal", "nominal"), ("interval", "percentage")):
        expected = case["expected"].get(f"krippendorff_alpha_{level}")
        if expected is not None:
            found = agreement(gold, judge, scale=scale, metrics=["krippendorff_alpha"])
            check(found["krippendorff_alpha"], expected, level)


@pytest.mark.parametrize("case", [p for p in of_family("pair_categorical") if p.values[0].get("traps")])
def test_traps_are_not_returned(case: dict[str, Any]) -> None:
    found = agreement(case["input"]["gold"], case["input"]["judge"], scale=scale_of(case))
    for trap in case["traps"].values():
        assert all(estimate.value != pytest.approx(trap["value"], abs=1e-6) for estimate in found.values())


def test_what_libraries_make_of_nothing_is_not_returned() -> None:
    """Of all the undefined values some library says 0 or 1: at least these are among the cases."""
    told = {
        (case["id"], name)
        for case in CASES
        for name, expected in case["expected"].items()
        if isinstance(expected, dict) and "reference_returns" in expected
    }
    assert {("bin_all_constant_same_n30", "scott_pi"), ("bin_n1", "mcc")} <= told
    found = agreement([1], [1], scale="binary")
    assert found["mcc"].value is None and found["scott_pi"].value is None


@pytest.mark.parametrize("case", of_family("pair_categorical"))
def test_wilson(case: dict[str, Any]) -> None:
    """The textbook interval is ours with the normal quantile and single items."""
    expected = case["expected"].get("accuracy_wilson_95")
    if expected is not None:
        n, rate = case["expected"]["n_pairs"]["value"], case["expected"]["percent_agreement"]["value"]
        assert wilson(rate, n, 1.959963984540054) == pytest.approx(expected["value"], abs=1e-9)


@pytest.mark.parametrize("case", of_family("multi_rater"))
def test_several_raters(case: dict[str, Any]) -> None:
    found = reliability(case["input"]["raters_by_units"], scale=scale_of(case))
    names = PANELS | {f"krippendorff_alpha_{level_of(case)}": "krippendorff_alpha"}
    held = 0
    for theirs, ours in names.items():
        if theirs in case["expected"] and ours in found:
            held += 1
            check(found[ours], case["expected"][theirs], ours)
    assert held


@pytest.mark.parametrize("case", of_family("multi_rater"))
def test_alpha_of_several_raters_at_other_levels(case: dict[str, Any]) -> None:
    for level, scale in (("nominal", "nominal"), ("interval", "percentage")):
        expected = case["expected"].get(f"krippendorff_alpha_{level}")
        if expected is not None:
            found = reliability(case["input"]["raters_by_units"], scale=scale)
            check(found["krippendorff_alpha"], expected, level)


@pytest.mark.parametrize("case", of_family("alt_test"))
def test_alternative_annotator_test(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    found = alt_test(given["humans"], given["llm"], scale="nominal", epsilon=given["epsilon"])
    assert found.winning_rate == expected["winning_rate"]["value"]
    assert found.advantage_probability == pytest.approx(expected["advantage_probability"]["value"], abs=1e-12)
    assert list(found.p_values) == list(given["humans"])
    for ours, theirs in zip(found.p_values.values(), expected["p_values"]["value"], strict=True):
        assert ours == (None if theirs is None else pytest.approx(theirs, abs=1e-9))
    humans = list(given["humans"])
    assert found.rejected == tuple(humans[i] for i in expected["rejected"]["value"])
    assert found.passed is expected["passes_omega_ge_0.5"]["value"]
    assert not found.left_out and found.reason is None


@pytest.mark.parametrize("case", of_family("paired_binary"))
def test_paired_binary(case: dict[str, Any]) -> None:
    """With every label 1 a verdict is right where it is 1."""
    a, b, expected = case["input"]["correct_a"], case["input"]["correct_b"], case["expected"]
    (both, only_a), (only_b, neither) = expected["table"]["value"]
    assert (both + only_a + only_b + neither, sum(a), sum(b)) == (len(a), both + only_a, both + only_b)
    assert mcnemar_midp(only_a, only_b) == pytest.approx(expected["mcnemar_midp_p"]["value"], abs=1e-9)
    net = np.array(a, dtype=float) - np.array(b)
    assert sign_flip_p(net)[0] == pytest.approx(expected["mcnemar_exact_p"]["value"], abs=1e-9)
    found = compare([1] * len(a), a, b, scale="binary", metric="accuracy")
    assert found.difference.value == pytest.approx(expected["mean_diff_a_minus_b"]["value"], abs=1e-12)
    assert found.p_value == pytest.approx(expected["mcnemar_midp_p"]["value"], abs=1e-9)
    assert found.decision == ("A" if only_a else "cannot tell")
    trap = case.get("traps", {}).get("mcnemar_chi2_cc_p")
    assert trap is None or found.p_value != trap["value"]


@pytest.mark.parametrize("case", of_family("paired_numeric"))
def test_paired_numeric(case: dict[str, Any]) -> None:
    errors, expected = case["input"], case["expected"]
    found = compare([0.0] * 10, errors["abs_err_a"], errors["abs_err_b"], scale="percentage", metric="mae")
    assert found.difference.value == pytest.approx(expected["mean_diff"]["value"], abs=1e-12)
    assert (found.difference.low, found.difference.high) == pytest.approx(
        expected["ttest_rel_ci95"]["value"], abs=1e-9
    )
    assert found.p_value == pytest.approx(expected["permutation_signflip_exact_p"]["value"], abs=1e-9)
    assert found.decision == "cannot tell"


@pytest.mark.parametrize("case", of_family("multiplicity"))
def test_multiplicity(case: dict[str, Any]) -> None:
    p, expected = case["input"]["p"], case["expected"]["holm_adjusted"]
    assert holm(p) == pytest.approx(expected["value"], abs=expected["tol"])
    backwards = holm(p[::-1])
    assert backwards[::-1] == pytest.approx(expected["value"], abs=expected["tol"])
    # Only the first stays below 0.05; without Holm five of them would.
    assert sum(one is not None and one < case["input"]["alpha"] for one in holm(p)) == 1


@pytest.mark.parametrize("case", of_family("clustered"))
def test_clustered(case: dict[str, Any]) -> None:
    """A judge with these hits against one that is never right: the difference is the clustered mean."""
    values, clusters, expected = case["input"]["values"], case["input"]["cluster"], case["expected"]
    n, groups = len(values), len(set(clusters))
    found = compare([1] * n, values, [0] * n, scale="binary", metric="accuracy", groups=clusters).difference
    assert found.value == pytest.approx(expected["mean"]["value"], abs=1e-12)
    assert found.n_groups == groups == 22 and found.low is not None and found.high is not None
    half = (found.high - found.low) / 2.0
    # Theirs lacks the correction G / (G - 1); t quantile of 21 degrees of freedom.
    clustered = expected["cluster_se_CR0"]["value"] * np.sqrt(22 / 21)
    assert half == pytest.approx(2.0796138447 * clustered, abs=1e-8)
    assert half > 1.5 * 1.96 * expected["naive_se"]["value"]


@pytest.mark.parametrize("case", of_family("rogan_gladen"))
def test_error_rates_that_are_carried_over(case: dict[str, Any]) -> None:
    """The share by Rogan and Gladen, kept within 0..1; none where the judge is no better than chance."""
    given, expected = case["input"], case["expected"]
    gold, judge = np.array(given["gold"]), np.array(given["judge_on_gold"], dtype=float)
    sides = {"raw_rate": given["judge_production"], "tpr": judge[gold == 1], "tnr": 1.0 - judge[gold == 0]}
    rates = {
        name: mean_estimate(np.array(rows, dtype=float), range(len(rows))) for name, rows in sides.items()
    }
    for name, rate in rates.items():
        check(rate, expected[name], name)
    found = carried_rate(*rates.values()).estimate
    check(found, expected["rogan_gladen_point"], "rogan_gladen_point")
    assert case["id"] != "rg_worse_than_random" or "add up to 0.500" in (found.reason or "")
    if "lee2025_ci95" in expected and 0.0 < (found.value or 0.0) < 1.0:
        assert (found.low, found.high) == pytest.approx(expected["lee2025_ci95"]["value"], abs=0.02)


@pytest.mark.skipif(not SHARED.is_file(), reason="no ../shared/golden/statistics.json beside this checkout")
def test_the_cases_are_those_beside_the_checkout() -> None:
    assert GOLDEN.read_bytes() == SHARED.read_bytes()
