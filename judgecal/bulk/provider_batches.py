"""How providers take batches: many requests at once, answered within a day, for about half the price.

The body of each request is the one that a live call sends, byte for byte, and each reply is read by the code
that reads a live one.
"""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, ClassVar, Literal

import aiohttp
from yarl import URL

from judgecal.bulk.batch_log import Batch
from judgecal.engine.calls import CallFailed, count, too_large
from judgecal.engine.transport.http import proxy_for
from judgecal.engine.transport.provider_errors import at, error_of, excerpt
from judgecal.engine.transport.redaction import one_line, secrets_of
from judgecal.errors import AuthError
from judgecal.models import ModelSpec

_SILENCE_S = 300.0  # without a byte; an upload of 200 MB takes its time
_READ_AT_ONCE = 1 << 20
_MOST_OF_A_STATE = 256 << 20  # bytes of one JSON answer: Gemini puts all results of a batch into it
_QUOTED = 2000
_ID = re.compile(r"(batches/|files/)?[A-Za-z0-9_.-]{1,200}")
_NO_SUCH_ADDRESS = (404, 405, 501)
_CLOCKS_DIFFER_S = 3600.0  # at most, the provider's and ours


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


class BatchHttp:
    """The requests about batches. Used in one event loop, and closed in it."""

    def __init__(self, spec: ModelSpec, headers: Mapping[str, str]) -> None:
        self._spec = spec
        self._secrets = secrets_of(spec)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=spec.timeout, sock_read=_SILENCE_S)
        self._session = aiohttp.ClientSession(
            timeout=timeout, headers=headers, cookie_jar=aiohttp.DummyCookieJar()
        )
        self.close = self._session.close

    async def json(self, url: str, **sent: Any) -> dict[str, Any]:
        """The JSON object of an answer; with `data` (a form or bytes) or `json` it is a POST.

        Raises:
            CallFailed, AuthError: as a live call.
        """
        body = bytearray()
        async for part in self._answer(url, **sent):
            body += part
            if len(body) > _MOST_OF_A_STATE:
                raise too_large()
        why = "is not a JSON object"
        try:
            if isinstance(answer := json.loads(body), dict):
                return answer
        except ValueError:
            why = f"is not JSON: {excerpt(bytes(body[:_QUOTED]), self._secrets)}"
        raise CallFailed(
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

    async def _answer(self, url: str, **sent: Any) -> AsyncIterator[bytes]:
        if isinstance(sent.get("data"), _Upload):
            sent["headers"] = {"content-type": "application/json"}
        request = self._session.request(
            "POST" if sent else "GET",
            url,
            proxy=proxy_for(URL(url)),
            allow_redirects=False,  # it would carry the key elsewhere
            **sent,
        )
        try:
            async with request as answer:
                if not 200 <= answer.status < 300:
                    error = error_of(
                        self._spec,
                        status=answer.status,
                        headers=answer.headers,
                        body=await answer.read(),
                        secrets=self._secrets,
                    )
                    if sent and answer.status in _NO_SUCH_ADDRESS:
                        why = "its server may have no batch API: run the command without --batch"
                        raise AuthError(f"{error}: {why}")
                    raise error
                async for part in answer.content.iter_chunked(_READ_AT_ONCE):
                    yield part
        except TimeoutError:
            raise CallFailed("timeout", f"no byte within {_SILENCE_S:g} s", retry=True) from None
        except (aiohttp.ClientError, OSError) as error:
            billed = not isinstance(error, aiohttp.ClientConnectorError)
            text = one_line(str(error) or type(error).__name__, self._secrets)
            raise CallFailed("transport", text, retry=True, billed=billed) from error


class _Upload(aiohttp.payload.IOBasePayload):
    """The bytes of a file, whose length is known; the file stays open."""


def _upload_of(file: IO[bytes]) -> aiohttp.payload.Payload:
    """A file as the body of a POST, from its start; sending closes what is given here, and not the file."""
    file.flush()
    again = os.fdopen(os.dup(file.fileno()), "rb")
    again.seek(0)
    return _Upload(again)


def _id_in(data: Mapping[str, Any], name: str = "id") -> str:
    """The id that an answer holds, fit for an address.

    Raises:
        CallFailed: it holds none.
    """
    value = data.get(name)
    if isinstance(value, str) and _ID.fullmatch(value):
        return value
    message = f"the provider's answer holds no {name} of a batch or file"
    raise CallFailed("server", message, retry=True, billed=True)


class BatchFormat:
    """How one provider takes batches; made from the address of its live calls.

    Attributes:
        most_requests, most_bytes: what one batch may hold.
        frame: what stands before, between and after the requests; `%s` is our name of the batch.
        names: whether it can be told a name, and lists batches with it; else what is found may be somebody
            else's.
        where: the page on which a user sees and cancels batches, in words.
    """

    most_requests: ClassVar[int] = 50_000
    most_bytes: ClassVar[int]
    frame: ClassVar[tuple[bytes, bytes, bytes]]
    names: ClassVar[bool] = True
    where: ClassVar[str]

    def __init__(self, address: str) -> None:
        raise NotImplementedError

    def request(self, custom_id: str, body: bytes) -> bytes:
        """One request, from the body of a live call."""
        raise NotImplementedError

    async def submit(self, http: BatchHttp, name: str, file: IO[bytes]) -> str:
        """Hand a batch in; its id at the provider."""
        raise NotImplementedError

    async def find(self, http: BatchHttp, batch: Batch) -> list[str]:
        """The ids of batches that may be this one, the likeliest first."""
        raise NotImplementedError

    async def state(self, http: BatchHttp, batch: str) -> BatchState:
        """Where a batch stands."""
        raise NotImplementedError

    def results(self, http: BatchHttp, batch: str) -> AsyncIterator[bytes]:
        """What came of the requests, a line of JSON each, in any order."""
        raise NotImplementedError

    def row(self, line: Mapping[str, Any]) -> BatchRow:
        """What such a line says."""
        raise NotImplementedError


_Listed = list[dict[str, Any]]


async def _pages(
    http: BatchHttp, url: str, key: str, following: Callable[[dict[str, Any], _Listed], str]
) -> AsyncIterator[_Listed]:
    """The batches of each page of a list; `following` says what names the page after one, or nothing."""
    place = ""
    while True:
        page = await http.json(url + place)
        listed = [batch for batch in page.get(key) or [] if isinstance(batch, dict)]
        yield listed
        before, place = place, following(page, listed)
        if place in ("", before):  # the last page, or a server without pages
            return


def _counted(counts: Any, *names: str) -> int:
    return sum(count(at(counts, name)) or 0 for name in names)


class OpenAIBatches(BatchFormat):
    """A file of requests, a batch over it, a file of replies and one of errors."""

    most_bytes = 200_000_000
    frame = (b"", b"\n", b"\n")
    where = "the Batches page of the OpenAI platform"

    _path = "/chat/completions"
    _name = "judgecal"  # the key of the metadata that holds our name of a batch
    _too_much_waits = "token_limit_exceeded"  # of all of a user's batches together: a later one is taken

    def __init__(self, address: str) -> None:
        self._base = address.removesuffix(self._path)

    def request(self, custom_id: str, body: bytes) -> bytes:
        """As a call of `/v1/chat/completions`, whatever the address: the path names the kind."""
        head = f'{{"custom_id":"{custom_id}","method":"POST","url":"/v1{self._path}","body":'
        return b"%b%b}" % (head.encode(), body)

    async def submit(self, http: BatchHttp, name: str, file: IO[bytes]) -> str:
        """Upload the file, then make the batch; a file without a batch costs nothing."""
        form = aiohttp.FormData()
        form.add_field("purpose", "batch")
        form.add_field("file", _upload_of(file), filename=f"{name}.jsonl", content_type="application/jsonl")
        uploaded = _id_in(await http.json(f"{self._base}/files", data=form))
        batch = {"input_file_id": uploaded, "endpoint": f"/v1{self._path}", "completion_window": "24h"}
        return _id_in(await http.json(f"{self._base}/batches", json=batch | {"metadata": {self._name: name}}))

    async def find(self, http: BatchHttp, batch: Batch) -> list[str]:
        """By the name in the metadata."""

        def following(page: dict[str, Any], listed: _Listed) -> str:
            oldest = min((count(other.get("created_at")) or 0 for other in listed), default=0)
            more = page.get("has_more") and listed and oldest >= batch.at - _CLOCKS_DIFFER_S
            return f"&after={_id_in(listed[-1])}" if more else ""

        async for listed in _pages(http, f"{self._base}/batches?limit=100", "data", following):
            named = [other for other in listed if at(other, "metadata", self._name) == batch.name]
            if named:
                return [_id_in(other) for other in named]
        return []

    async def state(self, http: BatchHttp, batch: str) -> BatchState:
        """Its counts; a batch whose file is refused fails as a whole."""
        answer = await http.json(f"{self._base}/batches/{batch}")
        status, refused = answer.get("status"), None
        if status == "failed":
            error = at(answer, "errors", "data", 0) or {"message": "the batch failed"}
            code = 429 if at(error, "code") == self._too_much_waits else 400
            refused = BatchRow("", {"error": error}, code)
        ended = status in ("completed", "failed", "expired", "cancelled")
        done = _counted(answer.get("request_counts"), "completed", "failed")
        return BatchState(ended, done, status == "expired", refused)

    async def results(self, http: BatchHttp, batch: str) -> AsyncIterator[bytes]:
        """The lines of both files."""
        answer = await http.json(f"{self._base}/batches/{batch}")
        for name in ("output_file_id", "error_file_id"):
            if answer.get(name):
                async for line in http.lines(f"{self._base}/files/{_id_in(answer, name)}/content"):
                    yield line

    def row(self, line: Mapping[str, Any]) -> BatchRow:
        """A reply with its status, or an error of the batch."""
        custom_id = str(line.get("custom_id") or "")
        response, error = line.get("response"), line.get("error")
        if isinstance(response, dict):
            return BatchRow(custom_id, response.get("body"), count(response.get("status_code")) or 500)
        code = at(error, "code")
        if code in ("batch_expired", "batch_cancelled"):
            return BatchRow(custom_id, unanswered="expired" if code == "batch_expired" else "cancelled")
        return BatchRow(custom_id, {"error": error or {"message": "neither a reply nor an error"}}, 500)


class AnthropicBatches(BatchFormat):
    """One request that holds them all, and a stream of results."""

    most_requests, most_bytes = 100_000, 256_000_000
    frame = (b'{"requests":[', b",", b"]}")
    names = False
    where = "the Batches page of the Claude Console"

    _dealt_with = ("succeeded", "errored", "canceled", "expired")

    def __init__(self, address: str) -> None:
        self._url = f"{address}/batches"

    def request(self, custom_id: str, body: bytes) -> bytes:
        """The body of a live call is its parameters."""
        return b'{"custom_id":"%b","params":%b}' % (custom_id.encode(), body)

    async def submit(self, http: BatchHttp, name: str, file: IO[bytes]) -> str:
        """Hand it in; there is no place for a name."""
        return _id_in(await http.json(self._url, data=_upload_of(file)))

    async def find(self, http: BatchHttp, batch: Batch) -> list[str]:
        """Those of as many requests, made since, oldest first; only their results say whose they are."""

        def is_young(other: Mapping[str, Any]) -> bool:
            try:
                made = datetime.datetime.fromisoformat(str(other.get("created_at")))
            except ValueError:  # it does not say when
                return True
            return made.timestamp() >= batch.at - _CLOCKS_DIFFER_S

        def following(page: dict[str, Any], listed: _Listed) -> str:
            more = page.get("has_more") and listed and all(map(is_young, listed))
            return f"&after_id={_id_in(listed[-1])}" if more else ""

        ids: list[str] = []
        async for listed in _pages(http, f"{self._url}?limit=1000", "data", following):
            for other in filter(is_young, listed):
                n_requests = _counted(other.get("request_counts"), *self._dealt_with, "processing")
                if n_requests == len(batch.ids):
                    ids.append(_id_in(other))
        return ids[::-1]

    async def state(self, http: BatchHttp, batch: str) -> BatchState:
        """Its counts, which stay at 0 until it has ended."""
        answer = await http.json(f"{self._url}/{batch}")
        done = _counted(answer.get("request_counts"), *self._dealt_with)
        return BatchState(answer.get("processing_status") == "ended", done)

    def results(self, http: BatchHttp, batch: str) -> AsyncIterator[bytes]:
        """A line a request; not from the address that the answer names, for the key would go there."""
        return http.lines(f"{self._url}/{batch}/results")

    def row(self, line: Mapping[str, Any]) -> BatchRow:
        """A message, an error as a live call gives it, or neither."""
        custom_id, result = str(line.get("custom_id") or ""), line.get("result")
        kind = at(result, "type")
        if kind == "succeeded":
            return BatchRow(custom_id, at(result, "message"))
        if kind in ("expired", "canceled"):
            return BatchRow(custom_id, unanswered="expired" if kind == "expired" else "cancelled")
        error = at(result, "error") or {"message": "no result"}
        return BatchRow(custom_id, error if at(error, "error") else {"error": error})


class GeminiBatches(BatchFormat):
    """The form that holds the requests themselves: one call makes a batch, one call reads it.

    The form over an uploaded file takes 2 GB in the place of 20 MB; it needs three calls more and leaves
    files behind.
    """

    most_bytes = 20_000_000
    frame = (
        b'{"batch":{"display_name":"%s","input_config":{"requests":{"requests":[', b",", b"]}}}}"
    )  # fmt: skip
    where = "Google AI Studio, or batches.list and batches.cancel of the Gemini API"

    _ended = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
    _cancelled = 1
    # Google's codes of errors, as the HTTP statuses that live calls fail with.
    _status_of = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 13: 500, 14: 503, 16: 401}  # noqa: RUF012

    def __init__(self, address: str) -> None:
        self._model = address.removesuffix(":generateContent")
        self._root = self._model.rpartition("/models/")[0]

    def request(self, custom_id: str, body: bytes) -> bytes:
        """The body of a live call, with our id as its metadata."""
        return b'{"request":%b,"metadata":{"key":"%b"}}' % (body, custom_id.encode())

    async def submit(self, http: BatchHttp, name: str, file: IO[bytes]) -> str:
        """Hand it in."""
        answer = await http.json(f"{self._model}:batchGenerateContent", data=_upload_of(file))
        return _id_in(answer, "name")

    async def find(self, http: BatchHttp, batch: Batch) -> list[str]:
        """By the name that is shown."""

        def following(page: dict[str, Any], _: _Listed) -> str:
            token = page.get("nextPageToken")
            return f"&pageToken={token}" if token and isinstance(token, str) else ""

        async for listed in _pages(http, f"{self._root}/batches?pageSize=100", "operations", following):
            named = [other for other in listed if at(other, "metadata", "displayName") == batch.name]
            if named:
                return [_id_in(other, "name") for other in named]
        return []

    async def state(self, http: BatchHttp, batch: str) -> BatchState:
        """Its counts, which Google sends as texts; one that failed or expired has no results."""
        answer = await http.json(f"{self._root}/{batch}")
        word = str(at(answer, "metadata", "state") or answer.get("state") or "").partition("_STATE_")[2]
        ended = bool(answer.get("done")) or word in self._ended
        counts = (
            str(at(answer, "metadata", "batchStats", f"{kind}RequestCount"))
            for kind in ("successful", "failed")
        )
        failed = answer.get("error") and at(answer, "error", "code") != self._cancelled and word != "EXPIRED"
        done = sum(int(text) for text in counts if text.isdecimal())
        return BatchState(ended, done, word == "EXPIRED", self.row(answer) if ended and failed else None)

    async def results(self, http: BatchHttp, batch: str) -> AsyncIterator[bytes]:
        """All of them stand in one answer, in one of two places."""
        answer = await http.json(f"{self._root}/{batch}")
        for place in (at(answer, "response"), at(answer, "metadata", "output")):
            rows = at(place, "inlinedResponses")
            rows = at(rows, "inlinedResponses") if isinstance(rows, dict) else rows
            if isinstance(rows, list):
                for row in rows:
                    yield json.dumps(row).encode()
                return

    def row(self, line: Mapping[str, Any]) -> BatchRow:
        """A reply, or an error with one of Google's codes."""
        custom_id = str(at(line, "metadata", "key") or "")
        if not (error := line.get("error")):
            return BatchRow(custom_id, line.get("response"))
        code = at(error, "code")
        if code == self._cancelled:
            return BatchRow(custom_id, unanswered="cancelled")
        status = code if isinstance(code, int) and 400 <= code < 600 else self._status_of.get(code, 500)
        return BatchRow(custom_id, {"error": error}, status)


FORMATS: Mapping[str, type[BatchFormat]] = {
    "openai": OpenAIBatches,
    "anthropic": AnthropicBatches,
    "gemini": GeminiBatches,
}
"""By the wire format of the provider's live calls."""
