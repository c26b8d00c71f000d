"""litellm's client for embeddings and reranking, where the provider does not speak OpenAI's way."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

from judgecal.engine.calls import CallFailed, Message, Reply
from judgecal.engine.replies import unreadable
from judgecal.engine.reply_schema import ReplySchema
from judgecal.engine.transport.dspy_client import NO_KEY, following_no_redirect
from judgecal.engine.transport.embeddings import vectors_reply
from judgecal.engine.transport.provider_errors import error_of, redirected
from judgecal.engine.transport.redaction import secrets_of
from judgecal.engine.transport.rerank import scores_reply
from judgecal.errors import JudgecalError
from judgecal.models import ModelSpec


class LitellmTransport:
    """One model through litellm, whose import takes seconds; it reads an answer whole, however large it
    is."""

    keeps_time = False

    def __init__(self, spec: ModelSpec) -> None:
        # Read when litellm is imported: no fetch from the network.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm  # here, as seconds of importing are no part of a call

        litellm.suppress_debug_info = True  # it would print advice where the result goes
        self._litellm: Any = litellm
        self._spec = spec
        self._options: dict[str, Any] = {"model": spec.id, "timeout": spec.timeout, "max_retries": 0}
        key = spec.key()
        self._options |= {"api_base": spec.api_base} if spec.api_base else {}
        self._options |= {"api_key": key or NO_KEY} if key or spec.api_base else {}

    async def close(self) -> None:
        """litellm closes its own connections."""

    async def send(
        self, messages: Sequence[Message], *, repeat: int, schema: ReplySchema | None = None
    ) -> Reply:
        """One attempt at one call, with the errors of `Transport.send`."""
        with following_no_redirect() as elsewhere:
            try:
                return await asyncio.wait_for(self._asked(messages), timeout=self._spec.timeout)
            except TimeoutError:
                raise CallFailed("timeout", f"no reply within {self._spec.timeout:g} s", retry=True) from None
            except (JudgecalError, CallFailed, MemoryError):
                raise
            except Exception as error:
                if elsewhere:
                    raise redirected(self._spec, elsewhere[0], secrets_of(self._spec)) from error
                if isinstance(error, self._litellm.exceptions.Timeout):
                    raise CallFailed(
                        "timeout", f"no reply within {self._spec.timeout:g} s", retry=True
                    ) from error
                status = getattr(error, "status_code", None)
                if not isinstance(status, int):
                    raise unreadable(error) from error
                body, secrets = str(error).encode("utf-8", "replace"), secrets_of(self._spec)
                raise error_of(self._spec, status=status, headers={}, body=body, secrets=secrets) from error

    async def _asked(self, messages: Sequence[Message]) -> Reply:
        first, *rest = texts = [message["content"] for message in messages]
        if self._spec.task == "embeddings":
            vectors = await self._litellm.aembedding(input=texts, **self._options)
            return vectors_reply(vectors.model_dump(), len(texts), self._spec)
        scores: Any = await self._litellm.arerank(
            query=first, documents=rest, top_n=len(rest), **self._options
        )
        return scores_reply(scores.model_dump(), len(rest), self._spec)
