"""A budget holds whatever a server says of its usage: at most one reply beyond it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from judgecal.engine.budget import Budget
from judgecal.engine.call_runner import Policy
from judgecal.engine.calls import Reply
from judgecal.models import ModelSpec
from judgecal.records import Judgement
from tests.support.jumping import Server, calls, driver

WORST_USD = 1e-3
# All of the estimate is the longest reply: 1,000 tokens at 1 USD a million.
SPEC = ModelSpec("stub", "openai/stub", input_usd_per_1m=0.0, output_usd_per_1m=1.0, max_tokens=1000)


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Judgement]]:
    """Run calls against a server on the jumping clock."""
    return driver(monkeypatch)


def spec(at_once: int) -> ModelSpec:
    return ModelSpec(**{**{name: getattr(SPEC, name) for name in SPEC.__slots__}, "max_concurrency": at_once})


class Biller:
    """A server that reports so many times the most that a call was estimated to take, by the number of the
    call."""

    def __init__(self, times: Callable[[int], float]) -> None:
        self._times = times
        self.billed_usd = self.dearest_usd = 0.0
        self.count = 0

    def __call__(self, _: Server, __: str) -> Reply:
        tokens = math.ceil(self._times(self.count) * 1000)
        self.count += 1
        self.billed_usd += tokens / 1e6
        self.dearest_usd = max(self.dearest_usd, tokens / 1e6)
        return Reply("85", "stub-1", prompt_tokens=10, completion_tokens=tokens)


SERVERS: dict[str, Callable[[int], float]] = {
    **{f"x{times:g}": (lambda _, times=times: times) for times in (0.1, 0.3, 1.0, 1.7, 10.0, 43.0, 100.0)},  # type: ignore[misc]
    "growing": lambda n: 0.1 * (1.0 + 0.1 * n),
    "growing fast": lambda n: 0.1 * (1.0 + n),
    "compounding": lambda n: 0.1 * 1.03**n,
    "one in fifty": lambda n: 20.0 if n % 50 == 49 else 0.3,
    "up and down": lambda n: 0.2 + 3.0 * (n % 7),
    "nine times dearer halfway": lambda n: 0.3 if n < 60 else 2.7,
}


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("at_once", [1, 64])
@pytest.mark.parametrize("calls_paid", [0.9, 25.0, 400.0])
def test_at_most_one_reply_beyond_the_limit(
    drive: Callable[..., Any], server: str, at_once: int, calls_paid: float
) -> None:
    biller, budget = Biller(SERVERS[server]), Budget(calls_paid * WORST_USD)
    rows = drive(Server(biller), calls(1500), spec(at_once), budget=budget, policy=Policy(attempts=1))
    assert len(rows) == 1500
    assert budget.spent_usd == pytest.approx(biller.billed_usd)
    assert biller.billed_usd <= calls_paid * WORST_USD + biller.dearest_usd
    if biller.count < 1500:  # and it is used, as far as calls were estimated to fit
        assert biller.billed_usd > (calls_paid - 1.0) * WORST_USD - biller.dearest_usd


def test_a_server_that_reports_more_than_can_be_is_named(drive: Callable[..., Any]) -> None:
    budget = Budget(0.5)
    rows = drive(Server(Biller(lambda _: 43.0)), calls(40), spec(8), budget=budget)
    ended, more = budget.remarks()
    assert ended == "the budget of 0.5 USD ended the calls: 0.473 USD are spent, 29 calls were not made"
    assert "43.0 times the most that a call was estimated to cost (10 + 43,000 tokens, 0.043 USD)" in more
    assert {row.error.message for row in rows if row.error} == {
        "the next call could overrun 0.5 USD: 0.473 are spent, and it may cost 0.043"
    }


def test_a_generous_budget_holds_nobody_up(drive: Callable[..., Any]) -> None:
    free, bounded = Server(Biller(lambda _: 0.3)), Server(Biller(lambda _: 0.3))
    drive(free, calls(2000), spec(64))
    drive(bounded, calls(2000), spec(64), budget=Budget(10 * 2000 * WORST_USD))
    assert bounded.landed_at == free.landed_at
