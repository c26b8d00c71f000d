"""Stored replies across experiments: the same request, byte for byte, is paid once.

A SQLite file in the user's cache folder, or in the folder that JUDGECAL_CACHE_DIR names. The key holds endpoint,
model, settings, messages and repeat, so that one name on two endpoints never shares an answer. What is stored is
the reply; verdicts are read from it anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from judgecal.engine.calls import Message, Reply
from judgecal.errors import InputError
from judgecal.models import ModelSpec
from judgecal.records import digest

__all__ = ["ReplyCache", "cache_folder", "cache_key"]

_MAX_BYTES = 1 << 30
_SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL, at REAL NOT NULL)"


def cache_folder() -> Path:
    """Where replies are stored: JUDGECAL_CACHE_DIR, else `judgecal` in the user's cache folder."""
    if named := os.environ.get("JUDGECAL_CACHE_DIR"):
        return Path(named)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "judgecal"


class ReplyCache:
    """The stored replies.

    Args:
        folder: where the file is or will be.
        max_bytes: when the file is larger on opening, the older half of the replies is deleted.

    Raises:
        InputError: the file cannot be opened; the message says how to do without.
    """

    def __init__(self, folder: Path, *, max_bytes: int = _MAX_BYTES) -> None:
        self.path = folder / "replies.sqlite"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Calls come from the engine's own thread where a notebook's loop holds this one; never two at once.
            self._db = sqlite3.connect(self.path, timeout=30.0, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(_SCHEMA)
            if self.path.stat().st_size > max_bytes:
                self._drop_older_half()
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error

    def __enter__(self) -> ReplyCache:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def get(self, key: str) -> Reply | None:
        """The reply stored under a key.

        Raises:
            InputError: the file is damaged.
        """
        try:
            row = self._db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            return None if row is None else Reply(**json.loads(row[0]))
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise self._unusable(error) from error

    def put(self, key: str, reply: Reply) -> None:
        """Store a reply; the newest under a key stays. A full disk costs the stored copy, not the judgement."""
        text = json.dumps({name: getattr(reply, name) for name in Reply.__slots__})
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", (key, text, time.time()))

    def _unusable(self, error: Exception) -> InputError:
        return InputError(f"{self.path}: the store of replies cannot be used ({error}): try --no-cache")

    def _drop_older_half(self) -> None:
        self._db.execute(
            "DELETE FROM replies WHERE at <= (SELECT at FROM replies ORDER BY at LIMIT 1 "
            "OFFSET (SELECT COUNT(*) / 2 FROM replies))"
        )
        self._db.execute("VACUUM")


def cache_key(spec: ModelSpec, messages: Sequence[Message], repeat: int) -> str:
    """The key of one request: everything that is sent, where it is sent, and which repeat it is."""
    request = [spec.id, spec.api_base, spec.temperature, spec.max_tokens, [dict(m) for m in messages], repeat]
    return digest(request)
