"""`judgecal gold label`: the labelling page, on this machine."""

from __future__ import annotations

import random
import shlex
import sys
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli.gold import TableArguments, is_table
from judgecal.cli.options import Full, Json, Split, argument, names, option, typed_command, workspace_of
from judgecal.cli.output import print_result
from judgecal.errors import InputError, notice, visible

if TYPE_CHECKING:
    from judgecal.desk.desk import Labelling
    from judgecal.desk.label_journal import LabelQueue
    from judgecal.desk.progress import LabelProgress
    from judgecal.desk.server import DeskServer
    from judgecal.goldset import GoldSet
    from judgecal.goldset.draw import LabelSample
    from judgecal.records import Item
    from judgecal.report.document import Document
    from judgecal.workspace import Workspace

_DRAWN = 100  # rows of a judged table, where -n does not say


@dataclass(frozen=True)
class LabelArguments:
    """The options of `gold label`."""

    raters: Annotated[
        str | None,
        option("Who labels; each gets a link and an order of their own; by default rater-1.", metavar="A,B"),
    ] = None
    overlap: Annotated[
        float | None,
        option("The part of the items that every rater labels; by default 0.3.", min=0.0, max=1.0),
    ] = None
    limit: Annotated[
        int | None,
        option("Only N items, drawn at random; of a judged table 100.", "-n", "--limit", min=1, metavar="N"),
    ] = None
    adjudicate: Annotated[
        bool, option("Settle the items on which raters differ: your label becomes the gold label.")
    ] = False
    named: Annotated[
        str | None,
        option("The name of the set that a table's rows make; by default the file's.", "--as", metavar="SET"),
    ] = None
    split: Split = "all"
    port: Annotated[int, option("By default one that is free.", min=0, max=65535)] = 0
    host: Annotated[str, option("Where to listen, such as 0.0.0.0 for colleagues in the same network.")] = (
        "127.0.0.1"
    )
    no_open: Annotated[bool, option("Start no browser.")] = False
    dry_run: Annotated[bool, option("Say what there is to do; serve nothing, write nothing.")] = False
    seed: Annotated[int, option("Seed of the orders and of the draw.", min=0)] = 0
    full: Full = False
    json: Json = False


def label_command(
    ctx: typer.Context,
    source: Annotated[str, argument("Whose items are to be labelled.", metavar="SET|EXPERIMENT|FILE")],
    *,
    page: LabelArguments,
    table: TableArguments,
) -> None:
    """Label in the browser, on a page of this machine.

    Each rater has a link, sees nobody's labels, and may use keys alone. Every label is on the disk before the
    next item shows, in the set's ratings.jsonl; the same command goes on later. With --adjudicate the page
    shows what raters said, without names, and takes your label with its reason: the rater `gold`.
    """
    from judgecal.desk.desk import Desk
    from judgecal.desk.server import DeskServer

    workspace = workspace_of(ctx)
    workspace.require_writable("gold label")
    if page.adjudicate:
        task = _adjudicating(source, page, table, workspace)
    else:
        task = _labelling(source, page, table, workspace, dry_run=page.dry_run)
    following = table.after(source, task.gold.name, workspace)  # the rate of a judged table, else a score
    # What was drawn on is a set now.
    again = typed_command(ctx, "gold label", without=("labels", "named", "dry_run", "json", "full"))
    joined = table.labels or page.named
    again = f"{again} --as {shlex.quote(joined)}" if joined else again

    def progress(gold: GoldSet, queue: LabelQueue) -> tuple[LabelProgress, Document]:
        """How far it is; its module is loaded late, so that the page is there sooner."""
        from judgecal.desk.progress import label_document, label_progress

        result = label_progress(task, gold, queue)
        commands = {"following": following, "again": again}
        return result, label_document(result, gold, adjudicates=task.adjudicates, **commands)

    gold, queue = task.gold, task.queue([(rating.item_id, rating.rater) for rating in task.gold.ratings])
    if task.items and not page.dry_run:
        with Desk(task) as desk:
            queue = desk.queue
            server = DeskServer(
                desk, page.host, page.port, lambda: progress(desk.seen(), queue)[1].headline.next
            )
            if not queue.finished:
                _serve(server, open_browser=not page.no_open)
            gold = desk.seen()
    result, document = progress(gold, queue)
    print_result(result, document, json=page.json, full=page.full)


# --- what is labelled


def _adjudicating(
    source: str, page: LabelArguments, table: TableArguments, workspace: Workspace
) -> Labelling:
    """The items of a set on which raters differ."""
    from judgecal.desk.desk import Labelling
    from judgecal.desk.progress import opinions_of
    from judgecal.goldset import GOLD, load_gold

    given = {"--raters": page.raters, "--overlap": page.overlap, "-n": page.limit, "--as": page.named}
    given["--split"] = None if page.split == "all" else page.split
    if odd := [*(name for name, value in given.items() if value is not None), *table.given()]:
        takes = "it takes every item of a gold set on which raters differ"
        raise InputError(f"{', '.join(odd)} with --adjudicate: {takes}: leave it out")
    gold = load_gold(source, workspace=workspace, labelling=True)
    opinions = opinions_of(gold)
    items = [item for item in gold.items if item.item_id in opinions]
    return Labelling(gold, items, (GOLD,), shuffled=False, opinions=opinions)


