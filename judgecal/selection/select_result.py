"""What `select` came to, as the contract's object."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.errors import listed
from judgecal.experiment import Judgements, Table, gold_summary, looks_so_far, run_line, scale_notes
from judgecal.selection.choice import Caps, Choice, Measured
from judgecal.selection.confirm import Asked, Confirmed
from judgecal.selection.lock import Lock, model_ids
from judgecal.stats.simultaneous import Loss, Losses

__all__ = ["Decided", "Outcome"]


@dataclass(frozen=True, slots=True)
class Decided:
    """The choice with what it rests on; without losses and choice where nobody is within the caps.

    Attributes:
        table: the open items.
        found: every judge that was asked for.
        losses, choice: of those within the caps.
    """

    table: Table
    found: Sequence[Measured]
    losses: Losses | None = None
    choice: Choice | None = None

    @property
    def chosen(self) -> Measured:
        """The chosen judge; only where there is one."""
        assert self.choice is not None  # the caller has looked
        return next(one for one in self.found if one.column.judge == self.choice.judge)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that the result tells.

    Attributes:
        asked, decided, caps, metric, margin: what was asked, and what was decided on open items.
        confirmed: on test; None where nobody was chosen.
        lock, output, lock_reason: what was written and where, or why nothing was.
        noise_rows: the calls at lock time.
        usd: what the calls cost.
    """

    asked: Asked
    decided: Decided
    caps: Caps
    metric: str
    margin: float
    confirmed: Confirmed | None = None
    lock: Lock | None = None
    output: Path | None = None
    lock_reason: str | None = None
    noise_rows: Judgements = dataclasses.field(default_factory=lambda: Judgements([]))
    usd: float = 0.0

    def result(self) -> dict[str, Any]:
        """The contract's keys, and what the text shows beside them."""
        choice, losses, table = self.decided.choice, self.decided.losses, self.decided.table
        return {
            "experiment": self.asked.experiment.slug,
            "chosen_from": self.asked.kept.experiment.slug,
            "chosen": choice.judge if choice else None,
            "metric": self.metric,
            "margin": self.margin,
            "within_margin": list(choice.within) if choice else [],
            "rejected": [*self._rejected()],
            "why": choice.why if choice else "no judge is within the caps",
            "more_questions": choice.more_questions if choice else None,
            "best": losses.best if losses else None,
            "level": table.level,
            "bounds": losses.method if losses else "",
            "judges": [self._row(one) for one in self.decided.found],
            "gold": gold_summary(table, self.asked.kept.split),
            **self._confirmation(),
            "lock": None if self.output is None else str(self.output),
            "lock_reason": self._no_lock(),
            "lock_sha256": self.lock.sha256 if self.lock else None,
            "noise": self._noise(),
            "own_cut": dataclasses.asdict(self.lock.own_cut) if self.lock and self.lock.own_cut else None,
            "usd": self.usd,
            "n_unscored": self._n_unscored(),
            "journal": str(self.asked.experiment.journal),
            "notes": [*self._notes()],
            "run_line": self._run_line(),
        }

    def _no_lock(self) -> str | None:
        if self.lock is not None:
            return None
        return self.lock_reason or "nobody was chosen"

    def _loss(self, judge: str) -> Loss | None:
        return self.decided.losses.by_judge.get(judge) if self.decided.losses else None

    def _row(self, one: Measured) -> dict[str, Any]:
        """One judge on open items."""
        loss, candidate = self._loss(one.column.judge), one.candidate
        return {
            "judge": one.column.judge,
            "n": one.entry.n,
            "n_expected": candidate.n_expected,
            "n_unscored": candidate.n_unscored,
            "value": one.entry.as_wrong[self.metric],
            "complete_case": one.entry.agreement[self.metric],
            "loss": loss.loss if loss else None,
            "loss_at_most": loss.upper if loss else None,
            "reason": loss.reason if loss else self.caps.over(candidate),
            "usd_per_1k": candidate.usd_per_1k,
            "p95_s": candidate.p95_s,
            "verdict": self._verdict(one),
        }

    def _verdict(self, one: Measured) -> str:
        choice, judge = self.decided.choice, one.column.judge
        if self.caps.over(one.candidate) is not None:
            return "over the caps"
        if choice and judge == choice.judge:
            return "chosen"
        return "within the margin" if choice and judge in choice.within else "not shown"

    def _rejected(self) -> Sequence[Mapping[str, str]]:
        """Everybody who is not within the margin, and why."""
        within = self.decided.choice.within if self.decided.choice else ()
        return [
            {"judge": one.column.judge, "why": self.caps.over(one.candidate) or self._not_shown(one)}
            for one in self.decided.found
            if one.column.judge not in within
        ]

    def _not_shown(self, one: Measured) -> str:
        loss = self._loss(one.column.judge)
        if loss is None or loss.upper is None:
            return (loss.reason if loss else None) or "there is no bound of its loss"
        return f"it may lose up to {loss.upper:.3f} in {self.metric} against the best, the margin is {self.margin:g}"

    def _confirmation(self) -> dict[str, Any]:
        found, gold = self.confirmed, self.asked.kept.gold
        if found is None:
            looks = looks_so_far(self.asked.workspace.experiments, gold.name)
            nothing: dict[str, Any] = {"confirmed": {}, "confirmed_complete": {}, "confirmed_on": None}
            return {**nothing, "test_looks": looks, "test_look": None, "reused": False}
        return {
            "confirmed": dict(found.estimates),
            "confirmed_complete": dict(found.complete),
            "confirmed_on": gold_summary(found.table, "test"),
            "test_looks": found.look.number,
            "test_look": found.look.sentence(gold.name),
            "reused": found.look.reused,
        }

    def _noise(self) -> dict[str, Any] | None:
        if self.lock is None:
            return None
        noise = self.lock.noise
        return {field.name: getattr(noise, field.name) for field in dataclasses.fields(noise)}

    def _n_unscored(self) -> int:
        """Of the calls that this selection made or took over; recorded judgements are nobody's to call again."""
        if self.confirmed is None or (self.lock is None and not self.confirmed.n_lost):
            return 0
        return self.confirmed.n_unscored + len(self.noise_rows.unscored)

    def _notes(self) -> Sequence[str]:
        notes = [self._absent(one) for one in self.decided.found]
        kept = self.asked.kept
        scales = scale_notes(kept.gold.scale, [one.column for one in self.decided.found])
        return [note for note in [*notes, self._unpriced(), *self._models(), *kept.notes, *scales] if note]

    def _absent(self, one: Measured) -> str | None:
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
        kept, table = self.asked.kept, self.decided.table
        judges = [
            f"{one.column.judge}[{one.column.rows[0].judge_fingerprint[:8]}]"
            for one in self.decided.found
            if one.column.rows
        ]
        extra = {"experiment": kept.experiment.slug, "metric": self.metric, "margin": f"{self.margin:g}"}
        caps = {name: value for name, value in self.caps.config().items() if value not in (None, [], False)}
        return run_line(table, "open", judges, {**extra, **caps})
