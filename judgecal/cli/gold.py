"""`judgecal gold list`, `check` and `agreement`: the sets, what is wrong with one, how raters agree."""

from __future__ import annotations

from typing import Annotated

import typer

from judgecal.cli.options import Json, argument, option, workspace_of
from judgecal.cli.output import print_result
from judgecal.cli.table_file import TableFile

Full = Annotated[bool, option("Print all of it.", "--full")]


def list_command(ctx: typer.Context, full: Full = False, json: Json = False, *, table: TableFile) -> None:
    """List the gold sets of the workspace."""
    table.check()
    from judgecal.goldset import list_sets

    result = list_sets(workspace_of(ctx))
    print_result(result, json=json, full=full)
    table.write(result, parts=True)


def check_command(
    ctx: typer.Context,
    gold_set: Annotated[str | None, argument("By default every set.", metavar="[SET]")] = None,
    full: Full = False,
    json: Json = False,
    *,
    table: TableFile,
) -> None:
    """Name every problem of a set, with file and line.

    The exit code is 2 only where one cannot be loaded.
    """
    table.check()
    from judgecal.errors import InputError
    from judgecal.goldset import check_set, check_sets, load_gold
    from judgecal.report.gold import check_document

    workspace = workspace_of(ctx)
    if gold_set is not None:
        result = check_set(load_gold(gold_set, workspace=workspace), workspace)
        print_result(result, check_document(result, full=full), json=json, full=full)
        table.write(result, parts=True)
        return
    results = check_sets(workspace)
    print_result(results, json=json, full=full)
    table.write(results, parts=True)
    if results.broken:
        raise InputError(results.broken)


def agreement_command(
    ctx: typer.Context,
    gold_set: Annotated[str, typer.Argument(metavar="SET")],
    full: Full = False,
    json: Json = False,
    *,
    table: TableFile,
) -> None:
    """Say how far the raters of a set agree, pair by pair.

    The adjudicated label is made of their votes.
    """
    table.check()
    from judgecal.experiment.gold_agreement import rater_agreement
    from judgecal.goldset import load_gold

    result = rater_agreement(load_gold(gold_set, workspace=workspace_of(ctx)))
    print_result(result, json=json, full=full)
    table.write(result)
