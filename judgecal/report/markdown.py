"""A document as Markdown, short, for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import singledispatch

from judgecal.errors import visible
from judgecal.report import document as doc

_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#!~&$@"})
_FENCE = re.compile("`{3,}")


def markdown(document: doc.Document) -> str:
    """The headline, what is not known, and every block that is short."""
    headline = document.headline
    parts = [" ".join([f"**{escaped(headline.sentence)}**", *map(escaped, headline.because)])]
    parts.append(escaped(document.about))
    if document.facts:
        parts.append(
            "\n".join(f"- **{escaped(fact.value)}** {escaped(fact.says)}" for fact in document.facts)
        )
    if headline.unknown:
        parts.append("Not known:\n\n" + "\n".join(f"- {escaped(one)}" for one in headline.unknown))
    for section in document.sections:
        inner = list(_blocks(section.blocks))
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


def _blocks(blocks: Iterable[doc.Block]) -> Iterable[str]:
    return (drawn for block in blocks if block.short for drawn in [_block(block)] if drawn)


@singledispatch
def _block(block: doc.Block) -> str:
    """Blocks that only a page can show come out empty."""
    return ""


@_block.register
def _paragraph(block: doc.Paragraph) -> str:
    return escaped(block.text)


@_block.register
def _heading(block: doc.Heading) -> str:
    return f"#### {escaped(block.text)}"


@_block.register
def _bullets(block: doc.Bullets) -> str:
    return "\n".join(f"- {escaped(one)}" for one in block.items)


@_block.register
def _lines(block: doc.Lines) -> str:
    return "\n".join(f"- {_code(line)}" for line in block.lines)


@_block.register
def _table(block: doc.Table) -> str:
    width = len(block.header)
    rule = ["---" if place < block.left else "---:" for place in range(width)]
    rows = [[escaped(cell.text) for cell in row] for row in block.cells()]
    lines = [
        [escaped(text) for text in block.header],
        rule,
        *([*row, *[""] * (width - len(row))] for row in rows),
    ]
    title = f"**{escaped(block.title)}**\n\n" if block.title else ""
    return title + "\n".join(f"| {' | '.join(line)} |" for line in lines)


@_block.register
def _picture(block: doc.Picture) -> str:
    return _table(block.numbers) if block.numbers else escaped(block.says)


@_block.register
def _glossary(block: doc.Glossary) -> str:
    return "\n".join(f"- **{escaped(word)}**: {escaped(means)}" for word, means in block.words)


@_block.register
def _folded(block: doc.Folded) -> str:
    return "\n\n".join([f"**{escaped(block.title)}**", *_blocks(block.blocks)])


@_block.register
def _diff(block: doc.Diff) -> str:
    inner = "\n".join(f"{sign} {visible(text)}" for sign, text in block.lines())
    return _fenced(inner, "diff")


def _fenced(inner: str, language: str) -> str:
    """A fence longer than any in the text, which could end it otherwise."""
    longest = max((len(found) for found in _FENCE.findall(inner)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{inner}\n{fence}"
