"""`judge` on a table in partitions: each one is a run of its own, with its own journal, and their counts are
added up. Nothing here knows who runs the partitions: see `Engine`.

A partition's journal and a note of its output lie in the experiment's folder, under `partitions/`. An output
is whole when it is under its name; the note says which input it was made of and when it was written, so that
a later run leaves it alone where no judgement of it is due.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from judgecal.artefacts import read_json
from judgecal.engine import Budget, Progress, held, require_prices
from judgecal.errors import BusyError, InputError, listed, refuse
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    RowReader,
    RunOptions,
    judge_config,
    models_of,
    open_experiment,
    plan_experiment,
    plan_trials,
    stored_rows,
    together,
)
from judgecal.experiment.folder import code_sha
from judgecal.production.judge import JudgeRun
from judgecal.production.judge_counts import JudgedRows
from judgecal.production.results import JudgeResult, lock_result
from judgecal.production.suite import SuiteColumn
from judgecal.tables import Columns, NoRowsError, Partition, Partitions, Place, Stamp, open_source
from judgecal.workspace import Workspace, write_text

_BUSY_S = 10.0  # a worker that was killed lets go of its journal when the system has cleared it away


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """What a partition is like before anything is called."""

    n_rows: int = 0  # 0 where it is a table without rows, which is left out
    columns: tuple[str, ...] = ()  # its own
    named: Mapping[str, str | None] = field(default_factory=dict)  # what a column holds -> its name
    added: tuple[str, ...] = ()  # those that the output has more
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    estimate: CostEstimate | None = None  # what judging it would call


@dataclass(frozen=True, kw_only=True)
class PartitionJob:
    """One partition to be judged, as any process that sees the workspace and the files can do it."""

    workspace: Workspace
    folder: Path  # of the experiment
    lock_path: Path
    trust_lock: bool
    columns: Columns
    options: RunOptions  # the limit counts this partition's rows
    partition: Partition
    output: Place  # where the partition's rows go
    code: str = field(default_factory=code_sha)  # of judgecal, as who made the job has it

    @property
    def journal(self) -> Path:
        """The partition's own."""
        return self.folder / "partitions" / f"{self.partition.name}.jsonl"

    def look(self, *, estimate: bool) -> PartitionFacts:
        """Read the partition, and hold it against what is asked; nothing is called or written."""
        try:
            with self.partition.place.fetched() as path:
                run = self._run(path, Path(self.partition.name))
                run.reader.check(run.source)
                journal = stored_rows(self.journal, long=True)
                return PartitionFacts(
                    n_rows=run.source.n_rows,
                    columns=run.source.columns,
                    named=run.reader.sheet_columns(),
                    added=tuple(run.layout.added),
                    notes=(*run.source.notes, *run.layout.notes),
                    estimate=plan_trials(run.trials(journal)) if estimate else None,
                )
        except NoRowsError:
            return PartitionFacts()
        except InputError as error:
            return PartitionFacts(problems=error.problems)

    def judge(self, budget: Budget) -> JudgedRows:
        """Make the calls that are due and write the output; where it is whole and none is due, count it.

        Refused where this process does not see the experiment's folder, or has other code.
        """
        if not self.folder.is_dir():
            raise InputError(
                f"{self.folder}: this worker does not see the experiment's folder: the workspace must lie on "
                "a file system that every machine has under the same path"
            )
        if self.code != code_sha():
            raise InputError(
                "this worker has another version of judgecal: install the same one on every machine"
            )
        with self.partition.place.fetched() as path:
            stamp = self.output.stamp()
            if stamp is not None and self._read_note() == self._note_of(stamp):
                run = self._run(path, Path(self.partition.name))
                journal = stored_rows(self.journal, long=True)
                if not any(run.trials(journal)):
                    return run.count_rows(journal)
            with self.output.delivered() as output:
                run, deadline = self._run(path, output), time.monotonic() + _BUSY_S
                while True:
                    try:
                        rows = run.judge_rows(self.journal, budget, before=lambda: self._write_note(None))
                        break
                    except BusyError:
                        if time.monotonic() > deadline:
                            raise
                        time.sleep(0.2)
        self._write_note(self.output.stamp())
        return rows

    def _run(self, path: Path, output: Path) -> JudgeRun:
        column = SuiteColumn.of_lock(self.lock_path, self.workspace, trust_lock=self.trust_lock)
        source = open_source(path)
        return JudgeRun(
            workspace=self.workspace,
            suite=None,
            columns=(column,),
            source=source,
            reader=RowReader.of(self.columns, source, column.judges[0].judge),
            output=output,
            options=self.options,
        )

    @property
    def _note(self) -> Path:
        return self.journal.with_suffix(".output.json")

    def _note_of(self, stamp: Stamp | None) -> dict[str, Any]:
        made_of = {"input": [*self.partition.stamp], "limit": self.options.limit}
        return {"output": self.output.text, **made_of, "stamp": stamp and [*stamp]}

    def _write_note(self, stamp: Stamp | None) -> None:
        """Before the output has its name, and when it has it: a kill between leaves it ours."""
        self._note.parent.mkdir(parents=True, exist_ok=True)
        write_text(self._note, json.dumps(self._note_of(stamp)) + "\n")

    def _read_note(self) -> dict[str, Any]:
        return read_json(self._note, absent="") if self._note.is_file() else {}

    def wrote(self, stamp: Stamp) -> bool:
        """Whether an output that is there, with this stamp, is what this experiment wrote."""
        note = self._read_note()
        return note.get("output") == self.output.text and note.get("stamp") in (None, [*stamp])


