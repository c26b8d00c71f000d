"""The retriever test: a collection and a retriever to the contract's object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judgecal._version import __version__
from judgecal.errors import InputError
from judgecal.rag.retrieval.bm25 import EPSILON, K1, B, Bm25, Floats, Ints, tokenizer_named
from judgecal.rag.retrieval.corpus import Collection
from judgecal.rag.retrieval.findings import (
    Duplicates,
    EmptyDocuments,
    MissingReferences,
    RunFindings,
    UnmatchedIds,
    findings_of,
)
from judgecal.rag.retrieval.ranking import CUTS, Measured, Pairs, RankBin, by_bm25, by_run, cuts, histogram
from judgecal.rag.retrieval.trec import Run
from judgecal.rag.retrieval.weak_spots import Spread, Window, WorstQuestion, windows, worst_questions
from judgecal.records import Estimate, Result
from judgecal.stats.intervals import mean_estimate

_LEVEL = 0.95  # nominal coverage of the intervals
_HANDED_ON = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100)

MOST_DOCUMENTS = 10**9
"""The largest number of documents or questions that an option takes."""


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """What is asked of a test."""

    k: int = 5  # documents handed on; the score falls from 1 to 0 over them
    tokenizer: str = "words"  # with a run it counts the tokens handed on and nothing else
    with_title: bool = False  # titles are indexed too, in front of the texts
    window: int = 110  # questions a window
    worst: int = 10  # how many of the worst questions to show
    seed: int = 0  # of the windows' draws

    def check(self) -> None:
        """Raises: InputError: a number is out of its range; all of them are listed."""
        problems = [
            f"{name} {str(value)[:12]}: it must be from {least} to {MOST_DOCUMENTS:,}"
            for name, value, least in (
                ("-k", self.k, 1),
                ("--window", self.window, 1),
                ("--worst", self.worst, 0),
            )
            if not least <= value <= MOST_DOCUMENTS
        ]
        if problems:
            raise InputError(problems)


@dataclass(frozen=True, slots=True)
class Ties:
    """Questions whose best reference document shares its score with others."""

    n_questions: int
    n_in_first_k: int


@dataclass(frozen=True, slots=True)
class HandOn:
    """What handing on the first k documents gives and costs: recall, and tokens on average where texts are
    known."""

    k: int
    recall: Estimate
    tokens: float | None


@dataclass(frozen=True, slots=True)
class RankRow:
    """A question's line of `ranks.jsonl`: None where it names no reference document, or that is not in the
    ranking."""

    question_id: str
    reference_documents: tuple[str, ...]
    rank: int | None
    ties: int
    score: float | None
    reciprocal_rank: float | None


@dataclass(frozen=True, slots=True)
class RetrievalResult(Result):
    """What a retriever comes to; the mappings are by depth, such as "5"."""

    n_questions: int
    n_documents: int | None  # None where the corpus is not known
    n_without_reference: int
    k: int
    reference_document_score: (
        Estimate  # 1 for a reference document that comes first, less 1/k for each place behind
    )
    mrr: Estimate
    recall: Mapping[str, Estimate]
    success: Mapping[str, Estimate]
    ndcg: Mapping[str, Estimate]
    judged: (
        Mapping[str, Estimate] | None
    )  # the share of the first documents that qrels judge; None without qrels
    one_reference: bool  # no question names several reference documents
    histogram: tuple[RankBin, ...]
    ties: Ties
    hand_on: tuple[HandOn, ...]
    tokens_by: str
    windows: tuple[Window, ...]
    spread: Spread | None
    worst: tuple[WorstQuestion, ...]
    missing_references: MissingReferences
    unmatched_ids: UnmatchedIds | None
    empty_documents: EmptyDocuments
    duplicates: Duplicates
    run: RunFindings | None  # None for BM25
    notes: tuple[str, ...]
    run_line: str
    gold: str | None = None  # the gold set that the questions are of; None of files
    n_test_questions: int = (
        0  # of that set's sealed split: they are in every number, and none of them is shown
    )
    experiment: str = ""


@dataclass(frozen=True, slots=True)
class Tested:
    """A finished test, and a row a question."""

    result: RetrievalResult
    ranks: tuple[RankRow, ...]


def measure_retrieval(collection: Collection, options: RetrievalOptions, run: Run | None = None) -> Tested:
    """Rank by BM25, or take the rankings of a retriever of the user's own from `run`, and measure.

    Raises:
        InputError: an option is out of range, no question names a reference document, or there is nothing to
            rank.
    """
    options.check()
    _check(collection, run)
    tokens, pairs, keep = tokenizer_named(options.tokenizer), Pairs.of(collection), max(options.k, *CUTS)
    lengths: list[int] = []

    def documents() -> Iterator[list[str]]:
        titled = options.with_title and run is None
        for document in collection.documents or ():
            words = tokens(
                f"{document.title} {document.text}" if titled and document.title else document.text
            )
            lengths.append(len(words))
            yield words

    if run is not None:
        measured = Measured(pairs, by_run(run, collection, pairs, keep=keep))
        for _ in documents():  # for their lengths alone
            pass
        worst = worst_questions(collection, measured, n=options.worst, run=run)
    else:
        index, queries = (
            Bm25.of(documents()),
            [tokens(question.question) for question in collection.questions],
        )
        measured = Measured(pairs, by_bm25(index, queries, pairs, keep=keep))
        worst = worst_questions(collection, measured, n=options.worst, index=index, queries=queries)
    result = _result(collection, options, measured, run=run, lengths=lengths, worst=worst)
    result = replace(result, gold=collection.gold, n_test_questions=len(collection.sealed))
    return Tested(result, _rows(collection, measured, options.k))


def _check(collection: Collection, run: Run | None) -> None:
    if run is None and not collection.documents:
        raise InputError("no documents to rank: give --documents, or the rankings of a retriever with --run")
    if not any(question.reference_documents for question in collection.questions):
        raise InputError(
            f"none of the {len(collection.questions)} questions of {collection.questions_from} names a reference "
            "document: name them in a column document_id (--reference-column), or with --qrels"
        )


def _result(
    collection: Collection,
    options: RetrievalOptions,
    measured: Measured,
    *,
    run: Run | None,
    lengths: Sequence[int],
    worst: tuple[WorstQuestion, ...],
) -> RetrievalResult:
    k, n_questions, scored = options.k, len(collection.questions), measured.has_reference
    n_documents = None if collection.documents is None else len(collection.documents)
    groups, tied, findings = _groups(collection), measured.ties > 0, findings_of(collection, run)
    rows, spread = windows(measured.score(k), groups, size=options.window, seed=options.seed)
    of_scored, n = groups[scored].tolist(), int(scored.sum())

    def mean(values: Floats) -> Estimate:
        """Over the questions that name a reference document, with the interval by document."""
        return mean_estimate(values[scored], of_scored, level=_LEVEL)

    def by_depth(measure: Callable[[int], Floats]) -> dict[str, Estimate]:
        return {str(depth): mean(measure(depth)) for depth in cuts(k, n_documents)}

    return RetrievalResult(
        n_questions=n_questions,
        n_documents=n_documents,
        n_without_reference=n_questions - n,
        k=k,
        reference_document_score=mean(measured.score(k)),
        mrr=mean(measured.reciprocal_rank()),
        recall=by_depth(measured.recall),
        success=by_depth(measured.success),
        ndcg=by_depth(measured.ndcg),
        judged=by_depth(measured.judged) if collection.graded else None,
        one_reference=bool(measured.n_references.max() == 1),
        histogram=histogram(measured.rank[scored], k),
        ties=Ties(int(tied.sum()), int((tied & (measured.rank <= k)).sum())),
        hand_on=_hand_on(measured, mean, None if n_documents is None else lengths, k=k),
        tokens_by=options.tokenizer,
        windows=rows,
        spread=spread,
        worst=worst,
        missing_references=findings.missing_references,
        unmatched_ids=findings.unmatched_ids,
        empty_documents=findings.empty_documents,
        duplicates=findings.duplicates,
        run=findings.run,
        notes=(
            *findings.notes(n_questions=n, n_documents=n_documents, sealed=collection.sealed),
            *collection.notes,
        ),
        run_line=_run_line(collection, options, n, run=run),
    )


def _groups(collection: Collection) -> Ints:
    """The document of each question, by number: its first reference document; a question without one is
    alone."""
    number: dict[tuple[str, ...], int] = {}
    keys = (
        question.reference_documents[:1] or ("", question.question_id) for question in collection.questions
    )
    return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)


def _hand_on(
    measured: Measured, mean: Callable[[Floats], Estimate], lengths: Sequence[int] | None, *, k: int
) -> tuple[HandOn, ...]:
    """Recall and the mean tokens of the first documents, over how many are handed on; k is among them."""
    head = measured.ranking.head[measured.has_reference]
    most = head.shape[1] if lengths is None else min(head.shape[1], len(lengths))
    # A head's -1 is the 0 behind the last document.
    tokens = None if lengths is None else np.cumsum(np.array([*lengths, 0])[head], axis=1)
    return tuple(
        HandOn(
            depth,
            mean(measured.recall(depth)),
            None if tokens is None else float(tokens[:, depth - 1].mean()),
        )
        for depth in sorted({k, *_HANDED_ON})
        if depth <= most
    )


def _run_line(collection: Collection, options: RetrievalOptions, n: int, *, run: Run | None) -> str:
    documents, questions = collection.shas
    parts = [f"documents:{collection.documents_from}@{documents[:12]}"] if documents else []
    parts += [f"questions:{collection.questions_from}@{questions[:12]}", f"n:{n}"]
    if run is not None:
        parts += [f"run:{run.name}@{run.sha256[:12]}", f"tokens:{options.tokenizer}"]
    else:
        parts += [f"bm25:k1={K1:g},b={B:g},epsilon={EPSILON:g}", f"tokenizer:{options.tokenizer}"]
        parts += ["indexed:title+text" if options.with_title else "indexed:text"]
    parts += [f"k:{options.k}|window:{options.window}|seed:{options.seed}|level:{_LEVEL:g}|by:document"]
    return "|".join([*parts, f"version:{__version__}"])


def _rows(collection: Collection, measured: Measured, k: int) -> tuple[RankRow, ...]:
    score, reciprocal = measured.score(k).tolist(), measured.reciprocal_rank().tolist()
    ranks, ties, has = measured.rank.tolist(), measured.ties.tolist(), measured.has_reference.tolist()
    return tuple(
        RankRow(
            question.question_id,
            question.reference_documents,
            ranks[place] or None,
            ties[place],
            score[place] if has[place] else None,
            reciprocal[place] if has[place] else None,
        )
        for place, question in enumerate(collection.questions)
    )
