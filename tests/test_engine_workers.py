"""The embedded model in worker processes: the same rows in the same order, and an error where a worker ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import judgecal.engine.run as engine
from judgecal.engine import Call, Journal, Reading, workers
from judgecal.errors import JudgecalError
from judgecal.models import ModelSpec
from judgecal.records import Judgement, Key

SPEC = ModelSpec("embedded", "judgecal/embedded", input_usd_per_1m=0.0, output_usd_per_1m=0.0)
SYSTEM = """Your input fields are:
1. `question` (str):
2. `reference_answer` (str):
3. `answer_under_test` (str):
Your output fields are:
1. `reasoning` (str):
2. `percentage` (int):
All interactions will be structured in the following way."""

pytestmark = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")


def calls(count: int, *, judges: int = 1) -> list[Call]:
    """Items of several judges by turns, so that the messages in front change in mid-batch."""

    def one(index: int) -> Call:
        odd = "\ud800" if index == 7 else ""
        user = (
            f"[[ ## question ## ]]\nWhere is {index}?\n\n[[ ## reference_answer ## ]]\nParis {index % 5}\n\n"
            f"[[ ## answer_under_test ## ]]\nParis {index % 7}{odd}\n\nRespond with the corresponding output fields"
        )
        system = SYSTEM + f" {index // 3 % judges}"
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        return Call(Key(f"i{index}", "sha", "print", 0), "judge@embedded", lambda: messages, read)

    return [one(index) for index in range(count)]


def read(text: str) -> Reading:
    return Reading(text)


def run(due: Iterable[Call], *, journal: Journal | None = None) -> list[dict[str, Any]]:
    rows: list[Judgement] = []

    def record(row: Judgement) -> None:
        rows.append(row)
        if journal:
            journal.append(row)

    engine.run_calls(due, SPEC, record=record)
    return [{**row.as_json(), "at": "", "latency_s": 0.0} for row in rows]


@pytest.fixture
def for_any_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers for small runs as well."""

    async def open_workers(total: int | None) -> workers.WorkerTransport | None:
        return await workers.open_workers(total, worth_it=0)

    monkeypatch.setattr(engine, "open_workers", open_workers)


def test_rows_and_their_order_are_those_of_one_process(
    monkeypatch: pytest.MonkeyPatch, for_any_run: None
) -> None:
    with_workers = run(calls(1234, judges=2))
    monkeypatch.undo()
    assert with_workers == run(calls(1234, judges=2))  # 1,234 are too few to start workers for
    assert len({row["verdict"] for row in with_workers}) > 1


def test_a_reply_longer_than_a_pipe_holds_comes_through(for_any_run: None) -> None:
    def long(index: int) -> Call:
        fields = "Your input fields are:\n1. `question` (str):\n2. `context` (str):\n"
        system = f"{fields}Your output fields are:\n1. `answer` (str):"
        user = f"[[ ## question ## ]]\nq\n\n[[ ## context ## ]]\n{'x' * 100_000} {index}"
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        return Call(Key(f"i{index}", "sha", "print", 0), "judge@embedded", lambda: messages, read)

    assert len(run([long(index) for index in range(300)])) == 300


def test_where_no_process_can_be_started_the_run_stays_in_this_one(
    monkeypatch: pytest.MonkeyPatch, for_any_run: None
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert len(run(calls(20))) == 20


def test_a_process_that_says_something_else_is_no_worker(
    monkeypatch: pytest.MonkeyPatch, for_any_run: None, tmp_path: Path
) -> None:
    script = tmp_path / "other.py"
    script.write_text("print('I am another program, and go on for a while')\n")
    monkeypatch.setattr(workers, "_SCRIPT", script)
    assert len(run(calls(20))) == 20


def test_small_runs_start_no_process() -> None:
    assert asyncio.run(workers.open_workers(2000)) is None
    assert asyncio.run(workers.open_workers(None)) is None


def test_a_worker_that_dies_is_an_error_and_what_was_judged_is_kept(
    monkeypatch: pytest.MonkeyPatch, for_any_run: None, tmp_path: Path
) -> None:
    started: list[Any] = []
    start = workers._Worker.start.__func__  # type: ignore[attr-defined]

    async def remembered(cls: type) -> Any:
        started.append(await start(cls))
        return started[-1]

    monkeypatch.setattr(workers._Worker, "start", classmethod(remembered))
    path = tmp_path / "judgements.jsonl"

    def killing(due: list[Call]) -> Iterable[Call]:
        for index, call in enumerate(due):
            if index == 1500:
                started[0]._process.kill()
            yield call

    with Journal(path) as journal, pytest.raises(JudgecalError, match="exit code -9"):
        engine.run_calls(killing(calls(3000)), SPEC, record=journal.append, total=3000)
    with Journal(path) as journal:
        kept = list(journal.latest)
        assert 0 < len(kept) < 3000
        assert [key[0] for key in kept] == [f"i{index}" for index in range(len(kept))]  # no gap
        rest = [call for call in calls(3000) if call.key not in journal.latest]
        run(rest, journal=journal)
        assert len(journal.latest) == 3000
    assert all(worker._process.returncode is not None for worker in started)


def test_a_notebook_has_workers_too(for_any_run: None) -> None:
    async def cell() -> list[dict[str, Any]]:
        return run(calls(300))

    assert [row["item_id"] for row in asyncio.run(cell())] == [f"i{index}" for index in range(300)]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX")
def test_workers_end_with_a_killed_parent_and_need_no_main_module(tmp_path: Path) -> None:
    # From stdin: there is no file that a worker could import as the main module.
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from judgecal.engine import workers
from tests.test_engine_workers import calls, SPEC
from judgecal.engine import run_calls
found = []
start = workers._Worker.start.__func__
async def remembered(cls):
    found.append(await start(cls))
    return found[-1]
workers._Worker.start = classmethod(remembered)
rows = []
def record(row):
    rows.append(row)
    if len(rows) == 300:
        print(*[worker._process.pid for worker in found], flush=True)
run_calls(calls(100_000), SPEC, record=record)
"""
    parent = subprocess.Popen(
        [sys.executable, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(code)
    parent.stdin.close()
    pids = [int(word) for word in parent.stdout.readline().split()]
    parent.kill()
    parent.wait(10.0)
    parent.stdout.close()
    assert pids
    assert all(_gone(pid) for pid in pids)


def _gone(pid: int, patience_s: float = 10.0) -> bool:
    """Whether a process has ended, be it that nobody has buried it yet."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_the_worker_speaks_what_its_parent_expects() -> None:
    from judgecal.engine.worker_process import HELLO

    done = subprocess.run(
        [sys.executable, "-P", str(workers._SCRIPT)], input=b"", stdout=subprocess.PIPE, check=True
    )
    assert done.stdout == HELLO
