"""The engine against a scripted server on 127.0.0.1, through DSPy's real client."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from judgecal.engine.budget import Budget, require_prices, worst_cost_usd
from judgecal.engine.cache import ReplyCache, cache_key
from judgecal.engine.call_runner import Policy
from judgecal.engine.calls import Call, Reply
from judgecal.engine.log import Journal
from judgecal.engine.run import Progress, run_calls
from judgecal.errors import AuthError, InputError
from judgecal.models import ModelSpec
from judgecal.records import Failure, Judgement
from tests.support.calls import n_stored, some_calls, stub_model
from tests.support.http import Answer, as_answer
from tests.support.server import Serve, completion, failing, in_turn

QUICK = Policy(attempts=3, first_wait_s=0.01, longest_wait_s=0.05)
KEY = "sk-stub-0123456789abcdef"


def run(calls: list[Call], spec: ModelSpec, **options: Any) -> list[Judgement]:
    rows: list[Judgement] = []
    run_calls(calls, spec, record=lambda *came: rows.extend(came), **{"policy": QUICK, **options})
    return rows


def only(rows: list[Judgement]) -> Judgement:
    assert len(rows) == 1
    return rows[0]


def test_a_verdict_arrives_with_all_that_the_row_must_hold(serve: Serve) -> None:
    row = only(run(some_calls(1), stub_model(serve(lambda _: "85"))))
    assert (row.verdict, row.reasoning, row.error, row.raw_reply) == (85.0, "as written", None, None)
    assert row.model_id == "stub-model-2026-01-01"  # as the server returned it, not as it was asked for
    assert (row.prompt_tokens, row.completion_tokens) == (1000, 50)
    # 1000 x 1 USD/1M + 50 x 2 USD/1M = 0.001 + 0.0001
    assert row.cost_usd == pytest.approx(0.0011)
    assert row.latency_s is not None
    assert row.latency_s > 0.0
    assert (row.attempts, row.cached, row.unit) == (1, False, "item")
    assert row.at.endswith("+00:00")


def test_the_request_is_the_messages_and_the_settings(serve: Serve) -> None:
    server = serve(lambda _: "85")
    run(some_calls(1), stub_model(server, temperature=0.5))
    body = server.bodies[0]
    assert body["model"] == "stub-model"
    assert body["messages"] == [
        {"role": "system", "content": "Judge."},
        {"role": "user", "content": "Is this right? 0"},
    ]
    assert body["temperature"] == 0.5
    assert 64 in (body.get("max_tokens"), body.get("max_completion_tokens"))


@pytest.mark.parametrize("first", [failing(500, "boom"), failing(503, "busy"), failing(429, "slow down")])
def test_what_a_retry_can_help_is_tried_again(serve: Serve, first: Answer) -> None:
    server = serve(in_turn(first, first, "85"))
    row = only(run(some_calls(1), stub_model(server)))
    assert (row.verdict, row.attempts, server.calls) == (85.0, 3, 3)


def test_retry_after_is_bounded_by_the_longest_wait(serve: Serve) -> None:
    server = serve(in_turn(failing(429, "slow down", retry_after="3600"), "85"))
    assert only(run(some_calls(1), stub_model(server))).verdict == 85.0


# answer -> the error's kind, how often it was asked for, a word of the message
FAILED: list[tuple[Answer, str, int, str]] = [
    (failing(500, "boom"), "server", 3, "boom"),
    (failing(400, "no such parameter"), "refused", 1, "no such parameter"),
    (Answer(200, b""), "server", 3, "not JSON"),
]


@pytest.mark.parametrize(("answer", "kind", "calls", "word"), FAILED)
def test_a_call_without_a_reply_is_a_row_with_the_reason(
    serve: Serve, answer: Answer, kind: str, calls: int, word: str
) -> None:
    server = serve(lambda _: answer)
    row = only(run(some_calls(1), stub_model(server)))
    assert row.verdict is None
    assert row.error.kind == kind
    assert word in row.error.message
    assert "\n" not in row.error.message
    assert (row.attempts, server.calls) == (calls, calls)
    assert (row.model_id, row.raw_reply, row.cost_usd) == (None, None, 0.0)


# what the server sends -> kind, raw reply
UNSCORED: list[tuple[Answer, str, str]] = [
    (as_answer(completion("a long story")), "parse", "a long story"),
    (as_answer(completion("")), "parse", ""),
    (as_answer({**completion("x"), "choices": []}), "parse", ""),
    (as_answer(completion("8", finish="content_filter")), "refused", "8"),
]


@pytest.mark.parametrize(("answer", "kind", "raw"), UNSCORED)
def test_a_reply_without_a_verdict_keeps_what_was_said_and_paid(
    serve: Serve, answer: Answer, kind: str, raw: str
) -> None:
    server = serve(lambda _: answer)
    row = only(run(some_calls(1), stub_model(server)))
    assert (row.verdict, row.error.kind, row.raw_reply) == (None, kind, raw)
    assert row.cost_usd == pytest.approx(0.0011)
    assert server.calls == 1  # a reply that cannot be read is never called for again


def test_a_server_that_hangs_is_a_timeout(serve: Serve) -> None:
    server = serve(lambda _: Answer(hang=True))
    spec = stub_model(server, timeout=0.15)
    row = only(run(some_calls(1), spec, policy=Policy(attempts=2, first_wait_s=0.01)))
    assert row.error == Failure("timeout", "no reply within 0.15 s")
    assert (row.attempts, server.calls) == (2, 2)


# status, code -> a word of the message
HOPELESS = [
    (401, "invalid_api_key", "refused the key"),
    (404, "model_not_found", "has no model openai/stub-model"),
]


@pytest.mark.parametrize(("status", "code", "word"), HOPELESS)
def test_what_no_call_can_get_past_stops_the_run_with_one_message(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, status: int, code: str | None, word: str
) -> None:
    monkeypatch.setenv("STUB_KEY", KEY)
    server = serve(lambda _: failing(status, f"you sent {KEY}", code=code))
    with pytest.raises(AuthError) as caught:
        run(some_calls(50), stub_model(server, key_env="STUB_KEY"))
    assert "model stub" in str(caught.value)
    assert word in str(caught.value)
    assert KEY not in str(caught.value)
    assert "RouterConfig" not in str(caught.value)  # the client's own advice is not for the user
    assert server.calls < 50


def test_what_was_judged_before_the_key_was_refused_is_kept(serve: Serve) -> None:
    server = serve(in_turn("85", "70", failing(401, "revoked")))
    rows: list[Judgement] = []
    with pytest.raises(AuthError):
        run_calls(
            some_calls(9),
            stub_model(server, max_concurrency=1),
            record=lambda *came: rows.extend(came),
            policy=QUICK,
        )
    assert [row.verdict for row in rows] == [85.0, 70.0]


@pytest.mark.parametrize("written", [KEY, f"{KEY}\n", f" {KEY} "])
def test_the_key_is_sent_and_found_nowhere_else(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: str
) -> None:
    monkeypatch.setenv("STUB_KEY", written)
    answers = [failing(400, f"bad {KEY}"), failing(500, f"bad {KEY}"), Answer(200, f"<b>{KEY}</b>".encode())]
    server = serve(in_turn(*answers))
    spec = stub_model(server, key_env="STUB_KEY", max_concurrency=1)
    path = tmp_path / "judgements.jsonl"
    with Journal(path) as journal:
        run_calls(some_calls(4), spec, record=journal.append, policy=Policy(attempts=1))
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in path.read_text(encoding="utf-8")
    assert KEY not in str(spec.settings())


@pytest.mark.parametrize("written", ["sk-\U0001f642", "sk-a\nb", "sk-\x7f"])
def test_a_key_that_no_header_can_carry_is_refused_before_any_call(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv("STUB_KEY", written)
    server = serve(lambda _: "85")
    with pytest.raises(InputError, match="STUB_KEY") as caught:
        run(some_calls(1), stub_model(server, key_env="STUB_KEY"))
    assert written not in str(caught.value)
    assert server.calls == 0


def test_a_local_server_is_sent_no_key_of_the_machine(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = serve(lambda _: "85")
    run(some_calls(1), stub_model(server))
    assert KEY not in str(server.headers)


def test_an_unpaired_surrogate_is_refused_by_name_and_the_others_go_on(serve: Serve) -> None:
    server = serve(lambda _: "85")
    rows = run([*some_calls(1, text="\ud800"), *some_calls(3)[1:]], stub_model(server))
    by_item = {row.item_id: row for row in rows}
    assert by_item["i0"].error.kind == "refused"
    assert "surrogate" in by_item["i0"].error.message
    assert [by_item[name].verdict for name in ("i1", "i2")] == [85.0, 85.0]


def test_a_reply_without_token_counts_is_counted_from_its_text(serve: Serve) -> None:
    bare = {key: value for key, value in completion("85").items() if key != "usage"}
    row = only(run(some_calls(1), stub_model(serve(lambda _: as_answer(bare)))))
    # "Judge." is 2 tokens at 3 bytes each and "Is this right? 0" 6, with 8 around each; the reply is 1 at 2
    # USD/1M.
    assert (row.verdict, row.prompt_tokens) == (85.0, None)
    assert row.cost_usd == pytest.approx(26e-6)


# --- the budget ---------------------------------------------------------------------------------------------

# 1000 tokens at 10 USD a million = 0.01 USD a call; a prompt of 1000 bytes and more holds at least that much.
_A_CENT = {"input_usd_per_1m": 10.0, "output_usd_per_1m": 0.0}
_LONG = "x" * 1000


def test_a_budget_is_never_overrun_and_the_rest_are_rows(serve: Serve) -> None:
    server = serve(lambda _: "85")
    budget = Budget(1.00)
    rows = run(some_calls(150, text=_LONG), stub_model(server, **_A_CENT), budget=budget)
    assert len(rows) == 150
    assert server.calls <= 100
    assert budget.spent_usd <= 1.00
    unscored = [row for row in rows if row.verdict is None]
    assert len(unscored) == 150 - server.calls
    assert {row.error.kind for row in unscored if row.error} == {"budget"}
    assert {(row.attempts, row.cost_usd) for row in unscored} == {(0, 0.0)}


def usage(prompt: int, output: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}


@pytest.mark.parametrize(
    "said", [None, 0, 3, -5, 10**400, "1000"], ids=["none", "0", "3", "-5", "1e400", "text"]
)
def test_a_count_of_tokens_that_cannot_be_is_made_anew(serve: Serve, said: Any) -> None:
    bare = {key: value for key, value in completion("85").items() if key != "usage"}
    counts = {"prompt_tokens": said, "completion_tokens": 50}
    server = serve(lambda _: as_answer(bare if said is None else {**bare, "usage": counts}))
    budget = Budget(0.02)  # "Judge." and 1,002 bytes at 3 a token, 8 around each: 352 tokens at 10 USD/1M
    rows = run(some_calls(10, text=_LONG), stub_model(server, **_A_CENT), budget=budget)
    assert (server.calls, budget.spent_usd) == (3, pytest.approx(3 * 0.00352))
    had = [row for row in rows if row.verdict is not None]
    assert [(row.prompt_tokens, row.cost_usd) for row in had] == [(None, pytest.approx(0.00352))] * 3
    ended, counted = budget.remarks()
    assert "7 calls were not made" in ended
    assert "3 replies came without a usable count of tokens" in counted
    assert budget.remarks() == []


def test_a_timeout_may_be_on_the_bill(serve: Serve) -> None:
    server = serve(lambda _: Answer(hang=True))
    spec = stub_model(server, timeout=0.1, **_A_CENT)
    worst = worst_cost_usd(spec, some_calls(1)[0].messages())
    row = only(run(some_calls(1), spec, budget=Budget(1.5 * worst)))
    assert server.calls == 1  # the second attempt could overrun
    assert row.error.kind == "budget"


def test_a_failed_attempt_costs_nothing(serve: Serve) -> None:
    server = serve(in_turn(failing(500, "boom"), "85"))
    budget = Budget(1.0)
    assert only(run(some_calls(1), stub_model(server), budget=budget)).attempts == 2
    assert budget.spent_usd == pytest.approx(0.0011)


def test_the_worst_cost_counts_bytes_and_the_longest_reply() -> None:
    # "é" is 2 bytes; 2 + 8 = 10 tokens at 1 USD/1M, 64 at 2 USD/1M: 0.000010 + 0.000128
    spec = stub_model("http://127.0.0.1:1/v1")
    assert worst_cost_usd(spec, [{"role": "user", "content": "é"}]) == pytest.approx(0.000138)


def test_a_budget_asks_for_prices() -> None:
    unpriced = ModelSpec("mine", "openai/mine")
    require_prices([unpriced], None)
    with pytest.raises(InputError, match="price of mine is not known"):
        require_prices([unpriced, stub_model("x")], 1.0)
    with pytest.raises(InputError, match="above 0"):
        require_prices([], 0.0)


def test_a_budget_asks_for_a_longest_reply() -> None:
    with pytest.raises(InputError, match="stub has no known longest length"):
        require_prices([stub_model("x", max_tokens=None)], 1.0)
    # The price file's own bound will do, and so does a model that costs nothing.
    require_prices([stub_model("x", max_tokens=None, reply_limit=4096)], 1.0)
    require_prices([stub_model("x", max_tokens=None, input_usd_per_1m=0.0, output_usd_per_1m=0.0)], 1.0)


# --- interruption, notebooks, progress ----------------------------------------------------------------------


_INTERRUPTED = """
import asyncio, os, signal, sys
from pathlib import Path
import judgecal.engine.run as engine
from judgecal.engine.calls import Reply
from judgecal.engine.log import Journal
from tests.support.calls import some_calls, stub_model

