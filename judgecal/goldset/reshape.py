"""Tables with several answers, contexts or raters in a row: brought into a row an item."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from judgecal.errors import InputError, refuse
from judgecal.goldset.cells import listed_cell, read_contexts
from judgecal.goldset.columns import Columns
from judgecal.tables import Row, Table

_ANY = "*"


def unpivot(table: Table, columns: Columns) -> tuple[Table, Columns]:
    """The table with a row for each system's answer, and the columns that say what is what in it.

    Without a `*` in the answer's column, or with a column of that very name, both come back as they are. An item's id
    is the row's with the system's name behind it. A row in which a system has neither an answer nor a label gives no
    item of it. InputError: no column fits, one of a system's columns is missing, or `--system` is given too.
    """
    answer = columns.answer
    if answer is None or _ANY not in answer or answer in table.columns:
        return table, columns
    systems = list(_systems(answer, table.columns))
    problems = _problems(table, columns, systems)
    if problems:
        raise InputError(problems)
    labels = _label_names(table, columns)
    found = (_one(row, columns, {**labels, answer: answer}, system) for row in table.rows for system in systems)
    rows = [row for row in found if row is not None]
    note = (
        f"{table.where}: {len(rows):,} answers in {len(table.rows):,} rows, of {len(systems)} systems: "
        f"{', '.join(systems)}"
    )
    added = (answer, *labels.values(), _ANY)
    whole = replace(table, rows=rows, columns=(*table.columns, *added), notes=(*table.notes, note))
    return whole, _named(columns, labels)


def _systems(pattern: str, columns: Iterable[str]) -> Iterable[str]:
    before, _, after = pattern.partition(_ANY)
    for column in columns:
        if column.startswith(before) and column.endswith(after) and len(column) > len(before) + len(after):
            yield column[len(before) : len(column) - len(after)]


def _problems(table: Table, columns: Columns, systems: list[str]) -> list[str]:
    answer = columns.answer or ""
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


def _one(row: Row, columns: Columns, names: Mapping[str, str], system: str) -> Row | None:
    """The row of one system, by the patterns of its columns and the names that these get; None where it has neither an
    answer nor a label.
    """
    sources = {name: _of(pattern, system) for pattern, name in names.items()}
    cells = {name: row.cells[source] for name, source in sources.items()}
    if not any(cell.strip() for cell in cells.values()):
        return None
    raw = {name: row.raw.get(source) for name, source in sources.items()}
    if columns.item is not None and row.cells.get(columns.item, "").strip():
        cells[columns.item] = f"{row.cells[columns.item].strip()}-{system}"
    return Row(row.line, {**row.cells, **cells, _ANY: system}, {**row.raw, **raw, _ANY: system})


def with_labels(columns: Columns, table: Table) -> Columns:
    """The columns with every `*` in a label's name filled in: all columns of the table that fit it.

    InputError: none fits.
    """
    labels: list[str] = []
    for name in columns.labels:
        if _ANY not in name or name in table.columns:
            labels.append(name)
            continue
        fitting = [one for one in table.columns if fnmatch.fnmatchcase(one, name)]
        if not fitting:
            raise InputError(f"{table.top}: no column fits --label {name}: known: {', '.join(table.columns)}")
        labels += fitting
    return replace(columns, labels=tuple(labels))


def split_chunks(table: Table, columns: Columns) -> tuple[Table, int]:
    """The table with a row for each context of a row, for labels of single contexts, and how many rows have none; as it
    is without `chunks`.

    A label cell may hold a list, a label for each context; any other belongs to all of them. An item's id is the row's
    with `-chunk-<n>` behind it, from 0. InputError: a list of labels is longer or shorter than that of the contexts.
    """
    if not columns.chunks:
        return table, 0
    problems: list[str] = []
    parts = [_chunks(table, row, columns, problems) for row in table.rows]
    refuse(problems, most=50)
    rows = [part for own in parts for part in own]
    note = f"{table.where}: {len(rows):,} contexts in {len(table.rows):,} rows, an item each"
    return replace(table, rows=rows, notes=(*table.notes, note)), parts.count([])


def _chunks(table: Table, row: Row, columns: Columns, problems: list[str]) -> list[Row]:
    where, found = table.at(row), []
    contexts = [(name, one) for name in columns.contexts for one in read_contexts(row, name, where, problems)]
    lists = {name: cell for name in columns.label_names if isinstance(cell := listed_cell(row.raw.get(name)), list)}
    for name, cell in lists.items():
        if len(cell) != len(contexts):
            problems.append(f"{where}: column {name!r}: {len(cell)} labels for {len(contexts)} contexts: one for each")
            return []
    for place, (name, context) in enumerate(contexts):
        one = {"document_id": context.document_id, "text": context.text, "score": context.score}
        raw = {**row.raw, **dict.fromkeys(columns.contexts), name: [one]}
        raw |= {label: cell[place] for label, cell in lists.items()}
        cells = {**row.cells, **{label: _label_text(cell[place]) for label, cell in lists.items()}}
        if columns.item is not None and row.cells[columns.item].strip():
            cells[columns.item] = f"{row.cells[columns.item].strip()}-chunk-{place}"
        found.append(Row(row.line, cells, raw))
    return found


def _label_text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
