"""The mean of several calls as a judge, from the price of its calls to its verdicts in production."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from judgecal.engine.log import Journal
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError
from judgecal.experiment.judgements import judged_by, of_calls
from judgecal.experiment.stored import read_experiment
from judgecal.experiment.trials import run_trials
from judgecal.goldset import GoldSet, load_gold
from judgecal.judges import judge_named
from judgecal.judges.prompt import PromptJudge
from judgecal.judges.protocol import JudgeName
from judgecal.optimize import optimize
from judgecal.records import Failure, Judgement
from judgecal.workspace import Workspace
from tests.support.command import Run, journal, one_object
from tests.support.gold import made_gold, made_items, rated, write_signature
from tests.support.server import StubServer, running

RIGHT = {"mine": 0.7, "dear": 0.8}  # the share of a model's calls that say what is right
JUDGES = ("--judge", "right@mine", "--judge", "right@mine*9", "--judge", "right@dear")


@pytest.fixture
def gold(workspace: Workspace) -> GoldSet:
    rows = [row for row in made_items(70) if row["kind"] != "half"]
    labels = rated(rows, {"full": "yes", "none": "no"})
    made_gold(workspace.root / "gold" / "fair", rows, labels, scale='kind = "binary"')
    return load_gold("fair", workspace=workspace)


@pytest.fixture
def noisy(workspace: Workspace, gold: GoldSet) -> Iterator[StubServer]:
    """Models whose calls are wrong each by itself; `dear` less often, at fourteen times the price."""
    write_signature(workspace.root, "right", [("verdict", "bool", "")])
    with running(lambda _: "") as stub:
        (workspace.root / "judgecal.toml").write_text(
            "".join(
                f'[models.{name}]\nid = "openai/{name}"\napi_base = "{stub.api_base}"\nmax_tokens = 100\n'
                f"temperature = {heat}\ninput_usd_per_1m = {usd}\noutput_usd_per_1m = {usd}\n"
                for name, usd, heat in (("mine", 1.0, 1.0), ("dear", 14.0, 0.0))
            )
        )
        judge, calls = PromptJudge("right@mine", workspace=workspace), Counter[tuple[str, str]]()
        by_prompt = {str(judge.messages(item)[-1]["content"]): item for item in gold.items}

        def script(body: dict[str, Any]) -> str:
            item, model = by_prompt[body["messages"][-1]["content"]], body["model"]
            calls[model, item.item_id] += 1
            right = Random(f"{model} {item.item_id} {calls[model, item.item_id]}").random() < RIGHT[model]
            verdict = (gold.labels[item.item_id] == 1.0) == right
            return f"[[ ## reasoning ## ]]\nSo.\n\n[[ ## verdict ## ]]\n{verdict}\n\n[[ ## completed ## ]]"

        stub.script = script
        yield stub


def test_names_prices_and_what_is_refused(workspace: Workspace, noisy: StubServer) -> None:
    for text in ("right@mine*5", "right@mine x5", "right@mine  x5"):
        assert str(JudgeName.parse(text)) == "right@mine*5" and JudgeName.parse(text).calls == 5
    assert str(JudgeName.parse("right@mine#tried*3")) == "right@mine#tried*3"
    for text in ("exact_match@local*5", "correctness_v3@embedded x3"):
        with pytest.raises(InputError, match="same verdict each time"):
            judge_named(text, workspace=workspace)
    for text in (*(f"right@mine*{k}" for k in ("1", "101", "5*3", "0", "-2", "2.5", "")), "right@mine x"):
        with pytest.raises(InputError, match="one number of calls, from 2 to 100"):
            judge_named(text, workspace=workspace)
    with pytest.raises(InputError, match="optimize right@mine instead"):
        optimize("right@mine*5", "fair", workspace=workspace.root)


def test_nine_calls_are_a_judge_everywhere(judgecal: Run, workspace_dir: Path, noisy: StubServer) -> None:
    plan = one_object(judgecal("score", "--gold", "fair", *JUDGES, "--dry-run", "--json"))
    scored = one_object(judgecal("score", "--gold", "fair", *JUDGES, "--json", "--name", "three"))
    n, by_name = scored["gold"]["n_items"], {one["judge"]: one for one in scored["judges"]}
    asked = Counter(body["model"] for body in noisy.bodies)
    assert asked == {"mine": 9 * n, "dear": n}  # of the nine calls one is the single judge's
    assert plan["calls"] == 10 * n
    single, mean, dear = (by_name[name] for name in JUDGES[1::2])
    assert mean["usd_per_1k"] == pytest.approx(9 * single["usd_per_1k"])
    assert dear["usd_per_1k"] == pytest.approx(14 * single["usd_per_1k"])
    rows = [row for row in journal(workspace_dir, "three") if "@mine" in row["judge"]]
    assert len({row["judge_fingerprint"] for row in rows}) == 1
    assert {row["repeat"] for row in rows} == {*range(9)}
    home = Workspace(workspace_dir, workspace_dir / "experiments")
    assert [len(column.rows) for column in read_experiment(home, "three").judges] == [n] * 3
    found = one_object(judgecal("compare", "three", "right@mine", "right@mine x9", "--json"))
    assert (found["decision"], noisy.calls) == ("B", 10 * n)
    chosen = one_object(judgecal("select", "three", "--json"))
    assert chosen["choice"]["judge"] == "right@mine*9"
    lock = json.loads((workspace_dir / "judge.lock.json").read_text())
    assert lock["judge"] == "right@mine*9" and lock["fingerprint"].endswith("*9")
    assert set(lock["verdicts"].values()) <= {k / 9 for k in range(10)}

    before = noisy.calls
    gate = one_object(judgecal("gate", "--lock", "judge.lock.json", "--json"))
    assert noisy.calls - before == 9 * gate["flip_rate"]["n"] and gate["decision"] == "pass"
    items = load_gold("fair", workspace=home).items[:4]
    lines = (f'{item.question},"{item.answer}","{item.reference_answer}"\n' for item in items)
    (workspace_dir / "rows.csv").write_text("question,answer,reference\n" + "".join(lines))
    before = noisy.calls
    assert (
        judgecal("judge", "rows.csv", "--lock", "judge.lock.json", "-o", "out.jsonl", "--no-cache").code == 0
    )
    out = [json.loads(line) for line in (workspace_dir / "out.jsonl").read_text().splitlines()]
    assert noisy.calls - before == 36
    assert {row["verdict"] for row in out} <= {k / 9 for k in range(10)}
    assert all(
        row["passed"] in (True, False) and row["cost_usd"] == pytest.approx(9 * 1050 / 1e6) for row in out
    )


def test_calls_that_a_budget_stopped_have_no_price(judgecal: Run, noisy: StubServer) -> None:
    """A judge that was asked a few times costs what these cost, and one that was never asked nothing known."""
    judges = ("--judge", "right@mine*3", "--judge", "right@dear", "--budget-usd", "0.05")
    mean, dear = one_object(judgecal("score", "--gold", "fair", *judges, "--name", "b", "--json"), 4)[
        "judges"
    ]
    assert "without a usable count of tokens" not in judgecal("report", "b", "--full").out.replace("\n", " ")
    assert 0 < mean["n"] < mean["n_expected"] and mean["unscored"] == {"budget": mean["n_unscored"]}
    assert mean["usd_per_1k"] == pytest.approx(3 * 1.05) and (dear["n"], dear["usd_per_1k"]) == (0, None)


def call(number: int, verdict: Any, **more: Any) -> Judgement:
    return Judgement("i", "s", "j@m", "f" * 16, number, verdict, latency_s=1.0 + number, cost_usd=0.5, **more)


def test_what_calls_come_to() -> None:
    """Means of numbers, most calls of words; none of them may fail, and they wait side by side."""
    row = of_calls("j@m*3", [call(number, verdict) for number, verdict in enumerate((0.0, 1.0, 1.0), 3)])
    assert (row.verdict, row.repeat, row.judge_fingerprint) == (pytest.approx(2 / 3), 1, "f" * 16 + "*3")
    assert (row.judge, row.cost_usd, row.latency_s, row.unit) == ("j@m*3", 1.5, 6.0, "item")
    words = [call(number, word) for number, word in enumerate(("red", "blue", "red", "blue"))]
    assert of_calls("j@m*3", words[:3]).verdict == "red"
    tied = of_calls("j@m*4", words)
    assert (
        tied.verdict is None and tied.error and tied.error.message == "its verdicts tie: 2 are red and 2 blue"
    )
    pair = [dataclasses.replace(row, verdict="AB"[row.repeat % 2], unit="pair", order="ab") for row in words]
    assert of_calls("j@m*4", pair).verdict == "tie"
    lost = Failure("timeout", "no reply")
    failed = of_calls("j@m*2", [call(0, 1.0), call(1, None, error=lost)])
    assert failed.verdict is None and failed.error == lost
    rows = [call(number, 1.0) for number in (4, 0, 2, 1)]  # the calls of an interrupted run
    assert [row.repeat for row in judged_by("j@m*2", 2, rows)] == [0]


def test_a_failed_call_is_made_again_and_heat_is_told(
    judgecal: Run, workspace: Workspace, gold: GoldSet, noisy: StubServer
) -> None:
    script = noisy.script
    noisy.script = lambda body: "No verdict." if len(noisy.bodies) == 1 else script(body)
    judge = judge_named("right@mine*3", workspace=workspace)
    with Journal(None) as kept:
        options = RunOptions(quiet=True, retry_unscored=True)
        first = run_trials([judge], gold.items[:2], journal=kept, options=options)
        assert sorted(row.verdict is None for row in first) == [False, True] and noisy.calls == 6
        again = run_trials([judge], gold.items[:2], journal=kept, options=options)
        assert None not in [row.verdict for row in again] and noisy.calls == 7
    ran = judgecal("score", "--gold", "fair", "--judge", "right@dear x2", "--limit", "3", "--json")
    assert "right@dear*2: its calls may be alike at temperature 0" in ran.out
