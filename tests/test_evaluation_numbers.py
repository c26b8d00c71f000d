"""What the answers of systems come to, and systems held against each other; values worked out by hand."""

from __future__ import annotations

import math

import pytest

from judgecal.rag.evaluation.comparisons import best_of, compare_systems, factor_curves, values_of
from judgecal.rag.evaluation.summary import Measured, is_complex, summarise
from judgecal.rag.evaluation.system import Setting
from tests.support.evaluated import measured_row, of_totals


def worked() -> list[Measured]:
    """Ten right answers, four half right; two wrong refusals, a right one; an answer where there is none.

    Two are unscored: no reply, and no verdict on correctness.
    """
    return [
        *(measured_row("s", place, 1.0 if place < 10 else 0.5) for place in range(14)),
        *(measured_row("s", place, None, answered=False) for place in (14, 15)),
        measured_row("s", 16, None, answered=False, answerable=False),
        measured_row("s", 17, 0.0, answerable=False),
        measured_row("s", 18, answered=None, failed=True),
        measured_row("s", 19, None),
    ]


def test_a_system_by_hand() -> None:
    (found,) = summarise(worked(), right_at=0.75)
    assert (found.n, found.n_expected, found.n_unscored) == (18, 20, 2)
    assert found.answered.value == pytest.approx(16 / 19)
    assert (found.answered.n, found.answered.n_expected, found.answered.n_unscored) == (19, 20, 1)
    # Wilson with t(18) = 2.101; a clustered variance has 18 in its bottom, so 19 count as 18: 0.7747 -+ 0.1753
    assert (found.answered.low, found.answered.high) == pytest.approx((0.5994, 0.9500), abs=1e-3)
    assert found.answer_correctness.value == pytest.approx(12 / 15)
    assert (found.answer_correctness.n, found.answer_correctness.n_unscored) == (15, 1)
    assert found.total.value == pytest.approx(12 / 20)  # unscored as wrong
    assert found.total_complete_case.value == pytest.approx(12 / 18)  # the product where nothing is unscored
    (scored,) = summarise(worked()[:18])
    product = (scored.answered.value or 0.0) * (scored.answer_correctness.value or 0.0)
    assert scored.total.value == scored.total_complete_case.value == pytest.approx(product)
    assert found.total.low is not None and found.total.low < 0.6 < (found.total.high or 0.0)
    assert found.measures["faithfulness"].value == pytest.approx(12 / 15)


@pytest.mark.parametrize(("right_at", "right", "wrong"), [(0.75, 10, 5), (0.5, 14, 1)])
def test_outcomes_are_answerable_times_answered(right_at: float, right: int, wrong: int) -> None:
    outcomes = summarise(worked(), right_at=right_at)[0].outcomes
    cells = (outcomes.right_answer, outcomes.wrong_answer, outcomes.right_refusal, outcomes.wrong_refusal)
    assert [cell.count for cell in cells] == [right, wrong, 1, 2]
    assert outcomes.n_unscored == 2
    assert math.fsum(cell.share.value or 0.0 for cell in cells) == pytest.approx(1.0)
    assert outcomes.right_answer.share.n == 18
    assert outcomes.right_answer.share.low is not None


def test_times_and_cost() -> None:
    times = [2.0] * 18 + [21.0]
    rows = [
        measured_row("s", place, latency_s=time, is_complex=place > 16) for place, time in enumerate(times)
    ]
    failed = measured_row("s", 19, answered=None, failed=True, cost_usd=None, latency_s=30.0)
    (found,) = summarise([*rows, failed])
    assert (found.latency_s.mean, found.latency_s.p50, found.latency_s.n) == (3.0, 2.0, 19)
    assert found.latency_s.complex == pytest.approx(11.5)
    assert found.latency_s.p95 == pytest.approx(3.9)  # a tenth of the way from the 18th to the 19th
    assert found.queries_per_minute == pytest.approx(20.0)
    assert found.usd_per_1k == pytest.approx(1.0)
    assert found.ttft_s.mean is None and found.ttft_s.n == 0
    # a cost that is not known is not averaged away
    assert summarise([measured_row("s", 0), measured_row("s", 1, cost_usd=None)])[0].usd_per_1k is None


# --- systems held against each other


def test_pairs_after_holm() -> None:
    better, worse = [1.0] * 30, [0.0] * 10 + [1.0] * 20
    rows = of_totals("a", better) + of_totals("b", worse) + of_totals("c", better)
    found = {(one.a, one.b): one for one in compare_systems(rows)}
    assert [one.decision for one in found.values()] == ["A", "cannot tell", "B"]
    assert found["a", "b"].difference.value == pytest.approx(1 / 3)
    assert found["a", "b"].p_value == pytest.approx(0.5**10)  # McNemar's mid-p of 10 against 0
    assert found["a", "b"].p_adjusted == pytest.approx(3 * 0.5**10)
    assert found["a", "c"].difference.value == 0.0
    assert compare_systems(of_totals("a", better)) == ()


