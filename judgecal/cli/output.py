"""What a command prints: a result, a document, JSON, and what went wrong inside."""

from __future__ import annotations

import contextlib
import json as json_module
import os
import platform
import shutil
import sys
import tempfile
import textwrap
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from judgecal.cli.streams import encodable
from judgecal.commands import document_of
from judgecal.errors import UNSEEN, JudgecalError, notice, visible_line
from judgecal.workspace import find_workspace, shown

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


def print_prose(text: str) -> None:
    """Print a text of a sentence or two on stdout at the terminal's width; a path stays in one piece."""
    width = shutil.get_terminal_size((80, 24)).columns
    print_text(
        textwrap.fill(visible_line(text), max(width, 40), break_long_words=False, break_on_hyphens=False)
    )


def print_result(result: Result, document: Document | None = None, *, json: bool, full: bool = False) -> None:
    """Print a command's Result as its document, or as JSON where `json` is set.

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
    """Print a Document at the terminal's width, 80 columns where that is unknown."""
    from judgecal.report.terminal import terminal

    width = shutil.get_terminal_size((80, 24)).columns
    print_text(terminal(document, width=width, full=full))


def print_json(value: Any) -> None:
    """Print a value as one indented JSON object on stdout; never NaN, nothing in it that acts on a terminal.

    In UTF-8 where stdout takes it, else with escapes.
    """
    from judgecal.records import as_plain

    plain = as_plain(value)
    text = json_module.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False)
    text = UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    if encodable(text, sys.stdout.encoding) != text:
        text = json_module.dumps(plain, indent=2, allow_nan=False).replace("\x7f", "\\u007f")
    print_text(text)


INTERNAL = 70
"""`EX_SOFTWARE` of sysexits.h."""


def forget_experiment() -> None:
    """Forget the experiment that an earlier command of the same process opened."""
    if folder := sys.modules.get("judgecal.experiment.folder"):
        folder.OPENED.set(None)


def what_is_kept() -> str:
    """Return as text where judgements made before the command broke off are, else an empty text."""
    module = sys.modules.get("judgecal.experiment.folder")
    folder: Path | None = module.OPENED.get() if module else None
    names = ("judgements.jsonl", "verdicts.parquet", "files")
    journals = [folder / name for name in names] if folder else []
    return "".join(
        f"; what was judged so far is kept in {shown(journal)}" for journal in journals if journal.exists()
    )


def internal_error(error: BaseException) -> int:
    """Report an exception as judgecal's own failure, leave its traceback in a file, return the exit code."""
    what = f"{type(error).__name__}: {' '.join(str(error).split())}"
    path = _write(_without_secrets(_traceback(error)))
    notice(
        f"judgecal: an internal error, and no fault of yours: {_without_secrets(what)[:300]}{what_is_kept()}",
        f"the traceback is in {path}: please read it through and report it where you got judgecal; the exit "
        f"code is {INTERNAL}, which says nothing about any judge"
        if path
        else f"we could not write the traceback anywhere; the exit code is {INTERNAL}",
    )
    return INTERNAL


def _traceback(error: BaseException) -> str:
    from judgecal._version import __version__

    command = sys.argv[1:2]  # the rest may hold texts of the user's
    where = f"Python {platform.python_version()}, {platform.platform()}"
    about = f"judgecal {__version__}, {where}, command {command}"
    return "".join([about, "\n\n", *traceback.format_exception(error, limit=200)])


def _write(text: str) -> Path | None:
    """Write a text to a new file of the temporary folder, for its owner alone; None where none takes it."""
    with contextlib.suppress(OSError):
        number, name = tempfile.mkstemp(prefix="judgecal-traceback-", suffix=".txt")
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return Path(name)
    return None


def _without_secrets(text: str) -> str:
    """A text with stars in the place of every key of the environment and of the workspace's aliases."""
    try:
        from judgecal.engine.transport.redaction import redacted, secrets_of
        from judgecal.models import EMBEDDED, ModelSpec, load_catalogue

        specs = [ModelSpec(EMBEDDED, "judgecal/embedded")]
        with contextlib.suppress(JudgecalError, OSError, UnicodeError):
            specs += load_catalogue(find_workspace()).specs.values()
        return redacted(text, list(dict.fromkeys(secret for spec in specs for secret in secrets_of(spec))))
    except Exception:  # noqa: BLE001 - what is broken may be just that: then no text is the safe one
        return "(left out, as we could not clear it of keys)"
