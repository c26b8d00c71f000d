"""The retriever test: a collection and a retriever to the contract's object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgecal import __version__
from judgecal.errors import InputError
from judgecal.records import Estimate, Result
from judgecal.retrieval.bm25 import EPSILON, K1, B, Bm25, Floats, Ints, Tokenizer, tokenizer_named
from judgecal.retrieval.corpus import Collection
from judgecal.retrieval.findings import (
    Duplicates,
    EmptyDocuments,
    MissingReferences,
    RunFindings,
    UnmatchedIds,
    findings_of,
)
from judgecal.retrieval.ranking import CUTS, Marks, Measured, Pairs, RankBin, by_bm25, by_run, cuts, histogram
from judgecal.retrieval.trec import Run
from judgecal.retrieval.weak_spots import Spread, Window, WorstQuestion, windows, worst_questions
from judgecal.stats.intervals import mean_estimate

_HANDED_ON = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100)


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """What is asked of a test.

    Attributes:
        k: how many documents are handed on; the score falls from 1 to 0 over them.
        tokenizer: by name; with a run it counts the tokens handed on and nothing else.
        with_title: titles are indexed too, in front of the texts.
        window: questions a window. n_worst: how many questions to show. seed: of the windows' draws.
        level: nominal coverage of the intervals.
    """

    k: int = 5
    tokenizer: str = "words"
    with_title: bool = False
    window: int = 110
    n_worst: int = 10
    seed: int = 0
    level: float = 0.95

    def check(self) -> None:
        """Raises: InputError: a number is out of its range; all of them are listed."""
        problems = [
            f"{name} {value}: it must be at least {least}"
            for name, value, least in (("-k", self.k, 1), ("--window", self.window, 1), ("--worst", self.n_worst, 0))
            if value < least
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
    """What handing on the first k documents gives and costs: recall, and tokens on average where texts are known."""

    k: int
    recall: Estimate
    tokens: float | None


@dataclass(frozen=True, slots=True)
class RankRow:
    """A question's line of `ranks.jsonl`: None where it names no reference document, or that is not in the ranking."""

    question_id: str
    reference_documents: tuple[str, ...]
    rank: int | None
    ties: int
    score: float | None
    reciprocal_rank: float | None


@dataclass(frozen=True, slots=True)
class RetrievalResult(Result):
    """What a retriever comes to; the mappings are by depth, such as "5".

    Attributes:
        n_documents: None where the corpus is not known.
        reference_document_score: 1 for a reference document that comes first, less 1/k for each place behind.
        judged: the share of the first documents that qrels judge at all; None without qrels.
        one_reference: no question names several reference documents.
        hand_on: over how many documents are handed on. tokens_by: the tokenizer that counts them.
        run: what of a run does not meet the collection; None for BM25.
    """

    n_questions: int
    n_documents: int | None
    n_without_reference: int
    k: int
    reference_document_score: Estimate
    mrr: Estimate
    recall: Mapping[str, Estimate]
    success: Mapping[str, Estimate]
    ndcg: Mapping[str, Estimate]
    judged: Mapping[str, Estimate] | None
    one_reference: bool
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
    run: RunFindings | None
    notes: tuple[str, ...]
    run_line: str
    experiment: str = ""


