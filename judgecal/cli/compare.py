"""`judgecal compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.output import print_result
from judgecal.cli.table_file import TableFile


def compare(
    ctx: typer.Context,
    experiment: Annotated[str, typer.Argument(help="Slug or path of an experiment.", metavar="EXPERIMENT")],
    judges: Annotated[
        list[str] | None,
        typer.Argument(
            help="The judges, A and B; more, or none for all of the experiment: every pair.",
            metavar="[A B ...]",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="By which; macro_agreement by default, accuracy on nominal labels."),
    ] = None,
    level: Annotated[
        float, typer.Option("--level", help="Level of the intervals; 1 - level is the false alarm rate.")
    ] = 0.95,
    seed: shared.Seed = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say whether it would look at test labels, and at which level.")
    ] = False,
    name: shared.Name = None,
    full: shared.Full = False,
    json: shared.Json = False,
    *,
    table: TableFile,
) -> None:
    """Tell two judges apart on the same items, if that can be.

    The difference is paired; the answer is A, B, or cannot tell. Calls no model.
    """
    from judgecal.experiment import CompareRun, read_experiment

    table.check()
    workspace = shared.workspace_of(ctx)
    run = CompareRun(
        workspace=workspace,
        stored=read_experiment(workspace, experiment),
        names=tuple(judges or ()),
        metric=metric,
        level=level,
        seed=seed,
        out=name,
    )
    if dry_run:
        shared.show_look(shared.would_look(run.foresee(), run.stored.gold.name, level=level), json=json)
        return
    result = run.run()
    print_result(result, json=json, full=full)
    table.write(result)
