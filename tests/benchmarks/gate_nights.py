"""How often does `gate` pass, fail, or cannot tell? By hand: `python -m tests.benchmarks.gate_nights`.

Each night a judge is called again on 220 items of 110 questions. Its verdicts are percentages that agree with the
labels by about 0.85; labels and the judge's errors hang together within a question (correlation 0.3 of the latent
scores), and half of the labels lie at the ends of the scale. Each night has a gold set, a judge and a lock of its own.

A flip is a verdict taken to the other side of the scale, 100 - v. *Own noise*: single calls flip at random, at lock
time and now, so that two calls of one item differ in the stated share of items; nothing has changed. *New flips*: the
locked verdicts had none, and now that share of each pass flips at random: the judge has become noisier, and a part of
the agreement is lost for good. *Drop*: on some items, correlated within the question, the judge is now as wrong as it
can be, the same items in each pass; so many that its expected macro_agreement falls by the stated loss.

Beside the gate stands the plain rule that it improves on: one pass, Student's t for the bound, a fail without another
look. At a drop of exactly the margin a pass is an error: each look at it takes a chance of 5%, and three of them, which
hang together, a little more.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from judgecal.scale import Scale
from judgecal.selection.gate_plan import REPEATS_MAX
from judgecal.selection.gate_rule import GateRule, Standing, TwoTimes
from judgecal.stats import compare_paired
from tests.benchmarks.coverage import latent

Floats = npt.NDArray[np.float64]

QUESTIONS, SIZE = 110, 2
MARGIN = 0.03
PERCENTAGE = Scale.parse("percentage", pass_at=75.0)
GROUPS = [str(place // SIZE) for place in range(QUESTIONS * SIZE)]


def labelled_and_judged(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Labels in tens, and a judge's verdicts on them, without noise of its own."""
    labels = np.round(10.0 * ndtr(2.5 * latent(rng, QUESTIONS, SIZE) + 0.25)) * 10.0
    return labels, np.round(np.clip(labels + 28.0 * latent(rng, QUESTIONS, SIZE), 0.0, 100.0))


def macro_agreement(labels: Floats, verdicts: Floats) -> float:
    stratum = np.minimum(2.0, np.floor(3.0 * labels / 100.0 + 1e-9))
    closeness = 1.0 - np.abs(verdicts - labels) / 100.0
    return float(np.mean([closeness[stratum == place].mean() for place in np.unique(stratum)]))


def flipped(rng: np.random.Generator, verdicts: Floats, rate: float) -> Floats:
    return np.where(rng.random(verdicts.size) < rate, 100.0 - verdicts, verdicts)


def dropped(rng: np.random.Generator, labels: Floats, verdicts: Floats, loss: float) -> Floats:
    """The verdicts after a drop: as wrong as can be on so many items that the expected loss is the stated one."""
    worst = np.where(labels >= 50.0, 0.0, 100.0)
    share = loss / (macro_agreement(labels, verdicts) - macro_agreement(labels, worst))
    return np.where(latent(rng, QUESTIONS, SIZE) < ndtri(share), worst, verdicts)


@dataclass(frozen=True)
class Nights:
    """One kind of night.

    Attributes:
        name: what happens.
        own: share of items on which two calls of the unchanged judge differ.
        new: share of items that each call of now flips beside that.
        drop: loss of macro_agreement that every call of now has.
    """

    name: str
    own: float = 0.0
    new: float = 0.0
    drop: float = 0.0

    def lock_and_calls(self, rng: np.random.Generator) -> tuple[Floats, Floats, Callable[[], Floats]]:
        """Labels, locked verdicts, and what makes a pass of now."""
        labels, judged = labelled_and_judged(rng)
        noise = (1.0 - np.sqrt(1.0 - 2.0 * self.own)) / 2.0  # two calls differ with 2 p (1 - p)
        now = dropped(rng, labels, judged, self.drop) if self.drop else judged
        return labels, flipped(rng, judged, noise), lambda: flipped(rng, flipped(rng, now, noise), self.new)