@dataclass(frozen=True, slots=True)
class Tested:
    """A finished test, and a row a question."""

    result: RetrievalResult
    ranks: tuple[RankRow, ...]


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Rankings and what made them: the index and queries of BM25, or a run; token counts where texts are known."""

    measured: Measured
    lengths: Ints | None
    index: Bm25 | None = None
    queries: Sequence[Sequence[str]] = ()


def measure_retrieval(collection: Collection, options: RetrievalOptions, run: Run | None = None) -> Tested:
    """Rank by BM25, or take the rankings of a retriever of the user's own from `run`, and measure.

    Raises:
        InputError: an option is out of range, no question names a reference document, or there is nothing to rank.
    """
    options.check()
    _check(collection, run)
    tokenizer = tokenizer_named(options.tokenizer)
    pairs = Pairs.of(collection)
    keep = max(options.k, *CUTS)
    if run is not None:
        by_it = Measured(pairs, by_run(run, collection, pairs, keep=keep))
        ranked = _Ranked(by_it, _lengths(collection, tokenizer))
    else:
        ranked = _by_bm25(collection, pairs, tokenizer, with_title=options.with_title, keep=keep)
    result = _result(collection, options, ranked, run=run)
    return Tested(result, _rows(collection, ranked.measured, options.k))


def _check(collection: Collection, run: Run | None) -> None:
    if run is None and not collection.documents:
        raise InputError("no documents to rank: give --documents, or the rankings of a retriever with --run")
    if not any(question.reference_documents for question in collection.questions):
        raise InputError(
            f"none of the {len(collection.questions)} questions of {collection.questions_from} names a reference "
            "document: name them in a column document_id (--reference-column), or with --qrels"
        )


def _by_bm25(collection: Collection, pairs: Pairs, tokenizer: Tokenizer, *, with_title: bool, keep: int) -> _Ranked:
    lengths: list[int] = []

    def documents() -> Iterator[list[str]]:
        for document in collection.documents or ():
            headed = f"{document.title} {document.text}" if with_title and document.title else document.text
            words = tokenizer.tokens(headed)
            lengths.append(len(words))
            yield words

    index = Bm25.of(documents())
    queries = [tokenizer.tokens(question.question) for question in collection.questions]
    measured = Measured(pairs, by_bm25(index, queries, pairs, keep=keep))
    return _Ranked(measured, np.array(lengths, dtype=np.int64), index, queries)


def _lengths(collection: Collection, tokenizer: Tokenizer) -> Ints | None:
    if collection.documents is None:
        return None
    return np.array([len(tokenizer.tokens(one.text)) for one in collection.documents], dtype=np.int64)


def _result(collection: Collection, options: RetrievalOptions, ranked: _Ranked, *, run: Run | None) -> RetrievalResult:
    measured, k = ranked.measured, options.k
    n_documents = None if collection.documents is None else len(collection.documents)
    scored, n_questions = int(measured.has_reference.sum()), len(collection.questions)
    means = _Means(_groups(collection), measured.has_reference, options.level)
    rows, spread = windows(measured.score(k), means.groups, size=options.window, seed=options.seed)
    findings = findings_of(collection, run)

    def by_depth(measure: Callable[[int], Floats]) -> dict[str, Estimate]:
        return {str(depth): means.of(measure(depth)) for depth in cuts(k, n_documents)}

    return RetrievalResult(
        n_questions=n_questions,
        n_documents=n_documents,
        n_without_reference=n_questions - scored,
        k=k,
        reference_document_score=means.of(measured.score(k)),
        mrr=means.of(measured.reciprocal_rank()),
        recall=by_depth(measured.recall),
        success=by_depth(measured.success),
        ndcg=by_depth(measured.ndcg),
        judged=by_depth(measured.judged) if collection.graded else None,
        one_reference=bool(measured.n_references.max() == 1),
        histogram=histogram(measured.rank[measured.has_reference], k),
        ties=_ties(measured, k),
        hand_on=_hand_on(measured, means, ranked.lengths, k=k),
        tokens_by=options.tokenizer,
        windows=rows,
        spread=spread,
        worst=worst_questions(
            collection, measured, n=options.n_worst, index=ranked.index, queries=ranked.queries, run=run
        ),
        missing_references=findings.missing_references,
        unmatched_ids=findings.unmatched_ids,
        empty_documents=findings.empty_documents,
        duplicates=findings.duplicates,
        run=findings.run,
        notes=(*findings.notes(n_questions=scored, n_documents=n_documents), *collection.notes),
        run_line=_run_line(collection, options, scored, run=run),
    )


def _groups(collection: Collection) -> Ints:
    """The document of each question, by number: its first reference document; a question without one is alone."""
    number: dict[tuple[str, ...], int] = {}
    keys = (question.reference_documents[:1] or ("", question.question_id) for question in collection.questions)
    return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Means:
    """Means over the questions that name a reference document, with intervals by document."""

    groups: Ints
    scored: Marks
    level: float

    def of(self, values: Floats) -> Estimate:
        return mean_estimate(values[self.scored], self.groups[self.scored].tolist(), level=self.level)


def _ties(measured: Measured, k: int) -> Ties:
    tied = measured.ties > 0
    return Ties(int(tied.sum()), int((tied & (measured.rank <= k)).sum()))


def _hand_on(measured: Measured, means: _Means, lengths: Ints | None, *, k: int) -> tuple[HandOn, ...]:
    """Recall and the mean tokens of the first documents, over how many are handed on; k is among them."""
    head = measured.ranking.head[measured.has_reference]
    most = head.shape[1] if lengths is None else min(head.shape[1], len(lengths))
    # A head's -1 is the 0 behind the last document.
    tokens = None if lengths is None else np.cumsum(np.append(lengths, 0)[head], axis=1)
    return tuple(
        HandOn(depth, means.of(measured.recall(depth)), None if tokens is None else float(tokens[:, depth - 1].mean()))
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
    parts += [f"k:{options.k}|window:{options.window}|seed:{options.seed}|level:{options.level:g}|by:document"]
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
