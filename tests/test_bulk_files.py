"""`judge` on several files without Ray, and how Ray's engine divides a budget: the rows of a run on one
table, and what a later run leaves alone."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from judgecal.bulk import ray_engine
from judgecal.engine.run import RunOptions
from judgecal.goldset import load_gold
from judgecal.judges.prompt import PromptJudge
from judgecal.production.suite import SuiteColumn
from judgecal.workspace import find_workspace
from tests.support.command import Run, one_object
from tests.support.locks import lock_file
from tests.support.server import USD_A_CALL
from tests.support.several_files import (
    OPTIONS,
    SECRET,
    asked,
    judged,
    read,
    rows,
    served_judge,
    write,
    write_files,
)


@pytest.fixture
def lock(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The embedded judge, locked on the starter."""
    monkeypatch.chdir(workspace_dir)
    judge = PromptJudge("correctness_v3@embedded", workspace=find_workspace(workspace_dir))
    return lock_file(workspace_dir / "judge.lock.json", judge, load_gold(workspace_dir / "gold" / "starter"))


@pytest.fixture
def memory() -> Iterator[MemoryFileSystem]:
    """fsspec's file system in memory, empty."""
    MemoryFileSystem.store.clear()
    yield MemoryFileSystem()
    MemoryFileSystem.store.clear()


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_several_files_give_the_rows_of_one_table(judgecal: Run, lock: Path, ending: str) -> None:
    names = write_files(Path("in"), 50, 3, ending)
    write(Path(f"all{ending}"), [row for name in names for row in read(Path("in", name))])
    whole = one_object(judgecal("judge", f"all{ending}", *OPTIONS, "-o", f"whole{ending}", "--json"))
    files = [f"in/{name}" for name in names]
    plan = one_object(judgecal("judge", *files, *OPTIONS, "-o", "out", "--dry-run", "--json"))
    assert (plan["calls"], Path("out").exists()) == (50, False)
    result = one_object(judgecal("judge", *files, *OPTIONS, "-o", "out", "--json"))
    assert [row for name in names for row in read(Path("out", name))] == read(Path(f"whole{ending}"))
    for key in ("n", "n_unscored", "rates", "columns", "usd", "model_ids"):
        assert result[key] == whole[key]
    assert judged(Path()) == Counter({f"r{n}": 1 for n in range(50)})
    stored = find_workspace().experiments / result["experiment"]
    assert json.loads((stored / "summary.json").read_text())["n"] == 50
    assert judgecal("report", result["experiment"], "--format", "html").code == 0


def test_what_has_an_address_is_judged_once(judgecal: Run, lock: Path, memory: MemoryFileSystem) -> None:
    write_files(Path("in"), 20, 2)
    memory.put("in", "/bucket/in", recursive=True)
    command = ("judge", "memory://bucket/in/part-*.csv", *OPTIONS, "-o", "memory://bucket/out", "--json")
    first = one_object(judgecal(*command))
    memory.get("/bucket/out", "there", recursive=True)
    judgecal("judge", "in/part-0.csv", "in/part-1.csv", *OPTIONS, "-o", "here")
    for name in ("part-0.csv", "part-1.csv"):
        assert read(Path("there", name)) == read(Path("here", name))
    assert not [name for name in memory.ls("/bucket/out", detail=False) if name.endswith(".draft")]
    created = [memory.created(f"/bucket/out/part-{n}.csv") for n in range(2)]
    # A file that came later is judged; those that are done are not touched, and count in the result.
    write(Path("part-2.csv"), rows(5, first=20))
    memory.put_file("part-2.csv", "/bucket/in/part-2.csv")
    again = one_object(judgecal(*command))
    assert (first["n"], again["n"], again["experiment"]) == (20, 25, first["experiment"])
    assert [memory.created(f"/bucket/out/part-{n}.csv") for n in range(2)] == created
    # A row that changed is judged, and its file written anew.
    write(Path("part-2.csv"), rows(5, first=21))
    memory.put_file("part-2.csv", "/bucket/in/part-2.csv")
    assert one_object(judgecal(*command))["n"] == 25
    assert [memory.created(f"/bucket/out/part-{n}.csv") for n in range(2)] == created
    memory.get_file("/bucket/out/part-2.csv", "judged.csv")
    assert [row["id"] for row in read(Path("judged.csv"))] == [f"r{n}" for n in range(21, 26)]
    assert max(judged(Path()).values()) == 2  # once for each folder of outputs


