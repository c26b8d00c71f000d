"""How fast are the statistics? `python -m tests.benchmarks.statistics_speed`.

Three parts. Values without each group against a plain loop over scikit-learn's own function, in the same run:
the loop takes the items of the other groups and calls the function; it is timed on some of the groups and
scaled to all. On those same groups both must give the same numbers. Then the whole table of twelve judges,
and a million judgements in a process of its own, whose peak memory counts.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.metrics import cohen_kappa_score, mean_absolute_error

from judgecal.experiment import AgreementTable, Verdicts, entry
from judgecal.records import Item, Judgement
from judgecal.scale import Scale
from judgecal.stats import agreement
from judgecal.stats.chance import kappa
from judgecal.stats.intervals import Totals, leave_one_out
from judgecal.stats.sample import Sample, as_scale, build
from tests.benchmarks.driver import Bench, Floats, Ints

ITEMS = 20_000
LOOPED = 40  # groups on which the plain loop is timed
_SAME = 1e-9


@dataclass(frozen=True)
class Case:
    """One statistic on one scale, and how many times the plain loop's speed it must have."""

    name: str
    scale: str
    target: float
    plain: Callable[[Ints, Ints], float]
    ours: Callable[[Sample], Totals]
    metric: str


def made_up(scale: Scale, n: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Labels and verdicts of a judge that errs by up to a fifth of the scale, or in 15% of binary items."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(int(scale.low), int(scale.high) + 1, n).astype(np.float64)
    if scale.span == 1.0:
        return gold, np.where(rng.random(n) < 0.85, gold, 1.0 - gold)
    moved = gold + np.round(rng.normal(0.0, 0.2 * scale.span, n))
    return gold, np.clip(moved, scale.low, scale.high)


def _sample(gold: Floats, judge: Floats, scale: Scale) -> Sample:
    pairs = np.arange(len(gold), dtype=np.int64) // 2
    return build(gold, judge[:, None], pairs, people=scale, judge=scale, unscored="drop")


def _mae(sample: Sample) -> Totals:
    """The mean absolute error as a statistic that can be taken without a group: judgecal itself linearises
    it."""
    error = np.abs(sample.verdicts - sample.gold[:, None])
    rows = np.stack([error, np.ones_like(error)], axis=2)
    return Totals.of(rows, sample, lambda sums: sums[..., 0] / sums[..., 1], undefined="")


def _kappa(sample: Sample) -> Totals:
    return cast(Totals, kappa(sample))


def _plain_kappa(gold: Ints, judge: Ints) -> float:
    return float(cohen_kappa_score(gold, judge))


def _plain_mae(gold: Ints, judge: Ints) -> float:
    return float(mean_absolute_error(gold, judge))


CASES = (
    Case("kappa, binary", "binary", 1000.0, _plain_kappa, _kappa, "kappa"),
    Case("kappa, 5 labels", "ordinal:0:4", 80.0, _plain_kappa, _kappa, "kappa"),
    Case("kappa, 101 labels", "ordinal:0:100", 8.0, _plain_kappa, _kappa, "kappa"),
    Case("MAE, 5 labels", "ordinal:0:4", 50.0, _plain_mae, _mae, "mae"),
    Case("MAE, 101 labels", "ordinal:0:100", 50.0, _plain_mae, _mae, "mae"),
)


def timed(run: Callable[[], Any], rounds: int) -> float:
    """Seconds of the fastest of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def plain_loop(case: Case, gold: Ints, judge: Ints) -> Floats:
    """The statistic without each of the first groups, as one would write it with scikit-learn."""
    group = np.arange(len(gold)) // 2
    found = []
    for out in range(LOOPED):
        kept = group != out
        found.append(case.plain(gold[kept], judge[kept]))
    return np.array(found)


def leaving_out(bench: Bench) -> None:
    """Values without each of 10,000 groups of two, against the plain loop."""
    n_groups = ITEMS // 2
    print(f"\nwithout each group, n = {ITEMS:,}, {n_groups:,} groups of two")
    for case in CASES:
        scale = as_scale(case.scale)
        labels, given = made_up(scale, ITEMS)
        sample = _sample(labels, given, scale)
        gold, judge = (
            labels.astype(np.int64),
            given.astype(np.int64),
        )  # scikit-learn is faster with whole numbers
        apart = np.abs(
            leave_one_out(case.ours(sample), n_groups)[:LOOPED, 0] - plain_loop(case, gold, judge)
        ).max()
        if apart > _SAME:
            raise AssertionError(f"{case.name}: {apart:g} from scikit-learn without the same groups")
        plain_s = timed(lambda: plain_loop(case, gold, judge), bench.n) * n_groups / LOOPED  # noqa: B023
        ours_s = timed(lambda: leave_one_out(case.ours(sample), n_groups), bench.n)  # noqa: B023
        whole_s = timed(lambda: _public(gold, judge, case), bench.n)  # noqa: B023  called at once
        print(
            f"{case.name}: plain loop {plain_s:.1f} s (scaled from {LOOPED}), ours {ours_s:.3f} s, "
            f"agreement() with reading and interval {whole_s:.3f} s; "
            f"{apart:.0e} apart without the same {LOOPED} groups"
        )
        bench.target(f"{case.name}, times the plain loop", plain_s / ours_s, least=case.target)


def _public(gold: Ints, judge: Ints, case: Case) -> None:
    groups = np.arange(len(gold)) // 2
    agreement(gold, judge, scale=case.scale, groups=groups, metrics=[case.metric])


KINDS = {"binary": "binary", "ordinal": "ordinal:0:4", "percentage": "percentage", "fine": "percentage"}
"""Made-up sets; `fine` has verdicts with as many different values as items."""


def _table(kind: str, n_items: int) -> tuple[AgreementTable, Floats]:
    scale = Scale.parse(KINDS[kind], pass_at={"ordinal": 3.0, "percentage": 75.0, "fine": 75.0}.get(kind))
    gold, _ = made_up(scale, n_items)
    items = tuple(Item(f"i{n}", f"q{n // 2}", f"question {n // 2}", "an answer") for n in range(n_items))
    labels = dict(zip((item.item_id for item in items), gold.tolist(), strict=True))
    return AgreementTable(_Labels(scale, labels), items), gold  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Labels:
    """All of a gold set that a table's entry reads."""

    scale: Scale
    labels: dict[str, float]


def _judge(table: AgreementTable, gold: Floats, kind: str, seed: int) -> Verdicts:
    """A judge's rows; one in a hundred is unscored."""
    scale = table.gold.scale
    _, judge = made_up(scale, len(gold), seed)
    rng = np.random.default_rng(seed + 100)
    verdicts = judge + (rng.random(len(gold)) * 1e-3 * (judge < scale.high) if kind == "fine" else 0.0)
    missing = rng.random(len(gold)) < 0.01
    rows = [
        Judgement(item.item_id, item.sha, f"judge {seed}", "recorded", 0, None if lost else verdict)
        for item, verdict, lost in zip(table.items, verdicts.tolist(), missing.tolist(), strict=True)
    ]
    return Verdicts(f"judge {seed}", scale, rows)


def whole_tables(bench: Bench) -> None:
    """Twelve judges, 2,000 items, every metric, complete case and as wrong."""
    print("\n12 judges, 2,000 items in groups of two, all metrics, complete case and as wrong")
    for kind in KINDS:
        table, gold = _table(kind, 2000)
        columns = [_judge(table, gold, kind, seed) for seed in range(12)]
        seconds = timed(lambda: [entry(table, column) for column in columns], min(bench.n, 2))  # noqa: B023
        bench.target(f"{kind}, s", seconds, most=10.0)


def million(bench: Bench) -> None:
    """A million judgements: five judges of 200,000 items, each kind in a process of its own."""
    print("\n5 judges, 200,000 items in groups of two: 1,000,000 judgements, complete case and as wrong")
    for kind in KINDS:
        command = [sys.executable, "-m", "tests.benchmarks.statistics_speed", "--million", kind]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout)
        print(f"{kind}: {found['records_mb']:.0f} MB with the judgements read, before any statistic")
        bench.target(f"{kind}, s", found["seconds"], most=60.0)
        bench.target(f"{kind}, peak GB", found["peak_mb"] / 1000.0, most=2.0)


def _million(kind: str) -> dict[str, float]:
    table, gold = _table(kind, 200_000)
    columns = [_judge(table, gold, kind, seed) for seed in range(5)]
    before = _peak_mb()
    start = time.perf_counter()
    entries = [entry(table, column) for column in columns]
    seconds = time.perf_counter() - start
    assert all(len(found.agreement) == len(found.as_wrong) > 8 for found in entries)
    return {"seconds": seconds, "peak_mb": _peak_mb(), "records_mb": before}


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def main() -> int:
    bench = Bench(__doc__, n=3, of="rounds, the fastest counts", million="")
    if bench.options.million:
        print(json.dumps(_million(bench.options.million)))
        return 0
    leaving_out(bench)
    whole_tables(bench)
    million(bench)
    return bench.end("numpy", "scipy", "scikit-learn")


if __name__ == "__main__":
    sys.exit(main())
