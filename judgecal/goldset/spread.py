"""Rows that hold the answers of several systems side by side, as one row an answer.

Where a table has the columns `answer_a, judge_a, answer_b, judge_b`, the options `--answer 'answer_*'` and
`--label 'judge_*'` make two items of each row, of the systems `a` and `b`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from judgecal.errors import InputError
from judgecal.goldset.columns import Columns
from judgecal.tables import Row, Table

__all__ = ["spread"]

_ANY = "*"


def spread(table: Table, columns: Columns) -> tuple[Table, Columns]:
    """The table with a row for each system's answer, and the columns that say what is what in it.

    Without a `*` in the answer's column, or with a column of that very name, both come back as they are. An
    item's id is the row's with the system's name behind it. A row in which a system has neither an answer nor
    a label gives no item of that system.

    Raises:
        InputError: no column fits, one of a system's columns is missing, or `--system` is given too.
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
    return replace(
        columns, labels=tuple(labels[label] for label in columns.labels), gold_label=gold, system=_ANY
    )


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
