"""`judgecal signature`: what prompts there are, what is wrong with one, and a new one."""

from __future__ import annotations

from typing import Annotated

import typer

from judgecal.cli.help import GroupedHelp, example
from judgecal.cli.options import Full, Json, grouped, names, workspace_of
from judgecal.cli.output import print_result

app = typer.Typer(
    help="Signatures, the prompts of judges: list, new, check.",
    no_args_is_help=True,
    rich_markup_mode=None,
    cls=GroupedHelp,
)


@app.command("list", epilog=example("signature list"))
@grouped
def list_command(ctx: typer.Context, full: Full = False, as_json: Json = False) -> None:
    """List the signatures: name, scale, unit and inputs. Each is run."""
    from judgecal.judges.signature_files import signatures_of
    from judgecal.report.listings import signatures_document

    result = signatures_of(workspace_of(ctx))
    print_result(result, signatures_document(result), json=as_json, full=full)


@app.command("new", epilog=example("signature new"))
@grouped
def new_command(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The file's name, such as policy or team/policy.")
    ],
    scale: Annotated[
        str, typer.Option("--scale", help="percentage, ordinal:MIN:MAX, points:MIN:MAX, binary or nominal.")
    ],
    inputs: Annotated[
        str | None,
        typer.Option(
            "--inputs", metavar="A,B", help="What it is shown; by default question,answer_under_test."
        ),
    ] = None,
    words: Annotated[
        str | None, typer.Option("--words", metavar="A,B,C", help="The verdicts of nominal.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Write over a file of this name.")] = False,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Write a signature that loads, to be filled in.

    It is plain DSPy, a file of the workspace.
    """
    from judgecal.judges.signature_files import new_signature
    from judgecal.report.listings import new_signature_document

    asked = [part.strip() for part in inputs.split(",")] if inputs else []
    workspace = workspace_of(ctx)
    result = new_signature(workspace, name, scale, inputs=asked, words=names(words), replace=replace)
    print_result(result, new_signature_document(result), json=as_json, full=full)


@app.command("check", epilog=example("signature check"))
@grouped
def check_command(
    ctx: typer.Context,
    signature: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="By default every signature.")
    ] = None,
    gold: Annotated[
        str | None, typer.Option("--gold", metavar="SET", help="Also say what its items lack.")
    ] = None,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Name every problem of a signature, with file and line.

    Each is run. The exit code is 2 only where one cannot be loaded.
    """
    from judgecal.errors import InputError
    from judgecal.goldset import load_gold
    from judgecal.judges.signature_files import check_signatures
    from judgecal.report.listings import signature_checks_document

    workspace = workspace_of(ctx)
    result = check_signatures(
        workspace, signature, None if gold is None else load_gold(gold, workspace=workspace)
    )
    print_result(result, signature_checks_document(result), json=as_json, full=full)
    if result.broken:
        raise InputError(result.broken)
