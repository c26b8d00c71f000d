"""Indexes over chunks: the best first, equal ones in the order of the corpus, the same whenever it is
asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgecal.errors import InputError
from judgecal.rag.retrieval.bm25 import Bm25, tokenizer_named
from judgecal.rag.retrieval.indexes import index_named

TEXTS = [
    "The tram to the harbour leaves at noon.", "Harbour trams leave every hour.", "Bread is baked in the morning.",
    "The baker sells bread and rolls.", "A judge agrees with people.", "People label what the judge said.",
]  # fmt: skip
KINDS = ("bm25", "lsa", "lsa:3")
WORDS = st.lists(st.sampled_from(["tram", "harbour", "bread", "judge", "zebra", ""]), max_size=6).map(
    " ".join
)


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_on_the_matter_comes_first(kind: str) -> None:
    found = index_named(kind, TEXTS).search(["harbour trams", "baker of rolls", "what did people label?"], 2)
    assert (found.chunks[:, 0] // 2).tolist() == [0, 1, 2]  # two texts a matter
    assert kind == "lsa:3" or found.chunks[:, 0].tolist() == [1, 3, 5]
    assert found.chunks.shape == found.scores.shape == (3, 2)


def test_lsa_finds_what_shares_no_word_but_company() -> None:
    texts = [
        "car engine",
        "car engine wheel",
        "automobile engine wheel",
        "bread oven",
        "oven flour bread",
        "flour oven",
    ]
    found = index_named("lsa:2", texts).search(["car"], 6)
    assert sorted(found.chunks[0, :3].tolist()) == [0, 1, 2]
    assert index_named("bm25", texts).search(["car"], 6).scores[0, 2] == 0


@settings(max_examples=30, deadline=None)
@given(
    st.lists(WORDS, min_size=1, max_size=8),
    st.lists(WORDS, max_size=3),
    st.integers(1, 9),
    st.sampled_from(KINDS),
)
def test_ranks_hold(texts: list[str], queries: list[str], k: int, kind: str) -> None:
    found = index_named(kind, texts).search(queries, k)
    assert found.chunks.shape == (len(queries), min(k, len(texts)))
    whole = index_named(kind, texts).search(queries, len(texts))
    assert (whole.chunks[:, :k] == found.chunks).all() and (whole.scores[:, :k] == found.scores).all()
    for chunks, scores in zip(whole.chunks, whole.scores, strict=True):
        assert sorted(chunks) == list(range(len(texts)))
        assert list(zip(-scores, chunks, strict=True)) == sorted(zip(-scores, chunks, strict=True))


def test_bm25_scores_are_those_of_the_retriever_test() -> None:
    words = tokenizer_named("words")
    scores = Bm25.of(map(words, TEXTS)).scores([words("the harbour")])
    found = index_named("bm25", TEXTS).search(["the harbour"], len(TEXTS))
    assert (scores[0, found.chunks[0]] == found.scores[0]).all()
    assert (np.diff(found.scores[0]) <= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_equal_texts_stand_in_the_order_of_the_corpus(kind: str) -> None:
    texts = [*TEXTS, *TEXTS, *TEXTS]
    found = index_named(kind, texts).search(["harbour trams"], 3)
    assert found.chunks[0].tolist() == [1, 7, 13]
    assert len(set(found.scores[0].tolist())) == 1


def test_texts_without_words_score_nothing() -> None:
    for kind in KINDS:
        found = index_named(kind, ["", " ?"]).search(["tram", ""], 5)
        assert found.chunks.tolist() == [[0, 1], [0, 1]] and not found.scores.any()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bm52", "unknown index 'bm52': did you mean bm25"),
        ("bm25:3", "unknown index"),
        ("lsa:0", "1 to 10,000 dimensions"),
        ("lsa:x", "1 to 10,000 dimensions"),
    ],
)
def test_an_index_that_is_none_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        index_named(name, TEXTS)


def test_nothing_to_index_and_nothing_to_find_are_refused() -> None:
    with pytest.raises(InputError, match="no chunks to index"):
        index_named("bm25", [])
    for kind in KINDS:
        with pytest.raises(InputError, match="k must be at least 1 chunk, found 0"):
            index_named(kind, TEXTS).search(["tram"], 0)
