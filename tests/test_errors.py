"""Messages on stderr: what they quote is shown and acts on nothing."""

from __future__ import annotations

import pytest

from judgecal.errors import InputError, by_cause, notice, refuse, visible


def test_unseen_characters_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert visible("a\tb\nc") == "a\tb\nc"
    assert visible("\x1b[31m\x7f\x85\ud800\ufffe\u202e") == "␛[31m␡[U+0085][U+D800][U+FFFE][U+202E]"
    notice("judgecal: \x1b]0;title\x07")
    assert capsys.readouterr().err == "judgecal: ␛]0;title␇\n"


def test_problems_of_one_cause_are_one_message() -> None:
    bad = [f"t.csv:{line}: column 'label': {word!r} is no number: mend it" for line, word in enumerate("abcdeba", 2)]
    same = [f"t.csv:row {row}: column 'q': empty: fill it in" for row in (3, 7)]
    ragged = [f"t.csv:{line}: {n} cells where the header names 2 columns" for line, n in ((4, 1), (9, 3))]
    other = "t.csv:8: column 'score %': 'a' is no number: mend it"
    assert by_cause([*bad, *same, "no file", other, *ragged, "no file"]) == [
        "t.csv:2: column 'label': 'a' is no number: mend it (likewise lines 3, 4, 5 and 3 more: 'b', 'c', 'd' ...)",
        "t.csv: rows 3 and 7: column 'q': empty: fill it in",
        "no file",
        other,
        "t.csv:4: 1 cells where the header names 2 columns (likewise line 9: 3)",
    ]
    long = [f"t.csv:{line}: the question is empty" for line in (3, 7, *range(12, 253))]
    with pytest.raises(InputError, match=r"^t\.csv: lines 3, 7, 12 and 240 more: the question is empty$"):
        refuse(long)
    twice = [f"t.csv:3: column 'c': context {n} must be a text" for n in (1, 2)]
    assert by_cause(twice) == ["t.csv:3: column 'c': context 1 must be a text (likewise 2)"]
    assert by_cause(by_cause([*bad, *same])) == by_cause([*bad, *same])
