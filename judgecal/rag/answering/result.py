"""What `answer` comes to: an overview of the systems, their pairs, and where points go."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from judgecal.experiment.result import Latency, Tokens
from judgecal.experiment.stored import Unread
from judgecal.rag.answering.answerer import GradedBy
from judgecal.rag.answering.contexts import ContextKind, Served, system_name
from judgecal.rag.evaluation.comparisons import SystemComparison, compare_points
from judgecal.rag.evaluation.summary import BEST, LEVEL, Measured, mean_points, usd_per_1k
from judgecal.records import Estimate, Result
from judgecal.stats.intervals import described, mean_estimate

Percentages = Mapping[str, Sequence[float | None]]
"""Group of a question -> its percentages, one a repeat; None where unscored."""


@dataclass(frozen=True)
class SystemRows:
    """A system with one kind of context, and its row of each question and repeat, unscored ones included."""

    name: str  # among the systems of the run: with its context, where there are several
    system: str
    context: ContextKind
    rows: tuple[Measured, ...]
    served: Mapping[str, Served]  # by group; empty where its answers were recorded elsewhere

    def percentages(self, *, asked: bool = False) -> dict[str, list[float | None]]:
        """By question; of those alone that could be `asked`, if that is wanted."""
        percentages: dict[str, list[float | None]] = {}
        for row in self.rows:
            if not asked or self.problem(row) is None:
                percentages.setdefault(row.question, []).append(row.percentage)
        return percentages

    def problem(self, row: Measured) -> tuple[str, str] | None:
        """Why a question could not be asked with such a context: kind and message."""
        return self.served[row.question].problem if self.served else None

    def unscored(self, row: Measured) -> str | None:
        """Why there is no percentage; None where there is one."""
        if row.percentage is not None:
            return None
        if problem := self.problem(row):
            return f"not asked: {problem[0]}"
        if row.given.error is not None:
            return f"answer: {row.given.error.kind if self.served else 'missing'}"
        if row.rating is None:
            return "rating: missing"
        return f"rating: {row.rating.error.kind if row.rating.error else 'parse'}"


@dataclass(frozen=True, slots=True)
class Intervals:
    """The average of the rated answers, that with every unscored one as 0, and the share answered."""

    average: Estimate
    average_as_wrong: Estimate
    answered: Estimate


@dataclass(frozen=True, slots=True)
class Counted:
    """Answers, and those of them that decline."""

    answered: int
    refused: int

    @property
    def n(self) -> int:
        """Both."""
        return self.answered + self.refused


@dataclass(frozen=True, slots=True)
class Refusals:
    """Refused and answered, where the documents handed over hold an answer and where not."""

    answerable: Counted
    unanswerable: Counted


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """One system of the overview; systems are compared by `intervals.average_as_wrong`.

    `count`, `min` ... `p95` describe the rated answers alone, in percent; `answered` is a share. `unscored`
    says why answers have no percentage, and how many.
    """

    system: str
    context: ContextKind
    n: int
    n_expected: int
    n_unscored: int
    count: int
    min: float | None
    max: float | None
    average: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    answered: float | None
    usd_per_1k: float | None
    latency_s: Latency
    intervals: Intervals
    refusals: Refusals
    unscored: dict[str, int]
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class SystemLoss:
    """Where a system loses its points, in percentage points, on the questions asked with either context."""

    system: str
    n_questions: int
    n_left_out: int  # asked with one of the two contexts alone
    controlled: Estimate  # its average with the reference document in hand
    topk: Estimate  # its average in the naive chain
    retrieval: Estimate  # the first minus the second, paired by question
    p_value: float | None
    answerer: Estimate  # 100 minus the controlled average


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Retrieval or answerer? An entry a system that was asked with both a controlled and a naive context."""

    systems: tuple[SystemLoss, ...]


@dataclass(frozen=True, slots=True)
class AskedOf:
    """The gold set, and how many of its questions were asked."""

    set: str
    sha256: str
    n_questions: int


@dataclass(frozen=True, slots=True)
class NotAsked:
    """A question that could not be asked with a controlled context, and why."""

    question: str
    kind: str
    message: str
    sealed: bool = False  # a question of test: it is counted, and shown nowhere


@dataclass(frozen=True, slots=True)
class AnswerResult(Result):
    """What `answer` came to, with every kind of context that was asked for."""

    experiment: str
    gold: AskedOf
    judge: str
    rated_by: GradedBy
    context: tuple[ContextKind, ...]  # controlled, topk, none; recorded for answers from elsewhere
    context_options: dict[str, bool | int | str]
    systems: tuple[SystemEntry, ...]
    n_expected: int
    n_unscored: int
    comparisons: tuple[SystemComparison, ...]  # within a context
    not_asked: tuple[NotAsked, ...]
    decomposition: Decomposition | None  # of controlled and topk
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    run_line: str
    unread: Unread | None = None  # why, where no answer could be rated

    @property
    def without_reference(self) -> bool:
        """Whether the reference document was left out, so that a refusal is right."""
        return bool(self.context_options.get("without_reference"))

    def called(self, system: SystemEntry) -> str:
        """A system as pairs call it: with its context, where there are several."""
        return system_name(system.system, system.context, self.context)


