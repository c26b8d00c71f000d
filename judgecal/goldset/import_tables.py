"""The tables of an import: read one row at a time, and brought into a row an item where a row has several
answers, contexts or raters.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from judgecal.errors import InputError, notice, refuse
from judgecal.tables import Row, Source
from judgecal.tables.cells import is_error
from judgecal.tables.columns import Columns, left_out, listed_cell, read_contexts
from judgecal.tables.formats import open_table
from judgecal.tables.table import RowLocator

_ANY = "*"
_STEP = 1000  # rows between two looks at the progress
_LARGE = 500_000_000  # bytes
JUDGE, VERDICT = "judge", "verdict"
KEPT = ("repeat", "unit", "reasoning", "error", "cost_usd", "latency_s")
"""Taken of a recorded judgement, where the file has them."""
Progress = Callable[[int, int], None]
"""Told now and then how many rows have been read, of how many."""
_T = TypeVar("_T")


def _without_errors(row: Row, errors: Counter[str]) -> Row:
    """A row with the errors of a spreadsheet as empty cells, and counted."""
    wrong = {name: cell.strip() for name, cell in row.cells.items() if cell and is_error(cell)}
    if not wrong:
        return row
    errors.update(wrong.values())
    return Row(row.line, {**row.cells, **dict.fromkeys(wrong, "")}, {**row.raw, **dict.fromkeys(wrong)})


class Stream(RowLocator):
    """A table whose rows are read once, in order, and never held.

    `columns` are those that the rows have. `skipped` (rows by reason), `notes` and `problems` are whole once
    the rows have been read; `rows` may be wrapped before.
    """

    def __init__(
        self,
        source: Source,
        problems: list[str],
        progress: Progress | None = None,
        *,
        errors_as_empty: bool = False,
    ) -> None:
        self._errors: Counter[str] | None = Counter() if errors_as_empty else None
        self.where, self.unit, self.name = source.where, source.unit, source.name
        self.source, self.columns, self.problems = source, source.fields, problems
        self.notes = list(source.remarks)
        self.skipped: dict[str, int] = {}
        self.rows = self._read(progress)

    def _read(self, progress: Progress | None) -> Iterator[Row]:
        count, total = 0, self.source.n_rows
        for count, row in enumerate(self.source.filled_rows(), start=1):
            if progress is not None and not count % _STEP:
                progress(count, total)
            yield row if self._errors is None else _without_errors(row, self._errors)
        self.skipped["without any content"] = total - count
        if self._errors:
            counted = ", ".join(f"{error} {n:,}" for error, n in self._errors.most_common())
            self.notes.append(f"{self.where}: a spreadsheet's errors taken as empty cells: {counted}")
        if not count:
            self.problems.append(f"{self.top}: the file holds no rows")

    def keep_where(self, where: Iterable[tuple[str, str]]) -> None:
        """Keep the rows whose cells have the values asked for; none is a problem. InputError: there is no
        such column.
        """
        wanted, rows = dict(where), self.rows
        refuse(self.missing(*wanted))

        def having() -> Iterator[Row]:
            count = taken = 0
            for row in rows:
                count += 1
                if all(row.cells[name].strip() == value for name, value in wanted.items()):
                    taken += 1
                    yield row
            values = ", ".join(f"{name}={value}" for name, value in wanted.items())
            self.notes.append(f"{self.where}: {taken:,} of {count:,} rows have {values}")
            self.skipped[f"without {values}"] = count - taken
            if count and not taken:
                self.problems.append(f"{self.top}: no row has {values} (--where)")

        if wanted:
            self.rows = having()


def unpivot(table: Stream, columns: Columns) -> Columns:
    """Give the table a row for each system's answer; the columns that say what is what in it.

    Without a `*` in the answer's column, or with a column of that very name, all is as it was. An item's id
    is the row's with the system's name behind it; a label's column gets the name that all systems' have in
    common, as that is the rater. A row in which a system has neither an answer nor a label gives no item of
    it. InputError: no column fits, one of a system's columns is missing, or a column of systems is named too.
    """
    answer, known = columns.answer, table.columns
    if answer is None or _ANY not in answer or answer in known:
        return columns
    if answer.count(_ANY) > 1:
        raise InputError(f"--col answer={answer}: write one {_ANY}, where the columns have the system's name")
    before, _, after = answer.partition(_ANY)
    systems = [
        name[len(before) : len(name) - len(after)]
        for name in known
        if name.startswith(before) and name.endswith(after) and len(name) > len(before) + len(after)
    ]
    if not systems:
        raise InputError(f"{table.top}: no column fits --col answer={answer}: known: {', '.join(known)}")
    problems = []
    if columns.system is not None:
        problems.append(
            f"--col system={columns.system}: --col answer={answer} names the systems already: leave one out"
        )
    gold = () if columns.gold_label is None else (columns.gold_label,)
    labels = tuple(dict.fromkeys((*columns.labels, *gold, *columns.verdicts)))
    for label in labels:
        if label.count(_ANY) == 1:
            names = [label.replace(_ANY, system) for system in systems]
            problems += [
                f"{table.top}: no column {name!r} beside {answer}" for name in names if name not in known
            ]
        else:
            problems.append(
                f"--col answer={answer} takes each system's own labels: write one {_ANY} in {label} too"
            )
    refuse(problems)
    common = {label: label.replace(_ANY, "").strip("_-. ") for label in labels}
    taken = [*known, *common.values()]
    named = {label: name if name and taken.count(name) == 1 else label for label, name in common.items()}
    rows = table.rows

    def answers() -> Iterator[Row]:
        count = n_answers = 0
        for row in rows:
            count += 1
            for system in systems:
                sources = {
                    name: pattern.replace(_ANY, system) for pattern, name in {**named, answer: answer}.items()
                }
                cells = {name: row.cells[source] for name, source in sources.items()}
                if not any(cell.strip() for cell in cells.values()):
                    continue
                raw = {name: row.raw.get(source) for name, source in sources.items()}
                if columns.item is not None and row.cells.get(columns.item, "").strip():
                    cells[columns.item] = f"{row.cells[columns.item].strip()}-{system}"
                n_answers += 1
                yield Row(row.line, {**row.cells, **cells, _ANY: system}, {**row.raw, **raw, _ANY: system})
        of = f"of {len(systems)} systems: {', '.join(systems)}"
        table.notes.append(f"{table.where}: {n_answers:,} answers in {count:,} rows, {of}")

    table.rows, table.columns = answers(), (*known, answer, *named.values(), _ANY)
    return replace(
        columns,
        labels=tuple(named[label] for label in columns.labels),
        gold_label=None if columns.gold_label is None else named[columns.gold_label],
        verdicts=tuple(named[verdict] for verdict in columns.verdicts),
        system=_ANY,
    )


def with_labels(columns: Columns, table: Stream) -> Columns:
    """The columns with every `*` in a label's name filled in: all columns of the table that fit it.

    InputError: none fits.
    """
    labels: list[str] = []
    for label in columns.labels:
        plain = _ANY not in label or label in table.columns
        fitting = [label] if plain else [name for name in table.columns if fnmatchcase(name, label)]
        if not fitting:
            raise InputError(
                f"{table.top}: no column fits --label {label}: known: {', '.join(table.columns)}"
            )
        labels += fitting
    return replace(columns, labels=tuple(labels))


def split_chunks(table: Stream, rows: Iterator[Row], columns: Columns) -> Iterator[Row]:
    """A row for each context of a row, for labels of single contexts.

    A label cell may hold a list, a label for each context; any other belongs to all of them, and a list that
    is longer or shorter than that of the contexts is a problem. An item's id is the row's with `-chunk-<n>`
    behind it, from 0.
    """
    count = n_chunks = n_without = 0
    for row in rows:
        count += 1
        where = table.at(row)
        contexts = [
            (name, context)
            for name in columns.contexts
            for context in read_contexts(row, name, where, table.problems)
        ]
        labelled = (*columns.label_names, *columns.verdicts)
        cells = {name: listed_cell(row.raw.get(name)) for name in labelled}
        lists = {name: cell for name, cell in cells.items() if isinstance(cell, list)}
        uneven = [name for name, cell in lists.items() if len(cell) != len(contexts)]
        for name in uneven[:1]:
            n_labels = f"{len(lists[name])} labels for {len(contexts)} contexts"
            table.problems.append(f"{where}: column {name!r}: {n_labels}: one for each")
            contexts = []
        n_chunks, n_without = n_chunks + len(contexts), n_without + (not contexts)
        for place, (name, context) in enumerate(contexts):
            chunk = {"document_id": context.document_id, "text": context.text, "score": context.score}
            labels = {label: cell[place] for label, cell in lists.items()}
            texts = {**row.cells, **{label: _label_text(value) for label, value in labels.items()}}
            if columns.item is not None and row.cells[columns.item].strip():
                texts[columns.item] = f"{row.cells[columns.item].strip()}-chunk-{place}"
            raw = {**row.raw, **dict.fromkeys(columns.contexts), name: [chunk], **labels}
            yield Row(row.line, texts, raw)
    table.notes.append(f"{table.where}: {n_chunks:,} contexts in {count:,} rows, an item each")
    table.skipped["without a context"] = n_without


def _label_text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class SideTables:
    """What stands in files of its own: people's `ratings`, and `judgements` that judges gave; both name their
    items by id, in a column that is called as the items' own.

    `where`: (column, value), which rows are taken: of the ratings, or of the table itself where these are in
    it. `encoding`, `separator` (of separated text) and `errors_as_empty` say how all of them are read.
    """

    ratings: str | Path | None = None
    judgements: str | Path | None = None
    where: tuple[tuple[str, str], ...] = ()
    encoding: str | None = None
    separator: str | None = None
    errors_as_empty: bool = False

    @property
    def _files(self) -> list[tuple[str, str | Path]]:
        files = (("--ratings", self.ratings), ("--judgements", self.judgements))
        return [(option, file) for option, file in files if file is not None]

    def problems(self, columns: Columns) -> list[str]:
        """What contradicts the columns."""
        why = (
            "name the column of the ids with --col item="
            if columns.item is None
            else "--chunks makes new ids"
        )
        nameless = columns.item is None or columns.chunks
        found = [f"{option} names its items by their ids: {why}" for option, _ in self._files if nameless]
        if self.judgements is not None and columns.verdicts:
            found.append("--judgements and --verdict both say what judges said: leave one out")
        if self.ratings is not None and not columns.label_names:
            found.append("--ratings without --label: name the columns of the labels in that file")
        return found

    def options(self) -> list[str]:
        """The options as they are typed, files by their names."""
        typed = [*((option, Path(file).name) for option, file in self._files)]
        typed += [("--where", f"{name}={value}") for name, value in self.where]
        given = (("--encoding", self.encoding), ("--separator", self.separator))
        typed += [(option, value) for option, value in given if value is not None]
        return [*(part for pair in typed for part in pair), *["--errors-as-empty"] * self.errors_as_empty]


def read_where(entries: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The `--where COL=VALUE` options, cut at the first `=`; InputError where one has none."""
    entries = list(entries)
    refuse(
        [
            f"--where {entry}: write COL=VALUE, such as --where metric=faithfulness"
            for entry in entries
            if "=" not in entry
        ]
    )
    cut = (entry.partition("=") for entry in entries)
    return tuple((column.strip(), value.strip()) for column, _, value in cut)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of an import, none read yet; `ratings` is that of the items where they hold the labels."""

    items: Stream
    ratings: Stream
    judgements: Stream | None

    @property
    def apart(self) -> bool:
        """Whether the labels stand in a file of their own."""
        return self.ratings is not self.items

    @property
    def notes(self) -> list[str]:
        """How they were read; whole once they have been."""
        return [*self.items.notes, *(self.ratings.notes if self.apart else ())]

    def left_out(self, columns: Columns, typed: Sequence[str]) -> list[str]:
        """The columns that nothing is taken from; `typed`: those that the options name, some with a `*`, and
        those that choose the rows.
        """
        item, known = columns.item or "", self.items.columns
        beside: list[tuple[Stream, tuple[str, ...]]] = []
        if self.apart:
            unused = left_out(known, *columns.item_names)
            beside.append((self.ratings, (item, *columns.label_names, *typed)))
        else:
            fitting = [name for name in known if any(fnmatchcase(name, pattern) for pattern in typed)]
            unused = left_out(known, *columns.names, *typed, *fitting)
        if self.judgements is not None:
            beside.append((self.judgements, (item, JUDGE, VERDICT, *KEPT)))
        for table, used in beside:
            unused += [f"{name} of {table.name}" for name in left_out(table.columns, *used)]
        return unused


def tables_of(
    file: str | Path | Source, columns: Columns, beside: SideTables, progress: Progress | None
) -> tuple[Tables, Columns]:
    """The tables and the columns, a row an item; InputError lists what makes no sense."""
    unreadable, of_rows = list[str](), list[str]()

    def opened(path: str | Path | Source) -> Stream:
        if isinstance(path, Source):
            return Stream(path, of_rows, progress)
        if Path(path).is_file() and (size := Path(path).stat().st_size) >= _LARGE:
            notice(
                f"judgecal: {Path(path).name} is {size / 1e9:.1f} GB: we read it to the end before we "
                "take its rows"
            )
        table = open_table(path, beside.encoding, beside.separator)
        return Stream(table, of_rows, progress, errors_as_empty=beside.errors_as_empty)

    items, ratings, judgements = (
        None if path is None else attempt(partial(opened, path), unreadable)
        for path in (file, beside.ratings, beside.judgements)
    )
    if items is not None:
        columns = columns.resolved(items.columns, None if isinstance(file, Source) else Path(file))
    problems = [] if columns.usual else [*columns.problems(), *beside.problems(columns)]
    problems += unreadable
    if items is None or (ratings is None and beside.ratings is not None):
        raise InputError(problems)
    tables = Tables(items, ratings or items, judgements)
    shaped = attempt(lambda: _shaped(tables, columns, beside.where), problems)
    if problems or shaped is None:
        raise InputError(problems)
    return tables, shaped


def _shaped(tables: Tables, columns: Columns, where: Iterable[tuple[str, str]]) -> Columns:
    """Bring the tables to the rows that are asked for, a row an item; the columns of these."""
    items, labelled = tables.items, tables.ratings
    labelled.keep_where(where)
    if not tables.apart:
        columns = unpivot(items, columns)
    columns = with_labels(columns, labelled)
    item = () if columns.item is None else (columns.item,)
    problems = items.missing(*(columns.item_names if tables.apart else columns.names))
    if tables.apart:
        problems += labelled.missing(*item, *columns.label_names)
    if tables.judgements is not None:
        problems += tables.judgements.missing(*item, VERDICT)
    refuse(problems)
    if columns.chunks:
        items.rows = split_chunks(items, items.rows, columns)
    return columns


def attempt(step: Callable[[], _T], problems: list[str]) -> _T | None:
    """What a step comes to; None where it refuses its input, with its problems among the others."""
    try:
        return step()
    except InputError as error:
        problems.extend(error.problems)
        return None
