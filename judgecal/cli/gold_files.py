"""`judgecal gold import` and `judgecal gold sheet`: new sets of tables, blind sheets out, filled sheets in."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli.judged_sheet import TableArguments, drawing_of, is_table
from judgecal.cli.options import Full, Json, workspace_of
from judgecal.cli.output import print_result
from judgecal.cli.row_columns import ColumnArguments, column

if TYPE_CHECKING:
    from judgecal.experiment.drawn import Drawing
    from judgecal.goldset import Beside, Columns, GoldSet, Sheets
    from judgecal.records import Item, Judgement
    from judgecal.scale import Label
    from judgecal.workspace import Workspace


@dataclass(frozen=True)
class ImportArguments(ColumnArguments):
    """The options of `gold import`."""

    item: Annotated[str | None, column("The item's id; by default SET-00001 ...")] = None
    tag: Annotated[list[str] | None, column("Tags of the item: a text, a list, or true for the column's name.")] = None
    chunks: Annotated[
        bool, typer.Option("--chunks", help="Make an item of each context, for labels of single contexts.")
    ] = False
    label: Annotated[list[str] | None, column("A rater's labels; repeatable, * stands for all that fit.")] = None
    gold_label: Annotated[str | None, column("The adjudicated label.")] = None
    note: Annotated[list[str] | None, column("What the rater wrote; one for each --label, in order.")] = None
    ratings: Annotated[
        str | None, typer.Option(metavar="FILE", help="The labels are in this table, by the id of --item.")
    ] = None
    judgements: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="What judges said: the id, judge, verdict; `agreement` reads it there."),
    ] = None
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="COL=VALUE", help="Only the rows with this, of --ratings where given; repeatable."),
    ] = None
    mapping: Annotated[
        list[str] | None, typer.Option("--map", metavar="FROM=TO", help="Rewrite a label; repeatable.")
    ] = None
    rater: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Who gave the one --label. With --sheet the rater's name, by default each sheet's file name.",
        ),
    ] = None
    scale: Annotated[
        str | None,
        typer.Option(
            help="percentage (0..100), ordinal:MIN:MAX, points:MIN:MAX[:STEP], fraction (0..1), binary or nominal; "
            "with --sheet for a new set."
        ),
    ] = None
    pass_at: Annotated[
        float | None,
        typer.Option(metavar="X", help="The people's pass mark, on the scale of the labels; by default none."),
    ] = None
    answers: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Answers by id to questions with rules, such as RAG-IFEval's samples.json."),
    ] = None

    def of_rules(self, files: Sequence[str]) -> bool:
        """Whether these are questions with rules, which are known by their shape alone.

        Raises:
            InputError: the file cannot be read, or options of other tables stand beside --answers.
        """
        from judgecal.errors import InputError
        from judgecal.goldset.rules_import import holds_rules

        others = [option for option in self.given() if option != "--answers"]
        if self.answers is not None and others:
            raise InputError(f"{', '.join(others)} with --answers: the columns of questions with rules are known")
        return self.answers is not None or (not others and holds_rules(files[0]))

    def columns(self) -> Columns:
        """As the table of an import is read by them."""
        return dataclasses.replace(
            super().columns(),
            labels=tuple(self.label or ()),
            gold_label=self.gold_label,
            rater=self.rater,
            tags=tuple(self.tag or ()),
            notes=tuple(self.note or ()),
            chunks=self.chunks,
        )

    def beside(self) -> Beside:
        """The files beside the table."""
        from judgecal.goldset import Beside, read_where

        return Beside(self.ratings, self.judgements, read_where(self.where or ()))

    def require(self, files: Sequence[str]) -> None:
        """Refuse (InputError) what a table cannot be read without: an option is missing, or there are several files."""
        from judgecal.errors import refuse

        missing = [
            option
            for option, there in (
                ("--question", self.question or self.field),
                ("--answer", self.answer or (self.field and not self.question)),
                ("--scale", self.scale),
            )
            if not there
        ]
        problems = [f"gold import needs {', '.join(missing)} (or --sheet, for a filled sheet)"] if missing else []
        if len(files) > 1:
            problems.append(f"gold import reads one table, found {len(files)}: only --sheet takes several files")
        refuse(problems)

    def refuse_columns(self, *, force: bool) -> None:
        """Refuse (InputError) options of tables: a sheet's columns are known, and its set says what may be so."""
        from judgecal.errors import InputError

        own = ("--rater", "--scale", "--pass-at")
        given = [option.replace("--mapping", "--map") for option in self.given() if option not in own]
        given += ["--force"] * force
        if given:
            raise InputError(f"{', '.join(given)} with --sheet: a sheet's columns are known; leave it out")


