"""DSPy's own client: its HTTP stack for most providers, litellm for the rest."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
import functools
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from judgecal.engine.calls import CallFailed, Message, Reply, ReplySchema, unreadable
from judgecal.engine.transport.chances import TokenChances, tokens_in
from judgecal.engine.transport.provider_errors import (
    REDIRECTS,
    cannot_be_called,
    error_of,
    key_refused,
    no_such_model,
    redirected,
)
from judgecal.engine.transport.redaction import one_line, secrets_of
from judgecal.engine.transport.wires import scores_reply, vectors_reply
from judgecal.errors import JudgecalError
from judgecal.models import ModelSpec, with_version
from judgecal.records import ErrorKind

NO_KEY = "none"  # what a local server that wants no key is sent: clients refuse an empty one
_CLIENT_PATIENCE_S = 5.0  # the engine's own clock, over the whole call, runs out before the client's
# Advice on the client's own arguments, and its innards.
_NOT_FOR_OUR_USER = ("\n  To fix:", "\nTraceback (most recent call last)")
# What litellm says where nothing was sent and no other call can do better.
_HOPELESS = ("Missing credentials", "LLM Provider NOT provided")
_redirects: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar(
    "judgecal_redirects", default=None
)


def dspy_client(spec: ModelSpec, *, retries: int) -> Any:
    """A `dspy.LM` for a model, with its key and endpoint."""
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


@functools.cache
def _follow_no_redirect_of_ours() -> None:
    """Have httpx, which litellm's clients call by, follow no redirect of a call from here; once a process.

    litellm has no setting for it, and would send the texts to wherever the server says. Calls of others in
    this process, in whose context `_redirects` is not set, are left as they are.
    """
    import httpx

    send, send_async = httpx.Client.send, httpx.AsyncClient.send

    def stay(client: httpx.Client, request: httpx.Request, **options: Any) -> Any:
        if _redirects.get() is None:
            return send(client, request, **options)
        return _noted(send(client, request, **{**options, "follow_redirects": False}))

    async def stay_async(client: httpx.AsyncClient, request: httpx.Request, **options: Any) -> Any:
        if _redirects.get() is None:
            return await send_async(client, request, **options)
        return _noted(await send_async(client, request, **{**options, "follow_redirects": False}))

    setattr(httpx.Client, "send", stay)  # noqa: B010 - to a type checker a method is no variable
    setattr(httpx.AsyncClient, "send", stay_async)  # noqa: B010


@contextlib.contextmanager
def following_no_redirect() -> Iterator[list[str]]:
    """Within it, calls by httpx in this task follow no redirect; the list is where they should have led."""
    _follow_no_redirect_of_ours()
    elsewhere: list[str] = []
    token = _redirects.set(elsewhere)
    try:
        yield elsewhere
    finally:
        _redirects.reset(token)


def _noted(response: Any) -> Any:
    """A response that leads nowhere; where it should have led is noted."""
    if response.has_redirect_location:
        if (noted := _redirects.get()) is not None:
            noted.append(response.headers["location"])
        response.next_request = None
    return response


class DspyTransport:
    """DSPy's client: its own HTTP stack for most providers, litellm for the rest.

    Both read a body whole, however large it is, and decompress it before anyone can look at it: what a
    hostile server can take of the memory is bounded over HTTP by `http` alone. A text of more than 1 MB is
    dropped here too.
    """

    keeps_time = False

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        self._lm = dspy_client(spec, retries=0)
        self._chances = TokenChances(spec)

    async def close(self) -> None:
        """DSPy's client closes its own connections."""

    async def send(
        self, messages: Sequence[Message], *, repeat: int, schema: ReplySchema | None = None
    ) -> Reply:
        """One attempt at one call, another where chances are refused; the errors of `Transport.send`."""
        return await self._chances.told(functools.partial(self._sent, messages, schema))

    async def _sent(self, messages: Sequence[Message], schema: ReplySchema | None, top: int) -> Reply:
        import dspy

        with following_no_redirect() as elsewhere, dspy.context(disable_history=True):
            try:
                sent = self._lm.acall(self._request(messages, schema, top))
                response = await asyncio.wait_for(sent, timeout=self._spec.timeout)
            except TimeoutError:
                raise CallFailed("timeout", f"no reply within {self._spec.timeout:g} s", retry=True) from None
            except UnicodeError as error:
                raise CallFailed("refused", f"the text cannot be sent: {error}", retry=False) from error
            except (dspy.LMError, ValueError) as error:
                if elsewhere or getattr(error, "status", None) in REDIRECTS:
                    there = next(iter(elsewhere), None)
                    raise redirected(self._spec, there, secrets_of(self._spec)) from error
                _raise_known(error, self._spec)
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
            tokens=tokens_in(str(text), [dataclasses.asdict(one) for one in response.logprobs or ()]),
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


def _raise_known(error: Exception, spec: ModelSpec) -> NoReturn:
    """Turn DSPy's error classes into ours; what no retry can help is said so."""
    from dspy.utils import exceptions as known

    text = str(error)
    for tail in _NOT_FOR_OUR_USER:
        text = text.partition(tail)[0]
    text = one_line(text, secrets_of(spec))
    if isinstance(error, (known.LMAuthError, known.LMBillingError)):
        raise key_refused(spec, text) from error
    if isinstance(error, known.LMConfigurationError) or any(phrase in text for phrase in _HOPELESS):
        raise cannot_be_called(spec, text) from error
    if isinstance(error, known.LMUnsupportedModelError):
        raise no_such_model(spec, text) from error
    kinds: tuple[tuple[Any, ErrorKind, bool], ...] = (
        (known.ContextWindowExceededError, "context_length", False),
        (known.LMRateLimitError, "rate_limit", True),
        (known.LMTimeoutError, "timeout", True),
        (known.LMServerError, "server", True),
        ((known.LMTransportError, known.LMLockTimeoutError), "transport", True),
        ((known.LMInvalidRequestError, known.LMUnsupportedFeatureError), "refused", False),
        ((known.LMProviderError, known.LMUnexpectedError), "server", True),
    )
    for classes, kind, retry in kinds:
        if isinstance(error, classes):
            wait = getattr(error, "retry_after", None) if kind in ("rate_limit", "server") else None
            raise CallFailed(kind, text, retry=retry, retry_after=wait) from error
    raise CallFailed("refused", text, retry=False) from error


class LitellmTransport:
    """One model through litellm, which takes seconds to import and reads an answer whole."""

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
                    message = f"no reply within {self._spec.timeout:g} s"
                    raise CallFailed("timeout", message, retry=True) from error
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
