"""What passes by a lock's rule, one verdict or many, and the shares that follow from it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from judgecal.records import Estimate
from judgecal.scale import Scale
from judgecal.selection.lock import LockedGold
from judgecal.selection.migrate import _with_rows
from judgecal.selection.pass_rates import PassRule, at_chance, class_rates, flip_rate, word_shares
from judgecal.selection.rules import MigrationDecision
from judgecal.stats import Calibration

MAP = Calibration((40.0, 70.0), (20.0, 60.0, 90.0), 50, 50)
TO_BINARY = Calibration((30.0,), (0.0, 1.0), 50, 50)


def rule(people: str, judge: str, pass_at: float | None = None, calibration: Any = None) -> PassRule:
    gold = LockedGold("s", "sha", "test", people, pass_at)
    return PassRule.for_scale(gold, Scale.parse(judge), calibration)


@pytest.mark.parametrize(
    ("of", "verdicts", "passes", "raw", "cut"),
    [
        (rule("binary", "percentage"), [49.9, 50.0, None], [False, True, None], [False, True, None], 50.0),
        (rule("binary", "binary"), [0.0, 1.0, None], [False, True, None], [False, True, None], 0.5),
        (rule("percentage", "ordinal:1:5", 75), [3.9, 4.0, 5.0], [False, True, True], [False, True, True], 4.0),
        (rule("percentage", "percentage", 60, MAP), [39.0, 40.0, 65.0], [False, True, True], [False, False, True], 40.0),
        (rule("percentage", "percentage", 95, MAP), [39.0, 95.0], [False, False], [False, True], 100.0),
        (rule("percentage", "percentage", 10, MAP), [0.0, 95.0], [True, True], [False, True], 0.0),
        (rule("binary", "percentage", None, TO_BINARY), [29.0, 30.0, 50.0], [False, True, True], [False, False, True], 30.0),
        (rule("percentage", "percentage"), [0.0, 100.0], [None, None], [None, None], 0.0),
    ],
)  # fmt: skip
def test_one_verdict_and_many_pass_by_the_same_rule(
    of: PassRule, verdicts: list[Any], passes: list[Any], raw: list[Any], cut: float
) -> None:
    many = np.array([np.nan if one is None else one for one in verdicts])
    assert [of.passes(one) for one in verdicts] == passes
    assert [of.passes(one, raw=True) for one in verdicts] == raw
    as_numbers = [np.nan if one is None else float(one) for one in passes]
    np.testing.assert_array_equal(of.passed(many), as_numbers)
    assert of.cut == pytest.approx(cut)
    assert (of.reason is None) is (of.mark is not None)


def test_rates_at_the_mark_and_a_judge_at_chance() -> None:
    found = {"tpr": Estimate(0.5), "tnr": Estimate(0.5), "tpr@75": Estimate(0.8), "tnr@75": Estimate(0.21)}
    binary, graded = Scale.parse("binary"), Scale.parse("percentage", pass_at=75)
    assert class_rates(binary, found) == (found["tpr"], found["tnr"])
    assert class_rates(graded, found) == (found["tpr@75"], found["tnr@75"])
    assert class_rates(Scale.parse("percentage"), found) == (None, None)
    assert "0.500 and specificity 0.500 add up to 1.000, not above 1" in str(at_chance(binary, found))
    assert at_chance(graded, found) is None and at_chance(binary, {"tpr": Estimate(0.1)}) is None


def test_flips_and_shares_of_words_by_hand() -> None:
    rules = rule("binary", "percentage"), rule("binary", "binary")
    calls = [[[60.0, 40.0], [1.0]], [[60.0, None], [0.0]], [[None], [1.0]]] + [[[90.0], [1.0]]] * 9
    found = flip_rate(rules, calls, [str(n) for n in range(12)])
    assert (found.value, found.n, found.n_unscored) == (pytest.approx(1.5 / 11), 11, 1)
    words = ["a"] * 6 + ["b"] * 3 + [None] * 3
    shares = word_shares(words, [str(n) for n in range(12)], ["c"])
    assert list(shares) == ["a", "b", "c"]
    assert [one.value for one in shares.values()] == pytest.approx([6 / 9, 3 / 9, 0.0])
    assert {(one.n, one.n_unscored) for one in shares.values()} == {(9, 3)}


@pytest.mark.parametrize(
    ("gold", "rows", "sealed", "decided", "by"),
    [
        ("pass", None, False, "pass", "gold"), ("fail", "pass", False, "fail", "gold"),
        ("fail", "pass", True, "fail", "gold"), ("pass", "pass", False, "pass", "gold"),
        ("pass", "fail", False, "fail", "labels"), ("pass", "", False, "pass", "gold"),
        ("inconclusive", "pass", False, "pass", "labels"), ("inconclusive", "fail", False, "fail", "labels"),
        ("inconclusive", "", False, "inconclusive", "gold"), ("pass", "", True, "inconclusive", "labels"),
        ("inconclusive", "pass", True, "pass", "labels"),
    ],
)  # fmt: skip
def test_a_fail_wins_and_rows_decide_where_the_gold_set_does_not(
    gold: Any, rows: str | None, sealed: bool, decided: str, by: str
) -> None:
    shape: Any = SimpleNamespace(decision=rows or None, decided_by="labels" if rows else None, why="on rows")
    before = MigrationDecision(gold, "on gold", cast(Any, None), cast(Any, None), None)
    found, decided_by = _with_rows(before, None if rows is None else shape, sealed=sealed)
    assert (found.decision, decided_by) == (decided, by)
    assert found.why.startswith("on gold" if by == "gold" and (decided != "inconclusive") else "on rows")
