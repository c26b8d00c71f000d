"""May a judge stand in for a person, and is the ceiling true? By hand: `python -m tests.benchmarks.people`.

People label the items of questions with errors of their own; errors hang together within a question
(correlation 0.3 of latent scores). Three tables, all seeded.

1. A judge that agrees with other people less than a person does, by the margin exactly. It may be said to
stand in for
   a person in at most 5% of the samples. The hardest case is one better rater: beside the other the judge is
   far ahead. `best of 5`: five such judges are tested together, and it counts where any is said to stand in.
2. Power: how often a judge that is as good as a person, or agrees 3 points better, is said to stand in. No
promise. 3. The ceiling of two and three raters, ties and all, through the code that prints it: how often its
95% interval holds
   what one rater reaches with another in truth. The goal is 0.93 to 0.98.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import ndtr, ndtri

from judgecal.experiment import AgreementTable, rater_entries
from judgecal.experiment.people import tied_items
from judgecal.goldset import Card, GoldSet, RaterCard, Splits
from judgecal.records import Item, Rating
from judgecal.scale import Scale
from judgecal.stats.stand_in import stand_in
from tests.benchmarks.driver import Bench, Floats, latent, slack

PASS_RATE = 0.65
SHAPES = ((60, 1), (120, 3), (300, 1))  # questions, items of each
LARGE = 400_000  # questions from which the truth is taken
MOST, LEAST = 0.05, 0.93
BINARY, GRADES = Scale.parse("binary"), Scale.parse("ordinal:0:4")


def scores(rng: np.random.Generator, n: int, size: int) -> Floats:
    """Uniform scores of n questions of `size` items, whose normal scores correlate within the question."""
    return np.asarray(ndtr(latent(rng, n, size)))


@dataclass(frozen=True)
class Scene:
    """People and what they are worth: how often each is right; on grades, the size of each one's error."""

    name: str
    people: tuple[float, ...]
    scale: Scale = BINARY

    def draw(
        self, rng: np.random.Generator, n: int, size: int, judges: Sequence[float]
    ) -> tuple[list[Floats], ...]:
        """What the people and judges of these worths say of n questions of `size` items."""
        given = scores(rng, n, size)
        truth = (given < PASS_RATE).astype(float) if self.scale is BINARY else np.floor(5.0 * given)

        def says(worth: float) -> Floats:
            own = scores(rng, n, size)
            if self.scale is BINARY:
                return np.where(own < worth, truth, 1.0 - truth)
            return np.clip(np.round(truth + worth * ndtri(own)), 0.0, 4.0)

        return [says(worth) for worth in self.people], [says(worth) for worth in judges]

    def below(self, worth: float) -> float:
        """How far such a judge falls below a person in truth, beside the person where that is most."""
        people, (judge,) = self.draw(np.random.default_rng(1), LARGE, 1, [worth])
        return max(
            self.reached(people, at)
            - np.mean([macro(other, judge, self.scale) for other in _others(people, at)])
            for at in range(len(people))
        )

    def reached(self, people: Sequence[Floats], at: int) -> float:
        """What a person reaches with another, drawn at random."""
        return float(np.mean([macro(other, people[at], self.scale) for other in _others(people, at)]))

    def worth(self, below: float) -> float:
        """What a judge is worth that falls so far below a person."""
        low, high = (0.5, 1.0) if self.scale is BINARY else (3.0, 0.05)
        for _ in range(16):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.below(middle) > below else (low, middle)
        return (low + high) / 2.0


def _others(people: Sequence[Floats], at: int) -> list[Floats]:
    return [labels for place, labels in enumerate(people) if place != at]


def macro(labels: Floats, verdicts: Floats, scale: Scale) -> float:
    """Macro agreement of a large sample."""
    near = 1.0 - np.abs(labels - verdicts) / scale.span
    stratum = np.array([scale.stratum(float(label)) for label in range(int(scale.high) + 1)])[
        labels.astype(int)
    ]
    return float(np.mean([near[stratum == one].mean() for one in np.unique(stratum)]))


SCENES = (
    Scene("two raters alike", (0.9, 0.9)),
    Scene("one better rater", (0.95, 0.8)),
    Scene("three raters", (0.9, 0.85, 0.85)),
    Scene("two on grades 0..4", (0.7, 0.7), GRADES),
)


