"""How labelling goes: what is done, how sure a rate of these labels is, when it is enough; and what settling
changed.

The numbers are those of `gold agreement` and of a mean by group; they are looked at while labels come in, so
they say when enough are there and decide nothing.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from judgecal.experiment.drawn import drawing_weights
from judgecal.goldset import GOLD, GoldSet, common_label
from judgecal.goldset.tie_breakers import differ
from judgecal.records import Estimate, Item, Rating, Result
from judgecal.scale import Label
from judgecal.stats import reliability
from judgecal.stats.intervals import mean_estimate

OVERLAP_LEAST = 20
"""Items that two raters labelled, from which on their agreement is shown."""
MORE = 50
"""Labels further, for which the half width is foretold."""
HALF_WIDTH = 0.05
"""The half width, as a share of the scale, at which labels are enough unless something else is asked for."""


@dataclass(frozen=True, slots=True)
class RaterProgress:
    """One rater: labels, items of which it could not tell, the median time an item took, second looks and
    same ones."""

    n: int
    cannot_tell: int
    seconds: float | None = None
    second_looks: int = 0
    same: int = 0


@dataclass(frozen=True, slots=True)
class LabelProgress(Result):
    """What labelling has come to.

    Attributes:
        n_items: asked for; n_labelled: those of them that one of these raters has labelled.
        classes: label, or third of the scale -> labels of these raters.
        n_overlap: items that two of these raters labelled.
        agreement: Krippendorff's alpha of these raters; None before 20 items overlap.
        rate: the share of right answers, or the mean label as a share of the scale; None of a nominal scale.
        half_width: of the rate, of `level` 0.95; None while there is no interval.
        with_judge: whether the half widths are those of the rate that a judge's verdicts stand beside.
        half_width_more: with `n_more` labels more. target: what is asked for.
        enough: whether the half width is there.
    """

    set_: str
    n_items: int
    n_labelled: int
    raters: Mapping[str, RaterProgress]
    classes: Mapping[str, int]
    n_overlap: int
    agreement: Estimate | None
    rate: Estimate | None
    rate_of: str
    half_width: float | None
    half_width_more: float | None
    target: float
    enough: bool
    with_judge: bool = False
    scale: str = field(default="", metadata={"json": False})

    @property
    def n_more(self) -> int:
        """The labels that are looked ahead: as many as `MORE`, or as are left."""
        return min(MORE, self.n_items - self.n_labelled)


@dataclass(frozen=True, slots=True)
class Timing:
    """What the journal knows beside the ratings: seconds by rater, and second looks with those that said the
    same."""

    seconds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    second_looks: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def label_progress(
    gold: GoldSet,
    items: Sequence[Item],
    raters: Sequence[str],
    *,
    timing: Timing | None = None,
    target: float = HALF_WIDTH,
    judge_leaves: float = 1.0,
) -> LabelProgress:
    """Count and estimate.

    Args:
        gold: the set as its labels stand.
        items, raters: those of this labelling.
        target: the half width that is enough, 0..0.5 of the scale.
        judge_leaves: the part of the variance that a judge's verdicts leave, where the rate will have them
            beside it.
    """
    timing, asked = timing or Timing(), {item.item_id for item in items}
    ratings = [one for one in gold.ratings if one.item_id in asked and one.rater in raters]
    labels: dict[str, dict[str, Label]] = {rater: {} for rater in raters}
    for one in ratings:
        if one.label is not None:
            labels[one.rater][one.item_id] = one.label
    unclear = Counter(one.rater for one in ratings if one.label is None)
    people = {rater: own for rater, own in labels.items() if own}
    counts = Counter(item_id for own in people.values() for item_id in own)
    n_overlap = sum(count > 1 for count in counts.values())
    rate, rate_of, half = _rate(
        gold, [one for one in items if one.item_id in counts and one.item_id in gold.labels]
    )
    half = None if half is None else half * math.sqrt(judge_leaves)
    n, more = 0 if rate is None else rate.n, min(MORE, len(items) - len(counts))
    return LabelProgress(
        set_=gold.name,
        n_items=len(items),
        n_labelled=len(counts),
        raters={rater: _of_rater(rater, len(own), unclear[rater], timing) for rater, own in labels.items()},
        classes=_classes(gold, [label for own in labels.values() for label in own.values()]),
        n_overlap=n_overlap,
        agreement=_alpha(gold, people) if n_overlap >= OVERLAP_LEAST else None,
        rate=rate,
        rate_of=rate_of,
        half_width=half,
        half_width_more=None if half is None else half * math.sqrt(n / (n + more)),
        target=target,
        enough=half is not None and half <= target,
        with_judge=judge_leaves < 1.0,
        scale=str(gold.scale),
    )


def _of_rater(rater: str, n: int, cannot_tell: int, timing: Timing) -> RaterProgress:
    seconds = timing.seconds.get(rater, ())
    return RaterProgress(
        n,
        cannot_tell,
        statistics.median(seconds) if seconds else None,
        *timing.second_looks.get(rater, (0, 0)),
    )


def _classes(gold: GoldSet, labels: Sequence[Label]) -> dict[str, int]:
    """How many labels each class has; of a scale of many grades its thirds."""
    scale = gold.scale
    if scale.kind == "binary":
        names = {0.0: "no", 1.0: "yes"}
        return {name: sum(label == value for label in labels) for value, name in names.items()}
    if scale.graded and (scale.kind != "ordinal" or scale.span > 6):
        thirds = Counter(scale.stratum(float(label)) for label in labels)
        return {name: thirds[place] for place, name in enumerate(("low third", "middle third", "high third"))}
    counted = Counter(label if isinstance(label, str) else f"{label:g}" for label in labels)
    known = scale.categories or [
        f"{scale.low + step:g}" for step in range(int(scale.span) + 1) if scale.graded
    ]
    return {name: counted[name] for name in dict.fromkeys([*known, *sorted(counted)])}


def _alpha(gold: GoldSet, people: Mapping[str, Mapping[str, Label]]) -> Estimate | None:
    groups = {item.item_id: item.group for item in gold.items}
    shared = Counter(item_id for own in people.values() for item_id in own)
    both = {
        rater: {one: label for one, label in own.items() if shared[one] > 1} for rater, own in people.items()
    }
    both = {rater: own for rater, own in both.items() if own}
    return reliability(both, scale=gold.scale, groups=groups).get("krippendorff_alpha")


def _rate(gold: GoldSet, items: Sequence[Item]) -> tuple[Estimate | None, str, float | None]:
    """The rate that these labels give by themselves, what it is of, and half the width of its interval."""
    scale = gold.scale
    if not scale.numeric:
        return None, "", None
    labels = np.array([float(gold.labels[item.item_id]) for item in items])
    mark = 1.0 if scale.kind == "binary" else scale.pass_at
    values = (labels - scale.low) / scale.span if mark is None else (labels >= mark).astype(np.float64)
    rate_of = "mean label, as a share of the scale" if mark is None else "share that passes"
    chances = [item.inclusion_probability for item in items]
    known = [item for item, chance in zip(items, chances, strict=True) if chance is not None]
    weights = drawing_weights(gold, items) if len(known) == len(items) and items else None
    groups = [item.group for item in items]
    found = mean_estimate(values, groups, weights=weights)
    return found, rate_of, None if found.high is None or found.low is None else (found.high - found.low) / 2.0


@dataclass(frozen=True, slots=True)
class ConfirmedLabels:
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
    raters: Mapping[str, ConfirmedLabels]
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
        raters={rater: ConfirmedLabels(len(same), sum(same)) for rater, same in sorted(raters.items())},
        scale=str(gold.scale),
    )
