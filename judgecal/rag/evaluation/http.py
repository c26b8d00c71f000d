"""A system over HTTP: its table in the configuration, and each question asked once, tried and timed.

`{question}` is filled in once, as a value: what a question says is never read as a template, JSON or a part
of an address. What a reply of status 2xx holds at the paths of the table is the answer and its contexts.
Everything else is an error with a name that says what came instead, without a secret: another status, a page,
a path that is missing, a body that was cut off, a server that hangs.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import re
import urllib.parse
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import aiohttp
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from yarl import URL

from judgecal._version import __version__
from judgecal.engine.call_runner import Policy
from judgecal.engine.calls import CallFailed
from judgecal.engine.log import now
from judgecal.engine.transport.http import proxy_for
from judgecal.engine.transport.provider_errors import REDIRECTS, asked_wait, excerpt
from judgecal.engine.transport.redaction import one_line, redacted
from judgecal.rag.evaluation.system import MOST_BYTES, Ask, Asking, System, SystemAnswer, ask_all, contexts_of
from judgecal.rag.questions import Question
from judgecal.records import Context, ErrorKind, Failure

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PLACE = "{question}"
_SECRET_HEADER = re.compile(r"authorization|cookie|key|token|secret|password", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

_POLICY = Policy(attempts=4, first_wait_s=0.5, longest_wait_s=20.0)
_READ_S = 1.0  # to read an answer that came at the last moment
_DECIDES_NO_ANSWER = {"timeout", "concurrency"}
_NEVER_BETTER = (501, 505)  # it does not know the method, or the protocol
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
    """Return what a dotted path names in JSON data: a key, a place in a list from 0, or `*` for all.

    Raises:
        LookupError: it holds nothing there; the message says what is there instead. In the place of one of
            `*` that holds nothing stands None.
    """
    key, _, remainder = path.partition(".")
    if isinstance(data, list) and key == "*":
        return [_value_or_none(remainder, each) for each in data]
    if isinstance(data, dict):
        value, there = data.get(key), f"its keys are {', '.join(data)[:120] or 'none'}"
    elif isinstance(data, list):
        value = data[int(key)] if key.isdecimal() and int(key) < len(data) else None
        there = f"it is a list of {len(data)}"
    else:
        value, there = None, f"it is {data!r:.80}"
    if value is None:
        raise LookupError(f"there is no {key}: {there}")
    return value_at(remainder, value) if remainder else value


def _value_or_none(path: str, data: Any) -> Any:
    """What data holds at a path, None where it holds nothing."""
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
    token: ReplyPath | None = None  # a piece of the answer in an event of a stream
    timeout: Seconds = 60.0  # for one question, from the request to the whole answer
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 4  # questions at once

    def _variables(self) -> tuple[str, ...]:
        """Environment variables that headers name."""
        return tuple(
            dict.fromkeys(name for text in self.headers.values() for name in _VARIABLE.findall(text))
        )

    def secrets(self) -> tuple[str, ...]:
        """Return the values of the environment variables that the headers name, the longest first."""
        values = {os.environ.get(name, "").strip() for name in self._variables()}
        return tuple(sorted((value for value in values if len(value) >= 8), key=len, reverse=True))

    def problems(self) -> Iterator[str]:
        """Yield a message for each thing that keeps the service from being asked; no secret stands in one."""
        if self.answer is None and self.token is None:
            yield "neither answer nor token: say where in the reply the answer stands, as in answer.text"
        if self.contexts is None and self.context_ids:
            yield "context_ids belongs beside contexts: say where the texts stand"
        if not _asks([self.url, self.body]):
            yield "{question} stands neither in body nor in url, so that every request would be the same"
        if _asks(self.url.partition("?")[0]):
            where = "where it may lead elsewhere: put it behind a ?, or in body"
            yield f"url: {{question}} stands in the path, {where}"
        for name in self._variables():
            if not os.environ.get(name, "").strip():
                yield f"the environment variable {name} is not set, which headers ask for: set it"

    def request(self, question: str) -> dict[str, Any]:
        """Return the HTTP request for a question as a dict: quoted in the address, as JSON in the body."""
        quoted = urllib.parse.quote(question, safe="", errors="replace")
        headers = {
            name: _VARIABLE.sub(lambda match: os.environ.get(match[1], "").strip(), value)
            for name, value in self.headers.items()
        }
        url, data, body = URL(self.url.replace(_PLACE, quoted)), None, _filled(self.body, question)
        if body is not None:
            data = json.dumps(body).encode("ascii")  # half a surrogate pair goes as its escape
            headers = {"content-type": "application/json", **headers}
        return {"method": self.method, "url": url, "data": data, "headers": headers, "proxy": proxy_for(url)}


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
class Received:
    """A reply of status 2xx."""

    kind: str  # its content type, in lower case and without parameters
    body: bytes
    first_s: float | None  # from the request to the first byte of the body; None where it is empty
    latency_s: float  # from the request to the last byte

    def events(self) -> Iterator[bytes]:
        """Yield the bytes of each event or line of the received stream; `[DONE]` ends them.

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
                yield data


