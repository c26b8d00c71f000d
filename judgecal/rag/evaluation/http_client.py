"""One request to a system over HTTP: tried again where that can help, timed, and read no further than it may
be.

Only 2xx is an answer. What is not one is a `CallFailed` whose message says what came instead, without a
secret.
"""

from __future__ import annotations

import asyncio
import bisect
import itertools
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import aiohttp
from yarl import URL

from judgecal._version import __version__
from judgecal.engine import CallFailed, Policy
from judgecal.engine.transport.http import proxy_for
from judgecal.engine.transport.provider_errors import asked_wait, excerpt
from judgecal.engine.transport.redaction import one_line
from judgecal.rag.evaluation.system import MOST_BYTES

_POLICY = Policy(attempts=4, first_wait_s=0.5, longest_wait_s=20.0)
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 5
_MOST_SHOWN = 4000  # bytes of a body that a message may quote from
_STREAMS = ("text/event-stream", "application/x-ndjson", "application/jsonl", "application/stream+json")
_HEADERS = {"user-agent": f"judgecal/{__version__}", "accept": "application/json, text/event-stream, */*"}
# Compressed, a small reply could grow without end, and the first byte would not be the first word.
_PLAIN = {"accept-encoding": "identity"}
# A CRLF is one line end, and a run of empty lines one end of an event. A class alone is repeated: groups take
# memory.
_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))[\r\n]+")
_LINE_END = re.compile(rb"\r?\n[\r\n]*")
_DATA = re.compile(rb"(?<![^\r\n])data: ?([^\r\n]*)")
_MOST_EVENTS = 100_000
_TOGETHER_S = 0.001  # bytes that come within it count as come at once
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.InvalidURL, ValueError)


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent; `body` is written as JSON, None is none."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: Any = None


@dataclass(frozen=True, slots=True)
class Received:
    """A reply of status 2xx.

    Attributes:
        kind: its content type, in lower case and without parameters.
        body: all of it.
        arrivals: after which time, in seconds from the request, how many bytes were there; in their order.
        latency_s: from the request to the last byte.
    """

    kind: str
    body: bytes
    arrivals: tuple[tuple[float, int], ...]
    latency_s: float

    @property
    def first_byte_s(self) -> float | None:
        """Seconds to the first byte of the body, None where it is empty."""
        return self.arrivals[0][0] if self.arrivals else None

    @property
    def is_stream(self) -> bool:
        """Whether it is a stream of events, or of lines of JSON."""
        return self.kind in _STREAMS

    def arrived_s(self, end: int) -> float:
        """Seconds until so many bytes of the body were there."""
        place = bisect.bisect_left(self.arrivals, end, key=lambda one: one[1])
        return self.arrivals[place][0] if place < len(self.arrivals) else self.latency_s

    def events(self) -> Iterator[tuple[float, bytes]]:
        """The data of each event or line, with the seconds until it was there; `[DONE]` ends them.

        Raises:
            CallFailed: there are more than 100,000.
        """
        lines = self.kind != "text/event-stream"
        ends = (_LINE_END if lines else _EVENT_END).finditer(self.body)
        places = itertools.chain((one.span() for one in ends), [(len(self.body),) * 2])
        start = 0
        for number, (end, following) in enumerate(places):
            if number >= _MOST_EVENTS:
                raise CallFailed(
                    "length", f"the answer streams more than {_MOST_EVENTS:,} events", retry=False
                )
            block, start = self.body[start:end], following
            data = block.strip() if lines else _data(block)
            if data == b"[DONE]":
                return
            if data:
                yield self.arrived_s(end), data


def _data(block: bytes) -> bytes:
    """The data of a server-sent event; comments, names and ids are passed over."""
    return b"\n".join(_DATA.findall(block)).strip()


