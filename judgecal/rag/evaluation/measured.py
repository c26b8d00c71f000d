"""One answer of one system with all that was measured of it: a row of states 3 and 4, and what comparisons
take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from judgecal.rag.evaluation.system import SystemAnswer


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
            whatever was said; what leaves out refusals, or writes -1 for them, is made of this and
            `answered`.
        measures: every column of the suite by name, the mean over repeats on the column's own scale as a
            share 0..1; None where unscored.
        n_unscored: judgements that were asked for and gave no verdict.
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

    @property
    def total(self) -> float | None:
        """Correctness where it answered and 0 where it refused; None where either is unscored.

        Its mean over questions is the share answered times the mean correctness over the answered.
        """
        if self.answered is None:
            return None
        return self.correctness if self.answered else 0.0
