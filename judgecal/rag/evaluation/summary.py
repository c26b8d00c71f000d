"""What was measured of each answer, and what those of each system come to, on parts of the questions too."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from judgecal.goldset.wording import grouped
from judgecal.rag.evaluation.system import SystemAnswer
from judgecal.records import Estimate, Judgement
from judgecal.stats.intervals import mean_estimate

CORRECTNESS, ANSWERED = "correctness", "answered"
"""The columns that say how right an answer is, and whether it is one at all."""
BEST = 100.0
"""A mean in points of 100 is the mean agreement with this label; as wrong, an unscored item counts 0."""
MEAN = "mean_agreement"
LEVEL = 0.95
"""Nominal coverage of every interval here."""


@dataclass(frozen=True, slots=True)
class AnswerVerdicts:
    """What the judge of a column said of one answer, a repeat each."""

    shares: tuple[float | None, ...]
    """A verdict's place on its scale, 0..1, through a lock's map on the people's; None where unscored."""
    raw_shares: tuple[float | None, ...] = ()  # the same before any map
    error: str | None = None  # `kind: message` of the first repeat without a verdict
    rows: tuple[Judgement, ...] = ()  # as the journal has them

    @property
    def share(self) -> float | None:
        """The mean over the repeats that have a verdict; None where none has."""
        return mean_of(self.shares)


@dataclass(frozen=True, slots=True)
class Measured:
    """A question put to a system: a row of state 3, and what comparisons take."""

    system: str
    question: str  # its group; answers of all systems to it are paired
    documents: tuple[str, ...]  # the reference documents of the question; empty where it names none
    answerable: bool  # whether it has an answer
    is_complex: bool  # by the rule of `is_complex`
    given: SystemAnswer
    # whether it answered at all, by the judge of the column `answered`; None where that is unscored, and
    # where there is no answer
    answered: bool | None
    # 0..1, the mean over the judge's repeats; None where it is unscored. It is defined for whatever was said;
    # what leaves out refusals, or writes -1, is made of this and `answered`.
    correctness: float | None
    # every column of the suite by name, the mean over repeats on the column's own scale as a share 0..1; None
    # where unscored
    measures: Mapping[str, float | None]
    n_unscored: int = 0  # judgements that were asked for and gave no verdict
    # by column; one whose judge the answer has nothing for is not there
    verdicts: Mapping[str, AnswerVerdicts] = field(default_factory=dict)

    @property
    def total(self) -> float | None:
        """Correctness where it answered and 0 where it refused; None where either is unscored.

        Its mean over questions is the share answered times the mean correctness over the answered.
        """
        if self.answered is None:
            return None
        return self.correctness if self.answered else 0.0


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean, a float, of values, without those that are None; None where no value is left."""
    defined = [value for value in values if value is not None]
    return statistics.fmean(defined) if defined else None


OutcomeKind = Literal["right_answer", "wrong_answer", "right_refusal", "wrong_refusal"]


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
    complex: float | None  # the mean of those to complex questions


@dataclass(frozen=True, slots=True)
class PointRange:
    """The correctness of the answers that have one, refusals among them, in percent; None where none has."""

    count: int
    min: float | None
    max: float | None
    average: float | None
    p50: float | None
    p90: float | None
    p95: float | None


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
    outcomes: Outcomes
    points: PointRange
    latency_s: Seconds
    ttft_s: Seconds  # to the first token or byte
    queries_per_minute: float | None  # one after another, 60 / mean latency
    usd_per_1k: float | None  # None where the cost of any answer is not known


def by_system(measured: Iterable[Measured]) -> dict[str, list[Measured]]:
    """The answers of each system, in the order in which they first occur."""
    return grouped(measured, lambda answer: answer.system)


def documents_of(measured: Iterable[Measured]) -> tuple[str, ...]:
    """Every document that a question names, in the order in which they first occur."""
    return tuple(dict.fromkeys(document for answer in measured for document in answer.documents))


def mean_share(
    shares: Iterable[tuple[str, float | None]], *, unscored: Literal["drop", "wrong"] = "drop"
) -> Estimate:
    """Return the mean of (question, share) pairs as an Estimate; an unscored share is left out, or 0."""
    pairs = list(shares)
    n_unscored = sum(share is None for _, share in pairs)
    blank = math.nan if unscored == "drop" else 0.0
    values = [blank if share is None else share for _, share in pairs]
    mean = mean_estimate(values, [question for question, _ in pairs], level=LEVEL)
    return replace(mean, n_unscored=n_unscored)


def summarise(
    measured: Sequence[Measured],
    documents: Sequence[str | None] = (None,),
    *,
    right_at: float = 0.5,
    pooled: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> tuple[SystemSummary, ...]:
    """Return a tuple of SystemSummary, a system each, from Measured answers to all questions.

    Args:
        documents: None for all questions; a question may name several.
        right_at: correctness, 0..1, from which an answer is right.
        pooled: further measures, each over all verdicts of some columns.
    """
    columns = dict.fromkeys(name for answer in measured for name in answer.measures)
    conditions = {(answer.question, column) for answer in measured for column in answer.verdicts}
    summaries = []
    for document in documents:
        for system, answers in by_system(measured).items():
            some = [answer for answer in answers if document is None or document in answer.documents]
            summary = _summary(system, document, some, columns, right_at=right_at)
            more = {name: _pooled(some, judged, conditions) for name, judged in pooled.items()}
            summaries.append(replace(summary, measures={**summary.measures, **more}))
    return tuple(summaries)


def _pooled(
    answers: Sequence[Measured], columns: Sequence[str], conditions: Collection[tuple[str, str]]
) -> Estimate:
    """The mean over every question and column in which an answer to that question is judged."""
    return mean_share(
        (answer.question, answer.measures.get(column))
        for answer in answers
        for column in columns
        if (answer.question, column) in conditions
    )


def outcome_of(
    answered: bool | None, answerable: bool, correctness: float | None, right_at: float
) -> OutcomeKind | None:
    """Return an OutcomeKind, or None, from whether answered, whether answerable, correctness and a mark."""
    if answered is None:
        return None
    if not answered:
        return "wrong_refusal" if answerable else "right_refusal"
    if not answerable:
        return "wrong_answer"
    if correctness is None:
        return None
    return "right_answer" if correctness >= right_at else "wrong_answer"


def _summary(
    system: str, document: str | None, answers: Sequence[Measured], columns: Iterable[str], *, right_at: float
) -> SystemSummary:
    outcomes = {
        answer.question: outcome_of(answer.answered, answer.answerable, answer.correctness, right_at)
        for answer in answers
    }

    def cell(kind: OutcomeKind) -> OutcomeShare:
        is_kind = (
            (name, None if outcome is None else float(outcome == kind)) for name, outcome in outcomes.items()
        )
        return OutcomeShare(sum(outcome == kind for outcome in outcomes.values()), mean_share(is_kind))

    totals = [(answer.question, answer.total) for answer in answers]
    n_unscored = sum(total is None for _, total in totals)
    percents = [round(100.0 * each.correctness, 9) for each in answers if each.correctness is not None]
    points: dict[str, Any] = number_summary(percents)
    came = [answer for answer in answers if answer.given.answer is not None]
    latency = seconds_of((answer.given.latency_s, answer.is_complex) for answer in came)
    return SystemSummary(
        system=system,
        document=document,
        n=len(totals) - n_unscored,
        n_expected=len(totals),
        n_unscored=n_unscored,
        answered=mean_share(
            (answer.question, None if answer.answered is None else float(answer.answered))
            for answer in answers
        ),
        answer_correctness=mean_share(
            (answer.question, answer.correctness) for answer in answers if answer.answered
        ),
        total=mean_share(totals, unscored="wrong"),
        total_complete_case=mean_share(totals),
        measures={
            column: mean_share((answer.question, answer.measures.get(column)) for answer in answers)
            for column in columns
        },
        outcomes=Outcomes(
            **{kind: cell(kind) for kind in get_args(OutcomeKind)},
            right_at=right_at,
            n_unscored=sum(outcome is None for outcome in outcomes.values()),
        ),
        points=PointRange(**points),
        latency_s=latency,
        ttft_s=seconds_of((answer.given.first_s, answer.is_complex) for answer in came),
        queries_per_minute=60.0 / latency.mean if latency.mean else None,
        usd_per_1k=usd_per_1k([answer.given.cost_usd for answer in came]),
    )


def seconds_of(times: Iterable[tuple[float | None, bool]]) -> Seconds:
    """Return Seconds (means, percentiles) from (seconds or None, whether complex) pairs; None left out."""
    defined = [(time, is_complex) for time, is_complex in times if time is not None]
    over = number_summary([time for time, _ in defined])
    of_complex = mean_of([time for time, is_complex in defined if is_complex])
    return Seconds(over["average"], over["p50"], over["p95"], int(over["count"] or 0), of_complex)


def usd_per_1k(costs: Sequence[float | None]) -> float | None:
    """Return the USD of a thousand answers, a float, from each answer's cost; None where any is unknown."""
    mean = None if None in costs else mean_of(costs)
    return None if mean is None else 1000.0 * mean


