"""How often is `optimize` wrong about its candidate, and how often does it see a better one?
`python -m tests.benchmarks.optimize_decisions`

Simulated people and judges go through `optimize.result`: `choose` on dev, `confirm` on test at the level of
a first look, the maps fitted on train and dev. Items come in questions of two, correlated by 0.3. All seeded.

1. Scale alone: the candidate is the judge itself on another scale, or an equally good judge on that scale.
Four maps;
   labels all over a percentage scale, at its ends, or pass and fail. "better" is false everywhere, "worse"
   where the judge is the same and the map loses nothing.
2. The best of nine on dev: labels that are shuffled over the questions, so that no judge knows anything; and
nine
   judges that know as much as the first. "better" is false.
3. What is seen: a candidate that is truly 0.05 better once calibrated, on the scale of the first judge and
stretched.

4. How often test is opened where all candidates are equal, which is to be at most 20%.
5. What that costs: as 3, where dev is asked first.
6. As 4, where four candidates run a race on dev, as `auto` has it.

Exit code 1 where a false share of 1, 2, 4 or 6 is above 5%, or test is opened by more than 20% of 4 and 6,
also on four times as many fresh samples. Some four minutes on two cores; `--only` the settings whose title
begins so.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import ndtr

from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.experiment.looks import Look
from judgecal.goldset import GOLD, Card, GoldSet
from judgecal.optimize.result import BETTER, WORSE, ScoredCandidate, Stage, choose, confirm, race
from judgecal.optimize.training import PLANS, parts_by_question
from judgecal.records import Estimate, Item, Judgement, Rating
from judgecal.scale import Label, Scale
from judgecal.stats import agreement, cross_fit, fit_calibration
from tests.benchmarks.driver import Bench, Floats, latent

METRIC, MOST = "macro_agreement", 0.05
PER_QUESTION, CANDIDATES = 2, 9
SHARED = 0.6  # of what a judge errs by, what it has in common with the others
NOISE = 1.0
TRUE_GAIN = 0.05
LEVEL = Look(1, new=True).level

RESCALINGS: dict[str, Callable[[Floats], Floats]] = {
    "bent": lambda v: np.round(100.0 * ndtr(5.0 * (v / 100.0 - 0.5)), 2),
    "stretched": lambda v: np.clip(50.0 + 2.5 * (v - 50.0), 0.0, 100.0),
    "in steps of 20, stretched": lambda v: np.clip(np.round((v - 10.0) / 16.0) * 20.0, 0.0, 100.0),
    "snapped to the ends": lambda v: np.where(v >= 50.0, 100.0, 0.0),
}
"""Monotone maps, which raise the agreement of a timid judge; the first one keeps all that it tells apart."""
LABELS: dict[str, tuple[str, Callable[[Floats], Floats]]] = {
    "all over": ("percentage", lambda q: np.round(10.0 * ndtr(1.5 * q + 0.4)) * 10.0),
    "at the ends": ("percentage", lambda q: np.where(q > -0.4, 100.0, 0.0)),
    "pass, fail": ("binary", lambda q: (q > -0.7).astype(np.float64)),
}
"""The people's scale, and their labels of the items' latent worth."""


def timid(score: Floats) -> Floats:
    """Verdicts that keep to the middle of the scale."""
    return np.round(100.0 * ndtr(0.5 * score), 1)


@dataclass(frozen=True)
class LeanTable(AgreementTable):
    """A table that computes the deciding metric alone, which is all that a decision reads."""

    def agreements(
        self, column: Verdicts, *, labels: Sequence[Label | None] | None = None
    ) -> dict[str, dict[str, Estimate]]:
        """As `AgreementTable.agreements`, of one metric."""
        rows = AgreementTable(self.gold, self.items, self.repeats).verdicts(column)
        how = {"groups": self.groups}
        own: dict[str, Any] = {**how, "scale": self.gold.scale, "judge_scale": column.scale}
        kept: dict[str, Any] = {"level": self.level, "metrics": [METRIC]}
        fit = cross_fit(self.labels, rows, **own)
        raw = agreement(self.labels, rows, **own, **kept)
        once = (
            agreement(self.labels, fit.verdicts, scale=self.gold.scale, **how, **kept)
            if fit is not None
            else {}
        )
        return {"agreement": raw, "as_wrong": raw, "calibrated": once}


@dataclass(frozen=True)
class World:
    """People and judges of a sample: the labels of its items, and each judge's verdicts, the first as it
    was."""

    people: str
    labels: Floats
    judges: tuple[Floats, ...]
    n_fit: int  # questions of train and dev
    n_test: int
    chosen_on_dev: bool = False  # whether dev is asked first, as `optimize` does
    raced: bool = False  # and in a race, as `auto` does

    def tables(self) -> dict[str, LeanTable]:
        """`fit` and `test`; dev is six elevenths of fit, as of the default shares."""
        scale = Scale.parse(self.people)
        ids = [(f"i{number}", f"g{number // PER_QUESTION}") for number in range(len(self.labels))]
        items = tuple(Item(item_id, group, "", "") for item_id, group in ids)
        ratings = tuple(
            Rating(item.item_id, GOLD, label) for item, label in zip(items, self.labels.tolist(), strict=True)
        )
        gold = GoldSet("simulated", Path(), Card("simulated", scale), items, ratings, (), "")
        n_fit, n_dev = self.n_fit * PER_QUESTION, self.n_fit * 6 // 11 * PER_QUESTION
        parts = {"fit": items[:n_fit], "dev": items[:n_dev], "test": items[n_fit:]}
        return {name: LeanTable(gold, part, level=LEVEL) for name, part in parts.items()}

    def column(self, place: int, items: Sequence[Item]) -> Verdicts:
        """One judge's judgements of all items."""
        name = f"judge {place}"
        verdicts = self.judges[place].tolist()
        rows = [
            Judgement(one.item_id, "", name, name, 0, said) for one, said in zip(items, verdicts, strict=True)
        ]
        return Verdicts(name, Scale.parse("percentage"), rows)


