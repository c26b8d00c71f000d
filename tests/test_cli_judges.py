"""`judges NAME`: one signature, prompt, suite or local judge, with every problem and its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgecal.signatures import list_signatures, load_signature, outline_signature
from judgecal.workspace import find_workspace
from tests.support.command import Run, one_object

WRONG = """import dspy
import math


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
    assert found["prompt"] and set(told) == {"5", "7", "8", "11"}
    assert all(message in ran.err for message in told.values())
    assert "no instructions" in told["5"]
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
        answers = outline_signature(name, workspace=workspace)[0] is None
        assert (ran.code, ran.err.count("\n")) == ((2, 1) if answers else (0, 0)), (name, ran.err)


def test_the_text_of_a_signature_tells_its_inputs_and_the_type_of_its_verdict(workspace_dir: Path) -> None:
    head = "from typing import Literal\nimport dspy\n\n\nclass Odd(dspy.Signature):\n"
    body = (
        '    """Judge."""\n\n    answer: str = dspy.InputField()\n    why: list[str] = dspy.OutputField()\n'
    )
    verdict = "    x: Literal['yes', 'no'] = dspy.OutputField()\n"
    workspace = find_workspace(workspace_dir)
    for text, kind in ((head + body, None), (head + body + verdict, "Literal['yes', 'no']")):
        (workspace_dir / "signatures" / "odd.py").write_text(text, encoding="utf-8")
        assert outline_signature("odd", workspace=workspace) == (kind, ("answer",))
    for name in list_signatures(workspace):
        verdict, inputs = outline_signature(name, workspace=workspace)
        loaded = load_signature(name, workspace=workspace)
        assert ((verdict is None), inputs) == (loaded.scale is None, loaded.inputs)


def test_a_listing_and_a_report_run_nothing(judgecal: Run, workspace_dir: Path) -> None:
    assert judgecal("score", "--limit", "20", "--name", "done").code == 0
    ran = workspace_dir / "ran"
    for name in ("correctness_v3", "answer_v1"):
        path = workspace_dir / "signatures" / f"{name}.py"
        path.write_text(f"open({str(ran)!r}, 'a').write('x')\n{path.read_text()}", encoding="utf-8")
    for argv in (["judges"], ["report", "done"], ["report", "done", "--format", "html"],
                 ["report", "--all"], ["gold", "check"]):  # fmt: skip
        found = judgecal(*argv)
        assert found.code == 0 and not ran.exists(), (argv, found.err)
    listed = one_object(judgecal("judges", "--json"))["signatures"]
    assert [signature["verdict"] for signature in listed].count("int") >= 3
    assert judgecal("score", "--dry-run", "--limit", "5", "--name", "other").code == 0
    assert ran.read_text() == "x"
