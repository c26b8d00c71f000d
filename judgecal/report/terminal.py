"""A document for a terminal: the headline first, the next command last, nothing wider than the screen.

Short, it is the headline, the short blocks, the experiment (which holds the run line) and the next command,
in at most 27 lines; with `full` all that there is.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from judgecal.errors import visible, visible_line
from judgecal.report.document import (
    Block,
    Bullets,
    Diff,
    Document,
    Folded,
    Grid,
    Hundred,
    Ladder,
    Lines,
    Paragraph,
    Picture,
)
from judgecal.report.wording import CHIPS, sentences, shortened

_LINES = 27  # of the short form, headline and next command among them
_ROWS = 10  # of a table in the short form
_HEAD = 4  # lines from which on the beginning of a part says something
_GAP = 2  # columns between two columns of a table
_LONGEST_WORD = 24  # columns that a word of a table keeps before it is broken
_WIDEST_PROSE = 110
_FREE, _PEOPLE = "░", "▒"  # the zones of a ladder


@dataclass(frozen=True, slots=True)
class _Screen:
    width: int
    full: bool

    def prose(self, text: str, *, first: str = "", indent: str = "") -> str:
        """A paragraph, wrapped; a long word keeps its letters together."""
        return textwrap.fill(
            " ".join(visible(text).split()),
            width=min(self.width, _WIDEST_PROSE),
            initial_indent=first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )


def terminal(document: Document, *, width: int = 80, full: bool = False) -> str:
    """Render a Document as text for a terminal; commands and paths may be longer than its width.

    Args:
        full: every block, what is not known, and the run lines; not only the headline and the short blocks.
    """
    screen, headline, run = _Screen(max(width, 40), full), document.headline, document.run_lines
    chip = f"{CHIPS[headline.chip][0]} {headline.chip} · " if headline.chip else ""
    head = _lines(screen.prose(chip + headline.sentence), screen.prose(" ".join(headline.because)))
    following = _command(visible_line(f"next: {headline.next}"), screen.width) if headline.next else ""
    if full:
        more = screen.prose(" ".join(headline.more))
        parts, last = (
            [head, *([more] * bool(more)), *_all(document, screen)],
            _lines(*map(visible_line, run), following),
        )
    else:
        # what repeats the result: the experiment, which holds the run line, or that where it is short
        repeats = visible_line(run[0]) if run and cell_len(run[0]) <= screen.width else ""
        if len(run) > 1:
            repeats = screen.prose(f"{run[0]} (run line: --full)")
        last = _lines(repeats, following)
        first = "\n\n".join(filter(None, [head, screen.prose(document.about)]))
        parts = [_short(first, document, screen, _LINES - 1 - len(last.split("\n")) if last else _LINES)]
    return "\n\n".join(part for part in (*parts, last) if part)


def _lines(*parts: str) -> str:
    return "\n".join(filter(None, parts))


def _command(line: str, width: int) -> str:
    """A command in as many lines as it needs, broken before its options as a shell reads it."""
    lines = [""]
    for part in re.split(r" (?=-)", line):
        longer = f"{lines[-1]} {part}" if lines[-1] else part
        if lines[-1] and cell_len(longer) > width - 2 and cell_len(line) > width:
            lines.append(f"  {part}")
        else:
            lines[-1] = longer
    return " \\\n".join(lines)


def _short(first: str, document: Document, screen: _Screen, lines: int) -> str:
    """What stands first and the short blocks in so many lines.

    An empty line stands between two blocks. Of one that does not fit the first lines stay, where they are
    more than a heading; that something is cut off is said.
    """
    drawn = [part for section in document.sections for part in _blocks(section.blocks, screen)]
    whole = "\n\n".join(filter(None, [first, *_first(document, screen), *drawn]))
    if whole.count("\n") < lines:
        return whole
    shown: list[str] = []
    for block in whole.split("\n\n"):
        inner = block.split("\n")
        room = lines - 2 - len(shown) - bool(shown)
        if len(inner) <= room or room >= _HEAD:
            shown += [""] * bool(shown) + inner[:room]
        if len(inner) > room:
            break
    return "\n".join([*shown, "", "... and more: --full"])


def _first(document: Document, screen: _Screen) -> Iterator[str]:
    """The ladder of a document that has one, and the numbers that stand beside it on the page."""
    if document.ladder:
        yield _ladder(document.ladder, screen)
    if document.ladder or screen.full:
        yield "\n".join(screen.prose(f"{fact.value}  {fact.says}", indent="  ") for fact in document.facts)


def _all(document: Document, screen: _Screen) -> Iterator[str]:
    """What stands between headline and run lines in the full form."""
    yield screen.prose(document.about)
    yield from _first(document, screen)
    drawn = [(section.title, _blocks(section.blocks, screen)) for section in document.sections]
    titled = sum(bool(inner) for _, inner in drawn) > 1
    for title, inner in drawn:
        if inner and titled and title:
            yield visible_line(title)
        yield from inner
    if document.headline.unknown:
        unknown = (screen.prose(what, first="- ", indent="  ") for what in document.headline.unknown)
        yield "\n".join(["Not known:", *unknown])


def _blocks(blocks: Iterable[Block], screen: _Screen) -> list[str]:
    shown = (block for block in blocks if screen.full or (block.short and not getattr(block, "drawn", False)))
    return [text for block in shown if (text := _block(block, screen))]


def _block(block: Block, screen: _Screen) -> str:
    """A block that only a page can show comes out empty."""
    match block:
        case Paragraph(text=text):
            return screen.prose(text)
        case Bullets(items=items):
            return "\n".join(map(screen.prose, items))
        case Lines(lines=lines):
            return "\n".join(map(visible_line, lines))
        case Grid():
            return _table(block, screen)
        case Picture(numbers=None, title=title, says=says):
            return screen.prose(f"{title}: {says}" if title else says)
        case Picture(numbers=Grid() as numbers, title=title):
            return _lines(screen.prose(title), _table(numbers, screen))
        case Folded(title=title, blocks=blocks):
            return "\n".join([visible_line(title), *_blocks(blocks, screen)])
        case Hundred(says=says):
            return screen.prose(says)
        case Diff():
            return "\n".join(f"{sign} {visible_line(text)}" for sign, text in block.lines())
    return ""


# --- the ladder


def _ladder(ladder: Ladder, screen: _Screen) -> str:
    """Judges as dots with their intervals, over the zone of what is free and that of what people reach."""
    names = [shortened(visible_line(rung.name), screen.width // 3) for rung in ladder.rungs]
    left, right = max(map(cell_len, names)), max(len(rung.text) for rung in ladder.rungs)
    wide = min(screen.width, _WIDEST_PROSE) - left - right - 2 * _GAP
    values = [rung.value for rung in (*ladder.rungs, ladder.free, ladder.people) if rung]
    ends = [ladder.below, *(end for value in values for end in (value.value, value.low, value.high))]
    low, high = (pick(end for end in ends if end is not None) for pick in (min, max))
    span = (high - low) or 1.0

    def at(value: float | None, otherwise: int) -> int:
        return otherwise if value is None else round((value - low) / span * (wide - 1))

    free, people = (zone.value.value if zone else None for zone in (ladder.free, ladder.people))
    zones = [_FREE if x < at(free, 0) else _PEOPLE if x >= at(people, wide) else " " for x in range(wide)]
    legend = sentences(
        f"{ladder.title[0].upper()}{ladder.title[1:]}: ● a judge, ─ {values[0].level:.0%} interval",
        f"{_FREE} free ({ladder.free.name} reaches {ladder.free.text})" if ladder.free else "",
        f"{_PEOPLE} {ladder.people.name} ({ladder.people.text})" if ladder.people else "",
    )
    lines = [screen.prose(", ".join(legend))]
    for name, rung in zip(names, ladder.rungs, strict=True):
        dot, drawn = at(rung.value.value, 0), zones.copy()
        for x in range(at(rung.value.low, dot), at(rung.value.high, dot) + 1):
            drawn[x] = "●" if x == dot else "─"
        columns = f"{name}{' ' * (left - cell_len(name))}", "".join(drawn), rung.text.rjust(right)
        lines.append((" " * _GAP).join(columns))
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100) if span / step <= wide / 6)
    axis = ""
    for tick in range(math.ceil(low / step) * step, math.floor(high) + 1, step):
        axis = f"{axis:{at(tick, 0)}}{tick}"
    return "\n".join([*lines, f"{' ' * (left + _GAP)}{axis}"])


# --- tables


def _table(block: Grid, screen: _Screen) -> str:
    """A table, or several one below the other where the columns do not fit, each after the columns of words.

    A row of one cell is a heading across the table, which widens no column.
    """
    cells, left_out = block.cells(), 0
    if not screen.full and len(cells) > _ROWS:
        left_out = len(cells) - _ROWS
        cells = cells[:_ROWS]
    rows = [[visible_line(cell.text) for cell in row] for row in cells]
    header = [visible_line(text) for text in block.header]
    words, numbers = range(block.left), range(block.left, len(header))
    columns = [[row[at] for row in rows if len(row) == len(header)] for at in range(len(header))]
    inner = [max(map(cell_len, column), default=0) for column in columns]
    wide = [max(cell_len(text), inner[at]) for at, text in enumerate(header)]
    # a header over numbers takes as many lines as it has words; of a column of words the longest stays whole
    narrow = [*wide[: block.left], *(max([inner[at], *map(cell_len, header[at].split())]) for at in numbers)]
    longest = (max(map(cell_len, " ".join([header[at], *columns[at]]).split()), default=1) for at in words)
    least = [min(_LONGEST_WORD, length) for length in longest]
    taken = sum(least) + _GAP * len(least)
    parts = [[*words, *numbers]]
    if taken + sum(narrow[at] + _GAP for at in numbers) - _GAP > screen.width:
        parts, used = [[*words]], taken
        for at in numbers:
            if used + narrow[at] > screen.width and len(parts[-1]) > block.left:
                parts.append([*words])
                used = taken
            parts[-1].append(at)
            used += narrow[at] + _GAP
    drawn = []
    for places in parts if screen.full else parts[:1]:
        room = screen.width - _GAP * (len(places) - 1)
        widths = [wide[at] for at in places]
        if sum(widths) > room:
            widths = [narrow[at] for at in places]
        while sum(widths) > room and (spare := [at for at in words if widths[at] > least[at]]):
            widths[max(spare, key=lambda at: widths[at])] -= 1
        lines = _row([header[at] for at in places], widths, block.left)
        lines.append("-" * (sum(widths) + _GAP * (len(places) - 1)))
        for row in rows:
            if len(row) == 1 < len(header):
                lines += textwrap.wrap(row[0], screen.width) or [""]
            else:
                lines += _row([row[place] for place in places], widths, block.left)
        drawn.append("\n".join(lines))
    more = f"... {left_out:,} more: --full" if left_out else ""
    return _lines(screen.prose(block.title), "\n\n".join(drawn), more)


def _row(cells: Sequence[str], widths: Sequence[int], left: int) -> list[str]:
    """One row, in as many lines as its longest cell needs."""
    wrapped = []
    for text, width in zip(cells, widths, strict=True):
        indent = text[: len(text) - len(text.lstrip())]
        parts = [text]
        if cell_len(text) > width:
            parts = textwrap.wrap(text, max(width, 1), subsequent_indent=indent) or [""]
        wrapped.append(parts)
    lines = []
    for number in range(max(map(len, wrapped))):
        padded = []
        for at, (parts, width) in enumerate(zip(wrapped, widths, strict=True)):
            text = parts[number] if number < len(parts) else ""
            blank = " " * (width - cell_len(text))
            padded.append(text + blank if at < left else blank + text)
        lines.append((" " * _GAP).join(padded).rstrip())
    return lines
