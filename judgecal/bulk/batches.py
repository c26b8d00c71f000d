"""Batches over HTTP: many requests handed in at once, answered within a day, for about half the price.

How a provider takes and gives them is the class `Batches` in a module beside its wire format. The body of
each request is the one that a live call sends, byte for byte, and each reply is read by the code that reads a
live one.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Literal, Protocol

import aiohttp
from yarl import URL

from judgecal.engine.calls import CallFailed, Reply, admitted, too_large, unreadable
from judgecal.engine.transport.http import HttpTransport, proxy_for
from judgecal.engine.transport.provider_errors import error_of, excerpt
from judgecal.engine.transport.redaction import one_line, redacted, redacted_reply, secrets_of, sent_secrets
from judgecal.errors import AuthError
from judgecal.models import ModelSpec

_SILENCE_S = 300.0  # without a byte; an upload of 200 MB takes its time
_READ_AT_ONCE = 1 << 20
_MOST_OF_A_STATE = 256 << 20  # bytes of one JSON answer: Gemini puts all results of a batch into it
_QUOTED = 2000
_ID = re.compile(r"(batches/|files/)?[A-Za-z0-9_.-]{1,200}")
_NO_SUCH_ADDRESS = (404, 405, 501)


@dataclass(frozen=True, slots=True)
class Sought:
    """A batch that may be at the provider."""

    name: str  # ours; a provider that takes names was told it
    n: int  # its requests
    at: float  # when it was about to be sent, in seconds since 1970


@dataclass(frozen=True, slots=True)
class BatchRow:
    """What came of one request."""

    custom_id: str  # ours; empty where the provider gave none back
    data: Any = None  # the body of the reply, or of an error
    status: int = 200  # as the HTTP status of a live call
    unanswered: Literal["", "expired", "cancelled"] = ""  # why the provider did not come to it


@dataclass(frozen=True, slots=True)
class BatchState:
    """Where a batch stands."""

    ended: bool  # no further request of it will be answered
    done: int = 0  # requests that were dealt with, as far as the provider says so
    expired: bool = False  # it ended because its time was over
    refused: BatchRow | None = None  # the provider's error where it took none of the requests


class BatchFormat(Protocol):
    """How one provider takes batches; made from the address of its live calls.

    Attributes:
        most_requests, most_bytes: what one batch may hold.
        in_order: whether results come in the order of the requests, so that one without an id is known all
            the same.
        names: whether it can be told a name, and lists batches with it; else what is found may be somebody
            else's.
        where: the page on which a user sees and cancels batches, in words.
    """

    most_requests: int
    most_bytes: int
    in_order: bool
    names: bool
    where: str

    def frame(self, name: str) -> tuple[bytes, bytes, bytes]:
        """What stands before, between and after the requests."""
        ...

    def request(self, custom_id: str, body: bytes) -> bytes:
        """One request, from the body of a live call."""
        ...

    async def submit(self, http: BatchHttp, name: str, spool: IO[bytes]) -> str:
        """Hand a batch in; its id at the provider."""
        ...

    async def find(self, http: BatchHttp, sought: Sought) -> list[str]:
        """The ids of batches that may be the one that is sought, the likeliest first."""
        ...

    async def state(self, http: BatchHttp, batch: str) -> BatchState:
        """Where a batch stands."""
        ...

    def results(self, http: BatchHttp, batch: str) -> AsyncIterator[bytes]:
        """What came of the requests, a line of JSON each, in any order."""
        ...

    def row(self, line: Mapping[str, Any]) -> BatchRow:
        """What such a line says."""
        ...


class BatchHttp:
    """The requests that a `BatchFormat` makes. Used in one event loop, and closed in it."""

    def __init__(self, spec: ModelSpec, headers: Mapping[str, str]) -> None:
        self._spec = spec
        self._secrets = secrets_of(spec)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=spec.timeout, sock_read=_SILENCE_S)
        self._session = aiohttp.ClientSession(
            timeout=timeout, headers=headers, cookie_jar=aiohttp.DummyCookieJar()
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def json(self, url: str, *, data: Any = None, payload: Any = None) -> dict[str, Any]:
        """The JSON object of an answer; with `data` (a form or bytes) or `payload` (JSON) it is a POST.

        Raises:
            CallFailed, AuthError: as a live call.
        """
        body = bytearray()
        async for part in self._answer(url, data=data, payload=payload):
            body += part
            if len(body) > _MOST_OF_A_STATE:
                raise too_large()
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise self._no_answer(
                url, f"is not JSON: {excerpt(bytes(body[:_QUOTED]), self._secrets)}"
            ) from error
        if not isinstance(answer, dict):
            raise self._no_answer(url, "is not a JSON object")
        return answer

    def _no_answer(self, url: str, why: str) -> CallFailed:
        return CallFailed(
            "server", one_line(f"the answer of {URL(url).path} {why}", self._secrets), retry=True
        )

    async def lines(self, url: str) -> AsyncIterator[bytes]:
        """The lines of a file."""
        rest = b""
        async for part in self._answer(url):
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                yield line
        yield rest

    async def _answer(self, url: str, *, data: Any = None, payload: Any = None) -> AsyncIterator[bytes]:
        post = data is not None or payload is not None
        request = self._session.request(
            "POST" if post else "GET",
            url,
            data=data,
            json=payload,
            proxy=proxy_for(URL(url)),
            allow_redirects=False,  # it would carry the key elsewhere
            headers={"content-type": "application/json"} if isinstance(data, _Upload) else None,
        )
        try:
            async with request as answer:
                if not 200 <= answer.status < 300:
                    raise self._error(answer.status, answer.headers, await answer.read(), opening=post)
                async for part in answer.content.iter_chunked(_READ_AT_ONCE):
                    yield part
        except TimeoutError:
            raise CallFailed("timeout", f"no byte within {_SILENCE_S:g} s", retry=True) from None
        except (aiohttp.ClientError, OSError) as error:
            sent = not isinstance(error, aiohttp.ClientConnectorError)
            text = one_line(str(error) or type(error).__name__, self._secrets)
            raise CallFailed("transport", text, retry=True, billed=sent) from error

    def _error(self, status: int, headers: Mapping[str, str], body: bytes, *, opening: bool) -> Exception:
        error = error_of(self._spec, status=status, headers=headers, body=body, secrets=self._secrets)
        if opening and status in _NO_SUCH_ADDRESS:
            return AuthError(f"{error}: its server may have no batch API: run the command without --batch")
        return error


class _Upload(aiohttp.payload.IOBasePayload):
    """The bytes of a file, whose length is known; the file stays open."""


class BatchTransport:
    """One model's batches."""

    def __init__(self, spec: ModelSpec) -> None:
        self._live = HttpTransport(spec)
        self._spec = spec
        self._secrets, self._sent = secrets_of(spec), sent_secrets(spec)
        module = importlib.import_module(f"judgecal.bulk.{spec.known_provider.wire}_batches")
        self.format: BatchFormat = module.Batches(self._live.address)
        self.encoded = self._live.encoded
        """The body of one request, from its messages and schema."""
        self._http: BatchHttp | None = None

    @property
    def http(self) -> BatchHttp:
        """The session, opened in the loop that first asks for it."""
        if self._http is None:
            self._http = BatchHttp(self._spec, self._live.headers)
        return self._http

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.close()
            self._http = None

    def reply(self, row: BatchRow) -> Reply:
        """The reply to one request, as a live call's.

        Raises:
            CallFailed: there is none.
            AuthError: the provider refused the key, the account or the model.
        """
        if row.unanswered == "expired":
            raise CallFailed(
                "timeout", "the batch's time was over before this request's turn", retry=True, billed=False
            )
        if row.unanswered:
            raise CallFailed("server", "the batch was cancelled before this request's turn", retry=True)
        if not 200 <= row.status < 300:
            raise self.refusal(row.data, status=row.status)
        try:
            if not isinstance(row.data, dict):
                raise CallFailed("server", "the batch holds no reply to this request", retry=True)
            return redacted_reply(admitted(self._live.reply_in(row.data)), self._secrets, sent=self._sent)
        except (CallFailed, AuthError, MemoryError):
            raise
        except Exception as error:
            raise CallFailed(
                "parse", redacted(str(unreadable(error)), self._secrets), retry=False, billed=True
            ) from error

    def refusal(self, data: Any, *, status: int) -> CallFailed | AuthError:
        """The error that a body of one says."""
        body = json.dumps(data).encode()
        return error_of(self._spec, status=status, headers={}, body=body, secrets=self._secrets)


class Spool:
    """Requests or results in a file that no name leads to, for they may be more than memory should hold."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self.size = 0

    def close(self) -> None:
        """Let go of it."""
        self.file.close()

    def add(self, *parts: bytes) -> int:
        """Append; the place where it begins."""
        place = self.size
        for part in parts:
            self.file.write(part)
            self.size += len(part)
        return place

    def line(self, place: int, size: int) -> bytes:
        """So many bytes from a place."""
        self.file.seek(place)
        return self.file.read(size)


def upload_of(file: IO[bytes]) -> aiohttp.payload.Payload:
    """A file as the body of a POST, from its start; sending closes what is given here, and not the file."""
    file.flush()
    again = os.fdopen(os.dup(file.fileno()), "rb")
    again.seek(0)
    return _Upload(again)


def id_in(data: Mapping[str, Any], name: str) -> str:
    """The id that an answer holds, fit for an address.

    Raises:
        CallFailed: it holds none.
    """
    value = data.get(name)
    if not (isinstance(value, str) and _ID.fullmatch(value)):
        raise CallFailed(
            "server", f"the provider's answer holds no {name} of a batch or file", retry=True, billed=True
        )
    return value
