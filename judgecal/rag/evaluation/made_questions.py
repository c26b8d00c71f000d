"""What `gold make` comes to: how many questions of which kind, how they were made, and what was turned
down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from judgecal.goldset.gold_set import SplitCounts
from judgecal.records import Estimate, Result


@dataclass(frozen=True, slots=True)
class KindMade:
    """The questions of one kind: wanted, kept, and of how many drafts; `reason`: why they are fewer than
    wanted."""

    wanted: int
    n: int
    n_drafts: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class MadeExample:
    """A question of the set that is none of test."""

    kind: str
    question: str
    answer: str
    quotes: tuple[str, ...]
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MadeQuestions(Result):
    """What `gold make` comes to.

    Attributes:
        path: of the set; None where it was not written, as calls failed that the same command makes again.
        rejected: why drafts are no questions of the set -> how many.
        lexically_easy: of the questions that a document answers, the share whose documents BM25 puts first.
        ranks: rank of its document by BM25 (1, 2 to 5, 6 and later) -> questions.
        usd: what all drafts and critics cost, those of earlier runs too; None where a model has no price.
        n_unscored: calls that gave no reply and that the same command makes again.
        offline: whether the offline model made the questions.
    """

    experiment: str
    set: str
    path: str | None
    n_wanted: int
    n: int
    kinds: Mapping[str, KindMade]
    rejected: Mapping[str, int]
    n_documents: int
    n_documents_used: int
    per_document: int
    lexically_easy: Estimate
    ranks: Mapping[str, int]
    splits: Mapping[str, SplitCounts]
    made_by: tuple[str, ...]
    critics: tuple[str, ...]
    usd: float | None
    n_unscored: int
    offline: bool
    examples: tuple[MadeExample, ...]
    notes: tuple[str, ...]
    run_line: str
