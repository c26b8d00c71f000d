"""`judgecal judge` and `rate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import argument, column, option, output
from judgecal.cli.output import print_result
from judgecal.commands import wing
from judgecal.errors import InputError, listed, notice, refuse

if TYPE_CHECKING:
    from judgecal.experiment.table_rows import Reader
    from judgecal.production.judge import JudgeRun
    from judgecal.production.suite import SuiteColumn
    from judgecal.tables import Table
    from judgecal.workspace import Workspace

LOCAL, RAY = "local", "ray"
_MOSAIC_OPTIONS = ("--col item=", "--col group=")  # what a table with names of its own may still be asked for


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
            "plain: --col says what is what; mosaic or mlflow: their own names, in and out.",
            metavar="plain|mosaic|mlflow",
        ),
    ] = "plain"
    model: Annotated[
        str | None,
        option("Whom the judges of a suite call that name no model; embedded by default.", metavar="ALIAS"),
    ] = None
    trust_lock: shared.TrustLock = False

    def problems(self, engine: str, *, several: bool) -> Iterator[str]:
        """Yield each problem (text) of the options, by the engine's name and whether files are `several`."""
        from judgecal.production.suite import NAMINGS

        if bool(self.lock) == (self.suite is not None):
            yield "say who judges: give --lock LOCK (several where several judge), or --suite SUITE"
        if self.model is not None and self.suite is None:
            yield f"--model {self.model}: a lock names its own model: leave this out, or give --suite"
        if self.columns not in NAMINGS:
            yield f"--columns is one of {', '.join(NAMINGS)}, found {self.columns!r}"
        if engine not in (LOCAL, RAY):
            yield f"--engine is {LOCAL} or {RAY}, found {engine!r}"
        if several and (self.suite or len(self.lock or ()) > 1 or self.columns != "plain"):
            yield "several files, addresses and a folder as --output take one --lock, with --columns plain"


def judge(
    ctx: typer.Context,
    files: Annotated[
        list[str],
        argument(
            ".csv, .tsv, .xlsx, .jsonl, .json or .parquet; several, or by an address such as "
            "s3://bucket/part-*.csv.",
            metavar="FILE...",
        ),
    ],
    output: Annotated[
        str,
        option(
            "Where to write; its ending is the format. Of several files and addresses: a folder.",
            "--output",
            "-o",
            metavar="OUT",
        ),
    ],
    replace: shared.Replace = False,
    engine: Annotated[
        str, option("Here, one file after the other, or a file each by Ray's workers.", metavar="local|ray")
    ] = LOCAL,
    *,
    judges: Judges,
    table: shared.ColumnArguments,
    call: shared.RunArguments,
) -> None:
    """Judge a table of answers with locked judges or a suite.

    Every row comes out, in order, with verdicts. The same command writes over its own output, another one
    only with --replace. Where OUT is a folder (DIR/), as of several files, addresses and --engine ray, the
    rows of each file go to a file of its name there, and a file that is done is left alone.
    """
    from judgecal.production.suite import SuiteColumn

    workspace, locks, trusted = shared.workspace_of(ctx), judges.lock or [], judges.trust_lock
    given: dict[str, Any] = {"workspace": workspace, "options": call.options(), "out": call.name}
    given["replace"] = replace
    to_folder = output.endswith("/") or Path(output).is_dir()
    several = to_folder or engine != LOCAL or len(files) > 1 or "://" in files[0] or "*" in files[0]
    refuse([*judges.problems(engine, several=several)])
    if engine == RAY:
        wing("needs ray")()
    if several:
        run = wing("files")(
            lock_path=locks[0],
            trust_lock=trusted,
            column=SuiteColumn.of_lock(locks[0], workspace, trust_lock=trusted),
            columns=table.columns(workspace),
            files=files,
            output=output,
            engine=wing("ray") if engine == RAY else None,
            **given,
        )
    else:
        run = _here(files[0], Path(output), judges, table, given)
    if call.dry_run:
        shared.show_plan(run.preview(), json=call.json)
        return
    result = run.run()
    print_result(result, json=call.json, full=call.full)
    unread = [result.columns_of[name]["error"] for name, rate in result.rates.items() if rate.unscored]
    lack = "have no verdict" if result.lock else "lack some verdict"
    why = f"{result.n_unscored:,} rows {lack}; {result.output}, column {listed(unread)} says why"
    shared.finish(result.n_unscored, why)


