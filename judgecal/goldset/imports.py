"""Import a table of labelled answers as a gold set: all of it, or nothing and every problem in one message."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from judgecal.errors import InputError, refuse
from judgecal.goldset.card import CARD_KEPT, Card, RaterCard, read_card
from judgecal.goldset.columns import Columns, unpivot
from judgecal.goldset.gold_set import CARD, GOLD, GoldSet, SplitCounts, split_counts
from judgecal.goldset.scale_fit import NARROW, fitting_scale, narrow_labels
from judgecal.goldset.write import name_problems, write_gold
from judgecal.records import Item, Rating, Result
from judgecal.scale import Label, Scale
from judgecal.tables import Row, Table, read_table
from judgecal.workspace import Workspace

_MANY_OFF = 0.2  # of the labels off their scale: that is no slip of the pen
_GRADES = 3  # fewer different labels tell no scale
LISTED = 50
"""How many problems of one file are printed; the rest is counted."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Imported(Result):
    """What an import comes to.

    `n_rows` were read; `skipped` says why some gave neither an item nor a rating. `raters` and `judges`: how many
    ratings (`gold`'s among them) and judgements each gave. `notes`: what the set's owner should know of how it was
    read.
    """

    set_: str
    sha256: str
    n_rows: int
    n_items: int
    n_groups: int
    n_ratings: int
    raters: Mapping[str, int]
    judges: Mapping[str, int]
    skipped: Mapping[str, int]
    splits: Mapping[str, SplitCounts]
    notes: tuple[str, ...]
    gold: GoldSet = field(metadata={"json": False})

    @classmethod
    def of(cls, gold: GoldSet, *, n_rows: int, skipped: Mapping[str, int], notes: Iterable[str]) -> Imported:
        """The counts of a set that has been written."""
        return cls(
            set_=gold.name,
            sha256=gold.sha256,
            n_rows=n_rows,
            n_items=len(gold.items),
            n_groups=gold.n_groups(gold.items),
            n_ratings=len(gold.ratings),
            raters=dict(sorted(Counter(rating.rater for rating in gold.ratings).items())),
            judges={},
            skipped={why: count for why, count in skipped.items() if count},
            splits=split_counts(gold),
            notes=tuple(notes),
            gold=gold,
        )


def import_gold(
    file: str | Path,
    *,
    name: str,
    columns: Columns,
    scale: str,
    workspace: Workspace,
    pass_at: float | None = None,
    mapping: Mapping[str, str] | None = None,
    replace: bool = False,
    force: bool = False,
) -> Imported:
    """Read a table (a file, or the address of a data set: `hf:org/name[:split]`) and write it to `gold/<name>`.

    A `*` in the answer's and the labels' columns stands for each system's name. The scale `fraction` is 0..1 and stored
    as a percentage; its `pass_at` is read so too. `mapping` rewrites label cells before the scale reads them; an empty
    text makes a missing rating. `replace` keeps a replaced set's splits, licence and what its card says of its raters:
    no question moves to another split because a set grew. `force` takes labels that use a small part of the scale.
    InputError lists the first `LISTED` problems; then nothing has been written.
    """
    workspace.require_writable("gold import")
    mapping = mapping or {}
    problems = name_problems(name, workspace=workspace, replace=replace)
    labels = _attempt(lambda: _scale(scale, pass_at), problems)
    found = _attempt(lambda: _table(file, columns), problems)
    if found is None or labels is None:
        raise InputError(problems)
    reading = Reading(*found, name=name, scale=labels, mapping=mapping)
    reading.read()
    reading.hold_to_scale(force=force)
    refuse(problems + reading.problems, most=LISTED)
    command = _command(reading.table, name, columns=columns, scale=scale, pass_at=pass_at, mapping=mapping)
    card, notes = _keep_old(reading.card(f"{command}{' --force' * force}"), workspace.gold / name / CARD)
    gold = write_gold(
        card,
        reading.items.values(),
        reading.ratings.values(),
        workspace=workspace,
        replace=replace,
        readme=_readme(card),
    )
    notes = [*reading.table.notes, *reading.notes(), *notes, *_unlabelled(gold)]
    skipped = {"without any content": reading.table.n_empty}
    return Imported.of(gold, n_rows=reading.table.n_rows, skipped=skipped, notes=notes)


