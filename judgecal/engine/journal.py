"""The journal: `judgements.jsonl`, append-only, one line a judgement after its retries.

A line is handed to the operating system as soon as its judgement is there, so that `kill -9` at any moment
loses at most the calls in flight. A torn last line is cut off and said. For one key the last line wins. A
line that cannot be read is named and counts as not there: its call is made again. The file holds texts of
users, so it is theirs alone to read.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
import sys
from collections.abc import Iterator, MutableMapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import IO, Any, get_args, get_type_hints

from judgecal.engine.appended_file import AppendedFile
from judgecal.errors import notice
from judgecal.records import RETRIED_ON_RESUME, ErrorKind, Failure, Judgement, Key

_DIGEST_BYTES = 12  # of a million keys, two share one digest with a probability of 6e-18
_encode = json.JSONEncoder(ensure_ascii=False).encode
_decode = json.JSONDecoder().decode
_ERROR_KINDS = frozenset(get_args(ErrorKind))
DAMAGED = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What reading a damaged line of JSON raises."""


class Journal:
    """The journal of one experiment, held by one process at a time.

    Args:
        path: the `judgements.jsonl`, made if it is not there; None keeps the rows in memory only.

    Raises:
        BusyError: another process holds it.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._source = path
        self._file = None if path is None else AppendedFile(path, "judgements")
        if path is None:
            return
        try:
            self.latest  # noqa: B018 - read now, so that a broken line is told before the first call
        except BaseException:
            Journal.__exit__(self)
            raise

    @property
    def mended(self) -> int:
        """Bytes of a torn last line that were cut off on opening, 0 where there was none."""
        return self._file.mended if self._file else 0

    @property
    def source(self) -> Path | None:
        """The file of the rows, also where they are only looked at; None of rows in memory."""
        return self._source

    @classmethod
    def looked_at(cls, path: Path) -> Journal:
        """The rows of a file, read when they are first asked for; what is appended stays in memory."""
        journal = cls(None)
        journal._source = path
        return journal

    @cached_property
    def latest(self) -> MutableMapping[Key, Judgement]:
        """The last row of each key."""
        return {} if self._source is None else {row.key: row for row in read_journal(self._source)}

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, judgement: Judgement) -> None:
        """Add one row; it is out of this process when the call returns.

        Raises:
            JudgecalError: the file was deleted or replaced since it was opened.
            OSError: the disk is full or the folder read-only; no part of the row is left in the file.
            ValueError: the journal is closed.
        """
        if self._file is not None:
            self._file.write(line_of(judgement))
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


def read_journal(path: Path) -> Iterator[Judgement]:
    """The rows of a journal in their order; none where there is no file, and lines that are no judgement are
    named."""
    return (row for _, row in _located_rows(path))


def _located_rows(path: Path) -> Iterator[tuple[int, Judgement]]:
    """The rows of `read_journal`, each with the byte that its line begins at."""
    if not path.exists():
        return
    end = 0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return  # a line being written right now, or torn: not a judgement yet
            start, end = end, end + len(line)
            try:
                row = row_of(line)
            except DAMAGED as error:
                say_damaged(f"{path}:{number}", "judgement", str(error))
                continue
            yield start, row


@cache
def say_damaged(where: str, what: str, why: str) -> None:
    """Name a line that cannot be read; once a run, for a file is read more often than that."""
    notice(
        f"judgecal: {where}: no {what} can be read from this line ({why[:200]}): it counts as not there, and its call "
        "will be made again; mend or delete the line"
    )


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
    """The last row of each key in a file that one process appends to; a row is set when its line is
    written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[bytes, int] = {}
        self._file: IO[bytes] | None = None
        for start, row in _located_rows(path):
            self._places[_digest(row.key)] = start
        self._end = path.stat().st_size if path.exists() else 0

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
        for start, row in _located_rows(self._path):
            if self._places.get(_digest(row.key)) == start:
                yield row.key

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


def line_of(row: Judgement) -> bytes:
    """One line, its newline included."""
    try:
        return (_encode(row.as_json()) + "\n").encode()
    except UnicodeEncodeError:
        # An unpaired surrogate has no UTF-8; as an escape it comes back as it was.
        return (json.dumps(row.as_json()) + "\n").encode("ascii")


def row_of(line: bytes) -> Judgement:
    """Read a line; texts that many rows share are held once.

    Raises one of DAMAGED: the line is no judgement.
    """
    values = _decode(line.decode())  # from bytes it would first guess the encoding
    if not isinstance(values, dict):
        raise TypeError("a judgement is a JSON object")
    error = values.get("error")
    if error is not None:
        values["error"] = Failure(error["kind"], error["message"])
    _intern(values)
    row = Judgement(**values)
    _judgement_types.check(row)
    if row.error is not None and not (row.error.kind in _ERROR_KINDS and type(row.error.message) is str):
        raise ValueError(f"{row.error.kind!r:.40} is no kind of error")
    return row


class FieldTypes:
    """What the fields of a dataclass may hold: values of their types, of numbers those that a double
    holds."""

    _MOST = 1 << 53  # of whole numbers: more tokens, attempts or repeats than anybody has

    def __init__(self, kind: type) -> None:
        hints = get_type_hints(kind)
        self._allowed = [(name, get_args(hint) or (hint,)) for name, hint in hints.items()]
        self._values = operator.attrgetter(*hints)
        self._numbers: dict[tuple[type, ...], tuple[list[int], list[int]]] = {}
        """The types of good ones, of which few combinations occur: where floats stand, and whole numbers."""

    def check(self, one: object) -> None:
        """Raises: TypeError, ValueError: names the first field that holds something else."""
        values = self._values(one)
        types = tuple(map(type, values))
        places = self._numbers.get(types)
        if places is None:
            places = self._numbers[types] = self._places(values, types)
        floats, wholes = places
        for place in floats:
            if not math.isfinite(values[place]):
                raise ValueError(f"{values[place]!r} is no number")
        for place in wholes:
            if abs(values[place]) > self._MOST:
                raise ValueError("a number is too large")

    def _places(self, values: Sequence[object], types: Sequence[type]) -> tuple[list[int], list[int]]:
        for (name, allowed), value, kind in zip(self._allowed, values, types, strict=True):
            if kind not in allowed and not (kind is int and float in allowed):
                raise TypeError(f"{name} cannot be {value!r:.40}")
        places = list(enumerate(types))
        return [place for place, kind in places if kind is float], [
            place for place, kind in places if kind is int
        ]


_judgement_types = FieldTypes(Judgement)


def _intern(values: dict[str, Any]) -> None:
    for name in ("item_id", "item_sha", "judge", "judge_fingerprint"):
        if type(values[name]) is not str:
            raise TypeError("item_id, item_sha, judge and judge_fingerprint must be texts")
        values[name] = sys.intern(values[name])
    for name in ("model_id", "at", "unit"):
        if type(values.get(name)) is str:
            values[name] = sys.intern(values[name])
