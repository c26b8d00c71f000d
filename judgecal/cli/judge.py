"""`judgecal judge`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli import row_columns as rows
from judgecal.cli.options import argument, option
from judgecal.cli.output import print_result
from judgecal.errors import InputError, listed, notice
from judgecal.wings import wing

if TYPE_CHECKING:
    from judgecal.experiment import RunOptions
    from judgecal.production.judge import ProductionRun
    from judgecal.production.judge_result import JudgeResult
    from judgecal.production.suite_run import Reader, SuiteRun
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
        from judgecal.production.suite_columns import NAMINGS

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

    @property
    def file(self) -> Path:
        """The one table of a run in this process."""
        return Path(self.files[0])

    @property
    def output(self) -> Path:
        """Where it goes."""
        return Path(self.to)


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
    if engine == RAY:
        _on_ray(given, judges, table, call)
    elif judges.lock and len(judges.lock) == 1 and judges.columns == "plain":
        _with_lock(_production(given, judges, table), call)
    else:
        _with_suite(_suite(given, judges, table), call)


def _misfits(engine: str, files: list[str], judges: Judges, *, batch: bool) -> Iterator[str]:
    """What the engine does not do."""
    if engine not in (LOCAL, RAY):
        yield f"--engine is {LOCAL} or {RAY}, found {engine!r}"
    if engine == LOCAL and len(files) > 1:
        yield f"{len(files)} files were given: --engine {LOCAL} judges one table; --engine {RAY} takes several"
    for file in files if engine == LOCAL else ():
        if "://" in file or Path(file).is_dir():
            yield f"{file}: --engine {LOCAL} reads a file on this machine; --engine {RAY} takes folders and addresses"
    if engine == RAY and (judges.suite or len(judges.lock or ()) > 1 or judges.columns != "plain"):
        yield f"--engine {RAY} takes one --lock, with --columns plain: judge with one after the other"
    if engine == RAY and batch:
        yield f"--batch needs no workers, for the provider does the work: leave --engine {RAY} out"


def _on_ray(given: _Given, judges: Judges, table: rows.ColumnArguments, call: shared.RunArguments) -> None:
    from judgecal.tables import list_partitions

    wing("needs ray")()
    assert judges.lock
    columns, partitions = table.columns(), list_partitions(given.files)
    with wing("ray")() as engine:
        run = wing("partitions")(
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
        plan, result = (run.preview(), None) if call.dry_run else (None, run.run())
    if plan is not None:
        shared.show_plan(plan, json=call.json)
    if result is not None:
        _show(result, call)


def _source(file: Path) -> FileSource:
    """The table that is judged; how it was read is told on stderr, where another reading was thinkable."""
    from judgecal.tables import open_source

    source = open_source(file)
    notice(*(f"judgecal: {note}" for note in source.notes))
    return source


def _production(given: _Given, judges: Judges, table: rows.ColumnArguments) -> ProductionRun:
    from judgecal.production.judge import ProductionRun
    from judgecal.production.row_items import RowReader
    from judgecal.selection.lock import load_lock

    assert judges.lock
    locked = load_lock(judges.lock[0])
    runnable = locked.runnable(given.workspace, trust_lock=judges.trust_lock)
    source = _source(given.file)
    return ProductionRun(
        workspace=given.workspace,
        lock=locked,
        lock_path=judges.lock[0],
        source=source,
        reader=RowReader.of(table.columns(), source, runnable),
        judge=runnable,
        output=given.output,
        options=given.options,
        out=given.name,
        replace=given.replace,
    )


def _with_lock(run: ProductionRun, call: shared.RunArguments) -> None:
    if call.dry_run:
        shared.show_plan(run.preview(), json=call.json)
    else:
        _show(run.run(), call)


def _show(result: JudgeResult, call: shared.RunArguments) -> None:

    print_result(result, json=call.json, full=call.full)
    error = result.columns["error"]
    why = f"{result.n_unscored} rows are unscored; {result.output}, column {error} says why"
    shared.finish(result.n_unscored, why)


def _suite(given: _Given, judges: Judges, table: rows.ColumnArguments) -> SuiteRun:
    from judgecal.judges.suite import load_suite
    from judgecal.models import EMBEDDED
    from judgecal.production.suite_columns import NAMINGS
    from judgecal.production.suite_judges import measures_of, suite_of_locks
    from judgecal.production.suite_run import SuiteRun

    suite = (
        load_suite(judges.suite, workspace=given.workspace)
        if judges.suite
        else suite_of_locks(judges.lock or [])
    )
    measures = measures_of(
        suite, given.workspace, model=judges.model or EMBEDDED, trust_lock=judges.trust_lock
    )
    source = _source(given.file)
    inputs = frozenset(name for one in measures for name in one.inputs)
    return SuiteRun(
        workspace=given.workspace,
        suite=suite.name,
        measures=measures,
        source=source,
        reader=_reader(judges.columns, table, source, inputs),
        naming=next(one for one in NAMINGS if one == judges.columns),
        output=given.output,
        options=given.options,
        out=given.name,
        replace=given.replace,
    )


def _reader(naming: str, table: rows.ColumnArguments, source: FileSource, inputs: frozenset[str]) -> Reader:
    """How rows are read. InputError: options that this naming does not take, or a column is not named."""
    from judgecal.production.row_items import RowReader
    from judgecal.production.suite_run import PlainReader

    if naming == "plain":
        return PlainReader(RowReader.asking(table.columns(), source, inputs))
    odd = [option for option in table.given() if option not in _MOSAIC_OPTIONS]
    if odd:
        raise InputError(
            f"{', '.join(odd)}: --columns {naming} reads the columns by their own names (request, response, "
            "retrieved_context ...): leave these out, or give --columns plain"
        )
    reader: Reader = wing("mosaic rows")(inputs, table.item, table.group)
    return reader


def _with_suite(run: SuiteRun, call: shared.RunArguments) -> None:

    if call.dry_run:
        shared.show_plan(run.preview(), json=call.json)
        return
    result = run.run()
    print_result(result, json=call.json, full=call.full)
    columns = listed([result.columns[name]["error"] for name, rate in result.rates.items() if rate.unscored])
    why = f"{result.n_unscored} of {result.n} rows are unscored in part; {run.output} says why: {columns}"
    shared.finish(result.n_unscored, why)
