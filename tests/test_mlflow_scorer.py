"""`mlflow_scorer`, against a stand-in for the parts of MLflow 3 that it uses; MLflow itself is an extra."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import judgecal as package
from judgecal.errors import InputError
from judgecal.goldset import load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.selection.lock import load_lock
from judgecal.workspace import find_workspace
from tests.support.locks import lock_file


@dataclasses.dataclass
class AssessmentSource:
    source_type: str
    source_id: str


@dataclasses.dataclass
class AssessmentError:
    error_code: str
    error_message: str


@dataclasses.dataclass
class Feedback:
    name: str
    value: Any = None
    error: AssessmentError | None = None
    rationale: str | None = None
    source: AssessmentSource | None = None
    metadata: dict[str, str] | None = None


def scorer(*, name: str) -> Callable[[Any], Any]:
    def named(function: Any) -> Any:
        function.name = name
        return function

    return named


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in, with the names and the keywords of MLflow 3."""
    entities = ModuleType("mlflow.entities")
    vars(entities).update(
        Feedback=Feedback, AssessmentSource=AssessmentSource, AssessmentError=AssessmentError
    )
    scorers = ModuleType("mlflow.genai.scorers")
    vars(scorers)["scorer"] = scorer
    for name, module in (("mlflow", None), ("mlflow.genai", None), ("mlflow.entities", entities),
                         ("mlflow.genai.scorers", scorers)):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module or ModuleType(name))


@pytest.fixture
def lock(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The embedded judge, locked on the starter."""
    monkeypatch.chdir(workspace_dir)
    judge = PromptJudge("correctness_v3@embedded", workspace=find_workspace(workspace_dir))
    return lock_file(workspace_dir / "judge.lock.json", judge, load_gold(workspace_dir / "gold" / "starter"))


def test_a_locked_judge_is_a_scorer(lock: Path, mlflow: None) -> None:
    judged = package.mlflow_scorer(lock, name="correctness")
    assert judged.name == "correctness"
    given = {"inputs": {"question": "Capital of France?"}, "expectations": {"expected_response": "Paris"}}
    right, wrong = (judged(**given, outputs=text) for text in ("Paris", "Oslo"))
    assert (right.name, right.value, wrong.value) == ("correctness", "yes", "no")
    assert right.rationale and right.error is None
    locked = load_lock(lock)
    assert right.source == AssessmentSource("LLM_JUDGE", "correctness_v3@embedded")
    assert right.metadata["judge"] == locked.judge and right.metadata["lock_sha256"] == locked.sha256
    assert set(right.metadata) == {"judge", "lock_sha256", "model_id", "verdict", "calibrated"}
    assert right.metadata["calibrated"] == "100.0"  # through the map of the lock
    assert all(isinstance(value, str) for value in right.metadata.values())


def test_what_cannot_be_judged_is_an_error_and_no_value(lock: Path, mlflow: None) -> None:
    found = package.mlflow_scorer(lock)(inputs={"question": "Capital of France?"}, outputs="Paris")
    assert (found.name, found.value) == ("correctness_v3", None)
    assert found.error == AssessmentError("input", "there is no expected response")


def test_without_mlflow_the_message_says_what_to_install(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow.genai.scorers", None)
    with pytest.raises(InputError, match=r"pip install 'mlflow>=3\.1', or in a checkout .* '\.\[mlflow\]'"):
        package.mlflow_scorer(lock)
