"""A table with people's labels and judges' verdicts, held against each other where it lies: without a
workspace, and without an import.

It is imported all the same, into the folder of its experiment, so that one code measures both and the page
can be made again. No split of it is sealed: whoever has such a table has seen all of it.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgecal.errors import InputError
from judgecal.experiment.agreement import StoredExperiment
from judgecal.experiment.folder import GOLD_FOLDER, open_experiment
from judgecal.experiment.recorded import Recorded, read_recorded
from judgecal.experiment.result import AgreementResult
from judgecal.experiment.score import ScoreRun
from judgecal.experiment.summary import check_judge
from judgecal.experiment.trials import RunOptions
from judgecal.goldset import JUDGEMENTS, Columns, GoldSet, Imported, Splits, import_gold, load_gold
from judgecal.goldset.labels import label_text
from judgecal.judges import Judge, judge_named
from judgecal.tables import Table, read_table
from judgecal.tables.guess import guessed
from judgecal.workspace import Workspace

_OPEN = Splits(train=0.0, dev=1.0, test=0.0)
_FREE = (
    "correctness_v3@embedded", "token_f1@local", "faithfulness_overlap@local", "relevancy_overlap@local",
)  # fmt: skip
"""The judges that stand where the table has none, each where it finds what it reads."""
_NO_NAME = re.compile(r"[^\w.-]+|^[.-]+|[.-]+$")


@dataclass(frozen=True, kw_only=True)
class TableRun:
    """What `agreement FILE` needs; nothing is written before `run`.

    `scale` and `mapping` are those of `import_gold`, both told by the cells where they are not given.
    """

    workspace: Workspace
    file: Path
    columns: Columns = field(default_factory=lambda: Columns(usual=True))
    scale: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    verdict_scale: str | None = None  # of all its judges; by default told by their verdicts
    labels_by: str | None = None
    judges: tuple[Judge, ...] = ()  # beside the table's own; they call nobody
    options: RunOptions = field(default_factory=RunOptions)
    seed: int = 0
    out: str | None = None

    def run(self) -> tuple[AgreementResult, StoredExperiment]:
        """Hold the table's judges, or where it has none the free ones, against its labels."""
        table = read_table(self.file)
        columns = guessed(self.columns, table)
        if not columns.verdicts and columns.answer is None:
            raise InputError(
                f"{table.top}: no column holds a judge's verdicts (name one with --verdict COL), nor an "
                "answer that a judge without a model could read (--answer COL)"
            )
        name = _NO_NAME.sub("-", self.file.stem).strip("-") or "table"
        with tempfile.TemporaryDirectory(prefix="judgecal-") as root:
            scratch = Workspace(Path(root), Path(root) / "experiments")
            imported = import_gold(
                self.file,
                name=name,
                columns=columns,
                scale=self.scale,
                mapping=self.mapping,
                labels_by=self.labels_by,
                workspace=scratch,
                splits=_OPEN,
                quiet=True,
            )
            gold = load_gold(imported.path)
            if len(known := {*gold.labels.values()}) == 1:
                what, binary = label_text(known.pop()), gold.scale.kind == "binary"
                what = {"1": "yes", "0": "no"}[what] if binary else what
                raise InputError(
                    f"{table.top}: all {len(gold.labels):,} labels are {what}, so that whoever always says "
                    "that is right: add answers that people label otherwise"
                )
            recorded = self._recorded(imported, gold, columns, table)
            judges = self.judges if recorded else (*self.judges, *_free_judges(gold, self.workspace))
            run = ScoreRun(
                workspace=self.workspace,
                gold=gold,
                recorded=recorded,
                judges=judges,
                split="all",
                options=self.options,
                seed=self.seed,
                out=self.out,
                table=self._config(imported, columns, gold.card.made_by),
            )
            run.check()
            open_experiment(run.experiment)
            kept = run.experiment.folder / GOLD_FOLDER / name
            if not kept.is_dir():
                shutil.copytree(imported.path, kept)
        return dataclasses.replace(run, gold=load_gold(kept)).run()

    def _recorded(self, imported: Imported, gold: GoldSet, columns: Columns, table: Table) -> Recorded | None:
        if not columns.verdicts:
            return None
        path, scale = imported.path / JUDGEMENTS, self.verdict_scale
        recorded = read_recorded(path, gold, verdict_scale=scale, where=table.where)
        for column in recorded.columns:
            if all(row.verdict is None for row in column.rows):
                cells = sorted({row.cells[column.judge] for row in table.rows} - {""})
                raise InputError(
                    f"{table.top}: column {column.judge!r} holds no verdict beside {gold.scale} labels "
                    f"({', '.join(cells[:3]) or 'it is empty'}): leave it out by naming the others with "
                    "--verdict, or say by --map what its words mean; where judges stand one below the other, "
                    "import the labels and give the verdicts as --judgements FILE"
                )
        config = {**recorded.config, "file": self.file.name}
        return dataclasses.replace(recorded, name=self.file.name, config=config)

    def _config(self, imported: Imported, columns: Columns, made_by: str) -> dict[str, Any]:
        typed = shlex.join(["judgecal", "gold", "import", self.file.name, "--as", imported.set_])
        return {
            "file": str(self.file),
            "scale": imported.scale,
            "columns": columns.taken(),
            "left_out": list(imported.left_out),
            "notes": [note for note in imported.notes if " have no gold label " not in note],
            "options": made_by.removeprefix(typed).strip(),
        }


def _free_judges(gold: GoldSet, workspace: Workspace) -> list[Judge]:
    """The free judges that find in the items what they read."""
    able, why = list[Judge](), "no free judge fits"
    for name in _FREE:
        judge = judge_named(name, workspace=workspace)
        try:
            check_judge(gold, judge, gold.items)
            judge.check_items(gold.items)
            able.append(judge)
        except InputError as error:
            why = error.problems[0]
    if not able:
        raise InputError(
            "no column holds a judge's verdicts (name one with --verdict COL), and no judge without a model "
            f"can read this table ({why})"
        )
    return able
