"""`judgecal gold fetch`: the catalogue of public sets, and one of them as a gold set."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from judgecal.cli.options import Full, Json, argument, option, workspace_of
from judgecal.cli.output import print_result
from judgecal.errors import notice

if TYPE_CHECKING:
    from judgecal.exchange.fetch import FetchPlan


@dataclass(frozen=True)
class FetchArguments:
    """The options of `gold fetch`."""

    name: Annotated[str | None, option("The gold set's name; by default NAME.", "--as", metavar="SET")] = None
    label: Annotated[
        str | None, option("What people were asked, where the set has several.", metavar="METRIC")
    ] = None
    accept_licence: Annotated[
        bool, option("Take a set that is NC, ND, gated or not verified without asking.")
    ] = False
    replace: Annotated[bool, option("Replace a gold set of this name.")] = False
    no_cache: Annotated[bool, option("Fetch files again that are stored, and hold them against those.")] = (
        False
    )
    dry_run: Annotated[bool, option("Say what would be fetched; fetch nothing.")] = False
    full: Full = False
    json: Json = False


def fetch_command(
    ctx: typer.Context,
    public: Annotated[str | None, argument("By default the catalogue is listed.", metavar="[NAME]")] = None,
    *,
    options: FetchArguments,
) -> None:
    """List public sets with people's labels, or fetch one.

    What is fetched becomes a gold set. Its licence is printed; where it limits the use, or was not verified,
    it asks once.
    """
    from judgecal.engine.cache import cache_folder
    from judgecal.exchange.fetch import Fetch, catalogued

    if public is None:
        result = catalogued()
        print_result(result, json=options.json, full=options.full)
        return
    fetch = Fetch(
        public,
        workspace_of(ctx),
        cache_folder() / "public-sets",
        name=options.name,
        label=options.label,
        replace=options.replace,
        again=options.no_cache,
    )
    plan = fetch.plan()
    if options.dry_run:
        print_result(plan, json=options.json, full=options.full)
        return
    _accept(plan, accepted=options.accept_licence)
    fetched = fetch.run(plan)
    print_result(fetched, json=options.json, full=options.full)


def _accept(plan: FetchPlan, *, accepted: bool) -> None:
    """Print the licence, and ask where something must be accepted."""
    from judgecal.errors import InputError

    entry = plan.entry
    notice(f"judgecal: {plan.public}: {entry.licence}; its terms are on {entry.home}")
    if not entry.to_accept or accepted:
        return
    if not (sys.stdin is not None and sys.stdin.isatty()):
        raise InputError(f"{plan.public}: {entry.to_accept}: read {entry.home}, then give --accept-licence")
    notice(f"  {entry.to_accept}. Take it under these terms? [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError(f"{plan.public}: not accepted, so nothing was fetched")
