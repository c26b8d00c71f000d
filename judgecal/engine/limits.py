"""What bounds a run: how many calls may be in flight, and how much money they may spend.

The allowance grows while all goes well and is lowered where a provider says so; every outcome costs the same few
additions, whatever the number of calls. A budget is checked before each call with the worst case of those in flight,
so it is never overrun.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence

from judgecal.engine.calls import Message
from judgecal.errors import InputError
from judgecal.models import ModelSpec

_START = 8
_CEILING = 1024
_PER_SUCCESS = 3.0  # each call of a round trip adds three: the round trip quadruples
_SLOW_SHARE = 0.02  # after a first refusal: a fiftieth a round trip, or one where that is more
_QUEUEING = 3.0  # a reply that takes so many times longer than the first ones stands in a queue
_QUEUEING_S = 0.05  # under this much, more calls at once do no harm
# What a provider may put around a message beside its text.
_TOKENS_PER_MESSAGE = 8
_UNBOUNDED_REPLY = 8192  # only for a preview: a budget wants a bound that holds


class Limiter:
    """The allowance of one run.

    It starts at a stated number and never goes beyond it. Where none is stated it starts at 8 and quadruples every
    round trip, up to 1024. A reply that took much longer than the first ones did adds nothing: past that point more
    calls at once only wait on the server, and at last time out. The first refusal halves it; from then
    on it is lowered by half the share of refused calls and grows by a fiftieth a round trip, so that it settles
    where refusals are rare, and a server that refuses at random does not bring the run to a halt. It is lowered
    at most once a round trip: what was sent before it was lowered says nothing of the new allowance.

    Args:
        stated: the user's own bound; None lets it grow.
        total: calls to be made, where that is known.

    Attributes:
        allowance: calls that may be in flight; the whole part counts.
        in_flight: calls that are.
        paused_until: time on the run's clock before which no call may start.
    """

    def __init__(self, stated: int | None = None, *, total: int | None = None) -> None:
        bound = _CEILING if stated is None else stated
        self.ceiling = max(1, bound if total is None else min(bound, total))
        self.allowance = float(min(_START if stated is None else stated, self.ceiling))
        self.in_flight = 0
        self.paused_until = 0.0
        self._growing_fast = True
        self._refused = 0.0  # share of refusals over about the last round trip
        self._lowered = 0
        self._first_calls = max(1, int(self.allowance))
        self._timed = 0
        self._first_latency_s = 0.0  # mean of the first calls

    @property
    def at_once(self) -> int:
        """Calls that may be in flight now."""
        return int(self.allowance)

    def begin(self) -> int:
        """Count a call as in flight; what is given back goes into `refused`."""
        self.in_flight += 1
        return self._lowered

    def end(self) -> None:
        """Count a call as landed; after what is said of its outcome."""
        self.in_flight -= 1

    def succeeded(self, latency_s: float) -> None:
        """A reply came."""
        self._refused -= self._refused / max(_START, self.allowance)
        if self._timed < self._first_calls:
            self._timed += 1
            self._first_latency_s += (latency_s - self._first_latency_s) / self._timed
        queueing = latency_s > max(_QUEUEING * self._first_latency_s, _QUEUEING_S)
        if self.allowance < self.ceiling and not queueing:
            more = _PER_SUCCESS if self._growing_fast else max(_SLOW_SHARE, 1.0 / self.allowance)
            self.allowance = min(self.allowance + more, self.ceiling)

    def refused(self, began: int) -> None:
        """The provider was asked too much; `began` is what `begin` gave."""
        self._refused += (1.0 - self._refused) / max(_START, self.allowance)
        if began != self._lowered:
            return
        self._lowered += 1
        factor = 0.5 if self._growing_fast else 1.0 - self._refused / 2.0
        self._growing_fast = False
        self.allowance = max(1.0, self.allowance * factor)

    def pause(self, until: float) -> None:
        """Let no call start before a time on the run's clock."""
        self.paused_until = max(self.paused_until, until)


def expected_seconds(spec: ModelSpec, calls: int, *, latency_s: float | None) -> float | None:
    """About how long calls take where the provider keeps up: round trips, at the stated number or at a growing one.

    Without the latency of one call there is no telling.
    """
    if latency_s is None:
        return None
    if spec.embedded:
        return calls * latency_s  # one core's work; with workers it takes less
    at_once = spec.max_concurrency or _START
    trips = 0
    while calls > 0:
        trips += 1
        calls -= at_once
        at_once = spec.max_concurrency or min(_CEILING, round(at_once * (1.0 + _PER_SUCCESS)))
    return trips * latency_s


