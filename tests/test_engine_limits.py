"""How many calls go at once, on a clock that jumps: whole runs of thousands of calls, exact and without a
wait."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from judgecal.engine.call_runner import Policy
from judgecal.engine.calls import Call, CallFailed, Message, Reply, ReplySchema
from judgecal.engine.run import Progress
from judgecal.engine.scheduler import Limiter
from judgecal.errors import AuthError, JudgecalError
from judgecal.models import ModelSpec
from judgecal.records import Judgement
from tests.support.jumping import Server, calls, driver, good

STATED = ModelSpec("stub", "openai/stub", max_concurrency=4)


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Judgement]]:
    """Run calls against a server on the jumping clock."""
    return driver(monkeypatch)


# --- growth -------------------------------------------------------------------------------------------------


def test_where_nothing_is_stated_it_grows_fourfold_a_round_trip(drive: Callable[..., Any]) -> None:
    server = Server(good)
    assert len(drive(server, calls(6000))) == 6000
    begun = [server.starts_in(second - 0.5, second + 0.5) for second in range(6)]
    assert begun == [8, 32, 128, 512, 1024, 1024]


def test_a_stated_number_is_where_it_starts_and_never_more(drive: Callable[..., Any]) -> None:
    server = Server(good)
    drive(server, calls(40), STATED)
    assert [server.starts_in(second - 0.5, second + 0.5) for second in range(10)] == [4] * 10


def test_never_more_at_once_than_there_are_calls() -> None:
    assert (Limiter(100, total=7).at_once, Limiter(total=3).ceiling) == (7, 3)


def test_several_processes_divide_what_one_may_have() -> None:
    divided = [Limiter(9, processes=2), Limiter(processes=4), Limiter(1, processes=2)]
    assert [(limiter.at_once, limiter.ceiling) for limiter in divided] == [(4, 4), (8, 256), (1, 1)]


def test_it_stops_growing_where_more_at_once_only_wait_on_the_server(drive: Callable[..., Any]) -> None:
    # A server that does 40 at a time in 1 s: 400 at once would take 10 s each, 1,024 more than the timeout.
    server = Server(good)
    server.latency_s = lambda s: max(1.0, s.in_flight / 40)
    spec = ModelSpec("stub", "openai/stub", timeout=20.0)
    rows = drive(server, calls(8000), spec)
    assert all(row.verdict is not None for row in rows)
    assert max(row.latency_s for row in rows) < 15.0
    assert server.landed_at < 1.1 * 8000 / 40  # and the server was never short of work


# --- backing off --------------------------------------------------------------------------------------------


def refusal(**more: Any) -> CallFailed:
    return CallFailed("rate_limit", "slow down", retry=True, **more)


def test_a_refusal_lowers_it_at_most_once_a_round_trip() -> None:
    limiter = Limiter(64)
    sent = [limiter.begin() for _ in range(64)]
    for began in sent:
        limiter.refused(began)
    assert limiter.at_once == 32
    limiter.refused(limiter.begin())  # sent after it was lowered, and nearly all were refused
    assert 16 <= limiter.at_once <= 22


def test_it_goes_down_to_one_and_no_further() -> None:
    limiter = Limiter(8)
    for _ in range(100):
        limiter.refused(limiter.begin())
        limiter.end()
    assert limiter.at_once == 1


def test_after_a_refusal_it_grows_slowly() -> None:
    limiter = Limiter()
    limiter.refused(limiter.begin())
    assert limiter.at_once == 4
    for _ in range(3):
        limiter.begin()
    for _ in range(4):
        limiter.succeeded(1.0)
    assert 4.7 <= limiter.allowance <= 5.0  # one more a round trip, and a fiftieth once that is more


def test_the_whole_run_waits_as_long_as_the_provider_asks(drive: Callable[..., Any]) -> None:
    def once(server: Server, text: str) -> Reply | CallFailed:
        return refusal(retry_after=30.0) if len(server.started) == 5 else good(server, text)

    server = Server(once)
    rows = drive(server, calls(100))
    assert all(row.verdict is not None for row in rows)
    assert server.starts_in(1.001, 31.0) == 0
    assert server.starts_in(31.0, 31.1) >= 4


def test_one_call_that_waits_holds_nobody_up(drive: Callable[..., Any]) -> None:
    def one_is_bad(server: Server, text: str) -> Reply | CallFailed:
        return CallFailed("server", "boom", retry=True) if text == "item 0" else good(server, text)

    server = Server(one_is_bad)
    rows = drive(server, calls(400), STATED, policy=Policy(attempts=2, first_wait_s=60.0))
    assert len(rows) == 400
    assert (
        server.landed_at <= 101.0
    )  # 401 calls of 1 s at 4 at once: the others went on while the bad one waited


def test_a_retry_goes_before_a_call_that_was_not_tried(drive: Callable[..., Any]) -> None:
    def first_fails(server: Server, text: str) -> Reply | CallFailed:
        bad = text == "item 0" and len(server.started) == 1
        return CallFailed("server", "boom", retry=True) if bad else good(server, text)

    server = Server(first_fails)
    policy = Policy(first_wait_s=0.5, longest_wait_s=0.5)
    drive(server, calls(20), ModelSpec("stub", "openai/stub", max_concurrency=1), policy=policy)
    assert [text for _, text in server.started][:3] == ["item 0", "item 1", "item 0"]


def test_three_in_ten_failing_in_every_way_ends_in_bounded_time(drive: Callable[..., Any]) -> None:
    rng = random.Random(1)

    def hostile(server: Server, text: str) -> Reply | CallFailed:
        failures = [
            refusal(),
            CallFailed("server", "HTTP 503", retry=True, overloaded=True),
            CallFailed("server", "boom", retry=True),
            CallFailed("transport", "reset", retry=True),
            CallFailed("timeout", "late", retry=True),
        ]
        return rng.choice(failures) if rng.random() < 0.3 else good(server, text)

    server = Server(hostile)
    rows = drive(server, calls(2000))
    assert {row.item_id for row in rows} == {f"i{index}" for index in range(2000)}
    assert len(rows) == 2000
    assert all((row.verdict is None) == (row.error is not None) for row in rows)
    assert sum(row.verdict is None for row in rows) < 30  # 0.3 ** 5 of 2,000 is 5
    assert server.landed_at < 600.0  # one by one it would be 2,860 s


def lost() -> CallFailed:
    return CallFailed("transport", "cannot connect", retry=True)


def test_a_server_that_is_gone_ends_the_run_with_one_message(drive: Callable[..., Any]) -> None:
    def gone_after_a_while(server: Server, text: str) -> Reply | CallFailed:
        return good(server, text) if len(server.started) <= 200 else lost()

    server = Server(gone_after_a_while)
    with pytest.raises(JudgecalError, match=r"cannot be reached.*'cannot connect'.*resumes"):
        drive(server, calls(100_000))
    assert server.landed_at < 120.0  # and not the hours that 99,800 calls would take to say the same


def test_a_server_that_was_never_there_ends_a_short_run_too(drive: Callable[..., Any]) -> None:
    """Rows without a verdict would look like those of a judge that fails."""
    with pytest.raises(JudgecalError, match=r"cannot be reached: the last 8 calls"):
        drive(Server(lambda server, text: lost()), calls(8))
    assert (
        len(drive(Server(lambda server, text: lost()), calls(7))) == 7
    )  # these may be what ends the connection


def test_one_call_that_was_answered_keeps_the_others_of_a_short_run(drive: Callable[..., Any]) -> None:
    def first_alone(server: Server, text: str) -> Reply | CallFailed:
        return good(server, text) if len(server.started) == 1 else lost()

    rows = drive(Server(first_alone), calls(8))
    assert sum(row.error is None for row in rows) == 1 and len(rows) == 8


def test_a_connection_lost_now_and_then_does_not(drive: Callable[..., Any]) -> None:
    def nine_in_ten(server: Server, text: str) -> Reply | CallFailed:
        return good(server, text) if len(server.started) % 10 == 0 else lost()

    assert len(drive(Server(nine_in_ten), calls(1000))) == 1000


# --- the same request at the same time ----------------------------------------------------------------------


def test_identical_requests_in_flight_are_one_call(drive: Callable[..., Any]) -> None:
    server = Server(good)
    rows = drive(server, calls(10, text="the same"))
    assert len(server.started) == 1
    paid, *taken = rows
    assert (paid.cached, paid.attempts, paid.cost_usd) == (False, 1, pytest.approx(0.0011))
    assert {(row.cached, row.attempts, row.cost_usd, row.latency_s) for row in taken} == {
        (True, 0, 0.0, None)
    }
    assert {(row.verdict, row.prompt_tokens, row.model_id) for row in rows} == {(85.0, 1000, "stub-1")}


def test_repeats_share_nothing(drive: Callable[..., Any]) -> None:
    server = Server(good)
    drive(server, [*calls(1, text="the same"), *calls(1, text="the same", repeat=1)])
    assert len(server.started) == 2


def test_who_follows_holds_no_place(drive: Callable[..., Any]) -> None:
    # The leader waits to try again while nine follow it: with one place they must not keep it from the
    # leader.
    def first_fails(server: Server, text: str) -> Reply | CallFailed:
        return refusal() if len(server.started) == 1 else good(server, text)

    server = Server(first_fails)
    rows = drive(server, calls(10, text="the same"), ModelSpec("s", "openai/s", max_concurrency=1))
    assert len(server.started) == 2
    assert [row.cached for row in rows] == [False] + [True] * 9


def test_where_the_leader_fails_the_next_one_tries(drive: Callable[..., Any]) -> None:
    def first_fails(server: Server, text: str) -> Reply | CallFailed:
        bad = len(server.started) == 1
        return CallFailed("refused", "not this", retry=False) if bad else good(server, text)

    server = Server(first_fails)
    rows = drive(server, calls(5, text="the same"))
    assert len(server.started) == 2
    assert [row.verdict for row in rows] == [None, 85.0, 85.0, 85.0, 85.0]


def test_a_refused_key_starts_no_further_call(drive: Callable[..., Any]) -> None:
    class Refusing(Server):
        async def send(self, messages: Sequence[Message], schema: ReplySchema | None = None) -> Reply:
            await super().send(messages)
            raise AuthError("the provider refused the key")

    server = Refusing(good)
    with pytest.raises(AuthError):
        drive(server, [*calls(4, text="the same"), *calls(50)])
    assert len(server.started) <= 8


# --- what is held -------------------------------------------------------------------------------------------


def test_calls_are_drawn_when_they_are_due(drive: Callable[..., Any]) -> None:
    drawn = landed = furthest = 0

    def draw() -> Iterator[Call]:
        nonlocal drawn, furthest
        for call in calls(3000):
            drawn += 1
            furthest = max(furthest, drawn - landed)
            yield call

    def landing(server: Server, text: str) -> Reply:
        nonlocal landed
        landed = len(server.started) - server.in_flight
        return good(server, text)

    spec = ModelSpec("stub", "openai/stub", max_concurrency=16)
    assert len(drive(Server(landing), draw(), spec)) == 3000
    assert furthest <= 18


def test_a_progress_that_cannot_be_shown_ends_the_run(drive: Callable[..., Any]) -> None:
    class Closed(Progress):
        def show(self) -> None:
            raise BrokenPipeError("nobody reads")

    with pytest.raises(BrokenPipeError, match="nobody reads"):
        drive(Server(good, latency_s=30.0), calls(5), progress=Closed("judge", 5))


def test_an_iterator_that_breaks_ends_the_run_with_its_own_error(drive: Callable[..., Any]) -> None:
    def broken() -> Iterator[Call]:
        yield from calls(20)
        raise LookupError("no such item")

    with pytest.raises(LookupError, match="no such item"):
        drive(Server(good), broken())
