"""Chunks of documents, and indexes over texts: what answers a query best, by BM25, or by vectors.

BM25 is rank-bm25's `BM25Okapi` (Trotman, Puurula and Burgess 2014, with its floor of idf): its counts, idf
and mean length, and the same scores, bit for bit. With f the times a word stands in a document, l the
document's words and L their mean:

    score = sum over the query's words of idf f (k1 + 1) / (f + k1 (1 - b + b l / L))

Everything behind `idf` is known when the index is made, so a query is a sum of rows of one sparse matrix, in
the order of the query's words, repeated ones as often as they stand there: floating-point sums depend on it.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict
from rank_bm25 import BM25Okapi
from scipy.sparse import csr_array

from judgecal.errors import InputError, refuse, unknown_name
from judgecal.goldset import GoldDocument
from judgecal.goldset.wording import Span, sentence_spans

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]

K1, B, EPSILON = 1.5, 0.75, 0.25
_BLOCK = 1_000_000  # scores held at once
_DIGITS = 6  # of a cosine: beyond them equal texts may differ by the order in which a machine adds
_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """The words of a text, lower-cased runs of letters and digits, in order, repeated ones included."""
    return _WORD.findall(text.lower())


class _Okapi(BM25Okapi):  # type: ignore[misc]  # it has no types
    """rank-bm25's index, of documents without a word too, which have no mean idf."""

    def _calc_idf(self, nd: dict[str, int]) -> None:
        if nd:
            super()._calc_idf(nd)


