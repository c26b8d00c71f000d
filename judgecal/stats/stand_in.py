"""May a judge stand in for a person? Whether it agrees with the other people as well as each person does.

A test of non-inferiority: the judge and a person who is held out, on the same items, against the same labels
of the other people. Absence of a difference proves nothing here; that the judge is not worse by a margin has
to be shown.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from judgecal.records import Result
from judgecal.scale import Scale
from judgecal.stats.calibration import calibrated
from judgecal.stats.intervals import MIN_GROUPS, t_quantile
from judgecal.stats.means import best_constant
from judgecal.stats.metrics import leading_metric, metric_facts
from judgecal.stats.paired import compare_paired
from judgecal.stats.sample import as_scale
from judgecal.stats.simultaneous import losses_against_best

MIN_SHARED = 30
"""A person needs as many items that another person rated too, on ten questions."""
SIZE = 0.05
"""How often a judge worse by the margin may be said to stand in, over all judges of a table together."""
_NOBODY = f"no rater shares {MIN_SHARED} items on {MIN_GROUPS} questions with another"

_T = TypeVar("_T")


def beside(ratings: Mapping[str, Mapping[Hashable, _T]], rater: str) -> list[tuple[Hashable, _T]]:
    """Each label that another rater gave to an item of this one, with the item: one that two others rated is
    two pairs.

    Agreement over these pairs is agreement with another person; no item is lost where the others disagree.
    """
    others = [labels for name, labels in ratings.items() if name != rater]
    return [(item, labels[item]) for item in ratings[rater] for labels in others if item in labels]


@dataclass(frozen=True, slots=True)
class Beside(Result):
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
    raters: Mapping[str, Beside]
    at_worst: float | None
    reason: str | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)

    def shown(self, margin: float) -> bool | None:
        """Whether the judge is shown to be less than a margin below every person; None where nothing can be
        shown.

        All of them have to be shown, so that no correction for their number is due (an intersection-union
        test). Where people hardly agree a constant is no worse than they are: a judge has to be shown better
        than that as well.
        """
        if self.at_worst is None:
            return None
        return self.at_worst > -margin and all(one.beats_constant for one in self.raters.values())


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
    """Hold a judge beside each person, both against the other people.

    Each bound is that of `losses_against_best` for two: by group, as in Wilson's interval with the variance
    at the bound, so that a judge that says the same as the person on every item seen is not taken for equal.

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
    pairs = {rater: beside(ratings, rater) for rater in ratings}
    few = {rater: why for rater, own in pairs.items() if (why := _too_few({item for item, _ in own}, groups))}
    test = _Test(people, as_scale(judge_scale or people), name, level, groups)
    found = {
        rater: test.beside(ratings[rater], verdicts, own) for rater, own in pairs.items() if rater not in few
    }
    bounds = [one.at_worst for one in found.values() if one.at_worst is not None]
    lacking = next(
        (f"beside {rater}: {one.reason}" for rater, one in found.items() if one.at_worst is None), None
    )
    reason = lacking if found else _NOBODY
    return StandIn(
        metric=name,
        level=level,
        raters=found,
        at_worst=None if reason else min(bounds),
        reason=reason,
        left_out=few,
    )


def _too_few(shared: set[Hashable], groups: Mapping[Hashable, Hashable]) -> str | None:
    n_groups = len({groups[item] for item in shared})
    if len(shared) < MIN_SHARED:
        return f"{len(shared)} items shared with another: fewer than {MIN_SHARED}"
    return (
        f"{n_groups} questions shared with another: fewer than {MIN_GROUPS}"
        if n_groups < MIN_GROUPS
        else None
    )


@dataclass(frozen=True, slots=True)
class _Test:
    """How a judge is held beside a person."""

    people: Scale
    judge: Scale
    metric: str
    level: float
    groups: Mapping[Hashable, Hashable]

    def beside(
        self,
        own: Mapping[Hashable, object],
        verdicts: Mapping[Hashable, object],
        pairs: list[tuple[Hashable, object]],
    ) -> Beside:
        """A judge and a person with these labels, both against those that others gave to the same items."""
        items = {item for item, _ in pairs}
        asked, n_groups = (
            [item for item in items if item in verdicts],
            len({self.groups[item] for item in items}),
        )
        if len(asked) < len(items):
            why = f"the judge was not asked about {len(items) - len(asked)} of the {len(items)} items"
            return Beside(None, None, None, None, False, len(asked), len(items), n_groups, 0, why)
        n_unscored = sum(verdicts[item] is None for item in asked)
        sides = {"judge": [verdicts[item] for item, _ in pairs], "person": [own[item] for item, _ in pairs]}
        found = self._held([label for _, label in pairs], sides, [self.groups[item] for item, _ in pairs])
        return replace(found, n=len(items), n_expected=len(items), n_groups=n_groups, n_unscored=n_unscored)

    def _held(
        self, labels: list[object], sides: Mapping[str, list[object]], groups: list[Hashable]
    ) -> Beside:
        """Both sides against the same labels, once calibrated; the person also as it is, if that is better.
        No counts.

        A person's labels are on the people's scale as they are, where a map can cost them something; and it
        can gain them something where people are noisy, as it does for a judge.
        """
        people = self.people
        given: dict[str, Scale | str] = {"judge": self.judge, "person": people}
        asked = metric_facts(self.metric).calibrated
        once = calibrated(labels, sides, scale=people, scales=given, groups=groups, asked=asked)
        floor = [best_constant(labels, scale=people, metric=self.metric)] * len(labels)
        shown: dict[str, Any] = {"scale": people, "metric": self.metric, "groups": groups}
        mapped, own, above = (
            compare_paired(
                labels,
                once.verdicts["judge"],
                other,
                a_scale=once.scales["judge"],
                b_scale=people,
                more_error=once.error_of_fit("judge", fitted),
                level=2.0 * self.level - 1.0,
                n_perm=1,
                **shown,
            )
            for other, fitted in ((once.verdicts["person"], "person"), (sides["person"], None), (floor, None))
        )
        beats = above.difference.low is not None and above.difference.low > 0.0
        better = min(mapped, own, key=lambda one: one.difference.value or 0.0)
        difference = better.difference
        found = Beside(better.a, better.b, difference.value, None, beats, 0, 0, 0, 0, difference.reason)
        if mapped.difference.low is None or own.difference.low is None:
            return found
        if difference.low == difference.high == 0.0:  # alike on every item seen: the rule of three, nearly
            n_groups = len(set(groups))
            return replace(
                found, at_worst=-(t_quantile(2.0 * self.level - 1.0, n_groups - 1.0) ** 2) / n_groups
            )
        loss = losses_against_best(labels, sides, scales=given, level=self.level, **shown).by_judge["judge"]
        worst = None if loss.upper is None else min(-loss.upper, own.difference.low)
        return replace(found, at_worst=worst, reason=loss.reason)
