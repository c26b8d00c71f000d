"""`judgecal gold sheet`: blind sheets of a set's, an experiment's or a table's items, for people to fill
in."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli.judged_sheet import TableArguments, drawing_of, is_table
from judgecal.cli.options import Full, Json, argument, option, workspace_of
from judgecal.cli.output import print_result
from judgecal.wings import wing

if TYPE_CHECKING:
    from judgecal.experiment.drawn import Drawing
    from judgecal.goldset import GoldSet, Sheets
    from judgecal.records import Item, Judgement
    from judgecal.scale import Label
    from judgecal.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Source:
    """What a sheet is made of: items with the set that their questions are of, and a judge's verdicts on
    them.

    `to` is the set that the labels go into: the same one, or a new one where the answers are an answerer's.
    """

    gold: GoldSet
    items: tuple[Item, ...]
    to: str
    judge: str | None = None
    drafts: dict[str, Label | None] | None = None
    waiting: bool = False  # whether the set `to` is made with the sheet, and waits for the labels

    @property
    def name(self) -> str:
        """Of the set that the sheet's items are in."""
        return self.to if self.waiting else self.gold.name

    def drawn_to(self, drawing: Drawing) -> Source:
        """With the set of a drawing in its place."""
        return dataclasses.replace(self, to=drawing.card.name, waiting=True)

    @property
    def made_new(self) -> str:
        """What the import of a set that is not there yet asks for beside its name."""
        return "" if self.waiting or self.to == self.gold.name else f" --scale {self.gold.scale}"


@dataclass(frozen=True)
class SheetArguments:
    """The options of `gold sheet`."""

    output: Annotated[
        Path, option("The sheet, .csv or .xlsx; never overwritten.", "-o", "--output", metavar="FILE")
    ]
    raters: Annotated[int, option("Sheets, each in another order: FILE-1, FILE-2 ...", metavar="N")] = 1
    draft: Annotated[
        bool, option("Show the verdict of the experiment's first judge; by default none is shown.")
    ] = False
    seed: Annotated[int, option("Seed of the order and of the draw.", min=0)] = 0
    split: Annotated[str, option("open, train, dev, test or all.")] = "all"
    limit: Annotated[
        int | None, option("Only N items, drawn at random; by default all.", "-n", "--limit", metavar="N")
    ] = None
    strata: Annotated[
        str | None,
        option(
            "Draw -n of an experiment's items without a label, mostly where its judges differ, or of a judged "
            "table's rows by their verdict; they are made a gold set, named as the sheet.",
            metavar="disagreement|verdict",
        ),
    ] = None
    ties: Annotated[bool, option("Only the items on which raters tie, for another rater to settle.")] = False
    full: Full = False
    json: Json = False


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
    from judgecal.errors import InputError
    from judgecal.goldset import list_gold
    from judgecal.report.gold import sheets_document

    workspace = workspace_of(ctx)
    if sheet.ties and sheet.strata is not None:
        raise InputError(
            "--ties are all the items on which raters tie, --strata draws others: give one of the two"
        )
    if is_table(source, list_gold(workspace)):
        if sheet.ties:
            raise InputError(f"--ties: raters tie on items of a gold set, and {source!r} is a file")
        result, to = _table_sheet(source, sheet, table, workspace)
    elif table.given():
        raise InputError(
            f"{', '.join(table.given())}: only a table in a file takes it, and {source!r} is none"
        )
    else:
        result, to = _set_sheet(source, sheet, workspace)
    following = f"judgecal gold import {' '.join(result.sheets)} --sheet --as {to}"
    print_result(result, sheets_document(result, following), json=sheet.json, full=sheet.full)


def _table_sheet(
    source: str, sheet: SheetArguments, table: TableArguments, workspace: Workspace
) -> tuple[Sheets, str]:
    """The sheets of a table's rows, and the set that their labels go into."""
    from judgecal.goldset import write_sheets

    drawing = drawing_of(
        Path(source),
        table,
        workspace,
        strata=sheet.strata,
        n=sheet.limit,
        name=sheet.output.stem,
        seed=sheet.seed,
    )
    name = drawing.card.name
    how_many: dict[str, Any] = {"raters": sheet.raters, "seed": sheet.seed}
    result = write_sheets(drawing.items, sheet.output, name=name, scale=drawing.card.scale, **how_many)
    last = [f"with the labels imported: {table.after(source, name)}"] if table.lock else []
    told = (*result.notes, *drawing.notes, *last, *_instructions(drawing.write(workspace), sheet.output))
    return dataclasses.replace(result, notes=told), name


