"""Answers and their ratings, question by question, and the overview that is made of them: one entry a
system."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from judgecal.errors import InputError
from judgecal.experiment.result import Latency, Tokens
from judgecal.goldset import read_items
from judgecal.rag.answering.contexts import Served
from judgecal.rag.answering.questions import Question, refuses
from judgecal.records import Estimate, Item, Judgement
from judgecal.stats import agreement
from judgecal.stats.intervals import described, mean_estimate
from judgecal.workspace import shown

ITEMS_FILE = "items.jsonl"
"""In an experiment of `answer`: the answers as items, in the format of a gold set."""


@dataclass(frozen=True)
class Outcome:
    """What became of one question put to one system, once."""

    question: Question
    served: Served
    system: str
    repeat: int
    answer: (
        Judgement | None
    )  # its verdict is the answer's text; None where the system was not asked or has no row
    rating: Judgement | None = None  # the judge's row on that answer
    percentage: float | None = None  # the rating in percent
    recorded: bool = False  # the answer came from a file, and what the system was given is not known

    @property
    def text(self) -> str | None:
        """The answer; None where there is none."""
        return None if self.answer is None or self.answer.verdict is None else str(self.answer.verdict)

    @cached_property
    def refused(self) -> bool | None:
        """Whether the answer declines; None where there is none."""
        return None if self.text is None else refuses(self.text)

    @property
    def should_answer(self) -> bool:
        """Whether the documents handed over hold an answer; of a recorded answer, whether the reference gives
        one."""
        return self.question.answerable and (self.recorded or self.served.holds_reference)

    @property
    def unscored(self) -> str | None:
        """Why there is no percentage; None where there is one."""
        if self.percentage is not None:
            return None
        if not self.recorded and self.served.problem:
            return f"not asked: {self.served.problem[0]}"
        what, row = ("answer", self.answer) if self.text is None else ("rating", self.rating)
        if row is None:
            return f"{what}: missing"
        return f"{what}: {row.error.kind if row.error else 'parse'}"


def item_of(outcome: Outcome) -> Item | None:
    """The answer as an item to be rated, `<group>::<system>` (from the second repeat on `::2` ...); None
    where none."""
    if outcome.text is None:
        return None
    question, contexts = outcome.question, () if outcome.recorded else outcome.served.contexts
    name = f"{question.group}::{outcome.system}" + (f"::{outcome.repeat + 1}" if outcome.repeat else "")
    return Item(
        name,
        question.group,
        question.question,
        outcome.text,
        reference_answers=question.reference_answers,
        system=outcome.system,
        reference_documents=question.reference_documents,
        contexts=contexts,
        tags=question.tags,
    )


def answered_items(folder: Path) -> tuple[Item, ...]:
    """The items of an experiment of `answer`: question, reference, answer, system and the documents handed
    over.

    Raises:
        InputError: the folder holds none, or they cannot be read.
    """
    path = folder / ITEMS_FILE
    if not path.is_file():
        raise InputError(
            f"{shown(folder)}: holds no answers ({ITEMS_FILE}): give an experiment of `judgecal answer`; one that was "
            "interrupted is finished by the same command"
        )
    return read_items(path)


def by_system(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """System -> its outcomes, both in the order given."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.system, []).append(outcome)
    return found


BEST = 100.0
"""A mean percentage is the mean agreement with this label; counting an unscored item as wrong makes it 0."""
MEAN = "mean_agreement"
LEVEL = 0.95
"""Nominal coverage of every interval here."""


def percentage_rows(outcomes: Sequence[Outcome]) -> dict[str, list[float | None]]:
    """Group -> its percentages, one a repeat; None where unscored."""
    rows: dict[str, list[float | None]] = {}
    for outcome in outcomes:
        rows.setdefault(outcome.question.group, []).append(outcome.percentage)
    return rows


def mean_percentage(
    rows: Mapping[str, Sequence[float | None]], *, unscored: Literal["drop", "wrong"]
) -> Estimate:
    """The mean of `percentage_rows` with its interval by question; an unscored answer is left out, or counts
    as 0."""
    how: dict[str, Any] = {"groups": list(rows), "level": LEVEL, "metrics": (MEAN,), "unscored": unscored}
    return in_points(agreement([BEST] * len(rows), list(rows.values()), scale="percentage", **how)[MEAN])


