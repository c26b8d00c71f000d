"""`judgecal gate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli import options as shared
from judgecal.cli import row_columns as rows
from judgecal.cli.ci_files import CiFiles
from judgecal.cli.output import Decided, print_prose, print_result
from judgecal.errors import notice

if TYPE_CHECKING:
    from judgecal.selection.gate_plan import Gate

RepeatsMax = Annotated[
    int,
    typer.Option(
        "--repeats-max",
        help="Passes over the items at most, the first included; further ones only where it cannot tell yet.",
    ),
]


def gate(
    ctx: typer.Context,
    margin: Annotated[
        float | None, typer.Option("--margin", help="The loss that is allowed; the lock's by default.")
    ] = None,
    repeats_max: RepeatsMax = 3,
    level: Annotated[
        float, typer.Option("--level", help="Level of the interval and of the bound on the loss.")
    ] = 0.95,
    *,
    lock: rows.LockArguments,
    files: CiFiles,
    call: shared.CallArguments,
) -> None:
    """Score the locked judge again: has it drifted?

    It is called afresh. Exits 0 pass, 1 fail, 3 inconclusive or changed. Pass: the loss against the locked
    verdicts is shown to stay under the margin. Fail: over two passes the interval of the difference lies
    beyond the margin, or below 0 with a loss beyond the margin that lasts; or many more items are unscored.
    Changed: the verdicts lie further from the locked ones than the judge's own noise, so another judge
    answers under this name.
    """
    from judgecal.report.gate import gate_document, texts_of
    from judgecal.selection.gate import run_gate
    from judgecal.selection.gate_plan import plan_gate
    from judgecal.selection.lock import load_lock

    started = files.begin()
    planned = plan_gate(
        shared.workspace_of(ctx),
        load_lock(lock.lock),
        lock.lock,
        margin=margin,
        level=level,
        budget_usd=call.budget_usd,
        budget_total_usd=call.budget_total_usd,
        repeats_max=repeats_max,
        seed=call.seed,
        out=call.name,
        trust_lock=lock.trust_lock,
    )
    if call.dry_run:
        _preview(planned, json=call.json)
        return
    planned.check()
    slug = planned.experiment.slug
    notice(f"judgecal: gate in {slug}; if it is interrupted, --name {slug} goes on with it")
    document = gate_document(result := run_gate(planned), texts_of(planned.gold))
    print_result(result, document, json=call.json, full=call.full)
    files.write(result, document, started)
    raise Decided(result.decision)


def _preview(planned: Gate, *, json: bool) -> None:
    shared.show_plan(planned.preview(), json=json, live=True)
    more = planned.repeats_max - 1
    if more and not json:
        print_prose(f"That is one pass; where it cannot tell, up to {more} more take as much each.")
