"""`judgecal gold label` and `judgecal gold adjudicate`: the labelling page, on this machine."""

from __future__ import annotations

import random
import shlex
import sys
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qs, urlsplit

import typer

from judgecal.cli.gold import TableArguments, is_table
from judgecal.cli.options import Full, Json, argument, names, option, typed_command, workspace_of
from judgecal.cli.output import print_result
from judgecal.errors import InputError, listed, notice, refuse
from judgecal.workspace import shown

if TYPE_CHECKING:
    from judgecal.desk.desk import Desk, Labelling
    from judgecal.desk.progress import LabelProgress
    from judgecal.desk.server import DeskServer
    from judgecal.experiment.label_source import LabelSample
    from judgecal.goldset import GoldSet
    from judgecal.records import Item
    from judgecal.report.document import Document
    from judgecal.scale import Label
    from judgecal.workspace import Workspace

_NEXT = ("in-order", "random", "strata", "ties", "disagreements")
_DRAWN = 100  # rows of a judged table, or items of an experiment, where -n does not say


@dataclass(frozen=True)
class ServeArguments:
    """The options of a page that is served."""

    port: Annotated[int, option("By default one that is free.", min=0, max=65535)] = 0
    host: Annotated[str, option("Where to listen, such as 0.0.0.0 for colleagues in the same network.")] = (
        "127.0.0.1"
    )
    idle: Annotated[float, option("End after so long without an act.", min=0.01, metavar="MINUTES")] = 120.0
    no_open: Annotated[bool, option("Start no browser.")] = False
    dry_run: Annotated[bool, option("Say what there is to do; serve nothing, write nothing.")] = False
    full: Full = False
    json: Json = False


@dataclass(frozen=True)
class LabelArguments:
    """The options of `gold label`."""

    raters: Annotated[
        str, option("Who labels; each gets a link and an order of their own.", metavar="A,B")
    ] = "rater-1"
    overlap: Annotated[
        float, option("The part of the items that every rater labels, 0..1.", min=0.0, max=1.0)
    ] = 0.3
    following: Annotated[
        str,
        option(
            "in-order; random; strata (of the verdict, drawn with known chances); ties or disagreements "
            "(only items on which raters tie or differ).",
            "--next",
            metavar="ORDER",
        ),
    ] = "random"
    flagged: Annotated[
        Path | None,
        option("Only the items flagged `label looks wrong` in a CSV of a report's page.", metavar="FILE"),
    ] = None
    draft: Annotated[
        str | None,
        option("Show this judge's verdicts of the experiment; labels are marked so.", metavar="JUDGE"),
    ] = None
    second: Annotated[
        int, option("Items that each rater sees twice, blind to it.", "--second-look", min=0, metavar="N")
    ] = 0
    limit: Annotated[
        int | None,
        option("How many a draw takes; of a judged table 100.", "-n", "--limit", min=1, metavar="N"),
    ] = None
    named: Annotated[
        str | None,
        option("The name of the set that a draw makes; by default the file's.", "--as", metavar="SET"),
    ] = None
    half_width: Annotated[
        float, option("Say when the rate is known to this, as a share.", min=0.001, max=0.5)
    ] = 0.05
    show_rates: Annotated[
        bool, option("Show raters what the labels come to so far, and how far they agree: it may sway them.")
    ] = False
    split: Annotated[str, option("open, train, dev, test or all.")] = "all"
    seed: Annotated[int, option("Seed of the orders and of the draw.", min=0)] = 0


