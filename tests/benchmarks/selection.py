"""How much does `select` lose? By hand: `python -m tests.benchmarks.selection` (a few minutes).

Many users, each with six judges of which the dearer is always the better: accuracies from 0.76 to 0.88 in
equal steps, two items a question, correlation 0.3 within a question. Each user chooses on questions of their
own. What they lose is the true accuracy of the best judge less that of the one they take. Two rules on the
same data:

- `select`: the cheapest judge whose loss against the best is shown to stay under the margin, else the best
seen;
- the cheapest one that is not significantly different from the best seen (paired interval by group at 0.95).

Before that: what is claimed of judges in several settings, most of them with a twin of the best judge; and of
twins that truly lose 3.1 points and say what the best one says, or nearly (`--twins`: only this). It exits 1
where a judge is said to be within the margin that is not in more than 5% of the users of a setting, or where
test refuses more than 3% of the honest ones among 1, 4 and 12 candidates; beside that, how often it sees one that falls from 0.97 to 0.75, as a judge does whose questions have leaked.

`--shared` is what the judges' scores have in common: judges find the same items hard. At 0.6 two of them
differ on 0.66 of the items that two independent ones would (recorded judges: 0.40 to 0.48), at 0 they err
independently.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from judgecal.experiment.looks import Look
from judgecal.scale import Scale
from judgecal.selection.decision import choose
from judgecal.stats import agreement
from judgecal.stats.confirmation import Held, fall_between
from judgecal.stats.simultaneous import Losses, losses_against_best
from tests.benchmarks.driver import Bench, Floats, Ints, latent, slack
from tests.support.made_judge import made_judge

WORTH = np.linspace(0.76, 0.88, 6)
SIZES = (33, 110, 300)
PER_QUESTION = 2
SHARED = 0.6
PASS_RATE = 0.65
MARGIN = 0.03
NAMES = tuple(f"judge_{place}" for place in range(len(WORTH)))
CANDIDATES = tuple(made_judge(name, usd_per_1k=float(place + 1)) for place, name in enumerate(NAMES))


@dataclass(frozen=True)
class Shares:
    """What the users of one rule come to: shares of them, and means."""

    over_margin: float
    over_five: float
    mean_loss: float


def user(
    rng: np.random.Generator, n_groups: int, shared: float, worth: Floats = WORTH
) -> tuple[Floats, Floats]:
    """Gold labels, and six judges' verdicts."""
    gold = (latent(rng, n_groups, PER_QUESTION, k=1)[0] < ndtri(PASS_RATE)).astype(np.float64)
    common, own = latent(rng, n_groups, PER_QUESTION, k=1), latent(rng, n_groups, PER_QUESTION, k=len(worth))
    right = np.sqrt(shared) * common + np.sqrt(1.0 - shared) * own < ndtri(worth)[:, None]
    return gold, np.where(right, gold, 1.0 - gold)


def not_different(losses: Losses) -> int:
    """The cheapest judge whose paired interval against the best seen holds 0."""
    assert losses.pairs is not None  # there are ten groups or more
    best, pairs = losses.pairs.names.index(losses.best), losses.pairs
    half = stdtrit(pairs.df[best], 0.975) * pairs.errors[best]
    return int(np.flatnonzero(pairs.differences[best] <= half)[0])


