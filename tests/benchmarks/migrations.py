"""How often does `migrate` let a judge pass? By hand: `python -m tests.benchmarks.migrations [-n SETS]`.

Sets of binary answers, a question each, 45% of them test. The new judge gives the old one's verdicts but for
the items where it is wrong instead, or right instead. Each world at the level of the first and of the second
decision, by the rule and by test alone. It exits 1 where a judge that truly loses 3.1 points passes in more
than 5% of the sets. In `tuned` it is the best of five such judges on train and dev. In `leaked` it has half
of those answers from the labels: that is shown, and no promise, for only test then knows that it is worse,
and few questions cannot tell.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from judgecal.experiment.looks import Look
from judgecal.scale import Scale
from judgecal.selection.rules import MigrationItems, migration
from tests.benchmarks.driver import Bench, Floats, slack

BINARY, METRIC, MARGIN, RIGHT = Scale.parse("binary"), "macro_agreement", 0.03, 0.9
TEST = 0.45


def changed(rng: np.random.Generator, gold: Floats, old: Floats, *, loses: float, differ: float) -> Floats:
    """Another judge: wrong on some of the old one's right items, right on some of its wrong ones; nets
    `loses`."""
    right = old == gold
    chance = np.where(right, (differ + loses) / 2.0 / RIGHT, (differ - loses) / 2.0 / (1.0 - RIGHT))
    return np.where(rng.random(len(gold)) < chance, 1.0 - old, old)


def decided(
    rng: np.random.Generator, n: int, kind: str, *, fails: float, differ: float, number: int
) -> tuple[str, str]:
    """What the rule says of one set, and what test alone would."""
    gold = (rng.random(n) >= fails).astype(np.float64)
    old = np.where(rng.random(n) < RIGHT, gold, 1.0 - gold)
    chosen = np.arange(n) >= TEST * n
    loses = 0.0 if kind == "equal" else 0.031
    sides = [changed(rng, gold, old, loses=loses, differ=differ) for _ in range(5 if kind == "tuned" else 1)]
    new = max(sides, key=lambda side: float((side == gold)[chosen].mean()))
    if kind == "leaked":
        new = np.where(chosen & (rng.random(n) < 0.5), gold, new)

    def part(place: npt.NDArray[np.bool_]) -> MigrationItems:
        columns = (gold[place].tolist(), [str(number) for number in np.flatnonzero(place)])
        return MigrationItems(*columns, old[place].tolist(), new[place].tolist(), (BINARY, BINARY))

    level = Look(number, new=True).level
    shared: dict[str, Any] = {"people": BINARY, "metric": METRIC, "margin": MARGIN, "level": level}
    test, rest = part(~chosen), part(chosen)
    by_rule, alone = (migration(test, others, **shared) for others in (rest, None))
    return by_rule.decision, alone.decision


WORLDS = [(kind, fails, differ) for kind in ("equal", "worse", "tuned", "leaked") for fails, differ in
          ((0.5, 0.04), (0.35, 0.06), (0.2, 0.04))]  # fmt: skip


def main() -> int:
    bench = Bench(__doc__, n=500, of="sets of each world", questions=300)
    most = 0.05 + slack(0.05, bench.n)
    for number in (1, 2):
        for kind, fails, differ in bench.some(WORLDS):
            rng = np.random.default_rng(0)
            decisions = [
                decided(rng, bench.options.questions, kind, fails=fails, differ=differ, number=number)
                for _ in range(bench.n)
            ]
            passed, alone = (np.mean([one[side] == "pass" for one in decisions]) for side in (0, 1))
            failed = np.mean([one[0] == "fail" for one in decisions])
            bench.line(
                f"decision {number}  {kind:6}  {fails:.0%} fails, {differ:.0%} differ  passes {passed:6.1%}, "
                f"on test alone {alone:6.1%}; fails {failed:6.1%}",
                kept=kind in ("equal", "leaked") or bool(passed <= most),
            )
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
