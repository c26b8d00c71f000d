"""How often does `migrate` let a judge pass? By hand: `python -m tests.benchmarks.migrations [-n SETS]`.

Sets of binary answers, a question each, 45% of them test. The new judge gives the old one's verdicts but for
the items where it is wrong instead, or right instead. Each world at the level of the first and of the second
decision, by the rule and by test alone. It exits 1 where a judge that truly loses 3.1 points passes in more
than 5% of the sets. In `tuned` it is the best of five such judges on train and dev. In `leaked` it has half
of those answers from the labels: that is shown, and no promise, for only test then knows that it is worse,
and few questions cannot tell.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np
import numpy.typing as npt

from judgecal.experiment import Look
from judgecal.scale import Scale
from judgecal.selection.migrate_rule import Both, decide

Floats = npt.NDArray[np.float64]
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

    def part(place: npt.NDArray[np.bool_]) -> Both:
        columns = (gold[place].tolist(), [str(number) for number in np.flatnonzero(place)])
        return Both(*columns, old[place].tolist(), new[place].tolist(), (BINARY, BINARY))

    shared = {"people": BINARY, "metric": METRIC, "level": Look(number, new=True).level}
    test, rest = part(~chosen), part(chosen)
    whole = test.and_all([rest])
    on_test, on_rest, on_all = (one.compared(**shared) for one in (test, rest, whole))
    facts = {"test": on_test, "metric": METRIC, "margin": MARGIN}
    by_rule = decide(whole.losses(margin=MARGIN, **shared), whole=on_all, rest=on_rest, **facts)
    alone = decide(test.losses(margin=MARGIN, **shared), whole=on_test, rest=None, **facts)
    return by_rule.decision, alone.decision


WORLDS = [(kind, fails, differ) for kind in ("equal", "worse", "tuned", "leaked") for fails, differ in
          ((0.5, 0.04), (0.35, 0.06), (0.2, 0.04))]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=500, help="sets of each world")
    parser.add_argument("--questions", type=int, default=300)
    asked, kept = parser.parse_args(), True
    for number in (1, 2):
        for kind, fails, differ in WORLDS:
            rng = np.random.default_rng(0)
            said = [
                decided(rng, asked.questions, kind, fails=fails, differ=differ, number=number)
                for _ in range(asked.n)
            ]
            passed, alone = (np.mean([one[side] == "pass" for one in said]) for side in (0, 1))
            failed = np.mean([one[0] == "fail" for one in said])
            kept &= kind in ("equal", "leaked") or bool(
                passed <= 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / asked.n)
            )
            print(
                f"decision {number}  {kind:6}  {fails:.0%} fails, {differ:.0%} differ  passes {passed:6.1%}, "
                f"on test alone {alone:6.1%}; fails {failed:6.1%}",
                flush=True,
            )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
