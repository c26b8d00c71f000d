"""Indexes over chunks: which chunks answer a query best, by BM25, by latent semantic analysis, or by vectors.

None calls a model: the vectors of a `DenseIndex` are given to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from judgecal.errors import InputError, refuse, unknown_name
from judgecal.rag.retrieval.bm25 import Bm25, Floats, Ints, tokenizer_named, top

Vectors = npt.NDArray[np.float32]
_KINDS = ("bm25", "lsa")
_EMBED = "embed"
_DIGITS = 10  # of a cosine: beyond them equal texts may differ by the order in which a machine adds
_DIGITS_OF_VECTORS = 6  # the same of vectors of 32-bit floats


@dataclass(frozen=True, slots=True)
class Hits:
    """The best chunks for Q queries."""

    chunks: Ints  # Q x min(k, chunks) numbers from 0, best first; equal scores in the order of the corpus
    scores: Floats  # BM25's sum, unbounded, or a cosine -1..1


class Index(Protocol):
    """Texts in which queries are searched."""

    def search(self, queries: Sequence[str], k: int) -> Hits:
        """The best k texts for each query, or all where there are fewer; the same on every call."""
        ...


def index_named(name: str, texts: Sequence[str], *, tokenizer: str = "words", seed: int = 0) -> Index:
    """Index texts: `bm25`, or `lsa:DIMENSIONS` (`lsa` alone has 100), meant for some ten thousand texts."""
    kind, dimensions = _parsed(name)
    if not texts:
        raise InputError("there are no chunks to index: the documents hold no text")
    if kind == "bm25":
        return Bm25Index(texts, tokenizer)
    return LsaIndex(texts, tokenizer=tokenizer, dimensions=dimensions, seed=seed)


def check_index(name: str, *, tokenizer: str = "words") -> None:
    """Refuse a name that is neither `embed:MODEL` nor one that `index_named` takes; no text is needed."""
    if embedding_model(name) is None:
        _parsed(name)
        tokenizer_named(tokenizer)


def embedding_model(name: str) -> str | None:
    """The model of `embed:MODEL`, whose vectors a `DenseIndex` is made of; None for another index."""
    kind, _, model = name.partition(":")
    if kind != _EMBED:
        return None
    if not model:
        raise InputError(
            f"index {name!r}: name a model behind embed:, such as embed:openai/text-embedding-3-small"
        )
    return model


def _parsed(name: str) -> tuple[str, int]:
    """The kind of an index and its dimensions."""
    kind, _, dimensions = name.partition(":")
    if kind not in _KINDS or (dimensions and kind != "lsa"):
        raise unknown_name("index", name, ["bm25", "lsa", "lsa:100", f"{_EMBED}:MODEL"])
    if dimensions and not (dimensions.isdecimal() and 1 <= int(dimensions[:9]) <= 10_000):
        raise InputError(f"index {name!r}: lsa takes 1 to 10,000 dimensions, such as lsa:100")
    return kind, int(dimensions or 100)


class Bm25Index:
    """Texts indexed by BM25 (judgecal.rag.retrieval.bm25)."""

    def __init__(self, texts: Sequence[str], tokenizer: str = "words") -> None:
        self._tokens = tokenizer_named(tokenizer)
        self._index = Bm25.of(self._tokens(text) for text in texts)

    def search(self, queries: Sequence[str], k: int) -> Hits:
        """See Index."""
        _at_least_one(k)
        n = min(k, self._index.n_documents)
        chunks, scores = np.empty((len(queries), n), dtype=np.int64), np.empty((len(queries), n))

        def fill(start: int, block: Floats) -> None:
            rows = slice(start, start + len(block))
            chunks[rows] = top(block, n)
            scores[rows] = np.take_along_axis(block, chunks[rows], axis=1)

        self._index.each_block([self._tokens(query) for query in queries], fill)
        return Hits(chunks, scores)


class LsaIndex:
    """Latent semantic analysis: tf-idf (with 1 + ln tf), its largest singular directions, cosine.

    Where there are not more texts and words than dimensions, it is the cosine of tf-idf itself. A text
    without a known word has cosine 0 with everything. Deerwester et al. (1990), by scikit-learn's
    TruncatedSVD with a seed.
    """

    def __init__(
        self, texts: Sequence[str], *, tokenizer: str = "words", dimensions: int = 100, seed: int = 0
    ) -> None:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        tokens = tokenizer_named(tokenizer)
        self._weigh: Any = None
        self._project: Any = None
        self._texts: Any = np.zeros((len(texts), 1))
        if not any(tokens(text) for text in texts):  # no vocabulary to learn
            return
        self._weigh = TfidfVectorizer(
            tokenizer=tokens, token_pattern=None, lowercase=False, sublinear_tf=True
        )
        weights = self._weigh.fit_transform(texts)
        if dimensions < min(weights.shape):
            self._project = TruncatedSVD(dimensions, random_state=seed).fit(weights)
        self._texts = self._directions(weights)

    def search(self, queries: Sequence[str], k: int) -> Hits:
        """See Index."""
        _at_least_one(k)
        if self._weigh is None or not queries:
            return _nearest(np.zeros((len(queries), self._texts.shape[0])), k, _DIGITS)
        product = self._directions(self._weigh.transform(queries)) @ self._texts.T
        return _nearest(product if isinstance(product, np.ndarray) else product.toarray(), k, _DIGITS)

    def _directions(self, weights: Any) -> Any:
        from sklearn.preprocessing import normalize

        return normalize(self._project.transform(weights)) if self._project is not None else weights


class DenseIndex:
    """Vectors of texts, searched by the cosine with the vector of a query; all of length 1."""

    def __init__(self, vectors: Vectors, query: Callable[[str], Vectors]) -> None:
        self.dimensions = int(vectors.shape[1])
        self._vectors = vectors
        self._query = query

    def search(self, queries: Sequence[str], k: int) -> Hits:
        """See Index."""
        _at_least_one(k)
        products = [self._vectors @ self._query(text) for text in queries]
        shape = (len(queries), len(self._vectors))
        return _nearest(np.array(products, dtype=np.float64).reshape(shape), k, _DIGITS_OF_VECTORS)


def _nearest(products: Floats, k: int, digits: int) -> Hits:
    """The best k texts by their cosines, Q x texts, of so many digits."""
    cosines: Floats = np.round(products, digits) + 0.0  # adding 0 makes one zero of both
    chunks = top(cosines, k)
    return Hits(chunks, np.take_along_axis(cosines, chunks, axis=1))


def _at_least_one(k: int) -> None:
    refuse([f"k must be at least 1 chunk, found {k}"] if k < 1 else [])
