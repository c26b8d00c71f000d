"""Run judgements: as many calls at once as goes well, each read and recorded as a row.

A failed judgement is a row with an error. It is never 0 and never dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import math
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sized
from dataclasses import dataclass, replace
from typing import Any, TextIO

from judgecal.engine.budget import Budget, BudgetGate
from judgecal.engine.cache import ReplyCache
from judgecal.engine.call_runner import CallResult, CallRunner, Policy
from judgecal.engine.calls import Call, OwnVerdict, ParsedReply, Reply, read_guarded, shortened
from judgecal.engine.log import iso, now
from judgecal.engine.scheduler import Limiter, Scheduler
from judgecal.engine.transport import Transport, open_transport
from judgecal.errors import ERASE_LINE, JudgecalError, refuse, visible
from judgecal.models import ModelSpec
from judgecal.records import Failure, Judgement, Key

_LOST_IN_A_ROW = 64  # calls, retries and all, without a connection: the server is not there
_LOST_FROM_THE_FIRST = 8  # ... where they are the whole run; fewer may be items that end the connection
_AWAITED_AT_ONCE = 32  # verdicts of an `async` function
_REDRAW_S = 0.2
_BAR = 12  # cells of the bar
_PLAIN_LINE_S = 30.0
_MOST_REPEATS = 1000  # of an item; the noise of a judge with itself is known long before


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a command calls models; no part of what it asks, so no part of an experiment's configuration."""

    repeats: int = 1  # judgements of each item by each judge
    limit: int | None = None
    budget_usd: float | None = None  # for this run
    use_cache: bool = True  # take stored replies of other experiments; they are stored all the same
    retry_unscored: bool = False  # also try again where a reply gave no verdict
    quiet: bool = False  # no progress on stderr
    processes: int = 1  # that do this at once, and divide the calls at once that a model allows

    def check(self) -> None:
        """Refuse options that cannot be run, naming every wrong one at once."""
        problems = []
        if not 1 <= self.repeats <= _MOST_REPEATS:
            problems.append(f"--repeats must be from 1 to {_MOST_REPEATS:,}, found {str(self.repeats)[:12]}")
        if self.limit is not None and self.limit < 1:
            problems.append(f"--limit must be at least 1, found {self.limit}")
        if self.budget_usd is not None and not self.budget_usd > 0:
            problems.append(f"--budget-usd must be above 0, found {self.budget_usd:g}")
        refuse(problems)


class Progress:
    """A bar that is redrawn on a terminal, and a plain line every 30 s elsewhere.

    Attributes:
        done, unscored, cost_usd: what was counted.
    """

    def __init__(self, label: str, total: int, *, stream: TextIO | None = None) -> None:
        self.label = " ".join(visible(label).split())
        self.total = total
        self.done = 0
        self.unscored = 0
        self.cost_usd = 0.0
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._start = self._shown = time.monotonic()
        self._drawn = False

    def add(self, *, scored: bool, cost_usd: float | None) -> None:
        """Count a judgement by a bool `scored` and a cost in USD, or None; show the state when it is time."""
        self.done += 1
        self.unscored += not scored
        self.cost_usd += cost_usd or 0.0
        self.show()

    def show(self) -> None:
        """Show the state when it is time; also called while nothing comes, so that a slow run shows."""
        now = time.monotonic()
        if now - self._shown >= (_REDRAW_S if self._live else _PLAIN_LINE_S):
            self._shown = now
            state, full = self.state(now - self._start), int(_BAR * self._share)
            bar = f"{'━' * full}{'─' * (_BAR - full)} {state} · {self.label}"
            self._write(bar if self._live else f"{self.label}: {state}\n")

    def state(self, elapsed_s: float) -> str:
        """Return as text the state after a number of elapsed seconds: done, speed, cost, time left."""
        rate = self.done / elapsed_s if elapsed_s > 0 else 0.0
        a_second = f"{rate:,.{0 if rate >= 10 else 1}f} a second"
        parts = [f"{self.done:,} of {self.total:,} ({math.floor(100 * self._share)}%)"]
        if rate:
            parts.append(a_second if rate >= 1 else f"{60 * rate:.1f} a minute")
        if self.unscored:
            parts.append(f"{self.unscored:,} unscored")
        if self.cost_usd:
            parts.append(f"${self.cost_usd:,.4f}")
        if rate:
            parts.append(f"{_clock((self.total - self.done) / rate)} left")
        return ", ".join(parts)

    @property
    def _share(self) -> float:
        return min(1.0, self.done / max(self.total, 1))

    def close(self) -> None:
        """Take the redrawn line away; what it counted stands in the result."""
        if self._drawn and self._live:
            self._write("")

    def _write(self, text: str) -> None:
        if redraw := getattr(self._stream, "redraw", None) if self._live else None:
            redraw(text)
        else:
            self._stream.write(f"{ERASE_LINE * self._live}{text}")
            self._stream.flush()
        self._drawn = True


