"""A budget of 1.00 USD on a server that takes 0.01 a call: never a hundred and first one."""

from __future__ import annotations

import random

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
def test_at_most_a_hundred_calls(world: World, faults: tuple[Answer, ...], at_once: int, longest: int) -> None:
    rng, billed = random.Random(at_once), 0
    world.make(ITEMS)

    def script(_head: bytes, _body: bytes) -> Answer:
        nonlocal billed
        answer = rng.choice(faults) if faults and rng.random() < 0.3 else Answer(GOOD, rng.uniform(0, 0.03))
        billed += answer not in FREE_FAULTS
        return answer

    with running(script) as stub:
        world.alias(
            stub.api_base,
            max_concurrency=at_once,
            timeout=1.0,
            input_usd_per_1m=0.0,
            output_usd_per_1m=PER_MILLION,
            max_tokens=longest,
        )
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


def test_a_model_without_a_price_is_refused(world: World) -> None:
    world.make(8)
    with running(lambda _head, _body: Answer(GOOD)) as stub:
        world.alias(stub.api_base)
        (world.root / "judgecal.toml").write_text(f'[models.mine]\nid = "openai/mine"\napi_base = "{stub.api_base}"\n')
        ended = world.run(world.score("--budget-usd", "1"))
        assert (ended.code, stub.calls) == (2, 0)
        assert "input_usd_per_1m" in ended.err
