"""From a judged table to a rate by labels of the page, also where people stop half-way: the rate stays
valid."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from judgecal.desk.label_queue import LabelQueue
from judgecal.goldset import Card, GoldSet
from judgecal.production.judged import JudgedTable, read_labels
from judgecal.records import Item, Rating
from judgecal.scale import Scale
from judgecal.stats.prediction_powered import LabelledRows, corrected_mean

N, DRAWN, LABELLED = 2_000, {True: 40, False: 80}, 70


class Places:
    """A table whose rows are found by the item's id."""

    swapped = None

    @staticmethod
    def places(items: list[Item]) -> tuple[np.ndarray, np.ndarray]:
        return np.array([int(item.item_id) for item in items]), np.arange(len(items))


def half_way(seed: int) -> tuple[float, float, float, float]:
    """Draw by strata of the verdict, have two raters label the most of it, and estimate: value, low, high,
    truth."""
    rng = np.random.default_rng(seed)
    right = rng.random(N) < 0.7
    passed = rng.random(N) < np.where(right, 0.9, 0.25)
    chosen = {kind: rng.choice(np.flatnonzero(passed == kind), n, replace=False) for kind, n in DRAWN.items()}
    chance = {kind: n / int((passed == kind).sum()) for kind, n in DRAWN.items()}
    items = [
        Item(str(row), str(row), "why?", str(row), inclusion_probability=chance[kind])
        for kind, rows in chosen.items()
        for row in rows.tolist()
    ]
    queue, ratings = LabelQueue([item.item_id for item in items], ["ann", "bob"], overlap=0.3, seed=seed), []
    turns, labelled = random.Random(seed), set[str]()
    while len(labelled) < LABELLED:
        rater = turns.choice(("ann", "bob", "bob"))
        found = queue.next(rater)
        assert found is not None
        queue.label(rater, found)
        labelled.add(found)
        ratings.append(Rating(found, rater, float(right[int(found)])))
    card = Card("drawn", Scale.parse("binary"), sampling="stratified")
    gold = GoldSet("drawn", Path(), card, tuple(items), tuple(ratings), (), "")
    table: JudgedTable = Places()  # type: ignore[assignment]
    labels = read_labels(gold, table)
    rows = LabelledRows(labels.at, labels.label, labels.chance)
    assert float((1.0 / rows.chance).sum()) == pytest.approx(N)  # type: ignore[operator]
    estimate = corrected_mean(passed.astype(float), np.arange(N), rows).estimate
    assert estimate.value is not None and estimate.low is not None and estimate.high is not None
    return estimate.value, estimate.low, estimate.high, float(right.mean())


def test_a_rate_of_what_was_labelled_when_people_stopped_is_right() -> None:
    found = np.array([half_way(seed) for seed in range(200)])
    off = found[:, 0] - found[:, 3]
    assert abs(off.mean()) <= 3.0 * off.std() / np.sqrt(len(off))
    covered = float(((found[:, 1] <= found[:, 3]) & (found[:, 3] <= found[:, 2])).mean())
    assert covered >= 0.90  # 0.95 asked for; with 200 draws its error is 0.015