def read_mapping(entries: Iterable[str]) -> dict[str, str]:
    """The `--map FROM=TO` options, cut at the last `=`; InputError where one has none, or a text has two."""
    found: dict[str, str] = {}
    problems: list[str] = []
    for entry in entries:
        cell, sign, to = entry.rpartition("=")
        cell = cell.strip()
        if not sign:
            problems.append(f"--map {entry}: write FROM=TO, such as --map correct=yes")
        elif found.setdefault(cell, to) != to:
            problems.append(f"--map {entry}: {cell!r} is mapped to {found[cell]!r} already: keep one")
    refuse(problems)
    return found


def _attempt(step: Callable[[], _T], problems: list[str]) -> _T | None:
    try:
        return step()
    except InputError as error:
        problems.extend(error.problems)
        return None


def _table(file: str | Path, columns: Columns) -> tuple[Table, Columns]:
    """The table with the columns that the options name, a row an answer; where the options make sense."""
    problems = columns.problems()
    table = _attempt(lambda: read_table(file), problems)
    found = None if table is None else _attempt(lambda: _unpivoted(table, columns), problems)
    if problems or found is None:
        raise InputError(problems)
    return found


def _unpivoted(table: Table, columns: Columns) -> tuple[Table, Columns]:
    table, columns = unpivot(table, columns)
    table.require(*columns.names)
    return table, columns


def _scale(text: str, pass_at: float | None) -> Scale:
    if text != "fraction" or pass_at is None:
        return Scale.parse(text, pass_at=pass_at)
    if not 0.0 <= pass_at <= 1.0:
        raise InputError(f"--pass-at {pass_at:g} lies outside 0..1: on the scale fraction it is a fraction too")
    return Scale.parse(text, pass_at=percent(pass_at * 100.0))


def _command(
    table: Table, name: str, *, columns: Columns, scale: str, pass_at: float | None, mapping: Mapping[str, str]
) -> str:
    maps = [part for cell, to in mapping.items() for part in ("--map", f"{cell}={to}")]
    mark = [] if pass_at is None else ["--pass-at", f"{pass_at:g}"]
    start = shlex.join(["judgecal", "gold", "import", table.name, "--as", name])
    return f"{start} {columns.options()} {shlex.join([*maps, '--scale', scale, *mark])}"


def _keep_old(card: Card, old_path: Path) -> tuple[Card, list[str]]:
    """The new card with what people wrote into the one that it replaces."""
    if not old_path.exists():
        return card, []
    try:
        old = read_card(old_path)
    except InputError as error:
        return card, [f"the replaced card could not be read, so nothing of it is kept ({error.problems[0]})"]
    raters = {name: old.raters.get(name, rater) for name, rater in card.raters.items()}
    kept = {key: getattr(old, key) for key in CARD_KEPT if getattr(old, key)}
    if "explained" in kept:
        kept["explained"] = {**old.explained, **card.explained}
    if old.licence == UNKNOWN_LICENCE:  # nobody wrote that: what the source says now goes before it
        del kept["licence"]
    anchors = old.anchors if str(old.scale) == str(card.scale) else {}
    note = f"kept from the replaced card: raters, {', '.join(kept)}"
    return replace(card, raters=raters, anchors=anchors, **kept), [note]


def _unlabelled(gold: GoldSet) -> list[str]:
    missing = len(gold.items) - len(gold.labels)
    if not missing:
        return []
    return [f"{missing} of {len(gold.items)} items have no gold label (no rating, or a tie): see `gold check`"]


def _readme(card: Card) -> str:
    return (
        f"# The gold set `{card.name}`\n\nImported; `made_by` in card.toml says how.\n\n"
        "Say here what the set is good for and what not, who the raters are and what they were told, and fill in "
        "`licence` and `sampling` in card.toml.\n"
    )


