"""A key that a server sends back is in no reply and no error, whichever way the call took, in the forms at
hand."""

from __future__ import annotations

import base64
import random
import string
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from judgecal.engine.transport.redaction import redacted, secrets_of
from judgecal.errors import AuthError, JudgecalError
from judgecal.models import ModelSpec, load_catalogue, shown_address
from judgecal.workspace import Workspace
from tests.support.calls import judged
from tests.support.http import Answer, as_answer
from tests.support.server import completion, failing, running

KEY = "sk-torture/Kq8+7Zw%=&xy0123456789abcdefABCDEF"


def forms(key: str) -> dict[str, str]:
    """A key as a server may send it back."""
    encoded = {
        f"base64 behind {before!r}": base64.b64encode(f"{before}{key}{after}".encode()).decode().rstrip("=")
        for before in ("", "B", "Be", "Bearer ")
        for after in ("", "!", "!!")
    }
    half = len(key) // 2
    return {
        "plain": key,
        "in a URL": quote(key, safe=""),
        "in a URL but for slashes": quote(key),
        "in a URL, small": quote(key, safe="").replace("%2F", "%2f").replace("%2B", "%2b"),
        "first half": key[:half],
        "last half": key[half:],
        "most of it": key[3 : 3 + half + 4],
        "url-safe base64": base64.urlsafe_b64encode(key.encode()).decode().rstrip("="),
        **encoded,
    }


def leak(text: str, key: str) -> str | None:
    """The longest run of a key in a text, where it is half of the key or more."""
    size = max(8, len(key) // 2)
    return next(
        (key[at : at + size] for at in range(len(key) - size + 1) if key[at : at + size] in text), None
    )


@pytest.mark.parametrize("form", forms(KEY))
def test_every_form_is_taken_out(form: str) -> None:
    said = forms(KEY)[form]
    text = redacted(f"You sent {said} to us", (KEY,))
    assert text.startswith("You sent ") and text.endswith(" to us")
    assert "***" in text and leak(text, KEY) is None
    left = text.removeprefix("You sent ").removesuffix(" to us").replace("***", "")
    assert len(left) < 14, left  # of base64 only what stands for the letters before and after it


def test_of_random_keys_nothing_is_left() -> None:
    rng = random.Random(1)
    letters = string.ascii_letters + string.digits + "-_/+"
    for _ in range(300):
        key = "".join(rng.choices(letters, k=rng.randint(16, 120)))
        for name, form in forms(key).items():
            text = redacted(f"a {form} b", (key,))
            assert "***" in text, (name, key)
            assert leak(text, key) is None, (name, key)


def test_nothing_shorter_than_eight_characters_is_touched() -> None:
    text = "he told the others that seven77 is seven"
    assert redacted(text, ("the", "seven77", "", "é")) == text
    assert redacted("abcdefg abcdefgh", ("abcdefgh",)) == "abcdefg ***"
    assert redacted("0123456 01234567", ("0123456789",)) == "0123456 ***"


def answers(said: str) -> dict[str, Callable[[], Answer]]:
    return {
        "reply": lambda: as_answer(completion(f"85 {said}")),
        "model": lambda: as_answer(completion("no number", model=said)),
        "finish": lambda: as_answer(completion("no number", finish=said)),
        "error": lambda: failing(400, f"{'x' * 480} {said}", code=said),
        "header": lambda: failing(500, "boom", x_request_id=said),
        "not JSON": lambda: Answer(200, f"<p>{said}".encode(), content_type="text/html"),
    }


@pytest.mark.parametrize("transport", ["http", "dspy", "litellm"])
@pytest.mark.parametrize("where", answers(""))
def test_no_row_holds_a_key_that_was_echoed(
    monkeypatch: pytest.MonkeyPatch, transport: str, where: str
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", other := "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    said = " | ".join([*forms(KEY).values(), *forms(other).values()])
    with running(lambda _: answers(said)[where]()) as server:
        spec = ModelSpec(
            "mine", "openai/m", api_base=server.api_base, key_env="MY_KEY", max_tokens=64, transport=transport
        )
        try:
            text = "".join(str(row.as_json()) for row in judged(spec))
        except JudgecalError as error:
            text = str(error)
    held = [name for key in (KEY, other) for name, form in forms(key).items() if form in text]
    assert not held and leak(text, KEY) is None and leak(text, other) is None


# --- the address of a server --------------------------------------------------------------------------------

TOKEN = "a1b2c3d4e5f6a7b8c9d0e1f2"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://host:8443/openai/v1", "https://host:8443/openai/v1"),
        (f"https://host/v1?key={TOKEN}&api-version=2024-02-01", "https://host/v1?key=***&api-version=2024-02-01"),
        (f"https://host/v1?{TOKEN}", "https://host/v1?***=***"),
        (f"https://host/v1#{TOKEN}", "https://host/v1"),
        (f"https://me:{TOKEN}@host/v1", "https://host/v1"),
        ("https://host/my-own-deployment-of-a-model/v1", "https://host/my-own-deployment-of-a-model/v1"),
        (f"https://[::1/{TOKEN}", "***"),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_what_may_be_a_secret(address: str, shown: str) -> None:
    assert shown_address(address) == shown


def test_two_tokens_in_a_path_are_two_endpoints_and_neither_is_shown() -> None:
    one, two = (shown_address(f"https://host/{token}/v1") for token in (TOKEN, TOKEN[::-1]))
    assert one != two and TOKEN not in one + two
    spec = ModelSpec(
        "mine", "openai/m", api_base=f"https://host/{TOKEN}/v1?key={(key := 'other-secret-0123')}"
    )
    assert TOKEN not in str(spec.settings()) and key not in str(spec.settings())
    assert {TOKEN, key} <= set(secrets_of(spec))


def test_a_wrong_address_is_refused_without_its_secret(tmp_path: Path) -> None:
    (tmp_path / "judgecal.toml").write_text(
        f'[models.mine]\nid = "openai/m"\napi_base = "ftp://host/v1?key={TOKEN}"\n'
    )
    with pytest.raises(JudgecalError, match="must be an http or https address") as refused:
        load_catalogue(Workspace(tmp_path, tmp_path / "experiments"))
    assert TOKEN not in str(refused.value)


# --- no redirect is followed, but by litellm: texts and key stay with the server that the user named -------------

OTHER_KEY = "sk-elsewhere-0123456789abcdef"


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize("transport", ["http", "dspy"])
def test_a_redirect_is_not_followed(monkeypatch: pytest.MonkeyPatch, transport: str, status: int) -> None:
    monkeypatch.setenv("MY_KEY", OTHER_KEY)
    with running(lambda _: as_answer(completion("85"))) as other:
        port = urllib.parse.urlsplit(other.root).port
        there = f"http://localhost:{port}/v1/{OTHER_KEY}/chat/completions?key={OTHER_KEY}"
        with running(lambda _: Answer(status, headers={"location": there})) as first:
            spec = ModelSpec(
                "mine", "openai/m", api_base=first.api_base, key_env="MY_KEY", max_tokens=64, transport=transport,
                timeout=10.0,
            )  # fmt: skip
            with pytest.raises(AuthError) as refused:
                judged(spec)
        assert other.calls == 0
    where = (
        "another address" if transport == "dspy" else f"localhost:{port}"
    )  # DSPy's own client does not say
    assert f"redirects to {where}, which is not followed" in str(refused.value)
    assert first.calls == 1
    assert OTHER_KEY not in str(refused.value)
