"""The retriever test: a collection and a retriever to ranks, measures and windows.

Every measure rests on the ranks of judged documents alone, so no full ranking is ever held. Those that
trec_eval has too are as it defines them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from judgecal._version import __version__
from judgecal.errors import InputError, listed, refuse
from judgecal.rag.questions import Collection, cut_lines
from judgecal.rag.retrieval.indexes import EPSILON, K1, B, Bm25, Floats, Ints, ranks_of, words_of
from judgecal.records import Estimate, Result, digest
from judgecal.stats.intervals import mean_estimate
from judgecal.workspace import shown

Marks = npt.NDArray[np.bool_]

CUTS = (1, 3, 5, 10, 20, 50, 100)
_LEVEL = 0.95  # nominal coverage of the intervals


@dataclass(frozen=True, slots=True)
class Run:
    """The rankings of a retriever of the user's own."""

    name: str
    sha256: str
    ranked: dict[str, list[str]]  # question id to document ids, best first


def read_run(path: Path) -> Run:
    """Read a Run from the path of a TREC file, six columns, ordered by score, ties by id from z to a.

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

    @cached_property
    def n_references(self) -> Ints:
        """The number of reference documents of each question, also those that the corpus lacks."""
        return self._count(self.grade > 0)

    @cached_property
    def has_reference(self) -> Marks:
        """Which questions name a reference document."""
        return self.n_references > 0

    @cached_property
    def best_rank(self) -> Ints:
        """The rank of each question's best reference document, from 1; 0 where none is ranked."""
        last = np.iinfo(np.int64).max
        best, ranked = np.full(self.n_questions, last), (self.grade > 0) & (self.rank > 0)
        np.minimum.at(best, self.question[ranked], self.rank[ranked])
        return np.where(best == last, 0, best)

    def reference_score(self, k: int) -> Floats:
        """Return an array: own questions' scores at k, 1 for a first-ranked reference, less 1/k a place."""
        inside = (self.best_rank > 0) & (self.best_rank <= k)
        return self._defined(np.where(inside, (k + 1 - self.best_rank) / k, 0.0))

    def reciprocal_rank(self) -> Floats:
        """1 / rank over the full ranking; 0 where no reference document is ranked (`recip_rank`)."""
        return self._defined(np.where(self.best_rank > 0, 1.0 / np.maximum(self.best_rank, 1), 0.0))

    def success(self, k: int) -> Floats:
        """1 where some reference document is among the first k (`success_k`)."""
        return self._defined((self.best_rank > 0) & (self.best_rank <= k))

    def recall(self, k: int) -> Floats:
        """Return an array: each own question's share of reference documents in the first k (`recall_k`)."""
        inside = self._count((self.grade > 0) & self._within(k))
        return self._defined(inside / np.maximum(self.n_references, 1))

    def ndcg(self, k: int) -> Floats:
        """Return an array: each own question's NDCG at k (`ndcg_cut_k`; Jarvelin and Kekalainen 2002)."""
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


def _unranked(collection: Collection) -> Ranking:
    """The judged documents before any of them has a rank, to be filled in."""
    numbers = collection.numbers
    rows = [
        (place, numbers.get(name, -1), grade)
        for place, question in enumerate(collection.questions)
        for name, grade in question.grades.items()
    ]
    question, document, grade = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    n_questions = len(collection.questions)
    return Ranking(n_questions, question, document, grade, rank=np.zeros(len(rows), dtype=np.int64))