def label_command(
    ctx: typer.Context,
    source: Annotated[str, argument("Whose items are to be labelled.", metavar="SET|EXPERIMENT|FILE")],
    *,
    how: LabelArguments,
    table: TableArguments,
    serve: ServeArguments,
) -> None:
    """Label in the browser, on a page of this machine.

    Each rater has a link, sees nobody's labels, and may use keys alone. Every label is on the disk before the
    next item shows, in the set's ratings.jsonl; the same command goes on later.
    """
    from judgecal.desk.desk import Desk, rater_problems
    from judgecal.desk.server import DeskServer

    workspace, raters = workspace_of(ctx), names(how.raters)
    workspace.require_writable("gold label")
    problems = rater_problems(raters)
    if how.following not in _NEXT:
        problems.append(f"--next is one of {', '.join(_NEXT)}, found {how.following!r}")
    refuse(problems)
    task = _Wanted(source, how, table, workspace, serve.dry_run).task(raters)
    following = table.after(source, task.gold.name, workspace)  # the rate of a judged table, else a score
    # What was drawn on is a set now.
    again = typed_command(ctx, "gold label", without=("labels", "named", "dry_run", "json", "full"))
    joined = table.labels or ctx.params["named"]
    again = f"{again} --as {shlex.quote(joined)}" if joined else again
    judge_leaves = _judge_leaves(table.lock)

    def document_of(result: LabelProgress, gold: GoldSet) -> Document:
        """How labelling stands; loaded when it is told, so that the page is there sooner."""
        from judgecal.desk.progress import contested, label_document

        return label_document(result, len(contested(gold)), following=following, again=again)

    if serve.dry_run:
        from judgecal.desk.progress import label_progress

        target = how.half_width
        result = label_progress(task.gold, task.items, raters, target=target, judge_leaves=judge_leaves)
        document = document_of(result, task.gold)
    else:

        def next_command(served: DeskServer) -> str:
            return document_of(served.progress(), served.desk.seen()).headline.next

        with Desk(task) as desk:
            server = DeskServer(
                desk,
                target=how.half_width,
                judge_leaves=judge_leaves,
                show_rates=how.show_rates,
                following=next_command,
            )
            if not desk.queue.finished:
                _serve(server, serve)
            notice(*_notes(desk))
            result = server.progress()
            document = document_of(result, desk.seen())
    print_result(result, document, json=serve.json, full=serve.full)


def _judge_leaves(lock: Path | None) -> float:
    """The part of the labels' variance that the lock's judge leaves; 1 without one."""
    if lock is None:
        return 1.0
    from judgecal.production.rate import spread_at_lock
    from judgecal.selection.lock import load_lock

    spread = spread_at_lock(load_lock(lock))
    return 1.0 if spread is None else 1.0 - max(0.0, spread.correlation) ** 2


def _notes(desk: Desk) -> list[str]:
    known, done = desk.gold.card.raters, desk.queue.done
    unknown = [rater for rater in desk.task.raters if rater not in known and done[rater]]
    if not unknown:
        return []
    from judgecal.artefacts import toml_key

    who = ", ".join(map(repr, unknown))
    return [f"judgecal: say in card.toml who {who} is: [raters.{toml_key(unknown[0])}] who = ..."]


# --- what is labelled


