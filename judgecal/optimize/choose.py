"""Choose on dev: the highest metric, and where dev cannot tell the highest apart, the one that judges best.

With a few hundred items many candidates tie. Among those that are not shown to be below the highest, the one is
taken whose verdicts agree best once recalibrated: a judge that only uses the scale differently gains nothing
there, and so is not what a tie is broken by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judgecal.experiment import Column, Table, require_metric, verdict_matrix
from judgecal.judges import Judge
from judgecal.optimize.candidates import Candidate
from judgecal.records import Estimate
from judgecal.stats import compare_paired, recalibrated_agreement

__all__ = ["Choice", "Scored", "choose"]

_MIN_GROUPS = 10


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with its judgements on dev and what they come to.

    Attributes:
        candidate: what was compiled; None for the judge as it was.
        judge: the judge that its program makes.
        column: its judgements.
        estimates: metric -> Estimate on dev, an unscored item counted as wrong.
        recalibrated: the deciding metric once recalibrated; None on labels without order.
    """

    candidate: Candidate | None
    judge: Judge
    column: Column
    estimates: dict[str, Estimate]
    recalibrated: Estimate | None

    @property
    def name(self) -> str:
        """The candidate's name, or `before`."""
        return self.candidate.name if self.candidate else "before"

    def value(self, metric: str) -> float:
        """The metric on dev; below everything where it is undefined."""
        return _or_lowest(require_metric(self.estimates, metric))


@dataclass(frozen=True, slots=True)
class Choice:
    """Who was taken, and why in a sentence."""

    taken: Scored
    why: str


def score_on(dev: Table, candidate: Candidate | None, judge: Judge, column: Column, metric: str) -> Scored:
    """Hold one candidate's judgements against the people."""
    again = None
    if dev.gold.scale.numeric:
        again = recalibrated_agreement(
            dev.labels,
            verdict_matrix(column.rows, dev.items, dev.repeats),
            scale=dev.gold.scale,
            judge_scale=column.scale,
            groups=dev.groups,
            metric=metric,
            seed=dev.seed,
        )
    return Scored(candidate, judge, column, dev.agreements(column)["as_wrong"], again)


def choose(scored: Sequence[Scored], dev: Table, metric: str) -> Choice:
    """Take one; the first of `scored` is the judge as it was, and stays unless another has a higher metric.

    Of equals the one with fewer demos is taken. Below ten questions a tie cannot be told, and the highest is taken.
    """
    before = scored[0]
    highest = max(scored, key=lambda one: (one.value(metric), -len(one.judge.demos)))
    if highest.candidate is None:
        return Choice(highest, f"no candidate had a higher {metric} than the judge as it was")
    if len(set(dev.groups)) < _MIN_GROUPS or highest.recalibrated is None:
        return Choice(highest, f"it had the highest {metric}")
    ties = [
        one
        for one in scored[1:]
        if one.value(metric) > before.value(metric) and _tied(one, highest, dev, metric)
    ]
    taken = max(
        ties, key=lambda one: (_or_lowest(one.recalibrated), one.value(metric), -len(one.judge.demos))
    )
    if len(ties) == 1:
        return Choice(
            taken, f"it had the highest {metric}, and no other above the judge as it was ties with it"
        )
    among = f"of the {len(ties)} that dev cannot tell from it, {taken.name} agreed best once recalibrated"
    return Choice(taken, f"{highest.name} had the highest {metric}; {among}")


def _tied(one: Scored, highest: Scored, dev: Table, metric: str) -> bool:
    if one is highest:
        return True
    found = compare_paired(
        dev.labels,
        verdict_matrix(highest.column.rows, dev.items, dev.repeats),
        verdict_matrix(one.column.rows, dev.items, dev.repeats),
        scale=dev.gold.scale,
        a_scale=highest.column.scale,
        b_scale=one.column.scale,
        metric=metric,
        groups=dev.groups,
        seed=dev.seed,
        n_perm=1,  # the interval is asked for, not the p value
    ).difference
    return found.low is None or found.low <= 0.0


def _or_lowest(found: Estimate | None) -> float:
    return float("-inf") if found is None or found.value is None else found.value
