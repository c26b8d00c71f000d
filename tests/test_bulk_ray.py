"""`judge --engine ray` on this machine: the rows of a run without Ray, a killed worker, one budget over two.

Ray is no part of what `make test` installs (some 200 MB unpacked): without it these tests are skipped.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.command import Run, one_object
from tests.support.server import USD_A_CALL, StubServer
from tests.support.several_files import OPTIONS, SECRET, asked, judged, read, served_judge, write_files


def ray_workers(program: int, *, doing: str = "_judge_file") -> list[int]:
    """Those under a program, by its process id (Linux), that are at a task or an actor of this name."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            pid, rest = int(folder.name), (folder / "stat").read_text().rpartition(")")[2].split()
            parents[pid], names[pid] = int(rest[1]), (folder / "cmdline").read_text()
        except OSError:
            continue

    def under(pid: int) -> bool:
        while pid > 1 and pid != program:
            pid = parents.get(pid, 0)
        return pid == program

    return [pid for pid, name in names.items() if name.startswith(f"ray::{doing}") and under(pid)]


pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")

COMMAND = ("judge", "in/*.csv", *OPTIONS, "--json", "--no-cache")
RAY = (*COMMAND, "-o", "out", "--engine", "ray")


@pytest.fixture
def served(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    """Three files, the judge's server, and Ray of its own with two workers."""
    import ray

    monkeypatch.chdir(workspace_dir)
    monkeypatch.setenv("RAY_ADDRESS", "local")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    start = ray.init
    monkeypatch.setattr(ray, "init", lambda **options: start(**options, num_cpus=2))
    write_files(Path("in"), 60, 3)
    with served_judge(workspace_dir, monkeypatch, 4) as stub:
        stub.latency_s = 0.1
        yield stub
    assert not ray.is_initialized()


def test_a_killed_worker_loses_nothing_and_pays_nothing_twice(judgecal: Run, served: StubServer) -> None:
    plain = one_object(judgecal(*COMMAND, "-o", "plain"))
    served.bodies.clear()
    kept: set[str] = set()

    def kill_one() -> None:
        while served.calls < 16:
            time.sleep(0.01)
        pid = ray_workers(os.getpid())[0]
        os.kill(pid, signal.SIGSTOP)  # what it has written by now stays; what it waits for is made again
        time.sleep(0.2)
        kept.update(row for row, n in judged(Path()).items() if n > 1)
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    ran = judgecal(*RAY, "--budget-usd", "1")
    killer.join()
    result, said = one_object(ran), " ".join(ran.err.split())
    assert "3 files on 2 workers of Ray; each begins with 0.5 of 1 USD and may make 1/2 of the calls" in said
    assert "its worker was lost" in said and "another one goes on with it" in said
    paths = [f"part-{n}.csv" for n in range(3)]
    differing = [
        (mine, other)
        for name in paths
        for mine, other in zip(read(Path("out", name)), read(Path("plain", name)), strict=True)
        if mine != other
    ]
    assert differing == []
    for key in ("n", "n_unscored", "systems", "rates", "columns", "usd", "model_ids"):
        assert result[key] == plain[key]
    twice = {row for row, n in asked(served).items() if n > 1}
    assert len(asked(served)) == 60 and set(asked(served).values()) <= {1, 2}
    journals = Counter({row: n - 1 for row, n in judged(Path()).items()})  # without those of the plain run
    assert journals == Counter(dict.fromkeys(asked(served), 1))
    # asked twice is at most what the lost worker waited for: its half of the four calls at once
    assert len(kept) >= 10 and not twice & kept and len(twice) <= 2
    times, calls = [Path("out", name).stat().st_mtime_ns for name in paths], served.calls
    assert one_object(judgecal(*RAY)) == result
    assert served.calls == calls and [Path("out", name).stat().st_mtime_ns for name in paths] == times


def test_one_budget_and_the_calls_at_once_are_divided(judgecal: Run, served: StubServer) -> None:
    budget = 30 * USD_A_CALL
    ran = judgecal(*RAY, "--budget-usd", f"{budget:.6f}")
    result = one_object(ran, code=4)
    assert 20 <= served.calls <= 30 and served.most_at_once <= 4 and "ended the calls" in ran.err
    assert result["n"] == 60 and result["n_unscored"] == 60 - served.calls
    assert result["usd"] == pytest.approx(served.calls * USD_A_CALL) and result["usd"] <= budget
    assert one_object(judgecal(*RAY))["n_unscored"] == 0
    assert asked(served) == judged(Path()) == Counter({f"r{n}": 1 for n in range(60)})
    texts = [path.read_bytes() for path in Path().rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in text for text in texts) and SECRET not in ran.out + ran.err
