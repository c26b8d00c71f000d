"""Where nothing could be read, that stands first: why, where, and how to ask again; nobody is ranked."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.calls import say_half
from tests.support.command import Ran, Run
from tests.support.locks import Served
from tests.support.locks import served as served  # a fixture
from tests.support.server import StubServer, running

DEAD = "correctness_v3@dead"
MESSAGE = "no correctness_percentage in the reply: 'I would rather not say.'"


@pytest.fixture
def dead(workspace_dir: Path) -> Iterator[StubServer]:
    """A model whose replies hold no verdict."""
    with running(lambda _: "I would rather not say.") as stub:
        (workspace_dir / "judgecal.toml").write_text(
            f'[models.dead]\nid = "openai/dead"\napi_base = "{stub.api_base}"\n'
            "input_usd_per_1m = 1.0\noutput_usd_per_1m = 1.0\nmax_tokens = 100\n"
        )
        yield stub


def headline(ran: Ran, code: int) -> dict[str, Any]:
    assert ran.code == code, ran.err
    found: dict[str, Any] = json.loads(ran.out)["headline"]
    return found


def is_unread(found: dict[str, Any], *, journal: str = "judgements.jsonl") -> None:
    assert found["kind"] == "unread"
    assert found["sentence"].startswith(f"Nothing could be read of {DEAD}.")
    said = " ".join(found["because"])
    assert MESSAGE in said and journal in said
    assert "--retry-unscored" in found["next"] or found["next"].startswith("judgecal gate ")


def is_read_again(judgecal: Run, dead: StubServer, found: dict[str, Any]) -> None:
    """As typed, the next command has every verdict once the model gives one."""
    dead.script = say_half
    assert headline(judgecal(*shlex.split(found["next"])[1:], "--json"), 0)["kind"] != "unread"


def test_nobody_is_ranked_by_replies_that_cannot_be_read(judgecal: Run, dead: StubServer) -> None:
    found = headline(judgecal("score", "--judge", DEAD, "--name", "d", "--json"), 4)
    is_unread(found)
    assert "experiments/d/judgements.jsonl" in " ".join(found["because"])
    for argv, code in (("report", 0), ("select", 1)):
        is_unread(headline(judgecal(argv, "d", "--json"), code))
    assert headline(judgecal("select", "d", "--allow-below-floor", "--json"), 1)["kind"] == "unread"
    text = judgecal("report", "d", "--full").out
    assert "17." not in text and "best constant" not in text  # no number of agreement stands anywhere
    is_read_again(judgecal, dead, found)


def test_one_dead_judge_is_named_beside_others(judgecal: Run, dead: StubServer) -> None:
    argv = ("--judge", DEAD, "--judge", "token_f1@local", "--name", "two", "--json")
    for found in (
        headline(judgecal("score", *argv), 4),
        headline(judgecal("report", "two", "--json"), 0),
        headline(judgecal("compare", "two", "--json"), 0),
        headline(judgecal("select", "two", "--json"), 1),
    ):
        assert found["kind"] != "unread"
        assert found["because"][0] == f"{DEAD} gave no verdict on any of 124 answers."
        assert f"{DEAD}: {MESSAGE}." in found["more"]
        assert any("--retry-unscored" in one for one in found["unknown"])


def test_recorded_verdicts_that_cannot_be_read(judgecal: Run, workspace_dir: Path) -> None:
    rows = [
        json.loads(line) for line in (workspace_dir / "gold/starter/items.jsonl").read_text().splitlines()
    ]
    table = "item_id,verdict\n" + "".join(f"{row['item_id']},maybe\n" for row in rows)
    (workspace_dir / "said.csv").write_text(table)
    found = headline(judgecal("agreement", "--judgements", "said.csv", "--name", "r", "--json"), 0)
    assert found["kind"] == "unread" and "maybe" in " ".join(found["because"])
    assert judgecal(*found["next"].split()[1:]).code == 0


def test_an_optimisation_of_what_cannot_be_read(judgecal: Run, dead: StubServer) -> None:
    argv = ("optimize", "--model", "dead", "--limit", "40", "--optimizer", "labeled", "--name", "o", "--json")
    is_unread(headline(judgecal(*argv), 4))


def test_answers_that_nobody_could_rate(judgecal: Run, dead: StubServer) -> None:
    found = headline(judgecal("answer", "--judge", DEAD, "--limit", "5", "--name", "a", "--json"), 4)
    assert found["kind"] == "unread" and "I would rather not say" in " ".join(found["because"])
    is_read_again(judgecal, dead, found)


def test_systems_that_nobody_could_rate(judgecal: Run, dead: StubServer, workspace_dir: Path) -> None:
    (workspace_dir / "told.py").write_text('def told(question):\n    return {"answer": "At nine."}\n')
    (workspace_dir / "suites").mkdir(exist_ok=True)
    (workspace_dir / "suites" / "one.toml").write_text(
        f'[judges.correctness]\njudge = "{DEAD}"\ncolumn = "correctness"\n'
    )
    (workspace_dir / "sweep.toml").write_text(
        '[questions]\ngold = "starter"\nsplit = "dev"\nlimit = 12\n[judges]\nsuite = "one"\n'
        '[[systems]]\nname = "told"\nkind = "python"\nfunction = "told.py:told"\n'
    )
    found = headline(judgecal("evaluate", "sweep.toml", "--name", "e", "--json"), 4)
    assert found["kind"] == "unread" and "I would rather not say" in " ".join(found["because"])
    is_read_again(judgecal, dead, found)


def test_a_gate_that_reads_nothing_says_so(judgecal: Run, served: Served) -> None:
    served.script.change = lambda item, n, verdict: None
    argv = ("gate", "--lock", served.path, "--name", "g", "--json")
    found = headline(judgecal(*argv), 1)
    assert found["kind"] == "unread" and "So the gate says fail." in found["because"]
    assert "'no number' is not a number" in " ".join(found["because"])
    assert shlex.split(found["next"])[:3] == ["judgecal", "gate", "--lock"]
