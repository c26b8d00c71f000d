"""Settings of local judges: in the name, in the fingerprint, and refused where they cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgecal.errors import InputError
from judgecal.judges import judge_named
from judgecal.judges.function import PythonJudge, load_local
from judgecal.judges.protocol import JudgeName
from judgecal.workspace import Workspace, find_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    for name in ("signatures", "gold", "experiments"):
        (tmp_path / name).mkdir()
    return find_workspace(tmp_path)


@pytest.mark.parametrize(
    ("text", "settings", "printed"),
    [
        ("a(b=0.2)@local", {"b": "0.2"}, None),
        ("a()@local", {}, "a@local"),
        ("a( z = 1 , b=phrase)@local", {"b": "phrase", "z": "1"}, "a(b=phrase,z=1)@local"),
        ('a(b="x, (y) @ z")@local', {"b": "x, (y) @ z"}, 'a(b="x, (y) \\u0040 z")@local'),
        ('a(b="Żółw")@local', {"b": "Żółw"}, "a(b=Żółw)@local"),
        ('a(b="")@local', {"b": ""}, None),
        ("g(b=-1.5)@local", {"b": "-1.5"}, None),
    ],
)
def test_a_name_carries_its_settings_in_one_form(
    text: str, settings: dict[str, str], printed: str | None
) -> None:
    name = JudgeName.parse(text)
    assert dict(name.settings) == settings
    assert str(name) == (printed or text) and JudgeName.parse(str(name)) == name
    assert str(name).partition("@")[2] == "local"


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


@pytest.mark.parametrize(
    ("judge", "settings"),
    [
        ("context_precision", ["overlap=0.1", "against=reference (answer)", "k=all"]),
        ("hallucination", ["share=0", "rest=false"]),
        ("safe", ["words=badwords.txt", "lemmas=-"]),
    ],
)
def test_keyword_only_parameters_are_settings(judge: str, settings: list[str]) -> None:
    assert [str(setting) for setting in load_local(judge).settings] == settings


def test_settings_are_part_of_the_fingerprint_and_defaults_are_not() -> None:
    plain, same = (
        judge_named("context_precision@local"),
        judge_named("context_precision(overlap=0.10,k=all)@local"),
    )
    assert (same.name, same.fingerprint) == ("context_precision@local", plain.fingerprint)
    other = judge_named("context_precision(overlap=0.250)@local")
    assert other.name == "context_precision(overlap=0.25)@local" and other.fingerprint != plain.fingerprint
    assert (
        judge_named("context_precision(overlap=.25,against=Reference)@local").fingerprint == other.fingerprint
    )
    assert judge_named("context_precision(k=25)@local").fingerprint != other.fingerprint


def test_settings_that_cannot_be_are_one_message_with_the_nearest() -> None:
    with pytest.raises(InputError) as error:
        judge_named("context_precision(overlp=1,against=answers,overlap=x)@local")
    name = "context_precision(against=answers,overlap=x,overlp=1)@local"
    assert error.value.problems == (
        f"{name}: unknown value of against 'answers': did you mean answer?",
        f"{name}: overlap must be a number from 0 to 1, found 'x'",
        f"{name}: unknown setting 'overlp': did you mean overlap?",
    )
    with pytest.raises(InputError, match="unknown value of rest 'maybe': known: true, false"):
        judge_named("hallucination(rest=maybe)@local")
    for share in ("2", "nan", "half", ""):
        with pytest.raises(InputError, match="share must be a number from 0 to 1, found"):
            judge_named(f"hallucination(share={share})@local")
    with pytest.raises(InputError, match="unknown setting 'overlap': known: none"):
        judge_named("exact_match(overlap=0.2)@local")


def test_a_locked_function_is_held_against_its_lock_before_it_is_run(workspace: Workspace) -> None:
    file, name = workspace.root / "checks.py", JudgeName.parse("checks.py:short@python")
    file.write_text("def short(answer: str) -> bool:\n    return len(answer) < 9\n", encoding="utf-8")
    locked = judge_named(name, workspace=workspace).fingerprint
    assert PythonJudge(name, workspace=workspace, locked=locked).fingerprint == locked
    file.write_text("1 / 0\n", encoding="utf-8")
    with pytest.raises(InputError, match="its code has changed since it was locked"):
        PythonJudge(name, workspace=workspace, locked=locked)
