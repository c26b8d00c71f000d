"""The model inside judgecal, called in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from judgecal.engine.calls import Message, Reply
from judgecal.models.embedded import VERSION, reply

__all__ = ["EmbeddedTransport", "embedded_reply"]

_MODEL_ID = f"embedded-{VERSION}"


class EmbeddedTransport:
    """The model inside judgecal; its time is CPU, so its calls run one after the other."""

    keeps_time = True

    async def close(self) -> None:
        """Nothing is held open."""

    async def send(self, messages: Sequence[Message], *, repeat: int) -> Reply:
        """One reply; it cannot fail."""
        start = time.perf_counter()
        text = reply(messages)
        took = time.perf_counter() - start
        # Give the loop a turn, so that Ctrl-C and other models' calls get through.
        await asyncio.sleep(0)
        return embedded_reply(messages, text, took)


def embedded_reply(messages: Sequence[Message], text: str, latency_s: float) -> Reply:
    """The model's text with what it counts as tokens, wherever it was made."""
    size = sum(len(message["content"]) for message in messages)
    return Reply(
        text, _MODEL_ID, prompt_tokens=size // 4, completion_tokens=len(text) // 4, latency_s=latency_s
    )
