"""`batches.jsonl`: which batches wait at providers for an experiment, noted before they are sent.

A line is an event of one batch: `intended` (with a digest of each request, before anything is sent),
`submitted` (with its id at the provider), `reading` (a run is about to take replies; `left` are the requests
that it does not ask for), `taken` (it has them), `read` (so that no reply is left) or `void` (it never came
to be). A batch without the last two is open: its requests are paid for, or may be.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from judgecal.artefacts import SCHEMA
from judgecal.engine.cache import RequestKeys
from judgecal.engine.calls import Call, Message, ReplySchema
from judgecal.engine.journal import Journal
from judgecal.engine.log import Log
from judgecal.errors import InputError
from judgecal.models import ModelSpec
from judgecal.records import digest

_FILE = "batches.jsonl"
_ID_DIGITS = 32


@dataclass(slots=True)
class Batch:
    """One batch.

    Attributes:
        found: that id comes from the provider's list; where batches have no names, it may be somebody else's.
        foreign: ids at the provider that turned out to be somebody else's.
    """

    name: str  # ours, which no other batch has
    model: str  # a digest of the model and its address
    ids: Sequence[str]  # a digest of each request, in the order in which they were sent
    usd_at_most: float  # what was reserved for it
    at: float  # when it was about to be sent, in seconds since 1970
    provider_id: str | None = None  # None until the provider has given it
    found: bool = False
    waiting: frozenset[str] = frozenset()  # those of `ids` whose replies may not be in the journal
    left: frozenset[str] = frozenset()  # those of them that no run has asked for since the batch ended
    foreign: set[str] = field(default_factory=set)

    @property
    def mark(self) -> str:
        """The end of each request's id at the provider, which tells batches of the same requests apart."""
        return mark_of(self.name)


def new_name() -> str:
    """A name for a batch; its last part marks each request, so that results are known to be of this batch."""
    return f"judgecal-{secrets.token_hex(8)}"


def mark_of(name: str) -> str:
    """The mark of a batch's requests."""
    return name.rpartition("-")[2]


def _model_digest(spec: ModelSpec) -> str:
    """What tells the models of batches apart; the address may hold what must not be written down."""
    return digest([spec.id, spec.address])[:16]