class HttpClient:
    """The connections of one system; used in one event loop.

    Args:
        secrets: what no message may hold.
        concurrency: requests at once; one that waits to be tried again is none.
        retry_dropped: whether a request whose connection was lost after it was sent is sent again. A GET
            always is; another may have been answered already, and be on somebody's bill.
        policy: of trying again.
    """

    def __init__(
        self,
        secrets: Sequence[str],
        concurrency: int,
        *,
        retry_dropped: bool = False,
        policy: Policy = _POLICY,
    ) -> None:
        self._secrets = secrets
        self._retry_dropped = retry_dropped
        self._policy = policy
        self._places = asyncio.Semaphore(concurrency)
        self._random = random.Random(policy.seed)
        # No cookies: one question must not change what the next one is told. Not `trust_env`: it reads
        # .netrc.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            headers={**_HEADERS, **_PLAIN},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def send(self, request: Request, *, timeout_s: float) -> Received:
        """A reply of status 2xx; each attempt may take so long.

        Raises:
            CallFailed: there was none, after all attempts; the message says what came instead.
        """
        attempts = 0
        while True:
            attempts += 1
            try:
                async with self._places:
                    return await self._attempt(request, timeout_s)
            except CallFailed as failed:
                wait = self._policy.wait(attempts, failed, self._random)
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    async def _attempt(self, request: Request, timeout_s: float) -> Received:
        try:
            return await self._exchange(request, timeout_s)
        except TimeoutError:
            raise CallFailed("timeout", f"no whole answer within {timeout_s:g} s", retry=False) from None
        except aiohttp.ClientPayloadError as error:
            raise CallFailed(
                "transport", f"the body was cut off: {self._line(str(error))}", retry=False
            ) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self._lost(request.method, error) from error

    def _lost(self, method: str, error: Exception) -> CallFailed:
        """A connection that was not made, which can be tried again, or that was lost when the question was on
        it."""
        said = self._line(str(error) or type(error).__name__)
        if isinstance(error, _NEVER_SENT):
            lasting = isinstance(
                error, aiohttp.ClientConnectorCertificateError | aiohttp.InvalidURL | ValueError
            )
            return CallFailed("transport", f"no connection: {said}", retry=not lasting)
        if method == "GET" or self._retry_dropped:
            return CallFailed("transport", f"the connection was lost: {said}", retry=True)
        message = (
            f"the connection was lost after the request was sent: {said}; it may have been worked on, so only the next "
            "run asks again (retry_dropped = true asks at once)"
        )
        return CallFailed("transport", message, retry=False)

    async def _exchange(self, request: Request, timeout_s: float) -> Received:
        """One request and those that it is redirected to on its own host."""
        url = request.url
        data, headers = None, dict(request.headers)
        if request.body is not None:
            data = json.dumps(request.body).encode("ascii")  # half a surrogate pair goes as its escape
            headers = {"content-type": "application/json", **headers}
        clock = asyncio.get_running_loop().time
        start = clock()
        for _ in range(_MOST_REDIRECTS + 1):
            left = aiohttp.ClientTimeout(total=max(0.001, timeout_s - (clock() - start)))
            async with self._session.request(
                request.method, url, data=data, headers=headers, timeout=left, proxy=proxy_for(url),
                allow_redirects=False,
            ) as answer:  # fmt: skip
                if answer.status in _REDIRECTS:
                    url = self._redirected(request.method, url, answer)
                    continue
                return await self._received(answer, start)
        raise CallFailed("server", f"more than {_MOST_REDIRECTS} redirects", retry=False)

    def _redirected(self, method: str, url: URL, answer: aiohttp.ClientResponse) -> URL:
        """Where a redirect leads; a header's secret and a question go to the host that the file names
        alone."""
        said = answer.headers.get("location", "")
        try:
            to = url.join(URL(said))
        except ValueError:
            to = URL()
        shown = self._line(str(to.with_query(None).with_user(None)) if to.host else said)[:200]
        upgraded = (url.scheme, url.port, to.scheme, to.port) == (
            "http",
            80,
            "https",
            443,
        )  # the ports of the names
        if to.host != url.host or not (upgraded or (to.scheme, to.port) == (url.scheme, url.port)):
            other = "port" if to.host == url.host else "host"
            message = f"HTTP {answer.status}: a redirect to another {other} ({shown}), which is not followed"
            raise CallFailed("server", message, retry=False)
        if answer.status in (301, 302, 303) and method != "GET":
            message = f"HTTP {answer.status}: a redirect to {shown} that would drop the question: write that address"
            raise CallFailed("server", message, retry=False)
        return to

    async def _received(self, answer: aiohttp.ClientResponse, start: float) -> Received:
        clock = asyncio.get_running_loop().time
        good = 200 <= answer.status < 300
        body = bytearray()
        arrivals: list[tuple[float, int]] = []
        while (part := await answer.content.readany()) and (good or len(body) < _MOST_SHOWN):
            body += part
            when = clock() - start
            if arrivals and when - arrivals[-1][0] < _TOGETHER_S:
                when, _ = arrivals.pop()
            arrivals.append((when, len(body)))
            if good and len(body) > MOST_BYTES:
                raise CallFailed(
                    "length", f"the answer is larger than {MOST_BYTES // 1_000_000} MB", retry=False
                )
        if not good:
            raise self._refused(answer, bytes(body))
        encoding = answer.headers.get("content-encoding", "identity").strip().lower()
        if encoding != "identity":
            message = f"the answer is compressed by {encoding[:20]!r}, which was not asked for"
            raise CallFailed("server", message, retry=False)
        return Received(answer.content_type.lower(), bytes(body), tuple(arrivals), clock() - start)

    def _refused(self, answer: aiohttp.ClientResponse, body: bytes) -> CallFailed:
        """The failure of a status that is no answer; 429 and 503 say that it may go well later."""
        status = answer.status
        message = f"HTTP {status}: {self.quoted(body) or answer.reason or 'no reason given'}"
        return CallFailed(
            "rate_limit" if status == 429 else "server",
            self._line(message),
            retry=status in (429, 503),
            retry_after=asked_wait(answer.headers),
        )

    def quoted(self, body: bytes) -> str:
        """The beginning of a body, as a message may hold it."""
        return excerpt(body[:_MOST_SHOWN], self._secrets)[:300]

    def _line(self, text: str) -> str:
        return one_line(text, self._secrets)
