"""What Tab gives: the protocol that the scripts for bash, zsh and fish speak, and that it loads nothing
heavy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from judgecal.cli import parser, run
from judgecal.goldset import list_gold
from judgecal.judges.function import local_judges
from judgecal.judges.suite import list_suites
from judgecal.models import load_catalogue
from judgecal.signatures import list_signatures
from judgecal.workspace import Workspace, init_workspace


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace to stand in, with an experiment and a lock."""
    workspace = init_workspace(tmp_path / "work")
    folder = workspace.experiments / "three"
    folder.mkdir(parents=True)
    (folder / "experiment.toml").write_text('judges = [{ judge = "wer@local" }, { judge = "a@gpt-4o" }]\n')
    (workspace.root / "my.lock.json").write_text("{}")
    monkeypatch.chdir(workspace.root)
    return workspace


def bash(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """What bash is told at the end of a line."""
    monkeypatch.setenv("_JUDGECAL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(["judgecal", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    capsys.readouterr()
    assert run([]) == 0
    return capsys.readouterr().out.split()


def test_names_of_the_workspace_are_completed(
    here: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*words: str) -> list[str]:
        return bash(monkeypatch, capsys, *words)

    assert told("gold", "agreement", "st") == told("score", "--gold", "st") == ["starter"]
    assert told("report", "") == ["three"]
    assert told("compare", "three", "") == ["a@gpt-4o", "wer@local"]
    assert told("gate", "--lock", "") == ["my.lock.json"]
    assert told("judge", "f.csv", "--suite", "mo") == ["mosaic"]
    assert told("signature", "check", "rag/f") == ["rag/faithfulness"]
    assert told("score", "--signatures", "correctness_v1,rag/f") == ["correctness_v1,rag/faithfulness"]
    assert told("score", "--models", "embedded,gpt-4o-") == ["embedded,gpt-4o-mini"]
    assert told("score", "--judge", "correctness_v3@gpt-4o-") == ["correctness_v3@gpt-4o-mini"]
    assert "correctness_v3@embedded" in told("migrate", "--to", "correctness_v3")
    assert told("gate", "--budget-u") == ["--budget-usd"]
    assert told("gold", "adj") == ["adjudicate"]
    assert told("judge", "ans") == []  # the shell completes files itself


@pytest.mark.parametrize(
    ("shell", "answer"),
    [("zsh", "_arguments '*: :((\"starter\"))'"), ("fish", "starter"), ("bash", "starter")],
)
def test_each_shell_is_answered_in_its_own_words(
    here: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    shell: str,
    answer: str,
) -> None:
    line = "judgecal score --gold st"
    monkeypatch.setenv("_JUDGECAL_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("COMP_WORDS", line.replace(" ", "\n"))
    monkeypatch.setenv("COMP_CWORD", "3")
    assert run([]) == 0
    assert capsys.readouterr().out.strip() == answer


def test_a_workspace_that_cannot_be_read_completes_nothing(
    here: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here.root / "judgecal.toml").write_text("models = 3")
    (here.experiments / "three" / "experiment.toml").write_text("[")
    assert bash(monkeypatch, capsys, "score", "--models", "") == []
    assert bash(monkeypatch, capsys, "compare", "three", "") == []
    assert bash(monkeypatch, capsys, "--workspace", "nowhere", "score", "--gold", "") == []


def test_the_names_are_those_that_the_commands_know(here: Workspace) -> None:
    (here.signatures / "_hidden.py").write_text("")
    (here.gold / "empty").mkdir()
    assert sorted(parser.signatures(here)) == list_signatures(here)
    assert sorted(parser.gold_sets(here)) == list_gold(here)
    assert sorted(parser.suites(here)) == list_suites(here)
    assert set(parser.models(here)) == set(load_catalogue(here).specs)
    assert sorted(parser.local_judges(here)) == sorted(f"{name}@local" for name in local_judges())


def test_a_line_is_completed_without_loading_anything_heavy(here: Workspace) -> None:
    script = (
        "import os, sys; from judgecal.cli import run; code = run([])\n"
        "heavy = {'dspy', 'litellm', 'sklearn', 'datasets', 'polars', 'numpy', 'scipy'} & set(sys.modules)\n"
        "sys.exit(code or len(heavy))"
    )
    asked = {
        "_JUDGECAL_COMPLETE": "complete_bash",
        "COMP_WORDS": "judgecal\nscore\n--judge\nw",
        "COMP_CWORD": "3",
    }
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "wer@local\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_shown(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """typer asks which shell it is called from."""
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: shell)
    assert run(["--show-completion"]) == 0
    assert "_JUDGECAL_COMPLETE=complete_" + shell in capsys.readouterr().out


def test_the_script_is_installed_below_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("typer._completion_shared._get_shell_name", lambda: "bash")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert run(["--install-completion"]) == 0
    assert "bash completion installed in" in capsys.readouterr().out
    assert "judgecal.sh" in (tmp_path / ".bashrc").read_text()
