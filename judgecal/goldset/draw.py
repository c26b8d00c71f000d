"""Draw items to be labelled by strata, each item with its chance of being drawn, and make a set of them."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judgecal.goldset.card import UNKNOWN_LICENCE, Card
from judgecal.goldset.gold_set import GoldSet
from judgecal.goldset.write import write_gold
from judgecal.records import Item
from judgecal.scale import Scale
from judgecal.workspace import Workspace

AT_LARGE = 1.0 / 3.0
"""The part of a draw that goes to all items alike, so that what strata do not tell is estimated too."""

_LEAST = 2  # items of a stratum, where it has so many: with none of it nothing is known of it


@dataclass(frozen=True, slots=True)
class DrawStratum:
    """Items among which each is as likely to be drawn as any other.

    `spread` (0 and above): how much what is to be estimated varies among them, against the other strata.
    """

    name: str
    items: tuple[Item, ...]
    spread: float


@dataclass(frozen=True, slots=True)
class Drawn:
    """The items drawn, with their `inclusion_probability`; `counts`: stratum -> how many, of how many.

    `earlier` are those that had been drawn before, with the chance that they have now.
    """

    items: tuple[Item, ...]
    counts: Mapping[str, tuple[int, int]]
    earlier: tuple[Item, ...] = ()


def draw(
    strata: Sequence[DrawStratum],
    n: int,
    *,
    seed: int = 0,
    before: Collection[str] = (),
    at_large: float = AT_LARGE,
) -> Drawn:
    """Return the Drawn from strata and a number n: n items without replacement, two of each at least.

    `at_large` of them goes to the strata by their size, the rest by size x spread, as that makes the variance
    of an estimated mean least (Neyman 1934). The chance of an item is the part of its stratum that is drawn.
    `before`: ids of items drawn before, within each stratum all as likely; none of them is drawn again, and
    both draws together are then one of as many.
    """
    strata = [stratum for stratum in strata if stratum.items]
    done = [[item for item in stratum.items if item.item_id in before] for stratum in strata]
    there, spreads = [len(stratum.items) for stratum in strata], [stratum.spread for stratum in strata]
    drawn, earlier, counts = list[Item](), list[Item](), {}
    sizes = allocate(there, spreads, n, before=[len(items) for items in done], at_large=at_large)
    for stratum, is_done, size in zip(strata, done, sizes, strict=True):
        left = [item for item in stratum.items if item.item_id not in before] if is_done else stratum.items
        chosen = random.Random(f"{seed}:{stratum.name}").sample(left, size - len(is_done))
        chance = size / len(stratum.items)
        drawn += [replace(item, inclusion_probability=chance) for item in chosen]
        earlier += [replace(item, inclusion_probability=chance) for item in is_done]
        counts[stratum.name] = (len(chosen), len(stratum.items))
    return Drawn(tuple(drawn), counts, tuple(earlier))


def allocate(
    there: Sequence[int],
    spreads: Sequence[float],
    n: int,
    *,
    before: Sequence[int] = (),
    at_large: float = AT_LARGE,
) -> list[int]:
    """Return a list of numbers, of items by stratum: from counts `there`, spreads and `n` new ones."""
    size = np.array(there)
    done = np.array(before) if len(before) else np.zeros_like(size)
    by_spread = size * np.array(spreads)
    if by_spread.sum() <= 0.0:
        by_spread = size.astype(np.float64)
    owed = at_large * size / size.sum() + (1.0 - at_large) * by_spread / by_spread.sum()
    sizes = np.maximum(done, np.minimum(size, _LEAST))
    if not done.any():  # as many as each is sure to get: the rest goes one by one
        sure = np.floor(owed * max(0, n - _LEAST * len(size))).astype(np.int64)
        sizes = np.maximum(sizes, np.minimum(size, sure))
    while sizes.sum() < min(n + done.sum(), size.sum()):
        sizes[np.where(sizes < size, owed / (sizes + 1.0), -1.0).argmax()] += 1
    return [int(size) for size in sizes]


@dataclass(frozen=True, slots=True)
class LabelSample:
    """Items to be labelled, with their chances, and the set `card` that their labels will make or join."""

    card: Card
    items: tuple[Item, ...]
    notes: tuple[str, ...]
    before: GoldSet | None = None  # the set that they join
    earlier: tuple[Item, ...] = ()  # its items with the chances that they have now

    def write(self, workspace: Workspace) -> GoldSet:
        """Write its own sample as a set into a Workspace, with earlier labels; return the GoldSet."""
        ratings, joins = (self.before.ratings, True) if self.before else ((), False)
        items = (*self.earlier, *self.items)
        return write_gold(self.card, items, ratings, workspace=workspace, replace=joins)


def drawn_card(name: str, scale: Scale, source: str, sampling: str) -> Card:
    """Return the Card of a set of drawn items, from its name, Scale, source and sampling (texts)."""
    card = Card(name, scale, version="1", licence=UNKNOWN_LICENCE, source=source)
    return replace(card, made_by="people", labels_by="people", sampling=sampling)
