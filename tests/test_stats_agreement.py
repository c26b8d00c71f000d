"""Agreement: values by hand, what is counted, what is undefined, what must not change anything."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit
from scipy.stats import t as student

from judgecal.errors import InputError
from judgecal.records import Estimate
from judgecal.scale import Scale
from judgecal.stats import agreement, best_constant, metrics_of


@pytest.fixture(autouse=True)
def _no_warnings() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def values(found: dict[str, Estimate]) -> dict[str, float | None]:
    return {name: estimate.value for name, estimate in found.items()}


def sample(n: int, *, seed: int = 0) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 101, n).astype(float)
    return gold.tolist(), np.clip(gold + rng.normal(0, 20, n), 0, 100).tolist()


def test_binary_by_hand() -> None:
    # gold 1 1 1 0 0, judge 1 1 0 0 1: three of five right; TPR 2/3, TNR 1/2, and their mean 7/12.
    # Margins 3/5 and 3/5: expected agreement 0.36 + 0.16 = 0.52; kappa = (0.6 - 0.52) / 0.48 = 1/6.
    # The best constant, 1, errs twice as the judge does: skill 0. Pooled, 6 of 10 pass: pi expects 0.52 too,
    # AC1
    # 2 * 0.6 * 0.4 = 0.48, alpha a disagreement of 1 - (6 * 5 + 4 * 3) / 90. MCC (2 * 1 - 1 * 1) / 6, F1 4 /
    # 6.
    found = agreement([1, 1, 1, 0, 0], [True, 1, 0, 0.0, "yes"], scale="binary")
    assert values(found) == pytest.approx(
        {
            "mean_agreement": 0.6, "macro_agreement": 7 / 12, "skill": 0.0, "mae": 0.4,
            "rmse": math.sqrt(0.4), "bias": 0.0, "accuracy": 0.6, "balanced_accuracy": 7 / 12, "kappa": 1 / 6,
            "scott_pi": 1 / 6, "gwet_ac1": 3 / 13, "krippendorff_alpha": 0.25, "mcc": 1 / 6, "f1": 2 / 3,
            "tpr": 2 / 3, "tnr": 0.5, "auc": 7 / 12, "brier": 0.4, "prevalence": 0.6,
        }
    )  # fmt: skip
    assert (found["tpr"].n, found["tnr"].n, found["kappa"].n) == (3, 2, 5)
    assert all(e.low is None and e.high is None and e.reason for e in found.values())  # five groups


def test_percentage_by_hand() -> None:
    # Errors 10, 0, -20, -5. Strata: 0 and 30 low, 60 middle, 95 high: closeness (0.9 + 1)/2, 0.8, 0.95.
    # Median of the labels 45, deviations 45, 15, 15, 50: skill = 1 - 35 / 125.
    found = agreement([0, 30, 60, 95], [10, 30, 40, 90], scale="percentage")
    assert found["macro_agreement"].value == pytest.approx((0.95 + 0.8 + 0.95) / 3)
    assert found["mean_agreement"].value == pytest.approx(1 - 35 / 400)
    assert found["skill"].value == pytest.approx(1 - 35 / 125)
    assert found["mae"].value == pytest.approx(35 / 4)
    assert found["rmse"].value == pytest.approx(math.sqrt((100 + 400 + 25) / 4))
    assert found["bias"].value == pytest.approx(-15 / 4)
    assert found["within_10"].value == 0.75
    assert found["spearman"].value == pytest.approx(1.0)
    assert not any("@" in name for name in found)


def test_pass_mark_carries_its_name() -> None:
    # At 75: labels F F P P, verdicts F P P F. Half right, chance half: kappa 0. 75 itself passes.
    scale = Scale.parse("percentage", pass_at=75)
    found = agreement([10, 60, 75, 100], [10, 75, 80, 74], scale=scale)
    assert found["kappa@75"].value == 0.0
    assert found["tpr@75"].value == found["tnr@75"].value == found["accuracy@75"].value == 0.5
    assert "kappa" not in found and "tpr" not in found


def test_percentage_judge_on_binary_labels() -> None:
    # Uncut: closeness 0.9, 0.4 (passes) and 0.7, 0.2 (fails). Cut at 50: right, wrong, right, wrong.
    found = agreement([1, 1, 0, 0], [90, 40, 30, 80], scale="binary", judge_scale="percentage")
    assert found["macro_agreement"].value == pytest.approx((0.65 + 0.45) / 2)
    assert found["mae"].value == pytest.approx(45.0)
    assert found["bias"].value == pytest.approx((-10 - 60 + 30 + 80) / 4)
    assert found["accuracy"].value == found["tpr"].value == found["tnr"].value == 0.5
    strict = Scale.parse("binary", pass_at=95)
    assert (
        agreement([1, 1, 0, 0], [90, 40, 30, 80], scale=strict, judge_scale="percentage")["tpr"].value == 0.0
    )
    lax = Scale.parse("binary", pass_at=0)  # everything passes, but a failing label stays one
    assert agreement([1, 1, 0, 0], [90, 40, 30, 80], scale=lax, judge_scale="percentage")["tnr"].value == 0.0


def test_ordinal_kappa_needs_whole_verdicts() -> None:
    whole = agreement([0, 1, 2, 3, 4], [0, 1, 2, 4, 3], scale="ordinal:0:4")
    # Agreement 3/5; every category once on both sides: expected 1/5; kappa = (0.6 - 0.2) / 0.8.
    assert whole["kappa"].value == pytest.approx(0.5)
    # Quadratic: observed 2/5; expected mean of (i - j)^2 over 0..4 = 2 * variance = 4.
    assert whole["kappa_quadratic"].value == pytest.approx(1 - 0.4 / 4)
    graded = agreement([0, 1, 2, 3, 4], [0, 30, 50, 100, 80], scale="ordinal:0:4", judge_scale="percentage")
    assert graded["kappa"].value is None and "between the categories" in (graded["kappa"].reason or "")
    assert graded["mae"].value == pytest.approx((0 + 0.2 + 0 + 1 + 0.8) / 5)
    halves = agreement([0, 1.5, 2], [0, 1, 2], scale="ordinal:0:4")  # a median of two ratings
    assert halves["kappa_quadratic"].value is None and halves["mae"].value == pytest.approx(0.5 / 3)


def test_nominal() -> None:
    found = agreement(list("aabbc"), ["a", "b", "b", "b", None], scale="nominal")
    assert list(found) == ["accuracy", "kappa", "scott_pi", "gwet_ac1", "krippendorff_alpha"]
    # 3 of 4 right; margins a 2 b 2 against a 1 b 3: expected 1/4 * 1/2 + 3/4 * 1/2 = 1/2.
    assert (found["accuracy"].value, found["accuracy"].n, found["accuracy"].n_unscored) == (0.75, 4, 1)
    assert found["kappa"].value == pytest.approx(0.5)
    wrong = agreement(list("aabbc"), ["a", "b", "b", "b", None], scale="nominal", unscored="wrong")
    assert (wrong["accuracy"].value, wrong["accuracy"].n) == (0.6, 5)
    # Expected: (2 * 1 + 2 * 3 + 1 * 0) / 25 = 0.32.
    assert wrong["kappa"].value == pytest.approx((0.6 - 0.32) / 0.68)


def test_missing_labels_and_unscored_verdicts() -> None:
    gold = [0, None, 100, float("nan"), 100, 50]
    judge = [0, 100, None, 0, 100, None]
    found = agreement(gold, judge, scale="percentage")["mean_agreement"]
    assert (found.value, found.n, found.n_expected, found.n_unscored, found.n_groups) == (1.0, 2, 4, 2, 2)
    wrong = agreement(gold, judge, scale="percentage", unscored="wrong")["mean_agreement"]
    # 100 -> 0: closeness 0; 50 -> 0 (the lower end): 0.5.
    assert (wrong.value, wrong.n, wrong.n_expected, wrong.n_unscored) == (2.5 / 4, 4, 4, 2)


def test_an_unscored_item_is_wrong_at_the_mark_too() -> None:
    # The verdict farthest from 60 is 0, which fails at 75 as 60 does: a failed call must not count as right.
    scale = Scale.parse("percentage", pass_at=75)
    found = agreement([60, 100], [None, 100], scale=scale, unscored="wrong")
    assert found["accuracy@75"].value == 0.5 and found["tnr@75"].value == 0.0


def test_undefined_is_none_with_a_reason() -> None:
    same = agreement([1] * 20, [1] * 20, scale="binary")
    for name in ("kappa", "tnr", "macro_agreement", "balanced_accuracy", "skill"):
        assert same[name].value is None and same[name].low is None and same[name].reason, name
    assert same["accuracy"].value == 1.0 and same["accuracy"].n == 20
    assert same["accuracy"].low == pytest.approx(20 / (20 + 2.093024**2), abs=1e-6)  # Wilson at 1, t(19)
    for nobody in (agreement([], [], scale="binary"), agreement([None], [1], scale="binary")):
        assert all(e.value is None and e.n == e.n_expected == 0 and e.reason for e in nobody.values())
    unscored = agreement([1, 0], [None, None], scale="binary")
    assert all(e.value is None and (e.n, e.n_expected, e.n_unscored) == (0, 2, 2) for e in unscored.values())
    for constant in agreement(
        [5.0] * 12, [7.0] * 12, scale="percentage", metrics=["pearson", "spearman"]
    ).values():
        assert constant.value is None and constant.reason
    assert agreement([5.0] * 12, [5.0] * 12, scale="percentage")["concordance"].value is None
    assert agreement([5.0] * 12, [7.0] * 12, scale="percentage")["concordance"].value == 0.0


def test_few_groups_or_a_small_class_give_no_interval() -> None:
    gold, judge = sample(90)
    nine = agreement(gold, judge, scale="percentage", groups=[i % 9 for i in range(90)])
    assert all(e.low is None and "fewer than 10" in (e.reason or "") for e in nine.values())
    assert all(e.value is not None and e.n_groups == 9 for e in nine.values())
    ten = agreement(gold, judge, scale="percentage", groups=[i % 10 for i in range(90)])
    assert all(e.low is not None and e.reason is None for e in ten.values())
    labels = [0] * 9 + [1] * 40
    verdicts = [0, 1] * 4 + [0] + [1, 0] * 20
    found = agreement(labels, verdicts, scale="binary")
    assert found["tnr"].low is None and "items of the class" in (found["tnr"].reason or "")
    assert found["tpr"].low is not None and found["tpr"].n_groups == 40


def test_linear_interval_by_hand() -> None:
    # Ten single items, errors 0..9: mean 4.5, sd sqrt(82.5 / 9), t(9) = 2.262157, as even errors have no long
    # tails; taken to the logit of 4.5 in 0..100, whose derivative is 100 / (4.5 * 95.5).
    found = agreement([0] * 10, list(range(10)), scale="percentage", metrics=["mae"])["mae"]
    half = 2.262157163 * math.sqrt(82.5 / 9 / 10) * 100.0 / (4.5 * 95.5)
    ends = [100.0 / (1.0 + math.exp(-math.log(4.5 / 95.5) - side * half)) for side in (-1, 1)]
    assert (found.low, found.high) == pytest.approx(ends, abs=1e-8)
    # The same items twice in one group each: nothing has been learnt.
    twice = agreement(
        [0] * 20, [*range(10), *range(10)], scale="percentage", metrics=["mae"], groups=[*range(10)] * 2
    )["mae"]
    assert (twice.low, twice.high) == pytest.approx((found.low, found.high))


def test_skill_s_interval_keeps_below_one() -> None:
    # Labels 0 and 100, ten of each, and errors of 10 but for one of 80: 1 - 270 / 1000 (the median 50 errs by
    # 50).
    # Influence of an item (0.27 * 50 - its error) / 1000: 3.5 and -66.5 thousandths, one of 20, so that
    # k = 20 (19 * 3.5^4 + 66.5^4) / (19 * 3.5^2 + 66.5^2)^2 = 18.05, times 21 / 19, and df = 19 * 2 / (19.953
    # - 1).
    gold = [0, 100] * 10
    judge = [10, 90] * 9 + [10, 20]
    found = agreement(gold, judge, scale="percentage", metrics=["skill"])["skill"]
    assert found.value == pytest.approx(0.73) and found.method == "linearised by group, log, t(2)"
    se = math.sqrt(21 / 19 * 20 / 19 * (19 * 0.0035**2 + 0.0665**2))
    half = float(student.ppf(0.975, 38 / 18.953)) * se / 0.27
    assert (found.low, found.high) == pytest.approx(
        (1 - 0.27 * math.exp(half), 1 - 0.27 * math.exp(-half)), rel=1e-4
    )


def test_jackknife_by_hand() -> None:
    # Kappa of the table a=8 b=2 / c=3 d=7, one item a group: leave-one-out values by cell. On the logit of
    # the place in -1..1, which is twice Fisher's z; t on 19 * 2 / (k - 1) degrees of freedom, at most 19, k
    # their kurtosis times 21 / 19.
    def kappa(a: float, b: float, c: float, d: float) -> float:
        n = a + b + c + d
        expected = ((a + b) * (a + c) + (c + d) * (b + d)) / n**2
        return ((a + d) / n - expected) / (1 - expected)

    gold = [1] * 10 + [0] * 10
    judge = [1] * 8 + [0] * 2 + [1] * 3 + [0] * 7
    found = agreement(gold, judge, scale="binary", metrics=["kappa"])["kappa"]
    value = kappa(8, 2, 3, 7)
    left = (
        [kappa(7, 2, 3, 7)] * 8 + [kappa(8, 1, 3, 7)] * 2 + [kappa(8, 2, 2, 7)] * 3 + [kappa(8, 2, 3, 6)] * 7
    )
    apart = [v - sum(left) / 20 for v in left]
    se = math.sqrt(19 / 20 * sum(d**2 for d in apart)) / (1 - value**2)
    kurtosis = 20 * sum(d**4 for d in apart) / sum(d**2 for d in apart) ** 2 * 21 / 19
    z, t = math.atanh(value), float(student.ppf(0.975, min(19.0, 38 / (kurtosis - 1))))
    assert found.value == pytest.approx(value)
    assert (found.low, found.high) == pytest.approx((math.tanh(z - t * se), math.tanh(z + t * se)), abs=1e-8)


def test_repeats_are_single_calls_averaged() -> None:
    gold = [1, 1, 0, 0]
    first, second = [1, 0, 0, 0], [1, 1, 1, 1]
    both = agreement(gold, list(zip(first, second, strict=True)), scale="binary")
    one, two = (agreement(gold, verdicts, scale="binary") for verdicts in (first, second))
    for name in ("accuracy", "kappa", "tpr", "macro_agreement", "mae", "rmse", "skill"):
        expected = ((one[name].value or 0.0) + (two[name].value or 0.0)) / 2
        assert both[name].value == pytest.approx(expected), name
    assert both["accuracy"].n == both["accuracy"].n_expected == 8 and both["accuracy"].n_groups == 4


def test_a_repeat_without_a_value_is_left_out() -> None:
    gold = [1] * 12 + [0] * 12
    good = [1] * 9 + [0] * 3 + [0] * 11 + [1]
    found = agreement(gold, [[v, None] for v in good], scale="binary")
    assert found["kappa"].value == agreement(gold, good, scale="binary")["kappa"].value
    assert found["kappa"].method.endswith("over 1 of 2 repeats")
    assert (found["kappa"].n, found["kappa"].n_expected, found["kappa"].n_unscored) == (24, 48, 24)


def test_metrics_are_restricted_ordered_and_checked() -> None:
    names = ["kappa", "mae", "accuracy"]
    assert list(agreement([1, 0], [1, 0], scale="binary", metrics=names)) == names
    with pytest.raises(InputError, match=r"did you mean .*macro_agreement"):
        agreement([1], [1], scale="binary", metrics=["macro_agrement"])
    with pytest.raises(InputError, match="does not fit"):
        agreement([1], [1], scale="binary", metrics=["concordance"])
    with pytest.raises(InputError, match="no pass mark"):
        agreement([1], [1], scale="percentage", metrics=["kappa@75"])
    with pytest.raises(InputError, match="pass mark 75"):
        agreement([1], [1], scale=Scale.parse("percentage", pass_at=75), metrics=["kappa@60"])
    assert "kappa@60" in metrics_of(Scale.parse("ordinal:0:100", pass_at=60))


def test_bad_input_is_told_in_one_message() -> None:
    with pytest.raises(InputError, match="2 gold labels but 1 verdicts"):
        agreement([1, 0], [1], scale="binary")
    with pytest.raises(InputError, match="same number of repeats"):
        agreement([1, 0], [[1, 1], [1]], scale="binary")
    with pytest.raises(InputError, match="1 groups"):
        agreement([1, 0], [1, 1], scale="binary", groups=["q"])
    with pytest.raises(InputError) as told:
        agreement([150, 20], [10, "x"], scale="percentage")
    assert [p.partition(":")[0] for p in told.value.problems] == ["gold_labels[0]", "judge_labels[1]"]
    with pytest.raises(InputError, match="level"):
        agreement([1], [1], scale="binary", level=95)
    with pytest.raises(InputError, match="no order"):
        agreement([1], ["a"], scale="binary", judge_scale="nominal")
    with pytest.raises(InputError, match="unscored"):
        agreement([1], [1], scale="binary", unscored="zero")  # type: ignore[arg-type]


@pytest.mark.parametrize("as_array", [False, True])
def test_truth_values_are_no_percentages_and_halves_no_classes(as_array: bool) -> None:
    form = np.array if as_array else list
    with pytest.raises(InputError, match=r"gold_labels\[0\]: .*True_? is not a number"):
        agreement(form([True, False]), [100, 0], scale="percentage")
    with pytest.raises(InputError, match=r"judge_labels\[1\]: '0.5' is none of"):
        agreement([1, 0], form([1.0, 0.5]), scale="binary")
    assert agreement(form([True, False]), [100, 0], scale="binary")["accuracy"].value == 1.0


def test_problems_are_told_by_the_ten() -> None:
    for n, rest in ((10, []), (12, ["... and 2 more problems"])):
        with pytest.raises(InputError) as told:
            agreement([150] * n, [50] * n, scale="percentage")
        assert [one.partition(":")[0] for one in told.value.problems] == [
            *(f"gold_labels[{i}]" for i in range(10)),
            *rest,
        ]
    with pytest.raises(InputError) as told:
        agreement([1, 0], [[1], []], scale="binary")
    assert told.value.problems == (
        "verdicts: every item needs the same number of repeats, at least one (None = missing)",
    )


def test_fraction_scale_is_read_as_percentage() -> None:
    found = agreement([0.5, 1.0], [0.25, 1.0], scale="fraction")
    assert found["mae"].value == pytest.approx(12.5)


pairs = st.lists(
    st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 4)), st.integers(0, 14)),
    min_size=1,
    max_size=40,
)


@settings(max_examples=40, deadline=None)
@given(pairs)
def test_numbers_keep_their_bounds(rows: list[tuple[int, int | None, int]]) -> None:
    gold, judge, groups = zip(*rows, strict=True)
    scale = Scale.parse("ordinal:0:4", pass_at=3)
    complete = agreement(gold, judge, scale=scale, groups=groups)
    wrong = agreement(gold, judge, scale=scale, groups=groups, unscored="wrong")
    for estimate in [*complete.values(), *wrong.values()]:
        assert estimate.value is None or math.isfinite(estimate.value)
        assert estimate.value is not None or (estimate.low is None and estimate.reason)
        assert (estimate.low is None) == (estimate.high is None) == (estimate.reason is not None)
        assert estimate.n_expected == len(rows) and estimate.n_unscored == judge.count(None)
    assert all(estimate.n <= len(rows) - judge.count(None) for estimate in complete.values())
    assert wrong["mean_agreement"].n == len(rows)


@settings(max_examples=40, deadline=None)
@given(pairs, st.integers(0, 4))
def test_failing_never_pays(rows: list[tuple[int, int | None, int]], instead: int) -> None:
    """As wrong is at most what any verdict would have given, and at most the complete case from 0.5 on.

    (Below 0.5 it can lie above the complete case: the farthest verdict from a label in the middle is
    half-way.)
    """
    gold, judge, _ = zip(*rows, strict=True)

    scale = Scale.parse("ordinal:0:4", pass_at=3)
    names = ["mean_agreement", "macro_agreement", "accuracy@3", "tpr@3", "tnr@3", "within_10"]

    def values(
        verdicts: tuple[int | None, ...], unscored: Literal["drop", "wrong"] = "drop"
    ) -> dict[str, float]:
        table = agreement(gold, verdicts, scale=scale, unscored=unscored, metrics=names)
        return {name: math.nan if one.value is None else one.value for name, one in table.items()}

    wrong, complete = values(judge, "wrong"), values(judge)
    filled = values(tuple(instead if verdict is None else verdict for verdict in judge))
    for name in names:
        assert not wrong[name] > filled[name] + 1e-12, name
    name = "mean_agreement"
    assert not (complete[name] >= 0.5 and wrong[name] > complete[name] + 1e-12)


def test_best_constant() -> None:
    assert (
        best_constant([0, 10, 90, 100], scale="percentage", metric="mae") == 10.0
    )  # the lower of the middle two
    assert best_constant([3, None, 1, 2], scale="ordinal:0:4", metric="mae") == 2.0
    assert best_constant([1, 0, 1, None], scale="binary", metric="mae") == 1.0
    assert best_constant([1, 0, 1, None], scale="binary") == 0.0  # the classes count alike: a tie, the lower
    assert best_constant(["b", "a", "b", "a", "c"], scale="nominal") == "a"
    with pytest.raises(InputError, match="no gold label"):
        best_constant([None], scale="binary")
    gold, _ = sample(31)
    constant = best_constant(gold, scale="percentage", metric="mae")
    assert agreement(gold, [constant] * 31, scale="percentage")["skill"].value == pytest.approx(0.0)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, float("nan")])
def test_a_level_lies_between_0_and_1(level: float) -> None:
    with pytest.raises(InputError, match=f"level is {level:g}: an interval's level lies between 0 and 1"):
        agreement([1], [1], scale="binary", level=level)


def test_fractions_among_words_are_read_alike() -> None:
    # Read one by one for the word's sake: 25 and 100 against 50 and 100.
    assert agreement([0.5, 1.0], [0.25, "1"], scale="fraction")["mae"].value == pytest.approx(12.5)


# --- groups that are none, and labels in points


class _Na:
    """Like pandas' NA: whether it is equal to anything cannot be told."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        return self

    __ne__ = __eq__

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (None, r"\[17, 19\]: missing"),
        (_Na(), r"\[17, 19\]: missing"),
        ([1], ": name each"),
        (("a", [1]), ": name"),
    ],
)
def test_a_group_that_is_none_is_refused_by_its_place(key: Any, says: str) -> None:
    labels = [1, 0] * 10
    groups: list[Any] = [*range(17), key, 18, key]
    with pytest.raises(InputError, match=f"groups{says}"):
        agreement(labels, labels, scale="binary", groups=groups)


