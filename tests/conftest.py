"""Shared fixtures. No test touches the home folder, the network or a real model."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from judgecal.workspace import Workspace
from tests.support.command import SHARED_DATA, Ran, fresh_workspace
from tests.support.every_command import every_command as every_command
from tests.support.server import Serve, running

# Who is started in the background, by a shell without job control, inherits that Ctrl-C is ignored, and so
# would every program that a test starts and then interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

MISSING = {
    "Chromium": "apt-get install chromium",
    "Ray": ".venv/bin/uv pip install ray",
    **{f"Python 3.{minor}": f".venv/bin/uv python install 3.{minor}" for minor in range(11, 15)},
}
"""What tests are skipped without, as their reasons name it, and the command that installs it."""


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say in a line for each missing thing how many tests it skipped, and what installs it."""
    skipped = Counter[tuple[str, str]]()
    for report in terminalreporter.stats.get("skipped", []):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        thing = next((thing for thing in MISSING if thing in reason), None)
        skipped[(f"no {thing}", f"to run them: {MISSING[thing]}") if thing else (reason, "")] += 1
    for (thing, command), n in sorted(skipped.items()):
        terminalreporter.write_line(
            f"{thing}: {n} test{'s' * (n > 1)} skipped{'; ' * bool(command)}{command}"
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test printed may hold half a character, which does not go from a worker to its master."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections
    ]
    return report


@pytest.fixture(autouse=True)
def _away_from_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store of replies goes to a temporary folder; no key, endpoint or proxy of the machine is seen."""
    monkeypatch.setenv("JUDGECAL_CACHE_DIR", str(tmp_path / "judgecal-cache"))
    monkeypatch.setattr("judgecal.engine.call_runner.takes_schema", {})
    for name in list(os.environ):
        if name.upper().endswith(("_API_KEY", "_API_BASE", "_BASE_URL", "_PROXY")):
            monkeypatch.delenv(name)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a model's server with a script; all of them stop with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda script: stack.enter_context(running(script))


@pytest.fixture
def shared_data() -> Path:
    """The public human-labelled data beside the checkout; skips with the reason where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the public human-labelled data is not beside this checkout (../shared/data)")
    return SHARED_DATA


@pytest.fixture
def workspace_dir(tmp_path: Path) -> Path:
    """A fresh workspace with the repository's signatures, suites and gold sets."""
    return fresh_workspace(tmp_path / "workspace")


@pytest.fixture
def workspace(workspace_dir: Path) -> Workspace:
    """The same, as what is asked of it."""
    return Workspace(workspace_dir, workspace_dir / "experiments")


@pytest.fixture
def judgecal(
    workspace_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Run a command line in this process, in a fresh workspace: `judgecal("score", "--json")`."""
    from judgecal.cli import run

    monkeypatch.chdir(workspace_dir)

    def call(*argv: str | Path) -> Ran:
        capsys.readouterr()
        words: Sequence[str] = [str(word) for word in argv]
        code = run(words)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    """A workspace without a set."""
    (tmp_path / "gold").mkdir()
    (tmp_path / "signatures").mkdir()
    return Workspace(tmp_path, tmp_path / "experiments")
