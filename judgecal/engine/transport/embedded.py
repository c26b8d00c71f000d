"""The model inside judgecal, called in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from judgecal.engine.calls import Message, Reply, ReplySchema
from judgecal.models.embedded import VERSION, weighed_reply

_MODEL_ID = f"embedded-{VERSION}"


class EmbeddedTransport:
    """The model in this process; its calls run one after the other."""

    keeps_time = True

    async def close(self) -> None:
        """Do nothing: no connection is open."""

    async def send(
        self, messages: Sequence[Message], *, repeat: int, schema: ReplySchema | None = None
    ) -> Reply:
        """Return the embedded model's reply to messages; it cannot fail."""
        start = time.perf_counter()
        text, chances = weighed_reply(messages)
        took = time.perf_counter() - start
        # Give the loop a turn, so that Ctrl-C and other models' calls get through.
        await asyncio.sleep(0)
        size = sum(len(message["content"]) for message in messages)
        return Reply(
            text,
            _MODEL_ID,
            prompt_tokens=size // 4,
            completion_tokens=len(text) // 4,
            latency_s=took,
            tokens=[[0, "", chances]] if chances else [],
        )
