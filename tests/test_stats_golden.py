"""Point values against independent implementations (tests/golden/statistics.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgecal.scale import Scale
from judgecal.stats import agreement, compare_paired
from judgecal.stats.intervals import linear_error, wilson
from judgecal.stats.linear import Means, linearise
from judgecal.stats.sample import build, codes_of
from judgecal.stats.significance import sign_flip_p

GOLDEN = Path(__file__).parent / "golden" / "statistics.json"
CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"]
NAMES = {
    "percent_agreement": "accuracy",
    "balanced_accuracy": "balanced_accuracy",
    "bias_mean_judge_minus_gold": "bias",
    "cohen_kappa": "kappa",
    "cohen_kappa_quadratic": "kappa_quadratic",
    "lin_ccc": "concordance",
    "mae": "mae",
    "pearson": "pearson",
    "rmse": "rmse",
    "spearman": "spearman",
    "tnr_specificity": "tnr",
    "tpr_sensitivity": "tpr",
}


def of_family(*names: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES if case["family"] in names]


def scale_of(case: dict[str, Any]) -> str:
    domain = case["input"]["domain"]
    if domain == "0-100":
        return "percentage"
    return "binary" if domain == [0, 1] else f"ordinal:{domain[0]}:{domain[-1]}"


@pytest.mark.parametrize("case", of_family("pair_categorical", "pair_percentage"))
def test_pairs(case: dict[str, Any]) -> None:
    found = agreement(case["input"]["gold"], case["input"]["judge"], scale=scale_of(case), n_boot=50)
    held = 0
    for theirs, ours in NAMES.items():
        expected = case["expected"].get(theirs)
        if expected is None or ours not in found:
            continue
        held += 1
        estimate = found[ours]
        if expected["value"] is None:
            assert estimate.value is None and estimate.low is None and estimate.reason, ours
        else:
            assert estimate.value == pytest.approx(expected["value"], abs=expected["tol"]), ours
    assert held >= 5
    first = next(iter(found.values()))
    assert first.n == case["expected"]["n_pairs"]["value"]


@pytest.mark.parametrize("case", of_family("pair_categorical"))
def test_traps_are_not_returned(case: dict[str, Any]) -> None:
    trap = case.get("traps", {}).get("cohen_kappa_quadratic_no_labels")
    if trap is not None:
        found = agreement(case["input"]["gold"], case["input"]["judge"], scale=scale_of(case))
        assert abs((found["kappa_quadratic"].value or 0.0) - trap["value"]) > 0.1


@pytest.mark.parametrize("case", of_family("pair_categorical"))
def test_wilson(case: dict[str, Any]) -> None:
    """The textbook interval is ours with the normal quantile and single items."""
    expected = case["expected"].get("accuracy_wilson_95")
    if expected is not None:
        n, rate = case["expected"]["n_pairs"]["value"], case["expected"]["percent_agreement"]["value"]
        assert wilson(rate, n, 1.959963984540054) == pytest.approx(expected["value"], abs=1e-9)


@pytest.mark.parametrize("case", of_family("paired_binary"))
def test_paired_binary(case: dict[str, Any]) -> None:
    """With every label 1, a verdict is right where it is 1: accuracy is the mean of `correct`."""
    a, b = case["input"]["correct_a"], case["input"]["correct_b"]
    found = compare_paired([1] * len(a), a, b, scale="binary", metric="accuracy")
    expected = case["expected"]
    assert found.difference.value == pytest.approx(expected["mean_diff_a_minus_b"]["value"], abs=1e-12)
    se = expected["paired_se"]["value"]
    assert found.difference.high is not None and found.difference.low is not None
    # t quantile of 109 degrees of freedom
    assert found.difference.high - found.difference.low == pytest.approx(2 * 1.98196749 * se, abs=1e-7)
    # One item a group: flipping signs over the discordant pairs is McNemar's exact test.
    assert found.p_value == pytest.approx(expected["mcnemar_exact_p"]["value"], abs=1e-9)
    trap = case.get("traps", {}).get("mcnemar_chi2_cc_p")
    assert trap is None or found.p_value != trap["value"]


@pytest.mark.parametrize("case", of_family("paired_numeric"))
def test_paired_numeric(case: dict[str, Any]) -> None:
    errors_a, errors_b = case["input"]["abs_err_a"], case["input"]["abs_err_b"]
    found = compare_paired([0.0] * 10, errors_a, errors_b, scale="percentage", metric="mae")
    expected = case["expected"]
    assert found.difference.value == pytest.approx(expected["mean_diff"]["value"], abs=1e-12)
    interval = (found.difference.low, found.difference.high)
    assert interval == pytest.approx(expected["ttest_rel_ci95"]["value"], abs=1e-9)
    assert found.p_value == pytest.approx(expected["permutation_signflip_exact_p"]["value"], abs=1e-9)
    parts = (np.array(errors_a) - np.array(errors_b)) / 10
    assert sign_flip_p(parts)[0] == pytest.approx(found.p_value)


@pytest.mark.parametrize("case", of_family("clustered"))
def test_clustered(case: dict[str, Any]) -> None:
    values, clusters = case["input"]["values"], case["input"]["cluster"]
    scale = Scale.parse("binary")
    verdicts = np.array(values, dtype=np.float64).reshape(-1, 1)
    sample = build(
        np.ones(len(values)),
        verdicts,
        codes_of(clusters, len(clusters)),
        people=scale,
        judge=scale,
        common=scale,
        unscored="drop",
    )
    means = Means(verdicts[..., None], np.ones((*verdicts.shape, 1)), sample.scored, 0.0, 1.0)
    linear = linearise(means, sample)
    assert linear is not None
    assert linear.value == pytest.approx(case["expected"]["mean"]["value"], abs=1e-12)
    se, df = linear_error(linear)
    # Theirs is without the correction G / (G - 1).
    assert se * np.sqrt(21 / 22) == pytest.approx(case["expected"]["cluster_se_CR0"]["value"], abs=1e-9)
    assert df == pytest.approx(21.0)
    found = agreement([1] * len(values), values, scale="binary", groups=clusters, metrics=["accuracy"])[
        "accuracy"
    ]
    assert found.n_groups == 22 and found.method == "Wilson, effective n, t(21)"
    low, high = case["expected"]["cluster_bootstrap_percentile_ci95"]["value"]
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.05)
