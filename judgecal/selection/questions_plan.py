"""`plan EXPERIMENT A B`: how many questions it takes to tell two judges apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from judgecal._version import __version__
from judgecal.errors import InputError
from judgecal.experiment import CompareRun, open_experiment, plan_experiment, read_experiment
from judgecal.experiment.compare import CompareResult
from judgecal.experiment.stored import find_experiment
from judgecal.records import Estimate, Result
from judgecal.selection.choice import MARGIN
from judgecal.stats import Comparison
from judgecal.stats.compare import Planned
from judgecal.stats.metrics import metric_facts
from judgecal.workspace import Workspace

_GRID = (
    25,
    50,
    100,
    200,
    300,
    500,
    750,
    1000,
    1500,
    2000,
    3000,
    5000,
    10_000,
    20_000,
    50_000,
    100_000,
    1_000_000,
)


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
    """How many questions tell two judges apart, from how they differ on those that there are.

    Attributes:
        questions: that find `difference`; None where no million does.
        seen: a - b, as it was seen.
        rows: the same for the difference seen, and for the ends of its interval.
        curve: the smallest difference that a number of questions finds.
    """

    experiment: str
    compared_from: str
    a: str
    b: str
    metric: str
    difference: float
    questions: int | None
    n_questions: int
    smallest_detectable: float
    seen: Estimate
    level: float
    rows: tuple[QuestionsFor, ...]
    curve: tuple[DetectablePoint, ...]
    assumes: tuple[str, ...]
    run_line: str


@dataclass(frozen=True, slots=True)
class QuestionsRun:
    """Everything that the plan needs.

    Attributes:
        compared_from: an experiment that holds judges, or that of a comparison.
        names: the two judges; none where the experiment holds two.
        difference: in units of the metric; the margin of `select` where not given, of a metric that is a
            share.
        out: the slug of the plan's own experiment; None for the usual one.
    """

    workspace: Workspace
    compared_from: str
    names: tuple[str, ...] = ()
    metric: str | None = None
    difference: float | None = None
    out: str | None = None

    def run(self) -> QuestionsResult:
        """Plan it, and write the result into the plan's own experiment; no model is called and no test label
        seen.

        Raises:
            InputError: the experiment holds no such two judges, a judge was judged on test items that no
                comparison has looked at, there is no interval to plan from, or the difference is not above 0.
        """
        pair, found, gold = self._compared()
        planned = found.planned
        if planned is None:
            raise InputError(
                f"{self.compared_from}: nothing to plan from: {found.difference.reason or found.why}"
            )
        difference = self._difference(found.metric)
        config: dict[str, Any] = {
            "command": "plan",
            "gold": {"set": gold[0], "sha256": gold[1]},
            "compared_from": self.compared_from,
            "judges": list(pair),
            "metric": found.metric,
            "difference": difference,
        }
        experiment = plan_experiment(self.workspace, config, out=self.out)
        open_experiment(experiment)
        result = QuestionsResult(
            experiment=experiment.slug,
            compared_from=self.compared_from,
            a=pair[0],
            b=pair[1],
            metric=found.metric,
            difference=difference,
            questions=planned.groups_for(difference),
            n_questions=planned.n_groups,
            smallest_detectable=planned.detectable(planned.n_groups),
            seen=found.difference,
            level=planned.level,
            rows=tuple(_rows(found.difference, planned)),
            curve=tuple(_curve(planned, difference)),
            assumes=(
                "further questions are like these, with as many answers each",
                "the two judges find the same items hard, as recorded judges do, or differ as was seen where that is "
                "more",
                f"a difference of this size is to be found in 80% of such samples, at level {planned.level:.4g}",
            ),
            run_line=(
                f"from:{self.compared_from}|gold:{gold[0]}@{gold[1][:12]}|a:{pair[0]}|b:{pair[1]}|"
                f"metric:{found.metric}|difference:{difference:g}|level:{planned.level:.4g}|version:{__version__}"
            ),
        )
        experiment.write_summary(result)
        return result

    def _compared(self) -> tuple[tuple[str, str], Comparison, tuple[str, str]]:
        """The two judges, their comparison, and name and sha of the gold set."""
        experiment = find_experiment(self.workspace, self.compared_from)
        if experiment.config.get("command") != "compare":
            stored = read_experiment(self.workspace, self.compared_from)
            made = CompareRun(self.workspace, stored, self.names, self.metric, seed=stored.seed).unlooked()
            return *self._of(made), (stored.gold.name, stored.gold.sha256)
        result = experiment.read_summary(CompareResult)
        if self.metric not in (None, result.metric):
            raise InputError(
                f"--metric {self.metric}: {self.compared_from} compared by {result.metric}: leave it out, or compare "
                "by the other one first"
            )
        return *self._of(result.pairs), (result.gold.set, result.gold.sha256)

    def _of(self, made: Any) -> tuple[tuple[str, str], Comparison]:
        asked = [pair for pair in made if not self.names or set(pair) == set(self.names)]
        if len(asked) != 1:
            known = "; ".join(f"{a} {b}" for a, b in list(made)[:5])
            raise InputError(f"plan tells two judges apart: name both; {self.compared_from} holds {known}")
        return asked[0], made[asked[0]]

    def _difference(self, metric: str) -> float:
        if self.difference is None and metric_facts(metric).unit != "share":
            raise InputError(f"{metric} is no share: say which difference of it matters, with --difference X")
        difference = MARGIN if self.difference is None else self.difference
        if not difference > 0.0:
            raise InputError(f"--difference {difference:g}: a difference that is to be shown is above 0")
        return difference


def _rows(seen: Estimate, planned: Planned) -> list[QuestionsFor]:
    """For the difference seen and the ends of its interval; an end on the other side of 0 is no
    difference."""
    value = seen.value or 0.0
    sign = -1.0 if value < 0.0 else 1.0
    ends = sorted(sign * end for end in (seen.low, seen.high) if end is not None)
    rows = [
        ("as seen", sign * value),
        *zip(("the least of its interval", "the most of it"), ends, strict=False),
    ]
    return [QuestionsFor(what, max(0.0, size), planned.groups_for(size)) for what, size in rows]


def _curve(planned: Planned, difference: float) -> list[DetectablePoint]:
    """Up to the first number of questions that finds half the difference asked for."""
    points = []
    for n in _GRID:
        points.append(DetectablePoint(n, planned.detectable(n)))
        if points[-1].difference < 0.5 * difference and len(points) > 2:
            break
    return points
