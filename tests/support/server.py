"""A small OpenAI-compatible chat server on 127.0.0.1, scripted by a function from request to answer."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.http import Answer, Request, as_answer, serve

MODEL_ID = "stub-model-2026-01-01"
PROMPT_TOKENS, COMPLETION_TOKENS = 1000, 50
INPUT_USD, OUTPUT_USD = 2.0, 10.0  # a million tokens of `priced`
USD_A_CALL = (PROMPT_TOKENS * INPUT_USD + COMPLETION_TOKENS * OUTPUT_USD) / 1e6

Script = Callable[[dict[str, Any]], "Answer | str"]
"""From the body of a request to its answer; a text is sent as a chat completion."""


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


Serve = Callable[[Script], StubServer]
"""The fixture `serve`: starts a server with a script."""


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
    open_now = 0

    def handler(request: Request) -> Answer:
        nonlocal open_now
        body = request.json()
        with stub.lock:
            open_now += 1
            stub.most_at_once = max(stub.most_at_once, open_now)
            stub.bodies.append(body)
            stub.headers.append(dict(request.headers))
            stub.paths.append(request.path)
        answer = stub.script(body)
        if stub.latency_s:
            stub.stopping.wait(stub.latency_s)
        if not isinstance(answer, str) and answer.hang:
            stub.stopping.wait(30.0)
        with stub.lock:
            open_now -= 1
        return as_answer(completion(answer)) if isinstance(answer, str) else answer

    with serve(handler) as root:
        stub.api_base = f"{root}/v1"
        try:
            yield stub
        finally:
            stub.stopping.set()


@contextlib.contextmanager
def priced(workspace: Path, script: Script, more: str = "") -> Iterator[StubServer]:
    """Serve a model `mine` that has a price, needs MY_KEY and replies with at most 100 tokens."""
    with running(script) as stub:
        (workspace / "judgecal.toml").write_text(
            f'[models.mine]\nid = "openai/mine"\napi_base = "{stub.api_base}"\nkey_env = "MY_KEY"\n'
            f"input_usd_per_1m = {INPUT_USD}\noutput_usd_per_1m = {OUTPUT_USD}\nmax_tokens = 100\n{more}"
        )
        yield stub
