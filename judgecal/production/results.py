"""What a judged table comes to; a lock is a suite of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judgecal.production.judge_counts import ColumnRate
from judgecal.production.suite import LeftOut, LoadedJudge
from judgecal.records import Estimate, Result
from judgecal.selection.lock import LockedGold
from judgecal.selection.pass_rates import chance


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteMember:
    """A judge that ran. Without a lock nobody knows whether it agrees with people, and the rest is None."""

    name: str
    judge: str
    kind: str
    lock: str | None  # the path of its lock
    gold: LockedGold | None = None
    pass_at: float | None = None
    # when it was locked, through its map where it has one; None where the lock does not know
    sensitivity: Estimate | None = None
    specificity: Estimate | None = None
    warning: str | None = None  # why its rate says nothing: it tells right from wrong no better than a coin

    @classmethod
    def of(cls, judge: LoadedJudge) -> SuiteMember:
        """A loaded judge, with what its lock says of it."""
        lock, about = judge.lock, dict[str, Any]()
        if lock is not None:
            sensitivity, specificity = judge.rule.class_rates(lock.applied)
            about = {"gold": lock.gold, "pass_at": lock.gold.pass_at}
            about |= {"sensitivity": sensitivity, "specificity": specificity}
            about["warning"] = chance(judge.rule.people, lock.applied)
        return cls(
            name=judge.name, judge=judge.judge.name, kind=judge.judge.kind, lock=judge.lock_path, **about
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeResult(Result):
    """What a table comes to that a lock or a suite judged; the other of these two is None."""

    experiment: str
    lock: str | None
    suite: str | None
    input: str  # the tables
    output: str
    columns: Mapping[str, Any]  # of a lock part of a judgement -> column; of a suite judge -> part -> column
    named: Mapping[str, str]  # question, answer, item and group -> columns of the table, where named
    n: int  # rows, and those in which something is unscored
    n_unscored: int
    rates: Mapping[str, ColumnRate]
    judges: tuple[SuiteMember, ...]
    left_out: tuple[LeftOut, ...]
    # usd, usd_per_1k: what the rows' calls cost, and what a thousand rows cost where a stored reply counts as
    # if it had been called for; None where some cost is not known
    usd: float | None
    usd_per_1k: float | None
    model_ids: tuple[str, ...]  # the ids that the provider answered as
    notes: tuple[str, ...]
    run_line: str

    @property
    def columns_of(self) -> Mapping[str, Mapping[str, str]]:
        """Judge -> part of a judgement -> column of the output."""
        return self.columns if self.lock is None else {next(iter(self.rates)): self.columns}

    @property
    def unlocked(self) -> tuple[SuiteMember, ...]:
        """The judges that were never held against people; a rule that calls nobody is what it says."""
        return tuple(judge for judge in self.judges if judge.lock is None and judge.kind != "local")
