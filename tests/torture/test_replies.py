"""Two hundred kinds of broken replies through `score`, `judge` and `gate`: every row is accounted for,
nothing crashes, the memory stays bounded, a resumed run pays for no row that was journalled, and `gate` ends
in 1 by its decision alone.

The clients of dspy and litellm read a body whole, so they get the bodies that are not bombs.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from judgecal.goldset import load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.records import RETRIED_ON_RESUME
from judgecal.workspace import Workspace
from tests.benchmarks.stub import MODEL_ID, Answer, Served, http, running
from tests.support.locks import lock_file
from tests.torture.conftest import LEVEL
from tests.torture.world import SET, Ended, World, item_of

FULL = LEVEL == "full"
PEAK_MB = 700.0
REASONING, VERDICT = "correctness_reasoning", "correctness_percentage"
BOMB = 100_000_000


def said(value: object, reasoning: str = "ok") -> str:
    return f"[[ ## {REASONING} ## ]]\n{reasoning}\n\n[[ ## {VERDICT} ## ]]\n{value}\n\n[[ ## completed ## ]]"


def body(content: Any, **more: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 300, "completion_tokens": 30, "total_tokens": 330}
    return json.dumps({"id": "c", "model": MODEL_ID, "choices": [choice], "usage": usage, **more}).encode()


def of(content: Any, **more: Any) -> Answer:
    return http(body(content, **more))


def texts() -> Iterator[tuple[str, Answer]]:
    """What a model may write: floods, odd characters, quotations, numbers that are none."""
    pieces = [
        "\n", "<", "[[", " ", "\\", "{", '"', '{"a":', "[[ ## ", "\x00", "\x1b]0;", "\u202e", "\ud800",
        "<think>",
    ]  # fmt: skip
    frames: list[Callable[[str], str]] = [
        lambda flood: flood,
        lambda flood: "{" + flood + "}",
        lambda flood: f"{flood}\n{said(85)}",
        said,
        lambda flood: f'{{"{REASONING}": "{flood}", "{VERDICT}": 85}}',
    ]
    for k, piece in enumerate(pieces):
        for n, frame in enumerate(frames):
            yield f"text {k}.{n}", of(frame(piece * (100_000 // len(piece))))
    values = [
        "150", "-1", "nan", "1e999", "9" * 100_000, "٣", "²", "0x10", "85,5", "true", "", "8 5", "85/0",
        "None",
    ]  # fmt: skip
    yield from ((f"value {k}", of(said(value))) for k, value in enumerate(values))
    yield from ((f"forged {k}", of(said(100) + "\n" + said(value))) for k, value in enumerate(values[:6]))
    thought = [
        "<think>so 80</think>", "</think>", "<think>", f"<reflection>{said(70)}</reflection>",
        "<think>\n</thinking>",
    ]  # fmt: skip
    yield from (
        (f"thoughts {k}", of(f"[[ ## {REASONING} ## ]]\nRight.\n{one}[[ ## {VERDICT} ## ]]\n85"))
        for k, one in enumerate(thought)
    )
    objects = ["[]", "null", "NaN", '"85"', "[85]", '{"a": 85}', "9" * 10_000, "true"]
    yield from ((f"object {k}", of(f'{{"{VERDICT}": {one}}}')) for k, one in enumerate(objects))
    yield from (
        (f"twice {k}", of(f'{{"{VERDICT}": 85, "{VERDICT}": {one}}}')) for k, one in enumerate(objects)
    )


def bodies() -> Iterator[tuple[str, Answer]]:
    """What a server may send in the place of a reply, as JSON and not."""
    raw = [
        b"", b" ", b"null", b"[]", b"{}", b"0", b'"x"', b"NaN", b"\xff\xfe\x00", b"\x00" * 1000, b"<html>Busy</html>",
        b"<" * 500_000, b"[" * 100_000, b'{"a":' * 100_000, b"9" * 100_000, b'{"choices": ' + b"9" * 100_000 + b"}",
        b'{"choices": null}', b'{"choices": {}}', b'{"choices": []}', b'{"choices": [null]}', b'{"choices": [[]]}',
        b'{"choices": [{"message": null}]}', b'{"choices": [{"message": []}]}', b'{"choices": [{}]}',
        b'{"choices": [{"message": {"content": 85}}]}', b'{"choices": [{"message": {"content": {}}}]}',
        b'{"choices": [{"delta": {"content": "85"}}]}', b'data: {"choices": []}\n\ndata: [DONE]\n\n',
        body("x")[:-40], body("x") + b"x", body("x") * 2, b"\xef\xbb\xbf" + body("x"),
        body(said(85)).decode().encode("utf-16"),
    ]  # fmt: skip
    yield from ((f"body {k}", http(data)) for k, data in enumerate(raw))
    contents: list[Any] = [
        None, True, 85, [], {}, [None], ["85"], [{"type": "text"}], [{"type": "text", "text": None}],
        [{"type": "text", "text": "a\ud800"}], [{"type": "image_url", "image_url": {"url": "x"}}], [[[]]],
    ]  # fmt: skip
    yield from ((f"content {k}", of(one)) for k, one in enumerate(contents))
    called = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]}
    choices: list[Any] = [
        [{"message": called}],
        [{"text": "85"}],
        [{"message": {"refusal": "no", "content": None}}],
    ]
    choices += [
        [{"message": {"content": said(85)}, "finish_reason": odd}] for odd in (None, 3, [], "x" * 100_000)
    ]
    yield from ((f"choices {k}", of("", choices=one)) for k, one in enumerate(choices))
    counts: list[Any] = [10**400, -1, "12", 1.5, None, [], {}, True, 10**12, float("inf"), float("nan")]
    usages = [{"prompt_tokens": one, "completion_tokens": one, "total_tokens": one} for one in counts]
    for k, usage in enumerate(
        [*usages, None, [], "many", 3, {"prompt_tokens": {"a": 1}}, {"total_tokens": 1}]
    ):
        yield f"usage {k}", of(said(85), usage=usage)
    models: list[Any] = [None, 3, [], "", "\ud800", "\x1b[31m", "m" * 100_000]
    yield from ((f"model {k}", of(said(85), model=one)) for k, one in enumerate(models))
    errors: list[Any] = [
        "x", [], ["x"], {"message": []}, {"message": "x" * 300_000}, {"code": 10**400}, {"details": [3]},
    ]  # fmt: skip
    yield from ((f"error {k}", http(json.dumps({"error": one}).encode())) for k, one in enumerate(errors))


def wires() -> Iterator[tuple[str, Answer]]:
    """What may happen to a body on its way."""
    good = body(said(85))
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    chunked = head + b"transfer-encoding: chunked\r\n\r\n"
    raw = {
        "cut": http(good).data[:-30], "half a head": head[:30], "nothing": b"", "no status": b"\x00\x01\x02\r\n\r\n",
        "chunks cut": chunked + b"400\r\n" + good[:100], "chunk size": chunked + b"zz\r\nx\r\n0\r\n\r\n",
        "chunk of 2^80": chunked + b"f" * 20 + b"\r\nx", "long head": head + b"x: " + b"y" * 100_000 + b"\r\n\r\n",
        "many heads": head + b"x: y\r\n" * 50_000 + b"\r\n",
        "two lengths": head + b"content-length: 1\r\ncontent-length: 2\r\n\r\nxx",
        "length below 0": head + b"content-length: -5\r\n\r\n" + good, "http 0.9": good,
    }  # fmt: skip
    yield from ((f"wire {name}", Answer(data, end="close")) for name, data in raw.items())
    yield "wire reset", Answer(http(good).data[:200], end="reset")
    squeezed = gzip.compress(good)
    odd = {"gzip": good, "deflate": good, "br": good, "zstd": good, "gzip, gzip": squeezed, "x\xe9": good}
    yield from (
        (f"encoding {k}", http(data, content_encoding=name)) for k, (name, data) in enumerate(odd.items())
    )
    yield "encoding cut", http(squeezed[:-20], content_encoding="gzip")
    kinds = ["text/html", "text/event-stream", "application/octet-stream", "", "x" * 1000]
    yield from ((f"type {k}", http(good, kind=kind)) for k, kind in enumerate(kinds))


def bombs() -> Iterator[tuple[str, Answer]]:
    """A small body that is large, or one that is."""
    zeros, text = b"0" * BOMB, body("x" * BOMB)
    for name, data in (("zeros", zeros), ("text", text)):
        yield f"bomb gzip {name}", http(gzip.compress(data, 1), content_encoding="gzip")
        yield f"bomb deflate {name}", http(zlib.compress(data, 1), content_encoding="deflate")
    yield "bomb twice", http(gzip.compress(gzip.compress(zeros, 1)), content_encoding="gzip")
    yield "large", of("x" * 8_000_000)
    yield "just too large", of("x" * 1_000_000)
    yield "large error", http(b"e" * 8_000_000, "500 Internal Server Error")


SMALL = dict([*texts(), *bodies(), *wires()])
KINDS = {**SMALL, **dict(bombs())}
# Answers that end the run at once, and say so: no other call could do better.
STOPS = {
    **{f"redirect {code}": http(b"", f"{code} Moved", location="http://127.0.0.1:1/") for code in (301, 302, 307, 308)},
    **{f"refused {code}": http(b"\xff<" * 1000, f"{code} No") for code in (401, 403, 404, 405)},
}  # fmt: skip


class Broken:
    """Answers each item by a good reply, or where it is its turn by a broken one."""

    def __init__(self, kinds: dict[str, Answer], *, every: int = 1) -> None:
        self.kinds = list(kinds.values())
        self.every = every
        self.calls: Counter[int] = Counter()
        self.well = False

    def __call__(self, _head: bytes, data: bytes) -> Answer:
        number = int(item_of(data))
        self.calls[number] += 1
        if self.well or number % self.every:
            return of(said(verdict_of(number)))
        return self.kinds[number // self.every % len(self.kinds)]


def verdict_of(number: int) -> int:
    return min(100, number * 37 % 101 + 5)


def filled(world: World, count: int) -> None:
    """A set whose labels lie near the verdicts."""
    world.make(count)
    labels = [{"item_id": f"i{n}", "rater": "curator_a", "label": n * 37 % 101} for n in range(count)]
    ratings = world.root / "gold" / SET / "ratings.jsonl"
    ratings.write_text("".join(json.dumps(label) + "\n" for label in labels))


def locked(world: World, script: Broken) -> Path:
    script.well = True
    workspace = Workspace(world.root, world.experiments)
    path = lock_file(
        world.folder / "judge.lock.json",
        PromptJudge("correctness_v3@mine", workspace=workspace),
        load_gold(SET, workspace=workspace),
    )
    script.well = False
    script.calls.clear()
    return path


def sound(ended: Ended, *codes: int) -> None:
    assert ended.code in codes, (ended.code, ended.err[-2000:])
    assert "Traceback" not in ended.err and "internal error" not in ended.err, ended.err[-2000:]
    assert ended.peak_mb < PEAK_MB, ended.peak_mb


def served(world: World, stub: Served, **settings: Any) -> None:
    world.alias(stub.api_base, max_concurrency=64, timeout=20.0, **settings)


@pytest.mark.parametrize("way", ["http", "dspy", "litellm"] if FULL else ["http"])
def test_score_accounts_for_every_row_and_pays_for_none_twice(world: World, way: str) -> None:
    script = Broken(KINDS if way == "http" else SMALL)
    filled(world, len(script.kinds))
    with running(script) as stub:
        served(world, stub, transport=way)
        ended = world.run(world.score("--no-cache", "--json"), timeout=400.0)
        sound(ended, 4)
        rows = {row["item_id"]: row for row in world.rows()}
        assert len(rows) == len(script.kinds) and max(script.calls.values()) <= 5
        assert all((row["verdict"] is None) == (row["error"] is not None) for row in rows.values())
        assert (world.experiments / "run" / "judgements.jsonl").stat().st_size < 40_000 * len(rows)
        names = dict(zip((f"i{n}" for n in range(world.count)), SMALL | KINDS, strict=False))
        assert all(
            rows[item]["verdict"] is None
            for item, name in names.items()
            if name.startswith(("forged", "bomb"))
        )
        script.calls.clear()
        sound(world.run(world.score("--no-cache"), timeout=400.0), 4)
        due = {
            item for item, row in rows.items() if row["error"] and row["error"]["kind"] in RETRIED_ON_RESUME
        }
        assert {f"i{n}" for n in script.calls} == due


@pytest.mark.parametrize("every", [1, 33])
def test_gate_ends_in_1_by_its_decision_alone(world: World, every: int) -> None:
    script = Broken(KINDS if every == 1 else dict(list(KINDS.items())[::20]), every=every)
    filled(world, 240)
    with running(script) as stub:
        served(world, stub)
        ended = world.run(["gate", "--lock", str(locked(world, script)), "--json"], timeout=600.0)
    sound(ended, 0, 1, 3)
    codes = {"pass": 0, "fail": 1, "inconclusive": 3, "changed": 3}
    assert ended.code == codes[json.loads(ended.out)["decision"]]


@pytest.mark.parametrize("stop", STOPS)
def test_what_stops_a_gate_is_no_decision(world: World, stop: str) -> None:
    script = Broken({stop: STOPS[stop]})
    filled(world, 60)
    with running(script) as stub:
        served(world, stub)
        ended = world.run(["gate", "--lock", str(locked(world, script)), "--json"], timeout=200.0)
    sound(ended, 2, 3)