def in_points(found: Estimate) -> Estimate:
    """An estimate of a share as one in percentage points."""
    if found.value is None:
        return found
    low, high = (None if end is None else BEST * end for end in (found.low, found.high))
    return dataclasses.replace(found, value=BEST * found.value, low=low, high=high)


@dataclass(frozen=True, slots=True)
class Intervals:
    """Estimates: the average of the rated answers, that with every unscored one as 0, and the share
    answered."""

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
    """Refused and answered, where the documents handed over hold an answer and where not.

    A refusal is right where they hold none. `n_without_answer` could not be had, and are in neither share.
    """

    answerable: Counted
    unanswerable: Counted
    wrong_refusals: Estimate
    right_refusals: Estimate
    n_without_answer: int


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """One system of the overview; systems are compared by `intervals.average_as_wrong`.

    `count`, `min` ... `p95` describe the rated answers alone, in percent; `answered` is a share. `unscored`
    says why answers have no percentage, and how many.
    """

    system: str
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


def system_entry(
    system: str,
    outcomes: Sequence[Outcome],
    *,
    price: Callable[[int | None, int | None], float | None] | None,
) -> SystemEntry:
    """One system's entry from its outcomes, unscored ones included.

    `price`: cost in US dollars of prompt and completion tokens, for answers that came from the store.
    """
    ratings = [outcome.percentage for outcome in outcomes if outcome.percentage is not None]
    rows = percentage_rows(outcomes)
    answered = _share(outcomes, refused=False)
    answers = [outcome.answer for outcome in outcomes if outcome.answer is not None]
    over: dict[str, Any] = described(ratings)
    times: dict[str, Any] = described([row.latency_s for row in answers if row.latency_s is not None])
    return SystemEntry(
        system=system,
        n=len(ratings),
        n_expected=len(outcomes),
        n_unscored=len(outcomes) - len(ratings),
        **over,
        answered=answered.value,
        usd_per_1k=_usd_per_1k(answers, price),
        latency_s=Latency(times["p50"], times["p95"]),
        intervals=Intervals(
            mean_percentage(rows, unscored="drop"), mean_percentage(rows, unscored="wrong"), answered
        ),
        refusals=_refusals(outcomes),
        unscored=dict(Counter(outcome.unscored for outcome in outcomes if outcome.unscored)),
        tokens=Tokens(
            _total(row.prompt_tokens for row in answers), _total(row.completion_tokens for row in answers)
        ),
    )


def _share(outcomes: Sequence[Outcome], *, refused: bool) -> Estimate:
    """The share of those that there are which decline, or which do not."""
    had = [outcome for outcome in outcomes if outcome.refused is not None]
    groups = [outcome.question.group for outcome in had]
    return mean_estimate([float(outcome.refused is refused) for outcome in had], groups, level=LEVEL)


def _refusals(outcomes: Sequence[Outcome]) -> Refusals:
    should, should_not = (
        [one for one in outcomes if one.should_answer is wanted] for wanted in (True, False)
    )
    answerable, unanswerable = (
        Counted(*(sum(one.refused is refused for one in part) for refused in (False, True)))
        for part in (should, should_not)
    )
    return Refusals(
        answerable=answerable,
        unanswerable=unanswerable,
        wrong_refusals=_share(should, refused=True),
        right_refusals=_share(should_not, refused=True),
        n_without_answer=len(outcomes) - answerable.n - unanswerable.n,
    )


def _usd_per_1k(
    rows: Sequence[Judgement], price: Callable[[int | None, int | None], float | None] | None
) -> float | None:
    """What a thousand answers cost in production: a stored reply counts as if it had been called for."""
    costs = [
        price(row.prompt_tokens, row.completion_tokens) if row.cached and price else row.cost_usd
        for row in rows
    ]
    known = [cost for cost in costs if cost is not None]
    return 1000.0 * sum(known) / len(known) if known and len(known) == len(costs) else None


def _total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
