"""Agreement by tag and system, both ends of the unscored, repeats and the alternative annotator test beside a
judge."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from judgecal.errors import InputError
from judgecal.experiment import AgreementTable, JudgeColumn, entry
from judgecal.experiment import agreement as agreement_module
from judgecal.experiment.agreement import constant_entry, judge_entry
from judgecal.experiment.people import EPSILONS, alt_test_entry
from judgecal.experiment.result import JudgeEntry
from judgecal.goldset import GoldSet, load_gold
from judgecal.records import Estimate, Failure, Judgement
from judgecal.report.judges import order_notes
from judgecal.report.judges_sections import alt_test_note, retest_notes
from judgecal.scale import Label, Scale
from judgecal.stats import agreement, alt_test
from judgecal.stats.breakdown import breakdown
from judgecal.workspace import Workspace
from tests.support.gold import made_gold, made_items

PASS_75 = Scale.parse("percentage", pass_at=75)


# --- parts of a set


def test_parts_by_hand() -> None:
    # a: label 100, verdict 80: 0.8, rightly passed. b: 0 against 90: 0.1, a false pass. c: 80 against none:
    # counted as
    # 0 (the farthest), 0.2, and neither a pass nor a fail. d: no label. e: 100 against 60: 0.6, a false fail.
    found = breakdown(
        [100, 0, 80, None, 100],
        [80, 90, None, 50, 60],
        parts=[["x", "y"], ["x", "x"], ["y"], ["lost"], []],
        scale=PASS_75,
        groups=["g", "g", "h", "h", "i"],
    )
    assert list(found) == ["x", "y"]  # 0.45 and 0.5; `lost` has no labelled item
    x, y = found["x"], found["y"]
    assert (x.agreement.value, y.agreement.value) == pytest.approx((0.45, 0.5))
    assert (x.n, x.n_expected, x.n_unscored, x.agreement.n_groups) == (2, 2, 0, 1)
    assert (y.n, y.n_expected, y.n_unscored, y.agreement.n_groups) == (1, 2, 1, 2)
    assert (x.passes, x.fails, x.false_passes, x.false_fails) == (1, 1, 1, 0)
    assert (y.passes, y.fails, y.false_passes, y.false_fails) == (1, 0, 0, 0)
    assert (x.agreement.low, x.agreement.reason) == (None, "fewer than 30 items: no interval")
    whole = breakdown([100], [60], parts=[["z"]], scale=PASS_75)["z"]
    assert (whole.false_fails, whole.passes) == (1, 1)


def test_repeats_are_judgements() -> None:
    found = breakdown([100, 0], [[100, 50, None], [0, 100, 100]], parts=[["x"], ["x"]], scale=PASS_75)["x"]
    # 1, 0.5 and 0 as wrong; 1, 0, 0: 2.5 of 6.
    assert found.agreement.value == pytest.approx(2.5 / 6)
    assert (found.n, found.n_expected, found.n_unscored) == (5, 6, 1)
    assert (found.passes, found.fails, found.false_passes, found.false_fails) == (2, 3, 2, 1)


def test_a_large_part_is_what_agreement_says_of_its_items() -> None:
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 101, 150).astype(float)
    verdicts = np.clip(gold[:, None] + rng.normal(0, 30, (150, 2)), 0, 100)
    verdicts[rng.random(verdicts.shape) < 0.1] = np.nan
    groups = [f"q{i}" for i in rng.integers(0, 60, 150)]
    parts = [
        [name for name, share in (("a", 0.5), ("b", 0.3), ("c", 0.1)) if rng.random() < share] for _ in gold
    ]
    found = breakdown(gold.tolist(), verdicts.tolist(), parts=parts, scale=PASS_75, groups=groups)
    for name, part in found.items():
        inside = [i for i, names in enumerate(parts) if name in names]
        how: dict[str, Any] = {"groups": [groups[i] for i in inside], "metrics": ["mean_agreement"]}
        people, judge = gold[inside].tolist(), verdicts[inside].tolist()
        alone = agreement(people, judge, scale=PASS_75, unscored="wrong", **how)["mean_agreement"]
        if len(inside) >= 30:
            assert dataclasses.asdict(part.agreement) == pytest.approx(dataclasses.asdict(alone))
        else:
            assert (part.agreement.value, part.agreement.n) == (pytest.approx(alone.value), alone.n)
            assert (part.agreement.n_groups, part.agreement.n_unscored) == (alone.n_groups, alone.n_unscored)
            assert part.agreement.low is None
    assert {name for name, part in found.items() if part.agreement.low is not None} == {"a", "b"}


def test_thirty_items_of_few_questions_have_no_interval() -> None:
    gold = [0.0, 100.0] * 20
    groups = [f"q{i % 5}" for i in range(40)]
    (part,) = breakdown(gold, [50.0] * 40, parts=[["x"]] * 40, scale="percentage", groups=groups).values()
    assert (part.agreement.value, part.agreement.low) == (0.5, None)
    assert part.agreement.reason == "5 groups: fewer than 10 give no interval"
    assert (part.passes, part.false_passes) == (None, None)  # no pass mark


def test_classes() -> None:
    # Binary labels and a judge of percentages, cut at 50: the verdict 50 passes.
    found = breakdown([1, 0, 0], [50, 50, 40], parts=[["x"]] * 3, scale="binary", judge_scale="percentage")[
        "x"
    ]
    assert found.agreement.value == pytest.approx((0.5 + 0.5 + 0.6) / 3)
    assert (found.passes, found.fails, found.false_passes, found.false_fails) == (1, 2, 1, 0)
    words = breakdown(["a", "b", "c"], ["a", "c", None], parts=[["x"], ["x"], ["x"]], scale="nominal")["x"]
    assert words.agreement.value == pytest.approx(1 / 3)  # the missing one is wrong
    assert (words.n, words.n_unscored, words.passes) == (2, 1, None)


def test_no_parts_and_wrong_lengths() -> None:
    assert breakdown([1, 0], [1, 0], parts=[[], []], scale="binary") == {}
    assert breakdown([None], [1], parts=[["x"]], scale="binary") == {}
    with pytest.raises(InputError, match="2 gold labels but parts of 1 items"):
        breakdown([1, 0], [1, 0], parts=[["x"]], scale="binary")


def test_many_items_of_many_tags_are_quick() -> None:
    """A second of 100,000 items with three tags each; what grew with tags times items took a minute."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 101, 100_000).astype(float).tolist()
    parts = [[f"t{a}", f"t{b}"] for a, b in rng.integers(0, 40, (100_000, 2)).tolist()]
    took = []
    for _ in range(3):
        start = time.process_time()
        breakdown(gold, [[value] for value in gold], parts=parts, scale=PASS_75)
        took.append(time.process_time() - start)
    assert min(took) < 10.0


