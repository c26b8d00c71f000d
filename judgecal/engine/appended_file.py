"""A file of lines that one process at a time appends to, each line whole or not there.

A line is handed to the operating system when `write` returns, so that `kill -9` loses none that was written.
A torn last line is cut off on opening. The file holds texts of users, so it is theirs alone to read.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from judgecal.errors import BusyError, JudgecalError

_WINDOW = 1 << 16  # bytes that are read at once from the end
PRIVATE = 0o600
"""The mode of files that hold users' texts and replies to them."""


class AppendedFile:
    """The file, open and locked until it is closed.

    Args:
        path: made with its folder if it is not there; the lock beside it is `.STEM.lock`.
        rows: what its lines are, in messages: "judgements".

    Attributes:
        mended: bytes of a torn last line that were cut off on opening, 0 where there was none.

    Raises:
        BusyError: another process holds it.
    """

    def __init__(self, path: Path, rows: str) -> None:
        self.path = path
        self.mended = 0
        self._rows = rows
        self._file: int | None = None
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(path)
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._file = os.open(path, flags, PRIVATE)
            _hold(self._file, path)
            opened = os.fstat(self._file)
            self._identity = (opened.st_dev, opened.st_ino)
            self.mended = cut_torn_line(path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file and let go of it; a second time it does nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._lock.release()

    def write(self, line: bytes) -> None:
        """Add one line, its newline included; it is out of this process when the call returns.

        Raises:
            JudgecalError: the file was deleted or replaced since it was opened.
            OSError: the disk is full or the folder read-only; no part of the line is left in the file.
            ValueError: the file is closed.
        """
        if self._file is None:
            raise ValueError(f"{self.path}: the journal is closed")
        self._check_place()
        self._write(self._file, line)

    def _check_place(self) -> None:
        """Refuse to write on into a file that no name leads to: the row would be lost with it."""
        try:
            there = self.path.stat()
            if (there.st_dev, there.st_ino) == self._identity:
                return
        except FileNotFoundError:
            pass
        raise JudgecalError(
            f"{self.path} was deleted or replaced while this ran, and the {self._rows} in it are gone with it: run the "
            "command again; where its replies are in the cache, they cost nothing"
        )

    def _write(self, file: int, line: bytes) -> None:
        """A line is one write, whole or taken back: nobody else writes to the file."""
        written = 0
        try:
            while written < len(line):  # a disk that fills up takes a part before it says so
                written += os.write(file, line[written:] if written else line)
        except BaseException as error:
            if written:
                with contextlib.suppress(OSError):  # a torn last line is cut off by the next run
                    os.ftruncate(file, os.fstat(file).st_size - written)
            if isinstance(error, OSError):
                raise OSError(
                    error.errno, f"the journal takes no more rows: {error.strerror}", str(self.path)
                ) from error
            raise


def _hold(file: int, path: Path) -> None:
    """Lock the file itself too: the lock beside it may be deleted by hand while somebody writes.

    Windows deletes no open file, and a file system without such locks has the other one alone.
    """
    with contextlib.suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(path) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
                raise


def _busy(journal: Path) -> BusyError:
    return BusyError(
        f"{journal.parent}: another judgecal process is working on this experiment; wait for it or use --name"
    )


def _locked(journal: Path) -> FileLock:
    """The experiment's lock, taken; the operating system lets go of it when the process ends, however it
    ends."""
    lock = FileLock(journal.with_name(f".{journal.stem}.lock"), timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise _busy(journal) from None
    return lock


@contextlib.contextmanager
def held(journal: Path) -> Iterator[None]:
    """Hold an experiment whose processes write to other files than its journal.

    Raises:
        BusyError: another process holds it.
    """
    lock = _locked(journal)
    try:
        yield
    finally:
        lock.release()


def cut_torn_line(path: Path) -> int:
    """Cut what follows the last newline, for the process that wrote it was killed in mid-write; the bytes cut
    off."""
    if not path.exists():
        return 0
    size = end = path.stat().st_size
    with path.open("rb") as file:
        while end:
            start = max(0, end - _WINDOW)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
    if end < size:
        os.truncate(path, end)
    return size - end
