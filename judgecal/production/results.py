"""What a judged table comes to, judged by a lock alone or by a suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from judgecal._version import __version__
from judgecal.experiment import full_name
from judgecal.production.judge_counts import ColumnRate, RowCounts
from judgecal.production.suite import LeftOut, LoadedJudge, SuiteColumn
from judgecal.records import Estimate, Result
from judgecal.selection.lock import LockedOn
from judgecal.selection.pass_rates import chance


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
    systems: Mapping[str, ColumnRate]  # in the order of their first rows; empty where none is named
    pass_at: float | None
    mapped: bool  # whether the lock has a map from verdicts to the people's scale
    rates: Mapping[str, ColumnRate]
    # of the judge when it was locked, through its map where it has one; None where the lock does not know
    sensitivity: Estimate | None
    specificity: Estimate | None
    warning: str | None  # why the rate says nothing: the judge tells right from wrong no better than a coin
    # usd, usd_per_1k: what the rows' calls cost, and what a thousand rows cost where a stored reply counts as
    # if it had been called for; None where some cost is not known
    usd: float | None
    usd_per_1k: float | None
    model_ids: tuple[str, ...]  # the ids that the provider answered as
    notes: tuple[str, ...]
    run_line: str


@dataclass(frozen=True, slots=True)
class SuiteMember:
    """A judge that ran. `lock`: its lock's path; without one nobody knows whether it agrees with people."""

    name: str
    judge: str
    kind: str
    lock: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult(Result):
    """What a table judged by a suite comes to."""

    experiment: str
    suite: str
    input: str
    output: str
    naming: str
    columns: Mapping[str, Mapping[str, str]]  # judge -> part of its result -> column of the output
    named: Mapping[str, str]  # as of a lock
    n: int  # rows, and those in which something is unscored
    n_unscored: int
    rates: Mapping[str, ColumnRate]
    metrics: Mapping[str, Estimate]  # the same numbers under the names that a dashboard knows them by
    judges: tuple[SuiteMember, ...]
    left_out: tuple[LeftOut, ...]
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


def lock_result(
    rows: RowCounts,
    judge: LoadedJudge,
    *,
    slug: str,
    input: str,
    name: str,
    output: str,
    named: Mapping[str, str | None],
    added: Sequence[str],
    n_rows: int,
    notes: Sequence[str],
) -> JudgeResult:
    """The result of what one lock judged: tables of `n_rows`, whose `name` is without folders."""
    assert judge.lock is not None
    lock, rate, total = judge.lock, rows.overall().rate(), rows.total
    sensitivity, specificity = judge.rule.class_rates(lock.applied)
    parts = SuiteColumn("", "rating", (judge,), alone=True).columns("plain")
    named_systems = rows.by_system if rows.by_system.keys() - {""} else {}
    return JudgeResult(
        experiment=slug,
        lock=str(judge.lock_path),
        judge=lock.judge,
        gold=lock.on,
        input=input,
        output=output,
        columns=dict(zip(parts, added, strict=True)),
        named={part: column for part, column in named.items() if column and part != "reference"},
        n=rows.n,
        n_unscored=rate.n_unscored,
        systems={system: tally.rate() for system, tally in named_systems.items()},
        pass_at=lock.gold.pass_at,
        mapped=lock.calibration is not None,
        rates={lock.judge: rate},
        sensitivity=sensitivity,
        specificity=specificity,
        warning=chance(judge.rule.people, lock.applied),
        usd=total.usd,
        usd_per_1k=rows.usd_per_1k,
        model_ids=tuple(sorted(total.model_ids)),
        notes=(*notes, *total.notes(), *other_models(rows, judge), *limit_notes(rows.n, n_rows)),
        run_line=(
            f"{lock.run_line}|judge:{full_name(judge.judge)}|input:{name}|n:{rows.n}|level:0.95|by:group|version:{__version__}"
        ),
    )


def other_models(rows: RowCounts, judge: LoadedJudge, prefix: str = "") -> Iterator[str]:
    """That another model answered than the one that was locked."""
    locked = None if judge.lock is None else judge.lock.model_id
    others = sorted(rows.costs[judge.name].model_ids - {locked}) if judge.name in rows.costs else []
    if locked is not None and others:
        answered = f"the provider answered as {', '.join(others)}"
        yield f"{prefix}{answered}, and the judge was locked on {locked}: run judgecal gate"


def limit_notes(n: int, n_rows: int) -> Iterator[str]:
    if n < n_rows:
        yield f"the output holds only the first {n:,} of {n_rows:,} rows (--limit)"