class Budget:
    """Money that calls may spend in one command; several runs and threads may share one.

    Args:
        limit_usd: the most that may be spent, or None for no limit.

    Attributes:
        spent_usd: what finished calls cost; an attempt that may be on the bill unseen counts at its worst.
    """

    def __init__(self, limit_usd: float | None) -> None:
        self.limit_usd = limit_usd
        self.spent_usd = 0.0
        self._held_usd = 0.0
        self._lock = threading.Lock()

    def hold(self, worst_usd: float) -> bool:
        """Set aside the worst cost of a call; False where that could overrun the limit."""
        with self._lock:
            if self.limit_usd is not None and self.spent_usd + self._held_usd + worst_usd > self.limit_usd + 1e-12:
                return False
            self._held_usd += worst_usd
            return True

    def fits(self, worst_usd: float) -> bool:
        """Whether a call would fit once every other call has given back what it does not need."""
        return self.limit_usd is None or self.spent_usd + worst_usd <= self.limit_usd + 1e-12

    def settle(self, worst_usd: float, cost_usd: float) -> None:
        """Give back what was set aside and book what the call cost."""
        with self._lock:
            self._held_usd = max(0.0, self._held_usd - worst_usd)
            self.spent_usd += cost_usd


class Purse:
    """A budget as one run's tasks draw on it: a call that does not fit yet waits for those in flight to land."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self, worst_usd: float) -> bool:
        """Set a call's worst cost aside; False where it could overrun the limit whatever the others cost."""
        if self.budget.limit_usd is None:
            return True
        turn = not self._waiting
        while not (turn and self.budget.hold(worst_usd)):
            if not (self._in_flight and self.budget.fits(worst_usd)):
                self._next()
                return False
            await self._landed(again=turn)
            turn = True
        self._in_flight += 1
        self._next()
        return True

    def settle(self, worst_usd: float, cost_usd: float) -> None:
        """Give back what was set aside, book what the call cost, and let the next in the queue try."""
        self.budget.settle(worst_usd, cost_usd)
        if self.budget.limit_usd is not None:
            self._in_flight -= 1
            self._next()

    async def _landed(self, *, again: bool) -> None:
        """Wait for one's turn; who has had it and found too little keeps the place in front."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._waiting.appendleft if again else self._waiting.append)(place)
        try:
            await place
        except asyncio.CancelledError:
            self._next()
            raise

    def _next(self) -> None:
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return


def worst_cost_usd(spec: ModelSpec, messages: Sequence[Message]) -> float:
    """An upper bound of one call's cost: a token is at least one byte, and the reply is as long as it may be."""
    size = sum(len(m["content"].encode("utf-8", "surrogatepass")) + _TOKENS_PER_MESSAGE for m in messages)
    return spec.cost_usd(size, spec.max_tokens or spec.reply_limit or _UNBOUNDED_REPLY) or 0.0


def require_prices(specs: Sequence[ModelSpec], limit_usd: float | None) -> None:
    """Refuse a budget that cannot be held: a price is not known, or a reply has no longest length.

    Raises:
        InputError: names each such model and what to set.
    """
    if limit_usd is None:
        return
    if limit_usd <= 0:
        raise InputError(f"--budget-usd must be above 0, found {limit_usd:g}")
    unpriced = sorted({spec.alias for spec in specs if not spec.priced})
    problems = []
    if unpriced:
        problems.append(
            f"--budget-usd: the price of {', '.join(unpriced)} is not known: set input_usd_per_1m and "
            "output_usd_per_1m under [models.NAME] in judgecal.toml"
        )
    endless = sorted({spec.alias for spec in specs if _paid(spec) and not (spec.max_tokens or spec.reply_limit)})
    if endless:
        problems.append(
            f"--budget-usd: a reply of {', '.join(endless)} has no known longest length, so no bound on its cost: set "
            "max_tokens under [models.NAME] in judgecal.toml"
        )
    if problems:
        raise InputError(problems)


def _paid(spec: ModelSpec) -> bool:
    return spec.priced and bool(spec.input_usd_per_1m or spec.output_usd_per_1m)
