"""The mean of a table from some labels and all verdicts: known values, edges, and intervals that hold."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from judgecal.stats import prediction_powered
from judgecal.stats.intervals import t_quantile, wilson
from judgecal.stats.prediction_powered import (
    LabelledRows,
    _clustered,
    _saved,
    _together,
    corrected_mean,
    slope,
    tuned_weights,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def table(
    n: int, *, right: float = 0.7, rates: tuple[float, float] = (0.9, 0.8), seed: int = 0
) -> tuple[Floats, Floats, Ints]:
    """Labels and verdicts of n rows, two to a question."""
    rng = np.random.default_rng(seed)
    label = (rng.random(n) < right).astype(np.float64)
    verdict = (rng.random(n) < np.where(label == 1.0, rates[0], 1.0 - rates[1])).astype(np.float64)
    return label, verdict, np.arange(n) // 2


def some(label: Floats, n: int, rng: np.random.Generator) -> LabelledRows:
    at = rng.choice(len(label), n, replace=False)
    return LabelledRows(at, label[at])


def test_weights_of_a_row_do_not_hang_on_its_own_question() -> None:
    label, verdict, groups = table(200)
    before = tuned_weights(verdict, LabelledRows(np.arange(200), label), groups)
    changed = label.copy()
    changed[:2] = 1.0 - changed[:2]  # the first question
    after = tuned_weights(verdict, LabelledRows(np.arange(200), changed), groups)
    assert (after[:2] == before[:2]).all() and (after != before).any()


def test_unequal_chances_are_weighed_and_strata_count() -> None:
    rng = np.random.default_rng(4)
    label, verdict, groups = table(3000, right=0.9, seed=5)
    strata = [np.flatnonzero(verdict == one) for one in (0.0, 1.0)]
    held = 0
    for _ in range(100):
        parts = [rng.choice(rows, 50, replace=False) for rows in strata]
        at = np.concatenate(parts)
        chance = np.concatenate([np.full(50, 50 / len(rows)) for rows in strata])
        found = corrected_mean(verdict, groups, LabelledRows(at, label[at], chance)).estimate
        assert found.value is not None and found.low is not None and found.high is not None
        by_hand = sum(len(rows) * label[part].mean() for rows, part in zip(strata, parts, strict=True)) / 3000
        assert found.value == pytest.approx(by_hand, abs=0.004)  # but for the weights of the folds
        held += found.low <= label.mean() <= found.high
    assert held >= 90


def test_slope_is_that_of_least_squares() -> None:
    label, verdict, _ = table(50)
    assert slope(label, verdict) == pytest.approx(np.polyfit(verdict, label, 1)[0])
    assert slope(label, np.ones(50)) == 0.0


def test_slope_with_half_a_row_of_each_kind() -> None:
    label, verdict, _ = table(50)
    heavy = np.linspace(0.5, 1.5, 50)
    every = [np.append(verdict, [0.0, 1.0, 0.0, 1.0]), np.append(label, [0.0, 0.0, 1.0, 1.0])]
    fitted = np.polyfit(*every, 1, w=np.sqrt(np.append(heavy, [0.5] * 4)))[0]
    assert slope(label, verdict, heavy, pseudo=0.5) == pytest.approx(fitted)


def limits(value: float, n: int, variance: float, *, evened: bool) -> tuple[float, float]:
    """Wilson's, at the n that a variance is worth; of a judged share the shorter side is lengthened."""
    near = (value * n + 0.7) / (n + 1.4)
    low, high = wilson(value, near * (1 - near) / variance, t_quantile(0.95, n - 1))
    more = (high + low - 2 * value) * min(1.0, 15 / n) if evened else 0.0
    return max(0.0, low - max(0.0, more)), min(1.0, high + max(0.0, -more))


