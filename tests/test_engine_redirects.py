"""No way to a model follows a redirect: the texts, and the key, stay with the server that the user named."""

from __future__ import annotations

import urllib.parse

import pytest

from judgecal.errors import AuthError
from judgecal.models import ModelSpec
from tests.support.calls import judged
from tests.support.http import Answer, as_answer
from tests.support.server import completion, running

KEY = "sk-elsewhere-0123456789abcdef"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("transport", "model"),
    [
        ("http", "openai/m"),
        ("dspy", "openai/m"),
        ("litellm", "openai/m"),
        ("litellm", "anthropic/m"),
        ("litellm", "mistral/m"),
    ],
)
def test_a_redirect_is_not_followed(
    monkeypatch: pytest.MonkeyPatch, transport: str, model: str, status: int
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with running(lambda _: as_answer(completion("85"))) as other:
        port = urllib.parse.urlsplit(other.root).port
        there = f"http://localhost:{port}/v1/{KEY}/chat/completions?key={KEY}"
        with running(lambda _: Answer(status, headers={"location": there})) as first:
            spec = ModelSpec(
                "mine",
                model,
                api_base=first.api_base,
                key_env="MY_KEY",
                max_tokens=64,
                transport=transport,
                timeout=10.0,
            )
            with pytest.raises(AuthError) as refused:
                judged(spec)
        assert other.calls == 0
    where = (
        "another address" if transport == "dspy" else f"localhost:{port}"
    )  # DSPy's own client does not say
    assert f"redirects to {where}, which is not followed" in str(refused.value)
    assert first.calls == 1
    assert KEY not in str(refused.value)


def test_a_redirect_on_the_same_server_is_not_followed_either() -> None:
    with running(lambda _: Answer(307, headers={"location": "/v2/chat/completions"})) as server:
        spec = ModelSpec(
            "mine", "openai/m", api_base=server.api_base, max_tokens=64, transport="litellm", timeout=10.0
        )
        with pytest.raises(AuthError, match="redirects to another path of its own, which is not followed"):
            judged(spec)
        assert server.calls == 1


def test_other_callers_of_httpx_are_left_alone() -> None:
    import httpx

    from judgecal.engine.transport.dspy_client import _follow_no_redirect_of_ours

    _follow_no_redirect_of_ours()
    with (
        running(lambda _: as_answer({"there": True})) as other,
        running(lambda _: Answer(307, headers={"location": f"{other.root}/x"})) as first,
    ):
        found = httpx.post(f"{first.root}/y", json={}, follow_redirects=True)
    assert (found.json(), other.calls) == ({"there": True}, 1)
