"""What each kind of server says when it gives no reply, and what the engine makes of it."""

from __future__ import annotations

import asyncio
import datetime
import email.utils
import json
import logging
import socket
from collections.abc import Callable
from typing import Any

import pytest

from judgecal.engine.calls import CallFailed
from judgecal.engine.transport import open_transport
from judgecal.engine.transport.redaction import one_line
from judgecal.errors import AuthError
from judgecal.models import ModelSpec
from tests.support.calls import judged
from tests.support.http import Answer, as_answer
from tests.support.providers import (
    anthropic,
    anthropic_failing,
    anthropic_reply,
    gemini,
    gemini_failing,
    gemini_reply,
)
from tests.support.server import Script, Serve, StubServer, completion, failing

KEY = "sk-secret/0123+456=789"


def attempt(spec: ModelSpec) -> CallFailed | AuthError:
    """The error of one attempt."""

    async def once() -> None:
        transport = open_transport(spec)
        try:
            await transport.send([{"role": "user", "content": "u"}])
        finally:
            await transport.close()

    with pytest.raises((CallFailed, AuthError)) as caught:
        asyncio.run(once())
    return caught.value


def spec_of(model: str, server: StubServer, **settings: Any) -> ModelSpec:
    base = server.api_base if model.startswith("openai/") else server.root
    return ModelSpec("mine", model, api_base=base, **settings)


def google(status: int, message: str, word: str, reason: str = "") -> Answer:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}] if reason else []
    return gemini_failing(status, message, word=word, details=details)


HTML = Answer(502, b"<html><h1>bad</h1> gateway</html>", content_type="text/html")
TOO_MANY = "The input token count (2551556) exceeds the maximum number of tokens allowed (1048576)."
POOR = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."

