"""How a result leaves the command line: one JSON object, or its document at the terminal's width."""

from __future__ import annotations

import json as json_module
import shutil
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from judgecal.records import Result
    from judgecal.report.document import Document

DECISION_EXITS = {"pass": 0, "fail": 1, "inconclusive": 3, "changed": 3}
"""How `gate` and `migrate` end; this goes before 4, of items unscored."""


def print_result(result: Result, document: Document, *, json: bool, full: bool = False) -> None:
    """Print what a command came to.

    Args:
        result: whose fields are the JSON object; the headline and the run line are added to them.
        document: the same for a reader.
        json: whether a script reads it.
        full: every block instead of the short ones.
    """
    if json:
        shared = {"headline": document.headline, "run_line": "\n".join(document.run_lines)}
        print_json({**shared, **result.as_json()})
        return
    print_document(document, full=full)


def print_document(document: Document, *, full: bool = False) -> None:
    """A document at the terminal's width."""
    from judgecal.report.terminal import terminal

    typer.echo(terminal(document, width=shutil.get_terminal_size((80, 24)).columns, full=full))


def print_json(value: Any) -> None:
    """One JSON object on stdout, indented; never NaN."""
    from judgecal.records import as_plain

    typer.echo(json_module.dumps(as_plain(value), ensure_ascii=False, indent=2, allow_nan=False))