def said_to(
    scene: Scene, n: int, size: int, worths: Sequence[float], *, margin: float, reps: int, seed: int
) -> float:
    """Share of samples in which any of these judges is said to stand in."""
    rng, said = np.random.default_rng([seed, n, size, len(worths)]), 0
    groups = {item: item // size for item in range(n * size)}
    for _ in range(reps):
        people, judges = scene.draw(rng, n, size, worths)
        ratings = {f"p{at}": dict(enumerate(labels.tolist())) for at, labels in enumerate(people)}
        said += any(
            stand_in(ratings, dict(enumerate(own.tolist())), scale=scene.scale, groups=groups, n_judges=len(judges))
            .shown(margin)
            for own in judges
        )  # fmt: skip
    return said / reps


def table(
    scene: Scene, *, below: float, margin: float, many: int, reps: int, seed: int
) -> Iterator[tuple[str, float]]:
    """A line a shape of the set."""
    worths = [scene.worth(below)] * many
    for n, size in SHAPES:
        name = f"{scene.name:20} {n:4} x {size}  margin {margin:.2f}  {f'best of {many}' if many > 1 else ''}"
        yield name, said_to(scene, n, size, worths, margin=margin, reps=reps, seed=seed)


def ceiling(scene: Scene, n: int, size: int, *, reps: int, seed: int) -> float:
    """How often the first rater's interval holds what it reaches with another in truth."""
    rng, held = np.random.default_rng([seed, n, size]), 0
    people, _ = scene.draw(np.random.default_rng(1), LARGE, 1, [])
    truth = scene.reached(people, 0)
    for _ in range(reps):
        found = rater_entries(_gold(scene, *scene.draw(rng, n, size, [])[0], size=size), ())[0]
        one = found.agreement["macro_agreement"]
        held += one.low is not None and one.high is not None and one.low <= truth <= one.high
    return held / reps


def _gold(scene: Scene, *people: Floats, size: int) -> AgreementTable:
    """A gold set of these labels; its ties have no gold label."""
    items = tuple(Item(f"i{at}", f"g{at // size}", "q", "a") for at in range(len(people[0])))
    names = [f"p{at}" for at in range(len(people))]
    card = Card("made", scene.scale, raters={name: RaterCard("w") for name in names}, splits=Splits())
    ratings = [
        Rating(item.item_id, name, label)
        for name, labels in zip(names, people, strict=True)
        for item, label in zip(items, labels.tolist(), strict=True)
    ]
    gold = GoldSet("made", Path("made"), card, items, tuple(ratings), (), "0" * 64)
    labelled = tuple(item for item in items if item.item_id in gold.labels)
    return AgreementTable(gold, labelled, tied=tied_items(gold, "all", labelled))


def main() -> int:
    bench = Bench(__doc__, n=400, of="samples a line, of the ceiling a quarter of them", seed=0)
    reps, seed = bench.n, bench.options.seed
    bench.head("worse by the margin, and said to stand in (at most 5%)")
    for scene in SCENES:
        for margin, many in ((0.03, 1), (0.1, 1), *(((0.1, 5),) if scene is SCENES[1] else ())):
            for name, share in table(scene, below=margin, margin=margin, many=many, reps=reps, seed=seed):
                bench.line(f"  {name:55} {share:6.1%}", kept=share <= MOST + slack(MOST, reps))
    bench.head("power: as good as a person, and 3 points better")
    for scene in SCENES[::3]:
        for margin in (0.03, 0.1):
            equal = table(scene, below=0.0, margin=margin, many=1, reps=reps // 2, seed=seed)
            better = table(scene, below=-0.03, margin=margin, many=1, reps=reps // 2, seed=seed)
            for (name, share), (_, more) in zip(equal, better, strict=True):
                bench.line(f"  {name:55} {share:6.1%} {more:6.1%}")
    bench.head("the ceiling: how often its interval holds the truth (0.93 to 0.98)")
    few = max(1, reps // 4)
    for scene, (n, size) in itertools.product(SCENES, SHAPES):
        share = ceiling(scene, n, size, reps=few, seed=seed)
        name = f"{scene.name:20} {n:4} x {size}"
        bench.line(f"  {name:55} {share:6.1%}", kept=share >= LEAST - slack(LEAST, few))
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
