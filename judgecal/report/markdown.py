"""A document as Markdown, short, for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable

from judgecal.errors import visible
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
from judgecal.report.wording import CHIPS

_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#!~&$@"})
_FENCE = re.compile("`{3,}")


def markdown(document: Document) -> str:
    """The headline, what is not known, and every block that is short."""
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
