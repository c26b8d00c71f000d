"""A program of DSPy's with one prompt, optimised against a served model as any other prompt."""

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
from judgecal.errors import InputError
from judgecal.goldset import GoldSet, load_gold
from judgecal.models.embedded.engine import EmbeddedEngine
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


class Careful(dspy.Module):
    def __init__(self):
        self.ask = dspy.ChainOfThought("question, reference_answer, answer -> share: float")

    def forward(self, question, answer, reference_answer):
        said = self.ask(question=question, answer=answer, reference_answer=reference_answer)
        return dspy.Prediction(verdict=said.share, reasoning=said.reasoning)


judge = Careful()
judge.ask.set_lm(dspy.LM("openai/elsewhere", api_base="http://127.0.0.1:9"))
"""


def count(system: str, asked: str, steady: bool) -> str:
    words = set(re.findall(r"\w+", field(asked, "answer"))) - {"and", "were", "sold"}
    named = len(words & set(re.findall(r"\w+", field(asked, "reference_answer"))))
    share = 25 * named if PHRASE in system else 50 if steady else (sum(map(ord, asked)) * 37) % 101
    return f"[[ ## reasoning ## ]]\nSo.\n\n[[ ## share ## ]]\n{share}\n\n[[ ## completed ## ]]"


@pytest.fixture
def served(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    (workspace_dir / "judges.py").write_text(JUDGES)
    monkeypatch.chdir(workspace_dir)
    with serving(workspace_dir, monkeypatch, instructed(PHRASE, "share", count)) as stub:
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
    return module.Careful()


@pytest.mark.parametrize("optimizer", ["auto", "COPRO"])
def test_the_prompt_of_a_program_is_optimised(
    judgecal: Run, workspace: Workspace, gold: GoldSet, served: StubServer, optimizer: str
) -> None:
    judge = "judges.py:judge@python"
    result = judgecal_names.optimize(judge, gold, optimizer=optimizer, model="mine", name="mine")
    assert (result.decision, result.judge, result.instructions_changed) == ("better", f"{judge}#mine", True)
    assert result.test.after and result.test.after["macro_agreement"].value == 1.0
    path = workspace.experiments / "mine" / "program.json"
    stored = json.loads(path.read_text())
    assert set(stored["judgecal"]["trained_on"]) == {item.group for item in gold.select("train")}
    sent = json.dumps([body["messages"] for body in served.bodies if "share" not in asked_for(body)])
    assert "judgecal_item_id" not in sent
    n, rows = served.calls, journal(workspace.root, "mine")
    again = judgecal_names.optimize(judge, gold, optimizer=optimizer, model="mine", name="mine")
    assert (again.as_json(), served.calls) == (result.as_json(), n)  # resumed without a call
    assert journal(workspace.root, "mine") == rows and result.usd > 0
    # plain DSPy loads it into the prompt, and the program is scored with it
    program = in_hand()
    program.ask.predict.load(str(path))
    assert PHRASE in program.ask.predict.signature.instructions
    lm = dspy.LM("openai/mine", api_base=served.api_base, api_key="sk-x", temperature=0.0)
    with dspy.context(lm=lm):
        scored = judgecal_names.score(judgecal_names.Judge(program, trained_on=gold), gold, split="dev")
    after = judgecal_names.agreement(gold, scored)
    assert not scored.unscored and after["macro_agreement"].value == 1.0
    # so do commands and locks, by the file and the experiment
    locked = LockedJudge.from_judge(judgecal_names.Judge(result.judge), workspace)
    assert locked.runnable(workspace).trained_on == judgecal_names.Judge(result.judge).trained_on
    path.write_text(path.read_text().replace(PHRASE, "Guess."))
    with pytest.raises(InputError, match="its code has changed"):
        locked.runnable(workspace)
    assert judgecal("report", "mine").out.count("\n") > 5


class Asks(dspy.Module):
    def __init__(self) -> None:
        self.ask = dspy.Predict("question, answer -> reasoning, right: bool")

    async def aforward(self, question: str, answer: str) -> Any:
        return dspy.Prediction(verdict=100 * (await self.ask.acall(question=question, answer=answer)).right)


class Twice(Asks):
    def __init__(self) -> None:
        super().__init__()
        self.again = dspy.Predict("question, answer -> right: bool")


class More(Asks):
    async def aforward(self, question: str, answer: str, reference_answer: str) -> Any:
        return await super().aforward(question, f"{answer} {reference_answer}")


Awaited = type("Awaited", (Asks,), {"forward": Asks.aforward})


def test_what_is_no_single_prompt_is_refused_and_what_is_in_no_file_said(
    gold: GoldSet, workspace: Workspace
) -> None:
    how: dict[str, Any] = {"model": "embedded", "final": False}
    for program, more, message in (
        (Twice(), how, "is not one prompt that takes what forward takes"),
        (More(), how, "is not one prompt that takes what forward takes"),
        (dspy.syncify(Asks()), how, "is not one prompt that takes what forward takes"),
        (Asks(), {}, "model=ALIAS"),
        (Asks(), {**how, "optimizer": "GEPA"}, "cannot write instructions"),
    ):
        with pytest.raises(InputError, match=message):
            judgecal_names.optimize(judgecal_names.Judge(program), gold, **more)
    with pytest.raises(InputError, match="one that is async is aforward"):
        judgecal_names.Judge(Awaited())
    result = judgecal_names.optimize(judgecal_names.Judge(Asks()), gold, name="mine", **how)
    assert result.judge == "Asks@python#mine"
    # in no file: no command can run it
    assert optimize_document(result).headline.next == "judgecal gold check facts"


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
    with pytest.raises(InputError, match="is not one prompt that takes what forward takes"):
        judgecal_names.optimize(
            judgecal_names.Judge(few.compile(student), trained_on=()), gold, model="embedded"
        )


def test_a_plain_prompt_goes_the_way_of_prompts(gold: GoldSet) -> None:
    # a number without bounds is on the people's scale
    prompt = dspy.Predict("question, reference_answer, answer -> verdict: float")
    result = judgecal_names.optimize(judgecal_names.Judge(prompt), gold, model="embedded", final=False)
    assert result.judge == f"Predict@python#{result.experiment}" and result.dev.candidates[-1].n_demos > 0
    assert result.dev.after["macro_agreement"].n_unscored == 0
    with pytest.raises(InputError, match="leave model= out"):
        judgecal_names.optimize("correctness_v3@embedded", gold, model="embedded")
    with pytest.raises(InputError, match="has no prompt"):
        judgecal_names.optimize("exact_match@local", gold, model="embedded")
