"""`signature new`, `list` and `check`: a file that loads, what there is, and every problem with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgecal.signatures import list_signatures, load_signature, outline_signature
from judgecal.workspace import find_workspace
from tests.support.command import Run, filled_in, one_object

SCALES = [
    (("--scale", "percentage"), "percentage"),
    (("--scale", "ordinal:1:4"), "ordinal:1:4"),
    (("--scale", "ordinal:0:100"), "percentage"),
    (("--scale", "ordinal:0:20"), "ordinal:0:20"),
    (("--scale", "points:0:5:0.5"), "points:0:5"),
    (("--scale", "binary"), "binary"),
    (("--scale", "nominal", "--words", "follows,breaks,unclear"), "nominal"),
]


@pytest.mark.parametrize(("scale", "read_as"), SCALES)
def test_new_writes_a_file_that_loads_and_has_no_problem(
    judgecal: Run, workspace_dir: Path, scale: tuple[str, ...], read_as: str
) -> None:
    ran = judgecal(
        "signature", "new", "team/policy-2", *scale, "--inputs", "policy,customer_message,agent_reply"
    )
    assert ran.code == 0 and ran.out.splitlines()[-1] == "next: judgecal signature check team/policy-2"
    filled_in(workspace_dir / "signatures" / "team" / "policy-2.py")
    loaded = load_signature("team/policy-2", workspace=find_workspace(workspace_dir))
    assert str(loaded.judge_scale()) == read_as and loaded.cls.__name__ == "Policy2"
    assert loaded.inputs == ("policy", "customer_message", "agent_reply")
    assert (loaded.reasoning, loaded.verdict) == ("reasoning", "verdict")
    assert len(loaded.text.splitlines()) <= 60 and "judgecal" not in loaded.text
    checked = one_object(judgecal("signature", "check", "team/policy-2", "--json"))
    assert [one["problems"] for one in checked["signatures"]] == [[]]


def test_new_refuses_what_cannot_be_and_an_existing_file(judgecal: Run, workspace_dir: Path) -> None:
    ran = judgecal("signature", "new", "../x", "--scale", "nominal", "--inputs", "class,verdict,a,a")
    assert ran.code == 2
    for said in (
        "signature name '../x'",
        "needs its words",
        "--inputs 'class'",
        "--inputs verdict:",
        "a: is there twice",
    ):
        assert said in ran.err
    assert not (workspace_dir / "x.py").exists()
    assert judgecal("signature", "new", "mine", "--scale", "binary").code == 0
    again = judgecal("signature", "new", "mine", "--scale", "percentage")
    assert again.code == 2 and "is there already" in again.err and "--replace" in again.err
    found = one_object(judgecal("signature", "new", "mine", "--scale", "percentage", "--replace", "--json"))
    assert (found["scale"], found["unit"], found["inputs"]) == (
        "percentage",
        "item",
        ["question", "answer_under_test"],
    )


def test_list_says_what_each_is(judgecal: Run, workspace_dir: Path) -> None:
    judgecal("signature", "new", "passage", "--scale", "binary", "--inputs", "question,chunk")
    assert "still the template" in judgecal("signature", "list", "--json").out
    filled_in(workspace_dir / "signatures" / "passage.py")
    (workspace_dir / "signatures" / "broken.py").write_text("import dspy\nx =\n", encoding="utf-8")
    found = one_object(judgecal("signature", "list", "--json"))
    listed = {one["name"]: one for one in found["signatures"]}
    assert (listed["passage"]["unit"], listed["passage"]["scale"]) == ("chunk", "binary")
    assert listed["correctness_v3"]["scale"] == "percentage" and listed["answer_v1"]["scale"] is None
    assert "broken.py:2: no Python" in listed["broken"]["error"]
    ran = judgecal("signature", "list")
    assert ran.code == 0 and "cannot be loaded" in ran.out and "none: it answers" in ran.out
    assert ran.out.splitlines()[-1] == "next: judgecal signature check broken"
    assert max(map(len, ran.out.splitlines())) <= 80


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
    found = one_object(judgecal("signature", "check", "wrong", "--json"))
    (one,) = found["signatures"]
    told = {problem["where"].rpartition("wrong.py:")[2]: problem["message"] for problem in one["problems"]}
    assert one["usable"] and set(told) == {"2", "5", "7", "8", "11"}
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
    ran = judgecal("signature", "check", "one", "--json")
    assert ran.code == 2 and f"one.py:{line}: " in ran.err and says in ran.err
    (one,) = json.loads(ran.out)["signatures"]
    assert one["usable"] is False and any(says in problem["message"] for problem in one["problems"])


def test_a_judge_of_pairs_says_which_answer_is_better(judgecal: Run, workspace_dir: Path) -> None:
    inputs = ("--inputs", "question,answer_a,answer_b")
    assert judgecal("signature", "new", "better", "--scale", "nominal", *inputs).code == 0
    assert 'Literal["A", "tie", "B"]' in (workspace_dir / "signatures" / "better.py").read_text()


def test_check_says_what_items_of_a_set_lack(judgecal: Run, workspace_dir: Path) -> None:
    inputs = "question,contexts,policy,answer_under_test"
    judgecal("signature", "new", "grounded", "--scale", "nominal", "--words", "a,b,c", "--inputs", inputs)
    filled_in(workspace_dir / "signatures" / "grounded.py")
    found = one_object(judgecal("signature", "check", "grounded", "--gold", "starter", "--json"))
    (one,) = found["signatures"]
    lacking = {part["input"]: part["n_items"] for part in one["lacking"]}
    assert lacking == {"contexts": found["n_items"], "policy": found["n_items"]}
    assert ["share no order" in problem["message"] for problem in one["problems"]] == [True]
    ran = judgecal("signature", "check", "correctness_v3", "--gold", "starter")
    assert ran.code == 0 and ran.out.startswith("correctness_v3 has no problem.")
    assert "\nnext: judgecal score --signatures correctness_v3" in ran.out


def test_every_signature_that_is_shipped_is_sound(judgecal: Run) -> None:
    found = one_object(judgecal("signature", "check", "--json"))
    assert [one["name"] for one in found["signatures"] if one["problems"]] == []


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
    for argv in (["judges"], ["signature", "list"], ["report", "done"], ["report", "done", "--format", "html"],
                 ["report", "--all"], ["gold", "list"]):  # fmt: skip
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
