"""`judgecal gold sheet`: blind sheets of the items of a set, an experiment or a table, to be filled in."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli import options as shared
from judgecal.cli.options import Json, JudgedArguments, TrustLock, argument, option, workspace_of
from judgecal.cli.output import print_result
from judgecal.errors import InputError, refuse

if TYPE_CHECKING:
    from judgecal.experiment.rows import LabelSource
    from judgecal.goldset import GoldSet
    from judgecal.goldset.draw import LabelSample
    from judgecal.records import Item
    from judgecal.workspace import Workspace

_TABLES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet", ".xlsx")


def check_command(
    ctx: typer.Context,
    gold_set: Annotated[str | None, argument("By default a list of the sets.", metavar="[SET]")] = None,
    full: shared.Full = False,
    json: Json = False,
) -> None:
    """List the gold sets, or name every problem of one.

    Each problem has its file and line, and the agreement of the raters stands beside them. The exit code is 2
    only where a set cannot be loaded.
    """
    from judgecal.goldset import check_set, list_sets, load_gold

    workspace = workspace_of(ctx)
    if gold_set is None:
        sets = list_sets(workspace)
        print_result(sets, json=json, full=full)
        refuse([listed.error for listed in sets.sets if listed.error is not None])
        return
    from judgecal.experiment.people import CheckedSet, rater_agreement
    from judgecal.report.gold import check_document

    gold = load_gold(gold_set, workspace=workspace)
    result = CheckedSet(check_set(gold, workspace), rater_agreement(gold))
    print_result(result, check_document(result, full=full), json=json, full=full)


@dataclass(frozen=True)
class SheetArguments:
    """The options of `gold sheet`."""

    output: Annotated[
        Path, option("The sheet, .csv or .xlsx; never overwritten.", "-o", "--output", metavar="FILE")
    ]
    raters: Annotated[int, option("Sheets, each in another order: FILE-1, FILE-2 ...", metavar="N")] = 1
    seed: Annotated[int, option("Seed of the order and of the draw.", min=0)] = 0
    limit: Annotated[
        int | None, option("Only N items, drawn at random; by default all.", "-n", "--limit", metavar="N")
    ] = None
    strata: Annotated[
        str | None,
        option(
            "Draw -n of an experiment's items without a label, mostly where its judges differ, or of a "
            "judged table's rows by their verdict; they are made a gold set, named as the sheet.",
            metavar="disagreement|verdict",
        ),
    ] = None
    ties: Annotated[bool, option("Only the items on which raters tie, for another rater to settle.")] = False
    full: shared.Full = False
    json: Json = False


@dataclass(frozen=True)
class TableArguments(JudgedArguments):
    """The options of a sheet that is drawn from a table."""

    lock: Annotated[Path | None, option("The lock that a judged table was judged with.", metavar="LOCK")] = (
        None
    )
    trust_lock: TrustLock = False
    labels: Annotated[
        str | None, option("What was drawn before, of this table or experiment: we add to it.", metavar="SET")
    ] = None
    scale: Annotated[str | None, option("The scale of the labels, of a table without a lock.")] = None

    def after(self, source: str, name: str, workspace: Workspace) -> str:
        """From a source, a set's name and a Workspace, return the command (text) that the labels serve."""
        if self.lock is None:
            return f"judgecal score --gold {shlex.quote(name)}"
        words = ["judgecal", "rate", source, "--lock", str(self.lock), "--labels", name]
        return shlex.join([*words, *self.columns(workspace).typed()])

    def drawing(
        self, path: Path, workspace: Workspace, *, strata: str | None, n: int | None, name: str, seed: int
    ) -> LabelSample:
        """Draw a LabelSample from the table at a path in a Workspace, by strata, n, its name and a seed."""
        from judgecal.production.judged import draw_rows

        return draw_rows(
            path,
            self.columns(workspace),
            workspace,
            lock_path=self.lock,
            trust_lock=self.trust_lock,
            labels=self.labels,
            scale=self.scale,
            strata=strata,
            n=n,
            name=name,
            seed=seed,
        )


def is_table(source: str, sets: list[str]) -> bool:
    """Return whether a source (text) names a table's file and is not in a list of sets' names."""
    path = Path(source)
    return source not in sets and path.suffix.lower() in _TABLES and not path.is_dir()