def _clock(seconds: float) -> str:
    """Seconds as `1:05`, or `2:01:05` from an hour on."""
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


def run_calls(
    calls: Iterable[Call],
    spec: ModelSpec,
    *,
    record: Callable[..., None],
    budget: Budget | None = None,
    cache: ReplyCache | None = None,
    policy: Policy | None = None,
    progress: Progress | None = None,
    total: int | None = None,
    processes: int = 1,
) -> None:
    """Make Calls of a ModelSpec, and hand each judgement to a function `record` as it comes.

    Args:
        calls: what is to be called; their order is the order of the start, not of the end. An iterator is
            drawn from as calls become due.
        record: called with the judgements of each turn of the loop, in this thread or the loop's, never twice
            at once.
        budget: money that may be spent; without it there is no limit.
        cache: stored replies to take and to add to; `embedded` needs none.
        total: how many calls there are, where `calls` has no length.
        processes: how many make such calls at once and divide what the model allows.

    Raises:
        AuthError: the provider refused it; what was recorded stays.
        JudgecalError: the model cannot be reached.
        OSError: `record` could not write.
    """
    if isinstance(calls, Sized):
        total = len(calls)
    if total == 0:
        return
    transport, budget = open_transport(spec), budget or Budget(None)

    async def work_off() -> None:
        await _work_off(
            calls,
            spec,
            transport,
            record=record,
            gate=BudgetGate(budget),
            cache=None if spec.embedded else cache,
            policy=policy or Policy(),
            progress=progress,
            total=total,
            processes=processes,
        )

    run_to_end(work_off)


async def _work_off(
    calls: Iterable[Call],
    spec: ModelSpec,
    transport: Transport,
    *,
    record: Callable[..., None],
    gate: BudgetGate,
    cache: ReplyCache | None,
    policy: Policy,
    progress: Progress | None,
    total: int | None,
    processes: int,
) -> None:
    """Have every judgement; the transport is closed in the end."""
    lost, lost_at_most = 0, _LOST_IN_A_ROW
    if total is not None and total >= _LOST_FROM_THE_FIRST:
        lost_at_most = min(_LOST_IN_A_ROW, total)
    limiter = Limiter(1 if spec.embedded else spec.max_concurrency, total=total, processes=processes)

    def tick() -> None:
        """What is done twice a second, also while no reply comes."""
        if cache:
            cache.flush()
        if progress:
            progress.show()

    async def judge(call: Call) -> None:
        """Have one judgement and record it."""
        nonlocal lost, lost_at_most
        replies = _ReplyParser(call)
        messages, repeat = call.messages(), call.key.repeat
        result = await runner.make(
            messages, repeat, call.schema, usable=replies.gives_verdict, stored_as=replies.kept
        )
        parsed = replies.parse(result.reply) if result.reply else ParsedReply(None, failure=result.failure)
        row = _row(call.key, call.judge, result, parsed)
        batch.add(row)
        if progress:
            progress.add(scored=row.verdict is not None, cost_usd=row.cost_usd)
        if row.error is None or row.error.kind != "transport":
            # it was there: what is lost now may be a few calls
            lost, lost_at_most = 0, _LOST_IN_A_ROW
            return
        lost += 1
        if lost >= lost_at_most:  # it is not there: the rest would only wait
            raise JudgecalError(
                f"model {spec.alias} ({spec.id}) cannot be reached: the last {lost} calls ended with "
                f"{row.error.message!r}; we keep what was judged so far, and the same command resumes"
            )

    scheduler = Scheduler(calls, judge, limiter=limiter, tick=tick)
    batch = _Batch(record, scheduler.fail)
    runner = CallRunner(spec, transport, slots=scheduler, gate=gate, policy=policy, cache=cache)
    try:
        await scheduler.run()
    finally:
        try:
            batch.record()
        finally:
            await transport.close()


class _Batch:
    """Judgements that came in one turn of the loop, which are recorded together."""

    def __init__(self, record: Callable[..., None], fail: Callable[[BaseException], None]) -> None:
        self._record, self._fail = record, fail
        self._rows: list[Judgement] = []

    def add(self, row: Judgement) -> None:
        """Record a judgement when this turn of the loop ends."""
        if not self._rows:
            asyncio.get_running_loop().call_soon(self._end_of_turn)
        self._rows.append(row)

    def record(self) -> None:
        """Record what came since the last time."""
        rows, self._rows = self._rows, []
        if rows:
            self._record(*rows)

    def _end_of_turn(self) -> None:
        try:
            self.record()
        except BaseException as failure:  # noqa: BLE001 - raised again in `Scheduler.run`
            self._fail(failure)


_UNREAD = ParsedReply(None)