def failed(kind: ErrorKind, message: str) -> CallFailed:
    """What asking again does not mend."""
    return CallFailed(kind, message, retry=False)


@dataclass
class HttpSystem(System):
    """A service that answers questions over HTTP; which models it calls, and what they cost, is not known."""

    name: str
    table: HttpConfig

    @property
    def shows_contexts(self) -> bool:
        return self.table.contexts is not None

    def config(self) -> dict[str, Any]:
        """The table without what decides no answer."""
        return self.table.model_dump(mode="json", exclude=_DECIDES_NO_ANSWER)

    def check(self, questions: Sequence[Question]) -> list[str]:
        return [*self.table.problems()]

    def answer(self, questions: Sequence[Question], asking: Asking) -> list[SystemAnswer]:
        """Return the service's SystemAnswer to each of the Questions, asked under an Asking."""
        table = self.table

        @asynccontextmanager
        async def connected() -> AsyncIterator[Ask]:
            # No cookies: a question must not change what the next is told. Not `trust_env`: it reads .netrc.
            async with aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                headers=_HEADERS,
                timeout=aiohttp.ClientTimeout(total=table.timeout),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            ) as session:
                yield _Service(self.name, table, session).answer

        return ask_all(self, questions, asking, connected, concurrency=table.concurrency)


