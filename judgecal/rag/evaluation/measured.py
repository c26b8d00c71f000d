"""One answer of one system with all that was measured of it: a row of state 3, and what comparisons take."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from judgecal.rag.evaluation.system import SystemAnswer
from judgecal.records import Judgement

CORRECTNESS, ANSWERED = "correctness", "answered"
"""The columns that say how right an answer is, and whether it is one at all."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the judge of a column said of one answer, a repeat each."""

    shares: tuple[float | None, ...]
    """A verdict's place on its scale, 0..1, through a lock's map on the people's; None where unscored."""
    raw_shares: tuple[float | None, ...] = ()  # the same before any map
    error: str | None = None  # `kind: message` of the first repeat without a verdict
    passed: tuple[bool | None, ...] = ()  # by its judge's mark, through the lock's map; None where not known
    rows: tuple[Judgement, ...] = ()  # as the journal has them

    @property
    def share(self) -> float | None:
        """The mean over the repeats that have a verdict; None where none has."""
        return mean_of(self.shares)

    @property
    def n_unscored(self) -> int:
        """Repeats without a verdict."""
        return sum(share is None for share in self.shares)


@dataclass(frozen=True, slots=True)
class Measured:
    """A question put to a system.

    Attributes:
        system: its name.
        question: the group of the question; answers of all systems to it are paired.
        documents: the reference documents of the question; empty where it names none.
        answerable: whether its reference gives an answer.
        given: what the system gave.
        answered: whether it answered at all, by the judge of the column `answered`; None where that is
            unscored, and where there is no answer.
        correctness: 0..1, the mean over the judge's repeats; None where it is unscored. It is defined for
            whatever was said; what leaves out refusals, or writes -1, is made of this and `answered`.
        measures: every column of the suite by name, the mean over repeats on the column's own scale as a
            share 0..1; None where unscored.
        n_unscored: judgements that were asked for and gave no verdict.
        verdicts: by column; one whose judge the answer has nothing for is not there.
    """

    system: str
    question: str
    documents: tuple[str, ...]
    answerable: bool
    given: SystemAnswer
    answered: bool | None
    correctness: float | None
    measures: Mapping[str, float | None]
    n_unscored: int = 0
    verdicts: Mapping[str, Verdicts] = field(default_factory=dict)

    @property
    def total(self) -> float | None:
        """Correctness where it answered and 0 where it refused; None where either is unscored.

        Its mean over questions is the share answered times the mean correctness over the answered.
        """
        if self.answered is None:
            return None
        return self.correctness if self.answered else 0.0

    @property
    def percentage(self) -> float | None:
        """Correctness in percent, whether or not it answered."""
        return None if self.correctness is None else round(100.0 * self.correctness, 9)

    @property
    def rating(self) -> Judgement | None:
        """The judgement that correctness rests on, the first of several."""
        verdicts = self.verdicts.get(CORRECTNESS)
        return verdicts.rows[0] if verdicts is not None and verdicts.rows else None


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean of those that are there; None where none is."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