answered = 0

class Transport:
    async def send(self, messages, schema):
        global answered
        await asyncio.sleep(0.01)
        answered += 1
        if answered == 500:
            os.kill(os.getpid(), signal.SIGINT)
        return Reply("85", "stub")

    async def close(self):
        print("closed", flush=True)

engine.open_transport = lambda spec: Transport()
try:
    with Journal(Path(sys.argv[1])) as journal:
        engine.run_calls(some_calls(100_000), stub_model("http://127.0.0.1:1/v1"), record=journal.append)
except KeyboardInterrupt:
    print(answered, len(journal.latest), flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="sends a signal as a terminal does")
def test_ctrl_c_makes_rows_of_the_replies_that_have_come(tmp_path: Path) -> None:
    path = tmp_path / "judgements.jsonl"
    root = str(Path(__file__).parent.parent)
    said = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, str(path)],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    closed, counts = said.stdout.splitlines()
    answered, kept = map(int, counts.split())
    assert (closed, said.stderr) == ("closed", "")
    assert 500 <= answered == kept < 5000
    with Journal(path) as journal:
        assert (len(journal.latest), journal.mended) == (kept, 0)


def test_a_full_disk_is_told_and_not_a_row(serve: Serve) -> None:
    def record(*_: Judgement) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        run_calls(some_calls(5), stub_model(serve(lambda _: "85")), record=record, policy=QUICK)


