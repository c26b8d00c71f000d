"""Documents cut into chunks: whole sentences up to a size, and beyond it while the matter stays the same.

A chunk takes sentences until it has `min` characters. From there on it takes the next one only while that
shares enough of its words with the chunk, or of its meaning where there are vectors, and never beyond `max`.
All of this looks at one document alone, so the chunks of a document, and their ids, are the same whatever
else is in the corpus.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from judgecal.errors import not_installed, refuse, unknown_name
from judgecal.goldset import Document
from judgecal.goldset.wording import Span, sentence_spans
from judgecal.rag.retrieval.indexes import Vectors, tokenizer_named

Splitter = Callable[[str], list[Span]]
"""From a text to its sentences, in order, each with the white space behind it: together they are the text."""

_SENTENCEX = "sentencex:"
_WIDE_SPACE = re.compile(r"[^\S\x00-\x7f]")
_SHORTEST_TERM = 4  # characters: shorter words are mostly grammar, in most languages written with spaces


def splitter_named(name: str) -> Splitter:
    """Find a splitter: `plain`, or `sentencex:LANGUAGE` (Wikimedia's rules, such as en, de)."""
    if name == "plain":
        return sentence_spans
    language = name.removeprefix(_SENTENCEX)
    if not name.startswith(_SENTENCEX) or not re.fullmatch("[a-z]{2,3}", language):
        raise unknown_name("sentence splitter", name, ["plain", f"{_SENTENCEX}en"])
    try:
        import sentencex
    except ModuleNotFoundError as error:
        raise not_installed(f"{name} needs", "sentencex", "sentences", instead="use plain") from error
    # It panics behind a space of several bytes, as between an initial and a name; a plain one is as long.
    return lambda text: [
        (sentence["start_index"], sentence["end_index"])
        for sentence in sentencex.get_sentence_boundaries(language, _WIDE_SPACE.sub(" ", text))
    ]


@dataclass(frozen=True, slots=True)
class ChunkOptions:
    """How documents are cut. Sizes are characters, without the white space at a chunk's ends."""

    min: int = 800  # a chunk takes sentences until it has as many
    # No chunk has more, but for its overlap; a longer sentence is cut between words, a longer word within.
    max: int = 1200
    # Beyond `min` the next sentence is taken where at least this share of its terms (words of four characters
    # and more) stands in the chunk already; above 1: never.
    similar: float = 0.25
    overlap: int = 0  # at most so many characters of the sentences before a chunk stand at its start too
    sentences: str = "plain"  # the splitter

    def check(self) -> None:
        """Refuse what makes no chunks."""
        wanted = {
            f"min must be at least 0 characters, found {self.min}": self.min >= 0,
            f"max must be at least 1 character, found {self.max}": self.max >= 1,
            f"min must not be above max, found {self.min} and {self.max}": self.min <= self.max,
            f"similar must be a share of terms, at least 0, found {self.similar}": self.similar >= 0,
            f"overlap must be 0 to max ({self.max}) characters, found {self.overlap}": 0
            <= self.overlap
            <= self.max,
        }
        refuse([f"chunk: {problem}" for problem, holds in wanted.items() if not holds])
        splitter_named(self.sentences)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document; the characters of its chunks follow on each other."""

    chunk_id: str  # `document_id#n`, n from 1 in the order of the document
    document_id: str
    title: str | None
    start: int  # in the document's text, without the overlap
    end: int
    text: str  # with the overlap before it where there is one


def chunks_of(
    documents: Iterable[Document], options: ChunkOptions | None = None, vectors: Vectors | None = None
) -> list[Chunk]:
    """Cut documents into chunks, in their order; a document of white space alone has none.

    Every character of any other document stands in exactly one chunk, but for overlap.

    Args:
        vectors: one of each text of `pieces_of`, in their order. `similar` is then the least cosine of a
            sentence to the mean of those in the chunk.
    """
    options = options or ChunkOptions()
    chunks, at = list[Chunk](), 0
    for document, pieces in _pieces(documents, options):
        own = None if vectors is None else vectors[at : at + len(pieces)]
        chunks += _cut(document, pieces, options, own)
        at += len(pieces)
    return chunks


def pieces_of(documents: Iterable[Document], options: ChunkOptions) -> list[str]:
    """The sentences that chunks are made of, in their order, each without the white space around it."""
    found = _pieces(documents, options)
    return [document.text[slice(*piece)].strip() for document, pieces in found for piece in pieces]


def _pieces(documents: Iterable[Document], options: ChunkOptions) -> Iterator[tuple[Document, list[Span]]]:
    """Each document that is not blank, with its sentences, cut where they are longer than a chunk may be."""
    options.check()
    split = splitter_named(options.sentences)
    for document in documents:
        text = document.text
        if text.strip():
            spans = [piece for span in split(text) for piece in _no_longer(text, span, options.max)]
            yield document, _joined(text, spans)


def _cut(
    document: Document, pieces: Sequence[Span], options: ChunkOptions, vectors: Vectors | None
) -> Iterator[Chunk]:
    text, first = document.text, 0
    for number, last in enumerate(_ends_of_chunks(text, pieces, options, vectors), 1):
        lead = first
        while lead > 0 and pieces[first][0] - pieces[lead - 1][0] <= options.overlap:
            lead -= 1
        start, end = pieces[first][0], pieces[last][1]
        name = f"{document.document_id}#{number}"
        yield Chunk(name, document.document_id, document.title, start, end, text[pieces[lead][0] : end])
        first = last + 1


def _no_longer(text: str, span: Span, most: int) -> Iterator[Span]:
    """A sentence, cut between words, or within one that is longer itself, where it is longer than `most`."""
    start, end = span
    sentence = text[start:end]
    begin, stop = end - len(sentence.lstrip()), start + len(sentence.rstrip())
    while stop - begin > most:
        cut = begin + most
        if not text[cut].isspace():
            cut = next((place for place in range(cut - 1, begin, -1) if text[place].isspace()), cut)
        while text[cut].isspace():  # white space stays with what it stands behind
            cut += 1
        yield start, cut
        start = begin = cut
    yield start, end


def _joined(text: str, spans: Sequence[Span]) -> list[Span]:
    """Sentences, with those of white space alone added to the one before them, or to the first."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and (not text[start:end].strip() or not text[slice(*joined[-1])].strip()):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _ends_of_chunks(
    text: str, pieces: Sequence[Span], options: ChunkOptions, vectors: Vectors | None
) -> Iterator[int]:
    """The number of the last sentence of each chunk."""
    words = tokenizer_named("words")

    def size(start: int, end: int) -> int:
        return len(text[start:end].strip())

    start, first, seen = pieces[0][0], 0, set[str]()
    for number, (begin, end) in enumerate(pieces):
        terms = {word for word in words(text[begin:end]) if len(word) >= _SHORTEST_TERM}
        share = len(terms & seen) / len(terms) if terms else 0.0
        if vectors is not None and number > first:
            mean = vectors[first:number].mean(axis=0)
            sizes = float(np.linalg.norm(mean) * np.linalg.norm(vectors[number]))
            share = float(mean @ vectors[number]) / sizes if sizes else 0.0
        goes_on = size(start, begin) < options.min or share >= options.similar
        if number and not (goes_on and size(start, end) <= options.max):
            yield number - 1
            start, first, seen = begin, number, set()
        seen |= terms
    yield len(pieces) - 1


@dataclass(frozen=True, slots=True)
class Child:
    """What is searched in place of a chunk: one of its sentences, or a summary."""

    text: str
    parent: int  # the number of the chunk


def sentences_of(chunks: Sequence[Chunk], sentences: str = "plain") -> list[Child]:
    """The sentences of chunks, in their order, each without the white space around it."""
    split = splitter_named(sentences)
    return [
        Child(text, number)
        for number, chunk in enumerate(chunks)
        for span in split(chunk.text)
        if (text := chunk.text[slice(*span)].strip())
    ]


def best_children(ranked: Iterable[int], children: Sequence[Child], k: int) -> list[int]:
    """The best child of each of the first k parents, by number: a chunk stands where its best child does."""
    best: dict[int, int] = {}
    for number in ranked:
        best.setdefault(children[number].parent, number)
    return list(best.values())[:k]
