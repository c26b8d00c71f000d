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
from judgecal.stats.metrics import metric_facts
from judgecal.workspace import Workspace

_GRID: tuple[int, ...] = (
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
)
_GRID += (100_000, 1_000_000)


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
    rows: tuple[QuestionsFor, ...]  # the same for the difference seen, and for the ends of its interval
    curve: tuple[DetectablePoint, ...]
    assumes: tuple[str, ...]
    run_line: str


@dataclass(frozen=True, slots=True)
class QuestionsRun:
    """Everything that the plan needs."""

    workspace: Workspace
    compared_from: str  # an experiment that holds judges, or that of a comparison
    names: tuple[str, ...] = ()  # the two judges; none where the experiment holds two
    metric: str | None = None
    difference: float | None = (
        None  # in units of the metric; where not given, the margin of `select` of a share
    )
    out: str | None = None  # the slug of the plan's own experiment; None for the usual one

    def run(self) -> QuestionsResult:
        """Plan it, and write the result into its own experiment; no model is called, no test label seen."""
        (a, b), compared, gold = self._compared()
        metric, planned, seen = compared.metric, compared.planned, compared.difference
        if planned is None:
            raise InputError(f"{self.compared_from}: nothing to plan from: {seen.reason or compared.why}")
        if self.difference is None and metric_facts(metric).unit != "share":
            raise InputError(f"{metric} is no share: say which difference of it matters, with --difference X")
        difference = MARGIN if self.difference is None else self.difference
        if not difference > 0.0:
            raise InputError(f"--difference {difference:g}: a difference that is to be shown is above 0")
        config: dict[str, Any] = {
            "command": "plan",
            "gold": {"set": gold[0], "sha256": gold[1]},
            "compared_from": self.compared_from,
            "judges": [a, b],
            "metric": metric,
            "difference": difference,
        }
        experiment = plan_experiment(self.workspace, config, out=self.out)
        open_experiment(experiment)
        # for the difference seen and the ends of its interval; an end on the other side of 0 is no difference
        sign = -1.0 if (seen.value or 0.0) < 0.0 else 1.0
        ends = sorted(sign * end for end in (seen.low, seen.high) if end is not None)
        sizes = {"as seen": sign * (seen.value or 0.0)}
        sizes |= dict(zip(("the least of its interval", "the most of it"), ends, strict=False))
        points = [DetectablePoint(n, planned.detectable(n)) for n in _GRID]
        # up to the first number of questions that finds half the difference asked for
        half = (at for at, point in enumerate(points) if at > 1 and point.difference < 0.5 * difference)
        result = QuestionsResult(
            experiment=experiment.slug,
            compared_from=self.compared_from,
            a=a,
            b=b,
            metric=metric,
            difference=difference,
            questions=planned.groups_for(difference),
            n_questions=planned.n_groups,
            smallest_detectable=planned.detectable(planned.n_groups),
            seen=seen,
            level=planned.level,
            rows=tuple(
                QuestionsFor(name, max(0.0, size), planned.groups_for(size)) for name, size in sizes.items()
            ),
            curve=tuple(points[: next(half, len(points)) + 1]),
            assumes=(
                "further questions are like these, with as many answers each",
                "the two judges find the same items hard, as recorded judges do, or differ as was seen "
                "where that is more",
                "a difference of this size is to be found in 80% of such samples, at level "
                f"{planned.level:.4g}",
            ),
            run_line=(
                f"from:{self.compared_from}|gold:{gold[0]}@{gold[1][:12]}|a:{a}|b:{b}|metric:{metric}|"
                f"difference:{difference:g}|level:{planned.level:.4g}|version:{__version__}"
            ),
        )
        experiment.write_summary(result)
        return result

    def _compared(self) -> tuple[tuple[str, str], Comparison, tuple[str, str]]:
        """The two judges, their comparison, and name and sha of the gold set."""
        experiment, pairs = find_experiment(self.workspace, self.compared_from), dict[tuple[str, str], Any]()
        if experiment.config.get("command") == "compare":
            result = experiment.read_summary(CompareResult)
            if self.metric not in (None, result.metric):
                raise InputError(
                    f"--metric {self.metric}: {self.compared_from} compared by {result.metric}: leave it "
                    "out, or compare by the other one first"
                )
            pairs, gold = dict(result.pairs), (result.gold.set, result.gold.sha256)
        else:
            stored = read_experiment(self.workspace, self.compared_from)
            compare = CompareRun(self.workspace, stored, self.names, self.metric, seed=stored.seed)
            pairs, gold = dict(compare.unlooked()), (stored.gold.name, stored.gold.sha256)
        asked = [pair for pair in pairs if not self.names or set(pair) == set(self.names)]
        if len(asked) != 1:
            known = "; ".join(f"{a} {b}" for a, b in list(pairs)[:5])
            raise InputError(f"plan tells two judges apart: name both; {self.compared_from} holds {known}")
        return asked[0], pairs[asked[0]], gold
