"""A result as it is shown: a headline, facts, sections of blocks. Three renderers draw the same document.

    terminal.py   short, or whole with --full
    markdown.py   short, for a pull request
    html.py       whole, one self-contained page

A new kind of block is a class here, a case in `terminal.py` and `markdown.py`, and a macro in
`templates/blocks.html`. Blocks hold plain text: each renderer escapes it where it prints it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from judgecal.records import Estimate, Headline

FROM_JOURNAL = (
    "Rebuilt from what the experiment stored: we called no model, and this page loads nothing from elsewhere."
)
FROM_SUMMARY = (
    "Made from the command's summary.json, as the journal alone does not hold these numbers: we called "
    "no model, and this page loads nothing from elsewhere."
)
_T = TypeVar("_T")
_COMPARED_LINES = 200
_BELOW = 0.15  # how far a ladder goes on below its foot, as a share of what stands above it


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a section; one that is `short` stands in the terminal and in Markdown too, a page has all.

    Beside the headline a terminal has room for a table of ten rows and little else.
    """

    short: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Paragraph(Block):
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets(Block):
    """Sentences, one a bullet."""

    items: Sequence[str]


@dataclass(frozen=True, slots=True)
class Lines(Block):
    """Lines to be copied as they are: run lines, commands."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table."""

    text: str
    strong: bool = False  # what the row is about
    heat: float | None = None  # 0..1: colours the whole cell on a page, the darker the higher
    show: str = ""  # marks of the explorer, one a line: a click shows the rows that have them all


@dataclass(frozen=True, slots=True)
class Grid(Block):
    """A table; a row of one cell is a heading across it.

    A terminal shows the first ten rows, and of the columns those that fit: those that decide come first.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    left: int = 1  # columns, the first ones, that are aligned to the left
    title: str = ""
    chosen: str | None = None  # the row, by its first cell, that was decided for
    drawn: bool = False  # the document's ladder has what it says first: where that is drawn, only with --full

    def cells(self) -> list[list[Cell]]:
        """The rows with every cell a `Cell`."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]


def table(rows: Iterable[_T], columns: Mapping[str, Callable[[_T], str | Cell] | None], **more: Any) -> Grid:
    """Make a Grid from rows and a mapping of columns: heading -> function from a row to its cell, or None.

    `more`: what else a `Grid` takes. Write the columns into the call: there the type checker knows the rows.
    """
    cells = {heading: cell for heading, cell in columns.items() if cell is not None}
    shown = [[cell(row) for cell in cells.values()] for row in rows]
    return Grid([*cells], shown, **more)


@dataclass(frozen=True, slots=True)
class Rung:
    """A line of a picture: a judge, or whoever stands beside it, at the height that it reaches."""

    name: str
    value: Estimate  # in the units of the axis
    text: str  # as `numbers` writes it
    strong: bool = False  # what the decision is about
    hollow: bool = False  # stands beside: drawn as an empty square
    beside: float | None = None  # the same thing on another footing, as with single people: a diamond
    show: str = ""  # marks of the explorer's rows that a click shows, one a line


@dataclass(frozen=True, slots=True)
class Ladder:
    """How far up each judge comes, from what is free to what people reach; page and terminal draw it."""

    title: str  # of the axis: quantity and unit
    rungs: Sequence[Rung]  # the judges, best first
    free: Rung | None = None  # the strongest free judge: nobody need pay for what lies below
    people: Rung | None = None  # with each other: `low` and `high` are the outermost ends of their intervals
    foot: float | None = None  # where it stands: what the best constant reaches

    @property
    def below(self) -> float | None:
        """The value at which the ladder's axis begins, a little below its foot."""
        reached = [rung.value.value or 0.0 for rung in (*self.rungs, self.people) if rung]
        return None if self.foot is None else self.foot - _BELOW * max(0.0, max(reached) - self.foot)


