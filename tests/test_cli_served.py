"""The commands over a served model: stored replies, budget, key, cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.calls import say_half
from tests.support.command import Run, journal, one_object
from tests.support.server import USD_A_CALL, StubServer, priced

KEY = "sk-not-to-be-seen"


@pytest.fixture
def served(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    """A model `mine` that always says 50, with a price and a key."""
    monkeypatch.setenv("MY_KEY", KEY)
    with priced(workspace_dir, say_half) as stub:
        yield stub


def test_a_reply_is_paid_once_across_experiments(
    judgecal: Run, workspace_dir: Path, served: StubServer
) -> None:
    first = one_object(judgecal("score", "--models", "mine", "--json"))
    called = served.calls
    assert called == first["judges"][0]["n"]
    second = one_object(judgecal("score", "--models", "mine", "--split", "dev", "--json"))
    assert served.calls == called  # dev is part of open
    assert second["experiment"] != first["experiment"]
    rows = journal(workspace_dir, second["experiment"])
    assert all(row["cached"] for row in rows if "@mine" in row["judge"])
    n = second["judges"][0]["n"]
    stored = f"all {n} verdicts come from stored replies, which cost nothing; the oldest reply is of "
    assert [stored in note for note in second["notes"]].count(True) == 1
    assert stored.capitalize() in judgecal("score", "--models", "mine", "--split", "dev", "--full").said
    assert not any("stored replies" in note for note in first["notes"])
    # What it costs in production does not hang on who paid before.
    costs = [found["judges"][0]["usd_per_1k"] for found in (first, second)]
    assert costs == [pytest.approx(1000 * USD_A_CALL)] * 2
    assert second["judges"][0]["latency_s"] == {"p50": None, "p95": None}
    anew = ("--split", "dev", "--no-cache", "--name", "anew", "--json")
    third = one_object(judgecal("score", "--models", "mine", *anew))
    assert served.calls == called + third["judges"][0]["n"]


def test_the_budget_is_kept_and_the_run_goes_on_later(
    judgecal: Run, workspace_dir: Path, served: StubServer
) -> None:
    budget = 6 * USD_A_CALL
    ran = judgecal("score", "--models", "mine", "--no-cache", "--budget-usd", str(budget), "--json")
    found = one_object(ran, code=4)
    (judge,) = found["judges"]
    assert 0 < judge["n"] == served.calls < judge["n_expected"]
    assert served.calls * USD_A_CALL <= budget
    assert judge["unscored"] == {"budget": judge["n_unscored"]}
    whole = one_object(judgecal("score", "--models", "mine", "--no-cache", "--json"))
    assert (whole["experiment"], whole["judges"][0]["n_unscored"]) == (found["experiment"], 0)
    assert served.calls == judge["n_expected"]  # none of the first ones again


@pytest.mark.parametrize("optimizer", ["labeled", "fewshot"])
def test_what_was_spent_is_told_and_lies_below_the_preview(
    judgecal: Run, workspace_dir: Path, served: StubServer, optimizer: str
) -> None:
    argv = ("optimize", "--model", "mine", "--optimizer", optimizer, "--limit", "6", "--no-cache", "--json")
    plan = one_object(judgecal(*argv, "--dry-run"))
    assert served.calls == 0
    found = one_object(judgecal(*argv))
    assert found["usd"] == pytest.approx(served.calls * USD_A_CALL)
    assert 0 < served.calls <= plan["calls"]
    assert found["usd"] <= plan["usd_at_most"] + 1e-9
    called = served.calls
    again = one_object(judgecal(*argv))
    assert served.calls == called
    assert again["usd"] == pytest.approx(found["usd"])  # of all runs of the experiment
    assert again["test"] == found["test"]