def _here(
    file: str, output: Path, judges: Judges, table: shared.ColumnArguments, given: dict[str, Any]
) -> JudgeRun:
    """The run of one table in this process; how the table was read is said, where another reading was
    thinkable."""
    from judgecal.judges.suite import load_suite
    from judgecal.models import EMBEDDED
    from judgecal.production.judge import JudgeRun
    from judgecal.production.suite import NAMINGS, SuiteColumn, load_columns, locks_as_suite
    from judgecal.tables import open_table

    workspace, locks, trusted = given["workspace"], judges.lock or [], judges.trust_lock
    suite, columns = None, tuple[SuiteColumn, ...]()
    if len(locks) == 1 and judges.columns == "plain":
        columns = (SuiteColumn.of_lock(locks[0], workspace, trust_lock=trusted),)
    else:
        named = load_suite(judges.suite, workspace=workspace) if judges.suite else locks_as_suite(locks)
        suite = named.name
        columns = load_columns(named, workspace, model=judges.model or EMBEDDED, trust_lock=trusted)
    source = open_table(Path(file))
    notice(*(f"judgecal: {note}" for note in source.notes))
    return JudgeRun(
        suite=suite,
        columns=columns,
        source=source,
        reader=_reader(workspace, judges.columns, table, source, columns),
        naming=next(name for name in NAMINGS if name == judges.columns),
        output=output,
        **given,
    )


def _reader(
    workspace: Workspace,
    naming: str,
    table: shared.ColumnArguments,
    source: Table,
    columns: Sequence[SuiteColumn],
) -> Reader:
    """How rows are read; refused are options that this naming does not take."""
    from judgecal.experiment.table_rows import RowReader

    asking = [judge.judge for column in columns for judge in column.judges]
    inputs = frozenset(name for judge in asking for name in judge.inputs)
    if naming == "plain":
        read_by = table.columns(workspace, inputs=inputs)
        return RowReader.of(read_by, source, *asking, may_lack=not columns[0].alone)
    odd = [option for option in table.given() if not option.startswith(_MOSAIC_OPTIONS)]
    if odd:
        raise InputError(
            f"{', '.join(odd)}: --columns {naming} reads the columns by their own names (request, "
            "response, retrieved_context ...): leave those out, or give --columns plain"
        )
    ids = table.columns(workspace)
    reader: Reader = wing("mosaic rows")(inputs, ids.item, ids.group)
    return reader


def rate(
    ctx: typer.Context,
    file: Annotated[Path, argument("The table that judge wrote.", metavar="JUDGED")],
    by: Annotated[str | None, column("Compare the rows by this, such as system or a tag.")] = None,
    labels: Annotated[
        str | None, option("Gold set with people's labels of rows drawn from this table.", metavar="SET")
    ] = None,
    escalate: Annotated[
        float | None,
        option("Say which rows a person must read so that judge and people agree on the rest.", metavar="X"),
    ] = None,
    output: Annotated[
        Path | None, output("Of --escalate: write the rows that a person must read, as a sheet.")
    ] = None,
    systems: Annotated[
        str | None, option("Of judged pairs: the share that prefers X over Y, ties half.", metavar="X,Y")
    ] = None,
    level: Annotated[float, option("Level of the intervals.")] = 0.95,
    seed: shared.Seed = 0,
    name: shared.Name = None,
    full: shared.Full = False,
    json: shared.Json = False,
    *,
    lock: shared.LockArguments,
    table: shared.JudgedArguments,
) -> None:
    """Say what share is right, corrected for the judge's error.

    Calls no model. With labels drawn from the same rows the number rests on them; without, on the error rates
    of the lock. It plans, too: how many more labels would halve the interval.
    """
    from judgecal.goldset import load_gold
    from judgecal.production.rate import RateRun
    from judgecal.selection.lock import load_lock

    if output is not None and escalate is None:
        raise InputError("--output without --escalate: it takes the rows that a person must read")
    if output is not None and output.exists():
        raise InputError(f"{output}: is there already, and may be filled in: name another file")
    x, comma, y = map(str.strip, (systems or "").partition(","))
    if systems is not None and not (x and comma and y and x != y):
        raise InputError(f"--systems {systems}: name two systems, as X,Y")
    workspace = shared.workspace_of(ctx)
    locked = load_lock(lock.lock)
    run = RateRun(
        workspace=workspace,
        lock=locked,
        lock_path=lock.lock,
        judge=locked.runnable(workspace, trust_lock=lock.trust_lock).scale,
        path=file,
        columns=table.columns(workspace),
        by=by,
        gold=None if labels is None else load_gold(labels, workspace=workspace),
        escalate=escalate,
        systems=(x, y) if systems else None,
        sheet=output,
        level=level,
        seed=seed,
        out=name,
    )
    result = run.run()
    print_result(result, json=json, full=full)