def import_command(
    ctx: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="A table (CSV, TSV, JSONL, JSON, Parquet) or hf:org/name[:split]; with --sheet one or more filled "
            "sheets.",
        ),
    ],
    name: Annotated[str, typer.Option("--as", metavar="SET", help="The name of the set.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a set of this name; with --sheet what a rater said before.")
    ] = False,
    sheet: Annotated[
        bool, typer.Option("--sheet", help="FILE is a filled sheet of `gold sheet`, whose columns are known.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Keep a scale of which the labels use a small part only.")
    ] = False,
    full: Full = False,
    as_json: Json = False,
    *,
    table: ImportArguments,
) -> None:
    """Make a gold set of a table with people's labels, or add filled sheets to one.

    Nothing is written unless all of it is right. Without a label column the set waits for labels (gold sheet).
    """
    from judgecal.goldset import import_gold, import_sheets, read_mapping
    from judgecal.goldset.rules_import import import_rules
    from judgecal.report.gold import import_document

    common: dict[str, Any] = {"workspace": workspace_of(ctx), "pass_at": table.pass_at, "replace": replace}
    if sheet:
        table.refuse_columns(force=force)
        paths = [Path(file) for file in files]
        result = import_sheets(paths, name=name, rater=table.rater, scale=table.scale, **common)
    elif table.of_rules(files):
        result = import_rules(files, name=name, answers=table.answers, workspace=common["workspace"], replace=replace)
    else:
        table.require(files)
        mapping = read_mapping(table.mapping or ())
        common |= {"scale": str(table.scale), "force": force, "beside": table.beside()}
        result = import_gold(files[0], name=name, columns=table.columns(), mapping=mapping, **common)
    print_result(result, import_document(result), json=as_json, full=full)


@dataclass(frozen=True, slots=True)
class _Source:
    """What a sheet is made of: items with the set that their questions are of, and a judge's verdicts on them.

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

    def drawn_to(self, drawing: Drawing) -> _Source:
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
        Path, typer.Option("-o", "--output", metavar="FILE", help="The sheet, ending in .csv; never overwritten.")
    ]
    raters: Annotated[
        int, typer.Option("--raters", metavar="N", help="Sheets, each in another order: FILE-1, FILE-2 ...")
    ] = 1
    draft: Annotated[
        bool,
        typer.Option("--draft", help="Show the verdict of the experiment's first judge; by default none is shown."),
    ] = False
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the order and of the draw.")] = 0
    split: Annotated[str, typer.Option("--split", help="open, train, dev, test or all.")] = "all"
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", metavar="N", help="Only N items, drawn at random; by default all.")
    ] = None
    strata: Annotated[
        str | None,
        typer.Option(
            metavar="disagreement|verdict",
            help="Draw -n of an experiment's items without a label, mostly where its judges differ, or of a judged "
            "table's rows by their verdict; they are made a gold set, named as the sheet.",
        ),
    ] = None
    full: Full = False
    as_json: Json = False


def sheet_command(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SET|EXPERIMENT|FILE", help="Whose items are to be labelled.")],
    *,
    sheet: SheetArguments,
    table: TableArguments,
) -> None:
    """Write blind, shuffled sheets for people to label in a spreadsheet; `gold import --sheet` reads them back."""
    from judgecal.errors import InputError
    from judgecal.goldset import list_gold
    from judgecal.report.gold import sheets_document

    workspace = workspace_of(ctx)
    if is_table(source, list_gold(workspace)):
        result, to = _table_sheet(source, sheet, table, workspace)
    elif table.given():
        raise InputError(f"{', '.join(table.given())}: only a table in a file takes it, and {source!r} is none")
    else:
        result, to = _set_sheet(source, sheet, workspace)
    following = f"judgecal gold import {' '.join(result.sheets)} --sheet --as {to}"
    print_result(result, sheets_document(result, following), json=sheet.as_json, full=sheet.full)


def _table_sheet(source: str, sheet: SheetArguments, table: TableArguments, workspace: Workspace) -> tuple[Sheets, str]:
    """The sheets of a table's rows, and the set that their labels go into."""
    from judgecal.goldset import write_sheets

    how = (sheet.strata, sheet.limit, sheet.output.stem, sheet.seed)
    drawing = drawing_of(Path(source), table, workspace, how)
    name = drawing.card.name
    result = write_sheets(drawing.items, sheet.output, name=name, raters=sheet.raters, seed=sheet.seed)
    told = (*result.notes, *drawing.notes, *_instructions(drawing.write(workspace)))
    return dataclasses.replace(result, notes=told), name


