"""Blind sheets: items as CSV for people to label in a spreadsheet, each rater in another order.

A sheet shows what a label is given by and nothing else: no tag, no system, no other label, and no verdict unless it
is asked for. `sheet_import` reads the filled sheets back.
"""

from __future__ import annotations

import csv
import hashlib
import io
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judgecal.errors import InputError
from judgecal.records import Context, Item, Result
from judgecal.scale import Label
from judgecal.tables import CELL_LIMIT, defuse
from judgecal.workspace import shown

ITEM, QUESTION, REFERENCE, ANSWER, CONTEXTS = "item_id", "question", "reference_answer", "answer", "contexts"
LABEL, NOTE, DRAFT = "label", "note", "draft"
FIELD = "field "
"""What stands before the name of an item's field in the name of its column."""
_BETWEEN = "\n\n--- next context ---\n\n"


@dataclass(frozen=True, slots=True)
class Sheets(Result):
    """Which sheets were written, one a rater, with the same `n_items` items of the set `set_`.

    `coded`: codes stand in place of the item ids, as these give away a system or a tag. `notes`: what whoever hands the
    sheets out should know.
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
) -> Sheets:
    """Write blind sheets of items: UTF-8 with a byte order mark, commas, every row a CRLF, as spreadsheets expect.

    With several raters `-1`, `-2` ... goes before the ending .csv, and each sheet has the same items in another order.
    `seed` is of the draw (of `limit` items; None takes all) and of the orders. `drafts` (item id -> a machine's
    verdict) is shown in a column `draft`; None shows none. InputError: nothing is to be labelled, a number is out of
    range, the ending is another, or a sheet is there already (it may be filled in); then nothing has been written.
    """
    paths = _paths(path, raters)
    problems = _problems(items, paths, raters=raters, limit=limit)
    if problems:
        raise InputError(problems)
    chosen = list(items)
    if limit is not None and limit < len(chosen):
        kept = {item.item_id for item in random.Random(f"{seed}:draw").sample(chosen, limit)}
        chosen = [item for item in chosen if item.item_id in kept]
    coded = any(map(_tells, items))
    for number, target in enumerate(paths, start=1):
        order = list(chosen)
        random.Random(f"{seed}:order:{number}").shuffle(order)
        target.parent.mkdir(parents=True, exist_ok=True)
        # "x": a sheet that turned up in between may be somebody's work
        with target.open("x", encoding="utf-8-sig", errors="replace", newline="") as file:
            file.write(_sheet(order, coded=coded, drafts=drafts))
    return Sheets(name, tuple(map(str, paths)), len(chosen), coded, tuple(_notes(chosen, coded=coded)))


def _paths(path: Path, raters: int) -> tuple[Path, ...]:
    if raters == 1:
        return (path,)
    return tuple(path.with_name(f"{path.stem}-{number}{path.suffix}") for number in range(1, raters + 1))


def _problems(items: Sequence[Item], paths: Iterable[Path], *, raters: int, limit: int | None) -> list[str]:
    problems = [] if items else ["there is no item to label"]
    if raters < 1:
        problems.append(f"--raters must be at least 1, found {raters}")
    if limit is not None and limit < 1:
        problems.append(f"--limit must be at least 1, found {limit}")
    for path in paths:
        if path.suffix.lower() != ".csv":
            problems.append(f"-o {shown(path)}: a sheet is a CSV file: let its name end in .csv")
        elif path.exists():
            problems.append(f"{shown(path)}: is there already, and may be filled in: choose another name, or remove it")
    return problems


def _tells(item: Item) -> bool:
    """Whether an id gives away who answered, or what is wrong with the answer."""
    name = item.item_id.casefold()
    return any(word.casefold() in name for word in (item.system, *item.tags) if word)


def code_of(item: Item) -> str:
    """A name for an item that says nothing of it: `i` and 12 hex digits over its id and its text."""
    return "i" + hashlib.sha256(f"{item.item_id}\n{item.sha}".encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _sheet(items: Sequence[Item], *, coded: bool, drafts: Mapping[str, Label | None] | None) -> str:
    columns = [ITEM, QUESTION, REFERENCE, ANSWER]
    columns += [CONTEXTS] * any(item.contexts for item in items)
    columns += list(dict.fromkeys(f"{FIELD}{name}" for item in items for name in item.fields))
    columns += [DRAFT] * (drafts is not None) + [LABEL, NOTE]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    for item in items:
        cells = {
            ITEM: code_of(item) if coded else item.item_id,
            QUESTION: item.question,
            REFERENCE: item.reference_answer or "",
            ANSWER: item.answer,
            CONTEXTS: contexts_text(item),
            DRAFT: _draft((drafts or {}).get(item.item_id)),
            **{f"{FIELD}{name}": text for name, text in item.fields.items()},
        }
        writer.writerow([defuse(cells.get(column, "")) if column != DRAFT else cells[DRAFT] for column in columns])
    return text.getvalue()


def _draft(verdict: Label | None) -> str:
    if verdict is None:
        return ""
    return defuse(verdict) if isinstance(verdict, str) else f"{verdict:g}"


def contexts_text(item: Item) -> str:
    """The contexts of an item in one cell."""
    return _BETWEEN.join(context.text for context in item.contexts)


def contexts_of(cell: str) -> tuple[Context, ...]:
    """The contexts of such a cell; their document ids and scores are not on a sheet."""
    parts = cell.replace("\r\n", "\n").split(_BETWEEN) if cell.strip() else []
    return tuple(Context(part) for part in parts)


def _notes(items: Sequence[Item], *, coded: bool) -> Iterable[str]:
    if coded:
        yield "the item ids name systems or tags, so codes stand in their place; `gold import --sheet` knows them"
    long = [item for item in items if max(map(len, (item.question, item.answer, contexts_text(item)))) > CELL_LIMIT]
    if long:
        yield (
            f"{len(long)} items have a text above {CELL_LIMIT} characters, which Excel cuts off (LibreOffice does "
            f"not): the first is {long[0].item_id!r}"
        )
