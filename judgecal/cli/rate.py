"""`judgecal rate` and `judgecal plan`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli import row_columns as rows
from judgecal.cli.options import argument, option
from judgecal.cli.output import print_result
from judgecal.cli.row_columns import column
from judgecal.cli.table_file import TableFile, output


@dataclass(frozen=True)
class RateArguments:
    """The options of `rate` beside its columns."""

    labels: Annotated[
        str | None, option("Gold set with people's labels of rows drawn from this table.", metavar="SET")
    ] = None
    escalate: Annotated[
        float | None,
        option("Say which rows a person must read so that judge and people agree on the rest.", metavar="X"),
    ] = None
    level: Annotated[float, option("Level of the intervals.")] = 0.95
    seed: shared.Seed = 0
    name: shared.Name = None
    full: shared.Full = False
    json: shared.Json = False


@dataclass(frozen=True, slots=True)
class RateFile(TableFile):
    """What `rate` writes: its numbers, or which rows are for a person."""

    output: Annotated[
        Path | None,
        output("Write the rates as a table; with --escalate the rows that a person must read, as a sheet."),
    ] = None


@dataclass(frozen=True)
class RowsCompared:
    """What else of a judged table is read."""

    by: Annotated[str | None, column("Compare the rows by this, such as system or a tag.")] = None
    second: Annotated[
        str | None, column("A second judge's verdicts: where it differs, a row is the first to escalate.")
    ] = None
    repeat: Annotated[
        list[str] | None,
        column("Further verdicts of the judge: the more they differ, the less it is sure; repeatable."),
    ] = None


def rate(
    ctx: typer.Context,
    file: Annotated[Path, argument("The table that judge wrote.", metavar="JUDGED")],
    *,
    lock: rows.LockArguments,
    table: rows.JudgedArguments,
    compared: RowsCompared,
    given: RateArguments,
    file_out: RateFile,
) -> None:
    """Say what share is right, corrected for the judge's error.

    Calls no model. With labels drawn from the same rows the number rests on them; without, on the error rates
    of the lock.
    """
    from judgecal.errors import InputError
    from judgecal.goldset import load_gold
    from judgecal.production.rate import RateRun
    from judgecal.selection.lock import load_lock

    if given.escalate is None:
        file_out.check()
    elif file_out.replace:
        raise InputError(
            "--replace with --escalate: a sheet may be filled in, so none is written over; leave it out"
        )
    elif file_out.output is not None and file_out.output.exists():
        raise InputError(f"{file_out.output}: is there already, and may be filled in: name another file")
    workspace = shared.workspace_of(ctx)
    locked = load_lock(lock.lock)
    run = RateRun(
        workspace=workspace,
        lock=locked,
        lock_path=lock.lock,
        judge=locked.runnable(workspace, trust_lock=lock.trust_lock).scale,
        path=file,
        columns=table.columns(),
        by=compared.by,
        second=compared.second,
        repeats=tuple(compared.repeat or ()),
        gold=None if given.labels is None else load_gold(given.labels, workspace=workspace),
        escalate=given.escalate,
        sheet=None if given.escalate is None else file_out.output,
        level=given.level,
        seed=given.seed,
        out=given.name,
    )
    result = run.run()
    print_result(result, json=given.json, full=given.full)
    if given.escalate is None:
        file_out.write(result)


def plan(
    ctx: typer.Context,
    experiment: Annotated[
        str | None, argument("An experiment that holds two judges to tell apart.", metavar="[EXPERIMENT")
    ] = None,
    judges: Annotated[
        list[str] | None, argument("The two judges, where it holds more.", metavar="A B]")
    ] = None,
    *,
    lock: Annotated[
        Path | None, option("The judge.lock.json of select: plan labels.", metavar="LOCK")
    ] = None,
    half_width: Annotated[
        float | None, option("Half the width of the interval, 0..0.5; 0.05 by default.", metavar="X")
    ] = None,
    difference: Annotated[
        float | None,
        option("The difference to be shown, in units of the metric; 0.03 of a share.", metavar="X"),
    ] = None,
    metric: Annotated[str | None, option("By which the two are told apart; as in compare.")] = None,
    name: shared.Name = None,
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """Say how many labels a rate takes, or a comparison. Calls no model.

    With --lock: the labels of a corrected rate, and what this judge saves. With an experiment: the questions.
    """
    from judgecal.errors import refuse
    from judgecal.production.rate_plan import plan_labels
    from judgecal.selection.lock import load_lock
    from judgecal.selection.questions_plan import QuestionsRun

    odd = (
        [("--half-width", half_width)]
        if lock is None
        else [("--difference", difference), ("--metric", metric)]
    )
    problems = [f"{option} is of the other plan: leave it out" for option, given in odd if given is not None]
    if (lock is None) == (experiment is None):
        problems.append("say what to plan: --lock LOCK for labels, or EXPERIMENT A B for questions")
    refuse(problems)
    workspace = shared.workspace_of(ctx)
    if lock is not None:
        labels = plan_labels(
            workspace, load_lock(lock), lock, half_width=0.05 if half_width is None else half_width, out=name
        )
        print_result(labels, json=json, full=full)
        return
    run = QuestionsRun(workspace, str(experiment), tuple(judges or ()), metric, difference, name)
    result = run.run()
    print_result(result, json=json, full=full)