def test_a_run_that_was_killed_goes_on_and_touches_nothing_that_is_done(judgecal: Run, lock: Path) -> None:
    names = write_files(Path("in"), 30, 3)
    command = ("judge", *(f"in/{name}" for name in names), *OPTIONS, "-o", "out", "--json")
    result = one_object(judgecal(*command))
    folder, outputs = (
        Path("experiments", result["experiment"], "files"),
        [read(Path("out", n)) for n in names],
    )
    times = {name: Path("out", name).stat().st_mtime_ns for name in names}
    # One was killed in the middle of a file, another one between the output and the note of it.
    journal = folder / names[0] / "judgements.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:6]) + lines[6][:40])
    Path("out", names[0]).unlink()
    for name in names[:2]:
        note = folder / name / "done"
        note.write_text(note.read_text().rpartition(" ")[0] + " None\n")
    again = one_object(judgecal(*command))
    assert again == result and [read(Path("out", name)) for name in names] == outputs
    assert journal.read_text().splitlines(keepends=True)[:6] == lines[:6]
    assert judged(Path()) == Counter({f"r{n}": 1 for n in range(30)})
    assert Path("out", names[2]).stat().st_mtime_ns == times[names[2]]
    assert not list(Path("out").glob(".*"))


def test_all_that_is_wrong_is_said_at_once(judgecal: Run, lock: Path) -> None:
    write_files(Path("in"), 4, 2)
    write(Path("in/short.csv"), [{"id": "1", "question": "q?", "answer": "a"}])
    Path("in/odd.ods").write_text("x")
    Path("in/empty.csv").write_text("id,question,answer,reference,system\n")
    write(Path("other/part-0.csv"), rows(1))
    write(Path("out/part-1.csv"), rows(1))
    files = ("in/part-*.csv", "in/none.csv", "in/short.csv", "in/odd.ods", "other/part-0.csv", "in/empty.csv")
    ran = judgecal("judge", *files, *OPTIONS, "-o", "out")
    said = " ".join(ran.err.split())
    assert ran.code == 2 and not Path("experiments").exists() and "judgecal-" not in said
    for problem in (
        "none.csv: there is no such file", "short.csv: the judge asks for reference_answer",
        "odd.ods: unknown ending", "other/part-0.csv: has the name of", "out/part-1.csv: is there already",
        "in/empty.csv: holds no row, so we write no output for it",
    ):  # fmt: skip
        assert problem in said, ran.err
    same = judgecal("judge", "in/part-*.csv", *OPTIONS, "-o", "in", "--replace")
    assert same.code == 2 and "would be written over" in same.err
    for given, problem in (
        ("s3://user:pass@bucket/x.csv", "an address with a password"),
        ("nosuch://bucket/x.csv", "nosuch://bucket/x.csv: cannot be reached"),
    ):
        refused = judgecal("judge", given, *OPTIONS, "-o", "new")
        assert refused.code == 2 and problem in " ".join(refused.err.split()) and ":pass" not in refused.err
    assert judgecal("judge", "in/part-*.csv", *OPTIONS, "-o", "out", "--replace").code == 0
    assert judgecal("judge", "in/part-0.csv", *OPTIONS, "-o", "one/").code == 0
    assert read(Path("one/part-0.csv")) == read(Path("out/part-0.csv"))


