"""The completion of typer: commands and options, and the scripts of the shells."""

from __future__ import annotations

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
