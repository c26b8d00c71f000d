"""Do the 95% intervals hold the truth in 95% of samples? By hand: `python -m tests.benchmarks.coverage`.

Every metric of the table, over pass rates 0.65, 0.85 and 0.95, 12, 20, 33 and 110 questions of 2, 5 or 1 to
10 items, and 0 or 10% of the verdicts missing at random. Items of one question correlate by 0.3, in the
labels' and in the judge's latent normal scores. Five kinds of labels and judge: binary labels with a binary
judge (TPR 0.90, TNR 0.75) and with one that gives percentages, percentage labels (passed from 50), grades 1
to 5 (passed from 4) with a judge that grades, and three words. The truth is the same statistic on 400,000
items.

Coverage is the share of the given intervals that hold the truth. Where fewer than half of the samples have an
interval, those are unusual samples, and the cell is not certified. A certified cell below 0.935 is measured
anew on four times as many fresh samples, and below 0.925 again on sixteen times as many, and that is what is
shown: the lowest of a thousand cells would be low by chance alone. A certified cell that stays below 0.925
breaks the promise, and the exit code is 1.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from judgecal.scale import Scale
from judgecal.stats import agreement, metric_facts, metrics_of
from tests.benchmarks.driver import Bench, Floats, latent

LEAST, SUSPECT, MOST = 0.925, 0.935, 0.98
CERTIFIED_FROM = 0.5  # share of samples with an interval
TRUTH_ITEMS = 400_000
KINDS = {
    "binary": ("binary", None, "binary"),
    "binary, percentage judge": ("binary", None, "percentage"),
    "percentage": ("percentage", 50.0, "percentage"),
    "ordinal": ("ordinal:1:5", 4.0, "ordinal:1:5"),
    "nominal": ("nominal", None, "nominal"),
}
"""The people's scale, its pass mark, and the judge's scale."""
RATES, GROUPS, SIZES, MISSING = (0.65, 0.85, 0.95), (12, 20, 33, 110), ("2", "5", "1-10"), (0.0, 0.1)


@dataclass(frozen=True)
class Setting:
    """One cell of the grid."""

    kind: str
    pass_rate: float
    n_groups: int
    size: str = "2"
    missing: float = 0.0

    def __str__(self) -> str:
        lost = f", {self.missing:.0%} missing" if self.missing else ""
        return f"{self.kind}, pass {self.pass_rate:g}, {self.n_groups} x {self.size}{lost}"

    @property
    def people(self) -> Scale:
        scale, mark, _ = KINDS[self.kind]
        return Scale.parse(scale, pass_at=mark)


def verdicts(gold: Floats, score: Floats, *, graded: bool) -> Floats:
    """A judge's verdicts on binary labels, 0..100, from its latent score on each item."""
    rank = ndtr(score)
    if graded:
        right = np.where(gold == 1.0, betaincinv(4.0, 0.7, rank), betaincinv(1.2, 0.8, rank))
    else:
        right = (rank < np.where(gold == 1.0, 0.90, 0.75)).astype(np.float64)
    return np.round(100.0 * np.where(gold == 1.0, right, 1.0 - right))


def drawn(setting: Setting, ours: Floats, theirs: Floats) -> tuple[Floats, Floats]:
    """Labels and verdicts, from latent scores of the items and of the judge on them."""
    kind, rate = setting.kind, setting.pass_rate
    if kind == "percentage":  # labels in tens, and verdicts that err by 15 points
        gold = np.round(10.0 * ndtr(ours + ndtri(rate))) * 10.0
        return gold, np.round(np.clip(gold + 15.0 * theirs, 0.0, 100.0))
    if kind == "ordinal":  # grade 4 or 5 passes; the judge is a little lenient
        good = ours + ndtri(rate)
        return _graded(good), _graded(0.85 * good + 0.55 * theirs + 0.2)
    if kind == "nominal":  # the first of three words is as common as passing; the others share the rest
        gold = np.searchsorted(ndtri([rate, rate + (1.0 - rate) / 2.0]), ours).astype(np.float64)
        return gold, np.where(theirs < ndtri(0.8), gold, (gold + 1.0 + (theirs > ndtri(0.9))) % 3.0)
    gold = (ours < ndtri(rate)).astype(np.float64)
    given = verdicts(gold, theirs, graded=kind != "binary")
    return gold, given / 100.0 if kind == "binary" else given


def _graded(score: Floats) -> Floats:
    """Grades 1..5 with 4 from 0 on."""
    return 1.0 + np.searchsorted([-1.6, -0.8, 0.0, 0.9], score).astype(np.float64)


@dataclass(frozen=True)
class Covered:
    """One metric in one setting.

    Attributes:
        held: share of the intervals that hold the truth; NaN where there are none.
        share: share of the samples that have an interval.
    """

    held: float
    share: float

    @property
    def certified(self) -> bool:
        """Whether enough samples have an interval for the share that holds to mean something."""
        return self.share >= CERTIFIED_FROM


@cache
def _truth(kind: str, pass_rate: float) -> dict[str, float | None]:
    """Every metric on very many items; how they are grouped does not matter to an item's distribution."""
    setting = Setting(kind, pass_rate, TRUTH_ITEMS)
    rng = np.random.default_rng(int(1000 * pass_rate))
    gold, given = drawn(setting, *(rng.standard_normal(TRUTH_ITEMS) for _ in range(2)))
    one_group = np.zeros(TRUTH_ITEMS, dtype=np.int64).tolist()
    found = agreement(_said(setting, gold), _said(setting, given), **_scales(setting), groups=one_group)
    return {name: one.value for name, one in found.items()}


