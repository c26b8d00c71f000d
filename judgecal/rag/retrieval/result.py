"""The retriever test: a collection and a retriever to measures, windows and worst questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from judgecal._version import __version__
from judgecal.errors import InputError, refuse, working
from judgecal.rag.retrieval.collection import Collection
from judgecal.rag.retrieval.findings import findings, run_findings, unfindable
from judgecal.rag.retrieval.indexes import EPSILON, K1, B, Bm25, Floats, tokenizer_named
from judgecal.rag.retrieval.ranking import CUTS, RankBin, Ranking, Run, by_bm25, by_run, cuts, histogram
from judgecal.records import Estimate, Result
from judgecal.stats.intervals import mean_estimate

_LEVEL = 0.95  # nominal coverage of the intervals
_HANDED_ON = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100)
_WORST = 10  # questions shown
_ABOVE = 3  # documents shown above a reference document
_MOST = 10**9  # documents or questions of an option


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """What a test is to do."""

    k: int = 5  # documents handed on; the score falls from 1 to 0 over them
    tokenizer: str = "words"  # with a run it counts the tokens handed on and nothing else
    window: int = 110  # questions a window

    def check(self) -> None:
        """Refuse numbers that are out of their range."""
        refuse(
            [
                f"{name} {str(value)[:12]}: it must be from 1 to {_MOST:,}"
                for name, value in (("-k", self.k), ("--window", self.window))
                if not 1 <= value <= _MOST
            ]
        )


@dataclass(frozen=True, slots=True)
class HandOn:
    """What handing on the first k documents gives and costs."""

    k: int
    recall: Estimate
    tokens: float | None  # on average; None where the texts are not known


@dataclass(frozen=True, slots=True)
class RankRow:
    """A question's line of `ranks.jsonl`."""

    question_id: str
    reference_documents: tuple[str, ...]
    rank: int | None  # None where it names no reference document, or that is not in the ranking
    ties: int
    score: float | None
    reciprocal_rank: float | None


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive questions, named by zero-based start and count (five digits each)."""

    name: str
    n: int  # of them that are scored
    score: float | None  # their mean; None where none is


@dataclass(frozen=True, slots=True)
class Above:
    """A document that ranks above the reference document."""

    document_id: str
    title: str | None


@dataclass(frozen=True, slots=True)
class WorstQuestion:
    """A question whose reference document ranks low."""

    question_id: str
    question: str
    reference_document: str
    rank: int | None  # None where the document is not in the ranking
    ties: int  # other documents with its score
    above: tuple[Above, ...]  # the first documents of the ranking


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
    judged: Mapping[str, Estimate] | None  # the share of the first that qrels judge; None without qrels
    one_reference: bool  # no question names several reference documents
    histogram: tuple[RankBin, ...]
    n_tied: int  # questions whose best reference document shares its score with others
    n_tied_in_first_k: int
    hand_on: tuple[HandOn, ...]
    tokens_by: str
    windows: tuple[Window, ...]
    worst: tuple[WorstQuestion, ...]
    n_unfindable: int  # questions of whose reference documents the corpus has none
    notes: tuple[str, ...]
    run_line: str
    gold: str | None = None  # the gold set that the questions are of; None of files
    n_test_questions: int = 0  # of its sealed split: they are in every number, and none of them is shown
    experiment: str = ""
    ranks: tuple[RankRow, ...] = field(default=(), metadata={"json": False})  # a row a question


@working("Ranking the documents")
def measure_retrieval(
    collection: Collection, options: RetrievalOptions, run: Run | None = None
) -> RetrievalResult:
    """Rank by BM25, or take the rankings of a retriever of the user's own from `run`, and measure."""
    options.check()
    if run is None and not collection.documents:
        raise InputError("no documents to rank: give --documents, or the rankings of a retriever with --run")
    if not any(question.reference_documents for question in collection.questions):
        raise InputError(
            f"none of the {len(collection.questions)} questions of {collection.questions_from} names a "
            "reference document: name them in a column document_id (--col reference=), or with --qrels"
        )
    tokens, keep = tokenizer_named(options.tokenizer), max(options.k, *CUTS)
    lengths: list[int] = []

    def documents() -> Iterator[list[str]]:
        for document in collection.documents or ():
            words = tokens(document.text)
            lengths.append(len(words))
            yield words

    if run is not None:
        ranking = by_run(run, collection, keep=keep)
        for _ in documents():  # for their lengths alone
            pass
        worst = _worst_questions(collection, ranking, run)
    else:
        index = Bm25.of(documents())
        queries = [tokens(question.question) for question in collection.questions]
        ranking = by_bm25(index, queries, collection, keep=keep)
        worst = _worst_questions(collection, ranking)
    known_lengths = None if collection.documents is None else lengths
    return _result(collection, options, ranking, run=run, lengths=known_lengths, worst=worst)


