"""How a system over HTTP is spoken to: its table in the configuration, and one request, tried and timed.

`{question}` is filled in once, as a value: what a question says is never read as a template, JSON or a part
of an address. Only 2xx is an answer; what is not one is a `CallFailed` whose message says what came instead,
without a secret.
"""

from __future__ import annotations

import asyncio
import bisect
import itertools
import json
import os
import random
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import aiohttp
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from yarl import URL

from judgecal._version import __version__
from judgecal.engine import CallFailed, Policy
from judgecal.engine.transport.http import proxy_for
from judgecal.engine.transport.provider_errors import asked_wait, excerpt
from judgecal.engine.transport.redaction import one_line
from judgecal.rag.evaluation.system import MOST_BYTES
from judgecal.records import ErrorKind

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PLACE = "{question}"
_SECRET_HEADER = re.compile(r"authorization|cookie|key|token|secret|password", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

_POLICY = Policy(attempts=4, first_wait_s=0.5, longest_wait_s=20.0)
_NEVER_BETTER = (501, 505)  # it does not know the method, or the protocol
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_SHOWN = 4000  # bytes of a body that a message may quote from
_STREAMS = ("text/event-stream", "application/x-ndjson", "application/jsonl", "application/stream+json")
_HEADERS = {
    "user-agent": f"judgecal/{__version__}",
    "accept": "application/json, text/event-stream, */*",
    # Compressed, a small reply could grow without end, and the first byte would not be the first word.
    "accept-encoding": "identity",
}
# A CRLF is one line end, and a run of empty lines one end of an event. A class alone is repeated: groups take
# memory.
_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))[\r\n]+")
_LINE_END = re.compile(rb"\r?\n[\r\n]*")
_DATA = re.compile(rb"(?<![^\r\n])data: ?([^\r\n]*)")
_MOST_EVENTS = 100_000
_TOGETHER_S = 0.001  # bytes that come within it count as come at once
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.InvalidURL, ValueError)
_NEVER_WILL = (aiohttp.ClientConnectorCertificateError, aiohttp.InvalidURL, ValueError)


# --- the table of a system


def _is_path(text: str) -> str:
    if not text or len(text) > 200 or not all(text.split(".")) or re.search(r"[\[\]$]", text):
        raise ValueError(
            f"{text[:80]!r} is no path: write keys, places from 0 and * for each, with dots between them, as "
            "in choices.0.message.content or contexts.*.text"
        )
    return text


def value_at(path: str, data: Any) -> Any:
    """What JSON holds at a dotted path: a key, a place in a list from 0, or `*` for each of a list.

    Raises:
        LookupError: it holds nothing there; the message says what is there instead. In the place of one of
            `*` that holds nothing stands None.
    """
    key, _, rest = path.partition(".")
    if isinstance(data, list) and key == "*":
        return [_value_or_none(rest, each) for each in data]
    if isinstance(data, dict):
        value, there = data.get(key), f"its keys are {', '.join(data)[:120] or 'none'}"
    elif isinstance(data, list):
        value = data[int(key)] if key.isdecimal() and int(key) < len(data) else None
        there = f"it is a list of {len(data)}"
    else:
        value, there = None, f"it is {data!r:.80}"
    if value is None:
        raise LookupError(f"there is no {key}: {there}")
    return value_at(rest, value) if rest else value


def _value_or_none(path: str, data: Any) -> Any:
    try:
        return value_at(path, data) if path else data
    except LookupError:
        return None


def _is_address(text: str) -> str:
    """The message does not quote the address, as it may hold a password."""
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("it is not an http or https address")
    if "{" in text.split("://", 1)[1].split("/", 1)[0]:
        raise ValueError("a host cannot be filled in: write it out")
    if url.user or url.password:
        raise ValueError("it holds a user or a password: send them in a header, with ${NAME} for the secret")
    return text


