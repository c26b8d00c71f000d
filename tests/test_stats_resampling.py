"""Values without blocks of groups, the values without each group, and what must not change an interval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import spearmanr

from judgecal.errors import InputError
from judgecal.stats import agreement
from judgecal.stats.chance import kappa
from judgecal.stats.correlation import concordance, spearman
from judgecal.stats.metrics import Statistic
from judgecal.stats.sample import Sample, as_scale, build, codes_of, read_both


def made_up(n: int, *, scale: str = "ordinal:0:4", size: int = 2, repeats: int = 1, seed: int = 0) -> Sample:
    """Groups of `size` items, one verdict in twenty missing."""
    rng = np.random.default_rng(seed)
    common = as_scale(scale)
    gold = rng.integers(int(common.low), int(common.high) + 1, n).astype(np.float64)
    noise = np.round(rng.normal(0.0, 0.25 * common.span, (n, repeats)))
    verdicts = np.clip(gold[:, None] + noise, common.low, common.high)
    verdicts[rng.random((n, repeats)) < 0.05] = np.nan
    groups = np.arange(n, dtype=np.int64) // size
    return build(gold, verdicts, groups, people=common, judge=common, unscored="drop")


def test_values_without_a_block_are_those_of_the_other_items() -> None:
    sample = made_up(120, scale="percentage", repeats=2)
    blocks = np.arange(sample.n_groups, dtype=np.int64) % 5
    found = [spearman(sample).values(), *spearman(sample).without(blocks)]
    for block, values in enumerate(found, -1):
        for repeat in range(2):
            kept = (blocks[sample.group_of] != block) & sample.scored[:, repeat]
            expected = spearmanr(sample.gold[kept], sample.verdicts[kept, repeat]).statistic
            assert values[repeat] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("terms", [kappa, concordance, spearman])
def test_leaving_a_group_out_is_the_statistic_of_the_others(terms: Callable[[Sample], Statistic]) -> None:
    sample = made_up(60, repeats=2)
    found = terms(sample).without_each()
    assert found.shape == (sample.n_groups, 2)
    for group in (0, 7, sample.n_groups - 1):
        there = sample.group_of != group
        rest = build(
            sample.gold[there],
            sample.verdicts[there],
            sample.group_of[there],
            people=sample.scale,
            judge=sample.scale,
            unscored="drop",
        )
        assert found[group] == pytest.approx(terms(rest).values(), abs=1e-12)


def test_numbers_are_read_at_once_as_they_are_one_by_one() -> None:
    plain = [0, 1, None, float("nan"), 1.0, 0.0, 100]
    words = ["0", "yes", None, None, True, False, "100%"]  # not only numbers: one by one
    scale = as_scale("binary")
    sides = [read_both(labels, labels, people=scale, judge=scale)[:2] for labels in (plain, words)]
    for one, other in zip(*sides, strict=True):
        assert np.array_equal(one, other, equal_nan=True)
    half = as_scale("fraction")
    gold, verdicts, _ = read_both([0.25, None], [[0.5, 1], [None, 0]], people=half, judge=half)
    assert gold[0] == 25.0 and verdicts[0].tolist() == [50.0, 100.0] and verdicts[1, 1] == 0.0
    by_array = read_both(np.array([0.25, np.nan]), np.array([[0.5, 1], [np.nan, 0]]), people=half, judge=half)
    assert np.array_equal(by_array[1], verdicts, equal_nan=True)


@pytest.mark.parametrize(
    ("labels", "scale", "told"),
    [
        ([5.0, 101.0, None], "percentage", r"gold_labels\[1\]: 101 lies outside 0..100"),
        ([1, 0, 7], "binary", r"gold_labels\[2\]: '7' is none of"),
        ([1.0, float("inf")], "ordinal:0:4", r"gold_labels\[1\]: inf lies outside"),
        ([1, 10**400], "ordinal:0:4", "gold_labels"),
    ],
)
def test_a_wrong_number_among_many_is_still_named(labels: list[float], scale: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        agreement(labels, [0] * len(labels), scale=scale)


def test_groups_are_numbered_by_type_and_text_whatever_their_order() -> None:
    assert codes_of(["b", "a", "b", "10", "9"], 5).tolist() == [3, 2, 3, 0, 1]
    assert codes_of([10, 9, 10], 3).tolist() == [0, 1, 0]  # by their text, as mixed types are
    assert codes_of(["a", 2, 1.5, 2.0], 4).tolist() == [2, 1, 0, 1]  # float, int, str; 2 == 2.0
    assert codes_of(np.array([3, 3, 1]), 3).tolist() == [1, 1, 0]
    with pytest.raises(InputError, match="2 gold labels but 1 groups"):
        codes_of(["a"], 2)


def test_blocks_do_not_hang_on_the_order_within_a_question() -> None:
    rng = np.random.default_rng(8)
    gold, judge = rng.integers(0, 3, (2, 1200, 2))
    groups = np.repeat(np.arange(1200), 2)
    turned = rng.random(1200) < 0.5
    sides = [np.where(turned[:, None], side[:, ::-1], side) for side in (gold, judge)]
    found, again = (
        agreement(a.ravel(), b.ravel(), scale="ordinal:0:2", groups=groups, metrics=["spearman"])["spearman"]
        for a, b in ((gold, judge), sides)
    )
    assert "by 100 blocks" in found.method
    assert (again.value, again.low, again.high) == pytest.approx(
        (found.value, found.low, found.high), abs=1e-12
    )