def by_bm25(index: Bm25, queries: Sequence[Sequence[str]], collection: Collection) -> Ranking:
    """Return the Ranking that a Bm25 index gives, for queries (lists of words), on a Collection."""
    ranking = _unranked(collection)

    def rank_block(start: int, scores: Floats) -> None:  # blocks write to rows of their own
        end = start + len(scores)
        first, last = np.searchsorted(ranking.question, [start, end]).tolist()
        present = first + np.flatnonzero(ranking.document[first:last] >= 0)
        for part in np.array_split(present, -(-len(present) // len(scores)) or 1):
            rows, documents = ranking.question[part] - start, ranking.document[part]
            ranking.rank[part] = ranks_of(scores[rows], documents)

    index.each_block(queries, rank_block)
    return ranking


def by_run(run: Run, collection: Collection) -> Ranking:
    """Return the Ranking that a Run gives on a Collection; empty for a question that the Run lacks."""
    ranking, first = _unranked(collection), 0
    for question in collection.questions:
        ranked = run.ranked.get(question.group, [])
        at = {name: position for position, name in enumerate(ranked)}
        for pair, name in enumerate(question.grades, start=first):
            position = at.get(name)
            if position is not None:
                ranking.rank[pair] = position + 1
        first += len(question.grades)
    return ranking


# --- the result


@dataclass(frozen=True, slots=True)
class RankRow:
    """A question's line of `ranks.jsonl`."""

    question_id: str
    reference_documents: tuple[str, ...]
    rank: int | None  # None where it names no reference document, or that is not in the ranking
    score: float | None


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive questions, named by zero-based start and count (five digits each)."""

    name: str
    n: int  # of them that are scored
    score: float | None  # their mean; None where none is


@dataclass(frozen=True, slots=True)
class RetrievalResult(Result):
    """What a retriever comes to; the mappings are by depth, such as "5"."""

    n_questions: int
    n_documents: int | None  # None where the corpus is not known
    n_without_reference: int
    k: int
    reference_document_score: Estimate  # 1 for one that comes first, less 1/k for each place behind
    mrr: Estimate
    recall: Mapping[str, Estimate]
    success: Mapping[str, Estimate]
    ndcg: Mapping[str, Estimate]
    one_reference: bool  # no question names several reference documents
    windows: tuple[Window, ...]
    n_unfindable: int  # questions of whose reference documents the corpus has none
    notes: tuple[str, ...]
    run_line: str
    gold: str | None = None  # the gold set that the questions are of; None of files
    n_test_questions: int = 0  # of its sealed split: they are in every number, and none of them is shown
    experiment: str = ""
    ranks: tuple[RankRow, ...] = field(default=(), metadata={"json": False})  # a row a question


def measure_retrieval(
    collection: Collection, *, k: int = 5, window: int = 110, run: Run | None = None
) -> RetrievalResult:
    """Return the RetrievalResult of a Collection: BM25, or the rankings of a `run`, measured.

    Args:
        k: documents handed on; the score falls from 1 to 0 over them.
        window: questions a window.
    """
    if run is None and not collection.documents:
        raise InputError("no documents to rank: give --documents, or the rankings of a retriever with --run")
    if not any(question.reference_documents for question in collection.questions):
        raise InputError(
            f"none of the {len(collection.questions)} questions of {collection.questions_from} names a "
            "reference document: name them in a column document_id (--col reference=), or with --qrels"
        )
    if run is not None:
        ranking = by_run(run, collection)
    else:
        index = Bm25.of(words_of(document.text) for document in collection.documents or ())
        queries = [words_of(question.question) for question in collection.questions]
        ranking = by_bm25(index, queries, collection)
    n_questions, scored = len(collection.questions), ranking.has_reference
    n_documents = None if collection.documents is None else len(collection.documents)
    # The group of a question is its first reference document; a question without one is alone.
    number: dict[tuple[str, ...], int] = {}
    keys = (each.reference_documents[:1] or ("", each.group) for each in collection.questions)
    groups = np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)
    of_scored, n, rank = groups[scored].tolist(), int(scored.sum()), ranking.best_rank

    def mean(values: Floats) -> Estimate:
        """Over the questions that name a reference document, with the interval by document."""
        return mean_estimate(values[scored], of_scored, level=_LEVEL)

    def by_depth(measure: Callable[[int], Floats]) -> dict[str, Estimate]:
        """At the usual depths that the corpus has documents for, and at k."""
        depths = {k, *(cut for cut in CUTS if n_documents is None or cut <= n_documents)}
        return {str(depth): mean(measure(depth)) for depth in sorted(depths)}

    score = ranking.reference_score(k).tolist()
    ranks = [
        RankRow(
            question.group,
            question.reference_documents,
            int(rank[place]) or None,
            score[place] if scored[place] else None,
        )
        for place, question in enumerate(collection.questions)
    ]
    return RetrievalResult(
        n_questions=n_questions,
        n_documents=n_documents,
        n_without_reference=n_questions - n,
        k=k,
        reference_document_score=mean(ranking.reference_score(k)),
        mrr=mean(ranking.reciprocal_rank()),
        recall=by_depth(ranking.recall),
        success=by_depth(ranking.success),
        ndcg=by_depth(ranking.ndcg),
        one_reference=bool(ranking.n_references.max() == 1),
        windows=windows(ranking.reference_score(k), window),
        n_unfindable=_unfindable(collection),
        notes=(*_findings(collection, run, n), *collection.notes),
        run_line=_run_line(collection, f"k:{k}|window:{window}", n, run),
        gold=collection.gold.name if collection.gold else None,
        n_test_questions=len(collection.sealed),
        ranks=tuple(ranks),
    )


def _run_line(collection: Collection, options: str, n: int, run: Run | None) -> str:
    parts = []
    if collection.documents is not None:
        parts = [f"documents:{collection.documents_from}@{collection.documents_sha[:12]}"]
    parts += [f"questions:{collection.questions_from}@{collection.questions_sha[:12]}", f"n:{n}"]
    if run is not None:
        parts += [f"run:{run.name}@{run.sha256[:12]}"]
    else:
        parts += [f"bm25:k1={K1:g},b={B:g},epsilon={EPSILON:g}"]
    parts += [f"{options}|level:{_LEVEL:g}|by:document"]
    return "|".join([*parts, f"version:{__version__}"])


def windows(scores: Floats, size: int) -> tuple[Window, ...]:
    """Return a tuple of Windows from an array of scores (NaN: unscored) and the size of a window."""
    rows = []
    for start in range(0, len(scores), size):
        inside = scores[start : start + size]
        defined, name = inside[~np.isnan(inside)], f"{start:05d}_{len(inside):05d}"
        rows.append(Window(name, len(defined), float(defined.mean()) if len(defined) else None))
    return tuple(rows)


# --- what does not meet, named and counted, so that nothing leaves n in silence


def _lacking_references(collection: Collection) -> dict[str, list[str]]:
    """The reference documents that the corpus lacks, by the question that names them."""
    return {
        question.group: absent
        for question in collection.questions
        if (absent := [name for name in question.reference_documents if collection.lacks(name)])
    }


def _unfindable(collection: Collection) -> int:
    """How many questions name reference documents, and none that the corpus has: they score 0."""
    lacking = _lacking_references(collection)
    return sum(lacking.get(each.group) == [*each.reference_documents] for each in collection.questions)


def _findings(collection: Collection, run: Run | None, n_scored: int) -> Iterator[str]:
    """What is wrong with a collection and a run, the gravest first; test questions are counted, not named."""
    documents, lacking = collection.documents or (), _lacking_references(collection)
    if lacking:
        missing = list(dict.fromkeys(name for absent in lacking.values() for name in absent))
        yield (
            f"{len(lacking)} of {n_scored} questions name {len(missing)} reference documents that the corpus "
            f"lacks ({listed(missing)}); {_unfindable(collection)} of these questions name no other and "
            f"score 0: {listed([*lacking], sealed=collection.sealed)}"
        )
    if empty := [document.document_id for document in documents if not document.text.strip()]:
        no_text = f"{len(empty)} of {len(documents)} documents are empty, and no search can find them"
        yield f"{no_text}: {listed(empty)}"
    texts = Counter(document.text for document in documents if document.text.strip())
    if same_text := sum(count for count in texts.values() if count > 1):
        shared = f"{same_text} documents share their text with another id"
        yield f"{shared}: which of them a search finds is chance"
    if run is None:
        return
    named = {question.group: bool(question.reference_documents) for question in collection.questions}
    ranked = {name for ids in run.ranked.values() for name in ids}
    for names, what in (
        (
            [name for name in named if named[name] and name not in run.ranked],
            f"of {n_scored} questions are missing from the run and score 0",
        ),
        (
            [name for name in run.ranked if name not in named],
            "questions of the run are not in the set, so we skipped them",
        ),
        (
            sorted(filter(collection.lacks, ranked)),
            "documents of the run are not in the corpus and keep their ranks",
        ),
    ):
        if names:
            yield f"{len(names)} {what}: {listed(names, sealed=collection.sealed)}"