def _headers_hold_no_secret(headers: dict[str, str]) -> dict[str, str]:
    """The message does not quote the value."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or re.search(r"[\r\n\0]", value):
            raise ValueError(
                f"{name!r} is not a header: a name of letters and hyphens, and a value of one line"
            )
        if _SECRET_HEADER.search(name) and not _VARIABLE.search(value):
            advice = "write ${NAME} for a variable's value"
            raise ValueError(f"the value of {name} would stand in the file: {advice}")
    return headers


ReplyPath = Annotated[str, AfterValidator(_is_path)]
Address = Annotated[str, AfterValidator(_is_address)]
Headers = Annotated[dict[str, str], AfterValidator(_headers_hold_no_secret)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
_TABLE = ConfigDict(extra="forbid", strict=True)


class HttpConfig(BaseModel):
    """The table of a system over HTTP."""

    model_config = _TABLE
    url: Address  # `{question}` may stand behind its `?`
    method: Literal["GET", "POST"] = "POST"  # of the request
    headers: Headers = {}  # `${NAME}` is the value of an environment variable
    body: Any = None  # sent as JSON, `{question}` in its texts
    # Where the answer, a text, stands in a reply of JSON: keys, places from 0 and `*` for each, with dots.
    answer: ReplyPath | None = None
    # What was answered from: a text, or a list of texts or of `{text, document_id?, score?}`.
    contexts: ReplyPath | None = None
    context_ids: ReplyPath | None = None  # their documents, where `contexts` gives texts alone
    context_scores: ReplyPath | None = None  # their scores, likewise
    token: ReplyPath | None = None  # a piece of the answer in an event of a stream
    timeout: Seconds = 60.0  # for one question, from the request to the whole answer
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 4  # questions at once

    def _variables(self) -> tuple[str, ...]:
        """Environment variables that headers name."""
        return tuple(
            dict.fromkeys(name for text in self.headers.values() for name in _VARIABLE.findall(text))
        )

    def secrets(self) -> tuple[str, ...]:
        """Values of the variables that headers name, the longest first."""
        values = {os.environ.get(name, "").strip() for name in self._variables()}
        return tuple(sorted((value for value in values if len(value) >= 8), key=len, reverse=True))

    def problems(self) -> Iterator[str]:
        """What keeps it from being asked, one message each; no variable's value stands in one."""
        if self.answer is None and self.token is None:
            yield "neither answer nor token: say where in the reply the answer stands, as in answer.text"
        if self.contexts is None and (self.context_ids or self.context_scores):
            yield "context_ids and context_scores belong beside contexts: say where the texts stand"
        if not _asks([self.url, self.body]):
            yield "{question} stands neither in body nor in url, so that every request would be the same"
        if _asks(self.url.partition("?")[0]):
            where = "where it may lead elsewhere: put it behind a ?, or in body"
            yield f"url: {{question}} stands in the path, {where}"
        for name in self._variables():
            if not os.environ.get(name, "").strip():
                yield f"the environment variable {name} is not set, which headers ask for: set it"

    def request(self, question: str) -> HttpCall:
        """The request for a question: quoted in the address, as JSON in the body."""
        quoted = urllib.parse.quote(question, safe="", errors="replace")
        headers = {
            name: _VARIABLE.sub(lambda match: os.environ.get(match[1], "").strip(), value)
            for name, value in self.headers.items()
        }
        url = URL(self.url.replace(_PLACE, quoted))
        return HttpCall(self.method, url, headers, _filled(self.body, question))


def _asks(template: Any) -> bool:
    """Whether the question has a place in the texts of a template."""
    if isinstance(template, str):
        return _PLACE in template
    if isinstance(template, Mapping):
        template = list(template.values())
    return isinstance(template, list) and any(map(_asks, template))


def _filled(template: Any, question: str) -> Any:
    """A template's JSON with the question in its places; other braces stay as they are."""
    if isinstance(template, Mapping):
        return {key: _filled(part, question) for key, part in template.items()}
    if isinstance(template, list):
        return [_filled(part, question) for part in template]
    return template.replace(_PLACE, question) if isinstance(template, str) else template


# --- a request and its reply


