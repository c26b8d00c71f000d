"""`judgecal init`, `models` and `judges`: what a workspace holds."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import argument
from judgecal.cli.output import print_document, print_json, print_result
from judgecal.errors import refuse

if TYPE_CHECKING:
    from judgecal.report.document import Document
    from judgecal.workspace import Workspace


def init(
    directory: Annotated[Path, argument("A new or empty folder.", metavar="DIR")],
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """Write the starter workspace into a new folder.

    It holds signatures, suites, the starter gold set and judgecal.toml; all of it is yours to change.
    """
    from judgecal.workspace import init_workspace

    made = init_workspace(directory)
    document = _made_document(made)
    if json:
        print_json({"headline": document.headline, "run_line": "", "workspace": made.root.as_posix()})
        return
    print_document(document, full=full)


def models(ctx: typer.Context, full: shared.Full = False, json: shared.Json = False) -> None:
    """List the models (price, key), and where replies are stored.

    That folder is the cache of all workspaces: who deletes it pays for the same calls again.
    """
    from judgecal.engine.cache import models_here

    print_result(models_here(shared.workspace_of(ctx)), json=json, full=full)


def judges(
    ctx: typer.Context,
    name: Annotated[
        str | None, argument("A signature, prompt, suite or local judge; by default all.", metavar="[NAME]")
    ] = None,
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """List signatures, rules and suites, or check one of them.

    A prompt is shown as it is sent, with its inputs and its scale. A signature that is named is run. The exit
    code is 2 where there is a problem.
    """
    from judgecal.judges.listing import judges_here, show_judge

    workspace = shared.workspace_of(ctx)
    if name is None:
        print_result(judges_here(workspace), json=json, full=full)
        return
    judge = show_judge(name, workspace)
    print_result(judge, json=json, full=full)
    refuse([f"{problem.where}: {problem.message}" for problem in judge.problems])


def _made_document(made: Workspace) -> Document:
    from judgecal.records import Headline
    from judgecal.report.document import Document

    root = shlex.quote(str(made.root))
    headline = Headline(
        "workspace",
        f"{made.root} is your workspace: signatures/, suites/, gold/starter/, experiments/, judgecal.toml.",
        (f"Go on there: cd {root}",),
        next=f"judgecal --workspace {root} optimize",
    )
    return Document("Workspace", "", headline, [])
