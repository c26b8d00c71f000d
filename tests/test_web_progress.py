"""How far a labelling is, and the buttons that each scale has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judgecal.desk.progress import contested, opinions_of
from judgecal.desk.server import choices_of, typed_of
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


@pytest.mark.parametrize(
    ("scale", "anchors", "keys", "typed"),
    [
        ("binary", {"yes": "right", "0": "wrong"}, "y 1 1 Yes right|n 2 0 No wrong", None),
        ("ordinal:0:3", {}, "0 0 0|1 1 1|2 2 2|3 3 3", None),
        ("ordinal:1:10", {}, "|".join(f"{k % 10} {k} {k}" for k in range(1, 11)), None),
        ("points:0:2:0.5", {}, "0 0 0| 0.5 0.5|1 1 1| 1.5 1.5|2 2 2", None),
        ("percentage", {}, "1 0 0|2 25 25|3 50 50|4 75 75|5 100 100", {"low": 0.0, "high": 100.0, "step": None}),
        ("percentage", {"0": "none", "60": "most", "100": "all"}, "1 0 0 none|2 60 60 most|3 100 100 all", ...),
        ("points:0:5", {}, "1 0 0|2 1.25 1.25|3 2.5 2.5|4 3.75 3.75|5 5 5", {"low": 0.0, "high": 5.0, "step": None}),
        ("nominal", {}, "", {"words": True}),
    ],
)  # fmt: skip
def test_buttons_and_keys(scale: str, anchors: dict[str, str], keys: str, typed: Any) -> None:
    card = Card("made", Scale.parse(scale), anchors=anchors)
    found = [
        " ".join([one["key"], one["said"], one["name"], *[one["meaning"]] * bool(one["meaning"])])
        for one in choices_of(card)
    ]
    assert "|".join(found) == keys
    assert typed is ... or typed_of(card.scale) == typed
    words = Scale("nominal", 0.0, 0.0, categories=("good", "bad"))
    assert [(one["key"], one["said"]) for one in choices_of(Card("w", words))] == [
        ("1", "good"),
        ("2", "bad"),
    ]
    assert typed_of(words) is None
