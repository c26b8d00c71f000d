"""`plan`: how many labels a rate takes and what a judge saves; how many questions tell two judges apart."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from judgecal._version import __version__
from judgecal.errors import InputError, working
from judgecal.experiment import CompareRun, open_experiment, plan_experiment, read_experiment
from judgecal.experiment.compare import CompareResult
from judgecal.experiment.rows import OnRows
from judgecal.experiment.stored import find_experiment
from judgecal.goldset.draw import allocate
from judgecal.records import Estimate, Result
from judgecal.selection.decision import open_items
from judgecal.selection.lock import Lock, LockedOn, load_lock
from judgecal.selection.migrate import MigrateResult
from judgecal.selection.pass_rates import class_rates
from judgecal.selection.select_result import SelectResult
from judgecal.stats import Comparison
from judgecal.stats.compare import Planned
from judgecal.stats.intervals import MIN_GROUPS
from judgecal.stats.labels_needed import Design, Spread
from judgecal.stats.metrics import metric_facts
from judgecal.stats.significance import MARGIN
from judgecal.workspace import Workspace, find_workspace

_CURVE = (25, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1000)
_FIRST = 60  # labels that are proposed where there is none yet
_ROWS = 1_000_000  # of a table that is shared out by strata
_SHARED_OUT = 1000  # labels that are shared out one by one
_EVEN = 0.5  # the share that is right where the lock does not know it
_RESULTS: dict[str, Any] = {"compare": CompareResult, "select": SelectResult, "migrate": MigrateResult}
# fmt: off
_QUESTIONS = (25, 50, 100, 200, 300, 500, 750, 1000, 1500, 2000, 3000, 5000, 10_000, 20_000, 50_000, 100_000,
              1_000_000)
# fmt: on


# --- the labels of a rate


@dataclass(frozen=True, slots=True)
class NextLabels:
    """So many more labels would give about this half width."""

    n: int
    half_width: float


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The half width that n labels give: alone, with the judge's verdicts, and drawn by strata of them."""

    n: int
    plain: float
    with_judge: float
    stratified: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult(Result):
    """How many labels a rate takes, from what the lock knows of its judge."""

    experiment: str
    lock: str
    judge: str
    gold: LockedOn
    half_width: float
    labels_plain: int
    labels_with_judge: int
    labels_stratified: int | None
    correlation: Estimate | None  # of labels and verdicts, on the lock's gold set
    labels_at_ends: tuple[int, int] | None  # with the judge at the ends of that interval
    right: float  # the share that was right there
    curve: tuple[CurvePoint, ...]
    assumes: tuple[str, ...]
    notes: tuple[str, ...]
    run_line: str


def _of_lock(lock: Lock, name: str) -> Estimate | None:
    people = lock.gold.people
    return lock.applied.get(name if people.kind == "binary" else f"{name}@{people.pass_at:g}")


def spread_at_lock(lock: Lock) -> Spread | None:
    """What labels vary by on the lock's gold set, and how far verdicts tell them; None where unknown."""
    rates = [rate.value for rate in class_rates(lock.gold.people, lock.applied) if rate is not None]
    if len(rates) < 2 or rates[0] is None or rates[1] is None:
        return None
    right = _of_lock(lock, "prevalence")
    return Spread(_EVEN if right is None or right.value is None else right.value, rates[0], rates[1])


def by_verdict(spread: Spread) -> Design:
    """Labels drawn by strata of the verdict, as `gold sheet --strata verdict` shares them out."""

    def shared_out(shares: Sequence[float], spreads: Sequence[float], n: int) -> list[float]:
        some = min(n, _SHARED_OUT)
        sizes = allocate([round(_ROWS * share) + _SHARED_OUT for share in shares], spreads, some)
        return [size * n / some for size in sizes]

    return spread.stratified(shared_out)


def curve_of(spread: Spread | None) -> tuple[CurvePoint, ...]:
    if spread is None:
        return ()
    designs = (spread.plain, spread.with_judge, by_verdict(spread))
    return tuple(CurvePoint(n, *(spread.half_width(n, design) for design in designs)) for n in _CURVE)


def next_labels(
    rate: Estimate | None, *, n: int = 0, n_rows: int = 0, spread: Spread | None = None
) -> NextLabels | None:
    """So many more labels halve a rate's interval; without one, what the first sheet gives."""
    if rate is None:
        return None if spread is None else NextLabels(_FIRST, spread.half_width(_FIRST, by_verdict(spread)))
    if rate.low is None or rate.high is None or n >= n_rows:
        return None
    total = 1.0 / ((1.0 / n - 1.0 / n_rows) / 4.0 + 1.0 / n_rows)
    return NextLabels(math.ceil(total) - n, (rate.high - rate.low) / 4.0)


