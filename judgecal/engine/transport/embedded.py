"""The model inside judgecal, called in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from judgecal.engine.calls import Message, Reply
from judgecal.models.embedded import VERSION, reply

__all__ = ["EmbeddedTransport"]


class EmbeddedTransport:
    """The model inside judgecal; its time is CPU, so its calls run one after the other."""

    async def close(self) -> None:
        """Nothing is held open."""

    async def send(self, messages: Sequence[Message], *, repeat: int) -> Reply:
        """One reply; it cannot fail."""
        text = reply(messages)
        size = sum(len(message["content"]) for message in messages)
        # Give the loop a turn, so that Ctrl-C and other models' calls get through.
        await asyncio.sleep(0)
        return Reply(text, f"embedded-{VERSION}", prompt_tokens=size // 4, completion_tokens=len(text) // 4)
