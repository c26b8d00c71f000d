"""The table that `judge` wrote, as arrays: a million rows in some seconds, their texts as numbers.

And people's labels of its rows, with the chance that each was drawn with.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judgecal.errors import InputError, listed, unknown_name
from judgecal.goldset import GoldSet
from judgecal.records import Item
from judgecal.scale import Scale
from judgecal.stats.prediction_powered import LabelledRows
from judgecal.stats.sample import Bools, Floats, Ints
from judgecal.tables import Columns, open_source
from judgecal.tables.columns import USUAL
from judgecal.workspace import shown

if TYPE_CHECKING:
    import polars as pl

_MOST_VALUES = 50
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}


@dataclass(frozen=True, slots=True)
class JudgedColumns:
    """Which column of a judged table is what: those of its items with the verdict, and what `rate` reads
    more."""

    columns: Columns
    by: str | None = None  # what the rows are compared by
    second: str | None = None  # another judge's verdicts, on the scale of the first
    repeats: tuple[str, ...] = ()  # further verdicts of the same judge

    @classmethod
    def of(
        cls,
        path: Path,
        columns: Columns,
        *,
        by: str | None = None,
        second: str | None = None,
        repeats: tuple[str, ...] = (),
    ) -> JudgedColumns:
        """Those of a table, found by their usual names where `columns` leaves that to us."""
        found = columns.resolved(_header(path), path, only=USUAL) if columns.usual else columns
        usual: Any = {
            part: part for part in ("question", "answer", "verdict") if getattr(found, part) is None
        }
        return cls(dataclasses.replace(found, **usual), by, second, repeats)

    @property
    def named(self) -> dict[str, str]:
        """Each by what it is for."""
        parts = ("question", "answer", "verdict", "item", "group")
        pairs = [(part, getattr(self.columns, part)) for part in parts]
        pairs += [("by", self.by), ("second", self.second)]
        repeats = {f"repeat_{place}": column for place, column in enumerate(self.repeats, 2)}
        return {name: column for name, column in pairs if column is not None} | repeats

    def untold(self, path: Path) -> dict[str, str]:
        """Those of the items and the verdict that have to be named by an option each time."""
        known = Columns(usual=True).resolved(_header(path), path, only=USUAL)
        parts = ("question", "answer", "verdict", "item", "group")
        named = {part: column for part, column in self.named.items() if part in parts}
        return {part: column for part, column in named.items() if column != getattr(known, part)}


@dataclass(frozen=True)
class JudgedTable:
    """The rows of a judged table."""

    where: str
    verdict: Floats  # on the judge's scale, NaN where unscored
    second: Floats  # the same of another judge; empty without such a column
    spread: Floats  # standard deviation of a row's verdicts over repeats; empty without repeats
    text: Ints  # a number for question and answer together
    item: Ints | None  # a number for the row's id; None without such a column
    group: Ints  # codes 0 and above
    value_of: Ints | None  # the code of what the rows are compared by; None without such a column
    values: tuple[str, ...]  # the names of these

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.verdict)

    @cached_property
    def unscored(self) -> Bools:
        """The rows without a verdict."""
        found: Bools = np.isnan(self.verdict)
        return found

    def places(self, items: Sequence[Item]) -> tuple[Ints, Ints]:
        """Every row that holds the text of one of the items, and the place of that item among them."""
        if not items:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        text = _numbers([item.question for item in items], [item.answer for item in items])
        order = np.argsort(text, kind="stable")
        at = np.minimum(np.searchsorted(text[order], self.text), len(items) - 1)
        found = text[order][at] == self.text
        self._check(items, np.isin(text, self.text[found]))
        return np.flatnonzero(found).astype(np.int64), order[at[found]].astype(np.int64)

    def _check(self, items: Sequence[Item], there: Bools) -> None:
        lost = [item for item, known in zip(items, there.tolist(), strict=True) if not known]
        if not lost:
            return
        names = listed([item.item_id for item in lost])
        changed: list[str] = []
        if self.item is not None:
            ids = set(self.item.tolist())
            numbers = _numbers([item.item_id for item in lost]).tolist()
            changed = [item.item_id for item, number in zip(lost, numbers, strict=True) if number in ids]
        if changed:
            raise InputError(
                f"{self.where}: the text of {len(changed)} labelled rows has changed since it was labelled "
                f"({listed(changed)}): judge and label the same texts, or take these labels out of the set"
            )
        raise InputError(
            f"{self.where}: {len(lost)} of {len(items)} labelled items are none of its rows ({names}): these "
            "labels are another table's, or the rows have changed since they were drawn"
        )


def read_judged(path: Path, columns: JudgedColumns, judge: Scale) -> JudgedTable:
    """Read a judged table, whose verdicts are on the judge's scale."""
    import polars as pl

    of_items = columns.columns
    frame = _frame(path, columns)
    number = {
        name: _hashed(frame, column) for name, column in columns.named.items() if name in ("item", "group")
    }
    where = shown(path)
    codes: Ints | None = None
    values: tuple[str, ...] = ()
    if columns.by is not None:
        named = frame[columns.by].fill_null("").str.strip_chars()
        values = tuple(sorted(named.unique().to_list()))
        if len(values) > _MOST_VALUES:
            raise InputError(
                f"{where}: column {columns.by!r} has {len(values):,} values: --by compares {_MOST_VALUES} at "
                "most"
            )
        codes = named.replace_strict(list(values), list(range(len(values))), return_dtype=pl.Int64).to_numpy()
    verdict = _verdicts(frame[of_items.verdict or ""], judge, where)
    again = [_verdicts(frame[column], judge, where) for column in columns.repeats]
    question, answer = str(of_items.question), str(of_items.answer)
    groups = number.get("group", _hashed(frame, question))
    return JudgedTable(
        where=where,
        verdict=verdict,
        second=np.empty(0) if columns.second is None else _verdicts(frame[columns.second], judge, where),
        spread=_spread(np.stack([verdict, *again])) if again else np.empty(0),
        text=_hashed(frame, question, answer),
        item=number.get("item"),
        group=np.unique(groups, return_inverse=True)[1].astype(np.int64),
        value_of=codes,
        values=values,
    )


