"""How far a labelling is, and the buttons that each scale has."""

from __future__ import annotations

from pathlib import Path

from judgecal.desk.progress import contested, opinions_of
from judgecal.goldset import Card, GoldSet
from judgecal.records import Item, Rating
from judgecal.scale import Scale


def a_set(said: dict[str, dict[int, float | None]], n: int) -> GoldSet:
    """n items; rater -> number of the item -> label, None where it could not tell."""
    items = tuple(Item(f"i{k}", f"g{k}", "why?", "so") for k in range(n))
    every = [
        Rating(f"i{k}", rater, label, reason=None if label is not None else "cannot tell")
        for rater, own in said.items()
        for k, label in own.items()
    ]
    return GoldSet("made", Path(), Card("made", Scale.parse("binary")), items, tuple(every), (), "")


def test_what_raters_differ_on_is_contested_until_it_is_settled() -> None:
    gold = a_set(
        {
            "ann": {0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0, 4: None},
            "bob": {0: 0.0, 1: 0.0, 2: 0.0, 3: 1.0, 4: 1.0},
            "gold": {1: 1.0, 2: None},
        },
        6,
    )
    assert set(opinions_of(gold)) == {"i0", "i1", "i2"}
    assert [item.item_id for item in contested(gold)] == ["i0"]
