"""`plan`: how many labels a rate takes, and what a judge saves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from judgecal._version import __version__
from judgecal.errors import InputError
from judgecal.experiment import open_experiment, plan_experiment
from judgecal.goldset.draw import allocate
from judgecal.production.results import CurvePoint, LockedOn, NextLabels, PlanResult
from judgecal.records import Estimate
from judgecal.scale import Scale
from judgecal.selection.lock import Lock
from judgecal.selection.pass_rates import class_rates
from judgecal.stats.intervals import MIN_GROUPS
from judgecal.stats.labels_needed import Design, Spread
from judgecal.workspace import Workspace

_CURVE = (25, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1000)
_FIRST = 60  # labels that are proposed where there is none yet
_ROWS = 1_000_000  # of a table that is shared out by strata
_SHARED_OUT = 1000  # labels that are shared out one by one
_EVEN = 0.5  # the share that is right where the lock does not know it


def _at(people: Scale, name: str) -> str:
    return name if people.kind == "binary" else f"{name}@{people.pass_at:g}"


def spread_at_lock(lock: Lock) -> Spread | None:
    """What labels vary by, and how far this judge's verdicts tell them, on the lock's gold set; None where
    unknown."""
    people = Scale.parse(lock.gold.scale, pass_at=lock.gold.pass_at)
    sensitivity, specificity = class_rates(people, lock.applied)
    if sensitivity is None or specificity is None or sensitivity.value is None or specificity.value is None:
        return None
    return Spread(_share_right(lock), sensitivity.value, specificity.value)


def _share_right(lock: Lock) -> float:
    """The share that was right on the lock's gold set."""
    people = Scale.parse(lock.gold.scale, pass_at=lock.gold.pass_at)
    found = lock.applied.get(_at(people, "prevalence"))
    return _EVEN if found is None or found.value is None else found.value


def _at_ends(spread: Spread, correlation: Estimate | None, labels: int) -> tuple[int, int] | None:
    """Labels with the judge at the best and at the worst end of its correlation's interval, by what r
    leaves."""
    left = 1.0 - spread.correlation**2
    if correlation is None or correlation.low is None or correlation.high is None or left <= 0.0:
        return None
    best, worst = (labels * (1.0 - max(0.0, end) ** 2) / left for end in (correlation.high, correlation.low))
    return max(MIN_GROUPS, math.ceil(best)), max(MIN_GROUPS, math.ceil(worst))


def by_verdict(spread: Spread) -> Design:
    """Labels drawn by strata of the verdict, as `gold sheet --strata verdict` shares them out."""

    def shared_out(shares: Sequence[float], spreads: Sequence[float], n: int) -> list[float]:
        some = min(n, _SHARED_OUT)
        sizes = allocate([round(_ROWS * share) + _SHARED_OUT for share in shares], spreads, some)
        return [size * n / some for size in sizes]

    return spread.stratified(shared_out)


def curve_of(spread: Spread | None) -> tuple[CurvePoint, ...]:
    """Half width against labels."""
    if spread is None:
        return ()
    designs = (spread.plain, spread.with_judge, by_verdict(spread))
    return tuple(CurvePoint(n, *(spread.half_width(n, design) for design in designs)) for n in _CURVE)


def next_labels(
    found: Estimate | None, *, n: int = 0, n_rows: int = 0, spread: Spread | None = None
) -> NextLabels | None:
    """So many more labels halve an interval; without one, what the first sheet gives by what the lock
    knows."""
    if found is None:
        return None if spread is None else NextLabels(_FIRST, spread.half_width(_FIRST, by_verdict(spread)))
    if found.low is None or found.high is None or n >= n_rows:
        return None
    half = (found.high - found.low) / 4.0
    total = 1.0 / ((1.0 / n - 1.0 / n_rows) / 4.0 + 1.0 / n_rows)
    return NextLabels(math.ceil(total) - n, half)


def plan_labels(
    workspace: Workspace, lock: Lock, path: Path, *, half_width: float = 0.05, out: str | None = None
) -> PlanResult:
    """How many labels give a rate this half width: alone, with the judge's verdicts, and drawn by strata of
    them.

    The result is written into the plan's own experiment, whose slug is `out` or the usual one.

    Raises:
        InputError: the half width is out of range, or the lock does not know its judge's error rates.
    """
    people = Scale.parse(lock.gold.scale, pass_at=lock.gold.pass_at)
    spread = spread_at_lock(lock)
    if spread is None:
        raise InputError(
            f"{path}: the lock does not know its judge's sensitivity and specificity, which the plan is made "
            "of: its labels need a pass mark (pass_at in card.toml) and ten of each class"
        )
    gold = lock.gold
    on = {"set": gold.set, "sha256": gold.sha256}
    config = {"command": "plan", "gold": on, "lock": lock.sha256, "half_width": half_width}
    experiment = plan_experiment(workspace, config, out=out)
    share, correlation = _share_right(lock), lock.applied.get(_at(people, "mcc"))
    with_judge = spread.labels_for(half_width, spread.with_judge)
    result = PlanResult(
        experiment=experiment.slug,
        lock=str(path),
        judge=lock.judge,
        gold=LockedOn(gold.set, gold.sha256, gold.split),
        half_width=half_width,
        labels_plain=spread.labels_for(half_width, spread.plain),
        labels_with_judge=with_judge,
        labels_stratified=spread.labels_for(half_width, by_verdict(spread)),
        correlation=correlation or Estimate(spread.correlation, reason="from sensitivity and specificity"),
        labels_at_ends=_at_ends(spread, correlation, with_judge),
        right=share,
        curve=curve_of(spread),
        assumes=(
            f"the judge tells right from wrong as well as on {gold.set} ({gold.split})",
            f"as many answers are right as there: {100.0 * share:.0f}%",
            "labels are drawn at random from a table much larger than their number, each on a question of "
            "its own",
        ),
        notes=(),
        run_line=(
            f"lock:{lock.sha256[:12]}|gold:{gold.set}@{gold.sha256[:12]}|split:{gold.split}|"
            f"half_width:{half_width:g}|level:0.95|version:{__version__}"
        ),
    )
    open_experiment(experiment)
    experiment.write_summary(result)
    return result
