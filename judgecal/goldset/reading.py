"""The rows of a table as they become items and ratings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from judgecal.goldset.card import Card, RaterCard
from judgecal.goldset.columns import Columns
from judgecal.goldset.gold_set import GOLD
from judgecal.records import Item, Rating
from judgecal.scale import Label, Scale
from judgecal.tables import Row, Table

__all__ = ["UNKNOWN_LICENCE", "Reading", "percent"]

UNKNOWN_LICENCE = "unknown: see the source"
"""What a card says of the licence where the source does not tell."""


def percent(value: float) -> float:
    """0.07 * 100 is 7.000000000000001 in floating point; the label is 7."""
    return round(value, 9)


class Reading:
    """What the rows of one table say, and what is wrong with them.

    Attributes:
        items: by item id, in the order of their first rows.
        ratings: by item id and rater, in the order of the rows.
        problems: each with its file and line; items and ratings are whole only where this is empty.
    """

    def __init__(
        self, table: Table, columns: Columns, *, name: str, scale: Scale, mapping: Mapping[str, str]
    ) -> None:
        self.table, self.columns, self.name = table, columns, name
        self.scale, self.mapping = scale, mapping
        self.items: dict[str, Item] = {}
        self.ratings: dict[tuple[str, str], Rating] = {}
        self.problems: list[str] = []
        self._lines: dict[str, int] = {}  # by item id: the line, or the row, where it first stands
        self._rated: dict[tuple[str, str], int] = {}
        self._ids: dict[tuple[str | None, ...], str] = {}
        self._mapped: set[str] = set()

    def read(self) -> None:
        """Read every row; the problems of all of them are in `problems`."""
        for row in self.table.rows:
            item_id = self._read_item(row)
            self._read_labels(row, item_id)
        if not self.ratings and not self.problems:
            labels = ", ".join(dict.fromkeys((*self.columns.labels, self.columns.gold_label or "")))
            self.problems.append(
                f"{self.table.top}: no row has a label in {labels.rstrip(', ')}: fill some in"
            )

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
            self.problems.append(
                f"{self.table.at(row)}: column {column!r}: no rater for this label: fill it in"
            )
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
        try:
            label = self.scale.read(cell)
        except (ValueError, OverflowError) as error:
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
