"""Systems held against each other, and which cannot be told apart from the best; values worked out by
hand."""

from __future__ import annotations

import pytest

from judgecal.errors import InputError
from judgecal.rag.evaluation.comparisons import best_of, compare_systems, factor_curves, values_of
from judgecal.rag.evaluation.measured import Measured
from judgecal.rag.evaluation.system import Setting
from tests.benchmarks.sweeps import KINDS, TABLES, Published, simulate, told_apart
from tests.support.measured import measured_row, of_totals


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
    rows = (
        of_totals("low", low) + of_totals("a", [0.8, 1.0] * 20) + of_totals("b", [1.0, 0.8] * 19 + [1.0, 0.7])
    )
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
    assert [one.loss_at_most for one in twins.not_told_apart] == [
        None,
        None,
    ]  # nothing is known of their spread
    few = best_of(values_of(of_totals("a", [1.0] * 9) + of_totals("b", [0.0] * 9)))
    assert few.best is None and len(few.not_told_apart) == 2
    assert "fewer than 10" in (few.reason or "")
    alone = best_of(values_of(of_totals("a", [1.0, 0.0] * 10)))
    assert (alone.best, alone.runner_up, len(alone.not_told_apart)) == (None, None, 1)
    assert alone.not_told_apart[0].loss_at_most is None  # there is none that it could lose against


SETTINGS = {
    "base": {"chunk": 256, "top_n": 1},
    "large": {"chunk": 512, "top_n": 1},
    "more": {"chunk": 256, "top_n": 2},
    "both": {"chunk": 512, "top_n": 2},
}


def grid() -> list[Measured]:
    totals = {"base": 0.4, "large": 0.6, "more": 0.4, "both": 1.0}
    rows = [measured_row(name, place, total) for name, total in totals.items() for place in range(19)]
    return rows + [
        measured_row(name, 19, None if name == "both" else total) for name, total in totals.items()
    ]


def test_curves_of_a_grid_are_means_over_the_other_factors() -> None:
    chunk, top_n = factor_curves(grid(), SETTINGS, table="ours", design="grid")
    assert [(one.level, one.systems) for one in chunk.levels] == [
        (256, ("base", "more")),
        (512, ("large", "both")),
    ]
    assert chunk.levels[0].value.value == pytest.approx(0.4)
    assert chunk.levels[1].value.value == pytest.approx((19 * 0.8 + 0.3) / 20)
    assert chunk.levels[1].complete_case.value == pytest.approx((19 * 0.8 + 0.6) / 20)
    assert (chunk.levels[1].value.n_expected, chunk.levels[1].value.n_unscored) == (40, 1)
    assert chunk.best_of.best == "512"
    assert [one.value.value for one in top_n.levels] == pytest.approx([0.5, (19 * 0.7 + 0.2) / 20])


def test_curves_of_one_at_a_time_hold_the_others_at_the_base() -> None:
    rows = [one for one in grid() if one.system != "both"]
    chunk, top_n = factor_curves(rows, SETTINGS, table="ours", design="one_at_a_time", base="base")
    assert [one.systems for one in chunk.levels] == [("base",), ("large",)]
    assert [one.systems for one in top_n.levels] == [("base",), ("more",)]
    assert top_n.best_of.best is None and chunk.best_of.best == "512"
    with pytest.raises(InputError, match=r"(?s)other: its settings are not given.*the base is None"):
        factor_curves([*rows, measured_row("other", 0)], SETTINGS, table="ours", design="one_at_a_time")
    lacking = SETTINGS | {"more": {"top_n": 2}}
    with pytest.raises(
        InputError, match="more: its factors are top_n, and those of the first system chunk, top_n"
    ):
        factor_curves(rows, lacking, table="ours", design="one_at_a_time", base="base")


def test_the_best_of_a_curve_pays_for_all_curves() -> None:
    """Six questions of 83 that differ show it at 0.95, as above, and not at 0.975."""
    rows = of_totals("a", [1.0] * 83) + of_totals("b", [0.0] * 6 + [1.0] * 77)
    settings: dict[str, dict[str, Setting]] = {"a": {"top_n": 1}, "b": {"top_n": 2}}
    (alone,) = factor_curves(rows, settings, table="ours", design="grid")
    (of_two,) = factor_curves(rows, settings, table="ours", design="grid", n_curves=2)
    assert (alone.best_of.best, of_two.best_of.best) == ("1", None)
    assert alone.levels == of_two.levels


def test_a_single_best_is_called_where_it_is_and_hardly_elsewhere() -> None:
    """1,000 runs of each kind: tests/benchmarks/sweeps.py."""
    assert simulate(KINDS["ten equal"], runs=12).wrong == 0.0
    assert simulate(KINDS["one at 0.86, nine at 0.71"], runs=30).single > 0.6


def test_published_tables() -> None:
    """A refusal in ten and correctness 0.9: 0.9 (0.03 + 0.81) - 0.81^2 = 0.0999."""
    assert Published("x", 0.9, 0.9).variance == pytest.approx(0.0999)
    found = told_apart(*TABLES["temperature"])
    assert (found.highest, found.below) == ("0.2", ())
    assert found.lead < 0.02 < found.detectable


def test_measures_of_the_answered_alone_are_not_paired() -> None:
    with pytest.raises(
        InputError, match=r"no measure is called correctness: .* total, answered, faithfulness"
    ):
        values_of([measured_row("s", 0)], "correctness")
