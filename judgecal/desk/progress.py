"""How far a labelling or an adjudication is, and the document that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from judgecal.desk.desk import Labelling
from judgecal.desk.label_journal import LabelQueue
from judgecal.goldset import GOLD, GoldSet
from judgecal.goldset.gold_set import differ
from judgecal.goldset.wording import grouped
from judgecal.records import Headline, Item, Rating, Result
from judgecal.report.document import Document, Grid, Section
from judgecal.report.wording import count, count_of


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
    """From a Labelling, a GoldSet that has the labels of now, and a LabelQueue, return the LabelProgress."""
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
    """Return item id -> tuple of its Ratings, for each item of a GoldSet on which raters differ.

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
    """Return the Items of a GoldSet on which raters differ and that nobody has adjudicated."""
    opinions, settled = opinions_of(gold), {rating.item_id for rating in gold.ratings if rating.rater == GOLD}
    return [item for item in gold.items if item.item_id in opinions and item.item_id not in settled]


def label_document(
    result: LabelProgress, gold: GoldSet, *, adjudicates: bool, following: str, again: str
) -> Document:
    """From a LabelProgress, a GoldSet, whether it adjudicates and two commands (texts), return a Document.

    `following` is the command that uses the labels, `again` the one that goes on with the labelling.
    """
    rows = [
        (rater, count(given.n), count(given.cannot_tell), count(given.left))
        for rater, given in result.raters.items()
    ]
    table = Grid(("rater", "labels", "cannot tell", "left"), rows, short=True)
    section = Section("labels", "Labels", "", [table])
    name, n_differ = result.set_, 0 if adjudicates else len(contested(gold))
    which, verb = (
        (f"on which raters of {name} differ", "settled") if adjudicates else (f"of {name}", "labelled")
    )
    sentence = f"{count(result.n_labelled)} of {count_of(result.n_items, 'item')} {which} are {verb}."
    kind, because, goes_on = "labelled", "", adjudicates and result.raters[GOLD].left
    if not result.n_items:
        kind, sentence = "none", f"There is no item {which}."
    elif not result.n_labelled:
        kind, goes_on = "waits for labels", True
    elif n_differ:
        because = f"Raters differ on {count_of(n_differ, 'item')}, and nobody has settled them."
        following = f"judgecal gold label {name} --adjudicate"
    elif any(given.left for given in result.raters.values()):
        because = "The same command goes on where this ended."
    following = again if goes_on else following
    headline = Headline(kind, sentence, tuple(filter(None, [because])), next=following)
    return Document(f"Labels of {name}", f"{name}, scale {result.scale}", headline, [section])
