"""`judge`: a locked judge on a table of production answers, and what its verdicts come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal.engine import Budget, Journal
from judgecal.errors import InputError
from judgecal.experiment import (
    CostEstimate,
    Experiment,
    RunOptions,
    judge_config,
    keep_trials,
    models_of,
    open_experiment,
    open_journal,
    plan_calls,
    plan_experiment,
    read_config,
    require_keys,
    stored_rows,
    whole_item,
)
from judgecal.judges import Judge, units_of
from judgecal.production.judge_result import Counted, JudgedTables, JudgeResult, judge_result
from judgecal.production.row_items import Judged, RowItems, RowReader, judged_columns
from judgecal.records import Item, Judgement, Key
from judgecal.selection.lock import Lock, load_lock
from judgecal.tables import Columns, FileSource, Row, Write, check_output, open_source, write_beside, writing
from judgecal.tables.formats import Layout
from judgecal.workspace import Workspace, find_workspace


@dataclass(frozen=True)
class ProductionRun:
    """Everything that `judge` needs, checked before the first call."""

    workspace: Workspace
    lock: Lock
    lock_path: Path
    source: FileSource
    reader: RowReader
    judge: Judge  # the lock's judge
    output: Path
    options: RunOptions
    out: str | None = None  # the slug of the experiment, or None for the usual one
    replace: bool = False  # whether a file of the output's name is written over that another command wrote

    @cached_property
    def experiment(self) -> Experiment:
        """Where calls and result go."""
        config = {
            "command": "judge",
            "gold": {"set": self.lock.gold.set, "sha256": self.lock.gold.sha256},
            "lock": self.lock.sha256,
            "judge": judge_config(self.judge),
            "input": input_config(self.workspace, self.source, self.reader),
        }
        return plan_experiment(self.workspace, config, out=self.out)

    def check(self) -> None:
        """Refuse what cannot be done before anything is called or written.

        Raises:
            InputError: the output is no place to write to, a column is missing or not named, or a budget
                meets a model without a price.
        """
        may = self.replace or self.experiment.wrote(self.output)
        check_output(self.output, self.source.path, self.source.n_rows, replace=may)
        self.reader.check(self.source)
        self.options.check_models(models_of([self.judge]))

    @cached_property
    def asking(self) -> RunOptions:
        """The options, with no verdict from before the lock's last gate taken."""
        return since_gate(self.options, self.workspace, [self.lock])

    @property
    def items(self) -> RowItems:
        """The rows that the judge is called for."""
        return RowItems(self.source, self.reader, self.options.limit)

    def preview(self) -> CostEstimate:
        """What a run would call; nothing is written."""
        self.check()
        return self.estimate(stored_rows(self.experiment.journal, long=True))

    def estimate(self, stored: Journal) -> CostEstimate:
        """What the rows would call that this journal has no judgement of."""
        return plan_calls([self.judge], self.items, stored, self.asking)

    def run(self) -> JudgeResult:
        """Make the calls that are due, write the output, and say what the verdicts come to.

        The output appears when all rows are done, whole: after Ctrl-C there is none, and the same command
        resumes.

        Raises:
            InputError: as `check`; a key is not set and a call is due, or the table changed while it was
                being read.
        """
        self.check()
        stored = stored_rows(self.experiment.journal, long=True)
        require_keys([self.judge], self.items, stored, self.asking)
        open_experiment(self.experiment)
        budget = self.options.open_budget(self.experiment.folder)
        counted = self.judge_rows(self.experiment.journal, budget, before=self._mark_output)
        result = judge_result(
            counted,
            JudgedTables(
                input=str(self.source.path),
                name=self.source.path.name,
                output=str(self.output),
                columns=self.reader.columns,
                added=self.layout.names,
                n_rows=self.source.n_rows,
                notes=(*self.source.notes, *self.layout.notes),
            ),
            slug=self.experiment.slug,
            lock=self.lock,
            lock_path=self.lock_path,
            judge=self.judge,
        )
        self.experiment.write_summary(result)
        return result

    def _mark_output(self) -> None:
        """Note that the output is ours, and say beside it which of its columns is what."""
        self.experiment.mark_output(self.output)
        columns = replace(self.reader.columns, verdict=self.layout.names[0])
        write_beside(self.output, columns, (*self.layout.output.own, *self.layout.names))

    @cached_property
    def layout(self) -> Layout:
        """How the output is written."""
        return Layout.of(self.source, self.output, judged_columns(words=not self.judge.scale.numeric))

    def judge_rows(self, path: Path, budget: Budget, *, before: Callable[[], None] | None = None) -> Counted:
        """Make the calls that are due and write the output; the journal is at `path`.

        `before` is called when every row is written, and the output not yet under its name.
        """
        with open_journal(path, self.options, long=True) as journal:
            keep_trials(self.judge, self.items, journal=journal, options=self.asking, budget=budget)
            with writing(self.output, self.layout.output, before=before) as write:
                return self.count_rows(journal, write)

    def count_rows(self, journal: Journal, write: Write | None = None) -> Counted:
        """What the rows come to whose judgements a journal holds; `write` takes them with what is added."""
        counted = Counted(self.lock, self.judge)
        for piece in self.source.pieces(self.options.limit):
            rows = [self._row(row, journal, counted) for row in piece.rows]
            if write is not None:
                write(piece, rows)
        return counted

    def _row(self, row: Row, journal: Journal, counted: Counted) -> Judged:
        """What is added to a row."""
        item = self.reader.read(row)
        lacking = self.reader.lacking(item)
        if lacking is not None:
            return counted.lacking(item, lacking)
        return counted.judged(item, judgement_of(journal, self.judge, item))