@dataclass(frozen=True)
class _Wanted:
    source: str
    how: LabelArguments
    table: TableArguments
    workspace: Workspace
    dry_run: bool

    def task(self, raters: Sequence[str]) -> Labelling:
        """What is to be labelled, by whom."""
        from judgecal.desk.desk import Labelling

        how, drafts, since = self.how, None, None
        only_some = how.flagged is not None or how.following in ("ties", "disagreements")
        if is_table(self.source, self.workspace.gold_sets):
            if how.draft or only_some:
                raise InputError(
                    "--draft, --flagged, ties and disagreements are of a set or an experiment, not a file"
                )
            gold = self._of_table(Path(self.source))
            items: Sequence[Item] = gold.items
        elif self.table.given():
            raise InputError(
                f"{', '.join(self.table.given())}: only a table in a file takes it, {self.source!r} is none"
            )
        else:
            gold, items, drafts = self._of_set()
        groups = {item.group for item in gold.select(how.split)}
        items = [item for item in items if item.group in groups]
        if how.flagged is not None:
            ids = read_flagged(how.flagged, gold)
            items = [item for item in items if item.item_id in ids]
            # labels given after the file was written have looked at the item anew
            written = datetime.fromtimestamp(how.flagged.stat().st_mtime, UTC)
            since = written.isoformat(timespec="milliseconds")
        elif only_some:
            from judgecal.desk.progress import contested

            open_items = gold.tied if how.following == "ties" else contested(gold)
            ids = frozenset(item.item_id for item in open_items)
            items = [item for item in items if item.item_id in ids]
        if how.following == "in-order" and any(item.inclusion_probability is not None for item in items):
            raise InputError(
                f"--next in-order: gold set {gold.name!r} is a draw, and whoever stops early would have "
                "labelled its first rows, which are none: leave --next in-order out"
            )
        return Labelling(
            gold,
            items,
            raters,
            overlap=1.0 if only_some else how.overlap,
            order="in-order" if how.following == "in-order" else "random",
            seed=how.seed,
            second=how.second,
            drafts=drafts,
            since=since,
        )

    def _of_table(self, path: Path) -> GoldSet:
        """The set of a table's rows: as it was made before, or made now."""
        how, table, name = self.how, self.table, self.how.named or path.stem
        there = self._there(name) if table.labels is None else None
        if there is not None:
            if path.name not in there.card.source:
                raise InputError(
                    f"gold set {name!r} is there and is not of {path}: name another one by --as SET"
                )
            return there
        by = "verdict,system" if table.columns(self.workspace).system else "verdict"
        strata = by if how.following == "strata" else None
        n = how.limit or (_DRAWN if table.lock else None)
        drawing = table.drawing(path, self.workspace, strata=strata, n=n, name=name, seed=how.seed)
        return self._written(drawing)

    def _of_set(self) -> tuple[GoldSet, Sequence[Item], Mapping[str, Label | None] | None]:
        """The set that labels go into, those of its items that are meant, and the drafts that are shown."""
        from judgecal.experiment.label_source import draw_of, find_source

        how, workspace = self.how, self.workspace
        has_draft = how.draft is not None
        strata = how.following == "strata"
        found = find_source(
            self.source, workspace, draft=has_draft, judge=how.draft, labelling=True, rows=strata
        )
        gold, items, drafts = found.gold, found.items, found.drafts if has_draft else None
        if found.to != gold.name:  # an answerer's answers, which are in no set yet
            from judgecal.experiment.label_source import LabelSample
            from judgecal.goldset import Card

            about = f"answers of experiment {found.to}"
            card = Card(found.to, gold.scale, version="1", source=about, anchors=gold.card.anchors)
            made = self._there(found.to) or self._written(LabelSample(card, items, ()))
            return made, made.items, drafts
        if strata:
            if self.source == gold.name:
                raise InputError(
                    f"--next strata draws by verdicts, and gold set {self.source!r} has none: name an "
                    "experiment, or a judged table with its --lock"
                )
            name, n = how.named or f"{self.source}-labels", how.limit or _DRAWN
            drawn = self._there(name)
            if drawn is None:
                drawing = draw_of(self.source, gold, items, workspace, n=n, name=name, seed=how.seed)
                drawn = self._written(drawing)
            return drawn, drawn.items, drafts
        n = len(items) if how.limit is None else min(how.limit, len(items))
        chosen = set(random.Random(f"{how.seed}:draw").sample(range(len(items)), n))
        return gold, [item for place, item in enumerate(items) if place in chosen], drafts

    def _there(self, name: str) -> GoldSet | None:
        """The set of a name, where an earlier draw has made it."""
        from judgecal.goldset import load_gold

        there = name in self.workspace.gold_sets
        return load_gold(name, workspace=self.workspace, labelling=True) if there else None

    def _written(self, drawing: LabelSample) -> GoldSet:
        """The set of a draw, in the workspace; on a dry run as it would be."""
        from judgecal.goldset import GoldSet

        notice(*drawing.notes)
        if not self.dry_run:
            return drawing.write(self.workspace)
        ratings = drawing.before.ratings if drawing.before else ()
        items = (*drawing.earlier, *drawing.items)
        return GoldSet(drawing.card.name, Path(), drawing.card, items, ratings, (), "")


