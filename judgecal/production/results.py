"""What `judge`, `rate` and `plan` come to: typed, with the keys of their JSON as fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from judgecal.records import Estimate, Result
from judgecal.selection.pass_rates import SystemRates
from judgecal.stats.prediction_powered import DrawSeen


@dataclass(frozen=True, slots=True)
class LockedOn:
    """The gold set and split that a lock was confirmed on."""

    set: str
    sha256: str
    split: str


@dataclass(frozen=True, slots=True)
class JudgedRate:
    """The share that passes by the verdicts as the judge gave them and through its map, or of nominal
    verdicts that of each word: the judge's errors are in all of them.
    """

    raw: Estimate
    calibrated: Estimate
    words: Mapping[str, Estimate]  # the most frequent first; empty where verdicts are numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeResult(Result):
    """What a table judged by a lock comes to."""

    experiment: str
    lock: str
    judge: str
    gold: LockedOn
    input: str  # the tables
    output: str
    columns: Mapping[str, str]  # part of a judgement -> column of the output
    named: Mapping[str, str]  # question, answer, item and group -> columns of the table, where named
    n: int  # rows, and those without a verdict
    n_unscored: int
    systems: tuple[SystemRates, ...]  # by system (all rows alone, where none is named), and of all rows
    overall: SystemRates
    pass_at: float | None
    mapped: bool  # whether the lock has a map from verdicts to the people's scale
    rates: Mapping[str, JudgedRate]
    # of the judge when it was locked, through its map where it has one; None where the lock does not know
    sensitivity: Estimate | None
    specificity: Estimate | None
    note: str
    warning: str | None  # why the rate says nothing: the judge tells right from wrong no better than a coin
    # usd, usd_per_1k: what the rows' calls cost, and what a thousand rows cost where a stored reply counts as
    # if it had been called for; None where some cost is not known
    usd: float | None
    usd_per_1k: float | None
    model_ids: tuple[str, ...]  # the ids that the provider answered as
    notes: tuple[str, ...]
    run_line: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A judge of the suite that judged nothing, and why."""

    name: str
    judge: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRate:
    """What the verdicts of one column come to."""

    column: str
    aggregate: str
    unit: str
    scale: str
    raw: Estimate  # by the judge's own verdicts, 0..1: the share that passes, the mean precision or share
    calibrated: Estimate  # the same through the maps of locks; without a value where a judge has none
    # the mean verdict on the judge's own scale, or as `raw` where that is no share of verdicts
    average: Estimate
    n: int  # rows with a verdict (of a judge of chunks: on one chunk at least), all, and others
    n_expected: int
    n_unscored: int
    n_chunks: int  # of a judge of chunks; else 0
    n_chunks_unscored: int
    words: Mapping[str, int]  # word -> verdicts, on a nominal scale
    shares: Mapping[str, Estimate]  # word -> share of the rows with a verdict, the most frequent first
    unscored: Mapping[str, int]  # kind of failure -> verdicts that could not be had
    judged_by: Mapping[str, int]  # judge -> rows

    @property
    def shown(self) -> Estimate:
        """The rate of a headline: the calibrated one where there is one."""
        return self.raw if self.calibrated.value is None else self.calibrated


@dataclass(frozen=True, slots=True)
class SuiteMember:
    """A judge that ran. `lock`: its lock's path; without one nobody knows whether it agrees with people."""

    name: str
    judge: str
    kind: str
    lock: str | None


@dataclass(frozen=True, slots=True)
class ToLabel:
    """What `gold sheet` needs to draw rows of the table for one judge, so that people's labels can be had for
    it.
    """

    name: str  # the judge without a lock that such rows hold all the inputs of; of several the lowest rate's
    judge: str
    scale: str
    n: int  # how many rows to draw
    columns: Mapping[str, str]  # option -> column, where it is not the default


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult(Result):
    """What a table judged by a suite comes to."""

    experiment: str
    suite: str
    input: str
    output: str
    naming: str
    columns: Mapping[str, Mapping[str, str]]  # judge -> part of its result -> column of the output
    n: int  # rows, and those in which something is unscored
    n_unscored: int
    rates: Mapping[str, SuiteRate]
    metrics: Mapping[str, Estimate]  # the same numbers under the names that a dashboard knows them by
    judges: tuple[SuiteMember, ...]
    left_out: tuple[LeftOut, ...]
    to_label: ToLabel | None  # None where every judge has a lock, or no other's inputs fit on a sheet
    usd: float | None
    usd_per_1k: float | None  # a thousand rows; a stored reply counts as if it had been called for
    model_ids: tuple[str, ...]
    notes: tuple[str, ...]
    run_line: str

    @property
    def unlocked(self) -> tuple[SuiteMember, ...]:
        """Those of which nobody knows whether they agree with people; a rule that calls nobody is what it
        says.
        """
        return tuple(judge for judge in self.judges if judge.lock is None and judge.kind != "local")


# --- rate and plan


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
    """Which rows a person must read."""

    target: float  # the agreement that is promised on the others
    share: float  # of the rows that the judge keeps, 0..1; 0 where no threshold is shown to keep the promise
    agreement: Estimate | None  # of judge and people on these
    threshold: float | None  # rows of at least this confidence are kept
    n_rows: int  # rows that a person must read
    # labels that would show a threshold, where none is shown and some look as if they would
    labels_needed: int | None
    sheet: str | None = None  # where these rows were written, where that was asked for


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
    typed: Mapping[str, str] = field(
        default_factory=dict
    )  # those of them that the table does not tell itself
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