def _said(setting: Setting, codes: Floats) -> object:
    if setting.kind != "nominal":
        return codes
    return [None if np.isnan(code) else ("wrong", "vague", "right")[int(code)] for code in codes]


def _scales(setting: Setting) -> dict[str, object]:
    return {"scale": setting.people, "judge_scale": KINDS[setting.kind][2]}


def coverage(
    setting: Setting, *, reps: int, seed: int, metrics: Sequence[str] | None = None
) -> dict[str, Covered]:
    """Coverage by metric as it is named on the scale (`kappa@50`); all that the scale has where not given."""
    names = list(metrics or metrics_of(setting.people))
    truth = _truth(setting.kind, setting.pass_rate)
    rng = np.random.default_rng([seed, list(grid()).index(setting)] if setting in grid() else seed)
    held, given = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for _ in range(reps):
        n = setting.n_groups
        sizes = rng.integers(1, 11, n) if setting.size == "1-10" else np.full(n, int(setting.size))
        gold, judge = drawn(setting, latent(rng, n, sizes), latent(rng, n, sizes))
        judge = np.where(rng.random(len(judge)) < setting.missing, np.nan, judge)
        groups = np.repeat(np.arange(n), sizes).tolist()
        found = agreement(
            _said(setting, gold), _said(setting, judge), **_scales(setting), groups=groups, metrics=names
        )
        for name, one in found.items():
            true = truth[name]
            if one.low is not None and one.high is not None and true is not None:
                given[name] += 1
                held[name] += one.low <= true <= one.high
    return {
        name: Covered(held[name] / given[name] if given[name] else float("nan"), given[name] / reps)
        for name in names
    }


@cache
def grid() -> tuple[Setting, ...]:
    """Every cell, the dear ones first so that two processes end together."""
    cells = (
        Setting(*cell)
        for cell in itertools.product(KINDS, RATES, sorted(GROUPS, reverse=True), SIZES, MISSING)
    )
    return tuple(sorted(cells, key=lambda one: -one.n_groups))


def measured(setting: Setting, *, reps: int, only: Sequence[str]) -> dict[str, Covered]:
    """Coverage, that of low cells on fresh samples; `only` some metrics, with all their pass marks."""
    names = [name for name in metrics_of(setting.people) if not only or metric_facts(name).name in only]
    if not names:
        return {}
    found = coverage(setting, reps=reps, seed=1, metrics=names)
    for times, least in ((4, SUSPECT), (16, LEAST)):
        low = [name for name, cell in found.items() if cell.certified and cell.held < least]
        found |= coverage(setting, reps=times * reps, seed=times, metrics=low) if low else {}
    return found


def table(found: Sequence[tuple[Setting, dict[str, Covered]]]) -> Iterator[str]:
    """A line a kind of labels and metric."""
    yield (
        f"{'labels, metric':<44} {'worst':>6} {'median':>6} {'above ' + str(MOST):>10} {'certified':>9} "
        f"{'given':>5}  where the worst is"
    )
    by_metric: dict[tuple[str, str], list[tuple[Setting, Covered]]] = {}
    for setting, cells in found:
        for name, cell in cells.items():
            by_metric.setdefault((setting.kind, name), []).append((setting, cell))
    for kind in KINDS:
        for (one, name), cells_of in by_metric.items():
            if one == kind:
                yield _line(f"{kind}: {name}", cells_of)


def _line(title: str, cells: Sequence[tuple[Setting, Covered]]) -> str:
    sure = [(cell.held, str(setting)) for setting, cell in cells if cell.certified]
    given = np.mean([cell.share for _, cell in cells])
    if not sure:
        return f"{title:<44} {'-':>6} {'-':>6} {'-':>10} {0:>5}/{len(cells):<3} {given:>5.2f}"
    held = [share for share, _ in sure]
    worst, where = min(sure)
    above = sum(share > MOST for share in held)
    return (
        f"{title:<44} {worst:>6.3f} {np.median(held):>6.3f} {above:>10} {len(sure):>5}/{len(cells):<3} "
        f"{given:>5.2f}  {where.partition(', pass')[2]}"
    )


def worst_cells(found: Sequence[tuple[Setting, dict[str, Covered]]]) -> dict[str, tuple[float, str]]:
    """The worst certified cell of each metric, whatever its pass mark."""
    worst: dict[str, tuple[float, str]] = {}
    for setting, cells in found:
        for name, cell in cells.items():
            base = metric_facts(name).name
            if cell.certified and cell.held < worst.get(base, (2.0, ""))[0]:
                worst[base] = (cell.held, f"{name}: {setting}")
    return worst


def main() -> int:
    bench = Bench(
        __doc__, n=125, of="samples a cell, up to sixteen times that where it is low", metric=[], kind=""
    )
    settings = [one for one in grid() if bench.options.kind in ("", one.kind)]
    found = list(bench.each(partial(measured, reps=bench.n, only=bench.options.metric), bench.some(settings)))
    bench.head(*table(found))
    bench.head(f"worst certified cell of each metric, of {len(settings)} settings")
    for name, (held, where) in sorted(worst_cells(found).items(), key=lambda cell: cell[1]):
        bench.line(f"{name:<20} {held:.3f}  {where}", kept=held >= LEAST)
    return bench.end()


if __name__ == "__main__":
    sys.exit(main())
