"""`judge` on a table in partitions: each one is a run of its own, with its own journal, and their counts are
added up.

Nothing here knows who runs the partitions: see `Engine`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from judgecal.bulk.partition_job import PartitionFacts, PartitionJob
from judgecal.engine import Progress, held, require_prices
from judgecal.errors import InputError, listed, refuse
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    RunOptions,
    judge_config,
    models_of,
    open_experiment,
    plan_experiment,
    together,
)
from judgecal.goldset import Columns
from judgecal.judges import Judge
from judgecal.production.judge_result import Counted, JudgedTables, JudgeResult, judge_result
from judgecal.selection.lock import Lock, load_lock
from judgecal.tables import Partitions, Place, Stamp
from judgecal.workspace import Workspace


class Engine(Protocol):
    """Who runs the partitions."""

    def look(self, jobs: Sequence[PartitionJob], *, estimate: bool) -> list[PartitionFacts]:
        """What each is like, in the order of the jobs."""
        ...

    def judge(
        self, jobs: Sequence[PartitionJob], options: RunOptions, judge: Judge, *, progress: Progress | None
    ) -> Iterator[tuple[int, Counted]]:
        """Judge them; the number of each job and what it comes to, as they end.

        Raises:
            JudgecalError: one of them cannot be judged; what was judged of it is kept.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class PartitionedRun:
    """`judge` on partitions with one lock, checked before the first call.

    Attributes:
        output: the folder that the partitions' outputs go to, as it was named.
        out: the slug of the experiment, or None for the usual one.
        replace: whether files are written over that another command wrote.
    """

    workspace: Workspace
    lock_path: Path
    trust_lock: bool
    columns: Columns
    partitions: Partitions
    output: str
    options: RunOptions
    engine: Engine
    out: str | None = None
    replace: bool = False

    @cached_property
    def lock(self) -> Lock:
        """The lock of the judge."""
        return load_lock(self.lock_path)

    @cached_property
    def judge(self) -> Judge:
        """The lock's judge."""
        return self.lock.runnable(self.workspace, trust_lock=self.trust_lock)

    @cached_property
    def experiment(self) -> Experiment:
        """Where calls and result go; who runs the partitions is no part of what was asked."""
        places = [Place.of(one) for one in self.partitions.given]
        config = {
            "command": "judge",
            "gold": {"set": self.lock.gold.set, "sha256": self.lock.gold.sha256},
            "lock": self.lock.sha256,
            "judge": judge_config(self.judge),
            "input": {"partitions": [one.text for one in places], "columns": self.columns.options()},
        }
        return plan_experiment(self.workspace, config, out=self.out)

    @cached_property
    def jobs(self) -> list[PartitionJob]:
        """One a partition; the limit is not shared out yet."""
        workspace = replace(
            self.workspace,
            root=self.workspace.root.absolute(),
            experiments=self.workspace.experiments.absolute(),
        )
        return [
            PartitionJob(
                workspace=workspace,
                folder=self.experiment.folder.absolute(),
                lock_path=self.lock_path.absolute(),
                trust_lock=self.trust_lock,
                columns=self.columns,
                options=replace(self.options, limit=None, quiet=True),
                partition=one,
                output=Place.of(self.output) / one.name,
            )
            for one in self.partitions.parts
        ]

    def check(self) -> None:
        """Refuse what cannot be done before a partition is read.

        Raises:
            InputError: the output is no folder to write to, or a budget meets a model without a price.
        """
        require_prices(models_of([self.judge]), self.options.limit_usd)
        there = self._output_files()
        foreign = [
            job.partition.name
            for job in self.jobs
            if (stamp := there.get(job.partition.name)) is not None and not job.wrote(stamp)
        ]
        if foreign and not self.replace:
            raise InputError(
                f"{self.output}: holds {listed(foreign)} already: give --replace to write over them, or name another "
                "folder"
            )

    def _output_files(self) -> dict[str, Stamp]:
        """What the output folder holds. InputError: it is no folder, or the input itself."""
        place = Place.of(self.output)
        inputs = {Place.of(text).identity for text in self.partitions.given}
        outputs = {job.output.identity for job in self.jobs}
        if any(f"{place.identity}/".startswith(f"{one}/") for one in inputs) or outputs & {
            job.partition.place.identity for job in self.jobs
        }:
            raise InputError(f"{self.output}: is the input itself, or in it: write to another folder")
        there = place.files() or {}
        if "" in there:
            raise InputError(
                f"{self.output}: is a file: partitions are written into a folder, each under its own name"
            )
        if place.local is not None and not place.local.parent.is_dir():
            raise InputError(f"{place.local.parent}: there is no such folder: make it first")
        return there

    def preview(self) -> CostEstimate:
        """What a run would call; nothing is written."""
        self.check()
        looked = self.engine.look(self._limited(self._facts()), estimate=True)
        return together([one.estimate for one in looked if one.estimate is not None])

    def _facts(self) -> list[PartitionFacts]:
        """What the partitions are like. InputError: one cannot be read, or lacks a column."""
        facts = self.engine.look(self.jobs, estimate=False)
        refuse(list(dict.fromkeys(problem for one in facts for problem in one.problems)))
        filled = [(job, one) for job, one in zip(self.jobs, facts, strict=True) if one.n_rows]
        if not filled:
            raise InputError(f"{', '.join(self.partitions.given)}: no partition holds a row")
        first, like = filled[0]
        refuse(
            [
                f"{job.partition.place.text}: its columns are {', '.join(one.columns)}, and those of "
                f"{first.partition.name} are {', '.join(like.columns)}: the partitions of a table have the same columns"
                for job, one in filled
                if one.columns != like.columns
            ]
        )
        return facts

    def run(self) -> JudgeResult:
        """Make the calls that are due, write each partition's output, and say what the verdicts come to.

        Raises:
            InputError: as `check`; a partition cannot be read or lacks a column, or a key is not set.
            BusyError: another process works on this experiment.
            JudgecalError: a partition could not be judged; the others' outputs are there, and the same
                command resumes.
        """
        self.check()
        facts = self._facts()
        open_experiment(self.experiment)
        n_rows = sum(one.n_rows for one in facts)
        with held(
            self.experiment.journal
        ):  # two commands would keep the money of one experiment, each for itself
            counted = self._count(self._limited(facts), min(n_rows, self.options.limit or n_rows))
            result = self._result(counted, facts)
            self.experiment.write_summary(result)
        return result

    def _limited(self, facts: Sequence[PartitionFacts]) -> list[PartitionJob]:
        """The jobs that have a row to judge, each with its share of the limit: the first rows of them all."""
        left = sum(one.n_rows for one in facts) if self.options.limit is None else self.options.limit
        jobs = []
        for job, one in zip(self.jobs, facts, strict=True):
            share = min(one.n_rows, left)
            left -= share
            if share:
                limit = None if share == one.n_rows else share
                jobs.append(replace(job, options=replace(job.options, limit=limit)))
        return jobs

    def _count(self, jobs: Sequence[PartitionJob], total: int) -> Counted:
        """Judge them, and add up their counts in their order."""
        progress = (
            None if self.options.quiet else Progress(f"{self.lock.judge} on {len(jobs)} partitions", total)
        )
        counts: dict[int, Counted] = {}
        for place, counted in self.engine.judge(jobs, self.options, self.judge, progress=progress):
            counts[place] = counted
            if progress:
                overall = counted.overview.overall()
                progress.done += overall.n_expected
                progress.unscored += overall.n_unscored
                progress.cost_usd += counted.costs.usd or 0.0
                progress.show()
        if progress:
            progress.close()
        whole = Counted(self.lock, self.judge)
        for _, counted in sorted(counts.items()):
            whole.extend(counted)
        return whole

    def _result(self, counted: Counted, facts: Sequence[PartitionFacts]) -> JudgeResult:
        given = self.partitions.given
        tables = JudgedTables(
            input=", ".join(given),
            name=",".join(Place.of(one).name for one in given),
            output=self.output,
            columns=self.columns,
            added=next(one.added for one in facts if one.n_rows),
            n_rows=sum(one.n_rows for one in facts),
            notes=tuple(dict.fromkeys((*self.partitions.notes, *_notes_of(facts), *self._more_notes(facts)))),
        )
        return judge_result(
            counted,
            tables,
            slug=self.experiment.slug,
            lock=self.lock,
            lock_path=self.lock_path,
            judge=self.judge,
        )

    def _more_notes(self, facts: Sequence[PartitionFacts]) -> Iterator[str]:
        empty = [job.partition.name for job, one in zip(self.jobs, facts, strict=True) if not one.n_rows]
        if empty:
            yield f"without rows, so without an output: {listed(empty)}"
        known = {job.partition.name for job in self.jobs}
        others = [
            name for name in self._output_files() if name not in known and name.rpartition("/")[2][:1] != "."
        ]
        if others:
            yield f"{self.output} also holds {listed(sorted(others))}, which this run did not write"


def _notes_of(facts: Iterable[PartitionFacts]) -> Iterator[str]:
    return (note for one in facts for note in one.notes)