def test_a_label_of_which_nothing_can_be_told_is_missing() -> None:
    found = agreement([_Na(), *[1, 0] * 10], [1, *[1, 0] * 10], scale="binary")["accuracy"]
    assert (found.value, found.n) == (1.0, 20)


@pytest.mark.parametrize("scale", ["percentage", "ordinal:1:5", "binary"])
@pytest.mark.parametrize("metric", ["macro_agreement", "mean_agreement", "rmse", "accuracy", "within_10"])
def test_the_best_constant_is_the_best_of_all_constants(scale: str, metric: str) -> None:
    """By the metric itself, on every constant in turn: the lowest of the best."""
    people = Scale.parse(scale, step=10.0) if scale == "percentage" else Scale.parse(scale)
    if metric not in metrics_of(people):
        metric = "mean_agreement"
    steps = np.arange(people.low, people.high + 0.5, people.step or 1.0)
    rng = np.random.default_rng(4)
    for _ in range(8):
        labels = rng.choice(steps, 30, p=rng.dirichlet(np.full(len(steps), 0.4)))
        values = [
            agreement(labels, np.full(30, step), scale=people, metrics=[metric])[metric].value
            for step in steps
        ]
        worth = np.round([np.nan if v is None else v for v in values], 9)
        if np.isnan(worth).all():
            continue
        best = np.nanargmin(worth) if metric == "rmse" else np.nanargmax(worth)
        assert best_constant(labels, scale=people, metric=metric) == steps[best]


