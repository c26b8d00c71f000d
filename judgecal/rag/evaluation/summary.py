"""What the answers of each system come to, over all questions and document by document."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from judgecal.errors import InputError
from judgecal.rag.evaluation.measured import Measured
from judgecal.records import Estimate
from judgecal.stats import agreement
from judgecal.stats.intervals import described, mean_estimate

BEST = 100.0
"""A mean in points of 100 is the mean agreement with this label; as wrong, an unscored item counts 0."""
MEAN = "mean_agreement"
LEVEL = 0.95
"""Nominal coverage of every interval here."""
Points = Sequence[float | Sequence[float | None] | None]
"""Of each question in points of 100, or of each repeat of it; None where unscored."""

OutcomeKind = Literal["right_answer", "wrong_answer", "right_refusal", "wrong_refusal"]
Rows = Mapping[str, Mapping[str, Measured | None]]
"""System -> question -> what was measured; None where there is no row for what others were asked."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What answers are worth: a right answer or a right refusal 1, a wrong answer minus `wrong`, a wrong
    refusal minus `refusal`; both are 0 or more.
    """

    wrong: float = 1.0
    refusal: float = 0.0

    def worth(self, outcome: OutcomeKind) -> float:
        """Of one answer."""
        return {"wrong_answer": -self.wrong, "wrong_refusal": -self.refusal}.get(outcome, 1.0)


@dataclass(frozen=True, slots=True)
class OutcomeShare:
    """How many answers became this, and their share of all whose outcome is known."""

    count: int
    share: Estimate


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Answerable x answered; an answer where there is none is wrong, `n_unscored` are in no cell."""

    right_answer: OutcomeShare
    wrong_answer: OutcomeShare
    right_refusal: OutcomeShare
    wrong_refusal: OutcomeShare
    right_at: float  # the correctness, 0..1, from which an answer is right
    n_unscored: int


@dataclass(frozen=True, slots=True)
class Seconds:
    """Times of the `n` answers that have one; None where none has."""

    mean: float | None
    p50: float | None
    p95: float | None
    n: int


@dataclass(frozen=True, slots=True)
class SystemSummary:
    """One system over all questions, or those of one document; shares 0..1, their intervals by question."""

    system: str
    document: str | None  # None over all questions
    n: int  # questions with a `total`
    n_expected: int  # asked of any system
    n_unscored: int
    answered: Estimate  # share of those where that is known
    answer_correctness: Estimate  # the mean over the answered
    total: Estimate
    """Correctness where it answered, 0 where it refused or is unscored. Systems are ranked by it."""
    total_complete_case: Estimate
    """Without those questions; where nothing is unscored, `answered` times `answer_correctness`."""
    measures: Mapping[str, Estimate]  # each column of the suite, over the questions that have it
    measures_as_wrong: Mapping[str, Estimate]  # the same where a question without it counts as 0
    outcomes: Outcomes
    utility: Estimate  # the mean worth at the stated costs, an unscored question as a wrong answer
    utility_complete_case: Estimate  # without those
    latency_s: Seconds
    ttft_s: Seconds  # to the first token or byte
    queries_per_minute: float | None  # one after another, 60 / mean latency
    usd_per_1k: float | None  # None where the cost of any answer is not known


def rows_of(measured: Sequence[Measured]) -> Rows:
    """The answers by system and question, both in the order in which they first occur."""
    if not measured:
        raise InputError("no answer was measured: there is nothing to compare")
    questions = dict.fromkeys(one.question for one in measured)
    found: dict[str, dict[str, Measured | None]] = {}
    twice = []
    for one in measured:
        row = found.setdefault(one.system, dict.fromkeys(questions))
        if row[one.question] is not None:
            twice.append(f"{one.system}: question {one.question} has more than one answer: give one of them")
        row[one.question] = one
    if twice:
        raise InputError("\n".join(dict.fromkeys(twice)))
    return found


def documents_of(measured: Iterable[Measured]) -> tuple[str, ...]:
    """Every document that a question names, in the order in which they first occur."""
    return tuple(dict.fromkeys(document for one in measured for document in one.documents))


def value_of(one: Measured | None, measure: str) -> float | None:
    """`total`, `answered`, `correctness` or a column of the suite, 0..1; None where it is unscored."""
    if one is None:
        return None
    if measure == "answered":
        return None if one.answered is None else float(one.answered)
    if measure == "total":
        return one.total
    return one.correctness if measure == "correctness" else one.measures.get(measure)


def outcome_of(one: Measured | None, *, right_at: float) -> OutcomeKind | None:
    """What became of a question; None where it is unscored."""
    if one is None or one.answered is None:
        return None
    if not one.answered:
        return "wrong_refusal" if one.answerable else "right_refusal"
    if not one.answerable:
        return "wrong_answer"
    if one.correctness is None:
        return None
    return "right_answer" if one.correctness >= right_at else "wrong_answer"


def mean_points(
    points: Points,
    questions: Sequence[str],
    *,
    unscored: Literal["drop", "wrong"] = "drop",
    level: float = LEVEL,
) -> Estimate:
    """The mean as a share, with its interval by question; an unscored one is left out, or counts as 0."""
    how: dict[str, Any] = {"groups": questions, "metrics": (MEAN,), "unscored": unscored, "level": level}
    return agreement([BEST] * len(points), list(points), scale="percentage", **how)[MEAN]