KINDS = (
    Nights("nothing differs"),
    Nights("2% flips, own noise", own=0.02),
    Nights("2% flips, new", new=0.02),
    Nights("5% flips, own noise", own=0.05),
    Nights("5% flips, new", new=0.05),
    Nights("drop of 3 points", drop=0.03),
    Nights("drop of 3 points, 2% own", own=0.02, drop=0.03),
    Nights("drop of 5 points, 2% own", own=0.02, drop=0.05),
    Nights("drop of 8 points", drop=0.08),
    Nights("drop of 8 points, 2% own", own=0.02, drop=0.08),
)


@dataclass
class Came:
    """What a kind of night came to: decisions of the gate and of the plain rule, passes made, differences seen."""

    gate: Counter[str]
    plain: Counter[str]
    passes: list[int]
    differences: list[float]

    def share(self, decision: str, *, plain: bool = False) -> float:
        """Share of the nights with a decision."""
        return (self.plain if plain else self.gate)[decision] / len(self.passes)


def simulate(kind: Nights, *, nights: int, seed: int, repeats_max: int = REPEATS_MAX) -> Came:
    """So many nights of a kind."""
    rng = np.random.default_rng(seed)
    rule, came = GateRule("macro_agreement", MARGIN), Came(Counter(), Counter(), [], [])
    for _ in range(nights):
        labels, then, call = kind.lock_and_calls(rng)
        now = call()[:, None]
        came.plain[plain_rule(labels, then, now)] += 1
        for passes in range(1, repeats_max + 1):
            two = _two_times(labels, then, now)
            standing = rule.standing(two, last=passes == repeats_max)
            if standing.decision != "inconclusive" or two.settled or passes == repeats_max:
                break
            now = np.column_stack([now, call()])
        _note(came, standing, passes)
    return came


def _two_times(labels: Floats, then: Floats, now: Floats) -> TwoTimes:
    return TwoTimes(labels.tolist(), then.tolist(), now.tolist(), GROUPS, PERCENTAGE, PERCENTAGE)


def _note(came: Came, standing: Standing, passes: int) -> None:
    came.gate[standing.decision] += 1
    came.passes.append(passes)
    came.differences.append(standing.comparison.difference.value or 0.0)


def plain_rule(labels: Floats, then: Floats, now: Floats) -> str:
    """One pass: pass where t's one-sided bound is under the margin, fail where the interval and the loss say so."""
    one, two = (
        compare_paired(
            labels.tolist(), now.tolist(), then.tolist(), scale=PERCENTAGE, groups=GROUPS, level=level, n_perm=1
        ).difference
        for level in (0.90, 0.95)
    )
    assert one.value is not None and one.low is not None and two.high is not None
    if one.low > -MARGIN:
        return "pass"
    return "fail" if two.high < 0.0 and one.value < -MARGIN else "inconclusive"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nights", type=int, default=2000)
    nights = parser.parse_args().nights
    start = time.perf_counter()
    rng = np.random.default_rng(0)
    agreement = np.mean([macro_agreement(*labelled_and_judged(rng)) for _ in range(500)])
    print(
        f"{nights} nights each: 220 items of 110 questions, macro_agreement {agreement:.2f}, margin {MARGIN}, "
        f"at most {REPEATS_MAX} passes\n"
    )
    print("| night | difference | pass | fail | inconclusive | passes | plain rule: pass | fail |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for seed, kind in enumerate(KINDS):
        came = simulate(kind, nights=nights, seed=seed)
        cells = [f"{100.0 * came.share(name):.1f}%" for name in ("pass", "fail", "inconclusive")]
        plain = [f"{100.0 * came.share(name, plain=True):.1f}%" for name in ("pass", "fail")]
        seen = [f"{np.mean(came.differences):+.3f}", *cells, f"{np.mean(came.passes):.2f}", *plain]
        print(f"| {kind.name} | {' | '.join(seen)} |", flush=True)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
