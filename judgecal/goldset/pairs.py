"""Labels of pairs: the words that say which answer is better, and the side on which each answer stands."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from judgecal.records import Item
from judgecal.scale import Scale

PAIR_LABELS = ("A", "B", "tie")
"""The item's own first answer is better, its second, or neither."""
_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("a", "left", "1", "model_a", "model_1", "output_1", "response_1", "a>b"), "A"),
    **dict.fromkeys(("b", "right", "2", "model_b", "model_2", "output_2", "response_2", "b>a"), "B"),
    **dict.fromkeys(("tie", "0", "a=b", "tie(inconsistent)"), "tie"),
}


def pairs_told(cells: Collection[str], more: Iterable[str] = ()) -> tuple[str | None, Mapping[str, str], str]:
    """The scale of label cells of pairs, what they and `more` stand for, by the cell in lower case, and why;
    no scale where one may be either answer, as 0 and 1 without a 2 may.
    """
    words = {cell.casefold(): "".join(cell.casefold().split()).removesuffix(".0") for cell in (*cells, *more)}
    unsure = {"0", "1"} if "2" not in words.values() else set()
    meanings = {cell: _WORDS[word] for cell, word in words.items() if word in _WORDS.keys() - unsure}
    if unclear := sorted({cell.casefold() for cell in cells} - meanings.keys()):
        why = f"labels of pairs are A, B or tie, and {', '.join(unclear[:4])} may be either"
        return None, {}, f"{why}; --map {unclear[0]}=A says it"
    in_words = ", ".join(f"{cell} is {to}" for cell, to in meanings.items() if cell != to.casefold())
    return "nominal", meanings, f"they are of pairs{', ' * bool(in_words)}{in_words}"


def left_of(item: Item, scale: Scale | None, by: object) -> Literal["A", "B"] | None:
    """Which answer of a pair stands on the left: by chance, and the same for the same seed and rater; None
    of no pair, and where the scale has other labels than a pair's, so that A stays on the left.
    """
    sided = item.pair and scale and scale.kind == "nominal" and {*scale.categories} <= {*PAIR_LABELS}
    return random.Random(f"{by}:{item.item_id}").choice(("A", "B")) if sided else None


def by_side(label: str, left: str | None) -> str:
    """Of A and B left and right, and of these A and B; any other label as it is."""
    sides = {"A": ("left", "right"), "B": ("right", "left")}.get(left or "", ("A", "B"))
    return dict(zip((*sides, "A", "B"), ("A", "B", *sides), strict=True)).get(label, label)
