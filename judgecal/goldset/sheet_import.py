"""Filled sheets back into a gold set: all of them, or nothing and every problem in one message."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judgecal.errors import InputError, refuse, unknown_name
from judgecal.goldset.card import UNKNOWN_LICENCE, Card, RaterCard
from judgecal.goldset.gold_set import GoldSet, list_gold, load_gold
from judgecal.goldset.imports import LISTED, Imported
from judgecal.goldset.labels import missing_notes, read_label, says_nothing
from judgecal.goldset.sheet import (
    ANSWER,
    CONTEXTS,
    DRAFT,
    FIELD,
    ITEM,
    LABEL,
    NOTE,
    QUESTION,
    REFERENCE,
    code_of,
    contexts_of,
    contexts_text,
)
from judgecal.goldset.write import add_ratings, name_problems, write_gold
from judgecal.records import CANNOT_TELL, Item, Rating
from judgecal.scale import Scale
from judgecal.tables import PaddedSource, open_source, same_text, undo
from judgecal.tables.columns import GOLD
from judgecal.workspace import Workspace


def import_sheets(
    files: Sequence[Path],
    *,
    name: str,
    workspace: Workspace,
    rater: str | None = None,
    scale: str | None = None,
    pass_at: float | None = None,
    replace: bool = False,
) -> Imported:
    """Read filled sheets and add their labels to a set, or make a new set of the sheets' items.

    Each file is a rater of its own, named by the file without its ending, unless `rater` filled in all of
    them (`gold` for labels that settle the others). A set that exists says what the sheets must hold; a new
    one needs `scale` (`pass_at` belongs to it too), and each question is a group. `replace` overwrites what a
    rater said of an item before; items that the sheet leaves empty keep their ratings. InputError lists every
    problem with file and line; then nothing has been written.
    """
    workspace.require_writable("gold import")
    there = name in list_gold(workspace)
    problems = _option_problems(there, name, workspace=workspace, scale=scale, pass_at=pass_at)
    raters = [file.stem if rater is None else rater.strip() for file in files]
    problems += [
        f"{file}: the rater {GOLD!r} is the adjudicated label: give --rater {GOLD} if it is, or rename the "
        "file"
        for file in files
        if rater is None and file.stem == GOLD
    ]
    if not all(raters):
        problems.append("--rater is empty: give the rater's name")
    sheets = []
    for file in files:
        try:
            sheets.append(read_sheet(file, columns=(ITEM, QUESTION, ANSWER, LABEL)))
        except InputError as error:
            problems.extend(error.problems)
    refuse(problems)
    gold = load_gold(name, workspace=workspace) if there else None
    reading = _Reading(gold.scale if gold else Scale.parse(scale or "", pass_at=pass_at), gold)
    for sheet, who in zip(sheets, raters, strict=True):
        reading.read(sheet.rows, who)
    if not reading.ratings and not reading.problems:
        raise InputError(f"{', '.join(map(str, files))}: no row has a label: fill some in")
    refuse(reading.problems, most=LISTED)
    ratings = list(reading.ratings.values())
    read_as = [note for sheet in sheets for note in sheet.notes]
    if gold is not None:
        done = add_ratings(gold, ratings, workspace=workspace, replace=replace)
        unknown = sorted({rating.rater for rating in ratings} - done.card.raters.keys())
        who_notes = [f"say in card.toml who {who!r} is: [raters.{who}] who = ..." for who in unknown]
        return reading.imported(done, [*read_as, *who_notes])
    words = ["judgecal", "gold", "import", *(file.name for file in files), "--sheet", "--as", name]
    words += [*(["--rater", rater] if rater else []), *(["--scale", scale] if scale else [])]
    card = Card(
        name=name,
        scale=reading.scale,
        version="1",
        licence=UNKNOWN_LICENCE,
        source="filled sheets",
        made_by=shlex.join([*words, *([] if pass_at is None else ["--pass-at", f"{pass_at:g}"])]),
        labels_by="people",
        raters={
            who: RaterCard(who=f"{who}, by a sheet") for who in sorted({rating.rater for rating in ratings})
        },
    )
    done = write_gold(card, reading.items.values(), ratings, workspace=workspace)
    return reading.imported(
        done, [*read_as, "a sheet holds no systems and no groups: each question is a group"]
    )


def _option_problems(
    there: bool, name: str, *, workspace: Workspace, scale: str | None, pass_at: float | None
) -> list[str]:
    if there:
        if scale is None and pass_at is None:
            return []
        return [f"--scale and --pass-at belong to a new set; gold set {name!r} has its own: leave them out"]
    problems = name_problems(name, workspace=workspace, replace=False)
    if scale is None:
        known = ", ".join(list_gold(workspace)) or "none"
        problems.append(
            f"there is no gold set {name!r} (known: {known}): name the set that the sheets came from, or "
            "give --scale to make a new one of their items"
        )
    elif scale == "fraction":
        problems.append("--scale fraction: a sheet asks for percentages: give --scale percentage")
    else:
        try:
            Scale.parse(scale, pass_at=pass_at)
        except InputError as error:
            problems.extend(error.problems)
    return problems


class _Reading:
    """What the rows of the sheets say, held against the set that they belong to, if it is known."""

    def __init__(self, scale: Scale, gold: GoldSet | None) -> None:
        self.scale, self.gold = scale, gold
        self.items: dict[str, Item] = {}
        self.ratings: dict[tuple[str, str], Rating] = {}
        self.problems: list[str] = []
        self._empty: Counter[str] = Counter()
        self._missing: Counter[str] = Counter()
        self._n_rows = 0
        self._seen: dict[tuple[str, str], str] = {}
        if gold is not None:
            # Codes first: an id that happens to look like one stands for itself.
            self.items = {code_of(item): item for item in gold.items} | {i.item_id: i for i in gold.items}

    def read(self, rows: Iterable[SheetRow], rater: str) -> None:
        """Read one sheet."""
        for row in rows:
            self._n_rows += 1
            item = self._item(row)
            if item is None:
                continue
            first = self._seen.setdefault((item.item_id, rater), row.where)
            if first != row.where:
                self.problems.append(
                    f"{row.where}: item {item.item_id!r} of {rater!r} stands in {first} already: keep one row"
                )
                continue
            self._rate(row, item, rater)

    def _item(self, row: SheetRow) -> Item | None:
        item_id = undo(row.cells[ITEM].strip())
        if not item_id:
            self.problems.append(
                f"{row.where}: column {ITEM}: empty: a row without its id belongs to no item"
            )
            return None
        known = self.items.get(item_id)
        if known is None and self.gold is not None:
            self.problems.append(
                f"{row.where}: no item {item_id!r} in gold set {self.gold.name!r}: mend the id, or name the "
                "set that the sheet came from"
            )
            return None
        if known is None:
            return self._new_item(row, item_id)
        texts = {
            QUESTION: known.question,
            REFERENCE: known.reference_answer or "",
            ANSWER: known.answer,
            CONTEXTS: contexts_text(known),
            **{f"{FIELD}{name}": text for name, text in known.fields.items()},
        }
        shown = {column: row.cells[column] for column in texts if column in row.cells}
        changed = [column for column, cell in shown.items() if not same_text(cell, texts[column])]
        if changed:
            self.problems.append(
                f"{row.where}: item {item_id!r} has another {' and another '.join(changed)} than the set "
                "(columns sorted apart, or edited?): put the text back, the label must belong to it"
            )
            return None
        return known

    def _new_item(self, row: SheetRow, item_id: str) -> Item | None:
        question, reference = undo(row.cells[QUESTION]), undo(row.cells.get(REFERENCE, ""))
        fields = {
            name.removeprefix(FIELD): undo(cell)
            for name, cell in row.cells.items()
            if name.startswith(FIELD) and cell.strip()
        }
        if not question.strip() and not fields:
            self.problems.append(f"{row.where}: column {QUESTION}: empty: fill it in")
            return None
        item = Item(
            item_id=item_id,
            group=question or item_id,
            question=question,
            answer=undo(row.cells[ANSWER]),
            reference_answers=tuple(part for part in reference.split(" | ") if part.strip()),
            contexts=contexts_of(undo(row.cells.get(CONTEXTS, ""))),
            fields=fields,
        )
        self.items[item_id] = item
        return item

    def _rate(self, row: SheetRow, item: Item, rater: str) -> None:
        cell = row.cells[LABEL].strip()
        if not cell or says_nothing(cell, self.scale):
            self._empty[rater] += 1
            self._missing.update([cell] if cell else [])
            return
        unclear = undo(cell).strip().casefold() == CANNOT_TELL and CANNOT_TELL not in self.scale.categories
        try:
            label = None if unclear else read_label(cell, self.scale)
        except (ValueError, OverflowError) as error:
            self.problems.append(f"{row.where}: column {LABEL}: {error}: mend the cell, or leave it empty")
            return
        note = row.cells.get(NOTE, "").strip() or None
        key = (item.item_id, rater)
        reason = CANNOT_TELL if unclear else None
        self.ratings[key] = Rating(
            item.item_id, rater, label, note, saw_draft=DRAFT in row.cells, reason=reason
        )

    def imported(self, gold: GoldSet, notes: Iterable[str]) -> Imported:
        """What was read, with what is missing and labels that are likely a slip of the pen."""
        left = [f"{rater!r} left {count} items without a label" for rater, count in self._empty.items()]
        return Imported.of(
            gold,
            n_rows=self._n_rows,
            skipped={"without a label": self._empty.total()},
            notes=[
                *left,
                *missing_notes(self._missing),
                *_slipped_notes(self.ratings.values(), self.scale),
                *notes,
            ],
        )


def _slipped_notes(ratings: Iterable[Rating], scale: Scale) -> list[str]:
    """Raters whose labels lie in 0..1 of a percentage, fractions among them: likely parts of one."""
    if scale.kind != "percentage":
        return []
    given: defaultdict[str, list[float]] = defaultdict(list)
    for rating in ratings:
        if rating.label is not None:
            given[rating.rater].append(float(rating.label))
    return [
        f"{rater!r} gave no label above 1 on a scale of 0..100: were they meant as fractions? Then mend the "
        "sheet and import it with --replace"
        for rater, labels in given.items()
        if max(labels) <= 1.0 and any(label % 1.0 for label in labels)
    ]


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One row: `file:line` of where it begins, and its cells by column."""

    where: str
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FilledSheet:
    """The rows of a sheet, and what its owner should know of how it was read."""

    rows: list[SheetRow]
    notes: tuple[str, ...]


def read_sheet(path: Path, *, columns: tuple[str, ...]) -> FilledSheet:
    """The rows of a sheet by the names of its columns in lower case; empty rows are left out.

    InputError, each with its line: no table, one of `columns` missing, a column twice, more cells than the
    header.
    """
    separated = path.suffix.lower() in (".csv", ".tsv", ".tab", ".txt")
    table = (PaddedSource(path) if separated else open_source(path)).table()
    names = {name: name.casefold() for name in table.columns}
    header = list(names.values())
    twice = [name for name, count in Counter(header).items() if count > 1]
    refuse(
        [
            *(f"{table.top}: {name!r} names two columns: keep one" for name in twice),
            *(
                f"{table.top}: {unknown_name('column', name, header)}"
                for name in columns
                if name not in header
            ),
        ]
    )
    rows = [
        SheetRow(table.at(row), {names[name]: cell for name, cell in row.cells.items()}) for row in table.rows
    ]
    return FilledSheet(rows, table.notes)
