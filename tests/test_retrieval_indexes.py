"""Indexes: BM25 against rank-bm25 itself, every score the same to the last bit, and by hand; any index ranks the
best first, equal ones in the order of the corpus, the same whenever it is asked."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from judgecal.errors import InputError
from judgecal.rag.retrieval.indexes import Bm25, Bm25Index, embedding_model, ranks_of, top_k, words_of

DRAWN = st.lists(st.sampled_from(["tram", "harbour", "bread", "judge", "zebra", ""]), max_size=6).map(
    " ".join
)
SCORES = np.array([[2.0, 5.0, 2.0, 2.0], [0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0]])


def made_up(documents: int, queries: int, seed: int = 7) -> tuple[list[list[str]], list[list[str]]]:
    """Words by Zipf's law, so that some stand in most documents; queries repeat words and use unknown
    ones."""
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(400)]
    weights = [1 / (number + 1) for number in range(400)]
    corpus = [rng.choices(words, weights, k=rng.choice((0, 3, 40, 200))) for _ in range(documents)]
    asked = [[*rng.choices(words, weights, k=12), "nowhere"] for _ in range(queries)]
    asked[0] = ["w1", "w1", "w1", "w7", "w1"]
    asked[1] = []
    asked[2] = ["nowhere", "never"]
    return corpus, asked


def assert_same_scores(corpus: list[list[str]], queries: list[list[str]]) -> None:
    theirs = BM25Okapi(corpus)
    for row, query in zip(Bm25.of(corpus).scores(queries), queries, strict=True):
        assert row.tobytes() == (theirs.get_scores(query) + 0.0).tobytes()


def test_scores_are_those_of_rank_bm25_to_the_last_bit() -> None:
    assert_same_scores(*made_up(150, 60))


def test_a_score_by_hand() -> None:
    # Three documents of 2, 1 and 3 words: mean 2. "sun" stands in one of three: idf = ln 2.5 - ln 1.5; "rain" too.
    # "sky" stands in two: ln 1.5 - ln 2.5 < 0, so it counts epsilon = 1/4 of the mean (x + x - x) / 3 of all three.
    # Document 0 holds "sun" once among 2 words: 1 * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 2 / 2)) = 2.5 / 2.5 = 1.
    index = Bm25.of([["sun", "sky"], ["sky"], ["rain", "rain", "rain"]])
    idf = math.log(2.5) - math.log(1.5)
    assert index.scores([["sun"]])[0].tolist() == pytest.approx([idf, 0.0, 0.0])
    assert index.scores([["sky"]])[0][0] == pytest.approx(0.25 * idf / 3)
    # Three times among 3 words: 3 * 2.5 / (3 + 1.5 * (0.25 + 0.75 * 3 / 2)) = 7.5 / 5.0625.
    assert index.scores([["rain"]])[0][2] == pytest.approx(idf * 7.5 / 5.0625)


def test_the_rank_counts_higher_scores_and_equal_ones_before_it() -> None:
    ranks = ranks_of(SCORES, np.array([2, 3, 0]))
    assert ranks.tolist() == [3, 4, 4]  # the 5, then the 2 in front of it; the three zeros before it


def test_the_best_come_in_order_and_ties_in_the_order_of_the_corpus() -> None:
    assert top_k(SCORES, 3).tolist() == [[1, 0, 2], [0, 1, 2], [3, 2, 1]]
    assert top_k(SCORES, 9).shape == (3, 4)


def test_words_are_lower_cased_runs_of_letters_and_digits() -> None:
    assert words_of("The pump's FILTERS,  no. 3") == ["the", "pump", "s", "filters", "no", "3"]


@settings(max_examples=30, deadline=None)
@given(st.lists(DRAWN, min_size=1, max_size=8), st.lists(DRAWN, max_size=3), st.integers(1, 9))
def test_ranks_hold(texts: list[str], queries: list[str], k: int) -> None:
    chunks, scores = Bm25Index(texts).search(queries, k)
    assert chunks.shape == (len(queries), min(k, len(texts)))
    every, every_score = Bm25Index(texts).search(queries, len(texts))
    assert (every[:, :k] == chunks).all() and (every_score[:, :k] == scores).all()
    for row, of_row in zip(every, every_score, strict=True):
        assert sorted(row) == list(range(len(texts)))
        assert list(zip(-of_row, row, strict=True)) == sorted(zip(-of_row, row, strict=True))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bm52", "unknown index 'bm52': did you mean bm25"),
        ("bm25:3", "unknown index"),
        ("embed:", "name a model"),
    ],
)
def test_an_index_that_is_none_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        embedding_model(name)
