"""A finding of the audit, and where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from judgecal.errors import listed
from judgecal.goldset.gold_set import DOCUMENTS, ITEMS, RATINGS, GoldSet
from judgecal.records import Item, Rating
from judgecal.scale import Label, Scale
from judgecal.tables import decode, read_bytes


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding.

    Attributes:
        kind: one word for all of its kind.
        where: `file:line` where a line can be named; else the file, the split or the ids.
        message: what was found, by which measure, and what to do.
        explained: why the set's owner lets it stand, from `[explained]` of card.toml; None where it is open.
    """

    kind: str
    where: str
    message: str
    explained: str | None = None


Check = Callable[[GoldSet], Iterable[Problem]]
"""A family's unit: from a set to its findings of one kind or two."""


def item_place(gold: GoldSet, items: Iterable[Item]) -> str:
    """The lines of items; their ids where they never were in a file."""
    return listed(
        [f"{ITEMS}:{gold.lines[item.item_id]}" if item.item_id in gold.lines else item.item_id for item in items]
    )


class RatingPlaces:
    """Where the ratings of a set stand; the file alone where they never were in one."""

    def __init__(self, gold: GoldSet) -> None:
        lines = _row_lines(gold.path / RATINGS, gold.sha256)
        known = zip(gold.ratings, lines, strict=True) if len(lines) == len(gold.ratings) else ()
        self._lines = {(rating.item_id, rating.rater): line for rating, line in known}

    def of(self, ratings: Sequence[Rating]) -> str:
        """The lines of some of them."""
        if not self._lines:
            return RATINGS
        return listed([f"{RATINGS}:{self._lines[rating.item_id, rating.rater]}" for rating in ratings])


def document_place(gold: GoldSet, positions: Iterable[int]) -> str:
    """The lines of documents, given by their positions in the set; the file alone where there is none."""
    lines = _row_lines(gold.path / DOCUMENTS, gold.sha256)
    if len(lines) != len(gold.documents):
        return DOCUMENTS
    return listed([f"{DOCUMENTS}:{lines[position]}" for position in positions])


@lru_cache(maxsize=8)
def _row_lines(path: Path, sha256: str) -> tuple[int, ...]:
    """The lines (from 1) that hold a row. A set that loads has one row on each line that is not blank."""
    if not path.is_file():
        return ()
    text, _ = decode(read_bytes(path), path.name)
    return tuple(number for number, line in enumerate(text.split("\n"), start=1) if line.strip())


def say(label: Label | None) -> str:
    """A label as messages print it."""
    if label is None:
        return "none"
    return label if isinstance(label, str) else f"{label:g}"


def plain_text(text: str) -> str:
    """A text for comparison: case and spacing make no other question."""
    return " ".join(text.split()).casefold()


def tenth(scale: Scale) -> float:
    """What counts as far on a numeric scale: one step of it, and at least 10% of its range."""
    return max(scale.step or 0.0, 0.1 * scale.span)