def _frame(path: Path, columns: JudgedColumns) -> pl.DataFrame:
    """The columns that are asked for, as text."""
    import polars as pl

    names = list(dict.fromkeys(columns.named.values()))
    lazy = _scanned(path)
    if lazy is not None:
        # what is wrong with it, or what is unusual, the readers of all tables know better
        with contextlib.suppress(pl.exceptions.PolarsError, OSError):
            _require(names, lazy.collect_schema().names(), path)
            return lazy.select(pl.col(name).cast(pl.String) for name in names).collect()
    source = open_source(path)
    _require(names, source.columns, path)
    rows: dict[str, list[Any]] = {name: [] for name in names}
    for piece in source.pieces():
        for name, column in rows.items():
            column += [row.cells.get(name, "") for row in piece.rows]
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String))


def _header(path: Path) -> Sequence[str]:
    """The names of the columns, of a separated file and a Parquet file without reading the rows."""
    import polars as pl

    lazy = _scanned(path)
    if lazy is not None:
        with contextlib.suppress(pl.exceptions.PolarsError, OSError):
            return lazy.collect_schema().names()
    return open_source(path).columns


def _scanned(path: Path) -> pl.LazyFrame | None:
    import polars as pl

    if path.is_file() and path.suffix.lower() in _DELIMITERS:
        return pl.scan_csv(path, separator=_DELIMITERS[path.suffix.lower()], infer_schema=False)
    return pl.scan_parquet(path) if path.is_file() and path.suffix.lower() == ".parquet" else None


def _require(names: Sequence[str], known: Sequence[str], path: Path) -> None:
    missing = [name for name in names if name not in known]
    if missing:
        hint = "name the columns with --question, --answer, --verdict, --item, --group"
        raise InputError(
            [*(f"{shown(path)}: {unknown_name('column', name, known)}" for name in missing), hint]
        )


def _hashed(frame: pl.DataFrame, *columns: str) -> Ints:
    """A number for the texts of a row; a spreadsheet's apostrophe in front counts for nothing."""
    import polars as pl

    texts = [pl.col(name).fill_null("").str.strip_prefix("'") for name in columns]
    found: Ints = frame.select(pl.struct(texts).hash().reinterpret(signed=True)).to_series().to_numpy()
    return found


