"""`judgecal optimize` end to end on made-up people."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

import dspy
import pytest

from judgecal.engine.calls import CallFailed
from judgecal.goldset import GoldSet, load_gold
from judgecal.models import embedded as transport
from judgecal.optimize.optimizers import OPTIMIZERS
from judgecal.optimize.result import Choice
from judgecal.optimize.training import Candidate, Training
from judgecal.scale import Label
from judgecal.signatures import load_signature
from judgecal.workspace import Workspace
from tests.support.command import Run, check_estimates, journal, one_object, tree
from tests.support.gold import made_gold, made_items, rated, write_signature

REVERSED: Mapping[str, Label] = {"full": 0, "half": 0, "none": 100}
N_GROUPS = 44
GRADES, PERCENTAGE = 'kind = "ordinal"\nmin = 0\nmax = 4', 'kind = "percentage"\nmin = 0\nmax = 100'


@pytest.fixture
def gold(workspace: Workspace) -> GoldSet:
    """People who mark how much is missing, the reverse of the shipped judge: no map makes that of its
    verdicts."""
    rows = made_items(N_GROUPS)
    return load_gold(made_gold(workspace.gold / "harsh", rows, rated(rows, REVERSED)), workspace=workspace)


def optimize(judgecal: Run, *more: str, code: int = 0) -> dict[str, Any]:
    return one_object(judgecal("optimize", "--gold", "harsh", "--json", *more), code)


def value(found: dict[str, Any], split: str, side: str) -> float:
    number: float = found[split][side]["macro_agreement"]["value"]
    return number


def program(workspace: Workspace, found: dict[str, Any]) -> dict[str, Any]:
    path = workspace.experiments / found["experiment"] / "program.json"
    state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return state


def test_labeled_learns_another_convention_from_train_alone(
    judgecal: Run, gold: GoldSet, workspace: Workspace
) -> None:
    found = optimize(judgecal)
    assert value(found, "dev", "after") > value(found, "dev", "before") + 0.1
    assert value(found, "test", "after") > value(found, "test", "before") + 0.1
    gain = value(found, "test", "after") - value(found, "test", "before")
    assert found["test"]["difference"]["value"] == pytest.approx(gain)
    assert found["decision"] == "better"
    state = program(workspace, found)
    train = {item.group for item in gold.select("train")}
    assert len(state["demos"]) == found["n_demos"] > 0
    assert set(state["judgecal"]["trained_on"]) <= train
    assert state["judgecal"]["signature"] == "correctness_v3"
    text = json.dumps(state, ensure_ascii=False)
    demos = {(demo["question"], demo["answer_under_test"]) for demo in state["demos"]}
    assert demos <= {(item.question, item.answer) for item in gold.select("train")}
    sealed = [item for split in ("dev", "test") for item in gold.select(split)]
    assert [item.item_id for item in sealed if item.question in text] == []
    assert {demo["correctness_percentage"] for demo in state["demos"]} == {0, 100}
    plain = dspy.Predict(load_signature("correctness_v3", workspace=workspace).cls)
    plain.load(found["program"])  # as DSPy loads it
    assert len(plain.demos) == found["n_demos"]


def test_an_optimizer_is_handed_train_labels_alone(
    judgecal: Run, gold: GoldSet, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights of the metric come from these labels: with those of dev and test in them, both would
    leak."""
    handed: list[Training] = []

    labeled = OPTIMIZERS["labeled"]

    def spy(training: Training) -> Iterable[Candidate]:
        handed.append(training)
        return labeled.make(training)

    spied = {**OPTIMIZERS, "labeled": dataclasses.replace(labeled, make=spy)}
    monkeypatch.setattr("judgecal.optimize.run.OPTIMIZERS", spied)
    optimize(judgecal)
    (training,) = handed
    train = [item.item_id for item in gold.select("train")]
    assert [item.item_id for item in training.items] == list(training.labels) == train


def test_every_candidate_is_shown_with_its_number(judgecal: Run, gold: GoldSet) -> None:
    found = optimize(judgecal)
    tried = found["dev"]["candidates"]
    assert tried[0]["name"] == "before"
    assert found["chosen"] in {one["name"] for one in tried[1:]}
    highest = max(one["as_wrong"]["value"] for one in tried)
    # One that dev cannot tell from the highest may be taken; it is never below the judge as it was.
    assert highest >= value(found, "dev", "after") > tried[0]["as_wrong"]["value"]
    for side in ("before", "after"):
        check_estimates(found["dev"][side], {"macro_agreement"})
        n_dev = len(gold.select("dev"))
        assert found["dev"][side]["macro_agreement"]["n"] == n_dev
        assert found["test"][side]["macro_agreement"]["n"] == len(gold.select("test"))


