"""`judgecal optimize`."""

from __future__ import annotations

from typing import Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.output import print_prose, print_result


def optimize(
    ctx: typer.Context,
    model: Annotated[str, typer.Option("--model", help="Model alias or litellm id.")] = "embedded",
    signature: Annotated[str, typer.Option("--signature", help="The judge's signature.")] = "correctness_v3",
    optimizer: Annotated[
        str, typer.Option("--optimizer", help="auto, labeled, fewshot, mipro, gepa or simba.")
    ] = "auto",
    reflection_model: Annotated[
        str | None,
        typer.Option(
            "--reflection-model",
            help="Who writes instructions for mipro, gepa and simba; else the judge's own model.",
        ),
    ] = None,
    gold: shared.GoldName = "starter",
    final: Annotated[
        bool, typer.Option("--final/--no-final", help="Confirm once on test, or leave it sealed.")
    ] = True,
    repeats: shared.Repeats = 1,
    *,
    call: shared.RunArguments,
) -> None:
    """Improve a judge's prompt, and say whether it did improve. Compiled on train, chosen on dev, confirmed
    on test."""
    options = call.options(repeats=repeats)
    from judgecal.goldset import load_gold
    from judgecal.judges import JudgeName, PromptJudge
    from judgecal.models import load_catalogue
    from judgecal.optimize import plan_optimize, preview_optimize

    workspace = shared.workspace_of(ctx)
    run = plan_optimize(
        workspace,
        PromptJudge(JudgeName(signature, model), workspace=workspace),
        load_gold(gold, workspace=workspace),
        optimizer=optimizer,
        options=options,
        seed=call.seed,
        final=final,
        reflection=load_catalogue(workspace).resolve(reflection_model) if reflection_model else None,
        out=call.name,
    )
    if call.dry_run:
        preview = preview_optimize(run)
        look = shared.would_look(run.foresee(), run.gold.name, where=", if something changes on dev")
        shared.show_plan(preview.plan, json=call.json, look=look, live=True)
        if preview.own_calls and not call.json:
            print_prose(preview.own_calls)
        return
    result = run.run()
    print_result(result, json=call.json, full=call.full)
    shared.finish(n_unscored=run.unscored(), journal=run.experiment.journal)
