"""Blind sheets: items as CSV or a workbook for people to label, each rater in another order; and filled
sheets back into a set, all of them, or nothing and every problem in one message.

A sheet shows what a label is given by and nothing else: no tag, no system, no other label, and no verdict
unless it is asked for.
"""

from __future__ import annotations

import csv
import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from judgecal.errors import InputError, refuse, unknown_name
from judgecal.goldset.gold_set import GoldSet
from judgecal.goldset.imports import Imported, attempt
from judgecal.goldset.labels import (
    LabelMap,
    by_side,
    is_no_label,
    left_of,
    missing_notes,
    read_label,
    unexplained,
)
from judgecal.goldset.load import load_gold
from judgecal.goldset.write import add_ratings
from judgecal.records import CANNOT_TELL, Item, Rating, Result
from judgecal.scale import Scale
from judgecal.tables import Table, defuse, read_separated, read_table, same_text, undefuse, write_table
from judgecal.tables.formats import SEPARATED
from judgecal.workspace import Workspace, replacing, shown

_ITEM, _QUESTION, _REFERENCE, _ANSWER = "item_id", "question", "reference_answer", "answer"
_LEFT, _RIGHT = "answer_left", "answer_right"
_CONTEXTS, _LABEL, _NOTE = "contexts", "label", "note"
_FIELD = "field "
"""What stands before the name of an item's field in the name of its column."""
_CODED = "the item ids name systems or tags, so codes stand in their place; `gold import --sheet` knows them"
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
        return tuple(map(Path, self.sheets))


def write_sheets(
    items: Sequence[Item],
    path: Path,
    *,
    name: str = "",
    raters: int = 1,
    seed: int = 0,
    limit: int | None = None,
    scale: Scale | None = None,
) -> Sheets:
    """Write blind sheets of Items at a path (.csv or .xlsx) and return Sheets. A .csv is UTF-8 with a byte
    order mark, commas and CRLF. The scale tells whether labels are of sides.

    With several raters `-1`, `-2` ... goes before the ending, and each sheet has the same items in another
    order. `seed` is of the draw (of `limit` items; None takes all) and of the orders. InputError: nothing is
    to be labelled, a number is out of range, the ending is another, or a sheet is there already (it may be
    filled in); then nothing has been written.
    """
    numbers = range(1, raters + 1)
    paths = [path] if raters == 1 else [path.with_name(f"{path.stem}-{n}{path.suffix}") for n in numbers]
    problems = [] if items else ["there is no item to label"]
    problems += [
        f"{option} must be at least 1, found {number}"
        for option, number in (("--raters", raters), ("--limit", limit))
        if number is not None and number < 1
    ]
    for sheet in paths:
        if sheet.suffix.lower() not in (".csv", ".xlsx"):
            what = "a sheet is a CSV file or a workbook: let its name end in .csv or .xlsx"
            problems.append(f"-o {shown(sheet)}: {what}")
        elif sheet.exists():
            what = "is there already, and may be filled in: choose another name, or delete it"
            problems.append(f"{shown(sheet)}: {what}")
    refuse(problems)
    chosen = list(items)
    if limit is not None and limit < len(chosen):
        drawn = {item.item_id for item in random.Random(f"{seed}:draw").sample(chosen, limit)}
        chosen = [item for item in chosen if item.item_id in drawn]
    # an id may give away who answered, or what is wrong with the answer
    coded = any(
        word.casefold() in item.item_id.casefold()
        for item in items
        for word in (item.system, *item.tags, *(astuple(item.pair)[2:] if item.pair else ()))
        if word
    )
    pairs, single = (any(bool(item.pair) is there for item in chosen) for there in (True, False))
    columns = [_ITEM, _QUESTION, _REFERENCE, *[_LEFT, _RIGHT] * pairs, *[_ANSWER] * single]
    columns += [_CONTEXTS] * any(item.contexts for item in chosen)
    for number, sheet in enumerate(paths, start=1):
        order = []
        for item in chosen:
            texts = _texts(item, left_of(item, scale, f"{seed}:{number}"))
            order.append({_ITEM: code_of(item) if coded else item.item_id, **texts})
        random.Random(f"{seed}:order:{number}").shuffle(order)
        fields = dict.fromkeys(name for cells in order for name in cells if name.startswith(_FIELD))
        header = [*columns, *fields, _LABEL, _NOTE]
        sheet.parent.mkdir(parents=True, exist_ok=True)
        _write(sheet, header, [[cells.get(column, "") for column in header] for cells in order])
    return Sheets(name, tuple(map(str, paths)), len(chosen), coded, (_CODED,) * coded)


