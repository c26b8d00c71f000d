"""What `--help` and `import judgecal` may load, and what the package says that it holds."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

import judgecal as package

HEAVY = ("dspy", "litellm", "sklearn", "datasets", "polars", "numpy", "scipy")
COMMANDS = (
    "init",
    "models",
    "judges",
    "gold",
    "score",
    "optimize",
    "agreement",
    "compare",
    "retrieval",
    "answer",
    "rules",
    "select",
    "gate",
    "judge",
    "migrate",
    "report",
)

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
"""


def after(body: str) -> dict[str, object]:
    """What a fresh interpreter has loaded after some statements."""
    script = _AFTER.format(body=body, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("statement", ["import judgecal", "import judgecal.cli"])
def test_import_loads_nothing_heavy(statement: str) -> None:
    assert after(statement)["loaded"] == []


def test_help_loads_nothing_heavy() -> None:
    argvs = [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]
    argvs += [
        ["gold", name, "--help"] for name in ("list", "check", "agreement", "import", "sheet", "label", "adjudicate")
    ]
    found = after(_HELP.format(argvs=argvs))
    assert (found["code"], found["loaded"]) == (0, [])


def test_help_names_every_command() -> None:
    shown = str(after(_HELP.format(argvs=[["--help"]]))["out"])
    assert [name for name in COMMANDS if f"  {name} " not in shown] == []


def test_help_is_quick() -> None:
    """The target is 0.3 s on a free machine; CPU time alone counts here, for the machine may be busy."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", "from judgecal.cli import run; run(['--help'])"], capture_output=True, check=True
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
