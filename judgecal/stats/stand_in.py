"""May a judge stand in for a person? Whether it agrees with the other people as well as each person does.

`stand_in` is a test of non-inferiority: the judge and a person who is held out, on the same items, against
the same labels of the other people.

`alt_test` is the alternative annotator test: each human is left out in turn, and who is closer to the others,
the human or the judge? Source: Calderon, Reichart and Dror (2025), The Alternative Annotator Test for
LLM-as-a-Judge.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import numpy as np
from scipy.special import stdtr

from judgecal.errors import InputError
from judgecal.records import Result
from judgecal.scale import Scale
from judgecal.stats.calibration import calibrated
from judgecal.stats.intervals import MIN_GROUPS, t_quantile
from judgecal.stats.means import best_constant
from judgecal.stats.metrics import leading_metric, metric_facts
from judgecal.stats.paired import compare_paired
from judgecal.stats.reliability import groups_of, read_ratings
from judgecal.stats.sample import Bools, Floats, Ints, as_scale
from judgecal.stats.simultaneous import losses_against_best

MIN_SHARED = 30
"""A person needs as many items that another person rated too, on ten questions."""
SIZE = 0.05
"""How often a judge worse by the margin may be said to stand in, over all judges of a table together."""
_NOBODY = f"no rater shares {MIN_SHARED} items on {MIN_GROUPS} questions with another"

_T = TypeVar("_T")


def paired_labels(ratings: Mapping[str, Mapping[Hashable, _T]], rater: str) -> list[tuple[Hashable, _T]]:
    """Return a list of (item, label) pairs of other raters, from ratings by rater and a rater's name.

    Agreement over these pairs is agreement with another person; no item is lost where the others disagree.
    """
    others = [labels for name, labels in ratings.items() if name != rater]
    return [(item, labels[item]) for item in ratings[rater] for labels in others if item in labels]


@dataclass(frozen=True, slots=True)
class PersonGap(Result):
    """A judge beside one person, both against the other people on the same items.

    Attributes:
        judge, person: the metric of either, once calibrated where it asks for that, the person's as it is
            where that is better; unscored items count as wrong.
        difference: judge less person; None for a `reason`.
        at_worst: the one-sided lower bound of the difference, at most 0; None for a `reason`.
        beats_constant: whether the judge is shown to agree with those labels better than any constant does.
        n, n_expected: items that the difference rests on; that the person shares with another.
        n_unscored: items on which the judge gave no verdict.
    """

    judge: float | None
    person: float | None
    difference: float | None
    at_worst: float | None
    beats_constant: bool
    n: int
    n_expected: int
    n_groups: int
    n_unscored: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class StandIn(Result):
    """A judge beside every person who shares enough items with another.

    Attributes:
        level: of each one-sided bound; 1 - 0.05 / (judges that are tested together).
        raters: rater -> the judge beside that person.
        at_worst: the lowest of their bounds; None for a `reason`.
        left_out: rater -> why nothing hangs on this person.
    """

    metric: str
    level: float
    raters: Mapping[str, PersonGap]
    at_worst: float | None
    reason: str | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)

    def shown(self, margin: float) -> bool | None:
        """Return whether (or None) this judge is shown less than a margin below each person.

        All of them have to be shown, so that no correction for their number is due (an intersection-union
        test). None where nothing can be shown.
        """
        if self.at_worst is None:
            return None
        return self.at_worst > -margin and all(rater.beats_constant for rater in self.raters.values())


def stand_in(
    ratings: Mapping[str, Mapping[Hashable, object]],
    verdicts: Mapping[Hashable, object],
    *,
    scale: Scale | str,
    judge_scale: Scale | str | None = None,
    groups: Mapping[Hashable, Hashable],
    metric: str | None = None,
    n_judges: int = 1,
) -> StandIn:
    """Return a StandIn, from people's ratings, a judge's verdicts by item, a Scale, and groups by item.

    Each bound is that of `losses_against_best` for two, so that a judge that says the same as the person on
    every item seen is not taken for equal.

    Args:
        ratings: rater -> item -> label, people alone, without those who were mostly asked to break ties.
        verdicts: item -> verdict on `judge_scale` (the people's where not given); None = unscored, which
            counts as wrong; an item that is absent was not asked.
        groups: the question of each item.
        metric: of the people's scale; the leading one where not given.
        n_judges: judges that are tested together; the chance to err is theirs together.
    """
    people = as_scale(scale)
    name, level = metric or leading_metric(people), 1.0 - SIZE / n_judges
    raters: dict[str, PersonGap] = {}
    left_out: dict[str, str] = {}
    for rater, labels in ratings.items():
        pairs = paired_labels(ratings, rater)
        items = {item for item, _ in pairs}
        n_groups, n_asked = len({groups[item] for item in items}), sum(item in verdicts for item in items)
        if len(items) < MIN_SHARED:
            left_out[rater] = f"{len(items)} items shared with another: fewer than {MIN_SHARED}"
        elif n_groups < MIN_GROUPS:
            left_out[rater] = f"{n_groups} questions shared with another: fewer than {MIN_GROUPS}"
        elif n_asked < len(items):
            why = f"the judge did not see {len(items) - n_asked} of the {len(items)} items"
            raters[rater] = PersonGap(None, None, None, None, False, n_asked, len(items), n_groups, 0, why)
        else:
            sides = {
                "judge": [verdicts[item] for item, _ in pairs],
                "person": [labels[item] for item, _ in pairs],
            }
            scales = {"judge": as_scale(judge_scale or people), "person": people}
            of_pair = [groups[item] for item, _ in pairs]
            held = _held([label for _, label in pairs], sides, scales, of_pair, metric=name, level=level)
            n_unscored = sum(verdicts[item] is None for item in items)
            raters[rater] = replace(
                held, n=len(items), n_expected=len(items), n_groups=n_groups, n_unscored=n_unscored
            )
    bounds = [rater.at_worst for rater in raters.values() if rater.at_worst is not None]
    reason = None if raters else _NOBODY
    for rater, held in raters.items():
        if held.at_worst is None:
            reason = reason or f"beside {rater}: {held.reason}"
    return StandIn(name, level, raters, None if reason else min(bounds), reason, left_out)


def _held(
    labels: list[object],
    sides: Mapping[str, list[object]],
    scales: Mapping[str, Scale | str],
    groups: list[Hashable],
    *,
    metric: str,
    level: float,
) -> PersonGap:
    """Compare judge and person on the same labels, once calibrated; the person also as it is, if better.

    The counts are left at 0.
    """
    people = as_scale(scales["person"])
    calibrate = metric_facts(metric).calibrated
    once = calibrated(labels, sides, scale=people, scales=scales, groups=groups, mapped=calibrate)
    floor = [best_constant(labels, scale=people, metric=metric)] * len(labels)
    shared: dict[str, Any] = {"scale": people, "metric": metric, "groups": groups}
    mapped, plain, above = (
        compare_paired(
            labels,
            once.verdicts["judge"],
            other,
            a_scale=once.scales["judge"],
            b_scale=people,
            more_error=once.error_of_fit("judge", fitted),
            level=2.0 * level - 1.0,
            n_perm=1,
            **shared,
        )
        for other, fitted in ((once.verdicts["person"], "person"), (sides["person"], None), (floor, None))
    )
    beats = above.difference.low is not None and above.difference.low > 0.0
    better = min(mapped, plain, key=lambda pair: pair.difference.value or 0.0)
    difference = better.difference
    held = PersonGap(better.a, better.b, difference.value, None, beats, 0, 0, 0, 0, difference.reason)
    if mapped.difference.low is None or plain.difference.low is None:
        return held
    if difference.low == difference.high == 0.0:  # alike on every item seen: the rule of three, nearly
        n_groups = len(set(groups))
        return replace(held, at_worst=-(t_quantile(2.0 * level - 1.0, n_groups - 1.0) ** 2) / n_groups)
    loss = losses_against_best(labels, sides, scales=scales, level=level, **shared).by_judge["judge"]
    worst = None if loss.upper is None else min(-loss.upper, plain.difference.low)
    return replace(held, at_worst=worst, reason=loss.reason)


FALSE_DISCOVERIES = 0.05
"""The Benjamini-Yekutieli procedure's level."""
EPSILONS = tuple(step / 20 for step in range(9))
"""0 to 0.4 in steps of 0.05."""

_TIE = 1e-12
_ONE_HUMAN_AN_ITEM = (
    "each item has one human label: the test needs items that two humans or more have labelled"
)
_NO_SHARED_ITEMS = f"no human has {MIN_SHARED} items shared with another human and the judge"


@dataclass(frozen=True, slots=True)
class Nearer(Result):
    """Whose label is closer to those of the other humans: shares of the items, which sum to 1.

    In the published test a tie is a win of both, and so for the judge as well.
    """

    judge: float
    human: float
    tie: float


@dataclass(frozen=True, slots=True)
class AltTest(Result):
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
    """Return an AltTest, from human ratings by person, judge labels by item, a Scale, and an epsilon.

    For each human, over the items that the judge and another human have labelled: whose label is closer to
    those of the other humans? By accuracy on binary and nominal scales, by -RMSE on ordinal and percentage
    ones; ties win for both. One-sided t-test of mean(human wins - judge wins) < epsilon, Benjamini-Yekutieli
    at 0.05 over the humans. Humans with fewer than 30 such items are left out and named. Constant
    differences: p is 0 below epsilon, 1 above, undefined and not rejected where equal. Usual values of
    epsilon are 0.2 for experts, 0.15 for skilled people and 0.1 for crowds.

    Args:
        human_ratings: rater to item to label; None or NaN = missing.
        judge_labels: item to label, on the same scale; None or NaN = unscored.
        epsilon: 0..1.
        groups: the question of each item. Where given, the t-test's error is by group with t(G-1), and a
            human with fewer than ten groups is left out.
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
    """Return a dict, epsilon -> AltTest, from human ratings by person, judge labels by item, and a Scale."""
    for epsilon in epsilons:
        if not 0.0 <= epsilon <= 1.0:
            raise InputError(f"epsilon is {epsilon:g}: it lies between 0 and 1")
    people = as_scale(scale)
    rows = {f"human {name}": row for name, row in human_ratings.items()}
    read = read_ratings({**rows, "judge": judge_labels}, scale=people)
    humans, judge = read.labels[:, :-1], read.labels[:, -1]
    rated, scored = ~np.isnan(humans), ~np.isnan(judge)
    shared = rated.sum(axis=1) >= 2
    codes = groups_of(groups, read.items)
    won, n_items, left_out = {}, {}, {}
    for place, name in enumerate(map(str, human_ratings)):
        rated_both = rated[:, place] & shared & scored
        n_items[name], n_groups = int(rated_both.sum()), len(np.unique(codes[rated_both]))
        if n_items[name] < MIN_SHARED:
            what = f"{n_items[name]} items shared with another human and the judge"
            left_out[name] = f"{what}: fewer than {MIN_SHARED}"
        elif groups is not None and n_groups < MIN_GROUPS:
            left_out[name] = f"{n_groups} groups: fewer than {MIN_GROUPS}"
        else:
            others = np.delete(humans[rated_both], place, axis=1)
            human, machine = (
                _closeness(side[rated_both], others, people) for side in (humans[:, place], judge)
            )
            # who wins on which item (n x 2: human, judge), a tie counting for both
            wins = np.stack([human >= machine - _TIE, machine >= human - _TIE], axis=1)
            won[name] = wins, codes[rated_both]
    test = AltTest(
        advantage_probability=float(np.mean([wins[:, 1].mean() for wins, _ in won.values()]))
        if won
        else None,
        nearer={
            name: Nearer(*(float(share.mean()) for share in (judge & ~human, human & ~judge, human & judge)))
            for name, (human, judge) in ((name, wins.T) for name, (wins, _) in won.items())
        },
        n_items=n_items,
        left_out=left_out,
        reason=None if won else _NO_SHARED_ITEMS if shared.any() else _ONE_HUMAN_AN_ITEM,
        n_expected=int(shared.sum()),
        n_unscored=int((shared & ~scored).sum()),
    )
    by_epsilon = {}
    for epsilon in epsilons:
        p_values = {name: _p_value(wins, of_item, epsilon) for name, (wins, of_item) in won.items()}
        rejected = _benjamini_yekutieli(p_values)
        rate = len(rejected) / len(won) if won else None
        by_epsilon[epsilon] = replace(
            test,
            epsilon=epsilon,
            winning_rate=rate,
            p_values=p_values,
            rejected=rejected,
            passed=None if rate is None else rate >= 0.5,
        )
    return by_epsilon


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
    ordered = sorted(p for p in p_values.values() if p is not None)
    harmonic = sum(1.0 / i for i in range(1, m + 1))
    below = [p for k, p in enumerate(ordered, start=1) if p <= FALSE_DISCOVERIES * k / (m * harmonic)]
    most = max(below, default=-1.0)
    return tuple(name for name, p in p_values.items() if p is not None and p <= most)
