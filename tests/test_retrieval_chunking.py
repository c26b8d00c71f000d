"""Documents cut into chunks: nothing is lost, nothing is longer than asked, and ids stay."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judgecal.errors import InputError
from judgecal.goldset import Document
from judgecal.rag.retrieval.chunking import (
    ChunkOptions,
    best_children,
    chunks_of,
    sentences_of,
    splitter_named,
)

_PIECES = [*'aBé. !?\n\t…。\u00a0"(«😀1', "word", "Dr. ", "\n\n"]
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=60).map("".join)
OPTIONS = st.builds(
    lambda low, more, similar, overlap: ChunkOptions(low, low + more, similar, min(overlap, low + more)),
    st.integers(0, 30), st.integers(1, 30), st.sampled_from([0.0, 0.25, 2.0]), st.integers(0, 20),
)  # fmt: skip


def document(text: str, name: str = "d") -> Document:
    return Document(name, None, text)


def sentences(text: str, name: str = "plain") -> list[str]:
    return [text[start:end] for start, end in splitter_named(name)(text)]


@given(TEXTS)
def test_sentences_are_the_whole_text(text: str) -> None:
    assert "".join(sentences(text)) == text


@given(TEXTS)
@example("\u3000e.g. «\tD\u3000.")
@example('."\xa0B\xa0.é.')
def test_sentences_of_sentencex_are_the_whole_text(text: str) -> None:
    pytest.importorskip("sentencex")
    assert "".join(sentences(text, "sentencex:en")) == text


@given(TEXTS, OPTIONS)
def test_every_character_stands_in_exactly_one_chunk_and_none_is_too_long(
    text: str, options: ChunkOptions
) -> None:
    chunks = chunks_of([document(text)], options)
    assert "".join(text[chunk.start : chunk.end] for chunk in chunks) == (text if text.strip() else "")
    assert [chunk.chunk_id for chunk in chunks] == [f"d#{number}" for number in range(1, len(chunks) + 1)]
    for chunk in chunks:
        own = text[chunk.start : chunk.end]
        assert 1 <= len(own.strip()) <= options.max
        assert chunk.text.endswith(own) and chunk.text in text
        assert len(chunk.text) - len(own) <= options.overlap


@given(st.lists(TEXTS, max_size=4), OPTIONS)
def test_the_chunks_of_a_document_do_not_depend_on_the_others(
    texts: list[str], options: ChunkOptions
) -> None:
    documents = [document(text, str(number)) for number, text in enumerate(texts)]
    assert chunks_of(documents, options) == [
        chunk for one in documents for chunk in chunks_of([one], options)
    ]


@given(TEXTS, OPTIONS)
def test_a_chunk_is_smaller_than_min_only_where_the_next_sentence_does_not_fit(
    text: str, options: ChunkOptions
) -> None:
    chunks = chunks_of([document(text)], options)
    for chunk, following in itertools.pairwise(chunks):
        if len(text[chunk.start : chunk.end].strip()) < options.min:
            assert len(text[chunk.start : following.end].strip()) > options.max


def test_sentences_end_where_people_end_them() -> None:
    text = (
        "Dr. Ito paid 3.5 francs, e.g. for J. Bach. Did he? «Yes.» He left… and came back! See fig. 3.\n\nEnd"
    )
    assert [one.strip() for one in sentences(text)] == [
        "Dr. Ito paid 3.5 francs, e.g. for J. Bach.", "Did he?", "«Yes.»", "He left… and came back!", "See fig. 3.",
        "End",
    ]  # fmt: skip
    assert sentences("雨が降る。風も吹く。") == ["雨が降る。", "風も吹く。"]


def test_beyond_min_a_chunk_goes_on_while_the_next_sentence_speaks_of_the_same() -> None:
    rain, more, sun = (
        "The harbour floods in heavy rain. ",
        "Heavy rain floods the harbour. ",
        "Cats sleep at noon.",
    )
    text = rain + more + sun
    assert [chunk.text for chunk in chunks_of([document(text)], ChunkOptions(20, 200))] == [rain + more, sun]
    assert len(chunks_of([document(text)], ChunkOptions(20, 200, similar=2))) == 3
    assert len(chunks_of([document(text)], ChunkOptions(20, 40))) == 3  # max holds, however similar
    assert len(chunks_of([document(text)], ChunkOptions(200, 200))) == 1


def test_overlap_repeats_whole_sentences() -> None:
    chunks = chunks_of([document("One two. Three four. Five six.")], ChunkOptions(1, 12, 2, overlap=12))
    assert [chunk.text for chunk in chunks] == ["One two. ", "One two. Three four. ", "Three four. Five six."]


def test_a_sentence_longer_than_max_is_cut_between_words() -> None:
    chunks = chunks_of([document("alpha beta gamma " + "x" * 25)], ChunkOptions(10, 10))
    assert [chunk.text for chunk in chunks] == ["alpha beta ", "gamma ", "x" * 10, "x" * 10, "x" * 5]


def test_a_chunk_stands_where_its_best_child_stands() -> None:
    chunks = chunks_of([document("One two. Three four. Five six.")], ChunkOptions(12, 25, 2))
    children = sentences_of(chunks)
    assert [(child.text, child.parent) for child in children] == [
        ("One two.", 0),
        ("Three four.", 0),
        ("Five six.", 1),
    ]
    assert best_children([2, 1, 0], children, 2) == [2, 1]
    assert best_children([0, 1, 2], children, 1) == [0]


def test_wrong_options_are_one_message() -> None:
    with pytest.raises(InputError) as refused:
        chunks_of([], ChunkOptions(5, 0, -1, 3))
    assert len(refused.value.problems) == 4
    with pytest.raises(InputError, match=r"unknown sentence splitter 'sentencex': did you mean sentencex:en"):
        splitter_named("sentencex")
