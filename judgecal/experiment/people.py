"""People beside people, and judges on that same footing: the ceiling, and who may stand in for a person.

The footing: a rater's label of an item is held against each label that another rater gave to it, whether or
not the item has a gold label. Raters who were mostly asked to break ties stand beside nobody.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from judgecal.experiment.agreement import Entry, JudgeEntry, RaterEntry, entry
from judgecal.experiment.agreement_table import AgreementTable, Verdicts, as_lists
from judgecal.experiment.verdicts import Cut
from judgecal.goldset import GoldCheck, GoldSet
from judgecal.records import Estimate, Item, Judgement, Result
from judgecal.scale import Label
from judgecal.stats import agreement, cross_fit, reliability, winning_rates
from judgecal.stats.stand_in import AltTest, StandIn, paired_labels, stand_in

EPSILONS = (0.2, 0.15, 0.1)
"""What the alternative annotator test grants a judge: in place of experts, of skilled people, of a crowd."""


def tied_items(
    gold: GoldSet, split: str, labelled: Sequence[Item], *, without_groups: frozenset[str] = frozenset()
) -> tuple[Item, ...]:
    """Return Items, from a GoldSet, a split and its labelled Items, on which raters tie, up to the last."""
    if not gold.tied:
        return ()
    pool = gold.select(split, without_groups=without_groups)
    if labelled and len(labelled) < sum(item.item_id in gold.labels for item in pool):
        pool = pool[: [item.item_id for item in pool].index(labelled[-1].item_id)]
    tied = {item.item_id for item in gold.tied}
    return tuple(item for item in pool if item.item_id in tied)


def _items(table: AgreementTable) -> dict[Hashable, Item]:
    """By id, with those on which raters tie."""
    return {item.item_id: item for item in (*table.items, *table.tied)}


def peer_ratings(table: AgreementTable) -> dict[str, dict[Hashable, Label]]:
    """Return rater -> item id -> Label, of an AgreementTable: on its items and those where raters tie."""
    item_ids = _items(table)
    return {
        rater: {item_id: label for item_id, label in labels.items() if item_id in item_ids}
        for rater, labels in table.gold.peers.items()
    }


def first_verdicts(table: AgreementTable, column: Verdicts) -> dict[Hashable, Label | None]:
    """Return item id -> first verdict (Label or None), from an AgreementTable and a judge's Verdicts.

    None is unscored: so is a labelled item without a row. A tied item without a row is absent: it was not
    asked about.
    """
    items = (*table.items, *(item for item in table.tied if item.item_id in column.places))
    verdicts = as_lists(column.verdicts[column.rows_of(items)])
    return {item.item_id: of_item[0] for item, of_item in zip(items, verdicts, strict=True)}


def rater_entries(table: AgreementTable, columns: Sequence[Verdicts]) -> tuple[RaterEntry, ...]:
    """Return RaterEntries from an AgreementTable and several Verdicts: each rater against the others."""
    if len(table.gold.peers) < 2:
        return ()
    ratings, items, entries = peer_ratings(table), _items(table), []
    for rater, labels_of in ratings.items():
        pairs = paired_labels(ratings, rater)
        if not pairs:
            continue
        shared, labels = tuple(items[item_id] for item_id, _ in pairs), [label for _, label in pairs]
        part = AgreementTable(table.gold, shared, 1, table.seed, table.level)
        rows = [
            Judgement(item.item_id, item.sha, rater, "rater", 0, labels_of[item.item_id])
            for item in {item.item_id: item for item in shared}.values()
        ]
        judges = tuple(entry(Entry, part, column, labels=labels) for column in columns)
        more = {"against": "each other rater", "judges": judges}
        person = Verdicts(rater, table.gold.scale, rows)
        entries.append(entry(RaterEntry, part, person, labels=labels, more=more))
    return tuple(entries)


def judge_beside_people(
    table: AgreementTable, column: Verdicts, *, n_judges: int = 1, metric: str | None = None
) -> StandIn:
    """Return the StandIn of an AgreementTable and a judge's Verdicts: beside every rater and the others."""
    return stand_in(
        peer_ratings(table),
        first_verdicts(table, column),
        scale=table.gold.scale,
        judge_scale=column.scale,
        groups={item_id: item.group for item_id, item in _items(table).items()},
        metric=metric,
        n_judges=n_judges,
    )


