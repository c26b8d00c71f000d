"""What `select` comes to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from judgecal.errors import listed
from judgecal.experiment import GoldSummary, Judgements, Table, looks_so_far, run_line, scale_notes, summary_of_gold
from judgecal.records import Estimate, Result
from judgecal.selection.choice import Caps, Choice, MeasuredJudge
from judgecal.selection.confirm import Confirmation, Confirmed
from judgecal.selection.lock import FittedThreshold, Lock, Noise, model_ids
from judgecal.stats.simultaneous import Loss, Losses


@dataclass(frozen=True, slots=True)
class RejectedJudge:
    """A judge that is not within the margin, and why."""

    judge: str
    why: str


@dataclass(frozen=True, slots=True)
class JudgeOnOpen:
    """One judge on the items that it is chosen on.

    Attributes:
        judge: its name.
        n, n_expected, n_unscored: judgements with a verdict, asked for, and without.
        value, complete_case: the metric, an unscored item counted as wrong; and without such items.
        loss, loss_at_most: against the best seen, and the bound of the loss against whoever is truly best.
        reason: why there is no bound, or which caps it is over.
        usd_per_1k, p95_s: of a judgement; None where not known.
        verdict: chosen, within the margin, not shown, or over the caps.
    """

    judge: str
    n: int
    n_expected: int
    n_unscored: int
    value: Estimate
    complete_case: Estimate
    loss: float | None
    loss_at_most: float | None
    reason: str | None
    usd_per_1k: float | None
    p95_s: float | None
    verdict: Literal["chosen", "within the margin", "not shown", "over the caps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectResult(Result):
    """What a selection comes to.

    Attributes:
        experiment, chosen_from: its slug, and that of the experiment that it chose from.
        chosen, why: the judge, None where nobody is within the caps; and the sentence that says why.
        metric, margin: by which, and the loss that is allowed.
        within_margin, rejected: the best judge and all shown to lose less than the margin, cheapest first; the others.
        more_questions: about how many more would show a cheaper judge good enough; None where nothing of that kind.
        best: who has the best value; None where nobody is within the caps.
        level, bounds: of the bounds on the losses, for all judges at once, and how they were made.
        judges, gold: every judge on open items, and those items.
        confirmed, confirmed_complete, confirmed_on: METRIC -> Estimate on test, an unscored item counted as wrong; the
            same of the scored ones; the test items. Empty and None where nobody was chosen.
        test_looks, test_look, reused: decisions so far, what this one is in words, and whether test had served before.
        lock, lock_sha256, lock_reason: where the lock went and its hash, or why there is none.
        noise, own_cut: what the lock holds of them.
        usd: what the calls cost.
        n_unscored, journal: of the calls of this selection, and where they are.
        notes, run_line: what else to know, and what reproduces it.
    """

    experiment: str
    chosen_from: str
    chosen: str | None
    why: str
    metric: str
    margin: float
    within_margin: tuple[str, ...]
    rejected: tuple[RejectedJudge, ...]
    more_questions: int | None
    best: str | None
    level: float
    bounds: str
    judges: tuple[JudgeOnOpen, ...]
    gold: GoldSummary
    confirmed: Mapping[str, Estimate]
    confirmed_complete: Mapping[str, Estimate]
    confirmed_on: GoldSummary | None
    test_looks: int
    test_look: str | None
    reused: bool
    lock: str | None
    lock_sha256: str | None
    lock_reason: str | None
    noise: Noise | None
    own_cut: FittedThreshold | None
    usd: float
    n_unscored: int
    journal: str
    notes: tuple[str, ...]
    run_line: str


@dataclass(frozen=True, slots=True)
class OpenChoice:
    """The choice with what it rests on; without losses and choice where nobody is within the caps.

    Attributes:
        table: the open items.
        found: every judge that was asked for.
        losses, choice: of those within the caps.
    """

    table: Table
    found: Sequence[MeasuredJudge]
    losses: Losses | None = None
    choice: Choice | None = None

    @property
    def chosen(self) -> MeasuredJudge:
        """The chosen judge; only where there is one."""
        assert self.choice is not None  # the caller has looked
        return next(one for one in self.found if one.column.judge == self.choice.judge)


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything that the result tells.

    Attributes:
        asked, decided, caps, metric, margin: what was asked, and what was decided on open items.
        confirmed: on test; None where nobody was chosen.
        lock, output, lock_reason: what was written and where, or why nothing was.
        noise_rows: the calls at lock time.
        usd: what the calls cost.
    """

    asked: Confirmation
    decided: OpenChoice
    caps: Caps
    metric: str
    margin: float
    confirmed: Confirmed | None = None
    lock: Lock | None = None
    output: Path | None = None
    lock_reason: str | None = None
    noise_rows: Judgements = dataclasses.field(default_factory=lambda: Judgements([]))
    usd: float = 0.0

    def result(self) -> SelectResult:
        """All of it as it is shown."""
        choice, losses, table = self.decided.choice, self.decided.losses, self.decided.table
        confirmed, gold, lock = self.confirmed, self.asked.stored.gold, self.lock
        return SelectResult(
            experiment=self.asked.experiment.slug,
            chosen_from=self.asked.stored.experiment.slug,
            chosen=choice.judge if choice else None,
            why=choice.why if choice else "no judge is within the caps",
            metric=self.metric,
            margin=self.margin,
            within_margin=choice.within if choice else (),
            rejected=tuple(self._rejected()),
            more_questions=choice.more_questions if choice else None,
            best=losses.best if losses else None,
            level=table.level,
            bounds=losses.method if losses else "",
            judges=tuple(self._row(one) for one in self.decided.found),
            gold=summary_of_gold(table, self.asked.stored.split),
            confirmed=dict(confirmed.estimates) if confirmed else {},
            confirmed_complete=dict(confirmed.complete) if confirmed else {},
            confirmed_on=summary_of_gold(confirmed.table, "test") if confirmed else None,
            test_looks=(
                confirmed.look.number if confirmed else looks_so_far(self.asked.workspace.experiments, gold.name)
            ),
            test_look=confirmed.look.sentence(gold.name) if confirmed else None,
            reused=confirmed.look.reused if confirmed else False,
            lock=None if self.output is None else str(self.output),
            lock_sha256=lock.sha256 if lock else None,
            lock_reason=None if lock else self.lock_reason or "nobody was chosen",
            noise=lock.noise if lock else None,
            own_cut=lock.own_cut if lock else None,
            usd=self.usd,
            n_unscored=self._n_unscored(),
            journal=str(self.asked.experiment.journal),
            notes=tuple(self._notes()),
            run_line=self._run_line(),
        )

    def _loss(self, judge: str) -> Loss | None:
        return self.decided.losses.by_judge.get(judge) if self.decided.losses else None

    def _row(self, one: MeasuredJudge) -> JudgeOnOpen:
        loss, candidate = self._loss(one.column.judge), one.candidate
        return JudgeOnOpen(
            judge=one.column.judge,
            n=one.entry.n,
            n_expected=candidate.n_expected,
            n_unscored=candidate.n_unscored,
            value=one.entry.as_wrong[self.metric],
            complete_case=one.entry.agreement[self.metric],
            loss=loss.loss if loss else None,
            loss_at_most=loss.upper if loss else None,
            reason=loss.reason if loss else self.caps.over(candidate),
            usd_per_1k=candidate.usd_per_1k,
            p95_s=candidate.p95_s,
            verdict=self._verdict(one),
        )

    def _verdict(self, one: MeasuredJudge) -> Literal["chosen", "within the margin", "not shown", "over the caps"]:
        choice, judge = self.decided.choice, one.column.judge
        if self.caps.over(one.candidate) is not None:
            return "over the caps"
        if choice and judge == choice.judge:
            return "chosen"
        return "within the margin" if choice and judge in choice.within else "not shown"

    def _rejected(self) -> Sequence[RejectedJudge]:
        """Everybody who is not within the margin, and why."""
        within = self.decided.choice.within if self.decided.choice else ()
        return [
            RejectedJudge(one.column.judge, self.caps.over(one.candidate) or self._not_shown(one))
            for one in self.decided.found
            if one.column.judge not in within
        ]

    def _not_shown(self, one: MeasuredJudge) -> str:
        loss = self._loss(one.column.judge)
        if loss is None or loss.upper is None:
            return (loss.reason if loss else None) or "there is no bound of its loss"
        return f"it may lose up to {loss.upper:.3f} in {self.metric} against the best, the margin is {self.margin:g}"

    def _n_unscored(self) -> int:
        """Of the calls that this selection made or took over; recorded judgements are nobody's to call again."""
        if self.confirmed is None or (self.lock is None and not self.confirmed.n_lost):
            return 0
        return self.confirmed.n_unscored + len(self.noise_rows.unscored)

    def _notes(self) -> Sequence[str]:
        notes = [self._absent(one) for one in self.decided.found]
        stored = self.asked.stored
        scales = scale_notes(stored.gold.scale, [one.column for one in self.decided.found])
        return [note for note in [*notes, self._unpriced(), *self._models(), *stored.notes, *scales] if note]

    def _absent(self, one: MeasuredJudge) -> str | None:
        judged = {row.item_id for row in one.column.rows}
        absent = [item.item_id for item in self.decided.table.items if item.item_id not in judged]
        if not absent:
            return None
        items = f"{len(absent)} item{'s' * (len(absent) != 1)} ({listed(absent)})"
        return f"{one.column.judge} has no judgement of {items}, unscored here"

    def _unpriced(self) -> str | None:
        unknown = [one.column.judge for one in self.decided.found if one.candidate.usd_per_1k is None]
        if not unknown:
            return None
        return f"what {', '.join(unknown)} cost{'s' * (len(unknown) == 1)} is not known: they rank as the dearest"

    def _models(self) -> Sequence[str]:
        """Whether the verdicts and the calls at lock time came from one model."""
        found = self.confirmed
        then = model_ids(found.rows) if found and self.lock else []
        now = model_ids(self.noise_rows)
        if len(set(then) | set(now)) < 2:
            return []
        return [
            f"the verdicts came from {', '.join(then)}, the calls at lock time from {', '.join(now) or 'none'}: the "
            "model under the alias has changed, so score again"
        ]

    def _run_line(self) -> str:
        stored, table = self.asked.stored, self.decided.table
        judges = [
            f"{one.column.judge}[{one.column.rows[0].judge_fingerprint[:8]}]"
            for one in self.decided.found
            if one.column.rows
        ]
        extra = {"experiment": stored.experiment.slug, "metric": self.metric, "margin": f"{self.margin:g}"}
        caps = {name: value for name, value in self.caps.config().items() if value not in (None, [], False)}
        return run_line(table, "open", judges, {**extra, **caps})
