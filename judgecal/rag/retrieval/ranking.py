"""Where the judged documents of each question rank, by BM25 or in a run, and the measures of that.

Every measure rests on the ranks of judged documents alone, so no full ranking is ever held. Those that
trec_eval has too are as it defines them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from judgecal.rag.retrieval.bm25 import Bm25, Floats, Ints, standing, top
from judgecal.rag.retrieval.corpus import Collection, Run

Marks = npt.NDArray[np.bool_]

CUTS = (1, 3, 5, 10, 20, 50, 100)
_BINS = (10, 20, 50, 100)  # the last ranks of the histogram's wider bins


@dataclass(frozen=True, slots=True)
class Pairs:
    """The judged documents of all questions, question by question: P pairs."""

    question: Ints
    document: Ints  # -1 for one that the corpus lacks
    grade: Ints
    names: tuple[str, ...]  # the documents' ids
    n_questions: int

    @classmethod
    def of(cls, collection: Collection) -> Pairs:
        number = _numbered(collection)
        rows = [
            (place, number.get(name, -1), grade, name)
            for place, question in enumerate(collection.questions)
            for name, grade in question.grades.items()
        ]
        question, document, grade = np.array([row[:3] for row in rows], dtype=np.int64).reshape(-1, 3).T
        return cls(question, document, grade, tuple(row[3] for row in rows), len(collection.questions))


def _numbered(collection: Collection) -> dict[str, int]:
    return {document.document_id: place for place, document in enumerate(collection.documents or ())}


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranks of P pairs, and the head of each of Q rankings."""

    rank: Ints  # P, from 1; 0 where the document is not in the ranking
    ties: Ints  # P counts of other documents with the same score
    score: Floats  # P; NaN where there is none
    head: Ints  # Q x K document numbers, best first; -1 beyond the end, and for one that the corpus lacks
    depth: Ints  # Q counts of documents ranked


