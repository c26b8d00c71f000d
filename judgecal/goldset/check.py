"""The audit of a set that loads: what is not wrong by its format, but would mislead whoever relies on it.

Each check is a small function from a set to its problems; `_CHECKS` lists them in the order of the report.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from judgecal.goldset.gold_set import GOLD, GoldSet
from judgecal.goldset.load import CARD, ITEMS, RATINGS
from judgecal.goldset.split import SPLITS
from judgecal.records import Item
from judgecal.scale import Label

__all__ = ["Problem", "check_gold"]

_LEAST_GROUPS = 10  # below this there is no interval at all
_LEAST_STRATUM = 10  # below this a class or a third of the scale has no interval of its own
_LEAST_SHARED = 30  # below this a rater is left out of the alt-test
_LEAST_TAG = 5
_NEAR_CONSTANT = 0.9
_THIRDS = ("low third", "middle third", "high third")


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding: its kind (one word for all of its kind), where, and what to know or do."""

    kind: str
    where: str
    message: str


def check_gold(gold: GoldSet) -> list[Problem]:
    """Every finding of the audit; an empty list says that no check found anything."""
    return [problem for check in _CHECKS for problem in check(gold)]


def _place(gold: GoldSet, items: Iterable[Item]) -> str:
    """The lines of items; their ids where they never were in a file."""
    lines = [
        f"{ITEMS}:{gold.lines[item.item_id]}" if item.item_id in gold.lines else item.item_id
        for item in items
    ]
    return ", ".join(lines[:5]) + (f" and {len(lines) - 5} more" if len(lines) > 5 else "")


def _say(label: Label | None) -> str:
    if label is None:
        return "none"
    return label if isinstance(label, str) else f"{label:g}"


def _plain(text: str) -> str:
    """A text for comparison: case and spacing make no other question."""
    return " ".join(text.split()).casefold()


def _card_gaps(gold: GoldSet) -> Iterator[Problem]:
    for key in ("version", "licence", "source", "made_by"):
        if not getattr(gold.card, key):
            yield Problem(
                "card", CARD, f"no {key}: say it, so that others can judge what the set is good for"
            )
    folder = gold.path.absolute().name
    if gold.name != folder:
        yield Problem(
            "card", CARD, f"the name is {gold.name!r} and the folder {folder!r}: make them the same"
        )
    for rater in gold.raters:
        if rater not in gold.card.raters:
            yield Problem("card", CARD, f"no [raters.{rater}]: say who it is, and with which instructions")
    for rater in gold.card.raters:
        if rater not in gold.raters and not any(rating.rater == rater for rating in gold.ratings):
            yield Problem("card", CARD, f"[raters.{rater}] has no rating in {RATINGS}")


def _unlabelled(gold: GoldSet) -> Iterator[Problem]:
    rated = {rating.item_id for rating in gold.ratings}
    for item in gold.items:
        if item.item_id not in gold.labels:
            why = (
                f"the raters tie: add a rating by {GOLD!r} or by one more rater"
                if item.item_id in rated
                else "nobody rated it"
            )
            yield Problem(
                "unlabelled", _place(gold, [item]), f"item {item.item_id!r} has no gold label: {why}"
            )


def _unlike_labels(gold: GoldSet) -> Iterator[Problem]:
    same: defaultdict[tuple[str, str], list[Item]] = defaultdict(list)
    for item in gold.items:
        if item.item_id in gold.labels:
            same[_plain(item.question), _plain(item.answer)].append(item)
    for items in same.values():
        labels = [gold.labels[item.item_id] for item in items]
        if len(set(labels)) > 1:
            yield Problem(
                "unlike_labels",
                _place(gold, items),
                f"the same answer to the same question is labelled {', '.join(map(_say, labels))}: settle it",
            )


def _question_in_groups(gold: GoldSet) -> Iterator[Problem]:
    groups: defaultdict[str, dict[str, Item]] = defaultdict(dict)
    for item in gold.items:
        groups[_plain(item.question)].setdefault(item.group, item)
    for found in groups.values():
        if len(found) > 1:
            splits = sorted({gold.split_of(group) for group in found}, key=SPLITS.index)
            leak = (
                f"and in {' and '.join(splits)}" if len(splits) > 1 else f"all of them in {splits[0]} so far"
            )
            yield Problem(
                "question_in_two_groups",
                _place(gold, found.values()),
                f"one question stands in {len(found)} groups ({', '.join(found)}), {leak}: give it one group",
            )


