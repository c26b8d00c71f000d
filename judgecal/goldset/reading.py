"""What the rows of tables say: items, and the ratings that people gave them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from judgecal.goldset.card import Card, RaterCard
from judgecal.goldset.columns import Columns
from judgecal.goldset.gold_set import GOLD
from judgecal.goldset.label_cells import missing_notes, number_in, read_label, says_nothing
from judgecal.goldset.scale_fit import NARROW, LabelNumbers, narrow_labels
from judgecal.records import Item, Rating
from judgecal.scale import Label, Scale
from judgecal.tables import Row, Table

UNKNOWN_LICENCE = "unknown: see the source"
"""What a card says of the licence where the source does not tell."""


def percent(value: float) -> float:
    """0.07 * 100 is 7.000000000000001 in floating point; the label is 7."""
    return round(value, 9)


class Reading:
    """What the rows of a table say: items by id, ratings by item id and rater, both in the order of the rows.

    `problems`: each with its file and line; items and ratings are whole only where there is none. `remarks`: what else
    the set's owner should know.
    """

    def __init__(self, table: Table, columns: Columns, *, name: str, scale: Scale, mapping: Mapping[str, str]) -> None:
        self.table, self.columns, self.name = table, columns, name
        self.scale, self.mapping = scale, mapping
        self.items: dict[str, Item] = {}
        self.ratings: dict[tuple[str, str], Rating] = {}
        self.problems: list[str] = []
        self.remarks: list[str] = []
        self._labelled = table  # where the labels stand
        self._lines: dict[str, int] = {}  # by item id: the line, or the row, where it first stands
        self._rated: dict[tuple[str, str], int] = {}
        self._ids: dict[tuple[str | None, ...], str] = {}
        self._numbers = LabelNumbers(scale)
        self._missing: Counter[str] = Counter()  # cells that say that there is no label
        self.explained: dict[str, str] = {}  # findings of `gold check` that may stand
        self._mapped: set[str] = set()

    def read(self, ratings: Table) -> None:
        """Read every row; the problems of all of them are in `problems`. `ratings` is the same table where the labels
        stand in it; another one names the items by their ids.
        """
        self._labelled = ratings
        apart = ratings is not self.table
        for row in self.table.rows:
            item_id = self._read_item(row, shared=self.columns.rater is not None and not apart)
            if not apart:
                self._read_labels(row, item_id)
        if apart:
            self._read_apart(ratings)
        labels = ", ".join(dict.fromkeys((*self.columns.labels, self.columns.gold_label or "")))
        if labels and not self.ratings and not self.problems:
            self.problems.append(f"{ratings.top}: no row has a label in {labels.rstrip(', ')}: fill some in")

    def _read_apart(self, ratings: Table) -> None:
        column, unmatched = str(self.columns.item), 0
        for row in ratings.rows:
            item_id = row.cells[column].strip()
            unmatched += item_id not in self.items
            if item_id in self.items:
                self._read_labels(row, item_id)
        if unmatched == len(ratings.rows):
            self.problems.append(f"{ratings.where}: no value of column {column} is the id of an item")
        elif unmatched:
            self.remarks.append(f"{unmatched:,} rows of {ratings.name} name no item of the set")

    def hold_to_scale(self, *, force: bool) -> None:
        """Tell the scale that would fit, where many labels are off theirs or all lie in a small part of it.

        The second is for the owner to decide: with `force` the card says so.
        """
        if better := self._numbers.better():
            self.problems.insert(0, f"{self._labelled.top}: {better}")
        labels = [rating.label for rating in self.ratings.values() if isinstance(rating.label, float)]
        narrow = narrow_labels(labels, self.scale)
        if narrow and (force or self.scale.from_fraction):
            self.explained[NARROW] = "the import was told that the scale is right" if force else "they are fractions"
        elif narrow:
            self.problems.append(f"{self._labelled.top}: {narrow}: give --scale so, or --force if it is right as it is")

    def _read_item(self, row: Row, *, shared: bool) -> str:
        """The id of a row's item; `shared`: whether several rows may be of one."""
        where = self.table.at(row)
        item = self.columns.read_item(row, where, item_id="", problems=self.problems)
        item_id = self._item_id(row, item, shared=shared)
        item = replace(item, item_id=item_id, group=item.group or item_id)
        if not item.item_id:
            self.problems.append(f"{where}: column {self.columns.item!r}: the item id is empty: fill it in")
            return ""
        first = self.items.setdefault(item.item_id, item)
        line = self._lines.setdefault(item.item_id, row.line)
        if line == row.line:
            return item.item_id
        if not shared:
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

    def _item_id(self, row: Row, item: Item, *, shared: bool) -> str:
        if self.columns.item is not None:
            return row.cells[self.columns.item].strip()
        number = f"{self.name}-{len(self.items) + 1:05d}"
        if not shared:
            return number
        texts = [context.text for context in item.contexts]
        key = (item.group, item.question, item.answer, item.system, *texts, *item.fields.values())
        return self._ids.setdefault(key, number)

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
            self.problems.append(f"{self._labelled.at(row)}: column {column!r}: no rater for this label: fill it in")
        elif rater == GOLD and self.columns.gold_label is not None:
            self.problems.append(
                f"{self._labelled.at(row)}: column {column!r}: the rater {GOLD!r}, and --gold-label gives that one "
                "already: leave one out"
            )
        elif rater:
            self._rate(row, item_id, column=label, rater=rater)

    def _rate(self, row: Row, item_id: str, *, column: str, rater: str) -> None:
        label = self._label(row, column)
        if label is None or not item_id:
            return
        first = self._rated.setdefault((item_id, rater), row.line)
        noted = self.columns.note_of(column)
        note = None if noted is None else row.cells[noted].strip() or None
        old = self.ratings.setdefault((item_id, rater), Rating(item_id, rater, label, note))
        if first == row.line or (column == self.columns.gold_label and old.label == label):
            return
        if self.columns.rater is not None:  # else the item's second row is reported already
            self.problems.append(
                f"{self._labelled.at(row)}: a second label of {rater!r} for item {item_id!r}, the first is in "
                f"{self._labelled.number(first)}: keep one"
            )

    def _label(self, row: Row, column: str) -> Label | None:
        cell = row.cells[column].strip()
        if cell in self.mapping:
            self._mapped.add(cell)
            cell = self.mapping[cell].strip()
        if not cell or says_nothing(cell, self.scale):
            self._missing.update([cell] if cell else [])
            return None
        try:
            label = read_label(cell, self.scale)
        except (ValueError, OverflowError) as error:
            self._numbers.add(number_in(cell), fits=False)
            self.problems.append(
                f"{self._labelled.at(row)}: column {column!r}: {error}: mend the cell, or give --map FROM=TO for it"
            )
            return None
        self._numbers.add(number_in(cell), fits=True)
        return percent(label) if self.scale.from_fraction and isinstance(label, float) else label

    def card(self, command: str) -> Card:
        """What is known of the set: where it was read from, and how."""
        scale = replace(self.scale, from_fraction=False)
        if scale.kind == "nominal":
            words = sorted({str(rating.label) for rating in self.ratings.values() if rating.label is not None})
            scale = replace(scale, categories=tuple(words))
        raters = sorted({rating.rater for rating in self.ratings.values()})
        return Card(
            name=self.name,
            scale=scale,
            version="1",
            licence=self.table.licence or UNKNOWN_LICENCE,
            source=self.table.source,
            made_by=command,
            labels_by="people" if self.ratings else "unknown",
            raters={rater: RaterCard(who=self._who(rater)) for rater in raters},
            explained=self.explained,
        )

    def _who(self, rater: str) -> str:
        file = self._labelled.name
        if rater == GOLD and self.columns.gold_label is not None:
            return f"the adjudicated label: column {self.columns.gold_label} of {file}"
        if self.columns.rater is not None:
            return f"{rater} in column {self.columns.rater} of {file}"
        return f"column {rater} of {file}"

    def notes(self) -> list[str]:
        """The remarks, labels that are missing by a word, and maps that no cell asked for: likely a slip of the pen."""
        unused = [f"{cell}={to}" for cell, to in self.mapping.items() if cell not in self._mapped]
        return [
            *self.remarks,
            *missing_notes(self._missing),
            *(f"--map {text}: no label cell holds that" for text in unused),
        ]


def _difference(first: Item, second: Item) -> str:
    fields = (
        "group",
        "question",
        "answer",
        "reference_answers",
        "system",
        "contexts",
        "conversation",
        "fields",
        "tags",
    )
    return ", ".join(name for name in fields if getattr(first, name) != getattr(second, name))