def mean_share(
    values: Mapping[str, float | None], *, unscored: Literal["drop", "wrong"] = "drop", level: float = LEVEL
) -> Estimate:
    """The same of shares by question."""
    points = [None if value is None else BEST * value for value in values.values()]
    return mean_points(points, list(values), unscored=unscored, level=level)


def summarise(
    measured: Sequence[Measured],
    documents: Sequence[str | None] = (None,),
    *,
    right_at: float = 0.5,
    costs: Costs | None = None,
    level: float = LEVEL,
) -> tuple[SystemSummary, ...]:
    """Each system over all questions, or those that name a document, in the order in which they first occur.

    Args:
        documents: None for all questions; a question may name several.
        right_at: correctness, 0..1, from which an answer is right.
        costs: of wrong answers and wrong refusals; those of `Costs` where not given.
    """
    costs = costs or Costs()
    problems = (
        [] if 0.0 <= right_at <= 1.0 else [f"right_at is {right_at:g}: a correctness lies between 0 and 1"]
    )
    problems += [
        f"{name} costs are {cost:g}: give 0 or more, what such an answer takes away"
        for name, cost in (("wrong", costs.wrong), ("refusal", costs.refusal))
        if not cost >= 0.0
    ]
    if problems:
        raise InputError("\n".join(problems))
    rows = rows_of(measured)
    columns = tuple(dict.fromkeys(name for one in measured for name in one.measures))
    asked_of = {
        document: {one.question for one in measured if document is None or document in one.documents}
        for document in documents
    }
    return tuple(
        _summary(
            system,
            document,
            {question: one for question, one in answers.items() if question in asked_of[document]},
            columns,
            right_at=right_at,
            costs=costs,
            level=level,
        )
        for document in documents
        for system, answers in rows.items()
    )


def _summary(
    system: str,
    document: str | None,
    answers: Mapping[str, Measured | None],
    columns: Sequence[str],
    *,
    right_at: float,
    costs: Costs,
    level: float,
) -> SystemSummary:
    def by_question(measure: str) -> dict[str, float | None]:
        return {question: value_of(one, measure) for question, one in answers.items()}

    def cell(kind: OutcomeKind) -> OutcomeShare:
        among = {name: None if one is None else float(one == kind) for name, one in outcomes.items()}
        return OutcomeShare(sum(one == kind for one in outcomes.values()), mean_share(among, level=level))

    total = by_question("total")
    outcomes = {name: outcome_of(one, right_at=right_at) for name, one in answers.items()}
    given = [one.given for one in answers.values() if one is not None and one.given.answer is not None]
    latency = seconds_of(answer.latency_s for answer in given)
    answered = {name: one.correctness for name, one in answers.items() if one is not None and one.answered}
    n_unscored = sum(value is None for value in total.values())
    return SystemSummary(
        system=system,
        document=document,
        n=len(total) - n_unscored,
        n_expected=len(total),
        n_unscored=n_unscored,
        answered=mean_share(by_question("answered"), level=level),
        answer_correctness=mean_share(answered, level=level),
        total=mean_share(total, unscored="wrong", level=level),
        total_complete_case=mean_share(total, level=level),
        measures={name: mean_share(by_question(name), level=level) for name in columns},
        measures_as_wrong={
            name: mean_share(by_question(name), unscored="wrong", level=level) for name in columns
        },
        outcomes=Outcomes(
            right_answer=cell("right_answer"),
            wrong_answer=cell("wrong_answer"),
            right_refusal=cell("right_refusal"),
            wrong_refusal=cell("wrong_refusal"),
            right_at=right_at,
            n_unscored=sum(one is None for one in outcomes.values()),
        ),
        utility=_utility(outcomes, costs, unscored="wrong_answer", level=level),
        utility_complete_case=_utility(outcomes, costs, unscored=None, level=level),
        latency_s=latency,
        ttft_s=seconds_of(answer.first_s for answer in given),
        queries_per_minute=60.0 / latency.mean if latency.mean else None,
        usd_per_1k=usd_per_1k([answer.cost_usd for answer in given]),
    )


def _utility(
    outcomes: Mapping[str, OutcomeKind | None], costs: Costs, *, unscored: OutcomeKind | None, level: float
) -> Estimate:
    """The mean worth; an unscored question counts as `unscored`, or is left out."""
    counted = {name: outcome or unscored for name, outcome in outcomes.items()}
    worth = {name: costs.worth(outcome) for name, outcome in counted.items() if outcome is not None}
    low = -max(costs.wrong, costs.refusal)
    estimate = mean_estimate(list(worth.values()), list(worth), low=low, high=1.0, level=level)
    n_unscored = sum(outcome is None for outcome in outcomes.values())
    return replace(estimate, n_expected=len(outcomes), n_unscored=n_unscored)


def seconds_of(times: Iterable[float | None]) -> Seconds:
    """Times as mean and percentiles; one that is not known is left out."""
    over = described([one for one in times if one is not None])
    return Seconds(over["average"], over["p50"], over["p95"], int(over["count"] or 0))


def usd_per_1k(costs: Sequence[float | None]) -> float | None:
    """Cost of a thousand answers; None where that of any is not known."""
    known = [cost for cost in costs if cost is not None]
    return 1000.0 * statistics.fmean(known) if known and len(known) == len(costs) else None
