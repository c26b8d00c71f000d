"""Messages on stderr: what they quote is shown and acts on nothing."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest

from judgecal.errors import not_installed, notice, visible
from tests.support.command import ROOT


def test_unseen_characters_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert visible("a\tb\nc") == "a\tb\nc"
    assert visible("\x1b[31m\x7f\x85\ud800\ufffe\u202e") == "␛[31m␡[U+0085][U+D800][U+FFFE][U+202E]"
    notice("judgecal: \x1b]0;title\x07")
    assert capsys.readouterr().err == "judgecal: ␛]0;title␇\n"


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