def in_percent(share: Estimate) -> Estimate:
    """An estimate of a share in percentage points."""
    value, low, high = (None if end is None else BEST * end for end in (share.value, share.low, share.high))
    return dataclasses.replace(share, value=value, low=low, high=high)


def system_entry(asked: SystemRows) -> SystemEntry:
    """The overview of one system."""
    rows, percentages = asked.rows, asked.percentages()
    ratings = [row.percentage for row in rows if row.percentage is not None]
    over: dict[str, Any] = described(ratings)
    times = described([row.given.latency_s for row in rows if row.given.latency_s is not None])
    # whether the documents handed over hold an answer; of recorded ones, whether there is one
    holds = [
        row.answerable and (not asked.served or asked.served[row.question].holds_reference) for row in rows
    ]
    should, should_not = (
        [row for row, hold in zip(rows, holds, strict=True) if hold is wanted] for wanted in (True, False)
    )

    def counted(part: Sequence[Measured]) -> Counted:
        return Counted(sum(row.answered is True for row in part), sum(row.answered is False for row in part))

    def tokens(kind: str) -> int | None:
        counts = [count for row in rows if (count := getattr(row.given, f"{kind}_tokens")) is not None]
        return sum(counts) if counts else None

    said = [(row.answered is True, row.question) for row in rows if row.answered is not None]
    answered = mean_estimate([float(does) for does, _ in said], [group for _, group in said], level=LEVEL)
    points, groups = list(percentages.values()), list(percentages)
    average = in_percent(mean_points(points, groups))
    as_wrong = in_percent(mean_points(points, groups, unscored="wrong"))
    return SystemEntry(
        system=asked.system,
        context=asked.context,
        n=len(ratings),
        n_expected=len(rows),
        n_unscored=len(rows) - len(ratings),
        **over,
        answered=answered.value,
        usd_per_1k=usd_per_1k([row.given.cost_usd for row in rows if asked.problem(row) is None]),
        latency_s=Latency(times["p50"], times["p95"]),
        intervals=Intervals(average, as_wrong, answered),
        refusals=Refusals(counted(should), counted(should_not)),
        unscored=dict(Counter(why for row in rows if (why := asked.unscored(row)))),
        tokens=Tokens(tokens("prompt"), tokens("completion")),
    )


def comparisons(systems: Sequence[SystemRows], *, seed: int = 0) -> tuple[SystemComparison, ...]:
    """Every two systems with the same context, in percentage points, after Holm over those of that context.

    Recorded answers stand beside the first context. Of a system without a rating nothing is known.
    """
    pairs: list[SystemComparison] = []
    first = systems[0].context
    for context in dict.fromkeys(system.context for system in systems):
        beside = (context, "recorded") if context == first else (context,)
        rows = {system.name: system.percentages() for system in systems if system.context in beside}
        rated = {
            name: row
            for name, row in rows.items()
            if any(value is not None for value in chain(*row.values()))
        }
        if context != "recorded" or context == first:
            pairs += _paired(rated, seed=seed)
    return tuple(pairs)


def _paired(rows: Mapping[str, Percentages], *, seed: int) -> tuple[SystemComparison, ...]:
    """Every two by their mean percentages; one that answered once stands beside repeats with that answer."""
    width = max((len(row) for by_question in rows.values() for row in by_question.values()), default=1)
    points = {
        name: [list(row) * (width if len(row) == 1 else 1) for row in by_question.values()]
        for name, by_question in rows.items()
    }
    return tuple(
        dataclasses.replace(
            pair,
            difference=in_percent(pair.difference),
            smallest_detectable=None if pair.smallest_detectable is None else BEST * pair.smallest_detectable,
            complete_case=in_percent(pair.complete_case),
        )
        for pair in compare_points(points, metric="average", seed=seed)
    )


def decomposition(systems: Sequence[SystemRows], *, seed: int = 0) -> Decomposition | None:
    """What retrieval and the answerer each cost the systems that were asked with both contexts."""
    rows = {(system.system, system.context): system.percentages(asked=True) for system in systems}
    losses = []
    for (system, context), controlled in rows.items():
        naive = rows.get((system, "topk"), {})
        shared = [group for group in controlled if group in naive]
        if context != "controlled" or not shared:
            continue
        ours, theirs = ({group: points[group] for group in shared} for points in (controlled, naive))
        (pair,) = _paired({"controlled": ours, "topk": theirs}, seed=seed)
        with_reference, average = (
            in_percent(mean_points(list(points.values()), shared, unscored="wrong"))
            for points in (ours, theirs)
        )
        # 100 minus an estimate: the ends change places
        ends = (with_reference.value, with_reference.high, with_reference.low)
        value, low, high = (None if end is None else BEST - end for end in ends)
        losses.append(
            SystemLoss(
                system=system,
                n_questions=len(shared),
                n_left_out=len(controlled.keys() | naive.keys()) - len(shared),
                controlled=with_reference,
                topk=average,
                retrieval=pair.difference,
                p_value=pair.p_value,
                answerer=dataclasses.replace(with_reference, value=value, low=low, high=high),
            )
        )
    return Decomposition(tuple(losses)) if losses else None
