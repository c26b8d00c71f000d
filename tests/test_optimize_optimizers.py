"""The optimisers that write instructions, against a served model: a judge that needs to be told what to look
for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dspy
import pytest

from judgecal.goldset import GoldSet, load_gold
from judgecal.judges.prompt import load_program
from judgecal.signatures import load_signature
from judgecal.workspace import Workspace
from tests.support.command import Run, journal, one_object, tree
from tests.support.gold import made_gold, made_items, rated
from tests.support.http import Answer
from tests.support.instructed import (
    INPUT_USD,
    KEY,
    N_GROUPS,
    OUTPUT_USD,
    PHRASE,
    asked_for,
    calls_of,
    field,
    model,
    serving,
)
from tests.support.server import COMPLETION_TOKENS, PROMPT_TOKENS, StubServer, failing

REFLECTING = ("mipro", "gepa", "simba", "copro")
USD_A_CALL = (PROMPT_TOKENS * INPUT_USD + COMPLETION_TOKENS * OUTPUT_USD) / 1e6


def of_judge(body: dict[str, Any]) -> bool:
    return "correctness_percentage" in asked_for(body)


@pytest.fixture
def served(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    with serving(workspace_dir, monkeypatch, model) as stub:
        yield stub


@pytest.fixture
def gold(workspace: Workspace) -> GoldSet:
    """Forty-four questions; people give what is there: all of the facts, half of them, none."""
    rows = made_items(N_GROUPS)
    path = made_gold(workspace.gold / "facts", rows, rated(rows, {"full": 100, "half": 50, "none": 0}))
    return load_gold(path, workspace=workspace)


def argv(optimizer: str, *more: str) -> tuple[str, ...]:
    return ("optimize", "--gold", "facts", "--model", "mine", "--optimizer", optimizer, "--json", *more)


def only_slug(workspace: Workspace) -> str:
    (folder,) = workspace.experiments.glob("optimize-*")
    return folder.name


# --- each of them improves a judge


@pytest.mark.parametrize("optimizer", REFLECTING)
def test_new_instructions_make_a_better_judge(
    judgecal: Run, workspace: Workspace, gold: GoldSet, served: StubServer, optimizer: str
) -> None:
    plan = one_object(judgecal(*argv(optimizer, "--dry-run")))
    assert served.calls == 0 and not list(workspace.experiments.glob("optimize-*"))
    found = one_object(judgecal(*argv(optimizer, "--reflection-model", "writer")))
    metric = "macro_agreement"
    assert found["test"]["after"][metric]["value"] == 1.0
    assert found["test"]["difference"]["low"] > 0.1
    assert (found["decision"], found["instructions_changed"]) == ("better", True)
    assert (found["optimizer"], found["reflection_model"]) == (optimizer, "writer")
    assert found["usd"] == pytest.approx(served.calls * USD_A_CALL)
    assert served.calls <= plan["calls"] and found["usd"] <= plan["usd_at_most"]
    writing = [body["model"] for body in served.bodies if not of_judge(body)]
    assert set(writing) == {"writer"}
    assert {body["model"] for body in served.bodies if of_judge(body)} == {"mine"}
    # The labels of every train question had a part in it, so all of them are off limits for `score`.
    train = {item.group for item in gold.select("train")}
    path = workspace.experiments / found["experiment"] / "program.json"
    assert set(json.loads(path.read_text())["judgecal"]["trained_on"]) == train
    _comes_back(path, workspace, found)
    _is_recorded(workspace, found, served)


def _comes_back(path: Path, workspace: Workspace, found: Mapping[str, Any]) -> None:
    signature = load_signature("correctness_v3", workspace=workspace)
    ours = load_program(path, signature).program
    plain = dspy.Predict(signature.cls)
    plain.load(str(path))
    assert PHRASE in ours.signature.instructions == plain.signature.instructions
    assert len(ours.demos) == found["n_demos"]


def _is_recorded(workspace: Workspace, found: Mapping[str, Any], served: StubServer) -> None:
    """Every call of the optimiser is in its record, every other in the journal; none is in both."""
    calls = calls_of(workspace, found["experiment"])
    rows = journal(workspace.root, found["experiment"])
    paid = [row for row in rows if not row["cached"]]
    assert len([call for call in calls if not call["cached"]]) + len(paid) == served.calls
    assert {call["purpose"] for call in calls} == {"task", "reflection"}
    assert {call["model"] for call in calls if call["purpose"] == "reflection"} == {"writer"}
    assert len({call["key"] for call in calls}) == len(calls)
    assert all(call["reply"]["text"] and call["error"] is None and call["attempts"] <= 1 for call in calls)
    # Nothing of dev or test is shown to an optimiser, and no item is shown by its name.
    sent = json.dumps([body["messages"] for body in served.bodies if not of_judge(body)])
    assert "judgecal_item_id" not in sent
    gold = load_gold("facts", workspace=workspace)
    sealed = {item.question for split in ("dev", "test") for item in gold.select(split)}
    assert not [question for question in sealed if question in sent]


def test_the_embedded_model_cannot_write(judgecal: Run, workspace: Workspace, gold: GoldSet) -> None:
    before = tree(workspace.root)
    cases = [
        ("gepa", ()),
        ("gepa", ("--dry-run",)),
        *((name, ("--reflection-model", "embedded")) for name in REFLECTING),
    ]
    for optimizer, more in cases:
        ran = judgecal(*argv(optimizer, "--model", "embedded", *more))
        assert (ran.code, ran.out) == (2, "")
        assert "the embedded model cannot write instructions" in ran.err and "--reflection-model" in ran.err
    assert tree(workspace.root) == before


def test_who_writes_nothing_needs_no_writer(judgecal: Run, gold: GoldSet) -> None:
    for optimizer in ("auto", "labeled", "fewshot"):
        ran = judgecal(*argv(optimizer, "--model", "embedded", "--reflection-model", "gpt-4o"))
        assert ran.code == 2
        assert "writes no instructions" in ran.err and "mipro, gepa, simba" in ran.err


# --- what can go wrong


@pytest.mark.parametrize("optimizer", ["simba", "copro"])
def test_unusable_replies_stop_nothing(
    judgecal: Run, workspace: Workspace, gold: GoldSet, served: StubServer, optimizer: str
) -> None:
    # prose, an empty reply, and a refusal of the text
    lost = sorted({item.question for item in gold.select("train")})[::2]

    def script(body: dict[str, Any]) -> Answer | str:
        asked = body["messages"][-1]["content"]
        if of_judge(body) and (question := field(asked, "question")) in lost:
            return ("I would rather not say.", "", failing(400, "not that"))[lost.index(question) % 3]
        return model(body)

    served.script = script
    ran = judgecal(*argv(optimizer, "--no-final"))
    found = one_object(ran)
    assert found["dev"]["after"]["macro_agreement"]["value"] == 1.0
    state = json.loads((workspace.experiments / found["experiment"] / "program.json").read_text())
    assert all(demo["correctness_percentage"] is not None for demo in state["demos"])


@pytest.mark.parametrize("optimizer", ["fewshot", "mipro"])
def test_a_budget_that_runs_out_ends_it_with_one_message(
    judgecal: Run, workspace: Workspace, gold: GoldSet, served: StubServer, optimizer: str
) -> None:
    n_dev = len(gold.select("dev"))
    budget = (n_dev + 8) * USD_A_CALL  # dev is scored, and some calls of the optimiser are left
    ran = judgecal(*argv(optimizer, "--budget-usd", str(budget), "--no-cache"))
    assert (ran.code, ran.out) == (2, "")
    messages = [line for line in ran.err.splitlines() if line.startswith("judgecal: ")]
    assert len(messages) == 1 and "could overrun" in messages[0]
    assert "Traceback" not in ran.err and "ERROR" not in ran.err
    assert served.calls * USD_A_CALL <= budget
    slug = only_slug(workspace)
    assert not (workspace.experiments / slug / "program.json").exists()
    assert not (workspace.experiments / slug / "summary.json").exists()
    # With more money it goes on, and pays for nothing again.
    found = one_object(judgecal(*argv(optimizer, "--no-cache")))
    assert found["usd"] == pytest.approx(served.calls * USD_A_CALL)  # of both runs
    keys = [call["key"] for call in calls_of(workspace, slug)]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("optimizer", ["fewshot", "gepa"])
def test_a_refused_key_stops_it_at_once(
    judgecal: Run, workspace: Workspace, gold: GoldSet, served: StubServer, optimizer: str
) -> None:
    n_dev = len(gold.select("dev"))

    def script(body: dict[str, Any]) -> Answer | str:
        return model(body) if served.calls <= n_dev else failing(401, "bad key", code="invalid_api_key")

    served.script = script
    ran = judgecal(*argv(optimizer))
    assert (ran.code, ran.out) == (2, "")
    messages = [line for line in ran.err.splitlines() if "judgecal: " in line]
    assert messages[-1].startswith("judgecal: model mine")
    assert not [word for word in ("Traceback", "ERROR", KEY) if word in ran.err]
    assert served.calls <= n_dev + 16  # those in flight


@pytest.mark.parametrize("optimizer", ["mipro", "simba"])
def test_a_server_that_is_down_is_no_bad_program(
    judgecal: Run,
    workspace: Workspace,
    gold: GoldSet,
    served: StubServer,
    monkeypatch: pytest.MonkeyPatch,
    optimizer: str,
) -> None:
    from judgecal.engine.call_runner import Policy

    impatient = Policy(attempts=2, first_wait_s=0.0)
    monkeypatch.setattr("judgecal.optimize.program_calls.Policy", lambda: impatient)
    broken = {"now": True}

    def script(body: dict[str, Any]) -> Answer | str:
        # The judge works, the one who writes does not.
        return failing(503, "gone fishing") if broken["now"] and not of_judge(body) else model(body)

    served.script = script
    ran = judgecal(*argv(optimizer, "--no-final", "--no-cache"))
    assert (ran.code, ran.out) == (2, "")
    assert "gave no reply in 2 attempts" in ran.err and "gone fishing" in ran.err
    assert "Traceback" not in ran.err
    broken["now"] = False
    answered = {row["key"] for row in calls_of(workspace, only_slug(workspace)) if not row["error"]}
    sent = served.calls
    found = one_object(judgecal(*argv(optimizer, "--no-final", "--no-cache")))
    assert found["dev"]["after"]["macro_agreement"]["value"] == 1.0
    again = [row["key"] for row in calls_of(workspace, found["experiment"]) if not row["error"]]
    assert len(set(again)) == len(again) and answered <= set(again)
    assert served.calls > sent


@pytest.mark.parametrize("optimizer", ["gepa", "copro"])
def test_an_interrupted_run_resumes_without_paying_again(
    judgecal: Run, workspace: Workspace, gold: GoldSet, served: StubServer, optimizer: str
) -> None:
    whole = one_object(judgecal(*argv(optimizer, "--no-cache", "--name", "whole")))
    paid, served.bodies[:] = served.calls, []
    log = calls_of(workspace, "whole")
    # What a killed process leaves: the first half of the record, a torn line, and no result.
    folder = workspace.experiments / "whole"
    kept = log[: len(log) // 2]
    lines = "".join(json.dumps(call) + "\n" for call in kept) + json.dumps(log[len(kept)])[:40]
    (folder / "optimizer_calls.jsonl").write_text(lines)
    for name in ("summary.json", "program.json"):
        (folder / name).unlink()
    again = one_object(judgecal(*argv(optimizer, "--no-cache", "--name", "whole")))
    assert served.calls <= len(log) - len(kept) < paid
    for name in ("dev", "test", "decision", "chosen", "n_demos"):
        assert again[name] == whole[name]
    keys = [call["key"] for call in calls_of(workspace, "whole")]
    assert len(set(keys)) == len(keys)
    # And a finished one makes no call at all.
    served.bodies[:] = []
    done = one_object(judgecal(*argv(optimizer, "--no-cache", "--name", "whole")))
    assert (served.calls, done["usd"]) == (0, pytest.approx(again["usd"]))


def test_a_broken_line_of_the_record_is_named(
    judgecal: Run, workspace: Workspace, gold: GoldSet, served: StubServer
) -> None:
    found = one_object(judgecal(*argv("gepa", "--limit", "33")))
    path = workspace.experiments / found["experiment"] / "optimizer_calls.jsonl"
    path.write_text("{}\n" + path.read_text())
    ran = judgecal(*argv("gepa", "--limit", "33"))
    assert ran.code == 0
    assert f"{path}:1: no call can be read" in ran.err


def test_a_writer_that_says_nothing_useful_is_one_message(
    judgecal: Run, workspace: Workspace, gold: GoldSet, served: StubServer
) -> None:
    served.script = lambda body: model(body) if of_judge(body) else ""
    ran = judgecal(*argv("mipro", "--reflection-model", "writer", "--no-final"))
    assert (ran.code, ran.out) == (2, "")
    assert "model writer was asked for proposed_instruction and its reply holds none" in ran.err
    assert "Traceback" not in ran.err
