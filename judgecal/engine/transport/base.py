"""What every transport promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from judgecal.engine.calls import Message, Reply

__all__ = ["Transport"]


class Transport(Protocol):
    """One way to a model.

    Attributes:
        keeps_time: whether `send` itself ends within the model's timeout, so that nobody else need watch the clock.
    """

    keeps_time: bool

    async def send(self, messages: Sequence[Message], *, repeat: int) -> Reply:
        """One attempt at one call.

        Raises:
            CallFailed: there is no reply.
            AuthError: the provider refused the key; no other call can succeed.
        """
        ...

    async def close(self) -> None:
        """Let go of connections; called in the loop that `send` was awaited in."""
        ...
