"""A budget in money, checked before each call with the worst case of those in flight, so never overrun."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence

from judgecal.engine.calls import Message
from judgecal.errors import InputError
from judgecal.models import ModelSpec

__all__ = ["Budget", "Purse", "require_prices", "worst_cost_usd"]

# What a provider may put around a message beside its text.
_TOKENS_PER_MESSAGE = 8
_UNBOUNDED_REPLY = 8192  # only for a preview: a budget wants a bound that holds


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
            if (
                self.limit_usd is not None
                and self.spent_usd + self._held_usd + worst_usd > self.limit_usd + 1e-12
            ):
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
    """A budget as one run's tasks draw on it: a call that does not fit yet waits for those in flight to land.

    Args:
        budget: may be shared with other runs.
    """

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
    endless = sorted(
        {spec.alias for spec in specs if _paid(spec) and not (spec.max_tokens or spec.reply_limit)}
    )
    if endless:
        problems.append(
            f"--budget-usd: a reply of {', '.join(endless)} has no known longest length, so no bound on its cost: set "
            "max_tokens under [models.NAME] in judgecal.toml"
        )
    if problems:
        raise InputError(problems)


def _paid(spec: ModelSpec) -> bool:
    return spec.priced and bool(spec.input_usd_per_1m or spec.output_usd_per_1m)
