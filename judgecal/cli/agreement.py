"""`judgecal agreement`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import option
from judgecal.cli.row_columns import Verdict, column
from judgecal.cli.table_file import JudgementFiles, show_agreement

if TYPE_CHECKING:
    from judgecal.experiment.recorded import Recorded
    from judgecal.goldset import GoldSet


@dataclass(frozen=True, slots=True)
class RecordedArguments:
    """What a file of recorded judgements is, and how it is read."""

    judge_column: Annotated[
        str | None, option("Column of the judge's name; by default judge, or else the file is one judge.")
    ] = None
    verdict: Verdict = None
    item: Annotated[str | None, column("The item's id; by default item_id.")] = None
    verdict_scale: Annotated[str | None, option("Of the verdicts; by default told by what they are.")] = None

    def read(self, path: Path, gold: GoldSet) -> Recorded:
        """The judgements of a file."""
        from judgecal.experiment import read_recorded
        from judgecal.tables import Columns

        columns = Columns(item=self.item, verdict=self.verdict, usual=True)
        return read_recorded(
            path, gold, columns=columns, judge_column=self.judge_column, verdict_scale=self.verdict_scale
        )


def agreement(
    ctx: typer.Context,
    judgements: Annotated[
        Path | None,
        option(
            "Recorded judgements: CSV, TSV, JSONL, JSON or Parquet; by default those that came with the set."
        ),
    ] = None,
    gold: shared.GoldName = "starter",
    judge: Annotated[
        list[str] | None,
        option("A judge beside them that calls nobody, faithfulness_overlap@local; repeatable."),
    ] = None,
    split: Annotated[str, option("open, train, dev, test or all.")] = "all",
    limit: Annotated[int | None, option("Only the first N items.")] = None,
    seed: shared.Seed = 0,
    name: shared.Name = None,
    full: shared.Full = False,
    json: shared.Json = False,
    *,
    how: RecordedArguments,
    table: JudgementFiles,
) -> None:
    """Hold judgements recorded elsewhere against people."""
    table.check()
    from judgecal.experiment import RunOptions, plan_agreement
    from judgecal.goldset import load_gold
    from judgecal.judges import judge_named

    options = RunOptions(limit=limit)
    options.check()
    workspace = shared.workspace_of(ctx)
    gold_set = load_gold(gold, workspace=workspace)
    recorded = how.read(judgements or _with_the_set(gold_set), gold_set)
    run = plan_agreement(
        workspace,
        recorded,
        gold_set,
        split=split,
        options=options,
        seed=seed,
        beside=[judge_named(one, workspace=workspace) for one in dict.fromkeys(judge or ())],
        out=name,
    )
    show_agreement(workspace, run.run(), table, json=json, full=full)


def _with_the_set(gold: GoldSet) -> Path:
    """The judgements that an import kept beside a set. InputError: there are none."""
    from judgecal.errors import InputError
    from judgecal.goldset import JUDGEMENTS

    path = gold.path / JUDGEMENTS
    if not path.is_file():
        raise InputError(f"gold set {gold.name} came without judgements: name their file with --judgements")
    return path
