"""The column options: which column of a table is what, for every command that takes a table of answers."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from judgecal.errors import refuse
from judgecal.goldset.cells import read_contexts, read_conversation, read_tags
from judgecal.goldset.gold_set import GOLD
from judgecal.records import Item
from judgecal.tables import Row, is_error

_SUMS = frozenset({
    "total", "sum", "mean", "average", "median", "gesamt", "summe", "mittel", "mittelwert", "durchschnitt", "somme",
    "moyenne", "médiane", "suma", "media", "promedio", "totale", "somma",
})  # fmt: skip
"""What the first cell of a row says that sums up the rows of a spreadsheet."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column is what; None where there is no such column.

    `labels`: one column a rater, named as the rater; or a single column, and `rater` says whose label it is.
    The adjudicated `gold_label` may be one of them too. `notes`: what the raters wrote beside them, in the
    order of `labels` (without labels, beside the adjudicated one). `group` is by default the question's text.
    An answer may be empty, a question may not. `reference_separator` is the text between equally right
    reference answers. `contexts` are put one after the other; with `chunks` each context is an item of its
    own. `fields`: (name, column), for the inputs of a judge that have no other place; with them an item may
    do without question and answer. `tags` as `read_tags` reads them.
    """

    question: str | None
    answer: str | None
    labels: tuple[str, ...] = ()
    reference: str | None = None
    gold_label: str | None = None
    item: str | None = None
    group: str | None = None
    system: str | None = None
    rater: str | None = None
    reference_separator: str | None = None
    contexts: tuple[str, ...] = ()
    conversation: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    chunks: bool = False

    @property
    def item_names(self) -> tuple[str, ...]:
        """The columns that make an item."""
        single = (
            self.question,
            self.answer,
            self.reference,
            self.item,
            self.group,
            self.system,
            self.conversation,
        )
        named = tuple(name for name in single if name is not None)
        return (*named, *self.contexts, *(column for _, column in self.fields), *self.tags)

    @property
    def label_names(self) -> tuple[str, ...]:
        """The columns that make ratings."""
        single = (self.gold_label, self.rater)
        return (*self.labels, *(name for name in single if name is not None), *self.notes)

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that the table must have."""
        return (*self.item_names, *self.label_names)

    @property
    def raters(self) -> tuple[str, ...]:
        """The label columns that are raters of their own: all but one that is `gold` by name and by
        option."""
        return tuple(name for name in self.labels if (name, self.gold_label) != (GOLD, GOLD))

    def note_of(self, label: str) -> str | None:
        """The column of the notes beside a label column."""
        beside = self.labels or (self.gold_label,)
        return dict(zip(beside, self.notes, strict=False)).get(label)

    def problems(self) -> list[str]:
        """Options that contradict each other."""
        found = []
        if self.question is None and not self.fields:
            found.append("--question COL is missing (items without a question need --field NAME=COL)")
        if self.answer is None and (self.question is not None or not self.fields):
            found.append("--answer COL is missing (only items without a question may do without)")
        for option, given in (("--label", self.labels), ("--field", tuple(name for name, _ in self.fields))):
            found += [
                f"{option} {name} is given {count} times: give each {'column' if option == '--label' else 'name'} once"
                for name, count in Counter(given).items()
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
        if self.notes and len(self.notes) != (len(self.labels) or (self.gold_label is not None)):
            found.append(
                f"--note is given {len(self.notes)} times and --label {len(self.labels)} times: give one for each "
                "--label, in their order"
            )
        if self.notes and any("*" in label for label in self.labels):
            found.append("--note takes no labels with a * in their name: name each column with --label")
        if self.chunks and not self.contexts:
            found.append("--chunks makes an item of each context: name their column with --context")
        if self.chunks and self.question is None and self.group is None:
            found.append("--chunks without --question: name what the contexts belong to with --group")
        if self.reference_separator == "":
            found.append(
                "--reference-separator is empty: leave it out, or give the text between alternatives"
            )
        if self.reference_separator is not None and self.reference is None:
            found.append("--reference-separator without --reference: name the reference column")
        return found

    def read_item(self, row: Row, where: str, *, item_id: str, problems: list[str]) -> Item:
        """The item of a row; what is empty and may not be, or cannot be read, is added to the problems."""
        question = "" if self.question is None else row.cells[self.question]
        group = question if self.group is None else row.cells[self.group].strip()
        if self.question is not None and not question.strip():
            problems.append(f"{where}: column {self.question!r}: the question is empty: fill it in")
        if self.group is not None and not group:
            problems.append(
                f"{where}: column {self.group!r}: the group is empty: fill it in, or leave --group out and each "
                "question is its own group"
            )
        if (
            question.strip(" :").casefold() in _SUMS
            and self.answer is not None
            and not row.cells[self.answer].strip()
        ):
            problems.append(
                f"{where}: {question.strip()!r} and no answer: a row that sums up others? Take it out"
            )
        problems += [
            f"{where}: column {column!r}: holds the spreadsheet's error {row.cells[column].strip()}: mend the cell"
            for column in dict.fromkeys(
                filter(None, (self.question, self.answer, self.reference, *self.contexts))
            )
            if is_error(row.cells[column])
        ]
        fields = {name: row.cells[column] for name, column in self.fields if row.cells[column].strip()}
        if self.question is None and self.fields and not fields:
            problems.append(f"{where}: every field is empty: fill one in, or take the row out")
        return Item(
            item_id=item_id,
            group=group,
            question=question,
            answer="" if self.answer is None else row.cells[self.answer],
            reference_answers=()
            if self.reference is None
            else row.parts(self.reference, self.reference_separator),
            system=None if self.system is None else row.cells[self.system].strip() or None,
            contexts=tuple(
                one for column in self.contexts for one in read_contexts(row, column, where, problems)
            ),
            tags=tuple(dict.fromkeys(tag for column in self.tags for tag in read_tags(row, column))),
            conversation=()
            if self.conversation is None
            else read_conversation(row, self.conversation, where, problems),
            fields=fields,
        )

    def taken(self) -> dict[str, str]:
        """The columns that are taken, some with a `*`, and what each is taken as."""
        found: dict[str, list[str]] = {}
        for option, column in self._typed():
            if option != "--reference-separator":
                name, _, inner = column.partition("=") if option == "--field" else (column, "", "")
                what = f"field {name}" if option == "--field" else option.removeprefix("--").replace("-", " ")
                found.setdefault(inner or name, []).append(what)
        return {column: " and ".join(what) for column, what in found.items()}

    def options(self) -> str:
        """The options as they are typed."""
        typed = shlex.join(part for pair in self._typed() for part in pair)
        return f"{typed} --chunks" if self.chunks else typed

    def _typed(self) -> list[tuple[str, str]]:
        single: Sequence[tuple[str, str | None]] = (
            ("--question", self.question),
            ("--answer", self.answer),
            ("--reference", self.reference),
            *(("--context", name) for name in self.contexts),
            ("--conversation", self.conversation),
            *(("--field", name if name == column else f"{name}={column}") for name, column in self.fields),
            *(("--tag", name) for name in self.tags),
            *(("--label", name) for name in self.labels),
            ("--gold-label", self.gold_label),
            *(("--note", name) for name in self.notes),
            ("--item", self.item),
            ("--group", self.group),
            ("--system", self.system),
            ("--rater", self.rater),
            ("--reference-separator", self.reference_separator),
        )
        return [(option, value) for option, value in single if value is not None]


def read_fields(entries: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The `--field NAME=COL` options as (name, column); NAME alone is the column of that name.

    Raises:
        InputError: a name is not one that an input of a signature can have.
    """
    cut = [entry.partition("=") for entry in entries]
    refuse(
        [
            f"--field {name}{sign}{column}: write NAME=COL, NAME as the signature's input is called, such as --field "
            "policy=policy_text"
            for name, sign, column in cut
            if not name.strip().isidentifier() or (sign and not column)
        ]
    )
    return tuple((name.strip(), column or name.strip()) for name, _, column in cut)


def left_out(columns: Sequence[str], *used: str) -> list[str]:
    """The columns that nothing is taken from, in their order; of an object in part used the fields that are
    not."""
    taken, known = set(used), set(columns)
    partly = {one for name in taken for one in _above(name)}
    found = []
    for column in columns:
        above = [one for one in _above(column) if one in known]
        if taken.isdisjoint((column, *above)) and column not in partly and (not above or above[-1] in partly):
            found.append(column)
    return found


def _above(column: str) -> list[str]:
    """The objects that a column with dots in its name may be a field of, the outermost first."""
    parts = column.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]