def test_calls_work_where_an_event_loop_is_already_running(serve: Serve) -> None:
    server = serve(lambda _: "85")

    async def cell() -> list[Judgement]:
        return run(some_calls(3), stub_model(server))

    assert [row.verdict for row in asyncio.run(cell())] == [85.0] * 3


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="sends a signal to this process")
def test_ctrl_c_in_a_notebook_stops_the_calls(serve: Serve) -> None:
    rows: list[Judgement] = []

    def slow(_: dict[str, Any]) -> str:
        time.sleep(0.01)
        return "85"

    def record(*came: Judgement) -> None:
        rows.extend(came)
        if len(rows) >= 3:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    server = serve(slow)

    async def cell() -> None:
        run_calls(some_calls(400), stub_model(server, max_concurrency=2), record=record, policy=QUICK)

    loop = asyncio.new_event_loop()  # as in a notebook, Ctrl-C here is a plain KeyboardInterrupt
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())
    finally:
        loop.close()
    time.sleep(0.1)  # the server may still be about to read what was sent before
    kept, asked = len(rows), server.calls
    assert 3 <= kept < 400
    assert asked <= kept + 2
    time.sleep(0.1)
    assert (len(rows), server.calls) == (kept, asked)  # nothing goes on behind the user's back


def test_progress_counts_every_row(serve: Serve) -> None:
    progress = Progress("judge@stub", 3)
    server = serve(in_turn("85", "a story", "70"))
    run(some_calls(3), stub_model(server), progress=progress)
    assert (progress.done, progress.unscored) == (3, 1)
    # three replies paid at 0.0011; 2 s for 3 is 1.5/s
    assert progress.state(2.0) == "3 of 3 (100%), 1.5 a second, 1 unscored, $0.0033, 0:00 left"