def since_gate(options: RunOptions, workspace: Workspace, locks: Iterable[Lock]) -> RunOptions:
    """Options by which no verdict is taken from before the last gate of these locks: what it asked afresh is
    known to stand for what the judge says now.
    """
    shas = [lock.sha256 for lock in locks]
    last = options.stored_since
    for path in workspace.experiments.glob("*/experiment.toml"):
        if not any(sha in path.read_text(encoding="utf-8", errors="replace") for sha in shas):
            continue
        config = read_config(path.parent)
        gate = Experiment(path.parent, config)
        if config["command"] == "gate" and config["lock"] in shas and gate.summary.exists():
            last = max(last, gate.last_written.timestamp())
    return replace(options, stored_since=last)


def judgement_of(journal: Journal, judge: Judge, item: Item, unit: str | None = None) -> Judgement:
    """The journal's row of an item, or of one of its chunks; of a judge of chunks the mean of all of them.

    Raises InputError: there is none.
    """
    units = [unit] if unit is not None else [name for name, _ in units_of(judge, item)]
    try:
        return whole_item(
            [journal.latest[Key(item.item_id, item.sha, judge.fingerprint, 0, one)] for one in units]
        )
    except KeyError:
        raise InputError(
            f"{journal.path}: holds no judgement of item {item.item_id} by {judge.name}: the table changed while it "
            "was being judged, run the same command again"
        ) from None


def input_config(workspace: Workspace, source: FileSource, reader: RowReader) -> dict[str, Any]:
    """What a configuration says of a table: where it is and which column is what.

    Its content is no part of that: a row is known by its text, so that of a table that has grown, or in which
    a row was mended, only what is new is called for.
    """
    return {"file": file_config(workspace, source), "columns": reader.columns.options()}


def file_config(workspace: Workspace, source: FileSource) -> str:
    """What a configuration says of a file: its path, within the workspace from there."""
    path, root = source.path.resolve(), workspace.root.resolve()
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def judge(
    table: str | Path,
    *,
    lock: str | Path,
    output: str | Path,
    columns: Columns | None = None,
    replace: bool = False,
    limit: int | None = None,
    budget_usd: float | None = None,
    batch: bool = False,
    trust_lock: bool = False,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> JudgeResult:
    """Judge a table of production answers with a locked judge: every row comes out, in order, with its
    verdict.

    Args:
        table, output: the file with the answers, and where the same goes with the verdicts, by its ending.
        lock: the judge.lock.json of select.
        columns: which column is what: `judgecal.Columns("question", "answer", reference="reference")`; where
            not given the columns of the usual names.
        replace: also over an output that another call wrote.
        limit: only the first so many rows.
        batch: by the batch API of the judge's provider, at half the price and within a day.
        trust_lock: run the lock's own signature where the workspace has another.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.

    Raises:
        InputError: as `ProductionRun.run`.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    locked = load_lock(Path(lock))
    runnable = locked.runnable(where, trust_lock=trust_lock)
    options = RunOptions(limit=limit, budget_usd=budget_usd, batch=batch)
    options.check()
    source = open_source(Path(table))
    return ProductionRun(
        workspace=where,
        lock=locked,
        lock_path=Path(lock),
        source=source,
        reader=RowReader.of(columns or Columns(usual=True), source, runnable),
        judge=runnable,
        output=Path(output),
        options=options,
        out=name,
        replace=replace,
    ).run()
