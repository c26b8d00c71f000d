"""An HTTP server on 127.0.0.1 whose answers a function makes; what it is asked is the function's to note."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Request:
    """What a client asks for; names of headers in lower case."""

    method: str
    path: str  # as the request line names it, with its query
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON, an empty object where there is none."""
        return json.loads(self.body) if self.body else {}


@dataclass(frozen=True)
class Answer:
    """What the server sends back, byte for byte."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"  # none where it is empty
    hang: bool = False  # held back until the server stops
    reset: bool = False  # the connection is broken instead
    hang_up: bool = False  # or closed in good order, with nothing sent
    cut: int = 0  # the body ends that many bytes before its stated length
    drip_s: float = 0.0  # waited before each kilobyte
    chunked: bool = False  # no length is stated
    pieces: Iterable[bytes] | None = None  # chunks in the place of a body


Handler = Callable[[Request], Answer]


def as_answer(payload: Any, status: int = 200, **headers: str) -> Answer:
    """A JSON answer; `retry_after="1"` becomes the header `retry-after`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, json.dumps(payload).encode(), named)


@contextlib.contextmanager
def serve(handler: Handler) -> Iterator[str]:
    """Serve until the block ends; gives the address. Answers that hang or drip are let go then."""
    stopping = threading.Event()

    class Served(_Served):
        def answer(self, request: Request) -> Answer:
            return handler(request)

        def wait(self, seconds: float) -> bool:
            return stopping.wait(seconds)

    server = _Server(("127.0.0.1", 0), Served)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has hung up is no news: that is what these tests are about."""


class _Served(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, request: Request) -> Answer:
        raise NotImplementedError

    def wait(self, seconds: float) -> bool:
        raise NotImplementedError

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.answer(Request(self.command, self.path, headers, body))
        if answer.hang:
            self.wait(30.0)
        with contextlib.suppress(ConnectionError):
            self._send(answer)

    do_HEAD = do_POST = do_DELETE = do_GET  # noqa: N815

    def _send(self, answer: Answer) -> None:
        if answer.reset:
            # No time to linger: the client gets a reset, not an orderly end.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.rfile.close()
            self.connection.close()
        if answer.reset or answer.hang_up:
            self.close_connection = True
            return
        self.send_response(answer.status)
        if answer.content_type:
            self.send_header("content-type", answer.content_type)
        chunked = answer.chunked or answer.pieces is not None
        if chunked:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        body = answer.body[: len(answer.body) - answer.cut]
        pieces = answer.pieces
        if pieces is None:
            size = 1024 if answer.drip_s else max(1, len(body))
            pieces = (body[start : start + size] for start in range(0, len(body), size))
        for piece in pieces:
            if answer.drip_s and self.wait(answer.drip_s):
                return
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        if chunked and not answer.cut:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = self.close_connection or bool(answer.cut)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""
