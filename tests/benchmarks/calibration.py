"""What deciding through a fitted map comes to. By hand, some minutes: `python -m tests.benchmarks.calibration`

1. Judges that know nothing (always 50, the median, noise around 50) on graded labels: how often one is shown
to beat
   the best constant, which would let it be used. At most 1 in 200 by chance of a judge that is level with it.
2. Two judges of equal worth on scales of their own: how often `compare` decides. At most 6%.

Exits 1 where one breaks.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from unittest import mock

import numpy as np
from scipy.special import ndtr

from judgecal.scale import Scale
from judgecal.stats import best_constant, calibration, compare, compare_paired
from tests.benchmarks.driver import Bench, latent, slack


def ignorant(reps: int) -> float:
    """Share of the samples in which a judge that knows nothing is shown to beat the best constant."""
    rng, people = np.random.default_rng(1), Scale.parse("percentage")
    shown = 0
    for _ in range(reps):
        n = int(rng.choice([60, 120]))
        seen = rng.standard_normal(n) + rng.choice([-0.5, 0.0, 1.0])
        gold = np.clip(np.round(50.0 + 30.0 * seen, -1), 0.0, 100.0)
        constant = np.full(n, best_constant(gold, scale=people))
        noise = np.clip(np.round(50.0 + 15.0 * rng.standard_normal(n)), 0.0, 100.0)
        for verdicts in (np.full(n, 50.0), np.full(n, np.median(gold)), noise):
            once = calibration.calibrated(
                gold.tolist(), {"j": verdicts}, scale=people, scales={}, groups=None
            )
            found = compare_paired(
                gold, once.verdicts["j"], constant, scale=people, n_perm=1, more_error=once.error_of_fit("j")
            ).difference
            shown += found.low is not None and found.low > 0.0
    return shown / reps


def decided(n_groups: int, kind: str, *, reps: int, with_fit: bool = True) -> float:
    """Share of the samples in which two judges of equal worth, each on its own scale, are told apart."""
    rng = np.random.default_rng(n_groups)
    groups, told = np.repeat(np.arange(n_groups), 2), 0
    for _ in range(reps):
        q, common = latent(rng, n_groups), latent(rng, n_groups)
        a, b = (q + 0.8 * (np.sqrt(0.5) * common + np.sqrt(0.5) * latent(rng, n_groups)) for _ in range(2))
        scale = "binary" if kind == "binary" else "percentage"
        gold = (q > -0.4).astype(np.float64) if kind == "binary" else np.round(10.0 * ndtr(q)) * 10.0
        sides = np.round(100.0 * ndtr(a)), np.round(1000.0 * ndtr(1.5 * b - 0.3)) / 10.0
        how = {
            "scale": scale,
            "a_scale": "percentage",
            "b_scale": "percentage",
            "groups": groups,
            "n_perm": 1000,
        }
        without = mock.patch.object(calibration.DecidingVerdicts, "error_of_fit", _none)
        with contextlib.nullcontext() if with_fit else without:
            told += compare(gold, *sides, **how).decision != "cannot tell"  # type: ignore[arg-type]
    return told / reps


def _none(*_: object) -> tuple[float, float]:
    return 0.0, 1.0


def main() -> int:
    bench = Bench(__doc__, n=400, of="samples a setting")
    reps = bench.n
    share = ignorant(reps)
    what = (
        f"judges that know nothing shown to beat the best constant: {share:.4f} of the sets of three judges"
    )
    bench.line(what, kept=share <= 0.005)
    for n_groups, kind in bench.some(itertools.product((33, 60, 110), ("graded", "binary"))):
        found = decided(n_groups, kind, reps=reps)
        bare = decided(n_groups, kind, reps=reps // 2, with_fit=False)
        bench.line(
            f"two equal judges, {kind}, {n_groups} questions: decided {found:.3f}, without the fit {bare:.3f}",
            kept=found <= 0.06 + slack(0.05, reps),
        )
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
