"""`judgecal gold import`: gold sets of tables and of other tools' exports, and filled sheets into a set."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli.options import (
    ColumnArguments,
    Full,
    Json,
    LabelsBy,
    Mapped,
    argument,
    column,
    columns_option,
    option,
    workspace_of,
)
from judgecal.cli.output import print_result
from judgecal.commands import wing
from judgecal.errors import InputError

if TYPE_CHECKING:
    from judgecal.goldset import Imported
    from judgecal.tables import Columns
    from judgecal.workspace import Workspace

_OF_EXPORTS = ("--label", "--scale", "--pass-at", "--map", "--labels-by")


@dataclass(frozen=True)
class ImportArguments(ColumnArguments):
    """The options of `gold import`."""

    col: Annotated[
        list[str] | None,
        columns_option(
            "question, answer, reference, contexts, conversation, item, group, system, of a pair answer_a, "
            "answer_b, system_a, system_b, tag, note (one for each --label, in order), rater (who gave the "
            "labels of a single --label), gold (the adjudicated label), or the name of an input of a judge"
        ),
    ] = None
    label: Annotated[
        list[str] | None, column("A rater's labels; repeatable. Of an export the name of people's scores.")
    ] = None
    verdict: Annotated[
        list[str] | None, column("A judge's verdicts, kept with the set for `agreement`; repeatable.")
    ] = None
    mapping: Mapped = None
    scale: Annotated[
        str | None,
        option(
            "percentage (0..100), ordinal:MIN:MAX, points:MIN:MAX[:STEP], fraction (0..1), binary or "
            "nominal; by default told by the labels. With --sheet for a new set."
        ),
    ] = None
    pass_at: Annotated[
        float | None,
        option("The people's pass mark, on the scale of the labels; by default none.", metavar="X"),
    ] = None
    labels_by: LabelsBy = None
    encoding: Annotated[str | None, option("Of separated text; by default told by the file.")] = None
    answers: Annotated[
        str | None,
        option("Answers by id to questions with rules, such as RAG-IFEval's samples.json.", metavar="FILE"),
    ] = None

    def of_tables(self) -> list[str]:
        """Those of them that an export of a tool does not take."""
        return [name for name in self.given() if name not in _OF_EXPORTS]

    def labels(self, *, force: bool) -> Any:
        """What they say of an export's labels."""
        from judgecal.goldset import read_mapping

        return wing("export labels")(
            labels=tuple(self.label or ()),
            scale=self.scale,
            pass_at=self.pass_at,
            mapping=read_mapping(self.mapping or ()),
            force=force,
            labels_by=self.labels_by,
        )

    def of_rules(self, files: Sequence[str]) -> bool:
        """Whether these are questions with rules, which are known by their shape alone."""
        others = [option for option in self.given() if option != "--answers"]
        if self.answers is not None and others:
            raise InputError(
                f"{', '.join(others)} with --answers: the columns of questions with rules are known"
            )
        return self.answers is not None or (not others and wing("holds rules")(files[0]))

    def columns(self, workspace: Workspace, **more: Any) -> Columns:
        """The columns, with those of labels and verdicts."""
        from judgecal.tables import OF_IMPORTS

        named = {"labels": tuple(self.label or ()), "verdicts": tuple(self.verdict or ()), **more}
        return super().columns(workspace, takes=OF_IMPORTS, **named)

    def refuse_columns(self, *, tool: str | None, force: bool) -> None:
        """Refuse (InputError) options of tables: a sheet's columns are known."""
        of_sheets = ("--scale", "--pass-at", "--map")
        given = [option for option in self.given() if option not in of_sheets]
        given += ["--force"] * force + ["--from"] * (tool is not None)
        if given:
            raise InputError(f"{', '.join(given)} with --sheet: a sheet's columns are known; leave it out")


_EXPORTS = Path(__file__).parents[1] / "exchange" / "exports"
_TOOLS = sorted(path.stem.replace("_", "-") for path in _EXPORTS.glob("[a-z]*.py"))


@dataclass(frozen=True, slots=True)
class ImportChoices:
    """What FILE is, and how the set is made of it."""

    tool: Annotated[
        str | None,
        option(
            "FILE is what this tool exports: items, people's scores and judges' at once. One of "
            f"{', '.join(_TOOLS)}; by default recognised by the file's content.",
            "--from",
            metavar="TOOL",
        ),
    ] = None
    sheet: Annotated[bool, option("FILE is a filled sheet of `gold sheet`, whose columns are known.")] = False
    replace: Annotated[bool, option("Replace a set of this name; with --sheet what a rater said before.")] = (
        False
    )
    force: Annotated[bool, option("Keep a scale of which the labels use a small part only.")] = False
    full: Full = False
    json: Json = False


def import_command(
    ctx: typer.Context,
    files: Annotated[
        list[str],
        argument(
            "A table (CSV, xlsx, JSONL, JSON, Parquet) or hf:org/name[:split]; with --from the files of an "
            "export; with --sheet one or more filled sheets.",
            metavar="FILE...",
        ),
    ],
    name: Annotated[str, option("The name of the set.", "--as", metavar="SET")],
    *,
    choices: ImportChoices,
    table: ImportArguments,
) -> None:
    """Make a gold set from a table or another tool's export.

    The table holds people's labels; hf:ORG/NAME is fetched from the Hugging Face Hub. Filled sheets of `gold
    sheet` are added to their set with --sheet. Nothing is written unless all of it is right. Without a label
    the set waits for labels (gold sheet).
    """
    from judgecal.report.gold import import_document

    tool = None if choices.sheet else _tool_of(files, choices.tool, table)
    chosen, guessed = (
        dataclasses.replace(choices, tool=choices.tool or tool),
        tool if choices.tool is None else None,
    )
    workspace = workspace_of(ctx)
    result = _imported(files, name, chosen, table, workspace)
    print_result(result, import_document(result, guessed=guessed), json=chosen.json, full=chosen.full)


def _tool_of(files: Sequence[str], tool: str | None, table: ImportArguments) -> str | None:
    """Whose export the files are, None for a table; an option of tables says that they are one."""
    columns = table.of_tables()
    if tool is None:
        return None if columns else wing("guess export")([Path(file) for file in files])
    if columns:
        raise InputError(f"{', '.join(columns)} with --from: the fields of an export are known; leave it out")
    return tool


def _imported(
    files: Sequence[str], name: str, choices: ImportChoices, table: ImportArguments, workspace: Workspace
) -> Imported:
    from judgecal.goldset import import_gold, import_sheets, read_mapping

    into: dict[str, Any] = {"name": name, "workspace": workspace, "replace": choices.replace}
    paths = [Path(file) for file in files]
    if choices.sheet:
        table.refuse_columns(tool=choices.tool, force=choices.force)
        into |= {"mapping": read_mapping(table.mapping or ())}
        return import_sheets(paths, scale=table.scale, pass_at=table.pass_at, **into)
    if choices.tool is not None:
        imported: Imported = wing("import export")(
            paths, tool=choices.tool, labels=table.labels(force=choices.force), **into
        )
        return imported
    if table.of_rules(files):
        of_rules: Imported = wing("import rules")(files, answers=table.answers, **into)
        return of_rules
    if len(files) > 1:
        raise InputError(f"gold import reads one table, found {len(files)}: --sheet and --from take several")
    return import_gold(
        files[0],
        columns=table.columns(workspace),
        scale=table.scale,
        pass_at=table.pass_at,
        mapping=read_mapping(table.mapping or ()),
        encoding=table.encoding,
        force=choices.force,
        labels_by=table.labels_by,
        **into,
    )
