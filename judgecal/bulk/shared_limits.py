"""The money and the provider's rate, shared by several processes: who keeps them, and who asks.

One process keeps them (`SharedLimits`), and every call of every other one asks it for a place in flight and
for the money, in the order in which it asks, and says how the call ended (`SharedBudget`). So a limit in
money and a limiter hold over all of them as they hold in one. A process that was killed cannot say how its
calls ended: who started it says that it is lost, and its calls count at their worst, as they may be on the
bill.

Both sides are plain classes: how what they say gets from one to the other is for who starts the processes.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from judgecal.engine.budget import Bill, Budget, BudgetGate, Reservation
from judgecal.engine.scheduler import CallEnd, CallSlots, Limiter
from judgecal.models import ModelSpec


@dataclass(frozen=True, slots=True)
class CallAsked:
    """A call that a process wants to make."""

    number: int  # of the call among those of its process
    model: str  # its alias
    worst_usd: float  # what it may cost
    at_once: int | None  # the user's own bound on calls of this model in flight; None where there is none


@dataclass(frozen=True, slots=True)
class CallEnded:
    """How a call ended, by its number: as `BudgetGate.settle` takes it."""

    number: int
    bill: Bill | None
    unseen: bool
    end: CallEnd


@dataclass(frozen=True, slots=True)
class _Flight:
    hold: Reservation
    began: int
    slots: CallSlots


class SharedLimits:
    """Keeps the money and the places in flight of several processes. Made and used in one running event loop.

    Args:
        budget: the money of them all.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._loop = asyncio.get_running_loop()
        self._gate = BudgetGate(budget)
        self._slots: dict[str, CallSlots] = {}
        self._flights: dict[str, dict[int, _Flight]] = {}
        self._lost: set[str] = set()

    async def begin(self, process: str, asked: CallAsked) -> str | None:
        """Wait for a place and for the money; why there is none, None where the call may be made.

        Args:
            process: a name of its own for each process, also of those that try again what another one lost.
        """
        slots = self._slots.get(asked.model)
        if slots is None:
            slots = self._slots[asked.model] = CallSlots(Limiter(asked.at_once))
        began = await slots.take(first=True)
        hold = await self._gate.take(asked.model, asked.worst_usd)
        if hold.refusal is not None:
            slots.give_back()
            return hold.refusal
        flight = _Flight(hold, began, slots)
        if process in self._lost:  # while it waited: nobody is there to make the call
            self._land(flight, CallEnded(asked.number, None, False, CallEnd()))
            return None
        self._flights.setdefault(process, {})[asked.number] = flight
        return None

    def end(self, process: str, ended: Sequence[CallEnded]) -> None:
        """Take in how some calls of a process ended; those of a lost process are counted already."""
        flights = self._flights.get(process, {})
        for call in ended:
            if (flight := flights.pop(call.number, None)) is not None:
                self._land(flight, call)

    def lost(self, process: str) -> int:
        """A process has ended: its calls in flight count at their worst; how many they are."""
        self._lost.add(process)
        flights = self._flights.pop(process, {})
        for number, flight in flights.items():
            self._land(flight, CallEnded(number, None, True, CallEnd()))
        return len(flights)

    def _land(self, flight: _Flight, call: CallEnded) -> None:
        flight.slots.limiter.on_call_end(call.end, began=flight.began, now=self._loop.time())
        self._gate.settle(flight.hold, call.bill, unseen=call.unseen, end=call.end)
        flight.slots.give_back()


class Link(Protocol):
    """The way from one process to who keeps the limits."""

    async def begin(self, asked: CallAsked) -> str | None:
        """As `SharedLimits.begin`."""
        ...

    def end(self, ended: Sequence[CallEnded]) -> None:
        """As `SharedLimits.end`; it does not wait."""


class SharedBudget(Budget):
    """The budget of one process among several; the money is kept elsewhere.

    Args:
        limit_usd: of all of them together, None where there is none.
    """

    def __init__(self, link: Link, limit_usd: float | None) -> None:
        super().__init__(limit_usd)
        self._link = link
        self._numbers = itertools.count()

    def gate(self, spec: ModelSpec) -> BudgetGate:
        """As `Budget.gate`; the embedded model costs nothing and has no server to spare."""
        return (
            BudgetGate(Budget(None)) if spec.embedded else _SharedGate(self, self._link, spec, self._numbers)
        )


class _SharedGate(BudgetGate):
    """Asks for each call's slot and money, and says how calls ended, once a turn of the loop."""

    def __init__(self, budget: Budget, link: Link, spec: ModelSpec, numbers: itertools.count[int]) -> None:
        super().__init__(budget)
        self._link, self._spec, self._numbers = link, spec, numbers
        self._loop = asyncio.get_running_loop()
        self._ended: list[CallEnded] = []

    async def take(self, model: str, worst_usd: float) -> Reservation:
        number = next(self._numbers)
        refusal = await self._link.begin(CallAsked(number, model, worst_usd, self._spec.max_concurrency))
        return Reservation(model, worst_usd, refusal, number)

    def settle(self, hold: Reservation, bill: Bill | None, *, unseen: bool, end: CallEnd) -> None:
        if not self._ended:
            self._loop.call_soon(self._tell)
        self._ended.append(CallEnded(hold.number, bill, unseen, end))

    def _tell(self) -> None:
        ended, self._ended = self._ended, []
        self._link.end(ended)
