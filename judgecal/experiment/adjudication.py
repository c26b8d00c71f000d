"""Items on which raters differ, and what settling them changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from judgecal.goldset import GOLD, GoldSet, common_label
from judgecal.goldset.tie_breakers import differ
from judgecal.records import Item, Rating, Result


@dataclass(frozen=True, slots=True)
class Upheld:
    """Of `n` labels of a rater on settled items, `same` are those that the adjudicated label confirms."""

    n: int
    same: int


@dataclass(frozen=True, slots=True)
class Adjudication(Result):
    """What adjudicating a set has come to.

    Attributes:
        n_differ: items on which raters differ, settled ones among them; n_left: those that nobody has
            settled.
        n_settled: with an adjudicated label; n_cannot_tell: those on which the adjudicator could not tell.
        n_changed: settled ones whose gold label is another than the raters' majority or median.
        n_ties: settled ones that had no gold label, as the raters tied.
        raters: by name.
    """

    set_: str
    n_differ: int
    n_left: int
    n_settled: int
    n_cannot_tell: int
    n_changed: int
    n_ties: int
    raters: Mapping[str, Upheld]
    scale: str = field(default="", metadata={"json": False})


def opinions_of(gold: GoldSet) -> dict[str, tuple[Rating, ...]]:
    """Item id -> what people said, for each item on which they differ; those who could not tell among them.

    Two labels differ where they are other words, or lie a step and a tenth of the range apart.
    """
    said: dict[str, list[Rating]] = {}
    for rating in gold.ratings:
        if rating.rater != GOLD:
            said.setdefault(rating.item_id, []).append(rating)
    found = {}
    for item in gold.items:
        own = said.get(item.item_id, ())
        labels = [one.label for one in own if one.label is not None]
        if len(labels) > 1 and differ(labels, gold.scale):
            found[item.item_id] = tuple(
                sorted(own, key=lambda one: (one.label is None, str(one.label), one.note or ""))
            )
    return found


def contested(gold: GoldSet, opinions: Mapping[str, object] | None = None) -> tuple[Item, ...]:
    """The items on which people differ and that nobody has adjudicated, in file order."""
    opinions = opinions_of(gold) if opinions is None else opinions
    settled = {rating.item_id for rating in gold.ratings if rating.rater == GOLD}
    return tuple(item for item in gold.items if item.item_id in opinions and item.item_id not in settled)


def adjudication(gold: GoldSet) -> Adjudication:
    """Count what was settled and what that changed."""
    opinions = opinions_of(gold)
    given = {one.item_id: one for one in gold.ratings if one.rater == GOLD and one.item_id in opinions}
    settled = {item_id: one.label for item_id, one in given.items() if one.label is not None}
    before = {
        item_id: common_label([one.label for one in opinions[item_id] if one.label is not None], gold.scale)
        for item_id in settled
    }
    raters: dict[str, list[bool]] = {}
    for item_id, label in settled.items():
        for one in opinions[item_id]:
            if one.label is not None:
                raters.setdefault(one.rater, []).append(not differ([one.label, label], gold.scale))
    return Adjudication(
        set_=gold.name,
        n_differ=len(opinions),
        n_left=len(opinions) - len(given),
        n_settled=len(settled),
        n_cannot_tell=len(given) - len(settled),
        n_changed=sum(old is not None and old != settled[item_id] for item_id, old in before.items()),
        n_ties=sum(old is None for old in before.values()),
        raters={rater: Upheld(len(same), sum(same)) for rater, same in sorted(raters.items())},
        scale=str(gold.scale),
    )
