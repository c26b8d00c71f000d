"""`judgecal agreement`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.table_file import JudgementFiles, show_agreement

if TYPE_CHECKING:
    from judgecal.goldset import GoldSet


@dataclass(frozen=True, slots=True)
class RecordedArguments:
    """What a file of recorded judgements is, and how it is read."""

    judge_column: Annotated[
        str | None,
        typer.Option(
            "--judge-column",
            help="Column of the judge's name; by default judge, or else the file is one judge.",
        ),
    ] = None
    verdict_column: Annotated[str, typer.Option("--verdict-column", help="Column of the verdict.")] = (
        "verdict"
    )
    item_column: Annotated[str, typer.Option("--item-column", help="Column of the item's id.")] = "item_id"
    verdict_scale: Annotated[
        str | None, typer.Option("--verdict-scale", help="Of the verdicts; by default told by what they are.")
    ] = None

    @property
    def columns(self) -> dict[str, str | None]:
        """As an experiment's configuration says it."""
        told = asdict(self)
        return told if self.verdict_scale else {name: told[name] for name in told if name != "verdict_scale"}


def agreement(
    ctx: typer.Context,
    judgements: Annotated[
        Path | None,
        typer.Option(
            "--judgements",
            help="Recorded judgements: CSV, TSV, JSONL, JSON or Parquet; by default those that came with the set.",
        ),
    ] = None,
    gold: shared.GoldName = "starter",
    judge: Annotated[
        list[str] | None,
        typer.Option(
            "--judge", help="A judge beside them that calls nobody, faithfulness_overlap@local; repeatable."
        ),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="open, train, dev, test or all.")] = "all",
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N items.")] = None,
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
    from judgecal.experiment import RunOptions, plan_agreement, read_recorded
    from judgecal.goldset import load_gold
    from judgecal.judges import judge_named

    options = RunOptions(limit=limit)
    options.check()
    workspace = shared.workspace_of(ctx)
    gold_set = load_gold(gold, workspace=workspace)
    recorded = read_recorded(judgements or _with_the_set(gold_set), gold_set, **asdict(how))
    run = plan_agreement(
        workspace,
        recorded,
        how.columns,
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
