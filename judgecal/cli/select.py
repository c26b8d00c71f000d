"""`judgecal select`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import option
from judgecal.cli.output import print_result
from judgecal.errors import InputError

if TYPE_CHECKING:
    from judgecal.selection.choice import Caps

_NOBODY = 1
_SPLITS = ("open", "all")


@dataclass(frozen=True, slots=True)
class CapArguments:
    """What a judge may be at most, and at least."""

    max_usd_per_1k: Annotated[float | None, option("Cost of 1,000 judgements at most.")] = None
    max_p95_s: Annotated[float | None, option("Seconds within which 95% of the calls come back.")] = None
    max_unscored: Annotated[
        float | None, option("Share of judgements without a verdict, 0..1.", metavar="SHARE")
    ] = None
    allow_provider: Annotated[
        list[str] | None, option("Only models of this provider, as in a litellm id; repeatable.")
    ] = None
    local_only: Annotated[bool, option("Only models that run on this machine.")] = False

    allow_below_floor: Annotated[
        bool, option("Also choose a judge not shown to beat the best constant, or by few questions.")
    ] = False
    allow_unconfirmed: Annotated[bool, option("Also lock a judge that falls too far on test.")] = False

    def caps(self) -> Caps:
        """As the selection takes them."""
        from judgecal.selection.choice import Caps

        most = (self.max_usd_per_1k, self.max_p95_s, self.max_unscored)
        providers = tuple(self.allow_provider or ())
        return Caps(*most, providers, self.local_only, self.allow_below_floor, self.allow_unconfirmed)


def select(
    ctx: typer.Context,
    experiment: shared.ExperimentName,
    metric: shared.Metric = None,
    margin: Annotated[float, option("The loss against the best judge that is allowed.")] = 0.03,
    output: Annotated[Path, option("Where the lock goes.", "--output", "-o")] = Path("judge.lock.json"),
    noise_calls: Annotated[
        int, option("Calls of each item at lock time, for gate to hold the judge to; 0 makes none.")
    ] = 3,
    split: Annotated[
        str,
        option("What chooses: open (train and dev; test confirms), or all: none confirms.", metavar="SPLIT"),
    ] = "open",
    repeats: Annotated[
        int | None, option("Judgements of each test item; by default as many as the experiment made.")
    ] = None,
    replace: shared.Replace = False,
    *,
    allowed: CapArguments,
    call: shared.RunArguments,
) -> None:
    """Choose the cheapest judge within the margin, and lock it. It is shown to lose no more; confirmed on
    test."""
    from judgecal.experiment import read_experiment
    from judgecal.selection.choice import repeats_of
    from judgecal.selection.select import SelectRun

    if split not in _SPLITS:
        raise InputError(f"--split is {' or '.join(_SPLITS)}, found {split!r}")
    workspace = shared.workspace_of(ctx)
    stored = read_experiment(workspace, experiment)
    run = SelectRun(
        workspace=workspace,
        stored=stored,
        options=call.options(repeats=repeats_of(stored) if repeats is None else repeats),
        caps=allowed.caps(),
        metric=metric,
        margin=margin,
        noise_calls=noise_calls,
        output=output,
        seed=call.seed,
        replace=replace,
        on_all=split == "all",
        out=call.name,
    )
    if call.dry_run:
        look = shared.would_look(run.foresee(), stored.gold.name)
        shared.show_plan(run.preview(), json=call.json, look=look, live=True)
        return
    result = run.run()
    print_result(result, json=call.json, full=call.full)
    if result.chosen is None:
        raise typer.Exit(_NOBODY)
    shared.finish(result.n_unscored, journal=run.experiment.journal)
