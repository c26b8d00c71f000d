"""What of a server's answer is let in: how large, how compressed, with which counts, and what cannot be
read."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judgecal.engine.budget import Budget, BudgetGate
from judgecal.engine.call_runner import CallRunner, Policy
from judgecal.engine.calls import MOST_BYTES, Call, ParsedReply, Reply, clean_reply, shortened
from judgecal.engine.log import Journal
from judgecal.engine.run import run_calls
from judgecal.engine.scheduler import CallSlots, Limiter
from judgecal.engine.transport import open_transport
from judgecal.models import ModelSpec
from judgecal.records import Judgement, Key
from tests.support.http import Answer, as_answer
from tests.support.server import Serve, StubServer, completion

WAYS = ["http", "dspy", "litellm"]
ONE_TRY = Policy(attempts=1)


def spec_of(server: StubServer, way: str = "http") -> ModelSpec:
    return ModelSpec("m", "openai/m", api_base=server.api_base, transport=way, timeout=90.0)


def rows_of(server: StubServer, *, way: str = "http", count: int = 1, read: Any = None) -> list[Judgement]:
    """The rows of a run of so many calls."""
    rows: list[Judgement] = []
    calls = [
        Call(
            Key(f"i{k}", "s", "f", 0),
            "j@m",
            lambda k=k: [{"role": "user", "content": f"q{k}"}],
            read or _taken,
        )
        for k in range(count)
    ]
    run_calls(calls, spec_of(server, way), record=lambda *came: rows.extend(came), policy=ONE_TRY)
    return rows


def _taken(text: str) -> ParsedReply:
    return ParsedReply(1.0, text[:20])


def body(text: str, **more: Any) -> bytes:
    return json.dumps({**completion(text), **more}).encode()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "plain": ("identity", bytes),
    "gzip": ("gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "bare deflate": ("deflate", raw_deflate),
}


@pytest.mark.parametrize("packed", PACKED.values(), ids=PACKED.keys())
def test_a_body_is_read_up_to_a_megabyte(serve: Serve, packed: tuple[str, Callable[[bytes], bytes]]) -> None:
    encoding, pack = packed
    server = serve(lambda _: Answer(200, pack(body("whole " * 160_000)), {"content-encoding": encoding}))
    (row,) = rows_of(server)
    assert (row.verdict, row.error) == (1.0, None)


@pytest.mark.parametrize("packed", PACKED.values(), ids=PACKED.keys())
def test_a_larger_body_is_not(serve: Serve, packed: tuple[str, Callable[[bytes], bytes]]) -> None:
    encoding, pack = packed
    data = pack(body("x" * 50_000_000))
    server = serve(lambda _: Answer(200, data, {"content-encoding": encoding}))
    tracemalloc.start()
    try:
        (row,) = rows_of(server, read=lambda text: ParsedReply(1.0, text))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (row.error.kind, row.raw_reply, row.attempts) == ("length", None, 1)
    assert "larger than 1 MB" in row.error.message
    assert peak < 20_000_000  # the server's own writing is in it


def test_a_large_error_is_cut_and_keeps_its_kind(serve: Serve) -> None:
    server = serve(lambda _: Answer(429, gzip.compress(b"<" * 30_000_000), {"content-encoding": "gzip"}))
    (row,) = rows_of(server)
    assert row.error is not None and row.error.kind == "rate_limit"
    assert len(row.error.message) <= 500


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip"])
def test_what_cannot_be_decompressed_is_named(serve: Serve, encoding: str) -> None:
    server = serve(lambda _: Answer(200, body("85"), {"content-encoding": encoding}))
    (row,) = rows_of(server)
    assert row.error is not None and row.error.kind == "server" and encoding in row.error.message


@pytest.mark.parametrize("way", WAYS)
def test_no_transport_lets_a_larger_text_in(serve: Serve, way: str) -> None:
    server = serve(lambda _: "x" * (MOST_BYTES + 1))
    (row,) = rows_of(server, way=way)
    assert (row.error.kind, row.verdict) == ("length", None)


# --- counts -------------------------------------------------------------------------------------------------

ODD_COUNTS = [10**400, -1, "12", 1.5, None, True, [3], {}, float("nan"), 10**10]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("odd", ODD_COUNTS, ids=lambda value: repr(value)[:12])
def test_a_count_that_cannot_be_is_none(serve: Serve, way: str, odd: Any) -> None:
    usage = {"prompt_tokens": odd, "completion_tokens": odd, "total_tokens": odd}
    server = serve(lambda _: Answer(200, body("85", usage=usage)))
    (row,) = rows_of(server, way=way)
    if way == "http":
        assert (row.verdict, row.prompt_tokens, row.completion_tokens) == (1.0, None, None)
    # The clients fill in a number of their own, or refuse the answer.
    assert row.prompt_tokens is None or 0 <= row.prompt_tokens < 100
    assert (row.verdict is None) == (row.error is not None)


# --- texts --------------------------------------------------------------------------------------------------


def test_half_a_character_is_replaced() -> None:
    odd = "a\ud800b\udfffc \U0001f642"
    reply = clean_reply(Reply(odd, odd, stopped=odd))
    assert reply.text == reply.model_id == reply.stopped == "a\ufffdb\ufffdc \U0001f642"
    assert clean_reply(Reply("plain", "m" * 10_000)).model_id == "m" * 200


def test_a_row_holds_the_ends_of_a_long_reply(serve: Serve) -> None:
    text = "begin " + "x" * 500_000 + " end"
    server = serve(lambda _: text)
    (row,) = rows_of(server, read=lambda said: ParsedReply(None, said))
    for held in (row.raw_reply, row.reasoning):
        assert held is not None
        assert held.startswith("begin x") and held.endswith("x end") and len(held) < 21_000
        assert "480,010 characters left out" in held
    assert shortened("short") == "short"


# --- what cannot be read ------------------------------------------------------------------------------------


@pytest.mark.parametrize("raised", [ValueError("odd"), RecursionError(), KeyError("x"), OverflowError("big")])
def test_whatever_reading_raises_is_a_row(serve: Serve, tmp_path: Path, raised: Exception) -> None:
    def read(text: str) -> ParsedReply:
        raise raised

    server = serve(lambda _: "odd reply")
    (row,) = rows_of(server, read=read)
    assert (row.error.kind, row.raw_reply, row.verdict) == ("parse", "odd reply", None)
    assert isinstance(raised, RecursionError) or type(raised).__name__ in row.error.message
    with Journal(tmp_path / "judgements.jsonl") as journal:
        journal.append(row)
        assert (
            journal.settled(row.key, retry_unscored=False) == row
        )  # a resumed run does not pay for it again
        assert journal.settled(row.key, retry_unscored=True) is None


def test_no_memory_is_not_the_replys_fault(serve: Serve) -> None:
    def read(text: str) -> ParsedReply:
        raise MemoryError

    with pytest.raises(MemoryError):
        rows_of(serve(lambda _: "85"), read=read)


ODD_BODIES = [
    b"[" * 100_000,
    b'{"choices":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    b'{"choices": [{"message": {"content": ' + b"9" * 100_000 + b"}}]}",
    b'{"choices": null}',
    b'{"choices": {}}',
    b'{"choices": []}',
    b'{"choices": [null]}',
    b'{"choices": [{"message": null}]}',
    b'{"choices": [{"message": {"content": [{"type": "text"}, 3, null, {"text": {}}]}}]}',
    b'{"choices": [{"message": {"content": {"a": 1}}, "finish_reason": ["x"]}], "model": 3, "usage": [1]}',
    b'{"choices": [{"message": {"content": "\\ud800"}, "finish_reason": "\\udfff"}], "model": "\\ud800"}',
    b'{"choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}}]}',
    b'{"error": {"code": 1e999, "message": {"a": []}, "details": [null, 3, {"retryDelay": {}}]}}',
    b'{"choices": [{"error": [[[]]]}]}',
    as_answer(completion("85")).body.replace(b'"stop"', b"NaN"),
]


@pytest.mark.parametrize("way", WAYS)
def test_an_odd_body_is_a_row(serve: Serve, way: str) -> None:
    bodies = iter(ODD_BODIES)
    server = serve(lambda _: Answer(200, next(bodies)))
    rows = rows_of(server, way=way, count=len(ODD_BODIES))
    assert len(rows) == len(ODD_BODIES)
    for row in rows:
        assert (row.verdict is None) == (row.error is not None)
        json.dumps(row.as_json(), ensure_ascii=False).encode()


def test_an_http_date_beyond_all_calendars_is_no_wait(serve: Serve) -> None:
    headers = {"retry-after": "Sun, 06 Nov 99999999999 08:49:37 GMT"}
    (row,) = rows_of(serve(lambda _: Answer(429, b"{}", headers)))
    assert row.error is not None and row.error.kind == "rate_limit"


def test_a_failed_reply_is_not_paid_for_again_in_one_call(serve: Serve) -> None:
    server = serve(lambda _: Answer(200, b"[" * 100_000))

    async def made() -> Any:
        spec = spec_of(server)
        transport = open_transport(spec)
        slots = CallSlots(Limiter(1))
        runner = CallRunner(spec, transport, slots=slots, gate=BudgetGate(Budget(None)), policy=Policy())
        try:
            return await runner.make([{"role": "user", "content": "q"}], 0, usable=bool)
        finally:
            await transport.close()

    outcome = asyncio.run(made())
    assert (outcome.failure.kind, server.calls) == ("parse", 1)
