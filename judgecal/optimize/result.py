"""What an optimisation comes to: a candidate chosen on dev, confirmed once on the sealed test split.

Both are decided once calibrated: a candidate that merely uses the scale differently knows no more than the
judge as it was, and a map gives what it gains without another prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgecal.artefacts import read_json
from judgecal.errors import InputError
from judgecal.experiment import AgreementTable, Experiment, Verdicts
from judgecal.experiment.folder import kept_judges
from judgecal.experiment.result import labelled_by, unscored_counts_as
from judgecal.experiment.stored import Unread
from judgecal.judges.module import joined_instructions
from judgecal.optimize.programs import Optimised
from judgecal.optimize.training import Candidate
from judgecal.records import Estimate, Result
from judgecal.stats import PairedLabels, calibrated_difference, compare_paired
from judgecal.stats.confirmation import Held, gain_by_luck
from judgecal.stats.sample import as_scale
from judgecal.stats.significance import MARGIN

BETTER, WORSE, RESCALED_ONLY, CANNOT_TELL = "better", "worse", "rescaled only", "cannot tell"
NOTHING_CHANGED = "nothing changed"


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate on dev, or the judge as it was."""

    name: str  # `before` of the judge as it was
    n_demos: int
    judge_fingerprint: str
    rated_in_training: int  # replies that its making asked for
    unusable_in_training: int  # those of them without a verdict
    as_wrong: Estimate  # the deciding metric, an unscored item counted as wrong
    calibrated: Estimate | None  # the same once calibrated; None where that cannot be


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """A candidate, or the judge as it was, with its judgements on dev and what they come to (see `Tried`)."""

    candidate: Candidate | None
    judge: Optimised
    column: Verdicts
    estimates: dict[str, Estimate]  # by metric
    calibrated: Estimate | None

    @classmethod
    def on(
        cls, dev: AgreementTable, candidate: Candidate | None, judge: Optimised, column: Verdicts, metric: str
    ) -> ScoredCandidate:
        """One candidate's judgements held against the people."""
        numbers = dev.agreements(column)
        return cls(candidate, judge, column, numbers["as_wrong"], numbers["calibrated"].get(metric))

    @property
    def name(self) -> str:
        """The candidate's name, or `before`."""
        return self.candidate.name if self.candidate else "before"

    @property
    def trained_on(self) -> frozenset[str]:
        """The groups whose labels its judge carries."""
        return self.candidate.trained_on if self.candidate else frozenset()

    def tried(self, metric: str) -> Tried:
        """What the result says of it."""
        return Tried(
            name=self.name,
            n_demos=len(self.judge.demos),
            judge_fingerprint=self.judge.fingerprint,
            rated_in_training=self.candidate.rated if self.candidate else 0,
            unusable_in_training=self.candidate.unusable if self.candidate else 0,
            as_wrong=self.estimates[metric],
            calibrated=self.calibrated,
        )

    def value(self, metric: str) -> float:
        """What decides on dev: the metric, calibrated where it can be; below everything where undefined."""
        value = (self.calibrated or self.estimates[metric]).value
        return float("-inf") if value is None else value


@dataclass(frozen=True, slots=True)
class Choice:
    """Who was taken, and why in a sentence; `sealed` says why test stays closed: a candidate was ahead by no
    more than luck, or calls were lost."""

    taken: ScoredCandidate
    why: str
    sealed: str | None = None


def choose(scored: Sequence[ScoredCandidate], metric: str, dev: AgreementTable) -> Choice:
    """Take one; the first of `scored` is the judge as it was, and stays unless another gains more on dev than
    luck.

    Luck is what the largest gain among as many equal candidates stays below in four of five samples. Of
    equals the one with fewer demos is taken. Below ten questions no error is known, so that nothing is more
    than luck. On labels without order the metric of the verdicts as they are decides.
    """
    before = scored[0]
    once = f"{metric} once calibrated" if before.calibrated else metric
    rising = [score for score in scored[1:] if score.value(metric) > before.value(metric)]
    if not rising:
        return Choice(before, f"no candidate beat the judge as it was in {once}")
    taken = max(rising, key=lambda score: (score.value(metric), -len(score.judge.demos)))
    luck = _luck([score for score in scored if score.value(metric) > float("-inf")], metric, dev)
    gain = taken.value(metric) - before.value(metric)
    if luck is not None and gain > luck:
        return Choice(taken, f"it had the highest {once}, and gained more than luck")
    n, points = len(scored) - 1, f"{taken.name} gained {100.0 * gain:.1f} points of {once} on dev"
    if luck is None:
        why = f"{points}, and on {len(set(dev.groups))} questions that may be luck"
        return Choice(before, "dev shows nothing", why)
    equal = "one equal candidate" if n == 1 else f"the best of {n} equal candidates"
    why = f"{points}, and in one run of five {equal} gains more than {100.0 * luck:.1f} by luck alone"
    return Choice(before, "dev shows no more than luck", why)


