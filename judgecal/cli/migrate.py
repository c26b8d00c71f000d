"""`judgecal migrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli import row_columns as rows
from judgecal.cli.ci_files import CiFiles
from judgecal.cli.output import Decided, print_result

if TYPE_CHECKING:
    from judgecal.judges import Judge
    from judgecal.selection.churn import Recent

RecentAnswers = Annotated[
    Path | None,
    typer.Option("--on", metavar="FILE", help="Recent production answers without labels, for the churn."),
]
Margin = Annotated[
    float | None, typer.Option("--margin", help="The loss that is allowed; by default that of the lock.")
]

To = Annotated[
    str,
    typer.Option("--to", metavar="JUDGE", help="A model, a signature, or both: correctness_v3@gemini-flash."),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="LOCK", help="Lock the new judge here.")
]
Gold = Annotated[
    str | None, typer.Option("--gold", help="The lock's gold set, where it has another name or place now.")
]
Force = Annotated[bool, typer.Option("--force", help="Lock the new judge whatever was decided.")]


def migrate(
    ctx: typer.Context,
    to: To,
    on: RecentAnswers = None,
    output: Output = None,
    margin: Margin = None,
    gold: Gold = None,
    force: Force = False,
    replace: shared.Replace = False,
    *,
    lock: rows.LockArguments,
    table: rows.ColumnArguments,
    files: CiFiles,
    call: shared.RunArguments,
) -> None:
    """Say whether another judge may take the locked one's place. Both are held to the margin; --on adds the
    churn."""
    options = call.options()
    started = files.begin()
    from judgecal.goldset import load_gold
    from judgecal.report.migrate import migrate_document
    from judgecal.selection.lock import load_lock
    from judgecal.selection.migrate import MigrateRun, judge_to

    workspace = shared.workspace_of(ctx)
    locked = load_lock(lock.lock)
    old, new = locked.runnable(workspace, trust_lock=lock.trust_lock), judge_to(to, locked, workspace)
    run = MigrateRun(
        workspace,
        locked,
        lock.lock,
        load_gold(gold or locked.gold.set, workspace=workspace),
        old,
        new,
        margin=locked.margin if margin is None else margin,
        options=options,
        seed=call.seed,
        recent=_recent(on, table, (old, new)),
        output=output,
        replace=replace,
        force=force,
        out=call.name,
    )
    if call.dry_run:
        plan, look = run.preview(), shared.would_look(run.foresee(), run.gold.name)
        shared.show_plan(plan, json=call.json, look=f"{look} {run.could_show()}", live=True)
        return
    result = run.run()
    print_result(result, document := migrate_document(result), json=call.json, full=call.full)
    files.write(result, document, started)
    shared.say_unscored(result.n_unscored, run.experiment.journal)
    raise Decided(result.decision)


def _recent(path: Path | None, table: rows.ColumnArguments, judges: tuple[Judge, Judge]) -> Recent | None:
    """The table of `--on`; the column options belong to it alone."""
    from judgecal.errors import InputError

    if path is None:
        if table.given():
            raise InputError(
                f"{', '.join(table.given())} without --on: columns are those of a table of answers"
            )
        return None
    from judgecal.production.row_items import RowReader
    from judgecal.selection.churn import Recent
    from judgecal.tables import open_source

    source = open_source(path)
    return Recent(source, RowReader.of(table.columns(), source, *judges))