def _write(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if path.suffix.lower() == ".xlsx":
        import polars as pl

        # no cell of it is run or rewritten: a text that begins with a mark of its own gets another
        marked = ([defuse(text) if undefuse(text) != text else text for text in row] for row in rows)
        write_table(path, pl.DataFrame(list(marked), dict.fromkeys(header, str), orient="row"))
        return
    with (
        replacing(path) as draft,
        draft.open("w", encoding="utf-8-sig", errors="replace", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(header)
        writer.writerows(map(defuse, row) for row in rows)


def code_of(item: Item) -> str:
    """Return a name for an item that tells nothing of it: `i` and 12 hex digits over its id and its text."""
    text = f"{item.item_id}\n{item.sha}".encode("utf-8", "surrogatepass")
    return f"i{hashlib.sha256(text).hexdigest()[:12]}"


def _texts(item: Item, left: str | None = None) -> dict[str, str]:
    """What a sheet shows of an item, by column; all contexts in one cell, without ids and scores."""
    pair = item.pair and (item.pair.swapped() if left == "B" else item.pair)
    return {
        _QUESTION: item.question,
        _REFERENCE: item.reference_answer or "",
        **({_LEFT: pair.answer_a, _RIGHT: pair.answer_b} if pair else {_ANSWER: item.answer}),
        _CONTEXTS: _BETWEEN.join(context.text for context in item.contexts),
        **{f"{_FIELD}{name}": text for name, text in item.fields.items()},
    }


def import_sheets(
    files: Sequence[Path],
    *,
    name: str,
    workspace: Workspace,
    mapping: Mapping[str, str] | None = None,
    replace: bool = False,
) -> Imported:
    """Read filled sheets' files, for the set `name` of a Workspace, and add their labels: Imported.

    Each file is a rater of its own, named by the file without its ending (`gold`: labels that settle the
    others). `mapping` rewrites label cells, whatever their case. `replace` overwrites what a rater said of an
    item before; items that the sheet leaves empty keep their ratings. InputError lists every problem with
    file and line; then nothing has been written.
    """
    workspace.require_writable("gold import")
    if name not in workspace.gold_sets:
        raise unknown_name("gold set", name, workspace.gold_sets)
    problems: list[str] = []
    sheets = [(file.stem, attempt(partial(_read_sheet, file), problems)) for file in files]
    refuse(problems)
    gold = load_gold(name, workspace=workspace, labelling=True)
    tables = [(who, table) for who, table in sheets if table is not None]
    ratings, empty, missing = _read_rows(tables, gold, LabelMap(mapping or {}), problems)
    if not ratings and not problems:
        raise InputError(f"{', '.join(map(str, files))}: no row has a label: fill some in")
    labels = [rating.label for rating in (*gold.ratings, *ratings.values()) if rating.label is not None]
    if gold.scale.graded and not problems:
        why = unexplained([float(label) for label in labels], gold.scale, gold.card.explained)
        problems += [f"{', '.join(map(str, files))}: {why}"] if why else []
    refuse(problems)
    done = add_ratings(gold, list(ratings.values()), workspace=workspace, replace=replace)
    unknown = sorted({rating.rater for rating in ratings.values()} - done.card.raters.keys())
    return Imported.of(
        done,
        n_rows=sum(len(table.rows) for _, table in tables),
        skipped={"without a label": empty.total()},
        notes=[
            *(f"{who!r} left {count} items without a label" for who, count in empty.items()),
            *missing_notes(missing),
            *(note for _, table in tables for note in table.notes),
            *(f"say in card.toml who {who!r} is: [raters.{who}] who = ..." for who in unknown),
        ],
    )


def _read_rows(
    sheets: Iterable[tuple[str, Table]], gold: GoldSet, mapping: LabelMap, problems: list[str]
) -> tuple[dict[tuple[str, str], Rating], Counter[str], Counter[str]]:
    """The ratings, and how many rows have none: by rater, and by what the cell says."""
    scale = gold.scale
    # Codes first: an id that happens to look like one stands for itself.
    items = {code_of(item): item for item in gold.items} | {item.item_id: item for item in gold.items}
    ratings: dict[tuple[str, str], Rating] = {}
    empty, missing = Counter[str](), Counter[str]()  # by rater, and by what the cell says
    seen: dict[tuple[str, str], str] = {}
    for who, table in sheets:
        for row in table.rows:
            where, cells = table.at(row), {name.casefold(): cell for name, cell in row.cells.items()}
            try:
                item = _item_of(cells, items, gold)
            except ValueError as error:
                problems.append(f"{where}: {error}")
                continue
            key = (item.item_id, who)
            if (first := seen.setdefault(key, where)) != where:
                problems.append(
                    f"{where}: item {item.item_id!r} of {who!r} is in {first} already: keep one row"
                )
                continue
            cell = cells[_LABEL].strip()
            cell = mapping.get(cell, cell).strip()
            if not cell or is_no_label(cell, scale):
                empty[who] += 1
                missing.update([cell] if cell else [])
                continue
            unclear = undefuse(cell).strip().casefold() == CANNOT_TELL and CANNOT_TELL not in scale.categories
            if sided := left_of(item, scale, "") and _left_in(cells, item):
                cell = undefuse(cell).strip().casefold()
            try:
                if sided and cell not in ("left", "right", "tie") and not unclear:
                    raise ValueError(f"{cell!r} is none of left, right, tie")
                label = None if unclear else read_label(by_side(cell, sided), scale)
            except (ValueError, OverflowError) as error:
                mend = "fix the cell, leave it empty, or give --map FROM=TO for it"
                problems.append(f"{where}: column {_LABEL}: {error}: {mend}")
                continue
            note, reason = cells.get(_NOTE, "").strip() or None, CANNOT_TELL if unclear else None
            ratings[key] = Rating(*key, label, note, reason, sided or None)
    return ratings, empty, missing


def _read_sheet(path: Path) -> Table:
    """The table of a sheet, whatever the case of its columns' names; InputError: no table, a column that is
    missing or twice, or more cells than the header.
    """
    separated = path.suffix.lower() in SEPARATED
    table = read_separated(path, pads=True).filled() if separated else read_table(path)
    header = [name.casefold() for name in table.columns]
    twice = [name for name, count in Counter(header).items() if count > 1]
    answers = (_LEFT, _RIGHT) if _LEFT in header else (_ANSWER,)
    missing = [name for name in (_ITEM, _QUESTION, *answers, _LABEL) if name not in header]
    problems = [f"{table.top}: {name!r} names two columns: keep one" for name in twice]
    refuse([*problems, *(f"{table.top}: {unknown_name('column', name, header)}" for name in missing)])
    return table


def _left_in(cells: Mapping[str, str], item: Item) -> Literal["A", "B"]:
    """Which answer of a pair stands on the left of a row."""
    return "B" if item.pair and same_text(cells.get(_LEFT, ""), item.pair.answer_b) else "A"


def _item_of(cells: Mapping[str, str], items: Mapping[str, Item], gold: GoldSet) -> Item:
    """The item of a row; ValueError says why it is none."""
    item_id = undefuse(cells[_ITEM].strip())
    if not item_id:
        raise ValueError(f"column {_ITEM}: empty: without its id a row belongs to no item")
    if (item := items.get(item_id)) is None:
        raise ValueError(
            f"no item {item_id!r} in gold set {gold.name!r}: fix the id, or name the "
            "set that the sheet came from"
        )
    texts = _texts(item, _left_in(cells, item))
    shown_here = [column for column in texts if column in cells]
    if changed := [column for column in shown_here if not same_text(cells[column], texts[column])]:
        raise ValueError(
            f"item {item_id!r} has another {' and another '.join(changed)} than the set (columns "
            "sorted apart, or edited?): restore the text, as the label must belong to it"
        )
    return item
