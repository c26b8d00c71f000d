"""The journal of a run with more rows than memory should hold: where each row stands is kept, and not the row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, MutableMapping
from functools import cached_property
from pathlib import Path
from typing import IO

from judgecal.engine.journal import Journal, located_rows
from judgecal.engine.lines import row_of
from judgecal.records import Judgement, Key

__all__ = ["LongJournal"]

_DIGEST_BYTES = 12  # of a million keys, two share one digest with a probability of 6e-18


class LongJournal(Journal):
    """A journal of any length: about 150 bytes of memory a row, whatever the rows hold.

    A row that is asked for is read from the file. Otherwise it is a `Journal`, file and all.
    """

    @cached_property
    def latest(self) -> MutableMapping[Key, Judgement]:
        """The last row of each key."""
        return {} if self._source is None else _RowsInFile(self._source)

    def __exit__(self, *reason: object) -> None:
        super().__exit__(*reason)
        if isinstance(self.latest, _RowsInFile):
            self.latest.close()


class _RowsInFile(MutableMapping[Key, Judgement]):
    """The last row of each key in a file that one process appends to; a row is set when its line is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[bytes, int] = {}
        self._end = 0
        self._file: IO[bytes] | None = None
        for end, row in located_rows(path):
            self._places[_digest(row.key)] = self._end
            self._end = end

    def __getitem__(self, key: Key) -> Judgement:
        place = self._places.get(_digest(key))
        if place is None:
            raise KeyError(key)
        return self._read(place)

    def __setitem__(self, key: Key, row: Judgement) -> None:
        self._places[_digest(key)] = self._end
        self._end = self._path.stat().st_size

    def __delitem__(self, key: Key) -> None:
        raise TypeError("a journal is append-only")

    def __contains__(self, key: object) -> bool:
        return isinstance(key, Key) and _digest(key) in self._places

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Key]:
        """The keys, in the order of their last rows."""
        start = 0
        for end, row in located_rows(self._path):
            if self._places.get(_digest(row.key)) == start:
                yield row.key
            start = end

    def _read(self, place: int) -> Judgement:
        if self._file is None:
            self._file = self._path.open("rb")
        self._file.seek(place)
        return row_of(self._file.readline())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _digest(key: Key) -> bytes:
    text = "\0".join(map(str, key))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
