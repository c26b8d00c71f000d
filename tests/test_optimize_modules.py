"""A program of several prompts, optimised as a whole against a served model."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest

import judgecal as judgecal_names
from judgecal.errors import BudgetError, InputError
from judgecal.goldset import GoldSet, load_gold
from judgecal.models.embedded.engine import AsyncEmbeddedEngine, EmbeddedEngine
from judgecal.optimize.programs import to_optimise
from judgecal.report.optimize import optimize_document
from judgecal.selection.lock import LockedJudge
from judgecal.workspace import Workspace
from tests.support.command import Run, journal
from tests.support.gold import made_gold, made_items, rated
from tests.support.instructed import asked_for, field, instructed, serving
from tests.support.server import StubServer

PHRASE = "Count the facts of the reference that the answer names."
JUDGES = """
import dspy

SCALE = "percentage"


class TwoSteps(dspy.Module):
    def __init__(self):
        self.find = dspy.Predict("answer -> facts: str")
        self.count = dspy.ChainOfThought("question, reference_answer, facts -> share: float")

    def forward(self, question, answer, reference_answer):
        if "never" in question:
            raise RuntimeError("a program's own failure")
        facts = self.find(answer=answer).facts
        said = self.count(question=question, reference_answer=reference_answer, facts=facts)
        return dspy.Prediction(verdict=said.share, reasoning=said.reasoning)


