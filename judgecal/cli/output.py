"""How a result leaves the command line: one JSON object, or its document at the terminal's width, and its
exit code."""

from __future__ import annotations

import json as json_module
import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import typer

from judgecal.cli.streams import encodable, in_colour
from judgecal.commands import document_of
from judgecal.errors import UNSEEN, visible_line

if TYPE_CHECKING:
    from judgecal.records import Result
    from judgecal.report.document import Document

DECISION_EXITS = {"pass": 0, "fail": 1, "inconclusive": 3, "changed": 3}
"""How `gate` and `migrate` end; this goes before 4, of items unscored."""


class Decided(typer.Exit):
    """The end of `gate` and `migrate`: the exit code is the decision, whatever became of the text of the
    result."""

    def __init__(self, decision: str) -> None:
        super().__init__(DECISION_EXITS[decision])


def print_text(text: str) -> None:
    """Text on stdout, and a line end; every word of a result goes this way."""
    print(text, flush=True)  # noqa: T201


def print_line(text: str) -> None:
    """One line on stdout, whatever the names in it hold."""
    print_text(visible_line(text))


def print_prose(text: str) -> None:
    """A sentence or two on stdout at the terminal's width; a path stays in one piece."""
    width = shutil.get_terminal_size((80, 24)).columns
    print_text(
        textwrap.fill(visible_line(text), max(width, 40), break_long_words=False, break_on_hyphens=False)
    )


def print_result(result: Result, document: Document | None = None, *, json: bool, full: bool = False) -> None:
    """Print what a command came to.

    Args:
        result: whose fields are the JSON object; the headline and the run line are added to them.
        document: the same for a reader; where not given, the one that the table of commands names.
        json: whether a script reads it.
        full: every block instead of the short ones.
    """
    document = document or document_of(result)
    assert document is not None
    if json:
        shared = {"headline": document.headline, "run_line": "\n".join(document.run_lines)}
        print_json({**shared, **result.as_json()})
        return
    print_document(document, full=full)


def print_document(document: Document, *, full: bool = False) -> None:
    """A document at the terminal's width, 80 columns where that is unknown; in colour where a terminal shows
    it."""
    from judgecal.report.terminal import terminal

    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size((80, 24)).columns
    with in_colour(colour):
        print_text(terminal(document, width=width, full=full, colour=colour))


def print_json(value: Any) -> None:
    """One JSON object on stdout, indented; never NaN, and nothing in it that acts on a terminal.

    In UTF-8 where stdout takes it, else with escapes.
    """
    from judgecal.records import as_plain

    plain = as_plain(value)
    text = json_module.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False)
    text = UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    if encodable(text, sys.stdout.encoding) != text:
        text = json_module.dumps(plain, indent=2, allow_nan=False).replace("\x7f", "\\u007f")
    print_text(text)
