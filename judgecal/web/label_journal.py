"""What raters did, in the order in which they did it: an append-only file, on disk before the next item is shown.

It stands beside the set's `ratings.jsonl`, which holds what is in force. Whatever `kill -9` or a power cut left between
the two is put right by the next start.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from judgecal.errors import BusyError, InputError
from judgecal.goldset.gold_set import LABELS_LOCK
from judgecal.goldset.ratings_file import RatingKey
from judgecal.records import Rating
from judgecal.tables import json_line
from judgecal.workspace import shown

JOURNAL = "labels.jsonl"
_SAVED = {"saved": True}  # ratings.jsonl holds, on disk, all that stands above


@dataclass(frozen=True, slots=True)
class LabelEntry:
    """One act of a rater on one item.

    Attributes:
        rating: what is in force from now on; None where the rater took it back and there was none before.
        turn: 1, or 2 for the second look that shows how far a rater agrees with itself; that is no rating of the set.
        undone: whether it took the act before it back.
        seconds: from when the item was shown; None where that is not known.
        at: UTC, ISO 8601.
        item_sha: of the item's texts as the rater saw them.
    """

    item_id: str
    rater: str
    rating: Rating | None
    turn: int = 1
    undone: bool = False
    seconds: float | None = None
    at: str = ""
    item_sha: str = ""

    @property
    def key(self) -> RatingKey:
        """What it is a rating of, and whose."""
        return self.item_id, self.rater

    def as_json(self) -> dict[str, Any]:
        """The line; what is as usual is left out."""
        own = {
            "turn": self.turn,
            "undone": self.undone,
            "seconds": self.seconds,
            "at": self.at,
            "item_sha": self.item_sha,
        }
        usual = {"turn": 1, "undone": False}
        row: dict[str, Any] = {"item_id": self.item_id, "rater": self.rater}
        if self.rating is None:
            row["gone"] = True
        else:
            rated = dataclasses.asdict(self.rating)
            row |= {name: value for name, value in rated.items() if name not in row and value not in (None, False)}
        return row | {name: value for name, value in own.items() if usual.get(name) != value}


def _entry(row: dict[str, Any]) -> LabelEntry:
    item_id, rater = str(row["item_id"]), str(row["rater"])
    fields = ("note", "saw_draft", "reason", "rubric_sha256")
    rated = {name: row[name] for name in fields if name in row}
    rating = None if row.get("gone") else Rating(item_id, rater, _label(row.get("label")), **rated)
    own = {name: row[name] for name in ("turn", "undone", "seconds", "at", "item_sha") if name in row}
    return LabelEntry(item_id, rater, rating, **own)


def _label(value: Any) -> Any:
    return float(value) if isinstance(value, int) else value


def now() -> str:
    """The time as a line has it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class LabelJournal:
    """The journal of one set, held by one process at a time.

    Attributes:
        entries: all of them, oldest first.
        unsaved: those of them of which it is not certain that `ratings.jsonl` has them.

    Raises:
        BusyError: another page is serving the set.
        InputError: a line of it is none.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL
        self._file: int | None = None  # made with the first act
        self._lock = FileLock(folder / LABELS_LOCK, timeout=0, thread_local=False)
        try:
            self._lock.acquire()
        except Timeout:
            raise BusyError(
                f"{shown(folder)}: another judgecal gold label or adjudicate is serving this set: end it first, or "
                "open its links; one page serves all raters"
            ) from None
        try:
            self.entries, self.unsaved = self._read()
        except BaseException:
            self._lock.release()
            raise

    def _read(self) -> tuple[list[LabelEntry], list[LabelEntry]]:
        data = self.path.read_bytes() if self.path.exists() else b""
        if data and not data.endswith(b"\n"):  # the power went in mid-write
            data = data[: data.rfind(b"\n") + 1]
            os.truncate(self.path, len(data))
        entries: list[LabelEntry] = []
        saved = 0
        for number, line in enumerate(data.splitlines(), start=1):
            try:
                row = json.loads(line)
                if row == _SAVED:
                    saved = len(entries)
                else:
                    entries.append(_entry(row))
            except (ValueError, TypeError, KeyError) as error:
                raise InputError(f"{shown(self.path)}:{number}: no act of a rater ({error}): mend the line") from None
        return entries, entries[saved:]

    def __enter__(self) -> LabelJournal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)
        self._lock.release()

    def append(self, entries: Sequence[LabelEntry]) -> None:
        """Add acts; they are on disk when the call returns.

        Raises:
            OSError: the disk is full, say; then no part of them is in the file.
        """
        self._write(entry.as_json() for entry in entries)
        self.entries += entries
        self.unsaved += entries

    def save(self) -> None:
        """Note that `ratings.jsonl` has them all; nothing is written where it had them before."""
        if self.unsaved:
            self._write([_SAVED])
            self.unsaved = []

    def _write(self, rows: Iterable[dict[str, Any]]) -> None:
        data = "".join(f"{json_line(row)}\n" for row in rows).encode()
        file = self._opened()
        size, written = os.fstat(file).st_size, 0
        try:
            while written < len(data):
                written += os.write(file, data[written:])
            os.fsync(file)
        except BaseException:
            with contextlib.suppress(OSError):  # a torn last line is cut off by the next start
                os.ftruncate(file, size)
            raise

    def _opened(self) -> int:
        if self._file is None:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._file = os.open(self.path, flags, 0o600)  # texts of people
        return self._file
