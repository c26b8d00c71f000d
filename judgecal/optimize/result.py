"""What an optimisation comes to: a candidate chosen on dev, confirmed once on the sealed test split.

Both are decided once calibrated: a candidate that merely uses the scale differently knows no more than the
judge as it was, and a map gives what it gains without another prompt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy
import numpy as np

from judgecal.experiment.agreement import GoldSummary
from judgecal.experiment.agreement_table import AgreementTable, Verdicts, as_lists
from judgecal.experiment.stored import Unread
from judgecal.experiment.verdicts import farthest, traits_of
from judgecal.judges.prompt import PromptJudge
from judgecal.records import RETRIED_ON_RESUME, Estimate, Item, Result
from judgecal.scale import Label
from judgecal.stats import PairedLabels, calibrated_difference, compare_paired
from judgecal.stats.confirmation import Gains, Held
from judgecal.stats.sample import as_scale
from judgecal.stats.significance import MARGIN

BETTER, WORSE, RESCALED_ONLY, CANNOT_TELL = "better", "worse", "rescaled only", "cannot tell"
NOTHING_CHANGED = "nothing changed"

_KINDS = 6  # traits of answers whose changes are counted
_ANSWERS = 5  # that changed sides for the better, and for the worse, which are shown


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate on dev, or the judge as it was."""

    name: str  # `before` of the judge as it was
    n_demos: int
    as_wrong: Estimate  # the deciding metric, an unscored item counted as wrong
    calibrated: Estimate | None  # the same once calibrated; None where that cannot be


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """A candidate, or the judge as it was, with its judgements on dev and what they come to (see `Tried`)."""

    name: str  # `before` of the judge as it was
    judge: PromptJudge
    column: Verdicts
    estimates: dict[str, Estimate]  # by metric
    calibrated: Estimate | None

    @classmethod
    def on(
        cls, dev: AgreementTable, name: str, judge: PromptJudge, column: Verdicts, metric: str
    ) -> ScoredCandidate:
        """From a dev AgreementTable, a name, its PromptJudge, Verdicts and a metric: ScoredCandidate."""
        numbers = dev.agreements(column)
        return cls(name, judge, column, numbers["as_wrong"], numbers["calibrated"].get(metric))

    def tried(self, metric: str) -> Tried:
        """Return the candidate's line in the result, a `Tried`, by a metric."""
        return Tried(self.name, len(self.judge.demos), self.estimates[metric], self.calibrated)

    def value(self, metric: str) -> float:
        """Return the candidate's value on dev in a metric, calibrated if possible; -inf where undefined."""
        value = (self.calibrated or self.estimates[metric]).value
        return -math.inf if value is None else value


def has_lost_calls(column: Verdicts) -> bool:
    """Whether a judge's Verdicts lack some of calls that ended on the wire or at the budget."""
    return any(row.error is not None and row.error.kind in RETRIED_ON_RESUME for row in column.stored)


@dataclass(frozen=True, slots=True)
class Choice:
    """Who was taken, and why in a sentence; `sealed` says why test stays closed: a candidate was ahead by no
    more than luck, or calls were lost."""

    taken: ScoredCandidate
    why: str
    sealed: str | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """The judge as it was and candidates on the same items: a part of dev, or all of it."""

    table: AgreementTable
    scored: Sequence[ScoredCandidate]  # the first is the judge as it was

    def valued(self, metric: str, *, but: ScoredCandidate | None = None) -> list[ScoredCandidate]:
        """Return the list of ScoredCandidates with a value in a metric, without `but`."""
        first = but or self.scored[0]
        return [score for score in self.scored if score is not first and score.value(metric) > -math.inf]

    def gains(self, metric: str, *, over: ScoredCandidate | None = None) -> Gains | None:
        """Return the candidates' gains in a metric over the judge as it was, or over another, as `Gains`."""
        first = over or self.scored[0]
        others = self.valued(metric, but=first)
        if first.value(metric) == -math.inf or not others:
            return None
        table, people = self.table, self.table.gold.scale
        judges = {place: score.column for place, score in enumerate([first, *others])}
        once = table.deciding(judges, calibrated=first.calibrated is not None)
        held = [
            Held(table.labels, verdicts, as_scale(once.scales[place]), table.groups, table.weights)
            for place, verdicts in once.verdicts.items()
        ]
        of_fit = [once.error_of_fit(0, place)[0] for place in range(1, len(judges))]
        return Gains.over(held[0], held[1:], people=people, metric=metric, of_fit=of_fit)

    def shown_worse(self, metric: str, *, level: float = 0.95) -> list[ScoredCandidate]:
        """Return the list of ScoredCandidates shown, at a level, to be worse in a metric than the best."""
        before, *candidates = self.scored
        best = max(self.scored, key=lambda score: score.value(metric))
        worse = [score for score in candidates if score.value(metric) == -math.inf]
        for rival in [best] if best is before else [best, before]:
            gains = self.gains(metric, over=rival)
            if gains is not None:
                shown = zip(self.valued(metric, but=rival), gains.losses_shown(level), strict=True)
                worse += [score for score, is_shown in shown if is_shown]
        return [candidate for candidate in candidates if any(candidate is loser for loser in worse)]


