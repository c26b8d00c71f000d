"""What the rows of a table say: items, people's ratings and judges' verdicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from judgecal.goldset.card import UNKNOWN_LICENCE, Card, RaterCard, Splits
from judgecal.goldset.labels import (
    NARROW,
    PAIR_LABELS,
    LabelMap,
    is_no_label,
    missing_notes,
    narrow_labels,
    number_in,
    percent,
    read_label,
    typed,
)
from judgecal.goldset.load import read_item
from judgecal.goldset.write import item_row
from judgecal.records import Item, Rating
from judgecal.scale import Label, Scale
from judgecal.tables import Row, Table
from judgecal.tables.columns import GOLD, Columns

_COMPARED = (
    "group", "question", "answer", "reference_answers", "system", "contexts", "conversation", "fields",
    "tags", "pair",
)  # fmt: skip


class TableItems:
    """The items of a table, and the cells that hold labels and verdicts: read as labels when their scale is
    known (`rate`). The set is whole only where there are no `problems`.

    Attributes:
        item_ids: the item of each row.
        verdicts: column -> what the judge said in each row, as every language writes it; None for nothing.
    """

    def __init__(self, table: Table, columns: Columns, name: str) -> None:
        self.table, self.columns, self.name = table, columns, name
        self._problems: list[tuple[float, str]] = []  # with the line that each is of
        self.ratings: dict[tuple[str, str], Rating] = {}  # by item and rater
        self.verdicts: dict[str, list[str | None]] = {}
        self._items: dict[Hashable, tuple[Item, int]] = {}  # with the line where it first stands
        self._explained: dict[str, str] = {}  # findings of `gold check` that may stand
        if (at_once := self._items_at_once()) is not None:
            self.items, self.item_ids = at_once, [item.item_id for item in at_once]
        else:
            self.item_ids = [self._read_item(row) for row in table.each()]
            self.items = tuple(item for item, _ in self._items.values())
        self.notes: list[str] = []  # what the set's owner should know; whole once labels are read

    @property
    def problems(self) -> list[str]:
        """What is wrong, each with its file and line, in the order of the lines."""
        return [problem for _, problem in sorted(self._problems, key=lambda problem: problem[0])]

    def _items_at_once(self) -> tuple[Item, ...] | None:
        """The items, in the order of the rows, of a table each row of which is an item of texts alone; None
        where one is not, or has a problem.
        """
        import polars as pl

        columns, table, frame = self.columns, self.table, self.table.frame
        more = (columns.rater, columns.conversation, columns.answer_a, columns.reference_separator)
        is_plain = table.records is None and table.values is None
        if any(more) or columns.contexts or columns.fields or columns.tags or not is_plain:
            return None
        filled = [name for name in (columns.question, columns.answer, columns.group, columns.item) if name]
        blank = [pl.col(name).str.strip_chars() == "" for name in filled]
        if blank and frame.select(pl.any_horizontal(blank).any()).item():
            return None
        n = frame.height
        ids = [f"{self.name}-{at:05d}" for at in range(1, n + 1)]
        ids = ids if columns.item is None else self._cells(columns.item)
        if len(set(ids)) < n:
            return None
        nothing = [""] * n
        questions = [f"row {line}" for line in table.numbers]
        if columns.question is not None:
            once: dict[str, str] = {}  # questions recur: one text in memory for all their items
            questions = [once.setdefault(text, text) for text in frame[columns.question].to_list()]
        answers = nothing if columns.answer is None else frame[columns.answer].to_list()
        groups = questions if columns.group is None else self._cells(columns.group)
        references = nothing if columns.reference is None else frame[columns.reference].to_list()
        systems = nothing if columns.system is None else self._cells(columns.system)
        rows = zip(ids, groups, questions, answers, references, systems, strict=True)
        return tuple(
            Item(item_id, group, question, answer, (given,) if given.strip() else (), system or None)
            for item_id, group, question, answer, given, system in rows
        )

    def _cells(self, column: str) -> list[str]:
        return self.table.frame[column].str.strip_chars().to_list()

    @cached_property
    def _label_columns(self) -> list[tuple[str, list[str], Sequence[str]]]:
        """Each column of labels with its cells, and who gave them; "" where that is nobody."""
        columns, n = self.columns, len(self.item_ids)
        given = (
            []
            if columns.gold_label is None
            else [(columns.gold_label, self._cells(columns.gold_label), [GOLD] * n)]
        )
        if columns.rater is None:
            return [*((name, self._cells(name), [name] * n) for name in columns.raters), *given]
        raters, labels = self._cells(columns.rater), self._cells(columns.labels[0])
        for at, (line, rater) in enumerate(zip(self.table.numbers, raters, strict=True)):
            problem = None
            if not rater and labels[at]:
                problem = "no rater for this label: fill it in"
            elif rater == GOLD and given:
                problem = f"the rater {GOLD!r}, and --col gold= gives that one already: leave one out"
            if problem is not None:
                self._problems.append(
                    (line, f"{self.table.place(line)}: column {columns.rater!r}: {problem}")
                )
            if problem is not None or not rater:
                labels[at] = ""
        return [(columns.labels[0], labels, raters), *given]

    @cached_property
    def label_texts(self) -> set[str]:
        """The different texts of label cells."""
        return {cell for _, cells, _ in self._label_columns for cell in cells}

    @cached_property
    def verdict_texts(self) -> dict[str, set[str]]:
        return {column: {*self._cells(column)} for column in self.columns.verdicts}

    @property
    def judgements(self) -> list[dict[str, Any]]:
        """The verdicts row by row, as a set's folder keeps them."""
        each = zip(*self.verdicts.values(), strict=True)
        return [
            {"item_id": item_id, "judge": column, "verdict": verdict}
            for item_id, verdicts in zip(self.item_ids, each, strict=False)
            for column, verdict in zip(self.verdicts, verdicts, strict=True)
        ]

    def _read_item(self, row: Row) -> str:
        """The id of a row's item, a new one or that of an earlier row."""
        table, columns = self.table, self.columns
        where, column, n_before = table.at(row), columns.item, len(self._items)
        problems: list[str] = []
        item_id = f"{self.name}-{n_before + 1:05d}" if column is None else row.cells[column].strip()
        item = columns.read_item(row, where, item_id=item_id, problems=problems)
        key: Hashable = item_id
        if not item_id:
            problems.append(f"{where}: column {column!r}: the item id is empty: fill it in")
            self._problems += [(row.line, problem) for problem in problems]
            return item_id
        if column is None and columns.rater is not None:  # else each row is an item
            texts = [context.text for context in item.contexts]
            texts += [item.group, item.question, item.answer, *item.fields.values()]
            key = (item.system, item.pair, *texts)
        stored, line = self._items.setdefault(key, (item, row.line))
        if len(self._items) > n_before:
            if not item.group:
                self._items[key] = replace(item, group=item_id), line
            if not problems and (item.contexts or item.conversation or item.tags):
                # what came as lists and objects is held against the format, as whoever loads it will
                read_item(item_row(stored), where, problems)
        elif columns.rater is None:
            problems.append(
                f"{where}: item {item_id!r} is in {table.unit} {line} already: ids must differ "
                "(several rows may share an item only with --col rater=)"
            )
        else:
            grouped = item if item.group else replace(item, group=stored.item_id)
            if differ := [part for part in _COMPARED if getattr(stored, part) != getattr(grouped, part)]:
                problems.append(
                    f"{where}: item {stored.item_id!r} has another {', '.join(differ)} than in "
                    f"{table.unit} {line}: rows of one item must have the same texts"
                )
        self._problems += [(row.line, problem) for problem in problems]
        return stored.item_id

    def rate(self, scale: Scale, mapping: Mapping[str, str], *, force: bool) -> None:
        """Read labels and verdicts on a Scale, by a mapping of cells to texts and a flag `force`. It takes
        labels of a small part of their scale; the card says so.
        """
        top, missing, maps = self.table.top, Counter[str](), LabelMap(mapping)
        labels = [
            (column, self._labels_in(column, cells, scale, maps, missing), raters)
            for column, cells, raters in self._label_columns
        ]
        self._add_ratings(labels)
        for column in self.columns.verdicts:
            stated = {cell: maps.get(cell, cell).strip() for cell in self.verdict_texts[column]}
            verdicts = {
                cell: None if not text or is_no_label(text, scale) else typed(text)
                for cell, text in stated.items()
            }
            self.verdicts[column] = [verdicts[cell] for cell in self._cells(column)]
        of_all, texts = list[str](), [maps.get(cell, cell).strip() for cell in self.label_texts]
        parts = [0.0 < (number_in(text) or 0.0) < 1.0 and not text.endswith("%") for text in texts]
        signed = scale.kind == "percentage" and any(text.endswith("%") for text in texts)
        if signed and any(parts) and not scale.from_fraction:
            of_all.append(
                "some labels have a percent sign, and some without one lie between 0 and 1, which would be "
                "read as below 1%: write all of them in one way"
            )
        named = ", ".join(dict.fromkeys((*self.columns.labels, self.columns.gold_label or ""))).rstrip(", ")
        if named and not self.ratings and not self._problems:
            of_all.append(f"no row has a label in {named}: fill some in")
        given = [float(rating.label or 0.0) for rating in self.ratings.values()] if scale.numeric else []
        narrow = narrow_labels(given, scale)
        if narrow and (force or scale.from_fraction):
            self._explained[NARROW] = "you said that the scale is right" if force else "they are fractions"
        elif narrow:
            of_all.append(f"{narrow}: give that --scale, or --force if the scale is right")
        self._problems += [(math.inf, f"{top}: {problem}") for problem in of_all]
        unused = maps.unused(self.label_texts.union(*self.verdict_texts.values()))
        self.notes = [
            *missing_notes(missing),
            *(f"no row has a label in column {column}" for column in self.without_label),
            *(f"--map {entry}: no label cell holds that" for entry in unused),
        ]

    def _labels_in(
        self, column: str, cells: Sequence[str], scale: Scale, maps: LabelMap, missing: Counter[str]
    ) -> list[Label | None]:
        """The labels of a column's cells, each different text read once; None for no label."""
        labels: dict[str, Label | None] = {}
        for cell, n in Counter(cells).items():
            text, labels[cell] = maps.get(cell, cell).strip(), None
            if not text:
                continue
            if is_no_label(text, scale):
                missing[text] += n
                continue
            try:
                label = read_label(text, scale)
            except (ValueError, OverflowError) as error:
                what = f"column {column!r}: {error}: fix the cell, or give --map FROM=TO for it"
                lines = [line for line, other in zip(self.table.numbers, cells, strict=True) if other == cell]
                self._problems += [(line, f"{self.table.place(line)}: {what}") for line in lines]
                continue
            labels[cell] = percent(label) if scale.from_fraction and isinstance(label, float) else label
        return [labels[cell] for cell in cells]

    def _add_ratings(self, given: Sequence[tuple[str, list[Label | None], Sequence[str]]]) -> None:
        """Make ratings of columns of labels and their raters, row by row; a second one of a rater and item is
        a problem.
        """
        columns, lines, n = self.columns, self.table.numbers, len(self.item_ids)
        beside = [columns.note_of(column) for column, _, _ in given]
        notes = [[""] * n if note is None else self._cells(note) for note in beside]
        if columns.rater is None and len(given) == 1:  # the usual table, without a look at each row
            each = zip(self.item_ids, *given[0][1:], notes[0], strict=True)
            ratings = (
                Rating(item_id, rater, label, note or None)
                for item_id, label, rater, note in each
                if label is not None
            )
            self.ratings = {(rating.item_id, rating.rater): rating for rating in ratings}
            return
        firsts: dict[tuple[str, str], int] = {}
        for at, item_id in enumerate(self.item_ids):
            for (column, labels, raters), texts in zip(given, notes, strict=True):
                label, key = labels[at], (item_id, raters[at])
                if label is None:
                    continue
                first = self.ratings.get(key)
                if first is None:
                    self.ratings[key] = Rating(*key, label, texts[at] or None)
                    if columns.rater is not None:
                        firsts[key] = lines[at]
                elif columns.rater is not None and (first.label != label or column != columns.gold_label):
                    # the adjudicated label may stand in each row of an item
                    second = (
                        f"{self.table.place(lines[at])}: a second label of {key[1]!r} for item {item_id!r}"
                    )
                    problem = f"{second}, the first is in {self.table.unit} {firsts[key]}: keep one"
                    self._problems.append((lines[at], problem))

    @property
    def without_label(self) -> list[str]:
        """The columns of raters in which no row has a label."""
        rated = {rating.rater for rating in self.ratings.values()}
        columns = self.columns.raters if self.columns.rater is None else ()
        return [column for column in columns if column not in rated]

    def card(self, scale: Scale, command: str, splits: Splits) -> Card:
        """Return the Card of the set, from a Scale, the command that read its table (a text) and Splits."""
        table, columns = self.table, self.columns
        if scale.kind == "nominal":
            words = {str(rating.label) for rating in self.ratings.values()}
            if columns.pairs:  # a tie is a label where somebody may say it, a judge too
                verdicts = {verdict for column in self.verdicts.values() for verdict in column if verdict}
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
            licence=UNKNOWN_LICENCE,
            source=table.source,
            made_by=command,
            labels_by="people" if raters else "unknown",
            raters={rater: RaterCard(what) for rater, what in who.items()},
            splits=splits,
            explained=self._explained,
        )
