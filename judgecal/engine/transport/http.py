"""Calls over HTTP by aiohttp: one session a run, keep-alive, as many connections as there are calls in flight."""

from __future__ import annotations

import io
import json
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import replace

import aiohttp
from yarl import URL

from judgecal import __version__
from judgecal.engine.calls import CallFailed, Message, Reply
from judgecal.engine.transport.faults import excerpt, fault, fault_inside
from judgecal.engine.transport.hiding import hidden, one_line, secrets_of
from judgecal.engine.transport.wire import Wire
from judgecal.errors import InputError
from judgecal.models import ModelSpec

__all__ = ["HttpTransport"]

_HEADERS = {"content-type": "application/json", "user-agent": f"judgecal/{__version__}"}
_DNS_KEPT_S = 300
_PLACE = "<judgecal: the text of the last message>"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_WRITTEN_AT_ONCE = 1 << 20  # a larger body goes out in pieces, so that it does not hold up the loop


class HttpTransport:
    """One model over HTTP.

    Args:
        spec: the model.
        wire: how its server is spoken to.

    Raises:
        InputError: the model's address, or the proxy that the environment names, is no HTTP address.
    """

    keeps_time = True

    def __init__(self, spec: ModelSpec, wire: Wire) -> None:
        self._spec = spec
        self._wire = wire
        self._url = _checked(wire.url, f"model {spec.alias}: api_base")
        self._proxy = _proxy(self._url)
        self._secrets = secrets_of(spec)
        if self._proxy and self._proxy.password:
            self._secrets += (self._proxy.password, self._proxy.raw_password or self._proxy.password)
        self._session: aiohttp.ClientSession | None = None
        self._shared: tuple[object, ...] = ()
        self._around: tuple[str, str] | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session:
            await self._session.close()
            self._session = None

    async def send(self, messages: Sequence[Message], *, repeat: int) -> Reply:
        """One attempt at one call.

        Raises:
            CallFailed: there is no reply.
            AuthError: the provider refused the key, or no call can be made at all.
        """
        body = self._encoded(messages)
        try:
            status, headers, answer = await self._posted(body)
        except TimeoutError:
            raise CallFailed("timeout", f"no reply within {self._spec.timeout:g} s", retry=True) from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._lost(error) from error
        if not 200 <= status < 300:
            raise fault(self._spec, status=status, headers=headers, body=answer, secrets=self._secrets)
        return self._read(answer)

    def _encoded(self, messages: Sequence[Message]) -> bytes:
        """The body of a call. Half a surrogate pair has no UTF-8, and as an escape strict servers refuse it."""
        if (*messages[:-1], messages[-1]["role"]) != self._shared:
            self._shared = (*messages[:-1], messages[-1]["role"])
            self._around = self._template(messages)
        if self._around:
            text = _encode(messages[-1]["content"]).join(self._around)
        else:
            text = _encode(self._wire.payload(messages))
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            half = f"U+{ord(text[error.start]):04X}"
            message = f"the text cannot be sent: it holds an unpaired surrogate ({half})"
            raise CallFailed("refused", message, retry=False) from error

    def _template(self, messages: Sequence[Message]) -> tuple[str, str] | None:
        """The body before and after the last message's text, which is all that differs from item to item.

        None where the text does not stand in the body once and whole.
        """
        probe = [*messages[:-1], {**messages[-1], "content": _PLACE}]
        before, found, after = _encode(self._wire.payload(probe)).partition(_encode(_PLACE))
        return (before, after) if found and _PLACE not in before + after else None

    async def _posted(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        session = self._session or self._opened()
        data = body if len(body) < _WRITTEN_AT_ONCE else io.BytesIO(body)
        # A redirect would carry the key elsewhere, and turn the call into a GET.
        async with session.post(self._url, data=data, proxy=self._proxy, allow_redirects=False) as answer:
            return answer.status, answer.headers, await answer.read()

    def _opened(self) -> aiohttp.ClientSession:
        # Not `trust_env`: it reads .netrc, which would stand against the key, and it costs two threads a call.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=_DNS_KEPT_S),
            timeout=aiohttp.ClientTimeout(total=self._spec.timeout),
            headers={**_HEADERS, **self._wire.headers},
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self._session

    def _lost(self, error: Exception) -> CallFailed:
        # A certificate that is not trusted now will not be in a minute.
        lasting = isinstance(error, aiohttp.ClientConnectorCertificateError)
        text = one_line(str(error) or type(error).__name__, self._secrets)
        # Where no connection came about nothing was sent, so nothing was billed.
        billed = not isinstance(error, aiohttp.ClientConnectorError)
        return CallFailed("transport", text, retry=not lasting, billed=billed)

    def _read(self, answer: bytes) -> Reply:
        try:
            data = json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise self._no_reply("is not JSON", answer) from error
        if not isinstance(data, dict):
            raise self._no_reply("is not a JSON object", answer)
        if found := fault_inside(self._spec, data=data, secrets=self._secrets):
            raise found
        reply = self._wire.reply(data)
        if any(secret in text for secret in self._secrets for text in (reply.text, reply.model_id)):
            model_id = hidden(reply.model_id, self._secrets)
            return replace(reply, text=hidden(reply.text, self._secrets), model_id=model_id)
        return reply

    def _no_reply(self, why: str, answer: bytes) -> CallFailed:
        said = excerpt(answer, self._secrets) or "it is empty"
        # A status of success: the reply was written, whatever became of it on the way.
        return CallFailed(
            "server", one_line(f"the server's answer {why}: {said}", ()), retry=True, billed=True
        )


def _checked(address: str, what: str) -> URL:
    """An address that can be called.

    Raises:
        InputError: it is none; the message does not quote it, as it may hold a password.
    """
    try:
        url = URL(address)
    except ValueError as error:
        raise InputError(f"{what} is not an http or https address") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise InputError(f"{what} is not an http or https address")
    return url


def _proxy(url: URL) -> URL | None:
    """The proxy that the environment names for an address, None where it names none or exempts the host."""
    named = urllib.request.getproxies_environment()
    proxy = named.get(url.scheme) or named.get("all")
    if not proxy or urllib.request.proxy_bypass(f"{url.host}:{url.port}"):
        return None
    return _checked(proxy if "://" in proxy else f"http://{proxy}", f"the proxy for {url.scheme}")
