"""Raters who were mostly asked to break ties: held against the others they look bad, and no rater is like
them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from judgecal.scale import Label, Scale

_LEAST_ASKED = 10
_MOSTLY = 0.5
_MORE_OFTEN = 2.0
_BY_CHANCE = 3.3  # standard deviations; about one in two thousand


@dataclass(frozen=True, slots=True)
class TieBreaker:
    """Two others differ on `differ` of `n` items that it rated, and on `rest_differ` of `rest` others."""

    n: int
    differ: int
    rest: int
    rest_differ: int

    @property
    def why(self) -> str:
        """What makes the rater one, to stand behind its name."""
        return (
            f"asked mostly where others differ: they differ on {self.differ} of the {self.n} items that it "
            f"rated with two others, and on {self.rest_differ} of the {self.rest} that it was not given"
        )

    @property
    def shown(self) -> bool:
        """Whether others differ on over half of its items, twice as often as elsewhere, and not by chance."""
        if self.n < _LEAST_ASKED or self.rest < _LEAST_ASKED:
            return False
        share, elsewhere = self.differ / self.n, self.rest_differ / self.rest
        if share <= _MOSTLY or share < _MORE_OFTEN * elsewhere:
            return False
        expected = max(elsewhere, 1.0 / (self.n + 1))
        return (share - expected) / math.sqrt(expected * (1.0 - expected) / self.n) > _BY_CHANCE


@dataclass
class _Contest:
    """Where raters differ, over the items with two raters or more.

    `items`, `contested`: how many there are, and on how many of them any two raters differ; `own` ...: the
    same among the items of one rater; `asked`, `others_differ`: a rater's items with two others or more, and
    those on which these others differ.
    """

    items: int = 0
    contested: int = 0
    own: Counter[str] = field(default_factory=Counter)
    own_contested: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    others_differ: Counter[str] = field(default_factory=Counter)

    def add(self, labels: Mapping[str, Label], scale: Scale) -> None:
        """Count one item's labels, by rater."""
        given = sorted(labels.values(), key=str) if not scale.numeric else sorted(map(float, labels.values()))
        differ = _differ(given, scale)
        self.items += 1
        self.contested += differ
        for rater, label in labels.items():
            self.own[rater] += 1
            self.own_contested[rater] += differ
            if len(given) > 2:
                self.asked[rater] += 1
                self.others_differ[rater] += _differ(_without(given, label), scale)

    def of(self, rater: str) -> TieBreaker:
        """The counts of one rater."""
        rest, differ = self.items - self.own[rater], self.contested - self.own_contested[rater]
        return TieBreaker(self.asked[rater], self.others_differ[rater], rest, differ)


def tie_breakers(ratings_by_rater: Mapping[str, Mapping[str, Label]], scale: Scale) -> dict[str, TieBreaker]:
    """The raters who were mostly asked where others differ, by name; `ratings_by_rater` is rater -> item id
    -> label.

    The rule: of a rater's items with two others or more these differ on more than half, at least twice as
    often as raters differ on the items that this one was not given, and by more than 3.3 standard errors; ten
    items of either kind at least. Two labels differ where they are other words or lie a step, and a tenth of
    the range, apart.
    """
    by_item: defaultdict[str, dict[str, Label]] = defaultdict(dict)
    for rater, labels in ratings_by_rater.items():
        for item_id, label in labels.items():
            by_item[item_id][rater] = label
    contest = _Contest()
    for given in by_item.values():
        if len(given) > 1:
            contest.add(given, scale)
    return {rater: found for rater in sorted(ratings_by_rater) if (found := contest.of(rater)).shown}


def tenth(scale: Scale) -> float:
    """What counts as far on a numeric scale: one step of it, and at least 10% of its range."""
    return max(scale.step or 0.0, 0.1 * scale.span)


def differ(labels: Sequence[Label], scale: Scale) -> bool:
    """Whether raters differ on an item: by another word, or by a step and a tenth of the range."""
    return _differ(sorted(labels, key=str) if not scale.numeric else sorted(map(float, labels)), scale)


def _without(given: Sequence[Label], label: Label) -> Sequence[Label]:
    """The ends of the sorted labels once one of them is taken out."""
    low, high = given[0], given[-1]
    return (given[1] if label == low else low, given[-2] if label == high else high)


def _differ(given: Sequence[Label], scale: Scale) -> bool:
    """The same, of sorted labels."""
    if not scale.numeric:
        return given[0] != given[-1]
    return float(given[-1]) - float(given[0]) >= tenth(scale) - 1e-9
