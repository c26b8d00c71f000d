"""A server that fails in every way it can: each item ends with a verdict or a named error, and the run
ends."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from email.utils import formatdate
from time import time

import pytest

from tests.benchmarks.stub import MODEL_ID, REPLY, Answer, completion, http, running
from tests.torture.conftest import LEVEL
from tests.torture.world import World, item_of

FULL = LEVEL == "full"
ITEMS = 400 if FULL else 40
TIMEOUT_S = 1.0
SHARE = 0.3
WHOLE = http(completion(REPLY)).data


def said(text: str) -> Answer:
    return http(completion(text))


def verdict(value: str) -> str:
    return REPLY.replace("85", value)


def error(status: str, **headers: str | float) -> Callable[[], Answer]:
    body = json.dumps({"error": {"message": "made to fail", "type": "stub", "code": None}}).encode()
    return lambda: http(body, status, **headers)


# Name -> the answer and the kinds of error that an item may end with where nothing else is ever answered.
FAULTS: dict[str, tuple[Callable[[], Answer], frozenset[str]]] = {
    "429": (error("429 Too Many Requests"), frozenset({"rate_limit"})),
    "429 retry-after": (error("429 Too Many Requests", retry_after=1), frozenset({"rate_limit"})),
    "429 retry-after date": (
        lambda: http(b"{}", "429 Too Many Requests", retry_after=formatdate(time() + 1, usegmt=True)),
        frozenset({"rate_limit"}),
    ),
    "500": (error("500 Internal Server Error"), frozenset({"server"})),
    "503": (error("503 Service Unavailable"), frozenset({"server", "rate_limit"})),
    "503 HTML": (
        lambda: http(b"<html><body>Down</body></html>", "503 Service Unavailable", kind="text/html"),
        frozenset({"server", "rate_limit"}),
    ),
    "reset": (lambda: Answer(b"", end="reset"), frozenset({"transport"})),
    "reset in the reply": (lambda: Answer(WHOLE[: len(WHOLE) // 2], end="reset"), frozenset({"transport"})),
    "closed in the reply": (lambda: Answer(WHOLE[:-40], end="close"), frozenset({"transport", "server"})),
    "hang": (lambda: Answer(WHOLE, delay_s=TIMEOUT_S * 4), frozenset({"timeout"})),
    "hang in the reply": (lambda: Answer(WHOLE[:-40]), frozenset({"timeout"})),
    "truncated JSON": (lambda: http(completion(REPLY)[:-60]), frozenset({"server", "transport", "parse"})),
    "HTML": (
        lambda: http(b"<html><body>Welcome</body></html>", kind="text/html"),
        frozenset({"server", "transport", "parse"}),
    ),
    "empty body": (lambda: http(b""), frozenset({"server", "transport", "parse"})),
    "no choices": (
        lambda: http(json.dumps({"model": MODEL_ID, "choices": []}).encode()),
        frozenset({"server", "transport", "parse"}),
    ),
    "null content": (
        lambda: http(completion(REPLY).replace(json.dumps(REPLY).encode(), b"null")),
        frozenset({"server", "parse"}),
    ),
    "JSON of another kind": (lambda: http(b"[1, 2]"), frozenset({"server", "transport", "parse"})),
    "150": (lambda: said(verdict("150")), frozenset({"out_of_range"})),
    "prose": (lambda: said("Well, I would say it is mostly right."), frozenset({"parse"})),
    "empty reply": (lambda: said(""), frozenset({"parse", "server"})),
}
KINDS = frozenset().union(*(kinds for _, kinds in FAULTS.values()))


def truth(item: str) -> str:
    return str(int(hashlib.sha256(item.encode()).hexdigest(), 16) % 101)


@pytest.mark.parametrize("seed", range(3 if FULL else 1))
def test_three_calls_in_ten_fail(world: World, seed: int) -> None:
    rng = random.Random(seed)
    world.make(ITEMS)

    def script(_: bytes, body: bytes) -> Answer:
        if rng.random() < SHARE:
            return rng.choice(list(FAULTS.values()))[0]()
        return said(verdict(truth(item_of(body))))

    with running(script) as stub:
        world.alias(stub.api_base, timeout=TIMEOUT_S, max_concurrency=32)
        ended = world.run(world.score(), timeout=180.0)
        assert ended.code in (0, 4), (ended.code, ended.err)
        assert "Traceback" not in ended.err
        rows = world.rows()
        assert sorted(row["item_id"] for row in rows) == sorted(f"i{n}" for n in range(ITEMS))
        check_rows(rows)
        unscored = [row for row in rows if row["verdict"] is None]
        assert (ended.code == 4) == bool(unscored)
        assert len(unscored) < 0.25 * ITEMS
        assert stub.calls <= 5 * ITEMS
        assert ended.seconds < 120.0


def check_rows(rows: list[dict[str, object]]) -> None:
    """Each row: its own item's verdict, or an error by name and what the model had said."""
    for row in rows:
        failed = row["error"]
        if failed is None:
            assert row["verdict"] == float(truth(str(row["item_id"]).removeprefix("i"))), row
            continue
        assert isinstance(failed, dict)
        assert row["verdict"] is None
        assert failed["kind"] in KINDS, row
        assert failed["message"], row
        if failed["kind"] in ("parse", "out_of_range"):
            assert isinstance(row["raw_reply"], str), row
