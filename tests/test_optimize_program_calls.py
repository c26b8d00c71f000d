"""The calls of DSPy's optimisers: one call for one request, in any thread, and an end that DSPy cannot
swallow."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dspy
import pytest

from judgecal.engine.budget import Budget
from judgecal.engine.cache import ReplyCache
from judgecal.engine.call_runner import Policy
from judgecal.errors import AuthError, BudgetError, JudgecalError
from judgecal.models import ModelSpec
from judgecal.optimize.program_calls import ProgramCall, ProgramCalls, Stopped, logged_usd, program_lm
from judgecal.optimize.training import reflection_spec
from tests.support.calls import n_stored
from tests.support.server import Serve, StubServer, failing, in_turn

YES = "[[ ## a ## ]]\nyes\n\n[[ ## completed ## ]]"
QUICK = Policy(attempts=3, first_wait_s=0.0)


def spec(server: StubServer, **more: Any) -> ModelSpec:
    settings = {"input_usd_per_1m": 1.0, "output_usd_per_1m": 2.0, "max_tokens": 100, **more}
    return ModelSpec("stub", "openai/stub", api_base=server.api_base, **settings)


def asked(server: StubServer, text: str = "Q", **more: Any) -> ProgramCall:
    return ProgramCall(spec(server), [{"role": "user", "content": text}], **more)


def calling(budget: Budget | None = None, **more: Any) -> ProgramCalls:
    return ProgramCalls(budget or Budget(None), policy=QUICK, **more)


def test_one_request_is_one_call_in_any_thread(serve: Serve) -> None:
    server = serve(lambda _: "yes")
    server.latency_s = 0.05
    with calling() as calls, ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda n: calls.ask(asked(server, f"Q{n % 4}")).text, range(32)))
    assert (replies, server.calls) == (["yes"] * 32, 4)


def test_calls_of_many_threads_go_at_once(serve: Serve) -> None:
    server = serve(lambda _: "yes")
    server.latency_s = 0.1
    with calling() as calls, ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda n: calls.ask(asked(server, f"Q{n}")), range(32)))
    assert 8 < server.most_at_once <= 16
    stated = spec(server, max_concurrency=2)
    server.most_at_once = 0
    with calling() as calls, ThreadPoolExecutor(8) as pool:
        texts = [[{"role": "user", "content": str(n)}] for n in range(8)]
        list(pool.map(lambda messages: calls.ask(ProgramCall(stated, messages)), texts))
    assert server.most_at_once == 2


def test_another_sample_is_another_request(serve: Serve) -> None:
    server = serve(lambda _: YES)
    with calling() as calls:
        lm = program_lm(spec(server, temperature=0.0), calls)
        lms = [lm, lm.copy(temperature=1.0)]
        lms += [lm.copy(rollout_id=rollout, temperature=1.0) for rollout in (0, 1, 2)]
        for one in [*lms, *lms]:
            with dspy.context(lm=one, adapter=dspy.ChatAdapter()):
                assert dspy.Predict("q -> a")(q="one").a == "yes"
        with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
            dspy.Predict("q -> a")(q="one", config={"rollout_id": 7, "temperature": 1.0})
    assert [body["temperature"] for body in server.bodies] == [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert {body["max_tokens"] for body in server.bodies} == {100}


def test_the_first_error_ends_everything(serve: Serve) -> None:
    server = serve(lambda _: failing(401, "bad key", code="invalid_api_key"))
    with calling() as calls:
        with dspy.context(lm=program_lm(spec(server), calls), adapter=dspy.ChatAdapter()):
            with pytest.raises(Stopped):
                dspy.Predict("q -> a")(q="one")
            with pytest.raises(Stopped):
                dspy.Predict("q -> a")(q="two")
        assert isinstance(calls.error, AuthError)
    assert server.calls == 1


def test_calls_count_against_the_budget(serve: Serve) -> None:
    server = serve(lambda _: YES)
    budget = Budget(0.0025)  # a reply is paid at 0.0011; the worst case of this prompt lies below that
    with calling(budget) as calls:
        assert [calls.ask(asked(server, text)).text for text in ("one", "two")] == [YES, YES]
        with pytest.raises(Stopped):
            calls.ask(asked(server, "x" * 500))
        assert isinstance(calls.error, BudgetError) and "could overrun 0.0025 USD" in str(calls.error)
    assert (server.calls, budget.spent_usd) == (2, pytest.approx(0.0022))


def test_the_budget_holds_with_many_in_flight(serve: Serve) -> None:
    server = serve(lambda _: YES)
    server.latency_s = 0.02
    budget = Budget(0.02)

    def ask(calls: ProgramCalls, text: str) -> bool:
        try:
            return calls.ask(asked(server, text)).text == YES
        except Stopped:
            return False

    with calling(budget) as calls, ThreadPoolExecutor(16) as pool:
        # So long that its worst case, 0.0014, is above the 0.0011 that the stub bills.
        got = list(pool.map(lambda n: ask(calls, f"{n} {'x' * 1200}"), range(60)))
    assert budget.spent_usd == pytest.approx(server.calls * 0.0011)
    assert 10 < server.calls <= 18 and budget.spent_usd <= 0.02 and not all(got)


def test_what_can_help_is_tried_again_by_one_layer(serve: Serve) -> None:
    server = serve(in_turn(failing(429, "slow down", retry_after="0"), failing(500, "oh"), "yes"))
    with calling() as calls:
        assert calls.ask(asked(server)).text == "yes"
    assert server.calls == 3
    down = serve(lambda _: failing(429, "slow down", retry_after="0"))
    with calling() as calls:
        lm = program_lm(spec(down), calls)
        with dspy.context(lm=lm, adapter=dspy.ChatAdapter()), pytest.raises(Stopped):
            dspy.Predict("q -> a")(q="one")
        assert "gave no reply in 3 attempts (rate_limit: " in str(calls.error)
        assert type(calls.error) is JudgecalError
    assert down.calls == 3


def test_a_text_that_is_refused_is_an_empty_reply(serve: Serve) -> None:
    server = serve(in_turn(failing(400, "not that"), "yes"))
    with calling() as calls:
        assert calls.ask(asked(server, "one")).text == ""
        assert calls.ask(asked(server, "two")).text == "yes"
        assert calls.error is None


def test_a_stop_drops_what_is_in_flight(serve: Serve) -> None:
    server = serve(lambda _: "yes")
    server.latency_s = 30.0
    ended: list[float] = []

    def ask(calls: ProgramCalls) -> None:
        try:
            calls.ask(asked(server))
        except Stopped:
            ended.append(time.monotonic())

    start = time.monotonic()
    with calling() as calls:
        thread = threading.Thread(target=ask, args=(calls,))
        thread.start()
        while not server.calls:
            time.sleep(0.01)
        calls.stop()
        thread.join()
    assert ended and ended[0] - start < 20.0
    assert calls.error is None


# --- the record


def test_several_samples_of_one_prompt_are_several_calls(serve: Serve) -> None:
    server = serve(in_turn(*(YES.replace("yes", str(n)) for n in range(4))))
    with calling() as calls:
        lm = program_lm(spec(server), calls)
        with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
            found = dspy.Predict("q -> a", n=3, temperature=1.0)(q="Q")
    assert (found.completions.a, server.calls) == (["0", "1", "2"], 3)


def test_a_record_answers_for_its_calls(serve: Serve, tmp_path: Path) -> None:
    server = serve(in_turn(failing(400, "not that"), "yes \ud800"))
    path = tmp_path / "calls.jsonl"
    for _ in range(2):
        with calling(log=path) as calls:
            assert calls.ask(asked(server, "refused")).text == ""
            assert calls.ask(asked(server, "good")).text == "yes \ufffd"
    assert server.calls == 2
    refused, good = (json.loads(line) for line in path.read_text().splitlines())
    assert refused["error"] == {"kind": "refused", "message": refused["error"]["message"]}
    assert refused["reply"] is good["error"] is None
    assert (good["purpose"], good["cost_usd"]) == ("task", pytest.approx(0.0011))
    assert (good["reply"]["prompt_tokens"], good["reply"]["completion_tokens"]) == (1000, 50)
    assert good["key"] != refused["key"] and not good["cached"]


def test_what_another_try_can_mend_is_tried_again(serve: Serve, tmp_path: Path) -> None:
    server = serve(in_turn(*[failing(503, "gone")] * QUICK.attempts, "yes"))
    path = tmp_path / "calls.jsonl"
    with calling(log=path) as calls, pytest.raises(Stopped):
        calls.ask(asked(server))
    with path.open("a") as file:
        file.write('{"key": "torn')
    with calling(log=path) as calls:
        assert calls.ask(asked(server)).text == "yes"
    kinds = [json.loads(line)["error"] for line in path.read_text().splitlines()]
    assert [kind and kind["kind"] for kind in kinds] == ["server", None]


def test_stored_replies_are_shared_with_the_judges(serve: Serve, tmp_path: Path) -> None:
    from judgecal.engine.cache import cache_key
    from judgecal.engine.calls import Reply

    server = serve(lambda _: "called")
    call = asked(server)
    with ReplyCache(tmp_path) as cache:
        cache.put(cache_key(call.spec, call.messages, 0), Reply("stored", "stub"))
        with calling(cache=cache) as calls:
            assert calls.ask(call).text == "stored"
            assert calls.ask(asked(server, repeat=1)).text == "called"
    assert server.calls == 1


def test_a_blank_reply_is_stored_for_nobody(serve: Serve, tmp_path: Path) -> None:
    server = serve(in_turn(" ", "said"))
    with ReplyCache(tmp_path) as cache, calling(cache=cache) as calls:
        calls.ask(asked(server))
        assert n_stored(cache) == 0
        calls.ask(asked(server, repeat=2))
        assert n_stored(cache) == 1


# --- small parts


@pytest.mark.parametrize(
    ("max_tokens", "reply_limit", "room"),
    [(400, None, 4096), (400, 1000, 1000), (8192, None, 8192), (None, None, None), (400, 100, 400)],
)
def test_a_writer_has_room_for_instructions(
    max_tokens: int | None, reply_limit: int | None, room: int | None
) -> None:
    written = reflection_spec(ModelSpec("a", "b/c", max_tokens=max_tokens, reply_limit=reply_limit))
    assert written.max_tokens == room


def test_known_spending_is_that_of_the_lines_that_can_be_read(serve: Serve, tmp_path: Path) -> None:
    server, path = serve(in_turn("yes")), tmp_path / "calls.jsonl"
    with calling(log=path) as calls:
        calls.ask(asked(server, "good"))
    path.write_text(
        path.read_text(encoding="utf-8") + '{"cost_usd": 0.25, "key": "none"}\n', encoding="utf-8"
    )
    assert logged_usd(path) == pytest.approx(0.0011) and logged_usd(tmp_path / "none.jsonl") == 0.0
