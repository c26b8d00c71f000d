"""One call, retries included, for judges and optimisers: stored replies, a slot, money, the wire.

A result's `cost_usd` is what replies are known to have cost, summed over attempts. An attempt that may be on
the bill unseen (a timeout, a lost connection) is booked at its worst case on the budget, so that it holds,
and not on the result.

Whether a model's server takes a schema of the reply is asked once in a process. With `structured = "auto"`
the first call goes out with the schema, and those behind it wait for its answer, a second at most. A server
that refuses it is asked again without one, within the same call: any 400 or 422 counts while no reply to the
schema has come, and so does another error that names the parameter. It is taken for a refusal only where the
reply without a schema comes, so that a faulty text turns nothing off.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from judgecal.engine.budget import Bill, BudgetGate, with_bill, worst_cost_usd
from judgecal.engine.cache import ReplyCache, cache_key
from judgecal.engine.calls import CallFailed, Message, Reply, ReplySchema, clean_reply
from judgecal.engine.scheduler import CallSlots
from judgecal.engine.transport import Transport
from judgecal.engine.transport.redaction import redacted, redacted_reply, secrets_of, sent_secrets
from judgecal.models import ModelSpec
from judgecal.records import Failure

_FIRST_REPLY_S = 1.0  # a refusal comes before a word is written; who has not refused by then is writing
_PARAMETER = re.compile(
    r"response.?(format|schema|mime.?type|json)|json.?(schema|object)"
    r"|output.?(config|format)|structured output",
    re.IGNORECASE,
)

takes_schema: dict[tuple[str, ...], bool] = {}
"""Whether servers have taken a schema in this process, by model (id, address, way) and the schema's key."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How calls are made.

    One call takes at most `attempts` timeouts and `attempts - 1` of the longest waits, its turns in the queue
    aside.

    Attributes:
        first_wait_s, longest_wait_s: the bounds of the exponential back-off, drawn with full jitter.
    """

    attempts: int = 5  # tries of one call at most
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    seed: int = 0  # of the jitter

    def granted(self, failed: CallFailed) -> float:
        """Seconds that the provider asked for, as far as they are granted."""
        return min(failed.retry_after or 0.0, self.longest_wait_s)

    def wait(self, attempts: int, failed: CallFailed, rng: random.Random) -> float | None:
        """From a number of attempts, a CallFailed and a Random, return seconds to wait; None: no more.

        Full jitter over an exponential bound; never sooner than the provider asked for.
        """
        if not failed.retry or attempts >= self.attempts:
            return None
        bound = min(self.longest_wait_s, self.first_wait_s * 2 ** (attempts - 1))
        return max(rng.uniform(0.0, bound), self.granted(failed))


@dataclass(slots=True)
class CallResult:
    """What came of one call: a `reply`, or a `failure` (kind `budget` where no attempt could be paid)."""

    reply: Reply | None = None
    failure: Failure | None = None
    attempts: int = 0  # tries that were made; 0 for a stored reply
    latency_s: float | None = None  # of the attempt that was answered
    cost_usd: float | None = 0.0  # of the reply; None where that is not known
    cached: bool = False  # the reply was stored, or came for the same request in flight
    replied_at: float | None = None  # when a stored reply was given, in seconds since 1970


class CallRunner:
    """Makes the calls of one model. Made and used in one running event loop.

    Args:
        slots: of calls in flight, which runners of one model may share.
        gate: to the money that may be spent, which runners may share.
        cache: stored replies to take and to add to, or None.
    """

    def __init__(
        self,
        spec: ModelSpec,
        transport: Transport,
        *,
        slots: CallSlots,
        gate: BudgetGate,
        policy: Policy,
        cache: ReplyCache | None = None,
    ) -> None:
        self.transport = transport
        self._spec = spec
        self._slots = slots
        self._gate = gate
        self._policy = policy
        self._cache = cache
        self._secrets = () if spec.embedded else secrets_of(spec)
        self._sent_secrets = () if spec.embedded else sent_secrets(spec)
        self._rng = random.Random(policy.seed)
        self._first_replies: dict[tuple[str, ...], asyncio.Event] = {}  # to a schema that is new
        self._flights: dict[str, asyncio.Future[Reply | None]] = {}
        self._loop = asyncio.get_running_loop()

    async def make(
        self,
        messages: Sequence[Message],
        repeat: int,
        schema: ReplySchema | None = None,
        *,
        usable: Callable[[Reply], bool],
        stored_as: Callable[[Reply], Reply] = lambda reply: reply,
    ) -> CallResult:
        """Return the CallResult of messages and a repeat (number); a function `usable` tells if a Reply fits.

        Args:
            usable: whether a reply says what is asked for; one that does not is given to this caller alone.
            stored_as: what is stored of a reply.

        Raises:
            AuthError: the provider refused the key.
        """
        if self._spec.embedded:  # a pure function here: nothing is gained by sharing
            return await self._call(messages, schema)
        key = cache_key(self._spec, messages, repeat, schema)
        while (flight := self._flights.get(key)) is not None:
            with self._slots.parked():
                reply = await asyncio.shield(flight)
            if reply is not None and usable(reply):
                return CallResult(reply, cached=True)
        stored = self._cache.get(key) if self._cache else None
        if stored is not None and usable(stored[0]):
            return CallResult(stored[0], cached=True, replied_at=stored[1])
        flight = self._flights[key] = self._loop.create_future()
        result = CallResult()
        try:
            result = await self._call(messages, schema)
        finally:
            del self._flights[key]
            flight.set_result(result.reply)
        if self._cache and result.reply and usable(result.reply):
            self._cache.put(key, stored_as(result.reply))
        return result

    async def _call(self, messages: Sequence[Message], schema: ReplySchema | None) -> CallResult:
        """Attempts until one ends the call; one whose schema is refused is followed by the next at once."""
        spec, sent, key, first = self._spec, schema, tuple[str, ...](), None
        if schema is not None and spec.structured == "auto":
            key = (spec.id, spec.address, spec.way, schema.key)
            if key not in takes_schema and key not in self._first_replies:
                first = self._first_replies[key] = asyncio.Event()
            elif key not in takes_schema:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._first_replies[key].wait(), _FIRST_REPLY_S)
            sent = schema if takes_schema.get(key, True) else None
        result = CallResult()
        worst = 0.0 if self._gate.budget.limit_usd is None else worst_cost_usd(spec, messages, sent)
        try:
            while True:
                began = await self._slots.take(first=not result.attempts)
                try:
                    wait = await self._attempt(messages, sent, result, worst=worst, began=began)
                finally:
                    self._slots.give_back()
                if key and result.reply is not None:
                    takes_schema[key] = sent is not None or takes_schema.get(key, False)
                elif key and sent and key not in takes_schema and _may_refuse_schema(result.failure):
                    sent = None
                    continue
                if first is not None:
                    first.set()
                if wait is None:
                    return result
                with self._slots.parked():
                    await asyncio.sleep(wait)
        finally:
            if first is not None:
                first.set()

    async def _attempt(
        self,
        messages: Sequence[Message],
        schema: ReplySchema | None,
        result: CallResult,
        *,
        worst: float,
        began: int,
    ) -> float | None:
        """One try, written into the result; the seconds before the next, or None where the call has ended."""
        refusal = await self._gate.take(self._spec.alias, worst)
        if refusal is not None:
            result.failure = Failure("budget", refusal)
            return None
        result.attempts += 1
        bill: Bill | None = None
        limiter = self._slots.limiter
        unseen = True  # also where the attempt is dropped in mid-air: the provider may bill it all the same
        try:
            start = self._loop.time()
            answer = await self.transport.send(messages, schema)
            answer = clean_reply(redacted_reply(answer, self._secrets, sent=self._sent_secrets))
            reply, bill = with_bill(self._spec, messages, answer)
            took = self._loop.time() - start
            limiter.succeeded(took)
        except CallFailed as failed:
            unseen = failed.billed
            if failed.overloaded:
                limiter.refused(began)
            if pause_s := self._policy.granted(failed):
                limiter.pause(self._loop.time() + pause_s)
            result.failure = Failure(failed.kind, redacted(str(failed), self._secrets))
            return self._policy.wait(result.attempts, failed, self._rng)
        finally:
            self._gate.settle(self._spec.alias, worst, bill, unseen=unseen)
        result.reply, result.failure, result.cost_usd = reply, None, bill.usd
        result.latency_s = took if reply.latency_s is None else reply.latency_s
        return None


def _may_refuse_schema(failure: Failure | None) -> bool:
    """Whether a Failure may be of the schema: some Python servers answer 500 to what they do not know."""
    if failure is None:
        return False
    named = failure.kind == "server" and _PARAMETER.search(failure.message)
    return failure.kind == "refused" or bool(named)
