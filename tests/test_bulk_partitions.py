"""`judge` on partitions, without the workers: the same rows as of one table, and what a later run leaves
alone."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest

from judgecal.bulk.partitioned import PartitionedRun
from judgecal.engine import Budget, held
from judgecal.errors import BusyError, InputError
from judgecal.experiment import RunOptions
from judgecal.goldset import load_gold
from judgecal.judges import PromptJudge
from judgecal.report.judge import judge_document, judge_report
from judgecal.tables import list_partitions
from judgecal.workspace import find_workspace
from tests.support.command import Run
from tests.support.locks import lock_file
from tests.support.partitions import COLUMNS, OPTIONS, InThisProcess, read, rows, write, write_partitions


@pytest.fixture
def lock(workspace_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The embedded judge, locked on the starter."""
    monkeypatch.chdir(workspace_dir)
    judge = PromptJudge("correctness_v3@embedded", workspace=find_workspace(workspace_dir))
    return lock_file(workspace_dir / "judge.lock.json", judge, load_gold(workspace_dir / "gold" / "starter"))


def run_of(lock: Path, *given: str, output: str = "out", **other: Any) -> PartitionedRun:
    fields: dict[str, Any] = {
        "workspace": find_workspace(),
        "lock_path": lock,
        "trust_lock": False,
        "columns": COLUMNS,
        "partitions": list_partitions(given or ["in"]),
        "output": output,
        "options": RunOptions(quiet=True),
        "engine": InThisProcess(),
    }
    return PartitionedRun(**{**fields, **other})


def journals(run: PartitionedRun) -> dict[str, list[str]]:
    """The lines of each partition's journal."""
    return {job.partition.name: job.journal.read_text().splitlines() for job in run.jobs}


def problems_of(run: PartitionedRun) -> str:
    with pytest.raises(InputError) as error:
        run.run()
    return str(error.value)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_partitions_give_the_rows_of_one_table(judgecal: Run, lock: Path, ending: str) -> None:
    names = write_partitions(Path("in"), 50, 4, ending)
    whole = write(Path(f"all{ending}"), [row for name in names for row in read(Path("in", name))])
    assert judgecal("judge", whole, "--lock", lock, "-o", f"whole{ending}", *OPTIONS).code == 0
    run = run_of(lock)
    result = run.run()
    assert sorted(str(path.relative_to("out")) for path in Path("out").rglob(f"*{ending}")) == names
    found = [row for name in names for row in read(Path("out", name))]
    assert found == read(Path(f"whole{ending}")) and len(found) == 50
    assert [len(lines) for lines in journals(run).values()] == [13, 13, 13, 11]
    assert (result.n, result.n_unscored, [one.n for one in result.systems]) == (50, 0, [25, 25])
    addresses = run_of(lock, (Path.cwd() / "in").as_uri(), output=(Path.cwd() / "there").as_uri())
    copied = addresses.run()
    assert [row for name in names for row in read(Path("there", name))] == found
    assert (copied.overall, copied.systems, copied.rates) == (result.overall, result.systems, result.rates)
    assert not list(Path("there").rglob("*.draft"))


def test_a_later_run_leaves_alone_what_is_done(lock: Path) -> None:
    names = write_partitions(Path("in"), 40, 4)
    run = run_of(lock)
    first, lines = run.run(), journals(run)
    stamps = {name: Path("out", name).stat().st_mtime_ns for name in names}
    assert run_of(lock).run() == first and journals(run) == lines
    assert {name: Path("out", name).stat().st_mtime_ns for name in names} == stamps
    # A worker was killed in mid-partition, and another one when its output was not yet under its name.
    Path("out", names[0]).unlink()
    Path("out", names[1]).unlink()
    journal = next(job.journal for job in run.jobs if job.partition.name == names[0])
    journal.write_text("\n".join([*lines[names[0]][:6], lines[names[0]][6][:40]]))
    outputs = {name: read(Path("out", name)) for name in names[2:]}
    again = run_of(lock).run()
    assert dataclasses.replace(again.overall) == first.overall
    assert [len(journals(run)[name]) for name in names] == [10, 10, 10, 10]
    assert journals(run)[names[0]][:6] == lines[names[0]][:6] and journals(run)[names[1]] == lines[names[1]]
    assert {name: read(Path("out", name)) for name in names[2:]} == outputs
    # A row that changed is judged, and its partition written anew; the others stay as they are.
    write(Path("in", names[3]), [*read(Path("in", names[3]))[:-1], *rows(1, first=99)])
    run_of(lock).run()
    assert [len(journals(run)[name]) for name in names] == [10, 10, 10, 11]
    assert read(Path("out", names[3]))[-1]["id"] == "r99"
    assert {name: Path("out", name).stat().st_mtime_ns for name in names}[names[2]] == stamps[names[2]]


def test_two_commands_on_one_experiment_do_not_spend_its_money_twice(lock: Path) -> None:
    write_partitions(Path("in"), 4, 2)
    run = run_of(lock)
    with held(run.experiment.journal), pytest.raises(BusyError, match="another judgecal process is working"):
        run.run()
    run_of(lock).run()


