"""Money and places in flight that several processes share: what one of them holds, and one that is lost."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from judgecal.bulk.ray_engine import CallAsked, CallEnded, SharedBudget, SharedLimits
from judgecal.engine import Budget, CallRunner, CallSlots, Message, Policy, Reply
from judgecal.engine.budget import Bill
from judgecal.engine.calls import CallFailed
from judgecal.engine.scheduler import CallEnd, Limiter
from judgecal.models import ModelSpec

SPEC = ModelSpec("m", "openai/m", input_usd_per_1m=1.0, output_usd_per_1m=1.0, max_tokens=1000)


class InProcess:
    """A link to limits in the same process."""

    def __init__(self, limits: SharedLimits, process: str) -> None:
        self.limits, self.process = limits, process

    async def begin(self, asked: CallAsked) -> str | None:
        await asyncio.sleep(0)
        return await self.limits.begin(self.process, asked)

    def end(self, ended: Sequence[CallEnded]) -> None:
        self.limits.end(self.process, ended)


class Server:
    """Answers after a moment, and knows how many calls were with it at once."""

    keeps_time = True

    def __init__(self, *, overloaded_from: int = 10**9) -> None:
        self.at_once = self.most = self.answered = 0
        self.overloaded_from = overloaded_from

    async def send(self, messages: Sequence[Message], *, repeat: int, schema: Any = None) -> Reply:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await asyncio.sleep(0.002)
            if self.at_once > self.overloaded_from:
                raise CallFailed("rate_limit", "slow down", retry=True, overloaded=True, billed=False)
            self.answered += 1
            return Reply("90", "m", prompt_tokens=10, completion_tokens=1000)
        finally:
            self.at_once -= 1

    async def close(self) -> None:
        """Nothing is held open."""


async def two_processes(limits: SharedLimits, server: Server, spec: ModelSpec, calls: int) -> list[Any]:
    """Two processes, each with a runner and a gate of its own, that make so many calls each."""
    outcomes = []
    for process in "ab":
        budget = SharedBudget(InProcess(limits, process), limits.budget.limit_usd)
        slots = CallSlots(Limiter(100))
        runner = CallRunner(
            spec, server, slots=slots, gate=budget.gate(spec), policy=Policy(first_wait_s=0.001)
        )
        outcomes += [
            runner.make([{"role": "user", "content": f"{process}{n}"}], 0, usable=bool) for n in range(calls)
        ]
    return await asyncio.gather(*outcomes)


def test_the_budget_holds_over_two_processes() -> None:
    async def run() -> None:
        budget, server = Budget(0.02), Server()
        found = await two_processes(SharedLimits(lambda: budget), server, SPEC, 30)
        await asyncio.sleep(0)
        paid = [one for one in found if one.reply]
        assert 15 <= len(paid) <= 19 and len(paid) == server.answered
        assert {one.failure.kind for one in found if not one.reply} == {"budget"}
        assert (
            budget.spent_usd == pytest.approx(sum(one.cost_usd for one in paid)) and budget.spent_usd <= 0.02
        )
        assert budget.held_usd == 0.0 and budget.refused == 60 - len(paid)

    asyncio.run(run())


def test_the_users_own_bound_and_refusals_hold_over_two_processes() -> None:
    async def run(spec: ModelSpec, server: Server) -> None:
        found = await two_processes(SharedLimits(lambda: Budget(None)), server, spec, 40)
        assert all(one.reply for one in found) and server.answered == 80

    asyncio.run(run(dataclasses.replace(SPEC, max_concurrency=3), bounded := Server()))
    assert bounded.most == 3
    asyncio.run(run(SPEC, refusing := Server(overloaded_from=6)))
    assert refusing.most <= 32  # it had begun to grow, and was lowered


def test_what_a_lost_process_had_in_flight_counts_at_its_worst() -> None:
    async def run() -> None:
        budget = Budget(1.0)
        limits = SharedLimits(lambda: budget)
        first = [CallAsked(n, "m", 0.001, 2) for n in range(3)]
        assert [await limits.begin("a", one) for one in first[:2]] == [None, None]
        waiting = asyncio.ensure_future(limits.begin("a", first[2]))
        other = asyncio.ensure_future(limits.begin("b", CallAsked(0, "m", 0.001, 2)))
        await asyncio.sleep(0.01)
        assert not waiting.done() and not other.done()
        limits.end("a", [CallEnded(0, Bill(0.0002), False, CallEnd(0.01))])
        assert limits.lost("a") == 1 + waiting.done()
        assert await asyncio.wait_for(other, 1.0) is None
        assert await asyncio.wait_for(waiting, 1.0) is None
        limits.end("a", [CallEnded(1, Bill(0.5), False, CallEnd(0.01))])  # told too late: it was counted
        limits.end("b", [CallEnded(0, Bill(0.0), False, CallEnd(0.01))])
        assert (budget.spent_usd, budget.unseen_usd) == (pytest.approx(0.0012), pytest.approx(0.001))
        assert budget.held_usd == 0.0
        assert await limits.begin("b", CallAsked(1, "m", 0.001, 2)) is None  # the slots are free again

    asyncio.run(run())