def by_bm25(index: Bm25, queries: Sequence[Sequence[str]], pairs: Pairs, *, keep: int) -> Ranking:
    """Rank all documents for each query, ties in the order of the corpus. `keep`: documents of each head."""
    n_pairs, n_documents = len(pairs.question), index.n_documents
    keep = min(keep, n_documents)
    rank, ties = np.zeros(n_pairs, dtype=np.int64), np.zeros(n_pairs, dtype=np.int64)
    score = np.full(n_pairs, np.nan)
    head = np.empty((len(queries), keep), dtype=np.int64)

    def rank_block(start: int, scores: Floats) -> None:  # blocks write to rows of their own
        end = start + len(scores)
        head[start:end] = top(scores, keep)
        first, last = np.searchsorted(pairs.question, [start, end]).tolist()
        present = first + np.flatnonzero(pairs.document[first:last] >= 0)
        for part in np.array_split(present, -(-len(present) // len(scores)) or 1):
            rows, documents = pairs.question[part] - start, pairs.document[part]
            rank[part], ties[part] = standing(scores[rows], documents)
            score[part] = scores[rows, documents]

    index.each_block(queries, rank_block)
    return Ranking(rank, ties, score, head, np.full(len(queries), n_documents, dtype=np.int64))


def by_run(run: Run, collection: Collection, pairs: Pairs, *, keep: int) -> Ranking:
    """The ranks in a run; a question that the run lacks has an empty ranking."""
    number = _numbered(collection)
    n_pairs = len(pairs.question)
    rank, ties = np.zeros(n_pairs, dtype=np.int64), np.zeros(n_pairs, dtype=np.int64)
    score = np.full(n_pairs, np.nan)
    head = np.full((pairs.n_questions, keep), -1, dtype=np.int64)
    depth = np.zeros(pairs.n_questions, dtype=np.int64)
    ends = np.searchsorted(pairs.question, np.arange(pairs.n_questions + 1)).tolist()
    for place, question in enumerate(collection.questions):
        ranked = run.ranked.get(question.question_id, [])
        scores = run.scores.get(question.question_id, [])
        depth[place] = len(ranked)
        head[place, : len(ranked)] = [number.get(name, -1) for name in ranked[:keep]]
        at = {name: position for position, name in enumerate(ranked)}
        for pair in range(ends[place], ends[place + 1]):
            position = at.get(pairs.names[pair])
            if position is None:
                continue
            rank[pair] = position + 1
            if scores:
                score[pair] = scores[position]
                ties[pair] = scores.count(scores[position]) - 1
    return Ranking(rank, ties, score, head, depth)


def cuts(k: int, n_documents: int | None) -> list[int]:
    """The depths that are reported: the usual ones that the corpus has documents for, and the chosen one."""
    deepest = n_documents if n_documents is not None else max(CUTS)
    return sorted({k, *(cut for cut in CUTS if cut <= deepest)})


@dataclass(frozen=True)
class Measured:
    """The measures of Q questions; a question without a reference document has NaN throughout."""

    pairs: Pairs
    ranking: Ranking

    @cached_property
    def n_references(self) -> Ints:
        """Of each question, those that the corpus lacks included."""
        return self._count(self.pairs.grade > 0)

    @cached_property
    def has_reference(self) -> Marks:
        """Which questions name a reference document."""
        return self.n_references > 0

    @cached_property
    def best(self) -> Ints:
        """The pair of each question's best ranked reference document; -1 where none is ranked."""
        best = np.full(self.pairs.n_questions, -1, dtype=np.int64)
        ranked = np.flatnonzero((self.pairs.grade > 0) & (self.ranking.rank > 0))
        worst_first = ranked[np.argsort(-self.ranking.rank[ranked], kind="stable")]
        best[self.pairs.question[worst_first]] = worst_first  # the last one written stays
        return best

    @cached_property
    def rank(self) -> Ints:
        """The rank of the best reference document, from 1; 0 where none is ranked."""
        return self._of_best(self.ranking.rank)

    @cached_property
    def ties(self) -> Ints:
        """Other documents with the score of the best reference document."""
        return self._of_best(self.ranking.ties)

    def _of_best(self, values: Ints) -> Ints:
        if not len(values):
            return np.zeros(self.pairs.n_questions, dtype=np.int64)
        return np.where(self.best >= 0, values[self.best], 0)

    def score(self, k: int) -> Floats:
        """1 for a reference document that comes first, less 1/k for each place behind, 0 beyond k."""
        inside = (self.rank > 0) & (self.rank <= k)
        return self._defined(np.where(inside, (k + 1 - self.rank) / k, 0.0))

    def reciprocal_rank(self) -> Floats:
        """1 / rank over the full ranking; 0 where no reference document is ranked (`recip_rank`)."""
        return self._defined(np.where(self.rank > 0, 1.0 / np.maximum(self.rank, 1), 0.0))

    def success(self, k: int) -> Floats:
        """1 where some reference document is among the first k (`success_k`)."""
        return self._defined((self.rank > 0) & (self.rank <= k))

    def recall(self, k: int) -> Floats:
        """The share of the reference documents among the first k (`recall_k`)."""
        inside = self._count((self.pairs.grade > 0) & self._within(k))
        return self._defined(inside / np.maximum(self.n_references, 1))

    def ndcg(self, k: int) -> Floats:
        """Gain: the grade, discount: log2(rank + 1) (`ndcg_cut_k`; Jarvelin and Kekalainen 2002)."""
        gain = np.maximum(self.pairs.grade, 0).astype(np.float64)
        discounted = gain / np.log2(np.maximum(self.ranking.rank, 1) + 1.0)
        reached = self._sum(np.where(self._within(k), discounted, 0.0))
        order = np.lexsort((-gain, self.pairs.question))
        owner = self.pairs.question[order]
        place = np.arange(len(owner)) - np.searchsorted(owner, owner)  # 0 for a question's highest grade
        ideal = np.zeros(len(gain))
        ideal[order] = np.where(place < k, gain[order] / np.log2(place + 2.0), 0.0)
        best = self._sum(ideal)
        return self._defined(reached / np.where(best > 0.0, best, 1.0))

    def judged(self, k: int) -> Floats:
        """The share of the first k that were judged at all; NaN where nothing was ranked."""
        shown = np.minimum(self.ranking.depth, k)
        judged = self._count(self._within(k))
        return self._defined(np.where(shown > 0, judged / np.maximum(shown, 1), np.nan))

    def _within(self, k: int) -> Marks:
        return (self.ranking.rank > 0) & (self.ranking.rank <= k)

    def _count(self, marked: Marks) -> Ints:
        return np.bincount(self.pairs.question[marked], minlength=self.pairs.n_questions)

    def _sum(self, values: Floats) -> Floats:
        total = np.bincount(self.pairs.question, weights=values, minlength=self.pairs.n_questions)
        return total.astype(np.float64, copy=False)

    def _defined(self, values: Floats | Marks) -> Floats:
        return np.where(self.has_reference, values, np.nan)


@dataclass(frozen=True, slots=True)
class RankBin:
    """How many questions have their best reference document at these ranks, such as "3" or "6-10"."""

    ranks: str
    n: int


def histogram(ranks: Sequence[int] | Ints, k: int) -> tuple[RankBin, ...]:
    """Bins of the best reference documents' ranks: one by one up to k, then wider.

    The last bin is "not found" (rank 0); empty bins behind the last rank are left out.
    """
    every = np.asarray(ranks, dtype=np.int64)
    deepest = int(every.max(initial=0))
    singles = min(k, max(_BINS))
    bins = [(rank, rank) for rank in range(1, singles + 1)]
    for last in (*(cut for cut in _BINS if cut > singles), deepest):
        first = bins[-1][1] + 1
        if first <= deepest:
            bins.append((first, last))
    counts = {
        str(first) if first == last else f"{first}-{last}": ((every >= first) & (every <= last)).sum()
        for first, last in bins
    } | {"not found": (every == 0).sum()}
    return tuple(RankBin(name, int(n)) for name, n in counts.items())
