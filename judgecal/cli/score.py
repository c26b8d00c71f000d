"""`judgecal score`."""

from __future__ import annotations

from typing import Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.output import print_prose
from judgecal.cli.table_file import JudgementFiles, show_agreement
from judgecal.errors import InputError


def score(
    ctx: typer.Context,
    models: Annotated[str | None, typer.Option("--models", help="Models, separated by commas.")] = None,
    signatures: Annotated[
        str | None, typer.Option("--signatures", help="Signatures, separated by commas.")
    ] = None,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            "--judge",
            help="A judge by its string: correctness_v3@embedded#SLUG, 'include(match=phrase)@local', "
            "FILE.py:FUNCTION@python; repeatable.",
        ),
    ] = None,
    gold: shared.GoldName = "starter",
    split: Annotated[str, typer.Option("--split", help="open, train, dev, test or all.")] = "open",
    repeats: shared.Repeats = 1,
    *,
    rules: shared.RuleArguments,
    table: JudgementFiles,
    call: shared.BatchArguments,
) -> None:
    """Run judges over a gold set: their agreement with people. Every signature x model pair judges every
    item."""
    options = call.options(repeats=repeats)
    table.check()
    from judgecal.experiment import plan_score
    from judgecal.goldset import load_gold
    from judgecal.judges import judge_named

    workspace = shared.workspace_of(ctx)
    judges = tuple(
        judge_named(one, workspace=workspace) for one in rules.set(_judge_names(models, signatures, judge))
    )
    run = plan_score(
        workspace,
        load_gold(gold, workspace=workspace),
        judges,
        split=split,
        options=options,
        seed=call.seed,
        out=call.name,
    )
    if call.dry_run:
        run.check()
        shared.show_plan(run.plan(), json=call.json)
        if run.tied and not call.json:
            print_prose(_of_ties(len(run.tied)))
        return
    result, stored = run.run()
    show_agreement(workspace, (result, stored), table, json=call.json, full=call.full)
    n_unscored = sum(one.n_unscored for one in result.judges)
    shared.finish(n_unscored=n_unscored, journal=run.experiment.journal)


def _of_ties(n: int) -> str:
    return (
        f"{n} of the items have no gold label, as raters tie: each judge is asked about them once, so that it can be "
        "held against raters where raters are, and they count nowhere else"
    )


def _judge_names(models: str | None, signatures: str | None, judges: list[str] | None) -> list[str]:
    """Every signature x model pair, then the judges named one by one; alone, those stand for themselves."""
    pairs: list[str] = []
    if models or signatures or not judges:
        pairs = [
            f"{s}@{m}"
            for s in shared.names(signatures or "correctness_v3")
            for m in shared.names(models or "embedded")
        ]
    named = list(dict.fromkeys([*pairs, *(judges or [])]))
    if not named:
        raise InputError("no judge is named: give --models A,B and --signatures S,T, or --judge")
    return named
