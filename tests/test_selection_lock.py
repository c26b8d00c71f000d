"""The lock: what it holds, that it runs alone, and that nothing of it changes unseen."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from judgecal.errors import InputError
from judgecal.goldset import load_gold
from judgecal.judges import PromptJudge, save_program
from judgecal.records import digest
from judgecal.selection.lock import load_lock, reply_fingerprint, write_lock
from judgecal.workspace import Workspace
from tests.support.locks import lock_of


@pytest.fixture
def workspace(workspace_dir: Path) -> Workspace:
    return Workspace(workspace_dir, workspace_dir / "experiments")


@pytest.fixture
def judge(workspace: Workspace) -> PromptJudge:
    return PromptJudge("correctness_v3@embedded", workspace=workspace)


def edited(path: Path, change: Callable[[dict[str, Any]], object], *, signed: bool = False) -> Path:
    """The file with a change to its object; `signed` puts the right hash to it."""
    table = json.loads(path.read_text(encoding="utf-8"))
    change(table)
    if signed:
        table["sha256"] = digest({key: value for key, value in table.items() if key != "sha256"})
    path.write_text(json.dumps(table), encoding="utf-8")
    return path


def test_what_is_written_is_read_back(tmp_path: Path, judge: PromptJudge) -> None:
    lock, path = lock_of(judge), tmp_path / "deep" / "judge.lock.json"
    write_lock(path, lock)
    assert load_lock(path) == lock
    first = path.read_bytes()
    write_lock(path, load_lock(path))
    assert path.read_bytes() == first and first.endswith(b"}\n")
    assert "ü" in first.decode() and [one.name for one in path.parent.iterdir()] == ["judge.lock.json"]


def test_a_lock_without_optional_parts(tmp_path: Path, judge: PromptJudge) -> None:
    lock = lock_of(judge, calibration=None, verdicts={})
    write_lock(tmp_path / "l", lock)
    assert load_lock(tmp_path / "l") == lock


def test_the_hash_is_that_of_the_rest(tmp_path: Path, judge: PromptJudge) -> None:
    write_lock(tmp_path / "l", lock_of(judge))
    table = json.loads((tmp_path / "l").read_text(encoding="utf-8"))
    assert table.pop("sha256") == digest(table)


@pytest.mark.parametrize(
    ("change", "signed", "message"),
    [
        (lambda t: t["signature"].update(text=t["signature"]["text"] + " "), False, "changed by hand"),
        (lambda t: t["verdicts"].update(a=86.0), False, "changed by hand"),
        (lambda t: t.update(sha256="0"), False, "changed by hand"),
        (lambda t: t.update(schema=2), True, "schema 2 is newer"),
        (lambda t: t.pop("margin"), True, "no margin"),
        (lambda t: t.update(margn=1), True, "did you mean margin"),
        (lambda t: t["model"].update(api_base="x"), True, "unknown key 'api_base'"),
        (lambda t: t["noise"].pop("n_calls"), True, "no noise.n_calls"),
        (lambda t: t.update(gold=[]), True, "gold must be a table"),
        (lambda t: t.update(agreement=[]), True, "agreement must be a table"),
    ],
)
def test_a_changed_lock_is_refused(
    tmp_path: Path, judge: PromptJudge, change: Callable[[dict[str, Any]], object], signed: bool, message: str
) -> None:
    path = tmp_path / "l"
    write_lock(path, lock_of(judge))
    with pytest.raises(InputError, match=message) as caught:
        load_lock(edited(path, change, signed=signed))
    assert len(caught.value.problems) == 1 and str(path) in str(caught.value)


@pytest.mark.parametrize(("text", "message"), [("{", "no JSON"), ("[]", "a JSON object"), (None, "no lock")])
def test_no_lock_at_all(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "l"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_lock(path)


def test_the_program_is_the_lock_s(workspace: Workspace, judge: PromptJudge) -> None:
    program = dspy.Predict(judge.signature.cls)
    fields = (*judge.signature.cls.input_fields, *judge.signature.cls.output_fields)
    program.demos = [dspy.Example(**dict.fromkeys(fields, "text"))]
    folder = workspace.experiments / "slug"
    folder.mkdir(parents=True)
    save_program(folder / "program.json", program, signature=judge.signature, trained_on=["g"])
    compiled = PromptJudge("correctness_v3@embedded#slug", workspace=workspace)
    content = json.loads((folder / "program.json").read_text(encoding="utf-8"))
    (folder / "program.json").unlink()
    again = lock_of(compiled, program=content).runnable(workspace)
    assert again.trained_on == {"g"} and again.name == "correctness_v3@embedded#slug"
    assert again.fingerprint == compiled.fingerprint != judge.fingerprint


def test_endpoint_and_price_are_the_workspace_s(workspace: Workspace) -> None:
    toml = '[models.m]\nid = "openai/x"\ntemperature = 0.0\napi_base = "http://127.0.0.1:{}/v1"\n'
    workspace.config_file.write_text(toml.format(1), encoding="utf-8")
    lock = lock_of(PromptJudge("correctness_v3@m", workspace=workspace))
    assert "127.0.0.1" not in json.dumps(lock.as_json())
    moved = toml.format(2) + "input_usd_per_1m = 1.0\n"
    workspace.config_file.write_text(moved, encoding="utf-8")
    again = lock.runnable(workspace)
    assert again.model.api_base == "http://127.0.0.1:2/v1" and reply_fingerprint(again) == lock.fingerprint


@pytest.mark.parametrize(
    ("now", "message"),
    [
        ('id = "openai/y"\ntemperature = 0.0', "id is 'openai/y' and was 'openai/x'"),
        ('id = "openai/x"\ntemperature = 0.5', "temperature is 0.5 and was 0.0"),
        ('id = "openai/x"\ntemperature = 0.0\nmax_tokens = 9', "max_tokens is 9 and was None"),
    ],
)
def test_another_model_under_the_alias_is_refused(workspace: Workspace, now: str, message: str) -> None:
    workspace.config_file.write_text('[models.m]\nid = "openai/x"\ntemperature = 0.0\n', encoding="utf-8")
    lock = lock_of(PromptJudge("correctness_v3@m", workspace=workspace))
    workspace.config_file.write_text(f"[models.m]\n{now}\n", encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        lock.runnable(workspace)
    assert len(caught.value.problems) == 1


def test_an_alias_that_is_gone_and_a_prompt_that_is_another(workspace: Workspace, judge: PromptJudge) -> None:
    gone = lock_of(judge, model=dataclasses.replace(lock_of(judge).model, alias="embeded"))
    with pytest.raises(InputError, match="did you mean embedded"):
        gone.runnable(workspace)
    with pytest.raises(InputError, match="another prompt"):
        lock_of(judge, fingerprint="0" * 16).runnable(workspace)


def test_the_gold_set_must_be_the_same(workspace: Workspace, judge: PromptJudge) -> None:
    gold = load_gold("starter", workspace=workspace)
    lock = lock_of(judge)
    with pytest.raises(InputError, match="was locked on starter"):
        lock.require_gold(gold)
    dataclasses.replace(lock, gold=dataclasses.replace(lock.gold, sha256=gold.sha256)).require_gold(gold)


def test_a_lock_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no lock here; judgecal select writes one"):
        load_lock(tmp_path / "judge.json")
    (tmp_path / "b.lock.json").write_text("{}")
    with pytest.raises(InputError, match=r"there is no lock here; did you mean .*/b\.lock\.json\?"):
        load_lock(tmp_path / "judge.json")