class Engine(Protocol):
    """Who runs the partitions."""

    def look(self, jobs: Sequence[PartitionJob], *, estimate: bool) -> list[PartitionFacts]:
        """What each is like, in the order of the jobs."""
        ...

    def judge(
        self, jobs: Sequence[PartitionJob], options: RunOptions, *, calls: bool, progress: Progress | None
    ) -> Iterator[tuple[int, JudgedRows]]:
        """Judge them; the number of each job and what it comes to, as they end. `calls`: a server is called.

        Raises:
            JudgecalError: one of them cannot be judged; what was judged of it is kept.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class PartitionedRun:
    """`judge` on partitions with one lock, checked before the first call."""

    workspace: Workspace
    lock_path: Path
    trust_lock: bool
    columns: Columns
    partitions: Partitions
    output: str  # the folder that the partitions' outputs go to, as it was named
    options: RunOptions
    engine: Engine
    out: str | None = None  # the slug of the experiment, or None for the usual one
    replace: bool = False  # whether files are written over that another command wrote

    @cached_property
    def _column(self) -> SuiteColumn:
        return SuiteColumn.of_lock(self.lock_path, self.workspace, trust_lock=self.trust_lock)

    @cached_property
    def experiment(self) -> Experiment:
        """Where calls and result go; who runs the partitions is no part of what was asked."""
        (judge,) = self._column.judges
        assert judge.lock is not None
        places = [Place.of(place).text for place in self.partitions.given]
        config = {
            "command": "judge",
            **judge.lock.config,
            "judge": judge_config(judge.judge),
            "input": {"partitions": places, "columns": self.columns.options()},
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @cached_property
    def jobs(self) -> list[PartitionJob]:
        """One a partition; the limit is not shared out yet."""
        root, experiments = self.workspace.root.absolute(), self.workspace.experiments.absolute()
        return [
            PartitionJob(
                workspace=replace(self.workspace, root=root, experiments=experiments),
                folder=self.experiment.folder.absolute(),
                lock_path=self.lock_path.absolute(),
                trust_lock=self.trust_lock,
                columns=self.columns,
                options=replace(self.options, limit=None, quiet=True),
                partition=partition,
                output=Place.of(self.output) / partition.name,
            )
            for partition in self.partitions.parts
        ]

    def check(self) -> None:
        """Refuse what cannot be done before a partition is read."""
        require_prices(models_of([self._column.judges[0].judge]), self.options.budget_usd)
        place = Place.of(self.output)
        there = place.files() or {}
        inputs = {Place.of(text).identity for text in self.partitions.given}
        read = {job.partition.place.identity for job in self.jobs}
        inside = any(f"{place.identity}/".startswith(f"{folder}/") for folder in inputs)
        if inside or read & {job.output.identity for job in self.jobs}:
            raise InputError(f"{self.output}: is the input itself, or in it: write to another folder")
        if "" in there:
            raise InputError(
                f"{self.output}: is a file: partitions are written into a folder, each under its own name"
            )
        if place.local is not None and not place.local.parent.is_dir():
            raise InputError(f"{place.local.parent}: there is no such folder: make it first")
        stamps = [(job, there.get(job.partition.name)) for job in self.jobs]
        foreign = [job.partition.name for job, stamp in stamps if stamp is not None and not job.wrote(stamp)]
        if foreign and not self.replace:
            raise InputError(
                f"{self.output}: holds {listed(foreign)} already: add --replace to overwrite them, or "
                "name another folder"
            )

    def preview(self) -> CostEstimate:
        """What a run would call; nothing is written."""
        self.check()
        facts = self.engine.look(self._limited(self._facts()), estimate=True)
        return together([part.estimate for part in facts if part.estimate is not None])

    def _facts(self) -> list[PartitionFacts]:
        """What the partitions are like; refused where one cannot be read, or lacks a column."""
        facts = self.engine.look(self.jobs, estimate=False)
        refuse(list(dict.fromkeys(problem for part in facts for problem in part.problems)))
        filled = [(job.partition, part) for job, part in zip(self.jobs, facts, strict=True) if part.n_rows]
        if not filled:
            raise InputError(f"{', '.join(self.partitions.given)}: no partition holds a row")
        first, like = filled[0]
        refuse(
            [
                f"{partition.place.text}: its columns are {', '.join(part.columns)}, and those of "
                f"{first.name} are {', '.join(like.columns)}: the partitions of a table have the same columns"
                for partition, part in filled
                if part.columns != like.columns
            ]
        )
        return facts

    def run(self) -> JudgeResult:
        """Make the calls that are due, write each partition's output, and say what the verdicts come to.

        Raises:
            BusyError: another process works on this experiment.
            JudgecalError: a partition could not be judged; the others' outputs are there, and the same
                command resumes.
        """
        self.check()
        facts = self._facts()
        open_experiment(self.experiment)
        # two commands would keep the money of one experiment, each for itself
        with held(self.experiment.journal):
            n_rows = sum(part.n_rows for part in facts)
            rows = self._judge(self._limited(facts), min(n_rows, self.options.limit or n_rows))
            given, first = self.partitions.given, next(part for part in facts if part.n_rows)
            result = lock_result(
                rows,
                self._column.judges[0],
                slug=self.experiment.slug,
                input=", ".join(given),
                name=",".join(Place.of(place).name for place in given),
                output=self.output,
                named=first.named,
                added=first.added,
                n_rows=n_rows,
                notes=list(dict.fromkeys(self._notes(facts))),
            )
            self.experiment.write_summary(result)
        return result

    def _limited(self, facts: Sequence[PartitionFacts]) -> list[PartitionJob]:
        """The jobs that have a row to judge, each with its share of the limit: the first rows of them all."""
        left = sum(part.n_rows for part in facts) if self.options.limit is None else self.options.limit
        jobs = []
        for job, part in zip(self.jobs, facts, strict=True):
            share = min(part.n_rows, left)
            left -= share
            if share:
                limit = None if share == part.n_rows else share
                jobs.append(replace(job, options=replace(job.options, limit=limit)))
        return jobs

    def _judge(self, jobs: Sequence[PartitionJob], n_rows: int) -> JudgedRows:
        """Judge them, and add up their counts in their order."""
        judge, progress = self._column.judges[0].judge, None
        if not self.options.quiet:
            progress = Progress(f"{judge.name} on {len(jobs)} partitions", n_rows)
        counts: dict[int, JudgedRows] = {}
        calls = any(not model.embedded for model in models_of([judge]))
        for number, rows in self.engine.judge(jobs, self.options, calls=calls, progress=progress):
            counts[number] = rows
            if progress:
                progress.done += rows.n
                progress.unscored += rows.n_unscored
                progress.cost_usd += rows.total.usd or 0.0
                progress.show()
        if progress:
            progress.close()
        total = JudgedRows([self._column])
        for _, rows in sorted(counts.items()):
            total.extend(rows)
        return total

    def _notes(self, facts: Sequence[PartitionFacts]) -> Iterator[str]:
        yield from self.partitions.notes
        for part in facts:
            yield from part.notes
        empty = [job.partition.name for job, part in zip(self.jobs, facts, strict=True) if not part.n_rows]
        if empty:
            yield f"without rows, so without an output: {listed(empty)}"
        written = {job.partition.name for job in self.jobs}
        names = [name for name in Place.of(self.output).files() or {} if name.rpartition("/")[2][:1] != "."]
        others = sorted(name for name in names if name not in written)
        if others:
            yield f"{self.output} also holds {listed(others)}, which this run did not write"
