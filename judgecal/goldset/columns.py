"""The column options: which column of a table is what, for every command that takes a table of answers."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from judgecal.errors import InputError
from judgecal.goldset.gold_set import GOLD
from judgecal.records import Item
from judgecal.tables import Row, Table


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column is what; None where there is no such column.

    `labels`: one column a rater, named as the rater; or a single column, and `rater` says whose label it is. The
    adjudicated `gold_label` may be one of them too. `group` is by default the question's text. An answer may be empty,
    a question may not. `reference_separator` is the text between equally right reference answers.
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
            found.append("--reference-separator is empty: leave it out, or give the text between alternatives")
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


_ANY = "*"


def unpivot(table: Table, columns: Columns) -> tuple[Table, Columns]:
    """The table with a row for each system's answer, and the columns that say what is what in it.

    Without a `*` in the answer's column, or with a column of that very name, both come back as they are. An item's id
    is the row's with the system's name behind it. A row in which a system has neither an answer nor a label gives no
    item of it. InputError: no column fits, one of a system's columns is missing, or `--system` is given too.
    """
    if _ANY not in columns.answer or columns.answer in table.columns:
        return table, columns
    systems = list(_systems(columns.answer, table.columns))
    problems = _problems(table, columns, systems)
    if problems:
        raise InputError(problems)
    labels = _label_names(table, columns)
    found = (_one(row, columns, labels, system) for row in table.rows for system in systems)
    rows = [row for row in found if row is not None]
    note = (
        f"{table.where}: {len(rows):,} answers in {len(table.rows):,} rows, of {len(systems)} systems: "
        f"{', '.join(systems)}"
    )
    added = (columns.answer, *labels.values(), _ANY)
    whole = replace(table, rows=rows, columns=(*table.columns, *added), notes=(*table.notes, note))
    return whole, _named(columns, labels)


def _systems(pattern: str, columns: Iterable[str]) -> Iterable[str]:
    before, _, after = pattern.partition(_ANY)
    for column in columns:
        if column.startswith(before) and column.endswith(after) and len(column) > len(before) + len(after):
            yield column[len(before) : len(column) - len(after)]


def _problems(table: Table, columns: Columns, systems: list[str]) -> list[str]:
    answer = columns.answer
    if answer.count(_ANY) > 1:
        return [f"--answer {answer}: write one {_ANY}, where the columns have the system's name"]
    if not systems:
        return [f"{table.top}: no column fits --answer {answer}: known: {', '.join(table.columns)}"]
    found = []
    if columns.system is not None:
        found.append(f"--system {columns.system}: --answer {answer} names the systems already: leave one out")
    for label in _labels(columns):
        if label.count(_ANY) != 1:
            found.append(f"--answer {answer} takes each system's own labels: write one {_ANY} in {label} too")
            continue
        missing = [name for system in systems if (name := _of(label, system)) not in table.columns]
        found += [f"{table.top}: no column {name!r} beside {answer}" for name in missing]
    return found


def _labels(columns: Columns) -> tuple[str, ...]:
    gold = () if columns.gold_label is None else (columns.gold_label,)
    return tuple(dict.fromkeys((*columns.labels, *gold)))


def _of(pattern: str, system: str) -> str:
    return pattern.replace(_ANY, system)


def _label_names(table: Table, columns: Columns) -> dict[str, str]:
    """Label pattern -> the column that takes its place, named by what all have in common: the rater."""
    names = {label: label.replace(_ANY, "").strip("_-. ") for label in _labels(columns)}
    taken = [*table.columns, *names.values()]
    return {label: name if name and taken.count(name) == 1 else label for label, name in names.items()}


def _named(columns: Columns, labels: Mapping[str, str]) -> Columns:
    gold = None if columns.gold_label is None else labels[columns.gold_label]
    return replace(columns, labels=tuple(labels[label] for label in columns.labels), gold_label=gold, system=_ANY)


def _one(row: Row, columns: Columns, labels: Mapping[str, str], system: str) -> Row | None:
    """The row of one system; None where it has neither an answer nor a label."""
    sources = {columns.answer: _of(columns.answer, system)}
    sources |= {name: _of(label, system) for label, name in labels.items()}
    cells = {name: row.cells[source] for name, source in sources.items()}
    if not any(cell.strip() for cell in cells.values()):
        return None
    raw = {name: row.raw.get(source) for name, source in sources.items()}
    if columns.item is not None and row.cells.get(columns.item, "").strip():
        cells[columns.item] = f"{row.cells[columns.item].strip()}-{system}"
    return Row(row.line, {**row.cells, **cells, _ANY: system}, {**row.raw, **raw, _ANY: system})