@pytest.mark.parametrize(("right", "n"), [(0.5, 60), (0.9, 60), (0.5, 12)])
def test_a_corrected_share_by_hand(right: float, n: int) -> None:
    """Of 600 rows, each its own question, some have labels: the formulas of the head of the module."""
    label, verdict, _ = table(600, right=right, rates=(0.85, 0.7), seed=2)
    labelled = LabelledRows(np.arange(n), label[:n])
    found = corrected_mean(verdict, np.arange(600), labelled)
    weights, left = tuned_weights(verdict[:n], labelled, np.arange(n)), 1 - n / 600
    variances = []
    for estimate, weight in ((found.plain, np.zeros(n)), (found.estimate, weights)):
        weight = weight.mean() + (weight - weight.mean()) * left
        residual = label[:n] - weight * verdict[:n]
        value = residual.mean() + weight.mean() * verdict.mean()
        guess = weight * verdict[:n]
        kinds = np.array([end - at for end in (0, 1) for at in (guess.min(), guess.max())])
        middle = (residual.sum() + 0.35 * kinds.sum()) / (n + 1.4)
        unseen = 0.35 * ((kinds - middle) ** 2).sum() + n * (residual.mean() - middle) ** 2
        variances.append(left * (residual.var() / (n - 1) + unseen / (n + 1.4) ** 2))
        ends = limits(value, n, variances[-1], evened=estimate is found.estimate)
        assert (estimate.value, estimate.low, estimate.high) == pytest.approx((value, *ends))
        assert estimate.method.endswith(f"Wilson on the effective n, t({n - 1})")
    assert found.weight == pytest.approx(weights.mean())
    per_label = variances[0] / (1 / n - 1 / 600)
    assert found.labels_saved == max(0, math.floor(1 / (variances[1] / per_label + 1 / 600)) - n)


def test_a_corrected_mean_of_grades_by_hand() -> None:
    """On the logit of the place in 1..5, by t with as many degrees of freedom as the parts' kurtosis leaves."""
    label = np.random.default_rng(3).integers(1, 6, 400).astype(float)
    found = corrected_mean(
        np.full(400, 2.0), np.arange(400), LabelledRows(np.arange(40), label[:40]), low=1.0, high=5.0
    )
    place = (label[:40] - 1) / 4
    value, parts = place.mean(), place - place.mean()
    k = 40 * (parts**4).sum() / (parts**2).sum() ** 2 * 41 / 39
    df = 39 * min(1.0, 2 / (k - 1))
    half = t_quantile(0.95, df) * math.sqrt(0.9 * place.var() / 39) / (value * (1 - value))
    ends = [1 + 4 / (1 + (1 - value) / value * math.exp(-side * half)) for side in (-1, 1)]
    assert (found.plain.value, found.plain.low, found.plain.high) == pytest.approx((1 + 4 * value, *ends))
    assert found.weight == 0.0 and found.estimate.value == found.plain.value


def test_rows_drawn_together_are_told_from_pairs_of_a_question() -> None:
    """Of 40 questions of two rows each both rows, one row, or both of half of the questions have labels."""
    groups, both = np.repeat(np.arange(40), 2), np.repeat(np.arange(20), 2)
    some = np.concatenate([np.repeat(np.arange(10), 2), np.arange(10, 20)])
    for group, told in ((both, 1.0), (np.arange(20), 0.0), (some, 0.5)):
        assert _together(groups, group, np.full(len(group), 2.0), 0.5) == pytest.approx(told)
    # Twelve equal groups whose sums are their rows' together: G / (G - 2); alone nothing is between rows.
    parts, group = np.tile([1.0, -1.0], 12) * np.repeat([1.0, 1.0], 12), np.repeat(np.arange(12), 2)
    assert _clustered(np.abs(parts), group, np.ones(24), 1.0) == pytest.approx(12 * 4 * 12 / 10)
    assert _clustered(np.abs(parts), group, np.ones(24), 0.5) == pytest.approx((24 + 12 * 4 * 12 / 10) / 2)
    assert _clustered(parts, group, np.ones(24), 1.0) == 12.0  # never under half of the rows' own


@pytest.mark.parametrize(
    ("tuned", "n", "saved"), [(0.004, 50, 66), (0.01, 50, 0), (0.02, 50, 0), (0.0, 50, 0), (0.004, 1000, 0)]
)
def test_labels_saved_by_hand(tuned: float, n: int, saved: int) -> None:
    # 50 of 1,000 rows leave 0.01 = s (1 / 50 - 1 / 1000): 0.004 is left by 116.3.
    assert _saved(0.01, tuned, n=n, n_rows=1000) == saved


