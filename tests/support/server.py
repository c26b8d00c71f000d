"""A small OpenAI-compatible chat server on 127.0.0.1, scripted by a function from request to answer."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL_ID = "stub-model-2026-01-01"
PROMPT_TOKENS, COMPLETION_TOKENS = 1000, 50

Script = Callable[[dict[str, Any]], "Answer | str"]
"""From the body of a request to its answer; a text is sent as a chat completion."""


@dataclass(frozen=True)
class Answer:
    """What the server sends back, byte for byte; `hang` holds it back until the server stops.

    `reset` breaks the connection instead, `cut` ends the body that many bytes before its stated length.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    hang: bool = False
    reset: bool = False
    cut: int = 0


@dataclass
class StubServer:
    """A running server: its address, its script, and what it was asked.

    Attributes:
        script: may be replaced between runs.
        bodies: the JSON bodies of the requests, in the order of their arrival.
        headers: the headers of the same requests.
        paths: their targets, as the request lines name them.
        latency_s: how long each answer is held back.
        most_at_once: the most requests that were open at one time.
    """

    script: Script
    api_base: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    latency_s: float = 0.0
    most_at_once: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def calls(self) -> int:
        """How many requests arrived."""
        return len(self.bodies)

    @property
    def root(self) -> str:
        """The address without a path: host and port."""
        return self.api_base.removesuffix("/v1")


def completion(
    text: str, *, finish: str = "stop", model: str = MODEL_ID, usage: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """A chat completion as OpenAI's servers send it."""
    counted = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS}
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1767225600,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": dict(usage or {**counted, "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS}),
    }


def as_answer(payload: Mapping[str, Any], status: int = 200, **headers: str) -> Answer:
    """A JSON answer; `retry_after="1"` becomes the header `retry-after`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, json.dumps(payload).encode("utf-8"), named)


def failing(status: int, message: str, *, code: str | None = None, **headers: str) -> Answer:
    """An error as OpenAI's servers send it."""
    return as_answer({"error": {"message": message, "type": "stub_error", "code": code}}, status, **headers)


def in_turn(*answers: Answer | str) -> Script:
    """Each request gets the next answer; the last one is repeated."""
    left = list(answers)
    lock = threading.Lock()

    def script(_: dict[str, Any]) -> Answer | str:
        with lock:
            return left.pop(0) if len(left) > 1 else left[0]

    return script


@contextlib.contextmanager
def running(script: Script) -> Iterator[StubServer]:
    """Serve until the block ends; requests that hang are let go then."""
    stub = StubServer(script)
    server = _Server(("127.0.0.1", 0), _handler(stub))
    stub.api_base = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        stub.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has hung up is no news: that is what these tests are about."""


def _handler(stub: StubServer) -> type[BaseHTTPRequestHandler]:
    open_now = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            nonlocal open_now
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with stub.lock:
                open_now += 1
                stub.most_at_once = max(stub.most_at_once, open_now)
                stub.bodies.append(body)
                stub.headers.append({name.lower(): value for name, value in self.headers.items()})
                stub.paths.append(self.path)
            answer = stub.script(body)
            if isinstance(answer, str):
                answer = as_answer(completion(answer))
            if answer.hang or stub.latency_s:
                stub.stopping.wait(30.0 if answer.hang else stub.latency_s)
            with stub.lock:
                open_now -= 1
            with contextlib.suppress(ConnectionError):
                self._send(answer)

        def _send(self, answer: Answer) -> None:
            if answer.reset:
                # No time to linger: the client gets a reset, not an orderly end.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.rfile.close()
                self.connection.close()
                self.close_connection = True
                return
            self.send_response(answer.status)
            self.send_header("content-type", answer.content_type)
            self.send_header("content-length", str(len(answer.body)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body[: len(answer.body) - answer.cut])
            self.close_connection = self.close_connection or bool(answer.cut)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is printed."""

    return Handler
