"""Calls of DSPy's own optimisers: the engine's, under the same limits, budget and cache, and a log.

DSPy calls from many threads and takes every `Exception` for a bad program: it scores it 0.0 and goes on. So
the calls are made in one event loop of their own, what no program can be blamed for (a refused key, a spent
budget, a provider that is down) ends the optimiser at once, and the cause is raised where the optimiser was
started.

Every call is kept in `optimizer_calls.jsonl` with its reply: an interrupted run takes the replies from there
and pays none again, also with `--no-cache`. The experiment's journal keeps a second process out.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import dataclasses
import itertools
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dspy
from dspy.lm15 import Message as Turn
from dspy.lm15 import Request, Response, Usage

from judgecal.engine.budget import Budget, BudgetGate
from judgecal.engine.cache import ReplyCache, cache_key
from judgecal.engine.call_runner import CallResult, CallRunner, Policy
from judgecal.engine.calls import Message, Reply, ReplySchema
from judgecal.engine.log import Log, as_line, line_reader
from judgecal.engine.run import Progress
from judgecal.engine.scheduler import CallSlots, Limiter
from judgecal.engine.transport import open_transport
from judgecal.errors import BudgetError, JudgecalError, Stopped
from judgecal.models import ModelSpec
from judgecal.models.embedded.engine import AsyncEmbeddedEngine, EmbeddedEngine
from judgecal.records import RETRIED_ON_RESUME, Failure

CALL_LOG = "optimizer_calls.jsonl"
"""The file's name in an experiment's folder."""
_DEFAULT_CONCURRENCY = 16
# Failures that say something of the text, not of the provider: a program's own, so the optimiser goes on.
_OWN_FAULT = ("refused", "context_length", "length", "parse", "out_of_range")

# The numbers of the samples that a call asks for: several where it has `n`, as COPRO's.
_samples: contextvars.ContextVar[Iterator[int]] = contextvars.ContextVar("judgecal_samples")
_APART = 10**9  # beyond DSPy's own numbers of samples
schema_now: contextvars.ContextVar[ReplySchema | None] = contextvars.ContextVar(
    "judgecal_schema", default=None
)
"""What the replies to this thread's calls are held to, where the server can do that."""


def says_something(reply: Reply) -> bool:
    """Whether a reply holds a text that the provider did not withhold."""
    return reply.stopped != "content_filter" and bool(reply.text.strip())


@dataclasses.dataclass(frozen=True, slots=True)
class ProgramCall:
    """A call that an optimiser asks for: `task` of the judge, `reflection` of who writes instructions."""

    spec: ModelSpec  # with the sampling settings of this call
    messages: Sequence[Message]
    purpose: str = "task"
    repeat: int = 0  # tells samples of one prompt apart; 0 where DSPy asks for none in particular
    schema: ReplySchema | None = None

    @property
    def key(self) -> str:
        """The key of this request, in the cache and in the log alike."""
        return cache_key(self.spec, self.messages, self.repeat, self.schema)


@dataclasses.dataclass(frozen=True, slots=True)
class LoggedCall:
    """A call of an optimiser with its reply: a line of the log. The last line of a key wins."""

    key: str
    purpose: str
    model: str
    reply: Reply | None
    error: Failure | None
    attempts: int
    cost_usd: float | None
    cached: bool


def _log_at(path: Path, **reading: Any) -> Log[LoggedCall]:
    return Log(path, "call", encode=as_line, decode=line_reader(LoggedCall), **reading)


def logged_usd(path: Path) -> float:
    """Return what the calls in the log at a path cost, in US dollars; 0 where there is no file.

    A line that cannot be read counts nothing; `ProgramCalls` has named it.
    """
    return sum((call.cost_usd or 0.0 for call in _log_at(path, damaged=lambda *_: None).rows()), 0.0)


def width(spec: ModelSpec) -> int:
    """The number of threads of an optimiser: its calls of one model that are in flight at most."""
    return 1 if spec.embedded else spec.max_concurrency or _DEFAULT_CONCURRENCY


