"""The acts of raters in their order: an append-only file, on disk before the next item is shown.

It stands beside the set's `ratings.jsonl`, which holds what is in force. The next start puts right whatever
`kill -9` or a power cut left between the two.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from judgecal.artefacts import json_object
from judgecal.engine.log import Log
from judgecal.errors import BusyError, InputError, refuse
from judgecal.goldset.gold_set import LABELS_LOCK
from judgecal.goldset.load import read_rating
from judgecal.goldset.write import RatingKey, rating_row
from judgecal.records import Rating
from judgecal.scale import Scale
from judgecal.tables import json_line
from judgecal.workspace import shown

_SAVED = {"saved": True}  # ratings.jsonl holds, on disk, all that stands above


@dataclass(frozen=True, slots=True)
class LabelEntry:
    """One act of a rater: the rating that is in force from now on."""

    rating: Rating
    at: str  # UTC, ISO 8601
    item_sha: str  # of the item's texts as the rater saw them

    @property
    def key(self) -> RatingKey:
        """The item and the rater."""
        return self.rating.item_id, self.rating.rater


def _entry(row: dict[str, Any], scale: Scale, where: str) -> LabelEntry:
    """Read the act of a line, whatever somebody else wrote there."""
    at, item_sha = row.pop("at", None), row.pop("item_sha", None)
    are_texts = isinstance(at, str) and isinstance(item_sha, str)
    problems = [] if are_texts else [f"{where}: at and item_sha must be texts"]
    rating = read_rating(row, where, scale=scale, problems=problems)
    refuse(problems)
    assert rating is not None
    return LabelEntry(rating, str(at), str(item_sha))


def _is_json(line: bytes) -> bool:
    """Whether a last line without its end is whole: the journal's own are, until the power goes."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


class LabelJournal:
    """The journal of one set, held by one process at a time.

    Attributes:
        last: the last act of each rater on each item, as the file had them at the start.
        unsaved: the acts that `ratings.jsonl` may lack, oldest first.

    Raises:
        BusyError: another page is serving the set.
    """

    def __init__(self, folder: Path, scale: Scale) -> None:
        self._lock = FileLock(folder / LABELS_LOCK, timeout=0, thread_local=False)
        try:
            self._lock.acquire()
        except Timeout:
            raise BusyError(
                f"{shown(folder)}: another judgecal gold label is serving this set: end it first, or open "
                "its links; one page serves all raters"
            ) from None
        try:
            self._read(folder / "labels.jsonl", scale)
        except BaseException:
            self._lock.release()
            raise

    def _read(self, path: Path, scale: Scale) -> None:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise InputError(f"{shown(path)}: a link, or no file: acts of raters go into a file of the set's")
        self.last: dict[RatingKey, LabelEntry] = {}
        self.unsaved: list[LabelEntry] = []
        self._log = Log(
            path,
            "label",
            encode=bytes,
            decode=lambda line: line.removesuffix(b"\n"),
            synced=True,
            ended=_is_json,
        )
        number = 0
        for number, line in enumerate(self._log.rows(), start=1):
            where = f"{shown(path)}:{number}: no act of a rater"
            if (row := json_object(line, where)) == _SAVED:
                self.unsaved = []
            else:
                entry = _entry(row, scale, where)
                self.last[entry.key] = entry
                self.unsaved.append(entry)
        if path.exists():
            if not number and path.stat().st_size and not path.read_bytes().startswith(b'{"item_id": "'):
                raise InputError(f"{shown(path)}:1: no act of a rater: take the file away")
            self._log.open(lock=False)  # a torn last line is cut off: the power went in mid-write

    def close(self) -> None:
        """Unlock the journal, so that another process can serve the set."""
        self._log.close()
        self._lock.release()

    def append(self, entries: Sequence[LabelEntry]) -> None:
        """Add a list of LabelEntry to the journal; they are on disk when the call returns.

        Raises:
            OSError: the disk is full, say; then no part of them is in the file.
        """
        rows = ({**rating_row(entry.rating), "at": entry.at, "item_sha": entry.item_sha} for entry in entries)
        self._write(*rows)
        self.unsaved += entries

    def save(self) -> None:
        """Note that `ratings.jsonl` has all the journal's entries; nothing is written where it had them."""
        if self.unsaved:
            self._write(_SAVED)
            self.unsaved = []

    def _write(self, *rows: dict[str, Any]) -> None:
        if not self._log.is_open:  # the file is made with the first act
            self._log.open(lock=False)
        self._log.append(*(json_line(row).encode() for row in rows))


