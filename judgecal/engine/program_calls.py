"""Calls of DSPy's own optimisers: the same models, under the same limits, budget, cache and a record.

DSPy calls from many threads and takes every `Exception` for a bad program: it scores it 0.0 and goes on. So the
calls are made in one event loop of their own, what no program can be blamed for (a refused key, a spent budget, a
provider that is down) ends the optimiser at once, and the cause is raised where the optimiser was started.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from typing import Protocol

from judgecal.engine.attempts import Policy
from judgecal.engine.budget import Budget
from judgecal.engine.cache import ReplyCache
from judgecal.engine.calls import Reply
from judgecal.engine.program_attempts import Attempts, MadeCall, ProgramCall
from judgecal.engine.progress import Progress
from judgecal.errors import BudgetError

__all__ = ["CallRecord", "ProgramCalls", "Stopped"]


class Stopped(BaseException):
    """Unwinds an optimiser; no `Exception`, for DSPy catches those."""


class CallRecord(Protocol):
    """Where an optimiser's calls are kept, and found again when its run is resumed."""

    def known(self, key: str) -> Reply | None:
        """The reply that was had under a key."""
        ...

    def add(self, made: MadeCall) -> None:
        """Keep one call."""
        ...


class ProgramCalls:
    """Makes calls for other threads, in an event loop of its own; a context manager.

    Identical requests are one call, in flight and afterwards. A call that fails by its own text gives an empty
    reply, so that it reaches the metric as an unusable one.

    Args:
        budget: money that may be spent.
        policy: retries.
        record: where calls are kept and found.
        cache: stored replies to take and to add to.
        progress: counts the replies, wherever they come from.

    Attributes:
        error: what ended the optimiser, None while nothing did.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        policy: Policy | None = None,
        record: CallRecord | None = None,
        cache: ReplyCache | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.error: Exception | None = None
        self._budget = budget
        self._policy = policy or Policy()
        self._record = record
        self._cache = cache
        self._progress = progress
        self._ended = True
        self._guard = threading.RLock()  # a handler of Ctrl-C may stop what its own thread is about to ask
        self._tasks: dict[str, asyncio.Task[Reply]] = {}

    def __enter__(self) -> ProgramCalls:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="judgecal-optimizer", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        self._ended = False
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def ask(self, call: ProgramCall) -> Reply:
        """One reply; waits for it in the calling thread.

        Raises:
            Stopped: the optimiser must end, now or since an earlier call; `error` says why.
        """
        with self._guard:
            if self._ended:
                raise Stopped
            coming = asyncio.run_coroutine_threadsafe(self._shared(call), self._loop)
        try:
            return coming.result()
        except concurrent.futures.CancelledError:
            raise Stopped from None
        except Exception as error:
            self.stop(error)
            raise Stopped from error

    def stop(self, error: Exception | None = None) -> None:
        """Let no further call through; the first error is the one that counts.

        Calls in flight are dropped, unless it is the money that ended: those are paid for, so they are kept.
        """
        with self._guard:
            if self._ended:
                return
            self._ended = True
            self.error = error
            if not isinstance(error, BudgetError):
                self._loop.call_soon_threadsafe(self._drop)

    async def _open(self) -> None:
        self._attempts = Attempts(self._budget, self._policy)

    def _drop(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    async def _close(self) -> None:
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self._attempts.close()

    async def _shared(self, call: ProgramCall) -> Reply:
        task = self._tasks.get(call.key)
        if task is None and self._ended:
            raise asyncio.CancelledError  # asked for just before the end, and not begun
        if task is None:
            task = self._tasks[call.key] = asyncio.ensure_future(self._found_or_made(call))
        return await asyncio.shield(task)

    async def _found_or_made(self, call: ProgramCall) -> Reply:
        if self._record and (known := self._record.known(call.key)):
            self._count(MadeCall(call, known))
            return known
        if self._cache and (stored := self._cache.get(call.key)):
            return self._kept(MadeCall(call, stored, cached=True))
        made = await self._attempts.make(call)
        reply = self._kept(made)
        made.check()
        if self._cache and made.failure is None:
            self._cache.put(call.key, reply)
        return reply

    def _kept(self, made: MadeCall) -> Reply:
        if self._record:
            self._record.add(made)
        self._count(made)
        return made.reply

    def _count(self, made: MadeCall) -> None:
        if self._progress:
            self._progress.add(scored=made.failure is None, cost_usd=made.cost_usd)
