"""`judgecal gold label` and `judgecal gold adjudicate`: the labelling page, on this machine."""

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
from judgecal.cli.options import Full, Json, argument, names, option, typed_command, workspace_of
from judgecal.cli.output import print_result
from judgecal.errors import notice

if TYPE_CHECKING:
    from judgecal.desk.desk import Desk, Labelling
    from judgecal.desk.label_queue import Order
    from judgecal.desk.progress import LabelProgress
    from judgecal.desk.server import DeskServer
    from judgecal.experiment.drawn import Drawing
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
    from judgecal.errors import refuse

    workspace, raters = workspace_of(ctx), names(how.raters)
    workspace.require_writable("gold label")
    problems = rater_problems(raters)
    if how.following not in _NEXT:
        problems.append(f"--next is one of {', '.join(_NEXT)}, found {how.following!r}")
    refuse(problems)
    wanted = _Wanted(source, how, table, workspace, serve.dry_run)
    task = wanted.task(raters)
    common: dict[str, Any] = {"target": how.half_width, "judge_leaves": wanted.judge_leaves}
    commands = {"following": wanted.after(task.gold.name), "again": _again(ctx, table)}
    if serve.dry_run:
        from judgecal.desk.progress import label_progress

        result = label_progress(task.gold, task.items, raters, **common)
        document = _label_document(result, task.gold, commands)
    else:

        def document_of(server: DeskServer) -> Document:
            return _label_document(server.progress(), server.desk.seen(), commands)

        with Desk(task) as desk:
            server = DeskServer(desk, following=lambda own: document_of(own).headline.next, **common)
            if not desk.queue.finished:
                _serve(server, serve)
            notice(*_notes(desk))
            result, document = server.progress(), document_of(server)
    print_result(result, document, json=serve.json, full=serve.full)


def _again(ctx: typer.Context, table: TableArguments) -> str:
    """The command that goes on with the labelling: what was drawn on is a set now."""
    again = typed_command(ctx, "gold label", without=("labels", "named", "dry_run", "json", "full"))
    joined = table.labels or ctx.params["named"]
    return f"{again} --as {shlex.quote(joined)}" if joined else again


def _label_document(result: LabelProgress, gold: GoldSet, commands: Mapping[str, str]) -> Document:
    """How labelling stands; loaded when it is told, so that the page is there sooner."""
    from judgecal.desk.document import label_document
    from judgecal.desk.progress import contested

    return label_document(result, len(contested(gold)), **commands)


def _notes(desk: Desk) -> list[str]:
    unknown = [
        rater for rater in desk.task.raters if rater not in desk.gold.card.raters and desk.queue.done[rater]
    ]
    if not unknown:
        return []
    from judgecal.artefacts import toml_key

    who = ", ".join(map(repr, unknown))
    return [f"judgecal: say in card.toml who {who} is: [raters.{toml_key(unknown[0])}] who = ..."]


# --- what is labelled


