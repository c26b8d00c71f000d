"""Slots in flight, and the tasks of a run that work off calls, as many at once as the limiter allows.

A task that waits to try again, or for another task's reply, is parked: it holds no slot among the calls in
flight, and another task takes up the next call meanwhile. Calls are taken from the iterator when they are
due, so that a long run holds as few as are under way.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator

from judgecal.engine.calls import Call

_START = 8
_CEILING = 1024
_PER_SUCCESS = 3.0  # each call of a round trip adds three: the round trip quadruples
_SLOW_SHARE = 0.02  # after a first refusal: a fiftieth a round trip, or one where that is more
_QUEUEING = 3.0  # a reply that takes so many times longer than the first ones stands in a queue
_QUEUEING_S = 0.05  # under this much, more calls at once do no harm


class Limiter:
    """The allowance of one run.

    It starts at a stated number and never goes beyond it. Where none is stated it starts at 8 and quadruples
    every round trip, up to 1024. A reply that took much longer than the first ones did adds nothing: past
    that point more calls at once only wait on the server, and at last time out. The first refusal halves it;
    from then on it is lowered by half the share of refused calls and grows by a fiftieth a round trip, so
    that it settles where refusals are rare, and a server that refuses at random does not bring the run to a
    halt. It is lowered at most once a round trip: what was sent before it was lowered says nothing of the new
    allowance.

    Args:
        stated: the user's own bound; None lets it grow.
        total: calls to be made, where that is known.
        processes: how many divide the bound.

    Attributes:
        allowance: calls that may be in flight; the whole part counts.
        in_flight: calls that are.
        paused_until: time on the run's clock before which no call may start.
    """

    def __init__(self, stated: int | None = None, *, total: int | None = None, processes: int = 1) -> None:
        bound = (_CEILING if stated is None else stated) // processes
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
        """The number of calls that may be in flight now."""
        return int(self.allowance)

    def begin(self) -> int:
        """Count a call as in flight; return the number that goes into `refused`."""
        self.in_flight += 1
        return self._lowered

    def end(self) -> None:
        """Count a call as landed; after what is said of its outcome."""
        self.in_flight -= 1

    def succeeded(self, latency_s: float) -> None:
        """Note that a reply came, after a latency in seconds."""
        self._refused -= self._refused / max(_START, self.allowance)
        if self._timed < self._first_calls:
            self._timed += 1
            self._first_latency_s += (latency_s - self._first_latency_s) / self._timed
        queueing = latency_s > max(_QUEUEING * self._first_latency_s, _QUEUEING_S)
        if self.allowance < self.ceiling and not queueing:
            more = _PER_SUCCESS if self._growing_fast else max(_SLOW_SHARE, 1.0 / self.allowance)
            self.allowance = min(self.allowance + more, self.ceiling)

    def refused(self, began: int) -> None:
        """Lower the allowance after the provider refused a call; `began` is the number from `begin`."""
        self._refused += (1.0 - self._refused) / max(_START, self.allowance)
        if began != self._lowered:
            return
        self._lowered += 1
        factor = 0.5 if self._growing_fast else 1.0 - self._refused / 2.0
        self._growing_fast = False
        self.allowance = max(1.0, self.allowance * factor)

    def pause(self, until: float) -> None:
        """Let no call start before `until`, a time on the run's clock."""
        self.paused_until = max(self.paused_until, until)


_MOST_PARKED = 1024
_TICK_S = 0.5
_STARTED_AT_ONCE = 8  # the first requests are on their way while the next ones are being made
_LAST_TURNS = 5  # turns of the loop in which a reply that is here already becomes a row


