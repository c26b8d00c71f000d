"""`gold agreement`: how far the human raters of a set agree; no judge has a part in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

from judgecal.experiment.agreement import Table
from judgecal.experiment.people import rater_entries
from judgecal.goldset import GoldSet
from judgecal.records import Estimate, Result
from judgecal.stats import agreement, reliability


@dataclass(frozen=True, slots=True)
class RaterPair:
    """Two raters on the items that both rated; no estimates where there is none."""

    a: str
    b: str
    n: int
    agreement: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class RaterAmongOthers(Result):
    """A rater against each other rater, on `n` items: the ceiling that reports print."""

    rater: str
    n: int
    agreement: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class RaterAgreement(Result):
    """What `gold agreement` comes to: every pair of human raters, and each against the others.

    `tie_breakers`: raters mostly asked where others differ -> how that shows; they stand in the pairs alone.
    `reliability`: the others at once, each pair's kappas too; empty where there are no two of them.
    `saw_draft`: rater -> labels given in sight of a machine's. `cannot_tell`: rater -> items of which it
    could not tell.
    """

    set_: str
    pairs: tuple[RaterPair, ...]
    ceiling: tuple[RaterAmongOthers, ...]
    tie_breakers: Mapping[str, str]
    reliability: Mapping[str, Estimate]
    saw_draft: Mapping[str, int]
    cannot_tell: Mapping[str, int]
    sha256: str = field(default="", metadata={"json": False})
    scale: str = field(default="", metadata={"json": False})
    raters: tuple[str, ...] = field(default=(), metadata={"json": False})
    labels_by: str = field(default="", metadata={"json": False})
    n_tied: int = field(default=0, metadata={"json": False})


def rater_agreement(gold: GoldSet) -> RaterAgreement:
    """Every pair of human raters, and all at once; the adjudicated label, made of their votes, is none of
    them."""
    groups = {item.item_id: item.group for item in gold.items}
    together = reliability(gold.peers, scale=gold.scale, groups=groups) if len(gold.peers) > 1 else {}
    entries = rater_entries(Table(gold, gold.items), ())
    return RaterAgreement(
        gold.name,
        tuple(_pair(gold, a, b) for a, b in combinations(gold.raters, 2)),
        tuple(RaterAmongOthers(one.judge, one.n, one.agreement) for one in entries),
        {rater: found.why for rater, found in gold.tie_breakers.items()},
        together,
        dict(Counter(rating.rater for rating in gold.ratings if rating.saw_draft)),
        gold.cannot_tell,
        gold.sha256,
        str(gold.scale),
        gold.raters,
        gold.card.labels_by,
        len(gold.tied),
    )


def _pair(gold: GoldSet, a: str, b: str) -> RaterPair:
    items = gold.shared_items(a, b)
    if not items:
        return RaterPair(a, b, 0, {})
    first, second = ([gold.ratings_by_rater[rater][item.item_id] for item in items] for rater in (a, b))
    estimates = agreement(first, second, scale=gold.scale, groups=[item.group for item in items])
    return RaterPair(a, b, len(items), estimates)
