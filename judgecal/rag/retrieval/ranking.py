"""Where the judged documents of each question rank, by BM25 or in a run, and the measures of that.

Every measure rests on the ranks of judged documents alone, so no full ranking is ever held. Those that
trec_eval has too are as it defines them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from judgecal.errors import refuse
from judgecal.rag.questions import Collection, cut_lines
from judgecal.rag.retrieval.indexes import Bm25, Floats, Ints, standing, top
from judgecal.records import digest
from judgecal.workspace import shown

Marks = npt.NDArray[np.bool_]

CUTS = (1, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True)
class Run:
    """The rankings of a retriever of the user's own."""

    name: str
    sha256: str
    ranked: dict[str, list[str]]  # question id to document ids, best first


def read_run(path: Path) -> Run:
    """TREC's six columns, put into order by score, ties by document id from z to a.

    Scores are in single precision and the rank column of no account: as trec_eval reads them, so that its
    numbers are ours.
    """
    where, problems, ranked = shown(path), list[str](), dict[str, list[str]]()
    by_question: dict[str, dict[str, float]] = {}
    for line, parts in cut_lines(path, problems):
        try:
            score = float(np.float32(parts[4])) if len(parts) == 6 else np.nan
        except ValueError:
            score = np.nan
        if np.isnan(score):
            problems.append(f"{where}:{line}: not `question Q0 document rank score tag`: fix the line")
            continue
        scored = by_question.setdefault(parts[0], {})
        if parts[2] in scored:
            twice = f"question {parts[0]} has document {parts[2]} twice"
            problems.append(f"{where}:{line}: {twice}: keep one line")
        scored[parts[2]] = score
    for question, scored in by_question.items():
        ranked[question] = sorted(sorted(scored, reverse=True), key=scored.__getitem__, reverse=True)
    if not ranked and not problems:
        problems.append(f"{where}:1: the file holds no ranking")
    refuse(problems)
    return Run(path.name, digest(ranked), ranked)


@dataclass(frozen=True)
class Ranking:
    """Ranks of the P judged documents of Q questions, question by question, and what they come to.

    A measure of a question without a reference document is NaN.
    """

    n_questions: int
    question: Ints  # P
    document: Ints  # P; -1 for one that the corpus lacks
    grade: Ints  # P
    rank: Ints  # P, from 1; 0 where the document is not in the ranking
    head: Ints  # Q x K document numbers, best first; -1 beyond the end, and for one that the corpus lacks

    @cached_property
    def n_references(self) -> Ints:
        """Of each question, those that the corpus lacks included."""
        return self._count(self.grade > 0)

    @cached_property
    def has_reference(self) -> Marks:
        """Which questions name a reference document."""
        return self.n_references > 0

    @cached_property
    def best(self) -> Ints:
        """The pair of each question's best ranked reference document; -1 where none is ranked."""
        best = np.full(self.n_questions, -1, dtype=np.int64)
        ranked = np.flatnonzero((self.grade > 0) & (self.rank > 0))
        worst_first = ranked[np.argsort(-self.rank[ranked], kind="stable")]
        best[self.question[worst_first]] = worst_first  # the last one written stays
        return best

    @cached_property
    def best_rank(self) -> Ints:
        """The rank of the best reference document, from 1; 0 where none is ranked."""
        return np.append(self.rank, 0)[self.best]  # of -1 it is the 0 behind the last

    def reference_score(self, k: int) -> Floats:
        """1 for a reference document that comes first, less 1/k for each place behind, 0 beyond k."""
        inside = (self.best_rank > 0) & (self.best_rank <= k)
        return self._defined(np.where(inside, (k + 1 - self.best_rank) / k, 0.0))

    def reciprocal_rank(self) -> Floats:
        """1 / rank over the full ranking; 0 where no reference document is ranked (`recip_rank`)."""
        return self._defined(np.where(self.best_rank > 0, 1.0 / np.maximum(self.best_rank, 1), 0.0))

    def success(self, k: int) -> Floats:
        """1 where some reference document is among the first k (`success_k`)."""
        return self._defined((self.best_rank > 0) & (self.best_rank <= k))

    def recall(self, k: int) -> Floats:
        """The share of the reference documents among the first k (`recall_k`)."""
        inside = self._count((self.grade > 0) & self._within(k))
        return self._defined(inside / np.maximum(self.n_references, 1))

    def ndcg(self, k: int) -> Floats:
        """Gain: the grade, discount: log2(rank + 1) (`ndcg_cut_k`; Jarvelin and Kekalainen 2002)."""
        gain = np.maximum(self.grade, 0).astype(np.float64)
        discounted = gain / np.log2(np.maximum(self.rank, 1) + 1.0)
        reached = self._sum(np.where(self._within(k), discounted, 0.0))
        order = np.lexsort((-gain, self.question))
        owner = self.question[order]
        place = np.arange(len(owner)) - np.searchsorted(owner, owner)  # 0 for a question's highest grade
        ideal = np.zeros(len(gain))
        ideal[order] = np.where(place < k, gain[order] / np.log2(place + 2.0), 0.0)
        best = self._sum(ideal)
        return self._defined(reached / np.where(best > 0.0, best, 1.0))

    def _within(self, k: int) -> Marks:
        return (self.rank > 0) & (self.rank <= k)

    def _count(self, marked: Marks) -> Ints:
        return np.bincount(self.question[marked], minlength=self.n_questions)

    def _sum(self, values: Floats) -> Floats:
        total = np.bincount(self.question, weights=values, minlength=self.n_questions)
        return total.astype(np.float64, copy=False)

    def _defined(self, values: Floats | Marks) -> Floats:
        return np.where(self.has_reference, values, np.nan)


