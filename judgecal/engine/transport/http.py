"""Calls over HTTP by aiohttp: one session a run, keep-alive, a connection for each call in flight.

How a kind of server is spoken to is its wire format: the class `Wire` in a module of this package that the
provider's row in `models` names.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import json
import math
import urllib.request
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import aiohttp
from yarl import URL

from judgecal._version import __version__
from judgecal.engine.calls import CallFailed, Message, Reply, ReplySchema, too_large, unreadable
from judgecal.engine.transport.provider_errors import error_inside, error_of, excerpt
from judgecal.engine.transport.redaction import one_line, secrets_of
from judgecal.errors import InputError, JudgecalError
from judgecal.models import ModelSpec

_HEADERS = {
    "content-type": "application/json",
    "accept-encoding": "gzip, deflate",
    "user-agent": f"judgecal/{__version__}",
}
_DNS_KEPT_S = 300
_MOST_DIGITS = 400  # of a whole number
_PLACE = "<judgecal: the text of the last message>"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_WRITTEN_AT_ONCE = 1 << 20  # a larger body goes out in pieces, so that it does not hold up the loop


class WireFormat(Protocol):
    """How one kind of server is spoken to; made from the model and its key, if it wants one.

    Attributes:
        url: where every call of the model goes; it never holds a key.
        headers: sent with every call, the key among them.
        most_bytes: of an answer, once decompressed; a larger one is not read to its end.
    """

    most_bytes: int
    url: str
    headers: Mapping[str, str]

    def payload(self, messages: Sequence[Message], schema: ReplySchema | None) -> dict[str, Any]:
        """The body of a call, to be written as JSON; a reply is held to the schema where there is one."""
        ...

    def reply(self, data: Mapping[str, Any], messages: Sequence[Message]) -> Reply:
        """The reply to messages in the body of an answer; where it holds no text, the text is empty."""
        ...


class HttpTransport:
    """One model over HTTP."""

    keeps_time = True

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        self._wire = _wire_format(spec)
        self._url = _checked(self._wire.url, f"model {spec.alias}: api_base")
        self._proxy = proxy_for(self._url)
        self._secrets = secrets_of(spec)
        self._session: aiohttp.ClientSession | None = None
        self._shared: tuple[object, ...] = ()
        self._around: tuple[str, str] | None = None

    @property
    def address(self) -> str:
        """Where its calls go."""
        return str(self._url)

    @property
    def headers(self) -> Mapping[str, str]:
        """What another request to the same provider is sent with, the key among it."""
        return {"user-agent": _HEADERS["user-agent"], **self._wire.headers}

    async def close(self) -> None:
        """Close the connections."""
        if self._session:
            await self._session.close()
            self._session = None

    async def send(
        self, messages: Sequence[Message], *, repeat: int, schema: ReplySchema | None = None
    ) -> Reply:
        """One attempt at one call, with the errors of `Transport.send`."""
        body = self.encoded(messages, schema)
        try:
            async with asyncio.timeout(self._spec.timeout):
                status, headers, answer = await self._posted(body)
        except TimeoutError:
            raise CallFailed("timeout", f"no reply within {self._spec.timeout:g} s", retry=True) from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._lost(error) from error
        try:
            if not 200 <= status < 300:
                raise error_of(self._spec, status=status, headers=headers, body=answer, secrets=self._secrets)
            return self._read(answer, messages)
        except (CallFailed, JudgecalError, MemoryError):
            raise
        except Exception as error:
            raise unreadable(error) from error

    def encoded(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> bytes:
        """The body of a call. Half a surrogate pair has no UTF-8, and as an escape strict servers refuse it.

        Raises:
            CallFailed: the text cannot be sent.
        """
        shared = (schema, *messages[:-1], messages[-1]["role"])
        if shared != self._shared:
            self._shared = shared
            self._around = self._template(messages, schema)
        if self._around:
            text = _encode(messages[-1]["content"]).join(self._around)
        else:
            text = _encode(self._wire.payload(messages, schema))
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            half = f"U+{ord(text[error.start]):04X}"
            message = f"the text cannot be sent: it holds an unpaired surrogate ({half})"
            raise CallFailed("refused", message, retry=False) from error

    def _template(self, messages: Sequence[Message], schema: ReplySchema | None) -> tuple[str, str] | None:
        """The body before and after the last message's text, which is all that differs from item to item.

        None where the text does not stand in the body once and whole.
        """
        probe = [*messages[:-1], {**messages[-1], "content": _PLACE}]
        before, mark, after = _encode(self._wire.payload(probe, schema)).partition(_encode(_PLACE))
        return (before, after) if mark and _PLACE not in before + after else None

    async def _posted(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        session = self._session or self._opened()
        data = body if len(body) < _WRITTEN_AT_ONCE else io.BytesIO(body)
        # A redirect would carry the key elsewhere, and turn the call into a GET.
        async with session.post(self._url, data=data, proxy=self._proxy, allow_redirects=False) as answer:
            return answer.status, answer.headers, await _bounded(answer, self._wire.most_bytes)

    def _opened(self) -> aiohttp.ClientSession:
        # Not `trust_env`: it reads .netrc, which would stand against the key, and it costs two threads a
        # call.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=_DNS_KEPT_S),
            # `send` keeps the time; aiohttp's own clocks take a tenth of a call
            timeout=aiohttp.ClientTimeout(),
            headers={**_HEADERS, **self._wire.headers},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # `_bounded` stops in time
        )
        return self._session

    def _lost(self, error: Exception) -> CallFailed:
        # A certificate that is not trusted now will not be in a minute.
        lasting = isinstance(error, aiohttp.ClientConnectorCertificateError)
        text = one_line(str(error) or type(error).__name__, self._secrets)
        # Where no connection came about nothing was sent, so nothing was billed.
        billed = not isinstance(error, aiohttp.ClientConnectorError)
        return CallFailed("transport", text, retry=not lasting, billed=billed)

    def _read(self, answer: bytes, messages: Sequence[Message]) -> Reply:
        if len(answer) > self._wire.most_bytes:
            raise too_large()
        try:
            data = _decoded(answer)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise self._no_reply("is not JSON", answer) from error
        if not isinstance(data, dict):
            raise self._no_reply("is not a JSON object", answer)
        return self.reply_in(data, messages)

    def reply_in(self, data: Mapping[str, Any], messages: Sequence[Message] = ()) -> Reply:
        """The reply to messages that the JSON of an answer holds; of a chat it can be read without them.

        Raises:
            CallFailed, AuthError: it holds an error in the place of one.
        """
        if error := error_inside(self._spec, data=data, secrets=self._secrets):
            raise error
        return self._wire.reply(data, messages)

    def _no_reply(self, why: str, answer: bytes) -> CallFailed:
        body = excerpt(answer, self._secrets) or "it is empty"
        # A status of success: the reply was written, whatever became of it on the way.
        return CallFailed(
            "server", one_line(f"the server's answer {why}: {body}", ()), retry=True, billed=True
        )


async def _bounded(answer: aiohttp.ClientResponse, most: int) -> bytes:
    """The decompressed body of an answer, or a little more than the most that is read of one.

    Raises:
        CallFailed: the body is compressed in a way that was not asked for, or not as it says.
    """
    inflate = _inflater(answer.headers.get("content-encoding", "").strip().lower())
    parts, came, size = [], 0, 0
    while came <= most and size <= most and (part := await answer.content.readany()):
        came += len(part)
        parts.append(inflate(part, most + 1 - size) if inflate else part)
        size += len(parts[-1])
    return b"".join(parts)


def _inflater(encoding: str) -> Callable[[bytes, int], bytes] | None:
    """What decompresses a body part by part, each to so many bytes at most; None for a plain one."""
    if encoding in ("", "identity"):
        return None
    if encoding not in ("gzip", "x-gzip", "deflate"):
        message = f"the server's answer is compressed by {encoding[:20]!r}, which was not asked for"
        raise CallFailed("server", message, retry=True, billed=True)
    inflater: Any = None

    def inflate(part: bytes, most: int) -> bytes:
        nonlocal inflater
        if inflater is None:
            # Some servers send the bare stream for "deflate": it lacks the header, whose low bits are 8.
            bare = encoding == "deflate" and part[0] & 0xF != 8
            inflater = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS | 32)
        try:
            inflated: bytes = inflater.decompress(part, most)
            return inflated
        except zlib.error as error:
            message = f"the server's answer is not compressed by {encoding}, as it says"
            raise CallFailed("server", message, retry=True, billed=True) from error

    return inflate


def _decoded(answer: bytes) -> Any:
    """The JSON of an answer; a whole number of more digits than Python reads is taken as infinite."""
    try:
        return json.loads(answer)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError:
        return json.loads(
            answer, parse_int=lambda digits: int(digits) if len(digits) < _MOST_DIGITS else math.inf
        )


def _wire_format(spec: ModelSpec) -> WireFormat:
    """The format of the task or the provider; OpenAI's, which most servers speak, where none is known."""
    name = (spec.known_provider.wire or "openai") if spec.task == "chat" else spec.task
    module = importlib.import_module(f"judgecal.engine.transport.{name}")
    wire: WireFormat = module.Wire(spec, spec.key())
    return wire


def _checked(address: str, what: str) -> URL:
    """An address that can be called."""
    try:
        url = URL(address)
    except ValueError as error:
        raise InputError(f"{what} is not an http or https address") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise InputError(f"{what} is not an http or https address")
    return url


def proxy_for(url: URL) -> URL | None:
    """The proxy that the environment names for an address, None where it names none or exempts the host."""
    named = urllib.request.getproxies_environment()
    proxy = named.get(url.scheme) or named.get("all")
    if not proxy or urllib.request.proxy_bypass(f"{url.host}:{url.port}"):
        return None
    return _checked(proxy if "://" in proxy else f"http://{proxy}", f"the proxy for {url.scheme}")
