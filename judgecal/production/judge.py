"""`judge`: the judges of a suite, or of one lock, on a table of production answers, as one run."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from judgecal._version import __version__
from judgecal.engine.budget import Budget, CostEstimate, require_prices
from judgecal.engine.log import Journal
from judgecal.engine.run import RunOptions
from judgecal.errors import InputError
from judgecal.experiment.folder import Experiment, open_experiment, plan_experiment
from judgecal.experiment.score import full_name, judge_config
from judgecal.experiment.table_rows import Reader, RowReader, TableRows, input_config
from judgecal.experiment.trials import (
    Due,
    judge_to_journal,
    models_of,
    open_journal,
    plan_trials,
    require_keys,
    stored_rows,
)
from judgecal.production.results import JudgeResult, RowCounts, SuiteMember
from judgecal.production.suite import INPUT, LeftOut, LoadedJudge, Naming, RowReply, SuiteColumn, survey
from judgecal.tables import Columns, Table, check_output, open_table, write_columns, write_table
from judgecal.tables.formats import free_names
from judgecal.workspace import Workspace, find_workspace


@dataclass(frozen=True)
class JudgeRun:
    """Everything that `judge` needs, checked before the first call; a lock alone is a suite of one."""

    workspace: Workspace
    suite: str | None  # None: one lock, whose columns bear no name
    columns: tuple[SuiteColumn, ...]
    source: Table
    reader: Reader
    output: Path
    options: RunOptions
    naming: Naming = "plain"
    out: str | None = None  # the slug of the experiment, or None for the usual one
    replace: bool = False  # whether a file of the output's name is written over that another command wrote
    address: str | None = None  # where the input lies, if `source` may be a copy of it

    @classmethod
    def of_lock(
        cls,
        path: Path,
        *,
        workspace: Workspace,
        lock: Path,
        trust_lock: bool,
        columns: Columns,
        **others: Any,
    ) -> JudgeRun:
        """Return the JudgeRun of a table's path, a Workspace, a lock's path, trust_lock and Columns."""
        column, source = SuiteColumn.of_lock(lock, workspace, trust_lock=trust_lock), open_table(path)
        reader = RowReader.of(columns, source, column.judges[0].judge)
        return cls(workspace, None, (column,), source, reader, **others)

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment of the calls and the result, the same for any naming of the output's columns."""
        judge = self.judges[0]
        config: dict[str, Any] = {"command": "judge"}
        if self.suite is None:
            assert judge.lock is not None
            config |= {**judge.lock.config, "judge": judge_config(judge.judge)}
        else:
            config["suite"] = self.suite
            config["judges"] = [
                {"name": judge.name, "column": column.column, **judge_config(judge.judge)}
                for column in self.columns
                for judge in column.judges
            ]
        at = {"file": self.address} if self.address else {}
        config["input"] = {**input_config(self.workspace, self.source, self.reader), **at}
        return plan_experiment(self.workspace, config, out=self.out)

    @property
    def judges(self) -> list[LoadedJudge]:
        return [judge for column in self.columns for judge in column.judges]

    def check(self) -> None:
        """Refuse what cannot be done before anything is called or written."""
        may_replace = self.replace or self.experiment.wrote(self.output)
        check_output(self.output, self.source.path, replace=may_replace)
        self.reader.check(self.source)
        require_prices(models_of([judge.judge for judge in self.judges]), self.options.budget_usd)
        if not self.running:
            raise InputError(f"{judge.name} is left out: {judge.why}" for judge in self.left_out)

    @cached_property
    def rows(self) -> TableRows:
        return TableRows(self.source, self.reader, self.options.limit)

    @cached_property
    def _survey(self) -> tuple[tuple[SuiteColumn, ...], tuple[LeftOut, ...]]:
        return (self.columns, ()) if self.suite is None else survey(self.columns, self.rows)

    @property
    def running(self) -> tuple[SuiteColumn, ...]:
        """The columns with the judges that have anything to judge in this table; it is read once for this."""
        return self._survey[0]

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The judges of a suite that have nothing to judge in the table, and why."""
        return self._survey[1]

    @cached_property
    def added(self) -> dict[str, tuple[str, type]]:
        """Name of each column that the output gains -> the name that it should have, and its type."""
        wanted = [
            (name, column.dtype(part))
            for column in self.running
            for part, name in column.columns(self.naming).items()
        ]
        return dict(zip(free_names((name for name, _ in wanted), self.source.columns), wanted, strict=True))

    def trials(self, journal: Journal) -> list[Due]:
        """What each judge is asked, beside what a journal holds."""
        return [trial for column in self.running for trial in column.trials(self.rows, journal, self.options)]

    @property
    def notes(self) -> tuple[str, ...]:
        """How the input was read and the output is written."""
        taken = ((free, name) for free, (name, _) in self.added.items() if free != name)
        renamed = (
            f"the table has a column {name} already: what is added is called {free}" for free, name in taken
        )
        return (*self.source.notes, *renamed)

    def preview(self) -> CostEstimate:
        """Return the CostEstimate of the calls that a run would make; nothing is written."""
        self.check()
        return plan_trials(self.trials(stored_rows(self.experiment.journal)))

    def run(self) -> JudgeResult:
        """Make the calls that are due, write the whole output, and return the JudgeResult."""
        self.prepare()
        result = self.result(self.judge_rows(Budget(self.options.budget_usd)))
        self.experiment.write_summary(result)
        return result

    def prepare(self) -> None:
        """Refuse what cannot be done, calls that lack a key too."""
        self.check()
        for trial in self.trials(stored_rows(self.experiment.journal)):
            require_keys([trial.judge], trial.items, trial.journal, trial.options)

    def result(
        self,
        rows: RowCounts,
        *,
        experiment: str | None = None,
        source: tuple[str, str] | None = None,
        output: str | None = None,
        n_rows: int | None = None,
        notes: Sequence[str] | None = None,
    ) -> JudgeResult:
        """Return the JudgeResult of RowCounts; of several tables what the result says of these.

        `source`: the tables as they were named, and in the run line.
        """
        names = iter(self.added)
        columns = {
            column.name: {part: next(names) for part in column.columns(self.naming)}
            for column in self.running
        }
        judges = [judge for column in self.running for judge in column.judges]
        rates = {column.name: tally.rate() for column, tally in zip(self.running, rows.tallies, strict=True)}
        lock = None if self.suite is not None else self.judges[0].lock
        said_by = f"suite:{self.suite}" if lock is None else lock.run_line
        fingerprints = "+".join(full_name(judge.judge) for judge in judges)
        path, name = source or (str(self.source.path), self.source.path.name)
        n_rows = self.source.n_rows if n_rows is None else n_rows
        return JudgeResult(
            experiment=experiment or self.experiment.slug,
            lock=self.judges[0].lock_path if lock else None,
            suite=self.suite,
            input=path,
            output=output or str(self.output),
            columns=next(iter(columns.values())) if lock else columns,
            named={
                part: column
                for part in ("question", "answer", "item", "group")
                if (column := getattr(self.reader.columns, part))
            },
            n=rows.n,
            n_unscored=rows.n_unscored,
            rates=rates,
            judges=tuple(map(SuiteMember.of, judges)),
            left_out=self.left_out,
            usd=rows.usd,
            model_ids=tuple(sorted(set[str]().union(*rows.model_ids.values()))),
            notes=(
                *(self.notes if notes is None else notes),
                *rows.stored.notes(),
                *(note for judge in judges for note in _other_models(rows, judge)),
                *(f"the output holds only the first {rows.n:,} of {n_rows:,} rows (--limit)",)
                * (rows.n < n_rows),
            ),
            run_line=(
                f"{said_by}|judges:{fingerprints}|input:{name}|n:{rows.n}|level:0.95|by:group|version:{__version__}"
            ),
        )

    def _mark_output(self) -> None:
        """Note that the output is ours, and say beside it which of its columns is what."""
        self.experiment.mark_output(self.output)
        header = (*self.source.columns, *self.added)
        columns = self.reader.columns
        if not isinstance(self.reader, RowReader):
            parts = ("question", "answer", "reference", "item", "group")
            named: Any = {part: name for part in parts if (name := getattr(columns, part)) in header}
            columns = Columns(**named)
        if self.suite is None:
            columns = dataclasses.replace(columns, verdict=next(iter(self.added)))
        write_columns(self.output, columns, header)

    def judge_rows(self, budget: Budget) -> RowCounts:
        """Make the calls that are due, within a budget, and write the output; return its RowCounts."""
        import polars as pl

        open_experiment(self.experiment)
        label = self.judges[0].judge.name if self.suite is None else f"suite {self.suite}"
        with open_journal(self.experiment.journal, self.options) as journal:
            judge_to_journal(self.trials(journal), budget=budget, label=label)
            counts = RowCounts(self.running)
            schema = {name: dtype for name, (_, dtype) in self.added.items()}
            frame = pl.DataFrame(list(self.judged_rows(journal, counts)), schema, orient="row")
            write_table(self.output, frame, self.source, before=self._mark_output)
            return counts

    def count_rows(self, journal: Journal) -> RowCounts:
        """Return the RowCounts of the rows whose judgements a Journal holds."""
        counts = RowCounts(self.running)
        for _ in self.judged_rows(journal, counts):
            pass
        return counts

    def judged_rows(self, journal: Journal, counts: RowCounts) -> Iterator[list[Any]]:
        """Yield the list of values added to each row, by the judgements of a Journal; count in RowCounts."""
        for row in map(self.reader.read, self.source.each(self.options.limit)):
            judged: list[tuple[SuiteColumn, LoadedJudge, Sequence[RowReply]]] = []
            for column in self.running:
                judge, lacking = column.judge_of(row)
                replies = [RowReply(None, error=f"{INPUT}: {lacking}")]
                if lacking is None:
                    replies = judge.replies(row, journal, whole=column.alone)
                judged.append((column, judge, replies))
            counts.add(row.item, judged)
            cells = (column.values(judge, replies, self.naming) for column, judge, replies in judged)
            yield list(itertools.chain.from_iterable(cells))


def _other_models(rows: RowCounts, judge: LoadedJudge) -> Iterator[str]:
    """That another model answered than the one that was locked."""
    locked = None if judge.lock is None else judge.lock.model_id
    others = sorted(rows.model_ids[judge.name] - {locked})
    if locked is not None and others:
        answered = f"{judge.name}: the provider answered as {', '.join(others)}"
        yield f"{answered}, and the judge was locked on {locked}: run judgecal gate"


def judge(
    table: str | Path,
    *,
    lock: str | Path,
    output: str | Path,
    columns: Columns | None = None,
    replace: bool = False,
    limit: int | None = None,
    budget_usd: float | None = None,
    trust_lock: bool = False,
    name: str | None = None,
    workspace: str | Path | None = None,
) -> JudgeResult:
    """Judge a table of answers with a lock and write it with its verdicts to `output`: a JudgeResult.

    Args:
        table, output: the file with the answers, and where the same goes with the verdicts, by its ending.
        lock: the judge.lock.json of select.
        columns: which column is what: `judgecal.Columns("question", "answer", reference="reference")`; where
            not given the columns of the usual names.
        replace: also over an output that another call wrote.
        limit: only the first so many rows.
        trust_lock: run the lock's own signature where the workspace has another.
        workspace: the folder with `signatures/` and `gold/`; found as on the command line where not given.
    """
    where = find_workspace(None if workspace is None else Path(workspace))
    options = RunOptions(limit=limit, budget_usd=budget_usd)
    options.check()
    return JudgeRun.of_lock(
        Path(table),
        workspace=where,
        lock=Path(lock),
        trust_lock=trust_lock,
        columns=columns or Columns(usual=True),
        output=Path(output),
        options=options,
        out=name,
        replace=replace,
    ).run()
