"""Partitions judged by the workers of a Ray cluster, or of this machine.

A partition is one Ray task, and not a block of a `ray.data.Dataset`: Ray Data cuts and joins files as it sees
fit, and makes a block again from the start where a worker was lost. Here a partition keeps its own journal,
so that a second try goes on where the first one stopped, and its own output of the same name. Files are
listed and copied by `pyarrow.fs`, which is what Ray Data itself reads with.

Tasks get no key from here: each worker takes it from its own environment, by the name in judgecal.toml, so
that no key goes through Ray's messages, its dashboard or its logs. One actor on the machine that runs the
command keeps the money and the provider's rate: every call asks it for a place in flight and for the money,
and says how it ended. So a limit in money and a limiter hold over all workers as they hold in one process.
One that was killed cannot say how its calls ended: they count at their worst, as they may be on the bill.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import itertools
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from judgecal.bulk.partitioned import PartitionFacts, PartitionJob
from judgecal.engine import Budget, BudgetGate, CallSlots, Limiter, Progress
from judgecal.engine.budget import Bill, Reservation
from judgecal.engine.scheduler import CallEnd
from judgecal.engine.transport.embedded import MOST_PROCESSES
from judgecal.errors import InputError, JudgecalError, not_installed, notice
from judgecal.experiment import RunOptions
from judgecal.models import ModelSpec
from judgecal.production.judge_counts import JudgedRows

_TRIES = 4  # of a partition whose worker ends by itself
_TICK_S = 0.5
_STORE_BYTES = 256 * 2**20  # for what tasks give back, which is some 20 bytes a row
_WAITING = 1_000_000  # calls that may stand in the actor's queue
_UNREAD = 1000  # messages to the actor that are looked after; those before them have long been taken in


class CallAsked(NamedTuple):
    """A call that a process wants to make."""

    number: int  # of the call among those of its process
    model: str  # its alias
    worst_usd: float  # what it may cost
    at_once: int | None  # the user's own bound on calls of this model in flight; None where there is none


class CallEnded(NamedTuple):
    """How a call ended, by its number: as `BudgetGate.settle` takes it."""

    number: int
    bill: Bill | None
    unseen: bool
    end: CallEnd


class SharedLimits:
    """Keeps the money and the places in flight of several processes. Made and used in one running event loop.

    Args:
        open_budget: makes the budget of them all.
    """

    def __init__(self, open_budget: Callable[[], Budget]) -> None:
        self.budget = open_budget()
        self._loop = asyncio.get_running_loop()
        self._gate = BudgetGate(self.budget)
        self._slots: dict[str, CallSlots] = {}
        self._flights: defaultdict[str, dict[int, tuple[Reservation, int]]] = defaultdict(dict)
        self._lost: set[str] = set()

    async def begin(self, process: str, call: CallAsked) -> str | None:
        """Wait for a place and for the money; why there is none, None where the call may be made.

        Args:
            process: a name of its own for each process, also of those that try again what another one lost.
        """
        slots = self._slots.get(call.model)
        if slots is None:
            slots = self._slots[call.model] = CallSlots(Limiter(call.at_once))
        began = await slots.take(first=True)
        reserved = await self._gate.take(call.model, call.worst_usd)
        if reserved.refusal is not None:
            slots.give_back()
        elif process in self._lost:  # while it waited: nobody is there to make the call
            self._land(reserved, began, CallEnded(call.number, None, False, CallEnd()))
        else:
            self._flights[process][call.number] = reserved, began
        return reserved.refusal

    def end(self, process: str, ended: Sequence[CallEnded]) -> None:
        """Take in how some calls of a process ended; those of a lost process are counted already."""
        for call in ended:
            if flight := self._flights[process].pop(call.number, None):
                self._land(*flight, call)

    def lost(self, process: str) -> int:
        """A process has ended: its calls in flight count at their worst; how many they are."""
        self._lost.add(process)
        flights = self._flights.pop(process, {})
        for number, flight in flights.items():
            self._land(*flight, CallEnded(number, None, True, CallEnd()))
        return len(flights)

    def close(self) -> list[str]:
        """What a user must hear of the money."""
        return self.budget.remarks()

    def _land(self, reserved: Reservation, began: int, call: CallEnded) -> None:
        slots = self._slots[reserved.model]
        slots.limiter.on_call_end(call.end, began=began, now=self._loop.time())
        self._gate.settle(reserved, call.bill, unseen=call.unseen, end=call.end)
        slots.give_back()


class Link(Protocol):
    """The way from one process to its `SharedLimits`; `end` does not wait."""

    async def begin(self, call: CallAsked) -> str | None: ...

    def end(self, ended: Sequence[CallEnded]) -> None: ...


class SharedBudget(Budget):
    """The budget of one process among several; the money is kept elsewhere.

    Args:
        limit_usd: of all of them together, None where there is none.
    """

    def __init__(self, link: Link, limit_usd: float | None) -> None:
        super().__init__(limit_usd)
        self._link, self._numbers = link, itertools.count()

    def gate(self, spec: ModelSpec) -> BudgetGate:
        """As `Budget.gate`; the embedded model costs nothing and has no server to spare."""
        if spec.embedded:
            return BudgetGate(Budget(None))
        return _SharedGate(self, self._link, spec.max_concurrency, self._numbers)


class _SharedGate(BudgetGate):
    """Asks for each call's slot and money, and says how calls ended, once a turn of the loop."""

    def __init__(
        self, budget: Budget, link: Link, at_once: int | None, numbers: itertools.count[int]
    ) -> None:
        super().__init__(budget)
        self._link, self._at_once, self._numbers = link, at_once, numbers
        self._ended: list[CallEnded] = []

    async def take(self, model: str, worst_usd: float) -> Reservation:
        number = next(self._numbers)
        refusal = await self._link.begin(CallAsked(number, model, worst_usd, self._at_once))
        return Reservation(model, worst_usd, refusal, number)

    def settle(self, call: Reservation, bill: Bill | None, *, unseen: bool, end: CallEnd) -> None:
        if not self._ended:
            asyncio.get_running_loop().call_soon(self._tell)
        self._ended.append(CallEnded(call.number, bill, unseen, end))

    def _tell(self) -> None:
        ended, self._ended = self._ended, []
        self._link.end(ended)


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
            except (Exception, SystemExit) as error:  # of a machine that is too busy it raises either
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
    link = None if keeper is None else _RayLink(keeper, process)
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
        try:
            rows = job.judge(SharedBudget(link, limit_usd) if link else Budget(None))
            return rows, stderr.getvalue()
        finally:
            if link:
                _answer(list(link.unread))


