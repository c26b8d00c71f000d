"""A table with people's labels and judges' verdicts, held against each other where it lies.

Its items stay as Parquet in the folder of its experiment, so that the page can be made again. No split of it
is sealed: whoever has such a table has seen all of it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.experiment.folder import open_experiment
from judgecal.experiment.judgements import values_of, write_items
from judgecal.experiment.recorded import Recorded, recorded_in_table
from judgecal.experiment.score import ScoreRun
from judgecal.experiment.summary import check_judge
from judgecal.goldset import Columns, GoldSet, Imported, Splits, import_gold
from judgecal.goldset.labels import label_text
from judgecal.judges import Judge, judge_named
from judgecal.records import old_objects_left_alone
from judgecal.tables import Table, read_table
from judgecal.tables.guess import guessed
from judgecal.workspace import Workspace

_OPEN = Splits(train=0.0, dev=1.0, test=0.0)
_FREE = (
    "pairwise_v1@embedded", "longer_answer@local",
    "correctness_v3@embedded", "token_f1@local", "faithfulness_overlap@local", "relevancy_overlap@local",
)  # fmt: skip
"""The judges that stand where the table has none, each where it finds what it reads."""
_FORCE = ", or --force if the scale is right"
_NO_NAME = re.compile(r"[^\w.-]+|^[.-]+|[.-]+$", re.ASCII)


@old_objects_left_alone()
def run_of_table(
    workspace: Workspace,
    file: Path,
    columns: Columns,
    *,
    scale: str | None = None,
    mapping: Mapping[str, str] | None = None,
    verdict_scale: str | None = None,
    labels_by: str | None = None,
    encoding: str | None = None,
    judges: tuple[Judge, ...] = (),
    **run: Any,
) -> ScoreRun:
    """The run that holds a table's judges, or where it has none the free ones, against its labels.

    Its rows are in the experiment's folder. What `columns` leaves open the names tell; `scale` and `mapping`
    are those of `import_gold`, `judges` stand beside the table's own and call nobody, `run` as `ScoreRun`.
    """
    of_import: dict[str, Any] = {"scale": scale, "mapping": mapping, "labels_by": labels_by}
    gold, recorded, config = _read(file, columns, verdict_scale, encoding=encoding, **of_import)
    if recorded is None:
        judges = (*judges, *_free_judges(gold, workspace))
    of_table: dict[str, Any] = {"recorded": recorded, "judges": judges, "split": "all", "table": config}
    made_run = ScoreRun(workspace=workspace, gold=gold, **of_table, **run)
    made_run.check()
    open_experiment(made_run.experiment)
    write_items(made_run.experiment.folder, gold)
    return made_run


def _read(
    file: Path, columns: Columns, verdict_scale: str | None, **of_import: Any
) -> tuple[GoldSet, Recorded | None, dict[str, Any]]:
    """The set of a table, its judges, and what a configuration says of it; the table itself is let go."""
    table = read_table(file, of_import["encoding"])
    columns = guessed(columns, table)
    if not (columns.verdicts or columns.answer or columns.pairs):
        raise InputError(
            f"{table.top}: no column holds a judge's verdicts (name one with --verdict COL), nor an answer "
            "that a judge without a model could read (--col answer=COLUMN)"
        )
    name = _NO_NAME.sub("-", file.stem).strip("-_") or "table"
    try:
        made = import_gold(
            table, name=name, columns=columns, workspace=None, splits=_OPEN, quiet=True, **of_import
        )
    except InputError as error:  # --force is an option of imports alone
        without = (problem.replace(_FORCE, "") for problem in error.problems)
        raise InputError(without) from None
    gold = made.gold
    if len(labels := {*gold.labels.values()}) == 1:
        what, binary = label_text(labels.pop()), gold.scale.kind == "binary"
        raise InputError(
            f"{table.top}: all {len(gold.labels):,} labels are "
            f"{ {'1': 'yes', '0': 'no'}[what] if binary else what }, so that whoever always says that is "
            "right: add answers that people label otherwise"
        )
    recorded = _recorded(made, file, table, verdict_scale) if columns.verdicts else None
    typed = shlex.join(["judgecal", "gold", "import", file.name, "--as", name])
    config = {
        "file": str(file),
        "columns": columns.taken(),
        "left_out": list(made.left_out),
        "notes": [note for note in made.notes if " have no gold label " not in note],
        "options": gold.card.made_by.removeprefix(typed).strip(),
    }
    return gold, recorded, config


def _recorded(made: Imported, file: Path, table: Table, scale: str | None) -> Recorded:
    """The verdicts of the table's columns; InputError: one of them holds none."""
    gold, read = made.gold, made.read
    assert read is not None  # of a table
    recorded = recorded_in_table(gold, read.item_ids, read.verdicts, table, file.name, scale=scale)
    for column in recorded.columns:
        if not any(verdict is not None for verdict in values_of(column.rows, "verdict")):
            cells = sorted({row.cells[column.judge] for row in table.rows} - {""})
            raise InputError(
                f"{table.top}: column {column.judge!r} holds no verdict beside {gold.scale} labels "
                f"({', '.join(cells[:3]) or 'it is empty'}): name the others with --verdict, or say by --map "
                "what its words mean; where judges stand one below the other, import the labels and give the "
                "verdicts as --judgements FILE"
            )
    return recorded


def _free_judges(gold: GoldSet, workspace: Workspace) -> list[Judge]:
    able, why = list[Judge](), ""
    for judge in (judge_named(name, workspace=workspace) for name in _FREE):
        try:
            check_judge(gold, judge, gold.items)
            judge.check_items(gold.items)
            able.append(judge)
        except InputError as error:
            why = error.problems[0]
    if not able:
        raise InputError(f"no column holds a judge's verdicts, and no free judge can stand there: {why}")
    return able
