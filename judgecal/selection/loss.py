"""The decision of one judge against another by a margin: shown to lose less, shown to lose more, or cannot tell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from judgecal.records import Estimate
from judgecal.stats.intervals import t_quantile
from judgecal.stats.metrics import metric_facts
from judgecal.stats.planning import POWER, smallest_detectable

__all__ = ["Loss", "loss_of"]

_MOST_QUESTIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class Loss:
    """What the new judge loses against the old.

    Attributes:
        decision: "within margin" where the loss is shown to stay under the margin, "loses more" where it is shown to
            exceed it, else "cannot tell".
        why: in a sentence.
        more_questions: about how many more questions would tell, were the loss what it looks; None where it is told
            already, or where no number can be named.
    """

    decision: Literal["within margin", "loses more", "cannot tell"]
    why: str
    more_questions: int | None = None


def loss_of(difference: Estimate, *, metric: str, margin: float) -> Loss:
    """Decide by the interval of the paired difference.

    Args:
        difference: new less old in the metric.
        metric: its name; of `mae` and `rmse` less is better.
        margin: the loss that is allowed, above 0.
    """
    if difference.value is None or difference.low is None or difference.high is None:
        return Loss("cannot tell", difference.reason or "there is no interval")
    loss, least, most = -difference.value, -difference.high, -difference.low
    if metric_facts(metric).direction == "less":
        loss, least, most = difference.value, difference.low, difference.high
    if most < margin:
        at_most = max(0.0, most)  # 0 first: of two equal ones the first is taken, and -0 is none to print
        return Loss("within margin", f"it loses {at_most:.3f} at most, less than the margin {margin:g}")
    if least > margin:
        return Loss("loses more", f"it loses {least:.3f} at least, more than the margin {margin:g}")
    more = _more_questions(loss, (most - least) / 2.0, difference, margin=margin)
    held = f"the interval of its loss, {least:.3f} to {most:.3f}, holds the margin {margin:g}"
    if more is None:
        return Loss("cannot tell", f"{held}, and so near to it no number of questions would tell")
    shown = "it loses less" if loss < margin else "it loses more"
    plural = "s" * (more > 1)
    return Loss(
        "cannot tell",
        f"{held}; about {more:,} more question{plural} would show that {shown}, if it is as it looks",
        more,
    )


def _more_questions(loss: float, half: float, difference: Estimate, *, margin: float) -> int | None:
    """Questions beside those there are, at which the loss seen is told from the margin with the planned power.

    With the error se on G questions: G ((t_level + t_power) se / |margin - loss|)^2. Source: as
    `smallest_detectable`.
    """
    df, apart = difference.n_groups - 1.0, abs(margin - loss)
    error = half / t_quantile(difference.level, df)
    needed = smallest_detectable(error, df, level=difference.level, power=POWER)
    if apart * math.sqrt(_MOST_QUESTIONS) < needed * math.sqrt(difference.n_groups):
        return None
    return max(1, math.ceil(difference.n_groups * (needed / apart) ** 2) - difference.n_groups)
