"""Coefficients of agreement: values by hand, weights, invariances, what is undefined, speed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import kendalltau, somersd
from sklearn.metrics import brier_score_loss, roc_auc_score

from judgecal.errors import InputError
from judgecal.records import Estimate
from judgecal.scale import Scale
from judgecal.stats import METRICS, agreement, metric_facts, metrics_of
from judgecal.stats.agreement import prepare, terms_of
from judgecal.stats.means import Means, brier

SCALES = ("binary", "nominal", "ordinal:0:4", "percentage")


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def sample(scale: str, n: int, *, seed: int = 0) -> tuple[list[object], list[object]]:
    """Labels, and verdicts of a judge that is right more often than not."""
    rng = np.random.default_rng(seed)
    if scale == "percentage":
        gold = rng.integers(0, 101, n).astype(float)
        return gold.tolist(), np.clip(gold + rng.normal(0, 25, n), 0, 100).round(1).tolist()
    high = {"binary": 1, "nominal": 2, "ordinal:0:4": 4}[scale]
    gold = rng.integers(0, high + 1, n)
    judge = np.where(rng.random(n) < 0.6, gold, rng.integers(0, high + 1, n))
    if scale == "nominal":
        return [("x", "y", "z")[i] for i in gold], [("x", "y", "z")[i] for i in judge]
    return gold.tolist(), judge.tolist()


def values(found: dict[str, Estimate]) -> dict[str, float | None]:
    return {name: estimate.value for name, estimate in found.items()}


def test_categories_of_the_scale_count_in_ac1_though_nobody_used_them() -> None:
    # Labels a b a, verdicts a b b: two thirds agree, shares 1/2 and 1/2. Two categories: chance 1/2; three:
    # 1/4.
    labels, verdicts = ["a", "b", "a"], ["a", "b", "b"]
    seen = agreement(labels, verdicts, scale="nominal")["gwet_ac1"].value
    full = Scale("nominal", 0.0, 0.0, categories=("a", "b", "c"))
    assert seen == pytest.approx((2 / 3 - 1 / 2) / (1 / 2))
    assert agreement(labels, verdicts, scale=full)["gwet_ac1"].value == pytest.approx(
        (2 / 3 - 1 / 4) / (3 / 4)
    )
    # Where nothing is missing, counting the missing as wrong changes nothing; where one is, it is a category
    # more: shares 2/6, 3/6, 1/6, sum p (1 - p) = 11/18, chance 11/36, one third agrees.
    assert agreement(labels, verdicts, scale="nominal", unscored="wrong")["gwet_ac1"].value == seen
    wrong = agreement(labels, [None, "b", "b"], scale="nominal", unscored="wrong")["gwet_ac1"].value
    assert wrong == pytest.approx((1 / 3 - 11 / 36) / (25 / 36))


def test_words_of_items_left_out_are_no_categories() -> None:
    """An item without a verdict, or without a label, is left out: so is a word that stands on it alone."""
    labels, verdicts = ["a", "b", "a", "b"], ["a", "b", "b", "b"]
    alone = agreement(labels, verdicts, scale="nominal")["gwet_ac1"].value
    for more in ((["zzz"], [None]), ([None], ["zzz"])):
        found = agreement([*labels, *more[0]], [*verdicts, *more[1]], scale="nominal")
        assert found["gwet_ac1"].value == alone
    listed = Scale("nominal", 0.0, 0.0, categories=("a", "b"))
    named = agreement([*labels, None], [*verdicts, "zzz"], scale=listed, judge_scale="nominal")
    assert named["gwet_ac1"].value == alone


def test_one_known_category_is_no_scale() -> None:
    found = agreement(["a", "a"], ["a", "a"], scale="nominal")["gwet_ac1"]
    assert found.value is None and found.reason == "one category is known: name all of the scale's"


def test_labels_between_the_categories_have_no_pi_but_an_alpha() -> None:
    # The median of two ratings; ranks need no categories.
    found = agreement([0.5, 1, 4, 3], [0, 1, 4, 3], scale="ordinal:0:4")
    for name in ("scott_pi", "gwet_ac1", "kappa"):
        assert (
            found[name].value is None
            and found[name].reason
            and "between the categories" in found[name].reason
        )
    assert found["krippendorff_alpha"].value is not None and found["kendall"].value == pytest.approx(1.0)


def test_a_median_on_a_scale_of_two_grades_is_ranked() -> None:
    # Pairs 0.5 0, 0 0, 1 1: ratings 0 0 0 0.5 1 1 with midranks 1.5, 3.5, 5. Apart: 2^2 / 3 a pair; expected
    # over the 15 pairs of ratings (3 * 2^2 + 6 * 3.5^2 + 2 * 1.5^2) / 15 = 6.
    found = agreement([0.5, 0, 1], [0, 0, 1], scale="ordinal:0:1", metrics=["krippendorff_alpha"])
    assert found["krippendorff_alpha"].value == pytest.approx(1 - (4 / 3) / 6)


@pytest.mark.parametrize("scale", SCALES)
def test_a_value_without_a_group_is_that_of_the_others(scale: str) -> None:
    gold, judge = sample(scale, 60, seed=3)
    groups = np.repeat(np.arange(30), 2)
    names = [f"{group:02d}" for group in groups]  # numbered in the order of their names
    people = Scale.parse(scale)
    prepared = prepare(gold, judge, people=people, judge_scale=None, groups=names, unscored="drop")
    seen = 0
    for name, (metric, cut) in metrics_of(people).items():
        terms = terms_of(metric, prepared, cut)
        assert not isinstance(terms, str)
        if isinstance(terms, Means):
            continue
        seen += 1
        without = terms.without_each()[:, 0]
        for group, value in ((0, terms.values()[0]), (3, without[3]), (29, without[29])):
            rows = np.flatnonzero(groups != group) if group else np.arange(60)
            again = agreement([gold[i] for i in rows], [judge[i] for i in rows], scale=scale, metrics=[name])
            assert again[name].value == pytest.approx(value, abs=1e-12), name
    assert seen >= 4


@pytest.mark.parametrize("seed", range(6))
def test_kendall_with_ties_missing_verdicts_and_repeats(seed: int) -> None:
    """tau-b as SciPy has it, whichever side has more values, in each of two repeats."""
    rng = np.random.default_rng(seed)
    sizes = [(3, 9), (9, 3), (5, 60), (60, 5), (100, 100), (1, 2)][seed]
    gold = rng.integers(0, sizes[0] + 1, 70).astype(float)
    judge = np.clip(gold[:, None] + rng.integers(0, sizes[1] + 1, (70, 2)), 0, 100).astype(float)
    judge[rng.random((70, 2)) < 0.1] = np.nan
    found = agreement(gold, judge, scale="percentage", metrics=["kendall"])["kendall"]
    known = [~np.isnan(judge[:, repeat]) for repeat in (0, 1)]
    expected = [kendalltau(gold[used], judge[used, i]).statistic for i, used in enumerate(known)]
    assert found.value == pytest.approx(float(np.mean(expected)), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_concordance_index_is_somers_d_of_verdicts_given_labels(seed: int) -> None:
    """(D + 1) / 2 as SciPy has it, with ties on both sides and missing verdicts."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(1, 6, 60).astype(float)
    judge = np.clip(gold + rng.integers(-2, 3, 60), 1, 5).astype(float)
    judge[rng.random(60) < 0.1] = np.nan
    found = agreement(gold, judge, scale="ordinal:1:5", metrics=["concordance_index"])["concordance_index"]
    used = ~np.isnan(judge)
    assert found.value == pytest.approx((somersd(gold[used], judge[used]).statistic + 1) / 2, abs=1e-12)
    turned = agreement(gold, 6 - judge, scale="ordinal:1:5", metrics=["concordance_index"])[
        "concordance_index"
    ]
    assert turned.value == pytest.approx(1 - (found.value or 0.0), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_auc_is_the_area_under_the_roc_curve(seed: int) -> None:
    """As scikit-learn has it, with ties; of a binary judge the mean of tpr and tnr; unscored at the far
    end."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 2, 80)
    judge = np.clip(40 * gold + 10 * rng.integers(-2, 9, 80), 0, 100).astype(float)
    options = {"scale": "binary", "judge_scale": "percentage"}
    found = agreement(gold, judge, metrics=["auc"], **options)["auc"]
    assert found.value == pytest.approx(roc_auc_score(gold, judge), abs=1e-12)
    assert (
        found.low is not None and found.high is not None and 0.0 < found.low < found.value < found.high < 1.0
    )
    classes = agreement(gold, judge >= 50, scale="binary", metrics=["auc", "balanced_accuracy"])
    assert classes["auc"].value == pytest.approx(classes["balanced_accuracy"].value, abs=1e-12)
    missing = np.where(rng.random(80) < 0.2, np.nan, judge)
    wrong = agreement(gold, missing, metrics=["auc"], unscored="wrong", **options)["auc"]
    far = np.where(np.isnan(missing), 100.0 * (1 - gold), missing)
    assert wrong.value == pytest.approx(roc_auc_score(gold, far), abs=1e-12)


def test_brier_is_of_a_probability() -> None:
    rng = np.random.default_rng(3)
    gold, given = rng.integers(0, 2, 50), rng.integers(0, 101, 50)
    of = prepare(
        gold, given, people=Scale.parse("binary"), judge_scale="percentage", groups=None, unscored="drop"
    )
    terms = brier(of)
    assert terms.top.sum() / terms.bottom.sum() == pytest.approx(brier_score_loss(gold, given / 100.0))


def test_facts_of_a_metric_are_found_with_and_without_its_mark() -> None:
    assert metric_facts("kappa@75") is metric_facts("kappa") is METRICS["kappa"]
    with pytest.raises(InputError, match="did you mean kappa"):
        metric_facts("kapa@75")
    ranks = {name: metric.direction for name, metric in METRICS.items() if metric.direction != "more"}
    assert ranks == {
        "mae": "less",
        "rmse": "less",
        "brier": "less",
        "bias": "neither",
        "prevalence": "neither",
    }


@pytest.mark.parametrize("metric", ["kendall", "mcc"])
def test_perfect_agreement_is_one_and_not_a_rounding_more(metric: str) -> None:
    # The root of 3 times itself is 2.9999999999999996, and 3 over that is above 1; the root of 9 is 3.
    for n in range(3, 30):
        for k in range(1, n):
            gold = list(range(n)) if metric == "kendall" else [1] * k + [0] * (n - k)
            scale, top = ("percentage", n - 1) if metric == "kendall" else ("binary", 1)
            turned = [top - label for label in gold]
            same, opposite = (
                agreement(gold, judge, scale=scale, metrics=[metric])[metric] for judge in (gold, turned)
            )
            assert (same.value, opposite.value) == (1.0, -1.0)
            if metric == "kendall":
                break


@pytest.mark.parametrize(
    ("gold", "judge", "scale", "metric", "reason"),
    [
        ([50, 50], [40, 60], "percentage", "skill", "all labels are equal: the best constant makes no error"),
        ([0, 20], [0, 20], "percentage", "macro_agreement", "scored labels lie in one stratum of the scale only"),
        ([1, 1], [1, 0], "binary", "tnr", "no scored item of the class"),
        ([1, 1], [1, 0], "binary", "balanced_accuracy", "no scored item of the class"),
        ([0, 0], [0, 0], "binary", "f1", "no scored item passes by label or verdict"),
        ([1, 1], [1, 1], "binary", "mcc", "labels or verdicts are constant"),
        ([1, 1], [1, 1], "binary", "krippendorff_alpha", "no disagreement is expected: all ratings are equal"),
        ([5, 5], [5, 5], "percentage", "concordance", "both sides are constant and equal"),
        ([5, 5], [5, 6], "percentage", "pearson", "labels or verdicts are constant"),
        ([5, 5], [5, 6], "percentage", "spearman", "labels or verdicts are constant"),
        ([5, 5], [5, 6], "percentage", "kendall", "labels or verdicts are constant"),
        ([5, 5], [5, 6], "percentage", "concordance_index", "labels are constant: no pair of items has an order"),
        ([1, 1], [1, 0], "binary", "auc", "labels are constant: no pair of items has an order"),
        ([5, 5], [5, 5], "percentage", "icc_2_1", "all ratings are equal, or fewer than two items have all of them"),
        ([1, 2], [1.5, 2], "ordinal:1:5", "kappa", "labels or verdicts lie between the categories of the scale"),
        ([None, None], [1, 2], "percentage", "mae", "no labelled items"),
        ([1, 2], [None, None], "percentage", "mae", "no scored pairs"),
    ],
)  # fmt: skip
def test_why_there_is_no_value(
    gold: list[object], judge: list[object], scale: str, metric: str, reason: str
) -> None:
    found = agreement(gold, judge, scale=scale, metrics=[metric])[metric]
    assert (found.value, found.reason, found.method) == (None, reason, "")
