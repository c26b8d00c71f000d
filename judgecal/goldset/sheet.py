"""Blind sheets: items as CSV or a workbook for people to label in a spreadsheet, each rater in another order.

A sheet shows what a label is given by and nothing else: no tag, no system, no other label, and no verdict
unless it is asked for. `sheet_import` reads the filled sheets back.
"""

from __future__ import annotations

import csv
import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judgecal.errors import refuse
from judgecal.records import CANNOT_TELL, Context, Item, Result
from judgecal.scale import Label, Scale
from judgecal.tables import CELL_LIMIT, Form, defuse, undo, write_form
from judgecal.tables.cells import is_number
from judgecal.workspace import shown

ITEM, QUESTION, REFERENCE, ANSWER, CONTEXTS = "item_id", "question", "reference_answer", "answer", "contexts"
LABEL, NOTE, DRAFT = "label", "note", "draft"
FIELD = "field "
"""What stands before the name of an item's field in the name of its column."""
_WIDTHS = {ITEM: 16, ANSWER: 60, CONTEXTS: 60, DRAFT: 12, LABEL: 14, NOTE: 30}
"""Characters of a workbook's columns."""
_MOST_CHOICES = 20
_BETWEEN = "\n\n--- next context ---\n\n"


@dataclass(frozen=True, slots=True)
class Sheets(Result):
    """Which sheets were written, one a rater, with the same `n_items` items of the set `set_`.

    `coded`: codes stand in place of the item ids, as these give away a system or a tag. `notes`: what whoever
    hands the sheets out should know.
    """

    set_: str
    sheets: tuple[str, ...]
    n_items: int
    coded: bool
    notes: tuple[str, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """One sheet a rater."""
        return tuple(map(Path, self.sheets))


def write_sheets(
    items: Sequence[Item],
    path: Path,
    *,
    name: str = "",
    raters: int = 1,
    seed: int = 0,
    limit: int | None = None,
    drafts: Mapping[str, Label | None] | None = None,
    scale: Scale | None = None,
) -> Sheets:
    """Write blind sheets of items, by the path's ending as .csv (UTF-8 with a byte order mark, commas, every
    row a CRLF, as spreadsheets expect) or .xlsx, whose label cells offer the labels of the `scale` where
    these are few.

    With several raters `-1`, `-2` ... goes before the ending, and each sheet has the same items in another
    order. `seed` is of the draw (of `limit` items; None takes all) and of the orders. `drafts` (item id -> a
    machine's verdict) is shown in a column `draft`; None shows none. InputError: nothing is to be labelled, a
    number is out of range, the ending is another, or a sheet is there already (it may be filled in); then
    nothing has been written.
    """
    paths = [path]
    if raters != 1:
        paths = [path.with_name(f"{path.stem}-{number + 1}{path.suffix}") for number in range(raters)]
    refuse(_problems(items, paths, raters=raters, limit=limit))
    chosen = list(items)
    if limit is not None and limit < len(chosen):
        kept = {item.item_id for item in random.Random(f"{seed}:draw").sample(chosen, limit)}
        chosen = [item for item in chosen if item.item_id in kept]
    # an id may give away who answered, or what is wrong with the answer
    coded = any(
        word.casefold() in item.item_id.casefold()
        for item in items
        for word in (item.system, *item.tags)
        if word
    )
    for number, target in enumerate(paths, start=1):
        order = list(chosen)
        random.Random(f"{seed}:order:{number}").shuffle(order)
        target.parent.mkdir(parents=True, exist_ok=True)
        columns, rows = _table(order, coded=coded, drafts=drafts)
        # "x": a sheet that turned up in between may be somebody's work
        if target.suffix.lower() == ".xlsx":
            with target.open("xb") as book:
                # no cell of it is run or rewritten: a text that begins with a mark of its own gets another
                cells = [[defuse(cell) if undo(cell) != cell else cell for cell in row] for row in rows]
                widths = tuple(_WIDTHS.get(column, 40) for column in columns)
                write_form(book, Form(columns, cells, widths, (LABEL, _choices(scale))))
        else:
            with target.open("x", encoding="utf-8-sig", errors="replace", newline="") as file:
                writer = csv.writer(file, lineterminator="\r\n")
                writer.writerow(columns)
                plain = columns.index(DRAFT) if DRAFT in columns else None
                writer.writerows(
                    [
                        cell if place == plain and is_number(cell) else defuse(cell)
                        for place, cell in enumerate(row)
                    ]
                    for row in rows
                )
    return Sheets(name, tuple(map(str, paths)), len(chosen), coded, tuple(_notes(chosen, coded=coded)))


def _problems(items: Sequence[Item], paths: Sequence[Path], *, raters: int, limit: int | None) -> list[str]:
    problems = [] if items else ["there is no item to label"]
    if raters < 1:
        problems.append(f"--raters must be at least 1, found {raters}")
    if limit is not None and limit < 1:
        problems.append(f"--limit must be at least 1, found {limit}")
    for path in paths:
        if path.suffix.lower() not in (".csv", ".xlsx"):
            problems.append(
                f"-o {shown(path)}: a sheet is a CSV file or a workbook: let its name end in .csv or .xlsx"
            )
        elif path.exists():
            problems.append(
                f"{shown(path)}: is there already, and may be filled in: choose another name, or remove it"
            )
    return problems


def code_of(item: Item) -> str:
    """A name for an item that says nothing of it: `i` and 12 hex digits over its id and its text."""
    return (
        "i" + hashlib.sha256(f"{item.item_id}\n{item.sha}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
    )


def _table(
    items: Sequence[Item], *, coded: bool, drafts: Mapping[str, Label | None] | None
) -> tuple[list[str], list[list[str]]]:
    """The columns of a sheet, and its rows."""
    columns = [ITEM, QUESTION, REFERENCE, ANSWER]
    columns += [CONTEXTS] * any(item.contexts for item in items)
    columns += list(dict.fromkeys(f"{FIELD}{name}" for item in items for name in item.fields))
    columns += [DRAFT] * (drafts is not None) + [LABEL, NOTE]
    rows = []
    for item in items:
        draft = (drafts or {}).get(item.item_id)
        cells = {
            ITEM: code_of(item) if coded else item.item_id,
            QUESTION: item.question,
            REFERENCE: item.reference_answer or "",
            ANSWER: item.answer,
            CONTEXTS: contexts_text(item),
            DRAFT: "" if draft is None else draft if isinstance(draft, str) else f"{draft:g}",
            **{f"{FIELD}{name}": text for name, text in item.fields.items()},
        }
        rows.append([cells.get(column, "") for column in columns])
    return columns, rows


def _choices(scale: Scale | None) -> tuple[str, ...]:
    """The labels that a list can offer, with the word of who cannot tell; none where there are many."""
    if scale is None or (scale.graded and (scale.step is None or scale.span / scale.step > _MOST_CHOICES)):
        return ()
    labels: tuple[str, ...] = scale.categories if scale.kind == "nominal" else ("yes", "no")
    if scale.graded and scale.step is not None:
        labels = tuple(f"{scale.low + n * scale.step:g}" for n in range(round(scale.span / scale.step) + 1))
    return tuple(dict.fromkeys((*labels, CANNOT_TELL))) if labels else ()


def contexts_text(item: Item) -> str:
    """The contexts of an item in one cell."""
    return _BETWEEN.join(context.text for context in item.contexts)


def contexts_of(cell: str) -> tuple[Context, ...]:
    """The contexts of such a cell; their document ids and scores are not on a sheet."""
    parts = cell.replace("\r\n", "\n").split(_BETWEEN) if cell.strip() else []
    return tuple(Context(part) for part in parts)


def _notes(items: Sequence[Item], *, coded: bool) -> Iterable[str]:
    if coded:
        yield (
            "the item ids name systems or tags, so codes stand in their place; `gold import --sheet` knows "
            "them"
        )
    long = [
        item
        for item in items
        if max(map(len, (item.question, item.answer, contexts_text(item)))) > CELL_LIMIT
    ]
    if long:
        yield (
            f"{len(long)} items have a text above {CELL_LIMIT} characters, which Excel cuts off (LibreOffice "
            f"does not): the first is {long[0].item_id!r}"
        )
