"""People's labels of rows that a judge judged, with the chance that each row was drawn with."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from judgecal.errors import InputError, listed
from judgecal.goldset import GoldSet
from judgecal.production.judged_table import JudgedTable
from judgecal.records import Item
from judgecal.stats.prediction_powered import LabelledRows
from judgecal.stats.sample import Floats, Ints


@dataclass(frozen=True)
class RowLabels:
    """The rows of a judged table that people labelled.

    Attributes:
        gold: the set that the labels are in.
        at: the rows' places in the table.
        label: on the people's scale.
        chance: with which each row was drawn; None where all rows were as likely.
        n_waiting: items of the set that have no label yet.
    """

    gold: GoldSet
    at: Ints
    label: Floats
    chance: Floats | None
    n_waiting: int

    def rows(self, values: Floats) -> LabelledRows:
        """With other values in the labels' place."""
        return LabelledRows(self.at, values, self.chance)


def read_labels(gold: GoldSet, table: JudgedTable) -> RowLabels:
    """The rows of a table that a set has labels of, with the chances of the draw.

    Raises:
        InputError: no item has a label, some are none of the table's rows, the set is curated, or a chance is
            missing.
    """
    items = [item for item in gold.items if item.item_id in gold.labels]
    if not items:
        raise InputError(f"gold set {gold.name}: none of its {len(gold.items)} items has a label yet")
    if gold.card.sampling == "curated":
        raise InputError(
            f"gold set {gold.name}: its card says that it is curated, and a rate takes labels drawn from these rows: "
            "leave --labels out to carry the lock's error rates over, or draw with judgecal gold sheet"
        )
    at, place = table.places(items)
    chances = _chances(gold, items)
    label = np.array([float(gold.labels[item.item_id]) for item in items])[place]
    return RowLabels(
        gold, at, label, None if chances is None else chances[place], len(gold.items) - len(items)
    )


def _chances(gold: GoldSet, items: list[Item]) -> Floats | None:
    """The recorded chances; None where no item has one.

    Of a stratum that is labelled in part, that part counts as drawn: sheets and the labelling page show a
    draw in random order, so what is labelled of it when people stop is a smaller draw of the same rows.
    """
    lacking = [item.item_id for item in items if item.inclusion_probability is None]
    if len(lacking) == len(items):
        if gold.card.sampling == "stratified":
            raise InputError(
                f"gold set {gold.name}: its card says that it was drawn by strata, and no item has an "
                "inclusion_probability: without them the labels cannot be weighed"
            )
        return None
    if lacking:
        raise InputError(
            f"gold set {gold.name}: {len(lacking)} of {len(items)} labelled items have no inclusion_probability, and "
            f"the others have ({listed(lacking)}): give it in items.jsonl, or keep them in a set of their own"
        )
    drawn, labelled = (Counter(item.inclusion_probability for item in own) for own in (gold.items, items))
    kept = {chance: labelled[chance] / drawn[chance] for chance in labelled}
    return np.array(
        [(item.inclusion_probability or 0.0) * kept[item.inclusion_probability] for item in items]
    )