def sheet_command(
    ctx: typer.Context,
    source: Annotated[str, argument("Whose items are to be labelled.", metavar="SET|EXPERIMENT|FILE")],
    *,
    sheet: SheetArguments,
    table: TableArguments,
) -> None:
    """Write blind sheets for people to label in a spreadsheet.

    Their rows are shuffled; `gold import --sheet` reads them back.
    """
    from judgecal.experiment.rows import answers_sample, draw_of, find_source
    from judgecal.goldset import write_sheets
    from judgecal.report.gold import sheets_document

    workspace, name, drawn = workspace_of(ctx), sheet.output.stem, None
    given = [option for option in table.given() if option != "--labels" or sheet.strata is None]
    items: Sequence[Item] = ()
    notes: Sequence[str] = ()
    last: list[str] = []
    if sheet.ties and sheet.strata is not None:
        raise InputError(
            "--ties are all the items on which raters tie, --strata draws others: give one of the two"
        )
    if is_table(source, workspace.gold_sets):
        if sheet.ties:
            raise InputError(f"--ties: raters tie on items of a gold set, and {source!r} is a file")
        drawn = table.drawing(
            Path(source), workspace, strata=sheet.strata, n=sheet.limit, name=name, seed=sheet.seed
        )
        if table.lock:
            last = [f"with the labels imported: {table.after(source, drawn.card.name, workspace)}"]
    elif given:
        raise InputError(f"{', '.join(given)}: only a table in a file takes it, and {source!r} is none")
    elif sheet.strata is not None:
        if sheet.strata != "disagreement":
            raise InputError(f"--strata is disagreement, found {sheet.strata!r}")
        draw: dict[str, Any] = {"n": sheet.limit, "seed": sheet.seed, "labels": table.labels}
        drawn = draw_of(source, workspace, name=name, **draw)
    else:
        labelled = find_source(source, workspace)
        gold, to, items = labelled.gold, labelled.to, labelled.items
        if sheet.ties:
            items, notes = _tied(labelled, items)
        limit, name = sheet.limit, to
    if drawn is not None:
        items, notes, limit, name, to = drawn.items, drawn.notes, None, drawn.card.name, drawn.card.name
    scale = gold.scale if drawn is None else drawn.card.scale
    result = write_sheets(
        items, sheet.output, name=name, limit=limit, raters=sheet.raters, seed=sheet.seed, scale=scale
    )
    if drawn is None and to != gold.name and to not in workspace.gold_sets:
        drawn = answers_sample(labelled)
    gold = gold if drawn is None else drawn.write(workspace)
    result = dataclasses.replace(
        result, notes=(*result.notes, *notes, *last, *_instructions(gold, sheet.output))
    )
    following = f"judgecal gold import {' '.join(result.sheets)} --sheet --as {to}"
    print_result(result, sheets_document(result, following), json=sheet.json, full=sheet.full)


def _tied(labelled: LabelSource, items: Sequence[Item]) -> tuple[tuple[Item, ...], tuple[str, ...]]:
    """Those on which raters tie, and who must not get the sheet."""
    gold = labelled.gold
    wanted = {item.item_id for item in gold.tied} if labelled.to == gold.name else set()
    tied = tuple(item for item in items if item.item_id in wanted)
    if not tied:
        raise InputError(f"--ties: raters of {gold.name} tie on no item: leave --ties out")
    voted = [
        rater for rater in gold.raters if any(item.item_id in gold.ratings_by_rater[rater] for item in tied)
    ]
    return tied, (
        f"{', '.join(voted)} tie on these: give the sheet to another rater, whose vote makes a majority, "
        "and name the file after them when it comes back",
    )


def _instructions(gold: GoldSet, sheet: Path) -> Iterable[str]:
    """What the raters must be told; a spreadsheet would lose or sort away a comment in the sheet."""
    from judgecal.goldset.labels import by_side, left_of

    scale = gold.scale
    ends = f" from {scale.low:g} to {scale.high:g}" if scale.graded else ""
    step = f" in steps of {scale.step:g}" if scale.step and scale.kind != "ordinal" and scale.graded else ""
    sides = "A" if any(left_of(item, scale, "") for item in gold.items) else None
    words = f": {', '.join(by_side(word, sides) for word in scale.categories)}" if scale.categories else ""
    yes_no = " (yes or no)" if scale.kind == "binary" else ""
    yield (
        f"tell the raters: a label is {scale.kind}{ends}{step}{words}{yes_no}; an empty label means no rating"
    )
    if scale.pass_at is not None and scale.kind != "binary":
        yield f"  pass mark: {scale.pass_at:g}"
    for label, meaning in gold.card.anchors.items():
        yield f"  {label}: {meaning}"
    if gold.card.rubric:
        yield f"  rubric: {gold.path / gold.card.rubric}"
    if sheet.suffix.lower() == ".xlsx":
        yield "  change labels and notes only, and save the workbook as it is (.xlsx)"
        return
    yield "  a leading ' keeps a spreadsheet from running or rewriting a cell: leave it in"
    yield "  change labels and notes only, and save as CSV (UTF-8) or as a workbook (.xlsx)"
