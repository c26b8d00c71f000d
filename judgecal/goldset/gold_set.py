"""The gold set: items, ratings and card, and the views on them that every command takes."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from judgecal.errors import unknown_name
from judgecal.goldset.card import Card
from judgecal.goldset.rows import Document
from judgecal.goldset.split import SPLIT_NAMES, members
from judgecal.records import Item, Rating
from judgecal.scale import Label, Scale

__all__ = ["GOLD", "GoldSet", "common_label"]

GOLD = "gold"
"""The rater name of the adjudicated label."""


def common_label(labels: Sequence[Label], scale: Scale) -> Label | None:
    """The label that stands for several: the majority (binary, nominal) or the median.

    The median of an even number is the mean of the middle two, so it may lie between two steps of the scale.

    Returns:
        None where there are no labels, or where the most frequent ones tie.
    """
    if not labels:
        return None
    if scale.kind in ("percentage", "ordinal"):
        return float(statistics.median([float(label) for label in labels]))
    ranked = Counter(labels).most_common(2)
    return None if len(ranked) == 2 and ranked[0][1] == ranked[1][1] else ranked[0][0]


@dataclass(frozen=True)
class GoldSet:
    """A set of items with what people said of them.

    Attributes:
        name: as the card gives it.
        path: the folder.
        card: what card.toml says.
        items, ratings, documents: in file order.
        sha256: of the content: card, items, ratings and documents, byte by byte.
        lines: the line of each item in items.jsonl, by item id (empty for a set that was never in a file).
    """

    name: str
    path: Path
    card: Card
    items: tuple[Item, ...]
    ratings: tuple[Rating, ...]
    documents: tuple[Document, ...]
    sha256: str
    lines: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def scale(self) -> Scale:
        """The people's scale."""
        return self.card.scale

    @cached_property
    def labels(self) -> dict[str, Label]:
        """Gold labels by item id: adjudicated, else majority or median; an unlabelled item is absent."""
        adjudicated = self._labels_of_all.get(GOLD, {})
        found: dict[str, Label] = {}
        for item in self.items:
            label = adjudicated.get(item.item_id)
            if label is None:
                label = common_label(self._human_labels.get(item.item_id, ()), self.scale)
            if label is not None:
                found[item.item_id] = label
        return found

    @cached_property
    def _labels_of_all(self) -> dict[str, dict[str, Label]]:
        by_rater: dict[str, dict[str, Label]] = {}
        for rating in self.ratings:
            by_rater.setdefault(rating.rater, {})[rating.item_id] = rating.label
        return by_rater

    @cached_property
    def _human_labels(self) -> dict[str, list[Label]]:
        by_item: dict[str, list[Label]] = {}
        for rating in self.ratings:
            if rating.rater != GOLD:
                by_item.setdefault(rating.item_id, []).append(rating.label)
        return by_item

    @property
    def raters(self) -> tuple[str, ...]:
        """The human raters by name, sorted; `gold` is none of them."""
        return tuple(sorted(self.ratings_by_rater))

    @cached_property
    def ratings_by_rater(self) -> dict[str, dict[str, Label]]:
        """rater -> item id -> label, without `gold`."""
        return {rater: labels for rater, labels in self._labels_of_all.items() if rater != GOLD}

    def label_without(self, rater: str) -> dict[str, Label]:
        """What the other human raters say of the items that this rater rated, by item id.

        Majority or median of the others, never `gold`: a label made of the rater's own vote flatters the rater.
        Items that nobody else rated, and ties of the others, are absent.

        Raises:
            InputError: there is no such rater.
        """
        if rater not in self.ratings_by_rater:
            raise unknown_name("rater", rater, self.raters)
        others = [labels for name, labels in self.ratings_by_rater.items() if name != rater]
        found: dict[str, Label] = {}
        for item_id in self.ratings_by_rater[rater]:
            label = common_label([labels[item_id] for labels in others if item_id in labels], self.scale)
            if label is not None:
                found[item_id] = label
        return found

    def shared_items(self, a: str, b: str) -> tuple[Item, ...]:
        """The items that both raters rated, in file order."""
        both = self.ratings_by_rater.get(a, {}).keys() & self.ratings_by_rater.get(b, {}).keys()
        return tuple(item for item in self.items if item.item_id in both)

    def split_of(self, group: str) -> str:
        """`train`, `dev` or `test`."""
        return self.card.splits.of(group)

    def select(self, split: str, *, without_groups: Collection[str] = ()) -> tuple[Item, ...]:
        """The items of a split, in file order.

        Args:
            split: train, dev, test, open (train and dev) or all.
            without_groups: questions to leave out, such as those that a judge was trained on.

        Raises:
            InputError: there is no such split.
        """
        wanted = members(split)
        if wanted is None:
            raise unknown_name("split", split, SPLIT_NAMES)
        left_out = frozenset(without_groups)
        return tuple(
            item
            for item in self.items
            if item.group not in left_out and (split == "all" or self.split_of(item.group) in wanted)
        )

    @staticmethod
    def n_groups(items: Iterable[Item]) -> int:
        """How many questions the items belong to."""
        return len({item.group for item in items})
