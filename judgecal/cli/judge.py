"""`judgecal judge`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli import options as shared
from judgecal.cli import row_columns as rows
from judgecal.cli.options import argument, option
from judgecal.cli.output import print_result
from judgecal.errors import InputError, listed, notice
from judgecal.wings import wing

if TYPE_CHECKING:
    from judgecal.experiment import CostEstimate, Reader, RunOptions
    from judgecal.production.judge import JudgeRun
    from judgecal.production.results import JudgeResult, SuiteResult
    from judgecal.production.suite import SuiteColumn
    from judgecal.tables import FileSource
    from judgecal.workspace import Workspace

LOCAL, RAY = "local", "ray"
_MOSAIC_OPTIONS = ("--item", "--group")  # what a table with names of its own may still be asked for


@dataclass(frozen=True)
class Judges:
    """Who judges, and how the columns are named."""

    lock: Annotated[
        list[Path] | None, option("The judge.lock.json of select; repeatable.", metavar="LOCK")
    ] = None
    suite: Annotated[str | None, option("A suite: a name under suites/, or a path.", metavar="SUITE")] = None
    columns: Annotated[
        str,
        option(
            "plain (the column options say what is what), mosaic or mlflow (their own names, in and out).",
            metavar="NAMES",
        ),
    ] = "plain"
    model: Annotated[
        str | None,
        option("Whom the judges of a suite call that name no model; embedded by default.", metavar="ALIAS"),
    ] = None
    trust_lock: rows.TrustLock = False

    def problems(self) -> list[str]:
        """Options that contradict each other."""
        from judgecal.production.suite import NAMINGS

        found = []
        if bool(self.lock) == (self.suite is not None):
            found.append("say who judges: give --lock LOCK (several where several judge), or --suite SUITE")
        if self.model is not None and self.suite is None:
            found.append(f"--model {self.model}: a lock names its own model: leave this out, or give --suite")
        if self.columns not in NAMINGS:
            found.append(f"--columns is one of {', '.join(NAMINGS)}, found {self.columns!r}")
        return found


@dataclass(frozen=True)
class _Given:
    """What a run takes whoever judges."""

    workspace: Workspace
    files: list[str]
    to: str
    options: RunOptions
    replace: bool
    name: str | None


def judge(
    ctx: typer.Context,
    files: Annotated[
        list[str], argument(".csv, .tsv, .xlsx, .jsonl, .json, .parquet or .arrow.", metavar="FILE...")
    ],
    output: Annotated[
        str,
        option("Where to write; its ending is the format. Ray: a folder.", "--output", "-o", metavar="OUT"),
    ],
    replace: shared.Replace = False,
    engine: Annotated[
        str,
        option(
            "local: one table, here. ray: folders of .csv, .tsv and .parquet, here or at s3:// ..., by Ray's "
            "workers.",
            metavar="ENGINE",
        ),
    ] = LOCAL,
    *,
    judges: Judges,
    table: rows.ColumnArguments,
    call: shared.BatchArguments,
) -> None:
    """Judge a table of answers with locked judges or a suite.

    Every row comes out, in order, with verdicts. Rows are read and written a few at a time, so a table may be
    larger than memory (a .json file is read whole). The same command writes over its own output, another one
    only with --replace. With --engine ray each file is a partition, with a journal of its own, and its rows
    go to a file of its name in OUT.
    """
    from judgecal.errors import refuse

    options = call.options()
    refuse([*judges.problems(), *_misfits(engine, files, judges, batch=call.batch)])
    given = _Given(shared.workspace_of(ctx), files, output, options, replace, call.name)
    plan: CostEstimate | None = None
    result: JudgeResult | SuiteResult | None = None
    with _on_ray(given, judges, table) if engine == RAY else nullcontext(_here(given, judges, table)) as run:
        if call.dry_run:
            plan = run.preview()
        else:
            result = run.run()
    if plan is not None:
        shared.show_plan(plan, json=call.json)
    if result is not None:
        print_result(result, json=call.json, full=call.full)
        shared.finish(result.n_unscored, _unscored(result))


def _misfits(engine: str, files: list[str], judges: Judges, *, batch: bool) -> Iterator[str]:
    """What the engine does not do."""
    if engine not in (LOCAL, RAY):
        yield f"--engine is {LOCAL} or {RAY}, found {engine!r}"
    if engine == LOCAL and len(files) > 1:
        n = f"{len(files)} files were given"
        yield f"{n}: --engine {LOCAL} judges one table; --engine {RAY} takes several"
    for file in files if engine == LOCAL else ():
        if "://" in file or Path(file).is_dir():
            here = f"--engine {LOCAL} reads a file on this machine"
            yield f"{file}: {here}; --engine {RAY} takes folders and addresses"
    if engine == RAY and (judges.suite or len(judges.lock or ()) > 1 or judges.columns != "plain"):
        yield f"--engine {RAY} takes one --lock, with --columns plain: judge with one after the other"
    if engine == RAY and batch:
        yield f"--batch needs no workers, for the provider does the work: leave --engine {RAY} out"


@contextmanager
def _on_ray(given: _Given, judges: Judges, table: rows.ColumnArguments) -> Iterator[Any]:
    """A run by Ray's workers, and Ray while it goes."""
    from judgecal.tables import list_partitions

    wing("needs ray")()
    assert judges.lock
    columns, partitions = table.columns(), list_partitions(given.files)
    with wing("ray")() as engine:
        yield wing("partitions")(
            workspace=given.workspace,
            lock_path=judges.lock[0],
            trust_lock=judges.trust_lock,
            columns=columns,
            partitions=partitions,
            output=given.to,
            options=given.options,
            engine=engine,
            out=given.name,
            replace=given.replace,
        )


