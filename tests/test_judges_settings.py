"""Settings of judges that are functions: in the name, in the fingerprint, and refused where they cannot
be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judgecal.errors import InputError
from judgecal.judges import judge_named
from judgecal.judges.function import PythonJudge, load_function
from judgecal.judges.protocol import JudgeName
from judgecal.records import Item
from judgecal.workspace import Workspace, find_workspace

ITEM = Item("i", "g", "q?", "a longer answer")
SHORT = '''"""Whether an answer is short."""

from typing import Annotated, Literal


def short(
    answer: str,
    note: str = "",
    *,
    share: Annotated[float, (0.0, 1.0)] = 0.5,
    words: int = 2,
    match: Literal["substring", "phrase"] = "substring",
    strict: bool = False,
    said: str = "",
    other: str | None = None,
) -> tuple[bool, str]:
    """Short by the number of words."""
    return len(answer.split()) <= words, f"{share} {words} {match} {strict} {said} {other}"
'''


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    for name in ("signatures", "gold", "experiments"):
        (tmp_path / name).mkdir()
    (tmp_path / "checks.py").write_text(SHORT, encoding="utf-8")
    return find_workspace(tmp_path)


def short(workspace: Workspace, settings: str = "") -> Any:
    return judge_named(f"checks.py:short{settings}@python", workspace=workspace)


@pytest.mark.parametrize(
    ("text", "settings", "printed"),
    [
        ("a(b=0.2)@local", {"b": "0.2"}, None),
        ("a()@local", {}, "a@local"),
        ("a( z = 1 , b=phrase)@local", {"b": "phrase", "z": "1"}, "a(b=phrase,z=1)@local"),
        ('a(b="x, (y) @ z")@local', {"b": "x, (y) @ z"}, 'a(b="x, (y) \\u0040 z")@local'),
        ('a(b="Żółw")@local', {"b": "Żółw"}, "a(b=Żółw)@local"),
        ('a(b="")@local', {"b": ""}, None),
        ("f.py:g(b=-1.5)@python", {"b": "-1.5"}, None),
    ],
)
def test_a_name_carries_its_settings_in_one_form(
    text: str, settings: dict[str, str], printed: str | None
) -> None:
    name = JudgeName.parse(text)
    assert dict(name.settings) == settings
    assert str(name) == (printed or text) and JudgeName.parse(str(name)) == name
    assert str(name).partition("@")[2] in ("local", "python")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a(b)@local", "write its settings as"),
        ("a(b=1 c=2,=)@local", "write its settings as"),
        ("a(b=1,b=2)@local", "the setting b is given twice"),
        (r'a(b="\q")@local', "is not a text in quotes"),
    ],
)
def test_settings_that_cannot_be_read_are_said(text: str, says: str) -> None:
    assert JudgeName.read(text) is None
    with pytest.raises(InputError, match=says):
        JudgeName.parse(text)


def test_a_name_of_a_million_brackets_is_read_at_once() -> None:
    assert JudgeName.read("a(" * 5_000 + "@local") is not None
    assert JudgeName.read("a(" + "b" * 1_000_000 + "@local") is not None


def test_keyword_only_parameters_with_a_default_are_settings(workspace: Workspace) -> None:
    judge = short(workspace)
    assert judge.inputs == ("answer",)
    assert [str(one) for one in load_function(workspace.root / "checks.py", "short", text=SHORT).settings] == [
        "share=0.5", "words=2", "match=substring (phrase)", "strict=false", "said=-",
    ]  # fmt: skip
    assert judge.verdict(ITEM).verdict == 0.0
    judge = short(workspace, '(words=3,share=1,match=phrase,strict=True,said="a b")')
    reading = judge.verdict(replace(ITEM, fields={"other": "x"}))
    assert (reading.verdict, reading.reasoning) == (1.0, "1.0 3 phrase True a b x")


def test_settings_are_part_of_the_fingerprint_and_defaults_are_not(workspace: Workspace) -> None:
    plain = short(workspace)
    same = short(workspace, "(words=2,share=0.50)")
    assert (same.name, same.fingerprint) == ("checks.py:short@python", plain.fingerprint)
    other = short(workspace, "(share=0.250)")
    assert other.name == "checks.py:short(share=0.25)@python" and other.fingerprint != plain.fingerprint
    assert short(workspace, "(share=.25,match=substring)").fingerprint == other.fingerprint
    assert short(workspace, "(words=25)").fingerprint != other.fingerprint


def test_settings_that_cannot_be_are_one_message_with_the_nearest(workspace: Workspace) -> None:
    with pytest.raises(InputError) as error:
        short(workspace, "(shaer=1,words=2.5,match=phrases,strict=maybe)")
    name = "checks.py:short(match=phrases,shaer=1,strict=maybe,words=2.5)@python"
    assert error.value.problems == (
        f"{name}: unknown value of match 'phrases': did you mean phrase?",
        f"{name}: unknown setting 'shaer': did you mean share?",
        f"{name}: unknown value of strict 'maybe': known: true, false",
        f"{name}: words must be a whole number, found '2.5'",
    )
    for share in ("2", "nan", "half", ""):
        with pytest.raises(InputError, match="share must be a number from 0 to 1, found"):
            short(workspace, f"(share={share})")
    with pytest.raises(InputError, match="unknown setting 'overlap': known: none"):
        judge_named("exact_match(overlap=0.2)@local")


def test_a_locked_judge_with_settings_is_held_against_its_lock_before_it_is_run(workspace: Workspace) -> None:
    judge = short(workspace, "(words=3)")
    name = JudgeName.parse(judge.name)
    assert PythonJudge(name, workspace=workspace, locked=judge.fingerprint).fingerprint == judge.fingerprint
    (workspace.root / "checks.py").write_text("1 / 0\n", encoding="utf-8")
    with pytest.raises(InputError, match="its code has changed since it was locked"):
        PythonJudge(name, workspace=workspace, locked=judge.fingerprint)