@dataclass(frozen=True)
class _Wanted:
    """What was asked for on the command line."""

    source: str
    how: LabelArguments
    table: TableArguments
    workspace: Workspace
    dry_run: bool

    def task(self, raters: Sequence[str]) -> Labelling:
        """What is to be labelled, by whom."""
        from judgecal.desk.desk import Labelling
        from judgecal.errors import InputError
        from judgecal.goldset import list_gold

        how, drafts = self.how, None
        only_some = how.flagged is not None or how.following in ("ties", "disagreements")
        if is_table(self.source, list_gold(self.workspace)):
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
        wanted, since = {item.group for item in gold.select(how.split)}, None
        items = [item for item in items if item.group in wanted]
        if only_some:
            items, since = self._some(gold, items)
        if how.following == "in-order" and any(item.inclusion_probability is not None for item in items):
            raise InputError(
                f"--next in-order: gold set {gold.name!r} is a draw, and whoever stops early would have "
                "labelled its first rows, which are none: leave --next in-order out"
            )
        order: Order = "in-order" if how.following == "in-order" else "random"
        overlap = 1.0 if only_some else how.overlap
        queue: dict[str, Any] = {"overlap": overlap, "order": order, "seed": how.seed, "second": how.second}
        return Labelling(gold, items, raters, drafts=drafts, since=since, **queue)

    @property
    def judge_leaves(self) -> float:
        """The part of the labels' variance that the lock's judge leaves; 1 without one."""
        if self.table.lock is None:
            return 1.0
        from judgecal.production.rate_plan import spread_at_lock
        from judgecal.selection.lock import load_lock

        spread = spread_at_lock(load_lock(self.table.lock))
        return 1.0 if spread is None else 1.0 - max(0.0, spread.correlation) ** 2

    def after(self, name: str) -> str:
        """What the labels of the set are for: the rate of a judged table, else a score."""
        return self.table.after(self.source, name)

    def _of_table(self, path: Path) -> GoldSet:
        """The set of a table's rows: as it was made before, or made now."""
        from judgecal.errors import InputError

        how, table, name = self.how, self.table, self.how.named or path.stem
        there = self._there(name) if table.labels is None else None
        if there is not None:
            if path.name not in there.card.source:
                raise InputError(
                    f"gold set {name!r} is there and is not of {path}: name another one by --as SET"
                )
            return there
        strata = None if how.following != "strata" else "verdict,system" if table.system else "verdict"
        n = how.limit or (_DRAWN if table.lock else None)
        return self._written(
            table.drawing(path, self.workspace, strata=strata, n=n, name=name, seed=how.seed)
        )

    def _of_set(self) -> tuple[GoldSet, Sequence[Item], Mapping[str, Label | None] | None]:
        """The set that labels go into, those of its items that are meant, and the drafts that are shown."""
        from judgecal.errors import InputError
        from judgecal.experiment.label_source import draw_of, find_source

        how, workspace = self.how, self.workspace
        found = find_source(
            self.source, workspace, draft=how.draft is not None, judge=how.draft, labelling=True
        )
        gold, drafts = found.gold, found.drafts if how.draft is not None else None
        if found.to != gold.name:  # an answerer's answers, which are in no set yet
            from judgecal.experiment.drawn import Drawing
            from judgecal.goldset import Card

            about = f"answers of experiment {found.to}"
            card = Card(found.to, gold.scale, version="1", source=about, anchors=gold.card.anchors)
            made = self._there(found.to) or self._written(Drawing(card, found.items, ()))
            return made, made.items, drafts
        if how.following == "strata":
            if self.source == gold.name:
                raise InputError(
                    f"--next strata draws by verdicts, and gold set {self.source!r} has none: name an "
                    "experiment, or a judged table with its --lock"
                )
            name = how.named or f"{self.source}-labels"
            drawn = self._there(name)
            if drawn is None:
                n = how.limit or _DRAWN
                drawn = self._written(
                    draw_of(self.source, gold, found.items, workspace, n=n, name=name, seed=how.seed)
                )
            return drawn, drawn.items, drafts
        n = len(found.items) if how.limit is None else min(how.limit, len(found.items))
        chosen = set(random.Random(f"{how.seed}:draw").sample(range(len(found.items)), n))
        return gold, [item for place, item in enumerate(found.items) if place in chosen], drafts

    def _there(self, name: str) -> GoldSet | None:
        """The set of a name, where an earlier draw has made it."""
        from judgecal.goldset import list_gold, load_gold

        there = name in list_gold(self.workspace)
        return load_gold(name, workspace=self.workspace, labelling=True) if there else None

    def _written(self, drawing: Drawing) -> GoldSet:
        """The set of a draw, in the workspace; on a dry run as it would be."""
        from judgecal.goldset import GoldSet

        notice(*drawing.notes)
        if not self.dry_run:
            return drawing.write(self.workspace)
        ratings = drawing.before.ratings if drawing.before else ()
        return GoldSet(
            drawing.card.name, Path(), drawing.card, (*drawing.earlier, *drawing.items), ratings, (), ""
        )

    def _some(self, gold: GoldSet, items: Sequence[Item]) -> tuple[Sequence[Item], str | None]:
        """The items flagged, tied or disagreed on; and from when on a label of a flagged one is new."""
        if self.how.flagged is not None:
            from judgecal.desk.flagged import flagged_at, read_flagged

            ids, since = read_flagged(self.how.flagged, gold), flagged_at(self.how.flagged)
        else:
            from judgecal.desk.progress import contested

            found = gold.tied if self.how.following == "ties" else contested(gold)
            ids, since = frozenset(item.item_id for item in found), None
        return [item for item in items if item.item_id in ids], since


# --- adjudication


def adjudicate_command(
    ctx: typer.Context, gold_set: Annotated[str, typer.Argument(metavar="SET")], *, serve: ServeArguments
) -> None:
    """Settle the items on which raters differ.

    The page shows their labels and notes without names, and takes your label with its reason. The result is
    the rater `gold`, which goes before a majority or a median everywhere.
    """
    from judgecal.desk.desk import Desk, Labelling
    from judgecal.desk.document import adjudicated_document
    from judgecal.desk.progress import adjudication, contested, opinions_of
    from judgecal.desk.server import DeskServer
    from judgecal.goldset import GOLD, load_gold

    workspace = workspace_of(ctx)
    workspace.require_writable("gold adjudicate")
    gold = load_gold(gold_set, workspace=workspace, labelling=True)

    def document_of(gold: GoldSet) -> Document:
        return adjudicated_document(adjudication(gold))

    opinions = opinions_of(gold)
    items = contested(gold, opinions)
    if items and not serve.dry_run:
        with Desk(Labelling(gold, items, (GOLD,), order="in-order", opinions=opinions)) as desk:
            server = DeskServer(desk, following=lambda own: document_of(own.desk.seen()).headline.next)
            if not desk.queue.finished:
                _serve(server, serve)
            gold = desk.seen()
    print_result(adjudication(gold), document_of(gold), json=serve.json, full=serve.full)


def _serve(server: DeskServer, serve: ServeArguments) -> None:
    """Serve until it ends; the links go to stderr."""
    from judgecal.desk.server import Address, links_in_words

    server.address = Address(serve.host, serve.port, 60.0 * serve.idle)

    def opened(links: Mapping[str, str]) -> None:
        notice(
            "judgecal: one link a person, each for that person alone; Ctrl-C ends:", *links_in_words(links)
        )
        if serve.host not in ("127.0.0.1", "localhost", "::1"):
            notice(
                "judgecal: where a link's name is not known, put this machine's address in numbers in its "
                "place; whoever is in this network can read along what goes between the browsers and here"
            )
        if not serve.no_open and sys.stderr.isatty():
            webbrowser.open(next(iter(links.values())))

    import asyncio  # with ssl and more, a tenth of what `judgecal --help` takes

    run: Callable[[Any], Any] = asyncio.run
    try:
        run(server.serve(opened))
    except KeyboardInterrupt:  # where the loop takes no signals
        notice("judgecal: ended; every label is on the disk")
