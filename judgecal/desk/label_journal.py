"""What raters did, in the order in which they did it: an append-only file, on disk before the next item is
shown.

It stands beside the set's `ratings.jsonl`, which holds what is in force. Whatever `kill -9` or a power cut
left between the two is put right by the next start.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judgecal.artefacts import json_object, schema_problems
from judgecal.engine.log import Log
from judgecal.errors import BusyError, InputError, refuse
from judgecal.goldset.gold_set import LABELS_LOCK
from judgecal.goldset.load import read_rating
from judgecal.goldset.write import RatingKey
from judgecal.records import CANNOT_TELL, Rating
from judgecal.scale import Scale
from judgecal.tables import json_line
from judgecal.workspace import shown

_SAVED = {"saved": True}  # ratings.jsonl holds, on disk, all that stands above


@dataclass(frozen=True, slots=True)
class LabelEntry:
    """One act of a rater on one item."""

    item_id: str
    rater: str
    # what is in force from now on; None where the rater took it back and there was none before
    rating: Rating | None
    turn: int = 1  # 2 for the second look at an item, which shows self-agreement and is no rating of the set
    undone: bool = False  # whether it took the act before it back
    seconds: float | None = None  # from when the item was shown; None where that is not known
    at: str = ""  # UTC, ISO 8601
    item_sha: str = ""  # of the item's texts as the rater saw them

    @property
    def key(self) -> RatingKey:
        """What it is a rating of, and whose."""
        return self.item_id, self.rater

    def as_json(self) -> dict[str, Any]:
        """The line; what is as usual is left out."""
        row: dict[str, Any] = {"item_id": self.item_id, "rater": self.rater}
        if self.rating is None:
            row["gone"] = True
        else:
            rated = dataclasses.asdict(self.rating)
            row |= {name: value for name, value in rated.items() if value is not None and value is not False}
        usual = {"turn": 1, "undone": False}
        act = {name: getattr(self, name) for name in ("turn", "undone", "seconds", "at", "item_sha")}
        return row | {name: value for name, value in act.items() if usual.get(name) != value}


class _Act(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    turn: Literal[1, 2] = 1
    undone: bool = False
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    at: str = ""
    item_sha: str = ""
    gone: bool = False


_RATED = frozenset(field.name for field in dataclasses.fields(Rating))


def _entry(row: dict[str, Any], scale: Scale, where: str) -> LabelEntry:
    """The act of a line, whatever somebody else wrote there."""
    problems: list[str] = []
    rated = {name: value for name, value in row.items() if name in _RATED}
    if row.get("gone") is True:
        rated |= {"label": None, "reason": CANNOT_TELL}  # a rating in form alone
    rating = read_rating(rated, where, scale=scale, problems=problems)
    try:
        act = _Act.model_validate(
            {name: value for name, value in row.items() if name not in _RATED}
        ).model_dump()
    except ValidationError as error:
        problems += schema_problems(error, _Act, where)
    refuse(problems)
    assert rating is not None
    return LabelEntry(rating.item_id, rating.rater, None if act.pop("gone") else rating, **act)


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
        entries: all of them, oldest first.
        unsaved: those of them of which it is not certain that `ratings.jsonl` has them.

    Raises:
        BusyError: another page is serving the set.
    """

    def __init__(self, folder: Path, scale: Scale) -> None:
        self._lock = FileLock(folder / LABELS_LOCK, timeout=0, thread_local=False)
        try:
            self._lock.acquire()
        except Timeout:
            raise BusyError(
                f"{shown(folder)}: another judgecal gold label or adjudicate is serving this set: end it "
                "first, or open its links; one page serves all raters"
            ) from None
        try:
            self._read(folder / "labels.jsonl", scale)
        except BaseException:
            self._lock.release()
            raise

    def _read(self, path: Path, scale: Scale) -> None:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise InputError(
                f"{shown(path)}: a link, or no file: what raters do is written into a file of the set's"
            )
        self.entries: list[LabelEntry] = []
        self.unsaved: list[LabelEntry] = []
        self._log = Log(
            path,
            "label",
            encode=bytes,
            decode=lambda line: line.removesuffix(b"\n"),
            synced=True,
            ended=_is_json,
            follow=False,
        )
        number = 0
        for number, line in enumerate(self._log.rows(), start=1):
            where = f"{shown(path)}:{number}: no act of a rater"
            if (row := json_object(line, where)) == _SAVED:
                self.unsaved = []
            else:
                entry = _entry(row, scale, where)
                self.entries.append(entry)
                self.unsaved.append(entry)
        if path.exists():
            if not number and self._log.size and not path.read_bytes().startswith(b'{"item_id": "'):
                raise InputError(f"{shown(path)}:1: no act of a rater: take the file away")
            self._log.open(lock=False)  # a torn last line is cut off: the power went in mid-write

    def close(self) -> None:
        """Let others serve the set."""
        self._log.close()
        self._lock.release()

    def append(self, entries: Sequence[LabelEntry]) -> None:
        """Add acts; they are on disk when the call returns.

        Raises:
            OSError: the disk is full, say; then no part of them is in the file.
        """
        self._write(*(entry.as_json() for entry in entries))
        self.entries += entries
        self.unsaved += entries

    def save(self) -> None:
        """Note that `ratings.jsonl` has them all; nothing is written where it had them before."""
        if self.unsaved:
            self._write(_SAVED)
            self.unsaved = []

    def _write(self, *rows: dict[str, Any]) -> None:
        if not self._log.is_open:  # the file is made with the first act
            self._log.open(lock=False)
        self._log.append(*(json_line(row).encode() for row in rows))
