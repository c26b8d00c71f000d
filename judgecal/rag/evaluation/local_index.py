"""What a local pipeline searches: chunks by themselves or by their children, and an index over those.

It is built once for all pipelines of a process that share documents, chunk options, children and index.
"""

from __future__ import annotations

import functools
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judgecal.models import ModelSpec
from judgecal.rag.retrieval.chunking import Child, Chunk, best_children
from judgecal.rag.retrieval.indexes import DenseIndex, Index, Vectors
from judgecal.records import Context, Failure, Judgement

_HELD = 2  # at once: what most settings of a sweep share, and another


@dataclass(frozen=True, slots=True)
class Candidate:
    """What was found: the text (a chunk's own, or its best child's), and the chunk as it is handed over."""

    text: str
    context: Context  # its score is that of who ranked last


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was found for a question, best first, or why nothing could be; in how many seconds, and for how
    much."""

    candidates: tuple[Candidate, ...] = ()
    failure: Failure | None = None
    seconds: float | None = None
    cost_usd: float | None = 0.0


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A question's vector, or why there is none; in how many seconds, and for how much."""

    vector: Vectors | None
    failure: Failure | None = None
    seconds: float | None = None
    cost_usd: float | None = None


class Searched:
    """Chunks, and the index over them or over their children.

    Args:
        index: over the children, or over the chunks where there are none.
        queries: by question, where the index is one of vectors.
    """

    def __init__(
        self,
        index: Index,
        chunks: Sequence[Chunk],
        children: Sequence[Child] | None,
        queries: Mapping[str, QueryVector] | None = None,
    ) -> None:
        self._index, self._chunks, self._children, self._queries = index, chunks, children, queries
        # So many children more than one a chunk may stand before the last chunk that is wanted.
        self._most = 1 if children is None else max(Counter(one.parent for one in children).values())

    def best(self, question: str, k: int) -> Retrieved:
        """The best k chunks, or all where there are fewer."""
        query = QueryVector(None, None, 0.0, 0.0) if self._queries is None else self._queries[question]
        if failure := query.failure or self._misfit(query):
            return Retrieved(failure=failure)
        start = time.perf_counter()
        hits = self._index.search([question], (k - 1) * self._most + 1)
        numbers, scores = hits.chunks[0].tolist(), hits.scores[0].tolist()
        found = tuple(self._candidates(numbers, dict(zip(numbers, scores, strict=True)), k))
        return Retrieved(found, None, added(query.seconds, time.perf_counter() - start), query.cost_usd)

    def _misfit(self, query: QueryVector) -> Failure | None:
        """Why a question's vector cannot be held against those of the chunks, as where the server has
        changed."""
        if query.vector is None or not isinstance(self._index, DenseIndex):
            return None
        size, needed = len(query.vector), self._index.dimensions
        return (
            None
            if size == needed
            else Failure("server", f"a vector of {size} dimensions, the chunks have {needed}")
        )

    def _candidates(self, numbers: Sequence[int], scores: Mapping[int, float], k: int) -> Iterator[Candidate]:
        children = self._children
        for one in numbers if children is None else best_children(numbers, children, k):
            chunk = self._chunks[one if children is None else children[one].parent]
            context = Context(chunk.text.strip(), chunk.document_id, scores[one])
            yield Candidate(context.text if children is None else children[one].text, context)


def dense(vectors: Vectors, queries: Mapping[str, QueryVector]) -> DenseIndex:
    """The index of vectors, searched by those of questions."""

    def of(question: str) -> Vectors:
        vector = queries[question].vector
        assert vector is not None, "a question without a vector is not searched for"
        return vector

    return DenseIndex(vectors, of)


_built: OrderedDict[str, Searched] = OrderedDict()


def shared(key: str, build: Callable[[], Searched]) -> Searched:
    """What is searched under a key, built where this process does not hold it; the two used last are held."""
    found = _built.pop(key, None) or build()
    _built[key] = found
    while len(_built) > _HELD:
        _built.popitem(last=False)
    return found


@functools.lru_cache(maxsize=_HELD)
def query_vectors(embedder: str) -> dict[str, QueryVector]:
    """By question, the vectors that this process has of an embedder, by its fingerprint; the caller adds to
    them.

    So settings of a sweep that cut the documents otherwise embed no question twice, and know how long it
    took.
    """
    return {}


def added(*values: float | None) -> float | None:
    """The sum; None where a part of it is not known."""
    return None if None in values else sum(value for value in values if value is not None)


def price_of(row: Judgement, model: ModelSpec | None) -> float | None:
    """What a call costs whoever makes it: of a stored reply its model's price, None where that is not
    known."""
    if not row.cached or model is None:
        return row.cost_usd
    written = row.completion_tokens if model.task == "chat" else 0
    return model.cost_usd(row.prompt_tokens, written)
