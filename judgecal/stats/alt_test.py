"""The alternative annotator test: may the judge stand in for one of the people?

Each human is left out in turn; who is closer to the others, the human or the judge? Source: Calderon,
Reichart and Dror (2025), The Alternative Annotator Test for LLM-as-a-Judge.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from scipy.special import stdtr

from judgecal.errors import InputError
from judgecal.records import Result
from judgecal.scale import Scale
from judgecal.stats.intervals import MIN_GROUPS
from judgecal.stats.reliability import Ratings, groups_of, read_ratings
from judgecal.stats.sample import Bools, Floats, Ints, as_scale

MIN_ITEMS = 30
"""A human needs as many items that another human and the judge have labelled too."""
FALSE_DISCOVERIES = 0.05
"""The Benjamini-Yekutieli procedure's level."""
EPSILONS = tuple(step / 20 for step in range(9))
"""0 to 0.4 in steps of 0.05."""

_TIE = 1e-12
_ONE_HUMAN_AN_ITEM = "one human label an item: the test needs items that two humans or more have labelled"
_NO_SHARED_ITEMS = f"no human has {MIN_ITEMS} items shared with another human and the judge"


@dataclass(frozen=True, slots=True)
class Nearer(Result):
    """Whose label is closer to those of the other humans: shares of the items, which sum to 1.

    In the published test a tie is a win of both, and so for the judge as well.
    """

    judge: float
    human: float
    tie: float


@dataclass(frozen=True, slots=True)
class AltTest:
    """What the test found.

    Attributes:
        advantage_probability: how often the judge is at least as close to the other humans as the human left
            out is, the mean over the tested humans; it takes no epsilon and compares judges.
        nearer: of each tested human: how often the judge is closer, how often the human, how often neither.
        p_values: of each tested human, that the human's advantage is not below epsilon; None = undefined.
    """

    epsilon: float = 0.0  # what the judge is granted for being cheaper than a human
    # share of the tested humans whom the judge may replace; None for a `reason`
    winning_rate: float | None = None
    advantage_probability: float | None = None
    nearer: dict[str, Nearer] = field(default_factory=dict)
    p_values: dict[str, float | None] = field(default_factory=dict)
    rejected: tuple[str, ...] = ()  # the humans whom the judge may replace
    passed: bool | None = None  # whether that is a half or more
    n_items: dict[str, int] = field(default_factory=dict)  # of each human, shared with another and the judge
    left_out: dict[str, str] = field(default_factory=dict)  # why each human that was not tested was not
    reason: str | None = None
    n_expected: int = 0  # items that two humans or more have labelled
    n_unscored: int = 0  # those of them that the judge has not


def alt_test(
    human_ratings: Mapping[str, Mapping[Hashable, object]],
    judge_labels: Mapping[Hashable, object],
    *,
    scale: Scale | str,
    epsilon: float,
    groups: Mapping[Hashable, Hashable] | None = None,
) -> AltTest:
    """The alternative annotator test.

    For each human, over the items that the judge and another human have labelled: whose label is closer to
    those of the other humans? By accuracy on binary and nominal scales, by -RMSE on ordinal and percentage
    ones; ties win for both. One-sided t-test of mean(human wins - judge wins) < epsilon, Benjamini-Yekutieli
    at 0.05 over the humans. Humans with fewer than 30 such items are left out and named; their labels still
    count among the others'. Constant differences: p is 0 below epsilon, 1 above, undefined and not rejected
    where equal. Three humans or more are advised; usual values of epsilon are 0.2 for experts, 0.15 for
    skilled people and 0.1 for crowds.

    Args:
        human_ratings: rater to item to label; None or NaN = missing.
        judge_labels: item to label, on the same scale; None or NaN = unscored.
        epsilon: 0..1.
        groups: the question of each item. Where given, the t-test's error is by group with t(G-1), and a
            human with fewer than ten groups is left out.

    Raises:
        InputError: a label is none of the scale, epsilon lies outside 0..1, an item has no group.
    """
    rates = winning_rates(human_ratings, judge_labels, scale=scale, epsilons=(epsilon,), groups=groups)
    return rates[epsilon]


