"""A key placed in the environment appears in no file and no output, whatever the server says."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.benchmarks.stub import REPLY, Answer, completion, http, running
from tests.torture.conftest import LEVEL
from tests.torture.world import SET, World

KEY = "sk-torture/Kq8+7Zw%=&xy0123456789abcdefABCDEF"
TOKEN = "t0ken1n2path3abcdef4567890"
_KEY_HEADER = re.compile(
    rb"\r\n(?:authorization: bearer|x-api-key:|x-goog-api-key:) *([^\r]+)", re.IGNORECASE
)


def forms() -> dict[str, bytes]:
    encoded = base64.b64encode(KEY.encode()).decode()
    aligned = base64.b64encode(b"Bearer " + KEY.encode()).decode()
    texts = {
        "token in the address": TOKEN,
        "first half": KEY[: len(KEY) // 2],
        "last half": KEY[len(KEY) // 2 :],
        "raw": KEY,
        "percent-encoded": quote(KEY, safe=""),
        "percent-encoded but for slashes": quote(KEY),
        "base64": encoded.rstrip("="),
        "base64 of the header": aligned.rstrip("="),
        "most of it": KEY[3:30],
    }
    return {name: text.encode() for name, text in texts.items()}


def echo(text: str) -> str:
    """The key in every form that a server might send back."""
    return f"{text} " + " | ".join(form.decode() for form in forms().values())


def failing(status: str) -> Callable[[], Answer]:
    def answer() -> Answer:
        message = echo("Incorrect API key provided:")
        body = json.dumps({"error": {"message": message, "type": "x", "code": "k", "param": KEY}})
        return http(body.encode(), status, x_request_id="r1", x_echo=KEY)

    return answer


def cut(before: int) -> Callable[[], Answer]:
    """The key so far behind the start of the message that a row, which is cut, may end in the middle of
    it."""
    message = "x" * before + KEY
    body = json.dumps({"error": {"message": message, "type": "x", "code": None}}).encode()
    return lambda: http(body, "400 Bad Request")


def in_text() -> Answer:
    return http(echo("<html>You sent").encode(), "500 Internal Server Error", kind="text/html")


SERVERS: dict[str, Callable[[], Answer]] = {
    "good": lambda: http(completion(REPLY)),
    "400": failing("400 Bad Request"),
    "401": failing("401 Unauthorized"),
    "403": failing("403 Forbidden"),
    "404": failing("404 Not Found"),
    "429": failing("429 Too Many Requests"),
    "500": failing("500 Internal Server Error"),
    "500 HTML": in_text,
    "cut in the key": cut(500 - 40),
    "cut in the key, prefixed": cut(500 - 50),
    "redirect": lambda: http(b"", "302 Found", location=f"/v1/elsewhere?key={quote(KEY, safe='')}"),
    "broken JSON": lambda: http(f'{{"error": "{echo("broken")}'.encode()),
    "in the reply": lambda: http(completion(echo("prose"))),
    "in the reasoning": lambda: http(completion(REPLY.replace("ok", echo("ok")))),
    "as the model": lambda: http(completion(REPLY, model=KEY)),
}


@pytest.mark.parametrize(
    "model",
    [
        "openai/mine", "anthropic/mine", "gemini/mine", "mistral/mine", "openai/mine by dspy",
        "openai/mine by litellm",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "server", SERVERS if LEVEL == "full" else ["good", "401", "cut in the key, prefixed"]
)
def test_no_file_and_no_output_holds_the_key(world: World, server: str, model: str) -> None:
    world.make(3)
    world.env = {"MY_KEY": KEY}
    seen: list[bytes] = []

    def script(head: bytes, _: bytes) -> Answer:
        seen.extend(_KEY_HEADER.findall(head))
        return SERVERS[server]()

    with running(script) as stub:
        name, _, transport = model.partition(" by ")
        address = stub.api_base.replace("/v1", f"/{TOKEN}/v1")
        world.alias(address, id=name, key_env="MY_KEY", timeout=5.0, transport=transport or "auto")
        world.run(world.score(), timeout=240.0)
        if server == "good":
            world.run(["models"])
            world.run(
                ["optimize", "--model", "mine", "--gold", "starter", "--optimizer", "fewshot", "--limit", "6"]
            )
            world.run(["agreement", "--gold", SET, "--judgements", "experiments/run/judgements.jsonl"])
    if model == "openai/mine":
        assert KEY.encode() in seen, "the server was to see the key, or the test shows nothing"
    found = [
        f"{path.relative_to(world.folder)}: {name}"
        for path in world.folder.rglob("*")
        if path.is_file() and path.name != "judgecal.toml"  # the user's own, with the address in it
        for name, form in forms().items()
        if form in path.read_bytes()
    ]
    assert not found