def _unranked(collection: Collection, keep: int) -> Ranking:
    """The judged documents before any of them has a rank, to be filled in; `keep`: documents of each head."""
    numbers = collection.numbers
    rows = [
        (place, numbers.get(name, -1), grade)
        for place, question in enumerate(collection.questions)
        for name, grade in question.grades.items()
    ]
    question, document, grade = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    n_questions = len(collection.questions)
    return Ranking(
        n_questions,
        question,
        document,
        grade,
        rank=np.zeros(len(rows), dtype=np.int64),
        head=np.full((n_questions, keep), -1, dtype=np.int64),
    )


def by_bm25(index: Bm25, queries: Sequence[Sequence[str]], collection: Collection, *, keep: int) -> Ranking:
    """Rank all documents for each query, ties in the order of the corpus. `keep`: documents of each head."""
    keep = min(keep, index.n_documents)
    ranking = _unranked(collection, keep)

    def rank_block(start: int, scores: Floats) -> None:  # blocks write to rows of their own
        end = start + len(scores)
        ranking.head[start:end] = top(scores, keep)
        first, last = np.searchsorted(ranking.question, [start, end]).tolist()
        present = first + np.flatnonzero(ranking.document[first:last] >= 0)
        for part in np.array_split(present, -(-len(present) // len(scores)) or 1):
            rows, documents = ranking.question[part] - start, ranking.document[part]
            ranking.rank[part] = standing(scores[rows], documents)

    index.each_block(queries, rank_block)
    return ranking


def by_run(run: Run, collection: Collection, *, keep: int) -> Ranking:
    """The ranks in a run; a question that the run lacks has an empty ranking."""
    ranking, numbers, first = _unranked(collection, keep), collection.numbers, 0
    for place, question in enumerate(collection.questions):
        ranked = run.ranked.get(question.group, [])
        ranking.head[place, : len(ranked)] = [numbers.get(name, -1) for name in ranked[:keep]]
        at = {name: position for position, name in enumerate(ranked)}
        for pair, name in enumerate(question.grades, start=first):
            position = at.get(name)
            if position is not None:
                ranking.rank[pair] = position + 1
        first += len(question.grades)
    return ranking


def cuts(k: int, n_documents: int | None) -> list[int]:
    """The depths that are reported: the usual ones that the corpus has documents for, and the chosen one."""
    deepest = n_documents if n_documents is not None else max(CUTS)
    return sorted({k, *(cut for cut in CUTS if cut <= deepest)})
