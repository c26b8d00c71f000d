"""The tables of an import: that of the items, and what stands in files beside it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TypeVar

from judgecal.errors import InputError, notice, refuse
from judgecal.goldset.gold_set import JUDGEMENTS
from judgecal.goldset.reading import Reading
from judgecal.goldset.reshape import Problems, Progress, Stream, split_chunks, unpivot, with_labels
from judgecal.goldset.verdicts import judged_twice
from judgecal.goldset.write import Draft
from judgecal.records import ITEM_UNIT
from judgecal.tables import Row, write_json_lines
from judgecal.tables.columns import Columns, left_out
from judgecal.tables.formats import open_table

_LARGE = 500_000_000  # bytes
_JUDGE, _VERDICT = "judge", "verdict"
_KEPT = (
    "repeat",
    "unit",
    "reasoning",
    "error",
    "cost_usd",
    "latency_s",
)  # of a recorded judgement, where the file has them

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Beside:
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
    """The tables of an import, none of them read yet; `ratings` is that of the items where the labels are in
    it."""

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
        beside += [(self.judgements, (item, _JUDGE, _VERDICT, *_KEPT))] if self.judgements is not None else []
        more = (
            f"{name} of {table.name}" for table, used in beside for name in left_out(table.columns, *used)
        )
        return [*found, *more]


def tables_of(
    file: str | Path, columns: Columns, beside: Beside, progress: Progress | None
) -> tuple[Tables, Columns]:
    """The tables with the columns that the options name, a row an item; InputError lists what makes no
    sense."""
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
            f"judgecal: {Path(path).name} is {size / 1e9:.1f} GB: it is read to the end before its rows are taken"
        )
    return Stream(open_table(path), problems, progress)


def _shaped(tables: Tables, columns: Columns, where: Iterable[tuple[str, str]]) -> Columns:
    """Bring the tables to the rows that are asked for, a row an item; the columns that say what is what in
    them."""
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
        attempt(partial(tables.judgements.require, *item, _VERDICT), problems)
    refuse(problems)
    split_chunks(items, columns)
    return columns


class Judgements:
    """What judges said of the items, written as `agreement` reads it; rows of other items are counted in the
    notes.

    `judges`: how many judgements each judge gave; whole once they have been read.
    """

    def __init__(self, table: Stream | None, columns: Columns, reading: Reading) -> None:
        self.judges = Counter[str]()
        self._table, self._item, self._reading = table, str(columns.item), reading
        self._lines: dict[
            int, int
        ] = {}  # where a judgement stands, by a hash of its item, judge, repeat and unit

    def read(self, draft: Draft | None) -> None:
        """Read the rows, and write them into a draft."""
        if self._table is None:
            return
        rows = self._rows(self._table)
        if draft is None:
            deque(rows, maxlen=0)
        else:
            write_json_lines(draft.folder / JUDGEMENTS, rows)

    def _rows(self, table: Stream) -> Iterator[dict[str, object]]:
        count, reading, single = 0, self._reading, Path(table.name).stem
        for row in table.rows:
            count += 1
            if reading.holds(row.cells[self._item].strip()):
                judgement = _judgement(row, self._item, single)
                self.judges[str(judgement[_JUDGE])] += 1
                self._compare(table, row, judgement)
                yield judgement
        unknown = count - self.judges.total()
        if count and unknown == count:
            reading.problems.append(f"{table.where}: no value of column {self._item} is the id of an item")
        elif unknown:
            reading.remarks.append(f"{unknown:,} rows of {table.name} name no item of the set")

    def _compare(self, table: Stream, row: Row, judgement: Mapping[str, object]) -> None:
        item, judge = str(judgement["item_id"]), str(judgement[_JUDGE])
        repeat, unit = (
            row.cells.get(name, "").strip() or missing
            for name, missing in (("repeat", "0"), ("unit", ITEM_UNIT))
        )
        first = self._lines.setdefault(hash((item, judge, repeat, unit)), row.line)
        if first != row.line:
            self._reading.problems.append(
                f"{table.at(row)}: {judged_twice(judge, item, table.number(first))}"
            )


def _judgement(row: Row, item: str, single: str) -> dict[str, object]:
    cells = row.cells
    kept = {name: row.raw[name] for name in _KEPT if cells.get(name, "").strip()}
    judge = cells.get(_JUDGE, "").strip() or single
    return {"item_id": cells[item].strip(), _JUDGE: judge, _VERDICT: row.raw.get(_VERDICT), **kept}


def attempt(step: Callable[[], _T], problems: list[str]) -> _T | None:
    """What a step comes to; None where it refuses its input, with its problems among the others."""
    try:
        return step()
    except InputError as error:
        problems.extend(error.problems)
        return None
