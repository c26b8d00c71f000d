"""The strata of a macro metric, and which of them an interval hangs on."""

from __future__ import annotations

import pytest

from judgecal.stats import compare_paired
from judgecal.stats.means import Stratum, driven_in_words, stratum_that_drives


def test_one_sentence_a_stratum() -> None:
    small, large = Stratum("fail", 12, 113, 0.8), Stratum("pass", 101, 113, 0.2)
    less, even = Stratum("fail", 12, 113, 0.7), Stratum("fail", 12, 113, 0.5)
    said = "B: most of the doubt about their difference (80% of its variance"
    items = 'comes from the 12 "fail" items of 113'
    assert driven_in_words([("A", "B", [small, large])]) == [
        f"A and {said}) {items}; label 15 more of them to narrow the interval by a quarter"
    ]
    several = [("A", "C", [less, large]), ("A", "B", [small, large]), ("A", "D", [even, large])]
    assert driven_in_words(several) == [
        f"A and {said}, and 67% or more in 1 more pairs) {items}; {small.in_words}"
    ]
    assert driven_in_words([("A", "D", [even, large])]) == []


def test_the_parts_of_the_variance() -> None:
    # One item in three is wrong by one judge alone, of 12 that fail and 108 that pass: the variances are as 9
    # to 1.
    gold = [0] * 12 + [1] * 108
    wrong = [1 - label if place % 3 == 0 else label for place, label in enumerate(gold)]
    fails, passes = compare_paired(gold, gold, wrong, scale="binary").strata
    assert (fails.name, fails.n, passes.name, passes.n) == ("fail", 12, "pass", 108)
    assert (fails.share, passes.share) == pytest.approx((107 / 118, 11 / 118))
    alike = compare_paired(gold, gold, gold, scale="binary").strata
    assert all(one.share is None for one in alike) and stratum_that_drives(alike) is None
