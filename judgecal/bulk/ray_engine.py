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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from judgecal.bulk.partitioned import PartitionFacts, PartitionJob
from judgecal.bulk.shared_limits import CallAsked, CallEnded, SharedBudget, SharedLimits
from judgecal.engine import Budget, Progress
from judgecal.engine.transport.embedded import MOST_PROCESSES
from judgecal.errors import InputError, JudgecalError, not_installed, notice
from judgecal.experiment import RunOptions
from judgecal.production.judge_counts import JudgedRows

_TRIES = 4  # of a partition whose worker ends by itself
_TICK_S = 0.5
_STORE_BYTES = 256 * 2**20  # for what tasks give back, which is some 20 bytes a row
_WAITING = 1_000_000  # calls that may stand in the actor's queue
_UNREAD = 1000  # messages to the actor that are looked after; those before them have long been taken in


def require_ray() -> Any:
    """The module, with its usage statistics off; refused where it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            import ray
    except ImportError:
        raise not_installed("--engine ray needs", "ray", "ray", instead="leave out --engine") from None
    return ray


@contextlib.contextmanager
def ray_engine() -> Iterator[RayEngine]:
    """Ray while a command runs: as the program has it already, the cluster that RAY_ADDRESS names, or this
    machine.

    On this machine it listens on 127.0.0.1 alone, without a dashboard, and ends with the command. Nothing can
    be printed meanwhile: Ray tells on stdout, where the result goes, of workers that were lost.
    """
    ray = require_ray()
    starts = not ray.is_initialized()
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if os.environ.get("RAY_ADDRESS", "local") == "local":
        options |= {"address": "local", "include_dashboard": False, "object_store_memory": _STORE_BYTES}
        options["_node_ip_address"] = "127.0.0.1"
    with contextlib.redirect_stdout(io.StringIO()):
        if starts:
            try:
                ray.init(**options)
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                raise InputError(
                    f"Ray cannot be started or reached ({_first_line(error)}): RAY_ADDRESS names a running "
                    "cluster; without it, Ray is started on this machine"
                ) from error
        try:
            yield RayEngine(ray)
        finally:
            if starts:
                ray.shutdown()


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _look(job: PartitionJob, estimate: bool) -> PartitionFacts:
    return job.look(estimate=estimate)


def _judge(job: PartitionJob, process: str, keeper: Any, limit_usd: float | None) -> tuple[JudgedRows, str]:
    """A task: the rows, and what was said on stderr. `keeper`: the actor, None where nobody is called."""
    os.environ[MOST_PROCESSES] = "1"  # Ray counts the cores
    link = None if keeper is None else _Link(keeper, process)
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
        try:
            return job.judge(
                Budget(None) if link is None else SharedBudget(link, limit_usd)
            ), stderr.getvalue()
        finally:
            if link is not None:
                link.flush()


class _Keeper(SharedLimits):
    """The actor that keeps the money and the places in flight: Ray runs all of it in one event loop."""

    def __init__(self, folder: Path, options: RunOptions) -> None:
        super().__init__(options.open_budget(folder))

    def close(self) -> list[str]:
        """Leave what was spent in the ledger; what a user must hear of the money."""
        self.budget.save()
        return self.budget.remarks()


class _Link:
    """The way of one task to the actor."""

    def __init__(self, keeper: Any, process: str) -> None:
        self._keeper, self._process = keeper, process
        self._unread: deque[Any] = deque(maxlen=_UNREAD)

    async def begin(self, asked: CallAsked) -> str | None:
        """As `SharedLimits.begin`."""
        with _keeper_needed():
            refusal: str | None = await self._keeper.begin.remote(self._process, asked)
        return refusal

    def end(self, ended: Sequence[CallEnded]) -> None:
        """As `SharedLimits.end`; it does not wait."""
        self._unread.append(self._keeper.end.remote(self._process, ended))

    def flush(self) -> None:
        """Wait until all that was said has been taken in."""
        import ray

        with _keeper_needed():
            ray.get(list(self._unread))


@contextlib.contextmanager
def _keeper_needed() -> Iterator[None]:
    """Raises JudgecalError where the actor is gone: without it nobody knows what may still be spent."""
    from ray.exceptions import RayActorError

    try:
        yield
    except RayActorError as error:
        raise JudgecalError(
            "the process that keeps the money and the places in flight of all workers has ended (out of "
            "memory?): what was judged so far is kept, the same command resumes"
        ) from error


class RayEngine:
    """Runs partitions as tasks of a Ray that is started, each on one core."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def look(self, jobs: Sequence[PartitionJob], *, estimate: bool) -> list[PartitionFacts]:
        """As `Engine.look`."""
        from ray import exceptions

        task = self._ray.remote(_look)
        try:
            facts: list[PartitionFacts] = self._ray.get([task.remote(job, estimate) for job in jobs])
        except exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, JudgecalError) else error from None
        return facts

    def judge(
        self, jobs: Sequence[PartitionJob], options: RunOptions, *, calls: bool, progress: Progress | None
    ) -> Iterator[tuple[int, JudgedRows]]:
        """As `Engine.judge`; a partition whose worker is lost goes to another one, up to three times."""
        options.open_budget(jobs[0].folder)  # what cannot be read is said here
        keeper = self._keeper(jobs[0].folder, options) if calls else None
        task = self._ray.remote(max_retries=0)(_judge)
        running: dict[Any, tuple[int, int]] = {}  # task -> the number of its job and of the try

        def begin(number: int, attempt: int) -> None:
            process = f"{number}.{attempt}"
            running[task.remote(jobs[number], process, keeper, options.limit_usd)] = number, attempt

        for number in range(len(jobs)):
            begin(number, 1)
        try:
            while running:
                for ref in self._ray.wait([*running], timeout=_TICK_S)[0]:
                    number, attempt = running.pop(ref)
                    ended = self._ended(ref, jobs[number], attempt)
                    if keeper is not None:
                        with _keeper_needed():
                            self._ray.get(keeper.lost.remote(f"{number}.{attempt}"))
                    if ended is None:
                        begin(number, attempt + 1)
                        continue
                    rows, stderr = ended
                    if stderr:
                        notice(stderr.rstrip("\n"))
                    yield number, rows
                if progress:
                    progress.show()
        finally:
            for ref in running:
                self._ray.cancel(ref, force=True)
            if keeper is not None:
                with _keeper_needed():
                    lost = (f"{number}.{attempt}" for number, attempt in running.values())
                    self._ray.get([keeper.lost.remote(process) for process in lost])
                    remarks = self._ray.get(keeper.close.remote())
                if not options.quiet:
                    notice(*(f"judgecal: {remark}" for remark in remarks))
                self._ray.kill(keeper)

    def _keeper(self, folder: Path, options: RunOptions) -> Any:
        """The actor, on this machine."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
        actor = self._ray.remote(num_cpus=0, max_concurrency=_WAITING, scheduling_strategy=here)(_Keeper)
        return actor.remote(folder, options)

    def _ended(self, ref: Any, job: PartitionJob, attempt: int) -> tuple[JudgedRows, str] | None:
        """What a task gave back; None where its worker was lost, and another one may try."""
        from ray import exceptions

        try:
            ended: tuple[JudgedRows, str] = self._ray.get(ref)
        except exceptions.RayTaskError as error:  # an error that is explained in words comes as it is
            raise error.cause if isinstance(error.cause, JudgecalError) else error from None
        except exceptions.TaskCancelledError:
            raise
        except exceptions.RayError as error:
            name, reason = job.partition.name, _first_line(error)
            if attempt < _TRIES:
                notice(f"judgecal: {name}: its worker was lost ({reason}): another one goes on with it")
                return None
            raise JudgecalError(
                f"{name}: {_TRIES} workers were lost over it, the last one with: {reason}; what was judged "
                "so far is kept, the same command resumes"
            ) from error
        return ended
