"""Which of two judges agrees better with people, as far as the data can decide it."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from judgecal.errors import InputError
from judgecal.records import Estimate, Result
from judgecal.scale import Scale
from judgecal.stats.calibration import DecidingVerdicts, calibrated
from judgecal.stats.intervals import MIN_GROUPS, check_level
from judgecal.stats.means import Stratum, too_thin
from judgecal.stats.metrics import leading_metric, metric_facts, metric_named
from judgecal.stats.paired import PairedDifference, compare_paired
from judgecal.stats.sample import Floats, as_scale, as_sequence
from judgecal.stats.significance import N_PERM, holm, planned_error, smallest_detectable

Decision = Literal["A", "B", "cannot tell"]

_EPS = 1e-12
_COARSE = 3.0  # from simulation: see `_planned`
MOST_GROUPS = 1_000_000
"""More questions are never planned."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What the smallest detectable difference is made of, so that other numbers of questions can be planned
    by it.

    With m = (error / step)^2 groups that differ, the error is taken to be (1 + 3 / m)^(1/2) times as wide:
    two judges that far apart differ on more items than two equal ones.

    Attributes:
        error: standard error of the difference of two judges that err as planned, or as seen where that is
            wider.
        step: what one differing group adds to the difference.
        df: degrees of freedom of the error.
        n_groups: that it was seen on.
        level: at which the two are decided on, after a correction for several pairs.
    """

    error: float
    step: float
    df: float
    n_groups: int
    level: float
    skewness: float = field(default=0.0, metadata={"json": False})  # as in `PairedDifference`

    def detectable(self, n_groups: int) -> float:
        """Return the smallest difference, a float, that a number of such groups finds with 80% power."""
        fewer = self.n_groups / n_groups
        error = math.sqrt(self.error**2 * fewer + _COARSE * (self.step * fewer) ** 2)
        return smallest_detectable(error, max(1.0, self.df / fewer), level=self.level)

    def groups_for(self, difference: float) -> int | None:
        """Return the number of groups, ten or more, that find a difference; None beyond `MOST_GROUPS`."""
        if not difference > 0.0 or self.detectable(MOST_GROUPS) > difference:
            return None
        return bisect.bisect_left(
            range(MOST_GROUPS), -difference, lo=MIN_GROUPS, key=lambda n: -self.detectable(n)
        )


@dataclass(frozen=True, slots=True)
class PairComparison(Result):
    """What the data say of two judges on the same items, by a metric."""

    metric: str
    difference: Estimate  # a - b with its interval, unscored items counted as wrong; so a, b
    p_value: float | None  # two-sided, of no difference; None where the groups are too few
    # after Holm over the comparisons that were made together; of a single one, `p_value`
    p_adjusted: float | None
    decision: Decision
    why: str
    smallest_detectable: float | None  # that so many questions find with 80% power; None without interval
    p_method: str
    a: float | None
    b: float | None
    complete_case: PairedDifference  # the same without the items that either judge left unscored
    raw: PairedDifference | None = None  # of the verdicts as they are, where they were calibrated to decide
    strata: tuple[
        Stratum, ...
    ] = ()  # of a macro metric: n of each, and its part of the difference's variance
    planned: Planned | None = None  # what `smallest_detectable` is made of


def compare(
    gold_labels: Iterable[object],
    a_labels: Iterable[object],
    b_labels: Iterable[object],
    *,
    scale: Scale | str,
    metric: str | None = None,
    groups: Iterable[Hashable] | None = None,
    a_scale: Scale | str | None = None,
    b_scale: Scale | str | None = None,
    level: float = 0.95,
    seed: int = 0,
    n_perm: int = N_PERM,
    calibrate: bool = True,
    weights: Floats | None = None,
) -> PairComparison:
    """Return a PairComparison, from gold labels, labels of judge a, labels of judge b, and a Scale.

    By macro_agreement, which is the default, verdicts are compared once calibrated
    (`calibration.cross_fit`), so that the scale that a judge happens to use neither helps nor hurts it;
    `raw` is the difference without that.

    A judge is decided for where the interval of the difference lies on its side of 0 (which says the same as
    a p value below 1 - level, see `compare_paired`), and the order of the two is the same whether unscored
    items count as wrong or are left out. Else the decision is "cannot tell" and `why` says what is lacking.
    No look at test is counted.

    Args:
        a_labels, b_labels: verdicts of either judge, n or n x R, on `a_scale`, `b_scale`; the people's where
            not given.
        metric: a name of the people's scale; the leading one where not given.
        level: nominal coverage of the intervals; 1 - level is the false alarm rate.
        calibrate: False where verdicts are to be compared as they are by macro_agreement too.
        seed, n_perm: of the Monte Carlo sign flips; the others as in `agreement`.
    """
    labels = {"a": a_labels, "b": b_labels}
    judge_scales = {name: given for name, given in (("a", a_scale), ("b", b_scale)) if given is not None}
    options: dict[str, Any] = {
        "level": level,
        "seed": seed,
        "n_perm": n_perm,
        "calibrate": calibrate,
        "weights": weights,
    }
    return compare_all(
        gold_labels, labels, scale=scale, scales=judge_scales, metric=metric, groups=groups, **options
    )["a", "b"]


def compare_all(
    gold_labels: Iterable[object],
    judges: Mapping[str, Iterable[object]],
    *,
    scale: Scale | str,
    scales: Mapping[str, Scale | str] | None = None,
    metric: str | None = None,
    groups: Iterable[Hashable] | None = None,
    level: float = 0.95,
    seed: int = 0,
    n_perm: int = N_PERM,
    calibrate: bool = True,
    weights: Floats | None = None,
    deciding: DecidingVerdicts[str] | None = None,
) -> dict[tuple[str, str], PairComparison]:
    """Return (name, name) -> PairComparison by Holm, from gold labels, labels by judge name, and a Scale.

    `judges` are name -> verdicts, `scales` name -> that judge's scale where it is not the people's; the
    others as in `compare`, `weights` as in `agreement`. The smallest detectable differences are those of the
    first step of Holm, at 1 - (1 - level) / pairs. `deciding`: the judges
    calibrated, where that is done already.
    """
    check_level(level)
    people, judge_scales = as_scale(scale), scales or {}
    name = metric or leading_metric(people)
    chosen, _ = metric_named(name, people)
    labels, codes = as_sequence(gold_labels), None if groups is None else as_sequence(groups)
    given = {judge: as_sequence(rows) for judge, rows in judges.items()}
    if len(judges) < 2:
        raise InputError(f"{len(judges)} judge{'s' * (len(judges) != 1)}: a comparison takes two or more")
    mapped = calibrate and chosen.calibrated
    of_items: dict[str, Any] = {"scale": people, "groups": codes, "weights": weights}
    once = deciding or calibrated(labels, given, scales=judge_scales, mapped=mapped, **of_items)
    options: dict[str, Any] = {**of_items, "metric": name, "level": level, "seed": seed}

    def paired(verdicts: Mapping[str, Any], of: Mapping[str, Scale | str], **more: Any) -> PairedDifference:
        sides: dict[str, Any] = {"a_scale": of.get(a), "b_scale": of.get(b)}
        return compare_paired(labels, verdicts[a], verdicts[b], **sides, **options, **more)

    tested, raw = {}, dict[tuple[str, str], PairedDifference]()
    for a, b in itertools.combinations(judges, 2):
        error: dict[str, Any] = {"n_perm": n_perm, "more_error": once.error_of_fit(a, b)}
        main = complete = paired(once.verdicts, once.scales, **error)
        if main.difference.n_unscored:
            complete = paired(once.verdicts, once.scales, unscored="drop", **error)
        tested[a, b] = main, complete
        if not once.fits.keys().isdisjoint((a, b)):
            raw[a, b] = paired(given, judge_scales, n_perm=1)
    adjusted = holm([main.p_value for main, _ in tested.values()])
    return {
        pair: replace(_comparison(name, main, complete, p=p, n_pairs=len(tested)), raw=raw.get(pair))
        for (pair, (main, complete)), p in zip(tested.items(), adjusted, strict=True)
    }


def _comparison(
    metric: str, main: PairedDifference, complete: PairedDifference, *, p: float | None, n_pairs: int
) -> PairComparison:
    decision, why = _decide(metric, main, complete, p=p, n_pairs=n_pairs)
    planned = _planned(main, level=1.0 - (1.0 - main.difference.level) / n_pairs)
    return PairComparison(
        metric=metric,
        difference=main.difference,
        p_value=main.p_value,
        p_adjusted=p,
        decision=decision,
        why=why,
        smallest_detectable=None if planned is None else planned.detectable(planned.n_groups),
        p_method=main.method,
        a=main.a,
        b=main.b,
        complete_case=complete,
        strata=main.strata,
        planned=planned,
    )


def _decide(
    metric: str, main: PairedDifference, complete: PairedDifference, *, p: float | None, n_pairs: int
) -> tuple[Decision, str]:
    difference, facts = main.difference, metric_facts(metric)
    if facts.direction == "neither":
        return (
            "cannot tell",
            f"{metric} ranks nobody: {facts.meaning[0].lower()}{facts.meaning[1:].rstrip('.')}",
        )
    if difference.low is None or difference.high is None or p is None:
        return "cannot tell", difference.reason or "there is no interval"
    alpha = round(1.0 - difference.level, 12)
    small, clear = p < alpha, difference.clear_of_zero
    shown = f"p = {p:.3g}{f' after Holm over {n_pairs} comparisons' if n_pairs > 1 else ''}"
    if difference.low == difference.high == 0.0:
        return "cannot tell", "the two agree equally well with people on every question"
    thin = too_thin(main.strata, metric)
    if thin is not None:
        return "cannot tell", thin
    if not clear:
        return "cannot tell", f"there may be no difference at all ({shown})"
    if not small:
        return (
            "cannot tell",
            f"the interval of this difference alone excludes 0, but {shown} is not below {alpha:.3g}",
        )
    changed = _changed(main, complete)
    if changed:
        return "cannot tell", changed
    higher = difference.low > 0.0
    return (
        "A" if higher == (facts.direction == "more") else "B",
        f"the interval of the difference lies {'above' if higher else 'below'} 0, {shown}",
    )


def _changed(main: PairedDifference, complete: PairedDifference) -> str | None:
    """What the order of the two judges hangs on, where it is another without the unscored items."""
    if main.difference.n_unscored == 0:
        return None
    value, other = main.difference.value or 0.0, complete.difference.value
    if other is None:
        return f"the complete case has no difference to confirm the order ({complete.difference.reason})"
    if other * value < 0.0 and abs(other) > _EPS:
        return (
            f"the order depends on how items without a verdict count: {value:+.3g} as wrong, {other:+.3g} in "
            "the complete case"
        )
    return None


def _planned(main: PairedDifference, *, level: float) -> Planned | None:
    """The planned spread, or the seen one where that is wider (`power` in benchmarks/false_alarms.py)."""
    if main.errors is None or main.difference.low is None:
        return None
    a_error, b_error, seen, df = main.errors
    error, n_groups = max(planned_error(a_error, b_error), seen), main.difference.n_groups
    return Planned(error, main.step, df, n_groups, level, main.skewness)