# --- the best case


def best_case(gold: Any, verdicts: Any, *, scale: Scale | str, metric: str, groups: Any = None) -> Estimate:
    """An unscored verdict as its label: the other end from as wrong."""
    return agreement(gold, verdicts, scale=scale, metrics=[metric], groups=groups, unscored="right")[metric]


def test_no_map_is_fitted_for_a_constant(gold: GoldSet, monkeypatch: pytest.MonkeyPatch) -> None:
    table = AgreementTable(gold, gold.select("open"))
    found = constant_entry(table)
    assert found.calibrated == found.agreement and found.calibrated["skill"].value == 0.0

    def fit(*_: object, **__: object) -> None:
        raise AssertionError("a map of a constant")

    monkeypatch.setattr(agreement_module, "cross_fitted", fit)
    assert constant_entry(table) == found


def test_the_best_case_by_hand() -> None:
    # Labels 100, 100, 0, 0: verdicts 50, none, 0, none. As right 0.5, 1, 1, 1: the strata's means 0.75 and 1.
    gold, verdicts = [100, 100, 0, 0], [50, None, 0, None]
    found = best_case(gold, verdicts, scale=PASS_75, metric="macro_agreement")
    assert found.value == pytest.approx(0.875)
    assert (found.n, found.n_expected, found.n_unscored) == (4, 4, 2)
    accuracy = best_case(["a", "b", None], [None, "a", None], scale="nominal", metric="accuracy")
    assert (accuracy.value, accuracy.n_expected) == (0.5, 2)
    at_mark = best_case(gold, verdicts, scale=PASS_75, metric="tpr@75")
    assert at_mark.value == 0.5  # 50 fails, the missing one counts as its label


