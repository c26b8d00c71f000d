"""How a command ends: its exit code is its own, whatever breaks off, closes or fills up around it."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT, Ran, Run, journal

SECRET = "sk-0123456789abcdef"


def internal(ran: Ran) -> str:
    """The traceback of a command that ended in an internal error; it stands in a file of its owner's
    alone."""
    assert (ran.code, ran.out) == (70, "")
    assert ran.err.startswith("judgecal: an internal error") and "Traceback" not in ran.err
    path = Path(ran.err.partition("the traceback is in ")[2].partition(": please")[0])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text(encoding="utf-8")
    assert "Traceback (most recent call last)" in text
    return text


def breaking(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let every command that reads a gold set meet an error."""

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("judgecal.goldset.load_gold", fail)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("boom"),
        MemoryError(),
        RecursionError("too deep"),
        EOFError(),
        SystemExit(1),
        SystemExit(0),
        ExceptionGroup("several", [KeyError("a")]),
        AssertionError(),
    ],
    ids=repr,
)
def test_what_nobody_foresaw_ends_in_70(
    judgecal: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    breaking(monkeypatch, error)
    assert type(error).__name__ in internal(judgecal("score"))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EPIPE, errno.EACCES])
def test_what_the_system_refuses_ends_in_2(
    judgecal: Run, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    breaking(monkeypatch, OSError(number, os.strerror(number)))
    ran = judgecal("score")
    assert (ran.code, ran.out) == (2, "")
    assert os.strerror(number) in ran.err and ran.err.count("\n") == 1
    assert "is kept" not in ran.err, "nothing was judged yet"


def test_a_key_stands_in_no_traceback(
    judgecal: Run, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace_dir / "judgecal.toml").write_text('[models.m]\nid = "openai/m"\nkey_env = "MY_LLM"\n')
    monkeypatch.setenv("MY_LLM", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET[::-1])
    breaking(monkeypatch, ValueError(f"with {SECRET} and {SECRET[::-1]}\x1b[31m\njudgecal: all is well"))
    ran = judgecal("score")
    assert "with *** and ***" in internal(ran)
    assert SECRET not in ran.err and SECRET[::-1] not in ran.err
    assert "\x1b" not in ran.err and "\njudgecal: all is well" not in ran.err


def test_an_internal_error_names_what_is_kept(
    judgecal: Run, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("after the calls")

    monkeypatch.setattr("judgecal.report.judges.judges_document", fail)
    ran = judgecal("score", "--name", "run", "--limit", "20")
    internal(ran)
    assert "what was judged so far is kept in experiments/run/verdicts.parquet" in ran.err


def started(
    *argv: str,
    cwd: Path,
    stdin: Any = subprocess.DEVNULL,
    stdout: Any,
    stderr: Any = subprocess.PIPE,
    **given: Any,
) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "judgecal", *argv]
    return subprocess.Popen(command, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, **given)


@pytest.mark.parametrize(("argv", "code"), [(["models"], 0), (["--help"], 0), (["score", "--nonsense"], 2)])
def test_a_reader_that_goes_away_ends_nothing(workspace_dir: Path, argv: list[str], code: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = started(*argv, cwd=workspace_dir, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert (b"Traceback" in err, b"BrokenPipe" in err, b"Exception ignored" in err) == (False, False, False)
    assert code == 2 or err == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_result_that_does_not_fit_is_said(workspace_dir: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        process = started("models", cwd=workspace_dir, stdout=full)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, b"could not write the result to stdout: No space left" in err) == (
            2,
            True,
        )
        assert b"Exception ignored" not in err
        silent = started("score", "--nonsense", cwd=workspace_dir, stdout=full, stderr=full)
        assert silent.wait(60) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are closed the POSIX way")
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_descriptors(workspace_dir: Path, closed: tuple[int, ...]) -> None:
    """No file of ours takes the number of a closed stdout, so that nothing is printed into it."""

    def close() -> None:
        for number in closed:
            os.close(number)

    argv = ("score", "--limit", "4", "--name", "run")
    process = started(
        *argv, cwd=workspace_dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=close
    )
    assert process.wait(120) == 0
    assert len(journal(workspace_dir, "run")) == 4


@pytest.mark.parametrize(
    ("decision", "code"), [("pass", 0), ("fail", 1), ("inconclusive", 3), ("changed", 3)], ids=str
)
@pytest.mark.parametrize("number", [errno.EPIPE, errno.ENOSPC, None])
def test_a_decision_outlives_its_stdout(
    workspace_dir: Path, monkeypatch: pytest.MonkeyPatch, decision: str, code: int, number: int | None
) -> None:
    """Whatever becomes of the text: the exit code of a gate that has decided is the decision's."""
    import judgecal.cli as command_line
    from judgecal.cli.output import Decided, print_text

    def gate() -> None:
        print_text("decided")
        raise Decided(decision)

    class Lost:
        encoding = "utf-8"

        def write(self, text: str) -> int:
            if number is not None:
                raise OSError(number, os.strerror(number))
            return len(text)

        def isatty(self) -> bool:
            return False

        def flush(self) -> None:
            self.write("")

        def fileno(self) -> int:
            raise OSError

    monkeypatch.chdir(workspace_dir)
    monkeypatch.setattr(sys, "stdout", Lost())
    monkeypatch.setattr(command_line, "app", _parsing(gate))
    assert command_line.run(["gate"]) == code


def _parsing(command: Callable[..., None]) -> Any:
    import typer

    app = typer.Typer()
    app.command("gate")(command)
    app.callback()(lambda: None)
    return app


def test_an_interrupt_before_anything_was_judged_promises_nothing(
    judgecal: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, KeyboardInterrupt())
    assert judgecal("score") == Ran(130, "", "judgecal: interrupted\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_installation_that_cannot_be_loaded_ends_in_70(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ImportError('half of it is missing')\n")
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "judgecal", "models"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout) == (70, "")
    assert ran.stderr == "judgecal: it cannot be loaded (ImportError: half of it is missing): reinstall it\n"
