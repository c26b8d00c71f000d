"""The workspace: how it is found, what init writes, and TOML in and out."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from judgecal.artefacts import json_object, read_toml, toml_text, validated
from judgecal.errors import InputError, listed, refuse
from judgecal.workspace import (
    Workspace,
    find_workspace,
    init_workspace,
    name_problem,
    replacing,
    starter_root,
    write_text,
)


def make(folder: Path) -> Path:
    for name in ("signatures", "gold"):
        (folder / name).mkdir(parents=True)
    return folder


# --- which one it is ----------------------------------------------------------------------------------------


def test_the_explicit_one_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = make(tmp_path / "here"), make(tmp_path / "there")
    monkeypatch.chdir(here)
    assert find_workspace(there) == Workspace(there, there / "experiments")


def test_the_current_folder_goes_before_the_starter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(make(tmp_path / "here"))
    found = find_workspace()
    assert (found.root, found.is_starter) == (Path.cwd(), False)
    found.require_writable("gold import")


@pytest.mark.parametrize("half", ["signatures", "gold"])
def test_half_a_workspace_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half: str) -> None:
    (tmp_path / half).mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_workspace().is_starter
    with pytest.raises(InputError, match=r"is not a workspace .* run `judgecal init"):
        find_workspace(tmp_path)


def test_the_starter_is_read_only_and_results_go_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = find_workspace()
    assert (found.root, found.experiments) == (starter_root(), tmp_path / "experiments")
    with pytest.raises(
        InputError, match=r"gold import needs a workspace of your own.*run `judgecal init DIR`"
    ):
        found.require_writable("gold import")


# --- init ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exists", [False, True])
def test_init_fills_a_new_or_empty_folder(tmp_path: Path, exists: bool) -> None:
    target = tmp_path / "deep" / "mine"
    if exists:
        target.mkdir(parents=True)
    made = init_workspace(target)
    assert find_workspace(target) == made
    assert (made.signatures / "correctness_v3.py").is_file()
    assert (made.gold / "starter" / "items.jsonl").is_file()
    assert (made.experiments / "README.md").is_file()
    assert not list(target.rglob("__pycache__"))
    assert "models" not in read_toml(made.config_file)  # the examples are commented out


def test_init_leaves_a_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    for target in (tmp_path, tmp_path / "note.txt"):
        with pytest.raises(InputError, match="is not empty: choose a new folder"):
            init_workspace(target)
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


# --- TOML ---------------------------------------------------------------------------------------------------

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_PLAIN = st.one_of(_TEXTS, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.booleans())
_VALUES = st.recursive(_PLAIN, lambda inner: st.lists(inner, max_size=3), max_leaves=6)
_TABLES = st.recursive(
    st.dictionaries(_TEXTS, _VALUES, max_size=4),
    lambda inner: st.dictionaries(_TEXTS, _VALUES | inner | st.lists(inner, max_size=2), max_size=4),
    max_leaves=8,
)


@given(_TABLES)
@settings(max_examples=200, deadline=None)
def test_a_table_comes_back_from_toml(table: dict[str, Any]) -> None:
    assert tomllib.loads(toml_text(table)) == table


@pytest.mark.parametrize("value", [object(), [None], {1, 2}])
def test_a_value_without_a_toml_form_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="has no TOML form"):
        toml_text({"a": value})


# file -> what the message says
WRONG: list[tuple[bytes, str]] = [
    (b"a = 1\nb = \n", r"x\.toml: .*line 2"),
    (b"a = 1\na = 2\n", r"x\.toml: .*line 2"),
    (b"a = 1\n\xff\n", r"x\.toml:2: not UTF-8 \(byte 6\)"),
    (b"schema = 2\n", r"x\.toml: schema 2 is newer than this judgecal reads \(1\): update judgecal"),
    (b"schema = 0\n", "schema must be a whole number from 1, found 0"),
    (b"schema = true\n", "schema must be a whole number from 1, found True"),
    (b"schema = '1'\n", "schema must be a whole number from 1"),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_a_file_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, text: bytes, says: str) -> None:
    (tmp_path / "x.toml").write_bytes(text)
    with pytest.raises(InputError, match=says):
        read_toml(tmp_path / "x.toml")


# --- schemas, drafts, lists ---------------------------------------------------------------------------------


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    weight: float = 1.0
    names: list[str] = []


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    title: str
    kind: Literal["one", "two"] = "one"
    inner: Inner | None = None
    parts: dict[str, Inner] = {}


@dataclass(frozen=True)
class Plain:
    n: int
    low: float | None = None


def test_every_problem_of_a_table_is_told_with_its_place() -> None:
    table = {
        "kind": "three",
        "inner": {"wieght": 1, "names": "x"},
        "parts": {"a": {"weight": True, "nmes": 1}},
        "tittle": "x",
    }
    with pytest.raises(InputError) as error:
        validated(Outer, table, lambda keys: f"f.toml:{len(keys)}")
    assert sorted(error.value.problems) == [
        "f.toml:1: kind must be one of one, two, found 'three'",
        "f.toml:1: no title: add it",
        "f.toml:1: unknown key 'tittle': did you mean title?",
        "f.toml:2: inner.names: Input should be a valid list, found 'x'",
        "f.toml:2: unknown key 'wieght': did you mean weight?",
        "f.toml:3: parts.a.weight: Input should be a valid number, found True",
        "f.toml:3: unknown key 'nmes': did you mean names?",
    ]


def test_a_table_as_its_schema_has_it() -> None:
    found = validated(Outer, {"schema": 1, "title": "x", "parts": {"a": {"weight": 2}}}, "f")
    assert (found.title, found.parts["a"].weight) == ("x", 2.0)
    assert validated(Plain, {"n": 3, "low": None}, "f") == Plain(3)
    with pytest.raises(InputError, match=r"f: n: Input should be a valid integer, .* found 2.5"):
        validated(Plain, {"n": 2.5}, "f")
    with pytest.raises(InputError, match="f: schema 2 is newer"):
        validated(Plain, {"schema": 2, "n": 3}, "f")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    write_text(path, "old\n")
    with pytest.raises(ZeroDivisionError), replacing(path) as draft:
        draft.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old\n" and [one.name for one in tmp_path.iterdir()] == ["f.txt"]


def test_lists_are_cut_and_the_rest_is_counted() -> None:
    assert listed(["a", "b"]) == "a, b" and listed([*"abcde"], 3) == "a, b, c and 2 more"
    refuse([])
    with pytest.raises(InputError, match=r"^0\n1\n\.\.\. and 1,198 more problems$"):
        refuse([str(n) for n in range(1200)], most=2)


# --- drafts -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_link_that_waits_for_a_draft_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr("secrets.token_hex", lambda _: "foreseen")
    (tmp_path / ".file.foreseen.draft").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_text(tmp_path / "file", "theirs")
    assert victim.read_text() == "mine" and not (tmp_path / "file").exists()


def test_no_two_drafts_have_one_name_and_none_is_left(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 240)
    with replacing(path) as one, replacing(path) as other:
        assert one != other and one.parent == other.parent == tmp_path
        one.write_text("1"), other.write_text("2")
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [(path.name, "1")]


@pytest.mark.skipif(sys.platform == "win32", reason="modes are of POSIX")
def test_a_written_file_has_the_usual_mode(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    write_text(tmp_path / "file", "x")
    assert (tmp_path / "file").stat().st_mode == usual.stat().st_mode


# --- JSON ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no JSON"),
        (b"[]", "found a JSON list"),
        (b"null", "found a JSON NoneType"),
        (b'{"a": NaN}', "no JSON: unexpected character"),
        (b'{"a": -Infinity}', "no JSON: no digit"),
        (b'{"a": 1e400}', "no JSON: number is infinity"),
        (b'{"a": 1' + b"0" * 400 + b"}", "no JSON: number is infinity"),
        (b'{"a": "\\ud800"}', "no JSON: no low surrogate"),
        (b'{"a": "\xff"}', "is not valid UTF-8"),
        (b'\xef\xbb\xbf{"a": 1}', "no JSON"),
        (b'{"a": ' + b"[" * 100_000, "no JSON: depth limit"),
        (b'{"a": "\0"}', "no JSON"),
    ],
)
def test_json_that_is_no_object_of_ours(data: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        json_object(data, "w")
    assert json_object(b'{"a": [1, 2.5, "\\u00fc", null]}', "w") == {"a": [1, 2.5, "\u00fc", None]}


# --- names that a file may have -----------------------------------------------------------------------------


NOWHERE = (
    *tuple('<>:"/\\|?*'),
    *("a:b", "con", "CON", "Nul.txt", "aux", "com1", "LPT9.log", "", ".", "..", ".a", "a.", "a "),
    *("a\0", "a\nb", "\udcff", "x" * 151),
)
EVERYWHERE = ("a", "score-starter-0a1b2c3d", "console", "nul-model", "com10", "überall ok", "a.b", "_a")


@pytest.mark.parametrize("name", NOWHERE)
def test_simulated_windows_names_that_no_file_may_have(name: str) -> None:
    assert name_problem(name) is not None


@pytest.mark.parametrize("name", EVERYWHERE)
def test_names_that_every_system_takes(name: str) -> None:
    assert name_problem(name) is None