# --- stored replies -----------------------------------------------------------------------------------------


def test_a_stored_reply_is_marked_costs_nothing_and_keeps_its_usage(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda _: "85")
    spec = stub_model(server)
    with ReplyCache(tmp_path) as cache:
        paid = only(run(some_calls(1), spec, cache=cache))
        taken = only(run(some_calls(1), spec, cache=cache))
    assert server.calls == 1
    assert (paid.cached, taken.cached) == (False, True)
    assert (taken.verdict, taken.model_id) == (85.0, "stub-model-2026-01-01")
    assert (taken.prompt_tokens, taken.completion_tokens, taken.cost_usd) == (1000, 50, 0.0)
    assert (taken.attempts, taken.latency_s) == (0, None)


def test_a_reply_without_a_verdict_is_neither_stored_nor_served_and_a_better_one_replaces_it(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(in_turn("I cannot say.", "no number", "85"))
    (call,), spec = some_calls(1), stub_model(server)
    with ReplyCache(tmp_path) as cache:
        assert only(run([call], spec, cache=cache)).verdict is None
        assert n_stored(cache) == 0
        # as an older store may hold one, or a judge that reads the same prompt's replies otherwise
        cache.put(cache_key(spec, call.messages(), 0), Reply("Not sure.", "m"))
        assert only(run([call], spec, cache=cache)).verdict is None
        assert only(run([call], spec, cache=cache)).verdict == 85.0
        taken = only(run([call], spec, cache=cache))
    assert server.calls == 3
    assert (taken.verdict, taken.cached) == (85.0, True)
    assert taken.replied_at is not None
    assert taken.replied_at <= taken.at


def test_the_same_request_in_flight_shares_a_verdict_alone(serve: Serve) -> None:
    call = some_calls(1)[0]
    twin = Call(call.key._replace(item_id="twin"), call.judge, call.messages, call.read)
    server = serve(in_turn("I cannot say.", "85"))
    assert {row.verdict for row in run([call, twin], stub_model(server))} == {None, 85.0}
    assert server.calls == 2


def test_a_failure_is_not_stored(serve: Serve, tmp_path: Path) -> None:
    server = serve(in_turn(failing(400, "no"), "85"))
    with ReplyCache(tmp_path) as cache:
        assert only(run(some_calls(1), stub_model(server), cache=cache)).verdict is None
        assert only(run(some_calls(1), stub_model(server), cache=cache)).verdict == 85.0