def _thin_splits(gold: GoldSet) -> Iterator[Problem]:
    for split in SPLITS:
        groups = gold.n_groups(gold.select(split))
        if groups < _LEAST_GROUPS:
            yield Problem(
                "thin_split",
                split,
                f"{groups} questions in {split}: below {_LEAST_GROUPS} no interval can be given, so nothing can be "
                "decided there",
            )


def _thin_strata(gold: GoldSet) -> Iterator[Problem]:
    labels = [gold.labels[item.item_id] for item in gold.select("test") if item.item_id in gold.labels]
    for stratum, count in _strata(gold, labels):
        if count < _LEAST_STRATUM:
            yield Problem(
                "thin_stratum",
                "test",
                f"{count} items labelled {stratum} in test: below {_LEAST_STRATUM} its rate has no interval",
            )


def _strata(gold: GoldSet, labels: list[Label]) -> list[tuple[str, int]]:
    scale = gold.scale
    if scale.kind == "nominal":
        words = Counter(labels)
        return [(word, words[word]) for word in scale.categories]
    counts = Counter(scale.stratum(float(label)) for label in labels)
    if scale.kind == "binary":
        return [("0", counts[0]), ("1", counts[2])]
    return [(f"in the {third}", counts[stratum]) for stratum, third in enumerate(_THIRDS)]


def _near_constant(gold: GoldSet) -> Iterator[Problem]:
    counts = Counter(gold.labels.values())
    for label, count in counts.most_common(1):
        share = count / len(gold.labels)
        if share > _NEAR_CONSTANT:
            yield Problem(
                "near_constant",
                RATINGS,
                f"{share:.0%} of the gold labels are {_say(label)}: a judge that always says so would look good; "
                "add items of the other kind",
            )


def _thin_raters(gold: GoldSet) -> Iterator[Problem]:
    shared: defaultdict[str, set[str]] = defaultdict(set)
    for a, b in combinations(gold.raters, 2):
        both = gold.ratings_by_rater[a].keys() & gold.ratings_by_rater[b].keys()
        shared[a] |= both
        shared[b] |= both
    for rater in gold.raters:
        if len(shared[rater]) < _LEAST_SHARED:
            yield Problem(
                "thin_rater",
                RATINGS,
                f"{rater!r} shares {len(shared[rater])} items with another rater: below {_LEAST_SHARED} people's own "
                "agreement cannot be told",
            )


def _thin_tags(gold: GoldSet) -> Iterator[Problem]:
    tags = Counter(tag for item in gold.items for tag in set(item.tags))
    for tag, count in sorted(tags.items()):
        if count < _LEAST_TAG:
            yield Problem("thin_tag", ITEMS, f"tag {tag!r} has {count} items: too few to say anything of it")


def _off_step(gold: GoldSet) -> Iterator[Problem]:
    scale = gold.scale
    if scale.step is None or not scale.numeric:
        return
    for rating in gold.ratings:
        steps = (float(rating.label) - scale.low) / scale.step
        if abs(steps - round(steps)) > 1e-6:
            yield Problem(
                "off_step",
                RATINGS,
                f"{rating.rater!r} gave item {rating.item_id!r} {_say(rating.label)}, between the card's steps of "
                f"{scale.step:g}",
            )


def _between_categories(gold: GoldSet) -> Iterator[Problem]:
    if gold.scale.kind != "ordinal":
        return
    between = [item for item in gold.items if not float(gold.labels.get(item.item_id, 0)).is_integer()]
    if between:
        yield Problem(
            "between_categories",
            _place(gold, between),
            f"the median of an even number of raters lies between two labels for {len(between)} items: statistics "
            f"on the scale's own categories cannot use it; add ratings by {GOLD!r} or by one more rater",
        )


_CHECKS: tuple[Callable[[GoldSet], Iterable[Problem]], ...] = (
    _card_gaps,
    _unlabelled,
    _unlike_labels,
    _question_in_groups,
    _thin_splits,
    _thin_strata,
    _near_constant,
    _thin_raters,
    _thin_tags,
    _off_step,
    _between_categories,
)