def with_people(table: AgreementTable, column: Verdicts, judge: JudgeEntry, *, n_judges: int) -> JudgeEntry:
    """Return a JudgeEntry beside people, from AgreementTable, Verdicts, its JudgeEntry and n_judges."""
    if len(table.gold.peers) < 2 or table.weights is not None:
        return judge
    return dataclasses.replace(
        judge,
        stand_in=judge_beside_people(table, column, n_judges=n_judges),
        alt_test=alt_tests(table, column),
    )


def alt_tests(table: AgreementTable, column: Verdicts) -> tuple[AltTest, ...]:
    """Return AltTests, from an AgreementTable and a judge's Verdicts: of the first, calibrated if can be."""
    items, people, given = _items(table), table.gold.scale, first_verdicts(table, column)
    groups = {item_id: item.group for item_id, item in items.items()}
    fit = cross_fit(
        [table.gold.labels.get(str(item_id)) for item_id in given],
        list(given.values()),
        scale=people,
        judge_scale=column.scale,
        groups=[groups[item_id] for item_id in given],
    )
    verdicts: dict[Hashable, Label | None] = given
    if fit is not None:
        mapped = as_lists(fit.verdicts)
        verdicts = {item_id: verdict for item_id, (verdict,) in zip(given, mapped, strict=True)}
    elif people.numeric:
        cut = Cut(people, column.scale)
        verdicts = {item: None if verdict is None else cut.taken(verdict) for item, verdict in given.items()}
    # a judge's verdict need not be a step of the people's scale, nor a word that the card lists
    scale = people.of_means if people.graded else people
    scale = dataclasses.replace(scale, categories=(), step=None)
    tests = winning_rates(peer_ratings(table), verdicts, scale=scale, epsilons=EPSILONS, groups=groups)
    return tuple(tests.values())


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
    """Pairs of human raters, each against the others; no judge is in it."""

    pairs: tuple[RaterPair, ...]
    ceiling: tuple[RaterAmongOthers, ...]
    # raters mostly asked where others differ -> how that shows; they are in the pairs alone
    tie_breakers: Mapping[str, str]
    # the others at once, each pair's kappas too; empty without two of them
    reliability: Mapping[str, Estimate]
    cannot_tell: Mapping[str, int]  # rater -> items of which it could not tell
    raters: tuple[str, ...] = field(default=(), metadata={"json": False})
    labels_by: str = field(default="", metadata={"json": False})
    n_tied: int = field(default=0, metadata={"json": False})


@dataclass(frozen=True, slots=True)
class CheckedSet(Result):
    """What `gold check SET` comes to: its audit, and its raters beside each other."""

    check: GoldCheck
    raters: RaterAgreement

    def as_json(self) -> dict[str, Any]:
        return {**self.check.as_json(), "raters": self.raters.as_json()}


def rater_agreement(gold: GoldSet) -> RaterAgreement:
    """Return the RaterAgreement of a GoldSet: of every pair of its raters, and of all at once."""
    groups, pairs = {item.item_id: item.group for item in gold.items}, []
    for a, b in combinations(gold.raters, 2):
        items, estimates = gold.shared_items(a, b), dict[str, Estimate]()
        if items:
            sides = ([gold.ratings_by_rater[rater][item.item_id] for item in items] for rater in (a, b))
            estimates = agreement(*sides, scale=gold.scale, groups=[item.group for item in items])
        pairs.append(RaterPair(a, b, len(items), estimates))
    entries = rater_entries(AgreementTable(gold, gold.items), ())
    return RaterAgreement(
        pairs=tuple(pairs),
        ceiling=tuple(RaterAmongOthers(entry.judge, entry.n, entry.agreement) for entry in entries),
        tie_breakers={rater: breaker.why for rater, breaker in gold.tie_breakers.items()},
        reliability=reliability(gold.peers, scale=gold.scale, groups=groups) if len(gold.peers) > 1 else {},
        cannot_tell=gold.cannot_tell,
        raters=gold.raters,
        labels_by=gold.card.labels_by,
        n_tied=len(gold.tied),
    )
