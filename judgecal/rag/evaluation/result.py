"""What `evaluate` comes to: the systems, what sets them apart, and where the rows of it stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from judgecal.rag.evaluation.comparisons import BestOf, Design, FactorCurve, SystemComparison
from judgecal.rag.evaluation.question_parts import QuestionPart
from judgecal.rag.evaluation.summary import Costs, SystemSummary
from judgecal.rag.evaluation.system import Setting
from judgecal.records import Estimate, Failure, Result

BASE = "the base"


@dataclass(frozen=True, slots=True)
class States:
    """The Parquet files of the four states, in the experiment's folder; each has a CSV file beside it."""

    questions: str
    answers: str
    measured: str
    summary: str


@dataclass(frozen=True, slots=True)
class AskedQuestions:
    """What was asked: a gold set or a file."""

    source: str
    sha256: str
    n: int
    n_answerable: int  # those whose reference gives an answer
    n_sealed: int  # those of test, whose text is shown nowhere
    made_by: str | None  # people, llm or project, as the set's card says
    n_with_document: int  # those that name a document that is there
    n_lexically_easy: int | None  # of these, whose own document BM25 ranks first


@dataclass(frozen=True, slots=True)
class SystemSetting:
    """How a system was set up."""

    system: str
    table: str  # its name in the configuration, which all systems of a sweep share
    kind: str  # local, http, python or answers
    settings: Mapping[str, Setting]  # its factors with their values
    shows_contexts: bool  # where not, what rests on contexts is not measured
    label: str = ""  # how pages call it: in a sweep by what sets it apart, `top_n=3`; else its name


def labelled(
    settings: Sequence[SystemSetting], bases: Sequence[str], *, swept: bool
) -> tuple[SystemSetting, ...]:
    """Systems with their labels: in a sweep of one factor at a time that factor, in a grid all of them.

    Systems without factors keep their names, and all do where two would read alike.
    """
    tables = {one.table for one in settings if one.settings}
    held = {one.table: one.settings for one in settings if one.system in bases}
    labels = {}
    for one in settings:
        labels[one.system] = one.system
        if swept and one.settings:
            base = held.get(one.table, {})
            apart = [
                f"{factor}={value}" for factor, value in one.settings.items() if base.get(factor) != value
            ]
            label = ", ".join(apart) or BASE
            labels[one.system] = f"{one.table}: {label}" if len(tables) > 1 else label
    alike = len(set(labels.values())) < len(labels)
    return tuple(replace(one, label=one.system if alike else labels[one.system]) for one in settings)


@dataclass(frozen=True, slots=True)
class MeasuredBy:
    """Who fills a column."""

    column: str
    judge: str
    lock: str | None  # the path of its lock; without one nobody knows whether it agrees with people
    agreement: Estimate | None  # with people, as the lock confirmed it
    calibrated: bool = False  # whether its verdicts are taken to the people's scale by the lock's map


@dataclass(frozen=True, slots=True)
class CorrectedSystem:
    """A system's share of right answers, corrected for the judge's error rates, or why it is not."""

    system: str
    column: str
    raw: Estimate
    corrected: Estimate | None
    method: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class FailedAnswers:
    """Questions without an answer by a kind of failure, and what the first said; None if all are of test."""

    system: str
    kind: str
    n: int
    message: str | None


@dataclass(frozen=True, slots=True)
class FailedVerdicts:
    """Answers without a verdict, in some repeat at least, as `FailedAnswers`."""

    column: str
    kind: str
    n: int
    message: str | None


@dataclass(frozen=True, slots=True)
class WorstAnswer:
    """What a system made of a question."""

    system: str
    answer: str | None
    error: Failure | None
    total: float | None
    retrieved: tuple[str, ...] | None  # documents of its contexts, best first; None where it shows none


@dataclass(frozen=True, slots=True)
class WorstQuestion:
    """A question with the lowest mean score over all systems; none of test.

    The score of an answer is its `total`, an unscored one as 0; where there is no answer to give, a refusal
    scores 1 and anything else 0.
    """

    question: str
    text: str
    reference: tuple[str, ...]
    documents: tuple[str, ...]
    mean_score: float
    answers: tuple[WorstAnswer, ...]


@dataclass(frozen=True, slots=True)
class EvaluateResult(Result):
    """What `evaluate` came to."""

    experiment: str
    states: States
    questions: AskedQuestions
    design: Design | None  # how the factors were varied; None without factors
    bases: tuple[str, ...]  # of `one_at_a_time`, the systems that others differ from in one factor
    settings: tuple[SystemSetting, ...]
    systems: tuple[SystemSummary, ...]  # each over all questions, in the order of the configuration
    documents: tuple[SystemSummary, ...]  # each over the questions of each document
    comparisons: tuple[SystemComparison, ...]  # by `total`, paired by question, after Holm
    document_comparisons: Mapping[str, tuple[SystemComparison, ...]]
    """The same within each document that has ten questions or more, after Holm over all."""
    # the highest first; of one only where it is shown to be the best
    not_told_apart_from_best: tuple[str, ...]
    best: BestOf  # the same with what lies behind it
    curves: tuple[FactorCurve, ...]
    judges: tuple[MeasuredBy, ...]
    corrected: tuple[CorrectedSystem, ...]  # where correctness is judged by a lock that has a pass mark
    by_complexity: tuple[QuestionPart, ...]
    by_tag: tuple[QuestionPart, ...]
    failures: tuple[FailedAnswers, ...]  # the most frequent first
    failed_verdicts: tuple[FailedVerdicts, ...]  # the most frequent first
    worst: tuple[WorstQuestion, ...]
    costs: Costs
    n_unscored: int
    usd: float | None  # what the calls of this run cost; None where a price is not known
    notes: tuple[str, ...]
    run_line: str
    again: str = ""  # the command that asks anew for what has no verdict

    @property
    def labels(self) -> dict[str, str]:
        """System -> how pages call it."""
        return {one.system: one.label for one in self.settings}
