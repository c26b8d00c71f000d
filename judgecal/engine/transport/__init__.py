"""How one call reaches a model. Nothing above this package knows which way a model takes.

A transport makes one attempt; retries belong to the call runner.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Protocol

from judgecal.engine.calls import Message, Reply, ReplySchema
from judgecal.models import ModelSpec

__all__ = ["Transport", "open_transport"]


class Transport(Protocol):
    """One way to a model; `send` ends within the model's timeout."""

    async def send(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> Reply:
        """Send messages once, by a ReplySchema or None, and return the Reply.

        Raises:
            CallFailed: there is no reply.
            AuthError: the provider refused the key; no other call can succeed.
        """
        ...

    async def close(self) -> None:
        """Close the connections, in the loop that `send` was awaited in."""
        ...


class EmbeddedTransport:
    """The model inside judgecal, called in this process; its calls run one after the other."""

    def __init__(self) -> None:
        from judgecal.models.embedded import VERSION, weighed_reply

        self._reply, self._model_id = weighed_reply, f"embedded-{VERSION}"

    async def close(self) -> None:
        """Do nothing: no connection is open."""

    async def send(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> Reply:
        """Return the embedded model's Reply to messages, with a ReplySchema (unused) or None; never fails."""
        start = time.perf_counter()
        text, chances = self._reply(messages)
        took = time.perf_counter() - start
        # Give the loop a turn, so that Ctrl-C and other models' calls get through.
        await asyncio.sleep(0)
        size = sum(len(message["content"]) for message in messages)
        return Reply(
            text,
            self._model_id,
            prompt_tokens=size // 4,
            completion_tokens=len(text) // 4,
            latency_s=took,
            tokens=[[0, "", chances]] if chances else [],
        )


def open_transport(spec: ModelSpec) -> Transport:
    """Return the Transport of a ModelSpec: its provider's, unless its alias says another."""
    # each where it is wanted: they load clients that take their time
    if spec.way == "embedded":
        return EmbeddedTransport()
    if spec.way == "http":
        from judgecal.engine.transport.http import HttpTransport

        return HttpTransport(spec)
    from judgecal.engine.transport.dspy_client import DspyTransport

    return DspyTransport(spec)
