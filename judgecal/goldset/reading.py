"""What the rows of a table say: items, people's ratings and judges' verdicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from judgecal.goldset.card import UNKNOWN_LICENCE, Card, RaterCard, Splits
from judgecal.goldset.labels import (
    NARROW,
    LabelMap,
    LabelNumbers,
    map_for,
    missing_notes,
    narrow_labels,
    number_in,
    percent,
    read_label,
    says_nothing,
    typed,
)
from judgecal.goldset.load import read_item, read_rating
from judgecal.goldset.pairs import PAIR_LABELS
from judgecal.goldset.write import item_row, rating_row
from judgecal.records import Item, Rating
from judgecal.scale import Label, Scale
from judgecal.tables import Row, Table
from judgecal.tables.columns import GOLD, Columns

_NAMED = 3  # rows of many
_CELLS = 1024  # different label cells, of which what they mean is not read again
_COMPARED = (
    "group", "question", "answer", "reference_answers", "system", "contexts", "conversation", "fields",
    "tags", "pair",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _LabelCell:
    """A label as it stands in a row, of an item and by a rater, with the note beside it."""

    line: int
    item_id: str
    rater: str
    column: str
    text: str
    note: str | None


class TableItems:
    """The items of a table, and the cells that hold labels and verdicts: read as labels when their scale is
    known (`rate`). The set is whole only where there are no `problems`.
    """

    def __init__(self, table: Table, columns: Columns, name: str) -> None:
        self.table, self.columns, self.name = table, columns, name
        self._problems: list[tuple[float, str]] = []  # with the line that each is of
        self.ratings: dict[tuple[str, str], Rating] = {}  # by item and rater
        self.judgements: list[dict[str, Any]] = []
        self._items: dict[Hashable, tuple[Item, int]] = {}  # with the line where it first stands
        self._label_cells: list[_LabelCell] = []
        self._verdict_cells: list[tuple[str, str, str]] = []  # item, column, text
        self.notes: list[str] = []  # what the set's owner should know; whole once labels are read
        self._explained: dict[str, str] = {}  # findings of `gold check` that may stand
        firsts: dict[Hashable, int] = {}  # the line of the first row with some texts
        repeated: list[str] = []
        for row in table.rows:
            item = self._read_item(row)
            self._verdict_cells += [
                (item.item_id, column, row.cells[column].strip()) for column in columns.verdicts
            ]
            self._label_cells += self._cells_of(row, item.item_id)
            texts = (item.group, item.question, item.answer, item.system, *item.fields.items(), item.pair)
            first = firsts.setdefault((*texts, *item.contexts), row.line)
            if first != row.line and columns.item is None and columns.rater is None:
                repeated.append(f"{table.number(row.line)} is {table.number(first)}")
        if repeated:
            more = " ..." * (len(repeated) > _NAMED)
            self.notes.append(
                f"rows with the texts of an earlier one, which count again: {len(repeated):,} "
                f"({', '.join(repeated[:_NAMED])}{more})"
            )

    @property
    def problems(self) -> list[str]:
        """What is wrong, each with its file and line, in the order of the lines."""
        return [problem for _, problem in sorted(self._problems, key=lambda problem: problem[0])]

    @property
    def items(self) -> tuple[Item, ...]:
        """The items in the order of the rows."""
        return tuple(item for item, _ in self._items.values())

    @property
    def label_texts(self) -> set[str]:
        """The different texts of label cells."""
        return {cell.text for cell in self._label_cells}

    @property
    def verdict_texts(self) -> dict[str, set[str]]:
        """The different texts of each column of verdicts."""
        texts: dict[str, set[str]] = {column: set() for column in self.columns.verdicts}
        for _, column, text in self._verdict_cells:
            texts[column].add(text)
        return texts

    def _read_item(self, row: Row) -> Item:
        """The item of a row, a new one or that of an earlier row."""
        table, columns = self.table, self.columns
        where, column, n_before = table.at(row), columns.item, len(self._items)
        problems: list[str] = []
        item_id = f"{self.name}-{n_before + 1:05d}" if column is None else row.cells[column].strip()
        item = columns.read_item(row, where, item_id=item_id, problems=problems)
        if not item_id:
            problems.append(f"{where}: column {column!r}: the item id is empty: fill it in")
            self._problems += [(row.line, problem) for problem in problems]
            return item
        key: Hashable = item_id
        if column is None and columns.rater is not None:  # else each row is an item
            texts = [context.text for context in item.contexts]
            texts += [item.group, item.question, item.answer, *item.fields.values()]
            key = (item.system, item.pair, *texts)
        stored, line = self._items.setdefault(key, (_grouped(item, item_id), row.line))
        if len(self._items) > n_before:
            if not problems:  # held against the format, as whoever loads it will
                read_item(item_row(stored), where, problems)
            self._problems += [(row.line, problem) for problem in problems]
            return stored
        differ = [
            name
            for name in _COMPARED
            if getattr(stored, name) != getattr(_grouped(item, stored.item_id), name)
        ]
        if columns.rater is None:
            problems.append(
                f"{where}: item {item_id!r} is in {table.number(line)} already: ids must differ "
                "(several rows may share an item only with --col rater=)"
            )
        elif differ:
            problems.append(
                f"{where}: item {stored.item_id!r} has another {', '.join(differ)} than in "
                f"{table.number(line)}: rows of one item must have the same texts"
            )
        self._problems += [(row.line, problem) for problem in problems]
        return stored

    def _cells_of(self, row: Row, item_id: str) -> Iterator[_LabelCell]:
        """The label cells of a row."""
        columns = self.columns

        def cell(rater: str, column: str) -> _LabelCell:
            note = columns.note_of(column)
            beside = None if note is None else row.cells[note].strip() or None
            return _LabelCell(row.line, item_id, rater, column, row.cells[column].strip(), beside)

        if columns.rater is None:
            yield from (cell(column, column) for column in columns.raters)
        else:
            rater, label = row.cells[columns.rater].strip(), columns.labels[0]
            problem = None
            if not rater and row.cells[label].strip():
                problem = "no rater for this label: fill it in"
            elif rater == GOLD and columns.gold_label is not None:
                problem = f"the rater {GOLD!r}, and --col gold= gives that one already: leave one out"
            elif rater:
                yield cell(rater, label)
            if problem is not None:
                where = f"{self.table.at(row)}: column {columns.rater!r}"
                self._problems.append((row.line, f"{where}: {problem}"))
        if columns.gold_label is not None:
            yield cell(GOLD, columns.gold_label)

    def rate(self, scale: Scale, mapping: Mapping[str, str], *, force: bool) -> None:
        """Read labels and verdicts on a scale; `mapping` rewrites their cells before. `force` takes labels
        that use a small part of their scale, and the card says so.
        """
        top, numbers, missing, mapped = self.table.top, LabelNumbers(scale), Counter[str](), set[str]()
        maps, lines, raters = LabelMap(mapping), dict[tuple[str, str], int](), set[str]()

        @lru_cache(maxsize=_CELLS)
        def label_of(text: str) -> Label | None:
            label = None if not text or says_nothing(text, scale) else read_label(text, scale)
            return percent(label) if scale.from_fraction and isinstance(label, float) else label

        for cell in self._label_cells:
            where, text = self.table.place(cell.line), maps.get(cell.text, cell.text).strip()
            mapped |= {cell.text} & maps.keys()
            try:
                label = label_of(text)
            except (ValueError, OverflowError) as error:
                numbers.add(number_in(text), fits=False)
                mend = f"fix the cell, or give {map_for(text, scale)}"
                self._problems.append((cell.line, f"{where}: column {cell.column!r}: {error}: {mend}"))
                continue
            if label is None:
                missing.update([text] if text else [])
                continue
            numbers.add(number_in(text), fits=True, signed=text.endswith("%"))
            key = (cell.item_id, cell.rater)
            if (first := lines.setdefault(key, cell.line)) == cell.line:
                self.ratings[key] = rating = Rating(*key, label, cell.note)
                if cell.rater not in raters:
                    problems: list[str] = []
                    read_rating(rating_row(rating), where, scale=None, problems=problems)
                    self._problems += [(cell.line, problem) for problem in problems]
                    raters.add(cell.rater)
            elif self.columns.rater is not None and (
                self.ratings[key].label != label or cell.column != self.columns.gold_label
            ):  # the adjudicated label may stand in each row of an item
                second = f"a second label of {cell.rater!r} for item {cell.item_id!r}"
                problem = f"{where}: {second}, the first is in {self.table.number(first)}: keep one"
                self._problems.append((cell.line, problem))
        for item_id, column, text in self._verdict_cells:
            mapped |= {text} & maps.keys()
            text = maps.get(text, text).strip()
            verdict = None if not text or says_nothing(text, scale) else typed(text)
            self.judgements.append({"item_id": item_id, "judge": column, "verdict": verdict})
        labels = ", ".join(dict.fromkeys((*self.columns.labels, self.columns.gold_label or "")))
        of_all = [numbers.mixed()]
        if labels and not self.ratings and not self._problems:
            of_all.append(f"no row has a label in {labels.rstrip(', ')}: fill some in")
        if better := numbers.better():
            self._problems.append((0, f"{top}: {better}"))
        given = [float(rating.label or 0.0) for rating in self.ratings.values()] if scale.numeric else []
        narrow = narrow_labels(given, scale)
        if narrow and (force or scale.from_fraction):
            self._explained[NARROW] = "you said that the scale is right" if force else "they are fractions"
        elif narrow:
            of_all.append(f"{narrow}: give that --scale, or --force if the scale is right")
        self._problems += [(math.inf, f"{top}: {problem}") for problem in of_all if problem]
        self.notes = [
            *missing_notes(missing),
            *self.notes,
            *(f"no row has a label in column {column}" for column in self.without_label),
            *(f"--map {entry}: no label cell holds that" for entry in maps.unused(mapped)),
        ]

    @property
    def without_label(self) -> list[str]:
        """The columns of raters in which no row has a label."""
        rated = {rating.rater for rating in self.ratings.values()}
        columns = self.columns.raters if self.columns.rater is None else ()
        return [column for column in columns if column not in rated]

    def card(self, scale: Scale, command: str, splits: Splits) -> Card:
        """What is stored of the set: where it was read from, and how."""
        table, columns = self.table, self.columns
        if scale.kind == "nominal":
            words = {str(rating.label) for rating in self.ratings.values()}
            if columns.pairs:  # a tie is a label where somebody may say it, a judge too
                verdicts = {row["verdict"] for row in self.judgements}
                words |= verdicts & {*PAIR_LABELS} | {*PAIR_LABELS[: 2 if words else 3]}
            scale = replace(scale, categories=tuple(sorted(words)))
        raters = sorted({rating.rater for rating in self.ratings.values()})
        who = {rater: f"column {rater} of {table.name}" for rater in raters}
        if columns.rater is not None:
            who = {rater: f"{rater} in column {columns.rater} of {table.name}" for rater in raters}
        if columns.gold_label is not None and GOLD in who:
            who[GOLD] = f"the adjudicated label: column {columns.gold_label} of {table.name}"
        return Card(
            name=self.name,
            scale=replace(scale, from_fraction=False),
            version="1",
            licence=table.licence or UNKNOWN_LICENCE,
            source=table.source,
            made_by=command,
            labels_by="people" if raters else "unknown",
            raters={rater: RaterCard(what) for rater, what in who.items()},
            splits=splits,
            explained=self._explained,
        )


def _grouped(item: Item, item_id: str) -> Item:
    """An item in a group of its own where it has none."""
    return item if item.group else replace(item, group=item_id)
