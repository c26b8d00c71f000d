"""A server that takes batches as OpenAI, Anthropic and Gemini do, and live calls too, from one script.

It bills a request when it gives a text for it, in a batch or live, and counts by whose request it is: nothing
may be billed twice.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from judgecal.models import ModelSpec
from tests.support.http import Answer, Request, serve
from tests.support.providers import anthropic_reply, gemini_reply
from tests.support.server import completion

KINDS = ("openai", "anthropic", "gemini")
_REPLY = {"openai": completion, "anthropic": anthropic_reply, "gemini": gemini_reply}


@dataclass
class Handed:
    """One batch at the server.

    Attributes:
        bodies: id of a request -> its body.
        polls: how often its state was asked for.
    """

    name: str
    bodies: dict[str, Any]
    at: float = field(default_factory=time.time)
    polls: int = 0
    over: bool = False
    results: dict[str, Any] | None = None  # id -> a text, an error, or None where its time was over


@dataclass
class BatchServer:
    """A running server.

    Attributes:
        say: from the body of a request and how often it came before to a text, or to a failure: an HTTP
            status.
        pending: polls that find a batch still going on.
        expires: numbers of batches, from 0, of which every request from the middle on is not come to.
        billed: body of a request -> how often it was answered with a text.
        live: calls that came outside batches.
        broken: statuses that the next requests are answered with in place of an answer.
        losing: the next batch is taken, and the answer to it lost.
        endless: lists of batches claim a next page, and ignore which one is asked for.
        damaged: the batch in whose results the first line is none.
        results: what the provider makes of the lines of its results.
        page: what is said to every request, if anything.
        queue: requests that may wait at once at OpenAI; a batch beyond that fails as a whole.
    """

    kind: str
    say: Callable[[dict[str, Any], int], str | int]
    pending: int = 1
    expires: tuple[int, ...] = ()
    address: str = ""
    batches: dict[str, Handed] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    billed: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    live: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)
    losing: bool = False
    endless: bool = False
    page: bytes = b""
    damaged: str = ""
    results: Callable[[list[str]], list[str]] = list
    queue: int = 10**9
    lock: threading.Lock = field(default_factory=threading.Lock)

    def model(self, **settings: Any) -> ModelSpec:
        """A model of this server: 1000 prompt tokens cost 0.001 USD, 50 of a reply 0.0001."""
        base = self.address + ("/v1" if self.kind == "openai" else "")
        kept = {
            "api_base": base,
            "input_usd_per_1m": 1.0,
            "output_usd_per_1m": 2.0,
            "max_tokens": 64,
            "timeout": 10.0,
            **settings,
        }
        return ModelSpec("stub", f"{self.kind}/stub-model", **kept)

    def answer(self, body: dict[str, Any]) -> str | int:
        """What comes of a request, which is billed where it is a text."""
        key = json.dumps(body, sort_keys=True)
        said = self.say(body, self.asked[key])
        self.asked[key] += 1
        self.billed[key] += isinstance(said, str)
        return said

    def take(self, name: str, bodies: dict[str, Any]) -> str:
        """A batch; its id."""
        assert len(bodies) == len(set(bodies)), "an id is there twice"
        there = f"{'batches/' if self.kind == 'gemini' else 'batch_'}{len(self.batches):04d}"
        self.batches[there] = Handed(name, bodies)
        return there

    def ended(self, there: str) -> bool:
        """Whether a batch has ended, which its next poll may find."""
        batch = self.batches[there]
        batch.polls += 1
        if batch.results is None and batch.polls > self.pending:
            late = list(self.batches).index(there) in self.expires
            ids = list(batch.bodies)
            done = (
                ids[: len(ids) // 2 if self.kind != "gemini" else 0] if late else ids
            )  # Gemini gives none of such
            batch.results = {one: self.answer(batch.bodies[one]) if one in set(done) else None for one in ids}
        return batch.results is not None


def text_of(body: dict[str, Any]) -> str:
    """The last message of a request, of any format."""
    if "contents" in body:
        return str(body["contents"][-1]["parts"][0]["text"])
    return str(body["messages"][-1]["content"])


@contextlib.contextmanager
def batches_at(
    kind: str, say: Callable[[dict[str, Any], int], str | int], **how: Any
) -> Iterator[BatchServer]:
    """A server until the block ends."""
    stub = BatchServer(kind, say, **how)
    speak = {"openai": _openai, "anthropic": _anthropic, "gemini": _gemini}[kind]

    def handler(request: Request) -> Answer:
        with stub.lock:
            stub.paths.append(request.path)
            before, broken = len(stub.batches), stub.broken.pop(0) if stub.broken else 0
            status, answer = broken, {"error": {"message": "broken"}}
            if not broken:
                status, answer = speak(stub, request.path, request.body)
            answer = stub.page or answer
            if stub.damaged and stub.damaged in request.path and isinstance(answer, bytes):
                answer = answer.replace(b'{"custom_id"', b"<custom_id", 1)
            lost, stub.losing = stub.losing, stub.losing and len(stub.batches) == before
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        return Answer(status, data, hang_up=lost and not stub.losing)

    with serve(handler) as stub.address:
        yield stub


def _called(stub: BatchServer, body: bytes, error: Callable[[int], Any]) -> tuple[int, Any]:
    asked = json.loads(body)
    stub.live.append(asked)
    said = stub.answer(asked)
    return (200, _REPLY[stub.kind](said)) if isinstance(said, str) else (said, error(said))


_NOT_THERE = (404, {"error": {"message": "not here", "type": "not_found_error"}})


def _openai(stub: BatchServer, path: str, body: bytes) -> tuple[int, Any]:
    def error(status: int) -> Any:
        return {"error": {"message": f"failed with {status}", "type": "stub", "code": None}}

    def line(one: str, said: str | int | None) -> str:
        if said is None:
            expired = {"code": "batch_expired", "message": "This request could not be executed in time."}
            return json.dumps({"custom_id": one, "response": None, "error": expired})
        status, data = (200, completion(said)) if isinstance(said, str) else (said, error(said))
        return json.dumps(
            {"custom_id": one, "response": {"status_code": status, "body": data}, "error": None}
        )

    def shown(there: str, ended: bool) -> dict[str, Any]:
        batch = stub.batches[there]
        kept = {
            "id": there,
            "created_at": int(batch.at),
            "metadata": {"judgecal": batch.name},
            "status": "in_progress",
        }
        before = [one for name, one in stub.batches.items() if name < there and one.results is None]
        if batch.over or sum(len(one.bodies) for one in [*before, batch]) > stub.queue:
            batch.over, batch.results = True, batch.results or {}
            failed = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached."}
            return {**kept, "status": "failed", "errors": {"data": [failed]}}
        if not ended or batch.results is None:
            return kept
        late = None in batch.results.values()
        files = {"output_file_id": f"out-{there}", "error_file_id": f"err-{there}"}
        counts = {"completed": sum(isinstance(said, str) for said in batch.results.values())}
        return {**kept, **files, "status": "expired" if late else "completed", "request_counts": counts}

    if path == "/v1/chat/completions":
        return _called(stub, body, error)
    if path == "/v1/files":
        name = f"file-{len(stub.files)}"
        stub.files[name] = body.partition(b'.jsonl"')[2].partition(b"\r\n\r\n")[2].partition(b"\r\n--")[0]
        return 200, {"id": name, "object": "file"}
    if path == "/v1/batches":
        asked = json.loads(body)
        rows = [json.loads(one) for one in stub.files[asked["input_file_id"]].splitlines()]
        assert all((row["method"], row["url"]) == ("POST", "/v1/chat/completions") for row in rows)
        assert (asked["endpoint"], asked["completion_window"]) == ("/v1/chat/completions", "24h")
        bodies = {row["custom_id"]: row["body"] for row in rows}
        assert len(bodies) == len(rows)
        return 200, shown(stub.take(asked["metadata"]["judgecal"], bodies), False)
    if path.startswith("/v1/batches?"):
        return 200, {"data": [shown(one, False) for one in reversed(stub.batches)], "has_more": stub.endless}
    if (found := re.fullmatch(r"/v1/batches/(\w+)", path)) and found[1] in stub.batches:
        shown(found[1], False)  # is it over the limit?
        return 200, shown(found[1], stub.batches[found[1]].over or stub.ended(found[1]))
    if found := re.fullmatch(r"/v1/files/(out|err)-(\w+)/content", path):
        results = stub.batches[found[2]].results or {}
        wanted = [one for one in results.items() if isinstance(one[1], str) == (found[1] == "out")]
        return 200, "".join(f"{one}\n" for one in stub.results([line(*one) for one in wanted])).encode()
    return _NOT_THERE


def _anthropic(stub: BatchServer, path: str, body: bytes) -> tuple[int, Any]:
    words = {400: "invalid_request_error", 429: "rate_limit_error"}

    def error(status: int) -> Any:
        said = {"type": words.get(status, "api_error"), "message": f"failed with {status}"}
        return {"type": "error", "error": said}

    def line(one: str, said: str | int | None) -> str:
        result: dict[str, Any] = {"type": "expired"}
        if isinstance(said, str):
            result = {"type": "succeeded", "message": anthropic_reply(said)}
        elif said is not None:
            result = {"type": "errored", "error": error(said)}
        return json.dumps({"custom_id": one, "result": result})

    def shown(there: str, ended: bool) -> dict[str, Any]:
        batch, at = stub.batches[there], datetime.datetime.fromtimestamp(stub.batches[there].at, datetime.UTC)
        counts = {
            "processing": 0 if ended else len(batch.bodies),
            "succeeded": len(batch.bodies) if ended else 0,
        }
        status = "ended" if ended else "in_progress"
        made = at.isoformat().replace("+00:00", "Z")
        return {"id": there, "processing_status": status, "created_at": made, "request_counts": counts}

    if path == "/v1/messages":
        return _called(stub, body, error)
    if path == "/v1/messages/batches":
        rows = json.loads(body)["requests"]
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", row["custom_id"]) for row in rows)
        return 200, shown(stub.take("", {row["custom_id"]: row["params"] for row in rows}), False)
    if path.startswith("/v1/messages/batches?"):
        return 200, {"data": [shown(one, False) for one in reversed(stub.batches)], "has_more": stub.endless}
    if found := re.fullmatch(r"/v1/messages/batches/(\w+)", path):
        return 200, shown(found[1], stub.ended(found[1]))
    if found := re.fullmatch(r"/v1/messages/batches/(\w+)/results", path):
        results = stub.batches[found[1]].results or {}
        return 200, "".join(
            f"{one}\n" for one in stub.results([line(*one) for one in reversed(results.items())])
        ).encode()
    return _NOT_THERE


def _gemini(stub: BatchServer, path: str, body: bytes) -> tuple[int, Any]:
    codes = {400: 3, 429: 8, 500: 13}

    def error(status: int) -> Any:
        return {"error": {"code": status, "message": f"failed with {status}", "status": "STUB"}}

    def row(one: str, said: str | int | None) -> dict[str, Any]:
        kept = {"metadata": {"key": one}}
        if isinstance(said, str):
            return {**kept, "response": gemini_reply(said)}
        return {**kept, "error": {"code": codes.get(said or 0, 13), "message": f"failed with {said}"}}

    def shown(there: str, ended: bool) -> dict[str, Any]:
        batch = stub.batches[there]
        results = batch.results or {}
        late = None in results.values()
        state = ("EXPIRED" if late else "SUCCEEDED") if ended else "RUNNING"
        stats = {"successfulRequestCount": str(len(results))}
        kept = {"state": f"BATCH_STATE_{state}", "displayName": batch.name, "batchStats": stats}
        rows = [] if late else [json.dumps(row(*one)) for one in results.items()]  # an expired one has none
        rows = [json.loads(one) for one in stub.results(rows)]
        answer = {"inlinedResponses": {"inlinedResponses": rows}}
        return {"name": there, "metadata": kept, "done": ended, **({"response": answer} if ended else {})}

    model = "/v1beta/models/stub-model"
    if path == f"{model}:generateContent":
        return _called(stub, body, error)
    if path == f"{model}:batchGenerateContent":
        asked = json.loads(body)["batch"]
        rows = asked["input_config"]["requests"]["requests"]
        bodies = {one["metadata"]["key"]: one["request"] for one in rows}
        return 200, shown(stub.take(asked["display_name"], bodies), False)
    if path.startswith("/v1beta/batches?"):
        more = {"nextPageToken": "again"} if stub.endless else {}
        return 200, {"operations": [shown(one, False) for one in reversed(stub.batches)], **more}
    if found := re.fullmatch(r"/v1beta/(batches/\w+)", path):
        return 200, shown(found[1], stub.ended(found[1]))
    return _NOT_THERE
