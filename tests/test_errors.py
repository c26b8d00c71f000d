"""Messages on stderr: what they quote is shown and acts on nothing."""

from __future__ import annotations

import pytest

from judgecal.errors import notice, visible


def test_unseen_characters_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert visible("a\tb\nc") == "a\tb\nc"
    assert visible("\x1b[31m\x7f\x85\ud800\ufffe\u202e") == "␛[31m␡[U+0085][U+D800][U+FFFE][U+202E]"
    notice("judgecal: \x1b]0;title\x07")
    assert capsys.readouterr().err == "judgecal: ␛]0;title␇\n"