def choices(
    n_groups: int, *, users: int, seed: int, shared: float, worth: Floats = WORTH
) -> Iterator[tuple[int, int]]:
    """For each user the places of: the judge of `select`, and that of the other rule."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), PER_QUESTION)
    for _ in range(users):
        gold, verdicts = user(rng, n_groups, shared, worth)
        losses = losses_against_best(
            gold, dict(zip(NAMES, verdicts, strict=True)), scale="binary", metric="accuracy", groups=groups,
            margin=MARGIN,
        )  # fmt: skip
        taken = choose(CANDIDATES, losses, margin=MARGIN, metric="accuracy").judge
        yield NAMES.index(taken), not_different(losses)


def simulate(
    n_groups: int, *, users: int = 1000, seed: int = 0, shared: float = SHARED, worth: Floats = WORTH
) -> dict[str, Shares]:
    """Both rules on the same users."""
    made = np.array(list(choices(n_groups, users=users, seed=seed, shared=shared, worth=worth)))
    return {"select": _shares(made[:, 0], worth), "not different": _shares(made[:, 1], worth)}


def _shares(taken: Ints, worth: Floats) -> Shares:
    lost = worth.max() - worth[taken]
    return Shares(
        over_margin=float((lost > MARGIN + 1e-9).mean()),
        over_five=float((lost > 0.05 + 1e-9).mean()),
        mean_loss=float(lost.mean()),
    )


def rules_table(bench: Bench) -> None:
    """A Markdown table of both rules, a row for each number of questions."""
    sides = [f"{rule}, loses > {points}" for rule in ("`select`", "not different") for points in (3, 5)]
    bench.head(f"| questions | {' | '.join(sides)} | mean losses |", "| --- " * 6 + "|")
    for n_groups in bench.some(SIZES):
        found = simulate(
            n_groups, users=bench.n, seed=bench.options.seed, shared=bench.options.shared
        ).values()
        cells = [f"{share:.1%}" for rule in found for share in (rule.over_margin, rule.over_five)]
        means = " and ".join(f"{100.0 * rule.mean_loss:.1f}" for rule in found)
        bench.line(f"| {n_groups} | {' | '.join(cells)} | {means} |")


SETTINGS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "six judges in steps": (tuple(WORTH), ()),
    "five judges 3.1 points worse": ((0.849,) * 5 + (0.88,), ()),
    "four judges in steps, a twin 3.1 points worse": ((*WORTH[:4], 0.88), (0.031,)),
    "four judges in steps, a twin 1 point worse": ((*WORTH[:4], 0.88), (0.01,)),
    "four judges at 0.70, a twin 3.1 points worse": ((0.70,) * 4 + (0.88,), (0.031,)),
    "four judges at 0.70, a twin 1 point worse": ((0.70,) * 4 + (0.88,), (0.01,)),
    "four judges as good, a twin 3.1 points worse": ((0.88,) * 5, (0.031,)),
    "two judges in steps, three twins 3.1 points worse": ((*WORTH[2:4], 0.88), (0.031,) * 3),
}
"""True accuracies, the best one last; and what further judges, the cheapest, lose against that one: each
gives its verdicts, but is wrong on some of the items that the other has right."""


@dataclass(frozen=True)
class Claims:
    """Shares of users: a judge said to be within the margin that is not, the last twin found to be, `select`
    without a judge that is shown to be and taking one that loses more than the margin."""

    wrong: float
    found: float
    fallback_over: float


def claims(setting: str, n_groups: int, *, users: int, seed: int) -> Claims:
    """What is claimed of judges on questions of their own."""
    worth, twins = SETTINGS[setting]
    rng, groups = np.random.default_rng(seed), np.repeat(np.arange(n_groups), PER_QUESTION)
    lost = max(worth) - np.array([*worth, *(max(worth) - twin for twin in twins)])
    wrong, found, over = np.zeros(users), np.zeros(users), np.zeros(users)
    for place in range(users):
        gold, verdicts = user(rng, n_groups, SHARED, np.array(worth))
        best = verdicts[-1]
        for twin in twins:
            flips = (best == gold) & (rng.random(len(gold)) < twin / max(worth))
            verdicts = np.vstack([verdicts, np.where(flips, 1.0 - gold, best)])
        names = [f"judge_{number}" for number in range(len(verdicts))]
        judges = dict(zip(names, verdicts, strict=True))
        losses = losses_against_best(
            gold, judges, scale="binary", metric="accuracy", groups=groups, margin=MARGIN, n_draws=5_000
        )
        costs = {name: -float(number) for number, name in enumerate(names)}
        asked = [made_judge(name, usd_per_1k=costs[name] + 10.0) for name in names]
        choice = choose(asked, losses, margin=MARGIN, metric="accuracy")
        wrong[place] = any(lost[names.index(name)] > MARGIN + 1e-9 for name in choice.within)
        found[place] = bool(twins) and names[-1] in choice.within
        over[place] = choice.judge not in choice.within and lost[names.index(choice.judge)] > MARGIN + 1e-9
    return Claims(float(wrong.mean()), float(found.mean()), float(over.mean()))


def claims_table(bench: Bench) -> None:
    """A Markdown table of the settings: wrong claims in 5% at most."""
    heads = "setting | questions | wrong claims | twin found | best taken, loses > 3"
    bench.head(f"| {heads} |", "| --- " * 5 + "|")
    for setting, n_groups in bench.some(itertools.product(SETTINGS, SIZES)):
        made = claims(setting, n_groups, users=bench.n, seed=bench.options.seed)
        cells = " | ".join(f"{share:.1%}" for share in (made.wrong, made.found, made.fallback_over))
        bench.line(f"| {setting} | {n_groups} | {cells} |", kept=made.wrong <= 0.05)


LOST = 0.031  # what a twin truly loses


@dataclass(frozen=True)
class World:
    """One set: labels, the question of each item, the best judge's verdicts, and where each twin is wrong
    instead."""

    gold: Floats
    groups: Ints
    best: Floats
    lost: Sequence[npt.NDArray[np.bool_]]


def _alone(n: int, fails: float, twins: int, *, noise: float = 0.0) -> Callable[[np.random.Generator], World]:
    """Single answers; each twin is wrong on fails alone, and on a share of the passes where the best judge
    is."""

    def drawn(rng: np.random.Generator) -> World:
        gold = (rng.random(n) >= fails).astype(np.float64)
        best = np.where(rng.random(n) < 0.9, gold, 1.0 - gold)
        lost = [(gold == 0.0) & (best == gold) & (rng.random(n) < 2.0 * LOST / 0.9) for _ in range(twins)]
        other = [(gold == 1.0) & (rng.random(n) < np.where(best == gold, noise / 9.0, noise)) for _ in lost]
        return World(gold, np.arange(n), best, [a | b for a, b in zip(lost, other, strict=True)])

    return drawn


def _by_question(
    sizes: Sequence[int], twins: int, *, every: bool = False
) -> Callable[[np.random.Generator], World]:
    """A twin is wrong on all that the best judge has right in a question: in any, or where sizes differ in a
    large one.

    With `every`, each question has as many passes as fails.
    """

    def drawn(rng: np.random.Generator) -> World:
        groups = np.repeat(np.arange(len(sizes)), sizes)
        gold = np.arange(len(groups)) % 2 if every else rng.random(len(groups)) < PASS_RATE
        best = np.where(rng.random(len(groups)) < 0.9, gold, 1 - gold)
        large = np.array(sizes) == max(sizes)
        chance = LOST / 0.9 * len(groups) / (large.sum() * max(sizes))
        lost = [((rng.random(len(sizes)) < chance) & large)[groups] & (best == gold) for _ in range(twins)]
        return World(gold.astype(np.float64), groups, best.astype(np.float64), lost)

    return drawn


TWINS: dict[str, Callable[[np.random.Generator], World]] = {
    **{f"{n} questions of {m}": _by_question([m] * n, 1) for n, m in ((20, 5), (33, 5), (60, 5), (50, 2))},
    **{f"{n} answers, {f:.0%} fails": _alone(n, f, 1) for f in (0.2, 0.1) for n in (100, 150, 220)},
    **{f"{n} answers, 20% fails, 1% of the passes differ": _alone(n, 0.2, 1, noise=0.05) for n in (100, 150, 220)},
    **{f"{n} questions, a pass and a fail each": _by_question([2] * n, 1, every=True) for n in (60, 100)},
    "90 questions of 1 and 10 of 10": _by_question([1] * 90 + [10] * 10, 1),
    "200 questions of 1 and 50 of 4": _by_question([1] * 200 + [4] * 50, 1),
    **{f"{n} answers, {k} twins": _alone(n, 0.5, k) for k in (1, 2, 3, 5) for n in (100, 130, 160)},
}  # fmt: skip
"""Judges that truly lose 3.1 points against the best one, and say what it says but where they lose them."""


def twins_table(bench: Bench) -> None:
    """A Markdown table: in how many sets a judge with the best one's verdicts, or nearly, is said to be as good."""
    heads = "a twin 3.1 points worse | is called within the margin | on the same verdicts"
    bench.head(f"| {heads} |", "| --- " * 3 + "|")
    for name, drawn in bench.some(TWINS.items()):
        rng, wrong = np.random.default_rng(bench.options.seed), np.zeros((bench.n, 2))
        for place in range(bench.n):
            world = drawn(rng)
            twins = {
                f"twin {k}": np.where(lost, 1.0 - world.best, world.best) for k, lost in enumerate(world.lost)
            }
            found = losses_against_best(
                world.gold, {"best": world.best, **twins}, scale="binary", groups=world.groups, margin=MARGIN,
                n_draws=2_000,
            )  # fmt: skip
            called = [(loss.upper is not None and loss.upper < MARGIN) for loss in found.by_judge.values()][
                1:
            ]
            wrong[place, 0] = any(called)
            wrong[place, 1] = any(
                yes and not lost.any() for yes, lost in zip(called, world.lost, strict=True)
            )
        share, same = wrong.mean(axis=0)
        kept = bool(share <= 0.05 + slack(0.05, bench.n))
        bench.line(f"| {name} | {share:.1%} | {same:.1%} |", kept=kept)


