"""Labels and raters: constants, the pass mark, labels off the scale or off the raters, too few shared
items."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations

from judgecal.goldset.finding import Checks, Findings, say
from judgecal.goldset.gold_set import RATINGS, GoldSet
from judgecal.goldset.labels import NARROW, narrow_labels
from judgecal.goldset.tie_breakers import tenth
from judgecal.records import Estimate, Rating
from judgecal.scale import Label
from judgecal.tables.columns import GOLD

_HIGH_SHARE = 0.8
_HIGH_AGREEMENT = 0.85  # labels spread evenly over the scale give 0.75 already
_MANY_AT_MARK = 0.25
_STEPS_AT_LEAST = 10  # on a coarser scale a step from the mark is no near miss
_NO_INTERVAL = "no interval: it describes these labels and estimates nothing beyond them"


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
    found = {"accuracy": Baseline(label, _share(gold, count, "the most frequent label"))}
    if scale.numeric:
        numbers = [float(label) for label in labels]
        steps_around = scale.steps_around(statistics.median_low(numbers))
        near = {step: statistics.fmean(abs(number - step) for number in numbers) for step in steps_around}
        middle, mae = min(near.items(), key=lambda pair: pair[1])
        value = _described(gold, 1.0 - mae / scale.span, "1 - MAE / range of the median label")
        found["mean_agreement"] = Baseline(middle, value)
        if scale.pass_at is not None and scale.kind != "binary":
            passed = sum(number >= scale.pass_at for number in numbers)
            larger = max(passed, len(numbers) - passed)
            found[f"accuracy@{scale.pass_at:g}"] = Baseline(
                "pass" if larger == passed else "fail", _share(gold, larger, "the larger class")
            )
    return found


def near_pass_mark(gold: GoldSet) -> tuple[float | None, Estimate]:
    """The distance that counts as near, on the scale, and the share of labels no farther from the pass mark.

    The distance is the card's step, or 5% of the range; None, and a reason in place of the share, where the
    scale has no mark of its own (binary, nominal) or none is fixed.
    """
    scale, n_expected = gold.scale, len(gold.items)
    if scale.pass_at is None or scale.kind in ("binary", "nominal"):
        why = "no pass mark on the labels' own scale"
        return None, Estimate(
            None, n=len(gold.labels), n_expected=n_expected, n_unscored=_unlabelled(gold), reason=why
        )
    within = scale.step or 0.05 * scale.span
    near = sum(abs(float(label) - scale.pass_at) <= within for label in gold.labels.values())
    return within, _share(gold, near, f"within {within:g} of {scale.pass_at:g}")


def _share(gold: GoldSet, count: int, method: str) -> Estimate:
    return _described(gold, count / len(gold.labels) if gold.labels else None, f"share: {method}")


def _described(gold: GoldSet, value: float | None, method: str) -> Estimate:
    return Estimate(
        value,
        n=len(gold.labels),
        n_expected=len(gold.items),
        n_groups=len({item.group for item in gold.items if item.item_id in gold.labels}),
        n_unscored=_unlabelled(gold),
        method=method,
        reason=_NO_INTERVAL if value is not None else "no item is labelled",
    )


def _unlabelled(gold: GoldSet) -> int:
    return len(gold.items) - len(gold.labels)


def _near_constant(gold: GoldSet) -> Findings:
    for metric, best in baselines(gold).items():
        value = best.estimate.value
        high = _HIGH_AGREEMENT if metric == "mean_agreement" else _HIGH_SHARE
        if value is not None and value > high:
            yield (
                RATINGS,
                f"a judge that always says {say(best.label)} reaches {metric} {value:.3f} over "
                f"{best.estimate.n} labels (reported above {high:g}): rank by macro_agreement, and add items "
                f"of the other kind",
            )


def _at_pass_mark(gold: GoldSet) -> Findings:
    within, share = near_pass_mark(gold)
    scale = gold.scale
    if within is None or share.value is None or scale.span / within < _STEPS_AT_LEAST:
        return
    if share.value > _MANY_AT_MARK:
        yield (
            RATINGS,
            f"{share.value:.0%} of {share.n} gold labels lie within {within:g} of the pass mark "
            f"{say(scale.pass_at)} (reported above {_MANY_AT_MARK:.0%}): one step decides pass or fail "
            "there, so numbers at the mark are shaky",
        )


def _narrow_labels(gold: GoldSet) -> Findings:
    """A set that does not explain it does not load; here it is told as explained."""
    numbers = (float(rating.label) for rating in gold.ratings if rating.label is not None)
    labels = list(numbers) if gold.scale.graded else []
    why = narrow_labels(labels, gold.scale)
    if why:
        yield RATINGS, why


def _off_step(gold: GoldSet) -> Findings:
    scale = gold.scale
    if scale.step is None or not scale.numeric:
        return
    off: defaultdict[str, list[Rating]] = defaultdict(list)
    for rating in gold.ratings:
        if rating.label is not None and not scale.on_step(float(rating.label)):
            off[rating.rater].append(rating)
    for rater, own in sorted(off.items()):
        yield (
            own,
            f"{rater!r} gave {len(own)} labels between the card's steps of {scale.step:g}, such as "
            f"{say(own[0].label)} for item {own[0].item_id!r}",
        )


def _between_categories(gold: GoldSet) -> Findings:
    if gold.scale.kind != "ordinal":
        return
    between = [item for item in gold.items if not float(gold.labels.get(item.item_id, 0)).is_integer()]
    if between:
        yield (
            between,
            f"the median of an even number of raters lies between two labels for {len(between)} items: "
            f"statistics on the scale's own categories cannot use it; add ratings by {GOLD!r} or by one more "
            f"rater",
        )


def _off_raters(gold: GoldSet) -> Findings:
    given: dict[str, list[Label]] = {}
    for rated in gold.ratings_by_rater.values():
        for item_id, label in rated.items():
            given.setdefault(item_id, []).append(label)
    for rating in gold.ratings:
        if rating.rater != GOLD or rating.label is None or rating.item_id not in given:
            continue
        labels = given[rating.item_id]
        if gold.scale.numeric:
            numbers, label = [float(other) for other in labels], float(rating.label)
            off = max(min(numbers) - label, label - max(numbers)) >= tenth(gold.scale) - 1e-9
        else:
            off = rating.label not in labels
        if off:
            measure = f" (outside their range by {tenth(gold.scale):g} or more)" if gold.scale.numeric else ""
            why = rating.reason or rating.note
            note = f"; its note: {why}" if why else "; it has no note: say why"
            yield (
                [rating],
                f"the adjudicated label of item {rating.item_id!r} is {say(rating.label)} and its raters "
                f"said {', '.join(map(say, labels))}{measure}{note}",
            )


_LEAST_SHARED = 30  # below this a rater is left out of the alt-test


def _thin_raters(gold: GoldSet) -> Findings:
    shared: defaultdict[str, set[str]] = defaultdict(set)
    for a, b in combinations(gold.raters, 2):
        both = gold.ratings_by_rater[a].keys() & gold.ratings_by_rater[b].keys()
        shared[a] |= both
        shared[b] |= both
    for rater in gold.raters:
        if len(shared[rater]) < _LEAST_SHARED:
            yield (
                RATINGS,
                f"{rater!r} shares {len(shared[rater])} items with another rater: below {_LEAST_SHARED} "
                "people's own agreement cannot be told",
            )


def _contested_raters(gold: GoldSet) -> Findings:
    for rater, found in gold.tie_breakers.items():
        yield (
            RATINGS,
            f"{rater!r} was {found.why}: this rater's agreement is no ceiling, and stands in none that "
            f"judgecal prints",
        )


def _saw_draft(gold: GoldSet) -> Findings:
    drafted: defaultdict[str, list[Rating]] = defaultdict(list)
    for rating in gold.ratings:
        if rating.saw_draft:
            drafted[rating.rater].append(rating)
    total = Counter(rating.rater for rating in gold.ratings)
    for rater, own in sorted(drafted.items()):
        yield (
            own,
            f"{rater!r} gave {len(own)} of {total[rater]} labels with a machine's label in sight: people "
            "lean towards what they are shown, so that machine's agreement with them flatters it",
        )


def _cannot_tell(gold: GoldSet) -> Findings:
    total = Counter(rating.rater for rating in gold.ratings)
    for rater, count in gold.cannot_tell.items():
        yield (
            [rating for rating in gold.ratings if rating.rater == rater and rating.label is None],
            f"{rater!r} could not tell {count} of {total[rater]} items: no label counts them; where the "
            "rubric is the cause, mend it",
        )


def _rubrics(gold: GoldSet) -> Findings:
    seen = Counter(rating.rubric_sha256[:12] for rating in gold.ratings if rating.rubric_sha256)
    if len(seen) > 1:
        counts = ", ".join(f"{count} by {sha}" for sha, count in sorted(seen.items()))
        yield (
            RATINGS,
            f"labels were given by {len(seen)} rubrics (sha256: {counts}): see whether they mean the same",
        )


LABEL_CHECKS: Checks = {
    "near_constant": _near_constant,
    "near_pass_mark": _at_pass_mark,
    NARROW: _narrow_labels,
    "off_step": _off_step,
    "between_categories": _between_categories,
    "gold_off_raters": _off_raters,
    "thin_rater": _thin_raters,
    "contested_rater": _contested_raters,
    "saw_draft": _saw_draft,
    "cannot_tell": _cannot_tell,
    "rubrics": _rubrics,
}
