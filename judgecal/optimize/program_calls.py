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
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dspy
from dspy.lm15 import Message as Turn
from dspy.lm15 import Request, Response, Usage

from judgecal.engine import (
    Budget,
    BudgetGate,
    CallResult,
    CallRunner,
    CallSlots,
    Limiter,
    Message,
    Policy,
    Progress,
    Reply,
    ReplyCache,
    ReplySchema,
)
from judgecal.engine.cache import cache_key, stored_reply
from judgecal.engine.log import Log, now
from judgecal.engine.transport import open_transport
from judgecal.errors import BudgetError, JudgecalError, Stopped
from judgecal.models import ModelSpec
from judgecal.models.embedded import AsyncEmbeddedEngine, EmbeddedEngine
from judgecal.records import RETRIED_ON_RESUME

CALL_LOG = "optimizer_calls.jsonl"
"""The file's name in an experiment's folder."""
_DEFAULT_CONCURRENCY = 16
# Failures that say something of the text, not of the provider: a program's own, so the optimiser goes on.
_OWN_FAULT = ("refused", "context_length", "length", "parse", "out_of_range")

# The numbers of the samples that a call asks for: several where it has `n`, as COPRO's.
_samples: contextvars.ContextVar[Iterator[int]] = contextvars.ContextVar("judgecal_samples")
_APART = 10**9  # beyond DSPy's own numbers of samples
_Row = dict[str, Any]


def says_something(reply: Reply) -> bool:
    """Whether a reply holds a text that the provider did not withhold."""
    return reply.stopped != "content_filter" and bool(reply.text.strip())


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """What a reply must be: of a schema where the server can be held to it; stored where it is `usable`."""

    schema: ReplySchema | None = None
    usable: Callable[[Reply], bool] = says_something


ANYTHING = Wanted()
wanted_now: contextvars.ContextVar[Wanted] = contextvars.ContextVar("judgecal_wanted", default=ANYTHING)
"""What the calls that this thread makes want."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProgramCall:
    """A call that an optimiser asks for: `task` of the judge, `reflection` of who writes instructions."""

    spec: ModelSpec  # with the sampling settings of this call
    messages: Sequence[Message]
    purpose: str = "task"
    repeat: int = 0  # tells samples of one prompt apart; 0 where DSPy asks for none in particular
    wanted: Wanted = ANYTHING

    @property
    def key(self) -> str:
        """The key of this request, in the cache and in the log alike."""
        return cache_key(self.spec, self.messages, self.repeat, self.wanted.schema)


class CallLog:
    """The calls of an optimiser in a file that is made if it is not there; a context manager."""

    def __init__(self, path: Path, optimizer: str) -> None:
        self._optimizer = optimizer
        self._log = Log[_Row](path, "call", encode=_line_of, decode=_row_of).open(lock=False)
        # The last line of a key wins.
        self._replies = dict(stored for row in self._log.rows() if (stored := _stored(row)) is not None)

    def __enter__(self) -> CallLog:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    def stored(self, key: str) -> Reply | None:
        """The reply that was had under a key; failures that another try can mend are none."""
        return self._replies.get(key)

    def add(self, call: ProgramCall, result: CallResult) -> None:
        """Log a call with its result."""
        reply, failure = result.reply or Reply("", call.spec.id), result.failure
        row = {name: getattr(reply, name) for name in _OF_REPLY}
        row |= {"at": now(), "optimizer": self._optimizer, "purpose": call.purpose, "key": call.key}
        row |= {"model": call.spec.alias, "cached": result.cached, "attempts": result.attempts}
        row |= {"text": None if failure else reply.text, "cost_usd": result.cost_usd}
        error = {"kind": failure.kind, "message": failure.message} if failure else None
        self._log.append({**row, "error": error})


def _line_of(row: _Row) -> bytes:
    return json.dumps(row).encode("ascii")


def _row_of(line: bytes) -> _Row:
    """Raises one of DAMAGED: the line is no call."""
    row: _Row = json.loads(line)
    _stored(row)
    row["cost_usd"] = float(row["cost_usd"] or 0.0)
    return row


def _stored(row: _Row) -> tuple[str, Reply] | None:
    """Key and reply of a call that need not be made again; None of a failure that another try can mend."""
    if row["error"] and row["error"]["kind"] in RETRIED_ON_RESUME:
        return None
    stored = {"text": row["text"] or "", **{name: row[name] for name in _OF_REPLY}}
    return str(row["key"]), stored_reply(json.dumps(stored).encode())


_OF_REPLY = ("model_id", "prompt_tokens", "completion_tokens", "stopped")


def logged_usd(path: Path) -> float:
    """What the calls in a log are known to have cost, in US dollars; 0 where there is no file.

    A line that cannot be read counts nothing; `CallLog` has named it.
    """
    log = Log[_Row](path, "call", encode=_line_of, decode=_row_of, damaged=lambda *_: None)
    return sum((row["cost_usd"] for row in log.rows()), 0.0)


def width(spec: ModelSpec) -> int:
    """The number of threads of an optimiser: its calls of one model that are in flight at most."""
    return 1 if spec.embedded else spec.max_concurrency or _DEFAULT_CONCURRENCY


class ProgramCalls:
    """Makes calls for other threads, in an event loop of its own; a context manager.

    Identical requests are one call, in flight and afterwards. A call that fails by its own text gives an
    empty reply, so that it reaches the metric as an unusable one. `record` is where calls are kept, and found
    when the run is resumed; `progress` counts the replies, wherever they come from. `error` is what ended the
    optimiser, else None.
    """

    def __init__(
        self,
        budget: Budget,
        *,
        policy: Policy | None = None,
        record: CallLog | None = None,
        cache: ReplyCache | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.error: Exception | None = None
        self._gate, self._policy = BudgetGate(budget), policy or Policy()
        self._record, self._cache, self._progress = record, cache, progress
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

    def ask(self, call: ProgramCall) -> Reply:
        """Make one call and return its reply; the calling thread waits.

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
        """Stop all further calls, with an error; the first error counts.

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
        if self._record and (stored := self._record.stored(call.key)):
            self._count(CallResult(stored))
            return stored
        runner, wanted = self._runner(call.spec), call.wanted
        result = await runner.make(call.messages, call.repeat, wanted.schema, usable=wanted.usable)
        failure, kept = (
            result.failure,
            "so the optimiser stops without a result; what it was answered is kept",
        )
        if failure and failure.kind == "budget":
            raise BudgetError(
                f"--budget-usd: {failure.message}, {kept}, and the same command with a larger budget goes on"
            )
        if self._record:
            self._record.add(call, result)
        self._count(result)
        if failure and failure.kind not in _OWN_FAULT:  # no program can be blamed for it
            tried = f"{result.attempts} attempts" if result.attempts > 1 else "one attempt"
            what = f"model {call.spec.alias} ({call.spec.id}) gave no reply in {tried}"
            raise JudgecalError(
                f"{what} ({failure.kind}: {failure.message}), {kept}, and the same command goes on"
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
    """A `dspy.LM` whose calls are made by `calls`: with the model's settings, unless DSPy asks for others.

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

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """As called; a program may have parts that are async."""
        return await asyncio.to_thread(self, *args, **kwargs)


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
        reply = self._calls.ask(ProgramCall(spec, messages, self._purpose, repeat, wanted_now.get()))
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
