"""What the rows of tables say: items, people's ratings and judges' verdicts.

The rows are read once, and written as they are read; no text of theirs is held.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from judgecal.goldset.card import SPLITS, UNKNOWN_LICENCE, Card, RaterCard, Splits
from judgecal.goldset.gold_set import JUDGEMENTS, SplitCounts, common_label
from judgecal.goldset.import_tables import JUDGE, KEPT, VERDICT, Problems, Stream
from judgecal.goldset.labels import (
    NARROW,
    LabelNumbers,
    judged_twice,
    missing_notes,
    narrow_labels,
    number_in,
    percent,
    read_label,
    says_nothing,
)
from judgecal.goldset.rows import item_row, rating_row, read_item, read_rating
from judgecal.goldset.write import Draft
from judgecal.records import ITEM_UNIT, Item, Rating
from judgecal.scale import Label, Scale
from judgecal.tables import Row, write_json_lines
from judgecal.tables.columns import GOLD, Columns

_CELLS = 1024  # different label cells, of which what they mean is not read again
_COMPARED = (
    "group", "question", "answer", "reference_answers", "system", "contexts", "conversation", "fields",
    "tags",
)  # fmt: skip


@dataclass(slots=True)
class _ReadItem:
    """What is held of an item that was read."""

    item_id: str
    line: int  # where it first stands
    parts: tuple[int, ...]  # where several rows may be of one item: a hash of each part that they share
    labels: dict[str, tuple[Label, int]] = field(default_factory=dict)  # by rater, with the line


class ImportSession:
    """What the rows of a table say: items, and ratings by item and rater, written in the order of the rows.

    `problems`: each with its file and line; the set is whole only where there is none. `remarks`: what else
    its owner should know. `explained`: findings of `gold check` that may stand. `skipped`: rows of a file of
    ratings that gave none, by the reason. `splits` say which split a question falls in.
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
        self.explained: dict[str, str] = {}
        self.skipped: Counter[str] = Counter()
        self.n_of_raters: Counter[str] = Counter()
        self._labelled = table  # where the labels stand
        self._draft: Draft | None = None
        self._shared = self._apart = False
        self._items: dict[Hashable, _ReadItem] = {}  # by its id, by a hash of its texts, or by its row
        self._split_of: dict[bytes, str] = {}  # by a hash of the question
        self._n_items: Counter[str] = Counter()  # by split
        self._numbers = LabelNumbers(scale)
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
            item = self._items.get(row.cells[str(self.columns.item)].strip())
            if item is None:
                unmatched += 1
            else:
                self._read_labels(row, item)
        if count and unmatched == count:
            self.problems.append(
                f"{ratings.where}: no value of column {self.columns.item} is the id of an item"
            )
        elif unmatched:
            self.remarks.append(f"{unmatched:,} rows of {ratings.name} name no item of the set")
            self.skipped["a row of --ratings that names no item of the set"] = unmatched

    def holds(self, item_id: str) -> bool:
        """Whether there is an item of this id, where a column gives the ids."""
        return item_id in self._items

    @property
    def n_ratings(self) -> int:
        """How many ratings the items have, `gold`'s among them."""
        return self.n_of_raters.total()

    @cached_property
    def n_labelled(self) -> int:
        """How many items have a gold label."""
        return sum(
            GOLD in item.labels
            or common_label([label for label, _ in item.labels.values()], self.scale) is not None
            for item in self._items.values()
        )

    def counts(self) -> dict[str, Any]:
        """How many items, questions and ratings there are, by the names that `Imported` has for it."""
        groups = Counter(self._split_of.values())
        return {
            "n_items": len(self._items),
            "n_groups": len(self._split_of),
            "n_ratings": self.n_ratings,
            "n_labelled": self.n_labelled,
            "raters": {**dict.fromkeys(self._empty, 0), **dict(sorted(self.n_of_raters.items()))},
            "splits": {split: SplitCounts(self._n_items[split], groups[split]) for split in SPLITS},
        }

    @property
    def _empty(self) -> list[str]:
        """The columns of raters in which no row has a label."""
        columns = self.columns.raters if self.columns.rater is None else ()
        return [column for column in columns if column not in self.n_of_raters]

    def _hold_to_scale(self, *, force: bool) -> None:
        """Tell the scale that would fit, where many labels are off theirs or in a small part of it."""
        if better := self._numbers.better():
            self.problems.insert(0, f"{self._labelled.top}: {better}")
        if mixed := self._numbers.mixed():
            self.problems.append(f"{self._labelled.top}: {mixed}")
        given = (label for item in self._items.values() for label, _ in item.labels.values())
        narrow = narrow_labels([float(label) for label in given] if self.scale.numeric else [], self.scale)
        if narrow and (force or self.scale.from_fraction):
            self.explained[NARROW] = (
                "the import was told that the scale is right" if force else "they are fractions"
            )
        elif narrow:
            self.problems.append(
                f"{self._labelled.top}: {narrow}: give --scale so, or --force if it is right as it is"
            )

    def _read_item(self, row: Row) -> _ReadItem:
        """The item of a row, a new one or that of an earlier row; where its id is empty it is not kept."""
        where, before, column = self.table.at(row), self.problems.total, self.columns.item
        n_before = len(self._items)
        item_id = f"{self.name}-{n_before + 1:05d}" if column is None else row.cells[column].strip()
        item = self.columns.read_item(row, where, item_id=item_id, problems=self.problems)
        if not item_id:
            self.problems.append(f"{where}: column {column!r}: the item id is empty: fill it in")
            return _ReadItem("", row.line, ())
        key: Hashable = item_id
        if column is None and self._shared:  # else each row is an item
            texts = [context.text for context in item.contexts]
            key = _hash(
                repr((item.group, item.question, item.answer, item.system, *texts, *item.fields.values()))
            )
        parts = tuple(hash(repr(getattr(item, name))) for name in _COMPARED) if self._shared else ()
        known = self._items.setdefault(key, _ReadItem(item_id, row.line, parts))
        if len(self._items) > n_before:
            item = item if item.group else replace(item, group=item_id)
            self._take(item, row, sound=self.problems.total == before)
        elif known.line != row.line:
            self._compare(known, parts, where)
        return known

    def _take(self, item: Item, row: Row, *, sound: bool) -> None:
        """Count a new item and write it; a `sound` one is held against the format of items.jsonl."""
        group = _hash(item.group)
        split = self._split_of.get(group) or self._split_of.setdefault(group, self._splits.of(item.group))
        self._n_items[split] += 1
        if sound:
            line = item_row(item)
            read_item(line, self.table.at(row), self.problems)
            if self._draft is not None and not self.problems:
                self._draft.add_item(line)

    def _compare(self, known: _ReadItem, parts: tuple[int, ...], where: str) -> None:
        """Hold a further row of an item against its first one."""
        first = self.table.number(known.line)
        differ = [name for name, a, b in zip(_COMPARED, known.parts, parts, strict=False) if a != b]
        if not self._shared:
            self.problems.append(
                f"{where}: item {known.item_id!r} stands in {first} already: ids must differ "
                "(several rows may share an item only with --rater)"
            )
        elif differ:
            self.problems.append(
                f"{where}: item {known.item_id!r} has another {', '.join(differ)} than in "
                f"{first}: rows of one item must have the same texts"
            )

    def _read_labels(self, row: Row, item: _ReadItem) -> None:
        columns = self.columns
        if columns.rater is None:
            for column in columns.raters:
                self._rate(row, item, column=column, rater=column)
        else:
            rater, label = row.cells[columns.rater].strip(), columns.labels[0]
            where = f"{self._labelled.at(row)}: column {columns.rater!r}"
            if not rater and row.cells[label].strip():
                self.problems.append(f"{where}: no rater for this label: fill it in")
            elif rater == GOLD and columns.gold_label is not None:
                self.problems.append(
                    f"{where}: the rater {GOLD!r}, and --gold-label gives that one already: leave one out"
                )
            elif rater:
                self._rate(row, item, column=label, rater=rater)
        if columns.gold_label is not None:
            self._rate(row, item, column=columns.gold_label, rater=GOLD)

    def _rate(self, row: Row, item: _ReadItem, *, column: str, rater: str) -> None:
        """Take a rating and write it; the second one of a rater must be the first one again."""
        label = self._label(row, column)
        if label is None or not item.item_id:
            return
        known = rater in item.labels  # one row may reach an item twice, by two contexts that are equal
        first = item.labels.setdefault(rater, (label, row.line))
        if known:
            other_row = first[1] != row.line and column != self.columns.gold_label
            if (self._apart or self._shared) and (first[0] != label or other_row):
                self.problems.append(
                    f"{self._labelled.at(row)}: a second label of {rater!r} for item {item.item_id!r}, the "
                    f"first is in {self._labelled.number(first[1])}: keep one"
                )
            return
        note = self.columns.note_of(column)
        text = None if note is None else row.cells[note].strip() or None
        rating = Rating(item.item_id, rater, label, text)
        if rater not in self.n_of_raters:
            read_rating(rating_row(rating), self._labelled.at(row), scale=None, problems=self.problems)
        self.n_of_raters[rater] += 1
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
                f"{self._labelled.at(row)}: column {column!r}: {error}: mend the cell, or give --map FROM=TO "
                f"for it"
            )
            return None
        if label is None:
            self._missing.update([cell] if cell else [])
            return None
        self._numbers.add(number, fits=True, signed=cell.endswith("%"))
        return label

    def _label_of(self, cell: str) -> tuple[Label | None, float | None]:
        """The label that a cell holds, None where it says there is none, and its number; or ValueError."""
        if not cell or says_nothing(cell, self.scale):
            return None, None
        label = read_label(cell, self.scale)
        rounded = percent(label) if self.scale.from_fraction and isinstance(label, float) else label
        return rounded, number_in(cell)

    def card(self, command: str) -> Card:
        """What is known of the set: where it was read from, and how."""
        scale = replace(self.scale, from_fraction=False)
        if scale.kind == "nominal":
            words = {str(label) for item in self._items.values() for label, _ in item.labels.values()}
            scale = replace(scale, categories=tuple(sorted(words)))
        return Card(
            name=self.name,
            scale=scale,
            version="1",
            licence=self.table.source.licence or UNKNOWN_LICENCE,
            source=self.table.source.source,
            made_by=command,
            labels_by="people" if self.n_ratings else "unknown",
            raters={rater: RaterCard(who=self._who(rater)) for rater in sorted(self.n_of_raters)},
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
        """The remarks, labels missing by a word, and maps that no cell asked for: likely slips of the pen."""
        unused = [f"{cell}={to}" for cell, to in self.mapping.items() if cell not in self._mapped]
        return [
            *self.remarks,
            *missing_notes(self._missing),
            *(f"no row has a label in column {column}" for column in self._empty),
            *(f"--map {text}: no label cell holds that" for text in unused),
        ]


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def read_judgements(table: Stream, session: ImportSession, draft: Draft | None) -> Counter[str]:
    """What judges said of the items, written into the draft as `agreement` reads it: how many judgements each
    judge gave. Rows of other items are counted in the remarks of the `session`."""
    column, by_judge = str(session.columns.item), Counter[str]()
    first_lines: dict[int, int] = {}  # by a hash of item, judge, repeat and unit

    def rows() -> Iterator[dict[str, object]]:
        count = 0
        for row in table.rows:
            count += 1
            cells, item_id = row.cells, row.cells[column].strip()
            if not session.holds(item_id):
                continue
            judge = cells.get(JUDGE, "").strip() or Path(table.name).stem
            repeat, unit = cells.get("repeat", "").strip() or "0", cells.get("unit", "").strip() or ITEM_UNIT
            first = first_lines.setdefault(hash((item_id, judge, repeat, unit)), row.line)
            if first != row.line:
                message = judged_twice(judge, item_id, table.number(first))
                session.problems.append(f"{table.at(row)}: {message}")
            by_judge[judge] += 1
            kept = {name: row.raw[name] for name in KEPT if cells.get(name, "").strip()}
            yield {"item_id": item_id, JUDGE: judge, VERDICT: row.raw.get(VERDICT), **kept}
        unknown = count - by_judge.total()
        if count and unknown == count:
            session.problems.append(f"{table.where}: no value of column {column} is the id of an item")
        elif unknown:
            session.remarks.append(f"{unknown:,} rows of {table.name} name no item of the set")

    if draft is None:
        deque(rows(), maxlen=0)
    else:
        write_json_lines(draft.folder / JUDGEMENTS, rows())
    return by_judge
