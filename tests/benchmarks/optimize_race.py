"""What the race on dev costs beside scoring every candidate on all of dev, and what it saves.
`python -m tests.benchmarks.optimize_race`

Simulated people, a judge as it was and four candidates go through `race`, `choose` and `confirm`, once in laps
as `auto` has it and once everybody everywhere, on the same samples. What a judge is worth is its macro agreement
once calibrated on 40,000 other answers. In each world the candidates gain, truly: nothing; 5 points in one of
them; 5 points in one while three lose as much; or what is drawn for each, 2 points give or take 4.

Printed: what the candidate taken is worth less for the race, in points, with two standard errors of the paired
difference; the share of judgements that the race leaves out; the share of runs that call a judge better which
is not.

Exit code 1 where a loss is above 0.5 points or false "better" above 5%. Some
three minutes on two idle cores.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from judgecal.experiment.agreement_table import AgreementTable
from judgecal.optimize.result import BETTER, ScoredCandidate, choose, confirm, race
from judgecal.optimize.training import PLANS, parts_by_question
from tests.benchmarks.driver import Bench, latent
from tests.benchmarks.optimize_decisions import (
    LABELS,
    LEVEL,
    METRIC,
    NOISE,
    PER_QUESTION,
    LeanTable,
    World,
    scores,
    timid,
    worth,
)

MOST_LOST, MOST_FALSE = 0.005, 0.05
N_CANDIDATES = PLANS[0].candidates
GAINS = {
    "all equal": lambda rng: [0.0] * N_CANDIDATES,
    "one better": lambda rng: [0.05, *[0.0] * (N_CANDIDATES - 1)],
    "one better, others worse": lambda rng: [0.05, *[-0.05] * (N_CANDIDATES - 1)],
    "drawn": lambda rng: [*np.clip(rng.normal(0.02, 0.04, N_CANDIDATES), -0.1, 0.1)],
}
NOISES = np.linspace(0.3, 2.5, 23)


class Sample(NamedTuple):
    """One sample: what the race lost, the share of judgements that it left out, and two false decisions."""

    lost: float
    left_out: float
    false_raced: bool
    false_whole: bool


@cache
def worths(labels: str) -> list[float]:
    """What judges of `NOISES` are worth."""
    return [worth(noise, labels) for noise in NOISES]


def noise_of(gain: float, labels: str) -> float:
    """The noise of a judge that is worth so much more than one at `NOISE`."""
    values = worths(labels)
    wanted = float(np.interp(NOISE, NOISES, values)) + gain
    return float(np.interp(wanted, values[::-1], NOISES[::-1]))


def taken(world: World, parts: Sequence[Any], go_on: Sequence[int]) -> tuple[int, bool, int]:
    """The judge taken (0: as it was), whether test calls it better, and the judgements of candidates on dev."""
    tables = world.tables()
    columns = [world.column(place, tables["fit"].gold.items) for place in range(len(world.judges))]
    judge: Any = SimpleNamespace(demos=[])
    judged = dict[int, int]()

    def score(number: int | None, table: AgreementTable) -> ScoredCandidate:
        place = 0 if number is None else number + 1
        name = columns[place].judge if place else "before"
        judged[place] = len(table.items)
        lean = LeanTable(table.gold, table.items, level=LEVEL)
        return ScoredCandidate.on(lean, name, judge, columns[place], METRIC)

    finish = race(tables["dev"], parts, range(N_CANDIDATES), score, metric=METRIC, go_on=go_on)
    column = choose(finish.scored, METRIC, tables["dev"], finish.stages).taken.column
    n_judged = sum(n for place, n in judged.items() if place)
    if column is columns[0]:
        return 0, False, n_judged
    confirmed = confirm(
        test=tables["test"], fit=tables["fit"], before=columns[0], after=column, metric=METRIC
    )
    return columns.index(column), confirmed.decision == BETTER, n_judged


def sample(gains: str, labels: str, n_test: int, seed: int) -> Sample:
    """A sample of a setting, in laps and everybody everywhere."""
    rng = np.random.default_rng([seed, n_test])
    n_fit, (people, label) = round(n_test * 11 / 9), LABELS[labels]
    q = latent(rng, n_fit + n_test, PER_QUESTION)
    drawn = GAINS[gains](rng)
    order = rng.permutation(N_CANDIDATES)
    noises = [NOISE, *(noise_of(drawn[place], labels) for place in order)]
    judges = tuple(map(timid, scores(rng, q, n_fit + n_test, noises)))
    world = World(people, label(q), judges, n_fit, n_test)
    dev = world.tables()["dev"]
    parts = parts_by_question(dev.items, dev.gold.labels, seed=seed, n=3)
    raced, better_raced, n_raced = taken(world, parts, PLANS[0].go_on)
    whole, better_whole, n_whole = taken(world, [dev.items], ())
    value = [float(np.interp(noise, NOISES, worths(labels))) for noise in noises]
    no_better = [worth_ <= value[0] + 1e-9 for worth_ in value]
    return Sample(
        value[whole] - value[raced],
        1.0 - n_raced / n_whole,
        better_raced and no_better[raced],
        better_whole and no_better[whole],
    )


def measured(setting: tuple[str, str, int], *, n: int) -> list[Sample]:
    """All samples of a setting."""
    return [sample(*setting, seed) for seed in range(n)]


def main() -> int:
    bench = Bench(__doc__, n=100, of="samples a setting")
    bench.head(
        f"test questions of two items\n{'':<58}{'lost, points':>16}{'left out':>10}{'false better: race':>20}"
        f"{'everybody':>11}"
    )
    every = list[Sample]()

    def show(title: str, samples: Sequence[Sample]) -> None:
        lost, left_out, raced, whole = (np.array(column, float) for column in zip(*samples, strict=True))
        error = 200.0 * lost.std() / np.sqrt(len(lost))
        cells = f"{100.0 * lost.mean():>8.2f} +- {error:.2f}{left_out.mean():>10.2f}{raced.mean():>20.3f}"
        kept = lost.mean() - error / 100.0 <= MOST_LOST and raced.mean() <= MOST_FALSE + 2.0 * np.sqrt(
            MOST_FALSE * (1.0 - MOST_FALSE) / len(raced)
        )
        bench.line(f"{title:<58}{cells}{whole.mean():>11.3f}", kept=bool(kept))

    settings = list(itertools.product(GAINS, LABELS, (50, 110)))
    for (gains, labels, n_test), samples in bench.each(partial(measured, n=bench.n), bench.some(settings)):
        every += samples
        show(f"{gains}, labels {labels}, {n_test} questions", samples)
    show("all", every)
    bench.target("points lost", 100.0 * float(np.mean([one.lost for one in every])), most=100.0 * MOST_LOST)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
