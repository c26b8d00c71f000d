"""The processes of a measurement: the stub server and a contender. Both are stopped."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent

Found = dict[str, Any]


@contextlib.contextmanager
def stub(latency_ms: float, *options: str) -> Iterator[str]:
    """A stub server of its own process; gives its address."""
    command = [sys.executable, "-m", "tests.benchmarks.stub", "--latency-ms", str(latency_ms), *options]
    server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None and server.stdin is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.stdin.close()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def asked(api_base: str, what: str = "count") -> Found:
    """What the stub counts; `reset` forgets it."""
    with urllib.request.urlopen(f"{api_base.removesuffix('/v1')}/{what}", timeout=10) as reply:
        found: Found = json.load(reply)
    return found


def run(command: Sequence[str], timeout: float, **environment: str) -> Found:
    """Run a process that prints one JSON object last; `error` says why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": folder, **environment},
        )
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            return {"error": f"not done after {timeout:g} s"}
        finally:
            _end_group(process)
    try:
        found: Found = json.loads(out.strip().rpartition("\n")[2])
    except ValueError:
        said = (err or out).strip().rpartition("\n")[2]
        return {"error": f"exit {process.returncode}: {said[:160]}"}
    return found


def _end_group(process: subprocess.Popen[str]) -> None:
    """Whoever the process has started goes with it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def contender(name: str, *options: str, timeout: float = 300.0) -> Found:
    """Measure one contender in a process of its own."""
    return run([sys.executable, "-m", "tests.benchmarks.contenders", name, *options], timeout)