class BatchLog:
    """The file, held by one process at a time.

    Attributes:
        provider_ids: of all batches of the file that are known to be those, the ones that are read among
            them.
        locating: held by who looks for a batch in the provider's list; two runs may be after the same one.

    Raises:
        BusyError: another process holds it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.locating = asyncio.Lock()
        self._log = _batches_log(path).open()
        try:
            self._open, self.provider_ids = _read(path)
        except BaseException:
            self._log.close()
            raise

    def __enter__(self) -> BatchLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    def open_of(self, spec: ModelSpec) -> list[Batch]:
        """The open batches of a model, the oldest first."""
        model = _model_digest(spec)
        return [batch for batch in self._open.values() if batch.model == model]

    def is_open(self, batch: Batch) -> bool:
        """Whether neither `read` nor `void` was noted of it."""
        return batch.name in self._open

    def intend(self, name: str, spec: ModelSpec, ids: Iterable[str], *, usd_at_most: float) -> Batch:
        """Note a batch that is about to be sent."""
        about = {
            "model": _model_digest(spec),
            "usd_at_most": usd_at_most,
            "at": time.time(),
            "ids": list(ids),
        }
        self._append({"schema": SCHEMA, "batch": name, "event": "intended", **about})
        return self._open[name]

    def note(self, batch: Batch, event: Literal["submitted", "reading", "taken", "read", "void"]) -> None:
        """Note what became of a batch; for `submitted` its id is set by then, for `reading` what is left."""
        row: dict[str, Any] = {"batch": batch.name, "event": event}
        if event == "reading":
            row["left"] = sorted(batch.left)
        elif event != "taken":
            row |= {"provider_id": batch.provider_id, "found": batch.found}
        self._append(row)

    def _append(self, row: dict[str, Any]) -> None:
        self._log.append(row)
        _take_in(row, self._open, self.provider_ids)


def _take_in(row: Mapping[str, Any], batches: dict[str, Batch], provider_ids: set[str]) -> None:
    """What an event means for the open batches, and for the ids that are known to be ours."""
    name, event = row["batch"], row["event"]
    if event == "intended":
        ids = tuple(row["ids"])
        waiting = frozenset(ids)  # which may be large, and is one object
        usd, at = float(row["usd_at_most"]), float(row["at"])
        batches[name] = Batch(name, row["model"], ids, usd, at, waiting=waiting, left=waiting)
        return
    if event == "read" or (event == "submitted" and not row["found"]):
        provider_ids.add(row["provider_id"])
    batch = batches[name]
    if event == "submitted":
        batch.provider_id, batch.found = row["provider_id"], row["found"]
    elif event == "reading":
        batch.left = frozenset(row["left"])
    elif event == "taken":
        batch.waiting = batch.left
    else:
        del batches[name]


def _read(path: Path) -> tuple[dict[str, Batch], set[str]]:
    """Name -> open batch of a file, and the providers' ids of all; nothing where there is no file.

    Raises InputError: a line cannot be read.
    """
    batches: dict[str, Batch] = {}
    ids: set[str] = set()

    def take(line: bytes) -> dict[str, Any]:
        row: dict[str, Any] = json.loads(line)
        _take_in(row, batches, ids)
        return row

    # A torn last line is passed over: then nothing of that batch was sent.
    for _ in _batches_log(path, take).rows():
        pass
    return batches, ids


def _batches_log(path: Path, decode: Callable[[bytes], dict[str, Any]] = json.loads) -> Log[dict[str, Any]]:
    def refuse(where: str, error: Exception) -> None:
        raise InputError(
            f"{where}: no batch can be read from this line ({error!r:.80}), and it may be one that is paid "
            "for: fix it, or delete the file, and its requests are paid again"
        ) from error

    return Log(path, "batch", encode=lambda row: json.dumps(row).encode(), decode=decode, damaged=refuse)


def require_batches(specs: Iterable[ModelSpec]) -> None:
    """Refuse models whose calls cannot go into batches; beside others the embedded one may judge."""
    models = list(specs)
    alone = not any(spec.takes_batches for spec in models)
    without = sorted(
        {f"{one.alias} ({one.id})" for one in models if not one.takes_batches and (alone or not one.embedded)}
    )
    if not models:
        raise InputError("--batch: no model is called, so nothing can go into a batch: leave --batch out")
    if without:
        raise InputError(
            f"--batch: no batch API is known for {', '.join(without)}: leave --batch out, or take a model of "
            "OpenAI, Anthropic or Gemini (openai/..., anthropic/..., gemini/...) whose transport is auto or "
            "http and whose verdict is said"
        )


def request_id(key_of: RequestKeys, call: Call) -> tuple[str, str, Sequence[Message]]:
    """The key of a call's request in the store of replies, its id in a batch, and its messages."""
    messages = call.messages()
    key = key_of(messages, call.key.repeat, call.schema)
    return key, key[:_ID_DIGITS], messages


def batches_beside(journal: Journal) -> Path:
    """The `batches.jsonl` of a journal's experiment."""
    if journal.source is None:
        raise InputError("batches need a journal in a file, so that their replies are found again")
    return journal.source.parent / _FILE


def refuse_waiting(calls: Iterable[Call], spec: ModelSpec, journal: Journal) -> None:
    """Refuse live calls whose requests wait in a batch: they would be paid twice."""
    batch_of = batches_with(spec, journal)
    if batch_of is None:
        return
    if waiting := [
        batch for call in calls if (batch := batch_of(call.messages(), call.key.repeat, call.schema))
    ]:
        ids = ", ".join(sorted({batch.provider_id or batch.name for batch in waiting}))
        raise InputError(
            f"{len(waiting):,} of these calls to {spec.alias} wait in a batch ({ids}) and are paid for there"
            ": the same command with --batch takes the replies; to pay them again, delete "
            f"{batches_beside(journal)}"
        )


def batches_with(
    spec: ModelSpec, journal: Journal
) -> Callable[[Sequence[Message], int, ReplySchema | None], Batch | None] | None:
    """Gives the batch that a request waits in, by messages, repeat and schema; None where none waits."""
    if journal.source is None or not spec.takes_batches or not (path := batches_beside(journal)).exists():
        return None
    model, key_of = _model_digest(spec), RequestKeys(spec)
    waiting = ids_in(batch for batch in _read(path)[0].values() if batch.model == model)
    if not waiting:
        return None
    return lambda messages, repeat, schema: waiting.get(key_of(messages, repeat, schema)[:_ID_DIGITS])


def ids_in(batches: Iterable[Batch]) -> dict[str, Batch]:
    """Digest of each request whose reply is still to be taken -> the batch that it is in."""
    return {request: batch for batch in batches for request in batch.waiting}
