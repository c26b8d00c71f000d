"""`judgecal select`, `gate` and `migrate`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import option
from judgecal.cli.output import Decided, print_prose, print_result
from judgecal.errors import InputError, notice

if TYPE_CHECKING:
    from judgecal.experiment.table_rows import TableRows
    from judgecal.judges.protocol import Judge
    from judgecal.selection.decision import Caps
    from judgecal.workspace import Workspace

_NOBODY = 1


@dataclass(frozen=True, slots=True)
class CapArguments:
    """What a judge may be at most, and at least."""

    max_usd_per_1k: Annotated[float | None, option("Cost of 1,000 judgements at most.")] = None
    max_broken: Annotated[
        list[str] | None,
        option(
            "Share of a family of probes on which a judge may break; one shown to exceed it is left out. "
            "Repeatable.",
            metavar="FAMILY=PERCENT",
        ),
    ] = None

    allow_below_floor: Annotated[
        bool, option("Also choose a judge not shown to beat the best constant, or by few questions.")
    ] = False
    allow_unconfirmed: Annotated[bool, option("Also lock a judge that falls too far on test.")] = False

    def caps(self) -> Caps:
        """Return the Caps, the limits on a judge, as the selection takes them."""
        from judgecal.selection.decision import Caps

        broken = dict[str, float]()
        for given in self.max_broken or ():
            family, _, percent = given.partition("=")
            try:
                broken[family] = float(percent.removesuffix("%")) / 100.0
            except ValueError:
                broken[family] = -1.0
            if not 0.0 <= broken[family] <= 1.0:
                raise InputError(f"--max-broken {given!r}: write FAMILY=PERCENT, as in give_100=5")
        return Caps(self.max_usd_per_1k, self.allow_below_floor, self.allow_unconfirmed, broken)


def select(
    ctx: typer.Context,
    experiment: shared.ExperimentName,
    metric: shared.Metric = None,
    margin: Annotated[float, option("The loss against the best judge that you allow.")] = 0.03,
    output: Annotated[Path, option("Where the lock goes.", "--output", "-o")] = Path("judge.lock.json"),
    repeats: Annotated[
        int | None, option("Judgements of each test item; by default as many as the experiment made.")
    ] = None,
    replace: shared.Replace = False,
    *,
    allowed: CapArguments,
    call: shared.RunArguments,
) -> None:
    """Choose the cheapest judge within the margin, and lock it. It is shown to lose no more; confirmed on
    test."""
    from judgecal.experiment.stored import read_experiment
    from judgecal.selection.select import SelectRun

    workspace = shared.workspace_of(ctx)
    stored = read_experiment(workspace, experiment)
    options = call.options(repeats=stored.table.repeats if repeats is None else repeats)
    run = SelectRun(
        workspace=workspace,
        stored=stored,
        options=options,
        caps=allowed.caps(),
        metric=metric,
        margin=margin,
        output=output,
        seed=call.seed,
        replace=replace,
        out=call.name,
    )
    if call.dry_run:
        shared.show_plan(run.preview(), json=call.json)
        return
    result = run.run()
    print_result(result, json=call.json, full=call.full)
    if result.chosen is None:
        raise typer.Exit(_NOBODY)
    shared.finish(result.n_unscored, journal=run.experiment.journal)


def gate(
    ctx: typer.Context,
    margin: Annotated[float | None, option("The loss that you allow; by default the lock's.")] = None,
    level: Annotated[float, option("Level of the interval and of the bound on the loss.")] = 0.95,
    probes: Annotated[
        bool, option("Repeat the lock's probes: a judge that has become easier to fool fails.")
    ] = False,
    *,
    lock: shared.LockArguments,
    call: shared.CallArguments,
) -> None:
    """Score the locked judge again: has it drifted?

    It is called afresh. Exits 0 pass, 1 fail, 3 inconclusive or changed. Pass: the loss against the locked
    verdicts is shown to stay under the margin. Fail: over two passes the interval of the difference lies
    beyond the margin, or below 0 with a loss beyond the margin that lasts; or many more items are unscored.
    Changed: the verdicts lie further from the locked ones than the judge's own noise, so another judge
    answers under this name.
    """
    from judgecal.selection.gate import plan_gate
    from judgecal.selection.lock import load_lock

    planned = plan_gate(
        shared.workspace_of(ctx),
        load_lock(lock.lock),
        lock.lock,
        margin=margin,
        level=level,
        budget_usd=call.budget_usd,
        seed=call.seed,
        out=call.name,
        trust_lock=lock.trust_lock,
        probes=probes,
    )
    if call.dry_run:
        shared.show_plan(planned.preview(), json=call.json)
        if not call.json:
            print_prose("That is one pass; where it cannot tell, up to two more take as much each.")
        return
    planned.check()
    slug = planned.experiment.slug
    notice(f"judgecal: gate in {slug}; if it is interrupted, --name {slug} goes on with it")
    result = planned.run()
    print_result(result, json=call.json, full=call.full)
    raise Decided(result.decision)


def migrate(
    ctx: typer.Context,
    to: Annotated[str, option("The other judge, such as correctness_v3@gemini-flash.", metavar="JUDGE")],
    on: Annotated[
        Path | None,
        option("Recent answers without labels: what changes on them, and what that decides.", metavar="FILE"),
    ] = None,
    labels: Annotated[
        str | None,
        option("Labels of those answers, drawn by gold sheet --strata disagreement.", metavar="SET"),
    ] = None,
    output: Annotated[
        Path | None, option("Lock the new judge here.", "--output", "-o", metavar="LOCK")
    ] = None,
    margin: Annotated[float | None, option("The loss that you allow; by default the lock's.")] = None,
    replace: shared.Replace = False,
    *,
    lock: shared.LockArguments,
    table: shared.ColumnArguments,
    call: shared.RunArguments,
) -> None:
    """Say whether another judge may replace the locked one.

    Both are held to the margin; with --on it says where the two differ, and needs labels only there.
    """
    options = call.options()
    from judgecal.goldset import load_gold
    from judgecal.judges import judge_named
    from judgecal.selection.lock import load_lock
    from judgecal.selection.migrate import MigrateRun

    workspace = shared.workspace_of(ctx)
    locked = load_lock(lock.lock)
    old = locked.runnable(workspace, trust_lock=lock.trust_lock)
    new = judge_named(to, workspace=workspace)
    run = MigrateRun(
        workspace,
        locked,
        lock.lock,
        load_gold(locked.gold.set, workspace=workspace),
        old,
        new,
        margin=locked.margin if margin is None else margin,
        options=options,
        seed=call.seed,
        recent=_recent(workspace, on, table, (old, new), options.limit),
        output=output,
        replace=replace,
        out=call.name,
        labels=None if labels is None else load_gold(labels, workspace=workspace),
    )
    if call.dry_run:
        shared.show_plan(run.preview(), json=call.json)
        return
    result = run.run()
    print_result(result, json=call.json, full=call.full)
    if result.n_unscored:
        notice(f"judgecal: {result.n_unscored} judgements have no verdict; {run.experiment.journal} says why")
    raise Decided(result.decision)


def _recent(
    workspace: Workspace,
    path: Path | None,
    table: shared.ColumnArguments,
    judges: tuple[Judge, Judge],
    limit: int | None,
) -> TableRows | None:
    """The table of `--on`; the column options belong to it alone."""
    if path is None:
        if table.given():
            raise InputError(
                f"{', '.join(table.given())} without --on: columns are those of a table of answers"
            )
        return None
    from judgecal.experiment.table_rows import RowReader, TableRows
    from judgecal.tables import open_table

    source = open_table(path)
    columns = table.columns(workspace, inputs={name for judge in judges for name in judge.inputs})
    return TableRows(source, RowReader.of(columns, source, *judges), limit)
