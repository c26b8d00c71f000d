"""A model on a clock that jumps: whole runs of thousands of calls through the engine, exact and without a
wait."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

import judgecal.engine.run as engine
from judgecal.engine.calls import Call, CallFailed, Message, ParsedReply, Reply, ReplySchema
from judgecal.models import ModelSpec
from judgecal.records import Judgement, Key

SPEC = ModelSpec("stub", "openai/stub", input_usd_per_1m=1.0, output_usd_per_1m=2.0, max_tokens=64)
ENDLESS_S = 1e6


class _Selector(selectors.DefaultSelector):
    loop: JumpingLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        events = super().select(0)
        if not events and timeout:
            self.loop.now += timeout
            assert self.loop.now < ENDLESS_S, "the run does not end"
        return events


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next thing that is due."""

    def __init__(self) -> None:
        self.now = 0.0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now


class Server:
    """A model on the jumping clock: `answer` says what becomes of a call, given how many are in flight."""

    def __init__(self, answer: Callable[[Server, str], Reply | CallFailed], latency_s: float = 1.0) -> None:
        self.answer = answer
        self.latency_s: float | Callable[[Server], float] = latency_s
        self.in_flight = 0
        self.started: list[tuple[float, str]] = []  # when, what
        self.landed_at = 0.0

    async def send(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> Reply:
        clock = asyncio.get_running_loop().time
        text = messages[-1]["content"]
        self.started.append((clock(), text))
        self.in_flight += 1
        try:
            said = self.answer(self, text)
            await asyncio.sleep(self.latency_s(self) if callable(self.latency_s) else self.latency_s)
            self.landed_at = clock()
        finally:
            self.in_flight -= 1
        if isinstance(said, CallFailed):
            raise said
        return said

    async def close(self) -> None:
        """Nothing is open."""

    def starts_in(self, low: float, high: float) -> int:
        """Calls that began within a span of time."""
        return sum(low <= at < high for at, _ in self.started)


def good(_: Server, __: str) -> Reply:
    return Reply("85", "stub-1", prompt_tokens=1000, completion_tokens=50)


def driver(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Judgement]]:
    """What runs calls against a server on the jumping clock."""

    def on_the_jumping_clock(make: Callable[[], Any]) -> None:
        with asyncio.Runner(loop_factory=JumpingLoop) as runner:
            runner.run(make())

    def drive(
        server: Server, calls: Iterable[Call], spec: ModelSpec = SPEC, **options: Any
    ) -> list[Judgement]:
        monkeypatch.setattr(engine, "open_transport", lambda _: server)
        monkeypatch.setattr(engine, "run_to_end", on_the_jumping_clock)
        rows: list[Judgement] = []
        engine.run_calls(calls, spec, record=lambda *came: rows.extend(came), **options)
        return rows

    return drive


def calls(count: int, *, text: str | None = None, repeat: int = 0) -> list[Call]:
    def read(reply: str) -> ParsedReply:
        return ParsedReply(float(reply))

    def one(index: int) -> Call:
        said = f"item {index}" if text is None else text
        messages = [{"role": "system", "content": "Judge."}, {"role": "user", "content": said}]
        return Call(Key(f"i{index}", "sha", "print", repeat), "judge@stub", lambda: messages, read)

    return [one(index) for index in range(count)]
