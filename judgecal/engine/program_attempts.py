"""One call of an optimiser, retries included: limits, budget and the wire."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from judgecal.engine.attempts import Policy, send_in_time
from judgecal.engine.budget import Budget, Purse, worst_cost_usd
from judgecal.engine.cache import cache_key
from judgecal.engine.calls import CallFailed, Message, Reply
from judgecal.engine.limits import Limiter
from judgecal.engine.transport import Transport, open_transport
from judgecal.errors import BudgetError, JudgecalError
from judgecal.models import ModelSpec
from judgecal.records import Failure

__all__ = ["Attempts", "MadeCall", "ProgramCall", "width"]

_DEFAULT_CONCURRENCY = 16
# Failures that say something of the text, not of the provider: a program's own, so the optimiser goes on.
_OWN_FAULT = ("refused", "context_length", "parse", "out_of_range")


def width(spec: ModelSpec) -> int:
    """Calls of one model that an optimiser has in flight at most, and so the threads that it needs."""
    return 1 if spec.embedded else spec.max_concurrency or _DEFAULT_CONCURRENCY


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """One call that an optimiser asks for.

    Attributes:
        spec: the model, with the sampling settings of this call.
        messages: the chat messages.
        purpose: `task` (the judge at work) or `reflection` (the model that writes instructions).
        repeat: tells samples of one prompt from each other; 0 where DSPy asks for none in particular.
    """

    spec: ModelSpec
    messages: Sequence[Message]
    purpose: str = "task"
    repeat: int = 0

    @property
    def key(self) -> str:
        """The key of this request, in the cache and in the record alike."""
        return cache_key(self.spec, self.messages, self.repeat)


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call with what came of it; the reply is empty where there was a `failure`."""

    call: ProgramCall
    reply: Reply
    attempts: int = 0
    cost_usd: float | None = 0.0
    cached: bool = False
    failure: Failure | None = None

    def check(self) -> None:
        """Refuse to go on without a reply for which no program can be blamed.

        Raises:
            JudgecalError: the provider gave none; says how often it was asked.
        """
        if self.failure is None or self.failure.kind in _OWN_FAULT:
            return
        tried = f"{self.attempts} attempts" if self.attempts > 1 else "one attempt"
        raise JudgecalError(
            f"model {self.call.spec.alias} ({self.call.spec.id}) gave no reply in {tried} ({self.failure.kind}: "
            f"{self.failure.message}), so the optimiser stops without a result; what it was answered is kept, and the "
            "same command goes on"
        )


class Attempts:
    """Makes calls in the running event loop.

    Args:
        budget: money that may be spent.
        policy: retries.
    """

    def __init__(self, budget: Budget, policy: Policy) -> None:
        self._purse = Purse(budget)
        self._policy = policy
        self._rng = random.Random(policy.seed)
        self._clock = asyncio.get_running_loop().time
        self._landed = asyncio.Event()
        self._transports: dict[ModelSpec, Transport] = {}
        self._limiters: dict[str, Limiter] = {}

    async def close(self) -> None:
        """Let go of connections."""
        for transport in self._transports.values():
            await transport.close()

    async def make(self, call: ProgramCall) -> MadeCall:
        """The call with its retries.

        Raises:
            AuthError: the provider refused the key.
            BudgetError: the call could overrun the budget.
        """
        for attempts in range(1, self._policy.attempts + 1):
            try:
                reply, cost = await self._attempt(call)
            except CallFailed as failed:
                wait = self._policy.wait(attempts, failed, self._rng)
                if wait is not None:
                    await asyncio.sleep(wait)
                    continue
                failure = Failure(failed.kind, str(failed))
                return MadeCall(call, Reply("", call.spec.id), attempts, failure=failure)
            break
        return MadeCall(call, reply, attempts, cost)

    async def _attempt(self, call: ProgramCall) -> tuple[Reply, float | None]:
        spec = call.spec
        limited = self._purse.budget.limit_usd is not None
        worst = worst_cost_usd(spec, call.messages) if limited else 0.0
        if not await self._purse.take(worst):
            raise BudgetError(_spent(self._purse.budget))
        booked = 0.0
        try:
            reply = await self._sent(call)
            cost = spec.cost_usd(reply.prompt_tokens, reply.completion_tokens)
            booked = worst if cost is None else cost
            return reply, cost
        except CallFailed as failed:
            booked = worst if failed.billed else 0.0
            raise
        except asyncio.CancelledError:
            booked = worst  # dropped in mid-air: the provider may bill it all the same
            raise
        finally:
            self._purse.settle(worst, booked)

    async def _sent(self, call: ProgramCall) -> Reply:
        """One attempt within the model's limits; what it met is told to the limiter."""
        limiter = self._limiters.setdefault(call.spec.alias, Limiter(width(call.spec)))
        began = await self._begin(limiter)
        start = time.perf_counter()
        try:
            reply = await self._in_time(call)
        except CallFailed as failed:
            if failed.overloaded:
                limiter.refused(began)
            limiter.pause(self._clock() + self._policy.asked(failed))
            raise
        finally:
            limiter.end()
            self._landed.set()
        limiter.succeeded(time.perf_counter() - start)
        return reply

    async def _in_time(self, call: ProgramCall) -> Reply:
        spec = call.spec
        if spec not in self._transports:
            self._transports[spec] = open_transport(spec)
        return await send_in_time(self._transports[spec], spec, call.messages, repeat=call.repeat)

    async def _begin(self, limiter: Limiter) -> int:
        while True:
            pause = limiter.paused_until - self._clock()
            if pause > 0.0:
                await asyncio.sleep(pause)
            elif limiter.in_flight < limiter.at_once:
                return limiter.begin()
            else:
                self._landed.clear()
                await self._landed.wait()


def _spent(budget: Budget) -> str:
    return (
        f"--budget-usd: the optimiser's next call could overrun {budget.limit_usd:g} USD, so it stops without a "
        "result; what it was answered is kept, and the same command with a larger budget goes on"
    )