UNKNOWN_LICENCE = "unknown: see the source"
"""What a card says of the licence where the source does not tell."""


def percent(value: float) -> float:
    """0.07 * 100 is 7.000000000000001 in floating point; the label is 7."""
    return round(value, 9)


class Reading:
    """What the rows of one table say: items by id, ratings by item id and rater, both in the order of the rows.

    `problems`: each with its file and line; items and ratings are whole only where there is none.
    """

    def __init__(self, table: Table, columns: Columns, *, name: str, scale: Scale, mapping: Mapping[str, str]) -> None:
        self.table, self.columns, self.name = table, columns, name
        self.scale, self.mapping = scale, mapping
        self.items: dict[str, Item] = {}
        self.ratings: dict[tuple[str, str], Rating] = {}
        self.problems: list[str] = []
        self._lines: dict[str, int] = {}  # by item id: the line, or the row, where it first stands
        self._rated: dict[tuple[str, str], int] = {}
        self._ids: dict[tuple[str | None, ...], str] = {}
        self._cells: list[str] = []  # with a label, as the scale reads them
        self._n_off = 0  # of them, those that are none
        self.explained: dict[str, str] = {}  # findings of `gold check` that may stand
        self._mapped: set[str] = set()

    def read(self) -> None:
        """Read every row; the problems of all of them are in `problems`."""
        for row in self.table.rows:
            item_id = self._read_item(row)
            self._read_labels(row, item_id)
        if not self.ratings and not self.problems:
            labels = ", ".join(dict.fromkeys((*self.columns.labels, self.columns.gold_label or "")))
            self.problems.append(f"{self.table.top}: no row has a label in {labels.rstrip(', ')}: fill some in")

    def hold_to_scale(self, *, force: bool) -> None:
        """Tell the scale that would fit, where many labels are off theirs or all lie in a small part of it.

        The second is for the owner to decide: with `force` the card says so.
        """
        try:
            numbers = [float(cell) for cell in self._cells]
        except ValueError:
            return
        if not all(map(math.isfinite, numbers)):
            return
        if len(set(numbers)) >= _GRADES and self._n_off >= _MANY_OFF * len(numbers) and self.scale.numeric:
            scale = "fraction" if self.scale.from_fraction else self.scale
            off = f"{self._n_off} of {len(numbers)} labels are none of the scale {scale}"
            self.problems.insert(0, f"{self.table.top}: {off}: --scale {fitting_scale(numbers)} fits them all")
        labels = [rating.label for rating in self.ratings.values() if isinstance(rating.label, float)]
        narrow = narrow_labels(labels, self.scale)
        if narrow and (force or self.scale.from_fraction):
            self.explained[NARROW] = "the import was told that the scale is right" if force else "they are fractions"
        elif narrow:
            self.problems.append(f"{self.table.top}: {narrow}: give --scale so, or --force if it is right as it is")

    def _read_item(self, row: Row) -> str:
        where = self.table.at(row)
        item = self.columns.read_item(row, where, item_id="", problems=self.problems)
        item = replace(item, item_id=self._item_id(row, item))
        if not item.item_id:
            self.problems.append(f"{where}: column {self.columns.item!r}: the item id is empty: fill it in")
            return ""
        first = self.items.setdefault(item.item_id, item)
        line = self._lines.setdefault(item.item_id, row.line)
        if line == row.line:
            return item.item_id
        if self.columns.rater is None:
            self.problems.append(
                f"{where}: item {item.item_id!r} stands in {self.table.number(line)} already: ids must differ "
                "(several rows may share an item only with --rater)"
            )
        elif first != item:
            self.problems.append(
                f"{where}: item {item.item_id!r} has another {_difference(first, item)} than in "
                f"{self.table.number(line)}: rows of one item must have the same texts"
            )
        return item.item_id

    def _item_id(self, row: Row, item: Item) -> str:
        if self.columns.item is not None:
            return row.cells[self.columns.item].strip()
        number = f"{self.name}-{len(self.items) + 1:05d}"
        if self.columns.rater is None:
            return number
        return self._ids.setdefault((item.group, item.question, item.answer, item.system), number)

    def _read_labels(self, row: Row, item_id: str) -> None:
        columns = self.columns
        if columns.rater is None:
            for column in columns.raters:
                self._rate(row, item_id, column=column, rater=column)
        else:
            self._read_named(row, item_id, columns.rater)
        if columns.gold_label is not None:
            self._rate(row, item_id, column=columns.gold_label, rater=GOLD)

    def _read_named(self, row: Row, item_id: str, column: str) -> None:
        rater, label = row.cells[column].strip(), self.columns.labels[0]
        if not rater and row.cells[label].strip():
            self.problems.append(f"{self.table.at(row)}: column {column!r}: no rater for this label: fill it in")
        elif rater == GOLD and self.columns.gold_label is not None:
            self.problems.append(
                f"{self.table.at(row)}: column {column!r}: the rater {GOLD!r}, and --gold-label gives that one "
                "already: leave one out"
            )
        elif rater:
            self._rate(row, item_id, column=label, rater=rater)

    def _rate(self, row: Row, item_id: str, *, column: str, rater: str) -> None:
        label = self._label(row, column)
        if label is None or not item_id:
            return
        first = self._rated.setdefault((item_id, rater), row.line)
        old = self.ratings.setdefault((item_id, rater), Rating(item_id, rater, label))
        if first == row.line or (column == self.columns.gold_label and old.label == label):
            return
        if self.columns.rater is not None:  # else the item's second row is reported already
            self.problems.append(
                f"{self.table.at(row)}: a second label of {rater!r} for item {item_id!r}, the first is in "
                f"{self.table.number(first)}: keep one"
            )

    def _label(self, row: Row, column: str) -> Label | None:
        cell = row.cells[column].strip()
        if cell in self.mapping:
            self._mapped.add(cell)
            cell = self.mapping[cell].strip()
        if not cell:
            return None
        self._cells.append(cell)
        try:
            label = self.scale.read(cell)
        except (ValueError, OverflowError) as error:
            self._n_off += 1
            self.problems.append(
                f"{self.table.at(row)}: column {column!r}: {error}: mend the cell, or give --map FROM=TO for it"
            )
            return None
        return percent(label) if self.scale.from_fraction and isinstance(label, float) else label

    def card(self, command: str) -> Card:
        """What is known of the set: where it was read from, and how."""
        scale = replace(self.scale, from_fraction=False)
        if scale.kind == "nominal":
            words = sorted({str(rating.label) for rating in self.ratings.values()})
            scale = replace(scale, categories=tuple(words))
        raters = sorted({rating.rater for rating in self.ratings.values()})
        return Card(
            name=self.name,
            scale=scale,
            version="1",
            licence=self.table.licence or UNKNOWN_LICENCE,
            source=self.table.source,
            made_by=command,
            labels_by="people",
            raters={rater: RaterCard(who=self._who(rater)) for rater in raters},
            explained=self.explained,
        )

    def _who(self, rater: str) -> str:
        file = self.table.name
        if rater == GOLD and self.columns.gold_label is not None:
            return f"the adjudicated label: column {self.columns.gold_label} of {file}"
        if self.columns.rater is not None:
            return f"{rater} in column {self.columns.rater} of {file}"
        return f"column {rater} of {file}"

    def notes(self) -> list[str]:
        """Maps that no cell asked for: likely a slip of the pen."""
        unused = [f"{cell}={to}" for cell, to in self.mapping.items() if cell not in self._mapped]
        return [f"--map {text}: no label cell holds that" for text in unused]


def _difference(first: Item, second: Item) -> str:
    fields = ("group", "question", "answer", "reference_answers", "system")
    return ", ".join(name for name in fields if getattr(first, name) != getattr(second, name))
