"""One partition of a table, judged by whoever has it: as any table is, with a journal of its own.

The journal and a note of the output lie in the experiment's folder, under `partitions/`. An output is whole
when it is under its name; the note says which input it was made of and when it was written, so that a later
run leaves it alone where no judgement of it is due.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgecal.artefacts import read_json
from judgecal.engine import Budget
from judgecal.errors import BusyError, InputError
from judgecal.experiment import CostEstimate, RunOptions, stored_rows
from judgecal.experiment.folder import code_sha
from judgecal.experiment.trials import Due
from judgecal.goldset import Columns
from judgecal.production.judge import ProductionRun
from judgecal.production.judge_result import Counted
from judgecal.production.row_items import RowReader
from judgecal.selection.lock import load_lock
from judgecal.tables import NoRowsError, Partition, Place, Stamp, open_source
from judgecal.workspace import Workspace, write_text

_BUSY_S = 10.0  # a worker that was killed lets go of its journal when the system has cleared it away


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """What a partition is like before anything is called.

    Attributes:
        n_rows: 0 where it is a table without rows, which is left out.
        columns: its own; `added` are the names of those that the output has more.
        notes, problems: in sentences.
        estimate: what judging it would call.
    """

    n_rows: int = 0
    columns: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    estimate: CostEstimate | None = None


@dataclass(frozen=True, kw_only=True)
class PartitionJob:
    """One partition to be judged, as any process that sees the workspace and the files can do it.

    Attributes:
        folder: of the experiment.
        output: where the partition's rows go.
        options: `limit` counts this partition's rows.
        code: of judgecal, as who made the job has it.
    """

    workspace: Workspace
    folder: Path
    lock_path: Path
    trust_lock: bool
    columns: Columns
    options: RunOptions
    partition: Partition
    output: Place
    code: str = field(default_factory=code_sha)

    @property
    def journal(self) -> Path:
        """The partition's own."""
        return self.folder / "partitions" / f"{self.partition.name}.jsonl"

    @property
    def _note(self) -> Path:
        return self.folder / "partitions" / f"{self.partition.name}.output.json"

    def look(self, *, estimate: bool) -> PartitionFacts:
        """Read the partition, and hold it against what is asked; nothing is called or written."""
        try:
            with self.partition.place.fetched() as path:
                run = self._run(path, Path(self.partition.name))
                run.reader.check(run.source)
                planned = run.estimate(stored_rows(self.journal, long=True)) if estimate else None
                source, layout = run.source, run.layout
                notes = (*source.notes, *layout.notes)
                return PartitionFacts(
                    n_rows=source.n_rows,
                    columns=source.columns,
                    added=layout.names,
                    notes=notes,
                    estimate=planned,
                )
        except NoRowsError:
            return PartitionFacts()
        except InputError as error:
            return PartitionFacts(problems=error.problems)

    def judge(self, budget: Budget) -> Counted:
        """Make the calls that are due and write the output; where none is due and it is whole, count its
        rows.

        Raises:
            InputError: as `ProductionRun.run`; or this process does not see the experiment's folder, or has
                other code.
        """
        self._check_worker()
        with self.partition.place.fetched() as path:
            if self.is_whole():
                run, journal = (
                    self._run(path, Path(self.partition.name)),
                    stored_rows(self.journal, long=True),
                )
                if not Due(run.judge, run.items, journal, run.asking):
                    return run.count_rows(journal)
            with self.output.delivered() as out:
                counted = self._judged(self._run(path, out), budget)
        self._write_note(whole=True)
        return counted

    def _check_worker(self) -> None:
        if not self.folder.is_dir():
            raise InputError(
                f"{self.folder}: this worker does not see the experiment's folder: the workspace must lie on a file "
                "system that every machine has under the same path"
            )
        if self.code != code_sha():
            raise InputError(
                "this worker has another version of judgecal: install the same one on every machine"
            )

    def _judged(self, run: ProductionRun, budget: Budget) -> Counted:
        deadline = time.monotonic() + _BUSY_S
        while True:
            try:
                return run.judge_rows(self.journal, budget, before=lambda: self._write_note(whole=False))
            except BusyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def _run(self, path: Path, output: Path) -> ProductionRun:
        lock = load_lock(self.lock_path)
        judge = lock.runnable(self.workspace, trust_lock=self.trust_lock)
        source = open_source(path)
        return ProductionRun(
            workspace=self.workspace,
            lock=lock,
            lock_path=self.lock_path,
            source=source,
            reader=RowReader.of(self.columns, source, judge),
            judge=judge,
            output=output,
            options=self.options,
        )

    def _write_note(self, *, whole: bool) -> None:
        """Before the output gets its name, and when it has it: a kill between the two leaves it as ours, not
        whole."""
        stamp = self.output.stamp() if whole else None
        self._note.parent.mkdir(parents=True, exist_ok=True)
        write_text(self._note, json.dumps({**self._noted, "stamp": stamp and [*stamp]}) + "\n")

    @property
    def _noted(self) -> dict[str, Any]:
        return {"output": self.output.text, "input": [*self.partition.stamp], "limit": self.options.limit}

    def is_whole(self) -> bool:
        """Whether the output is there, made of this input, and as it was written."""
        told, stamp = self._read_note(), self.output.stamp()
        return stamp is not None and told == {**self._noted, "stamp": [*stamp]}

    def wrote(self, stamp: Stamp) -> bool:
        """Whether an output that is there, with this stamp, is what this experiment wrote."""
        told = self._read_note()
        return told.get("output") == self.output.text and told.get("stamp") in (None, [*stamp])

    def _read_note(self) -> dict[str, Any]:
        return read_json(self._note, absent="") if self._note.is_file() else {}
