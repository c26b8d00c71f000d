"""What `gate` and `migrate` write for continuous integration: a summary in Markdown, and JUnit XML."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.errors import InputError, notice, refuse

if TYPE_CHECKING:
    from judgecal.report.document import Document
    from judgecal.selection.gate import GateResult
    from judgecal.selection.migrate_result import MigrateResult


@dataclass(frozen=True, slots=True)
class CiFiles:
    """The files; one that is there is written over, as the last run's."""

    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown", metavar="FILE", help='Also write a summary, as for "$GITHUB_STEP_SUMMARY".'
        ),
    ] = None
    junit: Annotated[
        Path | None,
        typer.Option(
            "--junit",
            metavar="FILE",
            help="Also write the decision as JUnit XML; one that cannot tell is an error.",
        ),
    ] = None

    def begin(self) -> datetime.datetime:
        """When the command begins; InputError: a file cannot be written, before anything is called."""
        if (
            self.markdown is not None
            and self.junit is not None
            and self.markdown.resolve() == self.junit.resolve()
        ):
            raise InputError(f"--markdown and --junit name one file, {self.junit}: name two")
        given = {"--markdown": self.markdown, "--junit": self.junit}
        refuse([
            f"{option} {path}: give a file in a folder that is there"
            for option, path in given.items()
            if path is not None and (path.is_dir() or not path.absolute().parent.is_dir())
        ])  # fmt: skip
        return datetime.datetime.now(datetime.UTC)

    def write(
        self, result: GateResult | MigrateResult, document: Document, started: datetime.datetime
    ) -> None:
        """Write those that are asked for, whatever was decided; that one cannot be does not undo the
        decision."""
        if self.markdown is not None:
            from judgecal.report.markdown import markdown

            _write(self.markdown, markdown(document))
        if self.junit is not None:
            from judgecal.report.junit import junit

            seconds = (datetime.datetime.now(datetime.UTC) - started).total_seconds()
            _write(self.junit, junit(result, document, started=started, seconds=seconds))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        notice(f"judgecal: {error}; {path.name} is not written")
