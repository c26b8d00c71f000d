"""`judgecal agreement`: verdicts that a table or a file holds, held against people's labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import (
    ColumnArguments,
    LabelsBy,
    Mapped,
    RowsFile,
    argument,
    column,
    option,
    show_agreement,
)
from judgecal.cli.report import open_page
from judgecal.errors import InputError

if TYPE_CHECKING:
    from judgecal.goldset import GoldSet
    from judgecal.tables import Columns
    from judgecal.workspace import Workspace


@dataclass(frozen=True)
class LabelledTableArguments(ColumnArguments):
    """Which column of FILE is what, where its names do not tell it, and how verdicts are read."""

    label: Annotated[
        list[str] | None, column("A person's labels; by default told by the names; repeatable.")
    ] = None
    verdict: Annotated[
        list[str] | None, column("A judge's verdicts; by default told by the names; repeatable.")
    ] = None
    scale: Annotated[
        str | None, option("Of the labels, as gold import takes it; by default told by them.")
    ] = None
    mapping: Mapped = None
    labels_by: LabelsBy = None
    encoding: Annotated[str | None, option("Of separated text; by default told by the file.")] = None

    def columns(self, workspace: Workspace, **more: Any) -> Columns:
        """The columns, with those of labels and verdicts."""
        from judgecal.tables import OF_IMPORTS

        named = {"labels": tuple(self.label or ()), "verdicts": tuple(self.verdict or ()), **more}
        return super().columns(workspace, takes=OF_IMPORTS, **named)


def agreement(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        argument("A table with people's labels and a judge's verdicts, in any folder.", metavar="[FILE]"),
    ] = None,
    judgements: Annotated[
        Path | None,
        option(
            "Of a gold set: recorded judgements, CSV, TSV, JSONL, JSON or Parquet; by default those that "
            "came with it."
        ),
    ] = None,
    gold: Annotated[str | None, option("Gold set, without FILE; by default starter.")] = None,
    judge: Annotated[
        list[str] | None,
        option("A judge beside them that calls nobody, faithfulness_overlap@local; repeatable."),
    ] = None,
    split: shared.Split = "all",
    seed: shared.Seed = 0,
    name: shared.Name = None,
    full: shared.Full = False,
    json: shared.Json = False,
    look: Annotated[bool, option("Write the page and open it in a browser.", "--open")] = False,
    verdict_scale: Annotated[
        str | None, option("Of the verdicts; by default recognised by what they are.")
    ] = None,
    *,
    columns: LabelledTableArguments,
    rows: RowsFile,
) -> None:
    """Say whether a CSV's judges agree with its people's labels.

    FILE has people's labels and judges' verdicts in columns whose names tell which is which; it needs no
    workspace and no import. Without FILE judgements recorded elsewhere are held against a gold set's labels.
    """
    rows.check()
    from judgecal.experiment import RunOptions, ScoreRun, read_recorded
    from judgecal.experiment.from_table import run_of_table
    from judgecal.goldset import load_gold, read_mapping
    from judgecal.judges import judge_named
    from judgecal.tables import read_columns

    workspace = shared.workspace_of(ctx)
    beside = tuple(judge_named(string, workspace=workspace) for string in dict.fromkeys(judge or ()))
    of_run: dict[str, Any] = {"judges": beside, "options": RunOptions(), "seed": seed, "out": name}
    of_sets = {"--gold": gold, "--judgements": judgements}
    if file is not None:
        if given := [option for option, value in of_sets.items() if value] + ["--split"] * (split != "all"):
            raise InputError(f"{', '.join(given)} with {file}: a table has no gold set; leave one out")
        mapping = read_mapping(columns.mapping or ())
        of_run |= {"mapping": mapping, "scale": columns.scale, "labels_by": columns.labels_by}
        of_run |= {"encoding": columns.encoding}
        run = run_of_table(workspace, file, columns.columns(workspace), verdict_scale=verdict_scale, **of_run)
    else:
        given = [
            option for option in columns.given() if option != "--verdict" and not option.startswith("--col ")
        ]
        if given:
            raise InputError(f"{', '.join(given)} without FILE: a gold set's columns are known; leave it out")
        verdict = next(iter(columns.verdict or ()), None)
        if len(columns.verdict or ()) > 1:
            raise InputError("--verdict names one column of --judgements; several are those of a FILE")
        read_by = read_columns(
            columns.col or (), takes=("item", "judge"), inputs=(), workspace=workspace, verdict=verdict
        )
        gold_set = load_gold(gold or "starter", workspace=workspace)
        path = judgements or _with_the_set(gold_set)
        recorded = read_recorded(path, gold_set, columns=read_by, verdict_scale=verdict_scale)
        run = ScoreRun(workspace=workspace, gold=gold_set, recorded=recorded, split=split, **of_run)
    show_agreement(workspace, measured := run.run(), rows, json=json, full=full)
    if look:
        open_page(workspace, measured[0].experiment)


def _with_the_set(gold: GoldSet) -> Path:
    from judgecal.goldset import JUDGEMENTS

    path = gold.path / JUDGEMENTS
    if not path.is_file():
        raise InputError(
            f"gold set {gold.name} came without judgements: name their file with --judgements, or give "
            "a table with labels and verdicts, judgecal agreement FILE"
        )
    return path
