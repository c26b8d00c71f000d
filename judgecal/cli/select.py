"""`judgecal select`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli import options as shared
from judgecal.cli.output import print_result
from judgecal.errors import InputError

if TYPE_CHECKING:
    from judgecal.selection.choice import Caps

_NOBODY = 1
_SPLITS = ("open", "all")

NoiseCalls = Annotated[
    int,
    typer.Option(
        "--noise-calls", help="Calls of each item at lock time, for gate to hold the judge to; 0 makes none."
    ),
]

Split = Annotated[
    str,
    typer.Option(
        "--split",
        metavar="SPLIT",
        help="What chooses: open (train and dev; test confirms), or all: none confirms.",
    ),
]

Repeats = Annotated[
    int | None,
    typer.Option(
        "--repeats", help="Judgements of each test item; by default as many as the experiment made."
    ),
]


@dataclass(frozen=True, slots=True)
class CapArguments:
    """What a judge may be at most, and at least."""

    max_usd_per_1k: Annotated[
        float | None, typer.Option("--max-usd-per-1k", help="Cost of 1,000 judgements at most.")
    ] = None
    max_p95_s: Annotated[
        float | None, typer.Option("--max-p95-s", help="Seconds within which 95% of the calls come back.")
    ] = None
    max_unscored: Annotated[
        float | None,
        typer.Option("--max-unscored", metavar="SHARE", help="Share of judgements without a verdict, 0..1."),
    ] = None
    allow_provider: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-provider", help="Only models of this provider, as in a litellm id; repeatable."
        ),
    ] = None
    local_only: Annotated[
        bool, typer.Option("--local-only", help="Only models that run on this machine.")
    ] = False

    allow_below_floor: Annotated[
        bool,
        typer.Option(
            "--allow-below-floor",
            help="Also choose a judge not shown to beat the best constant, or by few questions.",
        ),
    ] = False
    allow_unconfirmed: Annotated[
        bool, typer.Option("--allow-unconfirmed", help="Also lock a judge that falls too far on test.")
    ] = False

    def caps(self) -> Caps:
        """As the selection takes them."""
        from judgecal.selection.choice import Caps

        most = (self.max_usd_per_1k, self.max_p95_s, self.max_unscored)
        providers = tuple(self.allow_provider or ())
        return Caps(*most, providers, self.local_only, self.allow_below_floor, self.allow_unconfirmed)


def select(
    ctx: typer.Context,
    experiment: Annotated[str, typer.Argument(help="Slug or path of an experiment.", metavar="EXPERIMENT")],
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="By which; macro_agreement by default, accuracy on nominal labels."),
    ] = None,
    margin: Annotated[
        float, typer.Option("--margin", help="The loss against the best judge that is allowed.")
    ] = 0.03,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the lock goes.")] = Path(
        "judge.lock.json"
    ),
    noise_calls: NoiseCalls = 3,
    split: Split = "open",
    repeats: Repeats = None,
    replace: shared.Replace = False,
    *,
    allowed: CapArguments,
    call: shared.RunArguments,
) -> None:
    """Choose the cheapest judge within the margin, and lock it. It is shown to lose no more; confirmed on
    test."""
    from judgecal.experiment import plan_experiment, read_experiment
    from judgecal.selection.choice import repeats_of
    from judgecal.selection.select import SelectRun, select_config

    if split not in _SPLITS:
        raise InputError(f"--split is {' or '.join(_SPLITS)}, found {split!r}")
    workspace, on_all = shared.workspace_of(ctx), split == "all"
    stored = read_experiment(workspace, experiment)
    caps = allowed.caps()
    options = call.options(repeats=repeats_of(stored) if repeats is None else repeats)
    how: dict[str, Any] = {
        "metric": metric,
        "margin": margin,
        "caps": caps,
        "seed": call.seed,
        "on_all": on_all,
    }
    config = select_config(stored, **how, repeats=options.repeats)
    run = SelectRun(
        workspace=workspace,
        stored=stored,
        experiment=plan_experiment(workspace, config, out=call.name),
        options=options,
        **how,
        noise_calls=noise_calls,
        output=output,
        replace=replace,
    )
    if call.dry_run:
        look = shared.would_look(run.foresee(), stored.gold.name)
        shared.show_plan(run.preview(), json=call.json, look=look, live=True)
        return
    result = run.run()
    print_result(result, json=call.json, full=call.full)
    if result.chosen is None:
        raise typer.Exit(_NOBODY)
    shared.finish(n_unscored=result.n_unscored, journal=run.experiment.journal)
