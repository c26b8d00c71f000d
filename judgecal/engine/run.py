"""Run calls: bounded concurrency, retries where a retry can help, budget, journal, progress.

A failed judgement is a row with an error. It is never 0 and never dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import random
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from judgecal.engine.budget import Budget, worst_cost_usd
from judgecal.engine.cache import ReplyCache, cache_key
from judgecal.engine.calls import Call, CallFailed, Message, Reading, Reply
from judgecal.engine.progress import Progress
from judgecal.engine.transport import Transport, open_transport
from judgecal.models import ModelSpec
from judgecal.records import Failure, Judgement

__all__ = ["Policy", "run_calls"]

T = TypeVar("T")
_DEFAULT_CONCURRENCY = 16


@dataclass(frozen=True, slots=True)
class Policy:
    """How calls are made.

    Attributes:
        attempts: tries of one call at most.
        first_wait_s, longest_wait_s: the bounds of the exponential back-off, drawn with full jitter.
        seed: of the jitter.
    """

    attempts: int = 5
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    seed: int = 0


@dataclass(slots=True)
class _Run:
    """What the workers of one run share."""

    spec: ModelSpec
    transport: Transport
    policy: Policy
    budget: Budget
    progress: Progress | None
    record: Callable[[Judgement], None]
    cache: ReplyCache | None
    rng: random.Random = field(default_factory=random.Random)
    in_flight: int = 0
    landed: asyncio.Event = field(default_factory=asyncio.Event)


def run_calls(
    calls: Sequence[Call],
    spec: ModelSpec,
    *,
    record: Callable[[Judgement], None],
    budget: Budget | None = None,
    cache: ReplyCache | None = None,
    policy: Policy | None = None,
    progress: Progress | None = None,
) -> None:
    """Make every call and hand each judgement to `record` as it comes.

    Args:
        calls: what is to be called; their order is the order of the start, not of the end.
        spec: the model.
        record: called once a judgement, in this thread or the loop's, never twice at once.
        budget: money that may be spent; without it there is no limit.
        cache: stored replies to take and to add to; `embedded` needs none.
        policy: retries.
        progress: counts what is done.

    Raises:
        InputError: the model's key is not set.
        AuthError: the provider refused it; what was recorded stays.
        OSError: `record` could not write.
    """
    if not calls:
        return
    policy = policy or Policy()
    run = _Run(
        spec=spec,
        transport=open_transport(spec),
        policy=policy,
        budget=budget or Budget(None),
        progress=progress,
        record=record,
        cache=None if spec.embedded else cache,
        rng=random.Random(policy.seed),
    )
    _run_to_end(lambda: _work_off(run, calls))


def _run_to_end(make: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """`asyncio.run`, also from inside a notebook, whose own loop is already running in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(make())
        return
    _run_in_thread(make)


def _run_in_thread(make: Callable[[], Coroutine[Any, Any, None]]) -> None:
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

    threading.Thread(target=target, name="judgecal-engine").start()
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


async def _work_off(run: _Run, calls: Sequence[Call]) -> None:
    width = min(len(calls), 1 if run.spec.embedded else run.spec.max_concurrency or _DEFAULT_CONCURRENCY)
    waiting = iter(calls)
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(width):
                group.create_task(_worker(run, waiting))
    except BaseExceptionGroup as failures:
        # The workers stop together; the first cause is what the user needs to hear.
        raise failures.exceptions[0] from None
    finally:
        await run.transport.close()


async def _worker(run: _Run, waiting: Iterator[Call]) -> None:
    for call in waiting:
        judgement = await _judge_once(run, call)
        run.record(judgement)
        if run.progress:
            run.progress.add(scored=judgement.verdict is not None, cost_usd=judgement.cost_usd)


@dataclass(slots=True)
class _Tally:
    """What the attempts of one call came to."""

    attempts: int = 0
    latency_s: float | None = None
    cost_usd: float | None = 0.0
    reply: Reply | None = None
    cached: bool = False
    reading: Reading = field(default_factory=lambda: Reading(None))