# Of ppi-python 0.2.3 (ppi_mean_pointestimate, ppi_mean_ci at alpha 0.05), its unlabelled rows being all 400
# of these, of which the first 40 are labelled: weight of the verdicts -> value, half width.
VERDICTS = (
    "1111011011111110111110110011010111101101110111110111111110111101111101111101110111010011001011001001"
    "1011111111111111001011101101101111001111001110111010011011101001101110100011110111010010111101110111"
    "0011110101011101000011111011011011110000011111111000111110101101011101101011111110100011101001111011"
    "0110001111111110010111111111111111111110011001111110101111111111110110000100111111001110011101111110"
)
LABELS = "1111111011111110011111110111011111100101"
KNOWN = {0.0: (0.8, 0.12395898), 0.5: (0.775, 0.1037694), 1.0: (0.75, 0.12720906)}
TUNED = 0.435732009925562


@pytest.mark.parametrize("weight", KNOWN)
def test_known_values(weight: float) -> None:
    verdict, label = (np.array([float(one) for one in told]) for told in (VERDICTS, LABELS))
    labelled = LabelledRows(np.arange(40), label)
    linear = prediction_powered._linear(verdict, np.arange(400), labelled, np.full(40, weight))
    value, half = KNOWN[weight]
    assert linear.value == pytest.approx(value)
    # Theirs is for the rows of a table without end: the verdicts' own error is added, and no part of it is
    # labelled.
    of_labels = float((linear.parts**2).sum()) / (1.0 - 40 / 400) * 39 / 40
    of_verdicts = weight**2 * float(verdict.var()) / 400
    assert 1.959963985 * np.sqrt(of_labels + of_verdicts) == pytest.approx(half, rel=1e-6)


def test_known_weight() -> None:
    verdict, label = (np.array([float(one) for one in told]) for told in (VERDICTS, LABELS))
    # Theirs divides by the variance of all verdicts, the labelled ones twice, and by 1 + n / N.
    every = float(np.concatenate([verdict, verdict[:40]]).var(ddof=1))
    assert slope(label, verdict[:40]) * float(verdict[:40].var()) / every / 1.1 == pytest.approx(TUNED)


def test_labels_that_are_all_alike_have_wilsons_interval() -> None:
    """None of 60 wrong leaves up to 6% wrong, as Wilson's interval and Clopper and Pearson's have it, and not
    3%."""
    verdict, groups = table(100_000)[1], np.arange(100_000)
    for n_wrong in (0, 2, 30):
        label = np.repeat([1.0, 0.0], [60 - n_wrong, n_wrong])
        plain = corrected_mean(verdict, groups, LabelledRows(np.arange(60) * 1000, label)).plain
        low, high = wilson(1.0 - n_wrong / 60, 60.0, t_quantile(0.95, 59.0))
        assert plain.low == pytest.approx(low, abs=0.004) and plain.high == pytest.approx(high, abs=0.004)


def test_whole_questions_that_were_drawn_vary_by_question() -> None:
    """20 of 100 questions of two rows: the jackknife by question, and what is not seen of so few rows."""
    rng = np.random.default_rng(1)
    label, groups = rng.random(200), np.repeat(np.arange(100), 2)
    at = np.arange(40)
    plain = corrected_mean(np.full(200, 0.5), groups, LabelledRows(at, label[at], np.full(40, 0.2))).plain
    means = label[:40].reshape(20, 2).mean(axis=1)
    variance = 0.8 * 40 / 39 * ((means - means.mean()) ** 2).sum() / (20 * 18)
    parts = means - means.mean()
    df = 19 * min(1.0, 2 / (20 * (parts**4).sum() / (parts**2).sum() ** 2 * 21 / 19 - 1))
    half = t_quantile(0.95, df) * math.sqrt(variance) / (means.mean() * (1 - means.mean()))
    odds = (1 - means.mean()) / means.mean()
    assert [plain.low, plain.high] == pytest.approx(
        [1 / (1 + odds * math.exp(side * half)) for side in (1, -1)]
    )
