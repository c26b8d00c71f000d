"""One judgement, retries included: the store of replies, the budget, the wire, and the row that comes of it.

What a row's `cost_usd` says is what replies are known to have cost, summed over attempts. An attempt that may be on
the bill unseen (a timeout, a lost connection) is booked at its worst case on the budget, so that it holds, and not on
the row.
"""

from __future__ import annotations

import asyncio
import functools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from judgecal.engine.budget import Budget, Purse, worst_cost_usd
from judgecal.engine.cache import ReplyCache, RequestKeys
from judgecal.engine.calls import Call, CallFailed, Message, Reading, Reply
from judgecal.engine.crew import Crew
from judgecal.engine.progress import Progress
from judgecal.engine.transport import Transport
from judgecal.errors import JudgecalError
from judgecal.models import ModelSpec
from judgecal.records import Failure, Judgement

__all__ = ["Desk", "Policy", "send_in_time"]

_LOST_IN_A_ROW = 64  # calls, retries and all, without a connection: the server is not there
_PATIENCE_S = 5.0  # beyond the model's timeout, for a transport whose own clock has failed


@dataclass(frozen=True, slots=True)
class Policy:
    """How calls are made.

    One call takes at most `attempts` timeouts and `attempts - 1` of the longest waits, its turns in the queue aside.

    Attributes:
        attempts: tries of one call at most.
        first_wait_s, longest_wait_s: the bounds of the exponential back-off, drawn with full jitter.
        seed: of the jitter.
    """

    attempts: int = 5
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    seed: int = 0

    def asked(self, failed: CallFailed) -> float:
        """Seconds that the provider asked for, as far as they are granted."""
        return min(failed.retry_after or 0.0, self.longest_wait_s)

    def wait(self, attempts: int, failed: CallFailed, rng: random.Random) -> float | None:
        """Seconds before the next try after `attempts`; None where there is none.

        Full jitter over an exponential bound; never sooner than the provider asked for.
        """
        if not failed.retry or attempts >= self.attempts:
            return None
        bound = min(self.longest_wait_s, self.first_wait_s * 2 ** (attempts - 1))
        return max(rng.uniform(0.0, bound), self.asked(failed))


async def send_in_time(
    transport: Transport, spec: ModelSpec, messages: Sequence[Message], *, repeat: int
) -> Reply:
    """One attempt, ended by our own clock where the transport does not keep time.

    Raises:
        CallFailed: there is no reply.
        AuthError: the provider refused the key.
    """
    if transport.keeps_time:
        return await transport.send(messages, repeat=repeat)
    try:
        async with asyncio.timeout(spec.timeout + _PATIENCE_S):
            return await transport.send(messages, repeat=repeat)
    except TimeoutError:
        raise CallFailed("timeout", f"no reply within {spec.timeout:g} s", retry=True) from None


@dataclass(slots=True)
class _Tally:
    """What the attempts of one call came to."""

    attempts: int = 0
    latency_s: float | None = None
    cost_usd: float | None = 0.0
    reply: Reply | None = None
    cached: bool = False
    reading: Reading = field(default_factory=lambda: Reading(None))


