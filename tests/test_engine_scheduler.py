"""How a run gets under way, and what it leaves as it was."""

from __future__ import annotations

import asyncio
from typing import Any

from judgecal.engine.calls import Call, ParsedReply
from judgecal.engine.scheduler import CallSlots, Limiter, Scheduler
from judgecal.records import Key


def calls(count: int) -> list[Call]:
    messages = [{"role": "user", "content": "Judge."}]
    return [
        Call(
            Key(f"i{number}", "sha", "print", 0),
            "judge@stub",
            lambda: messages,
            lambda text: ParsedReply(1.0),
        )
        for number in range(count)
    ]


def test_the_first_requests_are_out_before_the_last_are_made() -> None:
    begun: list[str] = []
    out_when_the_first_got_its_turn: list[int] = []

    async def work(call: Call) -> None:
        begun.append(call.key[0])
        await asyncio.sleep(0)  # where a request would be handed to the system
        if call.key[0] == "i0":
            out_when_the_first_got_its_turn.append(len(begun))

    async def main() -> None:
        scheduler = Scheduler(calls(300), work, limiter=Limiter(256, total=300), tick=lambda: None)
        await scheduler.run()

    asyncio.run(main())
    assert len(begun) == 300
    assert out_when_the_first_got_its_turn[0] < 64


class ClockThatPassesTheEnd:
    """The loop, with a pause that ends between a refusal of a place and the next look at the clock."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, end: float) -> None:
        self._loop, self._times = loop, iter((end - 1.0, end + 1.0))

    def time(self) -> float:
        return next(self._times, self._loop.time() + 10.0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


def test_a_pause_that_ends_while_a_call_is_queued_holds_nobody_for_ever() -> None:
    async def place() -> int:
        loop = asyncio.get_running_loop()
        limiter = Limiter()
        limiter.pause(loop.time() + 0.01)
        slots = CallSlots(limiter)
        slots._loop = ClockThatPassesTheEnd(loop, end=limiter.paused_until)  # type: ignore[assignment]
        return await asyncio.wait_for(slots.take(first=True), 2.0)

    assert asyncio.run(place()) == 0