@dataclass(frozen=True)
class Refused:
    """Shares of users whose chosen judge test refuses: as it fell too far, or is not above the constant; and
    of those whose judge is locked without being shown above the constant."""

    fell: float
    below_floor: float
    unconfirmed: float

    @property
    def refused(self) -> float:
        return self.fell + self.below_floor


def confirmations(
    n_groups: int, k: int, *, before: float, after: float, users: int, seed: int, pass_rate: float = PASS_RATE
) -> Refused:
    """The best of k equal judges by macro_agreement on 55% of the questions, then held on the others, where
    all are as good as `after` says."""
    rng, groups = np.random.default_rng(seed), np.repeat(np.arange(n_groups), PER_QUESTION)
    chose, scale = groups < round(0.55 * n_groups), Scale.parse("binary")
    fell = below = unconfirmed = 0
    for _ in range(users):
        gold = (latent(rng, n_groups, PER_QUESTION, k=1)[0] < ndtri(pass_rate)).astype(np.float64)
        common, own = latent(rng, n_groups, PER_QUESTION, k=1), latent(rng, n_groups, PER_QUESTION, k=k)
        worth = ndtri(np.where(chose, before, after))
        verdicts = np.where(np.sqrt(SHARED) * common + np.sqrt(1.0 - SHARED) * own < worth, gold, 1.0 - gold)
        best = max(verdicts, key=lambda row: _macro(gold[chose], row[chose]))
        known, test = (
            Held(gold[part].tolist(), best[part].tolist(), scale, groups[part].tolist())
            for part in (chose, ~chose)
        )
        found = fall_between(known, test, people=scale, metric="macro_agreement", n_judges=k)
        how = {"groups": test.groups, "metrics": ["macro_agreement"], "level": Look(1, new=True).level}
        on_test = agreement(test.labels, test.verdicts, scale=scale, **how)["macro_agreement"]
        at_floor = on_test.value is not None and on_test.value <= 0.5
        below += at_floor
        fell += not at_floor and found is not None and found.unexplained
        unconfirmed += not at_floor and (on_test.low is None or on_test.low <= 0.5)
    return Refused(fell / users, below / users, unconfirmed / users)


