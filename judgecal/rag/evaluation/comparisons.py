"""Systems held against each other, paired by question: every two, what may be the best, each factor."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from judgecal.errors import InputError
from judgecal.rag.evaluation.measured import Measured
from judgecal.rag.evaluation.summary import (
    BEST,
    LEVEL,
    MEAN,
    Points,
    documents_of,
    mean_share,
    rows_of,
    value_of,
)
from judgecal.rag.evaluation.system import Setting
from judgecal.records import Estimate
from judgecal.stats import compare, compare_all
from judgecal.stats.best import not_told_apart
from judgecal.stats.significance import holm
from judgecal.stats.simultaneous import losses_against_best

Values = Mapping[str, Mapping[str, float | None]]
"""System, or level of a factor -> question -> a share 0..1; None where it is unscored."""

Design = Literal["one_at_a_time", "grid"]

_FEWEST = 10  # questions of a document within which systems are compared


@dataclass(frozen=True, slots=True)
class SystemComparison:
    """Two systems on the same questions by one measure, an unscored one counted as 0.

    Differences are a - b, -1..1; of `answer`, which counts in percent, in percentage points. `p_adjusted`,
    after Holm over all pairs of the measure, decides: A, B or cannot tell. `complete_case` leaves out the
    questions that either has not scored; where the order hangs on them, the decision is cannot tell.
    """

    a: str
    b: str
    metric: str
    difference: Estimate
    p_value: float | None
    p_adjusted: float | None
    decision: str
    why: str
    smallest_detectable: float | None
    complete_case: Estimate

    @property
    def higher(self) -> str:
        """The name of the one that is shown to be higher; else the decision."""
        return {"A": self.a, "B": self.b}.get(self.decision, self.decision)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A system, or a level of a factor, beside the best value seen."""

    name: str
    value: float | None  # of the measure, unscored questions as 0
    loss: float | None  # how far it lies below the best value seen
    loss_at_most: float | None
    """What it loses against the truly best lies below this, for all at once; None without bounds, and where
    there is no other that it was seen to differ from."""


@dataclass(frozen=True, slots=True)
class BestOf:
    """What may be the best by one measure."""

    metric: str
    highest: str  # the one with the best value seen, which may owe that to luck
    best: str | None  # the same where it alone is shown to be the best
    not_told_apart: tuple[Candidate, ...]  # the highest first; of one only where it is shown
    runner_up: str | None
    questions_needed: int | None
    """Questions like these that would tell these two apart, with 80% power and were the difference seen the
    true one; None where a million do not, or nothing is known of their spread."""
    n_questions: int
    level: float
    reason: str | None  # why nothing is shown, where the data allow no bounds


@dataclass(frozen=True, slots=True)
class FactorLevel:
    """A value of a factor and what the systems that have it come to: their mean, question by question.

    `value` is that of the measure with its interval; a question that a system has not scored counts as 0 for
    it. `complete_case` is the mean over what is scored. Their `n_expected` and `n_unscored` count questions
    of all these systems.
    """

    level: Setting
    systems: tuple[str, ...]
    value: Estimate
    complete_case: Estimate


@dataclass(frozen=True, slots=True)
class FactorCurve:
    """One factor, with the levels in the order of the configuration; `best_of` names levels as text.

    With `one_at_a_time` the other factors are held at the base; in a grid they are averaged over. `table` is
    the name of the systems' table in the configuration.
    """

    table: str
    factor: str
    metric: str
    levels: tuple[FactorLevel, ...]
    best_of: BestOf


def values_of(measured: Sequence[Measured], metric: str = "total") -> Values:
    """A measure by system and question: `total`, `answered` or a column of the suite."""
    known = ("total", "answered", *dict.fromkeys(name for one in measured for name in one.measures))
    rows = rows_of(measured)
    if metric not in known:
        raise InputError(f"no measure is called {metric}: systems are compared by {', '.join(known)}")
    return {
        system: {question: value_of(one, metric) for question, one in answers.items()}
        for system, answers in rows.items()
    }