class Desk:
    """Where the calls of one run are done.

    Args:
        spec: the model.
        transport: the way to it.
        policy: retries.
        budget: money that may be spent.
        cache: stored replies, or None.
        progress: counts what is done, or None.
        record: takes each row.

    Attributes:
        crew: the tasks, which share the places in flight; set before the first call.
    """

    def __init__(
        self,
        spec: ModelSpec,
        transport: Transport,
        *,
        policy: Policy,
        budget: Budget,
        cache: ReplyCache | None,
        progress: Progress | None,
        record: Callable[[Judgement], None],
    ) -> None:
        self.crew: Crew
        self._spec = spec
        self._transport = transport
        self._policy = policy
        self._purse = Purse(budget)
        self._cache = cache
        self._progress = progress
        self._record = record
        self._lost = 0
        self._rng = random.Random(policy.seed)
        self._key_of = RequestKeys(spec)
        self._flights: dict[str, asyncio.Future[Reply | None]] = {}
        self._clock = asyncio.get_running_loop().time

    async def do(self, call: Call) -> None:
        """Have one judgement and record it."""
        messages = call.messages()
        tally = _Tally()
        if self._spec.embedded:
            await self._try(call, messages, tally)  # a pure function here: nothing is gained by sharing
        else:
            await self._share(call, messages, tally)
        row = _row(call, tally)
        self._record(row)
        if self._progress:
            self._progress.add(scored=row.verdict is not None, cost_usd=row.cost_usd)
        self._stop_if_gone(row)

    def tick(self) -> None:
        """What is done twice a second, also while no reply comes."""
        if self._cache:
            self._cache.flush()
        if self._progress:
            self._progress.at_once = self.crew.limiter.at_once
            self._progress.show()

    def _stop_if_gone(self, row: Judgement) -> None:
        """Where call after call finds no server, the rest would only wait to say the same."""
        if row.error is None or row.error.kind != "transport":
            self._lost = 0
            return
        self._lost += 1
        if self._lost >= _LOST_IN_A_ROW:
            raise JudgecalError(
                f"model {self._spec.alias} ({self._spec.id}) cannot be reached: the last {self._lost} calls ended with "
                f"{row.error.message!r}; what was judged so far is kept, the same command resumes"
            )

    async def _share(self, call: Call, messages: Sequence[Message], tally: _Tally) -> None:
        """Take the reply from the store or from the same request in flight, else call for it."""
        key = self._key_of(messages, call.key.repeat)
        while (flight := self._flights.get(key)) is not None:
            async with self.crew.aside():
                reply = await asyncio.shield(flight)
            if reply is not None:
                return self._taken(call, tally, reply)
        if self._cache and (stored := self._cache.get(key)):
            return self._taken(call, tally, stored)
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        try:
            await self._try(call, messages, tally)
        finally:
            del self._flights[key]
            flight.set_result(tally.reply)
        if self._cache and tally.reply:
            self._cache.put(key, tally.reply)
        return None

    def _taken(self, call: Call, tally: _Tally, reply: Reply) -> None:
        tally.reply, tally.cached, tally.reading = reply, True, _read(call, reply)

    async def _try(self, call: Call, messages: Sequence[Message], tally: _Tally) -> None:
        """Attempts until one ends the call."""
        worst = 0.0 if self._purse.budget.limit_usd is None else worst_cost_usd(self._spec, messages)
        while True:
            began = await self.crew.start(first=not tally.attempts)
            try:
                wait = await self._attempt(call, messages, tally, worst=worst, began=began)
            finally:
                self.crew.end()
            if wait is None:
                return
            async with self.crew.aside():
                await asyncio.sleep(wait)

    async def _attempt(
        self, call: Call, messages: Sequence[Message], tally: _Tally, *, worst: float, began: int
    ) -> float | None:
        """One try; the seconds to wait before the next, or None where the call has ended."""
        if not await self._purse.take(worst):
            limit = self._purse.budget.limit_usd
            tally.reading = Reading(
                None, failure=Failure("budget", f"the next call could overrun {limit:g} USD")
            )
            return None
        tally.attempts += 1
        booked = worst
        try:
            start = self._clock()
            tally.reply = reply = await send_in_time(
                self._transport, self._spec, messages, repeat=call.key.repeat
            )
            took = self._clock() - start
            tally.latency_s = took if reply.latency_s is None else reply.latency_s
            self.crew.limiter.succeeded(took)
            cost = self._spec.cost_usd(reply.prompt_tokens, reply.completion_tokens)
            booked = worst if cost is None else cost
            tally.cost_usd = None if cost is None else (tally.cost_usd or 0.0) + cost
        except CallFailed as failed:
            booked = worst if failed.billed else 0.0
            return self._failed(failed, tally, began)
        finally:
            self._purse.settle(worst, booked)
        tally.reading = _read(call, reply)
        return None

    def _failed(self, failed: CallFailed, tally: _Tally, began: int) -> float | None:
        """Slow the run down where that can help; the seconds until the next try, None where there is none."""
        limiter = self.crew.limiter
        asked = self._policy.asked(failed)
        if failed.overloaded:
            limiter.refused(began)
        if asked:
            limiter.pause(self._clock() + asked)
        tally.reading = Reading(None, failure=Failure(failed.kind, str(failed)))
        return self._policy.wait(tally.attempts, failed, self._rng)


def _read(call: Call, reply: Reply) -> Reading:
    if reply.stopped == "content_filter":
        return Reading(None, failure=Failure("refused", "the provider's filter withheld the reply"))
    try:
        reading = call.read(reply.text)
    except RecursionError:
        return Reading(None, failure=Failure("parse", "the reply is nested too deep to be read"))
    if reading.failure and reply.stopped == "length":
        message = f"{reading.failure.message} (the reply was cut at max_tokens)"
        return Reading(None, reading.reasoning, Failure(reading.failure.kind, message))
    return reading


def _row(call: Call, tally: _Tally) -> Judgement:
    item_id, item_sha, fingerprint, repeat, unit = call.key
    reply, reading = tally.reply, tally.reading
    return Judgement(
        item_id=item_id,
        item_sha=item_sha,
        judge=call.judge,
        judge_fingerprint=fingerprint,
        repeat=repeat,
        verdict=reading.verdict,
        reasoning=reading.reasoning,
        raw_reply=reply.text if reply and reading.verdict is None else None,
        error=reading.failure,
        attempts=tally.attempts,
        latency_s=None if tally.latency_s is None else round(tally.latency_s, 6),
        prompt_tokens=reply.prompt_tokens if reply else None,
        completion_tokens=reply.completion_tokens if reply else None,
        cost_usd=tally.cost_usd,
        model_id=reply.model_id if reply else None,
        cached=tally.cached,
        at=_now(int(time.time())),
        unit=unit,
    )


@functools.lru_cache(maxsize=1)
def _now(second: int) -> str:
    """UTC in ISO 8601; rows of one second share one text."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(second))