def _labelling(
    source: str, page: LabelArguments, table: TableArguments, workspace: Workspace, *, dry_run: bool
) -> Labelling:
    """The items of a set, an experiment or a table, for these raters."""
    from judgecal.desk.desk import Labelling
    from judgecal.goldset import GOLD

    raters, limit = names("rater-1" if page.raters is None else page.raters), page.limit
    odd = [rater for rater in raters if rater == GOLD or visible(rater) != rater or len(rater) > 80]
    if odd or not raters:
        named = ", ".join(repr(visible(rater)[:80]) for rater in odd) or "nobody"
        rule = f"{GOLD!r} is the adjudicated label (--adjudicate), and a name holds nothing that is not seen"
        raise InputError(f"--raters names {named}: give names such as --raters ann,bob; {rule}")
    if is_table(source, workspace.gold_sets):
        gold = _of_table(Path(source), page, table, workspace, dry_run=dry_run)
        items: Sequence[Item] = gold.items
        limit = None  # the draw has taken so many
    elif table.given():
        raise InputError(f"{', '.join(table.given())}: only a table in a file takes it, {source!r} is none")
    else:
        gold, items = _of_set(source, workspace, dry_run=dry_run)
    groups = {item.group for item in gold.select(page.split)}
    items = [item for item in items if item.group in groups]
    if limit is not None and limit < len(items):
        chosen = set(random.Random(f"{page.seed}:draw").sample(range(len(items)), limit))
        items = [item for place, item in enumerate(items) if place in chosen]
    overlap = 0.3 if page.overlap is None else page.overlap
    return Labelling(gold, items, raters, overlap=overlap, seed=page.seed)


def _of_table(
    path: Path, page: LabelArguments, table: TableArguments, workspace: Workspace, *, dry_run: bool
) -> GoldSet:
    """The set of a table's rows: as it was made before, or made now."""
    name = page.named or path.stem
    stored = _stored(name, workspace) if table.labels is None else None
    if stored is not None:
        if path.name not in stored.card.source:
            raise InputError(f"gold set {name!r} is there and is not of {path}: name another one by --as SET")
        return stored
    n = page.limit or (_DRAWN if table.lock else None)
    drawing = table.drawing(path, workspace, strata=None, n=n, name=name, seed=page.seed)
    return _written(drawing, workspace, dry_run=dry_run)


def _of_set(source: str, workspace: Workspace, *, dry_run: bool) -> tuple[GoldSet, Sequence[Item]]:
    """The set that labels go into, and those of its items that a set or an experiment names."""
    from judgecal.experiment.rows import answers_sample, find_source

    labelling = find_source(source, workspace, labelling=True)
    gold = labelling.gold
    if labelling.to == gold.name:
        return gold, labelling.items
    # an answerer's answers, which are in no set yet
    made = _stored(labelling.to, workspace) or _written(answers_sample(labelling), workspace, dry_run=dry_run)
    return made, made.items


def _stored(name: str, workspace: Workspace) -> GoldSet | None:
    """The set of a name, where an earlier draw has made it."""
    from judgecal.goldset import load_gold

    return load_gold(name, workspace=workspace, labelling=True) if name in workspace.gold_sets else None


def _written(drawing: LabelSample, workspace: Workspace, *, dry_run: bool) -> GoldSet:
    """The set of a draw, in the workspace; on a dry run as it would be."""
    from judgecal.goldset import GoldSet

    notice(*drawing.notes)
    if not dry_run:
        return drawing.write(workspace)
    ratings = drawing.before.ratings if drawing.before else ()
    return GoldSet(
        drawing.card.name, Path(), drawing.card, (*drawing.earlier, *drawing.items), ratings, (), ""
    )


def _serve(server: DeskServer, *, open_browser: bool) -> None:
    """Serve until it ends; the links go to stderr."""

    def opened(links: Mapping[str, str]) -> None:
        width = max(map(len, links))
        lines = (f"  {rater:{width}}  {link}" for rater, link in links.items())
        notice("judgecal: one link for each person; Ctrl-C ends:", *lines)
        if server.host not in ("127.0.0.1", "localhost", "::1"):
            notice(
                "judgecal: where a link's name does not work, put this machine's numeric address in its "
                "place; anybody in this network can read what goes between the browsers and this machine"
            )
        if open_browser and sys.stderr.isatty():
            webbrowser.open(next(iter(links.values())))

    import asyncio  # with ssl and more, a tenth of what `judgecal --help` takes

    run: Callable[[Any], Any] = asyncio.run
    try:
        run(server.serve(opened))
    except KeyboardInterrupt:
        notice("judgecal: ended; every label is on the disk")
