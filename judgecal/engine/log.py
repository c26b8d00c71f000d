"""The append-only log: a file of lines of JSON, a row each, that one process at a time adds to.

A row is handed to the operating system when `append` returns, so that `kill -9` loses none that was written,
and each line is whole or not there: one that was torn is cut off on opening. A line that cannot be read is
named and counts as not there, unless the log says otherwise. The files hold texts of users, so they are
theirs alone to read.

The journal is the log of judgements, `judgements.jsonl`, one line a judgement after its retries: `kill -9` at
any moment loses at most the calls in flight. For one key the last line wins.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import json
import operator
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NoReturn, Self, TypeVar, get_args, get_type_hints

import orjson
from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from judgecal.errors import BusyError, InputError, JudgecalError, notice
from judgecal.records import RETRIED_ON_RESUME, Judgement, Key

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


_MOST = 1 << 53  # of a number: more tokens, attempts or repeats than anybody has
_WINDOW = 1 << 16  # bytes that are read at once from the end
PRIVATE = 0o600
"""The mode of files that hold users' texts and replies to them."""
DAMAGED = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What reading a damaged line of JSON raises."""

T = TypeVar("T")
_decode = json.JSONDecoder().decode


def now(timespec: str = "seconds") -> str:
    """Return the time now as text, in UTC as ISO 8601: the one clock of what is written down."""
    moment = time.time()
    if timespec == "seconds":
        return iso(int(moment))
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).isoformat(timespec=timespec)


@functools.lru_cache(maxsize=16)
def iso(second: int) -> str:
    """Seconds since 1970 as UTC, ISO 8601; rows of one second share one text."""
    return datetime.datetime.fromtimestamp(second, datetime.UTC).isoformat(timespec="seconds")


@functools.cache
def report_damaged(where: str, what: str, why: str) -> None:
    """Report on stderr, by texts `where`, `what` and `why`, a line that cannot be read; each once a run."""
    notice(
        f"judgecal: {where}: no {what} can be read from this line ({why[:200]}): we ignore the line and "
        "make its call again; fix or delete the line"
    )


def as_line(row: DataclassInstance) -> bytes:
    """Return a row, a dataclass, as a line of JSON in bytes, without its newline."""
    try:
        return orjson.dumps(row)
    except TypeError:
        # An unpaired surrogate has no UTF-8; as an escape it comes back as it was.
        return json.dumps(dataclasses.asdict(row)).encode("ascii")


class Log(Generic[T]):
    """A log, to be read; between `open` and `close` also to be added to.

    Args:
        path: the file; `open` makes it, and its folder, if it is not there.
        what: a row, in messages: "judgement".
        encode: the line of a row, without its newline.
        decode: the row of a line; raises one of DAMAGED where it is none, and InputError (": why") to end the
            reading.
        damaged: told of such a line, as `path:number`, and why; what it raises ends the reading.
        synced: whether a row is on the disk when `append` returns, and not only with the operating system.
        ended: whether a last line without its newline lacks that alone, and is a line all the same.
        mode: of the file, where it is made.

    Attributes:
        mended: bytes of a torn last line that were cut off on opening, 0 where there was none.
    """

    def __init__(
        self,
        path: Path,
        what: str,
        *,
        encode: Callable[[T], bytes],
        decode: Callable[[bytes], T],
        damaged: Callable[[str, Exception], None] | None = None,
        synced: bool = False,
        ended: Callable[[bytes], bool] = lambda _: False,
        mode: int = PRIVATE,
    ) -> None:
        self.path, self._name = path, str(path)
        self.mended = 0
        self._what = what
        self._encode, self._decode = encode, decode
        self._damaged = damaged or (lambda where, error: report_damaged(where, what, str(error)))
        self._synced, self._ended, self._mode = synced, ended, mode
        self._lock: FileLock | None = None
        self._file: int | None = None
        self._identity: tuple[int, int] | None = None

    def rows(self) -> Iterator[T]:
        """Yield the log's own rows in their order; none where there is no file."""
        if not self.path.exists():
            return
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n") and not self._ended(line):
                    return  # being written right now, or torn: not a row yet
                try:
                    row = self._decode(line)
                except DAMAGED as error:
                    self._damaged(f"{self.path}:{number}", error)
                    continue
                except InputError as error:
                    raise InputError(f"{self.path}:{number}{error}") from None
                yield row

    @property
    def is_open(self) -> bool:
        """Whether rows can be appended to the log."""
        return self._file is not None

    def open(self, *, lock: bool = True) -> Self:
        """Open the log's own file for appending, after a torn last line is cut off; return the Log itself.

        Args:
            lock: whether this log keeps other processes out, by `.STEM.lock`; else somebody else does.

        Raises:
            BusyError: another process holds it.
        """
        try:
            if lock:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._lock = _locked(self.path)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._file = os.open(self.path, flags, self._mode)
            if lock:
                opened = os.fstat(self._file)
                self._identity = (opened.st_dev, opened.st_ino)
            self._mend(self._file)
        except BaseException:
            self.close()
            raise
        return self

    def _mend(self, file: int) -> None:
        """Cut what follows the last newline: the process that wrote it was killed in mid-write."""
        size = end = self.path.stat().st_size
        with self.path.open("rb") as lines:
            while end:
                start = max(0, end - _WINDOW)
                lines.seek(start)
                newline = lines.read(end - start).rfind(b"\n")
                if newline >= 0:
                    end = start + newline + 1
                    break
                end = start
            if end == size:
                return
            lines.seek(end)
            if self._ended(lines.read()):
                os.write(file, b"\n")
                return
        os.ftruncate(file, end)
        self.mended = size - end

    def close(self) -> None:
        """Close the file and let go of it; a second time it does nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, *rows: T) -> None:
        """Add rows, all or none; they are out of this process by then.

        Raises:
            JudgecalError: the file was deleted or replaced since it was opened.
            OSError: the disk is full or the folder read-only; no part of a row is left in the file.
            ValueError: the file is closed.
        """
        if self._file is None:
            raise ValueError(f"{self.path}: the journal is closed")
        if self._identity is not None:
            self._check_place()
        data, written = b"".join([self._encode(row) + b"\n" for row in rows]), 0
        try:
            while written < len(data):  # a disk that fills up takes a part before it says so
                written += os.write(self._file, data[written:] if written else data)
            if self._synced:
                os.fsync(self._file)
        except BaseException as error:
            if written:
                with contextlib.suppress(OSError):  # a torn last line is cut off by the next run
                    os.ftruncate(self._file, os.fstat(self._file).st_size - written)
            if isinstance(error, OSError):
                message = f"the journal takes no more rows: {error.strerror}"
                raise OSError(error.errno, message, str(self.path)) from error
            raise

    def _check_place(self) -> None:
        """Refuse to write on into a file that no name leads to: the row would be lost with it."""
        try:
            there = os.stat(self._name)  # noqa: PTH116 - before every row, and `Path` takes half as long again
            if (there.st_dev, there.st_ino) == self._identity:
                return
        except FileNotFoundError:
            pass
        rows = f"{self._what}{'es' if self._what.endswith('ch') else 's'}"
        raise JudgecalError(
            f"{self.path} was deleted or replaced while this ran, and the {rows} in it are gone with it: run "
            "the command again; where its replies are in the cache, they cost nothing"
        )


@contextlib.contextmanager
def log_lock(journal: Path) -> Iterator[None]:
    """Within the block, lock the experiment of a journal's path; its processes write to other files.

    Raises:
        BusyError: another process holds it.
    """
    lock = _locked(journal)
    try:
        yield
    finally:
        lock.release()


def _locked(journal: Path) -> FileLock:
    """The experiment's lock, taken; the operating system lets go of it however the process ends."""
    lock = FileLock(journal.with_name(f".{journal.stem}.lock"), timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        _refuse_busy(journal)
    return lock


def _refuse_busy(journal: Path) -> NoReturn:
    raise BusyError(
        f"{journal.parent}: another judgecal process is working on this experiment; wait for it or use --name"
    ) from None


def line_reader(kind: type[T]) -> Callable[[bytes], T]:
    """From a dataclass type, return a function that reads a line of JSON in bytes as it, checked by type.

    It raises one of DAMAGED where the line is none.
    """
    adapter = TypeAdapter(kind)
    hints = get_type_hints(kind).items()
    numbers_of = operator.attrgetter(
        *(name for name, hint in hints if {int, float} & {hint, *get_args(hint)})
    )

    def read(line: bytes) -> T:
        try:
            row = adapter.validate_json(line, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            if first["type"] != "json_invalid":
                raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
            row = adapter.validate_python(_decode(line.decode()))  # half a surrogate, which pydantic refuses
        for number in numbers_of(row):
            if isinstance(number, int | float) and not abs(number) <= _MOST:
                raise ValueError(f"{number!r:.40} is no number, or too large")
        return row

    return read


class Journal:
    """The journal of one experiment, held by one process at a time.

    Args:
        path: the `judgements.jsonl`, made if it is not there; None keeps the rows in memory only.

    Attributes:
        source: the file of the rows, also where they are only looked at; None of rows in memory.
        mended: bytes of a torn last line that were cut off on opening, 0 where there was none.

    Raises:
        BusyError: another process holds it.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = self.source = path
        self.mended = 0
        self._log = None if path is None else judgements_log(path).open()
        if self._log is None:
            return
        self.mended = self._log.mended
        try:
            self.latest  # noqa: B018 - read now, so that a broken line is told before the first call
        except BaseException:
            self._log.close()
            raise

    @classmethod
    def looked_at(cls, path: Path) -> Journal:
        """Return the Journal of the file at a path, read when first used; appended rows stay in memory."""
        journal = cls(None)
        journal.source = path
        return journal

    @functools.cached_property
    def latest(self) -> dict[Key, Judgement]:
        """The last row of each key."""
        if self.source is None:
            return {}
        return {row.key: row for row in read_journal(self.source)}

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._log is not None:
            self._log.close()

    def append(self, *judgements: Judgement) -> None:
        """Add rows, all or none, as `Log.append`."""
        if self._log is not None and judgements:
            self._log.append(*judgements)
        self.latest.update((judgement.key, judgement) for judgement in judgements)

    def settled(self, key: Key, *, retry_unscored: bool) -> Judgement | None:
        """Return the Judgement under a Key, None where a call is due, by a bool `retry_unscored`.

        A key with a verdict is never called again. Errors of the wire are tried again; a reply that gave no
        verdict only with `retry_unscored`.
        """
        row = self.latest.get(key)
        if row is None or row.verdict is not None:
            return row
        failed = row.error.kind if row.error else "parse"
        again = failed in RETRIED_ON_RESUME or retry_unscored
        return None if again else row


def read_journal(path: Path) -> Iterator[Judgement]:
    """The rows of a journal in their order, none where there is no file; a line that is none is named."""
    return judgements_log(path).rows()


row_of = line_reader(Judgement)
"""Reads a line of the journal."""
judgements_log = functools.partial(Log[Judgement], what="judgement", encode=as_line, decode=row_of)
"""The log of judgements in a file."""
