"""`judgecal evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import argument, option
from judgecal.cli.output import print_result


def evaluate(
    ctx: typer.Context,
    config: Annotated[Path, argument("Questions, systems, judges and costs.", metavar="CONFIG.toml")],
    repeats: Annotated[int | None, option("Judgements of each answer by a judge that calls a model.")] = None,
    wrong_costs: Annotated[
        float | None, option("What a wrong answer takes away, where a right one gives 1.")
    ] = None,
    refusal_costs: Annotated[float | None, option("The same of a refusal where there is an answer.")] = None,
    *,
    call: shared.BatchArguments,
) -> None:
    """Compare whole RAG systems and their settings.

    The file says which. An option goes before what the file says; what was asked and judged before is not
    again.
    """
    from judgecal.rag.evaluation.config import read_evaluate_config
    from judgecal.rag.evaluation.run import EvaluateRun

    run = EvaluateRun(
        workspace=shared.workspace_of(ctx),
        config=read_evaluate_config(config),
        options=call.options(repeats=1 if repeats is None else repeats),
        repeats=repeats,
        wrong_costs=wrong_costs,
        refusal_costs=refusal_costs,
        seed=call.seed,
        out=call.name,
    )
    if call.dry_run:
        shared.show_plan(run.preview(), json=call.json)
        return
    result = run.run()
    print_result(result, json=call.json, full=call.full)
    n = len(result.systems) * result.questions.n
    why = f"{result.n_unscored:,} of {n:,} answers are unscored, in part at least; "
    shared.finish(result.n_unscored, f"{why}{result.states.measured} says why, row by row")