async def _judge_once(run: _Run, call: Call) -> Judgement:
    """One judgement, retries included."""
    messages = call.messages()
    tally = _Tally()
    key = cache_key(run.spec, messages, call.key[3]) if run.cache else ""
    if run.cache and (stored := run.cache.get(key)):
        tally.reply, tally.cached, tally.reading = stored, True, _read(call, stored)
        return _row(call, tally)
    while True:
        wait = await _attempt(run, call, messages, tally)
        if wait is None:
            if run.cache and tally.reply:
                run.cache.put(key, tally.reply)
            return _row(call, tally)
        await asyncio.sleep(wait)


async def _attempt(run: _Run, call: Call, messages: Sequence[Message], tally: _Tally) -> float | None:
    """One try; the seconds to wait before the next, or None where the call has ended."""
    worst = worst_cost_usd(run.spec, messages) if run.budget.limit_usd is not None else 0.0
    if not await _held(run, worst):
        limit = run.budget.limit_usd
        tally.reading = Reading(None, failure=Failure("budget", f"the next call could overrun {limit:g} USD"))
        return None
    tally.attempts += 1
    start = time.perf_counter()
    cost: float | None = 0.0
    booked = worst
    try:
        tally.reply = await run.transport.send(messages, repeat=call.key[3])
        tally.latency_s = time.perf_counter() - start
        cost = run.spec.cost_usd(tally.reply.prompt_tokens, tally.reply.completion_tokens)
        booked = worst if cost is None else cost
        tally.reading = _read(call, tally.reply)
        return None
    except CallFailed as failed:
        tally.reading = Reading(None, failure=Failure(failed.kind, str(failed)))
        # A reply that came too late is on the provider's bill all the same.
        booked = worst if failed.kind == "timeout" else 0.0
        again = failed.retry and tally.attempts < run.policy.attempts
        return _wait(run, tally.attempts, failed.retry_after) if again else None
    finally:
        run.budget.settle(worst, booked)
        run.in_flight -= 1
        run.landed.set()
        tally.cost_usd = None if cost is None or tally.cost_usd is None else tally.cost_usd + cost


async def _held(run: _Run, worst: float) -> bool:
    """Set a call's worst cost aside; calls in flight may still give money back, so they are waited for."""
    while not run.budget.hold(worst):
        if not (run.in_flight and run.budget.fits(worst)):
            return False
        run.landed.clear()
        await run.landed.wait()
    run.in_flight += 1
    return True


def _read(call: Call, reply: Reply) -> Reading:
    if reply.stopped == "content_filter":
        return Reading(None, failure=Failure("refused", "the provider's filter withheld the reply"))
    reading = call.read(reply.text)
    if reading.failure and reply.stopped == "length":
        message = f"{reading.failure.message} (the reply was cut at max_tokens)"
        return Reading(None, reading.reasoning, Failure(reading.failure.kind, message))
    return reading


def _wait(run: _Run, attempts: int, retry_after: float | None) -> float:
    """Full jitter over an exponential bound; never sooner than the provider asked for."""
    bound = min(run.policy.longest_wait_s, run.policy.first_wait_s * 2 ** (attempts - 1))
    return max(run.rng.uniform(0.0, bound), min(retry_after or 0.0, run.policy.longest_wait_s))


def _row(call: Call, tally: _Tally) -> Judgement:
    item_id, item_sha, fingerprint, repeat = call.key
    reply, reading = tally.reply, tally.reading
    return Judgement(
        item_id=item_id,
        item_sha=item_sha,
        judge=call.judge,
        judge_fingerprint=fingerprint,
        repeat=repeat,
        verdict=reading.verdict,
        reasoning=reading.reasoning,
        raw_reply=reply.text if reply and reading.verdict is None else None,
        error=reading.failure,
        attempts=tally.attempts,
        latency_s=None if tally.latency_s is None else round(tally.latency_s, 6),
        prompt_tokens=reply.prompt_tokens if reply else None,
        completion_tokens=reply.completion_tokens if reply else None,
        cost_usd=tally.cost_usd,
        model_id=reply.model_id if reply else None,
        cached=tally.cached,
        at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
