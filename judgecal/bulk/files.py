"""`judge` on several files: an ordinary run for each, and one result for the rows of all.

The run of a file has its own experiment, with its journal, under `files/` of the command's experiment. A note
there says of which input the output was made, so that a later run leaves alone what is done. Files are found
and copied by fsspec; one on this machine is read where it lies.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgecal.engine.budget import Budget, CostEstimate, together
from judgecal.engine.log import log_lock
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError, notice, refuse
from judgecal.experiment.folder import Experiment, open_experiment, plan_experiment
from judgecal.experiment.score import judge_config
from judgecal.experiment.trials import stored_rows
from judgecal.production.judge import JudgeRun
from judgecal.production.results import JudgeResult, RowCounts
from judgecal.production.suite import SuiteColumn
from judgecal.tables import Columns, NoRowsError
from judgecal.tables.columns import columns_file
from judgecal.tables.formats import addresses_of, reaching
from judgecal.workspace import Workspace, write_text


def file_key(address: str) -> str | None:
    """Return a text, or None, that changes when the file at an address changes; None where there is none."""
    with reaching(address) as (system, path):
        return str(system.ukey(path)) if system.exists(path) else None


@dataclass(frozen=True, slots=True)
class FileTask:
    """One file to be judged, by any process that sees the workspace.

    Attributes:
        note: the path of what is known of its output.
        load: `JudgeRun.of_lock`, with all but the places of the file.
    """

    name: str
    address: str
    output: str
    note: Path
    options: RunOptions
    load: Callable[..., JudgeRun]

    @contextlib.contextmanager
    def open(self) -> Iterator[JudgeRun]:
        """Yield the JudgeRun of the task's own file, or a copy here; it writes into a temporary folder."""
        with tempfile.TemporaryDirectory(prefix="judgecal-") as folder:
            path, output = Path(self.address), Path(folder, "out", self.name)
            output.parent.mkdir()
            if "://" in self.address:
                path = Path(folder, self.name)
                with reaching(self.address) as (system, there):
                    system.get_file(there, str(path))
            yield self.load(path, options=self.options, output=output, out=self.name, address=self.address)

    def judge(self, budget: Budget) -> RowCounts:
        """Judge the task's own file within a Budget, return its RowCounts; where done, count its rows."""
        made_of = f"input {file_key(self.address)} limit {self.options.limit} output"
        with self.open() as run:
            journal = stored_rows(run.experiment.journal)
            done = self._noted() == f"{made_of} {file_key(self.output)}\n"
            if done and not any(run.trials(journal)):
                return run.count_rows(journal)
            open_experiment(run.experiment)
            write_text(self.note, f"{made_of} None\n")  # from now on a file in the output's place is ours
            rows = run.judge_rows(budget)
            with reaching(self.output) as (system, there):
                folder = there.removesuffix(self.name)
                system.makedirs(folder, exist_ok=True)
                for path in filter(Path.exists, (columns_file(run.output), run.output)):
                    system.put_file(str(path), draft := f"{folder}.{path.name}.draft")
                    system.mv(draft, folder + path.name)
        write_text(self.note, f"{made_of} {file_key(self.output)}\n")
        return rows

    def may_write(self) -> bool:
        """Return whether nothing is in the output's place but what a run of this file wrote."""
        key = file_key(self.output)
        return key is None or self._noted().endswith((" None\n", f" {key}\n"))

    def _noted(self) -> str:
        return self.note.read_text(encoding="utf-8") if self.note.is_file() else ""


