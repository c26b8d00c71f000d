"""What the rows of tables say: items, and the ratings that people gave them.

The rows are read once, and written as they are read: of each an id and some numbers are held, and never a
text.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any

from judgecal.goldset.card import SPLITS, Card, RaterCard, Splits
from judgecal.goldset.gold_set import SplitCounts, common_label
from judgecal.goldset.label_cells import missing_notes, number_in, read_label, says_nothing
from judgecal.goldset.reshape import Problems, Stream
from judgecal.goldset.rows import item_row, rating_row, read_item, read_rating
from judgecal.goldset.scale_fit import NARROW, LabelNumbers, narrow_labels
from judgecal.goldset.write import Draft
from judgecal.records import Item, Rating
from judgecal.scale import Label, Scale
from judgecal.tables import Row
from judgecal.tables.columns import GOLD, Columns

_CELLS = 1024  # different label cells, of which what they mean is not read again
UNKNOWN_LICENCE = "unknown: see the source"
"""What a card says of the licence where the source does not tell."""


def percent(value: float) -> float:
    """0.07 * 100 is 7.000000000000001 in floating point; the label is 7."""
    return round(value, 9)


class _Ratings:
    """What is held of the ratings that were taken: numbers, in their order."""

    def __init__(self) -> None:
        self.items, self.raters, self.lines, self.labels = array("Q"), array("Q"), array("Q"), array("d")
        self.names: dict[str, int] = {}  # of the raters
        self.words: dict[str, int] = {}  # the labels of a nominal scale
        self._places: dict[int, int] = {}

    def first(self, item: int, rater: str) -> int | None:
        """The place of what a rater said of an item before; None where this is the first, which takes its
        place now."""
        key = item << 32 | self.names.get(rater, len(self.names))
        place = self._places.setdefault(key, len(self.labels))
        return None if place == len(self.labels) else place

    def add(self, item: int, rater: str, label: Label, *, line: int) -> None:
        self.items.append(item)
        self.raters.append(self.names.setdefault(rater, len(self.names)))
        self.lines.append(line)
        self.labels.append(self.number(label))

    def number(self, label: Label) -> float:
        """The label; a number in place of a word."""
        return label if isinstance(label, float) else float(self.words.setdefault(label, len(self.words)))

    def n_labelled(self, scale: Scale) -> int:
        """How many items have a gold label."""
        gold, found = self.names.get(GOLD), 0
        order = sorted(range(len(self.items)), key=self.items.__getitem__)
        for _, places in groupby(order, key=self.items.__getitem__):
            own = list(places)
            adjudicated = any(self.raters[place] == gold for place in own)
            found += adjudicated or common_label([self.labels[place] for place in own], scale) is not None
        return found


_NO_ITEM = ("", -1)
_COMPARED = (
    "group", "question", "answer", "reference_answers", "system", "contexts", "conversation", "fields", "tags",
)  # fmt: skip


class Reading:
    """What the rows of a table say: items, and ratings by item and rater, written in the order of the rows.

    `problems`: each with its file and line; the set is whole only where there is none. `remarks`: what else
    its owner should know. `splits` say which split a question falls in.
    """

    def __init__(
        self,
        table: Stream,
        columns: Columns,
        *,
        name: str,
        scale: Scale,
        mapping: Mapping[str, str],
        splits: Splits,
    ) -> None:
        self.table, self.columns, self.name = table, columns, name
        self.scale, self.mapping, self._splits = scale, mapping, splits
        self.problems: Problems = table.problems
        self.remarks: list[str] = []
        self.explained: dict[str, str] = {}  # findings of `gold check` that may stand
        self._labelled = table  # where the labels stand
        self._draft: Draft | None = None
        self._shared = self._apart = False
        self._index: dict[str | bytes, int] = {}  # the place of an item, by its id or by a hash of its texts
        self._lines = array("Q")  # by that place: the line, or the row, where it first stands
        self._texts = array("q")  # and, where several rows may be of one item, a hash of each part of it
        self._groups: dict[bytes, str] = {}  # the split of each question
        self._n_items = Counter[str]()  # by split
        self._given = _Ratings()
        self._numbers = LabelNumbers(scale)
        self.skipped: Counter[str] = Counter()  # rows of a file of ratings that gave none, by the reason
        self._missing: Counter[str] = Counter()  # cells that say that there is no label
        self._mapped: set[str] = set()
        self._read_cell = lru_cache(maxsize=_CELLS)(self._label_of)

    def read(self, ratings: Stream, draft: Draft | None, *, force: bool) -> None:
        """Read every row, and write what it says into the draft as long as nothing is wrong; None writes
        nothing.

        `ratings` is the same table where the labels stand in it; another one names the items by their ids.
        `force` takes labels that use a small part of their scale, and the card says so.
        """
        self._labelled, self._draft = ratings, draft
        self._apart = ratings is not self.table
        self._shared = self.columns.rater is not None and not self._apart
        for row in self.table.rows:
            item = self._read_item(row)
            if not self._apart:
                self._read_labels(row, item)
        if self._apart:
            self._read_apart(ratings)
        labels = ", ".join(dict.fromkeys((*self.columns.labels, self.columns.gold_label or "")))
        if labels and not self.n_ratings and not self.problems:
            self.problems.append(f"{ratings.top}: no row has a label in {labels.rstrip(', ')}: fill some in")
        self._hold_to_scale(force=force)

    def _read_apart(self, ratings: Stream) -> None:
        count = unmatched = 0
        for row in ratings.rows:
            count += 1
            item_id = row.cells[str(self.columns.item)].strip()
            if self.holds(item_id):
                self._read_labels(row, (item_id, self._index[item_id]))
            else:
                unmatched += 1
        if count and unmatched == count:
            self.problems.append(
                f"{ratings.where}: no value of column {self.columns.item} is the id of an item"
            )
        elif unmatched:
            self.remarks.append(f"{unmatched:,} rows of {ratings.name} name no item of the set")
            self.skipped["a row of --ratings that names no item of the set"] = unmatched

    def holds(self, item_id: str) -> bool:
        """Whether there is an item of this id, where a column gives the ids."""
        return item_id in self._index

    @property
    def n_items(self) -> int:
        """How many items were read."""
        return len(self._lines)

    @property
    def n_ratings(self) -> int:
        """How many ratings they have, `gold`'s among them."""
        return len(self._given.labels)

    @cached_property
    def n_labelled(self) -> int:
        """How many items have a gold label."""
        return self._given.n_labelled(self.scale)

    def counts(self) -> dict[str, Any]:
        """How many items, questions and ratings there are, and what each split and rater has of them, by the
        names that `Imported` has for it.
        """
        groups = Counter(self._groups.values())
        return {
            "n_items": self.n_items,
            "n_groups": len(self._groups),
            "n_ratings": self.n_ratings,
            "raters": {**dict.fromkeys(self._empty, 0), **self.raters()},
            "splits": {split: SplitCounts(self._n_items[split], groups[split]) for split in SPLITS},
        }

    @property
    def _empty(self) -> list[str]:
        """The columns of raters in which no row has a label."""
        columns = self.columns.raters if self.columns.rater is None else ()
        return [column for column in columns if column not in self._given.names]

    def raters(self) -> dict[str, int]:
        """How many ratings each rater gave, by name."""
        counts = Counter(self._given.raters)
        return {rater: counts[code] for rater, code in sorted(self._given.names.items())}

    def _hold_to_scale(self, *, force: bool) -> None:
        """Tell the scale that would fit, where many labels are off theirs or all lie in a small part of
        it."""
        if better := self._numbers.better():
            self.problems.insert(0, f"{self._labelled.top}: {better}")
        if mixed := self._numbers.mixed():
            self.problems.append(f"{self._labelled.top}: {mixed}")
        narrow = narrow_labels(self._given.labels, self.scale)
        if narrow and (force or self.scale.from_fraction):
            self.explained[NARROW] = (
                "the import was told that the scale is right" if force else "they are fractions"
            )
        elif narrow:
            self.problems.append(
                f"{self._labelled.top}: {narrow}: give --scale so, or --force if it is right as it is"
            )

    def _read_item(self, row: Row) -> tuple[str, int]:
        """The id of a row's item, and its place among the items."""
        where, before, new = self.table.at(row), self.problems.total, len(self._lines)
        column = self.columns.item
        item_id = self._numbered(new) if column is None else row.cells[column].strip()
        item = self.columns.read_item(row, where, item_id=item_id, problems=self.problems)
        if not item_id:
            self.problems.append(f"{where}: column {column!r}: the item id is empty: fill it in")
            return _NO_ITEM
        key = (
            item_id if column is not None else _texts_of(item) if self._shared else None
        )  # else each row is an item
        place = new if key is None else self._index.setdefault(key, new)
        item_id = self._numbered(place) if column is None else item_id
        if item.item_id != item_id or not item.group:
            item = replace(item, item_id=item_id, group=item.group or item_id)
        if place == new:
            self._take(item, row, sound=self.problems.total == before)
        elif self._lines[place] != row.line:
            self._compare(item, place, where)
        return item_id, place

    def _numbered(self, place: int) -> str:
        return f"{self.name}-{place + 1:05d}"

    def _take(self, item: Item, row: Row, *, sound: bool) -> None:
        """Note a new item and write it; where it is `sound` so far, it is held against the format of
        items.jsonl."""
        self._lines.append(row.line)
        if self._shared:
            self._texts.extend(_hashes(item))
        group = _hash(item.group)
        split = self._groups.get(group) or self._groups.setdefault(group, self._splits.of(item.group))
        self._n_items[split] += 1
        if sound:
            line = item_row(item)
            read_item(line, self.table.at(row), self.problems)
            if self._draft is not None and not self.problems:
                self._draft.add_item(line)

    def _compare(self, item: Item, place: int, where: str) -> None:
        """Hold a further row of an item against its first one."""
        first = self.table.number(self._lines[place])
        if not self._shared:
            self.problems.append(
                f"{where}: item {item.item_id!r} stands in {first} already: ids must differ "
                "(several rows may share an item only with --rater)"
            )
            return
        old = self._texts[place * len(_COMPARED) : (place + 1) * len(_COMPARED)]
        differ = [name for name, one, two in zip(_COMPARED, old, _hashes(item), strict=True) if one != two]
        if differ:
            self.problems.append(
                f"{where}: item {item.item_id!r} has another {', '.join(differ)} than in "
                f"{first}: rows of one item must have the same texts"
            )

    def _read_labels(self, row: Row, item: tuple[str, int]) -> None:
        columns = self.columns
        if columns.rater is None:
            for column in columns.raters:
                self._rate(row, item, column=column, rater=column)
        else:
            self._read_named(row, item, columns.rater)
        if columns.gold_label is not None:
            self._rate(row, item, column=columns.gold_label, rater=GOLD)

    def _read_named(self, row: Row, item: tuple[str, int], column: str) -> None:
        rater, label = row.cells[column].strip(), self.columns.labels[0]
        if not rater and row.cells[label].strip():
            self.problems.append(
                f"{self._labelled.at(row)}: column {column!r}: no rater for this label: fill it in"
            )
        elif rater == GOLD and self.columns.gold_label is not None:
            self.problems.append(
                f"{self._labelled.at(row)}: column {column!r}: the rater {GOLD!r}, and --gold-label gives that one "
                "already: leave one out"
            )
        elif rater:
            self._rate(row, item, column=label, rater=rater)

    def _rate(self, row: Row, item: tuple[str, int], *, column: str, rater: str) -> None:
        label, (item_id, place), given = self._label(row, column), item, self._given
        if label is None or place < 0:
            return
        several = (
            self._apart or self.columns.rater is not None
        )  # else an item's second row is a problem already
        first = given.first(place, rater) if several else None
        if first is None:
            self._take_rating(row, item, rater=rater, label=label, note=self.columns.note_of(column))
            return
        line = given.lines[first]
        if given.labels[first] != given.number(label) or (
            line != row.line and column != self.columns.gold_label
        ):
            self.problems.append(
                f"{self._labelled.at(row)}: a second label of {rater!r} for item {item_id!r}, the first is in "
                f"{self._labelled.number(line)}: keep one"
            )

    def _take_rating(
        self, row: Row, item: tuple[str, int], *, rater: str, label: Label, note: str | None
    ) -> None:
        """Note a rating and write it; `note` is the column of what the rater wrote."""
        text = None if note is None else row.cells[note].strip() or None
        rating = Rating(item[0], rater, label, text)
        if rater not in self._given.names:
            read_rating(rating_row(rating), self._labelled.at(row), scale=None, problems=self.problems)
        self._given.add(item[1], rater, label, line=row.line)
        if self._draft is not None and not self.problems:
            self._draft.add_rating(rating)

    def _label(self, row: Row, column: str) -> Label | None:
        cell = row.cells[column].strip()
        if cell in self.mapping:
            self._mapped.add(cell)
            cell = self.mapping[cell].strip()
        try:
            label, number = self._read_cell(cell)
        except (ValueError, OverflowError) as error:
            self._numbers.add(number_in(cell), fits=False)
            self.problems.append(
                f"{self._labelled.at(row)}: column {column!r}: {error}: mend the cell, or give --map FROM=TO for it"
            )
            return None
        if label is None:
            self._missing.update([cell] if cell else [])
            return None
        self._numbers.add(number, fits=True, signed=cell.endswith("%"))
        return label

    def _label_of(self, cell: str) -> tuple[Label | None, float | None]:
        """The label that a cell holds, None where it says that there is none, and its number; ValueError for
        others."""
        if not cell or says_nothing(cell, self.scale):
            return None, None
        label = read_label(cell, self.scale)
        rounded = percent(label) if self.scale.from_fraction and isinstance(label, float) else label
        return rounded, number_in(cell)

    def card(self, command: str) -> Card:
        """What is known of the set: where it was read from, and how."""
        scale = replace(self.scale, from_fraction=False)
        if scale.kind == "nominal":
            scale = replace(scale, categories=tuple(sorted(self._given.words)))
        return Card(
            name=self.name,
            scale=scale,
            version="1",
            licence=self.table.source.licence or UNKNOWN_LICENCE,
            source=self.table.source.source,
            made_by=command,
            labels_by="people" if self.n_ratings else "unknown",
            raters={rater: RaterCard(who=self._who(rater)) for rater in self.raters()},
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
        """The remarks, labels that are missing by a word, and maps that no cell asked for: likely a slip of
        the pen."""
        unused = [f"{cell}={to}" for cell, to in self.mapping.items() if cell not in self._mapped]
        return [
            *self.remarks,
            *missing_notes(self._missing),
            *(f"no row has a label in column {column}" for column in self._empty),
            *(f"--map {text}: no label cell holds that" for text in unused),
        ]


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _texts_of(item: Item) -> bytes:
    """What makes items one that have no id."""
    texts = [context.text for context in item.contexts]
    return _hash(repr((item.group, item.question, item.answer, item.system, *texts, *item.fields.values())))


def _hashes(item: Item) -> list[int]:
    """A number for each part of an item that rows of one item share."""
    parts = (getattr(item, name) for name in _COMPARED)
    return [hash(tuple(part.items()) if isinstance(part, Mapping) else part) for part in parts]
