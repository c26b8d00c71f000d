"""What `--help` and `import judgecal` may load, and what the package says that it holds."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

import judgecal as package
from judgecal.cli.parser import loaded
from judgecal.commands import COMMANDS, GROUPS, TABLE, load
from tests.support.command import Run
from tests.support.every_command import RUNS

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


def test_what_is_not_there_is_refused_before_anything_heavy_is_loaded() -> None:
    argvs = [
        ["select", "nosuch"],
        ["judge", "no.csv", "--lock", "no.json", "-o", "x.csv"],
        ["gold", "sheet", "none.csv", "-o", "x"],
        ["score", "--gold", "nosuch"],
    ]
    ran = after(f"from judgecal.cli import run\nout.write(str([run(argv) for argv in {argvs}]))")
    assert (ran["loaded"], ran["out"]) == ([], "[2, 2, 2, 2]")


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """The help of the program (""), of its groups and of every command at 80 columns, with nothing heavy loaded."""
    names = ["", *GROUPS, *sorted(COMMANDS)]
    found = after(_HELP.format(argvs=[[*name.split(), "--help"] for name in names]))
    assert (found["code"], found["loaded"]) == (0, [])
    return dict(zip(names, str(found["out"]).split("\x00"), strict=False))


def test_the_first_help_lists_every_command_and_loads_none(helps: dict[str, str]) -> None:
    lines = helps[""].splitlines()
    assert [title for title in TABLE if f"{title}:" not in lines] == [] and "Commands:" not in lines
    missing = [name for name, row in COMMANDS.items() if f"  {name.ljust(11)}  {row.line}" not in lines]
    assert missing == [] and set(RUNS) == set(COMMANDS)
    for group in GROUPS:
        words = [line.split()[0] for line in helps[group].partition("Commands:\n")[2].splitlines() if line]
        assert words == [row.word for row in COMMANDS.values() if row.group == group]
    body = "from judgecal.cli import run; run(['--help']); run(['gold', '--help']); "
    body += (
        "assert not [name for name in sys.modules if name.endswith(('cli.gold', 'cli.agreement', 'command'))]"
    )
    subprocess.run([sys.executable, "-c", f"import sys; {body}"], check=True, capture_output=True)


def test_what_the_table_names_is_there_and_says_its_line() -> None:
    for name, row in COMMANDS.items():
        text = " ".join(loaded(name).help.split())
        assert row.line.endswith((".", "?")) and re.match(re.escape(row.line) + "(?= |$)", text), name
        assert all(callable(load(maker)) for maker in [*row.documents.values(), row.report] if maker), name


def test_every_help_fits_and_ends_with_the_example_that_the_tests_run(helps: dict[str, str]) -> None:
    for name, text in helps.items():
        assert [line for line in text.splitlines() if len(line) > 80] == [], name
        if name in COMMANDS:
            typed = text.partition("\n  Example:\n")[2].replace("\\\n", " ")
            example = shlex.split(COMMANDS[name].example)
            assert shlex.split(typed) == ["judgecal", *name.split(), *example]
            assert RUNS[name][: len(example)] == tuple(example)


def test_the_surface_is_22_commands_with_at_most_20_options_and_300_in_all() -> None:
    options = {
        name: [param for param in loaded(name).params if param.param_type_name == "option"]
        for name in COMMANDS
    }
    counts = {name: sum(param.name != "help" for param in params) for name, params in options.items()}
    assert len(COMMANDS) == 22
    assert {name: count for name, count in counts.items() if count > 20} == {}
    assert sum(counts.values()) <= 300


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("judge a.csv --question q", "write --col question=COLUMN"),
        ("gold import a.csv --gold-label g", "write --col gold=COLUMN"),
        ("retrieval --text-column 'a b'", "write --col text=COLUMN"),
        ("rate --context=c", "write --col contexts=COLUMN"),
        ("report three --html", "write --format html"),
        ("score --dev", "write --split dev"),
        ("optimize --gepa", "write --optimizer gepa"),
        ("score --judges a", "write --judge"),
        ("gold agreement starter", "type judgecal agreement"),
        ("import a.csv", "type judgecal gold import"),
        ("signature check a", "judgecal --help lists all"),
        ("nonsense", "judgecal --help lists all"),
    ],
)  # fmt: skip
def test_what_does_not_exist_is_answered_with_what_to_type(judgecal: Run, typed: str, meant: str) -> None:
    ran = judgecal(*shlex.split(typed))
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1) and ran.err.endswith(f": {meant}\n"), (
        ran.err
    )


def test_all_is_sorted_and_every_name_resolves() -> None:
    assert list(package.__all__) == sorted(package.__all__)
    assert all(getattr(package, name) is not None for name in package.__all__)
    assert set(package.__all__) <= set(dir(package))