def _set_sheet(source: str, sheet: SheetArguments, workspace: Workspace) -> tuple[Sheets, str]:
    """The sheets of a set's or an experiment's items, and the set that their labels go into."""
    from judgecal.goldset import write_sheets

    limit, draft = sheet.limit, sheet.draft
    found = find_source(source, workspace, draft=draft)
    wanted = {item.group for item in found.gold.select(sheet.split)}
    items = tuple(item for item in found.items if item.group in wanted)
    drafts = found.drafts if draft else None
    notes: tuple[str, ...] = ()
    if sheet.ties:
        items, notes = _tied(found, items)
    drawn: Drawing | None = None
    if sheet.strata is not None:
        drawn = draw_of(
            found.gold, items, workspace, source, (sheet.strata, limit, sheet.output.stem, sheet.seed)
        )
        found, items, notes, limit = found.drawn_to(drawn), drawn.items, drawn.notes, None
    how: dict[str, Any] = {
        "raters": sheet.raters,
        "seed": sheet.seed,
        "drafts": drafts,
        "scale": found.gold.scale,
    }
    result = write_sheets(items, sheet.output, name=found.name, limit=limit, **how)
    if drawn is not None:
        drawn.write(workspace)
    told = (
        *result.notes,
        *notes,
        *_instructions(found.gold, sheet.output),
        *_draft_notes(found, draft=draft),
    )
    return dataclasses.replace(result, notes=told), f"{found.to}{found.made_new}"


def _tied(found: Source, items: Sequence[Item]) -> tuple[tuple[Item, ...], tuple[str, ...]]:
    """Those on which raters tie, and who must not get the sheet."""
    from judgecal.errors import InputError

    gold = found.gold
    wanted = {item.item_id for item in gold.tied} if found.to == gold.name else set()
    tied = tuple(item for item in items if item.item_id in wanted)
    if not tied:
        why = (
            "of numbers the median is the label"
            if gold.scale.numeric and gold.scale.kind != "binary"
            else "of these"
        )
        raise InputError(f"--ties: raters of {gold.name} tie on no item ({why}): leave --ties out")
    voted = [
        rater for rater in gold.raters if any(item.item_id in gold.ratings_by_rater[rater] for item in tied)
    ]
    return tied, (
        f"{', '.join(voted)} tie on these: give the sheet to another rater, whose vote makes a majority, and name that "
        "rater by --rater when it comes back",
    )


def draw_of(
    gold: GoldSet,
    items: Sequence[Item],
    workspace: Workspace,
    source: str,
    how: tuple[str, int | None, str, int],
) -> Drawing:
    """The items of a sheet with strata; `how`: the strata, -n, the set's name, the seed."""
    from judgecal.errors import InputError
    from judgecal.experiment import read_experiment
    from judgecal.experiment.drawn import draw_where_judges_differ
    from judgecal.goldset import list_gold

    strata, n, name, seed = how
    if strata != "disagreement":
        raise InputError(f"--strata is disagreement, found {strata!r}")
    if n is None:
        raise InputError("--strata draws: say how many items by -n")
    if source in list_gold(workspace):
        raise InputError(
            f"--strata draws where the judges of an experiment differ, and {source!r} is a gold set"
        )
    stored = read_experiment(workspace, source)
    verdicts = {
        column.judge: {row.item_id: row.verdict for row in column.rows if row.repeat == 0}
        for column in stored.columns[: stored.asked]
    }
    return draw_where_judges_differ(gold, items, verdicts, name=name, n=n, seed=seed, workspace=workspace)


