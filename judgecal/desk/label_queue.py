"""The item that a rater sees next: an order of each rater's own, some items shared by all raters, each other
item labelled once.

All raters move through the same blocks of items, so that labels overlap early, and the items labelled at any
moment are the front of one order drawn at random: a random sample wherever people stop.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

_BLOCK = 20  # items within which each rater has an order of its own
_CLAIM_S = 300.0  # an item that a rater has before the eyes is shown to nobody else for so long


class LabelQueue:
    """The items that some raters are to label, and those that each of them has labelled.

    Of the ids `items` every rater labels the part `overlap`, 0..1; each other item goes to the first rater
    who comes to it. `shuffled`, each rater has another order, by `seed`. `clock` gives seconds.
    """

    def __init__(
        self,
        items: Sequence[str],
        raters: Sequence[str],
        *,
        overlap: float = 1.0,
        shuffled: bool = True,
        seed: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.raters, self._items, self._clock = tuple(raters), frozenset(items), clock
        base = list(items)
        if shuffled:
            random.Random(f"{seed}:items").shuffle(base)
        # The items that all raters label are spread evenly, as many as the share says.
        share = 1.0 if len(self.raters) == 1 else overlap
        falls = [int(place * share + 1e-9) for place in range(len(base) + 1)]
        self.shared = frozenset(
            item for item, before, after in zip(base, falls, falls[1:], strict=False) if after > before
        )
        self._orders = {rater: _own_order(base, rater, seed) if shuffled else base for rater in self.raters}
        # in the order of labelling
        self.done: dict[str, dict[str, None]] = {rater: {} for rater in self.raters}
        self._single: dict[str, str] = {}  # item that one rater labels -> the rater
        self._claims: dict[str, tuple[str, float]] = {}

    def label(self, rater: str, item_id: str) -> None:
        """Note that a rater has labelled an item, again or for the first time; other ids are passed over."""
        self._claims.pop(rater, None)
        if item_id in self._items:
            self.done[rater].setdefault(item_id)
            if item_id not in self.shared:
                self._single.setdefault(item_id, rater)

    def next(self, rater: str) -> str | None:
        """Return the item that a rater sees next, shown to nobody else unless all label it; None at the end.

        Before a label the same item is returned again: two pages of one rater show the same.
        """
        held = self._held(rater)
        if held is not None and self._open(held, rater):
            return held
        others = {self._held(other) for other in self.raters if other != rater}
        for item_id in self._orders[rater]:
            if self._open(item_id, rater) and (item_id in self.shared or item_id not in others):
                self._claims[rater] = (item_id, self._clock())
                return item_id
        return None

    def left(self, rater: str) -> int:
        """Return how many items a rater may still be shown."""
        return sum(self._open(item_id, rater) for item_id in self._items)

    @property
    def n_labelled(self) -> int:
        """The number of items that a rater has labelled, or could not tell."""
        return len(set().union(*self.done.values()))

    @property
    def finished(self) -> bool:
        """Whether no rater has anything left."""
        return not any(map(self.left, self.raters))

    def _held(self, rater: str) -> str | None:
        item_id, since = self._claims.get(rater, ("", 0.0))
        return item_id if item_id and self._clock() - since < _CLAIM_S else None

    def _open(self, item_id: str, rater: str) -> bool:
        return item_id not in self.done[rater] and item_id not in self._single


def _own_order(base: Sequence[str], rater: str, seed: int) -> list[str]:
    order: list[str] = []
    for start in range(0, len(base), _BLOCK):
        block = list(base[start : start + _BLOCK])
        random.Random(f"{seed}:{rater}:{start}").shuffle(block)
        order += block
    return order
