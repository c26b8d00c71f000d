"""A chat server for measurements: OpenAI-compatible, on 127.0.0.1, with settable latency, and fast.

    python -m tests.benchmarks.stub --latency-ms 50

prints its address and serves until its standard input closes, so that it never outlives who started it. At 0
ms it answers several times faster than any client here asks: the parser reads what the clients send and no
more. `GET /count` tells the calls so far, the most that were open at once and when the first came; `GET
/reset` forgets them. `tests/torture` gives the same server a script of its own, in a thread.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

MODEL_ID = "stub-model-2026-01-01"
PROMPT_TOKENS, COMPLETION_TOKENS = 300, 30
REPLY = (
    "[[ ## correctness_reasoning ## ]]\nok\n\n[[ ## correctness_percentage ## ]]\n85\n\n[[ ## completed ## ]]"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back on the wire.

    Attributes:
        data: the whole HTTP response, or less of it.
        delay_s: how long it is held back.
        end: what follows: `keep` the connection, `close` it, or `reset` it.
    """

    data: bytes
    delay_s: float = 0.0
    end: str = "keep"


Script = Callable[[bytes, bytes], Answer]
"""From the head and the body of a request to its answer."""


@dataclass
class Served:
    """What a server was asked."""

    script: Script
    calls: int = 0
    open_now: int = 0
    most_open: int = 0
    first_at: float | None = None
    port: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def api_base(self) -> str:
        """The address for `api_base`."""
        return f"http://127.0.0.1:{self.port}/v1"

    def reset(self) -> None:
        """Forget the calls so far."""
        self.calls = self.most_open = 0
        self.first_at = None

    def report(self) -> Answer:
        """The answer to `GET /count`."""
        return http(
            json.dumps({"calls": self.calls, "most_open": self.most_open, "first_at": self.first_at}).encode()
        )


def http(
    body: bytes, status: str = "200 OK", *, kind: str = "application/json", **headers: str | float
) -> Answer:
    """A whole response; `retry_after=1` becomes the header `retry-after`."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{lines}\r\n"
    return Answer(head.encode() + body)


def completion(text: str, *, model: str = MODEL_ID) -> bytes:
    """The body of a chat completion."""
    usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS}
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1767225600,
            "model": model,
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            ],
            "usage": {**usage, "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS},
        }
    ).encode()


class _Connection(asyncio.Protocol):
    """One keep-alive connection: a request is a head, a content-length and as many bytes."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (split := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._buffer[:split])
            end = split + 4 + _content_length(head)
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[split + 4 : end])
            del self._buffer[:end]
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        served = self._served
        if head.startswith(b"GET"):
            if head.startswith(b"GET /reset"):
                served.reset()
            self._send(served.report())
            return
        served.calls += 1
        served.first_at = served.first_at or time.time()
        served.open_now += 1
        served.most_open = max(served.most_open, served.open_now)
        answer = served.script(head, body)
        if answer.delay_s:
            asyncio.get_running_loop().call_later(answer.delay_s, self._done, answer)
        else:
            self._done(answer)

    def _done(self, answer: Answer) -> None:
        self._served.open_now -= 1
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(answer.data)
        if answer.end == "close":
            self._transport.close()
        elif answer.end == "reset":
            self._transport.abort()


def _content_length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"\r\ncontent-length:")
    return int(lower[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0


async def serve(served: Served, started: Callable[[], None], stop: asyncio.Event) -> None:
    """Serve on a free port until `stop` is set."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(served), "127.0.0.1", 0, backlog=4096)
    served.port = server.sockets[0].getsockname()[1]
    started()
    await stop.wait()
    server.close()


@contextlib.contextmanager
def running(script: Script) -> Iterator[Served]:
    """Serve a script from a thread of this process until the block ends."""
    served, ready, ends = Served(script), threading.Event(), []

    async def main() -> None:
        stop = asyncio.Event()
        ends.append((asyncio.get_running_loop(), stop))
        await serve(served, ready.set, stop)

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield served
    finally:
        for loop, stop in ends:
            loop.call_soon_threadsafe(stop.set)
        thread.join(10)


def main() -> None:
    """The server as a process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--reply", default=REPLY, help="the text of every reply")
    args = parser.parse_args()
    whole = Answer(http(completion(args.reply)).data, args.latency_ms / 1000.0)
    served = Served(lambda _head, _body: whole)

    async def until_stdin_closes() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        threading.Thread(
            target=lambda: (sys.stdin.read(), loop.call_soon_threadsafe(stop.set)), daemon=True
        ).start()
        await serve(served, lambda: print(served.api_base, flush=True), stop)

    asyncio.run(until_stdin_closes())


if __name__ == "__main__":
    main()
