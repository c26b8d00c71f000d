"""What `optimize` does by itself for a model that reads instructions: GEPA, examples, and a race on dev."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from judgecal.experiment.agreement_table import AgreementTable, Verdicts
from judgecal.goldset import GoldSet, load_gold
from judgecal.optimize.result import ScoredCandidate, Stage, choose, race
from judgecal.optimize.training import parts_by_question
from judgecal.records import Failure, Judgement
from judgecal.stats.confirmation import Gains
from judgecal.workspace import Workspace
from tests.support.command import Run, one_object
from tests.support.gold import made_gold, made_items, rated
from tests.support.http import Answer
from tests.support.instructed import N_GROUPS, PHRASE, asked_for, calls_of, model, serving
from tests.support.server import StubServer, failing

METRIC = "macro_agreement"
AUTO = ("optimize", "--gold", "facts", "--model", "mine", "--no-cache", "--json")


def writes(body: dict[str, Any]) -> bool:
    return "correctness_percentage" not in asked_for(body)


@pytest.fixture
def served(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    with serving(workspace_dir, monkeypatch, model) as stub:
        yield stub


@pytest.fixture
def gold(workspace: Workspace) -> GoldSet:
    rows = made_items(N_GROUPS)
    ratings = rated(rows, {"full": 100, "half": 50, "none": 0})
    return load_gold(made_gold(workspace.gold / "facts", rows, ratings), workspace=workspace)


def test_the_instruction_that_people_imply_is_written_chosen_and_shown(
    judgecal: Run, workspace: Workspace, gold: GoldSet, served: StubServer
) -> None:
    plan = one_object(judgecal(*AUTO, "--dry-run"))
    ran = judgecal(*AUTO)
    result = one_object(ran)
    assert (result["optimizer"], result["reflection_model"], result["decision"]) == ("auto", "mine", "better")
    assert served.calls <= plan["calls"] and result["usd"] <= plan["usd_at_most"]
    assert f"At most {plan['calls']} calls" in ran.err and "auto plans GEPA with 140 calls" in ran.err
    names = [one["name"] for one in result["dev"]["candidates"]]
    assert names[:3] == ["before", "gepa-1", "gepa-1+labeled-16-draw1"] and "labeled-32-draw2" in names
    judged = {one["name"]: one["as_wrong"]["n_expected"] for one in result["dev"]["candidates"]}
    n_dev = len(gold.select("dev"))
    assert judged["before"] == judged[result["chosen"]] == n_dev
    assert judged["labeled-32-draw2"] < n_dev  # a third of dev shows that it is worse
    assert len(calls_of(workspace, result["experiment"])) <= 140
    assert PHRASE in result["prompts"]["after"] and PHRASE not in result["prompts"]["before"]
    changes = result["changes"]
    assert changes["n_better"] > 0 == changes["n_worse"]
    assert 1 <= len(changes["answers"]) <= 5 and all(answer["better"] for answer in changes["answers"])
    assert max(map(sum, changes["kinds"].values())) <= changes["n_better"]
    text = judgecal(*AUTO[:-1]).said
    assert "sentences are new, " in text and "changed sides for the better, 0 for the worse" in text
    whole = judgecal(*AUTO[:-1], "--full").out
    assert f"+ {PHRASE}" in whole and "Answers that it judges otherwise" in whole


def test_a_cut_run_pays_nothing_twice(
    judgecal: Run, workspace: Workspace, gold: GoldSet, served: StubServer
) -> None:
    whole = one_object(judgecal(*AUTO, "--name", "whole"))
    n, sent, at = served.calls, served.calls, 100

    def script(body: dict[str, Any]) -> Answer | str:
        return failing(401, "not now") if served.calls > sent + at else model(body)

    served.script = script
    assert judgecal(*AUTO, "--name", "cut").code != 0
    served.script, refused = model, served.calls - sent - at
    again = one_object(judgecal(*AUTO, "--name", "cut"))
    assert n <= served.calls - sent - refused <= n + 16  # those that were in flight
    for name in ("decision", "chosen", "prompts"):
        assert again[name] == whole[name]
    keys = [call["key"] for call in calls_of(workspace, "cut") if not call["error"]]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("reply", "remark"),
    [
        (lambda: failing(401, "bad key", code="invalid_api_key"), "GEPA ended without an instruction"),
        (lambda: "", "GEPA wrote no instruction that did better on train"),
    ],
)
def test_where_gepa_fails_examples_are_tried_and_that_is_said(
    judgecal: Run, gold: GoldSet, served: StubServer, reply: Any, remark: str
) -> None:
    served.script = lambda body: reply() if writes(body) else model(body)
    ran = judgecal(*AUTO, "--reflection-model", "writer")
    result = one_object(ran)
    names = [one["name"] for one in result["dev"]["candidates"]]
    assert names[1:] and all(name.startswith("labeled-") for name in names[1:])
    assert remark in " ".join(result["notes"]) and "Traceback" not in ran.err


@pytest.mark.parametrize("usd", [0.1, 0.5])
def test_a_budget_shapes_the_run_and_it_ends_with_a_result(
    judgecal: Run, gold: GoldSet, served: StubServer, usd: float
) -> None:
    ran = judgecal(*AUTO, "--budget-usd", str(usd))
    result = one_object(ran)
    assert 0.0 < result["usd"] <= usd
    assert ran.err.count("judgecal: auto plans ") == 1 and "of 39 unscored" not in ran.err
    n_dev = len(gold.select("dev"))
    ends = [one["as_wrong"] for one in result["dev"]["candidates"] if one["as_wrong"]["n_expected"] == n_dev]
    assert ends and not any(end["n_unscored"] for end in ends)


@pytest.mark.parametrize(
    ("labels", "n_groups", "more", "message"),
    [
        ({"full": 100, "half": 50, "none": 0}, 44, ("--optimizer", "gepaa"), "did you mean gepa"),
        ({"full": 100, "half": 50, "none": 0}, 44, ("--reflection-model", "gpt-4o"), "OPENAI_API_KEY"),
        ({"full": 100, "half": 50, "none": 0}, 24, (), "questions, and 10 are the least"),
        ({"full": 100, "half": 100, "none": 100}, 44, (), "labels are all alike"),
    ],
)
def test_bad_input_ends_before_the_first_call(
    judgecal: Run,
    workspace: Workspace,
    served: StubServer,
    monkeypatch: pytest.MonkeyPatch,
    labels: dict[str, Any],
    n_groups: int,
    more: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    rows = made_items(n_groups)
    made_gold(workspace.gold / "facts", rows, rated(rows, labels))
    ran = judgecal(*AUTO, *more)
    assert (ran.code, ran.out, served.calls) == (2, "", 0)
    assert message in ran.err and len(ran.err.strip().splitlines()) == 1


# --- the race


def scored(
    table: AgreementTable, name: str, share_wrong: float, failure: Failure | None = None
) -> ScoredCandidate:
    """A judge that is wrong on the first answers of each kind, so many of its hundred parts."""
    rows = []
    for place, item in enumerate(table.gold.items):
        label = float(table.gold.labels[item.item_id])
        given = 100.0 - label if (place * 37) % 100 < 100 * share_wrong else label
        rows.append(Judgement(item.item_id, item.sha, "j", name, 0, given, error=failure))
    judge: Any = SimpleNamespace(demos=[])
    column = Verdicts("j", table.gold.scale, rows)
    return ScoredCandidate.on(table, name, judge, column, METRIC)


def test_what_a_third_shows_to_be_worse_goes_no_further_and_counts_for_luck(workspace: Workspace) -> None:
    rows = made_items(45)
    ratings = rated(rows, {"full": 100, "half": 0, "none": 0})
    gold = load_gold(made_gold(workspace.gold / "made", rows, ratings), workspace=workspace)
    parts = parts_by_question(gold.items, gold.labels, seed=0, n=3)
    assert [len(part) for part in parts] == [45, 45, 45]
    assert len({item.group for part in parts for item in part}) == 45
    dev, shares = AgreementTable(gold, tuple(item for part in parts for item in part)), (0.05, 0.1, 0.5, 0.12)
    seen: list[tuple[int | None, int]] = []

    def score(number: int | None, table: AgreementTable) -> ScoredCandidate:
        seen.append((number, len(table.items)))
        if number is None:
            return scored(table, "before", 0.3)
        return scored(table, f"c{number}", shares[number], failure)

    failure = None
    finish = race(dev, parts, range(4), score, metric=METRIC, go_on=(3, 2))
    assert max(n for number, n in seen if number == 2) == 45
    assert [one.name for one in finish.scored] == ["before", "c0"]
    assert {one.name for one in finish.everybody} == {"before", "c0", "c1", "c2", "c3"}
    choice = choose(finish.scored, METRIC, dev, finish.stages)
    assert choice.taken.name == "c0"
    alone = Stage(dev, finish.scored).gains(METRIC)
    part = finish.stages[0].gains(METRIC)
    assert alone is not None and part is not None
    assert alone.joined(part, [0], [1, 2, 3]).by_luck() >= alone.by_luck()
    failure = Failure("budget", "no money")  # what lost calls is neither chosen nor counted
    poor = race(dev, parts, range(4), score, metric=METRIC, go_on=(3, 2))
    assert [one.name for one in poor.everybody] == ["before"]
    assert [one.name for one in poor.scored] == ["before"]


def test_a_part_knows_the_errors_that_the_whole_would_have() -> None:
    """Of equal parts in all questions the error falls with the root of their number; correlations stay."""
    rng = np.random.default_rng(0)
    shared = rng.standard_normal(9000)
    parts = np.array([shared + rng.standard_normal(9000) for _ in range(3)]) / 9000
    third = Gains.of_parts(np.zeros(3), 3.0 * parts[:, :3000])
    whole, joined = (
        Gains.of_parts(np.zeros(3), parts),
        Gains.of_parts(np.zeros(2), parts[:2]).joined(third, [0, 1], [2]),
    )
    assert joined.errors == pytest.approx(whole.errors, rel=0.05)
    assert joined.covariance == pytest.approx(whole.covariance, rel=0.15)
    assert joined.by_luck() == pytest.approx(whole.by_luck(), rel=0.05)