judge = TwoSteps()
judge.find.set_lm(dspy.LM("openai/elsewhere", api_base="http://127.0.0.1:9"))
"""


def count(system: str, asked: str, steady: bool) -> str:
    words = set(re.findall(r"\w+", field(asked, "facts"))) - {"and", "were", "sold"}
    named = len(words & set(re.findall(r"\w+", field(asked, "reference_answer"))))
    share = 25 * named if PHRASE in system else 50 if steady else (sum(map(ord, asked)) * 37) % 101
    return f"[[ ## reasoning ## ]]\nSo.\n\n[[ ## share ## ]]\n{share}\n\n[[ ## completed ## ]]"


writes = instructed(PHRASE, "share", count)


def model(body: dict[str, Any]) -> Any:
    asked = body["messages"][-1]["content"]
    if asked_for(body) == ["facts"]:
        return f"[[ ## facts ## ]]\n{field(asked, 'answer')}\n\n[[ ## completed ## ]]"
    return writes(body)


@pytest.fixture
def served(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    (workspace_dir / "judges.py").write_text(JUDGES)
    monkeypatch.chdir(workspace_dir)
    with serving(workspace_dir, monkeypatch, model) as stub:
        yield stub


@pytest.fixture
def gold(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> GoldSet:
    monkeypatch.chdir(workspace.root)
    rows = made_items(44)
    path = made_gold(workspace.gold / "facts", rows, rated(rows, {"full": 100, "half": 50, "none": 0}))
    return load_gold(path, workspace=workspace)


def in_hand() -> Any:
    spec = importlib.util.spec_from_file_location("judges", "judges.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.TwoSteps()


@pytest.mark.parametrize("optimizer", ["auto", "GEPA", "MIPROv2", "COPRO"])
def test_all_prompts_of_a_program_are_optimised(
    judgecal: Run, workspace: Workspace, gold: GoldSet, served: StubServer, optimizer: str
) -> None:
    judge = "judges.py:judge@python"
    found = judgecal_names.optimize(judge, gold, optimizer=optimizer, model="mine", name="mine")
    assert (found.decision, found.judge, found.instructions_changed) == ("better", f"{judge}#mine", True)
    assert found.test.after and found.test.after["macro_agreement"].value == 1.0
    path = workspace.experiments / "mine" / "program.json"
    kept = json.loads(path.read_text())
    assert {"find", "count.predict"} <= kept.keys()
    assert set(kept["judgecal"]["trained_on"]) == {item.group for item in gold.select("train")}
    sent = json.dumps([body["messages"] for body in served.bodies if "share" not in asked_for(body)])
    assert "judgecal_item_id" not in sent
    n, rows = served.calls, journal(workspace.root, "mine")
    again = judgecal_names.optimize(judge, gold, optimizer=optimizer, model="mine", name="mine")
    assert (again.as_json(), served.calls) == (found.as_json(), n)  # resumed without a call
    assert journal(workspace.root, "mine") == rows and found.usd > 0
    # plain DSPy loads it, and it is scored again
    program = in_hand()
    program.load(str(path))
    assert PHRASE in program.count.predict.signature.instructions
    lm = dspy.LM("openai/mine", api_base=served.api_base, api_key="sk-x", temperature=0.0)
    with dspy.context(lm=lm):
        scored = judgecal_names.score(judgecal_names.Judge(program, trained_on=gold), gold, split="dev")
    after = judgecal_names.agreement(gold, scored)
    assert not scored.unscored and after["macro_agreement"].value == 1.0
    # so do commands and locks, by the file and the experiment
    locked = LockedJudge.from_judge(judgecal_names.Judge(found.judge), workspace)
    assert locked.runnable(workspace).trained_on == judgecal_names.Judge(found.judge).trained_on
    path.write_text(path.read_text().replace(PHRASE, "Guess."))
    with pytest.raises(InputError, match="its code has changed"):
        locked.runnable(workspace)
    assert judgecal("report", "mine").out.count("\n") > 5


def test_a_program_in_hand_needs_a_model_and_keeps_to_its_budget(
    workspace: Workspace, gold: GoldSet, served: StubServer
) -> None:
    judge = judgecal_names.Judge(in_hand())
    with pytest.raises(InputError, match="model=ALIAS"):
        judgecal_names.optimize(judge, gold)
    with pytest.raises(BudgetError, match="budget-usd"):
        judgecal_names.optimize(
            judge, gold, optimizer="fewshot", model="mine", name="poor", final=False, budget_usd=0.02
        )
    assert journal(workspace.root, "poor")  # and what was answered is kept
    found = judgecal_names.optimize(judge, gold, optimizer="fewshot", model="mine", name="poor", final=False)
    assert found.judge == "TwoSteps@python#poor" and found.usd > 0.02
    assert {row["error"] for row in journal(workspace.root, "poor") if row["judge"] != "TwoSteps@python"} == {
        None
    }
    # in no file: no command can run it
    assert optimize_document(found).headline.next == "judgecal gold check facts"


class Asks(dspy.Module):
    def __init__(self, said: Any = None, rubric: Any = ("facts",)) -> None:
        self.ask = dspy.Predict("question, answer -> reasoning, right: bool")
        self.said, self.rubric = said, rubric


class Says(Asks):
    def forward(self, question: str, answer: str) -> Any:
        return self.ask(question=question, answer=answer) and self.said


class Alone(Asks):
    async def aforward(self, question: str, answer: str) -> Any:
        return dspy.Prediction(verdict=100 * (await self.ask.acall(question=question, answer=answer)).right)


Awaited = type("Awaited", (Asks,), {"forward": Alone.aforward})
Promptless = type("Promptless", (dspy.Module,), {"forward": Says.forward})


def test_what_a_program_gives_wrong_is_counted_or_refused(gold: GoldSet) -> None:
    how: dict[str, Any] = {"optimizer": "fewshot", "model": "embedded", "final": False}
    for said, kind in ((dspy.Prediction(a="so", b="so"), "code"), (None, "refused")):
        found = judgecal_names.optimize(judgecal_names.Judge(Says(said)), gold, **how)
        assert found.unread and (found.unread.judges[0].n, found.unread.judges[0].kind) == (45, kind)
        assert all(one.as_wrong.n_unscored == 45 for one in found.dev.candidates)
    engines = {"engine": EmbeddedEngine(), "async_engine": AsyncEmbeddedEngine()}
    with dspy.context(lm=dspy.LM("judgecal/embedded", cache=False, **engines)):
        rows = judgecal_names.score(judgecal_names.Judge(Alone()), gold, split="dev", limit=4)
    assert not rows.unscored and {row.verdict for row in rows} <= {0.0, 100.0}
    for program, more, message in (
        (Alone(), {}, "no forward of its class's own"),
        (dspy.syncify(Alone()), {}, "no forward of its class's own"),
        (Promptless(), {}, "has no prompt"),
        (Says(), {"optimizer": "auto"}, "shown as verdict, which no prompt of Says@python gives"),
        (Says(), {"optimizer": "GEPA", "reflection_model": "embedded"}, "cannot write instructions"),
    ):
        with pytest.raises(InputError, match=message):
            judgecal_names.optimize(judgecal_names.Judge(program), gold, **how | more)
    with pytest.raises(InputError, match="one that is async is aforward"):
        judgecal_names.Judge(Awaited())


def test_a_program_that_was_set_otherwise_is_another_judge(workspace: Workspace, gold: GoldSet) -> None:
    programs = (Says(object()), Says(object()), Says(object(), rubric=["tone"]))
    made = [to_optimise(judgecal_names.Judge(one), gold, "embedded", workspace) for one in programs]
    assert made[0].fingerprint == made[1].fingerprint != made[2].fingerprint


def test_knn_few_shot_is_scored_and_compared_and_not_locked(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace.root)
    student = dspy.Predict("question, reference_answer, answer -> verdict: float")
    near = dspy.Embedder(lambda texts: [[float(len(text)), 1.0] for text in texts])
    gold = load_gold("starter", workspace=workspace)
    train, rate = judgecal_names.examples(gold), judgecal_names.metric(gold)
    few = dspy.KNNFewShot(k=3, trainset=train, vectorizer=near, metric=rate, max_bootstrapped_demos=0)
    sides = []
    with dspy.context(lm=dspy.LM("judgecal/embedded", engine=EmbeddedEngine(), cache=False)):
        for program in (few.compile(student), student):
            judge = judgecal_names.Judge(program, trained_on=gold)
            sides.append(judgecal_names.score(judge, gold, split="dev", limit=9))
    assert not any(side.unscored for side in sides)
    with pytest.raises(InputError, match="no forward of its class's own, "):
        judgecal_names.optimize(
            judgecal_names.Judge(few.compile(student), trained_on=()), gold, model="embedded"
        )


def test_a_plain_prompt_is_optimised_as_a_program(gold: GoldSet) -> None:
    own = dspy.Predict("question, reference_answer, answer -> verdict: float")
    found = judgecal_names.optimize(judgecal_names.Judge(own), gold, model="embedded", final=False)
    assert found.judge == f"Predict@python#{found.experiment}" and found.dev.candidates[-1].n_demos > 0
    with pytest.raises(InputError, match="leave model= out"):
        judgecal_names.optimize("correctness_v3@embedded", gold, model="embedded")
    with pytest.raises(InputError, match="has no prompt"):
        judgecal_names.optimize("exact_match@local", gold, model="embedded")
