"""Where a retriever is weak: windows of consecutive questions beside chance, and the questions that went
worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from judgecal.rag.retrieval.bm25 import Bm25, Floats, Ints
from judgecal.rag.retrieval.corpus import Collection
from judgecal.rag.retrieval.ranking import Measured
from judgecal.rag.retrieval.trec import Run

_DRAWS = 1000
_BAND = (0.025, 0.975)
_EPS = 1e-12  # the same numbers summed in another order
_ABOVE = 3
_WORDS = 5


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive questions, named by zero-based start and count (five digits each); `n` of them are scored.

    `chance` is where 95% of the draws lie, `outside` on which side of that the score is, if any.
    """

    name: str
    n: int
    score: float | None = None
    n_documents: int = 0
    chance: tuple[float, float] | None = None
    outside: Literal["below", "above"] | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """SD, lowest and highest of the windows' scores."""

    sd: float
    min: float
    max: float


@dataclass(frozen=True, slots=True)
class Drawn:
    """One number over all draws: its mean, and where 95% of it lies."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Chance:
    """SD, lowest and highest of the windows' scores, in the draws."""

    sd: Drawn
    min: Drawn
    max: Drawn


@dataclass(frozen=True, slots=True)
class Spread:
    """How far windows differ, beside random draws; `documents_together` says whether the file keeps them
    together."""

    n_windows: int
    observed: Observed
    chance: Chance
    p_sd: float
    p_min: float
    draws: int
    documents_together: bool


@dataclass(frozen=True, slots=True)
class Above:
    """A document that ranks above the reference document."""

    document_id: str
    title: str | None


@dataclass(frozen=True, slots=True)
class WordWon:
    """A word, and what it adds to the scores of the first document and of the reference document."""

    word: str
    above: float
    reference: float


@dataclass(frozen=True, slots=True)
class WorstQuestion:
    """A question whose reference document ranks low."""

    question_id: str
    question: str
    reference_document: str
    rank: int | None  # None where the document is not in the ranking
    ties: int  # other documents with its score
    above: tuple[Above, ...]  # the first documents of the ranking
    words: (
        tuple[WordWon, ...] | None
    )  # by which the first one won most; None for a retriever of the user's own


def windows(
    scores: Floats, groups: Ints, *, size: int, seed: int
) -> tuple[tuple[Window, ...], Spread | None]:
    """The mean score of each window of `size` questions, and their spread beside random draws; None for one
    window.

    A draw puts the documents (`groups`) into random order, each with all its questions, and fills the same
    windows: what the windows show beyond that is more than which documents happen to stand together. NaN is
    not scored.
    """
    starts = range(0, len(scores), size)
    known = ~np.isnan(scores)
    counts = np.array([known[start : start + size].sum() for start in starts])
    drawn = _drawn(scores[known], groups[known], counts, seed=seed)
    rows = []
    for place, start in enumerate(starts):
        inside = slice(start, start + size)
        name = f"{start:05d}_{len(scores[inside]):05d}"
        rows.append(_window(name, scores[inside], groups[inside], drawn=drawn[:, place]))
    # Whether the questions of each document stand together in the file, as they do in the draws.
    together = bool(1 + np.count_nonzero(np.diff(groups[known])) == len(np.unique(groups[known])))
    return tuple(rows), _spread(rows, drawn[:, counts > 0], together=together)


def _window(name: str, scores: Floats, groups: Ints, *, drawn: Floats) -> Window:
    known = ~np.isnan(scores)
    if not known.any():
        return Window(name, 0)
    score = float(scores[known].mean())
    low, high = np.quantile(drawn, _BAND).tolist()
    outside: Literal["below", "above"] | None = "below" if score < low - _EPS else None
    outside = "above" if score > high + _EPS else outside
    return Window(name, int(known.sum()), score, len(np.unique(groups[known])), (low, high), outside)


