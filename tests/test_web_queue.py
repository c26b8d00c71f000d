"""Which item a rater sees next."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from judgecal.desk.label_journal import LabelQueue

ITEMS = [f"i{n:03d}" for n in range(200)]


def label_all(queue: LabelQueue, raters: list[str], *, seed: int = 0) -> list[tuple[str, str]]:
    """Everybody labels until nothing is left; whose turn it is is drawn."""
    rng, given = random.Random(seed), []
    open_raters = list(raters)
    while open_raters:
        rater = rng.choice(open_raters)
        found = queue.next(rater)
        if found is None:
            open_raters.remove(rater)
            continue
        queue.label(rater, found)
        given.append((rater, found))
    return given


@pytest.mark.parametrize(("overlap", "shared"), [(0.0, 0), (0.3, 60), (1.0, 200)])
def test_a_share_is_labelled_by_all_and_the_rest_once(overlap: float, shared: int) -> None:
    queue = LabelQueue(ITEMS, ["ann", "bob", "cyd"], overlap=overlap)
    given = label_all(queue, ["ann", "bob", "cyd"])
    counts = Counter(item for _, item in given)
    assert set(counts) == set(ITEMS) and len(set(given)) == len(given)
    assert Counter(counts.values()) == Counter({3: shared, 1: 200 - shared}) - Counter()
    assert queue.finished and all(queue.left(rater) == 0 for rater in queue.raters)


def test_what_is_labelled_wherever_one_stops_is_a_random_sample() -> None:
    """Of 20 items every fourth is of a kind; over many orders 8 labels hold it as often as chance has it."""
    items = [f"{'a' if n % 4 == 0 else 'b'}{n}" for n in range(20)]
    counts: Counter[str] = Counter()
    for seed in range(1_000):
        queue = LabelQueue(items, ["ann", "bob"], overlap=0.5, seed=seed)
        labelled: set[str] = set()
        rater = 0
        while len(labelled) < 8:
            who = ("ann", "bob")[rater % 2]
            found = queue.next(who)
            assert found is not None
            queue.label(who, found)
            labelled.add(found)
            rater += 1
        counts.update(labelled)
    assert sum(counts.values()) == 8_000
    assert all(330 <= counts[item] <= 470 for item in items)  # 400 expected, sd 15.5