class CallSlots:
    """The slots of one model; who finds none free stands in a queue. Made in a running event loop.

    Args:
        limiter: how many may be in flight, and since when; it is told of every outcome by who holds a slot.
    """

    def __init__(self, limiter: Limiter) -> None:
        self.limiter = limiter
        self._loop = asyncio.get_running_loop()
        self._queue: deque[asyncio.Future[int]] = deque()
        self._pause: asyncio.TimerHandle | None = None
        self._ending = False  # no further try is begun

    async def take(self, *, first: bool) -> int:
        """Wait for a slot, in front by a bool `first`; return the number for the limiter's `refused`.

        A call that was tried before goes in front of those that were not.
        """
        if not self._queue and not self._ending and self._free():
            return self.limiter.begin()
        turn: asyncio.Future[int] = self._loop.create_future()
        (self._queue.append if first else self._queue.appendleft)(turn)
        self._wake_after_pause()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Leave the slot to the next in the queue, after the limiter was told how it went."""
        self.limiter.end()
        if self._queue and not self._ending:
            self._admit()

    @contextlib.contextmanager
    def parked(self) -> Iterator[None]:
        """Within the block, give the slot up: the task waits for something else than its own call."""
        yield

    def _free(self) -> bool:
        limiter = self.limiter
        return limiter.in_flight < limiter.at_once and self._loop.time() >= limiter.paused_until

    def _admit(self) -> None:
        while self._queue and self._free():
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(self.limiter.begin())
        self._wake_after_pause()

    def _wake_after_pause(self) -> None:
        """A pause ends by the clock alone; everything else ends when a call lands.

        The clock is not read again: it may have passed the end of the pause since a slot was refused for it.
        """
        limiter = self.limiter
        if self._queue and self._pause is None and not self._ending and limiter.in_flight < limiter.at_once:
            self._pause = self._loop.call_at(limiter.paused_until, self._pause_is_over)

    def _pause_is_over(self) -> None:
        self._pause = None
        self._admit()


class Scheduler(CallSlots):
    """The tasks of one run, and the slots that they share; an exception of `work` ends it. `tick` is called
    twice a second.
    """

    def __init__(
        self,
        calls: Iterable[Call],
        work: Callable[[Call], Awaitable[None]],
        *,
        limiter: Limiter,
        tick: Callable[[], None],
    ) -> None:
        super().__init__(limiter)
        self._calls = iter(calls)
        self._work = work
        self._tick = tick
        self._tasks: set[asyncio.Task[None]] = set()
        self._parked = 0
        self._next_tick: asyncio.TimerHandle | None = None
        self._starting = False  # more tasks are due in the next turn of the loop
        self._closed = False  # no further call is taken up
        self._failure: BaseException | None = None
        self._over = asyncio.Event()

    async def run(self) -> None:
        """Work all the scheduler's own tasks off; the first exception of a task is raised.

        Raises:
            BaseException: the first exception of a task; replies that had come are rows by then.
        """
        try:
            self._start_tasks()
            if self._tasks:
                self._beat()
                await self._over.wait()
        finally:
            await self._end_tasks()
        if self._failure is not None:
            raise self._failure

    def give_back(self) -> None:
        """Leave the slot to the next in the queue, or to a new task."""
        super().give_back()
        if len(self._tasks) < self.limiter.at_once + self._parked:
            self._start_tasks()

    @contextlib.contextmanager
    def parked(self) -> Iterator[None]:
        """Within the block, let another task work: this task waits for something else than its call."""
        self._parked += 1
        self._start_tasks()
        try:
            yield
        finally:
            self._parked -= 1

    def _beat(self) -> None:
        try:
            self._tick()
        except Exception as failure:  # noqa: BLE001 - raised again in `run`
            self.fail(failure)
        else:
            self._next_tick = self._loop.call_later(_TICK_S, self._beat)

    def fail(self, failure: BaseException) -> None:
        """End the run by a failure, an exception; the first one is raised in `run`."""
        self._closed = self._ending = True
        self._failure = self._failure or failure
        self._over.set()

    async def _end_tasks(self) -> None:
        self._closed = self._ending = True
        for timer in (self._pause, self._next_tick):
            if timer is not None:
                timer.cancel()
        for _ in range(_LAST_TURNS if self._tasks else 0):
            await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _start_tasks(self) -> None:
        wanted = min(self.limiter.at_once + self._parked, self.limiter.ceiling + _MOST_PARKED)
        for _ in range(min(_STARTED_AT_ONCE, wanted - len(self._tasks))):
            if self._closed:
                return
            if (call := next(self._calls, None)) is None:
                self._closed = True
                return
            task = self._loop.create_task(self._work_on(call))
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        if len(self._tasks) < wanted and not self._starting:
            self._starting = True
            self._loop.call_soon(self._start_more)

    def _start_more(self) -> None:
        self._starting = False
        self._start_tasks()

    async def _work_on(self, call: Call | None) -> None:
        """One task: this call, and the next ones as long as a task is wanted."""
        while call is not None:
            try:
                await self._work(call)
            except BaseException:
                self._closed = self._ending = True  # at once: the next task is about to start
                raise
            if self._closed or len(self._tasks) - self._parked > self.limiter.at_once:
                return
            call = next(self._calls, None)
        self._closed = True

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            self.fail(failure)
        elif not self._tasks:
            self._over.set()
