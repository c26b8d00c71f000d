"""What `select` comes to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from judgecal.errors import listed
from judgecal.experiment import GoldSummary, Judgements, Table, looks_so_far, run_line, scale_notes, summary_of_gold
from judgecal.experiment.floor import constant_entry
from judgecal.experiment.people import judge_beside_people
from judgecal.records import Estimate, Result
from judgecal.selection.choice import Choice, MeasuredJudge, in_words
from judgecal.selection.confirm import Confirmed, SelectRequest
from judgecal.selection.lock import Lock, Noise, model_ids
from judgecal.stats import Calibration
from judgecal.stats.simultaneous import Losses
from judgecal.stats.stand_in import StandIn

JudgeVerdict = Literal["chosen", "within the margin", "not shown", "below the floor", "over the caps"]
_REJECTED = ("not shown", "below the floor", "over the caps")


@dataclass(frozen=True, slots=True)
class RejectedJudge:
    """A judge that is not within the margin, and why."""

    judge: str
    why: str


@dataclass(frozen=True, slots=True)
class JudgeOnOpen:
    """One judge on the items that it is chosen on."""

    judge: str
    n: int  # judgements with a verdict, asked for, and without
    n_expected: int
    n_unscored: int
    value: Estimate  # the metric that decides, an unscored item counted as wrong; and as it is, without such items
    complete_case: Estimate
    loss: float | None  # against the best seen, and the bound of the loss against whoever is truly best
    loss_at_most: float | None
    reason: str | None  # why there is no bound, or which caps it is over
    usd_per_1k: float | None  # of a judgement; None where not known
    p95_s: float | None
    verdict: JudgeVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectResult(Result):
    """What a selection comes to."""

    experiment: str
    chosen_from: str
    # the judge, None where nobody is within the caps and above the floor; whether it is shown to lose less than the
    # margin against the truly best, or only has the best value; and the sentence that says why
    chosen: str | None
    shown: bool
    why: str
    metric: str
    margin: float
    # within_margin, rejected: all that are shown to lose less than the margin, cheapest first; the others
    within_margin: tuple[str, ...]
    rejected: tuple[RejectedJudge, ...]
    # about how many more would show a cheaper judge good enough; None where nothing of that kind
    more_questions: int | None
    best: str | None  # who has the best value; None where nobody is within the caps
    level: float  # of the bounds on the losses, for all judges at once, and how they were made
    bounds: str
    judges: tuple[JudgeOnOpen, ...]
    gold: GoldSummary
    # confirmed, confirmed_complete, confirmed_on: METRIC -> Estimate on test, an unscored item counted as wrong; the
    # same of the scored ones; the test items. Empty and None where nobody was chosen. Where all items chose (the split
    # of confirmed_on is "all"), on these, at a level that allows for the choice
    confirmed: Mapping[str, Estimate]
    confirmed_complete: Mapping[str, Estimate]
    confirmed_on: GoldSummary | None
    test_looks: int  # decisions so far, what this one is in words, and whether test had served before
    test_look: str | None
    reused: bool
    lock: str | None  # where the lock went and its hash, or why there is none
    lock_sha256: str | None
    lock_reason: str | None
    noise: Noise | None
    # the map of the judge, fitted on train and dev, and as `confirmed` what test says through it; where all items
    # chose, fitted on these, and what they say cross-fitted
    calibration: Calibration | None
    confirmed_calibrated: Mapping[str, Estimate]
    usd: float
    n_unscored: int  # of the calls of this selection, and where they are
    journal: str
    notes: tuple[str, ...]
    run_line: str
    driven: tuple[str, ...] = ()  # where one stratum of the labels makes most of a bound
    too_few: str | None = None  # why the questions are too few to choose by
    # of the chosen judge: why it is below the floor, where that was allowed; beside people, None without two raters;
    # and what the best constant has of the metric on the open items
    below_floor: str | None = None
    stand_in: StandIn | None = None
    floor: Estimate | None = None


@dataclass(frozen=True, slots=True)
class OpenChoice:
    """The choice with what it rests on; without losses where nobody is within the caps, without choice where nobody is
    above the floor, or questions are too few."""

    table: Table
    measured: Sequence[MeasuredJudge]  # every judge that was asked for
    losses: Losses | None = None  # of those within the caps
    choice: Choice | None = None
    below_floor: Mapping[str, str] = dataclasses.field(default_factory=dict)  # those not shown to be above it, and why
    too_few: str | None = None  # why so few questions choose nobody

    @property
    def chosen(self) -> MeasuredJudge:
        """The chosen judge; only where there is one."""
        assert self.choice is not None  # the caller has looked
        return next(one for one in self.measured if one.column.judge == self.choice.judge)


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything that the result tells: what was asked, decided on open items, confirmed on test, and locked."""

    request: SelectRequest
    decided: OpenChoice
    confirmed: Confirmed | None = None  # None where nobody was chosen
    lock: Lock | None = None
    lock_reason: str = "nobody was chosen"  # why there is none
    noise_rows: Judgements = dataclasses.field(default_factory=lambda: Judgements([]))  # the calls at lock time
    usd: float = 0.0

    def result(self) -> SelectResult:
        """All of it as it is shown."""
        judges = tuple(self._row(one) for one in self.decided.measured)
        choice, losses, table = self.decided.choice, self.decided.losses, self.decided.table
        confirmed, gold, lock = self.confirmed, self.request.stored.gold, self.lock
        logged = self.request.workspace.experiments
        return SelectResult(
            experiment=self.request.experiment.slug,
            chosen_from=self.request.stored.experiment.slug,
            chosen=choice.judge if choice else None,
            shown=bool(choice and choice.shown),
            why=f"{choice.why}{self._allowed()}" if choice else self._nobody(),
            metric=self.request.by,
            margin=self.request.margin,
            within_margin=choice.within if choice else (),
            rejected=tuple(RejectedJudge(one.judge, self._why(one)) for one in judges if one.verdict in _REJECTED),
            more_questions=choice.more_questions if choice else None,
            best=losses.best if losses else None,
            level=table.level,
            bounds=losses.method if losses else "",
            judges=judges,
            gold=summary_of_gold(table, "all" if self.request.on_all else self.request.stored.split),
            confirmed=dict(confirmed.estimates) if confirmed else {},
            confirmed_complete=dict(confirmed.complete) if confirmed else {},
            confirmed_on=summary_of_gold(confirmed.table, "all" if self.request.on_all else "test")
            if confirmed
            else None,
            test_looks=confirmed.look.number if confirmed else looks_so_far(logged, gold),
            test_look=confirmed.look.sentence(gold.name) if confirmed else None,
            reused=confirmed.look.reused if confirmed else False,
            lock=str(self.request.output) if lock else None,
            lock_sha256=lock.sha256 if lock else None,
            lock_reason=None if lock else self.lock_reason,
            noise=lock.noise if lock else None,
            calibration=confirmed.calibration if confirmed else None,
            confirmed_calibrated=dict(confirmed.calibrated) if confirmed else {},
            usd=self.usd,
            n_unscored=self._n_unscored(),
            journal=str(self.request.experiment.journal),
            notes=tuple(self._notes()),
            driven=tuple(self.decided.losses.driven) if self.decided.losses else (),
            too_few=self.decided.too_few,
            run_line=self._run_line(),
            below_floor=self.decided.below_floor.get(choice.judge) if choice else None,
            stand_in=self._stand_in(),
            floor=constant_entry(table).as_wrong[self.request.by],
        )

    def _stand_in(self) -> StandIn | None:
        """The chosen judge beside people on all items, as `score` holds it."""
        stored = self.request.stored
        if self.decided.choice is None or len(stored.gold.peers) < 2:
            return None
        column = self.decided.chosen.column
        return judge_beside_people(stored.table, column, n_judges=stored.asked)

    def _row(self, one: MeasuredJudge) -> JudgeOnOpen:
        losses, candidate = self.decided.losses, one.candidate
        loss = losses.by_judge.get(one.column.judge) if losses else None
        return JudgeOnOpen(
            judge=one.column.judge,
            n=one.entry.n,
            n_expected=candidate.n_expected,
            n_unscored=candidate.n_unscored,
            value=one.entry.decided_by(self.request.by),
            complete_case=one.entry.agreement[self.request.by],
            loss=loss.loss if loss else None,
            loss_at_most=loss.upper if loss else None,
            reason=loss.reason if loss else self.request.caps.over(candidate),
            usd_per_1k=candidate.usd_per_1k,
            p95_s=candidate.p95_s,
            verdict=self._verdict(one),
        )

    def _verdict(self, one: MeasuredJudge) -> JudgeVerdict:
        choice, judge = self.decided.choice, one.column.judge
        if self.request.caps.over(one.candidate) is not None:
            return "over the caps"
        if choice and judge == choice.judge:
            return "chosen"
        if judge in self.decided.below_floor:
            return "below the floor"
        return "within the margin" if choice and judge in choice.within else "not shown"

    def _why(self, one: JudgeOnOpen) -> str:
        """Why a judge is not among those that may be chosen."""
        if one.verdict == "below the floor":
            return self.decided.below_floor[one.judge]
        if one.loss_at_most is None:
            return one.reason or "there is no bound of its loss"
        asked = self.request
        loss = f"{one.loss_at_most:.3f} of {in_words(asked.by)}"
        return f"it may lose up to {loss} against the best, the margin is {asked.margin:g}"

    def _allowed(self) -> str:
        """What the interval of the chosen judge allows for, where it was chosen on the items that measure it."""
        losses, confirmed = self.decided.losses, self.confirmed
        if not self.request.on_all or losses is None or confirmed is None:
            return ""
        n, k = len(set(confirmed.table.groups)), len(losses.by_judge)
        return (
            f"; it is chosen and measured on the same {n:,} questions, none is left to confirm it: the interval allows "
            f"for the choice among {k} judge{'s' * (k != 1)}"
        )

    def _nobody(self) -> str:
        """Why nobody was chosen."""
        below = self.decided.below_floor
        if self.decided.losses is None:
            return "no judge is within the caps"
        if self.decided.too_few:
            return f"{self.decided.too_few}; --allow-below-floor chooses all the same"
        losses = self.decided.losses
        best = losses.best if losses and losses.best in below else next(iter(below))
        several = f"none of the {len(below)} judges within the caps is above the floor; of {best}: "
        return f"{several if len(below) > 1 else ''}{below[best]}; --allow-below-floor chooses all the same"

    def _n_unscored(self) -> int:
        """Of the calls that this selection made or took over; recorded judgements are nobody's to call again."""
        if self.confirmed is None or (self.lock is None and not self.confirmed.n_lost):
            return 0
        return len(self.confirmed.rows.unscored) + len(self.noise_rows.unscored)

    def _notes(self) -> Sequence[str]:
        notes = [self._absent(one) for one in self.decided.measured]
        if self.decided.choice and self.decided.choice.judge in self.decided.below_floor:
            notes.insert(0, f"chosen below the floor: {self.decided.below_floor[self.decided.choice.judge]}")
        stored = self.request.stored
        scales = scale_notes(stored.gold.scale, [one.column for one in self.decided.measured])
        return [note for note in [*notes, self._unpriced(), self._models(), *stored.notes, *scales] if note]

    def _absent(self, one: MeasuredJudge) -> str | None:
        judged, stored = {row.item_id for row in one.column.rows}, self.request.stored
        absent = [item.item_id for item in self.decided.table.items if item.item_id not in judged]
        if not absent:
            return None
        items = f"{len(absent)} item{'s' * (len(absent) != 1)} ({listed(absent, sealed=stored.gold.test_ids)})"
        return f"{one.column.judge} has no judgement of {items}, unscored here"

    def _unpriced(self) -> str | None:
        unknown = [one.column.judge for one in self.decided.measured if one.candidate.usd_per_1k is None]
        if not unknown:
            return None
        return f"what {', '.join(unknown)} cost{'s' * (len(unknown) == 1)} is not known: they rank as the dearest"

    def _models(self) -> str | None:
        """Whether the verdicts and the calls at lock time came from one model."""
        found = self.confirmed
        then = model_ids(found.rows) if found and self.lock else []
        now = model_ids(self.noise_rows)
        if len(set(then) | set(now)) < 2:
            return None
        return (
            f"the verdicts came from {', '.join(then)}, the calls at lock time from {', '.join(now) or 'none'}: the "
            "model under the alias has changed, so score again"
        )

    def _run_line(self) -> str:
        stored, table = self.request.stored, self.decided.table
        judges = [
            f"{one.column.judge}[{one.column.rows[0].judge_fingerprint[:8]}]"
            for one in self.decided.measured
            if one.column.rows
        ]
        extra = {"experiment": stored.experiment.slug, "metric": self.request.by, "margin": f"{self.request.margin:g}"}
        caps = {name: value for name, value in self.request.caps.config().items() if value not in (None, [], False)}
        return run_line(table, "all" if self.request.on_all else "open", judges, {**extra, **caps})
