"""The options that several commands share, and what they come to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from judgecal.experiment import CostEstimate, RunOptions
    from judgecal.workspace import Workspace

__all__ = [
    "BudgetUsd",
    "DryRun",
    "GoldName",
    "Json",
    "Limit",
    "NoCache",
    "Out",
    "Repeats",
    "RetryUnscored",
    "Seed",
    "State",
    "finish",
    "names",
    "run_options",
    "show_plan",
    "workspace_of",
]

GoldName = Annotated[str, typer.Option("--gold", help="Gold set: a name under gold/, or a path.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Out = Annotated[
    str | None, typer.Option("--out", help="Slug of the experiment, instead of <command>-<set>-<hash>.")
]
Repeats = Annotated[int, typer.Option("--repeats", help="Judgements of each item by each judge.")]
Limit = Annotated[
    int | None, typer.Option("--limit", help="Only the first N items; a larger N extends the run.")
]
BudgetUsd = Annotated[
    float | None,
    typer.Option("--budget-usd", help="Spend at most this much in this run; checked before each call."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say how many calls it would take and at what cost; call nothing.")
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Take no stored answers of other experiments.")]
RetryUnscored = Annotated[
    bool, typer.Option("--retry-unscored", help="Also call again where a reply gave no usable verdict.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of every draw.")]


class State:
    """What the options before the command say; `ctx.obj` of every command."""

    def __init__(self, workspace: Path | None = None) -> None:
        self.workspace = workspace


def workspace_of(ctx: typer.Context) -> Workspace:
    """The workspace of a command."""
    from judgecal.workspace import find_workspace

    return find_workspace(ctx.obj.workspace)


def names(text: str | None) -> list[str]:
    """`A,B` as a list; empty parts are left out, and each name counts once."""
    parts = (part.strip() for part in (text or "").split(","))
    return list(dict.fromkeys(part for part in parts if part))


def run_options(
    *, repeats: int, limit: int | None, budget_usd: float | None, retry_unscored: bool, no_cache: bool
) -> RunOptions:
    """The options of a command that calls models, checked."""
    from judgecal.experiment import RunOptions

    options = RunOptions(
        repeats=repeats,
        limit=limit,
        budget_usd=budget_usd,
        retry_unscored=retry_unscored,
        use_cache=not no_cache,
    )
    options.check()
    return options


def show_plan(plan: CostEstimate, *, json: bool) -> None:
    """Print what `--dry-run` found out."""
    from judgecal.report import json_text

    usd = plan.usd_at_most
    if json:
        values = {"calls": plan.calls, "stored": plan.stored, "prompt_tokens": plan.prompt_tokens}
        typer.echo(json_text({**values, "usd_at_most": usd, "seconds": plan.seconds}))
        return
    time = "unknown before the first calls" if plan.seconds is None else f"about {plan.seconds:.0f} s"
    cost = "unknown: some model has no price" if usd is None else f"at most {usd:.4f} USD"
    typer.echo(
        f"{plan.calls} calls to make, {plan.stored} judgements stored already, "
        f"about {plan.prompt_tokens} prompt tokens, cost {cost}, time {time}"
    )


def finish(*, n_unscored: int, journal: Path) -> None:
    """Exit 4 where items ended unscored; says where the reasons are."""
    if n_unscored:
        typer.echo(f"judgecal: {n_unscored} judgements are unscored; {journal} holds why", err=True)
        raise typer.Exit(4)
