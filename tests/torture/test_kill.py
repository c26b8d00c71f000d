"""Killed at random moments, by `kill -9` and by Ctrl-C, and taken up again: nothing lost, nothing paid
twice."""

from __future__ import annotations

import random
import signal
import time

import pytest

from tests.benchmarks.stub import REPLY, Answer, Served, completion, http, running
from tests.torture.conftest import LEVEL
from tests.torture.world import Ended, Running, World

ITEMS, AT_ONCE = 40, 8
BATCHES, KILLS = (6, 10) if LEVEL == "full" else (1, 4)
REPLY_BYTES = http(completion(REPLY)).data


def slow(rng: random.Random) -> Answer:
    return Answer(REPLY_BYTES, rng.uniform(0.001, 0.03))


def strike(run: Running, stub: Served, rng: random.Random, sign: signal.Signals) -> int:
    """Send a signal at a random moment of the run; gives the calls that had arrived."""
    after = rng.randrange(0, ITEMS + 1)
    until = time.monotonic() + 30.0
    while stub.calls < after and time.monotonic() < until:
        time.sleep(0.0005)
    time.sleep(rng.uniform(0.0, 0.4 if after in (0, ITEMS) else 0.03))
    run.kill(sign)
    return stub.calls


def options(rng: random.Random) -> list[str]:
    return rng.choice(([], ["--no-cache"]))


@pytest.mark.parametrize("batch", range(BATCHES))
def test_kill_9_loses_only_the_calls_in_flight(world: World, batch: int) -> None:
    rng = random.Random(batch)
    world.make(ITEMS)
    for number in range(KILLS):
        with running(lambda _head, _body: slow(rng)) as stub:
            world.alias(stub.api_base, max_concurrency=AT_ONCE)
            argv = [*world.score(*options(rng)), "--name", f"run{number}"]
            real = number == 0
            run = world.start(argv, real=real)
            strike(run, stub, rng, signal.SIGKILL)
            run.wait()
            time.sleep(0.05)  # what the kernel still held of its requests arrives
            before = stub.calls
            kept = world.rows(slug=f"run{number}")
            assert before - len(kept) <= AT_ONCE, "more was lost than was in flight"
            ended = world.run(argv, real=real)
            assert (ended.code, "Traceback" in ended.err) == (0, False), ended.err
            world.check_whole(slug=f"run{number}")
            assert stub.calls <= ITEMS + before - len(kept)
            assert not run.left_over(), "processes outlive the one that was killed"


@pytest.mark.parametrize("batch", range(max(BATCHES // 4, 1)))
def test_ctrl_c_ends_in_130_and_the_same_command_resumes(world: World, batch: int) -> None:
    rng = random.Random(1000 + batch)
    world.make(ITEMS)
    for number in range(KILLS):
        with running(lambda _head, _body: slow(rng)) as stub:
            world.alias(stub.api_base, max_concurrency=AT_ONCE)
            argv = [*world.score(*options(rng)), "--name", f"run{number}"]
            run = world.start(argv, real=number == 0)
            strike(run, stub, rng, signal.SIGINT)
            ended = run.wait()
            check_interrupted(ended, stub.calls)
            before, kept = stub.calls, len(world.rows(slug=f"run{number}"))
            assert before - kept <= AT_ONCE
            again = world.run(argv)
            assert again.code == 0, again.err
            world.check_whole(slug=f"run{number}")
            assert stub.calls <= ITEMS + before - kept
            assert not run.left_over()


def check_interrupted(ended: Ended, calls: int) -> None:
    """130 and one message; before the first call Python itself may still be loading, after the last it may be
    done."""
    if calls == 0:
        assert ended.code in (130, -signal.SIGINT, 1), ended
    elif calls == ITEMS:
        assert ended.code in (0, 130), ended
    else:
        assert (ended.code, "interrupted" in ended.err) == (130, True), ended
    if calls:
        assert "Traceback" not in ended.err, ended.err