# format, answer -> the kind of the row's error (with ! where no retry helps) or STOP, a word of the message
TABLE: list[tuple[str, Answer, str, str]] = [
    ("openai", failing(401, "Incorrect API key provided"), "STOP", "refused the key"),
    ("openai", failing(402, "Insufficient Balance"), "STOP", "the account"),
    ("openai", failing(403, "Country not supported"), "STOP", "refused the key"),
    ("openai", failing(429, "You exceeded your current quota", code="insufficient_quota"), "STOP", "quota"),
    ("openai", as_answer({"code": "bad", "error": "Incorrect API key provided: x"}, 400), "STOP", "the key"),
    ("openai", failing(404, "no", code="model_not_found"), "STOP", "has no model openai/m"),
    ("openai", as_answer({"error": "model 'm' not found"}, 404), "STOP", "has no model openai/m"),
    ("openai", Answer(404, b"404 page not found"), "STOP", "is api_base right"),
    ("openai", as_answer({}, 307, location="http://127.0.0.1:1/"), "STOP", "is api_base right"),
    ("openai", failing(400, "too many", code="context_length_exceeded"), "context_length!", "too many"),
    ("openai", failing(400, "This model's maximum context length is 10"), "context_length!", "maximum"),
    ("openai", as_answer({"message": "the maximum context length is 9"}, 400), "context_length!", "9"),
    ("openai", failing(413, "Too large"), "context_length!", "Too large"),
    ("openai", failing(429, "Request too large for gpt-4o on tokens per min"), "context_length!", "large"),
    ("openai", failing(400, "flagged", code="content_policy_violation"), "refused!", "flagged"),
    ("openai", failing(400, "your item says: incorrect api key"), "refused!", "your item"),
    ("openai", as_answer({"detail": [{"msg": "bad field"}]}, 422), "refused!", "bad field"),
    ("openai", failing(408, "slow"), "timeout", "slow"),
    ("openai", failing(429, "slow down"), "rate_limit", "slow down"),
    ("openai", failing(500, "boom"), "server", "boom"),
    ("openai", failing(503, "busy"), "server", "busy"),
    ("openai", failing(504, "late"), "server", "late"),
    ("openai", HTML, "server", "HTTP 502: bad gateway"),
    ("openai", Answer(500), "server", "no reason given"),
    ("openai", Answer(200, b'{"choices": [{"mess'), "server", "is not JSON"),
    ("openai", Answer(200), "server", "it is empty"),
    ("openai", Answer(200, b"\xff\xfe{"), "server", "is not JSON"),
    ("openai", Answer(200, b'{"choices": %s}' % (b"1" * 5000)), "server", "is not JSON"),
    ("openai", Answer(200, b"[" * 200_000), "parse!", "nested too deep"),
    ("openai", Answer(200, b"<p>log <b>in</b></p>"), "server", "log in"),
    ("openai", Answer(200, b"[1, 2]"), "server", "not a JSON object"),
    ("openai", as_answer({"error": {"code": 429, "message": "upstream"}}), "rate_limit", "upstream"),
    ("openai", as_answer({"choices": [{"error": {"code": 502, "message": "gone"}}]}), "server", "gone"),
    ("openai", as_answer({"error": {"message": "Provider error", "metadata": {"raw": "why"}}}, 400), "refused!", "why"),
    ("openai", as_answer({"error": {"message": "held back", "metadata": {"reasons": ["violence"]}}}, 403), "refused!", "held back"),
    ("openai", Answer(reset=True), "transport", ""),
    ("openai", Answer(200, json.dumps(completion("85")).encode(), cut=9), "transport", ""),
    ("gemini", google(400, "API key not valid.", "INVALID_ARGUMENT", "API_KEY_INVALID"), "STOP", "the key"),
    ("gemini", google(400, "User location", "FAILED_PRECONDITION"), "STOP", "location"),
    ("gemini", google(403, "no", "PERMISSION_DENIED"), "STOP", "refused the key"),
    ("gemini", google(404, "models/m is not found", "NOT_FOUND"), "STOP", "has no model gemini/m"),
    ("gemini", google(400, TOO_MANY, "INVALID_ARGUMENT"), "context_length!", "2551556"),
    ("gemini", google(400, "Unknown name", "INVALID_ARGUMENT"), "refused!", "Unknown name"),
    ("gemini", google(429, "You exceeded your current quota", "RESOURCE_EXHAUSTED"), "rate_limit", "quota"),
    ("gemini", google(500, "internal", "INTERNAL"), "server", "internal"),
    ("gemini", google(503, "overloaded", "UNAVAILABLE"), "server", "overloaded"),
    ("gemini", Answer(500, b'[{"error": {"message": "in a list"}}]'), "server", "500: in a list"),
    ("gemini", Answer(200, b'{"candidates": ['), "server", "is not JSON"),
    ("gemini", HTML, "server", "bad gateway"),
    ("gemini", Answer(reset=True), "transport", ""),
    ("anthropic", anthropic_failing(401, "authentication_error", "invalid x-api-key"), "STOP", "the key"),
    ("anthropic", anthropic_failing(403, "permission_error", "no"), "STOP", "refused the key"),
    ("anthropic", anthropic_failing(400, "invalid_request_error", POOR), "STOP", "credit balance"),
    ("anthropic", anthropic_failing(404, "not_found_error", "model: m"), "STOP", "has no model anthropic/m"),
    ("anthropic", anthropic_failing(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), "context_length!", "9 tokens"),
    ("anthropic", anthropic_failing(413, "request_too_large", "32 MB"), "context_length!", "32 MB"),
    ("anthropic", anthropic_failing(400, "invalid_request_error", "max_tokens"), "refused!", "max_tokens"),
    ("anthropic", anthropic_failing(429, "rate_limit_error", "slow down"), "rate_limit", "slow down"),
    ("anthropic", anthropic_failing(500, "api_error", "oops"), "server", "oops"),
    ("anthropic", anthropic_failing(529, "overloaded_error", "Overloaded"), "server", "Overloaded"),
    ("anthropic", anthropic_failing(200, "overloaded_error", "Overloaded"), "server", "HTTP 500"),
    ("anthropic", Answer(200, b""), "server", "it is empty"),
    ("anthropic", HTML, "server", "bad gateway"),
    ("anthropic", Answer(reset=True), "transport", ""),
]  # fmt: skip