def _luck(scored: Sequence[ScoredCandidate], metric: str, dev: AgreementTable) -> float | None:
    """`gain_by_luck` over the first of them; None where that one has no value of its own."""
    if scored[0].candidate is not None:
        return None
    judges, people = {place: score.column for place, score in enumerate(scored)}, dev.gold.scale
    once = dev.deciding(judges, calibrated=scored[0].calibrated is not None, repeats=lambda _: dev.repeats)
    before, *others = (
        Held(dev.labels, verdicts, as_scale(once.scales[place]), dev.groups, dev.weights)
        for place, verdicts in once.verdicts.items()
    )
    of_fit = [once.error_of_fit(0, place)[0] for place in range(1, len(scored))]
    return gain_by_luck(before, others, people=people, metric=metric, of_fit=of_fit, seed=dev.seed)


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """Metric -> Estimate of the judge as it was, and of the one that was taken."""

    before: dict[str, Estimate]
    after: dict[str, Estimate]


@dataclass(frozen=True, slots=True)
class OnTest:
    """The numbers on test; all None where test stayed sealed.

    `before`, `after` (metric -> Estimate) and what is made of them count an unscored item as the verdict
    farthest from its label; `complete_case` leaves it out.
    """

    before: dict[str, Estimate] | None = None
    after: dict[str, Estimate] | None = None
    difference: Estimate | None = None  # after minus before in the metric, paired, by group
    # the same once both are calibrated by maps from train and dev
    difference_recalibrated: Estimate | None = None
    p_value: float | None = None  # None where there are too few groups too
    complete_case: BeforeAfter | None = None
    calibrated: BeforeAfter | None = None  # through those maps; None where labels have no order


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What the test split says: the numbers, a decision (better, worse, rescaled only ...), and why."""

    numbers: OnTest
    decision: str
    why: str


def confirm(
    *, test: AgreementTable, fit: AgreementTable, before: Verdicts, after: Verdicts, metric: str
) -> Confirmation:
    """Hold two judges against each other on test.

    Args:
        test: the test items, at the level that this look is shown at.
        fit: train and dev items, without the questions in either judge's demos; the maps are fitted there.
        before, after: both judges' judgements over test and fit items.
        metric: what decides; a mean such as macro_agreement.
    """
    earlier, later = test.agreements(before), test.agreements(after)
    on_fit, pairs = (
        PairedLabels(table.labels, table.verdicts(after), table.verdicts(before), table.groups)
        for table in (fit, test)
    )
    scales = {"scale": test.gold.scale, "a_scale": after.scale, "b_scale": before.scale}
    shared: dict[str, Any] = {**scales, "metric": metric, "level": test.level, "seed": test.seed}
    paired = compare_paired(pairs.gold, pairs.a, pairs.b, groups=pairs.groups, **shared)
    why_not, through, ordered = "labels without an order cannot be rescaled", None, test.gold.scale.numeric
    recalibrated = Estimate(None, level=test.level, reason=why_not)
    if ordered:
        recalibrated = calibrated_difference(on_fit, pairs, **shared)
        maps = [fit.calibration(column, fitted_on="train and dev") for column in (before, after)]
        through = BeforeAfter(test.through(maps[0], before), test.through(maps[1], after))
    numbers = OnTest(
        before=earlier["as_wrong"],
        after=later["as_wrong"],
        difference=paired.difference,
        difference_recalibrated=recalibrated,
        p_value=paired.p_value,
        complete_case=BeforeAfter(earlier["agreement"], later["agreement"]),
        calibrated=through,
    )
    return Confirmation(numbers, *_decide(paired.difference, recalibrated, metric, ordered=ordered))


def unconfirmed(before: ScoredCandidate, choice: Choice, metric: str) -> Confirmation:
    """Nothing of test, and why it was not looked at; luck and lost calls are why there is no difference."""
    taken, on_dev = choice.taken, before.estimates[metric]
    if choice.sealed is not None:
        sealed = Estimate(None, reason=f"test stays sealed: {choice.sealed}")
        return Confirmation(OnTest(difference=sealed), CANNOT_TELL, choice.sealed)
    if taken.judge.fingerprint != before.judge.fingerprint:
        return Confirmation(OnTest(), CANNOT_TELL, "test stays sealed (--no-final)")
    why = "we kept the judge as it was"
    if taken.candidate is None:
        why = "no candidate was better on dev, so the judge stays as it was"
        if on_dev.value is None:
            why = f"dev cannot choose ({on_dev.reason}), so the judge stays as it was"
    return Confirmation(OnTest(), NOTHING_CHANGED, why)


def _decide(difference: Estimate, calibrated: Estimate, metric: str, *, ordered: bool) -> tuple[str, str]:
    """By the difference once calibrated; on labels without order by the difference as it is."""
    deciding, once = (calibrated, f"{metric} once calibrated") if ordered else (difference, metric)
    if deciding.low is None or deciding.high is None:
        return CANNOT_TELL, f"{once}: {deciding.reason or 'there is no interval'}"
    if deciding.low > 0.0:
        return BETTER, f"{once} rose, and its interval lies above 0"
    if deciding.high < 0.0:
        return WORSE, f"{once} fell, and its interval lies below 0"
    if not (ordered and difference.clear_of_zero):
        return CANNOT_TELL, f"there may be no difference in {once} at all"
    rose = (difference.value or 0.0) > 0.0
    if deciding.low > -MARGIN and deciding.high < MARGIN:
        gain = "gives the same gain without another prompt" if rose else "takes the loss back"
        small = f"once calibrated it is shown to change by less than {MARGIN:g}"
        return RESCALED_ONLY, f"{metric} {'rose' if rose else 'fell'}, but {small}: the map {gain}"
    seen = "better, perhaps only in scale" if rose else "worse, perhaps only in scale"
    return CANNOT_TELL, (
        f"{seen}: {metric} {'rose' if rose else 'fell'} with an interval clear of 0, and once calibrated its "
        "interval holds 0"
    )


@dataclass(frozen=True, slots=True)
class OptimizedProbes:
    """The share of probes of a split that break the judge as it was, and the one that was taken: of the
    families that broke it on train, which are to be mended."""

    before: Estimate
    after: Estimate
    difference: Estimate  # after minus before, paired by probe, by question
    families: Mapping[str, tuple[float | None, float | None]]  # share broken of each; None where none could
    weak: tuple[str, ...] = ()  # those that are to be mended; all where none is named

    @property
    def fewer(self) -> bool:
        """Whether it is shown that fewer break it."""
        return self.difference.high is not None and self.difference.high < 0.0


@dataclass(frozen=True, slots=True)
class ProbesOf:
    """The probes of dev, which helped to choose, and those of test; None where test stayed sealed."""

    dev: OptimizedProbes
    test: OptimizedProbes | None


@dataclass(frozen=True, slots=True)
class OptimizedOn:
    """The gold set, and what each split that was used holds."""

    set: str
    sha256: str
    scale: str
    labels_by: str
    n_items: dict[str, int]
    n_groups: dict[str, int]

    @property
    def in_words(self) -> str:
        """The whole of it, without a full stop."""
        parts = [
            f"{split} {n:,} items on {self.n_groups[split]:,} questions" for split, n in self.n_items.items()
        ]
        return (
            f"{self.set}@{self.sha256[:12]}: {', '.join(parts)}; {self.scale} "
            f"labels{labelled_by(self.labels_by)}"
        )

    @property
    def unscored_counts_as(self) -> str:
        """What an unscored item counts as."""
        return unscored_counts_as(self.scale)


@dataclass(frozen=True, slots=True)
class OnDev:
    """Metric -> Estimate of the judge before and after, and everything that was tried."""

    before: dict[str, Estimate]
    after: dict[str, Estimate]
    candidates: tuple[Tried, ...]


@dataclass(frozen=True, slots=True)
class OptimizeResult(Result):
    """What `optimize` came to."""

    experiment: str
    optimizer: str
    reflection_model: str | None  # alias; None where nobody wrote instructions
    judge: str  # that it made, `signature@model#experiment`
    metric: str  # what was climbed and decided on
    gold: OptimizedOn
    dev: OnDev
    test: OnTest
    decision: str  # better, worse, rescaled only, cannot tell or nothing changed
    why: str
    program: str  # path of the compiled program
    n_demos: int
    instructions_changed: bool
    chosen: str  # the candidate that was taken on dev
    choice: str  # why
    test_looks: int  # decisions on these test labels so far
    test_look: str | None  # this one in words, None where test stayed sealed
    usd: float  # spent by all runs of this experiment
    notes: tuple[str, ...]
    run_line: str
    unread: Unread | None = None  # why, where the judge had no verdict on dev, and no candidate either
    probes: ProbesOf | None = None  # where probes were learnt from

    @property
    def judge_before(self) -> str:
        """The judge as it was."""
        return self.judge.partition("#")[0]


@dataclass(frozen=True, slots=True)
class Prompts:
    """Instructions before (None where nobody wrote them down) and after, and the demos' fields and texts."""

    before: str | None
    after: str
    demos: tuple[Mapping[str, str], ...]


def read_prompts(experiment: Experiment) -> Prompts:
    """The prompt of an optimised judge, from its compiled program."""
    path = experiment.program
    try:
        program = read_json(path, absent="there is no compiled program here")
        parts = {"": program} if "demos" in program else program
        states = {name: of for name, of in parts.items() if isinstance(of, dict) and "demos" in of}
        after = {name: str(of["signature"]["instructions"]) for name, of in states.items()}
        demos = [
            {
                name.replace("_", " "): f"{value:g}" if isinstance(value, float) else str(value)
                for name, value in demo.items()
            }
            for of in states.values()
            for demo in of["demos"]
        ]
    except (OSError, InputError, ValueError, KeyError, TypeError) as error:
        how = "delete it and run the same command again"
        raise InputError(f"{path}: the compiled program cannot be read ({error}); {how}") from error
    before = kept_judges(experiment).get(str(experiment.config["judges"][0]["judge"]))
    return Prompts(before.instructions if before else None, joined_instructions(after), tuple(demos))
