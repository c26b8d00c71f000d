"""`judgecal gold import`: gold sets of tables and of other tools' exports, and filled sheets into a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgecal.cli.options import (
    Full,
    Json,
    LabelledTableArguments,
    argument,
    columns_option,
    option,
    workspace_of,
)
from judgecal.cli.output import print_result
from judgecal.commands import wing
from judgecal.errors import InputError

if TYPE_CHECKING:
    from judgecal.goldset import Imported

_OF_EXPORTS = ("--label", "--scale", "--pass-at", "--map", "--labels-by")
_OF_SHEETS = ("--map",)


@dataclass(frozen=True)
class ImportArguments(LabelledTableArguments):
    """The options of `gold import`."""

    col: Annotated[
        list[str] | None,
        columns_option(
            "question, answer, reference, contexts, conversation, item, group, system, of a pair answer_a, "
            "answer_b, system_a, system_b, tag, note (one for each --label, in order), rater (who gave the "
            "labels of a single --label), gold (the adjudicated label), or the name of an input of a judge"
        ),
    ] = None
    pass_at: Annotated[
        float | None,
        option("The people's pass mark, on the scale of the labels; by default none.", metavar="X"),
    ] = None
    answers: Annotated[
        str | None,
        option("Answers by id to questions with rules, such as RAG-IFEval's samples.json.", metavar="FILE"),
    ] = None


_EXPORTS = Path(__file__).parents[1] / "exchange" / "exports"
_TOOLS = sorted(path.stem.replace("_", "-") for path in _EXPORTS.glob("[a-z]*.py"))


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
    tool: Annotated[
        str | None,
        option(
            "FILE is what this tool exports: items, people's scores and judges' at once. One of "
            f"{', '.join(_TOOLS)}; by default recognised by the file's content.",
            "--from",
            metavar="TOOL",
        ),
    ] = None,
    sheet: Annotated[
        bool, option("FILE is a filled sheet of `gold sheet`, whose columns are known.")
    ] = False,
    replace: Annotated[bool, option("Replace a set of this name; with --sheet what a rater said before.")] = (
        False
    ),
    force: Annotated[bool, option("Keep a scale of which the labels use a small part only.")] = False,
    full: Full = False,
    json: Json = False,
    *,
    table: ImportArguments,
) -> None:
    """Make a gold set from a table or another tool's export.

    The table holds people's labels; hf:ORG/NAME is fetched from the Hugging Face Hub. Filled sheets of `gold
    sheet` are added to their set with --sheet. Nothing is written unless all of it is right. Without a label
    the set waits for labels (gold sheet).
    """
    from judgecal.goldset import import_gold, import_sheets, read_mapping
    from judgecal.report.gold import import_document

    workspace, paths, given = workspace_of(ctx), [Path(file) for file in files], table.given()
    of_tables = [name for name in given if name not in _OF_EXPORTS]
    guessed = None
    if tool is None and not sheet and not of_tables:
        guessed = wing("guess export")(paths)
    tool, mapping = tool or guessed, read_mapping(table.mapping or ())
    into: dict[str, Any] = {"name": name, "workspace": workspace, "replace": replace}
    labels: dict[str, Any] = {"scale": table.scale, "pass_at": table.pass_at, "mapping": mapping}
    trusted: dict[str, Any] = {"force": force, "labels_by": table.labels_by}
    result: Imported
    if sheet:
        odd = [name for name in given if name not in _OF_SHEETS]
        _refuse([*odd, *["--force"] * force, *["--from"] * (tool is not None)], "--sheet")
        result = import_sheets(paths, mapping=mapping, **into)
    elif tool is not None:
        _refuse(of_tables, "--from")
        of_people = wing("export labels")(labels=tuple(table.label or ()), **labels, **trusted)
        result = wing("import export")(paths, tool=tool, labels=of_people, **into)
    elif table.answers is not None or (not given and wing("holds rules")(files[0])):
        _refuse([name for name in given if name != "--answers"], "--answers")
        result = wing("import rules")(files, answers=table.answers, **into)
    elif len(files) > 1:
        raise InputError(f"gold import reads one table, found {len(files)}: --sheet and --from take several")
    else:
        columns = table.columns(workspace)
        result = import_gold(files[0], columns=columns, encoding=table.encoding, **labels, **trusted, **into)
    document = import_document(result, guessed=guessed)
    print_result(result, document, json=json, full=full)


def _refuse(given: Sequence[str], beside: str) -> None:
    """Refuse (InputError) options of tables where the columns of what is read are known."""
    if given:
        raise InputError(f"{', '.join(given)} with {beside}: its columns are known; leave it out")
