"""`judgecal gold fetch`: the catalogue of public sets, and one of them as a gold set."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from judgecal.cli.options import Full, Json, argument, option, workspace_of
from judgecal.cli.output import print_result
from judgecal.errors import InputError, notice


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
    from judgecal.exchange.fetch import catalogued, fetch_set, plan_fetch

    if public is None:
        print_result(catalogued(), json=options.json, full=options.full)
        return
    workspace, store = workspace_of(ctx), cache_folder() / "public-sets"
    plan = plan_fetch(
        public, workspace, store, name=options.name, label=options.label, replace=options.replace
    )
    if options.dry_run:
        print_result(plan, json=options.json, full=options.full)
        return
    entry = plan.entry
    notice(f"judgecal: {public}: {entry.licence}; its terms are on {entry.home}")
    if entry.to_accept and not options.accept_licence:
        if sys.stdin is None or not sys.stdin.isatty():
            raise InputError(f"{public}: {entry.to_accept}: read {entry.home}, then give --accept-licence")
        notice(f"  {entry.to_accept}. Take it under these terms? [y/N]")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise InputError(f"{public}: not accepted, so nothing was fetched")
    print_result(fetch_set(plan, workspace, again=options.no_cache), json=options.json, full=options.full)
