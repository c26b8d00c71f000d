"""Documents cut into chunks: nothing is lost, nothing is longer than asked, and ids stay."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgecal.errors import InputError
from judgecal.goldset import GoldDocument
from judgecal.goldset.wording import sentence_spans
from judgecal.rag.retrieval.indexes import ChunkOptions, chunks_of

_PIECES = [*'aBé. !?\n\t…。\u00a0"(«😀1', "word", "Dr. ", "\n\n"]
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=60).map("".join)
OPTIONS = st.builds(
    lambda low, more, overlap: ChunkOptions(min=low, max=low + more, overlap=min(overlap, low + more)),
    st.integers(0, 30), st.integers(1, 30), st.integers(0, 20),
)  # fmt: skip


def document(text: str, name: str = "d") -> GoldDocument:
    return GoldDocument(name, None, text)


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


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
        if len(text[chunk.start : chunk.end].strip()) < options.least:
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


def test_overlap_repeats_whole_sentences() -> None:
    chunks = chunks_of([document("One two. Three four. Five six.")], ChunkOptions(min=1, max=12, overlap=12))
    assert [chunk.text for chunk in chunks] == ["One two. ", "One two. Three four. ", "Three four. Five six."]


def test_a_sentence_longer_than_max_is_cut_between_words() -> None:
    chunks = chunks_of([document("alpha beta gamma " + "x" * 25)], ChunkOptions(min=10, max=10))
    assert [chunk.text for chunk in chunks] == ["alpha beta ", "gamma ", "x" * 10, "x" * 10, "x" * 5]


def test_wrong_options_are_one_message() -> None:
    with pytest.raises(InputError) as refused:
        chunks_of([], ChunkOptions(min=5, max=0, overlap=3))
    assert len(refused.value.problems) == 3
