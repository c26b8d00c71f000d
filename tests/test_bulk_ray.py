"""`judge --engine ray` on this machine: the rows of the run without it, one budget over two workers, a killed
worker.

Ray is no part of what `make test` installs (some 200 MB unpacked): without it these tests are skipped.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgecal.goldset import load_gold
from judgecal.judges import PromptJudge
from judgecal.workspace import find_workspace
from tests.support.command import Run
from tests.support.locks import lock_file
from tests.support.partitions import OPTIONS, read, write, write_partitions
from tests.support.server import COMPLETION_TOKENS, PROMPT_TOKENS, StubServer, running
from tests.support.workers import ray_workers

pytest.importorskip("ray", reason="ray is not installed: pip install ray, for `judge --engine ray` alone")

SECRET = "sk-not-to-be-seen"
USD_A_CALL = (PROMPT_TOKENS * 2.0 + COMPLETION_TOKENS * 10.0) / 1e6


@pytest.fixture(autouse=True)
def _two_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ray of its own for each test, with the environment of that test, on 127.0.0.1."""
    import ray

    monkeypatch.setenv("RAY_ADDRESS", "local")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    start = ray.init
    monkeypatch.setattr(ray, "init", lambda **options: start(**options, num_cpus=2))
    yield
    assert not ray.is_initialized()


