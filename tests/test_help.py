"""What `--help` and `import judgecal` may load, and what the package says that it holds."""

from __future__ import annotations

import functools
import json
import os
import resource
import shlex
import subprocess
import sys

import pytest
import typer

import judgecal as package
from judgecal.cli import app
from judgecal.cli.help import EXAMPLES, GROUPS, summary
from tests.support.every_command import RUNS, commands

HEAVY = ("dspy", "litellm", "sklearn", "datasets", "polars", "numpy", "scipy", "asyncio", "rich")
_AFTER = """
import contextlib, io, json, sys
code, out = 0, io.StringIO()
{body}
print(json.dumps({{"code": code, "loaded": sorted(name for name in {heavy!r} if name in sys.modules),
                   "out": out.getvalue()}}))
"""
_HELP = """
from judgecal.cli import run
with contextlib.redirect_stdout(out):
    for argv in {argvs!r}:
        code = max(code, run(argv))
        out.write("\\0")
"""


def after(body: str) -> dict[str, object]:
    """What a fresh interpreter has loaded after some statements."""
    script = _AFTER.format(body=body, heavy=HEAVY)
    env = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env)
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("statement", ["import judgecal", "import judgecal.cli"])
def test_import_loads_nothing_heavy(statement: str) -> None:
    assert after(statement)["loaded"] == []


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """The help of the program ("") and of every command, at 80 columns, in one process that loads nothing
    heavy."""
    names = ["", "gold", "signature", *sorted(commands())]
    found = after(_HELP.format(argvs=[[*name.split(), "--help"] for name in names]))
    assert (found["code"], found["loaded"]) == (0, [])
    return dict(zip(names, str(found["out"]).split("\x00"), strict=False))


def test_every_command_stands_in_a_group_with_its_whole_summary(helps: dict[str, str]) -> None:
    assert set(EXAMPLES) == commands(), "a command has no group and example in judgecal/cli/help.py"
    lines = helps[""].splitlines()
    assert [title for title in GROUPS if f"{title}:" not in lines] == [] and "Commands:" not in lines
    top = typer.main.get_command(app)
    for name in commands():
        command = functools.reduce(lambda one, word: vars(one)["commands"][word], name.split(), top)
        said = summary(command)
        assert said.endswith((".", "?")) and f"  {name.ljust(15)}  {said}" in lines, name
    assert [line for line in helps["gold"].splitlines()[1:] if line.endswith("...")] == []


def test_every_help_fits_and_ends_with_the_example_that_the_tests_run(helps: dict[str, str]) -> None:
    for name, text in helps.items():
        assert [line for line in text.splitlines() if len(line) > 80] == [], name
        if name in EXAMPLES:
            said = text.partition("\n  Example:\n")[2].replace("\\\n", " ")
            assert shlex.split(said) == ["judgecal", *name.split(), *shlex.split(EXAMPLES[name])]
            assert RUNS[name][: len(shlex.split(EXAMPLES[name]))] == tuple(shlex.split(EXAMPLES[name]))


def test_help_is_quick() -> None:
    """The target is 0.3 s on a free machine; CPU time alone counts here, for the machine may be busy."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", "from judgecal.cli import run; run(['--help'])"],
            capture_output=True,
            check=True,
        )
        after_it = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after_it.ru_utime + after_it.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < 1.0


def test_all_is_sorted_and_every_name_resolves() -> None:
    assert list(package.__all__) == sorted(package.__all__)
    assert all(getattr(package, name) is not None for name in package.__all__)
    assert set(package.__all__) <= set(dir(package))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'scores'"):
        package.scores  # noqa: B018
