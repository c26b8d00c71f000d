"""A host of raw files on 127.0.0.1: each path has its answers in turn, the last one again and again."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Sent:
    """What is sent for a path: `cut` ends the body that many bytes before its stated length, `drip_s` waits
    before each kilobyte, `chunked` states no length, `hang_up` sends nothing and closes.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int = 0
    drip_s: float = 0.0
    chunked: bool = False
    hang_up: bool = False


def moved(to: str, status: int = 302) -> Sent:
    """A redirect."""
    return Sent(status=status, headers={"location": to})


@dataclass
class RawHost:
    """A running host: `files` may change between requests, `asked` are the paths in the order of the
    requests."""

    root: str
    files: dict[str, list[Sent]]
    asked: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def put(self, path: str, *answers: Sent | bytes) -> str:
        """Serve these under a path, one after the other; gives its address."""
        self.files[path] = [one if isinstance(one, Sent) else Sent(one) for one in answers]
        return self.root + path


@contextlib.contextmanager
def raw_host() -> Iterator[RawHost]:
    """Serve until the block ends."""
    host = RawHost("", {})
    server = _Server(("127.0.0.1", 0), _handler(host))
    host.root = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield host
    finally:
        host.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has hung up is no news."""


def _handler(host: RawHost) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            host.asked.append(self.path)
            answers = host.files.get(self.path, [Sent(b"no such file", 404)])
            sent = answers.pop(0) if len(answers) > 1 else answers[0]
            with contextlib.suppress(ConnectionError):
                self.rfile.read(int(self.headers.get("content-length") or 0))
                if sent.hang_up:
                    self.close_connection = True
                    return
                self._send(sent)

        do_POST = do_GET  # noqa: N815

        def _send(self, sent: Sent) -> None:
            self.send_response(sent.status)
            for name, value in sent.headers.items():
                self.send_header(name, value)
            if sent.chunked:
                self.send_header("transfer-encoding", "chunked")
            else:
                self.send_header("content-length", str(len(sent.body)))
            self.send_header("connection", "close")
            self.end_headers()
            body = sent.body[: len(sent.body) - sent.cut]
            for start in range(0, len(body), 1024) if sent.drip_s else [0]:
                if sent.drip_s and host.stopping.wait(sent.drip_s):
                    return
                part = body[start : start + 1024] if sent.drip_s else body
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part) if sent.chunked else part)
            if sent.chunked and not sent.cut:
                self.wfile.write(b"0\r\n\r\n")
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is printed."""

    return Handler
