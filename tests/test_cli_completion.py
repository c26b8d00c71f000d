"""The completion of typer: commands and options, and the scripts of the shells."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgecal.cli import run


@pytest.mark.parametrize(
    ("words", "answer"), [("judgecal gold lab", "label"), ("judgecal gate --budget-u", "--budget-usd")]
)
def test_commands_and_options_are_completed(
    words: str, answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_JUDGECAL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words.replace(" ", "\n"))
    monkeypatch.setenv("COMP_CWORD", "2")
    assert run([]) == 0
    assert capsys.readouterr().out.split() == [answer]


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
