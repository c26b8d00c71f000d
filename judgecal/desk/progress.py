"""How far a labelling or an adjudication is, and the document that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from judgecal.desk.desk import Labelling
from judgecal.desk.label_queue import LabelQueue
from judgecal.goldset import GOLD, GoldSet
from judgecal.goldset.gold_set import differ
from judgecal.goldset.wording import grouped
from judgecal.records import Headline, Item, Rating, Result
from judgecal.report.document import Document, Section, Table
from judgecal.report.numbers import count, count_of


@dataclass(frozen=True, slots=True)
class RaterProgress:
    """One rater: labels given, items on which the rater could not tell, and items that are left."""

    n: int
    cannot_tell: int
    left: int


@dataclass(frozen=True, slots=True)
class LabelProgress(Result):
    """How far a labelling is; `n_labelled` of the items have a label of one of the raters."""

    set_: str
    n_items: int
    n_labelled: int
    raters: Mapping[str, RaterProgress]
    scale: str = field(default="", metadata={"json": False})


def label_progress(task: Labelling, gold: GoldSet, queue: LabelQueue) -> LabelProgress:
    """Count the labels of a labelling; `gold` is its set with the labels of now."""
    ids = {item.item_id for item in task.items}
    ratings = [rating for rating in gold.ratings if rating.item_id in ids and rating.rater in task.raters]
    given = Counter((rating.rater, rating.label is not None) for rating in ratings)
    raters = {
        rater: RaterProgress(given[rater, True], given[rater, False], queue.left(rater))
        for rater in task.raters
    }
    n_labelled = len({rating.item_id for rating in ratings if rating.label is not None})
    return LabelProgress(gold.name, len(task.items), n_labelled, raters, str(gold.scale))


def opinions_of(gold: GoldSet) -> dict[str, tuple[Rating, ...]]:
    """Return item id -> its ratings, for each item on which raters differ; "cannot tell" among them.

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


def contested(gold: GoldSet) -> Sequence[Item]:
    """Return the items on which raters differ and that nobody has adjudicated, in file order."""
    opinions, settled = opinions_of(gold), {rating.item_id for rating in gold.ratings if rating.rater == GOLD}
    return [item for item in gold.items if item.item_id in opinions and item.item_id not in settled]


def label_document(
    result: LabelProgress, gold: GoldSet, *, adjudicates: bool, following: str, again: str
) -> Document:
    """How far a labelling is.

    Args:
        gold: the set with the labels of now.
        following: the command that uses the labels, where nothing is to be settled first.
        again: the command that goes on with the labelling.
    """
    n_differ = len(contested(gold))
    rows = [
        (rater, count(given.n), count(given.cannot_tell), count(given.left))
        for rater, given in result.raters.items()
    ]
    table = Table(("rater", "labels", "cannot tell", "left"), rows, short=True)
    name, left = result.set_, any(given.left for given in result.raters.values())
    of = f"on which raters of {name} differ" if adjudicates else f"of {name}"
    because: tuple[str, ...] = ()
    if n_differ and not adjudicates and result.n_labelled:
        because = (f"Raters differ on {count_of(n_differ, 'item')}, and nobody has settled them.",)
        following = f"judgecal gold label {name} --adjudicate"
    elif left and result.n_labelled:
        because = ("The same command goes on where this ended.",)
        following = again if adjudicates else following
    verb = "is settled" if adjudicates else "has a label"
    if result.n_labelled != 1:
        verb = "are settled" if adjudicates else "have a label"
    sentence = f"{count(result.n_labelled)} of {count_of(result.n_items, 'item')} {of} {verb}."
    kind = "labelled" if result.n_labelled else "waits for labels"
    if not result.n_items:
        kind, sentence = "none", f"There is no item {of}."
    elif not result.n_labelled:
        following = again
        sentence = sentence if adjudicates else f"{sentence[:-1]}: the rest wait for people."
    headline = Headline(kind, sentence, because, next=following)
    about = f"{name}, scale {result.scale}"
    return Document(f"Labels of {name}", about, headline, [Section("labels", "Labels", "", [table])])