class _ReplyParser:
    """Parses the replies to one call; one that it is asked about again is not parsed again."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._last: tuple[Reply | None, ParsedReply] = (None, _UNREAD)

    def parse(self, reply: Reply) -> ParsedReply:
        """The verdict in a reply, or why there is none."""
        if reply is not self._last[0]:
            self._last = reply, self._parsed(reply)
        return self._last[1]

    def gives_verdict(self, reply: Reply) -> bool:
        """Whether a verdict can be read from it, with the chances of its token where those count."""
        return self.parse(reply).verdict is not None and (not self._call.weigh or reply.tokens is not None)

    def kept(self, reply: Reply) -> Reply:
        """The reply to store: of its tokens the one that is needed to read the same of it again."""
        token = self.parse(reply).token
        return reply if not reply.tokens else replace(reply, tokens=[token] if token else [])

    def _parsed(self, reply: Reply) -> ParsedReply:
        if reply.stopped == "content_filter":
            return ParsedReply(None, failure=Failure("refused", "the provider's filter withheld the reply"))
        parsed = read_guarded(self._call.read, reply.text)
        if parsed.failure and reply.stopped == "length":
            message = f"{parsed.failure.message} (the reply was cut at max_tokens)"
            return ParsedReply(None, parsed.reasoning, Failure(parsed.failure.kind, message))
        if (weigh := self._call.weigh) is None or parsed.verdict is None:
            return parsed
        return read_guarded(lambda text: weigh(text, reply.tokens or (), parsed), reply.text)


def _row(key: Key, judge: str, result: CallResult, parsed: ParsedReply) -> Judgement:
    reply = result.reply
    return Judgement(
        key.item_id,
        key.item_sha,
        judge,
        key.judge_fingerprint,
        key.repeat,
        key.own(parsed.verdict),
        shortened(parsed.reasoning),
        raw_reply=shortened(reply.text) if reply and parsed.verdict is None else None,
        error=parsed.failure,
        attempts=result.attempts,
        latency_s=None if result.latency_s is None else round(result.latency_s, 6),
        prompt_tokens=reply.prompt_tokens if reply else None,
        completion_tokens=reply.completion_tokens if reply else None,
        cost_usd=result.cost_usd,
        model_id=reply.model_id if reply else None,
        cached=result.cached,
        replied_at=None if result.replied_at is None else iso(int(result.replied_at)),
        at=now(),
        unit=key.unit,
        order=key.order,
        chances=parsed.chances and {str(key.own(word)): p for word, p in parsed.chances.items()},
        why_said=parsed.why_said,
    )


def take_verdicts(
    due: Iterable[OwnVerdict], *, record: Callable[..., None], progress: Progress | None = None
) -> None:
    """Take OwnVerdicts, of judges that need no call, and hand each judgement to a function `record`.

    From the first one that has to be awaited on, up to 32 are awaited at once, in one event loop.
    """

    def done(decision: OwnVerdict, parsed: ParsedReply, start: float) -> None:
        result = CallResult(attempts=1, latency_s=time.perf_counter() - start)
        record(_row(decision.key, decision.judge, result, parsed))
        if progress:
            progress.add(scored=parsed.verdict is not None, cost_usd=0.0)

    async def await_all(first: OwnVerdict, promised: Awaitable[ParsedReply], start: float) -> None:
        async def begin() -> None:
            done(first, await promised, start)
            await work_off()

        async def work_off() -> None:
            for decision in pending:  # which all of them draw from
                start = time.perf_counter()
                given = decision.give()
                done(decision, given if isinstance(given, ParsedReply) else await given, start)

        await asyncio.gather(begin(), *(work_off() for _ in range(_AWAITED_AT_ONCE - 1)))

    pending = iter(due)
    for decision in pending:
        start = time.perf_counter()
        given = decision.give()
        if not isinstance(given, ParsedReply):
            run_to_end(functools.partial(await_all, decision, given, start))
            return
        done(decision, given, start)


def run_to_end(make: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run the coroutine that a function makes, as `asyncio.run` does, also inside a notebook's loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(make())
        return
    failures: list[BaseException] = []
    ended = threading.Event()  # Python 3.11 takes a thread for ended once Ctrl-C has interrupted its `join`
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    async def main() -> None:
        work = asyncio.ensure_future(make())
        started.append((asyncio.get_running_loop(), work))
        await work

    def target() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            failures.append(error)
        finally:
            ended.set()

    # A program of DSPy's finds there what `dspy.context` was set to here.
    threading.Thread(target=contextvars.copy_context().run, args=(target,), name="judgecal-engine").start()
    try:
        ended.wait()
    except BaseException:
        # Ctrl-C reaches this thread alone; without this the other one would go on paying for calls.
        while not ended.is_set():
            for loop, work in started:
                with contextlib.suppress(RuntimeError):  # the loop has just ended by itself
                    loop.call_soon_threadsafe(work.cancel)
            ended.wait(0.1)
        raise
    if failures:
        raise failures[0]