@dataclass(frozen=True, slots=True)
class Bm25:
    """An index over documents: what a word in a query adds to a document's score."""

    vocabulary: dict[str, int]  # word to its row, in the order of first appearance
    weights: csr_array  # words x documents

    @classmethod
    def of(cls, documents: Iterable[Sequence[str]]) -> Bm25:
        """Build a Bm25 index from documents, each given as its list of words; ValueError for none."""
        try:
            okapi = _Okapi(documents, k1=K1, b=B, epsilon=EPSILON)
        except ZeroDivisionError:  # in the mean of their lengths
            raise ValueError("no documents to index") from None
        vocabulary = {word: row for row, word in enumerate(okapi.idf)}
        counts: list[dict[str, int]] = okapi.doc_freqs
        ends = np.cumsum([0, *map(len, counts)])
        words = map(vocabulary.__getitem__, itertools.chain.from_iterable(counts))
        times = itertools.chain.from_iterable(each.values() for each in counts)
        columns, counted = (np.fromiter(values, np.int32, count=int(ends[-1])) for values in (words, times))
        # By word, and within a word in the order of the documents.
        by_word = csr_array((counted, columns, ends), shape=(len(counts), len(vocabulary))).tocsc()
        # In rank-bm25's order of operations: the scores are to be the same to the last bit.
        spread = K1 * (1 - B + B * np.array(okapi.doc_len) / (okapi.avgdl or 1.0))
        idf = np.repeat(np.fromiter(okapi.idf.values(), np.float64), np.diff(by_word.indptr))
        data = idf * (by_word.data * (K1 + 1) / (by_word.data + spread[by_word.indices]))
        shape = (len(vocabulary), len(counts))
        return cls(vocabulary, csr_array((data, by_word.indices, by_word.indptr), shape=shape))

    @property
    def n_documents(self) -> int:
        """Documents in the index, empty ones included."""
        return int(self.weights.shape[1])

    def each_block(self, queries: Sequence[Sequence[str]], work: Callable[[int, Floats], None]) -> None:
        """Cut queries (lists of words) in blocks; call a function `work` with each's start and scores."""
        step = max(1, _BLOCK // self.n_documents)
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # scipy and numpy release the interpreter
            starts = range(0, len(queries), step)
            list(pool.map(lambda start: work(start, self.scores(queries[start : start + step])), starts))

    def scores(self, queries: Sequence[Sequence[str]]) -> Floats:
        """Return an array of scores: queries, given as lists of words, x the index's own documents."""
        # Queries x words, in the order of the words and repeated as they are, so that sums keep their order.
        numbers = [[self.vocabulary[word] for word in query if word in self.vocabulary] for query in queries]
        ends = np.cumsum([0, *map(len, numbers)])
        columns = np.fromiter(itertools.chain(*numbers), dtype=np.int32, count=int(ends[-1]))
        shape = (len(queries), len(self.vocabulary))
        words = csr_array((np.ones(len(columns)), columns, ends.astype(np.int32)), shape=shape)
        scores: Floats = (words @ self.weights).toarray()
        return scores


def ranks_of(scores: Floats, documents: Ints) -> Ints:
    """Return an array of ranks, from scores (queries x documents) and the document's number in each row.

    Ranks count from 1: strictly higher scores, and equal ones earlier in the corpus, stand before it.
    """
    reached = np.take_along_axis(scores, documents[:, None], axis=1)
    equal = scores == reached
    before = equal & (np.arange(scores.shape[1]) < documents[:, None])
    ranks: Ints = (1 + (scores > reached).sum(axis=1) + before.sum(axis=1)).astype(np.int64)
    return ranks


def top_k(scores: Floats, k: int) -> Ints:
    """Return an array of the best documents' numbers, from scores (queries x documents) and how many, k."""
    k = min(k, scores.shape[1])
    best = np.argpartition(scores, scores.shape[1] - k, axis=1)[:, scores.shape[1] - k :]
    best.sort(axis=1)
    values = np.take_along_axis(scores, best, axis=1)
    bound = values.min(axis=1)
    # Where equal scores go on beyond the k-th place, the partition took any of them; the first ones are due.
    for row in np.flatnonzero((scores >= bound[:, None]).sum(axis=1) > k).tolist():
        above = np.flatnonzero(scores[row] > bound[row])
        equal = np.flatnonzero(scores[row] == bound[row])[: k - len(above)]
        best[row] = np.sort(np.concatenate((above, equal)))
        values[row] = scores[row, best[row]]
    return np.take_along_axis(best, np.argsort(-values, axis=1, kind="stable"), axis=1).astype(np.int64)


Hits = tuple[Ints, Floats]
"""Of Q queries the best texts, Q x min(k, texts) numbers from 0, equal ones in order; and their scores."""


def embedding_model(name: str) -> str | None:
    """Return the model's name that an index's name `embed:MODEL` holds; None for `bm25`."""
    kind, _, model = name.partition(":")
    if name != "bm25" and kind != "embed":
        raise unknown_name("index", name, ["bm25", "embed:MODEL"])
    if kind == "embed" and not model:
        raise InputError(
            f"index {name!r}: name a model behind embed:, such as embed:openai/text-embedding-3-small"
        )
    return model if kind == "embed" else None


class Bm25Index:
    """Texts indexed by BM25."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._index = Bm25.of(map(words_of, texts))

    def search(self, queries: Sequence[str], k: int) -> Hits:
        """Return Hits from queries (texts) and k: for each query the best k texts, or all if fewer."""
        n = min(k, self._index.n_documents)
        chunks, scores = np.empty((len(queries), n), dtype=np.int64), np.empty((len(queries), n))

        def fill(start: int, block: Floats) -> None:
            rows = slice(start, start + len(block))
            chunks[rows] = top_k(block, n)
            scores[rows] = np.take_along_axis(block, chunks[rows], axis=1)

        self._index.each_block([*map(words_of, queries)], fill)
        return chunks, scores


class DenseIndex:
    """Vectors of texts, searched by the cosine with the vector of a query."""

    def __init__(self, vectors: Vectors) -> None:
        from sklearn.preprocessing import normalize  # here, as no search is to be timed with its loading

        self.dimensions = int(vectors.shape[1])
        self._unit = normalize
        self._vectors: Vectors = normalize(vectors)

    def search(self, queries: Vectors, k: int) -> Hits:
        """Return Hits from query vectors and k: for each query the best k texts (`Bm25Index.search`)."""
        cosines = np.round((self._unit(queries) @ self._vectors.T).astype(np.float64), _DIGITS)
        cosines += 0.0  # makes one zero of both
        chunks = top_k(cosines, k)
        return chunks, np.take_along_axis(cosines, chunks, axis=1)


# --- documents cut into chunks of whole sentences


class ChunkOptions(BaseModel):
    """How documents are cut. Sizes are characters, without the white space at a chunk's ends."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    min: int | None = None  # characters that a chunk has before it may end, by default two thirds of `max`
    max: int = 1200  # characters of a chunk at most, but for its overlap; a longer sentence is cut
    overlap: int = 0  # characters of the sentences before a chunk that stand at its start too

    @property
    def least(self) -> int:
        """The characters that a chunk has before it may end."""
        return self.max * 2 // 3 if self.min is None else self.min

    def problems(self) -> list[str]:
        """Return a list of messages, each on an own option that makes no chunks."""
        wanted = {
            f"max must be at least 1 character, found {self.max}": self.max >= 1,
            f"min must be 0 to max characters, found {self.least}": 0 <= self.least <= self.max,
            f"overlap must be 0 to max characters, found {self.overlap}": 0 <= self.overlap <= self.max,
        }
        return [f"chunk: {problem}" for problem, holds in wanted.items() if not holds]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document; the characters of its chunks follow on each other."""

    chunk_id: str  # `document_id#n`, n from 1 in the order of the document
    document_id: str
    title: str | None
    start: int  # in the document's text, without the overlap
    end: int
    text: str  # with the overlap before it where there is one


def chunks_of(documents: Iterable[GoldDocument], options: ChunkOptions | None = None) -> list[Chunk]:
    """Cut GoldDocuments into a list of Chunks, in their order.

    Every character of any other document stands in exactly one chunk, but for overlap.
    """
    options = options or ChunkOptions()
    refuse(options.problems())
    return [chunk for document in documents if document.text.strip() for chunk in _cut(document, options)]


def _cut(document: GoldDocument, options: ChunkOptions) -> Iterator[Chunk]:
    text, first = document.text, 0
    sentences = [piece for span in sentence_spans(text) for piece in _no_longer(text, span, options.max)]
    pieces = _joined(text, sentences)
    for number, last in enumerate(_ends_of_chunks(text, pieces, options), 1):
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


def _ends_of_chunks(text: str, pieces: Sequence[Span], options: ChunkOptions) -> Iterator[int]:
    """The number of the last sentence of each chunk."""

    def size(start: int, end: int) -> int:
        return len(text[start:end].strip())

    start = pieces[0][0]
    for number, (begin, end) in enumerate(pieces[1:], 1):
        if size(start, begin) >= options.least or size(start, end) > options.max:
            yield number - 1
            start = begin
    yield len(pieces) - 1
