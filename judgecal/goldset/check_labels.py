"""What is wrong with the labels of a set: items without one, thin splits and strata, constants, labels off
the scale, and raters with too little in common.
"""

from __future__ import annotations

from collections import Counter

from judgecal.goldset.card import SPLITS
from judgecal.goldset.gold_set import RATINGS, Findings, GoldSet
from judgecal.goldset.labels import label_text, narrow_labels
from judgecal.goldset.wording import grouped
from judgecal.tables.columns import GOLD

_HIGH_SHARE = 0.8
_LEAST_GROUPS = 10  # below this there is no interval at all
_LEAST_STRATUM = 10  # below this a class or a third of the scale has no interval of its own
_THIRDS = ("low third", "middle third", "high third")


def unlabelled(gold: GoldSet) -> Findings:
    rated = {rating.item_id for rating in gold.ratings if rating.label is not None}
    unclear = {rating.item_id for rating in gold.ratings} - rated
    for item in gold.items:
        if item.item_id not in gold.labels:
            why = "nobody rated it"
            if item.item_id in rated:
                why = f"the raters tie: add a rating by {GOLD!r} or by one more rater"
            elif item.item_id in unclear:
                why = "nobody who rated it could tell"
            yield [item], f"item {item.item_id!r} has no gold label: {why}"


def thin_splits(gold: GoldSet) -> Findings:
    for split in SPLITS:
        groups = gold.n_groups(gold.select(split))
        if groups < _LEAST_GROUPS:
            yield (
                split,
                f"{groups} questions in {split}: below {_LEAST_GROUPS} there is no interval, so we can "
                "decide nothing there",
            )


def _strata(gold: GoldSet, split: str) -> list[tuple[str, int]]:
    labels = [gold.labels[item.item_id] for item in gold.select(split) if item.item_id in gold.labels]
    scale = gold.scale
    if scale.kind == "nominal":
        words = Counter(labels)
        return [(word, words[word]) for word in scale.categories]
    counts = Counter(scale.stratum(float(label)) for label in labels)
    if scale.kind == "binary":
        return [("0", counts[0]), ("1", counts[2])]
    return [(f"in the {third}", counts[stratum]) for stratum, third in enumerate(_THIRDS)]


def thin_strata(gold: GoldSet) -> Findings:
    for stratum, count in _strata(gold, "test"):
        if count < _LEAST_STRATUM:
            yield (
                "test",
                f"{count} items labelled {stratum} in test: below {_LEAST_STRATUM} its rate has no interval",
            )


def near_constant(gold: GoldSet) -> Findings:
    labels = list(gold.labels.values())
    label, n = Counter(labels).most_common(1)[0] if labels else ("", 0)
    if n > _HIGH_SHARE * len(labels):
        yield (
            RATINGS,
            f"{n} of {len(labels)} labels are {label_text(label)} (reported above {_HIGH_SHARE:.0%}): rank "
            "by macro_agreement, and add items of the other kind",
        )


def narrow(gold: GoldSet) -> Findings:
    """A set that does not explain it does not load; here it is told as explained."""
    labels = [rating.label for rating in gold.ratings if rating.label is not None]
    if why := narrow_labels([float(label) for label in labels if gold.scale.graded], gold.scale):
        yield RATINGS, why


def off_step(gold: GoldSet) -> Findings:
    scale = gold.scale
    off = [
        rating
        for rating in gold.ratings
        if scale.step is not None and scale.numeric and rating.label is not None
        if not scale.on_step(float(rating.label))
    ]
    for rater, ratings in sorted(grouped(off, lambda rating: rating.rater).items()):
        yield (
            ratings,
            f"{rater!r} gave {len(ratings)} labels between the card's steps of {scale.step:g}, such as "
            f"{label_text(ratings[0].label)} for item {ratings[0].item_id!r}",
        )