def test_one_message_where_the_engine_does_not_fit(
    judgecal: Run, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(Path("in"), 4, 2)
    odd = judgecal("judge", "in/*.csv", "--suite", "rag", "-o", "out", "--engine", "rays")
    said = " ".join(odd.err.split())
    assert odd.code == 2 and "--engine is local or ray, found 'rays'" in said and "take one --lock" in said
    monkeypatch.setitem(sys.modules, "ray", None)
    absent = judgecal("judge", "in/*.csv", *OPTIONS, "-o", "out", "--engine", "ray")
    assert absent.code == 2 and not Path("experiments").exists()
    assert "--engine ray needs ray, which is not installed: pip install ray" in " ".join(absent.err.split())


def test_one_budget_holds_over_all_files(
    judgecal: Run, workspace_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace_dir)
    write_files(Path("in"), 24, 3)
    command = ("judge", "in/*.csv", *OPTIONS, "-o", "out", "--json")
    with served_judge(workspace_dir, monkeypatch, 2) as served:
        result = one_object(judgecal(*command, "--budget-usd", f"{15 * USD_A_CALL:.6f}"), code=4)
        assert 8 < served.calls <= 15 and result["n_unscored"] == 24 - served.calls
        assert len(read(Path("out/part-2.csv"))) == 8
        assert one_object(judgecal(*command))["n_unscored"] == 0
        assert asked(served) == Counter({f"r{n}": 1 for n in range(24)})
    texts = [path.read_bytes() for path in workspace_dir.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in text for text in texts)


@dataclass(frozen=True)
class Task:
    """A file that costs what its worker was given, or half of it, or whose worker is lost at first."""

    name: str
    options: RunOptions


class FakeRay:
    """Ray of two workers: tasks end one after the other, the last one that began first."""

    def __init__(self, lost: str) -> None:
        self.lost, self.shares, self.held, self.most_usd = {lost}, list[tuple[str, float]](), 0.0, 0.0
        self.spent = 0.0
        self.exceptions = SimpleNamespace(RayError=ConnectionError)

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def remote(self, **_: Any) -> Any:
        def begin(task: Task, limit_usd: float) -> tuple[str, float]:
            assert task.options.processes == 2
            self.shares.append((task.name, limit_usd))
            self.held += limit_usd
            self.most_usd = max(self.most_usd, self.spent + self.held)
            return task.name, limit_usd

        return lambda _function: SimpleNamespace(remote=begin)

    def wait(self, refs: list[Any]) -> tuple[list[Any], list[Any]]:
        return refs[-1:], refs[:-1]

    def get(self, ref: tuple[str, float]) -> tuple[Any, float, list[str]]:
        name, limit_usd = ref
        self.held -= limit_usd
        lost = name in self.lost
        self.lost.discard(name)
        self.spent += limit_usd if lost else 0.5 * limit_usd
        if lost:
            raise ConnectionError("the worker died")
        return SimpleNamespace(n=1), 0.5 * limit_usd, []

    def cancel(self, *_: Any, **__: Any) -> None:
        raise AssertionError("every task has ended")


def test_what_a_lost_worker_held_counts_as_spent(
    lock: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ray = FakeRay("b")

    @contextmanager
    def started() -> Iterator[FakeRay]:
        yield ray

    monkeypatch.setattr(ray_engine, "_started", started)
    column = SuiteColumn.of_lock(lock, find_workspace(), trust_lock=False)
    tasks: Any = [Task(name, RunOptions()) for name in "abcd"]
    found = [number for number, _ in ray_engine.judge_on_ray(tasks, column, 1.0)]
    assert sorted(found) == [0, 1, 2, 3] and found[-1] == 1  # the lost one at the end
    assert ray.shares[:2] == [("a", 0.5), ("b", 0.5)] and ray.most_usd <= 1.0
    assert ray.shares[2:] == [("c", 0.125), ("d", 0.09375), ("b", 0.140625)]
    err = " ".join(capsys.readouterr().err.split())
    assert "4 files on 2 workers of Ray; each begins with 0.5 of 1 USD and may make 1/2 of the calls" in err
    assert "b: its worker was lost (ConnectionError: the worker died): another one goes on with it" in err
