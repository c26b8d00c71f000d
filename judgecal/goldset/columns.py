"""The column options: which column of a table is what. `gold import` and `judge` take the same ones."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from judgecal.goldset.gold_set import GOLD
from judgecal.records import Item
from judgecal.tables import Row

__all__ = ["Columns"]


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column is what; None where there is no such column.

    Attributes:
        question, answer: the item's texts; an answer may be empty, a question may not.
        labels: one column a rater, named as the rater; or a single column, and `rater` says whose label it is.
        reference: the reference answer; empty means none.
        gold_label: the adjudicated label; it may be one of `labels` too.
        item: the item's id. group: the question that the item belongs to; by default the question's text.
        system: who gave the answer. rater: who gave the label of the row.
        reference_separator: the text between equally right reference answers.
    """

    question: str
    answer: str
    labels: tuple[str, ...] = ()
    reference: str | None = None
    gold_label: str | None = None
    item: str | None = None
    group: str | None = None
    system: str | None = None
    rater: str | None = None
    reference_separator: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that the table must have."""
        optional = (self.reference, self.gold_label, self.item, self.group, self.system, self.rater)
        return (self.question, self.answer, *self.labels, *(name for name in optional if name is not None))

    @property
    def raters(self) -> tuple[str, ...]:
        """The label columns that are raters of their own: all but one that is `gold` by name and by option."""
        return tuple(name for name in self.labels if (name, self.gold_label) != (GOLD, GOLD))

    def problems(self) -> list[str]:
        """Options that contradict each other."""
        found = []
        if not self.labels and self.gold_label is None:
            found.append("no label column: give --label COL (once for each rater) or --gold-label COL")
        found += [
            f"--label {name} is given {count} times: give each column once"
            for name, count in Counter(self.labels).items()
            if count > 1
        ]
        if self.rater is not None and len(self.labels) != 1:
            found.append(
                f"--rater {self.rater} names who gave the label of each row, so it takes one --label column; "
                f"found {len(self.labels)}"
            )
        if self.rater is None and GOLD in self.labels and self.gold_label != GOLD:
            found.append(
                f"--label {GOLD}: the rater name {GOLD!r} is kept for the adjudicated label: "
                "give it as --gold-label, or rename the column"
            )
        if self.reference_separator == "":
            found.append(
                "--reference-separator is empty: leave it out, or give the text between alternatives"
            )
        if self.reference_separator is not None and self.reference is None:
            found.append("--reference-separator without --reference: name the reference column")
        return found

    def read_item(self, row: Row, where: str, *, item_id: str, problems: list[str]) -> Item:
        """The item of a row; an empty question or group is added to the problems."""
        question = row.cells[self.question]
        group = question if self.group is None else row.cells[self.group].strip()
        if not question.strip():
            problems.append(f"{where}: column {self.question!r}: the question is empty: fill it in")
        if self.group is not None and not group:
            problems.append(
                f"{where}: column {self.group!r}: the group is empty: fill it in, or leave --group out and each "
                "question is its own group"
            )
        references = () if self.reference is None else row.parts(self.reference, self.reference_separator)
        return Item(
            item_id=item_id,
            group=group,
            question=question,
            answer=row.cells[self.answer],
            reference_answers=references,
            system=None if self.system is None else row.cells[self.system].strip() or None,
        )

    def options(self) -> str:
        """The options as they are typed."""
        single: Sequence[tuple[str, str | None]] = (
            ("--question", self.question),
            ("--answer", self.answer),
            ("--reference", self.reference),
            *(("--label", name) for name in self.labels),
            ("--gold-label", self.gold_label),
            ("--item", self.item),
            ("--group", self.group),
            ("--system", self.system),
            ("--rater", self.rater),
            ("--reference-separator", self.reference_separator),
        )
        return shlex.join(part for option, value in single if value is not None for part in (option, value))
