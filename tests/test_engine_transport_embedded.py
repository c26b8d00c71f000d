"""The embedded model in worker processes: the same rows in the same order, and an error where a worker
ends."""

from __future__ import annotations

import contextlib
import functools
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
from judgecal.engine import Call, Journal, ParsedReply
from judgecal.engine.transport import embedded
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

needs_proc = pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
pytestmark = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")


def calls(count: int, *, judges: int = 1) -> list[Call]:
    """Items of several judges by turns, so that the messages in front change in mid-batch."""

    def one(index: int) -> Call:
        odd = "\ud800" if index == 7 else ""
        user = (
            f"[[ ## question ## ]]\nWhere is {index}?\n\n[[ ## reference_answer ## ]]\nParis {index % 5}\n\n"
            f"[[ ## answer_under_test ## ]]\nParis {index % 7}{odd}\n\nRespond with the corresponding output "
            "fields"
        )
        system = SYSTEM + f" {index // 3 % judges}"
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        return Call(Key(f"i{index}", "sha", "print", 0), "judge@embedded", lambda: messages, read)

    return [one(index) for index in range(count)]


def read(text: str) -> ParsedReply:
    return ParsedReply(text)


def run(due: Iterable[Call], *, journal: Journal | None = None) -> list[dict[str, Any]]:
    rows: list[Judgement] = []

    def record(*came: Judgement) -> None:
        rows.extend(came)
        if journal:
            journal.append(*came)

    engine.run_calls(due, SPEC, record=record)
    return [{**row.as_json(), "at": "", "latency_s": 0.0} for row in rows]


@pytest.fixture
def for_any_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers for small runs as well."""

    monkeypatch.setattr(engine, "open_pool", functools.partial(embedded.open_pool, worth_it=0))


def test_rows_and_their_order_are_those_of_one_process(
    monkeypatch: pytest.MonkeyPatch, for_any_run: None
) -> None:
    with_workers = run(calls(1234, judges=2))
    monkeypatch.undo()
    assert with_workers == run(calls(1234, judges=2))  # 1,234 are too few to start workers for
    assert len({row["verdict"] for row in with_workers}) > 1


def test_where_no_process_can_be_started_the_run_stays_in_this_one(
    monkeypatch: pytest.MonkeyPatch, for_any_run: None
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise OSError("no process")

    monkeypatch.setattr("joblib.externals.loky.backend.popen_loky_posix.Popen._launch", refused)
    assert len(run(calls(20))) == 20


def test_small_runs_start_no_process() -> None:
    assert embedded.open_pool(2000) is None
    assert embedded.open_pool(None) is None


def children() -> set[int]:
    """The worker processes of this one, and what else it has started."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(stat.parent.name))
    return found


@needs_proc
def test_a_worker_that_dies_is_an_error_and_what_was_judged_is_kept(
    for_any_run: None, tmp_path: Path
) -> None:
    path = tmp_path / "judgements.jsonl"
    before = children()
    workers: set[int] = set()

    def killing(due: list[Call]) -> Iterable[Call]:
        for index, call in enumerate(due):
            if index == 1500:
                workers.update(pid for pid in children() - before if "popen_loky" in command(pid))
                os.kill(min(workers), signal.SIGKILL)
            yield call

    with Journal(path) as journal, pytest.raises(JudgecalError, match=r"has ended by itself \(.*SIGKILL"):
        engine.run_calls(killing(calls(3000)), SPEC, record=journal.append, total=3000)
    with Journal(path) as journal:
        kept = list(journal.latest)
        assert 0 < len(kept) < 3000
        assert [key[0] for key in kept] == [f"i{index}" for index in range(len(kept))]  # no gap
        rest = [call for call in calls(3000) if call.key not in journal.latest]
        run(rest, journal=journal)
        assert len(journal.latest) == 3000
    assert len(workers) > 1
    assert all(gone(pid) for pid in workers)


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


_FROM_STDIN = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from tests.test_engine_transport_embedded import SPEC, calls, children
from judgecal.engine import run_calls
rows = []
def record(*came):
    rows.extend(came)
    if len(rows) >= 300 > len(rows) - len(came):
        print(*children(), flush=True)
try:
    run_calls(calls(100_000), SPEC, record=record)
except KeyboardInterrupt:
    print("interrupted")
"""


@needs_proc
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent_and_need_no_main_module(end: signal.Signals, tmp_path: Path) -> None:
    # From stdin: there is no file that a worker could import as the main module.
    parent = subprocess.Popen(
        [sys.executable, "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(_FROM_STDIN)
    parent.stdin.close()
    parent.stdin = None
    pids = [int(word) for word in parent.stdout.readline().split()]
    if end == signal.SIGINT:
        os.killpg(parent.pid, end)  # as a terminal does: to every process of the group
    else:
        parent.kill()
    said, complaint = parent.communicate(timeout=20.0)
    assert len(pids) > 1
    assert all(gone(pid) for pid in pids)
    if end == signal.SIGINT:
        assert (said, complaint) == ("interrupted\n", "")


def gone(pid: int, patience_s: float = 10.0) -> bool:
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
