"""What is wrong with the labels of a set: items without one, thin splits and strata, constants, labels off
the scale, and raters with too little in common.
"""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass

from judgecal.goldset.card import SPLITS
from judgecal.goldset.gold_set import RATINGS, Findings, GoldSet
from judgecal.goldset.labels import label_text, narrow_labels
from judgecal.goldset.wording import grouped
from judgecal.records import Estimate
from judgecal.scale import Label
from judgecal.tables.columns import GOLD

_HIGH_SHARE = 0.8
_HIGH_AGREEMENT = 0.85  # labels spread evenly over the scale give 0.75 already
_NO_INTERVAL = "no interval: it describes these labels and estimates nothing beyond them"
_LEAST_GROUPS = 10  # below this there is no interval at all
_LEAST_STRATUM = 10  # below this a class or a third of the scale has no interval of its own
_TINY_STRATUM = 3
_THIRDS = ("low third", "middle third", "high third")


@dataclass(frozen=True, slots=True)
class Baseline:
    """The constant that does best in one metric, found in hindsight, and what it reaches."""

    label: Label
    estimate: Estimate


def baselines(gold: GoldSet) -> dict[str, Baseline]:
    """The best constant of each metric over all labelled items; empty where nothing is labelled.

    A constant is a label that one rater can give: a median of two between the steps of the scale is none.
    `accuracy`: share of the most frequent one, 0..1. `mean_agreement` (all but nominal): 1 - MAE / range of
    the median, 0..1. `accuracy@MARK` (scales with grades and a pass mark): share of the larger class, whose
    name is `pass` or `fail`.
    """
    labels = list(gold.labels.values())
    if not labels:
        return {}
    scale = gold.scale
    steps = [label for label in labels if isinstance(label, str) or scale.on_step(label)]
    label, count = Counter(steps or labels).most_common(1)[0]
    best = {"accuracy": Baseline(label, _share(gold, count, "the most frequent label"))}
    if scale.numeric:
        numbers = [float(label) for label in labels]
        steps_around = scale.steps_around(statistics.median_low(numbers))
        near = {step: statistics.fmean(abs(number - step) for number in numbers) for step in steps_around}
        middle, mae = min(near.items(), key=lambda pair: pair[1])
        value = _described(gold, 1.0 - mae / scale.span, "1 - MAE / range of the median label")
        best["mean_agreement"] = Baseline(middle, value)
        if scale.pass_at is not None and scale.kind != "binary":
            passed = sum(number >= scale.pass_at for number in numbers)
            larger = max(passed, len(numbers) - passed)
            best[f"accuracy@{scale.pass_at:g}"] = Baseline(
                "pass" if larger == passed else "fail", _share(gold, larger, "the larger class")
            )
    return best


def _share(gold: GoldSet, count: int, method: str) -> Estimate:
    return _described(gold, count / len(gold.labels) if gold.labels else None, f"share: {method}")


def _described(gold: GoldSet, value: float | None, method: str) -> Estimate:
    return Estimate(
        value,
        n=len(gold.labels),
        n_expected=len(gold.items),
        n_groups=gold.n_groups(item for item in gold.items if item.item_id in gold.labels),
        n_unscored=len(gold.items) - len(gold.labels),
        method=method,
        reason=_NO_INTERVAL if value is not None else "no item is labelled",
    )


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


def tiny_strata(gold: GoldSet) -> Findings:
    for split in SPLITS if gold.scale.numeric else ():  # else there is no macro_agreement
        strata = _strata(gold, split)
        filled, total = sum(count > 0 for _, count in strata), sum(count for _, count in strata)
        for stratum, count in strata:
            if 0 < count <= _TINY_STRATUM < total:
                yield (
                    split,
                    f"{count} items labelled {stratum} in {split} make 1/{filled} of its macro_agreement: "
                    "add items of that kind, or the number hangs on "
                    f"{'this one' if count == 1 else 'these few'}",
                )


def near_constant(gold: GoldSet) -> Findings:
    for metric, best in baselines(gold).items():
        value = best.estimate.value
        high = _HIGH_AGREEMENT if metric == "mean_agreement" else _HIGH_SHARE
        if value is not None and value > high:
            yield (
                RATINGS,
                f"saying {label_text(best.label)} every time would reach {metric} {value:.3f} over "
                f"{best.estimate.n} labels (reported above {high:g}): rank by macro_agreement, and add "
                "items of the other kind",
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
