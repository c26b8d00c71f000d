"""What `select` comes to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from judgecal.errors import listed
from judgecal.experiment import (
    GoldSummary,
    Judgements,
    looks_so_far,
    run_line,
    summary_of_gold,
    verdict_notes,
)
from judgecal.experiment.floor import constant_entry
from judgecal.experiment.people import judge_beside_people
from judgecal.experiment.unread import Unread, unread_of
from judgecal.goldset import split_notes
from judgecal.judges import JudgeKind
from judgecal.records import Estimate, Result
from judgecal.selection.choice import MeasuredJudge, in_words
from judgecal.selection.confirm import Confirmed, SelectRequest
from judgecal.selection.decision import OpenChoice, Pick
from judgecal.selection.lock import Lock, Noise, model_ids
from judgecal.selection.upheld import Upheld
from judgecal.stats import Calibration
from judgecal.stats.metrics import amount_of
from judgecal.stats.stand_in import StandIn

JudgeVerdict = Literal[
    "chosen",
    "within the margin",
    "not confirmed",
    "not shown",
    "not above the floor",
    "below the floor",
    "over the caps",
]
_REJECTED = ("not confirmed", "not shown", "not above the floor", "below the floor", "over the caps")


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
    kind: JudgeKind = "recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectResult(Result):
    """What a selection comes to."""

    experiment: str
    chosen_from: str
    # the judge, None where nobody is within the caps and above the floor, or test refuses the choice; whether
    # it is shown to lose less than the margin against the truly best, or only has the best value; and the
    # sentence that says why
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
    # confirmed, confirmed_complete, confirmed_on: METRIC -> Estimate on test, an unscored item counted as
    # wrong; the same of the scored ones; the test items. Empty and None where nobody was chosen. Where all
    # items chose (the split of confirmed_on is "all"), on these, at a level that allows for the choice
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
    # the map of the judge, fitted on train and dev, and as `confirmed` what test says through it; where all
    # items chose, fitted on these, and what they say cross-fitted
    calibration: Calibration | None
    confirmed_calibrated: Mapping[str, Estimate]
    usd: float
    n_unscored: int  # of the calls of this selection, and where they are
    journal: str
    notes: tuple[str, ...]
    run_line: str
    driven: tuple[str, ...] = ()  # where one stratum of the labels makes most of a bound
    choice: Pick | None = (
        None  # whom the items that choose speak for, as a report says it; None without a value
    )
    # of the chosen judge: why it is not above the floor, where that was allowed; beside people, None without
    # two raters; and what the best constant has of the metric on the items of `confirmed`
    below_floor: str | None = None
    stand_in: StandIn | None = None
    floor: Estimate | None = None
    unread: Unread | None = None  # the judges without any verdict
    # confirmed_on_test: whether test shows the choice above the best constant, and bears out what chose it
    # (None where nobody was held on it); doubt: why not; refused: the judge that test refused, and why
    confirmed_on_test: bool | None = None
    doubt: str | None = None
    refused: RejectedJudge | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything that the result tells: what was asked, decided on open items, confirmed on test, and
    locked."""

    request: SelectRequest
    decided: OpenChoice
    confirmed: Confirmed | None = None  # None where nobody was chosen
    lock: Lock | None = None
    lock_reason: str = "nobody was chosen"  # why there is none
    noise_rows: Judgements = dataclasses.field(
        default_factory=lambda: Judgements([])
    )  # the calls at lock time
    usd: float = 0.0
    upheld: Upheld | None = (
        None  # what test says of the choice; None where no item is left to say it, or calls lack
    )

    @property
    def refused(self) -> RejectedJudge | None:
        """The choice that test refuses, and why."""
        if self.decided.choice is None or self.upheld is None or self.upheld.refused is None:
            return None
        return RejectedJudge(self.decided.choice.judge, self.upheld.refused)

    def result(self) -> SelectResult:
        """All of it as it is shown."""
        judges = tuple(self._row(one) for one in self.decided.measured)
        losses, table, refused = self.decided.losses, self.decided.table, self.refused
        choice = self.decided.choice if refused is None else None
        confirmed, gold, lock = self.confirmed, self.request.stored.gold, self.lock
        logged = self.request.workspace.experiments
        return SelectResult(
            experiment=self.request.experiment.slug,
            chosen_from=self.request.stored.experiment.slug,
            chosen=choice.judge if choice else None,
            shown=bool(choice and choice.shown),
            why=f"{choice.why}{self._allowed()}" if choice else refused.why if refused else self._nobody(),
            metric=self.request.by,
            margin=self.request.margin,
            within_margin=choice.within if choice else (),
            rejected=tuple(
                RejectedJudge(one.judge, self._why(one)) for one in judges if one.verdict in _REJECTED
            ),
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
            test_look=confirmed.look.sentence(gold.name) if confirmed and not confirmed.n_lost else None,
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
            choice=self.decided.pick,
            run_line=self._run_line(),
            below_floor=self.decided.not_above(choice.judge) if choice else None,
            stand_in=self._stand_in(),
            unread=unread_of(self.request.stored),
            floor=self._floor(),
            confirmed_on_test=self._confirmed_on_test(),
            doubt=self.upheld.doubt if self.upheld else None,
            refused=refused,
        )

    def _confirmed_on_test(self) -> bool | None:
        if self.upheld is None:
            return False if self.request.on_all and self.confirmed else None
        return self.upheld.doubt is None

    def _floor(self) -> Estimate:
        """What the best constant has of the metric on the items of `confirmed`; on those that choose where
        none is."""
        table = self.confirmed.table if self.confirmed else self.decided.table
        return constant_entry(table).as_wrong[self.request.by]

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
            kind=one.column.kind,
        )

    def _verdict(self, one: MeasuredJudge) -> JudgeVerdict:
        choice, judge = self.decided.choice, one.column.judge
        if self.request.caps.over(one.candidate) is not None:
            return "over the caps"
        if choice and judge == choice.judge:
            return "not confirmed" if self.refused else "chosen"
        floor = self.decided.floors.get(judge)
        if floor is not None and not floor.shown:
            return "below the floor" if floor.below else "not above the floor"
        return "within the margin" if choice and judge in choice.within else "not shown"

    def _why(self, one: JudgeOnOpen) -> str:
        """Why a judge is not among those that may be chosen."""
        if self.refused and one.judge == self.refused.judge:
            return self.refused.why
        if one.verdict != "over the caps" and (why := self.decided.not_above(one.judge)):
            return why
        if one.loss_at_most is None:
            return one.reason or "there is no bound of its loss"
        asked = self.request
        loss, margin = (amount_of(size, asked.by) for size in (one.loss_at_most, asked.margin))
        return f"it may lose up to {loss} of {in_words(asked.by)} against the best, the margin is {margin}"

    def _allowed(self) -> str:
        """What the interval of the chosen judge allows for, where it was chosen on the items that measure
        it."""
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
        decided = self.decided
        if decided.pick is None:
            within = [one for one in decided.measured if self.request.caps.over(one.candidate) is None]
            values = [one.entry.decided_by(self.request.by) for one in within]
            return f"no judge has a value: {values[0].reason}" if values else "no judge is within the caps"
        if decided.pick.too_few:
            return f"{decided.pick.too_few.removesuffix('.')}; --allow-below-floor chooses all the same"
        several = f"none of the {len(decided.floors)} judges within the caps is shown above the floor; of "
        best = decided.pick.best
        lead = f"{several}{best}: " if len(decided.floors) > 1 else ""
        return f"{lead}{decided.not_above(best)}; --allow-below-floor chooses all the same"

    def _n_unscored(self) -> int:
        """Of the calls that this selection made or took over; recorded judgements are nobody's to call
        again."""
        if self.confirmed is None or (self.lock is None and not self.confirmed.n_lost):
            return 0
        return len(self.confirmed.rows.unscored) + len(self.noise_rows.unscored)

    def _notes(self) -> Sequence[str]:
        notes = [self._absent(one) for one in self.decided.measured]
        choice = self.decided.choice
        if choice and (why := self.decided.not_above(choice.judge)):
            notes.insert(0, f"chosen though not shown above the floor: {why}")
        stored = self.request.stored
        ties = f"raters tie on {len(stored.tied)} items, the harder ones: what is confirmed and locked is without them"
        scales = (
            *([ties] if stored.tied else []),
            *split_notes(stored.gold),
            *verdict_notes(stored.gold.scale, [one.column for one in self.decided.measured]),
        )
        return [note for note in [*notes, self._unpriced(), self._models(), *stored.notes, *scales] if note]

    def _absent(self, one: MeasuredJudge) -> str | None:
        judged, stored = {row.item_id for row in one.column.rows}, self.request.stored
        absent = [item.item_id for item in self.decided.table.items if item.item_id not in judged]
        if not absent:
            return None
        items = (
            f"{len(absent)} item{'s' * (len(absent) != 1)} ({listed(absent, sealed=stored.gold.test_ids)})"
        )
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
        extra = {
            "experiment": stored.experiment.slug,
            "metric": self.request.by,
            "margin": f"{self.request.margin:g}",
        }
        caps = {
            name: value
            for name, value in self.request.caps.config().items()
            if value not in (None, [], False)
        }
        return run_line(table, "all" if self.request.on_all else "open", judges, {**extra, **caps})