def test_the_compiled_judge_is_scored_without_its_own_questions(
    judgecal: Run, gold: GoldSet, workspace: Workspace
) -> None:
    found = optimize(judgecal)
    trained = set(program(workspace, found)["judgecal"]["trained_on"])
    ran = judgecal("score", "--gold", "harsh", "--judge", found["judge"], "--json")
    scored = one_object(ran)
    wanted = [item.item_id for item in gold.select("open") if item.group not in trained]
    assert [one["judge"] for one in scored["judges"]] == [found["judge"]]
    assert scored["gold"]["n_items"] == len(wanted) < len(gold.select("open"))
    rows = journal(workspace.root, scored["experiment"])
    assert {row["item_id"] for row in rows} == set(wanted)
    assert scored["notes"] == [f"we left out {len(trained)} questions that a compiled judge was trained on"]
    argv = ("score", "--gold", "harsh", "--judge", found["judge"], "--judge", "correctness_v3@embedded")
    both = one_object(judgecal(*argv, "--split", "all", "--json"))
    assert [one["judge"] for one in both["judges"]] == [found["judge"], "correctness_v3@embedded"]
    assert both["notes"] == scored["notes"]


def test_where_nothing_is_better_the_judge_stays(
    judgecal: Run, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that passes over its demos: every candidate judges as the judge as it was."""
    rows = made_items(N_GROUPS)
    made_gold(workspace.gold / "harsh", rows, rated(rows, REVERSED))
    real = transport.weighed_reply
    monkeypatch.setattr(transport, "weighed_reply", lambda messages: real([messages[0], messages[-1]]))
    found = optimize(judgecal)
    assert found["dev"]["after"] == found["dev"]["before"]
    assert not any(found["test"].values()) and not (workspace.experiments / "test_looks.jsonl").exists()
    assert (found["decision"], found["chosen"], found["n_demos"]) == ("nothing changed", "before", 0)
    text = judgecal("optimize", "--gold", "harsh").out
    assert text.startswith("○ cannot tell · Keep the judge as it is.\nNo candidate was better on")
    assert found["instructions_changed"] is False
    assert program(workspace, found)["judgecal"]["trained_on"] == []


def test_unscored_items_count_as_wrong_and_exit_4(
    judgecal: Run, gold: GoldSet, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = transport.weighed_reply
    lost = {item.question for item in gold.select("test")[:6]}

    def reply(messages: Any) -> tuple[str, dict[str, float]]:
        refused = any(question in messages[-1]["content"] for question in lost)
        return ("No.", {}) if refused else real(messages)

    monkeypatch.setattr(transport, "weighed_reply", reply)
    ran = judgecal("optimize", "--gold", "harsh", "--json")
    found = one_object(ran, code=4)
    before = found["test"]["before"]["macro_agreement"]
    n_lost = sum(item.question in lost for item in gold.select("test"))
    assert (before["n_unscored"], before["n"]) == (n_lost, before["n_expected"])
    complete = found["test"]["complete_case"]["before"]["macro_agreement"]
    assert (complete["n"], complete["n_unscored"]) == (before["n_expected"] - n_lost, n_lost)
    assert f"{2 * n_lost} judgements have no verdict" in ran.err  # the judge before and the judge after
    failed = [row for row in journal(workspace.root, found["experiment"]) if row["verdict"] is None]
    assert {row["error"]["kind"] for row in failed} == {"parse"}
    text = judgecal("optimize", "--gold", "harsh").said
    assert f"{n_lost} of {before['n_expected']} unscored on test" in text


def test_lost_calls_leave_test_closed(judgecal: Run, gold: GoldSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """No look is spent on verdicts that the same command makes again."""
    real = transport.weighed_reply
    lost = {item.question for item in gold.select("test")[:6]}

    def reply(messages: Any) -> tuple[str, dict[str, float]]:
        if any(question in messages[-1]["content"] for question in lost):
            raise CallFailed("transport", "the cable is cut", retry=False)
        return real(messages)

    with monkeypatch.context() as cut:
        cut.setattr(transport, "weighed_reply", reply)
        found = optimize(judgecal, code=4)
    assert (found["decision"], found["test_looks"], found["test_look"]) == ("cannot tell", 0, None)
    assert "calls were lost" in found["why"] and found["test"]["after"] is None
    found = optimize(judgecal)
    assert (found["decision"], found["test_looks"]) == ("better", 1)


# --- the sealed split


def test_no_final_leaves_test_alone(judgecal: Run, gold: GoldSet, workspace: Workspace) -> None:
    found = optimize(judgecal, "--no-final")
    rows = journal(workspace.root, found["experiment"])
    test = {item.item_id for item in gold.select("test")}
    assert {row["item_id"] for row in rows} & test == set()
    assert not (workspace.experiments / "test_looks.jsonl").exists()
    assert set(found["test"].values()) == {None}
    assert (found["decision"], found["test_looks"]) == ("cannot tell", 0)
    # The same with the final look is another experiment.
    assert optimize(judgecal)["experiment"] != found["experiment"]


@pytest.fixture
def something_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last candidate is taken, whatever dev says of it: test is looked at."""
    monkeypatch.setattr(
        "judgecal.optimize.probing.choose", lambda scored, *_: Choice(scored[-1], "the test takes it")
    )


@pytest.mark.usefixtures("something_changes")
def test_every_decision_after_the_first_pays(judgecal: Run, gold: GoldSet, workspace: Workspace) -> None:
    first = optimize(judgecal)
    second = optimize(judgecal, "--seed", "1")
    again = optimize(judgecal)
    assert [one["test_looks"] for one in (first, second, again)] == [1, 2, 1]
    levels = [one["test"]["difference"]["level"] for one in (first, second, again)]
    assert levels == pytest.approx([0.96960364, 0.99240091, 0.96960364])  # 1 - 0.05 * 6 / (pi^2 k^2)
    assert second["test"]["before"]["macro_agreement"]["level"] == pytest.approx(0.99240091)
    assert second["dev"]["before"]["macro_agreement"]["level"] == 0.95
    text = judgecal("optimize", "--gold", "harsh", "--seed", "1").said
    assert "Decision 2 on the test labels of harsh, reused: shown at level 0.9924, so" in text
    log = (workspace.experiments / "test_looks.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in log] == ["decision", "decision"]
    scored = one_object(judgecal("score", "--gold", "harsh", "--split", "test", "--json"))
    assert scored["test_looks"] == 2


@pytest.mark.usefixtures("something_changes")
def test_a_larger_limit_is_another_look(judgecal: Run, gold: GoldSet, workspace: Workspace) -> None:
    small = optimize(judgecal, "--limit", "12")
    large = optimize(judgecal)
    assert small["experiment"] == large["experiment"]
    assert (small["test_looks"], large["test_looks"]) == (1, 2)
    assert large["test"]["difference"]["level"] == pytest.approx(0.99240091)


# --- other scales


@pytest.mark.parametrize(
    ("verdict", "scale", "labels", "note"),
    [
        (None, 'kind = "binary"', {"full": 1, "half": 0, "none": 0}, "cut at 50"),
        (None, GRADES, {"full": 4, "half": 1, "none": 0}, "taken onto ordinal:0:4"),
        (('Literal["yes", "no"]', ""), 'kind = "binary"', {"full": 1, "half": 0, "none": 0}, "cut at 0.5"),
        (("bool", ""), PERCENTAGE, REVERSED, "taken onto percentage"),
        (("Literal[0, 1, 2, 3, 4]", ""), GRADES, {"full": 4, "half": 1, "none": 0}, "points:0:4"),
        (("float", "ge=0, le=100"), PERCENTAGE, REVERSED, None),
    ],
)
@pytest.mark.parametrize("optimizer", ["labeled", "fewshot"])
def test_every_pair_of_scales_can_be_optimised(
    judgecal: Run,
    workspace: Workspace,
    optimizer: str,
    verdict: tuple[str, str] | None,
    scale: str,
    labels: Mapping[str, Label],
    note: str | None,
) -> None:
    rows = made_items(24)
    made_gold(workspace.gold / "harsh", rows, rated(rows, labels), scale=scale)
    if verdict:
        write_signature(workspace.root, "graded", [("grade", *verdict)])
    signature = "graded" if verdict else "correctness_v3"
    found = optimize(judgecal, "--signature", signature, "--optimizer", optimizer)
    assert value(found, "dev", "after") >= value(found, "dev", "before")
    assert [note in text for text in found["notes"]] == ([True] if note else [])


def test_few_questions_on_dev_and_test_cannot_tell(judgecal: Run, workspace: Workspace) -> None:
    rows = made_items(12)
    made_gold(workspace.gold / "harsh", rows, rated(rows, REVERSED))
    found = optimize(judgecal)
    assert (found["decision"], found["chosen"], found["test_looks"]) == ("cannot tell", "before", 0)
    assert found["test"]["difference"]["value"] is None and found["test"]["after"] is None
    assert "questions that may be luck" in found["test"]["difference"]["reason"]
    assert found["n_demos"] == 0 and not found["instructions_changed"]  # the old program stays
    assert found["headline"]["sentence"] == "Keep the judge as it is."


def test_dev_with_one_stratum_cannot_choose(judgecal: Run, workspace: Workspace) -> None:
    rows = made_items(30)
    made_gold(workspace.gold / "harsh", rows, rated(rows, {"full": 100, "half": 100, "none": 100}))
    found = optimize(judgecal)
    assert (found["decision"], found["chosen"]) == ("nothing changed", "before")
    assert found["dev"]["before"]["macro_agreement"]["value"] is None
    assert "dev cannot choose" in found["why"]
    assert judgecal("optimize", "--gold", "harsh").code == 0


def test_a_dry_run_counts_every_candidate(judgecal: Run, gold: GoldSet, workspace: Workspace) -> None:
    before = tree(workspace.root)
    plan = one_object(judgecal("optimize", "--gold", "harsh", "--dry-run", "--json"))
    assert tree(workspace.root) == before
    found = optimize(judgecal)
    made = len(journal(workspace.root, found["experiment"]))
    # The confirmation is planned with train and dev; the questions in the demos need no call.
    assert made <= plan["calls"] <= made + 2 * len(gold.select("open"))