def choose(
    scored: Sequence[ScoredCandidate], metric: str, dev: AgreementTable, dropped: Sequence[Stage] = ()
) -> Choice:
    """Choose among ScoredCandidates by a metric on dev (AgreementTable), luck counted, as a Choice.

    The first of `scored` is the judge as it was, and stays unless another gains more than luck. Luck is what
    the largest gain among as many equal candidates stays below in four of five samples, those that a stage
    dropped after a part of dev (`dropped`, all that ran in it) counted among them. Of equals the one with
    fewer demos is taken. Below ten questions no error is known: nothing is more than luck. On labels without
    order the metric of the verdicts as they are decides.
    """
    before = scored[0]
    once = f"{metric} once calibrated" if before.calibrated else metric
    rising = [score for score in scored[1:] if score.value(metric) > before.value(metric)]
    if not rising:
        return Choice(before, f"no candidate beat the judge as it was in {once}")
    taken = max(rising, key=lambda score: (score.value(metric), -len(score.judge.demos)))
    gains = Stage(dev, scored).gains(metric)
    counted = [score.name for score in scored[1:] if score.value(metric) > -math.inf]
    for stage in reversed(dropped):  # those that ran longest first
        part = stage.gains(metric)
        names = [score.name for score in stage.valued(metric)]
        if gains is not None and part is not None and set(counted) <= set(names):
            out = [name for name in names if name not in counted]
            gains = gains.joined(part, [names.index(name) for name in counted], list(map(names.index, out)))
            counted += out
    luck = None if gains is None else gains.by_luck(dev.seed)
    gain = taken.value(metric) - before.value(metric)
    if luck is not None and gain > luck:
        return Choice(taken, f"it had the highest {once}, and gained more than luck")
    points = f"{taken.name} gained {100.0 * gain:.1f} points of {once} on dev"
    if luck is None:
        why = f"{points}, and on {len(set(dev.groups))} questions that may be luck"
        return Choice(before, "dev shows nothing", why)
    n = len({score.name for stage in (*dropped, Stage(dev, scored)) for score in stage.scored[1:]})
    equal = "one equal candidate" if n == 1 else f"the best of {n} equal candidates"
    why = f"{points}, and in one run of five {equal} gains more than {100.0 * luck:.1f} by luck alone"
    return Choice(before, "dev shows no more than luck", why)


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
    """Return the Confirmation of AgreementTables test and fit, Verdicts before and after, and a metric.

    The maps are fitted on `fit`: items of train and dev, without the questions in either judge's demos.
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
    """Return the Confirmation of a ScoredCandidate before, a Choice and a metric, where test is unread."""
    taken, on_dev = choice.taken, before.estimates[metric]
    if choice.sealed is not None:
        sealed = Estimate(None, reason=f"test stays sealed: {choice.sealed}")
        return Confirmation(OnTest(difference=sealed), CANNOT_TELL, choice.sealed)
    if taken.judge.fingerprint != before.judge.fingerprint:
        return Confirmation(OnTest(), CANNOT_TELL, "test stays sealed (--no-final)")
    why = "we kept the judge as it was"
    if taken.name == before.name:
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
    if ordered and difference.clear_of_zero and deciding.low > -MARGIN and deciding.high < MARGIN:
        rose = (difference.value or 0.0) > 0.0
        gain = "gives the same gain without another prompt" if rose else "takes the loss back"
        small = f"once calibrated it is shown to change by less than {MARGIN:g}"
        return RESCALED_ONLY, f"{metric} {'rose' if rose else 'fell'}, but {small}: the map {gain}"
    return CANNOT_TELL, f"there may be no difference in {once} at all"


@dataclass(frozen=True, slots=True)
class OptimizedProbes:
    """The share of probes of a split that break the judge as it was, and the one that was taken."""

    before: Estimate
    after: Estimate
    difference: Estimate  # after minus before, paired by probe, by question
    families: Mapping[str, tuple[float | None, float | None]]  # share broken of each; None where none could

    @property
    def fewer(self) -> bool:
        """Whether it is shown that fewer probes break the new judge."""
        return self.difference.high is not None and self.difference.high < 0.0


@dataclass(frozen=True, slots=True)
class ProbesOf:
    """The probes of dev, which helped to choose, and those of test; None where test stayed sealed."""

    dev: OptimizedProbes
    test: OptimizedProbes | None


@dataclass(frozen=True, slots=True)
class Prompts:
    """Instructions before and after, and the fields and texts of the examples taken."""

    before: str
    after: str
    demos: tuple[Mapping[str, str], ...]

    @classmethod
    def of(cls, before: dspy.Predict, after: dspy.Predict) -> Prompts:
        """Return Prompts, instructions and examples taken, of two dspy.Predicts: before and after."""
        demos = [
            {
                name.replace("_", " "): f"{value:g}" if isinstance(value, float) else str(value)
                for name, value in dict(demo).items()
            }
            for demo in after.demos
        ]
        return cls(before.signature.instructions, after.signature.instructions, tuple(demos))


@dataclass(frozen=True, slots=True)
class ChangedAnswer:
    """A dev answer on which the judge changed sides: people's label, and its verdict before and after."""

    item_id: str
    question: str
    answer: str
    label: Label
    before: Label | None
    after: Label | None
    better: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """Dev answers on which the judge that was taken changed sides, by the verdicts that describe it.

    Attributes:
        kinds: trait of answers -> how many got better and how many worse, the most changes first.
        answers: at most five that got better and five that got worse, the farthest from the label first.
    """

    n_better: int
    n_worse: int
    kinds: dict[str, tuple[int, int]]
    answers: tuple[ChangedAnswer, ...]

    @classmethod
    def between(cls, dev: AgreementTable, before: Verdicts, after: Verdicts) -> Changes:
        """From dev (AgreementTable), Verdicts before and after, return Changes: answers where they part."""
        (_, was_wrong, was_apart), (_, wrong, apart) = farthest(dev, before), farthest(dev, after)
        old, new = (as_lists(dev.described(judge)[0]) for judge in (before, after))
        at = np.flatnonzero(was_wrong != wrong)
        at = at[np.argsort(-np.maximum(was_apart, apart)[at], kind="stable")]
        items = [dev.items[place] for place in at.tolist()]
        changed = [
            ChangedAnswer(
                item.item_id,
                item.question,
                item.answered,
                dev.gold.labels[item.item_id],
                old[place][0],
                new[place][0],
                better=bool(was_wrong[place]),
            )
            for place, item in zip(at.tolist(), items, strict=True)
        ]
        better = [answer for answer in changed if answer.better]
        worse = [answer for answer in changed if not answer.better]
        traits = traits_of(items)
        kinds = {
            f"{trait}: {value}": (n := sum(changed[at].better for at in places), len(places) - n)
            for (trait, value), places in sorted(traits.items(), key=lambda kind: -len(kind[1]))[:_KINDS]
        }
        return cls(len(better), len(worse), kinds, (*better[:_ANSWERS], *worse[:_ANSWERS]))


