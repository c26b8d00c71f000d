"""Messages on stderr: what they quote is shown and acts on nothing."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest

from judgecal.errors import InputError, by_cause, not_installed, notice, refuse, visible
from tests.support.command import ROOT


def test_unseen_characters_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert visible("a\tb\nc") == "a\tb\nc"
    assert visible("\x1b[31m\x7f\x85\ud800\ufffe\u202e") == "␛[31m␡[U+0085][U+D800][U+FFFE][U+202E]"
    notice("judgecal: \x1b]0;title\x07")
    assert capsys.readouterr().err == "judgecal: ␛]0;title␇\n"


def test_problems_of_one_cause_are_one_message() -> None:
    bad = [
        f"t.csv:{line}: column 'label': {word!r} is not a number: fix it"
        for line, word in enumerate("abcdeba", 2)
    ]
    same = [f"t.csv:row {row}: column 'q': empty: fill it in" for row in (3, 7)]
    ragged = [f"t.csv:{line}: {n} cells where the header names 2 columns" for line, n in ((4, 1), (9, 3))]
    other = "t.csv:8: column 'score %': 'a' is not a number: fix it"
    assert by_cause([*bad, *same, "no file", other, *ragged, "no file"]) == [
        "t.csv:2: column 'label': 'a' is not a number: fix it (likewise line 3, line 4, line 5 and 3 more)",
        "t.csv:row 3: column 'q': empty: fill it in (likewise row 7)",
        "no file",
        other,
        "t.csv:4: 1 cells where the header names 2 columns (likewise line 9)",
    ]
    long = [f"t.csv:{line}: the question is empty" for line in (3, 7, *range(12, 253))]
    with pytest.raises(
        InputError, match=r"^t\.csv:3: the question is empty \(likewise line 7, .* and 239 more\)$"
    ):
        refuse(long)
    twice = [f"t.csv:3: column 'c': context {n} must be a text" for n in (1, 2)]
    assert by_cause(twice) == twice[:1]
    assert by_cause(by_cause([*bad, *same])) == by_cause([*bad, *same])


def test_what_is_not_installed_is_named_with_the_line_that_installs_it() -> None:
    assert str(not_installed("x needs", "mlflow>=3.1", "mlflow", instead="do without")) == (
        "x needs mlflow>=3.1, which is not installed: pip install 'mlflow>=3.1', or in a checkout of "
        "judgecal pip install '.[mlflow]'; or do without"
    )


def test_every_extra_is_named_where_it_is_missed() -> None:
    """Each extra of pyproject.toml stands in a message, and each message names an extra that is there."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    named = {"lemmas"}  # a judge's file names its setting, which is the extra's name
    for path in (ROOT / "judgecal").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "not_installed":
                package, extra = node.args[1:3]
                if isinstance(extra, ast.Constant) and isinstance(package, ast.Constant):
                    named.add(extra.value)
                    assert any(
                        one.startswith(re.split("[<>=]", package.value)[0]) for one in extras[extra.value]
                    )
    assert named == set(extras)