def compare_points(
    points: Mapping[str, Points], *, metric: str, level: float = LEVEL, seed: int = 0
) -> tuple[SystemComparison, ...]:
    """Every two systems by their means in points of 100, paired by question; none where there is but one."""
    if len(points) < 2:
        return ()
    labels, how = _how(points, level=level, seed=seed)
    return tuple(
        SystemComparison(
            a,
            b,
            metric,
            pair.difference,
            pair.p_value,
            pair.p_adjusted,
            pair.decision,
            pair.why,
            pair.smallest_detectable,
            pair.complete_case.difference,
        )
        for (a, b), pair in compare_all(labels, points, **how).items()
    )


def compare_systems(
    measured: Sequence[Measured], *, metric: str = "total", level: float = LEVEL, seed: int = 0
) -> tuple[SystemComparison, ...]:
    """Every two systems, in the order in which they first occur; the seed is of the sign flips."""
    return compare_points(_points(values_of(measured, metric)), metric=metric, level=level, seed=seed)


def compare_documents(
    measured: Sequence[Measured], *, metric: str = "total", level: float = LEVEL, seed: int = 0
) -> dict[str, tuple[SystemComparison, ...]]:
    """Every two systems on the questions of each document that has ten or more, after Holm over all of these
    pairs.

    What could have been shown at least is not known of so many at once, and None. Raises InputError as
    `values_of`.
    """
    found: dict[str, tuple[SystemComparison, ...]] = {}
    for name in documents_of(measured):
        own = [one for one in measured if name in one.documents]
        if len({one.question for one in own}) >= _FEWEST:
            found[name] = compare_systems(own, metric=metric, level=level, seed=seed)
    every = [one for pairs in found.values() for one in pairs]
    adjusted = iter(holm([one.p_value for one in every]))
    return {
        name: tuple(_among_more(one, next(adjusted), len(every), level) for one in found[name])
        for name in found
    }


def _among_more(one: SystemComparison, p_adjusted: float | None, of: int, level: float) -> SystemComparison:
    """A comparison whose p value was adjusted over more of them: it may no longer decide."""
    one = replace(one, p_adjusted=p_adjusted, smallest_detectable=None)
    if one.decision == "cannot tell" or (p_adjusted is not None and p_adjusted < 1.0 - level):
        return one
    why = (
        f"p = {p_adjusted:.3g} after Holm over {of} comparisons of all documents is not below "
        f"{1.0 - level:.3g}"
    )
    return replace(one, decision="cannot tell", why=why)


def best_of(values: Values, *, metric: str = "total", level: float = LEVEL, seed: int = 0) -> BestOf:
    """Those that cannot be told apart from the best, by `stats.best`; a single one only where it is shown.

    Args:
        values: as `values_of` gives them.
        metric: what they are, for the result.
        seed: of the sign flips and of the draws behind the bounds.
    """
    points = _points(values)
    labels, how = _how(points, level=level, seed=seed)
    losses = losses_against_best(labels, points, **how)
    ranked = sorted(losses.by_judge, key=lambda name: losses.by_judge[name].loss or 0.0)
    ranked.remove(losses.best)
    ranked.insert(0, losses.best)
    left = not_told_apart(losses)
    shown = len(left) == 1 and len(ranked) > 1 and losses.pairs is not None
    candidates = []
    for name in ranked:
        if name in left:
            loss = losses.by_judge[name]
            alike = loss.upper is not None and loss.upper <= (loss.loss or 0.0)
            at_most = 0.0 if shown else None if alike else loss.upper
            candidates.append(Candidate(name, loss.value, loss.loss, at_most))
    runner_up = ranked[1] if len(ranked) > 1 else None
    needed = None
    if runner_up is not None:  # were the difference seen the true one
        pair = compare(labels, points[losses.best], points[runner_up], **how)
        if pair.planned is not None and pair.difference.value is not None:
            needed = pair.planned.groups_for(abs(pair.difference.value))
    return BestOf(
        metric=metric,
        highest=losses.best,
        best=losses.best if shown else None,
        not_told_apart=tuple(candidates),
        runner_up=runner_up,
        questions_needed=needed,
        n_questions=len(labels),
        level=level,
        reason=losses.reason,
    )


