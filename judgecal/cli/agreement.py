"""`judgecal agreement`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.output import print_result


def agreement(
    ctx: typer.Context,
    judgements: Annotated[
        Path, typer.Option("--judgements", help="Recorded judgements: CSV, TSV, JSONL, JSON or Parquet.")
    ],
    gold: shared.GoldName = "starter",
    judge_column: Annotated[
        str | None,
        typer.Option(
            "--judge-column", help="Column of the judge's name; by default judge, or else the file is one judge."
        ),
    ] = None,
    verdict_column: Annotated[str, typer.Option("--verdict-column", help="Column of the verdict.")] = "verdict",
    item_column: Annotated[str, typer.Option("--item-column", help="Column of the item's id.")] = "item_id",
    judge: Annotated[
        list[str] | None,
        typer.Option("--judge", help="A judge beside them that calls nobody, faithfulness_overlap@local; repeatable."),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="open, train, dev, test or all.")] = "all",
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N items.")] = None,
    seed: shared.Seed = 0,
    name: shared.Name = None,
    full: shared.Full = False,
    json: shared.Json = False,
) -> None:
    """Agreement of judgements recorded anywhere with the people of a gold set."""
    from judgecal.experiment import RunOptions, plan_agreement, read_recorded
    from judgecal.goldset import load_gold
    from judgecal.judges import judge_named
    from judgecal.report.judges import judges_document
    from judgecal.selection.choice import MARGIN
    from judgecal.selection.standing import standing

    options = RunOptions(limit=limit)
    options.check()
    workspace = shared.workspace_of(ctx)
    gold_set = load_gold(gold, workspace=workspace)
    recorded = read_recorded(
        judgements, gold_set, judge_column=judge_column, verdict_column=verdict_column, item_column=item_column
    )
    columns = {"judge_column": judge_column, "verdict_column": verdict_column, "item_column": item_column}
    beside = [judge_named(one, workspace=workspace) for one in dict.fromkeys(judge or ())]
    run = plan_agreement(
        workspace, recorded, columns, gold_set, split=split, options=options, seed=seed, beside=beside, out=name
    )
    result, stored = run.run()
    found = standing(workspace, stored, margin=MARGIN, result=result)
    print_result(result, judges_document(found), json=json, full=full)
