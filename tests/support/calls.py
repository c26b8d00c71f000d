"""Calls of a stub model through the engine."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import Any

from judgecal.engine.cache import ReplyCache
from judgecal.engine.call_runner import Policy
from judgecal.engine.calls import Call, ParsedReply
from judgecal.engine.run import run_calls
from judgecal.models import ModelSpec
from judgecal.records import Failure, Judgement, Key
from tests.support.server import StubServer


def stub_model(server: StubServer | str, **settings: Any) -> ModelSpec:
    """1000 prompt tokens cost 0.001 USD and 50 completion tokens 0.0001: 0.0011 a call."""
    base = server if isinstance(server, str) else server.api_base
    kept = {"input_usd_per_1m": 1.0, "output_usd_per_1m": 2.0, "max_tokens": 64, "timeout": 10.0}
    return ModelSpec("stub", "openai/stub-model", api_base=base, **{**kept, **settings})


def read_number(text: str) -> ParsedReply:
    word = text.strip()
    if word.isdigit():
        return ParsedReply(float(word), "as written")
    return ParsedReply(None, failure=Failure("parse", f"no number in {word[:20]!r}"))


def some_calls(count: int, *, text: str = "Is this right?") -> list[Call]:
    def one(index: int) -> Call:
        messages = [{"role": "system", "content": "Judge."}, {"role": "user", "content": f"{text} {index}"}]
        return Call(Key(f"i{index}", "sha", "print", 0), "judge@stub", lambda: messages, read_number)

    return [one(index) for index in range(count)]


def judged(spec: ModelSpec, count: int = 1, *, text: str = "u", **policy: Any) -> list[Judgement]:
    """Judgements of some calls through the engine."""
    rows: list[Judgement] = []
    calls = [
        Call(
            Key(f"i{i}", "s", "f", 0),
            "j@m",
            lambda i=i: [{"role": "user", "content": f"{text}{i}"}],
            read_number,
        )
        for i in range(count)
    ]
    kept = {"attempts": 2, "first_wait_s": 0.01, "longest_wait_s": 0.05, **policy}
    run_calls(calls, spec, record=lambda *came: rows.extend(came), policy=Policy(**kept))
    return rows


def say_half(body: dict[str, Any]) -> str:
    return (
        "[[ ## correctness_reasoning ## ]]\nHalf.\n\n[[ ## correctness_percentage ## ]]\n50\n\n[[ ## "
        "completed ## ]]"
    )


def n_stored(cache: ReplyCache) -> int:
    """How many replies a store holds."""
    cache.flush(now=True)
    with contextlib.closing(sqlite3.connect(cache.path)) as store:
        return int(store.execute("SELECT COUNT(*) FROM replies").fetchone()[0])
