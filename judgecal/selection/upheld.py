"""Whether test upholds the choice: above the best constant, and no further below train and dev than luck
explains."""

from __future__ import annotations

from dataclasses import dataclass

from judgecal.experiment import Column, Table, verdict_matrix
from judgecal.experiment.floor import constant_entry
from judgecal.records import Estimate
from judgecal.selection.choice import Caps, MeasuredJudge, in_words
from judgecal.selection.confirm import Confirmed
from judgecal.stats import Calibration, leading_metric, metric_facts
from judgecal.stats.confirmation import Fall, Held, fall_between


@dataclass(frozen=True, slots=True)
class Upheld:
    """What test says of the choice.

    Attributes:
        floor: of the metric, what the best constant has on the test items.
        refused: why no lock is written; None where one may be.
        doubt: why test does not confirm the judge, whether or not a lock is written; None where it does.
    """

    floor: Estimate
    refused: str | None
    doubt: str | None


def upheld(
    chosen: MeasuredJudge, confirmed: Confirmed, *, chosen_on: Table, metric: str, n_judges: int, caps: Caps
) -> Upheld:
    """Hold the chosen one of so many judges on test against the best constant, and against what chose it."""
    floors, own = constant_entry(confirmed.table).as_wrong, leading_metric(chosen_on.gold.scale)
    at = own if floors[metric].value is None else metric  # of a correlation a constant has none
    lead = _lead(confirmed.decided_by(at), floors[at], at)
    problems = []
    if lead is not None and lead <= 0.0:
        pair = " against ".join(_figure(one.value, at) for one in (confirmed.decided_by(at), floors[at]))
        why = f"on test it does no better than the best constant ({in_words(at)} {pair})"
        problems.append((why, caps.allow_below_floor, "--allow-below-floor"))
    fall = _fall(chosen, confirmed, chosen_on, metric, n_judges)
    if fall is not None and fall.unexplained:
        luck = f"chance and the choice among {n_judges} judges explain" if n_judges > 1 else "chance explains"
        why = (
            f"on test its {in_words(metric)} is {_figure(fall.value, metric)} worse than on the questions that chose "
            f"it, and {luck} {_figure(fall.at_most, metric)}: {_likely_cause(chosen, confirmed.decided_by(metric))}"
        )
        problems.append((why, caps.allow_unconfirmed, "--allow-unconfirmed"))
    refused = [f"{why}; {flag} locks it all the same" for why, allowed, flag in problems if not allowed]
    doubt = "; ".join(why for why, _, _ in problems) or _not_shown(confirmed.decided_by(at), floors[at], at)
    return Upheld(floors[at], "; ".join(refused) or None, doubt)


def _likely_cause(chosen: MeasuredJudge, on_test: Estimate) -> str:
    entry = chosen.entry
    if on_test.n_unscored * entry.n_expected > 2 * entry.n_unscored * on_test.n_expected:
        return f"{on_test.n_unscored} of {on_test.n_expected} test items have no verdict, and count as wrong"
    return "most often questions of train and dev have leaked into the prompt or the training of the judge"


def shown_above_floor(test: Table, found: Estimate, metric: str) -> bool:
    """Whether the interval of a judge on the test items lies above what the best constant has there."""
    return _not_shown(found, constant_entry(test).as_wrong[metric], metric) is None


def _lead(found: Estimate, floor: Estimate, metric: str) -> float | None:
    """How far a judge is above the constant, of an error how far below it; None where either is unknown."""
    if found.value is None or floor.value is None:
        return None
    lead = found.value - floor.value
    return -lead if metric_facts(metric).direction == "less" else lead


def _not_shown(found: Estimate, floor: Estimate, metric: str) -> str | None:
    """Why test does not show a judge to be above the constant; None where it does."""
    if found.low is None or found.high is None or floor.value is None:
        return f"test cannot tell whether it beats the best constant: {found.reason or floor.reason}"
    above = found.high < floor.value if metric_facts(metric).direction == "less" else found.low > floor.value
    if above:
        return None
    return f"its interval there holds the {_figure(floor.value, metric)} of the best constant"


def _fall(
    chosen: MeasuredJudge, confirmed: Confirmed, chosen_on: Table, metric: str, n_judges: int
) -> Fall | None:
    """From the questions that chose, each by a map that did not see it, to test, by the map of all of
    them."""
    known, test = chosen_on.of(chosen.column), confirmed.table
    column = Column(chosen.column.judge, chosen.column.scale, confirmed.rows)
    asked = metric_facts(metric).calibrated
    before = known.calibrated(column) if asked else None
    after = _mapped(test, column, confirmed.calibration) if asked and before is not None else None
    parts = [_held(table, column, mapped) for table, mapped in ((known, before), (test, after))]
    return fall_between(parts[0], parts[1], people=test.gold.scale, metric=metric, n_judges=n_judges)


def _mapped(table: Table, column: Column, calibration: Calibration | None) -> list[list[float | None]] | None:
    rows = verdict_matrix(column.rows, table.items, table.repeats)
    return None if calibration is None else [[calibration.apply(verdict) for verdict in row] for row in rows]


def _held(table: Table, column: Column, mapped: list[list[float | None]] | None) -> Held:
    if mapped is not None:
        return Held(table.labels, mapped, table.gold.scale, table.groups, table.weights)
    rows = verdict_matrix(column.rows, table.items, table.repeats)
    return Held(table.labels, rows, column.scale, table.groups, table.weights)


def _figure(value: float | None, metric: str) -> str:
    if value is None:
        return "unknown"
    return f"{100.0 * value:.1f}%" if in_words(metric) != metric else f"{value:.3g}"
