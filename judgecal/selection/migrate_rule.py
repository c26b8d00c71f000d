"""When another judge may take the locked one's place, apart from every call: the statistics of the decision.

"Pass" rests on all labelled items but those that trained or chose the new judge: that the old one was chosen
by them only makes passing harder. What nobody recorded, such as a prompt that was written with these labels
in sight, shows as a fall: on test the new judge may not do worse, beside the old one, than on the others by
more than chance explains. "Fail" rests on test alone. If both hold, it fails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy.special import stdtrit

from judgecal.scale import Scale
from judgecal.selection.gate_rule import GateDecision
from judgecal.stats import Comparison, compare
from judgecal.stats.confirmation import STANDARD_ERRORS
from judgecal.stats.intervals import t_quantile
from judgecal.stats.metrics import amount_of, metric_facts
from judgecal.stats.significance import OUT_OF_REACH, POWER, smallest_detectable
from judgecal.stats.simultaneous import Losses, losses_against_best
from judgecal.stats.strata import too_thin


@dataclass(frozen=True, slots=True)
class Loss:
    """What the new judge loses against the old."""

    # "pass": shown to stay under the margin; "fail": shown to exceed it; else "inconclusive"
    decision: GateDecision
    why: str
    # about how many more questions would tell, were the loss what it looks; None where it is told already, or
    # where no number can be named
    more_questions: int | None = None


@dataclass(frozen=True)
class Both:
    """Labels of some items, and the verdicts of both judges on them (None = unscored: as wrong)."""

    labels: Sequence[Any]
    groups: Sequence[str]
    old: Sequence[Any]
    new: Sequence[Any]
    scales: tuple[Scale, Scale]  # of the old judge's verdicts, and of the new one's

    def and_all(self, others: Sequence[Both]) -> Both:
        """These items and those of others, of the same judges."""
        parts = (self, *others)
        labels, groups, old, new = (
            [cell for part in parts for cell in getattr(part, name)]
            for name in ("labels", "groups", "old", "new")
        )
        return Both(labels, groups, old, new, self.scales)

    def compared(self, *, people: Scale, metric: str, level: float, seed: int = 0) -> Comparison:
        """New against old; the decision needs no p value."""
        return compare(
            self.labels,
            self.new,
            self.old,
            scale=people,
            a_scale=self.scales[1],
            b_scale=self.scales[0],
            metric=metric,
            groups=self.groups,
            level=level,
            n_perm=1,
            seed=seed,
            calibrate=False,
        )

    def losses(self, *, people: Scale, metric: str, margin: float, level: float, seed: int = 0) -> Losses:
        """What either may lose against the other, one-sided at the level."""
        return losses_against_best(
            self.labels,
            {"old": self.old, "new": self.new},
            scale=people,
            scales={"old": self.scales[0], "new": self.scales[1]},
            metric=metric,
            groups=self.groups,
            margin=margin,
            level=level,
            seed=seed,
            calibrate=False,
        )


def decide(
    losses: Losses,
    *,
    whole: Comparison,
    test: Comparison,
    rest: Comparison | None,
    metric: str,
    margin: float,
) -> Loss:
    """Decide by the bound of the loss on all items that may pass the new judge, and its difference on test.

    Args:
        losses: of "old" and "new" on those items, with the margin, which is above 0.
        whole, test, rest: new less old on those items, on test, and on those outside test; `rest` is None
            where there are none.
    """
    difference, bound = test.difference, losses.by_judge["new"].upper
    reason = too_thin(test.strata, metric) or difference.reason
    if reason is not None or difference.low is None or difference.high is None:
        return Loss("inconclusive", reason or "there is no interval")
    least = _as_loss(difference.low if metric_facts(metric).direction == "less" else difference.high, metric)
    allowed = amount_of(margin, metric)
    if least > margin:
        return Loss(
            "fail", f"on test it loses {amount_of(least, metric)} at least, more than the margin of {allowed}"
        )
    if bound is None:
        return Loss("inconclusive", losses.by_judge["new"].reason or losses.reason or "there is no bound")
    if bound < margin:
        fell = None if rest is None else _fell(test, rest, metric)
        if fell is not None:
            return Loss("inconclusive", fell)
        return Loss("pass", f"it loses {amount_of(bound, metric)} at most, less than the margin of {allowed}")
    loss = _as_loss(whole.difference.value or 0.0, metric)
    seen = f"a loss of {amount_of(loss, metric)}" if loss > 0.0 else "no loss"
    most, where = amount_of(bound, metric), f"on {losses.n_groups} questions"
    why = f"{seen} is seen {where}, it may be as large as {most}, and the margin is {allowed}"
    more: int | None = None
    if loss < margin:
        needed, would = losses.questions_needed("new", margin), "it loses less"
        more = None if needed is None else max(1, needed - losses.n_groups)
    else:
        more, would = _more_to_fail(test, metric, margin), "it loses more, all of them in test"
    if more is None or more > OUT_OF_REACH:
        far = f"to tell is out of reach: it would take more than {OUT_OF_REACH:,} more questions"
        return Loss("inconclusive", f"{why}; {far}, if it is as it looks")
    questions = f"about {more:,} more question{'s' * (more > 1)}"
    return Loss("inconclusive", f"{why}; {questions} would show that {would}, if it is as it looks", more)


def _as_loss(value: float, metric: str) -> float:
    """A difference as a loss."""
    return value if metric_facts(metric).direction == "less" else -value


def _error(compared: Comparison) -> float | None:
    """Standard error of a difference, by the degrees of freedom of its interval; None without one."""
    low, high, planned = compared.difference.low, compared.difference.high, compared.planned
    if low is None or high is None or planned is None:
        return None
    return (high - low) / (2.0 * t_quantile(compared.difference.level, planned.df))


def _fell(test: Comparison, rest: Comparison, metric: str) -> str | None:
    """Why test does not bear out the other items; None where it does, or where those have no interval."""
    before, after, errors = rest.difference.value, test.difference.value, (_error(test), _error(rest))
    if before is None or after is None or errors[0] is None or errors[1] is None:
        return None
    fall, most = _as_loss(after - before, metric), STANDARD_ERRORS * math.hypot(errors[0], errors[1])
    if fall <= most:
        return None
    fell, by_chance = amount_of(fall, metric), amount_of(most, metric)
    return (
        f"on all questions together it is shown to lose less than the margin, but on test it does {fell} "
        f"worse than on the others, where chance explains {by_chance}: most often it was tuned on questions "
        "of train and dev"
    )


def _more_to_fail(test: Comparison, metric: str, margin: float) -> int | None:
    """Questions beside those of test that would tell the loss seen there from the margin with the planned
    power.

    With the error se on G questions: G ((t_level + t_power) se / (loss - margin))^2. None where it is not
    beyond. Source: as `smallest_detectable`.
    """
    difference, error = test.difference, _error(test)
    beyond = _as_loss(difference.value or 0.0, metric) - margin
    if beyond <= 0.0 or error is None or test.planned is None:
        return None
    needed = smallest_detectable(error, test.planned.df, level=difference.level)
    return max(1, math.ceil(difference.n_groups * min((needed / beyond) ** 2, 1e9)) - difference.n_groups)


def could_show(old: Both, *, people: Scale, metric: str, margin: float, level: float) -> str:
    """What loss these items could show a judge as good as the old one to stay under."""
    compared = old.compared(people=people, metric=metric, level=level)
    losses = old.losses(people=people, metric=metric, margin=margin, level=level)
    least, detectable = losses.by_judge["new"].upper, compared.smallest_detectable
    if least is None or detectable is None:
        reason = losses.by_judge["new"].reason or losses.reason or compared.difference.reason
        return f"On {losses.n_groups} questions it can never pass: {reason}."
    df = losses.n_groups - 1.0
    one_sided = t_quantile(2.0 * level - 1.0, df) + float(stdtrit(df, POWER))
    usual = max(least, detectable * one_sided / (t_quantile(level, df) + float(stdtrit(df, POWER))))
    most, at_least, allowed = (amount_of(value, metric) for value in (usual, least, margin))
    return (
        f"{losses.n_groups} questions would show a judge that is as good to lose less than {most} in four "
        f"runs of five, if it differs as two judges usually do, and {at_least} if it gives the same "
        f"verdicts; the margin is {allowed}."
    )