def find_source(
    name: str, workspace: Workspace, *, draft: bool, judge: str | None = None, labelling: bool = False
) -> Source:
    """The set or the experiment of a name; a set goes first. InputError: there is neither, or it has no
    verdicts to
    show: those of `judge`, or of the first one.
    """
    from judgecal.errors import InputError, unknown_name
    from judgecal.goldset import list_gold, load_gold

    folders = [workspace.experiments / name, Path(name)]
    experiment = next((folder for folder in folders if (folder / "experiment.toml").is_file()), None)
    sets = list_gold(workspace)
    if name not in sets and experiment is not None:
        return _of_experiment(experiment, workspace, judge)
    if name not in sets and not Path(name).is_dir():
        made = sorted(path.parent.name for path in workspace.experiments.glob("*/experiment.toml"))
        raise unknown_name("gold set or experiment", name, [*sets, *made])
    gold = load_gold(name, workspace=workspace, labelling=labelling)
    if draft:
        raise InputError(f"--draft shows a judge's verdicts, and {name!r} is a gold set: name an experiment")
    return Source(gold, gold.items, gold.name)


def _of_experiment(folder: Path, workspace: Workspace, judge: str | None) -> Source:
    """The items that an experiment's judges were asked of, as they are in the set today; InputError for
    none."""
    from judgecal.errors import InputError, unknown_name
    from judgecal.experiment import read_config, stored_rows
    from judgecal.goldset import load_gold

    config = read_config(folder)
    named = config.get("gold", {}).get("set")
    if not isinstance(named, str):
        raise InputError(f"{folder}: its experiment.toml names no gold set, so it has no items for a sheet")
    gold = load_gold(named, workspace=workspace)
    rows = list(stored_rows(folder / "judgements.jsonl").latest.values())
    if config.get("command") in ("answer", "evaluate"):
        return _of_answers(folder, gold, config, rows)
    asked = {(row.item_id, row.item_sha) for row in rows}
    items = tuple(item for item in gold.items if (item.item_id, item.sha) in asked)
    if not items:
        raise InputError(
            f"{folder}: its journal holds no judgement of an item of gold set {named!r} as it is today"
        )
    judges = dict.fromkeys(row.judge for row in rows)
    if judge is not None and judge not in judges:
        raise unknown_name("judge", judge, list(judges))
    judge = judge or _first_judge(config, rows)
    drafts = {row.item_id: row.verdict for row in reversed(rows) if row.judge == judge}
    return Source(gold, items, gold.name, judge, drafts)


def _of_answers(folder: Path, gold: GoldSet, config: Mapping[str, Any], rows: Iterable[Judgement]) -> Source:
    """The answers of a run of `answer` or `evaluate`: new items, which labels make a gold set of."""
    judge = str(config["judge"]["judge"]) if "judge" in config else _first_judge(config, rows)
    drafts = {row.item_id: row.verdict for row in rows if row.judge == judge}
    return Source(gold, wing("answered items")(folder), folder.name, judge, drafts)


def _first_judge(config: Mapping[str, object], rows: Iterable[Judgement]) -> str:
    """The first one asked for; of recorded judgements the first one recorded."""
    judges = None if config.get("command") == "agreement" else config.get("judges")
    if isinstance(judges, list) and judges and isinstance(judges[0], dict):
        return str(judges[0].get("judge"))
    return next(row.judge for row in rows)


def _instructions(gold: GoldSet, sheet: Path) -> Iterable[str]:
    """What the raters must be told; a spreadsheet would lose or sort away a comment in the sheet."""
    scale = gold.scale
    ends = f" from {scale.low:g} to {scale.high:g}" if scale.graded else ""
    step = f" in steps of {scale.step:g}" if scale.step and scale.kind != "ordinal" and scale.graded else ""
    words = f": {', '.join(scale.categories)}" if scale.categories else ""
    yes_no = " (yes or no)" if scale.kind == "binary" else ""
    yield f"tell the raters: a label is {scale.kind}{ends}{step}{words}{yes_no}; an empty label is no rating"
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


def _draft_notes(found: Source, *, draft: bool) -> Iterable[str]:
    if draft:
        yield (
            f"the column draft shows the verdicts of {found.judge}: leave it in, labels given beside it are marked as "
            "such (saw_draft) and are no independent ones"
        )
