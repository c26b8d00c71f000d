"""`judgecal agreement`: verdicts that a table or a file holds, held against people's labels."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import (
    ColumnArguments,
    JudgementFiles,
    LabelsBy,
    Mapped,
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

    def columns(self) -> Columns:
        """As the table is read by them."""
        labels, verdicts = tuple(self.label or ()), tuple(self.verdict or ())
        return dataclasses.replace(super().columns(), labels=labels, verdicts=verdicts)


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
    limit: Annotated[int | None, option("Only the first N items.")] = None,
    seed: shared.Seed = 0,
    name: shared.Name = None,
    full: shared.Full = False,
    json: shared.Json = False,
    look: Annotated[bool, option("Write the page and open it in a browser.", "--open")] = False,
    judge_column: Annotated[
        str | None, option("Column of the judge's name; by default judge, else the file is one judge.")
    ] = None,
    verdict_scale: Annotated[
        str | None, option("Of the verdicts; by default recognised by what they are.")
    ] = None,
    *,
    columns: LabelledTableArguments,
    table: JudgementFiles,
) -> None:
    """Say whether a CSV's judges agree with its people's labels.

    FILE has people's labels and judges' verdicts in columns whose names tell which is which; it needs no
    workspace and no import. Without FILE judgements recorded elsewhere are held against a gold set's labels.
    """
    table.check()
    from judgecal.experiment import RunOptions, ScoreRun, read_recorded
    from judgecal.experiment.from_table import run_of_table
    from judgecal.goldset import load_gold, read_mapping
    from judgecal.judges import judge_named

    options = RunOptions(limit=limit)
    options.check()
    workspace = shared.workspace_of(ctx)
    beside = tuple(judge_named(string, workspace=workspace) for string in dict.fromkeys(judge or ()))
    of_run: dict[str, Any] = {"judges": beside, "options": options, "seed": seed, "out": name}
    of_sets = {"--gold": gold, "--judgements": judgements, "--judge-column": judge_column}
    if file is not None:
        if given := [option for option, value in of_sets.items() if value] + ["--split"] * (split != "all"):
            raise InputError(f"{', '.join(given)} with {file}: a table has no gold set; leave one out")
        mapping = read_mapping(columns.mapping or ())
        of_run |= {"mapping": mapping, "scale": columns.scale, "labels_by": columns.labels_by}
        run = run_of_table(workspace, file, columns.columns(), verdict_scale=verdict_scale, **of_run)
    else:
        if given := sorted({*columns.given()} - {"--verdict", "--item"}):
            raise InputError(f"{', '.join(given)} without FILE: a gold set's columns are known; leave it out")
        verdicts = [*(columns.verdict or ())]
        if len(verdicts) > 1:
            raise InputError("--verdict names one column of --judgements; several are those of a FILE")
        known = load_gold(gold or "starter", workspace=workspace)
        read_by = dataclasses.replace(columns.columns(), verdicts=(), verdict=next(iter(verdicts), None))
        recorded = read_recorded(
            judgements or _with_the_set(known),
            known,
            columns=read_by,
            judge_column=judge_column,
            verdict_scale=verdict_scale,
        )
        run = ScoreRun(workspace=workspace, gold=known, recorded=recorded, split=split, **of_run)
    show_agreement(workspace, found := run.run(), table, json=json, full=full)
    if look:
        open_page(workspace, found[0].experiment)


def _with_the_set(gold: GoldSet) -> Path:
    from judgecal.goldset import JUDGEMENTS

    path = gold.path / JUDGEMENTS
    if not path.is_file():
        raise InputError(
            f"gold set {gold.name} came without judgements: name their file with --judgements, or give "
            "a table with labels and verdicts, judgecal agreement FILE"
        )
    return path
