"""`optimizer_calls.jsonl`: every call that an optimiser made, append-only, with its reply.

An interrupted run takes the replies from here and pays none again, also with `--no-cache`. A line is handed
to the operating system as soon as its reply is there; the experiment's journal keeps a second process out.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgecal.engine import CallResult, Message, Reply, ReplySchema
from judgecal.engine.cache import cache_key
from judgecal.engine.log import FieldTypes, Log, now
from judgecal.models import ModelSpec
from judgecal.records import RETRIED_ON_RESUME, digest

CALL_LOG = "optimizer_calls.jsonl"
"""The file's name in an experiment's folder."""


def says_something(reply: Reply) -> bool:
    """Whether a reply holds a text that the provider did not withhold."""
    return reply.stopped != "content_filter" and bool(reply.text.strip())


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """One call that an optimiser asks for: `task` of the judge at work, `reflection` of whoever writes
    instructions.

    `spec` has the sampling settings of this call; `repeat` tells samples of one prompt from each other, 0
    where DSPy asks for none in particular; a reply that is not `usable` is stored for nobody else.
    """

    spec: ModelSpec
    messages: Sequence[Message]
    purpose: str = "task"
    repeat: int = 0
    schema: ReplySchema | None = None
    usable: Callable[[Reply], bool] = says_something

    @property
    def key(self) -> str:
        """The key of this request, in the cache and in the record alike."""
        return cache_key(self.spec, self.messages, self.repeat, self.schema)


_Row = dict[str, Any]


class CallLog:
    """The calls of an optimiser in a file that is made if it is not there; a context manager."""

    def __init__(self, path: Path, optimizer: str) -> None:
        self._optimizer = optimizer
        self._log = _calls_log(path).open(lock=False)
        # The last line of a key wins.
        self._replies = dict(known for row in self._log.rows() if (known := _known(row)) is not None)

    def __enter__(self) -> CallLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    def known(self, key: str) -> Reply | None:
        """The reply that was had under a key; failures that another try can mend are not known."""
        return self._replies.get(key)

    def add(self, call: ProgramCall, outcome: CallResult) -> None:
        """Keep one call."""
        self._log.append(_row(call, outcome, self._optimizer))


def _row(call: ProgramCall, outcome: CallResult, optimizer: str) -> dict[str, Any]:
    reply, failure = outcome.reply or Reply("", call.spec.id), outcome.failure
    return {
        "at": now(),
        "optimizer": optimizer,
        "purpose": call.purpose,
        "model": call.spec.alias,
        "model_id": reply.model_id,
        "temperature": call.spec.temperature,
        "repeat": call.repeat,
        "key": call.key,
        "messages_sha": digest([dict(message) for message in call.messages]),
        "text": None if failure else reply.text,
        "stopped": reply.stopped,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "cost_usd": outcome.cost_usd,
        "attempts": outcome.attempts,
        "cached": outcome.cached,
        "error": {"kind": failure.kind, "message": failure.message} if failure else None,
    }


def logged_usd(path: Path) -> float:
    """What the calls in a log are known to have cost, in US dollars; 0 where there is no file.

    A line whose cost cannot be read counts nothing; `CallLog` has named it.
    """

    def usd(line: bytes) -> float:
        return float(json.loads(line)["cost_usd"] or 0.0)

    return sum(Log[float](path, "call", encode=lambda _: b"", decode=usd, damaged=lambda *_: None).rows())


def _row_of(line: bytes) -> _Row:
    """Raises one of DAMAGED: the line is no call."""
    row: _Row = json.loads(line)
    _known(row)
    return row


def _known(row: _Row) -> tuple[str, Reply] | None:
    """Key and reply of a call that need not be made again; None of a failure that another try can mend."""
    if row["error"] and row["error"]["kind"] in RETRIED_ON_RESUME:
        return None
    names = ("model_id", "prompt_tokens", "completion_tokens", "stopped")
    reply = Reply(row["text"] or "", **{name: row[name] for name in names})
    _reply_types.check(reply)
    return str(row["key"]), reply


_reply_types = FieldTypes(Reply)
_calls_log = functools.partial(
    Log[_Row], what="call", encode=lambda row: json.dumps(row).encode("ascii"), decode=_row_of
)
