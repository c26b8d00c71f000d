"""`judgecal report` and `judgecal rules`: what needs no judge: results shown again, answers held to rules."""

from __future__ import annotations

import enum
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import argument, option
from judgecal.cli.output import print_document, print_json, print_line, print_result, print_text
from judgecal.errors import InputError, listed, notice
from judgecal.wings import wing

if TYPE_CHECKING:
    from judgecal.records import Item
    from judgecal.report.html import Report
    from judgecal.workspace import Workspace


class Format(enum.StrEnum):
    """What a report is written as."""

    TEXT = "text"
    MD = "md"
    HTML = "html"


def report(
    ctx: typer.Context,
    experiment: Annotated[
        str | None, argument("Slug or path of an experiment.", metavar="EXPERIMENT")
    ] = None,
    form: Annotated[
        Format,
        option(
            "text: the terminal's table; md: short, for a pull request; html: one self-contained file.",
            "--format",
        ),
    ] = Format.TEXT,
    every: Annotated[
        bool,
        option(
            "Write experiments/index.html, and the page of every experiment that has changed since.", "--all"
        ),
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
    """Show an experiment again: text, Markdown, or one HTML file. Built anew from the journal; calls no
    model."""
    if every == (experiment is not None):
        raise InputError("name one EXPERIMENT, or give --all for the index of all of them")
    from judgecal.report.experiments import report_of, write_index

    workspace = shared.workspace_of(ctx)
    if experiment is not None:
        made = report_of(workspace, experiment, margin=margin)
        if look:
            open_page(workspace, experiment, made)
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
    from judgecal.experiment.stored import find_experiment
    from judgecal.report.experiments import PAGE

    path = find_experiment(workspace, experiment).folder / PAGE
    report.write(path)
    return path


def open_page(workspace: Workspace, experiment: str, report: Report | None = None) -> None:
    """Write the page of an experiment and open it."""
    from judgecal.report.experiments import report_of

    _open(_page(workspace, experiment, report or report_of(workspace, experiment)))


def _open(path: Path) -> None:
    if not webbrowser.open(path.resolve().as_uri()):
        notice(f"judgecal: we could not start a browser here; open {path} yourself")


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


def rules(
    ctx: typer.Context,
    gold: Annotated[str, argument("Gold set whose items have rules (`expect`).", metavar="SET")],
    answers: Annotated[
        str | None,
        option(
            "A table of answers by id (columns id, answer, maybe system), or an experiment of answer.",
            metavar="FILE",
        ),
    ] = None,
    refusal_message: Annotated[
        str | None, option("The words that refuse reads as a refusal.", metavar="TEXT")
    ] = None,
    words: Annotated[
        str | None, option("The word list of safe, a file of the workspace.", metavar="FILE")
    ] = None,
    lemmas: Annotated[
        str | None,
        option(
            "Compare words in their dictionary forms: pl, en ..., off; by default the card's language. Needs "
            "simplemma.",
            metavar="LANGUAGE",
        ),
    ] = None,
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """Check answers by the rules of their items.

    The rules are include, exclude, cite, refuse and safe; totals stand over them. Nobody is called. Phrases
    are looked for both as substrings and as whole words.
    """
    from judgecal.experiment.rules import lemmas_for, score_rules
    from judgecal.experiment.stored import find_experiment
    from judgecal.goldset import load_gold

    workspace = shared.workspace_of(ctx)
    found = load_gold(gold, workspace=workspace)
    items: Sequence[Item] = found.items
    notes: Sequence[str] = ()
    if answers is not None and not Path(answers).suffix and not Path(answers).is_file():
        experiment = find_experiment(workspace, answers)
        if (answered := experiment.config.get("gold", {}).get("set")) != found.name:
            raise InputError(
                f"{answers} answers questions of {answered}, and not of {found.name}: name that set"
            )
        items = wing("answered items")(experiment.folder)
        asked, systems = {item.group for item in found.items if item.expect}, {item.system for item in items}
        for system in sorted(systems, key=str):
            missing = sorted(asked - {item.group for item in items if item.system == system})
            if missing:
                lacking = f"{len(missing)} questions with rules have no answer by {system} in {answers}"
                notes = (*notes, f"{lacking}: {listed(missing, sealed=found.test_groups)}")
        refusal_message = refusal_message or experiment.config.get("refusal_message")
    elif answers is not None:
        items, notes = wing("rule answers")(items, answers)
    language, off = lemmas_for(found.card.language, lemmas)
    notes = (*notes, *off)
    given = {"message": refusal_message, "words": words, "lemmas": language or None}
    result = score_rules(
        items,
        set_name=found.name,
        workspace=workspace,
        answers=None if answers is None else Path(answers).name,
        settings={name: value for name, value in given.items() if value is not None},
        notes=notes,
    )
    print_result(result, json=json, full=full)
    shared.finish(sum(score.substring.n_unscored for score in result.scores))