def _drawn(scores: Floats, groups: Ints, counts: Ints, *, seed: int) -> Floats:
    """Draws x windows: the means of the windows over documents in random order; NaN for an empty window."""
    order = np.argsort(groups, kind="stable")
    sizes = np.unique(groups, return_counts=True)[1]
    firsts = np.cumsum(sizes) - sizes
    by_group = scores[order]
    ends = np.cumsum(counts)
    rng = np.random.default_rng(seed)
    means = np.full((_DRAWS, len(counts)), np.nan)
    for draw in range(_DRAWS):
        turn = rng.permutation(len(sizes))
        before = np.cumsum(sizes[turn]) - sizes[turn]
        places = np.repeat(firsts[turn] - before, sizes[turn]) + np.arange(len(scores))
        total = np.concatenate(([0.0], np.cumsum(by_group[places])))
        sums = total[ends] - total[ends - counts]
        np.divide(sums, counts, out=means[draw], where=counts > 0)
    return means


def _spread(rows: Sequence[Window], drawn: Floats, *, together: bool) -> Spread | None:
    scores = np.array([row.score for row in rows if row.score is not None])
    if len(scores) < 2:
        return None
    observed = Observed(float(scores.std(ddof=1)), float(scores.min()), float(scores.max()))
    sd, low, high = drawn.std(axis=1, ddof=1), drawn.min(axis=1), drawn.max(axis=1)
    chance = Chance(*(Drawn(float(of.mean()), *np.quantile(of, _BAND).tolist()) for of in (sd, low, high)))
    # The p values of Monte Carlo tests: the data are one draw more (Davison and Hinkley 1997).
    p_sd, p_min = (
        (int(as_far.sum()) + 1) / (_DRAWS + 1)
        for as_far in (sd >= observed.sd - _EPS, low <= observed.min + _EPS)
    )
    return Spread(len(scores), observed, chance, p_sd, p_min, _DRAWS, together)


def worst_questions(
    collection: Collection,
    measured: Measured,
    *,
    n: int,
    index: Bm25 | None = None,
    queries: Sequence[Sequence[str]] = (),
    run: Run | None = None,
) -> tuple[WorstQuestion, ...]:
    """The n questions whose best reference document ranks lowest, and not first; ties in file order.

    Questions none of whose reference documents is in the corpus are no fault of the retriever: they are left
    out here. So are the test questions of a gold set.
    """
    rank, pairs = measured.rank, measured.pairs
    findable = np.zeros(len(rank), dtype=np.bool_)
    there = (pairs.document >= 0) | (collection.documents is None)
    findable[pairs.question[(pairs.grade > 0) & there]] = True
    shown = np.array([question.question_id not in collection.sealed for question in collection.questions])
    candidates = np.flatnonzero(findable & shown & (rank != 1))
    depth = np.where(rank > 0, rank, np.iinfo(np.int64).max)
    chosen = candidates[np.argsort(-depth[candidates], kind="stable")][:n]
    titles = {one.document_id: one.title for one in collection.documents or ()}
    rows = []
    for place in chosen.tolist():
        question, pair, own_rank = collection.questions[place], int(measured.best[place]), int(rank[place])
        first = _head(collection, measured, place, run=run)[
            : min(_ABOVE, own_rank - 1 if own_rank else _ABOVE)
        ]
        words = None
        if index is not None:
            above, own = int(measured.ranking.head[place, 0]), int(pairs.document[pair])
            words = _words_won(index, queries[place], above=above, reference=own)
        rows.append(
            WorstQuestion(
                question.question_id,
                question.question,
                reference_document=question.reference_documents[0] if pair < 0 else pairs.names[pair],
                rank=own_rank or None,
                ties=int(measured.ties[place]),
                above=tuple(Above(name, titles.get(name)) for name in first),
                words=words,
            )
        )
    return tuple(rows)


def _head(collection: Collection, measured: Measured, place: int, *, run: Run | None) -> list[str]:
    """The ids at the head of a ranking; those of a run may be unknown to the corpus."""
    if run is not None:
        return run.ranked.get(collection.questions[place].question_id, [])
    documents = collection.documents or ()
    return [documents[number].document_id for number in measured.ranking.head[place, :_ABOVE].tolist()]


def _words_won(index: Bm25, query: Sequence[str], *, above: int, reference: int) -> tuple[WordWon, ...]:
    """The words by which one document beats another, the largest difference first."""
    theirs, ours = index.shares(query, above), index.shares(query, reference)
    ahead = {word: added - ours.get(word, 0.0) for word, added in theirs.items()}
    won = sorted((word for word in ahead if ahead[word] > 0.0), key=lambda word: -ahead[word])[:_WORDS]
    return tuple(WordWon(word, theirs[word], ours.get(word, 0.0)) for word in won)
