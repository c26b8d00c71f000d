"""A finding of the audit, and where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judgecal.errors import listed
from judgecal.goldset.gold_set import DOCUMENTS, ITEMS, RATINGS, GoldSet
from judgecal.goldset.rows import Document
from judgecal.records import Item, Rating
from judgecal.scale import Label


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding: its kind in one word, `file:line` where a line can be named, and what to do.

    `explained` is why the set's owner lets it stand, from `[explained]` of card.toml; None where it is open.
    """

    kind: str
    where: str
    message: str
    explained: str | None = None


Rows = Sequence[Item] | Sequence[Rating] | Sequence[Document]
Findings = Iterator[tuple[str | Rows, str]]
"""Where each stands (a place as it is printed, or rows of the set), and its message."""
Checks = Mapping[str, Callable[[GoldSet], Findings]]
"""kind -> from a set to its findings of that kind."""


def place(gold: GoldSet, rows: str | Rows) -> str:
    """The lines of rows; an item's id, or the file alone, where they never were in a file."""
    return rows if isinstance(rows, str) else listed(list(dict.fromkeys(_line(gold, row) for row in rows)))


def _line(gold: GoldSet, row: Item | Rating | Document) -> str:
    if isinstance(row, Rating):
        file, line = RATINGS, gold.lines.get((RATINGS, row.item_id, row.rater))
    elif isinstance(row, Document):
        file, line = DOCUMENTS, gold.lines.get((DOCUMENTS, row.document_id))
    else:
        file, line = ITEMS, gold.lines.get((ITEMS, row.item_id))
    if line is None:
        return row.item_id if isinstance(row, Item) else file
    return f"{file}:{line}"


def say(label: Label | None) -> str:
    """A label as messages print it."""
    if label is None:
        return "none"
    return label if isinstance(label, str) else f"{label:g}"


def plain_text(text: str) -> str:
    """A text for comparison: case and spacing make no other question."""
    return " ".join(text.split()).casefold()