_BLOCK = 20  # items within which each rater has an order of its own
_CLAIM_S = 300.0  # an item that a rater has before the eyes is shown to nobody else for so long


class LabelQueue:
    """The items that some raters are to label, and those that each of them has labelled.

    Of the ids `items` every rater labels the part `overlap`, 0..1; each other item goes to the first rater
    who comes to it. `shuffled`, each rater has another order, by `seed`. `clock` gives seconds.
    """

    def __init__(
        self,
        items: Sequence[str],
        raters: Sequence[str],
        *,
        overlap: float = 1.0,
        shuffled: bool = True,
        seed: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.raters, self._items, self._clock = tuple(raters), frozenset(items), clock
        base = list(items)
        if shuffled:
            random.Random(f"{seed}:items").shuffle(base)
        # The items that all raters label are spread evenly, as many as the share says.
        share = 1.0 if len(self.raters) == 1 else overlap
        falls = [int(place * share + 1e-9) for place in range(len(base) + 1)]
        self.shared = frozenset(
            item for item, before, after in zip(base, falls, falls[1:], strict=False) if after > before
        )
        self._orders = {rater: _own_order(base, rater, seed) if shuffled else base for rater in self.raters}
        # in the order of labelling
        self.done: dict[str, dict[str, None]] = {rater: {} for rater in self.raters}
        self._single: dict[str, str] = {}  # item that one rater labels -> the rater
        self._claims: dict[str, tuple[str, float]] = {}

    def label(self, rater: str, item_id: str) -> None:
        """Note that a rater has labelled an item (id), the first time or again; others are passed over."""
        self._claims.pop(rater, None)
        if item_id in self._items:
            self.done[rater].setdefault(item_id)
            if item_id not in self.shared:
                self._single.setdefault(item_id, rater)

    def next(self, rater: str) -> str | None:
        """Return the id of the item that a rater (name) sees next, held unless all label it; or None.

        Before a label the same item is returned again: two pages of one rater show the same.
        """
        held = self._held(rater)
        if held is not None and self._open(held, rater):
            return held
        others = {self._held(other) for other in self.raters if other != rater}
        for item_id in self._orders[rater]:
            if self._open(item_id, rater) and (item_id in self.shared or item_id not in others):
                self._claims[rater] = (item_id, self._clock())
                return item_id
        return None

    def left(self, rater: str) -> int:
        """Return how many items a rater may still be shown."""
        return sum(self._open(item_id, rater) for item_id in self._items)

    @property
    def n_labelled(self) -> int:
        """The number of items that a rater has labelled, or could not tell."""
        return len(set().union(*self.done.values()))

    @property
    def finished(self) -> bool:
        """Whether no rater has anything left."""
        return not any(map(self.left, self.raters))

    def _held(self, rater: str) -> str | None:
        item_id, since = self._claims.get(rater, ("", 0.0))
        return item_id if item_id and self._clock() - since < _CLAIM_S else None

    def _open(self, item_id: str, rater: str) -> bool:
        return item_id not in self.done[rater] and item_id not in self._single


def _own_order(base: Sequence[str], rater: str, seed: int) -> list[str]:
    order: list[str] = []
    for start in range(0, len(base), _BLOCK):
        block = list(base[start : start + _BLOCK])
        random.Random(f"{seed}:{rater}:{start}").shuffle(block)
        order += block
    return order