@pytest.mark.parametrize(("wire", "answer", "kind", "word"), TABLE)
def test_every_fault_has_its_name(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, wire: str, answer: Answer, kind: str, word: str
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    error = attempt(spec_of(f"{wire}/m", serve(lambda _: answer), key_env="MY_KEY"))
    if kind == "STOP":
        assert isinstance(error, AuthError)
        assert "mine" in str(error)
        assert f"{wire}/m" in str(error)
    else:
        assert isinstance(error, CallFailed)
        assert (error.kind, error.retry) == (kind.rstrip("!"), not kind.endswith("!"))
    assert word in str(error)
    assert "\n" not in str(error)
    assert 0 < len(str(error)) <= 600  # 500 of the server's, and who it was


def test_a_connection_that_is_refused_is_the_transports() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for address in (f"http://127.0.0.1:{port}/v1", f"https://127.0.0.1:{port}/v1", "http://no.invalid/v1"):
        error = attempt(ModelSpec("mine", "openai/m", api_base=address))
        assert isinstance(error, CallFailed)
        assert (error.kind, error.retry) == ("transport", True)


# --- how long to wait ---------------------------------------------------------------------------------------


def in_seconds(seconds: float) -> str:
    return email.utils.format_datetime(
        datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds), usegmt=True
    )


RETRY_INFO = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38.5s"}]
WAITS: list[tuple[Answer, float | None]] = [
    (failing(429, "x", retry_after="7"), 7.0),
    (failing(503, "x", retry_after="1.5"), 1.5),
    (failing(429, "x", retry_after=in_seconds(-60)), 0.0),
    (failing(429, "x", retry_after="-1"), None),
    (failing(429, "x", retry_after="inf"), None),
    (failing(429, "x", retry_after="soon"), None),
    (failing(429, "x"), None),
    (gemini_failing(429, "x", word="RESOURCE_EXHAUSTED", details=RETRY_INFO), 38.5),
    (gemini_failing(429, "x", details=RETRY_INFO, retry_after="2"), 2.0),
    (gemini_failing(429, "x", details=[{"retryDelay": "later"}, "odd", 3]), None),
    (anthropic_failing(529, "overloaded_error", "x", retry_after="3"), 3.0),
]


@pytest.mark.parametrize(("answer", "wait"), WAITS)
def test_the_wait_that_a_server_asks_for_is_passed_on(
    serve: Serve, answer: Answer, wait: float | None
) -> None:
    error = attempt(spec_of("openai/m", serve(lambda _: answer)))
    assert isinstance(error, CallFailed)
    assert error.retry_after == wait


def test_a_wait_may_be_a_date(serve: Serve) -> None:
    answer = failing(429, "x", retry_after=in_seconds(30))
    error = attempt(spec_of("openai/m", serve(lambda _: answer)))
    assert isinstance(error, CallFailed)
    assert error.retry_after is not None
    assert 20.0 < error.retry_after <= 30.0


# --- the key ------------------------------------------------------------------------------------------------

FORMATS: dict[str, tuple[Callable[[Any], Script], Callable[[str], Any]]] = {
    "openai": (lambda script: script, completion),
    "gemini": (gemini, gemini_reply),
    "anthropic": (anthropic, anthropic_reply),
}


@pytest.mark.parametrize("wire", FORMATS)
def test_an_echoed_key_is_seen_by_nobody(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, wire: str
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    _, reply = FORMATS[wire]
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    quoted = "sk-secret%2F0123%2B456%3D789"
    echoes = [
        failing(400, f"bad {KEY} at /x?key={quoted}"),
        Answer(500, f'{{"error": "{escaped}"}}'.encode()),
        Answer(400, f"<p>{'x' * 478}{KEY}</p>".encode()),
        Answer(200, f"<b>{KEY}</b>".encode()),
        as_answer({"error": {"message": KEY}}),
        as_answer(reply(f"you sent {KEY}")),
        as_answer({**reply("no number"), "model": KEY, "modelVersion": KEY}),
    ]
    for answer in echoes:
        server = serve(lambda _, answer=answer: answer)
        (row,) = judged(spec_of(f"{wire}/m", server, key_env="MY_KEY"), attempts=1)
        assert row.error is not None
        assert KEY in str(server.headers)
        assert KEY not in server.paths[0]
        assert "secret" not in f"{row} {caplog.text}"
    stopped = attempt(spec_of(f"{wire}/m", serve(lambda _: failing(401, KEY)), key_env="MY_KEY"))
    assert "secret" not in str(stopped)


def test_a_text_for_a_row_is_one_short_line() -> None:
    assert one_line(" a\n\tb\r\n c ", ()) == "a b c"
    assert one_line("key k-345678 and k-345678", ("k-345678",)) == "key *** and ***"
    assert one_line("he told the others", ("the",)) == "he told the others"  # a key that is shorter than any
    assert len(one_line("x" * 9000, ())) == 500
