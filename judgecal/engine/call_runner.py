"""One call, retries included, for judges and optimisers alike: stored replies, a place in flight, money, the
wire.

What an outcome's `cost_usd` says is what replies are known to have cost, summed over attempts. An attempt
that may be on the bill unseen (a timeout, a lost connection) is booked at its worst case on the budget, so
that it holds, and not on the outcome.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from judgecal.engine.budget import Bill, Purse, billed, worst_cost_usd
from judgecal.engine.cache import ReplyCache, RequestKeys, cache_folder
from judgecal.engine.calls import CallFailed, Message, Reply
from judgecal.engine.limits import Landed
from judgecal.engine.replies import admitted
from judgecal.engine.reply_forms import Asking, ReplyForms
from judgecal.engine.reply_schema import ReplySchema
from judgecal.engine.scheduler import Places
from judgecal.engine.transport import Transport
from judgecal.engine.transport.redaction import redacted, redacted_reply, secrets_of, sent_secrets
from judgecal.models import ModelSpec
from judgecal.records import Failure

_PATIENCE_S = 5.0  # beyond the model's timeout, for a transport whose own clock has failed


@dataclass(frozen=True, slots=True)
class Policy:
    """How calls are made.

    One call takes at most `attempts` timeouts and `attempts - 1` of the longest waits, its turns in the queue
    aside.

    Attributes:
        attempts: tries of one call at most.
        first_wait_s, longest_wait_s: the bounds of the exponential back-off, drawn with full jitter.
        seed: of the jitter.
    """

    attempts: int = 5
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    seed: int = 0

    def granted(self, failed: CallFailed) -> float:
        """Seconds that the provider asked for, as far as they are granted."""
        return min(failed.retry_after or 0.0, self.longest_wait_s)

    def wait(self, attempts: int, failed: CallFailed, rng: random.Random) -> float | None:
        """Seconds before the next try after `attempts`; None where there is none.

        Full jitter over an exponential bound; never sooner than the provider asked for.
        """
        if not failed.retry or attempts >= self.attempts:
            return None
        bound = min(self.longest_wait_s, self.first_wait_s * 2 ** (attempts - 1))
        return max(rng.uniform(0.0, bound), self.granted(failed))


@dataclass(slots=True)
class Outcome:
    """What came of one call: a `reply`, or a `failure` (kind `budget` where no attempt could be paid).

    Attributes:
        attempts: tries that were made; 0 for a stored reply.
        latency_s: of the attempt that was answered.
        cost_usd: what the reply cost; None where that is not known.
        cached: the reply was stored, or came for the same request in flight.
        replied_at: when a stored reply was given, in seconds since 1970; else None.
    """

    reply: Reply | None = None
    failure: Failure | None = None
    attempts: int = 0
    latency_s: float | None = None
    cost_usd: float | None = 0.0
    cached: bool = False
    replied_at: float | None = None


def stored_outcome(cache: ReplyCache | None, key: str, usable: Callable[[Reply], bool]) -> Outcome | None:
    """The outcome of the reply stored under a key; None where there is none, or none that says what is asked
    for."""
    stored = cache.get(key) if cache else None
    if stored is None or not usable(stored[0]):
        return None
    return Outcome(stored[0], cached=True, replied_at=stored[1])


@dataclass(frozen=True, slots=True)
class _Sent:
    """What an attempt sends."""

    messages: Sequence[Message]
    repeat: int
    schema: ReplySchema | None


class CallRunner:
    """Makes the calls of one model. Made and used in one running event loop.

    Args:
        places: the places in flight, which runners of one model may share.
        purse: money that may be spent, which runners may share.
        cache: stored replies to take and to add to, or None.
        shared: whether the same request in flight is one call.
    """

    def __init__(
        self,
        spec: ModelSpec,
        transport: Transport,
        *,
        places: Places,
        purse: Purse,
        policy: Policy,
        cache: ReplyCache | None = None,
        shared: bool = True,
    ) -> None:
        self.transport = transport
        self._spec = spec
        self._places = places
        self._purse = purse
        self._policy = policy
        self._cache = cache
        self._shared = shared
        self._secrets = () if spec.embedded else secrets_of(spec)
        self._sent_secrets = () if spec.embedded else sent_secrets(spec)
        self._rng = random.Random(policy.seed)
        self._key_of = RequestKeys(spec)
        self._forms: ReplyForms | None = None
        self._flights: dict[str, asyncio.Future[Reply | None]] = {}
        self._loop = asyncio.get_running_loop()

    async def make(
        self,
        messages: Sequence[Message],
        repeat: int,
        schema: ReplySchema | None = None,
        *,
        usable: Callable[[Reply], bool],
    ) -> Outcome:
        """One call. A server that refuses the `schema` is asked without it, which is an attempt more.

        Args:
            usable: whether a reply says what is asked for; one that does not is given to this caller alone.

        Raises:
            AuthError: the provider refused the key.
        """
        if not self._shared:
            return await self._call(messages, repeat, schema)
        key = self._key_of(messages, repeat, schema)
        while (flight := self._flights.get(key)) is not None:
            with self._places.aside():
                reply = await asyncio.shield(flight)
            if reply is not None and usable(reply):
                return Outcome(reply, cached=True)
        if stored := stored_outcome(self._cache, key, usable):
            return stored
        flight = self._flights[key] = self._loop.create_future()
        outcome = Outcome()
        try:
            outcome = await self._call(messages, repeat, schema)
        finally:
            del self._flights[key]
            flight.set_result(outcome.reply)
        if self._cache and outcome.reply and usable(outcome.reply):
            self._cache.put(key, outcome.reply)
        return outcome

    async def _call(self, messages: Sequence[Message], repeat: int, schema: ReplySchema | None) -> Outcome:
        """Attempts until one ends the call."""
        if schema is None:
            return await self._attempts(messages, repeat, None)
        if self._forms is None:
            self._forms = ReplyForms(self._spec, cache_folder())
        asking = await self._forms.asking(schema)
        try:
            return await self._attempts(messages, repeat, asking)
        finally:
            asking.end()

    async def _attempts(self, messages: Sequence[Message], repeat: int, asking: Asking | None) -> Outcome:
        """Attempts in the form that is asked in; one that the server refuses is followed by the next at
        once."""
        outcome = Outcome()
        sent = _Sent(messages, repeat, asking.shape if asking else None)
        limited = self._purse.budget.limit_usd is not None
        worst = worst_cost_usd(self._spec, messages, sent.schema) if limited else 0.0
        while True:
            began = await self._places.take(first=not outcome.attempts)
            try:
                wait = await self._attempt(sent, outcome, worst=worst, began=began)
            finally:
                self._places.give_back()
            if asking and asking.again(outcome.reply, outcome.failure):
                sent = _Sent(messages, repeat, asking.shape)
                continue
            if wait is None:
                return outcome
            with self._places.aside():
                await asyncio.sleep(wait)

    async def _attempt(self, sent: _Sent, outcome: Outcome, *, worst: float, began: int) -> float | None:
        """One try; the seconds to wait before the next, or None where the call has ended."""
        hold = await self._purse.take(self._spec.alias, worst)
        if hold.refusal is not None:
            outcome.failure = Failure("budget", hold.refusal)
            return None
        outcome.attempts += 1
        bill: Bill | None = None
        landed = Landed()
        unseen = True  # also where the attempt is dropped in mid-air: the provider may bill it all the same
        try:
            start = self._loop.time()
            answer = admitted(self._redacted(await self._reply(sent)))
            reply, bill = billed(self._spec, sent.messages, answer)
            took = self._loop.time() - start
            landed = Landed(took)
        except CallFailed as failed:
            unseen = failed.billed
            landed = Landed(overloaded=failed.overloaded, pause_s=self._policy.granted(failed))
            outcome.failure = Failure(failed.kind, redacted(str(failed), self._secrets))
            return self._policy.wait(outcome.attempts, failed, self._rng)
        finally:
            self._places.limiter.landed(landed, began=began, now=self._loop.time())
            self._purse.settle(hold, bill, unseen=unseen, landed=landed)
        outcome.reply, outcome.failure, outcome.cost_usd = reply, None, bill.usd
        outcome.latency_s = took if reply.latency_s is None else reply.latency_s
        return None

    def _redacted(self, reply: Reply) -> Reply:
        return redacted_reply(reply, self._secrets, sent=self._sent_secrets)

    async def _reply(self, sent: _Sent) -> Reply:
        """`Transport.send`, ended by our own clock where the transport does not keep time."""
        send = self.transport.send
        if self.transport.keeps_time:
            return await send(sent.messages, repeat=sent.repeat, schema=sent.schema)
        try:
            async with asyncio.timeout(self._spec.timeout + _PATIENCE_S):
                return await send(sent.messages, repeat=sent.repeat, schema=sent.schema)
        except TimeoutError:
            raise CallFailed("timeout", f"no reply within {self._spec.timeout:g} s", retry=True) from None
