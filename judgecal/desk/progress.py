"""How labelling goes: what is done, how sure a rate of these labels is, when it is enough; and what settling
changed.

The numbers are those of `gold check` and of a mean by group; they are looked at while labels come in, so
they say when enough are there and decide nothing. Below them the documents of `gold label` and `gold
adjudicate`.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from judgecal.experiment.agreement_table import drawing_weights
from judgecal.goldset import GOLD, GoldSet, common_label
from judgecal.goldset.gold_set import differ
from judgecal.goldset.labels import label_text
from judgecal.goldset.wording import grouped
from judgecal.records import Estimate, Headline, Item, Rating, Result
from judgecal.report.document import Block, Bullets, Document, Section, Table
from judgecal.report.numbers import DASH, count, count_of, estimate, percent
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
    """One rater."""

    n: int  # labels
    cannot_tell: int  # items of which it could not tell
    seconds: float | None = None  # the median time an item took
    second_looks: int = 0
    same: int = 0  # of these, that said the same again


@dataclass(frozen=True, slots=True)
class LabelProgress(Result):
    """What labelling has come to."""

    set_: str
    n_items: int  # asked for
    n_labelled: int  # those of them that one of these raters has labelled
    raters: Mapping[str, RaterProgress]
    classes: Mapping[str, int]  # label, or third of the scale -> labels of these raters
    n_overlap: int  # items that two of these raters labelled
    agreement: Estimate | None  # Krippendorff's alpha of these raters; None before 20 items overlap
    rate: (
        Estimate | None
    )  # share of right answers, or mean label as a share of the scale; None of a nominal one
    rate_of: str
    half_width: float | None  # of the rate, of `level` 0.95; None while there is no interval
    half_width_more: float | None  # with `n_more` labels more
    target: float  # what is asked for
    enough: bool  # whether the half width is there
    with_judge: bool = False  # whether the half widths are of the rate that a judge's verdicts stand beside
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
    timing, item_ids = timing or Timing(), {item.item_id for item in items}
    ratings = [rating for rating in gold.ratings if rating.item_id in item_ids and rating.rater in raters]
    labels: dict[str, dict[str, Label]] = {rater: {} for rater in raters}
    for rating in ratings:
        if rating.label is not None:
            labels[rating.rater][rating.item_id] = rating.label
    unclear = Counter(rating.rater for rating in ratings if rating.label is None)
    counts = Counter(item_id for of_rater in labels.values() for item_id in of_rater)
    n_overlap, alpha = sum(n > 1 for n in counts.values()), None
    if n_overlap >= OVERLAP_LEAST:
        both = {
            rater: {item_id: label for item_id, label in of_rater.items() if counts[item_id] > 1}
            for rater, of_rater in labels.items()
        }
        both = {rater: of_rater for rater, of_rater in both.items() if of_rater}
        groups = {item.item_id: item.group for item in gold.items}
        alpha = reliability(both, scale=gold.scale, groups=groups).get("krippendorff_alpha")
    labelled = [item for item in items if item.item_id in counts and item.item_id in gold.labels]
    rate, rate_of = _rate(gold, labelled)
    half = more = None
    if rate is not None and rate.low is not None and rate.high is not None:
        half = (rate.high - rate.low) / 2.0 * math.sqrt(judge_leaves)
        more = half * math.sqrt(rate.n / (rate.n + min(MORE, len(items) - len(counts))))
    of_raters = {}
    for rater, of_rater in labels.items():
        seconds, looks = timing.seconds.get(rater, ()), timing.second_looks.get(rater, (0, 0))
        median = statistics.median(seconds) if seconds else None
        of_raters[rater] = RaterProgress(len(of_rater), unclear[rater], median, *looks)
    return LabelProgress(
        set_=gold.name,
        n_items=len(items),
        n_labelled=len(counts),
        raters=of_raters,
        classes=_classes(gold, [label for of_rater in labels.values() for label in of_rater.values()]),
        n_overlap=n_overlap,
        agreement=alpha,
        rate=rate,
        rate_of=rate_of,
        half_width=half,
        half_width_more=more,
        target=target,
        enough=half is not None and half <= target,
        with_judge=judge_leaves < 1.0,
        scale=str(gold.scale),
    )


def _classes(gold: GoldSet, labels: Sequence[Label]) -> dict[str, int]:
    """How many labels each class has; of a scale of many grades its thirds."""
    scale = gold.scale
    if scale.kind == "binary":
        return {name: sum(label == value for label in labels) for value, name in ((0.0, "no"), (1.0, "yes"))}
    if scale.graded and (scale.kind != "ordinal" or scale.span > 6):
        thirds = Counter(scale.stratum(float(label)) for label in labels)
        return {name: thirds[place] for place, name in enumerate(("low third", "middle third", "high third"))}
    counted = Counter(map(label_text, labels))
    grades = range(int(scale.span) + 1) if scale.graded else ()
    known = scale.categories or [f"{scale.low + step:g}" for step in grades]
    return {name: counted[name] for name in dict.fromkeys([*known, *sorted(counted)])}


def _rate(gold: GoldSet, items: Sequence[Item]) -> tuple[Estimate | None, str]:
    """The rate that these labels give by themselves, and what it is of."""
    scale = gold.scale
    if not scale.numeric:
        return None, ""
    labels = np.array([float(gold.labels[item.item_id]) for item in items])
    mark = 1.0 if scale.kind == "binary" else scale.pass_at
    values = (labels - scale.low) / scale.span if mark is None else (labels >= mark).astype(np.float64)
    rate_of = "mean label, as a share of the scale" if mark is None else "share that passes"
    drawn = bool(items) and all(item.inclusion_probability is not None for item in items)
    weights = drawing_weights(gold, items) if drawn else None
    return mean_estimate(values, [item.group for item in items], weights=weights), rate_of


# --- settling


@dataclass(frozen=True, slots=True)
class ConfirmedLabels:
    """Of `n` labels of a rater on settled items, `same` are those that the adjudicated label confirms."""

    n: int
    same: int


@dataclass(frozen=True, slots=True)
class Adjudication(Result):
    """What adjudicating a set has come to."""

    set_: str
    n_differ: int  # items on which raters differ, settled ones among them
    n_left: int  # those that nobody has settled
    n_settled: int  # with an adjudicated label
    n_cannot_tell: int  # those on which the adjudicator could not tell
    n_changed: int  # settled ones whose gold label is another than the raters' majority or median
    n_ties: int  # settled ones that had no gold label, as the raters tied
    raters: Mapping[str, ConfirmedLabels]
    scale: str = field(default="", metadata={"json": False})


def opinions_of(gold: GoldSet) -> dict[str, tuple[Rating, ...]]:
    """Item id -> what people said, for each item on which they differ; those who could not tell among them.

    Two labels differ where they are other words, or lie a step and a tenth of the range apart.
    """
    of_people = (rating for rating in gold.ratings if rating.rater != GOLD)
    by_item = grouped(of_people, lambda rating: rating.item_id)
    opinions = {}
    for item in gold.items:
        ratings = by_item.get(item.item_id, [])
        labels = [rating.label for rating in ratings if rating.label is not None]
        if len(labels) > 1 and differ(labels, gold.scale):
            ratings.sort(key=lambda rating: (rating.label is None, str(rating.label), rating.note or ""))
            opinions[item.item_id] = tuple(ratings)
    return opinions


def contested(gold: GoldSet, opinions: Mapping[str, object] | None = None) -> tuple[Item, ...]:
    """The items on which people differ and that nobody has adjudicated, in file order."""
    opinions = opinions_of(gold) if opinions is None else opinions
    settled = {rating.item_id for rating in gold.ratings if rating.rater == GOLD}
    return tuple(item for item in gold.items if item.item_id in opinions and item.item_id not in settled)


def adjudication(gold: GoldSet) -> Adjudication:
    """Count what was settled and what that changed."""
    opinions = opinions_of(gold)
    given = {rating.item_id: rating.label for rating in gold.ratings if rating.rater == GOLD}
    given = {item_id: label for item_id, label in given.items() if item_id in opinions}
    settled = {item_id: label for item_id, label in given.items() if label is not None}
    n_changed = n_ties = 0
    raters: dict[str, list[bool]] = {}
    for item_id, label in settled.items():
        opinion = {one.rater: one.label for one in opinions[item_id] if one.label is not None}
        before = common_label([*opinion.values()], gold.scale)
        n_ties += before is None
        n_changed += before is not None and before != label
        for rater, given_label in opinion.items():
            raters.setdefault(rater, []).append(not differ([given_label, label], gold.scale))
    return Adjudication(
        set_=gold.name,
        n_differ=len(opinions),
        n_left=len(opinions) - len(given),
        n_settled=len(settled),
        n_cannot_tell=len(given) - len(settled),
        n_changed=n_changed,
        n_ties=n_ties,
        raters={rater: ConfirmedLabels(len(same), sum(same)) for rater, same in sorted(raters.items())},
        scale=str(gold.scale),
    )


# --- documents


def label_document(result: LabelProgress, n_differ: int, *, following: str, again: str) -> Document:
    """How labelling stands.

    Args:
        n_differ: items on which raters differ and that nobody has settled.
        following: what the labels are for, where nothing is to be settled first.
        again: the command that goes on with the labelling.
    """
    rows = []
    for rater, given in result.raters.items():
        seconds = DASH if given.seconds is None else f"{given.seconds:.0f}"
        same = f"{given.same} of {given.second_looks}" if given.second_looks else DASH
        rows.append((rater, count(given.n), count(given.cannot_tell), seconds, same))
    header = ("rater", "labels", "cannot tell", "seconds an item", "same on a second look")
    blocks: list[Block] = [Table(header, rows, short=True)]
    total = sum(result.classes.values())
    if total:
        classes = [(name, count(n), percent(n / total)) for name, n in result.classes.items()]
        blocks.append(Table(("label", "given", "share"), classes, short=len(classes) <= 5))
    facts = []
    overlap = count_of(result.n_overlap, "item")
    if len(result.raters) > 1 and result.agreement is None:
        needed = f"it takes {OVERLAP_LEAST} before their agreement says anything"
        facts.append(f"{overlap} labelled by two or more: {needed}.")
    elif len(result.raters) > 1:
        alpha = estimate(result.agreement, 2)
        facts.append(f"Krippendorff's alpha of the raters: {alpha}, on {overlap}.")
    if result.half_width is not None and result.half_width_more is not None and result.rate is not None:
        then = f"; {count_of(result.n_more, 'label')} more: ±{100.0 * result.half_width_more:.1f}"
        known = "known with the judge's verdicts beside them" if result.with_judge else "known"
        facts.append(
            f"By the labels alone, the rate ({result.rate_of}) is {percent(result.rate.value)}, {known} "
            f"to ±{100.0 * result.half_width:.1f} points{then if result.n_more else ''}."
        )
    blocks.append(Bullets(facts, short=True))
    section = Section("labels", "Labels", "Is enough labelled?", blocks)
    about = f"{result.set_}, scale {result.scale}"
    headline = _label_headline(result, n_differ, following=following, again=again)
    return Document(f"Labels of {result.set_}", about, headline, [section])


def _label_headline(result: LabelProgress, n_differ: int, *, following: str, again: str) -> Headline:
    left = result.n_items - result.n_labelled
    if not result.n_items:
        return Headline("none", f"Nothing in {result.set_} is left to label this way.", next=following)
    done = f"{count(result.n_labelled)} of {count_of(result.n_items, 'item')} of {result.set_}"
    verb = "has" if result.n_labelled == 1 else "have"
    if not result.n_labelled:
        return Headline("waits for labels", f"{done} have a label: the rest wait for people.", next=again)
    because = []
    if n_differ:
        because.append(f"Raters differ on {count_of(n_differ, 'item')}, and nobody has settled them.")
        following = f"judgecal gold adjudicate {result.set_}"
    elif left and not result.enough:
        because.append(f"{count(left)} more are left: the same command goes on where this ended.")
    if result.enough and left:
        because.append(f"The rate is known to ±{100.0 * result.target:g} points, as was asked for.")
    return Headline("labelled", f"{done} {verb} a label.", tuple(because), next=following)


def adjudicated_document(result: Adjudication) -> Document:
    """What settling changed."""
    rows = [
        (rater, count(labels.same), count(labels.n), percent(labels.same / labels.n))
        for rater, labels in result.raters.items()
    ]
    blocks: list[Block] = []
    if rows:
        title = "How many labels of each rater the adjudicated label confirms, on the settled items"
        blocks.append(Table(("rater", "confirmed", "of", "share"), rows, title=title, short=True))
    facts = []
    if result.n_ties:
        facts.append(f"{count_of(result.n_ties, 'item')} had no gold label before, as the raters tied.")
    if result.n_cannot_tell:
        unclear = count_of(result.n_cannot_tell, "item")
        facts.append(f"On {unclear} the adjudicator could not tell: they stay as they were.")
    blocks.append(Bullets(facts, short=True))
    section = Section("settled", "Settled", "What the adjudicator decided.", blocks)
    name, differing = result.set_, count_of(result.n_differ, "item")
    score, adjudicate = f"judgecal score --gold {name}", f"judgecal gold adjudicate {name}"
    changed: tuple[str, ...] = ()
    if result.n_settled:
        n_changed = f"{count(result.n_changed)} of {count(result.n_settled)} settled labels"
        changed = (f"{n_changed} differ from the raters' own.",)
    if not result.n_differ:
        headline = Headline("none", f"Raters differ on no item of {name}.", next=score)
    elif result.n_left:
        what = f"{count(result.n_left)} of {differing} on which raters of {name} differ are open."
        headline = Headline("open", what, changed, next=adjudicate)
    else:
        what = f"All {differing} on which raters of {name} differ are settled."
        headline = Headline("settled", what, changed, next=score)
    return Document(f"Adjudication of {name}", f"{name}, scale {result.scale}", headline, [section])
