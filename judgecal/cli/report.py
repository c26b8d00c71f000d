"""`judgecal report`."""

from __future__ import annotations

import enum
import shutil
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli import options as shared
from judgecal.cli.report_kinds import KINDS, MARGIN, report_of
from judgecal.errors import InputError

if TYPE_CHECKING:
    from judgecal.report import page, rendered


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
        typer.Option("--all", help="Write experiments/index.html: every experiment with its decision."),
    ] = False,
    margin: Annotated[
        float,
        typer.Option(
            "--margin", help="The loss against the best judge that is allowed; of score, agreement, optimize."
        ),
    ] = MARGIN,
    json: shared.Json = False,
) -> None:
    """Rebuild an experiment's report from its journal: text, Markdown, or one HTML file. Calls no model."""
    if every == (experiment is not None):
        raise InputError("name one EXPERIMENT, or give --all for the index of all of them")
    from judgecal.report import json_text

    workspace = shared.workspace_of(ctx)
    if experiment is None:
        from judgecal.cli.report_index import write_index

        path = write_index(workspace, KINDS, margin=margin)
        typer.echo(json_text({"path": str(path)}) if json else path)
        return
    found = report_of(workspace, experiment, margin=margin)
    if json:
        typer.echo(json_text(_plain(found)))
        return
    if form is Format.HTML:
        from judgecal.experiment.stored import find_experiment

        path = find_experiment(workspace, experiment).folder / "report.html"
        typer.echo(found.write(path))
        return
    typer.echo(found.markdown if form is Format.MD else _text(found))


def _plain(found: page.Report | rendered.Report) -> dict[str, Any]:
    from judgecal.report.rendered import Report

    return found.as_json() if isinstance(found, Report) else found.plain()


def _text(found: page.Report | rendered.Report) -> str:
    from judgecal.report.rendered import Report

    return (
        found.text(width=shutil.get_terminal_size((80, 24)).columns)
        if isinstance(found, Report)
        else found.text
    )
