"""Calls over HTTP by aiohttp: keep-alive, a connection for each call in flight.

How a kind of server is spoken to is its wire format, which the provider's row in `models` names. No redirect
is followed: a key, and the texts, stay with the server that the user named.
"""

from __future__ import annotations

import json
import re
import ssl
import urllib.request
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import aiohttp
import orjson
from yarl import URL

from judgecal._version import __version__
from judgecal.engine.calls import CallFailed, Message, Reply, ReplySchema, too_large, unreadable
from judgecal.engine.transport.chances import MOST_BYTES, TokenChances
from judgecal.engine.transport.provider_errors import error_inside, error_of, excerpt
from judgecal.engine.transport.redaction import one_line, secrets_of
from judgecal.engine.transport.wires import WIRES
from judgecal.errors import InputError, JudgecalError
from judgecal.models import ModelSpec

_HEADERS = {
    "accept": "*/*",
    "content-type": "application/json",
    "accept-encoding": "gzip, deflate",
    "user-agent": f"judgecal/{__version__}",
}
_UNREADABLE = re.compile(r"Can not decode content-encoding: ([\w ()]+)")


class HttpTransport:
    """One model over HTTP."""

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        # OpenAI's format, which most servers speak, where none is known
        name = (spec.known_provider.wire or "openai") if spec.task == "chat" else spec.task
        self._wire = WIRES[name](spec, spec.key())
        self._chances = TokenChances(spec)
        if spec.weighs:
            self._wire.most_bytes = MOST_BYTES
        self._url = _checked(self._wire.url, f"model {spec.alias}: api_base")
        self._proxy = proxy_for(self._url)
        self._secrets = secrets_of(spec)
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session:
            await self._session.close()
            self._session = None

    async def send(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> Reply:
        """Send messages by a ReplySchema or None, return the Reply; sent anew where chances are refused."""
        return await self._chances.reply_of(partial(self._sent, messages, schema))

    async def _sent(self, messages: Sequence[Message], schema: ReplySchema | None, top: int) -> Reply:
        body = self._encoded(messages, schema, top)
        try:
            status, headers, answer = await self._post(body)
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

    def _encoded(self, messages: Sequence[Message], schema: ReplySchema | None, top: int) -> bytes:
        """The JSON of a call's body; half a surrogate pair is refused by a CallFailed."""
        self._wire.chances = top
        payload = self._wire.payload(messages, schema)
        try:
            return orjson.dumps(payload)
        except TypeError as error:
            half = re.search("[\ud800-\udfff]", json.dumps(payload, ensure_ascii=False))
            if half is None:
                raise
            message = f"the text cannot be sent: it holds an unpaired surrogate (U+{ord(half[0]):04X})"
            raise CallFailed("refused", message, retry=False) from error

    def _opened(self) -> aiohttp.ClientSession:
        # The scheduler says how many calls are in flight. No cookie: a call must not change the next one. Not
        # `trust_env`, whose proxies `proxy_for` names: it would send what .netrc holds as well.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls()),
            headers={**_HEADERS, **self._wire.headers},
            timeout=aiohttp.ClientTimeout(total=self._spec.timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self._session

    def _tls(self) -> ssl.SSLContext | bool:
        """The certificates that SSL_CERT_FILE names now, not when aiohttp was imported."""
        schemes = (self._url.scheme, self._proxy.scheme if self._proxy else "")
        return ssl.create_default_context() if "https" in schemes else True

    async def _post(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Send a body once. Return status, headers and decompressed body, of a large one the beginning."""
        session = self._session or self._opened()
        async with session.post(
            self._url, data=aiohttp.BytesPayload(body), proxy=self._proxy, allow_redirects=False
        ) as response:
            parts, size = [], 0
            while part := await response.content.readany():
                parts.append(part)
                size += len(part)
                if size > self._wire.most_bytes:
                    response.close()
                    break
            return response.status, response.headers, b"".join(parts)

    def _lost(self, error: Exception) -> CallFailed:
        if encoding := _UNREADABLE.search(str(error)):
            text = one_line(f"the server's answer cannot be decompressed: {encoding[1]}", self._secrets)
            return CallFailed("server", text, retry=True, billed=True)
        # A certificate that is not trusted now will not be in a minute.
        lasting = isinstance(error, aiohttp.ClientConnectorCertificateError)
        # Where no connection came about nothing was sent, so nothing was billed.
        unsent = isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError))
        text = one_line(_connection_problem(error), self._secrets)
        return CallFailed("transport", text, retry=not lasting, billed=not unsent)

    def _read(self, answer: bytes, messages: Sequence[Message]) -> Reply:
        if len(answer) > self._wire.most_bytes:
            raise too_large()
        try:
            data = _decoded(answer)
        except ValueError as error:  # no JSON, no text, or a number of more digits than Python reads
            raise self._no_reply("is not JSON", answer) from error
        if not isinstance(data, dict):
            raise self._no_reply("is not a JSON object", answer)
        if failure := error_inside(self._spec, data=data, secrets=self._secrets):
            raise failure
        return self._wire.reply(data, messages)

    def _no_reply(self, why: str, answer: bytes) -> CallFailed:
        body = excerpt(answer, self._secrets) or "it is empty"
        # A status of success: the reply was written, whatever became of it on the way.
        return CallFailed(
            "server", one_line(f"the server's answer {why}: {body}", ()), retry=True, billed=True
        )


def _decoded(answer: bytes) -> Any:
    """The JSON of an answer."""
    try:
        return orjson.loads(answer)
    except orjson.JSONDecodeError:  # it is strict: half a surrogate, NaN, another encoding
        return json.loads(answer)


def _connection_problem(error: Exception) -> str:
    """Why a call was lost on its way."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return str(error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {error.os_error}"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"cannot connect: the proxy answers with HTTP {error.status}"
    if isinstance(error, aiohttp.ClientResponseError):
        return "the server's answer is not HTTP/1.1"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the connection was lost in the middle of the answer"
    return str(error) or type(error).__name__


def _checked(address: str, what: str) -> URL:
    try:
        url = URL(address)
    except ValueError as error:
        raise InputError(f"{what} is not an http or https address") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise InputError(f"{what} is not an http or https address")
    return url


def proxy_for(url: URL) -> URL | None:
    """Return the proxy (URL) that the environment names for a URL; None without any or for an exempt host."""
    named = urllib.request.getproxies_environment()
    proxy = named.get(url.scheme) or named.get("all")
    if not proxy or urllib.request.proxy_bypass(f"{url.host}:{url.port}"):
        return None
    return _checked(proxy if "://" in proxy else f"http://{proxy}", f"the proxy for {url.scheme}")
