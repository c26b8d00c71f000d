"""The model inside judgecal: called in this process, or for a large run in worker processes.

Its time is CPU, and one process has one core's worth of it. The workers are joblib's (loky): they know
nothing of the program that started them, so that a notebook, a script without a guard, or `python -` can have
them.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from typing import Any

from judgecal.engine.calls import Message, Reply, ReplySchema
from judgecal.errors import JudgecalError
from judgecal.models.embedded import VERSION, reply, timed_replies

_MODEL_ID = f"embedded-{VERSION}"
_WORTH_IT = 2000  # calls; fewer are done before the workers have started
_BATCH = 100
_AHEAD = 4  # batches with each worker: one that it works on, the others on their way
_MOST_WORKERS = 32


class EmbeddedTransport:
    """The model in this process; its calls run one after the other."""

    keeps_time = True

    async def close(self) -> None:
        """Nothing is held open."""

    async def send(
        self, messages: Sequence[Message], *, repeat: int, schema: ReplySchema | None = None
    ) -> Reply:
        """One reply; it cannot fail."""
        start = time.perf_counter()
        text = reply(messages)
        took = time.perf_counter() - start
        # Give the loop a turn, so that Ctrl-C and other models' calls get through.
        await asyncio.sleep(0)
        return _reply(messages, text, took)


def open_pool(total: int | None, *, worth_it: int = _WORTH_IT) -> EmbeddedPool | None:
    """Workers for a large run; None where it is small, or where no process can be started."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = min(cores, int(os.environ.get("LOKY_MAX_CPU_COUNT") or cores))  # which bounds loky's workers
    if total is None or total <= worth_it or cores < 2 or getattr(sys, "frozen", False):
        return None
    from joblib.externals.loky import ProcessPoolExecutor  # joblib takes a third of a second

    workers = min(cores, _MOST_WORKERS)
    executor = ProcessPoolExecutor(workers, initializer=_prepare, initargs=(os.getpid(),))
    try:
        executor.submit(timed_replies, [])
    except OSError:
        return None
    return EmbeddedPool(executor, workers)


def _prepare(parent: int) -> None:
    """In a worker: Ctrl-C is for the parent, which ends its workers; they end too where it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    timed_replies([[]])  # loads the model
    gc.freeze()  # loky collects garbage once a second, and need not walk the modules for it


_Waiting = tuple[Sequence[Message], "asyncio.Future[tuple[str, float]]"]


class EmbeddedPool:
    """The model in worker processes; replies come in the order of the calls.

    Args:
        executor: loky's, with as many `workers`.

    Attributes:
        width: calls in flight that keep every worker busy.
    """

    keeps_time = True

    def __init__(self, executor: Any, workers: int) -> None:
        self.width = workers * _AHEAD * _BATCH
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        self._collected: list[_Waiting] = []
        self._under_way: deque[tuple[list[_Waiting], asyncio.Future[Any]]] = deque()
        self._failure: JudgecalError | None = None

    async def send(
        self, messages: Sequence[Message], *, repeat: int, schema: ReplySchema | None = None
    ) -> Reply:
        """One reply.

        Raises:
            JudgecalError: a worker has ended.
        """
        if self._failure is not None:
            raise self._failure
        done: asyncio.Future[tuple[str, float]] = self._loop.create_future()
        self._collected.append((messages, done))
        if len(self._collected) == 1:
            self._loop.call_soon(self._pack)  # behind every task that is about to send
        if len(self._collected) >= _BATCH:
            self._pack()
        text, latency_s = await done
        return _reply(messages, text, latency_s)

    async def close(self) -> None:
        """End the workers after the batches that are with them: loky prints a traceback for who is killed."""
        self._executor.shutdown(wait=True)

    def _pack(self) -> None:
        """Hand what was collected to a worker."""
        if not self._collected:
            return
        batch, self._collected = self._collected, []
        try:
            answers = self._loop.run_in_executor(
                self._executor, timed_replies, [messages for messages, _ in batch]
            )
        except BrokenExecutor as error:
            answers = self._loop.create_future()
            answers.set_exception(error)
        self._under_way.append((batch, answers))
        answers.add_done_callback(self._deliver)

    def _deliver(self, _: object) -> None:
        """Hand out the replies of the oldest batches: the journal's order is that of the calls."""
        while self._under_way and self._under_way[0][1].done():
            batch, answers = self._under_way.popleft()
            if error := answers.exception():
                self._failure = self._failure or _ended(error)
            for place, (_, done) in enumerate(batch):
                if done.done():  # cancelled: the run has ended
                    continue
                if self._failure is None:
                    done.set_result(answers.result()[place])
                else:
                    done.set_exception(self._failure)


def _ended(error: BaseException) -> JudgecalError:
    codes = str(error).rpartition("exit codes of the workers are ")[2].partition("\n")[0]
    return JudgecalError(
        f"a worker process of the embedded model has ended by itself ({codes or 'for no known reason'}); "
        "what was judged so far is kept, the same command resumes"
    )


def _reply(messages: Sequence[Message], text: str, latency_s: float) -> Reply:
    """The model's text with what it counts as tokens, wherever it was made."""
    size = sum(len(message["content"]) for message in messages)
    return Reply(
        text, _MODEL_ID, prompt_tokens=size // 4, completion_tokens=len(text) // 4, latency_s=latency_s
    )