@dataclass(frozen=True, slots=True)
class Picture(Block):
    """A chart."""

    draw: Callable[[], str]  # its SVG, when a page is made
    says: str  # what it shows, for who cannot see it
    title: str = ""
    numbers: Grid | None = None  # what is behind it: the terminal and Markdown show that in its place
    ladder: Ladder | None = None  # what it draws, where that is one: the terminal draws it too
    note: str = ""  # how to read it


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of some answers."""

    kind: str  # `caught`, `through`, `rejected` or `passed`, as the style sheet and the signs have it
    share: float  # of all, 0..1
    says: str
    rate: str = ""  # how often that befalls answers of its kind
    show: str = ""  # the explorer's marks of these, one a line


@dataclass(frozen=True, slots=True)
class Hundred(Block):
    """What a judge does with a hundred answers, a square each."""

    title: str
    outcomes: Sequence[Outcome]
    note: str = ""

    @property
    def says(self) -> str:
        """All outcomes of the hundred answers in one line."""
        return f"{self.title}: {'; '.join(f'{n} {outcome.says}' for outcome, n, _ in self.squares())}."

    def squares(self) -> list[tuple[Outcome, int, list[tuple[int, int, int, int]]]]:
        """Return a list of own (Outcome, number of squares, boxes: column, row, width, height)."""
        shares = [100.0 * outcome.share for outcome in self.outcomes]
        counts = [int(share) for share in shares]
        order = sorted(range(len(shares)), key=lambda at: counts[at] - shares[at])
        for at in order[: 100 - sum(counts)]:
            counts[at] += 1
        places, end = [], 0
        for outcome, n in zip(self.outcomes, counts, strict=True):
            at, boxes = end, list[tuple[int, int, int, int]]()
            end += n
            while at < end:  # whole columns in one box
                column, row = divmod(at, 10)
                whole = (end - at) // 10 if row == 0 else 0
                tall = 10 if whole else min(10 - row, end - at)
                boxes.append((column, row, max(whole, 1), tall))
                at += max(whole, 1) * tall
            places.append((outcome, n, boxes))
        return places


@dataclass(frozen=True, slots=True)
class Folded(Block):
    """Blocks that open on demand."""

    title: str
    blocks: Sequence[Block]


# a line that goes on a sentence of the line before, and the end of a sentence
_WRAPPED = re.compile(r"(?<=\S)\n[ \t]*(?=[^\W\d_]|[(\"'])")
_SENTENCE = re.compile(r"(?<=[.!?]) +(?=[^\W\d_a-z])")


@dataclass(frozen=True, slots=True)
class Diff(Block):
    """A text before and after, sentence by sentence."""

    before: str
    after: str

    def lines(self) -> list[tuple[str, str]]:
        """Return a list of pairs, each own sentence's sign (`-`, `+` or a space) and the sentence."""
        before, after = (
            [part for line in _WRAPPED.sub(" ", text).splitlines() for part in _SENTENCE.split(line)]
            for text in (self.before, self.after)
        )
        if max(len(before), len(after)) > _COMPARED_LINES:  # line by line would take the cube of their number
            return [*(("-", line) for line in before), *(("+", line) for line in after)]
        return [(line[0], line[2:]) for line in difflib.ndiff(before, after) if line[0] in " -+"]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document."""

    name: str  # its anchor, a word
    title: str
    caption: str  # what it shows and which decision it serves
    blocks: Sequence[Block]
    card: bool = False  # stands on the first screen; the others unfold

    @property
    def short(self) -> bool:
        """Whether the section has a block for the terminal and for paper."""
        return any(block.short for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Fact:
    """One large number on the first screen and what it says."""

    value: str
    says: str


@dataclass(frozen=True)
class Document:
    """What a result came to; `html.Report` shows it in every form."""

    title: str
    about: str  # what was measured on what, in a line
    headline: Headline
    sections: Sequence[Section]
    facts: Sequence[Fact] = ()  # at most four numbers that stand under the headline
    run_lines: Sequence[str] = ()
    foot: str = FROM_JOURNAL  # the last line of the page
    data: Mapping[str, Any] = field(default_factory=dict)  # the numbers for `report --json`
    picture: Picture | None = None  # the one that decides; without it the first of the sections is taken
    hundred: Hundred | None = None  # beside the picture on the page, in place of the facts
    explorer: Block | Callable[[], Block] | None = None  # the items behind the numbers, on the page alone

    @property
    def ladder(self) -> Ladder | None:
        """What the picture that decides draws, where that is one."""
        return self.picture.ladder if self.picture else None

    def screen(self) -> tuple[str, Picture | None, list[Section]]:
        """Return the first screen's title, its Picture or None, and the list of own Sections without it."""
        for at, part in enumerate(self.sections if self.picture is None else ()):
            for block in part.blocks:
                if isinstance(block, Picture):
                    others = [other for other in part.blocks if other is not block]
                    note = block.note or part.caption * (not others)
                    left = [replace(part, blocks=others)] * bool(others)
                    sections = [*self.sections[:at], *left, *self.sections[at + 1 :]]
                    return block.title or part.title, replace(block, title="", note=note), sections
        picture = self.picture and replace(self.picture, title="")
        return (self.picture.title if self.picture else ""), picture, [*self.sections]


Part = Block | str | bool | None | Iterable[Block | str]
"""What a section is made of: a text is a paragraph, None and False are nothing."""


def blocks_of(*parts: Part) -> list[Block]:
    """Return a list of Blocks from the parts that are there: `bool(rows) and table(rows, ...)`."""
    lists = ([part] if isinstance(part, Block | str) else part for part in parts if part and part is not True)
    return [Paragraph(block) if isinstance(block, str) else block for inner in lists for block in inner]


def section(name: str, title: str, caption: str, *parts: Part) -> Section:
    """A section of the blocks that are there."""
    return Section(name, title, caption, blocks_of(*parts))


def listing(title: str, headline: Headline, *parts: Part, about: str = "", caption: str = "") -> Document:
    """Make a Document from a title and a Headline, any parts in a single section, for commands that list."""
    word, blocks = title.split(maxsplit=1)[0].lower(), blocks_of(*parts)
    return Document(title, about, headline, [Section(word, title, caption, blocks)] if blocks else [])


class StoredResult(Protocol):
    """A result whose command left it in an experiment's folder."""

    @property
    def experiment(self) -> str:
        """The slug."""
        ...

    @property
    def run_line(self) -> str:
        """The line that reproduces the result."""
        ...

    def as_json(self) -> dict[str, Any]:
        """The result's JSON object."""
        ...


def stored_document(
    result: StoredResult,
    title: str,
    about: str,
    headline: Headline,
    *sections: Section | bool | None,
    facts: Sequence[Fact] = (),
    notes: Iterable[str] = (),
    short: bool = False,
) -> Document:
    """Make a Document from a StoredResult, a title, a subtitle (`about`) and a Headline, with notes last."""
    there = [part for part in sections if isinstance(part, Section)]
    there += notes_section([*notes], short=short)
    lines = (f"experiment: {result.experiment}", f"run: {result.run_line}")
    data = {"result": result.as_json()}
    return Document(title, about, headline, there, facts, lines, FROM_SUMMARY, data)


def notes_section(notes: Sequence[str], *, short: bool = False) -> list[Section]:
    """Return a list of the last Section, made from texts of notes; an empty list where there are none."""
    caption = "What else to know before you repeat this."
    return [section("notes", "Notes", caption, Bullets(notes, short=short))] if notes else []
