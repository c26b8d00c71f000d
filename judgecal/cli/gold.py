"""`judgecal gold`: the sets there are, what is wrong with one, how far its raters agree; import and the
like."""

from __future__ import annotations

from typing import Annotated

import typer

from judgecal.cli.gold_import import import_command
from judgecal.cli.gold_sheet import sheet_command
from judgecal.cli.help import GroupedHelp, example
from judgecal.cli.options import Json, grouped, workspace_of
from judgecal.cli.output import print_result
from judgecal.cli.table_file import TableFile
from judgecal.wings import wing

app = typer.Typer(
    help="Gold sets: list, check, agreement of the raters, import, public sets, made questions, sheets, labelling.",
    no_args_is_help=True,
    rich_markup_mode=None,
    cls=GroupedHelp,
)

app.command("import", epilog=example("gold import"))(grouped(import_command))
app.command("fetch", epilog=example("gold fetch"))(grouped(wing("gold fetch")))
app.command("make", epilog=example("gold make"))(grouped(wing("gold make")))
app.command("sheet", epilog=example("gold sheet"))(grouped(sheet_command))
app.command("label", epilog=example("gold label"))(grouped(wing("gold label")))
app.command("adjudicate", epilog=example("gold adjudicate"))(grouped(wing("gold adjudicate")))

Full = Annotated[bool, typer.Option("--full", help="Print all of it.")]


@app.command("list", epilog=example("gold list"))
@grouped
def list_command(ctx: typer.Context, full: Full = False, as_json: Json = False, *, table: TableFile) -> None:
    """List the gold sets of the workspace."""
    table.check()
    from judgecal.goldset import list_sets
    from judgecal.report.gold import list_document

    result = list_sets(workspace_of(ctx))
    print_result(result, list_document(result), json=as_json, full=full)
    table.write(result, parts=True)


@app.command("check", epilog=example("gold check"))
@grouped
def check_command(
    ctx: typer.Context,
    gold_set: Annotated[str | None, typer.Argument(metavar="[SET]", help="By default every set.")] = None,
    full: Full = False,
    as_json: Json = False,
    *,
    table: TableFile,
) -> None:
    """Name every problem of a set, with file and line.

    The exit code is 2 only where one cannot be loaded.
    """
    table.check()
    from judgecal.errors import InputError
    from judgecal.goldset import check_set, check_sets, load_gold
    from judgecal.report.gold import check_document, checks_document

    workspace = workspace_of(ctx)
    if gold_set is not None:
        result = check_set(load_gold(gold_set, workspace=workspace), workspace)
        print_result(result, check_document(result, full=full), json=as_json, full=full)
        table.write(result, parts=True)
        return
    results = check_sets(workspace)
    print_result(results, checks_document(results), json=as_json, full=full)
    table.write(results, parts=True)
    if results.broken:
        raise InputError(results.broken)


@app.command("agreement", epilog=example("gold agreement"))
@grouped
def agreement_command(
    ctx: typer.Context,
    gold_set: Annotated[str, typer.Argument(metavar="SET")],
    full: Full = False,
    as_json: Json = False,
    *,
    table: TableFile,
) -> None:
    """Say how far the raters of a set agree, pair by pair.

    The adjudicated label is made of their votes.
    """
    table.check()
    from judgecal.experiment.gold_agreement import rater_agreement
    from judgecal.goldset import load_gold
    from judgecal.report.gold import agreement_document

    result = rater_agreement(load_gold(gold_set, workspace=workspace_of(ctx)))
    print_result(result, agreement_document(result), json=as_json, full=full)
    table.write(result)
