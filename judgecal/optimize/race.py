"""A race of candidates on dev: a third of its questions first, and further only what may still be the best.

A candidate goes no further that the questions so far show to be worse (one-sided, at 95%) than the best of
them or than the judge as it was; of the others at most as many go on as the run can pay for. What is decided
stays valid: the winner is held to luck among all candidates that were ever scored (`choose`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from judgecal.experiment import AgreementTable
from judgecal.optimize.result import ScoredCandidate, Stage
from judgecal.optimize.training import parts_by_question
from judgecal.records import Item
from judgecal.scale import Label

LAPS = 3


def laps(items: Sequence[Item], labels: Mapping[str, Label], seed: int) -> list[tuple[Item, ...]]:
    """Cut items into three parts by whole questions, each with its share of good and bad answers."""
    return parts_by_question(items, labels, seed=seed, n=LAPS)


@dataclass(frozen=True, slots=True)
class Finish:
    """Who reached the end of dev, the judge as it was first, and the stages after which some were dropped."""

    scored: Sequence[ScoredCandidate]
    stages: Sequence[Stage]

    @property
    def everybody(self) -> list[ScoredCandidate]:
        """All candidates ever scored, each as far as it went, behind the judge as it was."""
        runs = [*(stage.scored for stage in self.stages), self.scored]
        last = {candidate.name: candidate for scored in runs for candidate in scored[1:]}
        return [self.scored[0], *last.values()]


Scorer = Callable[[int | None, AgreementTable], ScoredCandidate]


def race(
    dev: AgreementTable,
    parts: Sequence[Sequence[Item]],
    candidates: Sequence[int],
    score: Scorer,
    *,
    metric: str,
    go_on: Sequence[int],
    affords: Callable[[int], bool] = lambda _: True,
) -> Finish:
    """Score candidates on dev, lap by lap, and drop the worse ones; returns who finished.

    Args:
        parts: the items of dev as `laps` has them.
        score: the judge as it was (None) or a candidate by its number, on the items of a table.
        go_on: candidates after each lap but the last, at most.
        affords: whether there is money for one of them on so many items; else it goes no further.
    """
    before, stages, items, running = score(None, dev), list[Stage](), tuple[Item, ...](), [*candidates]
    for lap, part in enumerate(parts):
        items += tuple(part)
        whole = lap == len(parts) - 1
        table = dev if whole else AgreementTable(dev.gold, items, dev.repeats, dev.seed, dev.level)
        scored = {number: score(number, table) for number in running if affords(len(part))}
        if whole:
            return Finish([before, *scored.values()], stages)
        stage = Stage(table, [score(None, table), *scored.values()])
        worse = stage.shown_worse(metric)
        able = [number for number in scored if not any(scored[number] is loser for loser in worse)]
        able.sort(key=lambda number: -scored[number].value(metric))
        running = sorted(able[: go_on[lap]])
        if len(running) < len(scored):
            stages.append(stage)
    return Finish([before], stages)
