"""Which candidate is taken on dev, and what may be said of it on test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from judgecal.experiment import Column, Table
from judgecal.goldset import GoldSet, load_gold
from judgecal.optimize.decision import Confirmation, Scored, _decide, choose, confirm, score_on
from judgecal.records import Estimate, Item, Judgement
from judgecal.scale import Label
from judgecal.workspace import Workspace
from tests.benchmarks.optimize_decisions import lines, shares
from tests.support.gold import made_gold, made_items, rated

METRIC = "macro_agreement"
Says = Callable[[Item], float | None]


@pytest.fixture
def twenty(workspace_dir: Path) -> GoldSet:
    """Twenty questions, of three answers each the full one is right."""
    rows = made_items(20)
    path = made_gold(workspace_dir / "gold" / "g", rows, rated(rows, {"full": 100, "half": 0, "none": 0}))
    return load_gold(path, workspace=Workspace(workspace_dir, workspace_dir / "experiments"))


def scored(table: Table, name: str | None, says: Says, *, n_demos: int = 4) -> Scored:
    """A judge with its verdicts on dev; `None` is the judge as it was."""
    rows = [Judgement(item.item_id, item.sha, "j", name or "", 0, says(item)) for item in table.items]
    candidate: Any = None if name is None else SimpleNamespace(name=name)
    judge: Any = SimpleNamespace(demos=[None] * (n_demos if name else 0))
    return score_on(table, candidate, judge, Column("j", table.gold.scale, rows), METRIC)


def right(item: Item) -> bool:
    return item.item_id.endswith("full")


def number(item: Item) -> int:
    return int(item.group[1:])


def flat(item: Item) -> float:
    return 50.0


def snapped(item: Item) -> float:
    """Sure of itself, and wrong on two questions of ten."""
    return 100.0 if right(item) != (number(item) % 10 < 2) else 0.0


def sharp(item: Item) -> float:
    """Never wrong, and timid: 21 points off wherever it stands, about as far from the people as `snapped`."""
    return 79.0 if right(item) else 21.0


def names(choice: Any) -> tuple[str, str]:
    return choice.taken.name, choice.why


def test_the_judge_stays_unless_another_is_higher(twenty: GoldSet) -> None:
    dev = Table(twenty, twenty.items)
    taken, why = names(choose([scored(dev, None, flat), scored(dev, "same", flat, n_demos=1)], METRIC, dev))
    assert taken == "before"
    assert why == f"no candidate had a higher {METRIC} once calibrated than the judge as it was"


def test_a_candidate_that_fails_on_items_is_not_higher(twenty: GoldSet) -> None:
    dev = Table(twenty, twenty.items)

    def failing(item: Item) -> float | None:
        return None if number(item) % 2 else sharp(item)

    taken, _ = names(choose([scored(dev, None, flat), scored(dev, "failing", failing)], METRIC, dev))
    assert taken == "before"


def test_the_clear_highest_is_taken(twenty: GoldSet) -> None:
    dev = Table(twenty, twenty.items)

    def perfect(item: Item) -> float:
        return 100.0 if right(item) else 0.0

    ran: Sequence[Scored] = [
        scored(dev, None, flat),
        scored(dev, "low", snapped),
        scored(dev, "high", perfect),
    ]
    taken, why = names(choose(ran, METRIC, dev))
    assert (taken, why) == ("high", f"it had the highest {METRIC} once calibrated, and gained more than luck")


def test_the_judge_that_knows_more_is_taken(twenty: GoldSet) -> None:
    dev = Table(twenty, twenty.items)
    ran = [scored(dev, None, flat), scored(dev, "snapped", snapped), scored(dev, "sharp", sharp)]
    snap, timid = (one.estimates[METRIC].value for one in ran[1:])
    # snapped is wrong on a fifth of the items: 0.80; sharp is 21 points off everywhere: 0.79, and never
    # wrong.
    assert (snap, timid) == (pytest.approx(0.80), pytest.approx(0.79))
    assert choose(ran, METRIC, dev).taken.name == "sharp"


def test_a_snapped_copy_of_the_judge_is_no_gain(twenty: GoldSet) -> None:
    dev = Table(twenty, twenty.items)

    def timid(item: Item) -> float:
        return 60.0 if snapped(item) else 40.0

    before, copy, other = (scored(dev, n, f) for n, f in ((None, timid), ("copy", snapped), ("sharp", sharp)))
    # 0.8 x 0.6 + 0.2 x 0.4 = 0.56 before, 0.80 snapped: all of it scale. Once calibrated the two are the
    # same.
    assert before.estimates[METRIC].value == pytest.approx(0.56)
    assert copy.estimates[METRIC].value == pytest.approx(0.80)
    assert copy.value(METRIC) == before.value(METRIC) == pytest.approx(0.80)
    assert other.value(METRIC) == pytest.approx(1.0)
    assert choose([before, copy], METRIC, dev).taken is before
    assert choose([before, copy, other], METRIC, dev).taken is other


def test_with_few_questions_nothing_is_more_than_luck(twenty: GoldSet) -> None:
    dev = Table(twenty, twenty.items[: 9 * 3])  # nine questions
    choice = choose([scored(dev, None, flat), scored(dev, "sharp", sharp)], METRIC, dev)
    assert choice.taken.name == "before"
    assert choice.sealed is not None and choice.sealed.endswith("and 9 questions cannot tell that from luck")


def test_a_gain_that_luck_explains_takes_nobody(twenty: GoldSet) -> None:
    """One item of sixty more: 0.84 errors of that difference are 0.84 of it, and the best of nine such gains
    more."""
    dev = Table(twenty, twenty.items)

    def but(*questions: int) -> Says:
        return lambda item: 100.0 if right(item) != (number(item) in questions) else 0.0

    one = choose([scored(dev, None, but(1, 2)), scored(dev, "after", but(1))], METRIC, dev)
    assert one.taken.name == "after" and one.sealed is None
    others = [scored(dev, f"after {place}", but(place, place + 1)) for place in range(3, 11)]
    best = scored(dev, "best", but(1))
    nine = choose([scored(dev, None, but(1, 2)), *others, best], METRIC, dev)
    assert nine.taken.name == "before" and nine.sealed is not None
    assert "best gained " in nine.sealed and "the best of 9 equal candidates gains more than " in nine.sealed


def test_of_equals_the_shorter_prompt_is_taken(twenty: GoldSet) -> None:
    dev = Table(twenty, twenty.items)
    ran = [
        scored(dev, None, flat),
        scored(dev, "long", sharp, n_demos=32),
        scored(dev, "short", sharp, n_demos=4),
    ]
    assert choose(ran, METRIC, dev).taken.name == "short"


# --- what may be said of a difference


def estimate(low: float | None, high: float | None = None, reason: str | None = None) -> Estimate:
    if low is None or high is None:
        return Estimate(0.01, reason=reason)
    return Estimate((low + high) / 2, low, high)


@pytest.mark.parametrize(
    ("difference", "recalibrated", "ordered", "decision"),
    [
        (estimate(0.01, 0.05), estimate(0.001, 0.03), True, "better"),
        (estimate(-0.01, 0.05), estimate(0.01, 0.03), True, "better"),
        (estimate(-0.05, -0.01), estimate(0.001, 0.03), True, "better"),
        (estimate(0.01, 0.05), estimate(-0.03, -0.01), True, "worse"),
        (estimate(-0.05, -0.01), estimate(None, reason="few"), True, "cannot tell"),
        (estimate(0.01, 0.05), estimate(None, reason="few"), True, "cannot tell"),
        (estimate(0.01, 0.05), estimate(-0.01, 0.02), True, "rescaled only"),
        (estimate(-0.05, -0.01), estimate(-0.01, 0.02), True, "rescaled only"),
        (estimate(0.01, 0.05), estimate(0.0, 0.0), True, "rescaled only"),
        (
            estimate(0.01, 0.05),
            estimate(-0.01, 0.03),
            True,
            "cannot tell",
        ),  # it may be 0.03 better: not shown small
        (estimate(-0.05, -0.01), estimate(-0.04, 0.01), True, "cannot tell"),
        (estimate(0.0, 0.0), estimate(0.0, 0.0), True, "cannot tell"),
        (estimate(None, reason="3 groups"), estimate(None, reason="3 groups"), True, "cannot tell"),
        (estimate(0.01, 0.05), estimate(None), False, "better"),  # words have no scale to be moved on
        (estimate(-0.01, 0.05), estimate(None), False, "cannot tell"),
    ],
)
def test_the_decision(difference: Estimate, recalibrated: Estimate, ordered: bool, decision: str) -> None:
    found, why = _decide(difference, recalibrated, "macro_agreement", ordered=ordered)
    assert found == decision
    assert why
    if recalibrated.reason:
        assert recalibrated.reason in why


def test_a_gain_that_may_be_scale_alone_is_called_so() -> None:
    _, why = _decide(estimate(0.01, 0.05), estimate(-0.01, 0.05), METRIC, ordered=True)
    assert why.startswith("better, perhaps only in scale: ")


@pytest.fixture
def gold(workspace_dir: Path) -> GoldSet:
    """Forty-eight questions; people are harsh: half of the facts are worth nothing."""
    rows = made_items(48)
    path = made_gold(workspace_dir / "gold" / "harsh", rows, rated(rows, {"full": 100, "half": 0, "none": 0}))
    return load_gold(path, workspace=Workspace(workspace_dir, workspace_dir / "experiments"))


def columns_of(gold: GoldSet, verdicts: Callable[[Item], Label | None], name: str) -> Column:
    rows = [Judgement(item.item_id, item.sha, name, name, 0, verdicts(item)) for item in gold.items]
    return Column(name, gold.scale, rows)


def halves(gold: GoldSet) -> dict[str, Table]:
    """The first half of the questions to confirm on, the second to fit on."""
    middle = len(gold.items) // 2
    return {"test": Table(gold, gold.items[:middle]), "fit": Table(gold, gold.items[middle:])}


def blunt(item: Item) -> float:
    """In the right order, but timid: 40 and 60 for labels of 0 and 100, and wrong on every fourth
    question."""
    right = item.item_id.endswith("full") != (int(item.group[1:]) % 4 == 0)
    return 60.0 if right else 40.0


def differences(found: Confirmation) -> tuple[Estimate, Estimate]:
    """As they are, and once both are recalibrated."""
    change, again = found.numbers.difference, found.numbers.difference_recalibrated
    assert change is not None and again is not None
    return change, again


def test_a_judge_that_only_snaps_its_scale_is_rescaled_only(gold: GoldSet) -> None:
    before = columns_of(gold, blunt, "before")
    after = columns_of(gold, lambda item: 100.0 if blunt(item) > 50 else 0.0, "after")
    found = confirm(**halves(gold), before=before, after=after, metric="macro_agreement")
    assert found.decision == "rescaled only"
    difference, recalibrated = differences(found)
    assert difference.low is not None and difference.low > 0
    # Both judges sort the items alike, so once recalibrated they say the same of every item.
    assert (recalibrated.value, recalibrated.low, recalibrated.high) == (0.0, 0.0, 0.0)
    backwards = confirm(**halves(gold), before=after, after=before, metric="macro_agreement")
    assert backwards.decision == "rescaled only"


def test_a_judge_that_knows_more_is_better(gold: GoldSet) -> None:
    before = columns_of(gold, blunt, "before")
    after = columns_of(gold, lambda item: 60.0 if item.item_id.endswith("full") else 40.0, "after")
    found = confirm(**halves(gold), before=before, after=after, metric="macro_agreement")
    assert found.decision == "better"
    recalibrated = differences(found)[1]
    assert recalibrated.low is not None and recalibrated.low > 0
    assert found.numbers.p_value is not None and found.numbers.p_value < 0.05


def test_the_same_verdicts_cannot_be_told_apart(gold: GoldSet) -> None:
    column = columns_of(gold, blunt, "same")
    found = confirm(**halves(gold), before=column, after=column, metric="macro_agreement")
    assert (found.decision, found.numbers.p_value) == ("cannot tell", 1.0)
    difference = differences(found)[0]
    assert (difference.value, difference.low, difference.high) == (0.0, 0.0, 0.0)


def test_failing_on_items_is_no_way_up(gold: GoldSet) -> None:
    """A judge that leaves out what it would get wrong loses what it failed on."""
    before = columns_of(gold, blunt, "before")
    right = {item.item_id: item.item_id.endswith("full") == (blunt(item) > 50) for item in gold.items}
    after = columns_of(gold, lambda item: blunt(item) if right[item.item_id] else None, "after")
    found = confirm(**halves(gold), before=before, after=after, metric="macro_agreement")
    # What was wrong is left out, and counts as wrong: once calibrated nothing is gained or lost.
    assert found.decision == "rescaled only"
    assert found.numbers.complete_case is not None and found.numbers.after is not None
    complete, wrong = (
        part["macro_agreement"] for part in (found.numbers.complete_case.after, found.numbers.after)
    )
    assert complete.value is not None and wrong.value is not None and complete.value > wrong.value
    assert wrong.n_unscored == complete.n_unscored > 0


def test_few_questions_cannot_tell(gold: GoldSet) -> None:
    parts = {"test": Table(gold, gold.items[:27]), "fit": Table(gold, gold.items[27:])}  # nine questions
    before = columns_of(gold, lambda item: 50.0, "before")
    after = columns_of(gold, lambda item: 100.0 if item.item_id.endswith("full") else 0.0, "after")
    found = confirm(**parts, before=before, after=after, metric="macro_agreement")
    assert found.decision == "cannot tell"
    assert "9 groups" in found.why


def test_too_little_to_recalibrate_on_cannot_tell(gold: GoldSet) -> None:
    parts = {"test": Table(gold, gold.items[27:]), "fit": Table(gold, gold.items[:27])}
    before = columns_of(gold, lambda item: 50.0, "before")
    after = columns_of(gold, lambda item: 100.0 if item.item_id.endswith("full") else 0.0, "after")
    found = confirm(**parts, before=before, after=after, metric="macro_agreement")
    assert found.decision == "cannot tell"
    assert "fewer than 10 give no map" in found.why


def test_words_are_confirmed_without_recalibration(workspace_dir: Path) -> None:
    rows = made_items(24)
    labels = rated(rows, {"full": "good", "half": "odd", "none": "bad"})
    path = made_gold(workspace_dir / "gold" / "words", rows, labels, scale='kind = "nominal"')
    gold = load_gold(path, workspace=Workspace(workspace_dir, workspace_dir / "experiments"))
    before = columns_of(gold, lambda item: "odd", "before")
    after = columns_of(gold, lambda item: gold.labels[item.item_id], "after")
    found = confirm(**halves(gold), before=before, after=after, metric="accuracy")
    assert found.decision == "better"
    recalibrated = differences(found)[1]
    assert recalibrated.value is None and recalibrated.reason


# --- what the benchmark measures, in small


@pytest.mark.parametrize(
    "title", ["1  bent, same judge, labels all over", "1  bent, equal judge, labels at the ends"]
)
def test_another_scale_is_not_better(title: str) -> None:
    line = next(one for one in lines() if one.title == title)
    assert line.of_false(shares(line.draw, reps=40)) <= 0.05


def test_the_best_of_nine_on_shuffled_labels_is_not_better() -> None:
    line = next(one for one in lines() if "shuffled labels" in one.title)
    found = shares(line.draw, reps=20)
    assert found.get("not taken", 0.0) >= 0.6  # the best of nine is nearly always higher on dev, by luck
    assert line.of_false(found) <= 0.05


def test_a_candidate_that_knows_more_is_seen() -> None:
    line = next(one for one in lines() if "+0.05, labels all over, 110" in one.title)
    assert shares(line.draw, reps=20)["better"] > 0.7
