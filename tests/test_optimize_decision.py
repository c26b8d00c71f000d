"""Which candidate is taken on dev, and what may be said of it on test."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.goldset import GoldSet, load_gold
from judgecal.optimize.result import Confirmation, ScoredCandidate, _decide, choose, confirm
from judgecal.records import Estimate, Item, Judgement
from judgecal.scale import Label
from judgecal.workspace import Workspace
from tests.benchmarks.optimize_decisions import lines, shares
from tests.support.gold import made_gold, made_items, rated

METRIC = "macro_agreement"
HARSH = {"full": 100, "half": 0, "none": 0}
PERCENTAGE = 'kind = "percentage"\nmin = 0\nmax = 100'
Says = Callable[[Item], Label | None]
FIRST, LAST = slice(72), slice(72, None)  # of 48 questions


def made(workspace: Workspace, n: int, labels: dict[str, Any], *, scale: str = PERCENTAGE) -> GoldSet:
    """Questions, of three answers each."""
    rows = made_items(n)
    path = made_gold(workspace.gold / "made", rows, rated(rows, labels), scale=scale)
    return load_gold(path, workspace=workspace)


@pytest.fixture
def dev(workspace: Workspace) -> AgreementTable:
    """Twenty questions, of three answers each the full one is right."""
    gold = made(workspace, 20, HARSH)
    return AgreementTable(gold, gold.items)


@pytest.fixture
def gold(workspace: Workspace) -> GoldSet:
    """Forty-eight questions; people are harsh: half of the facts are worth nothing."""
    return made(workspace, 48, HARSH)


def scored(table: AgreementTable, name: str | None, says: Says, *, n_demos: int = 4) -> ScoredCandidate:
    """A judge with its verdicts on dev; `None` is the judge as it was."""
    rows = [Judgement(item.item_id, item.sha, "j", name or "", 0, says(item)) for item in table.items]
    judge: Any = SimpleNamespace(demos=[None] * (n_demos if name else 0))
    return ScoredCandidate.on(table, name or "before", judge, Verdicts("j", table.gold.scale, rows), METRIC)


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


def perfect(item: Item) -> float:
    return 100.0 if right(item) else 0.0


def test_the_judge_stays_unless_another_is_higher(dev: AgreementTable) -> None:
    def failing(item: Item) -> float | None:
        return None if number(item) % 2 else sharp(item)

    for says in (flat, failing):  # what fails on items is not higher
        choice = choose([scored(dev, None, flat), scored(dev, "other", says, n_demos=1)], METRIC, dev)
        assert choice.taken.name == "before"
        assert choice.why == f"no candidate beat the judge as it was in {METRIC} once calibrated"


def test_the_clear_highest_is_taken(dev: AgreementTable) -> None:
    ran = [scored(dev, None, flat), scored(dev, "low", snapped), scored(dev, "high", perfect)]
    choice = choose(ran, METRIC, dev)
    assert choice.taken.name == "high"
    assert choice.why == f"it had the highest {METRIC} once calibrated, and gained more than luck"


def test_the_judge_that_knows_more_is_taken(dev: AgreementTable) -> None:
    ran = [scored(dev, None, flat), scored(dev, "snapped", snapped), scored(dev, "sharp", sharp)]
    snap, timid = (one.estimates[METRIC].value for one in ran[1:])
    # snapped is wrong on a fifth of the items: 0.80; sharp is 21 points off everywhere: 0.79, and never
    # wrong.
    assert (snap, timid) == (pytest.approx(0.80), pytest.approx(0.79))
    assert choose(ran, METRIC, dev).taken.name == "sharp"


def test_a_snapped_copy_of_the_judge_is_no_gain(dev: AgreementTable) -> None:
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


def test_with_few_questions_nothing_is_more_than_luck(dev: AgreementTable) -> None:
    dev = AgreementTable(dev.gold, dev.items[: 9 * 3])  # nine questions
    choice = choose([scored(dev, None, flat), scored(dev, "sharp", sharp)], METRIC, dev)
    assert choice.taken.name == "before"
    assert choice.sealed is not None and choice.sealed.endswith("and on 9 questions that may be luck")


def test_a_gain_that_luck_explains_takes_nobody(dev: AgreementTable) -> None:
    """One item of sixty more: 0.84 errors of that difference are 0.84 of it, and the best of nine such gains
    more."""

    def but(*questions: int) -> Says:
        return lambda item: 100.0 if right(item) != (number(item) in questions) else 0.0

    one = choose([scored(dev, None, but(1, 2)), scored(dev, "after", but(1))], METRIC, dev)
    assert one.taken.name == "after" and one.sealed is None
    others = [scored(dev, f"after {place}", but(place, place + 1)) for place in range(3, 11)]
    best = scored(dev, "best", but(1))
    nine = choose([scored(dev, None, but(1, 2)), *others, best], METRIC, dev)
    assert nine.taken.name == "before" and nine.sealed is not None
    assert "best gained " in nine.sealed and "the best of 9 equal candidates gains more than " in nine.sealed


def test_of_equals_the_shorter_prompt_is_taken(dev: AgreementTable) -> None:
    long, short = (scored(dev, f"{n}", sharp, n_demos=n) for n in (32, 4))
    assert choose([scored(dev, None, flat), long, short], METRIC, dev).taken is short


# --- what may be said of a difference


Ends = tuple[float, float] | str | None


def estimate(ends: Ends) -> Estimate:
    """Of an interval, or without one and perhaps with the reason."""
    if isinstance(ends, tuple):
        return Estimate(sum(ends) / 2, *ends)
    return Estimate(0.01, reason=ends)


UP, DOWN, UNSURE = (0.01, 0.05), (-0.05, -0.01), (-0.01, 0.05)


@pytest.mark.parametrize(
    ("difference", "recalibrated", "ordered", "decision"),
    [
        (UP, (0.001, 0.03), True, "better"),
        (UNSURE, (0.01, 0.03), True, "better"),
        (DOWN, (0.001, 0.03), True, "better"),
        (UP, (-0.03, -0.01), True, "worse"),
        (DOWN, "few", True, "cannot tell"),
        (UP, "few", True, "cannot tell"),
        (UP, (-0.01, 0.02), True, "rescaled only"),
        (DOWN, (-0.01, 0.02), True, "rescaled only"),
        (UP, (0.0, 0.0), True, "rescaled only"),
        (UP, (-0.01, 0.03), True, "cannot tell"),  # it may be 0.03 better: not shown small
        (DOWN, (-0.04, 0.01), True, "cannot tell"),
        ((0.0, 0.0), (0.0, 0.0), True, "cannot tell"),
        ("3 groups", "3 groups", True, "cannot tell"),
        (UP, None, False, "better"),  # words have no scale to be moved on
        (UNSURE, None, False, "cannot tell"),
    ],
)
def test_the_decision(difference: Ends, recalibrated: Ends, ordered: bool, decision: str) -> None:
    found, why = _decide(estimate(difference), estimate(recalibrated), METRIC, ordered=ordered)
    assert found == decision
    assert why and (estimate(recalibrated).reason or "") in why


def columns_of(gold: GoldSet, verdicts: Callable[[Item], Label | None], name: str) -> Verdicts:
    rows = [Judgement(item.item_id, item.sha, name, name, 0, verdicts(item)) for item in gold.items]
    return Verdicts(name, gold.scale, rows)


def held(
    gold: GoldSet, before: Says, after: Says, *, test: slice = FIRST, fit: slice = LAST, metric: str = METRIC
) -> Confirmation:
    """Two judges, confirmed on the first half of the questions and fitted on the second."""
    columns = {name: columns_of(gold, says, name) for name, says in (("before", before), ("after", after))}
    parts = {name: AgreementTable(gold, gold.items[part]) for name, part in (("test", test), ("fit", fit))}
    return confirm(**parts, **columns, metric=metric)  # type: ignore[arg-type]


def blunt(item: Item) -> float:
    """In the right order, but timid: 40 and 60 for labels of 0 and 100, and wrong on every fourth
    question."""
    return 60.0 if right(item) != (number(item) % 4 == 0) else 40.0


def differences(found: Confirmation) -> tuple[Estimate, Estimate]:
    """As they are, and once both are recalibrated."""
    change, again = found.numbers.difference, found.numbers.difference_recalibrated
    assert change is not None and again is not None
    return change, again


def test_a_judge_that_only_snaps_its_scale_is_rescaled_only(gold: GoldSet) -> None:
    def sure(item: Item) -> float:
        return 100.0 if blunt(item) > 50 else 0.0

    found = held(gold, blunt, sure)
    assert found.decision == "rescaled only"
    difference, recalibrated = differences(found)
    assert difference.low is not None and difference.low > 0
    # Both judges sort the items alike, so once recalibrated they say the same of every item.
    assert (recalibrated.value, recalibrated.low, recalibrated.high) == (0.0, 0.0, 0.0)
    assert held(gold, sure, blunt).decision == "rescaled only"


def test_a_judge_that_knows_more_is_better(gold: GoldSet) -> None:
    found = held(gold, blunt, lambda item: 60.0 if right(item) else 40.0)
    assert found.decision == "better"
    recalibrated = differences(found)[1]
    assert recalibrated.low is not None and recalibrated.low > 0
    assert found.numbers.p_value is not None and found.numbers.p_value < 0.05


def test_failing_on_items_is_no_way_up(gold: GoldSet) -> None:
    """A judge that leaves out what it would get wrong loses what it failed on."""
    found = held(gold, blunt, lambda item: blunt(item) if right(item) == (blunt(item) > 50) else None)
    # What was wrong is left out, and counts as wrong: once calibrated nothing is gained or lost.
    assert found.decision == "rescaled only"
    assert found.numbers.complete_case is not None and found.numbers.after is not None
    complete, wrong = (part[METRIC] for part in (found.numbers.complete_case.after, found.numbers.after))
    assert complete.value is not None and wrong.value is not None and complete.value > wrong.value
    assert wrong.n_unscored == complete.n_unscored > 0


@pytest.mark.parametrize(
    ("test", "fit", "why"),
    [
        (slice(27), slice(27, None), "9 groups"),  # nine questions to tell by
        (slice(27, None), slice(27), "fewer than 10 give no map"),  # and to calibrate on
    ],
)
def test_few_questions_cannot_tell(gold: GoldSet, test: slice, fit: slice, why: str) -> None:
    found = held(gold, flat, perfect, test=test, fit=fit)
    assert found.decision == "cannot tell" and why in found.why


def test_words_are_confirmed_without_recalibration(workspace: Workspace) -> None:
    words = {"full": "good", "half": "odd", "none": "bad"}
    gold = made(workspace, 48, words, scale='kind = "nominal"')
    found = held(gold, lambda item: "odd", lambda item: gold.labels[item.item_id], metric="accuracy")
    assert found.decision == "better"
    recalibrated = differences(found)[1]
    assert recalibrated.value is None and recalibrated.reason


# --- what the benchmark measures, in small


def test_the_best_of_nine_on_shuffled_labels_is_not_better() -> None:
    line = next(one for one in lines() if "shuffled labels" in one.title)
    found = shares(line.draw, reps=20)
    assert found.get("not taken", 0.0) >= 0.6  # the best of nine is nearly always higher on dev, by luck
    assert line.of_false(found) <= 0.05