def test_the_ends_hold_the_complete_case_between_them() -> None:
    rng = np.random.default_rng(5)
    gold = rng.integers(0, 101, 80).astype(float).tolist()
    verdicts = [[None if rng.random() < 0.2 else float(rng.integers(0, 101)) for _ in range(2)] for _ in gold]
    shared: dict[str, Any] = {"scale": PASS_75, "metrics": ["mean_agreement"]}
    worst = agreement(gold, verdicts, unscored="wrong", **shared)["mean_agreement"].value
    middle = agreement(gold, verdicts, **shared)["mean_agreement"].value
    best = best_case(gold, verdicts, scale=PASS_75, metric="mean_agreement").value
    assert worst is not None and middle is not None and best is not None
    assert worst < middle < best
    scored = [[value if value is not None else 0.0 for value in row] for row in verdicts]
    complete = agreement(gold, scored, **shared)["mean_agreement"]
    assert best_case(gold, scored, scale=PASS_75, metric="mean_agreement") == complete


# --- a judge's entry


@pytest.fixture
def gold(workspace: Workspace) -> GoldSet:
    """40 questions of three answers, two raters, tags and systems."""
    rows = made_items(40)
    for number, row in enumerate(rows):
        row["tags"] = [row["kind"], *(["odd"] if number % 2 else [])]
        row["system"] = f"s{number % 2}"
    labels = {"full": 100.0, "half": 50.0, "none": 0.0}
    ratings: list[tuple[str, str, Label]] = [
        (row["item_id"], rater, labels[row["kind"]]) for row in rows for rater in ("ann", "bob")
    ]
    scale = 'kind = "percentage"\nmin = 0\nmax = 100\npass_at = 75'
    return load_gold(made_gold(workspace.gold / "made", rows, ratings, scale=scale), workspace=workspace)


def rows_of(gold: GoldSet, verdicts: Sequence[Sequence[Label | None]], **more: Any) -> list[Judgement]:
    failed = Failure("parse", "no verdict")
    return [
        Judgement(item.item_id, item.sha, "j", "f", n, v, error=failed if v is None else None, **more)
        for item, row in zip(gold.items, verdicts, strict=True)
        for n, v in enumerate(row)
    ]


def judged(
    gold: GoldSet, verdicts: Sequence[Sequence[Label | None]], scale: str | None = None, **more: Any
) -> tuple[AgreementTable, JudgeColumn]:
    """A judge's verdicts, of as many repeats as they have, and the table of all items."""
    column = JudgeColumn("j", Scale.parse(scale) if scale else gold.scale, rows_of(gold, verdicts, **more))
    return AgreementTable(gold, gold.items, max(map(len, verdicts))), column


def test_an_entry_says_where_the_judge_fails(gold: GoldSet) -> None:
    """Raw it passes full and half answers alike, with 90 and 80 in turn; no map takes them apart."""
    verdicts: list[list[Label | None]] = [[90.0], [80.0], [0.0], [80.0], [90.0], [0.0]] * 20
    table, column = judged(gold, verdicts)
    found = judge_entry(table, column)
    plain = entry(table, column).as_json()
    assert {key: value for key, value in found.as_json().items() if key in plain} == plain
    assert list(found.by_tag) == ["full", "odd", "half", "none"]
    mapped = [verdict for row in table.calibrated(column) or () for verdict in row if verdict is not None]
    full, of_full = found.by_tag["full"], mapped[::3]
    assert full.mean_agreement.value == pytest.approx(np.mean(of_full) / 100)
    assert (full.n, full.passes, full.false_passes) == (40, 40, 0)
    assert full.false_fails == sum(one < 75 for one in of_full) > 30
    assert found.by_system.keys() == {"s0", "s1"}
    assert found.limits_of_agreement["bias"].value == pytest.approx(np.mean(mapped) - 50)
    # Two raters who always agree: the judge is as close only where it says the same once calibrated.
    human = alt_test_entry(table, column)
    assert human.winning_rate == {"0.2": 0.0, "0.15": 0.0, "0.1": 0.0}
    same = [a == b for a, b in zip(mapped, [100, 50, 0] * 40, strict=True)]
    assert human.advantage_probability == pytest.approx(np.mean(same))
    assert human.n_items == {"ann": 120, "bob": 120}
    assert found.best_case is None and found.retest is None
    assert json.dumps(human.passed)


