"""Choose on dev by what the confirmation on test will ask for.

A gain counts there only if it stays once both judges are recalibrated. So the candidates are ranked by the
smaller of their two gains over the judge as it was: in the metric, and in the metric once recalibrated. A
candidate that merely uses the scale differently has nothing of the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judgecal.experiment import Column, Table, require_metric, verdict_matrix
from judgecal.judges import Judge
from judgecal.optimize.candidates import Candidate
from judgecal.records import Estimate
from judgecal.stats import recalibrated_agreement

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

    Of equals the one with the higher metric is taken, then the one with fewer demos. Below ten questions, where
    maps cannot be fitted, and on labels without order the highest metric decides alone.
    """
    before = scored[0]
    rising = [one for one in scored[1:] if one.value(metric) > before.value(metric)]
    if not rising:
        return Choice(before, f"no candidate had a higher {metric} than the judge as it was")
    highest = max(rising, key=lambda one: (one.value(metric), -len(one.judge.demos)))
    if len(set(dev.groups)) < _MIN_GROUPS or before.recalibrated is None:
        return Choice(highest, f"it had the highest {metric}")
    taken = max(
        rising, key=lambda one: (_lasting(one, before, metric), one.value(metric), -len(one.judge.demos))
    )
    if taken is highest:
        return Choice(taken, f"it had the highest {metric}, and the most of its gain stays once recalibrated")
    return Choice(
        taken, f"{highest.name} had a higher {metric}, but less of its gain stays once recalibrated"
    )


def _lasting(one: Scored, before: Scored, metric: str) -> float:
    """The smaller of the gain in the metric and the gain once both are recalibrated."""
    gain = one.value(metric) - before.value(metric)
    return min(gain, _or_lowest(one.recalibrated) - _or_lowest(before.recalibrated))


def _or_lowest(found: Estimate | None) -> float:
    return float("-inf") if found is None or found.value is None else found.value