def test_unscored_counts_as_wrong_and_a_decision_does_not_hang_on_it() -> None:
    """Of 40 questions b lost 20; on the others it is ahead by a little."""
    rows = of_totals("a", [0.9] * 40) + of_totals("b", [None] * 20 + [1.0] * 20)
    (found,) = compare_systems(rows)
    assert found.difference.value == pytest.approx(0.4)
    assert found.difference.n_unscored == 20
    assert found.complete_case.value == pytest.approx(-0.1)
    assert found.decision == "cannot tell"


@pytest.mark.parametrize(("differ", "best"), [(5, None), (6, "a")])
def test_five_questions_that_all_differ_one_way_show_nothing(differ: int, best: str | None) -> None:
    """Were they alike, the error would be sqrt(7 + d^2 / 83) / 83: 5 / 2.70 = 1.85 and 6 / 2.73 = 2.20; t is
    1.99."""
    rows = of_totals("a", [1.0] * 83) + of_totals("b", [0.0] * differ + [1.0] * (83 - differ))
    found = best_of(values_of(rows))
    assert (found.highest, found.best, found.runner_up) == ("a", best, "b")
    assert [one.name for one in found.not_told_apart] == (["a"] if best else ["a", "b"])
    assert found.n_questions == 83


def test_those_that_may_be_the_best() -> None:
    low = [0.0] * 20 + [1.0] * 20
    rows = of_totals("low", low) + of_totals("a", [0.8, 1.0] * 20)
    rows += of_totals("b", [1.0, 0.8] * 19 + [1.0, 0.7])
    found = best_of(values_of(rows))
    assert found.best is None and found.highest == "a"
    assert [one.name for one in found.not_told_apart] == ["a", "b"]
    first, second = found.not_told_apart
    assert (first.value, first.loss) == pytest.approx((0.9, 0.0))
    assert second.loss == pytest.approx(0.1 / 40)
    assert second.loss_at_most is not None and second.loss_at_most > 0.1 / 40
    assert found.questions_needed is not None and found.questions_needed > 40


def test_alike_and_too_few() -> None:
    twins = best_of(values_of(of_totals("a", [1.0, 0.5] * 20) + of_totals("b", [1.0, 0.5] * 20)))
    assert (twins.best, len(twins.not_told_apart), twins.questions_needed) == (None, 2, None)
    # nothing is known of their spread
    assert [one.loss_at_most for one in twins.not_told_apart] == [None, None]
    few = best_of(values_of(of_totals("a", [1.0] * 9) + of_totals("b", [0.0] * 9)))
    assert few.best is None and len(few.not_told_apart) == 2
    assert "fewer than 10" in (few.reason or "")
    alone = best_of(values_of(of_totals("a", [1.0, 0.0] * 10)))
    assert (alone.best, alone.runner_up, len(alone.not_told_apart)) == (None, None, 1)
    assert alone.not_told_apart[0].loss_at_most is None  # there is none that it could lose against


SETTINGS: dict[str, tuple[str, dict[str, Setting]]] = {
    "base": ("ours", {"chunk": 256, "top_n": 1}),
    "large": ("ours", {"chunk": 512, "top_n": 1}),
    "more": ("ours", {"chunk": 256, "top_n": 2}),
    "both": ("ours", {"chunk": 512, "top_n": 2}),
}


def test_curves_hold_the_others_at_the_base() -> None:
    totals = {"base": 0.4, "large": 0.6, "more": 0.4, "both": 1.0}
    rows = [measured_row(name, place, total) for name, total in totals.items() for place in range(19)]
    rows += [measured_row(name, 19, None if name == "large" else total) for name, total in totals.items()]
    chunk, top_n = factor_curves(values_of(rows), SETTINGS, ["base"])
    assert {one.level: one.system for one in chunk.levels} == {256: "base", 512: "large"}
    assert [one.system for one in top_n.levels] == ["base", "more"]
    large = chunk.levels[1]
    assert large.value.value == pytest.approx(0.6 * 19 / 20)
    assert (large.value.n, large.value.n_expected, large.value.n_unscored) == (19, 20, 1)
    assert top_n.best_of.best is None and chunk.best_of.best == "512"


def test_the_best_of_a_curve_pays_for_all_curves() -> None:
    """Six questions of 83 that differ show it at 0.95, as above, and not at 0.975."""
    rows = of_totals("a", [1.0] * 83) + of_totals("b", [0.0] * 6 + [1.0] * 77) + of_totals("c", [1.0] * 83)
    settings: dict[str, tuple[str, dict[str, Setting]]] = {
        "a": ("ours", {"top_n": 1, "chunk": 9}),
        "b": ("ours", {"top_n": 2, "chunk": 9}),
    }
    (alone,) = factor_curves(values_of(rows), settings, ["a"])
    of_two, _ = factor_curves(values_of(rows), {**settings, "c": ("ours", {"top_n": 1, "chunk": 8})}, ["a"])
    assert (alone.best_of.best, of_two.best_of.best) == ("1", None)
    assert alone.levels == of_two.levels


@pytest.mark.parametrize(
    ("question", "complex_"),
    [
        ("When did it open?", False),
        ("Why did it open?", False),
        ("Why did it open? And how many came?", True),
        ("How many came? And when?", False),
        (f"How does it work, {'word ' * 20}?", True),
    ],
)
def test_complex_questions(question: str, complex_: bool) -> None:
    assert is_complex(question) is complex_
