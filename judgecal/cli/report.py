"""`judgecal report`."""

from __future__ import annotations

import enum
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.output import print_document, print_json, print_line, print_text
from judgecal.errors import InputError, notice

if TYPE_CHECKING:
    from pathlib import Path

    from judgecal.report.rendered import Report
    from judgecal.workspace import Workspace


class Format(enum.StrEnum):
    """What a report is written as."""

    TEXT = "text"
    MD = "md"
    HTML = "html"


def report(
    ctx: typer.Context,
    experiment: Annotated[
        str | None, typer.Argument(help="Slug or path of an experiment.", metavar="EXPERIMENT")
    ] = None,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            help="text: the terminal's table; md: short, for a pull request; html: one self-contained file.",
        ),
    ] = Format.TEXT,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Write experiments/index.html, and the page of every experiment that has changed since.",
        ),
    ] = False,
    look: Annotated[
        bool, typer.Option("--open", help="Write the page, or the index, and open it in a browser.")
    ] = False,
    margin: Annotated[
        float,
        typer.Option(
            "--margin", help="The loss against the best judge that is allowed; of score, agreement, optimize."
        ),
    ] = 0.03,
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """Show an experiment again: text, Markdown, or one HTML file. Built anew from the journal; calls no
    model."""
    if every == (experiment is not None):
        raise InputError("name one EXPERIMENT, or give --all for the index of all of them")
    from judgecal.report.experiments import report_of
    from judgecal.report.index import write_index

    workspace = shared.workspace_of(ctx)
    if experiment is not None:
        made = report_of(workspace, experiment, margin=margin)
        if look:
            _open(_page(workspace, experiment, made))
        _print(workspace, experiment, made, Format.HTML if look else form, full=full, json=json)
        return
    path = write_index(workspace, margin=margin)
    if look:
        _open(path)
    if json:
        print_json({"path": str(path)})
    else:
        print_line(str(path))


def _page(workspace: Workspace, experiment: str, report: Report) -> Path:
    """Write the page; gives its path."""
    from judgecal.experiment.stored import find_experiment
    from judgecal.report.experiments import PAGE

    path = find_experiment(workspace, experiment).folder / PAGE
    report.write(path)
    return path


def _open(path: Path) -> None:
    if not webbrowser.open(path.resolve().as_uri()):
        notice(f"judgecal: no browser could be started here; open {path} yourself")


def _print(
    workspace: Workspace, experiment: str, report: Report, form: Format, *, full: bool, json: bool
) -> None:
    if json:
        print_json(report.as_json())
    elif form is Format.HTML:
        print_line(str(_page(workspace, experiment, report)))
    elif form is Format.MD:
        print_text(report.markdown)
    else:
        print_document(report.document, full=full)
