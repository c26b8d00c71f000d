"""A report and its page: the decision first, what is not known beside it, then the sections that bear it out."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from judgecal.report.page_blocks import Block, markdown_of
from judgecal.report.page_escape import html_text, markdown_text, script_json, terminal_text

__all__ = ["Decision", "Report", "Section", "page_part"]

_FRAME = 'style="width:100%;height:48rem;border:1px solid #8884;border-radius:6px" sandbox="allow-scripts"'
_FOOT = (
    "Rebuilt from what the experiment kept: no model was called, and nothing here is loaded from elsewhere."
)


@dataclass(frozen=True, slots=True)
class Decision:
    """The sentence that a page begins with.

    Attributes:
        act: what to do, in a few words: "Use gpt-4".
        why: the rest of the sentence, without its full stop.
        unknown: what is not known, a sentence each; what weighs most comes first.
    """

    act: str
    why: str
    unknown: Sequence[str] = ()

    @property
    def sentence(self) -> str:
        """The whole of it."""
        return f"{self.act}: {self.why}." if self.why else f"{self.act}."


@dataclass(frozen=True, slots=True)
class Section:
    """A numbered part of a page.

    Attributes:
        name: its anchor, a word.
        title: its heading.
        caption: what it shows and which decision it serves, in sentences.
        blocks: what it holds.
    """

    name: str
    title: str
    caption: str
    blocks: Sequence[Block]

    def html(self) -> str:
        """Heading, caption, blocks."""
        inner = "\n".join(block.html() for block in self.blocks)
        return (
            f'<section id="{self.name}" aria-labelledby="{self.name}-title">\n'
            f'<h2 id="{self.name}-title">{html_text(self.title)}</h2>\n'
            f'<p class="caption">{html_text(self.caption)}</p>\n{inner}\n</section>'
        )

    def markdown(self) -> str:
        """Empty where none of its blocks belongs into a short form."""
        inner = markdown_of(self.blocks)
        return f"### {markdown_text(self.title)}\n\n{inner}" if inner else ""


@dataclass(frozen=True)
class Report:
    """What an experiment came to, in every form; in a notebook it displays itself.

    Attributes:
        title: of the page: the experiment.
        about: what was measured on what, in a line above the decision.
        decision: the first sentence.
        make_sections: its parts in order; made when they are first asked for, as drawing takes its time.
        text: for a terminal.
        run_lines: what reproduces the numbers, for the short form; on the page a section holds them.
        foot: the last line of the page.
        data: what the page's script filters by, and the numbers for who reads the page with a program.
    """

    title: str
    about: str
    decision: Decision
    make_sections: Callable[[], Sequence[Section]]
    text: str
    run_lines: Sequence[str] = ()
    foot: str = _FOOT
    data: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def sections(self) -> Sequence[Section]:
        """What follows the decision."""
        return self.make_sections()

    @cached_property
    def html(self) -> str:
        """One self-contained page: nothing to load, and nothing runs but its own script."""
        script = page_part("page.js")
        return Template(page_part("page.html")).substitute(
            title=html_text(self.title),
            about=html_text(self.about),
            style=page_part("page.css"),
            script=script,
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            act=html_text(self.decision.act),
            why=html_text(f": {self.decision.why}." if self.decision.why else "."),
            unknown="\n".join(f"<li>{html_text(one)}</li>" for one in self.decision.unknown),
            contents="\n".join(
                f'<li><a href="#{one.name}">{html_text(one.title)}</a></li>' for one in self.sections
            ),
            sections="\n\n".join(section.html() for section in self.sections),
            foot=html_text(self.foot),
            data=script_json(self.data),
        )

    @cached_property
    def markdown(self) -> str:
        """The short form, for a pull request."""
        parts = [f"**{markdown_text(self.decision.sentence)}**", markdown_text(self.about)]
        if self.decision.unknown:
            unknown = "\n".join(f"- {markdown_text(one)}" for one in self.decision.unknown)
            parts.append(f"Not known:\n\n{unknown}")
        parts += [found for found in (section.markdown() for section in self.sections) if found]
        return (
            "\n\n".join([*parts, *(f"`{terminal_text(line).replace('`', ' ')}`" for line in self.run_lines)])
            + "\n"
        )

    def plain(self) -> dict[str, Any]:
        """For scripts: the decision in words, and what the page carries for programs."""
        return {"decision": self.decision.sentence, "not_known": list(self.decision.unknown), **self.data}

    def write(self, path: Path) -> Path:
        """Write the page in one step, so that a reader never meets half of it; gives its path.

        Raises:
            OSError: it cannot be written.
        """
        draft = path.with_name(f".{path.name}")
        draft.write_text(self.html, encoding="utf-8")
        draft.replace(path)
        return path

    def _repr_html_(self) -> str:
        """The page in a frame of its own: its style and its script do not meet the notebook's."""
        return f'<iframe {_FRAME} title="{html_text(self.title)}" srcdoc="{escape(self.html)}"></iframe>'

    def __repr__(self) -> str:
        return f"Report({self.title!r}: {self.decision.sentence})"


def page_part(name: str) -> str:
    """A file beside this module."""
    folder = files("judgecal.report")
    inner = "" if name.endswith(".html") else "templates/"
    return folder.joinpath(inner + name).read_text(encoding="utf-8")