def test_the_limit_counts_over_all_partitions_and_a_plan_calls_nobody(lock: Path) -> None:
    names = write_partitions(Path("in"), 40, 4)
    limited = run_of(lock, options=RunOptions(limit=13, quiet=True))
    assert (limited.preview().calls, Path("out").exists()) == (13, False)
    result = limited.run()
    assert [len(read(Path("out", name))) for name in names[:2]] == [10, 3] and not Path(
        "out", names[2]
    ).exists()
    assert result.n == 13 and "the output holds only the first 13 of 40 rows (--limit)" in result.notes
    assert (run_of(lock).preview().calls, run_of(lock).preview().stored) == (27, 13)
    assert run_of(lock).run().n == 40


def test_what_cannot_be_done_is_said_before_anything_is_called(lock: Path) -> None:
    write_partitions(Path("in"), 8, 2)
    write(Path("in/part-009.csv"), [{"id": "1", "question": "q?", "answer": "a"}])
    write(Path("in/part-010.csv"), [{**rows(1)[0], "more": "x"}])
    assert "part-009.csv" in problems_of(run_of(lock)) and "reference" in problems_of(run_of(lock))
    Path("in/part-009.csv").unlink()
    assert "its columns are id, question, answer, reference, system, more" in problems_of(run_of(lock))
    Path("in/part-010.csv").unlink()
    assert "is the input itself, or in it" in problems_of(run_of(lock, output="in/out"))
    Path("link").symlink_to("in")
    for given, output in (("in", "link"), ("in", Path("in").absolute().as_uri()), ("in/part-001.csv", "in")):
        assert "is the input itself, or in it" in problems_of(
            run_of(lock, given, output=output, replace=True)
        )
    Path("file").write_text("")
    assert "is a file: partitions are written into a folder" in problems_of(run_of(lock, output="file"))
    assert "there is no such folder" in problems_of(run_of(lock, output="none/out"))
    assert not Path("experiments").exists()
    write(Path("out/part-001.csv"), rows(1))
    assert "holds part-001.csv already: add --replace" in problems_of(run_of(lock))
    assert run_of(lock, replace=True).run().n == 8
    write(Path("out/part-001.csv"), rows(1))  # somebody else's since then
    assert "holds part-001.csv already: add --replace" in problems_of(run_of(lock))


def test_a_worker_that_cannot_do_as_the_others_do_says_so(lock: Path) -> None:
    write_partitions(Path("in"), 4, 1)
    (job,) = run_of(lock).jobs
    with pytest.raises(InputError, match="this worker does not see the experiment's folder"):
        job.judge(Budget(None))
    job.folder.mkdir(parents=True)
    with pytest.raises(InputError, match="this worker has another version of judgecal"):
        dataclasses.replace(job, code="other").judge(Budget(None))


def test_what_is_a_partition(lock: Path) -> None:
    names = write_partitions(Path("in"), 8, 2)
    for name in ("_SUCCESS", ".part-000.csv.crc", "_temporary/part-000.csv", "README.md"):
        Path("in", name).parent.mkdir(exist_ok=True)
        Path("in", name).write_text("x")
    Path("in/part-009.csv").write_text("id,question,answer,reference,system\n")
    write(Path("out/part-100.csv"), rows(1))
    found = list_partitions(["in"])
    assert {one.name for one in found.parts} == {*names, "part-009.csv"}
    notes = " ".join(run_of(lock).run().notes)
    assert "README.md: no partitions" in notes and "without rows, so without an output: part-009.csv" in notes
    assert "out also holds part-100.csv, which this run did not write" in notes
    assert list_partitions(["in", "in/sub/part-000.csv"]).parts == found.parts
    assert [one.name for one in list_partitions(["in/part-001.csv", "in/sub"]).parts] == [
        "part-000.csv",
        "part-001.csv",
    ]
    for given, problem in (
        (["none"], "none: there is no such file or folder"),
        (["in/_temporary/part-000.csv", "in/sub"], "has the name of"),
        (["in/README.md"], "holds no file that ends in"),
        (["nosuch://bucket/x"], "pyarrow cannot read this address"),
    ):
        with pytest.raises(InputError, match=problem):
            list_partitions(given)


def test_the_page_shows_rows_of_a_partition_and_names_a_command_that_runs(lock: Path) -> None:
    write_partitions(Path("in"), 8, 2)
    run = run_of(lock)
    result = run.run()
    assert judge_document(result).headline.next == f"judgecal gate --lock {lock}"
    assert "line" in str(judge_report(find_workspace(), run.experiment, 0.03).explorer)


def test_one_message_where_the_engine_does_not_fit(
    judgecal: Run, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = write_partitions(Path("in"), 8, 2)
    several = judgecal("judge", f"in/{names[0]}", "in", "--lock", lock, "-o", "out.csv", *OPTIONS)
    assert several.code == 2
    assert "2 files were given: --engine local judges one table" in several.err
    assert "in: --engine local reads a file on this machine" in several.err
    odd = judgecal("judge", "in", "--suite", "rag", "-o", "out", "--engine", "rays", *OPTIONS)
    assert odd.code == 2 and "--engine is local or ray, found 'rays'" in odd.err
    suite = judgecal("judge", "in", "--suite", "rag", "-o", "out", "--engine", "ray", *OPTIONS)
    assert suite.code == 2 and "--engine ray takes one --lock" in suite.err
    monkeypatch.setitem(sys.modules, "ray", None)
    absent = judgecal("judge", "in", "--lock", lock, "-o", "out", "--engine", "ray", *OPTIONS)
    assert absent.code == 2 and "--engine ray needs ray, which is not installed" in absent.err.replace(
        "\n  ", " "
    )
