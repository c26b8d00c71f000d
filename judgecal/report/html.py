"""A document as one self-contained page: nothing to load, and nothing runs but the page's own script.

`Report` has it in every form.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from judgecal.errors import visible
from judgecal.records import Result, as_plain, frame_of
from judgecal.report.document import (
    Block,
    Bullets,
    Diff,
    Document,
    Folded,
    Grid,
    Hundred,
    Lines,
    Paragraph,
    Picture,
)
from judgecal.report.terminal import terminal
from judgecal.report.wording import CHIPS
from judgecal.workspace import write_text

_FRAME = "width:100%;height:48rem;border:1px solid #8884;border-radius:6px"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("judgecal.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.globals.update(draw=_draw, source=source, meaning=_meaning, chips=CHIPS)
    environment.filters["svg"] = Markup
    return environment


def _finalize(value: Any) -> Any:
    """Plain text loses what acts unseen; what is markup already stays."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _macro(template: str, name: str, value: object) -> str:
    drawn: str = getattr(_environment().get_template(template).module, name)(value)
    return drawn


def _draw(block: Block) -> str:
    """A block by the macro of `blocks.html` that has the name of its class."""
    return _macro("blocks.html", type(block).__name__.lower(), block)


def _meaning(header: str) -> str:
    """What the metric that a column is headed by means; empty for other words."""
    from judgecal.stats.metrics import METRICS  # loads numpy, which a page without metrics need not wait for

    name = re.split(r"[ @,\[]", header, maxsplit=1)[0]
    return METRICS[name].meaning if name in METRICS else ""


def source(name: str) -> Markup:
    """Read the text of one of judgecal's style sheets or scripts, by file name, as Markup."""
    loader = _environment().loader
    assert loader is not None
    return Markup(loader.get_source(_environment(), name)[0])


def plot(name: str, placed: object) -> str:
    """A picture of `plots.html` by its name, as SVG; `placed` is what its macro draws, in pixels."""
    return _macro("plots.html", name, placed).strip()


def rendered(template: str, **values: Any) -> str:
    """A template of `report/templates/` with its values; text is escaped, a missing value is an error."""
    return _environment().get_template(template).render(**values)


def _page(template: str, script: str, **values: Any) -> str:
    """A page whose policy lets that script alone run."""
    digest = hashlib.sha256(source(script).encode()).digest()
    return rendered(template, script_hash=base64.b64encode(digest).decode(), **values)


def html(document: Document, *, made: str = "", index: str = "") -> str:
    """Render a Document as the text of a whole HTML page.

    Args:
        document: what it shows.
        made: the day of the result, in words.
        index: where the list of all experiments lies; empty where there is none.
    """
    explorer = document.explorer
    document = replace(document, explorer=explorer() if callable(explorer) else explorer)
    return _page("page.html", "page.js", document=document, made=made, index=index)


def index_page(experiments: Sequence[object]) -> str:
    """The list of all experiments."""
    return _page("index.html", "index.js", experiments=experiments)


@dataclass(frozen=True)
class Report(Result):
    """What an experiment came to; in a notebook it displays itself."""

    document: Document
    made: str = ""  # the day of the result, in words

    @cached_property
    def html(self) -> str:
        """The report as one self-contained page."""
        return html(self.document, made=self.made)

    @cached_property
    def markdown(self) -> str:
        """The short form for a pull request."""
        return markdown(self.document)

    def text(self, *, width: int = 80, full: bool = False) -> str:
        """The report for a terminal of so many columns (see `terminal`)."""
        return terminal(self.document, width=width, full=full)

    def as_json(self) -> dict[str, Any]:
        """Return a dict for scripts: the report's own headline, run lines and data for programs."""
        head = {"headline": self.document.headline, "run_line": "\n".join(self.document.run_lines)}
        plain: dict[str, Any] = as_plain({**head, **self.document.data})
        return plain

    def frame(self) -> Any:
        """The numbers of the report's result as `Result.frame` gives them."""
        return frame_of(self.document.data.get("result", self.document.data))

    def write(self, path: Path) -> None:
        """Write the report's page to a Path in a single step, so that no reader meets half of it.

        Raises:
            OSError: it cannot be written.
        """
        index = "../index.html" if (path.parent.parent / "index.html").exists() else ""
        write_text(path, html(self.document, made=self.made, index=index))

    def _repr_html_(self) -> str:
        return rendered(
            "frame.html", document=self.document, page=self.html, style=_FRAME, sandbox="allow-scripts"
        )


_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#!~&$@"})
_FENCE = re.compile("`{3,}")


def markdown(document: Document) -> str:
    """Render a Document as short Markdown text: the headline, what is unknown, and every short block."""
    headline = document.headline
    chip = f"{CHIPS[headline.chip][0]} {headline.chip} · " if headline.chip else ""
    parts = [" ".join([f"**{escaped(chip + headline.sentence)}**", *map(escaped, headline.because)])]
    parts.append(escaped(document.about))
    if document.facts:
        facts = (f"- **{escaped(fact.value)}** {escaped(fact.says)}" for fact in document.facts)
        parts.append("\n".join(facts))
    if headline.unknown:
        parts.append("Not known:\n\n" + "\n".join(f"- {escaped(what)}" for what in headline.unknown))
    for section in document.sections:
        inner = _blocks(section.blocks)
        parts += [f"### {escaped(section.title)}", *inner] if inner else []
    parts += [_code(line) for line in document.run_lines]
    if headline.next:
        parts.append(f"next: {_code(headline.next)}")
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Text on one line that is not read as Markdown or HTML; a mention is no mention."""
    return " ".join(visible(text).split()).translate(_MARKS)


def _code(line: str) -> str:
    return f"`{' '.join(visible(line).split()).replace('`', ' ')}`"


def _blocks(blocks: Iterable[Block]) -> list[str]:
    return [drawn for block in blocks if block.short and (drawn := _block(block))]


def _block(block: Block) -> str:
    """A block that only a page can show comes out empty."""
    match block:
        case Paragraph(text=text):
            return escaped(text)
        case Bullets(items=items):
            return "\n".join(f"- {escaped(item)}" for item in items)
        case Lines(lines=lines):
            return "\n".join(f"- {_code(line)}" for line in lines)
        case Grid():
            return _table(block)
        case Picture(numbers=numbers, says=says):
            return _table(numbers) if numbers else escaped(says)
        case Hundred(says=says):
            return escaped(says)
        case Folded(title=title, blocks=blocks):
            return "\n\n".join([f"**{escaped(title)}**", *_blocks(blocks)])
        case Diff():
            inner = "\n".join(f"{sign} {visible(text)}" for sign, text in block.lines())
            # a fence longer than any in the text, which could end it otherwise
            fence = "`" * (1 + max((len(run) for run in _FENCE.findall(inner)), default=2))
            return f"{fence}diff\n{inner}\n{fence}"
    return ""


def _table(block: Grid) -> str:
    width = len(block.header)
    rule = ["---" if place < block.left else "---:" for place in range(width)]
    rows = [[escaped(cell.text) for cell in row] for row in block.cells()]
    lines = [[*map(escaped, block.header)], rule, *([*row, *[""] * (width - len(row))] for row in rows)]
    title = f"**{escaped(block.title)}**\n\n" if block.title else ""
    return title + "\n".join(f"| {' | '.join(line)} |" for line in lines)
