"""A document in every form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.records import as_plain
from judgecal.report.document import Document
from judgecal.report.html import frame, html
from judgecal.report.markdown import markdown
from judgecal.report.terminal import terminal
from judgecal.workspace import write_text


@dataclass(frozen=True)
class Report:
    """What an experiment came to; in a notebook it displays itself."""

    document: Document
    made: str = ""  # the day of the result, in words

    @cached_property
    def html(self) -> str:
        """One self-contained page."""
        return html(self.document, made=self.made)

    @cached_property
    def markdown(self) -> str:
        """The short form for a pull request."""
        return markdown(self.document)

    def text(self, *, width: int = 80, full: bool = False, colour: bool = False) -> str:
        """For a terminal of so many columns, see `terminal`."""
        return terminal(self.document, width=width, full=full, colour=colour)

    def as_json(self) -> dict[str, Any]:
        """For scripts: the headline, what reproduces the numbers, and what the page carries for programs."""
        head = {"headline": self.document.headline, "run_line": "\n".join(self.document.run_lines)}
        plain: dict[str, Any] = as_plain({**head, **self.document.data})
        return plain

    def write(self, path: Path, *, stamp: str = "") -> dict[str, str]:
        """Write the page in one step, so that a reader never meets half of it; gives what it says of itself.

        `stamp` tells what the page was made of, so that it need not be made again while that is so.

        Raises:
            OSError: it cannot be written.
        """
        index = "../index.html" if (path.parent.parent / "index.html").exists() else ""
        headline = self.document.headline
        about_itself = {
            "stamp": stamp,
            "made": self.made,
            "kind": headline.kind,
            "headline": " ".join([headline.sentence, *headline.because]),
            "about": self.document.about,
        }
        write_text(path, html(self.document, made=self.made, index=index, about_itself=about_itself))
        return about_itself

    def _repr_html_(self) -> str:
        return frame(self.document, made=self.made)

    def __repr__(self) -> str:
        return f"Report({self.document.title!r}: {self.document.headline.sentence})"