@pytest.fixture
def served(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    """A model `mine`, with a price and a key, whose judge is locked."""
    monkeypatch.setenv("MY_KEY", SECRET)
    with running(
        lambda _: "[[ ## correctness_reasoning ## ]]\nSo.\n\n[[ ## correctness_percentage ## ]]\n80\n"
    ) as stub:
        (workspace_dir / "judgecal.toml").write_text(
            f'[models.mine]\nid = "openai/mine"\napi_base = "{stub.api_base}"\nkey_env = "MY_KEY"\n'
            "input_usd_per_1m = 2.0\noutput_usd_per_1m = 10.0\nmax_tokens = 100\n"
        )
        judge = PromptJudge("correctness_v3@mine", workspace=find_workspace(workspace_dir))
        lock_file(workspace_dir / "judge.lock.json", judge, load_gold(workspace_dir / "gold" / "starter"))
        stub.bodies.clear()
        yield stub


def asked(stub: StubServer) -> Counter[str]:
    """How often the server was asked about each row."""
    texts = (body["messages"][-1]["content"] for body in stub.bodies)
    return Counter(found[1] for text in texts if (found := re.search(r"in store (\d+)\?", text)))


def judged(folder: Path) -> Counter[str]:
    """How often each row has a verdict in the journals of the partitions."""
    lines = [line for path in folder.rglob("partitions/**/*.jsonl") for line in path.read_text().splitlines()]
    return Counter(row["item_id"] for row in map(json.loads, lines) if row["verdict"] is not None)


def test_the_rows_are_those_of_the_run_without_it(judgecal: Run, workspace_dir: Path) -> None:
    judge = PromptJudge("correctness_v3@embedded", workspace=find_workspace(workspace_dir))
    lock = lock_file(workspace_dir / "judge.lock.json", judge, load_gold(workspace_dir / "gold" / "starter"))
    names = write_partitions(workspace_dir / "in", 60, 4, ".parquet")
    whole = write(
        workspace_dir / "all.parquet", [row for name in names for row in read(workspace_dir / "in" / name)]
    )
    plain = judgecal("judge", whole, "--lock", lock, "-o", "all.out.parquet", *OPTIONS, "--json")
    ran = judgecal("judge", "in", "--engine", "ray", "--lock", lock, "-o", "out", *OPTIONS, "--json")
    assert (plain.code, ran.code) == (0, 0)
    found = [row for name in names for row in read(workspace_dir / "out" / name)]
    assert found == read(workspace_dir / "all.out.parquet")
    one, other = json.loads(plain.out), json.loads(ran.out)
    for key in ("n", "n_unscored", "systems", "overall", "rates", "columns", "usd", "model_ids"):
        assert one[key] == other[key]
    assert judged(workspace_dir) == Counter(row["id"] for row in found)


def test_the_budget_and_the_places_in_flight_are_shared(
    judgecal: Run, workspace_dir: Path, served: StubServer
) -> None:
    (workspace_dir / "judgecal.toml").write_text(
        (workspace_dir / "judgecal.toml").read_text() + "max_concurrency = 3\n"
    )
    write_partitions(workspace_dir / "in", 60, 4)
    served.latency_s = 0.02
    command = ("judge", "in", "--engine", "ray", "--lock", "judge.lock.json", "-o", "out", *OPTIONS, "--json")
    budget = 30 * USD_A_CALL
    ran = judgecal(*command, "--budget-usd", f"{budget:.6f}")
    assert ran.code == 4 and "ended the calls" in ran.err
    result = json.loads(ran.out)
    assert 20 <= served.calls <= 30 and served.most_at_once <= 3
    assert result["n"] == 60 and result["n_unscored"] == 60 - served.calls
    assert result["usd"] == pytest.approx(served.calls * USD_A_CALL) and result["usd"] <= budget
    again = judgecal(*command)
    assert again.code == 0 and served.calls == 60 and set(asked(served).values()) == {1}
    assert judged(workspace_dir) == Counter({f"r{n}": 1 for n in range(60)})
    texts = [path.read_bytes() for path in workspace_dir.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in text for text in texts) and SECRET not in ran.out + ran.err


def test_a_killed_worker_loses_nothing(judgecal: Run, workspace_dir: Path, served: StubServer) -> None:
    names = write_partitions(workspace_dir / "in", 80, 2)
    served.latency_s = 0.1
    in_flight: list[int] = []

    def kill_one() -> None:
        while served.calls < 20:
            time.sleep(0.01)
        in_flight.append(served.most_at_once)
        os.kill(ray_workers(os.getpid())[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    ran = judgecal(
        "judge", "in", "--engine", "ray", "--lock", "judge.lock.json", "-o", "out", *OPTIONS, "--json", "--no-cache",
        "--budget-usd", "1",
    )  # fmt: skip
    killer.join()
    assert ran.code == 0 and "its worker was lost" in ran.err
    assert judged(workspace_dir) == Counter({f"r{n}": 1 for n in range(80)})
    assert [len(read(workspace_dir / "out" / name)) for name in names] == [40, 40]
    again = sum(asked(served).values()) - 80
    assert set(asked(served)) == {str(n) for n in range(80)} and 0 < again <= 64
    assert max(asked(served).values()) == 2


def test_without_the_keeper_of_the_money_nothing_is_called(
    judgecal: Run, workspace_dir: Path, served: StubServer
) -> None:
    write_partitions(workspace_dir / "in", 80, 2)
    served.latency_s = 0.1

    def kill_it() -> None:
        while served.calls < 20:
            time.sleep(0.01)
        os.kill(ray_workers(os.getpid(), doing="SharedLimits")[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_it)
    killer.start()
    command = ("judge", "in", "--engine", "ray", "--lock", "judge.lock.json", "-o", "out", *OPTIONS, "--json")
    ran = judgecal(*command, "--budget-usd", "1")
    killer.join()
    assert ran.code not in (0, 70) and "keeps the money" in ran.err and "the same command resumes" in ran.err
    assert judgecal(*command, "--budget-usd", "1").code == 0
    assert judged(workspace_dir) == Counter({f"r{n}": 1 for n in range(80)})


def test_a_refused_key_ends_the_run_and_is_told_without_it(
    judgecal: Run, workspace_dir: Path, served: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_partitions(workspace_dir / "in", 8, 2)
    monkeypatch.delenv("MY_KEY")
    ran = judgecal("judge", "in", "--engine", "ray", "--lock", "judge.lock.json", "-o", "out", *OPTIONS)
    assert ran.code == 2 and "MY_KEY" in ran.err and served.calls == 0
    assert not list((workspace_dir).glob("out/**/*.csv"))
