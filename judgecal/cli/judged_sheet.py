"""`judgecal gold sheet FILE`: rows of a table of answers, judged or not, that are drawn to be labelled."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli.row_columns import TrustLock, column

if TYPE_CHECKING:
    from judgecal.experiment.drawn import Drawing
    from judgecal.workspace import Workspace

_BOTH = "verdict,system"
ENDINGS = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx")


@dataclass(frozen=True)
class TableArguments:
    """The options of a sheet that is drawn from a table."""

    lock: Annotated[
        Path | None,
        typer.Option("--lock", metavar="LOCK", help="The lock that a judged table was judged with."),
    ] = None
    trust_lock: TrustLock = False
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="SET", help="What was drawn of the table before: it is not drawn again, and joined."
        ),
    ] = None
    scale: Annotated[str | None, typer.Option(help="The scale of the labels, of a table without a lock.")] = (
        None
    )
    question: Annotated[str, column("The table's column of questions.")] = "question"
    answer: Annotated[str, column("Its column of answers.")] = "answer"
    verdict: Annotated[str, column("Its column of verdicts.")] = "verdict"
    reference: Annotated[
        str | None, column("Its reference answers; by default reference_answer or reference.")
    ] = None
    item: Annotated[str | None, column("Its column of ids.")] = None
    group: Annotated[str | None, column("Its column of the questions' ids.")] = None
    system: Annotated[str | None, column("Its column of who answered; never shown on a sheet.")] = None

    def given(self) -> list[str]:
        """The options of tables that are given, as they are typed."""
        own = ("lock", "labels", "scale", "reference", "item", "group", "system")
        return [f"--{name}" for name in own if getattr(self, name) is not None]

    def after(self, source: str, name: str) -> str:
        """What labels of the set are for, as a command: the rate of a judged table, else a score."""
        if self.lock is None:
            return f"judgecal score --gold {shlex.quote(name)}"
        words = ["judgecal", "rate", source, "--lock", str(self.lock), "--labels", name]
        for option, usual in (
            ("question",) * 2,
            ("answer",) * 2,
            ("verdict",) * 2,
            ("item", None),
            ("group", None),
        ):
            if getattr(self, option) != usual:
                words += [f"--{option}", getattr(self, option)]
        return shlex.join(words)


def is_table(source: str, sets: list[str]) -> bool:
    """Whether what is named is a table in a file and no set."""
    path = Path(source)
    return source not in sets and path.suffix.lower() in ENDINGS and not path.is_dir()


def reference_column(path: Path) -> str | None:
    """The table's column of reference answers by its usual names: who labels must see what the judge saw."""
    from judgecal.tables import open_source

    return next(
        (name for name in ("reference_answer", "reference") if name in open_source(path).columns), None
    )


def drawing_of(
    path: Path, table: TableArguments, workspace: Workspace, how: tuple[str | None, int | None, str, int]
) -> Drawing:
    """The rows of a table that a sheet takes; `how`: the strata, -n, the set's name, the seed."""
    from judgecal.errors import refuse
    from judgecal.goldset import load_gold
    from judgecal.production.judged_draw import ItemColumns, JudgedDraw, answers_to_label
    from judgecal.production.judged_table import JudgedColumns, read_judged
    from judgecal.selection.lock import load_lock

    strata, n, name, seed = how
    problems = []
    if strata not in (None, "verdict", _BOTH):
        problems.append(f"--strata of a table is verdict or {_BOTH}, found {strata!r}")
    if strata == _BOTH and table.system is None:
        problems.append(f"--strata {_BOTH}: name the column by --system")
    if strata is not None and table.lock is None:
        problems.append(
            "--strata verdict is of a judged table: name the lock that it was judged with (--lock)"
        )
    if n is None and table.lock is not None:
        problems.append("a sheet of a judged table is drawn: say how many rows by -n")
    if table.lock is None and table.labels is not None:
        problems.append("--labels is of a judged table: name the lock that it was judged with (--lock)")
    if table.lock is None and table.scale is None:
        problems.append("say the scale of the labels by --scale, or name the lock of a judged table (--lock)")
    if table.lock is not None and table.scale is not None:
        problems.append("--scale with --lock: the labels are on the lock's scale; leave it out")
    refuse(problems)
    reference = table.reference or reference_column(path)
    columns = ItemColumns(table.question, table.answer, reference, table.item, table.group, table.system)
    if table.lock is None:
        return answers_to_label(
            path, columns, str(table.scale), n=n, name=name, seed=seed, workspace=workspace
        )
    lock = load_lock(table.lock)
    judge = lock.runnable(workspace, trust_lock=table.trust_lock).scale
    by = table.system if strata == _BOTH else None
    own = JudgedColumns(table.question, table.answer, table.verdict, table.item, table.group, by)
    read = read_judged(path, own, judge)
    before = None if table.labels is None else load_gold(table.labels, workspace=workspace)
    return JudgedDraw(
        workspace=workspace,
        path=path,
        table=read,
        columns=columns,
        lock=lock,
        judge=judge,
        n=n or 0,
        name=name,
        by_verdict=strata is not None,
        before=before,
        seed=seed,
    ).drawing()