def test_the_interval_of_an_rmse_by_hand() -> None:
    """The jackknife of its logarithm: 24 errors of 1 to 24, each of its own question."""
    errors = np.arange(1.0, 25.0)
    found = agreement(errors * 0.0, errors, scale="percentage", metrics=["rmse"])["rmse"]
    logs = np.array([np.log(np.mean(np.delete(errors, at) ** 2)) / 2 for at in range(24)])
    parts = 23 / 24 * (logs.mean() - logs)
    k = 24 * (parts**4).sum() / (parts**2).sum() ** 2 * 25 / 23
    df = 23 * min(1.0, 2 / (k - 1))
    half = stdtrit(df, 0.975) * np.sqrt(25 / 23 * 24 / 23 * (parts**2).sum())
    value = float(np.sqrt(np.mean(errors**2)))
    assert (found.value, found.low, found.high) == pytest.approx(
        (value, value * np.exp(-half), value * np.exp(half))
    )
    assert found.method == f"jackknife of the log by group, t({df:.3g})"


def test_the_interval_of_skill_by_hand() -> None:
    """On the log of the distance from 1, by all 24 questions: those whose label is the median as well."""
    gold = np.array([50.0] * 12 + [0.0, 100.0] * 6)
    judge = np.clip(gold + np.tile([5.0, -10.0, 20.0, 0.0], 6), 0.0, 100.0)
    found = agreement(gold, judge, scale="percentage", metrics=["skill"])["skill"]
    off, apart = np.abs(judge - gold), np.abs(gold - 50)
    value = 1 - off.sum() / apart.sum()
    parts = (apart - off - value * apart) / apart.sum()
    k = 24 * (parts**4).sum() / (parts**2).sum() ** 2 * 25 / 23
    df = 23 * min(1.0, 2 / (k - 1))
    half = stdtrit(df, 0.975) * np.sqrt(25 / 23 * 24 / 23 * (parts**2).sum()) / (1 - value)
    ends = [1 - (1 - value) * np.exp(side * half) for side in (1, -1)]
    assert (found.value, found.low, found.high) == pytest.approx((value, *ends))
    assert found.method == f"linearised by group, log, t({df:.3g})"