def _result(
    collection: Collection,
    options: RetrievalOptions,
    ranking: Ranking,
    *,
    run: Run | None,
    lengths: Sequence[int] | None,
    worst: tuple[WorstQuestion, ...],
) -> RetrievalResult:
    k, n_questions, scored = options.k, len(collection.questions), ranking.has_reference
    n_documents = None if collection.documents is None else len(collection.documents)
    # The group of a question is its first reference document; a question without one is alone.
    number: dict[tuple[str, ...], int] = {}
    keys = (each.reference_documents[:1] or ("", each.question_id) for each in collection.questions)
    groups = np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)
    of_scored, n, rank, tied = (
        groups[scored].tolist(),
        int(scored.sum()),
        ranking.best_rank,
        ranking.best_ties > 0,
    )

    def mean(values: Floats) -> Estimate:
        """Over the questions that name a reference document, with the interval by document."""
        return mean_estimate(values[scored], of_scored, level=_LEVEL)

    def by_depth(measure: Callable[[int], Floats]) -> dict[str, Estimate]:
        return {str(depth): mean(measure(depth)) for depth in cuts(k, n_documents)}

    score, reciprocal = ranking.reference_score(k).tolist(), ranking.reciprocal_rank().tolist()
    ranks = [
        RankRow(
            question.question_id,
            question.reference_documents,
            int(rank[place]) or None,
            int(ranking.best_ties[place]),
            score[place] if scored[place] else None,
            reciprocal[place] if scored[place] else None,
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
        judged=by_depth(ranking.judged) if collection.graded else None,
        one_reference=bool(ranking.n_references.max() == 1),
        histogram=histogram(rank[scored], k),
        n_tied=int(tied.sum()),
        n_tied_in_first_k=int((tied & (rank <= k)).sum()),
        hand_on=_hand_on(ranking, mean, lengths, k),
        tokens_by=options.tokenizer,
        windows=windows(ranking.reference_score(k), options.window),
        worst=worst,
        n_unfindable=unfindable(collection),
        notes=(
            *findings(collection, n),
            *(run_findings(collection, run, n) if run else ()),
            *collection.notes,
        ),
        run_line=_run_line(collection, options, n, run),
        gold=collection.gold,
        n_test_questions=len(collection.sealed),
        ranks=tuple(ranks),
    )


def _hand_on(
    ranking: Ranking, mean: Callable[[Floats], Estimate], lengths: Sequence[int] | None, k: int
) -> tuple[HandOn, ...]:
    """Recall and the mean tokens of the first documents, over how many are handed on; k is among them."""
    head = ranking.head[ranking.has_reference]
    most = head.shape[1] if lengths is None else min(head.shape[1], len(lengths))
    # A head's -1 is the 0 behind the last document.
    totals = None if lengths is None else np.cumsum(np.array([*lengths, 0])[head], axis=1)
    rows = []
    for depth in (depth for depth in sorted({k, *_HANDED_ON}) if depth <= most):
        tokens = None if totals is None else float(totals[:, depth - 1].mean())
        rows.append(HandOn(depth, mean(ranking.recall(depth)), tokens))
    return tuple(rows)


def _run_line(collection: Collection, options: RetrievalOptions, n: int, run: Run | None) -> str:
    documents, questions = collection.shas
    parts = [f"documents:{collection.documents_from}@{documents[:12]}"] if documents else []
    parts += [f"questions:{collection.questions_from}@{questions[:12]}", f"n:{n}"]
    if run is not None:
        parts += [f"run:{run.name}@{run.sha256[:12]}", f"tokens:{options.tokenizer}"]
    else:
        parts += [f"bm25:k1={K1:g},b={B:g},epsilon={EPSILON:g}", f"tokenizer:{options.tokenizer}"]
    parts += [f"k:{options.k}|window:{options.window}|level:{_LEVEL:g}|by:document"]
    return "|".join([*parts, f"version:{__version__}"])


def windows(scores: Floats, size: int) -> tuple[Window, ...]:
    """The mean score of each window of `size` questions; NaN is not scored."""
    rows = []
    for start in range(0, len(scores), size):
        inside = scores[start : start + size]
        known = inside[~np.isnan(inside)]
        name = f"{start:05d}_{len(inside):05d}"
        rows.append(Window(name, len(known), float(known.mean()) if len(known) else None))
    return tuple(rows)


def _worst_questions(
    collection: Collection, ranking: Ranking, run: Run | None = None
) -> tuple[WorstQuestion, ...]:
    """The ten questions whose best reference document ranks lowest, and not first; ties in file order.

    Questions none of whose reference documents is in the corpus are no fault of the retriever: they are left
    out here. So are the test questions of a gold set.
    """
    rank, documents = ranking.best_rank, collection.documents or ()
    findable = np.zeros(len(rank), dtype=np.bool_)
    there = (ranking.document >= 0) | (collection.documents is None)
    findable[ranking.question[(ranking.grade > 0) & there]] = True
    shown = np.array([question.question_id not in collection.sealed for question in collection.questions])
    candidates = np.flatnonzero(findable & shown & (rank != 1))
    depth = np.where(rank > 0, rank, np.iinfo(np.int64).max)
    titles = {document.document_id: document.title for document in documents}
    rows = []
    for place in candidates[np.argsort(-depth[candidates], kind="stable")][:_WORST].tolist():
        question, pair, reached = collection.questions[place], int(ranking.best[place]), int(rank[place])
        head = ranking.head[place, :_ABOVE].tolist()
        # The ids of a run may be unknown to the corpus.
        first = run.ranked.get(question.question_id, []) if run else [documents[k].document_id for k in head]
        above = first[: min(_ABOVE, reached - 1 if reached else _ABOVE)]
        rows.append(
            WorstQuestion(
                question.question_id,
                question.question,
                reference_document=question.reference_documents[0] if pair < 0 else ranking.names[pair],
                rank=reached or None,
                ties=int(ranking.best_ties[place]),
                above=tuple(Above(name, titles.get(name)) for name in above),
            )
        )
    return tuple(rows)
