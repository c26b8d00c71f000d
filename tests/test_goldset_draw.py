"""Drawing items to be labelled by strata, and what their chances come to."""

from __future__ import annotations

from collections import Counter

import pytest

from judgecal.goldset.draw import DrawStratum, draw
from judgecal.records import Item


def made(n: int) -> list[Item]:
    return [Item(f"i{number:03d}", f"g{number // 2}", "q", "a") for number in range(n)]


def test_two_thirds_go_where_judges_differ() -> None:
    items = made(1000)
    strata = [DrawStratum("agree", tuple(items[:800]), 0.0), DrawStratum("differ", tuple(items[800:]), 0.5)]
    drawn = draw(strata, 150, seed=1)
    # A third of 150 by size: 40 and 10; the other 100 where judges differ.
    assert drawn.counts == {"agree": (40, 800), "differ": (110, 200)}
    chances = {item.inclusion_probability for item in drawn.items}
    assert chances == {40 / 800, 110 / 200}
    assert sum(1.0 / (item.inclusion_probability or 1.0) for item in drawn.items) == pytest.approx(1000)
    assert drawn == draw(strata, 150, seed=1) != draw(strata, 150, seed=2)
    assert len({item.item_id for item in drawn.items}) == 150


@pytest.mark.parametrize("n", [10, 205, 999, 5000])
def test_no_stratum_is_left_out_or_overdrawn(n: int) -> None:
    items = made(1000)
    parts = (items[:790], items[790:800], items[800:], [])
    strata = [
        DrawStratum(str(place), tuple(part), 0.0 if place < 2 else 1.0) for place, part in enumerate(parts)
    ]
    counts = draw(strata, n).counts
    assert "3" not in counts and all(2 <= size <= there for size, there in counts.values())
    assert sum(size for size, _ in counts.values()) == min(n, 1000)


def test_each_item_is_drawn_with_its_chance() -> None:
    strata = [
        DrawStratum("agree", tuple(made(20)[:15]), 0.1),
        DrawStratum("differ", tuple(made(20)[15:]), 0.5),
    ]
    seen: Counter[str] = Counter()
    for seed in range(2000):
        drawn = draw(strata, 8, seed=seed)
        seen.update(item.item_id for item in drawn.items)
    chance = {item.item_id: item.inclusion_probability or 0.0 for item in drawn.items}
    # 2000 draws: three standard errors are 0.034 at most.
    assert all(seen[item_id] / 2000 == pytest.approx(chance[item_id], abs=0.04) for item_id in chance)


def test_drawing_on_gives_both_draws_one_chance() -> None:
    items = made(300)
    strata = [DrawStratum("agree", tuple(items[:200]), 0.1), DrawStratum("differ", tuple(items[200:]), 0.4)]
    first = draw(strata, 40, seed=1)
    before = {item.item_id for item in first.items}
    second = draw(strata, 60, seed=2, before=before)
    assert len(second.items) == 60 and not before & {item.item_id for item in second.items}
    assert {item.item_id for item in second.earlier} == before
    both = (*second.items, *second.earlier)
    assert sum(1.0 / (item.inclusion_probability or 1.0) for item in both) == pytest.approx(300)
    for stratum in strata:
        own = [item for item in both if item.item_id in {one.item_id for one in stratum.items}]
        assert {item.inclusion_probability for item in own} == {len(own) / len(stratum.items)}