@dataclass(frozen=True, kw_only=True)
class FilesRun:
    """`judge` with a lock on several files, all of them checked before the first call."""

    workspace: Workspace
    lock_path: Path
    trust_lock: bool
    column: SuiteColumn  # of the lock
    columns: Columns
    files: Sequence[str]
    output: str  # the folder of the outputs, each under its file's name
    options: RunOptions  # the limit is of each file
    # What judges the tasks by the column within a budget, and gives the number and the rows of each, as they
    # end; by default this process, one after the other.
    engine: Callable[..., Iterator[tuple[int, RowCounts]]] | None
    out: str | None  # the slug of the experiment, or None for the usual one
    replace: bool  # whether files are written over that another command wrote

    @functools.cached_property
    def experiment(self) -> Experiment:
        """The experiment of the folder of outputs; a further file in the folder belongs to it."""
        (judge,) = self.column.judges
        assert judge.lock is not None
        about = {"output": addresses_of(self.output)[0], "columns": self.columns.options()}
        config = {**judge.lock.config, "judge": judge_config(judge.judge), "input": about}
        return plan_experiment(self.workspace, {"command": "judge", **config}, out=self.out)

    def _tasks(self) -> Iterator[FileTask]:
        (folder,), files = addresses_of(self.output), self.experiment.folder.absolute() / "files"
        load = functools.partial(
            JudgeRun.of_lock,
            workspace=replace(self.workspace, root=self.workspace.root.absolute(), experiments=files),
            lock=self.lock_path.absolute(),
            trust_lock=self.trust_lock,
            columns=self.columns,
        )
        for address in dict.fromkeys(address for text in self.files for address in addresses_of(text)):
            name = address.rpartition("/")[2]
            yield FileTask(name, address, f"{folder}/{name}", files / name / "done", self.options, load)

    def _checked(self, look: Callable[[JudgeRun], Any]) -> list[tuple[FileTask, JudgeRun, Any]]:
        """Each task with rows, its run, and what `look` gives for it; InputError: all that is wrong."""
        checked, problems, addresses = list[tuple[FileTask, JudgeRun, Any]](), list[str](), dict[str, str]()
        for task in self._tasks():
            if (other := addresses.setdefault(task.name, task.address)) != task.address:
                problems.append(f"{task.address}: has the name of {other}, and so would its output")
            if os.path.realpath(task.output) == os.path.realpath(task.address):
                problems.append(f"{task.address}: would be written over: name another folder")
            elif not (self.replace or task.may_write()):
                problems.append(f"{task.output}: is there already: add --replace to overwrite it")
            try:
                with task.open() as run:
                    checked.append((task, run, look(run)))
            except NoRowsError:
                notice(f"judgecal: {task.address}: holds no row, so we write no output for it")
            except InputError as error:
                texts = (re.sub(r"\S*/judgecal-\w+/(out/)?", "", each) for each in error.problems)
                problems += (text if task.name in text else f"{task.address}: {text}" for text in texts)
        refuse(problems or [f"{', '.join(self.files)}: no file holds a row"] * (not checked))
        return checked

    def preview(self) -> CostEstimate:
        """What a run would call; nothing is written."""
        return together([estimate for *_, estimate in self._checked(JudgeRun.preview)])

    def run(self) -> JudgeResult:
        """Judge the run's own files, return the JudgeResult of all; after a JudgecalError it resumes."""
        checked, limit_usd = self._checked(JudgeRun.prepare), self.options.budget_usd
        tasks, runs, _ = zip(*checked, strict=True)
        open_experiment(self.experiment)
        budget, total = Budget(limit_usd), RowCounts([self.column])
        with log_lock(self.experiment.journal):  # two commands would spend one budget each
            in_turn = enumerate(task.judge(budget) for task in tasks)
            parts = dict(self.engine(tasks, self.column, limit_usd) if self.engine else in_turn)
            for number in range(len(tasks)):
                total.extend(parts[number])
            result: JudgeResult = runs[0].result(
                total,
                experiment=self.experiment.slug,
                source=(", ".join(self.files), f"{len(tasks)} files"),
                output=self.output,
                n_rows=sum(run.source.n_rows for run in runs),
                notes=[*dict.fromkeys(note for run in runs for note in run.notes)],
            )
            self.experiment.write_summary(result)
        return result
