"""The package is typed for whoever imports it: a small project of its own under mypy --strict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import judgecal

RIGHT = """
from typing import assert_type

import judgecal
from judgecal.experiment.compare import CompareResult
from judgecal.experiment.in_python import Judgements
from judgecal.optimize.result import OptimizeResult
from judgecal.probes.result import ProbeResult
from judgecal.production.rate import RateResult
from judgecal.production.results import JudgeResult
from judgecal.rag.evaluation.result import EvaluateResult
from judgecal.records import Result
from judgecal.report.html import Report
from judgecal.selection.gate import GateResult
from judgecal.selection.migrate import MigrateResult
from judgecal.selection.select_result import SelectResult
from judgecal.signatures import LoadedSignature
from judgecal.stats import Agreement, AltTest, Estimates


def exact(answer: str, reference_answer: str) -> bool:
    return answer == reference_answer


columns = judgecal.Columns(group="question", contexts=("passages",))
gold = judgecal.GoldSet.from_frame(object(), labels=["ann"], columns=columns)
judge = judgecal.Judge(exact, scale="binary")
rows = assert_type(judgecal.score([exact, "exact_match@local", judge], gold), Judgements)
row = assert_type(rows[0], judgecal.Judgement)
found = assert_type(judgecal.agreement(gold, rows.of(judge.name)), Agreement)
value = assert_type(found["macro_agreement"], judgecal.Estimate).value
assert_type(value, float | None)
assert_type(judgecal.load_gold("starter"), judgecal.GoldSet)
assert_type(judgecal.load_signature("correctness_v3"), LoadedSignature)
results: list[Result] = [
    rows,
    found,
    assert_type(judgecal.compare("first", "a@local", "b@local"), CompareResult),
    assert_type(judgecal.reliability({"ann": [1, 0]}, scale=judgecal.Scale.parse("binary")), Estimates),
    assert_type(judgecal.alt_test({}, {}, scale="binary", epsilon=0.2), AltTest),
    assert_type(judgecal.optimize("correctness_v3@embedded"), OptimizeResult),
    assert_type(judgecal.select("first"), SelectResult),
    assert_type(judgecal.probe("correctness_v3@embedded"), ProbeResult),
    assert_type(judgecal.gate("judge.lock.json"), GateResult),
    assert_type(judgecal.migrate("judge.lock.json", "gpt-4o"), MigrateResult),
    assert_type(judgecal.judge("in.csv", lock="judge.lock.json", output="out.csv"), JudgeResult),
    assert_type(judgecal.rate("out.csv", lock="judge.lock.json", columns=columns), RateResult),
    assert_type(judgecal.evaluate("sweep.toml"), EvaluateResult),
    assert_type(judgecal.load_report("first"), Report),
]
for result in results:
    result.as_json(), result.frame(), result._repr_html_(), repr(result)
"""
WRONG = {
    "judgecal.score(3, judgecal.load_gold('starter'))": "arg-type",
    "judgecal.agreement([1], [1], scal='binary')": "call-arg",
    "items: int = judgecal.load_gold('starter').items": "assignment",
    "judgecal.compere('first')": "attr-defined",
    "judgecal.Columns(quest='q')": "call-arg",
    "judgecal.select('first').chozen": "attr-defined",
}


def test_a_project_of_its_own_sees_the_types(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text("\n".join(["import judgecal", *WRONG]))
    command = [
        sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", "right.py",
        "wrong.py",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [(line.split(": ")[0], line.rpartition("[")[2].rstrip("]")) for line in errors] == [
        (f"wrong.py:{place}", kind) for place, kind in enumerate(WRONG.values(), 2)
    ], done.stdout + done.stderr


def test_every_public_name_is_one_that_type_checkers_know() -> None:
    """Scripts see what `__all__` says, whether they run or are only checked."""
    text = (Path(judgecal.__file__)).read_text().partition("if TYPE_CHECKING:")[2].partition("_HOME = {")[0]
    assert {name for name in judgecal.__all__ if name not in text} == {"__version__"}
    assert all(getattr(judgecal, name) is not None for name in judgecal.__all__)
    assert (Path(judgecal.__file__).parent / "py.typed").is_file()