def _numbers(*columns: Sequence[str]) -> Ints:
    import polars as pl

    names = [str(place) for place in range(len(columns))]
    frame = pl.DataFrame(dict(zip(names, columns, strict=True)), schema=dict.fromkeys(names, pl.String))
    return _hashed(frame, *names)


def _spread(verdicts: Floats) -> Floats:
    """The standard deviation over the first axis of those that are there."""
    there = ~np.isnan(verdicts)
    n = np.maximum(there.sum(axis=0), 1)
    apart = np.where(there, verdicts - np.where(there, verdicts, 0.0).sum(axis=0) / n, 0.0)
    return np.asarray(np.sqrt((apart**2).sum(axis=0) / n), dtype=np.float64)


def _verdicts(column: pl.Series, judge: Scale, where: str) -> Floats:
    """Verdicts as numbers; each that occurs is read once."""
    import polars as pl

    texts = column.fill_null("").str.strip_chars()
    read: dict[str, float] = {}
    problems: list[str] = []
    for text in texts.unique().to_list():
        try:
            read[text] = float(judge.read(text)) if text else float("nan")
        except (ValueError, OverflowError) as error:
            problems.append(str(error))
    if problems:
        raise InputError(
            f"{where}: column {column.name!r}: {len(problems)} verdicts are none of the lock's judge, whose "
            f"scale is {judge} ({listed(sorted(problems), 3)}): name the lock that the table was judged with"
        )
    verdicts: Floats = texts.replace_strict(
        list(read), list(read.values()), return_dtype=pl.Float64
    ).to_numpy()
    return verdicts


@dataclass(frozen=True)
class RowLabels:
    """The rows of a judged table that people labelled."""

    gold: GoldSet  # the set that the labels are in
    at: Ints  # the rows' places in the table
    label: Floats  # on the people's scale
    chance: Floats | None  # with which each row was drawn; None where all rows were as likely
    n_waiting: int  # items of the set that have no label yet

    def rows(self, values: Floats) -> LabelledRows:
        """With other values in the labels' place."""
        return LabelledRows(self.at, values, self.chance)


def read_labels(gold: GoldSet, table: JudgedTable) -> RowLabels:
    """The rows of a table that a set has labels of, with the chances of the draw."""
    items = [item for item in gold.items if item.item_id in gold.labels]
    if not items:
        raise InputError(f"gold set {gold.name}: none of its {len(gold.items)} items has a label yet")
    if gold.card.sampling == "curated":
        raise InputError(
            f"gold set {gold.name}: its card says that it is curated, and a rate takes labels drawn from "
            "these rows: leave --labels out to carry the lock's error rates over, or draw with judgecal "
            "gold sheet"
        )
    at, place = table.places(items)
    chances = _chances(gold, items)
    label = np.array([float(gold.labels[item.item_id]) for item in items])[place]
    return RowLabels(
        gold, at, label, None if chances is None else chances[place], len(gold.items) - len(items)
    )


def _chances(gold: GoldSet, items: list[Item]) -> Floats | None:
    """The recorded chances; None where no item has one.

    Of a stratum that is labelled in part, that part counts as drawn: sheets and the labelling page show a
    draw in random order, so what is labelled of it when people stop is a smaller draw of the same rows.
    """
    lacking = [item.item_id for item in items if item.inclusion_probability is None]
    if len(lacking) == len(items):
        if gold.card.sampling == "stratified":
            raise InputError(
                f"gold set {gold.name}: its card says that it was drawn by strata, and no item has an "
                "inclusion_probability: without them the labels cannot be weighed"
            )
        return None
    if lacking:
        raise InputError(
            f"gold set {gold.name}: {len(lacking)} of {len(items)} labelled items have no "
            f"inclusion_probability, and the others have ({listed(lacking)}): give it in items.jsonl, or "
            "keep them in a set of their own"
        )
    drawn, labelled = (Counter(item.inclusion_probability for item in some) for some in (gold.items, items))
    kept = {chance: labelled[chance] / drawn[chance] for chance in labelled}
    return np.array(
        [(item.inclusion_probability or 0.0) * kept[item.inclusion_probability] for item in items]
    )
