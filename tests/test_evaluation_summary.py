"""What the answers of each system come to; values worked out by hand."""

from __future__ import annotations

import math

import pytest

from judgecal.errors import InputError
from judgecal.rag.evaluation.measured import Measured
from judgecal.rag.evaluation.summary import Costs, documents_of, rows_of, summarise
from tests.support.measured import measured_row, of_totals


def worked() -> list[Measured]:
    """Ten right answers, four half right; two wrong refusals, a right one; an answer where there is none; two
    unscored: no reply, and no verdict on correctness.
    """
    rows = [measured_row("s", place, 1.0) for place in range(10)] + [
        measured_row("s", place, 0.5) for place in range(10, 14)
    ]
    rows += [measured_row("s", place, None, answered=False) for place in (14, 15)]
    rows += [
        measured_row("s", 16, None, answered=False, answerable=False),
        measured_row("s", 17, 0.0, answerable=False),
    ]
    return [*rows, measured_row("s", 18, answered=None, failed=True), measured_row("s", 19, None)]


def test_a_system_by_hand() -> None:
    (found,) = summarise(worked(), right_at=0.75)
    assert (found.n, found.n_expected, found.n_unscored) == (18, 20, 2)
    assert found.answered.value == pytest.approx(16 / 19)
    assert (found.answered.n, found.answered.n_expected, found.answered.n_unscored) == (19, 20, 1)
    # Wilson with t(18) = 2.101; a clustered variance has 18 in its bottom, so 19 count as 18: 0.7747 -+
    # 0.1753.
    assert (found.answered.low, found.answered.high) == pytest.approx((0.5994, 0.9500), abs=1e-3)
    assert found.answer_correctness.value == pytest.approx(12 / 15)
    assert (found.answer_correctness.n, found.answer_correctness.n_unscored) == (15, 1)
    assert found.total.value == pytest.approx(12 / 20)  # unscored as wrong
    assert found.total_complete_case.value == pytest.approx(12 / 18)
    assert found.total.low is not None and found.total.low < 0.6 < (found.total.high or 0.0)
    assert found.measures["faithfulness"].value == pytest.approx(12 / 15)
    assert found.measures_as_wrong["faithfulness"].value == pytest.approx(12 / 20)


@pytest.mark.parametrize(("right_at", "right", "wrong"), [(0.75, 10, 5), (0.5, 14, 1)])
def test_outcomes_are_answerable_times_answered(right_at: float, right: int, wrong: int) -> None:
    outcomes = summarise(worked(), right_at=right_at)[0].outcomes
    cells = (outcomes.right_answer, outcomes.wrong_answer, outcomes.right_refusal, outcomes.wrong_refusal)
    assert [cell.count for cell in cells] == [right, wrong, 1, 2]
    assert outcomes.n_unscored == 2
    assert math.fsum(cell.share.value or 0.0 for cell in cells) == pytest.approx(1.0)
    assert outcomes.right_answer.share.n == 18
    assert outcomes.right_answer.share.low is not None


def test_utility_at_stated_costs() -> None:
    (found,) = summarise(worked(), right_at=0.75, costs=Costs(wrong=2.0, refusal=0.5))
    assert found.utility_complete_case.value == pytest.approx((10 + 1 - 2 * 5 - 0.5 * 2) / 18)
    assert found.utility.value == pytest.approx(-4 / 20)  # two unscored as wrong answers
    assert (found.utility.n_expected, found.utility.n_unscored) == (20, 2)


def test_times_and_cost() -> None:
    times = [2.0] * 18 + [21.0]
    rows = [measured_row("s", place, latency_s=time) for place, time in enumerate(times)]
    (found,) = summarise(
        [*rows, measured_row("s", 19, answered=None, failed=True, cost_usd=None, latency_s=30.0)]
    )
    assert (found.latency_s.mean, found.latency_s.p50, found.latency_s.n) == (3.0, 2.0, 19)
    assert found.latency_s.p95 == pytest.approx(3.9)  # a tenth of the way from the 18th to the 19th
    assert found.queries_per_minute == pytest.approx(20.0)
    assert found.usd_per_1k == pytest.approx(1.0)
    assert found.ttft_s.mean is None and found.ttft_s.n == 0


def test_a_cost_that_is_not_known_is_not_averaged_away() -> None:
    assert summarise([measured_row("s", 0), measured_row("s", 1, cost_usd=None)])[0].usd_per_1k is None


def test_total_is_the_product_where_nothing_is_unscored() -> None:
    (found,) = summarise(worked()[:18])
    share, correctness = found.answered.value, found.answer_correctness.value
    assert share is not None and correctness is not None
    assert found.total.value == pytest.approx(share * correctness)
    assert found.total.value == pytest.approx(found.total_complete_case.value)


def test_a_question_that_a_system_was_not_asked_is_unscored() -> None:
    rows = of_totals("a", [1.0] * 12) + of_totals("b", [1.0] * 9)
    first, second = summarise(rows)
    assert (first.n_unscored, second.n_unscored, second.n_expected) == (0, 3, 12)
    assert second.total.value == pytest.approx(0.75)


def test_documents() -> None:
    rows = [measured_row("s", place, float(place < 3), document="abc"[place % 3]) for place in range(12)]
    assert documents_of(rows) == ("a", "b", "c")
    found = summarise(rows, documents_of(rows))
    assert [(one.document, one.n_expected) for one in found] == [("a", 4), ("b", 4), ("c", 4)]
    assert found[0].total.value == pytest.approx(0.25)
    assert found[0].total.low is None and "fewer than 10" in (found[0].total.reason or "")


def test_a_system_without_an_answer_to_a_documents_questions_is_unscored_there() -> None:
    rows = [measured_row("a", place, document="de"[place % 2]) for place in range(4)]
    rows += [measured_row("b", place, document="d") for place in (0, 2)]
    found = {
        (one.system, one.document): (one.n, one.n_expected, one.n_unscored)
        for one in summarise(rows, documents_of(rows))
    }
    assert found["b", "d"] == (2, 2, 0) and found["b", "e"] == (0, 2, 2)


def test_what_cannot_be_read_is_said_at_once() -> None:
    with pytest.raises(InputError, match="no answer was measured"):
        rows_of([])
    with pytest.raises(InputError, match="s: question q0 has more than one answer"):
        rows_of([measured_row("s", 0), measured_row("s", 0)])
    with pytest.raises(InputError, match=r"right_at is 75.*\n.*wrong costs are -1"):
        summarise([measured_row("s", 0)], right_at=75.0, costs=Costs(wrong=-1.0))
