"""Systems held against each other: pairs, where the points go, the questions on which they differ, one
question."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgecal.rag.answering.outcomes import (
    BEST,
    LEVEL,
    MEAN,
    Outcome,
    by_system,
    in_points,
    mean_percentage,
    percentage_rows,
)
from judgecal.records import Estimate
from judgecal.stats.compare import Comparison, compare_all

_Rows = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class SystemPair:
    """Two systems, paired on the same questions, an unscored answer counted as 0.

    `difference` (a - b), `smallest_detectable` and `complete_case` are percentage points; `p_adjusted` is
    after Holm and decides: A, B or cannot tell.
    """

    a: str
    b: str
    difference: Estimate
    p_value: float | None
    p_adjusted: float | None
    decision: str
    why: str
    smallest_detectable: float | None
    complete_case: Estimate

    @property
    def higher(self) -> str:
        """The name of the one that is shown to be higher; else the decision."""
        return {"A": self.a, "B": self.b}.get(self.decision, self.decision)


@dataclass(frozen=True, slots=True)
class SystemLoss:
    """Where a system loses its points, in percentage points, on the questions that were asked in both
    runs."""

    system: str
    n_questions: int
    n_left_out: int  # asked in one of the two runs alone
    controlled: Estimate  # its average with the reference document in hand
    topk: Estimate  # its average in the naive chain
    retrieval: Estimate  # the first minus the second, paired by question
    retrieval_decision: str  # on that difference: costs, helps or cannot tell
    p_value: float | None
    answerer: Estimate  # 100 minus the controlled average


@dataclass(frozen=True, slots=True)
class DifferingQuestion:
    """A question, its wording, how far apart its systems lie, and the mean percentage of each."""

    question: str
    text: str
    spread: float
    percentages: dict[str, float]


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """One answer to a question; `unscored` says why it has no percentage."""

    system: str
    repeat: int
    answer: str | None
    percentage: float | None
    refused: bool | None
    reasoning: str | None
    unscored: str | None


@dataclass(frozen=True, slots=True)
class OneQuestion:
    """One question across all systems, with the standing of its reference document as in `Served`."""

    question: str  # its group
    text: str
    reference_answer: str | None
    reference_documents: tuple[str, ...]
    answerable: bool
    rank: int | None
    score: float | None
    ties: int
    documents: tuple[str | None, ...] | None  # handed over; None where all answers were recorded elsewhere
    answers: tuple[ShownAnswer, ...]


def comparisons(outcomes: Sequence[Outcome], *, seed: int = 0) -> tuple[SystemPair, ...]:
    """Every two systems of which some answer has a rating: nothing is known of the others."""
    rows = {name: percentage_rows(answers) for name, answers in by_system(outcomes).items()}
    systems = {
        name: own for name, own in rows.items() if any(one is not None for row in own.values() for one in row)
    }
    if len(systems) < 2:
        return ()
    return tuple(_pair(a, b, one) for (a, b), one in _compared(systems, seed=seed).items())


def _compared(rows: Mapping[str, _Rows], *, seed: int) -> dict[tuple[str, str], Comparison]:
    """Compare mean percentages: each is the mean agreement with a label of 100, the farthest from which is 0.

    A system that answered once stands beside one that answered several times with its one answer.
    """
    groups = list(next(iter(rows.values())))
    width = max(len(row) for one in rows.values() for row in one.values())
    padded = {
        name: [list(one[group]) * (width if len(one[group]) == 1 else 1) for group in groups]
        for name, one in rows.items()
    }
    how: dict[str, Any] = {
        "scale": "percentage",
        "metric": MEAN,
        "groups": groups,
        "level": LEVEL,
        "seed": seed,
    }
    return compare_all([BEST] * len(groups), padded, **how)


def _pair(a: str, b: str, comparison: Comparison) -> SystemPair:
    detectable = comparison.smallest_detectable
    return SystemPair(
        a=a,
        b=b,
        difference=in_points(comparison.difference),
        p_value=comparison.p_value,
        p_adjusted=comparison.p_adjusted,
        decision=comparison.decision,
        why=comparison.why,
        smallest_detectable=None if detectable is None else BEST * detectable,
        complete_case=in_points(comparison.complete_case.difference),
    )


def system_loss(system: str, controlled: _Rows, naive: _Rows, *, seed: int = 0) -> SystemLoss | None:
    """What retrieval costs a system, and what the answerer itself loses; None where no question is in both
    runs."""
    shared = [group for group in controlled if group in naive]
    if not shared:
        return None
    ours = {group: controlled[group] for group in shared}
    theirs = {group: naive[group] for group in shared}
    pair = _compared({"controlled": ours, "topk": theirs}, seed=seed)["controlled", "topk"]
    own = mean_percentage(ours, unscored="wrong")
    return SystemLoss(
        system=system,
        n_questions=len(shared),
        n_left_out=len(controlled.keys() | naive.keys()) - len(shared),
        controlled=own,
        topk=mean_percentage(theirs, unscored="wrong"),
        retrieval=in_points(pair.difference),
        retrieval_decision={"A": "costs", "B": "helps"}.get(pair.decision, pair.decision),
        p_value=pair.p_value,
        answerer=_from_best(own),
    )


def _from_best(average: Estimate) -> Estimate:
    """100 minus an estimate: the ends change places."""
    if average.value is None:
        return average
    low, high = (None if end is None else BEST - end for end in (average.high, average.low))
    return dataclasses.replace(average, value=BEST - average.value, low=low, high=high)


def most_different(
    outcomes: Sequence[Outcome], *, shown: int = 10, sealed: Collection[str] = ()
) -> tuple[DifferingQuestion, ...]:
    """The questions on which the systems lie farthest apart, the widest first; unscored answers are left out.

    So are the groups that are `sealed`: those of test.
    """
    means: dict[str, dict[str, float]] = {}
    wording: dict[str, str] = {}
    for system, answers in by_system(outcomes).items():
        for group, row in percentage_rows(answers).items():
            rated = [value for value in row if value is not None]
            if rated and group not in sealed:
                means.setdefault(group, {})[system] = statistics.fmean(rated)
        wording.update({outcome.question.group: outcome.question.question for outcome in answers})
    spread = {group: max(row.values()) - min(row.values()) for group, row in means.items()}
    widest = sorted((group for group in spread if spread[group] > 0), key=lambda group: -spread[group])
    return tuple(
        DifferingQuestion(group, wording[group], spread[group], means[group]) for group in widest[:shown]
    )


def one_question(outcomes: Sequence[Outcome], group: str) -> OneQuestion:
    """One question that was asked, across all systems: where BM25 ranks its reference document, and every
    answer."""
    answers = [outcome for outcome in outcomes if outcome.question.group == group]
    question, served = answers[0].question, answers[0].served
    handed_over = any(not one.recorded for one in answers)
    return OneQuestion(
        question=group,
        text=question.question,
        reference_answer=" | ".join(question.reference_answers) or None,
        reference_documents=question.reference_documents,
        answerable=question.answerable,
        rank=served.rank,
        score=served.score,
        ties=served.ties,
        documents=tuple(context.document_id for context in served.contexts) if handed_over else None,
        answers=tuple(
            ShownAnswer(
                system=one.system,
                repeat=one.repeat,
                answer=one.text,
                percentage=one.percentage,
                refused=one.refused,
                reasoning=None if one.rating is None else one.rating.reasoning,
                unscored=one.unscored,
            )
            for one in answers
        ),
    )