def test_an_entry_with_repeats_and_failures(gold: GoldSet) -> None:
    """Once calibrated the half answer's second call is a full one's; the first is right."""
    verdicts: list[list[Label | None]] = [[100.0, 100.0], [60.0, 100.0], [0.0, None]] * 40
    table, column = judged(gold, verdicts, cached=True)
    found = judge_entry(table, column)
    retest = found.retest
    assert (retest.repeats, retest.n_items, retest.all_cached, retest.unit) == (2, 80, True, "percentage")
    assert (retest.exact_agreement.value, retest.flip_rate.value) == (0.5, 0.5)
    # squares 0 and 1250, one degree of freedom each
    assert retest.within_item_sd.value == pytest.approx(25.0)
    assert [one.repeats for one in retest.expected] == [1, 2, 3, 5, 10]
    # As wrong, repeat by repeat: strata 1, 0.9 and 1; then 1, 0.5 and 0. Calibrated the first is right.
    assert found.as_wrong["macro_agreement"].value == pytest.approx((2.9 / 3 + 1.5 / 3) / 2)
    assert found.calibrated["macro_agreement"].value == pytest.approx((3.0 / 3 + 1.5 / 3) / 2)
    assert found.best_case["macro_agreement"].value == pytest.approx((3.0 / 3 + 2.5 / 3) / 2)
    called = [dataclasses.replace(column.rows[0], cached=False), *column.rows[1:]]
    again = judge_entry(table, dataclasses.replace(column, rows=called))
    assert again.retest.all_cached is False


def test_the_alternative_annotator_test_is_that_of_stats(gold: GoldSet) -> None:
    rng = np.random.default_rng(0)
    ratings = [
        dataclasses.replace(rating, label=float(np.clip(rating.label + rng.integers(-20, 21), 0, 100)))
        for rating in gold.ratings
        if isinstance(rating.label, float)
    ]
    people = dataclasses.replace(gold, ratings=tuple(ratings))
    said = [float(np.clip(label + rng.integers(-15, 16), 0, 100)) for label in (100, 50, 0) * 40]
    # The second repeat is another judge altogether: one call is what the test is about, and it once
    # calibrated.
    table, column = judged(people, [[v, 0.0] for v in said])
    found = alt_test_entry(table, column)
    mapped = AgreementTable(people, people.items).calibrated(column) or []
    said = [float(verdict or 0.0) for (verdict,) in mapped]
    groups = {item.item_id: item.group for item in people.items}
    for epsilon in EPSILONS:
        verdicts: dict[str, float] = dict(zip(groups, said, strict=True))
        how: dict[str, Any] = {"scale": people.scale, "epsilon": epsilon, "groups": groups}
        direct = alt_test(people.ratings_by_rater, verdicts, **how)
        assert found.winning_rate[f"{epsilon:g}"] == direct.winning_rate
        assert found.p_values[f"{epsilon:g}"] == pytest.approx(direct.p_values)
        assert found.advantage_probability == pytest.approx(direct.advantage_probability)
        assert found.nearer == direct.nearer


@pytest.mark.parametrize(
    ("people", "judge", "labels", "verdicts"),
    [
        ('kind = "binary"', "percentage", (1, 0, 0), (60.0, 40.0, 0.0)),  # cut at 50
        ('kind = "binary"\npass_at = 70', "percentage", (1, 0, 0), (70.0, 69.0, 0.0)),
        ('kind = "ordinal"\nmin = 0\nmax = 4', "percentage", (4, 2, 0), (100.0, 50.0, 0.0)),
        ('kind = "percentage"\nmin = 0\nmax = 100', "ordinal:1:5", (100, 50, 0), (5.0, 3.0, 1.0)),
        ('kind = "nominal"\ncategories = ["a", "b"]', "nominal", ("a", "b", "b"), ("a", "b", "b")),
    ],
)
def test_labels_and_verdicts_meet_on_one_scale(
    workspace: Workspace, people: str, judge: str, labels: Sequence[Label], verdicts: Sequence[Label]
) -> None:
    """Whatever the two scales, a judge that says what both raters say is as close as they are on every
    item."""
    gold = two_raters(workspace, people, labels)
    table, column = judged(gold, [[verdict] for verdict in verdicts] * 12, judge)
    human = alt_test_entry(table, column)
    assert (human.advantage_probability, human.winning_rate["0.1"]) == (1.0, 1.0)
    found = judge_entry(table, column)
    assert (found.limits_of_agreement is not None) == (gold.scale.kind in ("percentage", "ordinal"))