def factor_curves(
    measured: Sequence[Measured],
    settings: Mapping[str, Mapping[str, Setting]],
    *,
    table: str,
    design: Design,
    base: str | None = None,
    n_curves: int = 1,
    metric: str = "total",
    level: float = LEVEL,
    seed: int = 0,
) -> tuple[FactorCurve, ...]:
    """The curve of each factor that has more than one level, in the order of the first system's settings.

    Args:
        settings: system -> factor -> value, of every system that was measured, with the same factors.
        table: the name of their table in the configuration.
        n_curves: of all tables together: what is called the best of a curve is held at a level that pays for
            all of them, 1 - (1 - level) / n_curves; the intervals are each at `level`.
        design: `one_at_a_time` takes the systems that differ from the base in this factor alone; `grid` all
            of them.
        base: the system that the others differ from; needed for `one_at_a_time`.
        metric: as `values_of`.
    """
    values = values_of(measured, metric)
    wrong = [f"{name}: its settings are not given" for name in values if name not in settings]
    factors = {name: tuple(settings[name]) for name in values if name in settings}
    first = next(iter(factors.values()), ())
    wrong += [
        f"{name}: its factors are {', '.join(own)}, and those of the first system {', '.join(first)}"
        for name, own in factors.items()
        if set(own) != set(first)
    ]
    if design == "one_at_a_time" and base not in values:
        wrong.append(f"the base is {base}, which was not measured: the systems are {', '.join(values)}")
    if wrong:
        raise InputError("\n".join(wrong))
    curves = []
    for factor in first:
        at = {
            name: settings[name]
            for name in values
            if design == "grid" or _differs(settings, name, base, factor)
        }
        having: dict[Setting, tuple[str, ...]] = {}  # level -> the systems that have it
        for name in at:
            having[at[name][factor]] = (*having.get(at[name][factor], ()), name)
        if len(having) > 1:
            by_level = {str(one): _averaged(values, names) for one, names in having.items()}
            levels = tuple(_factor_level(values, one, names, level=level) for one, names in having.items())
            best = best_of(by_level, metric=metric, level=1.0 - (1.0 - level) / n_curves, seed=seed)
            curves.append(FactorCurve(table, factor, metric, levels, best))
    return tuple(curves)


def _points(values: Values) -> dict[str, list[float | None]]:
    """In points of 100, in which a mean is the mean agreement with 100."""
    questions = list(next(iter(values.values()), {}))
    return {
        name: [None if (value := row.get(question)) is None else BEST * value for question in questions]
        for name, row in values.items()
    }


def _how(
    points: Mapping[str, Sequence[object]], *, level: float, seed: int
) -> tuple[list[float], dict[str, Any]]:
    """The labels, and how `stats` is to compare what lies beside them; each question is a group."""
    labels = [BEST] * len(next(iter(points.values()), ()))
    return labels, {"scale": "percentage", "metric": MEAN, "level": level, "seed": seed}


def _differs(settings: Mapping[str, Mapping[str, Setting]], name: str, base: str | None, factor: str) -> bool:
    """Whether a system has the base's settings but for one factor."""
    if base is None:
        return False
    fixed = {key: value for key, value in settings[base].items() if key != factor}
    return {key: value for key, value in settings[name].items() if key != factor} == fixed


def _averaged(values: Values, names: Sequence[str]) -> dict[str, float | None]:
    """Question -> the mean over these systems, an unscored one as 0."""
    return {
        question: statistics.fmean(values[name].get(question) or 0.0 for name in names)
        for question in values[names[0]]
    }


def _factor_level(values: Values, one: Setting, names: tuple[str, ...], *, level: float) -> FactorLevel:
    scored = {
        question: [score for name in names if (score := values[name][question]) is not None]
        for question in values[names[0]]
    }
    n_expected = len(scored) * len(names)
    n_unscored = n_expected - sum(len(row) for row in scored.values())
    means = {question: statistics.fmean(row) if row else None for question, row in scored.items()}

    def counted(found: Estimate) -> Estimate:
        return replace(found, n=n_expected - n_unscored, n_expected=n_expected, n_unscored=n_unscored)

    return FactorLevel(
        level=one,
        systems=names,
        value=counted(mean_share(_averaged(values, names), level=level)),
        complete_case=counted(mean_share(means, level=level)),
    )