@dataclass(frozen=True, slots=True)
class OnDev(BeforeAfter):
    """Metric -> Estimate of the judge before and after, and everything that was tried."""

    candidates: tuple[Tried, ...]


@dataclass(frozen=True, slots=True)
class OptimizeResult(Result):
    """What `optimize` came to."""

    experiment: str
    optimizer: str
    reflection_model: str | None  # alias; None where nobody wrote instructions
    judge: str  # that it made, `signature@model#experiment`
    metric: str  # what was climbed and decided on
    gold: GoldSummary  # of test, or of dev where test stayed sealed
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
    prompts: Prompts
    changes: Changes | None = None  # None where the judge stays as it was
    unread: Unread | None = None  # why, where the judge had no verdict on dev, and no candidate either
    probes: ProbesOf | None = None  # where probes were learnt from

    @property
    def judge_before(self) -> str:
        """The judge as it was."""
        return self.judge.partition("#")[0]


@dataclass(frozen=True, slots=True)
class Finish:
    """Who reached the end of dev, the judge as it was first, and the stages after which some were dropped."""

    scored: Sequence[ScoredCandidate]
    stages: Sequence[Stage]

    @property
    def everybody(self) -> list[ScoredCandidate]:
        """All candidates ever scored, each as far as it went, behind the judge as it was."""
        runs = [*(stage.scored for stage in self.stages), self.scored]
        last = {candidate.name: candidate for scored in runs for candidate in scored[1:]}
        return [self.scored[0], *last.values()]


Scorer = Callable[[int | None, AgreementTable], ScoredCandidate]  # None: the judge as it was


def race(
    dev: AgreementTable,
    parts: Sequence[Sequence[Item]],
    candidates: Sequence[int],
    score: Scorer,
    *,
    metric: str,
    go_on: Sequence[int],
) -> Finish:
    """Race candidates (numbers) on a dev AgreementTable, its parts, by Scorer, metric and go_on: a Finish.

    At most `go_on` candidates run after each lap but the last; one that lost calls goes no further.
    """
    before, stages, items, running = score(None, dev), list[Stage](), tuple[Item, ...](), [*candidates]
    for lap, part in enumerate(parts):
        items += tuple(part)
        whole = lap == len(parts) - 1
        table = dev if whole else AgreementTable(dev.gold, items, dev.repeats, dev.seed, dev.level)
        ran = {number: score(number, table) for number in running}
        scored = {number: ran[number] for number in running if not has_lost_calls(ran[number].column)}
        if whole:
            return Finish([before, *scored.values()], stages)
        stage = Stage(table, [score(None, table), *scored.values()])
        worse = stage.shown_worse(metric)
        able = [number for number in scored if not any(scored[number] is loser for loser in worse)]
        able.sort(key=lambda number: -scored[number].value(metric))
        running = sorted(able[: go_on[lap]])
        if len(running) < len(scored):
            stages.append(stage)
    return Finish([before], stages)
