"""The tables of an import: read one row at a time, and brought into a row an item where a row has several
answers, contexts or raters.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from judgecal.errors import InputError, notice, refuse, unknown_name
from judgecal.tables import Row, Source
from judgecal.tables.columns import Columns, left_out, listed_cell, read_contexts
from judgecal.tables.formats import open_table
from judgecal.tables.table import RowLocator

_ANY = "*"
_MOST_PROBLEMS = 10_000  # are held
_STEP = 1000  # rows between two looks at the progress
Progress = Callable[[int, int], None]
"""Told now and then how many rows have been read, of how many."""


class Problems(list[str]):
    """What is wrong, as it was found; of very many problems the later ones are counted alone."""

    n_more = 0

    @property
    def total(self) -> int:
        """How many were found."""
        return len(self) + self.n_more

    def append(self, problem: str) -> None:
        """Take one more."""
        if len(self) < _MOST_PROBLEMS:
            super().append(problem)
        else:
            self.n_more += 1

    def extend(self, problems: Iterable[str]) -> None:
        """Take some more."""
        for problem in problems:
            self.append(problem)

    def messages(self) -> list[str]:
        """The problems, and how many are not among them."""
        more = [f"... and {self.n_more:,} more problems that are not told apart: mend these first"]
        return [*self, *more[: self.n_more]]


class Stream(RowLocator):
    """A table whose rows are read once, in order, and never held.

    `columns` are those that the rows have. `skipped` (rows by reason), `notes` and `problems` are whole once
    the rows have been read; `rows` may be wrapped before.
    """

    def __init__(self, source: Source, problems: Problems, progress: Progress | None = None) -> None:
        self.where, self.unit, self.name = source.where, source.unit, source.name
        self.source, self.columns, self.problems = source, source.fields, problems
        self.notes = list(source.remarks)
        self.skipped: dict[str, int] = {}
        self.rows = self._read(progress or (lambda _done, _total: None))

    def _read(self, progress: Progress) -> Iterator[Row]:
        count, total = 0, self.source.n_rows
        for count, row in enumerate(self.source.filled_rows(), start=1):
            if not count % _STEP:
                progress(count, total)
            yield row
        self.skipped["without any content"] = total - count
        if not count:
            self.problems.append(f"{self.top}: the file holds no rows")

    def require(self, *columns: str) -> None:
        """Refuse (InputError) a table that lacks a column; each is listed with the nearest ones."""
        missing = [name for name in dict.fromkeys(columns) if name not in self.columns]
        refuse([f"{self.top}: {unknown_name('column', name, self.columns)}" for name in missing])

    def keep_where(self, where: Iterable[tuple[str, str]]) -> None:
        """Keep the rows whose cells have the values asked for; none is a problem. InputError: there is no
        such column.
        """
        wanted = dict(where)
        self.require(*wanted)
        if wanted:
            self.rows = self._only(self.rows, wanted)

    def _only(self, rows: Iterator[Row], wanted: Mapping[str, str]) -> Iterator[Row]:
        count = taken = 0
        for row in rows:
            count += 1
            if all(row.cells[name].strip() == value for name, value in wanted.items()):
                taken += 1
                yield row
        having = ", ".join(f"{name}={value}" for name, value in wanted.items())
        self.notes.append(f"{self.where}: {taken:,} of {count:,} rows have {having}")
        self.skipped[f"without {having}"] = count - taken
        if count and not taken:
            self.problems.append(f"{self.top}: no row has {having} (--where)")


def unpivot(table: Stream, columns: Columns) -> Columns:
    """Give the table a row for each system's answer; the columns that say what is what in it.

    Without a `*` in the answer's column, or with a column of that very name, all is as it was. An item's id
    is the row's with the system's name behind it. A row in which a system has neither an answer nor a label
    gives no item of it. InputError: no column fits, one of a system's columns is missing, or `--system` is
    given too.
    """
    answer = columns.answer
    if answer is None or _ANY not in answer or answer in table.columns:
        return columns
    systems = list(_systems(answer, table.columns))
    refuse(_problems(table, columns, systems))
    labels = _label_names(table, columns)
    table.rows = _answers(table, table.rows, columns, {**labels, answer: answer}, systems)
    table.columns = (*table.columns, answer, *labels.values(), _ANY)
    return _named(columns, labels)


def _answers(
    table: Stream, rows: Iterator[Row], columns: Columns, names: Mapping[str, str], systems: list[str]
) -> Iterator[Row]:
    count = n_answers = 0
    for row in rows:
        count += 1
        for system in systems:
            if (one := _one(row, columns, names, system)) is not None:
                n_answers += 1
                yield one
    of = f"of {len(systems)} systems: {', '.join(systems)}"
    table.notes.append(f"{table.where}: {n_answers:,} answers in {count:,} rows, {of}")


def _systems(pattern: str, columns: Iterable[str]) -> Iterable[str]:
    before, _, after = pattern.partition(_ANY)
    for column in columns:
        if column.startswith(before) and column.endswith(after) and len(column) > len(before) + len(after):
            yield column[len(before) : len(column) - len(after)]


def _problems(table: Stream, columns: Columns, systems: list[str]) -> list[str]:
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


def _label_names(table: Stream, columns: Columns) -> dict[str, str]:
    """Label pattern -> the column that takes its place, named by what all have in common: the rater."""
    names = {label: label.replace(_ANY, "").strip("_-. ") for label in _labels(columns)}
    taken = [*table.columns, *names.values()]
    return {label: name if name and taken.count(name) == 1 else label for label, name in names.items()}


def _named(columns: Columns, labels: Mapping[str, str]) -> Columns:
    gold = None if columns.gold_label is None else labels[columns.gold_label]
    return replace(
        columns, labels=tuple(labels[label] for label in columns.labels), gold_label=gold, system=_ANY
    )


def _one(row: Row, columns: Columns, names: Mapping[str, str], system: str) -> Row | None:
    """The row of one system, by the patterns of its columns and the names that these get; None where it has
    neither an answer nor a label.
    """
    sources = {name: _of(pattern, system) for pattern, name in names.items()}
    cells = {name: row.cells[source] for name, source in sources.items()}
    if not any(cell.strip() for cell in cells.values()):
        return None
    raw = {name: row.raw.get(source) for name, source in sources.items()}
    if columns.item is not None and row.cells.get(columns.item, "").strip():
        cells[columns.item] = f"{row.cells[columns.item].strip()}-{system}"
    return Row(row.line, {**row.cells, **cells, _ANY: system}, {**row.raw, **raw, _ANY: system})


def with_labels(columns: Columns, table: Stream) -> Columns:
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


def split_chunks(table: Stream, columns: Columns) -> None:
    """Give the table a row for each context of a row, for labels of single contexts; with `chunks` alone.

    A label cell may hold a list, a label for each context; any other belongs to all of them, and a list that
    is longer or shorter than that of the contexts is a problem. An item's id is the row's with `-chunk-<n>`
    behind it, from 0.
    """
    if columns.chunks:
        table.rows = _split(table, table.rows, columns)


def _split(table: Stream, rows: Iterator[Row], columns: Columns) -> Iterator[Row]:
    count = n_chunks = without = 0
    for row in rows:
        count += 1
        chunks = _chunks(table, row, columns)
        n_chunks, without = n_chunks + len(chunks), without + (not chunks)
        yield from chunks
    table.notes.append(f"{table.where}: {n_chunks:,} contexts in {count:,} rows, an item each")
    table.skipped["without a context"] = without


def _chunks(table: Stream, row: Row, columns: Columns) -> list[Row]:
    where, found = table.at(row), []
    contexts = [
        (name, one) for name in columns.contexts for one in read_contexts(row, name, where, table.problems)
    ]
    lists = {
        name: cell for name in columns.label_names if isinstance(cell := listed_cell(row.raw.get(name)), list)
    }
    for name, cell in lists.items():
        if len(cell) != len(contexts):
            table.problems.append(
                f"{where}: column {name!r}: {len(cell)} labels for {len(contexts)} contexts: one for each"
            )
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


_LARGE = 500_000_000  # bytes
JUDGE, VERDICT = "judge", "verdict"
# of a recorded judgement, where the file has them
KEPT = ("repeat", "unit", "reasoning", "error", "cost_usd", "latency_s")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SideTables:
    """What stands in files of its own: people's `ratings`, and `judgements` that judges gave; both name their
    items by id, in a column that is called as the items' own.

    `where`: (column, value), which rows are taken: of the ratings, or of the table itself where these are in
    it.
    """

    ratings: str | Path | None = None
    judgements: str | Path | None = None
    where: tuple[tuple[str, str], ...] = ()

    def problems(self, columns: Columns) -> list[str]:
        """What contradicts the columns."""
        found = []
        files = (("--ratings", self.ratings), ("--judgements", self.judgements))
        if columns.item is None or columns.chunks:
            why = (
                "name the column of the ids with --item" if columns.item is None else "--chunks makes new ids"
            )
            found = [
                f"{option} names its items by their ids: {why}" for option, file in files if file is not None
            ]
        if self.ratings is not None and not columns.label_names:
            found.append("--ratings without --label: name the columns of the labels in that file")
        return found

    def options(self) -> list[str]:
        """The options as they are typed, files by their names."""
        files = (("--ratings", self.ratings), ("--judgements", self.judgements))
        typed = [part for option, file in files if file is not None for part in (option, Path(file).name)]
        return [*typed, *(part for name, value in self.where for part in ("--where", f"{name}={value}"))]


def read_where(entries: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The `--where COL=VALUE` options, cut at the first `=`; InputError where one has none."""
    cut = [(entry, *entry.partition("=")) for entry in entries]
    refuse(
        [
            f"--where {entry}: write COL=VALUE, such as --where metric=faithfulness"
            for entry, _, sign, _ in cut
            if not sign
        ]
    )
    return tuple((column.strip(), value.strip()) for _, column, _, value in cut)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of an import, none read yet; `ratings` is that of the items where they hold the labels."""

    items: Stream
    ratings: Stream
    judgements: Stream | None

    @property
    def notes(self) -> list[str]:
        """How they were read; whole once they have been."""
        return self.items.notes if self.ratings is self.items else [*self.items.notes, *self.ratings.notes]

    def left_out(self, columns: Columns, typed: Sequence[str]) -> list[str]:
        """The columns that nothing is taken from; `typed`: those that the options name, some with a `*`, and
        those that choose the rows.
        """
        item, apart = columns.item or "", self.ratings is not self.items
        if not apart:
            used = [name for name in self.items.columns if any(fnmatchcase(name, one) for one in typed)]
            found = left_out(self.items.columns, *columns.names, *typed, *used)
        else:
            found = left_out(self.items.columns, *columns.item_names)
        beside = [(self.ratings, (item, *columns.label_names, *typed))] if apart else []
        beside += [(self.judgements, (item, JUDGE, VERDICT, *KEPT))] if self.judgements is not None else []
        more = (
            f"{name} of {table.name}" for table, used in beside for name in left_out(table.columns, *used)
        )
        return [*found, *more]


def tables_of(
    file: str | Path, columns: Columns, beside: SideTables, progress: Progress | None
) -> tuple[Tables, Columns]:
    """The tables and the columns, a row an item; InputError lists what makes no sense."""
    unreadable, wrong = list[str](), Problems()
    items, ratings, judgements = (
        None if path is None else attempt(partial(_opened, path, wrong, progress), unreadable)
        for path in (file, beside.ratings, beside.judgements)
    )
    if items is not None:
        columns = columns.resolved(items.columns, Path(file))
    unclear = [] if columns.usual else [*columns.problems(), *beside.problems(columns)]
    problems, found = [*unclear, *unreadable], None
    if items is not None and (ratings is not None or beside.ratings is None):
        tables = Tables(items, ratings or items, judgements)
        found = attempt(partial(_shaped, tables, columns, beside.where), problems)
    if problems or found is None:
        raise InputError(problems)
    return tables, found


def _opened(path: str | Path, problems: Problems, progress: Progress | None) -> Stream:
    if Path(path).is_file() and (size := Path(path).stat().st_size) >= _LARGE:
        notice(
            f"judgecal: {Path(path).name} is {size / 1e9:.1f} GB: it is read to the end before its rows are "
            f"taken"
        )
    return Stream(open_table(path), problems, progress)


def _shaped(tables: Tables, columns: Columns, where: Iterable[tuple[str, str]]) -> Columns:
    """Bring the tables to the rows that are asked for, a row an item; the columns of these."""
    items, labelled = tables.items, tables.ratings
    labelled.keep_where(where)
    if labelled is items:
        columns = unpivot(items, columns)
    columns = with_labels(columns, labelled)
    item = () if columns.item is None else (columns.item,)
    problems: list[str] = []
    if labelled is items:
        attempt(partial(items.require, *columns.names), problems)
    else:
        attempt(partial(items.require, *columns.item_names), problems)
        attempt(partial(labelled.require, *item, *columns.label_names), problems)
    if tables.judgements is not None:
        attempt(partial(tables.judgements.require, *item, VERDICT), problems)
    refuse(problems)
    split_chunks(items, columns)
    return columns


def attempt(step: Callable[[], _T], problems: list[str]) -> _T | None:
    """What a step comes to; None where it refuses its input, with its problems among the others."""
    try:
        return step()
    except InputError as error:
        problems.extend(error.problems)
        return None