def _here(given: _Given, judges: Judges, table: rows.ColumnArguments) -> JudgeRun:
    """The run in this process; how the table was read is said, where another reading was thinkable."""
    from judgecal.judges.suite import load_suite
    from judgecal.models import EMBEDDED
    from judgecal.production.judge import JudgeRun
    from judgecal.production.suite import NAMINGS, SuiteColumn, load_columns, locks_as_suite
    from judgecal.tables import open_source

    workspace, locks, trusted = given.workspace, judges.lock or [], judges.trust_lock
    suite, columns = None, tuple[SuiteColumn, ...]()
    if len(locks) == 1 and judges.columns == "plain":
        columns = (SuiteColumn.of_lock(locks[0], workspace, trust_lock=trusted),)
    else:
        named = load_suite(judges.suite, workspace=workspace) if judges.suite else locks_as_suite(locks)
        suite = named.name
        columns = load_columns(named, workspace, model=judges.model or EMBEDDED, trust_lock=trusted)
    source = open_source(Path(given.files[0]))
    notice(*(f"judgecal: {note}" for note in source.notes))
    return JudgeRun(
        workspace=workspace,
        suite=suite,
        columns=columns,
        source=source,
        reader=_reader(judges.columns, table, source, columns),
        naming=next(name for name in NAMINGS if name == judges.columns),
        output=Path(given.to),
        options=given.options,
        out=given.name,
        replace=given.replace,
    )


def _reader(
    naming: str, table: rows.ColumnArguments, source: FileSource, columns: Sequence[SuiteColumn]
) -> Reader:
    """How rows are read; refused are options that this naming does not take."""
    from judgecal.experiment import RowReader

    asking = [judge.judge for column in columns for judge in column.judges]
    if naming == "plain":
        return RowReader.of(table.columns(), source, *asking, may_lack=not columns[0].alone)
    odd = [option for option in table.given() if option not in _MOSAIC_OPTIONS]
    if odd:
        raise InputError(
            f"{', '.join(odd)}: --columns {naming} reads the columns by their own names (request, response, "
            "retrieved_context ...): leave these out, or give --columns plain"
        )
    inputs = frozenset(name for judge in asking for name in judge.inputs)
    reader: Reader = wing("mosaic rows")(inputs, table.item, table.group)
    return reader


def _unscored(result: JudgeResult | SuiteResult) -> str:
    """How many rows have no verdict, and where it is said why."""
    from judgecal.production.results import JudgeResult

    if isinstance(result, JudgeResult):
        where = f"{result.output}, column {result.columns['error']}"
        return f"{result.n_unscored} rows are unscored; {where} says why"
    columns = listed([result.columns[name]["error"] for name, rate in result.rates.items() if rate.unscored])
    rows = f"{result.n_unscored} of {result.n} rows"
    return f"{rows} are unscored in part; {result.output} says why: {columns}"
