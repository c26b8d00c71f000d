"""Stored replies across experiments: the same request, byte for byte, is paid once.

A SQLite file in the user's cache folder, or in the folder that JUDGECAL_CACHE_DIR names. The key holds
endpoint, model, settings, messages and repeat, so that one name on two endpoints never shares an answer. What
is stored is the reply; verdicts are read from it anew, and a reply without one is neither stored nor served.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from judgecal.engine.calls import Message, Reply, ReplySchema
from judgecal.engine.log import DAMAGED, PRIVATE, as_line, line_reader, report_damaged
from judgecal.errors import InputError
from judgecal.models import ModelSpec, load_catalogue
from judgecal.records import Result, canonical_json
from judgecal.workspace import Workspace

_FILE = "replies.sqlite"
_MAX_BYTES = 1 << 30
_WAITS_S = 0.5
stored_reply = line_reader(Reply)
_SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL, at REAL NOT NULL)"


def cache_folder() -> Path:
    """Return the path of the stored replies: JUDGECAL_CACHE_DIR, else a folder in the user's cache."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("JUDGECAL_CACHE_DIR") or base / "judgecal")


@dataclass(frozen=True, slots=True)
class ModelsHere(Result):
    """The models that can be called by an alias, the workspace's own first, and the folder of stored replies
    with its size."""

    models: tuple[ModelSpec, ...]
    replies: Path
    n_bytes: int
    n_own: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return a dict for JSON: of each model whether it can be called, and at what price."""
        names = ("alias", "id", "input_usd_per_1m", "output_usd_per_1m", "context_window", "key_env")
        models = [
            {**{name: getattr(model, name) for name in names}, "key_present": model.key_present}
            for model in self.models
        ]
        return {"models": models, "replies": {"path": str(self.replies), "n_bytes": self.n_bytes}}


def models_here(workspace: Workspace) -> ModelsHere:
    """Return ModelsHere: the models of a Workspace by their aliases, and where replies are stored."""
    catalogue, folder = load_catalogue(workspace), cache_folder()
    size = sum(path.stat().st_size for path in folder.glob(f"{_FILE}*"))
    return ModelsHere(tuple(catalogue.specs.values()), folder, size, catalogue.n_own)


def open_cache(*, use: bool = True) -> contextlib.AbstractContextManager[ReplyCache | None]:
    """Return a context manager of the ReplyCache; without `use` it only adds, None where it cannot open."""
    try:
        return ReplyCache(cache_folder(), serves=use)
    except InputError:
        if use:
            raise
        return contextlib.nullcontext()


class ReplyCache:
    """The stored replies.

    Args:
        folder: where the file is or will be.
        serves: whether stored replies are handed out, and not only added.
        max_bytes: when the file is larger on opening, the older half of the replies is deleted.
    """

    def __init__(self, folder: Path, *, serves: bool = True, max_bytes: int = _MAX_BYTES) -> None:
        self.path = folder / _FILE
        self._serves = serves
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # SQLite's own files beside it take its mode
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, PRIVATE))
            # a notebook's loop may hold this thread: calls come from the engine's own, never two at once
            self._db = sqlite3.connect(self.path, timeout=30.0, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(_SCHEMA)
            if self.path.stat().st_size > max_bytes:
                self._db.execute(
                    "DELETE FROM replies WHERE at <= (SELECT at FROM replies ORDER BY at LIMIT 1 "
                    "OFFSET (SELECT COUNT(*) / 2 FROM replies))"
                )
                self._db.execute("VACUUM")
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error
        self._pending: dict[str, tuple[str, str, float]] = {}
        self._flushed = time.monotonic()

    def __enter__(self) -> ReplyCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush(now=True)
        self._db.close()

    def get(self, key: str) -> tuple[Reply, float] | None:
        """Return (Reply, time stored) under a key, or None; a damaged reply is named, and counts as none.

        Raises InputError: the file itself is damaged.
        """
        if key in self._pending:
            self.flush(now=True)
        if not self._serves:
            return None  # a damaged file is then no hindrance
        try:
            if not self._db.in_transaction:  # until `flush`: one for each look takes twice as long
                self._db.execute("BEGIN")
            row = self._db.execute("SELECT reply, at FROM replies WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        try:
            if row is None:
                return None
            return stored_reply(row[0].encode()), row[1]
        except DAMAGED as error:
            report_damaged(str(self.path), f"stored reply {key[:12]}", str(error))
            return None

    def put(self, key: str, reply: Reply) -> None:
        """Store a Reply under a key, where the newest stays; replies are written together, after 0.5 s.

        What is lost with a killed process is the stored copy of that half second; the journal has the
        judgements.
        """
        self._pending[key] = (key, as_line(reply).decode(), time.time())
        self.flush()

    def flush(self, *, now: bool = False) -> None:
        """Write the cache's own waiting replies, every 0.5 s or `now`; a full disk costs no judgement."""
        moment = time.monotonic()
        if not now and moment - self._flushed < _WAITS_S:
            return
        self._flushed = moment
        rows, self._pending = sorted(self._pending.values()), {}
        try:
            if self._db.in_transaction:  # of `get`
                self._db.execute("COMMIT")
            if rows:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", rows)
                self._db.execute("COMMIT")
        except sqlite3.Error:
            with contextlib.suppress(sqlite3.Error):  # SQLite has rolled back by itself
                self._db.execute("ROLLBACK")

    def _unusable(self, error: Exception) -> InputError:
        return InputError(f"{self.path}: the store of replies cannot be used ({error}): try --no-cache")


def cache_key(
    spec: ModelSpec, messages: Sequence[Message], repeat: int, schema: ReplySchema | None = None
) -> str:
    """Return the hash (text) of a request for the cache, from a ModelSpec, messages and a repeat's number.

    The schema counts as it was wanted, whether or not the server was then held to it.
    """
    wanted = None if schema is None else [spec.structured, schema.key]
    sent = [spec.id, spec.api_base, spec.temperature, spec.max_tokens, wanted, messages, repeat]
    try:
        return hashlib.sha256(orjson.dumps(sent, option=orjson.OPT_SORT_KEYS)).hexdigest()
    except TypeError:  # half a surrogate
        sent[-2] = [dict(message) for message in messages]
        return hashlib.sha256(canonical_json(sent).encode("utf-8", "surrogatepass")).hexdigest()