@working("Planning the labels")
def plan_labels(
    workspace: Workspace, lock: Lock, path: Path, *, half_width: float = 0.05, out: str | None = None
) -> PlanResult:
    """How many labels give a rate this half width: alone, with the judge's verdicts, and by strata of them.

    The result is written into the plan's own experiment, whose slug is `out` or the usual one.
    """
    gold, spread = lock.on, spread_at_lock(lock)
    if spread is None:
        raise InputError(
            f"{path}: a plan needs labels that pass or fail, ten of each, and those of {gold.set} are "
            f"{lock.gold.scale}: grades take a pass mark (pass_at in card.toml), words have none"
        )
    config = {"command": "plan", **lock.config, "half_width": half_width}
    experiment = plan_experiment(workspace, config, out=out)
    plain, with_judge, stratified = (
        spread.labels_for(half_width, design)
        for design in (spread.plain, spread.with_judge, by_verdict(spread))
    )
    correlation, at_ends, left = _of_lock(lock, "mcc"), None, 1.0 - spread.correlation**2
    if (
        correlation is not None
        and correlation.low is not None
        and correlation.high is not None
        and left > 0.0
    ):
        # labels go with what the verdicts leave of the labels' variance
        ends = (1.0 - max(0.0, end) ** 2 for end in (correlation.high, correlation.low))
        best, worst = (max(MIN_GROUPS, math.ceil(with_judge * end / left)) for end in ends)
        at_ends = best, worst
    result = PlanResult(
        experiment=experiment.slug,
        lock=str(path),
        judge=lock.judge,
        gold=gold,
        half_width=half_width,
        labels_plain=plain,
        labels_with_judge=with_judge,
        labels_stratified=stratified,
        correlation=correlation or Estimate(spread.correlation, reason="from sensitivity and specificity"),
        labels_at_ends=at_ends,
        right=spread.right,
        curve=curve_of(spread),
        assumes=(
            f"the judge tells right from wrong as well as on {gold.set} ({gold.split})",
            f"as many answers are right as there: {100.0 * spread.right:.0f}%",
            "labels are drawn at random from a table much larger than their number, each on a question of "
            "its own",
        ),
        notes=(),
        run_line=f"{lock.run_line}|half_width:{half_width:g}|level:0.95|version:{__version__}",
    )
    open_experiment(experiment)
    experiment.write_summary(result)
    return result


