"""`--batch` of score, judge and answer, and what refuses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from judgecal.cli.options import show_plan
from judgecal.errors import InputError
from judgecal.experiment.in_python import score
from judgecal.experiment.trials import CostEstimate
from judgecal.goldset import load_gold
from judgecal.judges import PromptJudge
from judgecal.workspace import Workspace
from tests.support.batch_server import BatchServer, batches_at
from tests.support.calls import say_half
from tests.support.command import Ran
from tests.support.locks import lock_file


@pytest.fixture
def server(workspace_dir: Path) -> Iterator[BatchServer]:
    """An OpenAI whose batches end at the first poll; the model `cheap` of the workspace."""
    with batches_at("openai", lambda body, _: say_half(body), pending=0) as running:
        config = (
            f'[models.cheap]\nid = "openai/gpt-4o-mini"\napi_base = "{running.address}/v1"\nmax_tokens = 64\n'
            '[models.here]\nid = "ollama_chat/mistral"\n'
        )
        (workspace_dir / "judgecal.toml").write_text(config)
        yield running


SCORE = ("score", "--models", "cheap", "--limit", "20", "--name", "run", "--json")


def rows(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "judgements.jsonl").read_text().splitlines()]


def test_score_by_batch_and_live_resume_take_each_other_over(
    judgecal: Callable[..., Ran], server: BatchServer, workspace_dir: Path
) -> None:
    ran = judgecal(*SCORE, "--batch")
    assert ran.code == 0, ran.err
    folder = workspace_dir / "experiments" / "run"
    n, batches = len(rows(folder)), len(server.batches)
    assert len(server.live) == 1  # whether the server takes the schema is asked live
    assert all(row["verdict"] == 50 for row in rows(folder) if str(row["judge"]).endswith("@cheap"))
    again = judgecal(*SCORE)
    assert again.code == 0, again.err
    assert (len(rows(folder)), len(server.batches), len(server.live)) == (n, batches, 1)
    assert json.loads(again.out)["judges"][0]["agreement"] == json.loads(ran.out)["judges"][0]["agreement"]


def test_a_dry_run_shows_both_prices(judgecal: Callable[..., Ran], server: BatchServer) -> None:
    found = json.loads(judgecal(*SCORE, "--dry-run").out)
    assert found["usd_in_batches"] == pytest.approx(found["usd_at_most"] / 2)
    assert "USD with --batch)" in judgecal(*SCORE[:-1], "--dry-run").out
    assert not server.paths


def test_a_command_without_batches_shows_no_price_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    plan = CostEstimate(2, 0, 100, 1.0, None, usd_in_batches=0.5)
    show_plan(plan, json=False, live=True)
    show_plan(plan, json=True, live=True)
    text, whole = capsys.readouterr().out.split("{")
    assert (
        "at most 1.0000 USD. 2 calls" in " ".join(text.split())
        and json.loads("{" + whole)["usd_in_batches"] is None
    )


def test_models_without_a_batch_api_are_refused_in_one_message(
    judgecal: Callable[..., Ran], server: BatchServer
) -> None:
    ran = judgecal(*SCORE, "--batch", "--models", "here,embedded")
    assert ran.code == 2
    assert "no batch API is known for embedded (judgecal/embedded), here (ollama_chat/mistral)" in ran.err
    assert "leave --batch out" in ran.err
    assert judgecal("score", "--judge", "token_f1@local", "--batch").code == 2


def test_live_calls_that_wait_in_a_batch_are_refused(
    judgecal: Callable[..., Ran], server: BatchServer, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judgecal.bulk.batch_client.BatchClient.state", stop)
        ran = judgecal(*SCORE, "--batch")
    assert ran.code == 130
    assert "goes on at openai" in ran.err
    dry = json.loads(judgecal(*SCORE, "--dry-run").out)
    assert (dry["calls"], dry["waiting"], dry["stored"]) == (0, 19, 1)
    assert "0 calls to make, 19 wait in a batch" in judgecal(*SCORE[:-1], "--dry-run").out
    live = judgecal(*SCORE)
    assert live.code == 2
    assert "wait in a batch (batch_0000) and are paid for there" in live.err
    assert judgecal(*SCORE, "--batch").code == 0
    assert len(server.batches) == 1


def test_score_takes_it_from_python(server: BatchServer, workspace_dir: Path, tmp_path: Path) -> None:
    judge = PromptJudge(
        "correctness_v3@cheap", workspace=Workspace(workspace_dir, workspace_dir / "experiments")
    )
    gold = load_gold(workspace_dir / "gold" / "starter")
    with pytest.raises(InputError, match="batches need a journal in a file"):
        score(judge, gold, limit=5, batch=True)
    found = score(judge, gold, limit=5, batch=True, journal=tmp_path / "judgements.jsonl")
    assert [row.verdict for row in found] == [50.0] * 5
    assert (len(server.batches), len(server.live)) == (1, 1)


def test_judge_and_answer_take_it_too(
    judgecal: Callable[..., Ran], server: BatchServer, workspace_dir: Path
) -> None:
    where = Workspace(workspace_dir, workspace_dir / "experiments")
    gold = load_gold(workspace_dir / "gold" / "starter")
    lock_file(workspace_dir / "a.lock.json", PromptJudge("correctness_v3@cheap", workspace=where), gold)
    table = [{"q": f"Question {n}?", "a": "At nine.", "r": "At nine."} for n in range(40)]
    (workspace_dir / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in table))
    columns = ("--question", "q", "--answer", "a", "--reference", "r")
    judged = judgecal(
        "judge", "rows.jsonl", "--lock", "a.lock.json", "-o", "out.jsonl", *columns, "--batch", "--json"
    )
    assert judged.code == 0, judged.err
    out = [json.loads(line) for line in (workspace_dir / "out.jsonl").read_text().splitlines()]
    assert [row["q"] for row in out] == [row["q"] for row in table]
    assert len(server.batches) == 1
    answered = judgecal("answer", "--models", "cheap", "--limit", "5", "--name", "told", "--batch", "--json")
    assert answered.code in (0, 4), answered.err
    assert len(server.batches) == 2
    help_of = {
        name: judgecal(name, "--help").out for name in ("judge", "gate", "optimize", "select", "migrate")
    }
    assert [name for name, text in help_of.items() if "--batch" in text] == ["judge"]


def test_evaluate_judges_by_batches_and_asks_live(
    judgecal: Callable[..., Ran], server: BatchServer, workspace_dir: Path
) -> None:
    (workspace_dir / "echo.py").write_text("def echo(question) -> str:\n    return f'You ask: {question}'\n")
    text = (
        '[questions]\ngold = "starter"\nlimit = 3\n[judges]\nrepeats = 1\nmodel = '
        '"cheap"\n[[systems]]\nname = "echo"\n'
    )
    (workspace_dir / "one.toml").write_text(f'{text}kind = "python"\nfunction = "echo.py:echo"\n')
    dry = json.loads(judgecal("evaluate", "one.toml", "--batch", "--dry-run", "--json").out)
    assert 0 < dry["usd_in_batches"] < dry["usd_at_most"]
    ran = judgecal("evaluate", "one.toml", "--batch", "--json", "--name", "chain")
    assert ran.code in (0, 4), ran.err
    assert len(server.batches) >= 1
    assert len(rows(workspace_dir / "experiments" / "chain")) >= 3


def test_ray_and_batches_do_not_go_together(judgecal: Callable[..., Ran], server: BatchServer) -> None:
    ran = judgecal("judge", "a.csv", "--lock", "a.lock.json", "-o", "out", "--engine", "ray", "--batch")
    assert ran.code == 2
    assert "leave --engine ray out" in ran.err