@dataclass(frozen=True, slots=True)
class HttpCall:
    """What is sent; `body` is written as JSON, None is none."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: Any = None


@dataclass(frozen=True, slots=True)
class Received:
    """A reply of status 2xx."""

    kind: str  # its content type, in lower case and without parameters
    body: bytes
    arrivals: tuple[tuple[float, int], ...]  # seconds from the request, and the bytes that were there then
    latency_s: float  # from the request to the last byte

    @property
    def first_byte_s(self) -> float | None:
        """Seconds to the first byte of the body, None where it is empty."""
        return self.arrivals[0][0] if self.arrivals else None

    @property
    def is_stream(self) -> bool:
        """Whether it is a stream of events, or of lines of JSON."""
        return self.kind in _STREAMS

    def events(self) -> Iterator[tuple[float, bytes]]:
        """The data of each event or line, with the seconds until it was there; `[DONE]` ends them.

        Comments, names and ids of server-sent events are passed over.

        Raises:
            CallFailed: there are more than 100,000.
        """
        lines = self.kind != "text/event-stream"
        ends = (_LINE_END if lines else _EVENT_END).finditer(self.body)
        places = itertools.chain((end.span() for end in ends), [(len(self.body),) * 2])
        start = 0
        for number, (end, following) in enumerate(places):
            if number >= _MOST_EVENTS:
                raise failed("length", f"the answer streams more than {_MOST_EVENTS:,} events")
            block, start = self.body[start:end], following
            data = (block if lines else b"\n".join(_DATA.findall(block))).strip()
            if data == b"[DONE]":
                return
            if data:
                arrival = bisect.bisect_left(self.arrivals, end, key=lambda arrival: arrival[1])
                yield self.arrivals[arrival][0] if arrival < len(self.arrivals) else self.latency_s, data


def failed(kind: ErrorKind, message: str) -> CallFailed:
    """What asking again does not mend."""
    return CallFailed(kind, message, retry=False)


class HttpClient:
    """The connections of one system; used in one event loop.

    Args:
        secrets: what no message may hold.
        concurrency: requests at once; one that waits to be tried again is none.
    """

    def __init__(self, secrets: Sequence[str], concurrency: int) -> None:
        self._secrets = secrets
        self._places = asyncio.Semaphore(concurrency)
        self._random = random.Random(_POLICY.seed)
        # No cookies: one question must not change what the next is told. Not `trust_env`: it reads .netrc.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            headers=_HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def send(self, request: HttpCall, *, timeout_s: float) -> Received:
        """A reply of status 2xx; each attempt may take so long.

        Raises:
            CallFailed: there was none, after all attempts; the message says what came instead.
        """
        for attempts in itertools.count(1):
            try:
                async with self._places:
                    return await self._attempt(request, timeout_s)
            except CallFailed as failure:
                wait = _POLICY.wait(attempts, failure, self._random)
                if wait is None:
                    raise
            await asyncio.sleep(wait)
        raise AssertionError("attempts have no end")

    async def _attempt(self, request: HttpCall, timeout_s: float) -> Received:
        try:
            return await self._exchange(request, timeout_s)
        except TimeoutError:
            raise failed("timeout", f"no whole answer within {timeout_s:g} s") from None
        except aiohttp.ClientPayloadError as error:
            raise failed("transport", f"the body was cut off: {self._line(str(error))}") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reason = self._line(str(error) or type(error).__name__)
            if isinstance(error, _NEVER_SENT):
                message, retry = f"no connection: {reason}", not isinstance(error, _NEVER_WILL)
            else:
                # Anything but GET may have been answered, and paid for: only the next run asks again.
                message, retry = f"the connection was lost: {reason}", request.method == "GET"
            raise CallFailed("transport", message, retry=retry) from error

    async def _exchange(self, request: HttpCall, timeout_s: float) -> Received:
        data, headers = None, dict(request.headers)
        if request.body is not None:
            data = json.dumps(request.body).encode("ascii")  # half a surrogate pair goes as its escape
            headers = {"content-type": "application/json", **headers}
        start = asyncio.get_running_loop().time()
        async with self._session.request(
            request.method, request.url, data=data, headers=headers, proxy=proxy_for(request.url),
            timeout=aiohttp.ClientTimeout(total=timeout_s), allow_redirects=False,
        ) as answer:  # fmt: skip
            return await self._received(answer, start)

    async def _received(self, answer: aiohttp.ClientResponse, start: float) -> Received:
        clock = asyncio.get_running_loop().time
        status, good = answer.status, 200 <= answer.status < 300
        if status in _REDIRECTS:  # a header's secret and a question go to the address of the file alone
            to = self._line(answer.headers.get("location", "").partition("?")[0])[:200]
            raise failed(
                "server", f"HTTP {status}: a redirect to {to}, which is not followed: write that address"
            )
        body = bytearray()
        arrivals: list[tuple[float, int]] = []
        while (part := await answer.content.readany()) and (good or len(body) < _MOST_SHOWN):
            body += part
            when = clock() - start
            if arrivals and when - arrivals[-1][0] < _TOGETHER_S:
                when, _ = arrivals.pop()
            arrivals.append((when, len(body)))
            if good and len(body) > MOST_BYTES:
                raise failed("length", f"the answer is larger than {MOST_BYTES // 1_000_000} MB")
        if not good:
            message = f"HTTP {status}: {self.quoted(bytes(body)) or answer.reason or 'no reason given'}"
            raise CallFailed(
                "rate_limit" if status == 429 else "server",
                self._line(message),
                retry=status == 429 or (status >= 500 and status not in _NEVER_BETTER),
                retry_after=asked_wait(answer.headers),
            )
        encoding = answer.headers.get("content-encoding", "identity").strip().lower()
        if encoding != "identity":
            message = f"the answer is compressed by {encoding[:20]!r}, which was not asked for"
            raise failed("server", message)
        return Received(answer.content_type.lower(), bytes(body), tuple(arrivals), clock() - start)

    def quoted(self, body: bytes) -> str:
        """The beginning of a body, as a message may hold it."""
        return excerpt(body[:_MOST_SHOWN], self._secrets)[:300]

    def _line(self, text: str) -> str:
        return one_line(text, self._secrets)