class _RayLink:
    """The way of one task to the actor."""

    def __init__(self, keeper: Any, process: str) -> None:
        self._keeper, self._process = keeper, process
        self.unread: deque[Any] = deque(maxlen=_UNREAD)

    async def begin(self, call: CallAsked) -> str | None:
        with _keeper_needed():
            refusal: str | None = await self._keeper.begin.remote(self._process, call)
        return refusal

    def end(self, ended: Sequence[CallEnded]) -> None:
        self.unread.append(self._keeper.end.remote(self._process, ended))


def _answer(message: Any) -> Any:
    import ray

    with _keeper_needed():
        return ray.get(message)


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
        task = self._ray.remote(_look)
        facts: list[PartitionFacts] = self._got([task.remote(job, estimate) for job in jobs])
        return facts

    def judge(
        self, jobs: Sequence[PartitionJob], options: RunOptions, *, calls: bool, progress: Progress | None
    ) -> Iterator[tuple[int, JudgedRows]]:
        """As `Engine.judge`; a partition whose worker is lost goes to another one, up to three times."""
        from ray import exceptions
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        open_budget = functools.partial(Budget, options.budget_usd)
        keeper: Any = None
        if calls:  # the actor, on this machine
            here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
            actor = self._ray.remote(num_cpus=0, max_concurrency=_WAITING, scheduling_strategy=here)
            keeper = actor(SharedLimits).remote(open_budget)
        task = self._ray.remote(max_retries=0)(_judge)
        running: dict[Any, tuple[int, int]] = {}  # task -> the number of its job and of the try

        def begin(number: int, attempt: int) -> None:
            process = f"{number}.{attempt}"
            running[task.remote(jobs[number], process, keeper, options.budget_usd)] = number, attempt

        for number in range(len(jobs)):
            begin(number, 1)
        try:
            while running:
                for ref in self._ray.wait([*running], timeout=_TICK_S)[0]:
                    number, attempt = running.pop(ref)
                    ended: tuple[JudgedRows, str] | None = None
                    try:
                        ended = self._got(ref)
                    except (exceptions.RayTaskError, exceptions.TaskCancelledError):
                        raise
                    except exceptions.RayError as error:
                        name, reason = jobs[number].partition.name, _first_line(error)
                        if attempt == _TRIES:
                            raise JudgecalError(
                                f"{name}: {_TRIES} workers were lost over it, the last one with: {reason}; "
                                "what was judged so far is kept, the same command resumes"
                            ) from error
                        notice(
                            f"judgecal: {name}: its worker was lost ({reason}): another one goes on with it"
                        )
                    if calls:
                        _answer(keeper.lost.remote(f"{number}.{attempt}"))
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
            if calls:
                _answer([keeper.lost.remote(f"{number}.{attempt}") for number, attempt in running.values()])
                remarks = _answer(keeper.close.remote())
                if not options.quiet:
                    notice(*(f"judgecal: {remark}" for remark in remarks))
                self._ray.kill(keeper)

    def _got(self, refs: Any) -> Any:
        """What tasks gave back; an error that is explained in words comes as it is."""
        from ray import exceptions

        try:
            return self._ray.get(refs)
        except exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, JudgecalError) else error from None