def winning_rates(
    human_ratings: Mapping[str, Mapping[Hashable, object]],
    judge_labels: Mapping[Hashable, object],
    *,
    scale: Scale | str,
    epsilons: Sequence[float] = EPSILONS,
    groups: Mapping[Hashable, Hashable] | None = None,
) -> dict[float, AltTest]:
    """The alternative annotator test over a range of epsilon; arguments and errors as `alt_test`."""
    for epsilon in epsilons:
        if not 0.0 <= epsilon <= 1.0:
            raise InputError(f"epsilon is {epsilon:g}: it lies between 0 and 1")
    people = as_scale(scale)
    humans, judge = _read(human_ratings, judge_labels, people)
    rated = ~np.isnan(humans.labels)
    shared = rated.sum(axis=1) >= 2
    scored = ~np.isnan(judge)
    codes = groups_of(groups, humans.items)
    won, n_items, left_out = {}, {}, {}
    for place, name in enumerate(humans.raters):
        rows = rated[:, place] & shared & scored
        n_items[name] = int(rows.sum())
        why = _too_few(n_items[name], len(np.unique(codes[rows])), grouped=groups is not None)
        if why:
            left_out[name] = why
            continue
        others = np.delete(humans.labels[rows], place, axis=1)
        ours, theirs = (
            _closeness(labels[rows], others, people) for labels in (humans.labels[:, place], judge)
        )
        won[name] = np.stack([ours >= theirs - _TIE, theirs >= ours - _TIE], axis=1), codes[rows]
    said = AltTest(
        n_items=n_items,
        left_out=left_out,
        reason=None if won else _NO_SHARED_ITEMS if shared.any() else _ONE_HUMAN_AN_ITEM,
        n_expected=int(shared.sum()),
        n_unscored=int((shared & ~scored).sum()),
    )
    return {epsilon: _tested(said, won, epsilon) for epsilon in epsilons}


def _tested(said: AltTest, won: Mapping[str, tuple[Bools, Ints]], epsilon: float) -> AltTest:
    """The result at one epsilon, from who wins on which item (n x 2: human, judge) and the items' groups."""
    p_values = {name: _p_value(wins, groups, epsilon) for name, (wins, groups) in won.items()}
    rejected = _benjamini_yekutieli(p_values)
    rate = len(rejected) / len(won) if won else None
    advantage = float(np.mean([wins[:, 1].mean() for wins, _ in won.values()])) if won else None
    return replace(
        said,
        epsilon=epsilon,
        winning_rate=rate,
        advantage_probability=advantage,
        nearer={name: _nearer(wins) for name, (wins, _) in won.items()},
        p_values=p_values,
        rejected=rejected,
        passed=None if rate is None else rate >= 0.5,
    )


def _nearer(wins: Bools) -> Nearer:
    human, judge = wins[:, 0], wins[:, 1]
    return Nearer(
        float(np.mean(judge & ~human)), float(np.mean(human & ~judge)), float(np.mean(human & judge))
    )


def _read(
    human_ratings: Mapping[str, Mapping[Hashable, object]],
    judge_labels: Mapping[Hashable, object],
    people: Scale,
) -> tuple[Ratings, Floats]:
    """The humans' table, and the judge's labels of its items."""
    humans = [str(name) for name in human_ratings]
    rows = {f"human {name}": row for name, row in human_ratings.items()}
    both = read_ratings({**rows, "judge": judge_labels}, scale=people)
    return Ratings(tuple(humans), both.items, both.labels[:, :-1], both.words), both.labels[:, -1]


def _too_few(n_items: int, n_groups: int, *, grouped: bool) -> str | None:
    if n_items < MIN_ITEMS:
        return f"{n_items} items shared with another human and the judge: fewer than {MIN_ITEMS}"
    if grouped and n_groups < MIN_GROUPS:
        return f"{n_groups} groups: fewer than {MIN_GROUPS}"
    return None


def _closeness(labels: Floats, others: Floats, people: Scale) -> Floats:
    """Closeness to the other humans' labels, item by item: accuracy, or -RMSE on graded scales."""
    apart = others - labels[:, None]
    if people.kind in ("binary", "nominal"):
        return cast(Floats, np.nanmean(np.where(np.isnan(apart), np.nan, apart == 0.0), axis=1))
    return cast(Floats, -np.sqrt(np.nanmean((apart / people.span) ** 2, axis=1)))


def _p_value(won: Bools, groups: Ints, epsilon: float) -> float | None:
    """How likely so low a mean difference is, were it epsilon in truth; the error is by group.

    With one item a group that is the one-sample t-test.
    """
    difference = won[:, 0].astype(np.float64) - won[:, 1]
    mean = float(difference.mean())
    codes = np.unique(groups, return_inverse=True)[1]
    parts = np.bincount(codes, weights=difference - mean) / len(difference)
    n_groups = len(parts)
    se = math.sqrt(n_groups / (n_groups - 1.0) * float((parts**2).sum()))
    if se <= _TIE:
        return None if abs(mean - epsilon) <= _TIE else float(mean > epsilon)
    return float(stdtr(n_groups - 1.0, (mean - epsilon) / se))


def _benjamini_yekutieli(p_values: Mapping[str, float | None]) -> tuple[str, ...]:
    """The hypotheses rejected at 0.05, whatever their dependence; one without a p value counts, and is not
    rejected.

    The k smallest p values are rejected, k the last with p_(k) <= 0.05 k / (m (1 + 1/2 + ... + 1/m)).
    Source: Benjamini and Yekutieli (2001).
    """
    m = len(p_values)
    known = sorted(p for p in p_values.values() if p is not None)
    harmonic = sum(1.0 / i for i in range(1, m + 1))
    below = [p for k, p in enumerate(known, start=1) if p <= FALSE_DISCOVERIES * k / (m * harmonic)]
    most = max(below, default=-1.0)
    return tuple(name for name, p in p_values.items() if p is not None and p <= most)
