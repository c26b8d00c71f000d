"""What the rows of a table say: items, people's ratings and judges' verdicts.

The rows are read once, and written as they are read; no text of theirs is held.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from judgecal.goldset.card import SPLITS, UNKNOWN_LICENCE, Card, RaterCard
from judgecal.goldset.gold_set import SplitCounts, common_label
from judgecal.goldset.import_tables import JUDGE, VERDICT, Stream
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
from judgecal.goldset.write import Draft, item_row, rating_row
from judgecal.records import Rating
from judgecal.scale import Label
from judgecal.tables import Row
from judgecal.tables.columns import GOLD, Columns

_NAMED = 3  # rows of many
_CELLS = 1024  # different label cells, of which what they mean is not read again
_COMPARED = (
    "group", "question", "answer", "reference_answers", "system", "contexts", "conversation", "fields",
    "tags", "pair",
)  # fmt: skip


@dataclass(slots=True)
class _ReadItem:
    item_id: str
    line: int  # where it first stands
    parts: tuple[int, ...]  # where several rows may be of one item: a hash of each part that they share
    labels: dict[str, tuple[Label, int]] = field(default_factory=dict)  # by rater, with the line


class ImportSession:
    """What the rows of a table say: items, and ratings by item and rater, written into a draft in the order
    of the rows as long as nothing is wrong; without a draft nothing is written.

    `problems`: each with its file and line; the set is whole only where there is none.
    """

    def __init__(
        self, table: Stream, columns: Columns, card: Card, mapping: LabelMap, draft: Draft | None
    ) -> None:
        self.table, self.columns, self.mapping = table, columns, mapping
        self.name, self.scale, self._splits, self._draft = card.name, card.scale, card.splits, draft
        self.problems = table.problems
        self.judges: Counter[str] = Counter()  # of the columns of verdicts
        self._verdicts: set[str] = set()  # different ones of pairs
        self._explained: dict[str, str] = {}  # findings of `gold check` that may stand
        self._n_of_raters: Counter[str] = Counter()
        self._shared = columns.rater is not None  # several rows may be of one item
        self._items: dict[Hashable, _ReadItem] = {}  # by its id, by a hash of its texts, or by its row
        self._split_of: dict[bytes, str] = {}  # by a hash of the question
        self._n_items: Counter[str] = Counter()  # by split
        self._numbers = LabelNumbers(self.scale)
        self._missing: Counter[str] = Counter()  # cells that say that there is no label
        self._mapped: set[str] = set()
        self._first_of: dict[int, int] = {}  # the line of the first item with some texts, by their hash
        self._n_repeated, self._repeated = 0, list[str]()  # rows with the texts of an earlier one
        self._read_cell = lru_cache(maxsize=_CELLS)(self._label_of)

    def read(self, *, force: bool) -> None:
        """Read every row; `force` takes labels that use a small part of their scale, and the card says so."""
        top = self.table.top
        for row in self.table.rows:
            item = self._read_item(row)
            for column in self.columns.verdicts:
                self._read_verdict(row, item, column)
            self._read_labels(row, item)
        labels = ", ".join(dict.fromkeys((*self.columns.labels, self.columns.gold_label or "")))
        if labels and not self._n_of_raters and not self.problems:
            self.problems.append(f"{top}: no row has a label in {labels.rstrip(', ')}: fill some in")
        if better := self._numbers.better():
            self.problems.insert(0, f"{top}: {better}")
        if mixed := self._numbers.mixed():
            self.problems.append(f"{top}: {mixed}")
        given = (label for item in self._items.values() for label, _ in item.labels.values())
        narrow = narrow_labels([float(label) for label in given] if self.scale.numeric else [], self.scale)
        if narrow and (force or self.scale.from_fraction):
            why = "you said that the scale is right" if force else "they are fractions"
            self._explained[NARROW] = why
        elif narrow:
            self.problems.append(f"{top}: {narrow}: give that --scale, or --force if the scale is right")

    def _read_verdict(self, row: Row, item: _ReadItem, column: str) -> None:
        """Write what a judge's column says of an item; an empty cell is a judgement without a verdict."""
        cell = row.cells[column].strip()
        self._mapped |= {cell} & self.mapping.keys()
        cell = self.mapping.get(cell, cell).strip()
        verdict = None if not cell or says_nothing(cell, self.scale) else typed(cell)
        self.judges[column] += 1
        self._verdicts |= {verdict} if verdict and self.columns.pairs else set()
        if self._draft is not None and item.item_id:
            self._draft.add_judgement({"item_id": item.item_id, JUDGE: column, VERDICT: verdict})

    def counts(self) -> dict[str, Any]:
        """How many items, questions and ratings there are, by the names that `Imported` has for it."""
        groups = Counter(self._split_of.values())
        labelled = sum(
            GOLD in item.labels
            or common_label([label for label, _ in item.labels.values()], self.scale) is not None
            for item in self._items.values()
        )
        return {
            "n_items": len(self._items),
            "n_groups": len(self._split_of),
            "n_ratings": self._n_of_raters.total(),
            "n_labelled": labelled,
            "raters": {**dict.fromkeys(self._without_label(), 0), **dict(sorted(self._n_of_raters.items()))},
            "splits": {split: SplitCounts(self._n_items[split], groups[split]) for split in SPLITS},
        }

    def _without_label(self) -> list[str]:
        columns = self.columns.raters if self.columns.rater is None else ()
        return [column for column in columns if column not in self._n_of_raters]

    def _read_item(self, row: Row) -> _ReadItem:
        """The item of a row, a new one or that of an earlier row; where its id is empty it is not kept."""
        table, column, n_before = self.table, self.columns.item, len(self._items)
        where, before = table.at(row), len(self.problems)
        item_id = f"{self.name}-{n_before + 1:05d}" if column is None else row.cells[column].strip()
        item = self.columns.read_item(row, where, item_id=item_id, problems=self.problems)
        if not item_id:
            self.problems.append(f"{where}: column {column!r}: the item id is empty: fill it in")
            return _ReadItem("", row.line, ())
        key: Hashable = item_id
        if column is None and self._shared:  # else each row is an item
            texts = [context.text for context in item.contexts]
            shown = (item.group, item.question, item.answer, item.pair, item.system)
            key = _hash(repr((*shown, *texts, *item.fields.values())))
        parts = tuple(hash(repr(getattr(item, name))) for name in _COMPARED) if self._shared else ()
        if column is None and not self._shared:
            fields = (*item.fields.items(), *item.contexts, item.pair)
            seen = hash((item.group, item.question, item.answer, item.system, fields))
            if (earlier := self._first_of.setdefault(seen, row.line)) != row.line:
                self._n_repeated += 1
                if len(self._repeated) < _NAMED:
                    self._repeated.append(f"{table.number(row.line)} is {table.number(earlier)}")
        known = self._items.setdefault(key, _ReadItem(item_id, row.line, parts))
        if len(self._items) > n_before:
            item = item if item.group else replace(item, group=item_id)
            group = _hash(item.group)
            if group not in self._split_of:
                self._split_of[group] = self._splits.of(item.group)
            self._n_items[self._split_of[group]] += 1
            if len(self.problems) == before:
                line = item_row(item)
                read_item(line, where, self.problems)  # held against the format, as whoever loads it will
                if self._draft is not None and not self.problems:
                    self._draft.add_item(line)
        elif known.line != row.line:
            first = table.number(known.line)
            differ = [name for name, a, b in zip(_COMPARED, known.parts, parts, strict=False) if a != b]
            if not self._shared:
                self.problems.append(
                    f"{where}: item {known.item_id!r} is in {first} already: ids must differ "
                    "(several rows may share an item only with --col rater=)"
                )
            elif differ:
                self.problems.append(
                    f"{where}: item {known.item_id!r} has another {', '.join(differ)} than in "
                    f"{first}: rows of one item must have the same texts"
                )
        return known

    def _read_labels(self, row: Row, item: _ReadItem) -> None:
        columns = self.columns
        if columns.rater is None:
            for column in columns.raters:
                self._rate(row, item, column=column, rater=column)
        else:
            rater, label = row.cells[columns.rater].strip(), columns.labels[0]
            where = f"{self.table.at(row)}: column {columns.rater!r}"
            if not rater and row.cells[label].strip():
                self.problems.append(f"{where}: no rater for this label: fill it in")
            elif rater == GOLD and columns.gold_label is not None:
                self.problems.append(
                    f"{where}: the rater {GOLD!r}, and --col gold= gives that one already: leave one out"
                )
            elif rater:
                self._rate(row, item, column=label, rater=rater)
        if columns.gold_label is not None:
            self._rate(row, item, column=columns.gold_label, rater=GOLD)

    def _rate(self, row: Row, item: _ReadItem, *, column: str, rater: str) -> None:
        """Take a rating and write it; the second one of a rater must be the first one again."""
        where, cell = self.table.at(row), row.cells[column].strip()
        if cell in self.mapping:
            self._mapped.add(cell)
            cell = self.mapping[cell].strip()
        try:
            label, number = self._read_cell(cell)
        except (ValueError, OverflowError) as error:
            self._numbers.add(number_in(cell), fits=False)
            self.problems.append(
                f"{where}: column {column!r}: {error}: fix the cell, or give {map_for(cell, self.scale)}"
            )
            return
        if label is None:
            self._missing.update([cell] if cell else [])
            return
        self._numbers.add(number, fits=True, signed=cell.endswith("%"))
        if not item.item_id:
            return
        known = rater in item.labels
        first_label, first_line = item.labels.setdefault(rater, (label, row.line))
        if known:  # the adjudicated label may stand in each row of an item
            if self._shared and (first_label != label or column != self.columns.gold_label):
                self.problems.append(
                    f"{where}: a second label of {rater!r} for item {item.item_id!r}, the first is in "
                    f"{self.table.number(first_line)}: keep one"
                )
            return
        note = self.columns.note_of(column)
        rating = Rating(item.item_id, rater, label, None if note is None else row.cells[note].strip() or None)
        if rater not in self._n_of_raters:
            read_rating(rating_row(rating), where, scale=None, problems=self.problems)
        self._n_of_raters[rater] += 1
        if self._draft is not None and not self.problems:
            self._draft.add_rating(rating)

    def _label_of(self, cell: str) -> tuple[Label | None, float | None]:
        """The label that a cell holds, None where it says there is none, and its number; or ValueError."""
        if not cell or says_nothing(cell, self.scale):
            return None, None
        label = read_label(cell, self.scale)
        rounded = percent(label) if self.scale.from_fraction and isinstance(label, float) else label
        return rounded, number_in(cell)

    def card(self, command: str) -> Card:
        """What is known of the set: where it was read from, and how."""
        scale, source, file = self.scale, self.table.source, self.table.name
        if scale.kind == "nominal":
            words = {str(label) for item in self._items.values() for label, _ in item.labels.values()}
            if self.columns.pairs:  # a tie is a label where somebody may say it, a judge too
                words |= self._verdicts & {*PAIR_LABELS} | {*PAIR_LABELS[: 2 if words else 3]}
            scale = replace(scale, categories=tuple(sorted(words)))
        raters = {rater: f"column {rater} of {file}" for rater in sorted(self._n_of_raters)}
        if self.columns.rater is not None:
            raters = {rater: f"{rater} in column {self.columns.rater} of {file}" for rater in raters}
        if self.columns.gold_label is not None and GOLD in raters:
            raters[GOLD] = f"the adjudicated label: column {self.columns.gold_label} of {file}"
        return Card(
            name=self.name,
            scale=replace(scale, from_fraction=False),
            version="1",
            licence=source.licence or UNKNOWN_LICENCE,
            source=source.source,
            made_by=command,
            labels_by="people" if raters else "unknown",
            raters={rater: RaterCard(who) for rater, who in raters.items()},
            splits=self._splits,
            explained=self._explained,
        )

    def notes(self) -> list[str]:
        """Labels missing by a word, repeated rows, and maps that no cell needs: likely slips of the pen."""
        return [
            *missing_notes(self._missing),
            *[
                f"rows with the texts of an earlier one, which count again: {self._n_repeated:,} "
                f"({', '.join(self._repeated)}{' ...' * (self._n_repeated > _NAMED)})"
            ][: self._n_repeated],
            *(f"no row has a label in column {column}" for column in self._without_label()),
            *(f"--map {entry}: no label cell holds that" for entry in self.mapping.unused(self._mapped)),
        ]


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
