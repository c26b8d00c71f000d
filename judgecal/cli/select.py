"""`judgecal select`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.output import print_result

_NOBODY = 1


def select(
    ctx: typer.Context,
    experiment: Annotated[str, typer.Argument(help="Slug or path of an experiment.", metavar="EXPERIMENT")],
    metric: Annotated[
        str | None, typer.Option("--metric", help="By which; macro_agreement by default, accuracy on nominal labels.")
    ] = None,
    margin: Annotated[float, typer.Option("--margin", help="The loss against the best judge that is allowed.")] = 0.03,
    max_usd_per_1k: Annotated[
        float | None, typer.Option("--max-usd-per-1k", help="Cost of 1,000 judgements at most.")
    ] = None,
    max_p95_s: Annotated[
        float | None, typer.Option("--max-p95-s", help="Seconds within which 95% of the calls come back.")
    ] = None,
    max_unscored: Annotated[
        float | None,
        typer.Option("--max-unscored", metavar="SHARE", help="Share of judgements without a verdict, 0..1."),
    ] = None,
    allow_provider: Annotated[
        list[str] | None,
        typer.Option("--allow-provider", help="Only models of this provider, as in a litellm id; repeatable."),
    ] = None,
    local_only: Annotated[bool, typer.Option("--local-only", help="Only models that run on this machine.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the lock goes.")] = Path("judge.lock.json"),
    noise_calls: Annotated[
        int,
        typer.Option(
            "--noise-calls", help="Calls of each of 30 items at lock time, for the judge's noise; 0 makes none."
        ),
    ] = 3,
    repeats: Annotated[
        int | None,
        typer.Option("--repeats", help="Judgements of each test item; by default as many as the experiment made."),
    ] = None,
    *,
    call: shared.RunArguments,
) -> None:
    """The cheapest judge shown to lose less than the margin against the best; confirmed on test; locked."""
    from judgecal.experiment import plan_experiment, read_experiment
    from judgecal.report.select import select_document
    from judgecal.selection.choice import Caps, repeats_of
    from judgecal.selection.select import SelectRun, select_config

    workspace = shared.workspace_of(ctx)
    stored = read_experiment(workspace, experiment)
    caps = Caps(max_usd_per_1k, max_p95_s, max_unscored, tuple(allow_provider or ()), local_only)
    options = call.options(repeats=repeats_of(stored) if repeats is None else repeats)
    config = select_config(stored, metric=metric, margin=margin, caps=caps, repeats=options.repeats, seed=call.seed)
    run = SelectRun(
        workspace=workspace,
        stored=stored,
        experiment=plan_experiment(workspace, config, out=call.name),
        options=options,
        caps=caps,
        metric=metric,
        margin=margin,
        noise_calls=noise_calls,
        output=output,
        seed=call.seed,
    )
    if call.dry_run:
        shared.show_plan(run.preview(), json=call.json)
        return
    result = run.run()
    print_result(result, select_document(result), json=call.json)
    if result.chosen is None:
        raise typer.Exit(_NOBODY)
    shared.finish(n_unscored=result.n_unscored, journal=run.experiment.journal)