def read_flagged(path: Path, gold: GoldSet) -> frozenset[str]:
    """The ids of the items that a page's CSV, or its link in a text file, flags `label looks wrong`."""
    from judgecal.tables import read_table, undo
    from judgecal.tables.text import read_text

    if path.suffix.lower() in ("", ".txt", ".url"):
        links = (parse_qs(urlsplit(link).fragment) for link in read_text(path).split())
        ids = [item_id for link in links for item_id in link.get("flag", ())]
    else:
        table = read_table(str(path))
        table.require("item_id", "flag")
        flagged = (row.cells for row in table.rows if "label looks wrong" in row.cells["flag"].casefold())
        ids = [undo(cells["item_id"]) for cells in flagged]
    if not ids:
        raise InputError(
            f"{shown(path)}: flags no item: press f on an item of the report's page, and save its CSV"
        )
    known = {item.item_id for item in gold.items}
    if strange := [item_id for item_id in ids if item_id not in known]:
        raise InputError(f"{shown(path)}: {listed(strange)}: not an item of gold set {gold.name!r}")
    return frozenset(ids)


# --- adjudication


def adjudicate_command(
    ctx: typer.Context, gold_set: Annotated[str, typer.Argument(metavar="SET")], *, serve: ServeArguments
) -> None:
    """Settle the items on which raters differ.

    The page shows their labels and notes without names, and takes your label with its reason. The result is
    the rater `gold`, which goes before a majority or a median everywhere.
    """
    from judgecal.desk.desk import Desk, Labelling
    from judgecal.desk.progress import adjudicated_document, adjudication, contested, opinions_of
    from judgecal.desk.server import DeskServer
    from judgecal.goldset import GOLD, load_gold

    workspace = workspace_of(ctx)
    workspace.require_writable("gold adjudicate")
    gold = load_gold(gold_set, workspace=workspace, labelling=True)

    def next_command(served: DeskServer) -> str:
        return adjudicated_document(adjudication(served.desk.seen())).headline.next

    opinions = opinions_of(gold)
    items = contested(gold, opinions)
    if items and not serve.dry_run:
        with Desk(Labelling(gold, items, (GOLD,), order="in-order", opinions=opinions)) as desk:
            if not desk.queue.finished:
                _serve(DeskServer(desk, following=next_command), serve)
            gold = desk.seen()
    result = adjudication(gold)
    print_result(result, adjudicated_document(result), json=serve.json, full=serve.full)


def _serve(server: DeskServer, serve: ServeArguments) -> None:
    """Serve until it ends; the links go to stderr."""
    from judgecal.desk.server import Address, links_in_words

    server.address = Address(serve.host, serve.port, 60.0 * serve.idle)

    def opened(links: Mapping[str, str]) -> None:
        notice("judgecal: one link for each person; Ctrl-C ends:", *links_in_words(links))
        if serve.host not in ("127.0.0.1", "localhost", "::1"):
            notice(
                "judgecal: where a link's name does not work, put this machine's numeric address in its "
                "place; anybody in this network can read what goes between the browsers and this machine"
            )
        if not serve.no_open and sys.stderr.isatty():
            webbrowser.open(next(iter(links.values())))

    import asyncio  # with ssl and more, a tenth of what `judgecal --help` takes

    run: Callable[[Any], Any] = asyncio.run
    try:
        run(server.serve(opened))
    except KeyboardInterrupt:  # where the loop takes no signals
        notice("judgecal: ended; every label is on the disk")
