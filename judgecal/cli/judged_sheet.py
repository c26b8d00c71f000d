"""`judgecal gold sheet FILE`: rows of a table of answers, judged or not, that are drawn to be labelled."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from judgecal.cli.options import option
from judgecal.cli.row_columns import JudgedArguments, TrustLock

if TYPE_CHECKING:
    from judgecal.experiment.drawn import Drawing
    from judgecal.workspace import Workspace

_BOTH = "verdict,system"
ENDINGS = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx")


@dataclass(frozen=True)
class TableArguments(JudgedArguments):
    """The options of a sheet that is drawn from a table."""

    lock: Annotated[Path | None, option("The lock that a judged table was judged with.", metavar="LOCK")] = (
        None
    )
    trust_lock: TrustLock = False
    labels: Annotated[
        str | None,
        option("What was drawn of the table before: it is not drawn again, and joined.", metavar="SET"),
    ] = None
    scale: Annotated[str | None, option("The scale of the labels, of a table without a lock.")] = None

    def after(self, source: str, name: str) -> str:
        """What labels of the set are for, as a command: the rate of a judged table, else a score."""
        if self.lock is None:
            return f"judgecal score --gold {shlex.quote(name)}"
        from judgecal.production.judged_table import JudgedColumns

        words = ["judgecal", "rate", source, "--lock", str(self.lock), "--labels", name]
        columns = JudgedColumns.of(Path(source), self.columns())
        words += [word for part, name in columns.untold(Path(source)).items() for word in (f"--{part}", name)]
        return shlex.join(words)


def is_table(source: str, sets: list[str]) -> bool:
    """Whether what is named is a table in a file and no set."""
    path = Path(source)
    return source not in sets and path.suffix.lower() in ENDINGS and not path.is_dir()


def drawing_of(
    path: Path,
    table: TableArguments,
    workspace: Workspace,
    *,
    strata: str | None,
    n: int | None,
    name: str,
    seed: int,
) -> Drawing:
    """The rows of a table that a sheet takes, as the set `name`."""
    from judgecal.errors import refuse
    from judgecal.goldset import load_gold
    from judgecal.production.judged_draw import JudgedDraw, answers_to_label
    from judgecal.production.judged_table import JudgedColumns, read_judged
    from judgecal.selection.lock import load_lock

    problems = []
    if strata not in (None, "verdict", _BOTH):
        problems.append(f"--strata of a table is verdict or {_BOTH}, found {strata!r}")
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
    named = JudgedColumns.of(path, table.columns())
    if strata == _BOTH and named.columns.system is None:
        refuse([f"--strata {_BOTH}: name the column by --system"])
    if table.lock is None:
        return answers_to_label(
            path, named.columns, str(table.scale), n=n, name=name, seed=seed, workspace=workspace
        )
    lock = load_lock(table.lock)
    judge = lock.runnable(workspace, trust_lock=table.trust_lock).scale
    by = named.columns.system if strata == _BOTH else None
    return JudgedDraw(
        workspace=workspace,
        path=path,
        table=read_judged(path, JudgedColumns(named.columns, by), judge),
        columns=named.columns,
        lock=lock,
        judge=judge,
        n=n or 0,
        name=name,
        by_verdict=strata is not None,
        before=None if table.labels is None else load_gold(table.labels, workspace=workspace),
        seed=seed,
    ).drawing()