def _macro(gold: Floats, verdicts: Floats) -> float:
    right = verdicts == gold
    return float(np.mean([right[gold == label].mean() for label in np.unique(gold)]))


def confirmed_table(bench: Bench) -> None:
    """A Markdown table of what test refuses: at most 3% of honest judges."""
    heads = (
        "test confirms: true worth on open, test | judges | questions | fell | below floor | not shown above"
    )
    bench.head(f"| {heads} |", "| --- " * 6 + "|")
    honest = [(worth, worth, rate) for worth, rate in ((0.97, 0.65), (0.88, 0.65), (0.76, 0.65), (0.88, 0.9))]
    worlds = itertools.product([*honest, (0.97, 0.75, PASS_RATE)], (1, 4, 12), (60, 110, 300))
    for (before, after, rate), k, n_groups in bench.some(worlds):
        worths = {"before": before, "after": after, "pass_rate": rate}
        found = confirmations(n_groups, k, users=bench.n, seed=bench.options.seed, **worths)
        title = f"{before:g} honest, {rate:.0%} pass" if before == after else f"{before:g} -> {after:g}"
        cells = " | ".join(f"{share:.1%}" for share in (found.fell, found.below_floor, found.unconfirmed))
        kept = before != after or found.refused <= 0.03
        bench.line(f"| {title} | {k} | {n_groups} | {cells} |", kept=kept)


def main() -> int:
    bench = Bench(__doc__, n=1000, of="users each", seed=0, shared=SHARED, twins=False)
    twins_table(bench)
    if bench.options.twins:
        return bench.end()
    claims_table(bench)
    rules_table(bench)
    confirmed_table(bench)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
