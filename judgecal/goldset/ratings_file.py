"""`ratings.jsonl` of a set that people are labelling right now: a new rating is appended, a changed one
rewrites."""

from __future__ import annotations

import os
from collections.abc import Mapping

from judgecal.errors import InputError
from judgecal.goldset.gold_set import ITEMS, RATINGS, GoldSet, load_gold
from judgecal.goldset.rows import rating_row
from judgecal.records import Rating
from judgecal.tables import json_line, write_json_lines
from judgecal.workspace import shown

RatingKey = tuple[str, str]
"""(item id, rater): there is one rating of each in a set."""


class RatingsFile:
    """The ratings of a set, in memory and on disk.

    What somebody else writes meanwhile (a sheet is imported, a row mended) is read before the next write, and
    stays.

    Attributes:
        ratings: by item id and rater, in the order of the file.
    """

    def __init__(self, gold: GoldSet) -> None:
        self._folder, self._path = gold.path, gold.path / RATINGS
        self.ratings: dict[RatingKey, Rating] = {}
        self._lines: dict[RatingKey, str] = {}
        self._items = {item.item_id: item for item in gold.items}
        self._read(gold)

    def _read(self, gold: GoldSet) -> None:
        self._seen = self._state()
        text = self._path.read_bytes().decode("utf-8-sig")
        lines = [line.removesuffix("\r") for line in text.split("\n") if line.strip()]
        self.ratings = {(one.item_id, one.rater): one for one in gold.ratings}
        # A set that loads has one rating on each line that is not blank.
        self._lines = dict(zip(self.ratings, lines, strict=True))
        self._open_end = bool(text) and not text.endswith("\n")

    def _state(self) -> list[tuple[int, int, int]]:
        found = (path.stat() for path in (self._path, self._folder / ITEMS))
        return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in found]

    def reread(self) -> bool:
        """Read what somebody else wrote, if anybody did; whether that was so.

        Raises:
            InputError: the set no longer loads, or its items are others.
        """
        if self._state() == self._seen:
            return False
        gold = load_gold(self._folder, labelling=True)
        now = {item.item_id: item for item in gold.items}
        if any(item_id not in now or now[item_id].sha != item.sha for item_id, item in self._items.items()):
            raise InputError(
                f"{shown(self._folder / ITEMS)}: the items have changed since labelling began: end judgecal gold label "
                "and start it again"
            )
        self._read(gold)
        return True

    def put(self, changes: Mapping[RatingKey, Rating | None]) -> None:
        """Write ratings; None takes one out. What is there already as it is to be is not written again.

        Raises:
            InputError: somebody changed the set meanwhile, and it no longer loads.
            OSError: the file cannot be written; then it is as it was.
        """
        self.reread()
        fresh = {key: rating for key, rating in changes.items() if self.ratings.get(key) != rating}
        if not fresh:
            return
        lines = {key: json_line(rating_row(rating)) for key, rating in fresh.items() if rating is not None}
        if self._open_end or self.ratings.keys() & fresh.keys():
            kept = {key: line for key, line in self._lines.items() if key not in fresh}
            write_json_lines(self._path, (), after=(kept | lines).values())
            self._lines, self._open_end = kept | lines, False
        else:
            self._append("".join(f"{line}\n" for line in lines.values()).encode())
            self._lines |= lines
        for key, rating in fresh.items():
            self.ratings.pop(key, None)
            if rating is not None:
                self.ratings[key] = rating
        self._seen = self._state()

    def _append(self, data: bytes) -> None:
        size = self._path.stat().st_size
        try:
            with self._path.open("ab") as file:
                file.write(data)
        except OSError:  # the disk took a part of it: half a line would keep the set from loading
            os.truncate(self._path, size)
            self._seen = self._state()
            raise

    def flush(self) -> None:
        """Have the system put what was written on the disk."""
        with self._path.open("r+b") as file:  # Windows flushes no file that was opened to read
            os.fsync(file.fileno())
