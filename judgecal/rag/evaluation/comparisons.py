"""Systems held against each other, paired by question: every two, what may be the best, each factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from judgecal.rag.evaluation.summary import BEST, LEVEL, MEAN, Measured, by_system, documents_of, mean_share
from judgecal.rag.evaluation.system import Setting
from judgecal.records import Estimate
from judgecal.stats import compare, compare_all
from judgecal.stats.sample import Bools
from judgecal.stats.significance import holm
from judgecal.stats.simultaneous import Losses, losses_against_best

Values = Mapping[str, Mapping[str, float | None]]
"""System, or level of a factor -> question -> its total, 0..1; None where it is unscored."""

_AS_MEANS: Any = {"scale": "percentage", "metric": MEAN}
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
    smallest_detectable: float | None
    complete_case: Estimate
    document: str | None = None  # on whose questions; None on all

    @property
    def apart(self) -> bool:
        """Whether one system is shown to be higher."""
        return self.decision in ("A", "B")


@dataclass(frozen=True, slots=True)
class SystemLoss:
    """A system, or a level of a factor, beside the best value seen."""

    name: str
    value: float | None  # of the measure, unscored questions as 0
    loss: float | None  # how far it lies below the best value seen
    loss_at_most: float | None
    """What it loses against the truly best lies below this, for all at once; None without bounds, and where
    there is no other that it was seen to differ from."""


@dataclass(frozen=True, slots=True)
class BestOf:
    """What may be the best by total."""

    highest: str  # the one with the best value seen, which may owe that to luck
    best: str | None  # the same where it alone is shown to be the best
    not_told_apart: tuple[SystemLoss, ...]  # the highest first; of one only where it is shown
    runner_up: str | None
    questions_needed: int | None
    """Questions like these that would tell these two apart, with 80% power and were the difference seen the
    true one; None where a million do not, or nothing is known of their spread."""
    n_questions: int
    level: float
    reason: str | None  # why nothing is shown, where the data allow no bounds


@dataclass(frozen=True, slots=True)
class FactorLevel:
    """A value of a factor and the total of the system that has it, an unscored question as 0."""

    level: Setting
    system: str
    value: Estimate  # its n are the scored questions


@dataclass(frozen=True, slots=True)
class FactorCurve:
    """One factor, with the levels in the order of the configuration; `best_of` names levels as text.

    The other factors are held at the base. `table` is the name of the systems' table in the configuration.
    """

    table: str
    factor: str
    levels: tuple[FactorLevel, ...]
    best_of: BestOf


def values_of(measured: Sequence[Measured]) -> Values:
    """Return Values (system -> question -> total) of Measured answers."""
    return {
        system: {answer.question: answer.total for answer in answers}
        for system, answers in by_system(measured).items()
    }


def compare_systems(measured: Sequence[Measured], *, seed: int = 0) -> tuple[SystemComparison, ...]:
    """Return a tuple of SystemComparisons of Measured answers: every two by total, paired by question.

    None where there is but one. The seed is of the sign flips.
    """
    labels, points = _in_points(values_of(measured))
    if len(points) < 2:
        return ()
    same = ("difference", "p_value", "p_adjusted", "decision", "smallest_detectable")
    comparisons = []
    for (a, b), pair in compare_all(labels, points, level=LEVEL, seed=seed, **_AS_MEANS).items():
        fields: dict[str, Any] = {name: getattr(pair, name) for name in same}
        comparisons.append(
            SystemComparison(a, b, "total", complete_case=pair.complete_case.difference, **fields)
        )
    return tuple(comparisons)


def compare_documents(measured: Sequence[Measured], *, seed: int = 0) -> tuple[SystemComparison, ...]:
    """From Measured answers, return SystemComparisons of two systems by document of ten questions or more.

    What could have been shown at least is not known of so many at once, and None.
    """
    pairs: list[SystemComparison] = []
    for document in documents_of(measured):
        answers = [answer for answer in measured if document in answer.documents]
        if len({answer.question for answer in answers}) >= _FEWEST:
            pairs += [replace(pair, document=document) for pair in compare_systems(answers, seed=seed)]
    adjusted = []
    for pair, p in zip(pairs, holm([pair.p_value for pair in pairs]), strict=True):
        decision = pair.decision
        if decision != "cannot tell" and not (p is not None and p < 1.0 - LEVEL):
            decision = "cannot tell"
        detectable = None if pairs[1:] else pair.smallest_detectable
        adjusted.append(replace(pair, p_adjusted=p, decision=decision, smallest_detectable=detectable))
    return tuple(adjusted)


def best_of(values: Values, *, level: float = LEVEL, seed: int = 0) -> BestOf:
    """Return BestOf, the systems not told apart from the best, of Values (system -> question -> total).

    The seed is of the sign flips and of the draws behind the bounds.
    """
    options: dict[str, Any] = {**_AS_MEANS, "level": level, "seed": seed}
    labels, points = _in_points(values)
    losses = losses_against_best(labels, points, **options)
    ranked = sorted(
        losses.by_judge, key=lambda name: (name != losses.best, losses.by_judge[name].loss or 0.0)
    )
    left = not_told_apart(losses)
    shown = len(left) == 1 and len(ranked) > 1 and losses.pairs is not None
    candidates = []
    for name in ranked:
        if name in left:
            loss = losses.by_judge[name]
            alike = loss.upper is not None and loss.upper <= (loss.loss or 0.0)
            at_most = 0.0 if shown else None if alike else loss.upper
            candidates.append(SystemLoss(name, loss.value, loss.loss, at_most))
    runner_up = ranked[1] if len(ranked) > 1 else None
    needed = None
    if runner_up is not None:  # were the difference seen the true one
        pair = compare(labels, points[losses.best], points[runner_up], **options)
        if pair.planned is not None and pair.difference.value is not None:
            needed = pair.planned.groups_for(abs(pair.difference.value))
    return BestOf(
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
    values: Values,
    settings: Mapping[str, tuple[str, Mapping[str, Setting]]],
    bases: Sequence[str],
    *,
    seed: int = 0,
) -> tuple[FactorCurve, ...]:
    """Return FactorCurves from Values, settings (system -> table and factor -> value) and base systems.

    What is called the best of a curve is held at a level that pays for all of them.

    Args:
        settings: system -> the name of its table in the configuration, and factor -> value.
        bases: of each table the system that the others differ from in one factor.
    """
    having: dict[tuple[str, str], dict[Setting, str]] = {}
    for table, held in (settings[base] for base in bases):
        for factor in held:
            having[table, factor] = {
                its[factor]: name
                for name, (of_table, its) in settings.items()
                if of_table == table and {**its, factor: held[factor]} == held
            }
    having = {name: levels for name, levels in having.items() if len(levels) > 1}
    level, curves = 1.0 - (1.0 - LEVEL) / max(len(having), 1), []
    for (table, factor), systems in having.items():
        levels = []
        for value, name in systems.items():
            mean = mean_share(values[name].items(), unscored="wrong")
            levels.append(FactorLevel(value, name, replace(mean, n=mean.n_expected - mean.n_unscored)))
        best = best_of({str(value): values[name] for value, name in systems.items()}, level=level, seed=seed)
        curves.append(FactorCurve(table, factor, tuple(levels), best))
    return tuple(curves)


def _in_points(values: Values) -> tuple[list[float], dict[str, list[float | None]]]:
    """Labels, and values in points of 100, in which a mean is the mean agreement with these labels."""
    questions = list(next(iter(values.values()), {}))
    points = {
        name: [None if (value := row.get(question)) is None else BEST * value for question in questions]
        for name, row in values.items()
    }
    return [BEST] * len(questions), points


_LEAST = 7.0
"""An error is at least that of so many groups that differ: five that all differ one way show nothing."""


def not_told_apart(losses: Losses) -> tuple[str, ...]:
    """Return the systems of a Losses not told apart from the best; all with a value without bounds.

    `losses` are made without a margin. With d_ij how much i lies above j, and s_ij^2 = s^2 + d^2 / G:

    - j is left out where some i has d_ij > c_j s_ij, c_j the critical value of all comparisons with j at
      once. The truly best stays with chance `level`. Source: Hsu (1984).
    - The highest stands alone where d_ij > t s_ij over each other j, t two-sided and not corrected for their
      number. Source: Gutmann and Maymin (1987); tests/benchmarks/sweeps.py simulates it for paired answers.
    """
    if losses.pairs is None:
        return tuple(name for name, loss in losses.by_judge.items() if loss.value is not None)
    pairs, itself = losses.pairs, np.eye(len(losses.pairs.names), dtype=np.bool_)
    if np.isnan(pairs.errors).any():
        return tuple(pairs.names)
    above = pairs.differences
    error = np.sqrt(np.maximum(pairs.errors**2, _LEAST * pairs.units**2) + above**2 / losses.n_groups)
    place = pairs.names.index(losses.best)
    t = stdtrit(pairs.df, 0.5 + losses.level / 2.0)
    alone: Bools = above[place] > t[place] * error[place]
    if np.all(alone | itself[place]):
        return (losses.best,)
    beaten: Bools = ((above > np.maximum(pairs.critical.T, t) * error) & ~itself).any(axis=0)
    return tuple(name for name, out in zip(pairs.names, beaten.tolist(), strict=True) if not out)