def decided(world: World) -> str:
    """What `optimize` says: its decision, or "not taken" where no candidate is higher on dev."""
    tables = world.tables()
    columns = [world.column(place, tables["fit"].gold.items) for place in range(len(world.judges))]
    after = columns[1]
    if world.chosen_on_dev:
        judge: Any = SimpleNamespace(demos=[])
        names = ["before", *(column.judge for column in columns[1:])]
        scored = [
            ScoredCandidate.on(tables["dev"], name, judge, column, METRIC)
            for name, column in zip(names, columns, strict=True)
        ]
        stages: Sequence[Stage] = ()
        if world.raced:

            def score(number: int | None, table: AgreementTable) -> ScoredCandidate:
                place = 0 if number is None else number + 1
                lean = LeanTable(table.gold, table.items, level=LEVEL)
                return ScoredCandidate.on(lean, names[place], judge, columns[place], METRIC)

            parts = parts_by_question(tables["dev"].items, tables["dev"].gold.labels, seed=0, n=3)
            numbers = range(len(names) - 1)
            finish = race(tables["dev"], parts, numbers, score, metric=METRIC, go_on=PLANS[0].go_on)
            scored, stages = [*finish.scored], finish.stages
        after = choose(scored, METRIC, tables["dev"], stages).taken.column
        if after is columns[0]:
            return "not taken"
    found = confirm(test=tables["test"], fit=tables["fit"], before=columns[0], after=after, metric=METRIC)
    return found.decision


def scores(rng: np.random.Generator, q: Floats, n_groups: int, noises: Sequence[float]) -> list[Floats]:
    """What judges see of the items' worth: it, and errors that they share in part."""
    common = latent(rng, n_groups, PER_QUESTION)
    own = [latent(rng, n_groups, PER_QUESTION) for _ in noises]
    return [
        q + noise * (np.sqrt(SHARED) * common + np.sqrt(1.0 - SHARED) * one)
        for noise, one in zip(noises, own, strict=True)
    ]


def rescaled(rng: np.random.Generator, *, name: str, labels: str, same: bool, n_test: int) -> World:
    """A judge, and itself or its equal on another scale."""
    people, label = LABELS[labels]
    n_fit = round(n_test * 11 / 9)
    q = latent(rng, n_fit + n_test, PER_QUESTION)
    first, second = map(timid, scores(rng, q, n_fit + n_test, (NOISE, NOISE)))
    return World(people, label(q), (first, RESCALINGS[name](first if same else second)), n_fit, n_test)


def best_of(
    rng: np.random.Generator,
    *,
    labels: str,
    shuffled: bool,
    n_test: int,
    n_candidates: int = CANDIDATES,
    raced: bool = False,
) -> World:
    """Candidates on labels of other items, or on their own ones, where all know the same."""
    people, label = LABELS[labels]
    n_fit = round(n_test * 11 / 9)
    n = n_fit + n_test
    q = latent(rng, n, PER_QUESTION)
    judges = map(timid, scores(rng, q, n, (NOISE,) * (1 + n_candidates)))
    seen = latent(rng, n, PER_QUESTION) if shuffled else q
    return World(people, label(seen), tuple(judges), n_fit, n_test, chosen_on_dev=True, raced=raced)


def worth(noise: float, labels: str) -> float:
    """The macro agreement, once calibrated, of a judge of so much noise, on 40,000 answers."""
    people, label = LABELS[labels]
    rng = np.random.default_rng(0)
    q, error = rng.standard_normal(40_000), rng.standard_normal(40_000)
    given = timid(q + noise * error)
    fitted = fit_calibration(label(q), given, scale=people, judge_scale="percentage")
    assert fitted is not None
    value = agreement(label(q), fitted.mapped(given), scale=people, metrics=[METRIC])[METRIC].value
    assert value is not None
    return value


@cache
def better_noise(labels: str) -> float:
    """The noise at which a judge is `TRUE_GAIN` better once calibrated than at `NOISE`."""
    wanted, low, high = worth(NOISE, labels) + TRUE_GAIN, 0.0, NOISE
    for _ in range(12):
        middle = (low + high) / 2.0
        low, high = (middle, high) if worth(middle, labels) > wanted else (low, middle)
    return low


