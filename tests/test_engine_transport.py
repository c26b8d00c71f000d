"""The three wire formats over HTTP: what is sent, what is read, and which way a model takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.engine.calls import CallFailed, Reply, ReplySchema
from judgecal.engine.transport import open_transport
from judgecal.errors import InputError
from judgecal.models import PROVIDERS, Catalogue, ModelSpec, load_catalogue
from judgecal.workspace import find_workspace
from tests.support.calls import judged, say_half
from tests.support.command import Run, journal, one_object, tree
from tests.support.http import Answer, as_answer
from tests.support.providers import (
    CLAUDE_VERSION,
    GEMINI_VERSION,
    anthropic,
    anthropic_reply,
    gemini,
    gemini_reply,
)
from tests.support.server import Script, Serve, completion, running

KEY = "sk-secret/0123+456=789"
TURNS = [("system", "Judge."), ("user", "u1"), ("assistant", "a1"), ("user", "u2")]
SCHEMA = ReplySchema({"why": {"type": "string"}, "verdict": {"type": "boolean"}})
MESSAGES = [{"role": role, "content": content} for role, content in TURNS]


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], Catalogue]:
    """Read a catalogue with the given judgecal.toml over it."""
    for name in ("signatures", "gold"):
        (tmp_path / name).mkdir()

    def catalogue(toml: str) -> Catalogue:
        (tmp_path / "judgecal.toml").write_text(toml, encoding="utf-8")
        return load_catalogue(find_workspace(tmp_path))

    return catalogue


def send(spec: ModelSpec, messages: Sequence[dict[str, str]] = MESSAGES) -> Reply:
    """One attempt at one call."""

    async def once() -> Reply:
        transport = open_transport(spec)
        try:
            return await transport.send(messages)
        finally:
            await transport.close()

    return asyncio.run(once())


# --- what is sent -------------------------------------------------------------------------------------------


def test_gemini_is_asked_in_its_own_words(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    server = serve(gemini(lambda _: "85"))
    spec = ModelSpec(
        "g", "gemini/gemini-x", api_base=server.root, key_env="GEMINI_API_KEY", temperature=0.0, max_tokens=64
    )
    reply = send(spec)
    assert server.paths == ["/v1beta/models/gemini-x:generateContent"]
    assert server.headers[0]["x-goog-api-key"] == KEY
    assert server.bodies[0] == {
        "systemInstruction": {"parts": [{"text": "Judge."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "u1"}]},
            {"role": "model", "parts": [{"text": "a1"}]},
            {"role": "user", "parts": [{"text": "u2"}]},
        ],
        "generationConfig": {"temperature": 0.0, "maxOutputTokens": 64},
    }
    # thoughts are billed as the reply is: 30 + 20
    assert reply == Reply("85", GEMINI_VERSION, prompt_tokens=1000, completion_tokens=50)


def test_anthropic_is_asked_in_its_own_words(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    server = serve(anthropic(lambda _: "85"))
    spec = ModelSpec(
        "c", "anthropic/claude-x", api_base=server.root, key_env="ANTHROPIC_API_KEY", temperature=0.5
    )
    reply = send(spec)
    assert server.paths == ["/v1/messages"]
    headers = server.headers[0]
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in headers
    assert server.bodies[0] == {
        "model": "claude-x",
        "system": "Judge.",
        "messages": MESSAGES[1:],
        "max_tokens": 8192,
        "temperature": 0.5,
    }
    # 600 fresh and 400 from a cache
    assert reply == Reply("85", CLAUDE_VERSION, prompt_tokens=1000, completion_tokens=50)


@pytest.mark.parametrize(
    ("limits", "sent"), [((None, None), 8192), ((None, 500), 500), ((None, 10**6), 8192), ((77, 500), 77)]
)
def test_anthropics_longest_reply_is_never_above_what_a_budget_holds(
    serve: Serve, limits: tuple[int | None, int | None], sent: int
) -> None:
    server = serve(anthropic(lambda _: "85"))
    send(ModelSpec("c", "anthropic/x", api_base=server.root, max_tokens=limits[0], reply_limit=limits[1]))
    assert server.bodies[0]["max_tokens"] == sent


@pytest.mark.parametrize(
    ("model", "field", "temperature"),
    [
        ("openai/gpt-4o", "max_tokens", True),
        ("openai/gpt-5-chat-latest", "max_tokens", True),
        ("openai/gpt-5.1-chat-latest", "max_tokens", True),
        ("openai/o3-mini-2025-01-31", "max_completion_tokens", False),
        ("openai/gpt-5-mini", "max_completion_tokens", False),
        ("openai/gpt-6.1-sol", "max_completion_tokens", False),
        ("hosted_vllm/openai/gpt-oss-20b", "max_tokens", True),
    ],
)
def test_openais_thinking_models_take_other_settings(
    serve: Serve, model: str, field: str, temperature: bool
) -> None:
    server = serve(lambda _: "85")
    send(ModelSpec("m", model, api_base=server.api_base, temperature=0.0, max_tokens=64))
    body = server.bodies[0]
    assert (body[field], "temperature" in body) == (64, temperature)
    assert len({"max_tokens", "max_completion_tokens"} & body.keys()) == 1


def test_a_model_that_refuses_every_temperature_is_sent_none(
    serve: Serve, load: Callable[[str], Catalogue]
) -> None:
    # litellm's price file says which: supports_sampling_params is false
    server = serve(gemini(lambda _: "85"))
    spec = load(f'[models.gemini-flash]\napi_base = "{server.root}"').resolve("gemini-flash")
    assert (spec.temperature, spec.sent_temperature) == (0.0, None)
    send(spec)
    assert server.bodies[0]["generationConfig"] == {"maxOutputTokens": spec.max_tokens}


# id, what is appended to the server's address -> the path that is called
ADDRESSES = [
    ("openai/m", "/v1/", "/v1/chat/completions"),
    ("openai/m", "/v1/chat/completions", "/v1/chat/completions"),
    ("ollama_chat/llama3", "", "/v1/chat/completions"),
    ("ollama/llama3", "/v1", "/v1/chat/completions"),
    ("deepseek/m", "", "/chat/completions"),
    ("gemini/m", "/v1beta/", "/v1beta/models/m:generateContent"),
    ("gemini/a b?", "/gw", "/gw/v1beta/models/a%20b%3F:generateContent"),
    ("anthropic/m", "/v1", "/v1/messages"),
    ("anthropic/m", "/v1/messages", "/v1/messages"),
]


@pytest.mark.parametrize(("model", "end", "path"), ADDRESSES)
def test_an_address_may_be_written_in_any_usual_way(serve: Serve, model: str, end: str, path: str) -> None:
    server = serve(lambda _: as_answer({}))
    send(ModelSpec("m", model, api_base=server.root + end))
    assert server.paths == [path]


TEXTS = ["nul \x00 byte", "emoji \U0001f642", "x" * 2_000_000, "\u202ertl \u2028 \u05d0", "[[ ## a ## ]]"]
FORMATS = [
    ("openai/m", lambda body: body["messages"][0]["content"], completion),
    ("gemini/m", lambda body: body["contents"][0]["parts"][0]["text"], gemini_reply),
    ("anthropic/m", lambda body: body["messages"][0]["content"], anthropic_reply),
]


@pytest.mark.parametrize("text", TEXTS, ids=["nul", "emoji", "2 MB", "rtl", "markers"])
@pytest.mark.parametrize(("model", "sent", "reply"), FORMATS, ids=["openai", "gemini", "anthropic"])
def test_any_text_goes_there_and_back(
    serve: Serve, model: str, sent: Callable[[Any], str], reply: Callable[[str], Any], text: str
) -> None:
    back = text[:900_000]  # what is read of a reply ends at 1 MB
    server = serve(lambda _: as_answer(reply(back)))
    got = send(ModelSpec("m", model, api_base=server.root), [{"role": "user", "content": text}])
    assert (sent(server.bodies[0]), got.text) == (text, back)


@pytest.mark.parametrize("model", ["openai/m", "gemini/m", "anthropic/m"])
def test_half_a_surrogate_pair_is_refused_by_name_before_it_is_sent(serve: Serve, model: str) -> None:
    server = serve(lambda _: "85")
    with pytest.raises(CallFailed, match=r"unpaired surrogate \(U\+D83D\)") as caught:
        send(ModelSpec("m", model, api_base=server.root), [{"role": "user", "content": "a \ud83d b"}])
    assert (caught.value.kind, caught.value.retry, server.calls) == ("refused", False, 0)


# --- what is read -------------------------------------------------------------------------------------------

# id, the answer's JSON -> text, stopped
READ: list[tuple[str, Any, str, str]] = [
    ("openai/m", completion("8", finish="length"), "8", "length"),
    ("openai/m", completion("8", finish="model_length"), "8", "length"),
    ("openai/m", completion("8", finish="content_filter"), "8", "content_filter"),
    ("openai/m", {"choices": [{"message": {"content": None}}]}, "", "stop"),
    ("openai/m", {"choices": [{"message": {"content": None, "refusal": "no"}}]}, "", "content_filter"),
    ("openai/m", {"choices": [{"message": {"content": [{"type": "text", "text": "85"}]}}]}, "85", "stop"),
    ("openai/m", {"choices": {"a": 1}, "usage": [], "model": 5}, "", "stop"),
    ("openai/m", {}, "", "stop"),
    ("gemini/m", gemini_reply("8", finish="MAX_TOKENS"), "8", "length"),
    ("gemini/m", gemini_reply("", finish="SAFETY"), "", "content_filter"),
    ("gemini/m", gemini_reply("", finish="PROHIBITED_CONTENT"), "", "content_filter"),
    ("gemini/m", gemini_reply("", finish="OTHER"), "", "other"),
    ("gemini/m", {"promptFeedback": {"blockReason": "SAFETY"}}, "", "content_filter"),
    ("gemini/m", {"candidates": [{"finishReason": "MAX_TOKENS"}]}, "", "length"),
    ("gemini/m", {"candidates": "x", "usageMetadata": 3}, "", "stop"),
    ("anthropic/m", anthropic_reply("8", stop="max_tokens"), "8", "length"),
    ("anthropic/m", anthropic_reply("", stop="refusal"), "", "content_filter"),
    ("anthropic/m", {"content": [], "stop_reason": None}, "", "stop"),
    ("anthropic/m", {"content": "85", "usage": {"input_tokens": "9"}}, "", "stop"),
]


@pytest.mark.parametrize(("model", "answer", "text", "stopped"), READ)
def test_a_reply_is_read_whatever_its_shape(
    serve: Serve, model: str, answer: Any, text: str, stopped: str
) -> None:
    server = serve(lambda _: as_answer(answer))
    reply = send(ModelSpec("m", model, api_base=server.root))
    assert (reply.text, reply.stopped) == (text, stopped)


@pytest.mark.parametrize(
    ("model", "usage", "counts"),
    [
        ("openai/m", {"usage": {"prompt_tokens": True, "completion_tokens": -1}}, (None, None)),
        ("gemini/m", {"usageMetadata": {"promptTokenCount": 7, "thoughtsTokenCount": 5}}, (7, 5)),
        ("gemini/m", {"usageMetadata": {"promptTokenCount": "7"}}, (None, 0)),
        ("gemini/m", {}, (None, None)),
        ("anthropic/m", {"usage": {"output_tokens": 5}}, (None, 5)),
    ],
)
def test_tokens_that_are_not_told_are_not_known(
    serve: Serve, model: str, usage: Any, counts: tuple[int | None, int | None]
) -> None:
    server = serve(lambda _: as_answer(usage))
    reply = send(ModelSpec("m", model, api_base=server.root))
    assert (reply.prompt_tokens, reply.completion_tokens) == counts
    assert reply.model_id == model  # as it was asked for, where the server names none


# --- connections --------------------------------------------------------------------------------------------


def test_a_proxy_of_the_environment_carries_the_call(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = serve(lambda _: "85")
    for name in ("no_proxy", "NO_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", proxy.root.replace("://", "://me:pass-word@"))
    spec = ModelSpec("m", "openai/m", api_base="http://model.invalid:81/v1")
    assert send(spec).text == "85"
    assert proxy.paths == ["http://model.invalid:81/v1/chat/completions"]
    assert proxy.headers[0]["proxy-authorization"].startswith("Basic ")
    monkeypatch.setenv("NO_PROXY", "model.invalid,127.0.0.1")
    with pytest.raises(CallFailed) as caught:
        send(spec)
    assert (caught.value.kind, proxy.calls) == ("transport", 1)


def test_a_proxy_that_is_none_is_told_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "socks5://me:pass-word@127.0.0.1:1")
    with pytest.raises(InputError, match="proxy for http is not an http") as caught:
        open_transport(ModelSpec("m", "openai/m", api_base="http://model.invalid/v1"))
    assert "pass-word" not in str(caught.value)


# --- which way ----------------------------------------------------------------------------------------------

WAYS = [
    ("judgecal/embedded", "auto", "embedded"),
    ("gemini/m", "auto", "http"),
    ("anthropic/m", "auto", "http"),
    ("nvidia_nim/m", "auto", "dspy"),
    ("azure/m", "auto", "dspy"),
    ("bedrock/m", "auto", "dspy"),
    ("openai/m", "dspy", "dspy"),
    ("openai/m", "litellm", "litellm"),
    ("nvidia_nim/m", "http", "http"),
    *((f"{provider}/m", "auto", "http") for provider, known in PROVIDERS.items() if known.wire == "openai"),
]


@pytest.mark.parametrize(("model", "transport", "way"), WAYS)
def test_the_provider_chooses_the_way_unless_the_alias_does(model: str, transport: str, way: str) -> None:
    assert ModelSpec("m", model, transport=transport).way == way


def test_the_alias_chooses_in_the_configuration(load: Callable[[str], Catalogue], serve: Serve) -> None:
    server = serve(lambda _: "85")
    text = '[models.m]\nid = "nvidia_nim/m"\napi_base = "{}"\ntransport = "http"'
    assert send(load(text.format(server.api_base)).resolve("m")).text == "85"
    with pytest.raises(InputError, match="transport must be one of auto, http, dspy, litellm, found 'htttp'"):
        load(text.format(server.api_base).replace('"http"', '"htttp"'))
    with pytest.raises(InputError, match="set api_base"):
        open_transport(ModelSpec("m", "nvidia_nim/m", transport="http"))


@pytest.mark.parametrize("transport", ["dspy", "litellm"])
@pytest.mark.parametrize(
    ("model", "script", "path"),
    [
        ("openai/m", None, "/v1/chat/completions"),
        ("gemini/m", gemini, "/v1beta/models/m:generateContent"),
        ("anthropic/m", anthropic, "/v1/messages"),
    ],
    ids=["openai", "gemini", "anthropic"],
)
def test_the_same_alias_works_by_every_way(
    serve: Serve, transport: str, model: str, script: Callable[[Any], Script] | None, path: str
) -> None:
    say: Callable[[Any], Answer | str] = lambda _: "85"  # noqa: E731
    server = serve(script(say) if script else say)
    base = server.root if script else server.api_base
    assert send(ModelSpec("m", model, api_base=base, transport=transport, max_tokens=64)).text == "85"
    assert [called.partition("?")[0] for called in server.paths] == [path]


def test_a_provider_that_only_litellm_knows_is_driven(serve: Serve) -> None:
    server = serve(lambda _: "85")
    spec = ModelSpec("m", "nvidia_nim/meta/llama3", api_base=server.api_base, max_tokens=64)
    (row,) = judged(spec)
    assert (row.verdict, row.prompt_tokens, row.completion_tokens) == (85.0, 1000, 50)
    assert server.bodies[0]["model"] == "meta/llama3"


# --- endpoints and keys of the configuration ----------------------------------------------------------------


def test_a_gateway_named_by_the_environment_is_the_endpoint(
    load: Callable[[str], Catalogue], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OLLAMA_API_BASE", "http://127.0.0.1:2")
    catalogue = load('[models.own]\nid = "openai/x"\napi_base = "http://127.0.0.1:3/v1"')
    bases = [catalogue.resolve(name).api_base for name in ("gpt-4o", "llama3", "own", "gemini-pro")]
    assert bases == ["http://127.0.0.1:1/v1", "http://127.0.0.1:2", "http://127.0.0.1:3/v1", None]
    assert catalogue.resolve("gpt-4o").key_env == "OPENAI_API_KEY"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:pass-word@127.0.0.1:1/v1")
    with pytest.raises(InputError, match="OPENAI_BASE_URL must hold no user and password") as caught:
        load("")
    assert "pass-word" not in str(caught.value)


def test_a_key_follows_to_a_gateway_of_its_provider_only(
    load: Callable[[str], Catalogue], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = "".join(
        f'[models.{name}]\napi_base = "http://127.0.0.1:1"\n'
        for name in ("gemini-flash", "claude-haiku", "gpt-4o")
    )
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    catalogue = load(tables)
    keys = [catalogue.resolve(name).key_env for name in ("gemini-flash", "claude-haiku", "gpt-4o")]
    assert keys == ["GEMINI_API_KEY", None, None]  # ANTHROPIC_API_KEY is not set; openai/ may be any server


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("localhost:8000", "must be an http or https address, found 'localhost:8000'"),
        ("http://", "must be an http"),
        ("ftp://host/x", "must be an http"),
        ("http://[bad", "must be an http"),
        ("http://me:pass-word@host/v1", "must hold no user and password"),
        ("me:pass-word@host/v1", "must hold no user and password"),
    ],
)
def test_a_wrong_address_is_named(load: Callable[[str], Catalogue], address: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        load(f'[models.gpt-4o]\napi_base = "{address}"')
    assert "pass-word" not in str(caught.value)


# --- from the command line to the socket ---


def test_gemini_flash_is_optimised_over_its_own_protocol(
    judgecal: Run, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    with running(gemini(say_half)) as server:
        (workspace_dir / "judgecal.toml").write_text(
            f'[models.gemini-flash]\napi_base = "{server.root}"\n', encoding="utf-8"
        )
        ran = judgecal("optimize", "--model", "gemini-flash", "--limit", "12", "--json")
    found = one_object(ran)
    assert ran.code == 0
    assert found["judge"].startswith("correctness_v3@gemini-flash")
    assert set(server.paths) == {"/v1beta/models/gemini-3.8-flash:generateContent"}
    assert {headers["x-goog-api-key"] for headers in server.headers} == {KEY}
    rows = [row for row in journal(workspace_dir, found["experiment"]) if "gemini" in row["judge"]]
    assert rows
    assert {row["model_id"] for row in rows if not row["cached"]} == {GEMINI_VERSION}
    assert KEY.encode() not in b"".join(tree(workspace_dir.parent).values())
    assert KEY not in ran.out + ran.err
