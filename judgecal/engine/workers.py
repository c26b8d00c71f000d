"""The embedded model in worker processes: its time is CPU, and one process has one core's worth of it.

A worker is a plain Python process that runs `worker_process.py` and talks over its pipes. It knows nothing of the
program that started it, so that a notebook, a script without a guard, or `python -` can start one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from judgecal.engine.calls import Message, Reply
from judgecal.engine.transport.embedded import embedded_reply
from judgecal.engine.worker_process import HELLO, LENGTH_BYTES
from judgecal.errors import JudgecalError

__all__ = ["WorkerTransport", "open_workers"]

_WORTH_IT = 2000  # calls; fewer are done before the workers have started
_BATCH = 100
_AHEAD = 2  # batches with each worker: one that it works on, one that waits
_MOST_WORKERS = 32
_START_S = 30.0
_END_S = 2.0
_SCRIPT = Path(__file__).with_name("worker_process.py")

_Answer = tuple[str, float]  # the text, and the seconds that it took
_Waiting = tuple[Sequence[Message], "asyncio.Future[_Answer]"]


async def open_workers(total: int | None, *, worth_it: int = _WORTH_IT) -> WorkerTransport | None:
    """Workers for a large run; None where it is small, or where no process can be started."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if total is None or total <= worth_it or cores < 2 or getattr(sys, "frozen", False) or not sys.executable:
        return None
    started = await asyncio.gather(*(_Worker.start() for _ in range(min(cores, _MOST_WORKERS))))
    workers = [worker for worker in started if worker is not None]
    return WorkerTransport(workers) if workers else None


class WorkerTransport:
    """The embedded model in workers; replies come in the order of the calls.

    Args:
        workers: running ones.

    Attributes:
        width: calls in flight that keep every worker busy.
    """

    keeps_time = True

    def __init__(self, workers: Sequence[_Worker]) -> None:
        self.width = len(workers) * _AHEAD * _BATCH
        self._workers = list(workers)
        self._loop = asyncio.get_running_loop()
        self._collected: list[_Waiting] = []
        self._batches: asyncio.Queue[_Batch] = asyncio.Queue()
        self._under_way: deque[_Batch] = deque()
        self._failure: JudgecalError | None = None
        self._feeders = [
            self._loop.create_task(self._feed(worker)) for worker in workers for _ in range(_AHEAD)
        ]

    async def send(self, messages: Sequence[Message], *, repeat: int) -> Reply:
        """One reply.

        Raises:
            JudgecalError: a worker has ended.
        """
        if self._failure is not None:
            raise self._failure
        done: asyncio.Future[_Answer] = self._loop.create_future()
        self._collected.append((messages, done))
        if len(self._collected) == 1:
            self._loop.call_soon(self._pack)  # behind every task that is about to send
        if len(self._collected) >= _BATCH:
            self._pack()
        text, latency_s = await done
        return embedded_reply(messages, text, latency_s)

    async def close(self) -> None:
        """End the workers."""
        for task in self._feeders:
            task.cancel()
        await asyncio.wait(self._feeders)
        await asyncio.gather(*(worker.end() for worker in self._workers))

    def _pack(self) -> None:
        if self._collected:
            batch = _Batch(self._collected)
            self._collected = []
            self._under_way.append(batch)
            self._batches.put_nowait(batch)

    async def _feed(self, worker: _Worker) -> None:
        while self._failure is None:
            batch = await self._batches.get()
            try:
                batch.replies = await worker.answer([messages for messages, _ in batch.waiting])
            except JudgecalError as failure:
                self._fail(failure)
                return
            self._deliver()

    def _deliver(self) -> None:
        """Hand out the replies of the oldest batches: the journal's order is that of the calls."""
        while self._under_way and (replies := self._under_way[0].replies) is not None:
            for (_, done), answer in zip(self._under_way.popleft().waiting, replies, strict=True):
                if not done.done():
                    done.set_result(answer)

    def _fail(self, failure: JudgecalError) -> None:
        self._failure = failure
        self._pack()
        for batch in self._under_way:
            for _, done in batch.waiting:
                if not done.done():
                    done.set_exception(failure)
                    done.exception()  # whoever waits hears it; for the others there is nothing to complain of


class _Batch:
    """Calls that go to a worker together; `replies` once they are there."""

    def __init__(self, waiting: Sequence[_Waiting]) -> None:
        self.waiting = waiting
        self.replies: list[_Answer] | None = None


class _Worker:
    """One process. The messages in front of an item's are sent once, until others take their place."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._in, self._out = process, process.stdin, process.stdout
        self._prefix: list[Message] | None = None
        self._reading = asyncio.Lock()

    @classmethod
    async def start(cls) -> _Worker | None:
        """A worker that has said hello; None where the process cannot be started."""
        path = os.pathsep.join(entry for entry in sys.path if entry)
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", str(_SCRIPT)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C is for the parent, which ends its workers itself
            )
        except (OSError, ValueError, NotImplementedError):
            return None
        worker = cls(process)
        try:
            if await asyncio.wait_for(worker._out.readexactly(len(HELLO)), _START_S) == HELLO:
                return worker
        except (TimeoutError, asyncio.IncompleteReadError):
            pass
        except BaseException:
            process.kill()
            raise
        await worker.end()
        return None

    async def answer(self, batch: Sequence[Sequence[Message]]) -> list[_Answer]:
        """The replies to a batch; a second batch may be handed in while the first is under way.

        Raises:
            JudgecalError: the process has ended.
        """
        try:
            # Not drained: the worker may be writing a reply that has to be read before it takes more in.
            self._send(batch)
            # The lock is fair, so that replies are read in the order in which the batches went out.
            async with self._reading:
                size = int.from_bytes(await self._out.readexactly(LENGTH_BYTES), "big")
                replies: list[_Answer] = pickle.loads(await self._out.readexactly(size))
                return replies
        except (OSError, asyncio.IncompleteReadError):
            code = await self._process.wait()
            raise JudgecalError(
                f"a worker process of the embedded model has ended by itself (exit code {code}); what was "
                "judged so far is kept, the same command resumes"
            ) from None

    def _send(self, batch: Sequence[Sequence[Message]]) -> None:
        requests: list[tuple[list[Message] | None, str]] = []
        for messages in batch:
            prefix = list(messages[:-1])
            changed = prefix != self._prefix
            self._prefix = prefix
            requests.append((prefix if changed else None, messages[-1]["content"]))
        data = pickle.dumps(requests, protocol=pickle.HIGHEST_PROTOCOL)
        self._in.write(len(data).to_bytes(LENGTH_BYTES, "big") + data)

    async def end(self) -> None:
        """Close its pipe, which ends it; kill it where that does not help."""
        self._in.close()
        try:
            await asyncio.wait_for(self._process.wait(), _END_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
