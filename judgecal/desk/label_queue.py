"""Which item a rater sees next: an order of each rater's own, some items shared by all, the others each
labelled once.

Everybody moves through the same blocks of items, so that labels overlap early and what has been labelled at
any moment is the front of one order: drawn at random, it is a random sample wherever people stop.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Order = Literal["in-order", "random"]
_BLOCK = 20  # items within which each rater has an order of its own
_CLAIM_S = 300.0  # an item that somebody has before the eyes is nobody else's for so long
_APART = 10  # labels at least between the two looks of one rater at one item


@dataclass(frozen=True, slots=True)
class Next:
    """An item to be shown; `turn` 2 is a rater's second look at an item labelled before."""

    item_id: str
    turn: int = 1


class LabelQueue:
    """The items that some raters are to label, and what each of them has labelled so far.

    Args:
        items: their ids, in the order of the set.
        raters: at least one.
        overlap: the part of the items, 0..1, that every rater labels; each other one goes to whoever comes to
            it first.
        order: `in-order` shows everybody the items as they come, `random` each rater another order.
        seed: of the orders.
        second: how many items each rater sees a second time, after all others.
        clock: seconds, for how long an item stays before somebody's eyes.
    """

    def __init__(
        self,
        items: Sequence[str],
        raters: Sequence[str],
        *,
        overlap: float = 1.0,
        order: Order = "random",
        seed: int = 0,
        second: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.raters, self.second, self._clock = tuple(raters), second, clock
        base = list(items)
        if order == "random":
            random.Random(f"{seed}:items").shuffle(base)
        self._items = frozenset(base)
        # The items that all label are spread evenly, as many as the share says.
        share = 1.0 if len(self.raters) == 1 else overlap
        falls = [int(place * share + 1e-9) for place in range(len(base) + 1)]
        self.shared = frozenset(
            item for item, before, after in zip(base, falls, falls[1:], strict=False) if after > before
        )
        self._orders = {
            rater: _own_order(base, rater, seed) if order == "random" else base for rater in self.raters
        }
        self._front = dict.fromkeys(self.raters, 0)  # everything before it is done, for this rater
        # in the order of labelling
        self.done: dict[str, dict[str, None]] = {rater: {} for rater in self.raters}
        self._twice: dict[str, set[str]] = {rater: set() for rater in self.raters}
        self._single: dict[str, str] = {}  # item that one rater labels -> who did
        self._n_shared = dict.fromkeys(self.raters, 0)
        self._claims: dict[str, tuple[str, float]] = {}

    def label(self, rater: str, item_id: str, turn: int = 1) -> None:
        """Note that a rater has labelled an item, again or for the first time; others are passed over."""
        self._claims.pop(rater, None)
        if turn == 2:
            self._twice[rater].add(item_id)
        elif item_id in self._items and item_id not in self.done[rater]:
            self.done[rater][item_id] = None
            self._n_shared[rater] += item_id in self.shared
            if item_id not in self.shared:
                self._single.setdefault(item_id, rater)

    def forget(self, rater: str, item_id: str, turn: int = 1) -> None:
        """Note that a rater took a label back; the item is the next one that the rater sees."""
        if turn == 2:
            self._twice[rater].discard(item_id)
        elif item_id in self.done[rater]:
            del self.done[rater][item_id]
            self._n_shared[rater] -= item_id in self.shared
            if self._single.get(item_id) == rater:
                del self._single[item_id]
            self._front = dict.fromkeys(self.raters, 0)
            self._claims[rater] = (item_id, self._clock())

    def next(self, rater: str) -> Next | None:
        """What a rater sees next, which is then before nobody else's eyes unless all label it; None at the
        end.

        Asked again before a label it gives the same item: two pages of one rater show the same.
        """
        held = self._held(rater)
        if held is not None and self._open(held, rater):
            return Next(held)
        others = {self._held(other) for other in self.raters if other != rater}
        order, front = self._orders[rater], self._front[rater]
        while front < len(order) and not self._open(order[front], rater):
            front += 1
        self._front[rater] = front
        for item_id in order[front:]:
            if self._open(item_id, rater) and (item_id in self.shared or item_id not in others):
                self._claims[rater] = (item_id, self._clock())
                return Next(item_id)
        return self._second_look(rater)

    def left(self, rater: str) -> int:
        """How many items a rater may still be shown for the first time."""
        return (
            len(self.shared) - self._n_shared[rater] + len(self._items) - len(self.shared) - len(self._single)
        )

    @property
    def finished(self) -> bool:
        """Whether nobody has anything left."""
        return not any(self.left(rater) or self._second_look(rater) for rater in self.raters)

    def _held(self, rater: str) -> str | None:
        item_id, since = self._claims.get(rater, ("", 0.0))
        return item_id if item_id and self._clock() - since < _CLAIM_S else None

    def _open(self, item_id: str, rater: str) -> bool:
        return item_id not in self.done[rater] and item_id not in self._single

    def _second_look(self, rater: str) -> Next | None:
        first = list(self.done[rater])[: -_APART or None][: self.second]
        return next((Next(item, 2) for item in first if item not in self._twice[rater]), None)


def _own_order(base: Sequence[str], rater: str, seed: int) -> list[str]:
    order: list[str] = []
    for start in range(0, len(base), _BLOCK):
        block = list(base[start : start + _BLOCK])
        random.Random(f"{seed}:{rater}:{start}").shuffle(block)
        order += block
    return order
