"""Partitions judged by the workers of a Ray cluster, or of this machine.

A partition is one Ray task, and not a block of a `ray.data.Dataset`: Ray Data cuts and joins files as it sees
fit, and makes a block again from the start where a worker was lost. Here a partition keeps its own journal,
so that a second try goes on where the first one stopped, and its own output of the same name. Files are
listed and copied by `pyarrow.fs`, which is what Ray Data itself reads with.

Tasks get no key from here: each worker takes it from its own environment, by the name in judgecal.toml, so
that no key goes through Ray's messages, its dashboard or its logs. Money and places in flight are asked for
call by call of one actor on the machine that runs the command.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from judgecal.bulk.partition_job import PartitionFacts, PartitionJob
from judgecal.engine import Budget, Progress
from judgecal.engine.shared_limits import CallAsked, CallEnded, SharedBudget, SharedLimits
from judgecal.engine.transport.embedded import MOST_PROCESSES
from judgecal.errors import AuthError, InputError, JudgecalError, not_installed, notice
from judgecal.experiment import RunOptions, models_of
from judgecal.judges import Judge
from judgecal.production.judge_result import Counted

_TRIES = 4  # of a partition whose worker ends by itself
_TICK_S = 0.5
_STORE_BYTES = 256 * 2**20  # for what tasks give back, which is some 20 bytes a row
_WAITING = 1_000_000  # calls that may stand in the actor's queue
_UNTOLD = 1000  # messages to the actor that are looked after; those before them have long been taken in
_T = TypeVar("_T")


def require_ray() -> Any:
    """The module, with its usage statistics off. InputError: it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        with _chatter_aside():
            import ray
    except ImportError:
        raise not_installed("--engine ray needs", "ray", "ray", instead="leave out --engine") from None
    return ray


def _chatter_aside() -> contextlib.AbstractContextManager[Any]:
    """Ray tells on stdout, where the result goes, of workers that were lost; its own logs have the same."""
    return contextlib.redirect_stdout(io.StringIO())


@contextlib.contextmanager
def ray_engine() -> Iterator[RayEngine]:
    """Ray while a command runs: as the program has it already, the cluster that RAY_ADDRESS names, or this
    machine.

    On this machine it listens on 127.0.0.1 alone, without a dashboard, and ends with the command. Nothing can
    be printed meanwhile.

    Raises:
        InputError: Ray is not installed, or it cannot be started or reached.
    """
    ray = require_ray()
    ours = not ray.is_initialized()
    with _chatter_aside():
        if ours:
            _start(ray)
        try:
            yield RayEngine(ray)
        finally:
            if ours:
                ray.shutdown()


def _start(ray: Any) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if os.environ.get("RAY_ADDRESS", "local") == "local":
        options |= {"address": "local", "include_dashboard": False, "object_store_memory": _STORE_BYTES}
        options["_node_ip_address"] = "127.0.0.1"
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(
            f"Ray cannot be started or reached ({reason}): RAY_ADDRESS names a running cluster; without it, Ray is "
            "started on this machine"
        ) from error


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a task gives back: a value, or the error that it ended with; `said`: what it said on stderr."""

    value: Any = None
    error: str = ""
    problems: tuple[str, ...] = ()
    said: str = ""

    def taken(self) -> Any:
        """The value; raises the error where there is one."""
        if self.said:
            notice(self.said.rstrip("\n"))
        if not self.error:
            return self.value
        if self.error == AuthError.__name__:
            raise AuthError("\n".join(self.problems))
        raise (InputError if self.error == InputError.__name__ else JudgecalError)("\n".join(self.problems))


def _answering(work: Callable[[], _T]) -> _Answer:
    """In a task: errors that are explained in words go back as words."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            return _Answer(work(), said=said.getvalue())
        except AuthError as error:
            return _Answer(error=AuthError.__name__, problems=(str(error),))
        except InputError as error:
            return _Answer(error=InputError.__name__, problems=error.problems)
        except JudgecalError as error:
            return _Answer(error=JudgecalError.__name__, problems=(str(error),))


def _look(job: PartitionJob, estimate: bool) -> _Answer:
    return _answering(lambda: job.look(estimate=estimate))


def _judge(job: PartitionJob, process: str, keeper: Any, limit_usd: float | None) -> _Answer:
    """A task: `keeper` is the actor with the shared limits, None where nobody is called."""
    os.environ[MOST_PROCESSES] = "1"  # Ray counts the cores
    if keeper is None:
        return _answering(lambda: job.judge(Budget(None)))
    link = _ToKeeper(keeper, process)

    def work() -> Counted:
        try:
            return job.judge(SharedBudget(link, limit_usd))
        finally:
            link.flush()

    return _answering(work)


class _ToKeeper:
    """The link of one task to the actor."""

    def __init__(self, keeper: Any, process: str) -> None:
        self._keeper, self._process = keeper, process
        self._told: deque[Any] = deque(maxlen=_UNTOLD)

    async def begin(self, asked: CallAsked) -> str | None:
        """As `SharedLimits.begin`."""
        with _keeper_needed():
            refusal: str | None = await self._keeper.begin.remote(self._process, asked)
        return refusal

    def end(self, ended: Sequence[CallEnded]) -> None:
        """As `SharedLimits.end`; it does not wait."""
        self._told.append(self._keeper.end.remote(self._process, ended))

    def flush(self) -> None:
        """Wait until all that was told has been taken in."""
        import ray

        with _keeper_needed():
            ray.get(list(self._told))


