"""Which map from verdicts to labels to fit, and what deciding through it comes to. By hand, some ten minutes.
`python -m tests.benchmarks.calibration`

1. What a map that was fitted on n items loses of the macro_agreement that the best monotone map of all would
reach, for
   simulated judges (five kinds of labels, three of verdicts, three levels of noise) and for judges that are
   no normal noise around the truth: the map of `stats.calibration`, the same without its smoothing, least
   squares, a straight line on normal scores, and a Gaussian copula.
2. Judges that know nothing (always 50, the median, noise around 50) on graded labels: how often one is shown
to beat
   the best constant, which would let it be used. At most 1 in 200 by chance of a judge that is level with it.
3. Two judges of equal worth on scales of their own: how often `compare` decides. At most 6%.

Exits 1 where 2 or 3 breaks.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import ndtr, ndtri

from judgecal.scale import Scale
from judgecal.stats import best_constant, calibration, compare, compare_paired
from tests.benchmarks.driver import Bench, Floats, Ints, latent, slack

Fit = Callable[[Floats, Floats], Floats]
"""From m x k counts of verdicts beside labels, and the labels (0..1), the label of each verdict."""

LABELS: dict[str, Callable[[Floats], Floats]] = {
    "all over": lambda q: np.round(10.0 * ndtr(q)) / 10.0,
    "mostly high": lambda q: np.round(10.0 * ndtr(1.2 * q + 1.0)) / 10.0,
    "at the ends": lambda q: (q > 0.0).astype(np.float64),
    "0, 50, 100": lambda q: np.where(q > 0.3, 1.0, np.where(q < -1.0, 0.0, 0.5)),
    "85% pass": lambda q: (q > -1.0).astype(np.float64),
}
VERDICTS: dict[str, Callable[[Floats], Floats]] = {
    "0..100": lambda s: np.round(100.0 * ndtr(s)),
    "five": lambda s: np.round(4.0 * ndtr(s)),
    "three": lambda s: np.digitize(s, [-0.7, 0.5]).astype(np.float64),
}
NOISE = (0.5, 1.5, 20.0)
SIZES = (60, 110, 330)
POPULATION = 30_000


def strata(labels: Floats) -> Ints:
    return np.minimum(2, np.floor(3.0 * labels + 1e-9)).astype(np.int64)


def weighed(counts: Floats, labels: Floats) -> Floats:
    size = np.bincount(strata(labels), weights=counts.sum(axis=0), minlength=3)
    made: Floats = counts / np.maximum(size, 1.0)[strata(labels)]
    return made


def least_absolute(counts: Floats, labels: Floats, *, smooth: bool) -> Floats:
    rows = weighed(counts, labels)
    if smooth:
        rows = calibration.smoothed(rows, counts.sum(axis=1))
    reached = (labels[:, None] > labels[:-1]).astype(np.float64)
    cuts = calibration.best_cuts(rows @ reached, rows @ (1.0 - reached))
    return labels[np.searchsorted(cuts, np.arange(len(rows)), side="right")]


def least_squares(counts: Floats, labels: Floats) -> Floats:
    rows = weighed(counts, labels)
    mass = rows.sum(axis=1)
    return np.asarray(isotonic_regression(rows @ labels / mass, weights=mass).x)


def normal_scores(mass: Floats) -> Floats:
    share = mass / mass.sum()
    scores: Floats = ndtri(np.clip(np.cumsum(share) - share / 2.0, 1e-3, 1.0 - 1e-3))
    return scores


def straight_line(counts: Floats, labels: Floats) -> Floats:
    rows = weighed(counts, labels)
    x, mass = normal_scores(counts.sum(axis=1)), rows.sum(axis=1) / rows.sum()
    y = rows @ labels / rows.sum(axis=1)
    mx, my = mass @ x, mass @ y
    spread = mass @ (x - mx) ** 2
    slope = max(0.0, float(mass @ ((x - mx) * (y - my)) / spread)) if spread > 0.0 else 0.0
    return np.clip(my + slope * (x - mx), 0.0, 1.0)


def copula(counts: Floats, labels: Floats) -> Floats:
    rows = weighed(counts, labels)
    rows = rows / rows.sum()
    x, y = normal_scores(rows.sum(axis=1)), normal_scores(rows.sum(axis=0))
    ours, theirs = rows.sum(axis=1), rows.sum(axis=0)
    cov = x @ rows @ y - (ours @ x) * (theirs @ y)
    size = np.sqrt((ours @ x**2 - (ours @ x) ** 2) * (theirs @ y**2 - (theirs @ y) ** 2))
    share = ndtr((max(0.0, cov / size) if size > 1e-9 else 0.0) * x)
    return labels[(share[:, None] > np.cumsum(theirs)[:-1]).sum(axis=1)]


FITS: dict[str, Fit] = {
    "as built": lambda counts, labels: least_absolute(counts, labels, smooth=True),
    "not smoothed": lambda counts, labels: least_absolute(counts, labels, smooth=False),
    "least squares": least_squares,
    "line": straight_line,
    "copula": copula,
}


def judges(rng: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
    """Labels (0..1) and verdicts of one judge after the other, `POPULATION` items each."""
    for label in LABELS.values():
        for verdict in VERDICTS.values():
            for noise in NOISE:
                q = rng.standard_normal(POPULATION)
                yield label(q), verdict(q + noise * rng.standard_normal(POPULATION))
    for noise in NOISE[
        :2
    ]:  # full marks for 30% of the answers, whatever they are; and two verdicts on three labels
        q = rng.standard_normal(POPULATION)
        seen = q + noise * rng.standard_normal(POPULATION)
        full = np.where(rng.random(POPULATION) < 0.3, 100.0, np.round(100.0 * ndtr(seen)))
        yield np.round(4.0 * ndtr(q + 1.0)) / 4.0, full
        yield LABELS["0, 50, 100"](q), (seen > 0.0).astype(np.float64)


def macro(labels: Floats, mapped: Floats) -> float:
    near, own = 1.0 - np.abs(labels - mapped), strata(labels)
    return float(np.mean([near[own == one].mean() for one in np.unique(own)]))


def table(labels: Ints, verdicts: Ints, shape: tuple[int, int]) -> Floats:
    return (
        np.bincount(verdicts * shape[1] + labels, minlength=shape[0] * shape[1])
        .reshape(shape)
        .astype(np.float64)
    )


def lost(y: Floats, v: Floats, n: int, *, reps: int, rng: np.random.Generator) -> dict[str, float]:
    """What each map, fitted on n of the items, loses on all of them; the mean over the samples."""
    labels, label = np.unique(y, return_inverse=True)
    values, verdict = np.unique(v, return_inverse=True)
    counts = table(label, verdict, (len(values), len(labels)))
    best = macro(y, least_absolute(counts, labels, smooth=False)[verdict])
    found: dict[str, list[float]] = {name: [] for name in FITS}
    while len(found["line"]) < reps:
        drawn = rng.integers(0, len(y), n)
        if len(np.unique(strata(y[drawn]))) < len(np.unique(strata(y))):
            continue
        counts = table(label[drawn], verdict[drawn], (len(values), len(labels)))
        there, known = counts.sum(axis=1) > 0.0, counts.sum(axis=0) > 0.0
        place = np.clip(
            np.searchsorted(np.flatnonzero(there), np.arange(len(values)), side="right") - 1, 0, None
        )
        for name, fit in FITS.items():
            mapped = fit(counts[there][:, known], labels[known])
            found[name].append(best - macro(y, mapped[place][verdict]))
    return {name: float(np.mean(own)) for name, own in found.items()}


def regrets(bench: Bench) -> None:
    rng, reps = np.random.default_rng(0), max(min(5, bench.n), bench.n // 20)
    drawn = bench.some(judges(rng))
    print(f"lost of the best map's macro_agreement: mean, worst of {len(drawn)} judges, {reps} samples each")
    for n in bench.some(SIZES):
        own = [lost(y, v, n, reps=reps, rng=rng) for y, v in drawn]
        cells = [
            f"{name} {np.mean([o[name] for o in own]):.4f}, {max(o[name] for o in own):.3f}" for name in FITS
        ]
        print(f"  {n:>4} items   " + "   ".join(cells), flush=True)


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
    regrets(bench)
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