class ProgramCalls:
    """Makes calls for other threads, in an event loop of its own; a context manager.

    Identical requests are one call, in flight and afterwards. A call that fails by its own text gives an
    empty reply, so that it reaches the metric as an unusable one. `error` is what ended the optimiser, else
    None. In the file `log` calls are kept, and found when the run is resumed.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        policy: Policy | None = None,
        log: Path | None = None,
        cache: ReplyCache | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.error: Exception | None = None
        self._gate, self._policy = BudgetGate(budget), policy or Policy()
        self._cache, self._progress = cache, progress
        self._log = _log_at(log).open(lock=False) if log else None
        self._replies = dict[str, Reply]()  # of the log; failures that another try can mend are none
        for call in self._log.rows() if self._log else ():
            if call.error is None or call.error.kind not in RETRIED_ON_RESUME:
                self._replies[call.key] = call.reply or Reply("", call.model)
        self._ended = True
        self._guard = threading.RLock()  # a handler of Ctrl-C may stop what its own thread is about to ask
        self._tasks: dict[str, asyncio.Task[Reply]] = {}
        self._runners: dict[ModelSpec, CallRunner] = {}
        self._slots: dict[str, CallSlots] = {}

    def __enter__(self) -> ProgramCalls:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="judgecal-optimizer", daemon=True)
        self._thread.start()
        self._ended = False
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._log:
            self._log.close()

    def ask(self, call: ProgramCall) -> Reply:
        """Make a ProgramCall and return its Reply; the calling thread waits.

        Raises:
            Stopped: the optimiser must end, now or since an earlier call; `error` says why.
        """
        with self._guard:
            if self._ended:
                raise Stopped
            coming = asyncio.run_coroutine_threadsafe(self._once(call), self._loop)
        try:
            return coming.result()
        except concurrent.futures.CancelledError:
            raise Stopped from None
        except Exception as error:
            self.stop(error)
            raise Stopped from error

    @property
    def n_asked(self) -> int:
        """Requests so far, each once, also those that the record answered."""
        return len(self._tasks)

    def stop(self, error: Exception | None = None) -> None:
        """Stop all further calls, with the error that ends the optimiser; the first error counts.

        Calls in flight are dropped, unless it is the money that ended: those are paid for, so they are kept.
        """
        with self._guard:
            if self._ended:
                return
            self._ended = True
            self.error = error
            if not isinstance(error, BudgetError):
                self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._tasks.values()])

    async def _close(self) -> None:
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for runner in self._runners.values():
            await runner.transport.close()

    async def _once(self, call: ProgramCall) -> Reply:
        if call.key not in self._tasks:
            if self._ended:
                raise asyncio.CancelledError  # asked for just before the end, and not begun
            self._tasks[call.key] = asyncio.ensure_future(self._stored_or_made(call))
        return await asyncio.shield(self._tasks[call.key])

    async def _stored_or_made(self, call: ProgramCall) -> Reply:
        if call.key in self._replies:
            self._count(CallResult(self._replies[call.key]))
            return self._replies[call.key]
        runner = self._runner(call.spec)
        result = await runner.make(call.messages, call.repeat, call.schema, usable=says_something)
        failure = result.failure
        stays = "so the optimiser stops without a result; what it was answered is kept"
        if failure and failure.kind == "budget":
            raise BudgetError(
                f"--budget-usd: {failure.message}, {stays}, and the same command with a larger budget goes on"
            )
        if self._log:
            made = LoggedCall(
                key=call.key,
                purpose=call.purpose,
                model=call.spec.alias,
                reply=None if failure else result.reply,
                error=failure,
                attempts=result.attempts,
                cost_usd=result.cost_usd,
                cached=result.cached,
            )
            self._log.append(made)
        self._count(result)
        if failure and failure.kind not in _OWN_FAULT:  # no program can be blamed for it
            tried = f"{result.attempts} attempts" if result.attempts > 1 else "one attempt"
            what = f"model {call.spec.alias} ({call.spec.id}) gave no reply in {tried}"
            raise JudgecalError(
                f"{what} ({failure.kind}: {failure.message}), {stays}, and the same command goes on"
            )
        return result.reply or Reply("", call.spec.id)

    def _runner(self, spec: ModelSpec) -> CallRunner:
        """The runner for a model with these settings; those of one model share its slots."""
        if spec not in self._runners:
            slots = self._slots.setdefault(spec.alias, CallSlots(Limiter(width(spec))))
            read = dataclasses.replace(spec, verdict="said")  # programs read words
            self._runners[spec] = CallRunner(
                read,
                open_transport(read),
                slots=slots,
                gate=self._gate,
                policy=self._policy,
                cache=self._cache,
            )
        return self._runners[spec]

    def _count(self, result: CallResult) -> None:
        if self._progress:
            self._progress.add(scored=result.failure is None, cost_usd=result.cost_usd)


def program_lm(spec: ModelSpec, calls: ProgramCalls, *, purpose: str = "task") -> dspy.LM:
    """Return a `dspy.LM` of a ModelSpec, with its settings, whose calls go through these ProgramCalls.

    The embedded model answers in the calling thread and costs nothing, so it needs none of it. `calls` is
    open while the LM is used.
    """
    if spec.embedded:
        return dspy.LM(spec.id, engine=EmbeddedEngine(), async_engine=AsyncEmbeddedEngine(), cache=False)
    # Under a name of our own: DSPy has rules and prices for other names, and neither applies here. The calls
    # are retried by the engine; two layers of retries would multiply.
    engine = _Engine(spec, calls, purpose)
    return _ProgramLM(f"judgecal/{spec.alias}", engine=engine, cache=False, num_retries=0)


class _ProgramLM(dspy.LM):  # type: ignore[misc]
    """Tells its engine which sample is asked for: DSPy takes that out of the request."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        rollout = kwargs.get("rollout_id", self.kwargs.get("rollout_id"))
        before = _samples.set(itertools.count(0 if rollout is None else 1 + rollout, _APART))
        try:
            return super().__call__(*args, **kwargs)
        finally:
            _samples.reset(before)


class _Engine:
    """A DSPy engine that sends what it is given through `ProgramCalls`."""

    def __init__(self, spec: ModelSpec, calls: ProgramCalls, purpose: str) -> None:
        self._spec, self._calls, self._purpose = spec, calls, purpose

    def complete(self, request: Request) -> Response:
        """One response; a reply without text goes on as a blank, which DSPy parses like any other."""
        given = {name: getattr(request.config, name) for name in ("temperature", "max_tokens")}
        settings = {name: value for name, value in given.items() if value is not None}
        system = request.system or ""
        if not isinstance(system, str):
            system = "".join(part.text for part in system)
        messages: list[Message] = [{"role": "system", "content": system}] if system else []
        messages += [{"role": turn.role, "content": turn.text or ""} for turn in request.messages]
        spec, repeat = dataclasses.replace(self._spec, **settings), next(_samples.get())
        reply = self._calls.ask(ProgramCall(spec, messages, self._purpose, repeat, schema_now.get()))
        text = "" if reply.stopped == "content_filter" else reply.text
        read, written = reply.prompt_tokens or 0, reply.completion_tokens or 0
        return Response(
            id=None,
            model=reply.model_id,
            message=Turn.assistant(text or " "),
            finish_reason="length" if reply.stopped == "length" else "stop",
            usage=Usage(input_tokens=read, output_tokens=written, total_tokens=read + written),
        )

    def close(self) -> None:
        """Nothing is held open."""