class _Service:
    """The service as one run asks it."""

    def __init__(self, name: str, table: HttpConfig, session: aiohttp.ClientSession) -> None:
        self.name, self.table, self._session = name, table, session
        self._secrets = table.secrets()  # what no message may hold
        self._random = random.Random(_POLICY.seed)

    async def answer(self, question: Question) -> SystemAnswer:
        """The answer to a question, or why there is none."""
        table, answer = self.table, SystemAnswer(self.name, question.group, None)
        try:
            received = await self._received(table.request(question.question))
            answer = replace(answer, latency_s=received.latency_s, first_s=received.first_s)
            # In a thread, for a stream of 10 MB takes seconds in which no other question would go on.
            async with asyncio.timeout(max(_READ_S, table.timeout - received.latency_s)):
                text, contexts = await asyncio.to_thread(self._read, received)
        except TimeoutError:
            message = f"the answer came, and could not be read within {table.timeout:g} s"
            return replace(answer, error=Failure("timeout", message), at=now())
        except CallFailed as failure:
            return replace(answer, error=Failure(failure.kind, self._plain(str(failure))), at=now())
        return replace(answer, answer=self._plain(text), contexts=contexts, at=now())

    def _plain(self, text: str) -> str:
        return redacted(text, self._secrets)

    def _line(self, text: str) -> str:
        return one_line(text, self._secrets)

    def _quoted(self, body: bytes) -> str:
        """The beginning of a body, as a message may hold it."""
        return excerpt(body[:_MOST_SHOWN], self._secrets)[:300]

    # --- one request

    async def _received(self, request: Mapping[str, Any]) -> Received:
        """A reply of status 2xx, of which each attempt may take the table's timeout.

        Raises:
            CallFailed: there was none, after all attempts; the message says what came instead.
        """
        for attempts in itertools.count(1):
            try:
                return await self._attempt(request)
            except CallFailed as failure:
                wait = _POLICY.wait(attempts, failure, self._random)
                if wait is None:
                    raise
            await asyncio.sleep(wait)
        raise AssertionError("attempts have no end")

    async def _attempt(self, request: Mapping[str, Any]) -> Received:
        start = asyncio.get_running_loop().time()
        try:
            async with self._session.request(**request, allow_redirects=False) as reply:
                return await self._whole(reply, start)
        except TimeoutError:
            raise failed("timeout", f"no whole answer within {self.table.timeout:g} s") from None
        except aiohttp.ClientPayloadError as error:
            raise failed("transport", f"the body was cut off: {self._line(str(error))}") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reason = self._line(str(error) or type(error).__name__)
            if isinstance(error, _NEVER_SENT):
                message, retry = f"no connection: {reason}", not isinstance(error, _NEVER_WILL)
            else:
                # Anything but GET may have been answered, and paid for: only the next run asks again.
                message, retry = f"the connection was lost: {reason}", request["method"] == "GET"
            raise CallFailed("transport", message, retry=retry) from error

    async def _whole(self, reply: aiohttp.ClientResponse, start: float) -> Received:
        clock = asyncio.get_running_loop().time
        status, good = reply.status, 200 <= reply.status < 300
        if status in REDIRECTS:  # a header's secret and a question go to the address of the file alone
            to = self._line(reply.headers.get("location", "").partition("?")[0])[:200]
            raise failed(
                "server", f"HTTP {status}: a redirect to {to}, which is not followed: write that address"
            )
        body, first_s = bytearray(), None
        while (part := await reply.content.readany()) and (good or len(body) < _MOST_SHOWN):
            body += part
            first_s = clock() - start if first_s is None else first_s
            if good and len(body) > MOST_BYTES:
                raise failed("length", f"the answer is larger than {MOST_BYTES // 1_000_000} MB")
        if not good:
            message = f"HTTP {status}: {self._quoted(bytes(body)) or reply.reason or 'no reason given'}"
            raise CallFailed(
                "rate_limit" if status == 429 else "server",
                self._line(message),
                retry=status == 429 or (status >= 500 and status not in _NEVER_BETTER),
                retry_after=asked_wait(reply.headers),
            )
        encoding = reply.headers.get("content-encoding", "identity").strip().lower()
        if encoding != "identity":
            message = f"the answer is compressed by {encoding[:20]!r}, which was not asked for"
            raise failed("server", message)
        return Received(reply.content_type.lower(), bytes(body), first_s, clock() - start)

    # --- what a reply holds

    def _read(self, received: Received) -> tuple[str, tuple[Context, ...] | None]:
        """The answer and its contexts."""
        if received.kind not in _STREAMS:
            path, parts = self.table.answer, [self._parsed(received.body, f"the answer ({received.kind})")]
            if path is None:
                raise _unreadable("the reply does not stream, and the table has no answer")
            text = _value_at(path, parts[0], "answer")
            if not isinstance(text, str):
                raise _unreadable(f"answer {path}: a text is needed, found {text!r:.80}")
            return text, self._contexts(parts)
        path = self.table.token
        if path is None:
            raise _unreadable(f"the reply streams ({received.kind}): say with token where a piece stands")
        parts = [self._parsed(data, "an event of the stream") for data in received.events()]
        pieces = [piece for part in parts if isinstance(piece := _value_or_none(path, part), str)]
        if not pieces:
            last = json.dumps(parts[-1])[:200] if parts else "no event"
            raise _unreadable(f"token {path}: no event of the stream holds it; the last: {last}")
        return "".join(pieces), self._contexts(parts)

    def _contexts(self, parts: Sequence[Any]) -> tuple[Context, ...] | None:
        """The contexts in the first part that has them; None where the table names no path for them."""
        table, path = self.table, self.table.contexts
        if path is None:
            return None
        part = next(
            (part for part in parts if _value_or_none(path, part) is not None), parts[0] if parts else None
        )
        passages = _value_at(path, part, "contexts")
        if table.context_ids is not None:
            ids = _value_at(table.context_ids, part, "context_ids")
            if not isinstance(passages, list) or not isinstance(ids, list) or len(passages) != len(ids):
                needed = "one for each of contexts is needed"
                raise _unreadable(f"context_ids {table.context_ids}: {needed}, found {ids!r:.80}")
            each = [text if isinstance(text, dict) else {"text": text} for text in passages]
            passages = [{**text, "document_id": name} for text, name in zip(each, ids, strict=True)]
        try:
            contexts = contexts_of(passages)
        except ValueError as error:
            raise _unreadable(f"contexts {path}, {error}") from error
        return tuple(
            Context(
                self._plain(context.text),
                context.document_id and self._plain(context.document_id),
                context.score,
            )
            for context in contexts
        )

    def _parsed(self, data: bytes, what: str) -> Any:
        """JSON, or a failure that says what stands there instead."""
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            page = "an HTML page" if data.lstrip()[:1] == b"<" else "no JSON"
            # As an error page under status 200 it passes, so a resumed run asks again.
            message = f"{what} is {page}: {self._quoted(data) or 'it is empty'}"
            raise failed("server", message) from None


def _unreadable(message: str) -> CallFailed:
    return failed("parse", message)


def _value_at(path: str, data: Any, what: str) -> Any:
    try:
        return value_at(path, data)
    except LookupError as error:
        raise _unreadable(f"{what} {path}: the reply does not hold it ({error})") from error
