"""The retriever test: a collection and a retriever to measures, windows and worst questions."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from judgecal._version import __version__
from judgecal.errors import InputError, listed, refuse, working
from judgecal.rag.questions import Collection
from judgecal.rag.retrieval.indexes import EPSILON, K1, B, Bm25, Floats, words_of
from judgecal.rag.retrieval.ranking import CUTS, Ranking, Run, by_bm25, by_run, cuts
from judgecal.records import Estimate, Result
from judgecal.stats.intervals import mean_estimate

_LEVEL = 0.95  # nominal coverage of the intervals
_WORST = 10  # questions shown
_MOST = 10**9  # documents or questions of an option


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """What a test is to do."""

    k: int = 5  # documents handed on; the score falls from 1 to 0 over them
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
class WorstQuestion:
    """A question whose reference document ranks low."""

    question_id: str
    question: str
    reference_documents: tuple[str, ...]
    rank: int | None  # of the best of them; None where none is in the ranking
    first: str  # the document that came first


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
    keep = max(options.k, *CUTS)
    if run is not None:
        ranking = by_run(run, collection, keep=keep)
    else:
        index = Bm25.of(words_of(document.text) for document in collection.documents or ())
        queries = [words_of(question.question) for question in collection.questions]
        ranking = by_bm25(index, queries, collection, keep=keep)
    k, n_questions, scored = options.k, len(collection.questions), ranking.has_reference
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
        return {str(depth): mean(measure(depth)) for depth in cuts(k, n_documents)}

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
        windows=windows(ranking.reference_score(k), options.window),
        worst=_worst_questions(collection, ranking, run),
        n_unfindable=_unfindable(collection),
        notes=(*_findings(collection, run, n), *collection.notes),
        run_line=_run_line(collection, options, n, run),
        gold=collection.gold.name if collection.gold else None,
        n_test_questions=len(collection.sealed),
        ranks=tuple(ranks),
    )


def _run_line(collection: Collection, options: RetrievalOptions, n: int, run: Run | None) -> str:
    parts = []
    if collection.documents is not None:
        parts = [f"documents:{collection.documents_from}@{collection.documents_sha[:12]}"]
    parts += [f"questions:{collection.questions_from}@{collection.questions_sha[:12]}", f"n:{n}"]
    if run is not None:
        parts += [f"run:{run.name}@{run.sha256[:12]}"]
    else:
        parts += [f"bm25:k1={K1:g},b={B:g},epsilon={EPSILON:g}"]
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


def _worst_questions(collection: Collection, ranking: Ranking, run: Run | None) -> tuple[WorstQuestion, ...]:
    """The ten questions whose best reference document ranks lowest, and not first; ties in file order.

    Questions none of whose reference documents is in the corpus are no fault of the retriever: they are left
    out here. So are the test questions of a gold set.
    """
    ranks, documents, asked = ranking.best_rank.tolist(), collection.documents or (), collection.questions
    low = [
        place
        for place, question in enumerate(asked)
        if ranks[place] != 1
        and question.group not in collection.sealed
        and not all(map(collection.lacks, question.reference_documents))
    ]
    rows = []
    for place in sorted(low, key=lambda place: -(ranks[place] or sys.maxsize))[:_WORST]:
        question, head = asked[place], ranking.head[place, :1].tolist()
        # The ids of a run may be unknown to the corpus.
        first = (
            run.ranked.get(question.group, []) if run else [documents[number].document_id for number in head]
        )
        rows.append(
            WorstQuestion(
                question.group,
                question.question,
                question.reference_documents,
                ranks[place] or None,
                next(iter(first), ""),
            )
        )
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
    known = {question.group: bool(question.reference_documents) for question in collection.questions}
    ranked = {name for ids in run.ranked.values() for name in ids}
    for names, what in (
        (
            [name for name in known if known[name] and name not in run.ranked],
            f"of {n_scored} questions are missing from the run and score 0",
        ),
        (
            [name for name in run.ranked if name not in known],
            "questions of the run are not in the set, so we skipped them",
        ),
        (
            sorted(filter(collection.lacks, ranked)),
            "documents of the run are not in the corpus and keep their ranks",
        ),
    ):
        if names:
            yield f"{len(names)} {what}: {listed(names, sealed=collection.sealed)}"
