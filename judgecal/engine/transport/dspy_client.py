"""DSPy's own client: its HTTP stack for most providers, litellm for the rest."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import json
import os
from collections.abc import Sequence
from typing import Any

from judgecal.engine.calls import CallFailed, Message, Reply, ReplySchema, unreadable
from judgecal.engine.transport.chances import TokenChances, tokens_in
from judgecal.engine.transport.provider_errors import REDIRECTS, error_of_dspy, redirected
from judgecal.engine.transport.redaction import secrets_of
from judgecal.errors import JudgecalError
from judgecal.models import ModelSpec, with_version

NO_KEY = "none"  # what a local server that wants no key is sent: clients refuse an empty one
_CLIENT_PATIENCE_S = 5.0  # the engine's own clock, over the whole call, runs out before the client's


def dspy_client(spec: ModelSpec, *, retries: int) -> Any:
    """Make a `dspy.LM` for a ModelSpec, with its key and endpoint, and a number of retries."""
    # Read by litellm, and by DSPy's price look-up, when they are first used: no fetch from the network.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import dspy

    key = spec.key()
    options: dict[str, Any] = {"timeout": spec.timeout + _CLIENT_PATIENCE_S}
    if key or spec.api_base:
        options["api_key"] = key or NO_KEY
    if base := spec.api_base:  # with the version of the API where DSPy's client does not append it itself
        if spec.provider == "gemini":
            base = with_version(base, "v1beta")
        elif spec.provider in ("anthropic", "ollama", "ollama_chat") and spec.transport != "litellm":
            base = with_version(base, "v1")
        options["api_base"] = base
    engine = "litellm" if spec.transport == "litellm" else "auto"
    return dspy.LM(spec.id, engine=engine, cache=False, num_retries=retries, **options)


class DspyTransport:
    """DSPy's client: its own HTTP stack for most providers, litellm for the rest.

    Both read a body whole, however large it is, and decompress it before anyone can look at it: what a
    hostile server can take of the memory is bounded over HTTP by `http` alone. A text of more than 1 MB is
    dropped here too.
    """

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        self._lm = dspy_client(spec, retries=0)
        self._chances = TokenChances(spec)

    async def close(self) -> None:
        """Do nothing: DSPy's client closes its own connections."""

    async def send(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> Reply:
        """Send messages by a ReplySchema or None, return the Reply; sent anew where chances are refused."""
        return await self._chances.reply_of(functools.partial(self._sent, messages, schema))

    async def _sent(self, messages: Sequence[Message], schema: ReplySchema | None, top: int) -> Reply:
        import dspy

        with dspy.context(disable_history=True):
            try:
                sent = self._lm.acall(self._request(messages, schema, top))
                response = await asyncio.wait_for(sent, timeout=self._spec.timeout)
            except TimeoutError:
                raise CallFailed("timeout", f"no reply within {self._spec.timeout:g} s", retry=True) from None
            except UnicodeError as error:
                raise CallFailed("refused", f"the text cannot be sent: {error}", retry=False) from error
            except (dspy.LMError, ValueError) as error:
                if getattr(error, "status", None) in REDIRECTS:
                    raise redirected(self._spec, None, secrets_of(self._spec)) from error
                raise error_of_dspy(self._spec, error) from error
            except (JudgecalError, MemoryError):
                raise
            except Exception as error:
                raise unreadable(error) from error
        text, usage = response.text, response.usage
        if text is None:  # where the schema names words, DSPy's client has read the object already
            objects = [part.value for part in response.message.parts if part.type == "data"]
            text = json.dumps(objects[0], ensure_ascii=False) if len(objects) == 1 else ""
            written = "".join(token.token for token in response.logprobs or ())
            with contextlib.suppress(ValueError):  # as the model wrote it, for its tokens are of that
                text = written if len(objects) == 1 and json.loads(written) == objects[0] else text
        return Reply(
            str(text),
            response.model or self._spec.id,
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            stopped=str(response.finish_reason),
            tokens=tokens_in(str(text), [dataclasses.asdict(logprob) for logprob in response.logprobs or ()]),
        )

    def _request(self, messages: Sequence[Message], schema: ReplySchema | None, top: int) -> Any:
        from dspy.lm15 import Config, Request
        from dspy.lm15 import Message as Turn

        system = [m["content"] for m in messages if m["role"] == "system"]
        makers = {"user": Turn.user, "assistant": Turn.assistant}
        turns = tuple(makers[m["role"]](m["content"]) for m in messages if m["role"] != "system")
        spec, form = self._spec, None
        if schema is not None:  # in DSPy's own form
            form = {"type": "json_schema", "name": "judgement", "schema": schema.spoken(spec), "strict": True}
        config = Config(
            max_tokens=spec.max_tokens,
            temperature=spec.sent_temperature,
            response_format=form,
            logprobs=top or None,
        )
        return Request(model=spec.id, messages=turns, system="\n\n".join(system) or None, config=config)
