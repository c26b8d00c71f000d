"""Which candidate is taken on dev."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from judgecal.experiment import Column, Table
from judgecal.goldset import GoldSet, load_gold
from judgecal.optimize.decision import Scored, choose, score_on
from judgecal.records import Item, Judgement
from judgecal.stats import recalibrated_agreement
from judgecal.workspace import Workspace
from tests.support.gold import made_gold, made_items, rated

METRIC = "macro_agreement"
Says = Callable[[Item], float | None]


@pytest.fixture
def gold(workspace_dir: Path) -> GoldSet:
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


def test_the_judge_stays_unless_another_is_higher(gold: GoldSet) -> None:
    dev = Table(gold, gold.items)
    taken, why = names(choose([scored(dev, None, flat), scored(dev, "same", flat, n_demos=1)], dev, METRIC))
    assert taken == "before"
    assert why == f"no candidate had a higher {METRIC} than the judge as it was"


def test_a_candidate_that_fails_on_items_is_not_higher(gold: GoldSet) -> None:
    dev = Table(gold, gold.items)

    def failing(item: Item) -> float | None:
        return None if number(item) % 2 else sharp(item)

    taken, _ = names(choose([scored(dev, None, flat), scored(dev, "failing", failing)], dev, METRIC))
    assert taken == "before"


def test_the_clear_highest_is_taken(gold: GoldSet) -> None:
    dev = Table(gold, gold.items)

    def perfect(item: Item) -> float:
        return 100.0 if right(item) else 0.0

    ran: Sequence[Scored] = [scored(dev, None, flat), scored(dev, "low", sharp), scored(dev, "high", perfect)]
    taken, why = names(choose(ran, dev, METRIC))
    assert (taken, why) == (
        "high",
        f"it had the highest {METRIC}, and the most of its gain stays once recalibrated",
    )


def test_the_gain_that_stays_decides(gold: GoldSet) -> None:
    dev = Table(gold, gold.items)
    ran = [scored(dev, None, flat), scored(dev, "snapped", snapped), scored(dev, "sharp", sharp)]
    snap, timid = (one.estimates[METRIC].value for one in ran[1:])
    # snapped is wrong on a fifth of the items: 0.80; sharp is 21 points off everywhere: 0.79.
    assert (snap, timid) == (pytest.approx(0.80), pytest.approx(0.79))
    taken, why = names(choose(ran, dev, METRIC))
    assert taken == "sharp"
    assert why == f"snapped had a higher {METRIC}, but less of its gain stays once recalibrated"


def test_a_snapped_copy_of_the_judge_has_no_gain_that_stays(gold: GoldSet) -> None:
    dev = Table(gold, gold.items)

    def timid(item: Item) -> float:
        return 60.0 if snapped(item) else 40.0

    before, copy, other = (scored(dev, n, f) for n, f in ((None, timid), ("copy", snapped), ("sharp", sharp)))
    # 0.8 x 0.6 + 0.2 x 0.4 = 0.56 before, 0.80 snapped: all of it scale. The recalibrated values are the same.
    assert before.value(METRIC) == pytest.approx(0.56) and copy.value(METRIC) == pytest.approx(0.80)
    assert before.recalibrated and copy.recalibrated and other.recalibrated
    assert copy.recalibrated.value == pytest.approx(before.recalibrated.value)
    assert other.recalibrated.value == pytest.approx(1.0)
    assert choose([before, copy, other], dev, METRIC).taken is other


def test_with_few_questions_the_highest_is_taken(gold: GoldSet) -> None:
    dev = Table(gold, gold.items[: 9 * 3])  # nine questions
    ran = [scored(dev, None, flat), scored(dev, "sharp", sharp), scored(dev, "snapped", snapped)]
    highest = max(ran, key=lambda one: one.value(METRIC))
    assert choose(ran, dev, METRIC).taken is highest


def test_of_equals_the_shorter_prompt_is_taken(gold: GoldSet) -> None:
    for n_items in (9 * 3, 20 * 3):
        dev = Table(gold, gold.items[:n_items])
        ran = [
            scored(dev, None, flat),
            scored(dev, "long", sharp, n_demos=32),
            scored(dev, "short", sharp, n_demos=4),
        ]
        assert choose(ran, dev, METRIC).taken.name == "short"


def test_recalibrated_agreement_does_not_see_a_monotone_rescaling() -> None:
    rng = random.Random(5)
    labels = [100.0 * rng.randint(0, 1) for _ in range(120)]
    verdicts = [min(100.0, max(0.0, label + rng.gauss(0.0, 60.0))) for label in labels]
    shared: Any = {"scale": "percentage", "groups": [k // 2 for k in range(120)], "seed": 3}
    plain = recalibrated_agreement(labels, verdicts, **shared).value
    squeezed = recalibrated_agreement(labels, [40.0 + v / 10.0 for v in verdicts], **shared).value
    assert plain is not None and 0.5 < plain < 1.0
    assert squeezed == pytest.approx(plain, abs=1e-12)
