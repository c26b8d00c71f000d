"""`judgecal optimize`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared

if TYPE_CHECKING:
    from judgecal.optimize import Preview


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
    """Compile a judge on train, choose on dev, confirm once on test: before, after, difference, decision."""
    options = call.options(repeats=repeats)
    from judgecal.experiment import gold_config, judge_config, plan_experiment
    from judgecal.goldset import load_gold
    from judgecal.judges import JudgeName, PromptJudge
    from judgecal.models import load_catalogue
    from judgecal.optimize import (
        OptimizeRun,
        optimizer_settings,
        preview_optimize,
        reflection_config,
        resolve_optimizer,
    )
    from judgecal.report import json_text, optimize_text

    workspace = shared.workspace_of(ctx)
    judge = PromptJudge(JudgeName(signature, model), workspace=workspace)
    chosen = resolve_optimizer(optimizer, judge)
    writer = load_catalogue(workspace).resolve(reflection_model) if reflection_model else None
    gold_set = load_gold(gold, workspace=workspace)
    config = {
        "command": "optimize",
        "gold": gold_config(gold_set),
        "judges": [judge_config(judge)],
        "optimizer": chosen,
        "optimizer_settings": optimizer_settings(chosen),
        **reflection_config(chosen, judge.model, writer),
        "final": final,
        "repeats": repeats,
        "seed": call.seed,
    }
    run = OptimizeRun(
        workspace=workspace,
        gold=gold_set,
        judge=judge,
        optimizer=chosen,
        options=options,
        seed=call.seed,
        final=final,
        experiment=plan_experiment(workspace, config, out=call.name),
        reflection=writer,
    )
    if call.dry_run:
        _show(preview_optimize(run), chosen, json=call.json)
        return
    result = run.run()
    typer.echo(json_text(result) if call.json else optimize_text(result))
    shared.finish(n_unscored=run.unscored(), journal=run.experiment.journal)


def _show(preview: Preview, optimizer: str, *, json: bool) -> None:
    """The preview, with the optimiser's own part of the calls."""
    from judgecal.report.optimize_text import own_calls_text

    shared.show_plan(preview.plan, json=json)
    bounds = preview.bounds
    if bounds.task and not json:
        own = own_calls_text(
            optimizer, task=bounds.task, reflection=bounds.reflection, writer=preview.reflection
        )
        typer.echo(own)
