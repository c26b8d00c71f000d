"""What `score` and `agreement` come to: the objects of their JSON, read by reports and selection alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from judgecal.records import Estimate, Result
from judgecal.stats.metrics import metric_facts
from judgecal.stats.stand_in import MIN_SHARED, Nearer, StandIn


@dataclass(frozen=True, slots=True)
class Latency(Result):
    """Seconds a call took, the median and the 95th percentile; None where nothing was timed."""

    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Tokens(Result):
    """Tokens of all calls together; None where no call told them."""

    prompt: int | None
    completion: int | None


@dataclass(frozen=True, slots=True)
class Entry(Result):
    """A line of the agreement table: a judge, a part of the floor, or a rater."""

    judge: str
    n: int  # judgements with a verdict, asked for, and without one
    n_expected: int
    n_unscored: int
    agreement: dict[str, Estimate]  # METRIC -> Estimate over the scored items
    as_wrong: dict[
        str, Estimate
    ]  # the same with an unscored item counted as the verdict farthest from its label
    latency_s: Latency
    usd_per_1k: float | None  # None where it is not known, which is never 0
    tokens: Tokens
    unit: str  # the scale that mae, rmse and bias are in units of
    unscored: dict[str, int]  # why judgements have no verdict -> how many
    # as `as_wrong`, through the map fitted on other questions; empty without an order or with too few
    # questions
    calibrated: dict[str, Estimate]

    def decided_by(self, metric: str) -> Estimate:
        """The number that the judge is decided by: calibrated where a metric asks for that and it can be."""
        mapped = metric_facts(metric).calibrated and metric in self.calibrated
        return (self.calibrated if mapped else self.as_wrong)[metric]


@dataclass(frozen=True, slots=True)
class Retest(Result):
    """How a judge agrees with itself over its repeats, as `stats.repeatability` says it."""

    repeats: int
    n_items: int
    exact_agreement: Estimate
    flip_rate: Estimate | None  # None without a pass mark and classes
    all_cached: bool  # every reply was made before


@dataclass(frozen=True, slots=True)
class AltTestEntry(Result):
    """The alternative annotator test by what is granted (epsilon as text), and the raters behind it."""

    winning_rate: dict[str, float | None]
    passed: dict[str, bool | None]
    rejected: dict[str, tuple[str, ...]]
    p_values: dict[str, dict[str, float | None]]
    advantage_probability: float | None
    nearer: dict[str, Nearer]
    n_items: dict[str, int]
    left_out: dict[str, str]
    n_expected: int
    n_unscored: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class JudgeEntry(Entry):
    """A judge with what explains its numbers."""

    kind: str  # `prompt`, `local` or `python`; `recorded` where its verdicts came with the data
    retest: Retest | None = None  # of its repeats; None where there are none
    stand_in: StandIn | None = None  # beside each rater, both against the others; None with fewer than two
    alt_test: AltTestEntry | None = None  # the alternative annotator test; None likewise
    # of a judge of pairs: the share of its verdicts other than tie that prefer the answer shown first, 0.5
    # where that is of no account; and the share of pairs on which both orders name the same content: tie and
    # tie do, tie and an answer do not
    first_place: Estimate | None = None
    consistent: Estimate | None = None


@dataclass(frozen=True, slots=True)
class RaterEntry(Entry):
    """A rater against the others, and under `judges` the judges on the same items against the same labels."""

    against: str
    judges: tuple[Entry, ...]

    @property
    def enough(self) -> bool:
        """Whether it rests on enough items for a short table and the headline."""
        return self.n >= MIN_SHARED


@dataclass(frozen=True, slots=True)
class GoldSummary(Result):
    """What a result was measured on."""

    set: str
    sha256: str
    split: str
    n_items: int  # labelled ones asked for, and their questions
    n_groups: int
    n_unlabelled: int  # items of the split without a gold label
    n_tied: int  # of them: their ratings tie, so that they stand where judges meet raters, and nowhere else
    n_test_items: int
    labels_by: str
    scale: str
    pass_at: float | None
    noun: str = "answers"  # or pairs: what its items are

    @property
    def in_words(self) -> str:
        """The whole of it, without a full stop."""
        mark = f", pass at {self.pass_at:g}" if self.pass_at is not None else ""
        return (
            f"{self.set}@{self.sha256[:12]}, split {self.split}: {self.n_items:,} items on {self.n_groups:,} "
            f"questions, {self.scale} labels{labelled_by(self.labels_by)}{mark}"
        )

    @property
    def ties_in_words(self) -> str:
        """`12 of 120 answers (10%) on which raters tie`; empty where they tie on none."""
        n_all = self.n_items + self.n_tied
        share = f"{self.n_tied:,} of {n_all:,} {self.noun} ({self.n_tied / n_all:.0%})" if self.n_tied else ""
        return f"{share} on which raters tie" if share else ""

    @property
    def unscored_counts_as(self) -> str:
        return unscored_counts_as(self.scale)


def labelled_by(labels_by: str) -> str:
    """Who gave the labels, to stand behind the word; empty where the card does not say."""
    return {"people": " by people", "project": " by the project itself, not by people"}.get(labels_by, "")


def unscored_counts_as(scale: str) -> str:
    """What an unscored item counts as where judges are ranked, on the scale of the labels."""
    return "a wrong verdict" if scale == "nominal" else "the verdict farthest from its label"


@dataclass(frozen=True, slots=True)
class SliceEntry(Result):
    """A judge on the open items that share a trait, held against all others (`stats.slices`)."""

    judge: str
    trait: str
    value: str
    n: int  # items with a verdict, and their questions
    n_groups: int
    error: Estimate  # share of wrong verdicts; of graded labels verdict less label, in units of their scale
    p_value: float  # of no difference from all others, by itself
    stands_out: bool  # by Holm over all slices
    rest: float = field(default=0.0, metadata={"json": False})  # the error of all others

    @property
    def mark(self) -> str:
        """What its items are found by in the explorer."""
        return f"{self.trait}:{self.value}"


@dataclass(frozen=True, slots=True)
class TableRate(Result):
    """A judge's mean verdict on all rows of a table (the share that passes, where labels are yes and no)
    beside people's on those that they labelled, and the mean that people would give all rows."""

    judge: str
    raw: Estimate
    people: Estimate
    corrected: Estimate
    drawn: bool  # whether the labelled rows are like the others in what the judge says of them


@dataclass(frozen=True, slots=True)
class LabelledTable(Result):
    """The table that labels and verdicts came from, how it was understood, and what keeps it."""

    file: str
    columns: Mapping[str, str]  # what each is taken as
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    rates: tuple[TableRate, ...]  # none of words
    keep: str  # the command


@dataclass(frozen=True, slots=True)
class AgreementResult(Result):
    """What `score` and `agreement` come to."""

    experiment: str
    gold: GoldSummary
    judges: tuple[JudgeEntry, ...]  # in the order asked for
    floor: tuple[Entry, ...]  # the best constant, then `embedded` where it can judge
    raters: tuple[RaterEntry, ...]  # each human against the other humans
    test_looks: int  # decisions taken on the set's test labels so far
    run_line: str
    notes: tuple[str, ...]  # what else the reader must know, without full stops
    floor_reason: str | None = None  # why the embedded model cannot judge
    # humans who are no raters, as they were mostly asked where others differ -> how that shows
    tie_breakers: dict[str, str] = field(default_factory=dict)
    slices: tuple[SliceEntry, ...] = ()  # of the headline's judge, which `selection` knows
    table: LabelledTable | None = None  # of `agreement FILE`
