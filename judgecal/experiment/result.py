"""What `score` and `agreement` come to: the objects of their JSON, read by reports and selection alike."""

from __future__ import annotations

from dataclasses import dataclass, field

from judgecal.records import Estimate, Result
from judgecal.scale import Scale
from judgecal.stats.alt_test import Nearer
from judgecal.stats.breakdown import Part, part_metric
from judgecal.stats.metrics import metric_facts
from judgecal.stats.retest import Repeats
from judgecal.stats.stand_in import MIN_SHARED, StandIn


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
    """A line of the agreement table: a judge, a part of the floor, or a rater.

    Attributes:
        n, n_expected, n_unscored: judgements with a verdict, asked for, and without one.
        agreement: metric -> estimate over the scored items.
        as_wrong: the same with an unscored item counted as the verdict farthest from its label.
        calibrated: as `as_wrong`, of verdicts through the map that was fitted on other questions; empty where
            labels have no order, or questions are too few.
        latency_s, usd_per_1k, tokens: what it takes; a price that is not known is None, never 0.
        unit: the scale that mae, rmse and bias are in units of.
        unscored: why judgements have no verdict -> how many.
    """

    judge: str
    n: int
    n_expected: int
    n_unscored: int
    agreement: dict[str, Estimate]
    as_wrong: dict[str, Estimate]
    latency_s: Latency
    usd_per_1k: float | None
    tokens: Tokens
    unit: str
    unscored: dict[str, int]
    calibrated: dict[str, Estimate]

    def decided_by(self, metric: str) -> Estimate:
        """The number that the judge is decided by: once calibrated where a metric asks for that and it can
        be."""
        asked = metric_facts(metric).calibrated and metric in self.calibrated
        return (self.calibrated if asked else self.as_wrong)[metric]


@dataclass(frozen=True, slots=True)
class PartEntry(Result):
    """A judge on one tag or system: counts, no test. `mean_agreement` where labels have an order, else
    `accuracy`."""

    n: int
    n_expected: int
    n_unscored: int
    mean_agreement: Estimate | None
    accuracy: Estimate | None
    passes: int | None
    fails: int | None
    false_passes: int | None
    false_fails: int | None

    @classmethod
    def of(cls, part: Part, people: Scale) -> PartEntry:
        """What the statistics say of a part."""
        graded = part_metric(people) == "mean_agreement"
        mean, share = (part.agreement, None) if graded else (None, part.agreement)
        counts = (part.passes, part.fails, part.false_passes, part.false_fails)
        return cls(part.n, part.n_expected, part.n_unscored, mean, share, *counts)

    @property
    def value(self) -> Estimate:
        """The one of the two estimates that the scale has."""
        found = self.mean_agreement or self.accuracy
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class Retest(Result):
    """How a judge agrees with itself over its repeats, as `stats.repeatability` says it.

    `flip_rate` is None without a pass mark and classes; `all_cached`: every reply was made before.
    """

    repeats: int
    n_items: int
    exact_agreement: Estimate
    unanimous: Estimate
    flip_rate: Estimate | None
    within_item_sd: Estimate
    within_item_sd_share: Estimate
    icc_1_1: Estimate
    expected: tuple[Repeats, ...]
    enough: int | None
    why: str
    all_cached: bool
    unit: str


@dataclass(frozen=True, slots=True)
class AltTestEntry(Result):
    """The alternative annotator test by what is granted (epsilon as text), and the raters that it rests
    on."""

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
    """A judge with what explains its numbers.

    Attributes:
        kind: `prompt`, `local` or `python`; `recorded` where its verdicts came with the data.
        by_tag, by_system: name -> part, the worst first.
        best_case: the leading metric with unscored items counted as right; None where all have a verdict.
        retest: of its repeats; None where there are none.
        limits_of_agreement: `bias`, `lower`, `upper`; None where labels are not graded.
        stand_in: beside each rater, both against the other raters; None where the set has fewer than two.
        alt_test: the alternative annotator test; None likewise.
        with_mean: Pearson's r, Spearman's rho and Lin's concordance with the mean of each item's raters,
            where the gold label is their median and that differs; else None.
    """

    kind: str
    by_tag: dict[str, PartEntry]
    by_system: dict[str, PartEntry]
    best_case: dict[str, Estimate] | None = None
    retest: Retest | None = None
    limits_of_agreement: dict[str, Estimate] | None = None
    stand_in: StandIn | None = None
    alt_test: AltTestEntry | None = None
    with_mean: dict[str, Estimate] | None = None


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
    """What a result was measured on: labelled items asked for, their questions, how many of them are test
    items.

    `n_unlabelled` are the items of the split without a gold label; of them, `n_tied` have ratings that tie:
    they stand where raters and judges are held against raters, and nowhere else.
    """

    set: str
    sha256: str
    split: str
    n_items: int
    n_groups: int
    n_unlabelled: int
    n_tied: int
    n_test_items: int
    labels_by: str
    scale: str
    pass_at: float | None

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
        of = self.n_items + self.n_tied
        return (
            f"{self.n_tied:,} of {of:,} answers ({self.n_tied / of:.0%}) on which raters tie"
            if self.n_tied
            else ""
        )

    @property
    def unscored_counts_as(self) -> str:
        """What an unscored item counts as where judges are ranked."""
        return unscored_counts_as(self.scale)


def labelled_by(labels_by: str) -> str:
    """Who gave the labels, to stand behind the word; empty where the card does not say."""
    return {"people": " by people", "project": " by the project itself, not by people"}.get(labels_by, "")


def unscored_counts_as(scale: str) -> str:
    """What an unscored item counts as where judges are ranked, on the scale of the labels."""
    return "a wrong verdict" if scale == "nominal" else "the verdict farthest from its label"


@dataclass(frozen=True, slots=True)
class AgreementResult(Result):
    """What `score` and `agreement` come to.

    Attributes:
        judges: in the order asked for.
        floor: the best constant, then `embedded` where it can judge; `floor_reason` says why it cannot.
        raters: each human against the other humans.
        tie_breakers: humans who are none of them, as they were mostly asked where others differ -> how that
            shows.
        test_looks: decisions taken on the set's test labels so far.
        notes: what else the reader must know, without full stops.
    """

    experiment: str
    gold: GoldSummary
    judges: tuple[JudgeEntry, ...]
    floor: tuple[Entry, ...]
    raters: tuple[RaterEntry, ...]
    test_looks: int
    run_line: str
    notes: tuple[str, ...]
    floor_reason: str | None = None
    tie_breakers: dict[str, str] = field(default_factory=dict)
