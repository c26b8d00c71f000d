"""`judgecal judge`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli import row_columns as rows
from judgecal.cli.output import print_result
from judgecal.errors import notice


def judge(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help=".csv, .tsv, .jsonl, .json or .parquet.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="Where to write; its ending is the format.")
    ],
    *,
    lock: rows.LockArguments,
    table: rows.AnswerColumns,
    call: shared.RunArguments,
) -> None:
    """Judge a table of production answers with a locked judge: every row comes out, in order, with its verdict.

    Rows are read and written a few at a time, so a table may be larger than memory (a .json file is read whole).
    """
    options = call.options()
    columns = table.columns()
    from judgecal.report.judge import judge_document
    from judgecal.selection.lock import load_lock
    from judgecal.selection.production import ProductionRun
    from judgecal.selection.row_items import RowReader
    from judgecal.tables import open_source

    workspace = shared.workspace_of(ctx)
    locked = load_lock(lock.lock)
    runnable = locked.runnable(workspace, trust_lock=lock.trust_lock)
    run = ProductionRun(
        workspace=workspace,
        lock=locked,
        lock_path=lock.lock,
        source=open_source(file),
        reader=RowReader.of(columns, table.context, runnable),
        judge=runnable,
        output=output,
        options=options,
        out=call.name,
    )
    if call.dry_run:
        shared.show_plan(run.preview(), json=call.json)
        return
    result = run.run()
    print_result(result, judge_document(result), json=call.json, full=call.full)
    if result.n_unscored:
        error = result.columns["error"]
        notice(f"judgecal: {result.n_unscored} rows are unscored; {output}, column {error} says why")
        raise typer.Exit(4)