@contextlib.contextmanager
def _keeper_needed() -> Iterator[None]:
    """Raises JudgecalError where the actor is gone: without it nobody knows what may still be spent."""
    from ray.exceptions import RayActorError

    try:
        yield
    except RayActorError as error:
        raise JudgecalError(
            "the process that keeps the money and the places in flight of all workers has ended (out of memory?): "
            "what was judged so far is kept, the same command resumes"
        ) from error


class _Keeper:
    """The actor that keeps the shared limits; its methods run in one event loop."""

    def __init__(self, folder: Path, options: RunOptions) -> None:
        self._budget = options.open_budget(folder)
        self._limits: SharedLimits | None = None

    @property
    def _shared(self) -> SharedLimits:
        if self._limits is None:
            self._limits = SharedLimits(self._budget)
        return self._limits

    async def begin(self, process: str, asked: CallAsked) -> str | None:
        """As `SharedLimits.begin`."""
        return await self._shared.begin(process, asked)

    async def end(self, process: str, ended: Sequence[CallEnded]) -> None:
        """As `SharedLimits.end`."""
        self._shared.end(process, ended)

    async def lost(self, process: str) -> None:
        """As `SharedLimits.lost`."""
        self._shared.lost(process)

    async def close(self) -> list[str]:
        """Leave what was spent in the ledger; what a user must hear of the money."""
        self._budget.save()
        return self._budget.remarks()


@dataclass(frozen=True, slots=True)
class _Attempt:
    place: int
    number: int

    @property
    def process(self) -> str:
        return f"{self.place}.{self.number}"


class RayEngine:
    """Runs partitions as tasks of a Ray that is started, each on one core."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def look(self, jobs: Sequence[PartitionJob], *, estimate: bool) -> list[PartitionFacts]:
        """As `Engine.look`."""
        task = self._ray.remote(_look)
        answers = self._ray.get([task.remote(job, estimate) for job in jobs])
        return [answer.taken() for answer in answers]

    def judge(
        self, jobs: Sequence[PartitionJob], options: RunOptions, judge: Judge, *, progress: Progress | None
    ) -> Iterator[tuple[int, Counted]]:
        """As `Engine.judge`; a partition whose worker is lost goes to another one, up to three times."""
        options.open_budget(jobs[0].folder)  # what cannot be read is said here
        keeper = self._keeper(jobs[0].folder, options, judge)
        task = self._ray.remote(max_retries=0)(_judge)

        def begin(attempt: _Attempt) -> Any:
            return task.remote(jobs[attempt.place], attempt.process, keeper, options.limit_usd)

        running = {begin(attempt): attempt for attempt in (_Attempt(place, 1) for place in range(len(jobs)))}
        try:
            while running:
                for ref in self._ray.wait([*running], timeout=_TICK_S)[0]:
                    attempt = running.pop(ref)
                    answer = self._ended(ref, attempt, jobs[attempt.place])
                    if keeper is not None:
                        with _keeper_needed():
                            self._ray.get(keeper.lost.remote(attempt.process))
                    if answer is None:
                        again = _Attempt(attempt.place, attempt.number + 1)
                        running[begin(again)] = again
                    else:
                        yield attempt.place, answer.taken()
                if progress:
                    progress.show()
        finally:
            self._close(keeper, running, quiet=options.quiet)

    def _keeper(self, folder: Path, options: RunOptions, judge: Judge) -> Any:
        """The actor, on this machine; None where no model has a server."""
        if all(model.embedded for model in models_of([judge])):
            return None
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
        actor = self._ray.remote(num_cpus=0, max_concurrency=_WAITING, scheduling_strategy=here)(_Keeper)
        return actor.remote(folder, options)

    def _ended(self, ref: Any, attempt: _Attempt, job: PartitionJob) -> _Answer | None:
        """What a task gave back; None where its worker was lost, and another one may try."""
        from ray import exceptions

        try:
            answer: _Answer = self._ray.get(ref)
        except (exceptions.RayTaskError, exceptions.TaskCancelledError):
            raise
        except exceptions.RayError as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            if attempt.number < _TRIES:
                notice(
                    f"judgecal: {job.partition.name}: its worker was lost ({reason}): another one goes on with it"
                )
                return None
            raise JudgecalError(
                f"{job.partition.name}: {_TRIES} workers were lost over it, the last one with: {reason}; what was "
                "judged so far is kept, the same command resumes"
            ) from error
        return answer

    def _close(self, keeper: Any, running: dict[Any, _Attempt], *, quiet: bool) -> None:
        """End what still runs, and settle the money."""
        for ref in running:
            self._ray.cancel(ref, force=True)
        if keeper is None:
            return
        with _keeper_needed():
            self._ray.get([keeper.lost.remote(attempt.process) for attempt in running.values()])
            remarks = self._ray.get(keeper.close.remote())
        for remark in remarks:
            if not quiet:
                notice(f"judgecal: {remark}")
        self._ray.kill(keeper)
