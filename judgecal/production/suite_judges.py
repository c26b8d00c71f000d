"""The judges of a suite: loaded, put to the columns that they fill, and which of them a table has anything
for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judgecal.engine import Reading
from judgecal.errors import InputError, refuse
from judgecal.experiment import item_scale
from judgecal.judges import JudgeName, decides_itself, judge_named
from judgecal.judges.suite import Suite, SuiteJudge
from judgecal.production.read_row import ReadRow
from judgecal.production.suite_columns import Measure, Member, own_rule
from judgecal.production.suite_result import LeftOut
from judgecal.selection.lock import load_lock
from judgecal.selection.pass_rates import PassRule
from judgecal.workspace import Workspace

_LOCKS = "locks"  # the name of a suite that is a list of locks


def suite_of_locks(paths: Sequence[Path]) -> Suite:
    """Some locks as a suite, each named as its signature. InputError: one cannot be read."""
    names: list[str] = []
    for path in paths:
        name = JudgeName.parse(load_lock(path).judge).signature.rpartition("/")[2].removesuffix(".py")
        names.append(name if name not in names else f"{name}_{len(names) + 1}")
    return Suite(_LOCKS, tuple(SuiteJudge(name, lock=path) for name, path in zip(names, paths, strict=True)))


def measures_of(
    suite: Suite, workspace: Workspace, *, model: str, trust_lock: bool = False
) -> tuple[Measure, ...]:
    """The judges of a suite, loaded, by the columns that they fill, in the order of the file.

    Raises:
        InputError: a judge or a lock cannot be used; or judges that share a column do not go together.
    """
    places: dict[str, list[tuple[SuiteJudge, Member]]] = {}
    problems: list[str] = []
    for one in suite.judges:
        try:
            member = _member(one, workspace, model=model, trust_lock=trust_lock)
        except InputError as error:
            problems += [f"suite {suite.name}: {one.name}: {problem}" for problem in error.problems]
            continue
        places.setdefault(one.column_of(member.judge.unit), []).append((one, member))
    refuse(problems)
    measures = tuple(
        Measure(
            column, found[0][0].aggregate_of(found[0][1].judge.unit), tuple(member for _, member in found)
        )
        for column, found in places.items()
    )
    refuse([f"suite {suite.name}: {problem}" for measure in measures for problem in measure.problems()])
    return measures


def _member(one: SuiteJudge, workspace: Workspace, *, model: str, trust_lock: bool) -> Member:
    if one.lock is None:
        judge = judge_named(one.judge_on(model), workspace=workspace)
        return Member(one.name, judge, own_rule(judge.scale))
    lock = load_lock(one.lock)
    runnable = lock.runnable(workspace, trust_lock=trust_lock)
    return Member(one.name, runnable, PassRule.of_lock(lock, item_scale(runnable)), lock, str(one.lock))


@dataclass(frozen=True, slots=True)
class Survey:
    """The measures that some row can be judged by, with the judges that have a row, and those that were left
    out."""

    running: tuple[Measure, ...]
    left_out: tuple[LeftOut, ...]


def survey(measures: Sequence[Measure], rows: Iterable[ReadRow]) -> Survey:
    """Which judges have anything to judge among some rows, and why the others have not."""
    able: set[str] = set()
    chosen: set[str] = set()
    reasons: dict[str, Counter[str]] = {member.name: Counter() for one in measures for member in one.members}
    n = 0
    for row in rows:
        n += 1
        for measure in measures:
            found = {one.name: _hindrance(one, row, tried=one.name in able) for one in measure.members}
            free = [name for name, why in found.items() if why is None]
            able.update(free)
            chosen.update(free[:1])
            for name, why in found.items():
                reasons[name].update([why] if why else [])
    running = (replace(one, members=tuple(m for m in one.members if m.name in chosen)) for one in measures)
    left_out = tuple(
        LeftOut(one.name, one.judge.name, _why(one, measure, reasons[one.name], n=n, able=one.name in able))
        for measure in measures
        for one in measure.members
        if one.name not in chosen
    )
    return Survey(tuple(measure for measure in running if measure.members), left_out)


def _hindrance(member: Member, row: ReadRow, *, tried: bool) -> str | None:
    """Why a judge cannot judge a row; a rule of judgecal's own that reads the whole item is tried, as that is
    free."""
    judge = member.judge
    lacking = row.lacking(judge)
    if lacking is not None or tried or judge.kind != "local" or "item" not in judge.inputs:
        return lacking
    if decides_itself(judge):
        found = judge.verdict(row.item)
        if isinstance(found, Reading) and found.verdict is None:
            return found.failure.message if found.failure else "it gave no verdict"
    return None


def _why(member: Member, measure: Measure, reasons: Counter[str], *, n: int, able: bool) -> str:
    if able:
        others = ", ".join(one.name for one in measure.members if one.name != member.name)
        return f"every row that it could judge is judged by {others}, which fills the same column"
    (reason, times), *rest = reasons.most_common()
    more = f"; {n - times:,} rows lack something else" if rest else ""
    return f"{reason} in {times:,} of {n:,} rows{more}"


def pick(measure: Measure, row: ReadRow) -> tuple[Member, str | None]:
    """The judge of a row, the first that has what it asks for; else the first, and what it lacks."""
    first = measure.members[0]
    lacking = row.lacking(first.judge)
    if lacking is None:
        return first, None
    other = next((one for one in measure.members[1:] if row.lacking(one.judge) is None), None)
    return (first, lacking) if other is None else (other, None)
