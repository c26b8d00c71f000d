"""A budget of 1.00 USD on a server that takes 0.01 a call: never a hundred and first one. One that takes more
than it could is stopped one reply beyond the limit at the latest."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.benchmarks.stub import COMPLETION_TOKENS, REPLY, Answer, completion, http, running
from tests.torture.conftest import LEVEL
from tests.torture.world import World

ITEMS, LIMIT_USD, CALL_USD = 250, 1.00, 0.01
PER_MILLION = CALL_USD / COMPLETION_TOKENS * 1e6
GOOD = http(completion(REPLY)).data
# Answers that the provider has worked for, so that they are on its bill, and those that it has not.
BILLED_FAULTS = (
    http(completion(REPLY)[:-60]),
    http(completion("no verdict in here")),
    Answer(GOOD, delay_s=4.0),
    Answer(GOOD[: len(GOOD) // 2], end="reset"),
)
FREE_FAULTS = (
    http(b'{"error": {"message": "slow down"}}', "429 Too Many Requests", retry_after=0),
    http(b'{"error": {"message": "down"}}', "503 Service Unavailable"),
)


@pytest.mark.parametrize("faults", [(), FREE_FAULTS, BILLED_FAULTS], ids=["good", "free", "billed"])
@pytest.mark.parametrize("at_once", [1, 8, 64] if LEVEL == "full" else [64])
@pytest.mark.parametrize("longest", [COMPLETION_TOKENS, 10 * COMPLETION_TOKENS])
def test_at_most_a_hundred_calls(
    world: World, faults: tuple[Answer, ...], at_once: int, longest: int
) -> None:
    rng, billed = random.Random(at_once), 0
    world.make(ITEMS)

    def script(_head: bytes, _body: bytes) -> Answer:
        nonlocal billed
        answer = rng.choice(faults) if faults and rng.random() < 0.3 else Answer(GOOD, rng.uniform(0, 0.03))
        billed += answer not in FREE_FAULTS
        return answer

    with running(script) as stub:
        world.alias(
            stub.api_base, max_concurrency=at_once, timeout=1.0, input_usd_per_1m=0.0,
            output_usd_per_1m=PER_MILLION, max_tokens=longest,
        )  # fmt: skip
        argv = world.score("--no-cache", "--budget-usd", str(LIMIT_USD))
        ended = world.run(argv, timeout=300.0)
        assert (ended.code, "Traceback" in ended.err) == (4, False), ended
        assert billed <= LIMIT_USD / CALL_USD
        worst = CALL_USD * longest / COMPLETION_TOKENS
        if not faults:
            assert stub.calls >= (LIMIT_USD - worst) / CALL_USD, "money is left that a call would have fitted"
        last = {row["item_id"]: row for row in world.rows()}
        assert len(last) == ITEMS
        assert any((row["error"] or {}).get("kind") == "budget" for row in last.values())


def test_the_rest_is_paid_by_the_next_run(world: World) -> None:
    world.make(ITEMS)
    with running(lambda _head, _body: Answer(GOOD)) as stub:
        prices = {"input_usd_per_1m": 0.0, "output_usd_per_1m": PER_MILLION}
        world.alias(stub.api_base, max_concurrency=64, max_tokens=COMPLETION_TOKENS, **prices)
        argv = world.score("--no-cache", "--budget-usd", str(LIMIT_USD))
        codes = [(world.run(argv).code, stub.calls) for _ in range(4)]
        assert codes == [(4, 100), (4, 200), (0, 250), (0, 250)]
        world.check_whole()


def usage_of(times: float) -> dict[str, Any]:
    """So many times the longest reply, in cents: a call's estimate is 0.01 USD."""
    return {"prompt_tokens": 300, "completion_tokens": round(times * COMPLETION_TOKENS)}


# From the number of a call to what its server reports; None reports nothing.
REPORTED: dict[str, Callable[[int], dict[str, Any] | None]] = {
    **{f"x{times:g}": (lambda _, times=times: usage_of(times)) for times in (1.0, 1.7, 10.0, 43.0, 100.0)},  # type: ignore[misc]
    "growing": lambda n: usage_of(0.5 + 0.1 * n),
    "zero": lambda _: {"prompt_tokens": 0, "completion_tokens": 0},
    "absent": lambda _: None,
    "nonsense": lambda n: {"prompt_tokens": [-1, "7", 10**400, 1e308][n % 4], "completion_tokens": None},
}


@pytest.mark.parametrize("reported", REPORTED if LEVEL == "full" else ["x43", "zero"])
@pytest.mark.parametrize("at_once", [1, 64] if LEVEL == "full" else [64])
@pytest.mark.parametrize("limit_usd", [0.05, 1.00])
def test_at_most_one_reply_beyond_the_limit(
    world: World, reported: str, at_once: int, limit_usd: float
) -> None:
    rng, calls = random.Random(at_once), 0
    billed: list[float] = []
    world.make(ITEMS)
    # Where the server does not say, the reply is on the bill by its text, at 3 bytes a token.
    by_text = -(-len(REPLY) // 3) * PER_MILLION / 1e6

    def script(_head: bytes, _body: bytes) -> Answer:
        nonlocal calls
        usage = REPORTED[reported](calls)
        calls += 1
        known = usage and reported not in ("zero", "nonsense")
        billed.append(usage["completion_tokens"] * PER_MILLION / 1e6 if known and usage else by_text)
        body = json.loads(completion(REPLY)) | {"usage": usage}
        return Answer(http(json.dumps(body).encode()).data, rng.uniform(0, 0.03))

    with running(script) as stub:
        prices = {"input_usd_per_1m": 0.0, "output_usd_per_1m": PER_MILLION}
        world.alias(stub.api_base, max_concurrency=at_once, max_tokens=COMPLETION_TOKENS, **prices)
        ended = world.run(world.score("--no-cache", "--budget-usd", str(limit_usd)), timeout=300.0)
    assert (ended.code, "Traceback" in ended.err) == (4, False), ended
    assert sum(billed) <= limit_usd + max(billed)
    assert sum(billed) > limit_usd - CALL_USD - max(billed), "money is left that a call would have fitted"
    assert f"the budget of {limit_usd:g} USD ended the calls" in ended.err
    assert ("times the most that a call was estimated to cost" in ended.err) == (
        max(billed) > 1.001 * CALL_USD
    )
    assert ("without a usable count of tokens" in ended.err) == (reported in ("zero", "absent", "nonsense"))
