"""How one call reaches a model. Nothing above this package knows which way a model takes.

A transport makes one attempt; retries belong to the call runner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from judgecal.engine.calls import Message, Reply, ReplySchema
from judgecal.models import ModelSpec

__all__ = ["Transport", "open_transport"]


class Transport(Protocol):
    """One way to a model.

    Attributes:
        keeps_time: whether `send` itself ends within the model's timeout, so that nobody else need watch the
            clock.
    """

    keeps_time: bool

    async def send(self, messages: Sequence[Message], *, repeat: int, schema: ReplySchema | None) -> Reply:
        """Send messages once and return the reply, held to a schema where one is given.

        Raises:
            CallFailed: there is no reply.
            AuthError: the provider refused the key; no other call can succeed.
        """
        ...

    async def close(self) -> None:
        """Close the connections, in the loop that `send` was awaited in."""
        ...


def open_transport(spec: ModelSpec) -> Transport:
    """The transport of a model: its provider's, unless its alias says another."""
    # each where it is wanted: they load clients that take their time
    if spec.way == "embedded":
        from judgecal.engine.transport.embedded import EmbeddedTransport

        return EmbeddedTransport()
    if spec.way == "http":
        from judgecal.engine.transport.http import HttpTransport

        return HttpTransport(spec)
    from judgecal.engine.transport.dspy_client import DspyTransport

    return DspyTransport(spec)
