"""`judgecal signature`: what prompts there are, what is wrong with one, and a new one."""

from __future__ import annotations

from typing import Annotated

import typer

from judgecal.cli.options import Full, Json, names, workspace_of
from judgecal.cli.output import print_result


def list_command(ctx: typer.Context, full: Full = False, as_json: Json = False) -> None:
    """List the signatures: name, scale, unit and inputs. Each is run."""
    from judgecal.judges.signature_files import signatures_of

    result = signatures_of(workspace_of(ctx))
    print_result(result, json=as_json, full=full)


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

    asked = [part.strip() for part in inputs.split(",")] if inputs else []
    workspace = workspace_of(ctx)
    result = new_signature(workspace, name, scale, inputs=asked, words=names(words), replace=replace)
    print_result(result, json=as_json, full=full)


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

    workspace = workspace_of(ctx)
    result = check_signatures(
        workspace, signature, None if gold is None else load_gold(gold, workspace=workspace)
    )
    print_result(result, json=as_json, full=full)
    if result.broken:
        raise InputError(result.broken)