def two_raters(workspace: Workspace, scale: str, labels: Sequence[Label]) -> GoldSet:
    """Twelve questions of three answers, on whose labels both raters agree."""
    rows, by_kind = made_items(12), dict(zip(("full", "half", "none"), labels, strict=True))
    ratings = [(row["item_id"], rater, by_kind[row["kind"]]) for row in rows for rater in ("ann", "bob")]
    return load_gold(made_gold(workspace.gold / "scaled", rows, ratings, scale=scale), workspace=workspace)


def test_a_word_that_the_card_does_not_list_is_only_wrong(workspace: Workspace) -> None:
    gold = two_raters(workspace, 'kind = "nominal"\ncategories = ["a", "b"]', "aaa")
    human = alt_test_entry(*judged(gold, [["zebra"], ["a"], ["a"]] * 12, "nominal"))
    assert human.advantage_probability == pytest.approx(2 / 3)


def test_the_best_case_is_by_group() -> None:
    gold, verdicts = [1, 0] * 12, [1, None] * 12
    found = best_case(gold, verdicts, scale="binary", metric="accuracy", groups=[i // 2 for i in range(24)])
    assert (found.value, found.n, found.n_groups) == (1.0, 24, 12)


def test_the_level_is_told_with_few_items_and_with_many() -> None:
    gold, verdicts = [1, 0] * 20, [1, 0, 0, 0] * 10
    parts = [["all", "few"] if i < 8 else ["all"] for i in range(40)]
    found = breakdown(gold, verdicts, parts=parts, scale="binary", level=0.9)
    assert {name: part.agreement.level for name, part in found.items()} == {"all": 0.9, "few": 0.9}
    assert found["few"].agreement.low is None and found["all"].agreement.low is not None


# --- in words


def test_an_order_that_turns_is_said() -> None:
    def ends(judge: str, worst: float, best: float | None) -> JudgeEntry:
        best_case, decided_by = best and {"m": Estimate(best)}, {"m": Estimate(worst)}.__getitem__
        return cast("JudgeEntry", SimpleNamespace(judge=judge, decided_by=decided_by, best_case=best_case))

    judges = [ends("a", 0.6, 0.9), ends("b", 0.7, 0.8), ends("c", 0.5, None)]
    assert list(order_notes(judges, "m")) == [
        "The order of a and b hangs on unscored items: m 0.600 against 0.700 with unscored items as wrong, "
        "0.900 against 0.800 as right."
    ]
    # c, with nothing unscored, lies below both at either end. Equal at one end is no turn.
    assert list(order_notes([ends("a", 0.6, 0.9), ends("b", 0.6, 0.8)], "m")) == []
    crossing = [ends(str(i), 0.5 + 0.01 * i, 0.9 - 0.01 * i) for i in range(4)]
    notes = list(order_notes(crossing, "m"))
    assert len(notes) == 6 and notes[-1] == "So it is with 1 more pair."


def test_repeats_and_raters_in_words(gold: GoldSet) -> None:
    verdicts: list[list[Label | None]] = [[100.0, 100.0], [60.0, 100.0], [0.0, 10.0]] * 40
    table, column = judged(gold, verdicts, cached=True)
    judge = judge_entry(table, column)
    assert judge.retest is not None
    shown = "\n".join(retest_notes("j", judge.retest))
    assert "j over 2 repeats: the same verdict in 0.667 [" in shown
    assert "flip rate 0.333 [" in shown and "within-item SD 20.4 (0.204 of the range)" in shown
    assert "j, expected of 1, 2, 3, 5, 10 calls an item: SD of their mean 20.4, 14.4, 11.8" in shown
    assert "j: every reply came from the store" in shown
    # Once calibrated the first repeat says what both raters say.
    human = alt_test_entry(table, column)
    assert alt_test_note(human) == (
        "passes beside 2, 2, 2 of 2 raters (three raters or more are advised) where 20, 15, 10 points are "
        "granted: it is nearer on 0% of the items, the rater on 0%, neither on 100%."
    )
    few = dataclasses.replace(human, reason="nobody", left_out={"ann": "7 items"})
    assert alt_test_note(few) == "is not tested, nobody (ann: 7 items)."