def truly_better(
    rng: np.random.Generator, *, labels: str, stretched: bool, n_test: int, asked: bool = False
) -> World:
    """A candidate that knows more, on the same scale or stretched."""
    people, label = LABELS[labels]
    n_fit = round(n_test * 11 / 9)
    q = latent(rng, n_fit + n_test, PER_QUESTION)
    first, second = map(timid, scores(rng, q, n_fit + n_test, (NOISE, better_noise(labels))))
    second = RESCALINGS["stretched"](second) if stretched else second
    return World(people, label(q), (first, second), n_fit, n_test, chosen_on_dev=asked)


Draw = Callable[[np.random.Generator], World]


def shares(draw: Draw, *, reps: int, seed: int = 1) -> dict[str, float]:
    """How often each decision is taken."""
    rng = np.random.default_rng(seed)
    found = Counter(decided(draw(rng)) for _ in range(reps))
    return {decision: count / reps for decision, count in found.items()}


@dataclass(frozen=True)
class Line:
    """One setting of the tables, and the decisions that are false in it."""

    title: str
    draw: Draw
    false: tuple[str, ...] = ()
    opens_at_most: float = 1.0  # the share of runs that may open test

    def opened(self, found: Mapping[str, float]) -> float:
        """The share of runs that open test."""
        return 1.0 - found.get("not taken", 0.0)

    def of_false(self, found: Mapping[str, float]) -> float:
        """The share of false decisions."""
        return sum(found.get(decision, 0.0) for decision in self.false)


def measured(line: Line, *, reps: int) -> dict[str, float]:
    """The shares of a setting, anew on four times as many samples where too many are false."""
    found = shares(line.draw, reps=reps)
    broken = line.of_false(found) > MOST or line.opened(found) > line.opens_at_most
    return shares(line.draw, reps=4 * reps, seed=2) if broken else found


def lines() -> list[Line]:
    """Every setting, in the order of the tables."""
    made = []
    for name, labels, same in itertools.product(RESCALINGS, LABELS, (True, False)):
        false = (BETTER, WORSE) if same and name == "bent" else (BETTER,)
        title = f"1  {name}, {'same judge' if same else 'equal judge'}, labels {labels}"
        made.append(Line(title, partial(rescaled, name=name, labels=labels, same=same, n_test=50), false))
    for shuffled, n_test, labels in itertools.product((True, False), (50, 110), LABELS):
        if not shuffled and n_test == 50:
            continue
        title = (
            f"2  best of nine, {'shuffled labels' if shuffled else 'equal judges'}, labels {labels}, "
            f"{n_test} q."
        )
        made.append(Line(title, partial(best_of, labels=labels, shuffled=shuffled, n_test=n_test), (BETTER,)))
    for n_test, labels, stretched in itertools.product((110, 300), ("all over", "pass, fail"), (False, True)):
        title = f"3  +{TRUE_GAIN}{', stretched' * stretched}, labels {labels}, {n_test} questions"
        made.append(Line(title, partial(truly_better, labels=labels, stretched=stretched, n_test=n_test)))
    for n_candidates, n_test, labels in itertools.product((1, 3, 9), (50, 110), LABELS):
        title = f"4  best of {n_candidates} equal judges, labels {labels}, {n_test} questions"
        drawn = partial(best_of, labels=labels, shuffled=False, n_test=n_test, n_candidates=n_candidates)
        made.append(Line(title, drawn, (BETTER,), opens_at_most=0.2))
    for n_test, labels in itertools.product((110, 300), ("all over", "pass, fail")):
        title = f"5  dev asked first, +{TRUE_GAIN}, labels {labels}, {n_test} questions"
        made.append(
            Line(title, partial(truly_better, labels=labels, stretched=False, n_test=n_test, asked=True))
        )
    for n_test, labels in itertools.product((50, 110), LABELS):
        n = PLANS[0].candidates
        title = f"6  race of {n} equal judges, labels {labels}, {n_test} questions"
        drawn = partial(best_of, labels=labels, shuffled=False, n_test=n_test, n_candidates=n, raced=True)
        made.append(Line(title, drawn, (BETTER,), opens_at_most=0.2))
    return made


def main() -> int:
    bench = Bench(__doc__, n=100, of="samples a setting", only="")
    columns = (BETTER, "rescaled only", WORSE, "cannot tell", "not taken")
    bench.head(f"test questions of two items\n{'':<58}{'  '.join(columns)}")
    settings = [line for line in lines() if line.title.startswith(bench.options.only)]
    for line, found in bench.each(partial(measured, reps=bench.n), bench.some(settings)):
        cells = "  ".join(f"{found.get(name, 0.0):>{len(name)}.3f}" for name in columns)
        kept = line.of_false(found) <= MOST and line.opened(found) <= line.opens_at_most
        bench.line(f"{line.title:<58}{cells}", kept=kept)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