# --- complex questions

LONG = 20
"""A question of more words than this is long."""
KEY_WORDS = (
    "why", "how", "explain", "compare", "comparison", "difference", "differences", "differ", "versus",
    "advantages", "disadvantages", "steps", "summarise", "summarize",
)  # fmt: skip
"""Words that ask for more than a fact. "How many" and its like ask for a number, and do not count."""
_KEY = re.compile(
    rf"\b(?:(?!how\s+(?:many|much|long|old|often|far|large)\b)(?:{'|'.join(KEY_WORDS)}))\b", re.IGNORECASE
)


def is_complex(question: str) -> bool:
    """Return whether a question's text is complex: long, of several questions, or with a key word.

    We made the rule; nobody has rated questions by it.
    """
    return (len(question.split()) > LONG) + (question.count("?") >= 2) + bool(_KEY.search(question)) >= 2


_PERCENTILES = (50, 90, 95)


def number_summary(values: Sequence[float]) -> dict[str, float | int | None]:
    """Return a dict on values: `count, min, max, average, p50, p90, p95`, each None without numbers.

    Percentiles lie between order statistics by straight lines, as numpy and pandas do by default.
    """
    numbers = np.asarray(values, dtype=np.float64)
    names = ("min", "max", "average", *(f"p{at}" for at in _PERCENTILES))
    if not len(numbers):
        return {"count": 0, **dict.fromkeys(names)}
    summary = (numbers.min(), numbers.max(), numbers.mean(), *np.percentile(numbers, _PERCENTILES))
    return {
        "count": len(numbers),
        **{name: float(number) for name, number in zip(names, summary, strict=True)},
    }
