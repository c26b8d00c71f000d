"""The journal: `judgements.jsonl`, the log of judgements, one line a judgement after its retries.

`kill -9` at any moment loses at most the calls in flight. For one key the last line wins. The call of a line
that cannot be read is made again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from judgecal.engine.log import Log, as_line, line_reader
from judgecal.records import RETRIED_ON_RESUME, Judgement, Key, old_objects_left_alone


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
        """A journal read from a file when first asked; what is appended stays in memory."""
        journal = cls(None)
        journal.source = path
        return journal

    @cached_property
    def latest(self) -> dict[Key, Judgement]:
        """The last row of each key."""
        if self.source is None:
            return {}
        with old_objects_left_alone():
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
        """The judgement under a key that makes another call needless; None where the call is due.

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
