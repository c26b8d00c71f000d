"""The journal: `judgements.jsonl`, append-only, one line a judgement after its retries.

A line is handed to the operating system as soon as its judgement is there, so that `kill -9` at any moment loses
at most the calls in flight. A torn last line is cut off and said. For one key the last line wins.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from io import RawIOBase
from pathlib import Path
from typing import IO

from judgecal.errors import BusyError, InputError
from judgecal.records import RETRIED_ON_RESUME, Judgement, Key

__all__ = ["Journal", "read_journal"]


class Journal:
    """The journal of one experiment, held by one process at a time.

    Args:
        path: the `judgements.jsonl`, made if it is not there; None keeps the rows in memory only.

    Attributes:
        latest: the last row of each key.
        mended: bytes of a torn last line that were cut off on opening, 0 where there was none.

    Raises:
        BusyError: another process holds it.
        InputError: a line in the middle cannot be read; the message names it.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.mended = 0
        self.latest: dict[Key, Judgement] = {}
        self._file: RawIOBase | None = None
        self._lock: IO[bytes] | None = None
        if path is not None:
            self._open(path)

    def _open(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = _hold(path.with_name(".judgements.lock"), path)
        try:
            self.mended = _cut_torn_line(path)
            self.latest.update((row.key, row) for row in read_journal(path))
            self._file = path.open("ab", buffering=0)
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
        if self._lock is not None:
            self._lock.close()

    def append(self, judgement: Judgement) -> None:
        """Add one row; it is out of this process when the call returns.

        Raises:
            OSError: the disk is full or the folder read-only.
            ValueError: the journal is closed.
        """
        data = _line(judgement)
        while data and self._file is not None:
            data = data[self._file.write(data) or 0 :]
        self.latest[judgement.key] = judgement

    def settled(self, key: Key, *, retry_unscored: bool) -> Judgement | None:
        """The row that makes another call needless, or None where the call is due.

        A key with a verdict is never called again. Errors of the wire are tried again; a reply that gave no
        verdict only with `retry_unscored`.
        """
        row = self.latest.get(key)
        if row is None or row.verdict is not None:
            return row
        failed = row.error.kind if row.error else "parse"
        again = failed in RETRIED_ON_RESUME or retry_unscored
        return None if again else row


def _line(judgement: Judgement) -> bytes:
    row = judgement.as_json()
    try:
        return (json.dumps(row, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:
        # An unpaired surrogate has no UTF-8; as an escape it comes back as it was.
        return (json.dumps(row) + "\n").encode("ascii")


def read_journal(path: Path) -> Iterator[Judgement]:
    """The rows of a journal in their order; none where there is no file.

    Raises:
        InputError: a line is no judgement; the message names file and line.
    """
    if not path.exists():
        return
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return  # a line being written right now, or torn: not a judgement yet
            try:
                yield Judgement.from_json(json.loads(line))
            except (ValueError, TypeError, KeyError) as error:
                raise InputError(
                    f"{path}:{number}: no judgement can be read from this line ({error}); "
                    "mend or delete the line, its call will be made again"
                ) from error


def _cut_torn_line(path: Path) -> int:
    """Cut what follows the last newline: the process that wrote it was killed in mid-write."""
    if not path.exists():
        return 0
    data = path.read_bytes() if path.stat().st_size < 1 << 20 else _tail(path)
    torn = len(data) - (data.rfind(b"\n") + 1)
    if torn:
        os.truncate(path, path.stat().st_size - torn)
    return torn


def _tail(path: Path) -> bytes:
    """The end of the file from some newline on; a single line longer than the window widens it."""
    size = path.stat().st_size
    window = 1 << 20
    with path.open("rb") as file:
        while True:
            file.seek(max(0, size - window))
            data = file.read()
            if b"\n" in data or window >= size:
                return data
            window *= 4


def _hold(lock: Path, journal: Path) -> IO[bytes]:
    """Take the lock file; the operating system lets go of it when the process ends, however it ends."""
    file = lock.open("ab")
    try:
        _lock_now(file)
    except OSError:
        file.close()
        raise BusyError(
            f"{journal.parent}: another judgecal process is working on this experiment; wait for it or use --out"
        ) from None
    return file


def _lock_now(file: IO[bytes]) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        return
    fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