def _set_sheet(source: str, sheet: SheetArguments, workspace: Workspace) -> tuple[Sheets, str]:
    """The sheets of a set's or an experiment's items, and the set that their labels go into."""
    from judgecal.goldset import write_sheets

    limit, draft = sheet.limit, sheet.draft
    found = _find(source, workspace, draft=draft)
    wanted = {item.group for item in found.gold.select(sheet.split)}
    items = tuple(item for item in found.items if item.group in wanted)
    drafts = found.drafts if draft else None
    notes: tuple[str, ...] = ()
    drawn: Drawing | None = None
    if sheet.strata is not None:
        drawn = _draw(found.gold, items, workspace, source, (sheet.strata, limit, sheet.output.stem, sheet.seed))
        found, items, notes, limit = found.drawn_to(drawn), drawn.items, drawn.notes, None
    how: dict[str, Any] = {"raters": sheet.raters, "seed": sheet.seed, "drafts": drafts}
    result = write_sheets(items, sheet.output, name=found.name, limit=limit, **how)
    if drawn is not None:
        drawn.write(workspace)
    told = (*result.notes, *notes, *_instructions(found.gold), *_draft_notes(found, draft=draft))
    return dataclasses.replace(result, notes=told), f"{found.to}{found.made_new}"


def _draw(
    gold: GoldSet, items: Sequence[Item], workspace: Workspace, source: str, how: tuple[str, int | None, str, int]
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
        raise InputError(f"--strata draws where the judges of an experiment differ, and {source!r} is a gold set")
    stored = read_experiment(workspace, source)
    verdicts = {
        column.judge: {row.item_id: row.verdict for row in column.rows if row.repeat == 0}
        for column in stored.columns[: stored.asked]
    }
    return draw_where_judges_differ(gold, items, verdicts, name=name, n=n, seed=seed, workspace=workspace)


def _find(name: str, workspace: Workspace, *, draft: bool) -> _Source:
    """The set or the experiment of a name; a set goes first. InputError: there is neither, or it has no verdicts to
    show.
    """
    from judgecal.errors import InputError, unknown_name
    from judgecal.goldset import list_gold, load_gold

    folders = [workspace.experiments / name, Path(name)]
    experiment = next((folder for folder in folders if (folder / "experiment.toml").is_file()), None)
    sets = list_gold(workspace)
    if name not in sets and experiment is not None:
        return _of_experiment(experiment, workspace)
    if name not in sets and not Path(name).is_dir():
        made = sorted(path.parent.name for path in workspace.experiments.glob("*/experiment.toml"))
        raise unknown_name("gold set or experiment", name, [*sets, *made])
    gold = load_gold(name, workspace=workspace)
    if draft:
        raise InputError(f"--draft shows a judge's verdicts, and {name!r} is a gold set: name an experiment")
    return _Source(gold, gold.items, gold.name)


def _of_experiment(folder: Path, workspace: Workspace) -> _Source:
    """The items that an experiment's judges were asked of, as they are in the set today; InputError for none."""
    from judgecal.errors import InputError
    from judgecal.experiment import read_config, stored_rows
    from judgecal.goldset import load_gold

    config = read_config(folder)
    named = config.get("gold", {}).get("set")
    if not isinstance(named, str):
        raise InputError(f"{folder}: its experiment.toml names no gold set, so it has no items for a sheet")
    gold = load_gold(named, workspace=workspace)
    rows = list(stored_rows(folder / "judgements.jsonl").latest.values())
    if config.get("command") == "answer":
        return _of_answers(folder, gold, config, rows)
    asked = {(row.item_id, row.item_sha) for row in rows}
    items = tuple(item for item in gold.items if (item.item_id, item.sha) in asked)
    if not items:
        raise InputError(f"{folder}: its journal holds no judgement of an item of gold set {named!r} as it is today")
    judge = _first_judge(config, rows)
    drafts = {row.item_id: row.verdict for row in reversed(rows) if row.judge == judge}
    return _Source(gold, items, gold.name, judge, drafts)


def _of_answers(folder: Path, gold: GoldSet, config: Mapping[str, Any], rows: Iterable[Judgement]) -> _Source:
    """The answers of an answerer's run: new items, which labels make a gold set of."""
    from judgecal.answering import answered_items

    drafts = {row.item_id: row.verdict for row in rows}
    return _Source(gold, answered_items(folder), folder.name, str(config["judge"]["judge"]), drafts)


def _first_judge(config: dict[str, object], rows: Iterable[Judgement]) -> str:
    """The first one asked for; of recorded judgements the first one recorded."""
    judges = None if config.get("command") == "agreement" else config.get("judges")
    if isinstance(judges, list) and judges and isinstance(judges[0], dict):
        return str(judges[0].get("judge"))
    return next(row.judge for row in rows)


def _instructions(gold: GoldSet) -> Iterable[str]:
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
    yield "  a leading ' keeps a spreadsheet from running or rewriting a cell: leave it in"
    yield "  change labels and notes only, and save as CSV (UTF-8)"


def _draft_notes(found: _Source, *, draft: bool) -> Iterable[str]:
    if draft:
        yield (
            f"the column draft shows the verdicts of {found.judge}: leave it in, labels given beside it are marked as "
            "such (saw_draft) and are no independent ones"
        )
