"""`judgecal report`: results shown again, without a call; `init`, `models` and `judges`: what a workspace
holds."""

from __future__ import annotations

import shlex
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import argument, option
from judgecal.cli.output import print_document, print_json, print_result, print_text
from judgecal.errors import InputError, notice, refuse, visible_line

if TYPE_CHECKING:
    from judgecal.report.html import Report
    from judgecal.workspace import Workspace


FORMATS = ("text", "md", "html", "svg")


def report(
    ctx: typer.Context,
    experiment: Annotated[
        str | None,
        argument(
            "Slug or path of an experiment; a lock, or a suite of locks, for its card.",
            metavar="EXPERIMENT|LOCK",
        ),
    ] = None,
    form: Annotated[
        str,
        option(
            "text: the terminal's table; md: short, for a pull request; html: one self-contained file; svg: "
            "the badge of a lock.",
            "--format",
            metavar="|".join(FORMATS),
        ),
    ] = FORMATS[0],
    every: Annotated[
        bool, option("Write experiments/index.html, and the page of every experiment.", "--all")
    ] = False,
    look: Annotated[
        bool, option("Write the page, or the index, and open it in a browser.", "--open")
    ] = False,
    margin: Annotated[
        float, option("The loss against the best judge that you allow; of score, agreement, optimize.")
    ] = 0.03,
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """Show an experiment again, or the card of a locked judge.

    As text, Markdown, or one HTML file, built anew from the journal; calls no model. The card says what a
    judge may be trusted with.
    """
    if every == (experiment is not None):
        raise InputError("name one EXPERIMENT, or give --all for the index of all of them")
    if form not in FORMATS:
        raise InputError(f"--format is one of {', '.join(FORMATS)}, found {form!r}")
    from judgecal.report.experiments import report_of, write_index

    workspace = shared.workspace_of(ctx)
    if experiment is None:
        path = write_index(workspace, margin=margin)
        if look:
            _open(path)
        if json:
            print_json({"path": str(path)})
        else:
            print_text(visible_line(str(path)))
        return
    if form == "svg":
        from judgecal.report.card import badge, card_of

        if not experiment.endswith(".json"):
            raise InputError("--format svg is the badge of a lock: name a judge.lock.json")
        print_text(badge(card_of(Path(experiment), workspace)))
        return
    made = report_of(workspace, experiment, margin=margin)
    if look:
        open_page(workspace, experiment, made)
    if json:
        print_json(made.as_json())
    elif look or form == "html":
        print_text(visible_line(str(_page(workspace, experiment, made))))
    elif form == "md":
        print_text(made.markdown)
    else:
        print_document(made.document, full=full)


def _page(workspace: Workspace, experiment: str, report: Report) -> Path:
    """Write the page of an experiment into its folder, or that of a lock beside it."""
    from judgecal.experiment.stored import find_experiment
    from judgecal.report.experiments import PAGE

    path = Path(experiment)
    if path.is_file():
        path = path.with_name(f"{path.name.removesuffix(path.suffix)}.card.html")
    else:
        path = find_experiment(workspace, experiment).folder / PAGE
    report.write(path)
    return path


def open_page(workspace: Workspace, experiment: str, report: Report | None = None) -> None:
    """In a Workspace, write the report page of the experiment so named and open it in a browser."""
    from judgecal.report.experiments import report_of

    _open(_page(workspace, experiment, report or report_of(workspace, experiment)))


def _open(path: Path) -> None:
    if not webbrowser.open(path.resolve().as_uri()):
        notice(f"judgecal: we could not start a browser here; open {path} yourself")


def init(
    directory: Annotated[Path, argument("A new or empty folder.", metavar="DIR")],
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """Write the starter workspace into a new folder.

    It holds signatures, suites, the starter gold set and judgecal.toml; all of it is yours to change.
    """
    from judgecal.records import Headline
    from judgecal.report.document import Document
    from judgecal.workspace import init_workspace

    made = init_workspace(directory)
    root = shlex.quote(str(made.root))
    headline = Headline(
        "workspace",
        f"{made.root} is your workspace: signatures/, suites/, gold/starter/, experiments/, judgecal.toml.",
        (f"Go on there: cd {root}",),
        next=f"judgecal --workspace {root} optimize",
    )
    document = Document("Workspace", "", headline, [])
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
