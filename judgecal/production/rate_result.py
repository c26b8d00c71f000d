"""What `rate` and `plan` come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from judgecal.production.judge_result import LockedOn
from judgecal.records import Estimate, Result
from judgecal.stats.prediction_powered import DrawSeen


@dataclass(frozen=True, slots=True)
class Bounds:
    """The rate were every unscored row wrong, and were every one right, as the ends of the interval make
    it."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ShiftSeen:
    """Whether the labels contradict the error rates of the lock; rates: name -> {locked, now}."""

    contradicts: bool
    p_value: float | None
    rates: Mapping[str, Mapping[str, Estimate]]


@dataclass(frozen=True, slots=True)
class Pair:
    """A mean as the judge's verdicts have it, and corrected."""

    raw: Estimate
    corrected: Estimate


@dataclass(frozen=True, slots=True)
class RateOf:
    """The rate of the rows with one value of the column that they are compared by."""

    value: str
    n: int
    n_labelled: int
    raw: Estimate
    corrected: Estimate


@dataclass(frozen=True, slots=True)
class RateDifference:
    """The corrected rate of one value less that of another."""

    a: str
    b: str
    difference: Estimate


@dataclass(frozen=True, slots=True)
class NextLabels:
    """So many more labels would give about this half width."""

    n: int
    half_width: float


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The half width that n labels give: alone, with the judge's verdicts, and drawn by strata of them."""

    n: int
    plain: float
    with_judge: float
    stratified: float | None


@dataclass(frozen=True, slots=True)
class Escalated:
    """Which rows a person must read.

    Attributes:
        target: the agreement that is promised on the others.
        share: of the rows that the judge keeps, 0..1; 0 where no threshold is shown to keep the promise.
        agreement: of judge and people on these.
        threshold: rows of at least this confidence are kept.
        n_rows: rows that a person must read.
        labels_needed: labels that would show a threshold, where none is shown; None where it looks as if none
            would.
        sheet: where these rows were written, where that was asked for.
    """

    target: float
    share: float
    agreement: Estimate | None
    threshold: float | None
    n_rows: int
    labels_needed: int | None
    sheet: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateResult(Result):
    """What share of judged rows is right; where people's labels have no pass mark, what their mean is."""

    experiment: str
    lock: str
    judge: str
    gold: LockedOn
    input: str
    labels: str | None  # the set that the labels are of
    n: int
    n_unscored: int
    n_labelled: int
    columns: Mapping[str, str]  # what is read -> the column of the table
    typed: Mapping[str, str]  # those of them that the table does not tell itself
    what: str  # "share", 0..1; or "mean", on the people's scale
    scale: str
    pass_at: float | None
    raw: Estimate
    corrected: Estimate
    plain: Estimate | None  # from the labels alone
    method: str
    assumes: tuple[str, ...]
    warning: str | None  # why there is nothing to correct by: the judge is no better than chance
    shift: ShiftSeen | None
    drawn: DrawSeen | None  # None without labels
    bounds: Bounds | None  # None where every row has a verdict
    correlation: float | None  # of labels and verdicts
    mean: Pair | None  # of graded labels beside their share
    by_column: str | None
    by: tuple[RateOf, ...]
    differences: tuple[RateDifference, ...]
    labels_saved: int | None
    next_labels: NextLabels | None
    curve: tuple[CurvePoint, ...]
    escalate: Escalated | None
    notes: tuple[str, ...]
    run_line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult(Result):
    """How many labels a rate takes, from what the lock knows of its judge."""

    experiment: str
    lock: str
    judge: str
    gold: LockedOn
    half_width: float
    labels_plain: int
    labels_with_judge: int
    labels_stratified: int | None
    correlation: Estimate | None  # of labels and verdicts, on the lock's gold set
    labels_at_ends: tuple[int, int] | None  # with the judge at the ends of that interval
    right: float  # the share that was right there
    curve: tuple[CurvePoint, ...]
    assumes: tuple[str, ...]
    notes: tuple[str, ...]
    run_line: str
