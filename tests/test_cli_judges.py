"""`judges NAME`: one signature, prompt, suite or local judge, with every problem and its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgecal.signatures import list_signatures, load_signature, outline_signature
from judgecal.workspace import find_workspace
from tests.support.command import Run, one_object

WRONG = """import dspy
import judgecal


class Wrong(dspy.Signature):
    question: str = dspy.InputField()
    referense_answer: str = dspy.InputField()
    contexts: list[str] = dspy.InputField()
    answer: str = dspy.InputField()
    good: bool = dspy.OutputField()
    why: str = dspy.OutputField()
"""


def test_check_tells_every_problem_with_its_line(judgecal: Run, workspace_dir: Path) -> None:
    (workspace_dir / "signatures" / "wrong.py").write_text(WRONG, encoding="utf-8")
    ran = judgecal("judges", "wrong", "--json")
    found = one_object(ran, code=2)
    told = {problem["where"].rpartition("wrong.py:")[2]: problem["message"] for problem in found["problems"]}
    assert found["prompt"] and set(told) == {"2", "5", "7", "8", "11"}
    assert all(message in ran.err for message in told.values())
    assert "imports judgecal" in told["2"] and "no instructions" in told["5"]
    assert "did you mean reference_answer?" in told["7"]
    assert "its type is list[str]: use str" in told["8"] and "stands after the verdict" in told["11"]


@pytest.mark.parametrize(
    ("body", "line", "says"),
    [
        ("    a: str = dspy.InputField()\n    v: int = dspy.OutputField()\n", "7", "needs two bounds"),
        ("    a: str = dspy.InputField()\n    v: bool = dspy.OutputField()\n    w: bool = dspy.OutputField()\n", "8",
         "one verdict field expected, found 2"),
        ("    a: str = dspy.InputField()\n    v: Missing = dspy.OutputField()\n", "7", "NameError"),
    ],
)  # fmt: skip
def test_what_does_not_load_exits_2_with_the_line(
    judgecal: Run, workspace_dir: Path, body: str, line: str, says: str
) -> None:
    text = f'import dspy\n\n\nclass One(dspy.Signature):\n    """Judge."""\n{body}'
    (workspace_dir / "signatures" / "one.py").write_text(text, encoding="utf-8")
    ran = judgecal("judges", "one", "--json")
    assert ran.code == 2 and f"one.py:{line}: " in ran.err and says in ran.err
    found = json.loads(ran.out)
    assert found["scale"] is None and any(says in problem["message"] for problem in found["problems"])


def test_every_signature_that_is_shipped_is_sound(judgecal: Run, workspace_dir: Path) -> None:
    workspace = find_workspace(workspace_dir)
    for name in list_signatures(workspace):
        ran = judgecal("judges", name)
        answers = outline_signature(name, workspace=workspace).scale is None
        assert (ran.code, ran.err.count("\n")) == ((2, 1) if answers else (0, 0)), (name, ran.err)


ODD = {
    "bounds": ("LOW = 0\n", "x: int = dspy.OutputField(ge=LOW, le=4)", "ordinal:0:4"),
    "alias": ("Grade = Literal[0, 1, 2]\n", "x: Grade = dspy.OutputField()", "ordinal:0:2"),
    "quoted": ("", 'x: \'Literal["yes", "no"]\' = dspy.OutputField()', "binary"),
    "annotated": ("", "x: Annotated[int, Field(ge=1, le=5)] = dspy.OutputField()", "ordinal:1:5"),
    "minus": ("", "x: float = dspy.OutputField(ge=-1, le=1)", "points:-1:1"),
    "none": ("", "x: list[str] = dspy.OutputField()", None),
}


@pytest.mark.parametrize("name", ODD)
def test_what_a_text_tells_is_what_running_it_tells(workspace_dir: Path, name: str) -> None:
    before, field, scale = ODD[name]
    head = "from typing import Annotated, Literal\nimport dspy\nfrom pydantic import Field\n"
    body = f'    """Judge."""\n\n    answer: str = dspy.InputField()\n    {field}\n'
    text = f"{head}{before}\n\nclass Odd(dspy.Signature):\n{body}"
    (workspace_dir / "signatures" / "odd.py").write_text(text, encoding="utf-8")
    workspace = find_workspace(workspace_dir)
    for signature in list_signatures(workspace):
        told, run = (
            outline_signature(signature, workspace=workspace),
            load_signature(signature, workspace=workspace),
        )
        assert (str(told.scale), told.inputs, told.unit) == (str(run.scale), run.inputs, run.unit)
    assert str(outline_signature("odd", workspace=workspace).scale) == str(scale)


def test_a_listing_and_a_report_run_nothing_and_a_dry_run_says_what_it_ran(
    judgecal: Run, workspace_dir: Path
) -> None:
    assert judgecal("score", "--limit", "20", "--name", "done").code == 0
    ran = workspace_dir / "ran"
    for name in ("correctness_v3", "answer_v1"):
        path = workspace_dir / "signatures" / f"{name}.py"
        path.write_text(f"open({str(ran)!r}, 'a').write('x')\n{path.read_text()}", encoding="utf-8")
    for argv in (["judges"], ["report", "done"], ["report", "done", "--format", "html"],
                 ["report", "--all"], ["gold", "check"]):  # fmt: skip
        found = judgecal(*argv)
        assert found.code == 0 and not ran.exists(), (argv, found.err)
    assert [one["scale"] for one in one_object(judgecal("judges", "--json"))["signatures"]].count(
        "percentage"
    ) >= 3
    found = judgecal("score", "--dry-run", "--limit", "5", "--name", "other")
    assert (
        ran.read_text() == "x"
        and "--dry-run ran signatures/correctness_v3.py to make the judges" in found.err
    )
    assert "ran" not in judgecal("score", "--limit", "5", "--name", "third").err