def plan(
    lock: str | Path,
    *,
    half_width: float = 0.05,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> PlanResult:
    """How many labels a corrected rate needs, and what the locked judge saves; no model is called.

    Args:
        lock: the judge.lock.json of select.
        half_width: half the width of the interval, 0..0.5.
        name: slug of the plan's experiment.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    return plan_labels(where, load_lock(Path(lock)), Path(lock), half_width=half_width, out=name)


# --- the questions of a comparison


@dataclass(frozen=True, slots=True)
class QuestionsFor:
    """So many questions find a difference of this size; None where no million does."""

    what: str
    difference: float
    questions: int | None


@dataclass(frozen=True, slots=True)
class DetectablePoint:
    """The smallest difference that n questions find."""

    n: int
    difference: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionsResult(Result):
    """How many questions tell two judges apart, from how they differ on those that there are."""

    experiment: str
    compared_from: str
    a: str
    b: str
    metric: str
    difference: float
    questions: int | None  # that find `difference`; None where no million does
    n_questions: int
    smallest_detectable: float
    seen: Estimate  # a - b
    level: float
    on_rows: OnRows | None  # what rows without labels, and labels where the two differ, say and still take
    again: str  # the command that decides on what there is
    rows: tuple[QuestionsFor, ...]  # the same for the difference seen, and for the ends of its interval
    curve: tuple[DetectablePoint, ...]
    assumes: tuple[str, ...]
    run_line: str


@working("Planning the questions")
def plan_questions(
    workspace: Workspace,
    compared_from: str,
    names: Sequence[str] = (),
    *,
    metric: str | None = None,
    difference: float | None = None,
    out: str | None = None,
) -> QuestionsResult:
    """How many questions tell two judges apart; no model is called, no test label seen.

    Args:
        compared_from: an experiment that holds judges, or that of a comparison, a selection or a migration.
        names: the two judges; none where the experiment holds two.
        difference: in units of the metric; where not given, the margin of `select` of a share.
        out: the slug of the plan's own experiment; None for the usual one.
    """
    known = _known(workspace, compared_from, names, metric)
    (a, b), metric, planned, seen, gold = known.judges, known.metric, known.planned, known.seen, known.gold
    if planned is None:
        raise InputError(f"{compared_from}: nothing to plan from: {seen.reason or known.why}")
    if difference is None and metric_facts(metric).unit != "share":
        raise InputError(f"{metric} is not a share: say which difference matters, with --difference X")
    difference = MARGIN if difference is None else difference
    if not difference > 0.0:
        raise InputError(f"--difference {difference:g}: the difference to show must be above 0")
    config = {
        "command": "plan",
        "gold": gold,
        "compared_from": compared_from,
        "judges": [a, b],
        "metric": metric,
        "difference": difference,
    }
    experiment = plan_experiment(workspace, config, out=out)
    open_experiment(experiment)
    # for the difference seen and the ends of its interval; an end on the other side of 0 is no difference
    sign = -1.0 if (seen.value or 0.0) < 0.0 else 1.0
    ends = sorted(sign * end for end in (seen.low, seen.high) if end is not None)
    sizes = {"as seen": sign * (seen.value or 0.0)}
    sizes |= dict(zip(("the least of its interval", "the most of it"), ends, strict=False))
    points = [DetectablePoint(n, planned.detectable(n)) for n in _QUESTIONS]
    # up to the first number of questions that finds half the difference asked for
    half = (at for at, point in enumerate(points) if at > 1 and point.difference < 0.5 * difference)
    level = f"{planned.level:.4g}"
    result = QuestionsResult(
        experiment=experiment.slug,
        compared_from=compared_from,
        a=a,
        b=b,
        metric=metric,
        difference=difference,
        questions=planned.groups_for(difference),
        n_questions=planned.n_groups,
        smallest_detectable=planned.detectable(planned.n_groups),
        seen=seen,
        level=planned.level,
        on_rows=known.on_rows,
        again=known.again,
        rows=tuple(
            QuestionsFor(name, max(0.0, size), planned.groups_for(size)) for name, size in sizes.items()
        ),
        curve=tuple(points[: next(half, len(points)) + 1]),
        assumes=(
            "further questions are like the present ones, with as many answers each",
            "the two judges find the same items hard, as recorded judges do, or differ as was seen where "
            "that is more",
            f"80% of samples are to reveal a difference of this size, at level {100.0 * planned.level:.4g}%",
        ),
        run_line=(
            f"from:{compared_from}|gold:{gold['set']}@{gold['sha256'][:12]}|a:{a}|b:{b}|metric:{metric}|difference:{difference:g}|level:{level}|version:{__version__}"
        ),
    )
    experiment.write_summary(result)
    return result


class _Known(NamedTuple):
    """What an experiment knows of two judges: what to plan from, and who compares them again."""

    judges: tuple[str, str]
    metric: str
    planned: Planned | None
    seen: Estimate  # the first less the second
    why: str
    gold: dict[str, str]  # name and sha256 of the set
    on_rows: OnRows | None
    again: str


def _known(workspace: Workspace, slug: str, names: Sequence[str], metric: str | None) -> _Known:
    experiment, pairs = find_experiment(workspace, slug), dict[tuple[str, str], Comparison]()
    command, on_rows = experiment.config.get("command"), tuple[OnRows, ...]()
    result: CompareResult | SelectResult | MigrateResult | None = None
    if command in _RESULTS:
        result = experiment.read_summary(_RESULTS[command])
        gold = {"set": result.gold.set, "sha256": result.gold.sha256}
        if metric not in (None, result.metric):
            raise InputError(
                f"--metric {metric}: {slug} compared by {result.metric}: leave it out, or compare by the "
                "other one first"
            )
    if isinstance(result, MigrateResult):
        of, judges = result.all_items, (result.new, result.old)
        again = shlex.join(["judgecal", "migrate", "--lock", result.lock, "--to", result.new])
        rest = gold, result.on_rows, again
        return _Known(judges, result.metric, of.planned, of.difference, result.why, *rest)
    source = slug
    if isinstance(result, CompareResult):
        pairs, on_rows, source = dict(result.pairs), result.on_rows, result.compared_from
    else:
        if result is not None:
            on_rows, metric, source = result.on_rows, result.metric, result.chosen_from
        stored = read_experiment(workspace, source)
        if result is not None:  # a plan looks at no test label
            stored = dataclasses.replace(stored, items=open_items(stored))
        pairs = CompareRun(workspace, stored, tuple(names), metric, seed=stored.seed).unlooked()
        gold = {"set": stored.gold.name, "sha256": stored.gold.sha256}
    fitting = [pair for pair in pairs if not names or set(pair) == set(names)]
    if len(fitting) != 1:
        known = "; ".join(f"{a} {b}" for a, b in list(pairs)[:5])
        raise InputError(f"plan tells two judges apart: name both; {slug} holds {known}")
    [(a, b)], [compared] = fitting, [pairs[fitting[0]]]
    on = next((on for on in on_rows if {on.reference, on.candidate} == {a, b}), None)
    again = shlex.join(["judgecal", "compare", source, a, b])
    return _Known(
        (a, b), compared.metric, compared.planned, compared.difference, compared.why, gold, on, again
    )
